// SPDX-License-Identifier: Apache-2.0
#pragma once
// The worst cut for what is born at some nodes and must reach others.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/bound_levels.hpp>
#include <topocoll/plan/detail/bound_words.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A collective in which every part of the array has one place of birth and must reach given nodes: all-gather, gather,
/// broadcast, and with all arcs turned round reduce-scatter, scatter, reduce.
struct gather_demand {
  std::vector<std::int64_t> born{};        ///< per node of the network, in units of which `all` are the array
  std::vector<std::uint32_t> receivers{};  ///< nodes of the network
  std::int64_t all = 0;
  bool turned = false;
};

/// One number per rank, or equal ones, as weights of the nodes.
/// @return `invalid_argument` when there are not as many as ranks, or all are 0; `unsupported` when their sum is too long
template <class = void>
[[nodiscard]] result<gather_demand> shares_of(const problem& q, const rank_network& r,
                                              std::span<const std::uint64_t> shares) {
  gather_demand d;
  d.born.assign(r.net.nodes, 0);
  d.receivers = r.node_of;
  if (!shares.empty() && shares.size() != q.ranks.size())
    return fail(errc::invalid_argument,
                std::to_string(shares.size()) + " shares were given for " + std::to_string(q.ranks.size()) + " ranks");
  std::int64_t common = 0;
  int128 all = 0;
  for (std::size_t k = 0; k < q.ranks.size(); ++k) {
    const std::uint64_t share = shares.empty() ? 1 : shares[k];
    all += share;
    if (share > INT64_MAX || all > INT64_MAX)
      return fail(errc::unsupported, "the shares of the ranks add up to more than 63 bits hold");
    d.born[r.node_of[k]] += static_cast<std::int64_t>(share);
    common = common_divisor(common, static_cast<std::int64_t>(share));
  }
  if (common == 0) return fail(errc::invalid_argument, "the shares of all ranks are 0");
  for (std::int64_t& w : d.born) w /= common;
  d.all = static_cast<std::int64_t>(all) / common;
  return d;
}

/// Everything is born at one node and must reach the other ranks.
template <class = void>
[[nodiscard]] gather_demand spread_from(const rank_network& r, std::uint32_t root, bool turned) {
  gather_demand d;
  d.born.assign(r.net.nodes, 0);
  d.born[root] = d.all = 1;
  for (const std::uint32_t v : r.node_of)
    if (v != root) d.receivers.push_back(v);
  d.turned = turned;
  return d;
}

[[nodiscard]] inline failure no_path() {
  return fail(errc::unavailable, "the graph has no path from some rank to another");
}

template <class = void>
[[nodiscard]] std::vector<std::uint32_t> nodes_of_part(const partition& p, std::uint32_t part) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t v = 0; v < p.part_of.size(); ++v)
    if (p.part_of[v] == part) found.push_back(v);
  return found;
}

/// The worst cut around one part of one family. `amounts(part, inward)` is what must cross it in that direction.
template <class Amounts>
[[nodiscard]] result<certificate> worst_level_cut(const std::vector<partition>& levels, const exact_network& net,
                                                  std::span<const std::int64_t> weight, std::int64_t per,
                                                  Amounts amounts) {
  certificate worst;
  for (const partition& p : levels) {
    const part_sums s = sums_of(net, weight, p);
    std::uint32_t part = no_part;
    for (std::uint32_t k = 0; k < p.parts; ++k)
      for (const bool inward : {false, true}) {
        certificate c;
        c.method = bound_method::level_cuts;
        c.parts = 1;
        c.amount = amounts(p, k, s.weight[k], inward);
        c.per = per;
        c.units = inward ? s.in[k] : s.out[k];
        c.inward = inward;
        if (c.amount == 0) continue;
        if (c.units == 0) return no_path();
        if (c.tighter_than(worst)) {
          worst = std::move(c);
          part = k;
        }
      }
    if (part != no_part) worst.side = nodes_of_part(p, part);
  }
  return worst;
}

/// The worst cut of a demand, from the levels and from flows.
template <class = void>
[[nodiscard]] result<certificate> gather_certificate(const gather_demand& d, const std::vector<partition>& levels,
                                                     const rank_network& r, std::uint64_t effort) {
  std::vector<bool> receives(r.net.nodes, false);
  for (const std::uint32_t v : d.receivers) receives[v] = true;
  const partition* counted = nullptr;
  std::vector<std::uint32_t> receivers;  // per part
  auto by_level = worst_level_cut(levels, r.net, d.born, d.all,
                                  [&](const partition& p, std::uint32_t part, std::int64_t born, bool inward) {
                                    if (counted != &p) {
                                      counted = &p;
                                      receivers.assign(p.parts, 0);
                                      for (std::uint32_t v = 0; v < r.net.nodes; ++v)
                                        if (receives[v]) ++receivers[p.part_of[v]];
                                    }
                                    if (inward != d.turned) return receivers[part] > 0 ? d.all - born : std::int64_t{0};
                                    return receivers[part] < d.receivers.size() ? born : std::int64_t{0};
                                  });
  if (!by_level || effort == 0) return by_level;
  weighted_cut start;
  if (by_level->parts > 0) {
    const bool around = by_level->inward == d.turned;  // what is counted is born on the side that is told
    start.inside.assign(r.net.nodes, !around);
    for (const std::uint32_t v : by_level->side) start.inside[v] = around;
    start.weight = by_level->amount;
    start.exit = by_level->units;
  }
  auto cut = worst_gather_cut(r.net, d.born,
                              {.receivers = d.receivers,
                               .start = by_level->parts > 0 ? &start : nullptr,
                               .effort = effort,
                               .turned = d.turned});
  if (!cut) return cut.error();
  const bound_method method = cut->proved ? bound_method::best_cut : bound_method::level_cuts;
  certificate c;
  c.method = method;
  c.parts = 1;
  c.amount = cut->weight;
  c.per = d.all;
  c.units = cut->exit;
  if (by_level->parts > 0 && !c.tighter_than(*by_level)) {
    by_level->method = method;  // as narrow as the best, and easier to understand
    return by_level;
  }
  std::size_t inside = 0;
  for (const std::uint32_t v : r.node_of) inside += cut->inside[v] ? 1 : 0;
  const bool tell_inside = 2 * inside < r.node_of.size();  // the smaller side is told
  for (std::uint32_t v = 0; v < r.net.nodes; ++v)
    if (cut->inside[v] == tell_inside) c.side.push_back(v);
  c.inward = tell_inside == d.turned;
  return c;
}

/// The narrowest cut between any two ranks, in either direction: a sum must come out of it, or go in.
template <class = void>
[[nodiscard]] result<certificate> narrowest_certificate(const std::vector<partition>& levels, const rank_network& r,
                                                        std::uint64_t effort) {
  auto forward = gather_certificate(spread_from(r, r.node_of[0], false), levels, r, effort);
  if (!forward) return forward;
  auto backward = gather_certificate(spread_from(r, r.node_of[0], true), levels, r, effort);
  if (!backward) return backward;
  if (backward->method == bound_method::level_cuts) forward->method = bound_method::level_cuts;
  if (!backward->tighter_than(*forward)) return forward;
  backward->method = forward->method;
  return backward;
}

}}}}  // namespace topocoll::v0::plan::detail
