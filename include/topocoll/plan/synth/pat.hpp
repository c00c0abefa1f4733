// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel aggregated trees: logarithmically many messages that are the shorter the farther they go.
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// All_gather along n binomial trees at once, one from every rank: the part of rank c reaches rank c+o (modulo n) by the
/// powers of two that add up to o, the largest first. So in the first step every rank sends one part n/2 places ahead, and
/// in the last up to n/2 parts to its neighbour: ceil(log2 n) steps of one message for any n, n-1 parts in all.
/// Reduce_scatter is the mirror image: sums go back by the same steps, near ones with many parts first.
/// Source: the algorithm of NCCL from 2.23 on, arXiv 2506.20252. There the parts of a message are limited by a buffer, for
/// more steps; here a message is as long as it comes, up to half of the array.
///
/// Against `recursive`, which takes as many steps and parts, but sends half of the array in its farthest step:
/// - of P groups of m neighbours each (leaves, pods; powers of two) every rank sends P-1 + P/2 log2 m parts to other groups,
///   not n-m: better where the links between groups are the narrow ones, as on an oversubscribed fabric.
/// - in every step the last ranks of a group send to the next group. Where a group is a box, the rounds that `recursive`
///   has inside it wait for the network here, and the last ranks' NICs carry what all NICs share there: worse with several
///   ranks per box, for few bytes as for many. NCCL runs it with one rank per node only.
/// - strewn parts are copied to scratch to be sent as one message, and from there to their places.
struct pat {
  /// Every rank copies 2n parts: among more ranks than these, to lower and prove the plan takes many seconds.
  std::uint32_t most_ranks = 2048;

  [[nodiscard]] std::string_view name() const { return "pat"; }

  /// @return `unsupported` for anything but all_gather and reduce_scatter, and for more than `most_ranks`
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    if (supports(detail::stage_of(q.collective), algorithm::pat) && q.rank_count() > most_ranks)
      return fail(errc::unsupported,
                  "parallel aggregated trees are planned for at most " + std::to_string(most_ranks) +
                      " ranks, not for " + std::to_string(q.rank_count()),
                  "take recursive, or raise most_ranks");
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::pat);
  }
};
static_assert(Synthesizer<pat>);

}}}  // namespace topocoll::v0::plan
