// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bruck's all-to-all: logarithmically many messages, for few bytes among many ranks.
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// All_to_all in ceil(log2 n) steps. In the step of distance d every rank sends one message to the rank d places ahead: all
/// that still has to go there, for itself or for ranks behind it, which is up to half of its array.
///
/// `direct` sends n-1 messages at once and every byte once; here every byte travels up to log2 n times. So this is for
/// arrays whose messages cost more to post than to carry. Scratch: about half of the array for each step, and half for what
/// is being sent.
/// Bruck's all-gather is no plan of its own: `recursive` takes as many steps and bytes, and needs no rotation at the end.
struct bruck {
  /// Every rank copies n/2 log2 n parts on their way: among more ranks than these, to lower and prove the plan takes minutes.
  std::uint32_t most_ranks = 2048;

  [[nodiscard]] std::string_view name() const { return "bruck"; }

  /// @return `unsupported` for anything but all_to_all, and for more than `most_ranks`
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    if (q.collective == collective_kind::all_to_all && q.rank_count() > most_ranks)
      return fail(errc::unsupported,
                  "bruck is planned for at most " + std::to_string(most_ranks) + " ranks, not for " +
                      std::to_string(q.rank_count()),
                  "take direct, or raise most_ranks");
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::bruck);
  }
};
static_assert(Synthesizer<bruck>);

}}}  // namespace topocoll::v0::plan
