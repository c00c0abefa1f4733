// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of disjoint node sets that limit all-reduce: the best one for small graphs, one per level for large ones.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/topo/flow.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

inline constexpr std::uint32_t no_part = std::numeric_limits<std::uint32_t>::max();

/// Disjoint node sets, each with a rank, that hold all ranks together. Switches may be in none.
struct partition {
  std::vector<std::uint32_t> part_of;  ///< per node; `no_part` for nodes left out
  std::uint32_t parts = 0;
  std::int64_t out = 0;  ///< units that leave the parts, summed over the parts
  std::int64_t in = 0;   ///< units that enter the parts, summed over the parts

  [[nodiscard]] std::int64_t narrow() const { return out < in ? out : in; }
  /// True when 2 (parts - 1) / narrow, the time of an all-reduce per unit of data, is more than that of `o`.
  [[nodiscard]] bool tighter_than(const partition& o) const {
    if (parts < 2) return false;
    return o.parts < 2 || int128{parts - 1} * o.narrow() > int128{o.parts - 1} * narrow();
  }
};

/// Numbers 0, 1, 2, … (<numeric> costs 2,000 lines).
template <class = void>
void count_up(std::vector<std::uint32_t>& v) {
  for (std::uint32_t i = 0; i < v.size(); ++i) v[i] = i;
}

/// Adds up what leaves and enters the parts; false when it does not fit into 64 bits.
template <class = void>
[[nodiscard]] bool add_up(const exact_network& net, partition& p) {
  int128 out = 0, in = 0;
  for (const exact_network::arc& a : net.arcs) {
    if (p.part_of[a.from] == p.part_of[a.to]) continue;
    if (p.part_of[a.from] != no_part) out += a.units;
    if (p.part_of[a.to] != no_part) in += a.units;
  }
  p.out = static_cast<std::int64_t>(out);
  p.in = static_cast<std::int64_t>(in);
  return out <= INT64_MAX && in <= INT64_MAX;
}

/// The family of least (sum of exits) / (parts - 1): Dilworth truncation, with Newton steps on the rate.
///
/// Minimises sum(b * exit(P) - a) over families for a rate a / b by one minimum cut for each node with a rank; a negative
/// minimum gives a family with a smaller rate. Every family that is returned is checked to be disjoint and added up from
/// the arcs, so the bound holds whatever happened on the way. Cost: two or three times (ranks + parts) flows.
/// Sources: Cunningham, "Optimal attack and reinforcement of a network", JACM 1985; Dilworth truncation as in
/// Frank, "Connections in combinatorial optimization", 2011.
template <class Int>
[[nodiscard]] result<partition> best_partition(const exact_network& net, std::span<const std::int64_t> weight) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    if (weight[v] > 0) ranks.push_back(v);
  const std::size_t n = ranks.size();
  if (n < 2) return fail(errc::invalid_argument, "a partition needs ranks on two nodes at least");
  const failure too_long = fail(errc::unsupported, "the scaled capacities do not fit");

  const std::uint32_t source = net.nodes, sink = net.nodes + 1;
  topo::flow_network<Int> flow(net.nodes + 2);
  int128 sum = 0;
  for (const exact_network::arc& a : net.arcs) {
    flow.add({a.from}, {a.to}, 0);
    sum += a.units;
  }
  std::vector<std::uint32_t> feed(n), drain(n);
  for (std::size_t i = 0; i < n; ++i) {
    feed[i] = flow.add({source}, {ranks[i]}, 0);
    drain[i] = flow.add({ranks[i]}, {sink}, 0);
  }
  const int128 most = topo::flow_network<Int>::most();

  // The parts for a grouping of the ranks: the smallest set around each group that has the least exit.
  const auto close = [&](const std::vector<std::uint32_t>& group, std::uint32_t groups) -> result<partition> {
    partition p{std::vector<std::uint32_t>(net.nodes, no_part), groups};
    for (std::uint32_t a = 0; a < net.arcs.size(); ++a) flow.set(a, static_cast<Int>(net.arcs[a].units));
    const int128 never = sum + 1;
    if (never > (most - sum) / static_cast<int128>(n)) return too_long;
    for (std::uint32_t g = 0; g < groups; ++g) {
      for (std::size_t i = 0; i < n; ++i) {
        flow.set(feed[i], group[i] == g ? static_cast<Int>(never) : Int(0));
        flow.set(drain[i], group[i] == g ? Int(0) : static_cast<Int>(never));
      }
      const auto value = flow.maximum_flow({source}, {sink});
      if (!value) return value.error();
      // Minimal sides are disjoint on symmetric graphs; elsewhere the first part keeps what two of them claim.
      for (std::uint32_t v = 0; v < net.nodes; ++v)
        if (p.part_of[v] == no_part && flow.on_source_side({v})) p.part_of[v] = g;
    }
    if (!add_up(net, p)) return too_long;
    return p;
  };

  std::vector<std::uint32_t> group(n);
  count_up(group);
  auto first = close(group, static_cast<std::uint32_t>(n));
  if (!first) return first.error();
  partition best = std::move(*first);

  std::vector<Int> y(n);
  std::vector<std::uint32_t> leader(n);
  const auto find = [&](std::uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  while (best.out > 0) {
    const std::int64_t common = common_divisor(best.out, std::int64_t{best.parts - 1});
    const int128 a = best.out / common, b = (best.parts - 1) / common;
    const int128 never = 2 * (sum * b + a * static_cast<int128>(n)) + 1;  // more than any cut that matters
    if (never > most / static_cast<int128>(n + 2) / 2) return too_long;
    for (std::uint32_t k = 0; k < net.arcs.size(); ++k) flow.set(k, static_cast<Int>(net.arcs[k].units * b));
    count_up(leader);
    Int total = 0;
    for (std::size_t j = 0; j < n; ++j) {
      Int paid = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const bool earlier = i < j;
        const Int reward = earlier && y[i] > 0 ? y[i] : Int(0);
        paid += reward;
        flow.set(feed[i], i == j ? static_cast<Int>(never) : reward);
        flow.set(drain[i], i > j ? static_cast<Int>(never) : (earlier && y[i] < 0 ? static_cast<Int>(-y[i]) : Int(0)));
      }
      const auto value = flow.maximum_flow({source}, {sink});
      if (!value) return value.error();
      y[j] = *value - static_cast<Int>(a) - paid;
      total += y[j];
      for (std::size_t i = 0; i < j; ++i)
        if (flow.on_source_side({ranks[i]}))
          leader[find(static_cast<std::uint32_t>(i))] = find(static_cast<std::uint32_t>(j));
    }
    if (total + static_cast<Int>(a) >= 0) break;  // no family has a smaller rate
    std::vector<std::uint32_t> number(n, no_part);
    std::uint32_t groups = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint32_t& g = number[find(i)];
      if (g == no_part) g = groups++;
      group[i] = g;
    }
    if (groups < 2) break;
    auto next = close(group, groups);
    if (!next) return next.error();
    if (int128{next->out} * (best.parts - 1) >= int128{best.out} * (next->parts - 1)) break;
    best = std::move(*next);
  }
  return best;
}

/// The same with 64 bits where they suffice and 128 where they do not.
[[nodiscard]] inline result<partition> best_partition(const exact_network& net, std::span<const std::int64_t> weight) {
  auto found = best_partition<std::int64_t>(net, weight);
  if (!found && found.error().code == errc::unsupported) return best_partition<int128>(net, weight);
  return found;
}

/// The parts into which the graph falls without some of its arcs and nodes; parts without a rank are left out.
///
/// `keep_node(v)` and `keep_arc(index)` say what stays. Cost: O(arcs).
template <class KeepNode, class KeepArc>
[[nodiscard]] partition components(const exact_network& net, std::span<const std::int64_t> weight, KeepNode keep_node,
                                   KeepArc keep_arc) {
  std::vector<std::uint32_t> leader(net.nodes);
  count_up(leader);
  const auto find = [&](std::uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (std::uint32_t k = 0; k < net.arcs.size(); ++k) {
    const exact_network::arc& a = net.arcs[k];
    if (keep_node(a.from) && keep_node(a.to) && keep_arc(k)) leader[find(a.from)] = find(a.to);
  }
  partition p{std::vector<std::uint32_t>(net.nodes, no_part)};
  std::vector<std::uint32_t> number(net.nodes, no_part);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (weight[v] == 0) continue;
    std::uint32_t& g = number[find(v)];
    if (g == no_part) g = p.parts++;
  }
  for (std::uint32_t v = 0; v < net.nodes; ++v) p.part_of[v] = number[find(v)];
  return p;
}

}}}}  // namespace topocoll::v0::plan::detail
