// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of node sets by the levels of a graph: ranks, PCIe switches, NUMA domains, hosts, pods, core groups.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Sums per part of a family.
struct part_sums {
  std::vector<std::int64_t> weight{}, out{}, in{};
};
template <class = void>
[[nodiscard]] part_sums sums_of(const exact_network& net, std::span<const std::int64_t> weight, const partition& p) {
  part_sums s;
  s.weight.assign(p.parts, 0);
  s.out.assign(p.parts, 0);
  s.in.assign(p.parts, 0);
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    if (p.part_of[v] != no_part) s.weight[p.part_of[v]] += weight[v];
  for (const exact_network::arc& a : net.arcs) {
    const std::uint32_t from = p.part_of[a.from], to = p.part_of[a.to];
    if (from == to) continue;
    if (from != no_part) s.out[from] += a.units;
    if (to != no_part) s.in[to] += a.units;
  }
  return s;
}

/// What holds sets together, from the smallest to the largest.
enum class hold_level : std::uint8_t { rank, bus, numa_domain, host, pod, core_group, everything };

/// The families by level: what stays together without core switches, without spines, without leaves (hosts or NVLink
/// domains), without links between sockets and GPUs (NUMA domains), without host bridges, and each rank alone. From the
/// largest sets to the smallest; levels that change nothing are left out. Cost: O(links).
template <class = void>
[[nodiscard]] std::vector<partition> level_partitions(const topo::graph& g, const rank_network& r) {
  const exact_network& net = r.net;
  const std::uint32_t n = net.nodes;
  std::vector<hold_level> holds(n, hold_level::bus);  // the least level at which a node joins what it touches
  bool bridges = false;
  for (std::uint32_t v = 0; v < n; ++v) switch (g.at(r.origin[v]).kind) {
      case topo::node_kind::core_switch: holds[v] = hold_level::everything; break;
      case topo::node_kind::spine: holds[v] = hold_level::core_group; break;
      case topo::node_kind::leaf: holds[v] = hold_level::pod; break;
      case topo::node_kind::nvswitch: holds[v] = hold_level::host; break;
      case topo::node_kind::cpu:
        holds[v] = hold_level::numa_domain;
        bridges = true;
        break;
      default: break;
    }
  const auto level_of = [&](const exact_network::arc& a) -> hold_level {
    const hold_level level = holds[a.from] > holds[a.to] ? holds[a.from] : holds[a.to];
    if (level >= hold_level::host) return level;
    const topo::node_kind from = g.at(r.origin[a.from]).kind, to = g.at(r.origin[a.to]).kind;
    const bool sockets =
        from == topo::node_kind::cpu && to == topo::node_kind::cpu && r.origin[a.from] != r.origin[a.to];
    const bool gpus = from == topo::node_kind::gpu && to == topo::node_kind::gpu;
    return sockets || gpus ? hold_level::host : level;
  };
  constexpr auto levels = static_cast<std::size_t>(hold_level::everything);
  std::vector<std::vector<std::uint32_t>> arcs_at(levels + 1);
  for (std::uint32_t k = 0; k < net.arcs.size(); ++k)
    arcs_at[static_cast<std::size_t>(level_of(net.arcs[k]))].push_back(k);

  std::vector<std::uint32_t> leader(n), number(n);
  count_up(leader);
  const auto find = [&](std::uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  std::vector<partition> found;
  for (std::size_t k = 0; k < levels; ++k) {
    for (const std::uint32_t e : arcs_at[k]) leader[find(net.arcs[e].from)] = find(net.arcs[e].to);
    const auto level = static_cast<hold_level>(k);
    if (!bridges && (level == hold_level::bus || level == hold_level::numa_domain)) continue;
    partition p{std::vector<std::uint32_t>(n, no_part)};
    number.assign(n, no_part);
    for (std::uint32_t v = 0; v < n; ++v)
      if (r.weight[v] != 0) {
        std::uint32_t& part = number[find(v)];
        if (part == no_part) part = p.parts++;
      }
    if (p.parts < 2) break;  // all ranks are together from here on
    for (std::uint32_t v = 0; v < n; ++v) p.part_of[v] = number[find(v)];
    // The same number of parts as at the level below: the same ranks in them, with more of what belongs to them.
    if (!found.empty() && found.back().parts == p.parts) found.pop_back();
    if (add_up(net, p)) found.push_back(std::move(p));
  }
  std::vector<partition> order;
  for (std::size_t k = found.size(); k-- > 0;) order.push_back(std::move(found[k]));
  return order;
}

}}}}  // namespace topocoll::v0::plan::detail
