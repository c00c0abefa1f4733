// SPDX-License-Identifier: Apache-2.0
#pragma once
// Links between GPUs in an hwloc topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/hwloc_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A link of a told bandwidth between GPUs, or between a GPU and a switch.
template <class Deferred>
topo::link hwloc_builder<Deferred>::gpu_link(topo::link_kind kind, double megabytes) {
  topo::link l;
  l.kind = kind;
  l.nominal = bytes_per_second{megabytes * 1e6};
  // hwloc does not tell the architecture. Of a line rate NCCL's model leaves 80 to 90 % on NVLink, and RCCL's 52 to 75 % on
  // XGMI; what a common GPU gets (A100, MI200) stands for all.
  const gpu_link_rate common = kind == topo::link_kind::xgmi ? xgmi_rate("90a") : nvlink_rate(80U);
  l.capacity = *l.nominal * (common.payload / common.line);
  l.how = trust::derived;
  l.reason = std::to_string(static_cast<std::uint64_t>(common.payload / common.line * 100 + 0.5)) + " % of the " +
             to_string(*l.nominal) + " that the driver tells, as in " +
             (kind == topo::link_kind::xgmi ? "RCCL's model for MI200" : "NCCL's model for A100");
  return l;
}

template <class Deferred>
void hwloc_builder<Deferred>::collect(const read::hwloc_matrix& m, topo::link_kind kind) {
  const auto find = [&](const read::hwloc_place& p) {
    const auto& among = p.type == "OSDev" ? devices_ : indexed_;
    const auto it = std::lower_bound(among.begin(), among.end(), named{p.index, 0}, before);
    const bool known = p.type == "OSDev" || p.type == "PCIDev";
    return known && it != among.end() && it->index == p.index ? it->function : none;
  };
  const std::size_t n = m.places.size();
  std::vector<std::size_t> ends(n);
  for (std::size_t i = 0; i < n; ++i) {
    ends[i] = find(m.places[i]);
    if (ends[i] == none || !s_[ends[i]].kept || !(s_[ends[i]].gpu || is_nvswitch(t_.functions[ends[i]]))) {
      tally_.add(severity::note, "a matrix speaks of an object that is neither GPU nor NVSwitch here",
                 m.name + ": " + m.places[i].type + " " + std::to_string(m.places[i].index));
      ends[i] = none;
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      if (ends[i] == none || ends[j] == none || ends[i] == ends[j]) continue;
      const double forth = m.values[i * n + j], back = m.values[j * n + i];
      if (forth > 0 || back > 0) {
        const bool swap = ends[j] < ends[i];
        pairs_.push_back(
            {std::min(ends[i], ends[j]), std::max(ends[i], ends[j]), swap ? back : forth, swap ? forth : back, kind});
      }
    }
}

/// Where no matrix tells bandwidths, the names of the peers tell at least who is joined.
template <class Deferred>
void hwloc_builder<Deferred>::collect_peers() {
  std::vector<std::pair<std::string, std::size_t>> by_name;
  for (const read::hwloc_os_device& d : t_.os_devices)
    if (d.function != none && s_[d.function].gpu && s_[d.function].kept) by_name.emplace_back(d.name, d.function);
  seq::sort(by_name);
  for (const read::hwloc_os_device& d : t_.os_devices) {
    const std::string* peers = read::find_info(d.infos, "XGMIPeers");
    if (!peers || d.function == none || !s_[d.function].gpu) continue;
    for (std::string_view rest = read::trimmed(*peers); !rest.empty();) {
      const std::size_t end = rest.find(' ');
      const std::string_view word = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view() : read::trimmed(rest.substr(end));
      const auto it = std::lower_bound(by_name.begin(), by_name.end(), word,
                                       [](const auto& known, std::string_view w) { return known.first < w; });
      if (it == by_name.end() || it->first != word || it->second == d.function) continue;
      pairs_.push_back(
          {std::min(d.function, it->second), std::max(d.function, it->second), 0, 0, topo::link_kind::xgmi});
    }
  }
}

template <class Deferred>
void hwloc_builder<Deferred>::add_pair(const gpu_pair& p) {
  const double told = std::min(p.forth, p.back);
  topo::link l = gpu_link(p.kind, told > 0 ? told : std::max(p.forth, p.back));
  l.from = cables_[s_[p.a].cable].node;
  l.to = cables_[s_[p.b].cable].node;
  const std::string who = cables_[s_[p.a].cable].who + " - " + cables_[s_[p.b].cable].who;
  if (p.forth == 0 && p.back == 0) {
    const gpu_link_rate common = xgmi_rate({});
    l.nominal.reset();
    l.capacity = common.payload;
    l.how = trust::assumed;
    l.reason = "hwloc names the GPUs as peers, but tells no bandwidth; taken as one link of the slowest kind";
    tally_.add(severity::note, "the rate of XGMI is assumed, because hwloc only names the peers", who);
  } else if (p.forth != p.back) {
    l.how = trust::assumed;
    l.reason +=
        told > 0 ? "; the two directions are told differently, the smaller is taken" : "; only one end tells it";
    tally_.add(severity::warning, "the two ends of a GPU link tell different bandwidths", who,
               "look for a link that is down: nvidia-smi nvlink -s");
  }
  out_.join(l);
}

template <class Deferred>
void hwloc_builder<Deferred>::add_gpu_links() {
  for (const read::hwloc_os_device& d : t_.os_devices)
    if (d.gp_index && d.function != none) devices_.push_back({*d.gp_index, d.function});
  for (std::size_t i = 0; i < t_.functions.size(); ++i)
    if (t_.functions[i].gp_index) indexed_.push_back({*t_.functions[i].gp_index, i});
  seq::sort(devices_, before);
  seq::sort(indexed_, before);
  bool xgmi = false;
  for (const read::hwloc_matrix& m : t_.matrices) {
    if (m.name == "NVLinkBandwidth") collect(m, topo::link_kind::nvlink);
    if (m.name == "XGMIBandwidth") {
      collect(m, topo::link_kind::xgmi);
      xgmi = true;
    }
  }
  if (!xgmi) collect_peers();
  seq::sort(pairs_, [](const gpu_pair& x, const gpu_pair& y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.kind < y.kind;
  });
  std::size_t kept = 0;  // several names of one GPU, and its partitions, tell of one connection
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const gpu_pair row = pairs_[i];
    if (kept > 0 && pairs_[kept - 1].a == row.a && pairs_[kept - 1].b == row.b && pairs_[kept - 1].kind == row.kind) {
      pairs_[kept - 1].forth = std::max(pairs_[kept - 1].forth, row.forth);
      pairs_[kept - 1].back = std::max(pairs_[kept - 1].back, row.back);
    } else {
      pairs_[kept++] = row;
    }
  }
  pairs_.resize(kept);

  std::vector<double> to_switch(t_.functions.size());
  std::vector<double> from_switch(t_.functions.size());
  std::size_t chips = 0;
  for (const gpu_pair& p : pairs_) {
    if (s_[p.a].gpu && s_[p.b].gpu) {
      add_pair(p);
    } else if (s_[p.a].gpu != s_[p.b].gpu) {
      const std::size_t gpu = s_[p.a].gpu ? p.a : p.b;
      to_switch[gpu] += s_[p.a].gpu ? p.forth : p.back;
      from_switch[gpu] += s_[p.a].gpu ? p.back : p.forth;
    }
  }
  for (std::size_t i = 0; i < t_.functions.size(); ++i) chips += is_nvswitch(t_.functions[i]) && s_[i].kept ? 1U : 0U;
  if (seq::none_of(to_switch, [](double x) { return x > 0; }) &&
      seq::none_of(from_switch, [](double x) { return x > 0; }))
    return;
  topo::node plane;
  plane.kind = topo::node_kind::nvswitch;
  plane.key = host_ + "/nvswitch";
  plane.name = "NVSwitch";
  plane.host = host_;
  plane.how = trust::derived;
  plane.reason = "all " + std::to_string(chips) + " NVSwitch chips, taken as one";
  const node_id id = add(std::move(plane), 0);
  for (std::size_t i = 0; i < t_.functions.size(); ++i) {
    if (to_switch[i] <= 0 && from_switch[i] <= 0) continue;
    const double told = std::min(to_switch[i], from_switch[i]);
    topo::link l = gpu_link(topo::link_kind::nvlink, told > 0 ? told : std::max(to_switch[i], from_switch[i]));
    l.from = cables_[s_[i].cable].node;
    l.to = id;
    if (to_switch[i] != from_switch[i]) {
      l.how = trust::assumed;
      l.reason += "; the two directions are told differently";
      tally_.add(severity::warning, "the two ends of a GPU link tell different bandwidths", cables_[s_[i].cable].who,
                 "look for a link that is down: nvidia-smi nvlink -s");
    }
    out_.join(l);
  }
}

}}}  // namespace topocoll::v0::detail
