// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which actions of a member travel as one message.
#include <cstddef>
#include <cstdint>
#include <topocoll/plan/detail/group_actions.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Actions that travel as one message, and how far apart in the array the chunks of one and the next are.
struct bundle {
  std::uint32_t count = 1;
  std::uint32_t stride = 1;
};

/// The bundle that begins with action i. Both ends of a message list its parts in one order, so they bundle alike.
///
/// Only chunks of equal size can be sent as one that are not neighbours: those that are whole shards. What an operation
/// can name are chunks at equal distances on the circle of shards; in an all_to_all it needs no name but its size.
template <class = void>
[[nodiscard]] bundle bundle_at(const schedule& plan, const member_actions& mine, std::size_t i) {
  bundle all;
  if (!mine.bundled || mine.slot_length != 1 || !sharded(plan.collective) || plan.chunks() != plan.ranks) return all;
  const bool same_size_is_enough = plan.collective == collective_kind::all_to_all;
  const action& first = mine.list[i];
  for (std::size_t j = i + 1; j < mine.list.size(); ++j, ++all.count) {
    const action& next = mine.list[j];
    if (next.what != first.what || next.round != first.round || next.peer != first.peer) break;
    if (same_size_is_enough) continue;
    const std::uint32_t from = chunk_of(plan, 0, mine.list[j - 1].lo), to = chunk_of(plan, 0, next.lo);
    const std::uint32_t ahead = to > from ? to - from : plan.ranks - from + to;
    if ((all.count > 1 && ahead != all.stride) || (ahead == 1 && to < from)) break;  // neighbours do not go round
    all.stride = ahead;
  }
  return all;
}

}}}}  // namespace topocoll::v0::plan::detail
