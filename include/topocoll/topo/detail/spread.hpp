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

inline constexpr std::uint32_t not_reached = UINT32_MAX;

/// For each node: hops from the source, least capacity on the way, last link and the node before it.
struct way_marks {
  std::vector<std::uint32_t> hops;
  std::vector<double> rate;
  std::vector<link_id> via;
  std::vector<node_id> before;

  explicit way_marks(std::size_t nodes)
      : hops(nodes, not_reached), rate(nodes, 0), via(nodes), before(nodes) {}
  void start(node_id v) {
    hops[v.value] = 0;
    rate[v.value] = unlimited.value;
  }
  [[nodiscard]] bool reached(node_id v) const { return hops[v.value] != not_reached; }
};

/// Marks what can be reached from the nodes of `start`, which are marked already and sorted by hops.
///
/// Fewer hops win, then the larger least capacity, then the smaller id of the last link; links of no capacity are not
/// used. `opens(v, e)` says whether a way that has come to `v` may go on along `e`; it must be false for every `e` whose
/// head is a node of `start`. Gives all marked nodes, sorted by hops. Stops early when the way to `stop` is settled.
/// A node is settled before its own links are looked at, so one pass is exact. Cost: O(nodes reached + their links).
template <LinkGraph G, class Opens>
std::vector<node_id> spread(const G& g, way_marks& marks, const std::vector<node_id>& start, const Opens& opens,
                            std::optional<node_id> stop = std::nullopt) {
  std::vector<node_id> settled;
  if (start.empty()) return settled;
  std::size_t next_start = 0;
  std::size_t next_found = 0;
  std::vector<node_id> found;  // nodes that this search has marked, by hops
  while (next_start < start.size() || next_found < found.size()) {
    const std::uint32_t a = next_start < start.size() ? marks.hops[start[next_start].value] : not_reached;
    const std::uint32_t b = next_found < found.size() ? marks.hops[found[next_found].value] : not_reached;
    const std::uint32_t hops = a < b ? a : b;
    if (stop && marks.hops[stop->value] <= hops) break;
    const node_id v = a <= b ? start[next_start++] : found[next_found++];
    settled.push_back(v);
    for (const link_id e : g.out_links(v)) {
      const double capacity = g.capacity(e).value;
      if (!(capacity > 0) || !opens(v, e)) continue;
      const std::uint32_t w = g.head(e).value;
      const double rate = capacity < marks.rate[v.value] ? capacity : marks.rate[v.value];
      if (marks.hops[w] == not_reached)
        found.push_back({w});
      else if (marks.hops[w] != hops + 1 || rate < marks.rate[w] || (rate == marks.rate[w] && e > marks.via[w]))
        continue;
      marks.hops[w] = hops + 1;
      marks.rate[w] = rate;
      marks.via[w] = e;
      marks.before[w] = v;
    }
  }
  return settled;
}

}}}}  // namespace topocoll::v0::topo::detail
