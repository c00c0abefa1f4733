// SPDX-License-Identifier: Apache-2.0
#pragma once
// Breadth-first search that prefers the wider of two equally short ways: the engine under topo/paths.hpp.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/concepts.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// The rate of a path without links: infinite. (<limits> would cost a thousand lines.)
inline constexpr bytes_per_second unlimited{__builtin_huge_val()};

namespace detail {

inline constexpr std::uint64_t not_reached = UINT64_MAX;

/// What a step of a way costs: nothing leads that way, one hop, or one hop through something that is to be avoided at the
/// price of any number of hops.
enum class step : std::uint8_t { closed, hop, crossing };
inline constexpr std::uint64_t cost_of_crossing = std::uint64_t{1} << 32U;

/// For each node: cost from the source, least capacity on the way, last link and the node before it.
struct way_marks {
  std::vector<std::uint64_t> cost;
  std::vector<double> rate;
  std::vector<link_id> via;
  std::vector<node_id> before;

  explicit way_marks(std::size_t nodes) : cost(nodes, not_reached), rate(nodes, 0), via(nodes), before(nodes) {}
  void start(node_id v) {
    cost[v.value] = 0;
    rate[v.value] = unlimited.value;
  }
  [[nodiscard]] bool reached(node_id v) const { return cost[v.value] != not_reached; }
};

/// Marks what can be reached from the nodes of `start`, which are marked already and sorted by cost.
///
/// Less cost wins, then the larger least capacity, then the smaller id of the last link; links of no capacity are not
/// used. `steps(v, e)` is what a way that has come to `v` pays to go on along `e`; it must be closed for every `e` whose
/// head is a node of `start`. Gives all marked nodes, sorted by cost. Stops early when the way to `stop` is settled.
/// There are two prices, so one queue for each keeps itself sorted: O(nodes reached + their links), no heap.
template <LinkGraph G, class Steps>
std::vector<node_id> spread(const G& g, way_marks& marks, const std::vector<node_id>& start, const Steps& steps,
                            std::optional<node_id> stop = std::nullopt) {
  struct entry {
    node_id v;
    std::uint64_t cost;
  };
  struct queue {
    std::vector<entry> entries;
    std::size_t next = 0;
    [[nodiscard]] std::uint64_t cost() const { return next < entries.size() ? entries[next].cost : not_reached; }
  };
  queue by_start, by_hop, by_crossing;
  for (const node_id v : start) by_start.entries.push_back({v, marks.cost[v.value]});
  std::vector<node_id> settled;
  for (;;) {
    queue* least = &by_start;
    if (by_hop.cost() < least->cost()) least = &by_hop;
    if (by_crossing.cost() < least->cost()) least = &by_crossing;
    const std::uint64_t cost = least->cost();
    if (cost == not_reached || (stop && marks.cost[stop->value] <= cost)) break;
    const node_id v = least->entries[least->next++].v;
    if (marks.cost[v.value] != cost) continue;  // a cheaper way has been found since
    settled.push_back(v);
    for (const link_id e : g.out_links(v)) {
      const double capacity = g.capacity(e).value;
      const step paid = capacity > 0 ? steps(v, e) : step::closed;
      if (paid == step::closed) continue;
      const std::uint32_t w = g.head(e).value;
      const std::uint64_t there = cost + (paid == step::crossing ? cost_of_crossing : 1);
      const double rate = capacity < marks.rate[v.value] ? capacity : marks.rate[v.value];
      if (there > marks.cost[w]) continue;
      if (there < marks.cost[w])
        (paid == step::crossing ? by_crossing : by_hop).entries.push_back({{w}, there});
      else if (rate < marks.rate[w] || (rate == marks.rate[w] && e > marks.via[w]))
        continue;
      marks.cost[w] = there;
      marks.rate[w] = rate;
      marks.via[w] = e;
      marks.before[w] = v;
    }
  }
  return settled;
}

}  // namespace detail
}}}  // namespace topocoll::v0::topo
