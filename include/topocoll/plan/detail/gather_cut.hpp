// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cut that limits all-gather: exact, by Newton steps on the rate and maximum flows that prove it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/topo/flow.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A cut with what must cross it: `weight` shards are born inside and have `exit` units per second to leave.
struct weighted_cut {
  std::vector<bool> inside;
  std::int64_t weight = 0;
  std::int64_t exit = 0;

  /// True when this cut asks for more time per shard than `o`.
  [[nodiscard]] bool tighter_than(const weighted_cut& o) const {
    return int128{weight} * o.exit > int128{o.weight} * exit;
  }
};

/// Most shards per unit of capacity that any cut must let out, over all cuts with shards on both sides.
///
/// `weight[v]` shards are born at node v and must reach every other node with a shard. Rate x is possible if and only if
/// the flow from a source that feeds x * weight[v] into every v to each node with a shard is x times the number of all
/// shards; where it is less, the minimum cut gives the next, smaller x. At most one flow for each node with a shard, and
/// one for each Newton step (fewer than the nodes with shards).
/// @return `unavailable` when a shard cannot get in or out at all, `unsupported` when the figures do not fit into `Int`
/// Source: the cut bound of ForestColl (arXiv:2402.06787), with Dinkelbach's method (Management Science 1967) for the rate.
template <class Int>
[[nodiscard]] result<weighted_cut> worst_gather_cut(const exact_network& net, std::span<const std::int64_t> weight) {
  std::int64_t all = 0;
  for (const std::int64_t w : weight) all += w;
  const std::uint32_t source = net.nodes;
  topo::flow_network<Int> flow(net.nodes + 1);
  for (const exact_network::arc& a : net.arcs) flow.add({a.from}, {a.to}, 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> feeds;  // node, arc
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    if (weight[v] > 0) feeds.push_back({v, flow.add({source}, {v}, 0)});

  // Start with the narrowest way into a single node.
  std::vector<std::int64_t> into(net.nodes, 0);
  for (const exact_network::arc& a : net.arcs) {
    if (a.units > INT64_MAX - into[a.to])
      return fail(errc::unsupported, "the capacities into a node do not fit into 64 bits");
    into[a.to] += a.units;
  }
  weighted_cut worst;
  std::uint32_t alone = 0;
  for (const auto& [v, arc] : feeds) {
    if (weight[v] == all) continue;
    const weighted_cut c{{}, all - weight[v], into[v]};
    if (worst.weight == 0 || c.tighter_than(worst)) {
      worst = c;
      alone = v;
    }
  }
  if (worst.weight == 0) return fail(errc::invalid_argument, "a cut needs ranks on two nodes at least");
  worst.inside.assign(net.nodes, true);
  worst.inside[alone] = false;

  // Rate exit / weight = p / q: capacities times q, feeds p per shard.
  Int p = 0;
  const auto scale = [&]() -> bool {
    const std::int64_t common = common_divisor(worst.exit, worst.weight);
    p = static_cast<Int>(worst.exit / common);
    const Int q = static_cast<Int>(worst.weight / common);
    for (std::uint32_t a = 0; a < net.arcs.size(); ++a) {
      if (static_cast<Int>(net.arcs[a].units) > topo::flow_network<Int>::most() / q) return false;
      flow.set(a, static_cast<Int>(net.arcs[a].units) * q);
    }
    for (const auto& [v, arc] : feeds) {
      if (p != 0 && static_cast<Int>(weight[v]) > topo::flow_network<Int>::most() / p) return false;
      flow.set(arc, static_cast<Int>(weight[v]) * p);
    }
    return true;
  };
  if (!scale()) return fail(errc::unsupported, "the scaled capacities do not fit");
  for (const auto& [v, feed] : feeds) {
    while (worst.exit > 0) {
      const Int wanted = static_cast<Int>(all) * p;
      const auto value = flow.maximum_flow({source}, {v}, wanted);
      if (!value) return value.error();
      if (*value >= wanted) break;
      weighted_cut next{std::vector<bool>(net.nodes), 0, 0};
      for (std::uint32_t u = 0; u < net.nodes; ++u) {
        next.inside[u] = flow.on_source_side({u});
        if (next.inside[u]) next.weight += weight[u];
      }
      next.exit = crossing_of(net, next.inside).out;
      if (next.exit < 0 || !next.tighter_than(worst))
        return fail(errc::bug, "a Newton step of the cut bound did not find a tighter cut");
      worst = std::move(next);
      if (!scale()) return fail(errc::unsupported, "the scaled capacities do not fit");
    }
  }
  if (worst.exit == 0) return fail(errc::unavailable, "the graph has no path from some rank to another");
  return worst;
}

/// The same with 64 bits where they suffice and 128 where they do not.
[[nodiscard]] inline result<weighted_cut> worst_gather_cut(const exact_network& net,
                                                           std::span<const std::int64_t> weight) {
  auto found = worst_gather_cut<std::int64_t>(net, weight);
  if (!found && found.error().code == errc::unsupported) return worst_gather_cut<int128>(net, weight);
  return found;
}

/// Narrowest cut between `root` and any other node with a weight: everything must cross it once.
template <class Int = std::int64_t>
[[nodiscard]] result<weighted_cut> worst_root_cut(const exact_network& net, std::span<const std::int64_t> weight,
                                                  std::uint32_t root) {
  topo::flow_network<Int> flow(net.nodes);
  for (const exact_network::arc& a : net.arcs) flow.add({a.from}, {a.to}, static_cast<Int>(a.units));
  weighted_cut worst;
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (weight[v] == 0 || v == root) continue;
    // Stop as soon as this node can receive at least as fast as the slowest so far.
    const Int enough = worst.weight == 0 ? topo::flow_network<Int>::most() : static_cast<Int>(worst.exit);
    const auto value = flow.maximum_flow({root}, {v}, enough);
    if (!value) return value.error();
    if (*value >= enough) continue;
    if (*value > static_cast<Int>(INT64_MAX))
      return fail(errc::unsupported, "the capacity of a cut does not fit into 64 bits");
    worst.weight = 1;
    worst.exit = static_cast<std::int64_t>(*value);
    worst.inside.assign(net.nodes, false);
    for (std::uint32_t u = 0; u < net.nodes; ++u) worst.inside[u] = flow.on_source_side({u});
  }
  if (worst.weight == 0) return fail(errc::invalid_argument, "a cut needs ranks on two nodes at least");
  if (worst.exit == 0) return fail(errc::unavailable, "the graph has no path from the root to some rank");
  return worst;
}

}}}}  // namespace topocoll::v0::plan::detail
