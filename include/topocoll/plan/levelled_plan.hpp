// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan for a cluster that is described by levels, with its exact loads and its gap to the bound: no graph is built.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/levelled_bound.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What decides between algorithms whose loads are equal: how long a message takes to get going.
struct levelled_options {
  bytes size{std::uint64_t{1} << 30U};  ///< of the whole array
  seconds inside{0.6e-6};               ///< from GPU to GPU in a box. Source: NCCL 2.28, ring over NVLink, LL protocol
  seconds outside{3.7e-6};   ///< through NICs and switches. Source: the same, network 2.7 us, and 1 us in the NIC
  seconds post{0.2e-6};      ///< each further message of a round, as in `alpha_beta`
  std::uint32_t slices = 1;  ///< 1 to max_slices; more overlap the levels
};

/// What all connections of one kind carry, as a part of the array, in the busier direction.
struct level_load {
  std::string what;              ///< "NVLink of a GPU", "NIC", "uplink of tier 0"
  rational share{0};             ///< of the array, on one connection
  bytes_per_second rate;         ///< of the slower direction
  rational seconds_per_byte{0};  ///< share by rate; invalid when the rate is no small fraction
};

/// A plan and everything that speaks for it.
struct levelled_plan {
  schedule plan;
  levelled_bound limit;
  std::vector<level_load> loads;  ///< from the inside out
  std::size_t busiest = 0;        ///< index into `loads`
  /// Time of the busiest connection over the bound, less 1: 0 means that no plan has more bandwidth. Invalid when rates are
  /// no small fractions; `gap` as a number is always there.
  rational exact_gap{0};
  double gap = 0;
  std::uint32_t rounds = 0;  ///< messages in a row
  seconds latency{};         ///< of these rounds, by the options
};

/// Reduce-scatter from the inside out, all-gather from the outside in, all-reduce both: every level once, along the axes of
/// a lattice whose first axis are the GPUs of a box, then boxes, then tiers from the innermost out.
///
/// A NIC carries H - 1 of the array's H = ranks / gpus parts, an uplink those of its unit that others need: the least
/// possible on both. NVLink carries the rest, which is not the least where NVLink binds: a plan that let NICs take over a
/// part of that would gain at most NIC rate / NVLink rate, and `gap` says how much. Rank r is GPU r mod gpus of box
/// r / gpus, boxes counted pod by pod; its own operations: `lower(plan, r)`.
/// @return  `unsupported` for collectives other than all_reduce, all_gather and reduce_scatter, for exceptions (such a
///          cluster is planned as a graph, by `hierarchical`) and for more than 2^31 chunks; as `lower_bound`
/// Cost: O(ranks) for the order of the ranks, O(levels) otherwise.
template <class = void>
[[nodiscard]] result<levelled_plan> plan_on(const levelled_cluster& cluster, collective_kind collective,
                                            const levelled_options& options = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/levelled_build.hpp>
