// SPDX-License-Identifier: Apache-2.0
#pragma once
// One host cut out of a graph, and which of its devices share a host bridge.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// The nodes of a host and the links between them, without the network; ids of the whole graph beside.
struct one_host {
  graph local;
  std::vector<node_id> original;  ///< of each node of `local`
};

/// Cuts hosts out of one graph; NVSwitch planes that a host's GPUs reach come along, whichever host they belong to.
template <class = void>
class host_cutter {
 public:
  explicit host_cutter(const graph& g) : g_(g), place_(g.node_count(), outside) {}

  /// @param nodes  of one host. Cost: O(nodes + links * log) of that host.
  [[nodiscard]] one_host cut(const std::vector<node_id>& nodes) {
    one_host out;
    fragment f;
    const auto take = [&](node_id v) {
      if (place_[v.value] != outside) return;
      place_[v.value] = f.add(g_.at(v)).value;
      out.original.push_back(v);
    };
    for (const node_id v : nodes) take(v);
    for (const node_id v : nodes)
      for (const link_id e : g_.out_links(v))
        if (g_.at(g_.head(e)).kind == node_kind::nvswitch) take(g_.head(e));
    std::vector<link_id> inside;
    for (const node_id v : out.original)
      for (const link_id e : g_.out_links(v)) {
        const link& l = g_.at(e);
        const bool network = l.kind == link_kind::infiniband || l.kind == link_kind::ethernet;
        if (!network && place_[l.to.value] != outside) inside.push_back(e);
      }
    seq::sort(inside);  // ways of equal worth are chosen by link ids, so their order must stay
    for (const link_id e : inside) {
      f.links.push_back(g_.at(e));
      f.links.back().from = {place_[g_.at(e).from.value]};
      f.links.back().to = {place_[g_.at(e).to.value]};
    }
    for (const node_id v : out.original) place_[v.value] = outside;
    if (auto made = graph::from(std::move(f))) out.local = std::move(*made);  // part of a checked graph: it always is
    return out;
  }

 private:
  static constexpr std::uint32_t outside = UINT32_MAX;

  const graph& g_;
  std::vector<std::uint32_t> place_;  // in the host being cut
};

/// What names the host bridge above a device: the fact `host_bridge` of what hangs at the cpu, or domain and bus of the
/// root port there. Empty when nothing tells it. Cost: O(links on the way up).
template <class = void>
[[nodiscard]] std::string host_bridge_of(const graph& g, node_id device) {
  std::vector<node_id> seen{device};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    bool at_cpu = false;
    for (const link_id e : g.out_links(seen[i])) {
      const link& l = g.at(e);
      if (l.kind != link_kind::pcie && l.kind != link_kind::internal) continue;
      const node_kind kind = g.at(l.to).kind;
      at_cpu = at_cpu || kind == node_kind::cpu;
      const bool up = kind == node_kind::pcie_switch || kind == node_kind::pcie_root || kind == node_kind::nic;
      if (up && seq::find(seen, l.to) == seen.end()) seen.push_back(l.to);
    }
    if (!at_cpu) continue;
    for (const auto& [name, value] : g.at(seen[i]).facts) {
      if (name == "host_bridge") return value;
      if (name == "root_port") return value.substr(0, value.rfind(':'));
    }
    return {};
  }
  return {};
}

/// The network interfaces of a host, each once: ports where an adapter shows some, else the adapter. In graph order,
/// without those that the host made up.
template <class = void>
[[nodiscard]] std::vector<node_id> interfaces(const graph& g) {
  std::vector<node_id> found;
  for (std::uint32_t v = 0; v < g.node_count(); ++v) {
    const node& n = g.at(node_id{v});
    bool counts = n.kind == node_kind::nic_port;
    if (n.kind == node_kind::nic) {
      counts = true;
      for (const link_id e : g.out_links({v})) counts = counts && g.at(g.head(e)).kind != node_kind::nic_port;
    }
    for (const auto& fact : n.facts) counts = counts && fact.first != "virtual";
    if (counts) found.push_back({v});
  }
  return found;
}

}}}}  // namespace topocoll::v0::topo::detail
