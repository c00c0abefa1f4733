// SPDX-License-Identifier: Apache-2.0
#pragma once
// The least time that a collective can take on a graph, whatever the plan, and the cut that proves it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What the certificate of a bound is made of, and what was shown about it.
enum class bound_method : std::uint8_t {
  nothing,          ///< one rank, or no bytes: nothing must move
  best_cut,         ///< one cut; maximum flows prove that no other cut asks for more
  best_partition,   ///< disjoint node sets; no other family asks for more
  level_cuts,       ///< the worst of the cuts around ranks, NUMA domains, hosts, pods: others were not looked at
  shared_memory,    ///< all ranks share one device: every byte that one takes over from another passes its memory
  level_partitions  ///< the worst of the families of ranks, NUMA domains, hosts, pods: others were not looked at
};
[[nodiscard]] constexpr const char* to_string(bound_method m) {
  constexpr const char* words[] = {"nothing",    "best_cut",      "best_partition",
                                   "level_cuts", "shared_memory", "level_partitions"};
  return words[static_cast<std::size_t>(m)];
}

/// A lower bound on the time of a collective with its certificate. It holds for every plan that moves whole elements and
/// reduces them in ranks; switches that reduce or multicast (SHARP, NVLS) can beat the bounds of reducing collectives.
struct bound {
  seconds time{};  ///< what no plan can beat: launch + max(latency_time, bandwidth_time + a crossing of the cut)
  seconds bandwidth_time{};  ///< bytes that must cross the cut, by its capacity
  seconds latency_time{};    ///< least latency between the two ranks (of those tried) that are farthest apart
  seconds over{};            ///< least latency of a link of the cut: what crosses it pays that once
  seconds launch{};          ///< once per collective
  bound_method method = bound_method::nothing;

  /// bandwidth_time per byte of the problem's size, exact; empty when capacities are no small fractions or do not fit.
  std::optional<rational> seconds_per_byte;
  /// Capacity that what is counted must cross: out of (or into) the side, or out of all parts together.
  bytes_per_second crossing{};
  /// Nodes of the smaller side of the cut, or of the first part of the family.
  std::vector<node_id> side;
  std::uint32_t parts = 0;  ///< 1 for a cut, the number of sets for a family, 0 for nothing
  std::string cut;          ///< the certificate in words
  bytes size{};             ///< of the problem

  /// The bound for another size of the same problem. Cost: O(1).
  [[nodiscard]] seconds at(bytes other) const {
    if (other.value == 0 || method == bound_method::nothing) return launch;
    const seconds crossed = bandwidth_time * (size.value == 0 ? 0 : other / size) + over;
    return launch + (crossed > latency_time ? crossed : latency_time);
  }
};

/// How much work a bound may cost.
struct bound_options {
  /// Up to this many (ranks x links) maximum flows look at every cut; above it only the levels of the graph are looked at.
  std::uint64_t effort = 4'000'000;
};

/// Lower bound for a problem with the link rates and latencies of a cost model.
///
/// all-gather: max over cuts of shards inside by capacity out. reduce-scatter: the same with all links reversed.
/// all-reduce: max over families of p disjoint node sets that hold all ranks of 2 (p-1) size / min(sum of capacities out
/// of them, sum into them). broadcast and reduce: narrowest cut between the root and a rank. all-to-all: worst of the cuts
/// around the levels, with w (n-w) / n of the size across a cut with w of n ranks. Ranks of one device: what they must
/// take over from each other in all, (n-1) size, or 2 (n-1) size for all-reduce, by the rate of the memory between them.
/// @return  `invalid_argument` for no ranks, a rank that is not in the graph or a root that is not a rank; `unavailable`
///          when some rank cannot be reached; as `detail::count_capacities`
/// Cost: up to about 3 x ranks maximum flows within `effort`, otherwise O(links).
/// Sources: the cut bound of ForestColl (arXiv:2402.06787); the family bound is Tutte and Nash-Williams' condition for
/// packing spanning trees, with each element crossing p-1 times on its way to the first full sum and p-1 times back.
template <CostModel M>
[[nodiscard]] result<bound> lower_bound(const problem& p, const M& cost, const bound_options& options = {});

/// Lower bound on bandwidth alone, every link at its capacity.
template <class = void>
[[nodiscard]] result<bound> lower_bound(const problem& p) {
  return lower_bound(p, alpha_beta::ideal());
}

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/bound_search.hpp>
