// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether switches can add up and multiply for a group of ranks.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// What keeps NVSwitches from working for the ranks on these nodes, one clause, or nothing. They must be those of every
/// rank, each rank a GPU of its own, by live links of the generation that brought such switches: the fourth, with NVSwitch 3
/// in Hopper machines (NVIDIA, "The NVLink-Network switch", Hot Chips 34, 2022).
/// Cost: O(links of the nodes, sorted).
template <class = void>
[[nodiscard]] std::optional<std::string> switch_fault(const topo::graph& g, std::span<const node_id> nodes) {
  constexpr std::uint32_t first_generation = 4;
  std::vector<node_id> common, all(nodes.begin(), nodes.end());
  seq::sort(all);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] == all[i - 1]) return "two ranks share " + g.at(all[i]).key;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<node_id> mine;
    for (const link_id e : g.out_links(nodes[i])) {
      const topo::link& l = g.at(e);
      if (g.at(l.to).kind != topo::node_kind::nvswitch || l.capacity.value <= 0) continue;
      if (l.generation == 0) return "nobody tells the NVLink generation of " + g.at(nodes[i]).key;
      if (l.generation < first_generation)
        return "NVLink of generation " + std::to_string(l.generation) + " has no switches that add up";
      if (!seq::contains(mine, l.to)) mine.push_back(l.to);
    }
    if (mine.empty()) return g.at(nodes[i]).key + " hangs on no NVSwitch";
    seq::sort(mine);
    if (i == 0)
      common = std::move(mine);
    else if (mine != common)
      return g.at(nodes[i]).key + " and " + g.at(nodes[0]).key + " do not hang on the same NVSwitches";
  }
  return std::nullopt;
}

/// The same for all groups of a plan that count on switches. Precondition: the plan passes `validate`.
template <class = void>
[[nodiscard]] std::optional<std::string> switch_fault(const problem& q, const schedule& plan) {
  std::vector<node_id> nodes;
  for (const stage& st : plan.stages) {
    if (st.how != algorithm::in_switch) continue;
    for (std::size_t k = 0; k < st.group_count(); ++k) {
      const group_view group = st.group(k);
      if (group.size() < 2) continue;
      nodes.clear();
      for (const rank_id r : group.members) nodes.push_back(q.ranks[r.value]);
      if (auto fault = switch_fault(*q.graph, nodes)) return fault;
    }
  }
  return std::nullopt;
}

/// Why switches may not work for a problem whatever its graph, one clause, or nothing.
template <class = void>
[[nodiscard]] std::optional<std::string> switch_use_fault(const problem& q) {
  if (q.graph == nullptr) return "sums in switches need a graph";
  if (q.reduces == in_network::nothing) return "the problem does not let switches reduce";
  if (!q.shares.empty()) return "shards of different sizes are not planned for switches";
  return std::nullopt;
}

/// False for planners that count on switches where the problem does not allow it.
template <class Planner>
[[nodiscard]] bool is_asked(const Planner& planner, const problem& q) {
  if constexpr (requires { planner.needs_switches(); })
    return q.reduces != in_network::nothing || !planner.needs_switches();
  else
    return true;
}

}}}}  // namespace topocoll::v0::plan::detail
