// SPDX-License-Identifier: Apache-2.0
#pragma once
// The least time of a collective on a cluster that is described by levels: exact at a million GPUs, without a graph.
#include <cstdint>
#include <string>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound_method.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/levelled_cluster.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What no plan can beat on a levelled cluster; see `bound`.
struct levelled_bound {
  bound_method method = bound_method::nothing;
  rational seconds_per_byte{0};  ///< exact, per byte of the array as nccl-tests counts it; invalid when it does not fit
  bool exact = true;  ///< false: some rates are no small fractions and were rounded up to whole bytes per second
  double share = 0;   ///< what must cross, as a part of the array: 2 (parts - 1) for a family
  bytes_per_second crossing{};  ///< capacity that it must cross
  std::uint64_t ranks = 0;      ///< all GPUs of the cluster
  std::uint64_t side = 0;       ///< GPUs on the side of the cut that is told, or in the first set
  std::uint64_t parts = 0;      ///< 1 for a cut, the number of sets for a family, 0 for nothing
  std::string cut;              ///< the certificate in words

  [[nodiscard]] seconds at(bytes size) const {
    return parts == 0 ? seconds{} : seconds{static_cast<double>(size.value) * share / crossing.value};
  }
};

/// Lower bound on bandwidth for all GPUs of a cluster; rooted collectives have the first GPU as their root.
///
/// Classes of units that nothing tells apart are one node of a small network; for each class of GPUs one of them is set
/// apart, and the worst cut around it is found with the flows of `lower_bound(problem)`. That is exact: classes are the
/// orbits of the exchanges of like units, and a minimum cut between two nodes that are set apart is one of such classes.
/// all_reduce: the best family of whole units (GPUs, boxes, pods, …), `best_partition` where the same flows show that no
/// other family asks for more. all_to_all: the worst cut around a unit, `level_cuts`.
/// @return `invalid_argument` for levels without units, rates below 0 or exceptions that name nothing; `unavailable` when
///         some GPU cannot be reached; `unsupported` for figures that do not fit
/// Cost: microseconds; with k exceptions O(k^2) in the worst case, whatever the number of GPUs.
/// Source: a cut averaged over a class asks for no more than before, by convexity; closed forms in docs/models/bound.md.
template <class = void>
[[nodiscard]] result<levelled_bound> lower_bound(const levelled_cluster& cluster, collective_kind collective);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/quotient_search.hpp>
