// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the nodes of AMD's compute driver become nodes and links of a graph.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/kfd_graph.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/address.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Weights of the driver: one XGMI hop, and the step between a package and one of its partitions.
/// Source: Linux, kfd_crat.h (KFD_CRAT_XGMI_WEIGHT 15, KFD_CRAT_INTRA_SOCKET_WEIGHT 13).
inline constexpr std::uint64_t weight_of_xgmi = 15;
inline constexpr std::uint64_t weight_within_package = 13;

template <class = void>
class kfd_builder {
 public:
  kfd_builder(const read::kfd_topology& topology, const std::string& host, const std::string& file)
      : t_(topology), host_(host), file_(file), role_(topology.nodes.size()) {}

  [[nodiscard]] result<topo::fragment> build() {
    out_.source = "kfd " + file_;
    out_.findings = t_.findings;
    add_processors();
    add_gpus();
    if (cpus_.empty() && units_.empty())
      return fail(errc::malformed_input, file_ + ": no node has processors or SIMD units");
    join_processors_and_gpus();
    join_xgmi();
    for (topo::node& n : out_.nodes) seq::sort(n.facts);
    make_keys_unique(out_, {}, tally_);
    tally_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// A GPU, or a package of partitions.
  struct unit {
    std::uint64_t domain, location, hive;
    std::vector<std::size_t> members;  // positions in t_.nodes
    node_id node;
    std::string who;
  };
  /// What a node of the driver became.
  struct role {
    std::size_t cpu = none;   // position in cpus_
    std::size_t unit = none;  // position in units_
  };
  struct pair_of_units {
    std::size_t a, b;
    std::uint64_t count;  // links; 0 when not told
    std::uint64_t most;   // MB/s of all
  };

  [[nodiscard]] std::size_t position(std::uint64_t number) const {
    const auto at = seq::lower_bound_by(t_.nodes, number, &read::kfd_node::number);
    return at != t_.nodes.end() && at->number == number ? static_cast<std::size_t>(at - t_.nodes.begin()) : none;
  }
  /// "90a" of 90010: major, minor and a step that is one hexadecimal digit.
  [[nodiscard]] static std::string architecture_of(std::uint64_t version) {
    if (version == 0 || version % 100 > 15 || version > 990000) return {};
    return std::to_string(version / 10000) + std::to_string(version / 100 % 100) + "0123456789abcdef"[version % 100];
  }
  [[nodiscard]] static topo::pci_address address_of(const unit& u) {
    return {static_cast<std::uint32_t>(u.domain), static_cast<std::uint8_t>(u.location >> 8U),
            static_cast<std::uint8_t>(u.location >> 3U & 31U), static_cast<std::uint8_t>(u.location & 7U)};
  }
  void add_processors();
  void collect_units();
  void add_gpus();
  void join_processors_and_gpus();
  void join_xgmi();

  const read::kfd_topology& t_;
  std::string host_;
  std::string file_;
  topo::fragment out_;
  tally tally_;
  std::vector<role> role_;  // beside t_.nodes
  std::vector<node_id> cpus_;
  std::vector<unit> units_;
};

template <class Deferred>
void kfd_builder<Deferred>::add_processors() {
  for (std::size_t i = 0; i < t_.nodes.size(); ++i) {
    if (t_.nodes[i].is_gpu() || t_.nodes[i].cpu_cores == 0) continue;
    const std::string number = std::to_string(cpus_.size());
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.host = host_;
    n.key = host_ + "/numa:" + number;
    n.name = "NUMA " + number;
    n.index = n.numa = static_cast<std::uint32_t>(cpus_.size());
    n.how = trust::derived;
    n.reason = "the driver tells no NUMA numbers; its nodes with processors are counted";
    n.facts.emplace_back("kfd_node", std::to_string(t_.nodes[i].number));
    role_[i].cpu = cpus_.size();
    cpus_.push_back(out_.add(std::move(n)));
    add_memory(out_, cpus_.back(), host_ + "/memory:" + number, "memory " + number);
    // Every two are joined, so their number is kept to what machines can have.
    if (cpus_.size() == 128) break;
  }
  for (std::size_t a = 0; a < cpus_.size(); ++a)
    for (std::size_t b = a + 1; b < cpus_.size(); ++b) join_domains(out_, cpus_[a], {}, cpus_[b], {});
}

/// Nodes whose addresses differ in the function alone, and that belong to one hive, are one package.
template <class Deferred>
void kfd_builder<Deferred>::collect_units() {
  for (std::size_t i = 0; i < t_.nodes.size(); ++i) {
    const read::kfd_node& n = t_.nodes[i];
    if (!n.is_gpu()) continue;
    std::size_t to = none;
    for (std::size_t u = 0; u < units_.size() && n.location; ++u) {
      const unit& have = units_[u];
      if (have.domain != n.domain || have.hive != n.hive || have.location >> 3U != *n.location >> 3U) continue;
      const bool taken = seq::any_of(have.members, [&](std::size_t m) { return t_.nodes[m].location == n.location; });
      if (!taken && t_.nodes[have.members.front()].location) to = u;
    }
    if (to == none) {
      to = units_.size();
      units_.push_back({n.domain, n.location.value_or(0), n.hive, {}, {}, {}});
    }
    units_[to].members.push_back(i);
    role_[i].unit = to;
  }
}

template <class Deferred>
void kfd_builder<Deferred>::add_gpus() {
  collect_units();
  std::uint32_t index = 0;
  for (unit& u : units_) {
    const bool known = t_.nodes[u.members.front()].location && u.location <= 0xffff && u.domain <= UINT32_MAX;
    if (u.members.size() > 1) u.location &= ~std::uint64_t{7};
    const std::string address =
        known ? to_string(address_of(u)) : "node " + std::to_string(t_.nodes[u.members.front()].number);
    const std::string key = known ? host_ + "/pci:" + address : host_ + "/gpu:" + std::to_string(index);
    u.who = address;
    const bool partitions = u.members.size() > 1;
    if (partitions) {
      topo::node package;
      package.kind = topo::node_kind::pcie_switch;
      package.host = host_;
      package.key = key;
      package.name = "GPU package " + address;
      u.node = out_.add(std::move(package));
      tally_.add(severity::note, "a GPU is partitioned; its partitions count as GPUs that share its links",
                 address + " (" + std::to_string(u.members.size()) + ")");
    }
    for (std::size_t k = 0; k < u.members.size(); ++k) {
      const read::kfd_node& says = t_.nodes[u.members[k]];
      topo::node n;
      n.kind = topo::node_kind::gpu;
      n.host = host_;
      n.key = partitions ? key + "/gpu:" + std::to_string(k) : key;
      n.name = "GPU " + std::to_string(index);
      n.index = index++;
      const std::string gcn = architecture_of(says.gfx_target_version);
      if (!gcn.empty()) n.facts.emplace_back("gcn", gcn);
      if (says.hive != 0) n.facts.emplace_back("hive_id", std::to_string(says.hive));
      n.facts.emplace_back("kfd_node", std::to_string(says.number));
      const node_id id = out_.add(std::move(n));
      if (!partitions) {
        u.node = id;
        continue;
      }
      topo::link l;
      l.from = u.node;
      l.to = id;
      l.kind = topo::link_kind::internal;
      l.capacity = pcie_payload_rate(5, 16);
      for (const read::kfd_link& told : says.links)
        if (told.weight == weight_within_package && told.most > 0)
          l.capacity = std::max(l.capacity, bytes_per_second{static_cast<double>(told.most) * 1e6});
      l.how = trust::assumed;
      l.reason = "inside one package; its links are shared by its " + std::to_string(u.members.size()) + " partitions";
      out_.join(l);
    }
  }
}

template <class Deferred>
void kfd_builder<Deferred>::join_processors_and_gpus() {
  if (cpus_.empty()) {
    tally_.add(severity::warning, "no node has processors alone, so the GPUs have no way to a processor", file_);
    return;
  }
  for (const unit& u : units_) {
    const read::kfd_link* best = nullptr;
    std::size_t cpu = none;
    for (const std::size_t m : u.members)
      for (const read::kfd_link& l : t_.nodes[m].links) {
        const std::size_t to = position(l.to);
        if (to == none || role_[to].cpu == none || (best != nullptr && l.weight >= best->weight)) continue;
        best = &l;
        cpu = role_[to].cpu;
      }
    topo::link l;
    l.from = cpus_[cpu == none ? 0 : cpu];
    l.to = u.node;
    l.kind = best != nullptr && best->type == read::kfd_link_xgmi ? topo::link_kind::c2c : topo::link_kind::pcie;
    if (best != nullptr && best->most > 0) {
      // GT/s times lanes, before coding; NCCL's payload of PCIe is three quarters of it.
      l.nominal = bytes_per_second{static_cast<double>(best->most) * 1e6};
      l.capacity = *l.nominal * 0.75;
      l.how = trust::derived;
      l.reason = "three quarters of the " + std::to_string(best->most) + " MB/s that the driver tells";
    } else {
      l.capacity = pcie_payload_rate(3, 16);
      l.how = trust::assumed;
      l.reason = "link not told, taken as Gen3 x16";
      tally_.add(severity::note, "the driver tells no rate of the link to the processor; taken as Gen3 x16", u.who,
                 "merge with what sysfs or lspci tells");
    }
    if (cpu == none) {
      l.how = trust::assumed;
      l.reason += "; no link to a processor is told, attached to the first so that it has a path";
      tally_.add(severity::warning, "no link of a GPU to a processor is told; it is attached to the first", u.who);
    } else {
      const auto numa = out_.nodes[cpus_[cpu].value].numa;
      out_.nodes[u.node.value].numa = numa;
      for (topo::node& n : out_.nodes)
        if (n.kind == topo::node_kind::gpu && n.key.rfind(out_.nodes[u.node.value].key + "/", 0) == 0) n.numa = numa;
    }
    out_.join(l);
  }
}

template <class Deferred>
void kfd_builder<Deferred>::join_xgmi() {
  std::vector<pair_of_units> pairs;
  for (std::size_t i = 0; i < t_.nodes.size(); ++i) {
    const std::size_t from = role_[i].unit;
    if (from == none) continue;
    for (const read::kfd_link& l : t_.nodes[i].links) {
      const std::size_t there = position(l.to);
      const std::size_t to = there == none ? none : role_[there].unit;
      if (there == none)
        tally_.add(severity::warning, "a link leads to a node that is not in the recording; no link is made",
                   "node " + std::to_string(t_.nodes[i].number) + " to " + std::to_string(l.to));
      if (l.type != read::kfd_link_xgmi || to == none || to == from) continue;
      std::uint64_t one_hop = weight_of_xgmi;
      for (const std::size_t end : {from, to}) one_hop += units_[end].members.size() > 1 ? weight_within_package : 0;
      if (l.weight > one_hop) {
        tally_.add(severity::note, "XGMI joins two GPUs only by way of others; they have no link of their own",
                   units_[std::min(from, to)].who + " and " + units_[std::max(from, to)].who);
        continue;
      }
      const std::uint64_t count = l.least > 0 && l.most >= l.least && l.most / l.least <= 16 ? l.most / l.least : 0;
      pairs.push_back({std::min(from, to), std::max(from, to), count, l.most});
    }
  }
  seq::sort(pairs, [](const pair_of_units& x, const pair_of_units& y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.count > y.count;
  });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const pair_of_units& p = pairs[i];
    if (i > 0 && pairs[i - 1].a == p.a && pairs[i - 1].b == p.b) continue;
    const unit& a = units_[p.a];
    const unit& b = units_[p.b];
    const gpu_link_rate ra = xgmi_rate(architecture_of(t_.nodes[a.members.front()].gfx_target_version));
    const gpu_link_rate rb = xgmi_rate(architecture_of(t_.nodes[b.members.front()].gfx_target_version));
    const gpu_link_rate& rate = rb.payload < ra.payload ? rb : ra;
    const bool known = ra.known && rb.known && p.count > 0;
    const std::uint64_t count = p.count == 0 ? 1 : p.count;
    topo::link l;
    l.from = a.node;
    l.to = b.node;
    l.kind = topo::link_kind::xgmi;
    l.lanes = static_cast<std::uint32_t>(p.count);
    if (p.most > 0) l.nominal = bytes_per_second{static_cast<double>(p.most) * 1e6};
    l.capacity = rate.payload * static_cast<double>(count);
    l.how = known ? trust::derived : trust::assumed;
    l.reason = std::to_string(count) + " × XGMI, payload as in RCCL's model";
    if (p.count == 0) l.reason += "; the number of links is not told, taken as 1";
    if (!ra.known || !rb.known) l.reason += "; architecture not known, rate of a common one";
    if (!known)
      tally_.add(severity::note, "the rate of XGMI is assumed: the number of links or the architecture is not told",
                 a.who + " and " + b.who);
    out_.join(l);
  }
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::kfd_topology& topology, const discover_options& options,
                                   const std::string& file) {
  return detail::kfd_builder<>(topology, options.host, file).build();
}

}}  // namespace topocoll::v0
