// SPDX-License-Identifier: Apache-2.0
#pragma once
// The least time that a collective can take on a graph, whatever the plan, and the cut that proves it.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound_method.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// A lower bound on the time of a collective with its certificate. It holds for every plan that moves whole elements and
/// reduces them in ranks, or in those switches that `problem::reduces` or `bound_options::reduces` name.
struct bound {
  seconds time{};  ///< what no plan can beat: launch + max(latency_time, bandwidth_time + a crossing of the cut)
  seconds bandwidth_time{};  ///< bytes that must cross the cut, by its capacity
  seconds latency_time{};    ///< least latency between the two ranks (of those tried) that are farthest apart
  seconds over{};    ///< least latency from a rank to a link of the cut, over it, and on to a rank: paid once at least
  seconds launch{};  ///< once per collective
  bound_method method = bound_method::nothing;

  /// bandwidth_time per byte of the problem's size, exact; empty when capacities are no small fractions or do not fit.
  std::optional<rational> seconds_per_byte;
  /// Capacity that what is counted must cross: out of (or into) the side, or out of all parts together.
  bytes_per_second crossing{};
  /// Nodes of the smaller side of the cut, or of the first part of the family.
  std::vector<node_id> side;
  /// For a family: the set of each node of the graph, counted from 0, or `no_set`. Empty for a cut.
  std::vector<std::uint32_t> set_of;
  /// Further sets that switches are in, by node: only where capacities differ by direction. Sets have no rank in common.
  std::vector<std::pair<node_id, std::uint32_t>> also_in;
  static constexpr std::uint32_t no_set = UINT32_MAX;
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

/// What a bound may assume, and how much work it may cost.
struct bound_options {
  /// Steps of the search for the worst cut or family, some ten nanoseconds each. When they are used up, the bound is the
  /// worst that was found by then, and `method` says so. 0: only the levels of the graph are looked at.
  std::uint64_t effort = 100'000'000;
  in_network reduces = in_network::nothing;  ///< besides those that `problem::reduces` allows
  /// all_gather and gather: what each rank contributes; reduce_scatter and scatter: what each ends up with. One number per
  /// rank, in any unit (they are shares of the problem's size), not all 0. Empty: `problem::shares`. Borrowed.
  std::span<const std::uint64_t> shares{};
};

/// Lower bound for a problem with the link rates and latencies of a cost model.
///
/// all-gather: max over cuts of shares inside by capacity out. reduce-scatter: the same with all links reversed.
/// all-reduce: max over families of p disjoint node sets that hold all ranks of 2 (p-1) size / min(sum of capacities out
/// of them, sum into them), and over cuts between ranks of size / capacity in either direction; where all switches reduce,
/// over these cuts alone, and where NVSwitches do, over families that leave no rank apart from its NVSwitch.
/// gather: max over cuts with the root outside of shares inside by capacity out; scatter: the same with all links reversed.
/// broadcast and reduce: narrowest cut between the root and a rank. all-to-all: worst of the cuts around the levels and of
/// the one that limits all-gather, with w (n-w) / n of the size across a cut with w of n ranks. Ranks of one device: what
/// they must take over from each other in all, (n-1) size, or 2 (n-1) size for all-reduce, by the rate of the memory
/// between them.
/// @return  `invalid_argument` for no ranks, a rank that is not in the graph, a root that is not a rank, or shares that do
///          not match; `unavailable` when some rank cannot be reached; as `detail::count_capacities`
/// Cost: one maximum flow for each rank, near the rank; in clusters O(links) in all, at worst ranks x O(a maximum flow).
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
