// SPDX-License-Identifier: Apache-2.0
#pragma once
// The devices, PCIe switches and GPU links of a topology matrix.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/detail/matrix_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class Deferred>
void matrix_builder<Deferred>::join_pcie(node_id below, node_id above) {
  topo::link l;
  l.from = above;
  l.to = below;
  l.kind = topo::link_kind::pcie;
  l.capacity = pcie_payload_rate(3, 16);
  l.how = trust::assumed;
  l.reason = "link not told, taken as Gen3 x16";
  out_.join(l);
}

template <class Deferred>
node_id matrix_builder<Deferred>::add_switch(std::size_t first, level l, node_id above) {
  topo::node n;
  n.kind = topo::node_kind::pcie_switch;
  n.host = host_;
  n.key = host_ + (l == pix ? "/pix:" : "/pxb:") + m_.devices[first].label;
  n.name = std::string("PCIe switch of ") + m_.devices[first].label + (l == pix ? "" : " and others");
  n.numa = out_.nodes[above.value].numa;
  n.how = trust::derived;
  n.reason = std::string("invented: stands for the bridges that make paths ") + word_of(l);
  n.facts.emplace_back("stand_in", "pcie_switch");
  const node_id id = out_.add(std::move(n));
  join_pcie(id, above);
  return id;
}

template <class Deferred>
void matrix_builder<Deferred>::add_devices() {
  std::vector<std::size_t> size_of_pix(n_, 0);
  std::vector<std::size_t> pix_in_pxb(n_, 0);
  for (std::size_t i = 0; i < n_; ++i) {
    ++size_of_pix[sets_[pix].first(i)];
    if (sets_[pix].first(i) == i) ++pix_in_pxb[sets_[pxb].first(i)];
  }
  std::vector<std::optional<node_id>> pix_switch(n_), pxb_switch(n_);
  std::vector<std::string> bridge(n_);
  std::size_t bridges = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    const std::size_t in_pix = sets_[pix].first(i);
    const std::size_t in_pxb = sets_[pxb].first(i);
    const std::size_t in_phb = sets_[phb].first(i);
    if (bridge[in_phb].empty()) bridge[in_phb] = std::to_string(bridges++);
    const domain& home = domains_[home_[i]];
    node_id above = home.node;
    // What hangs at the cpu remembers its host bridge.
    const auto at_cpu = [&](topo::node& n) { n.facts.emplace_back("host_bridge", bridge[in_phb]); };
    if (pix_in_pxb[in_pxb] > 1) {
      if (!pxb_switch[in_pxb]) {
        pxb_switch[in_pxb] = add_switch(in_pxb, pxb, above);
        at_cpu(out_.nodes[pxb_switch[in_pxb]->value]);
      }
      above = *pxb_switch[in_pxb];
    }
    if (size_of_pix[in_pix] > 1 || pix_in_pxb[in_pxb] > 1) {
      if (!pix_switch[in_pix]) {
        pix_switch[in_pix] = add_switch(in_pix, pix, above);
        if (above == home.node) at_cpu(out_.nodes[pix_switch[in_pix]->value]);
      }
      above = *pix_switch[in_pix];
    }
    topo::node n = device(i);
    if (above == home.node) at_cpu(n);
    if (!m_.devices[i].gpu && home.number) {
      n.numa = home.number;
      if (n.how < trust::derived) {
        n.how = trust::derived;
        n.reason = "NUMA domain derived from the GPUs near it";
      }
    }
    node_[i] = out_.add(std::move(n));
    join_pcie(node_[i], above);
    if (!m_.devices[i].gpu) add_port(i);
  }
  tally_.add(severity::note, "the matrix tells no PCIe speeds; every PCIe link is taken as Gen3 x16",
             std::to_string(n_) + " devices", "merge with what lspci -vv, sysfs or a topology of NCCL tells");
}

template <class Deferred>
void matrix_builder<Deferred>::add_port(std::size_t i) {
  const topo::node nic = out_.nodes[node_[i].value];
  topo::node port;
  port.kind = topo::node_kind::nic_port;
  port.key = host_ + "/net:" + nic.name + "/1";
  port.name = nic.name;
  port.host = host_;
  port.index = nic.index;
  port.numa = nic.numa;
  port.how = trust::assumed;
  port.reason = "the matrix tells no ports of adapters; taken as port 1";
  topo::link l;
  l.from = node_[i];
  l.to = out_.add(std::move(port));
  l.kind = topo::link_kind::internal;
  l.capacity = unknown_port_rate;
  l.how = trust::assumed;
  l.reason = "the matrix tells no rate of the port; taken as 10 Gbit/s";
  out_.join(l);
  tally_.add(severity::note, "the matrix tells no rates of ports; they are taken as 10 Gbit/s", nic.name,
             "merge with what ibstat or sysfs tells");
}

template <class Deferred>
void matrix_builder<Deferred>::join_gpus(node_id a, node_id b, std::uint32_t links) {
  topo::link l;
  l.from = a;
  l.to = b;
  const bool xgmi = m_.gpu_link_word == "XGMI";
  const bool nvlink = m_.gpu_link_word == "NV";
  l.kind = xgmi ? topo::link_kind::xgmi : topo::link_kind::nvlink;
  l.lanes = links;
  const gpu_link_rate rate = xgmi ? xgmi_rate({}) : nvlink_rate(std::nullopt);
  l.capacity = rate.payload * (links == 0 ? 1.0 : static_cast<double>(links));
  l.how = trust::assumed;
  l.reason = (links == 0 ? std::string("some") : std::to_string(links)) + " × " +
             (nvlink ? std::string("NVLink") : m_.gpu_link_word + ", a GPU link") +
             ", architecture not told, rate of a common one";
  out_.join(l);
}

template <class Deferred>
void matrix_builder<Deferred>::add_gpu_links() {
  device_sets islands(n_);
  const auto links_of = [&](std::size_t i, std::size_t j) -> std::optional<std::uint32_t> {
    const read::matrix_cell c = cell(i, j);
    if (c.word != read::matrix_word::gpu_link || !m_.devices[i].gpu || !m_.devices[j].gpu) return std::nullopt;
    return c.links;
  };
  for (std::size_t i = 0; i < n_; ++i)
    for (std::size_t j = i + 1; j < n_; ++j)
      if (links_of(i, j)) islands.join(i, j);
  std::size_t planes = 0;
  for (std::size_t first = 0; first < n_; ++first) {
    if (islands.first(first) != first) continue;
    std::vector<std::size_t> gpus;
    for (std::size_t i = first; i < n_; ++i)
      if (islands.first(i) == first) gpus.push_back(i);
    if (gpus.size() < 2) continue;
    bool all_pairs = true;
    std::uint32_t most = 0;
    std::vector<std::uint32_t> own(gpus.size(), 0);
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      std::uint32_t sum = 0;
      for (std::size_t b = 0; b < gpus.size(); ++b) {
        if (a == b) continue;
        const auto links = links_of(gpus[a], gpus[b]);
        all_pairs = all_pairs && links;
        sum += links.value_or(0);
        own[a] = std::max(own[a], links.value_or(0));
      }
      most = std::max(most, sum);
    }
    const bool switched = all_pairs && most > most_nvlinks_of_a_gpu;
    if (!switched) {
      if (most > most_nvlinks_of_a_gpu)
        tally_.add(severity::warning,
                   "a GPU shows more links to its peers than any GPU has, but not all pairs are connected, so there is "
                   "no switch to explain it",
                   m_.devices[first].label + " and others: " + std::to_string(most) + " links", "nvidia-smi nvlink -s");
      for (std::size_t a = 0; a < gpus.size(); ++a)
        for (std::size_t b = a + 1; b < gpus.size(); ++b)
          if (const auto links = links_of(gpus[a], gpus[b])) join_gpus(node_[gpus[a]], node_[gpus[b]], *links);
      continue;
    }
    topo::node plane;
    plane.kind = topo::node_kind::nvswitch;
    plane.key = host_ + "/nvswitch" + (planes == 0 ? std::string() : ":" + std::to_string(planes));
    plane.name = planes == 0 ? std::string("NVSwitch") : "NVSwitch plane " + std::to_string(planes);
    plane.host = host_;
    plane.how = trust::derived;
    plane.reason = "all pairs of GPUs are connected, and one by one they would need " + std::to_string(most) +
                   " links of a GPU that has at most " + std::to_string(most_nvlinks_of_a_gpu);
    ++planes;
    const node_id id = out_.add(std::move(plane));
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      join_gpus(node_[gpus[a]], id, own[a]);
      for (std::size_t b = a + 1; b < gpus.size(); ++b)
        if (links_of(gpus[a], gpus[b]) != std::min(own[a], own[b]))
          tally_.add(severity::warning,
                     "two GPUs behind the switch have fewer links between them than each has to others",
                     pair_text(gpus[a], gpus[b]), "look for links that are down: nvidia-smi nvlink -s");
    }
  }
}

template <class Deferred>
void matrix_builder<Deferred>::add_peers() {
  constexpr const char* words[] = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
  constexpr const char* why[] = {"",
                                 "the chipset does not support peer access between two GPUs (CNS)",
                                 "a GPU does not support peer access (GNS)",
                                 "the topology does not support peer access between two GPUs (TNS)",
                                 "peer access between two GPUs is not supported (NS)",
                                 "peer access between two GPUs is switched off in the driver's settings (DR)",
                                 "it is not known whether two GPUs have peer access (U)"};
  for (std::size_t i = 0; i < n_; ++i) {
    std::string with;
    for (std::size_t j = 0; j < n_; ++j) {
      if (i == j) continue;
      const read::matrix_word w = cell(i, j).word;
      if (w < read::matrix_word::ok) continue;
      const auto which = static_cast<std::size_t>(w) - static_cast<std::size_t>(read::matrix_word::ok);
      with += (with.empty() ? "" : " ") + m_.devices[j].label + ":" + words[which];
      if (which != 0 && i < j)
        tally_.add(severity::warning, why[which], pair_text(i, j),
                   "NCCL copies through host memory here; see nvidia-smi topo -m");
    }
    if (!with.empty()) out_.nodes[node_[i].value].facts.emplace_back("p2p", with);
  }
  tally_.add(severity::note, "the matrix of peer access tells no paths, so the GPUs have no links",
             std::to_string(n_) + " GPUs", "nvidia-smi topo -m tells the paths");
}

template <class Deferred>
void matrix_builder<Deferred>::tell_contradictions() {
  for (std::size_t i = 0; i < n_; ++i)
    for (std::size_t j = i + 1; j < n_; ++j) {
      const level said = told(i, j);
      const level is = said == untold ? untold : built(i, j);
      if (said == is) continue;
      tally_.add(severity::warning,
                 "the matrix contradicts itself: two devices are as near to a third as not to each other; the nearer "
                 "class is taken",
                 pair_text(i, j) + " says " + word_of(said) + ", by others " + word_of(is), "print the matrix again");
    }
}

}}}  // namespace topocoll::v0::detail
