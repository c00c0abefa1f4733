// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cut that limits all-gather, gather and broadcast: exact, by Newton steps on the rate and flows that prove it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/bound_flow.hpp>
#include <topocoll/plan/detail/exact_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A cut with what must cross it: `weight` shards are born inside and have `exit` units per second to leave.
struct weighted_cut {
  std::vector<bool> inside;
  std::int64_t weight = 0;
  std::int64_t exit = 0;
  bool proved = true;  ///< flows have shown that no other cut asks for more; false when the effort did not suffice

  /// True when this cut asks for more time per shard than `o`.
  [[nodiscard]] bool tighter_than(const weighted_cut& o) const {
    return int128{weight} * o.exit > int128{o.weight} * exit;
  }
};

/// What a search for the worst cut may be told beside the network.
struct cut_search {
  std::span<const std::uint32_t> receivers{};  ///< nodes that must get every shard; empty: those with a weight
  const weighted_cut* start = nullptr;         ///< a cut to begin with, for instance of a similar network
  std::uint64_t effort = UINT64_MAX;           ///< steps after which the search ends unproved
  bool turned = false;  ///< use every arc against its direction: what gathers there scatters here
};

/// Most shards per unit of capacity that any cut must let out, over all cuts with a shard inside and a receiver outside.
///
/// `weight[v]` shards are born at node v and must reach every receiver. Rate x is possible if and only if the flow from a
/// source that feeds x * weight[v] into every v to each receiver is x times the number of all shards; where it is less,
/// the minimum cut gives the next, smaller x, for which the receivers shown so far need no second look. And a receiver
/// that was shown joins the source: a cut that has it on the far side is known to be wide enough. So later flows come from
/// nearby, and a proof for n receivers costs little more than looking at the network once.
/// At most one flow for each receiver, and one for each Newton step (fewer than the nodes with shards).
/// @return `unavailable` when a shard cannot get in or out at all, `unsupported` when the figures do not fit into `Int`
/// Source: the cut bound of ForestColl (arXiv:2402.06787), with Dinkelbach's method (Management Science 1967) for the
/// rate; joining sinks to the source as Hao and Orlin do (Journal of Algorithms 1994).
template <class Int>
[[nodiscard]] result<weighted_cut> worst_gather_cut_in(const exact_network& net, std::span<const std::int64_t> weight,
                                                       const cut_search& search) {
  int128 sum = 0;
  std::vector<std::uint32_t> receivers(search.receivers.begin(), search.receivers.end());
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    sum += weight[v];
    if (search.receivers.empty() && weight[v] > 0) receivers.push_back(v);
  }
  if (sum > INT64_MAX) return fail(errc::unsupported, "the weights of the shards do not fit into 64 bits");
  const auto all = static_cast<std::int64_t>(sum);
  sink_flow<Int> flow(net, search.turned);

  // Start with the narrowest way into a single receiver.
  weighted_cut worst;
  std::uint32_t alone = net.nodes;
  for (const std::uint32_t v : receivers) {
    if (weight[v] == all) continue;
    const int128 into = flow.units_into(v);
    if (into > INT64_MAX) return fail(errc::unsupported, "the capacities into a node do not fit into 64 bits");
    const weighted_cut c{{}, all - weight[v], static_cast<std::int64_t>(into)};
    if (alone == net.nodes || c.tighter_than(worst)) {
      worst = c;
      alone = v;
    }
  }
  if (alone == net.nodes) return fail(errc::invalid_argument, "a cut needs ranks on two nodes at least");
  if (search.start != nullptr && search.start->weight > 0 && !worst.tighter_than(*search.start)) {
    worst = *search.start;
    worst.proved = true;
  } else {
    worst.inside.assign(net.nodes, true);
    worst.inside[alone] = false;
  }

  // Rate exit / weight = p / q: capacities times q, feeds p per shard.
  Int p = 0;
  std::size_t shown = 0;
  const auto scale = [&]() -> bool {
    if (worst.exit <= 0) return worst.exit == 0;
    const std::int64_t common = common_divisor(worst.exit, worst.weight);
    p = static_cast<Int>(worst.exit / common);
    if (static_cast<Int>(all) > sink_flow<Int>::most() / p) return false;
    if (!flow.scale(static_cast<Int>(worst.weight / common), static_cast<Int>(all) * p)) return false;
    for (std::uint32_t v = 0; v < net.nodes; ++v)
      if (!flow.is_open(v) && weight[v] > 0) flow.feed(v, static_cast<Int>(weight[v]) * p);
    return true;
  };
  if (!scale()) return fail(errc::unsupported, "the scaled capacities do not fit");
  while (shown < receivers.size() && worst.exit > 0) {
    const std::uint32_t v = receivers[shown];
    const Int wanted = static_cast<Int>(all) * p;
    if (flow.flow_into(v, wanted) >= wanted) {
      flow.open(v);
      ++shown;
      if (flow.steps() <= search.effort) continue;
      worst.proved = shown == receivers.size();
      break;
    }
    const int128 exit = flow.units_around_reached().in;
    weighted_cut next{{}, all, static_cast<std::int64_t>(exit)};
    for (const std::uint32_t u : flow.reached()) next.weight -= weight[u];
    if (exit > INT64_MAX || !next.tighter_than(worst))
      return fail(errc::bug, "a Newton step of the cut bound did not find a tighter cut");
    next.inside.assign(net.nodes, true);
    for (const std::uint32_t u : flow.reached()) next.inside[u] = false;
    worst = std::move(next);
    if (!scale()) return fail(errc::unsupported, "the scaled capacities do not fit");
  }
  if (worst.exit == 0) return fail(errc::unavailable, "the graph has no path from some rank to another");
  return worst;
}

/// The same with 64 bits where they suffice and 128 where they do not.
template <class = void>
[[nodiscard]] result<weighted_cut> worst_gather_cut(const exact_network& net, std::span<const std::int64_t> weight,
                                                    const cut_search& search = {}) {
  auto found = worst_gather_cut_in<std::int64_t>(net, weight, search);
  if (!found && found.error().code == errc::unsupported) return worst_gather_cut_in<int128>(net, weight, search);
  return found;
}

/// Narrowest cut between `root` and any other node with a weight: everything must cross it once.
template <class = void>
[[nodiscard]] result<weighted_cut> worst_root_cut(const exact_network& net, std::span<const std::int64_t> weight,
                                                  std::uint32_t root, bool turned = false,
                                                  std::uint64_t effort = UINT64_MAX) {
  // One shard, at the root: whoever has it can pass it on, so the search is that of all-gather.
  std::vector<std::int64_t> born(net.nodes, 0);
  born[root] = 1;
  std::vector<std::uint32_t> others;
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    if (weight[v] != 0 && v != root) others.push_back(v);
  if (others.empty()) return fail(errc::invalid_argument, "a cut needs ranks on two nodes at least");
  auto found = worst_gather_cut(net, born, {.receivers = others, .effort = effort, .turned = turned});
  if (!found && found.error().code == errc::unavailable)
    return fail(errc::unavailable, "the graph has no path from the root to some rank");
  return found;
}

}}}}  // namespace topocoll::v0::plan::detail
