// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arcs of a network by the node that they lead into, each beside its opposite.
#include <cstddef>
#include <cstdint>
#include <vector>
#include <topocoll/plan/detail/exact_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Fills `halves` with one entry for each neighbour of each node: those of node v are first[v] to first[v + 1], by
/// neighbour. `peer` is the neighbour, `units` what leads from it to v, `mate` the position of the opposite entry, which
/// exists even where nothing leads back; `rest` starts as the units. Parallel arcs become one.
/// @return the sum of all capacities; -1 when parallel arcs add up to more than 63 bits hold. Cost: O(nodes + arcs).
template <class Half>
[[nodiscard]] int128 pair_arcs(const exact_network& net, bool turned, std::vector<std::uint32_t>& first,
                               std::vector<Half>& halves) {
  struct entry {
    std::uint32_t peer;
    std::int64_t units;
  };
  const std::uint32_t n = net.nodes;
  int128 total = 0;
  bool fits = true;
  std::vector<std::uint32_t> start(n + 1, 0), filled(n, 0);
  for (const exact_network::arc& a : net.arcs) {
    ++start[a.from + 1];
    ++start[a.to + 1];
    total += a.units;
  }
  for (std::uint32_t v = 0; v < n; ++v) start[v + 1] += start[v];
  // Both ends of every arc, by node; then turned over twice, which sorts each list by peer. Equal peers meet and merge.
  std::vector<entry> raw(2 * net.arcs.size()), out(raw.size());
  for (const exact_network::arc& a : net.arcs) {
    const std::uint32_t from = turned ? a.to : a.from, to = turned ? a.from : a.to;
    raw[start[to] + filled[to]++] = {from, a.units};
    raw[start[from] + filled[from]++] = {to, 0};
  }
  filled.assign(n, 0);
  for (std::uint32_t v = 0; v < n; ++v)
    for (std::uint32_t k = start[v]; k < start[v + 1]; ++k) {
      const std::uint32_t u = raw[k].peer;
      entry* const list = out.data() + start[u];
      std::uint32_t& size = filled[u];
      if (size == 0 || list[size - 1].peer != v) {
        list[size++] = {v, raw[k].units};
        continue;
      }
      fits = fits && raw[k].units <= INT64_MAX - list[size - 1].units;
      list[size - 1].units = fits ? list[size - 1].units + raw[k].units : INT64_MAX;
    }
  first.assign(n + 1, 0);
  for (std::uint32_t v = 0; v < n; ++v) first[v + 1] = first[v] + filled[v];
  halves.resize(first[n]);
  filled.assign(n, 0);
  for (std::uint32_t u = 0; u < n; ++u)
    for (std::uint32_t k = 0; k < first[u + 1] - first[u]; ++k) {
      const entry& e = out[start[u] + k];
      const std::uint32_t here = first[u] + k, there = first[e.peer] + filled[e.peer]++;
      halves[there].peer = u;
      halves[there].mate = here;
      halves[there].units = e.units;
      halves[there].rest = e.units;
    }
  return fits ? total : -1;
}

}}}}  // namespace topocoll::v0::plan::detail
