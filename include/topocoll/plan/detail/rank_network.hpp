// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph as seen by its ranks: exact capacities, and ranks that share a node kept apart.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// The link between a node and its memory, towards the memory; for nodes without one, nothing.
template <class = void>
[[nodiscard]] std::optional<link_id> memory_link(const topo::graph& g, node_id v) {
  for (const link_id e : g.out_links(v))
    if (g.at(e).kind == topo::link_kind::memory && g.at(g.head(e)).kind == topo::node_kind::host_memory) return e;
  return std::nullopt;
}
/// The link in the other direction.
template <class = void>
[[nodiscard]] std::optional<link_id> mirror(const topo::graph& g, link_id e) {
  for (const link_id back : g.out_links(g.head(e)))
    if (g.head(back) == g.tail(e) && g.at(back).kind == g.at(e).kind) return back;
  return std::nullopt;
}

/// An exact network with a weight of 1 at each rank.
///
/// A node v with one rank is that rank. A node with k > 1 ranks becomes: v itself (where its links arrive), a twin (where
/// they leave), k nodes for the ranks, and a memory through which these exchange data at the rate of the memory link; so
/// ranks of one node share the links to the rest of the world and the way through memory, and nothing else.
struct rank_network {
  exact_network net{};
  std::vector<std::int64_t> weight{};    ///< per node of `net`: 1 for ranks
  std::vector<std::uint32_t> rank_at{};  ///< per node of `net`: lowest rank there, or `nobody`
  std::vector<std::uint32_t> node_of{};  ///< per rank: its node in `net`
  std::vector<node_id> origin{};         ///< per node of `net`: the node of the graph that it stands for
  bool memory_unknown = false;           ///< some ranks share a node whose memory rate nobody states
  std::uint32_t memory_in = 0;  ///< where the first shared memory is entered; the next node is where it is left
  static constexpr std::uint32_t nobody = UINT32_MAX;
};

/// @return `invalid_argument` for a rank on a node that is not there; as `count_capacities`. Cost: O(links log links).
template <CostModel M>
[[nodiscard]] result<rank_network> network_of(const topo::graph& g, std::span<const node_id> ranks, const M& cost) {
  auto counted = count_capacities(g, [&](link_id e) { return cost.rate(g.at(e)); });
  if (!counted) return counted.error();
  rank_network r{std::move(*counted)};
  const auto n = static_cast<std::uint32_t>(g.node_count());
  std::vector<std::uint32_t> sharers(n, 0);
  r.rank_at.assign(n, rank_network::nobody);
  for (std::uint32_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k].value >= n)
      return fail(errc::invalid_argument, "rank " + std::to_string(k) + " sits on node " +
                                              std::to_string(ranks[k].value) + ", but the graph has only " +
                                              std::to_string(n) + " nodes");
    if (sharers[ranks[k].value]++ == 0) r.rank_at[ranks[k].value] = k;
  }
  r.weight.assign(n, 0);
  r.origin.resize(n);
  r.node_of.resize(ranks.size());
  for (std::uint32_t v = 0; v < n; ++v) {
    r.origin[v] = {v};
    if (sharers[v] == 1) r.weight[v] = 1;
  }
  std::vector<std::uint32_t> twin(n, rank_network::nobody);
  const auto add = [&](std::uint32_t from, std::uint32_t rank) {
    r.weight.push_back(rank == rank_network::nobody ? 0 : 1);
    r.rank_at.push_back(rank);
    r.origin.push_back({from});
    return r.net.nodes++;
  };
  bool shared = false;
  for (std::uint32_t v = 0; v < n; ++v)
    if (sharers[v] > 1) {
      r.rank_at[v] = rank_network::nobody;
      twin[v] = add(v, rank_network::nobody);
      shared = true;
    }
  if (!shared) {
    for (std::uint32_t k = 0; k < ranks.size(); ++k) r.node_of[k] = ranks[k].value;
    return r;
  }

  // Arcs that never bind: as wide as everything else together.
  int128 sum = 0;
  for (const exact_network::arc& a : r.net.arcs) sum += a.units;
  if (sum > INT64_MAX / 4)
    return fail(errc::unsupported, "the capacities of the graph add up to more than 62 bits hold");
  const std::int64_t wide = static_cast<std::int64_t>(sum) + 1;
  for (exact_network::arc& a : r.net.arcs)
    if (twin[a.from] != rank_network::nobody) a.from = twin[a.from];
  std::vector<std::uint32_t> memory(n, rank_network::nobody);
  for (std::uint32_t v = 0; v < n; ++v) {
    if (twin[v] == rank_network::nobody) continue;
    r.net.arcs.push_back({v, twin[v], wide});
    const std::uint32_t in = add(v, rank_network::nobody), out = add(v, rank_network::nobody);
    memory[v] = in;
    if (r.memory_in == 0) r.memory_in = in;
    std::int64_t through = wide;
    const auto towards = memory_link(g, {v});
    const auto back = towards ? mirror(g, *towards) : std::nullopt;
    if (towards && back) {
      const double narrow = std::min(cost.rate(g.at(*towards)).value, cost.rate(g.at(*back)).value);
      through = round_up(narrow / r.net.unit.to_double() * (1 - 1e-12));
    } else {
      r.memory_unknown = true;
    }
    if (through > 0) r.net.arcs.push_back({in, out, through});
  }
  for (std::uint32_t k = 0; k < ranks.size(); ++k) {
    const std::uint32_t v = ranks[k].value;
    if (twin[v] == rank_network::nobody) {
      r.node_of[k] = v;
      continue;
    }
    const std::uint32_t me = add(v, k);
    r.node_of[k] = me;
    r.net.arcs.push_back({me, twin[v], wide});
    r.net.arcs.push_back({v, me, wide});
    r.net.arcs.push_back({me, memory[v], wide});
    r.net.arcs.push_back({memory[v] + 1, me, wide});
  }
  return r;
}

}}}}  // namespace topocoll::v0::plan::detail
