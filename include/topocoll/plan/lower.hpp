// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a schedule to the operations of one rank.
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What `rank` does in `plan`.
///
/// Slice s runs on channel s. Input is read where it lies: nothing is copied first, and the program is right both when
/// input and output are apart and when they are one (the in-place rules of NCCL: the shard of a rank lies at its place in
/// the array). Scratch holds partial sums of what is not part of the rank's own output; all_reduce needs none but with
/// `direct`, `doubling` and `one_shot`; what `bruck` and `pat` send and receive as one message lies there side by side.
/// Programs of one schedule are free of deadlock with no buffering at all, also on a transport that finishes the steps of
/// a channel one after the other.
/// @return `invalid_argument` when the schedule is not `validate` or `rank` is not one of its ranks
/// Cost: O(size of the schedule + operations of the rank).
template <class = void>
[[nodiscard]] result<program> lower(const schedule& plan, rank_id rank);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/lower_rank.hpp>
