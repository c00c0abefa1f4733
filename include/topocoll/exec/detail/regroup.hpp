// SPDX-License-Identifier: Apache-2.0
#pragma once
// New groups made of ranks of one that is there already: parts of it, or those that survived it.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/named_memory.hpp>
#include <topocoll/exec/detail/process.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Meets the other members of a new group; each calls it with its own place, and the same number and wishes.
/// @param number  agreed on by the members, and not used before for a group made from `from`
/// @return `timed_out` naming places that nobody took, or what `join_named_memory` says
template <class = void>
[[nodiscard]] result<std::shared_ptr<group_memory>> regroup(group_memory& from, std::uint64_t number,
                                                            std::uint32_t place, const group_wishes& wishes,
                                                            deadline until) {
  if (!from.one_address_space()) {
    std::string name = "of-" + std::to_string(from.header().id) + "-" + std::to_string(number);
    return join_named_memory(name, place, wishes, until);
  }
  auto memory = from.child(number, [&]() -> result<std::shared_ptr<group_memory>> {
    auto shape = group_shape::of(wishes, sharing::threads);
    if (!shape) return std::move(shape).error();
    return make_group_memory(*shape, sharing::threads);
  });
  if (!memory) return memory;
  const seconds start = steady_clock::now();
  if (!(*memory)->attach(place, this_process(), host_name()))
    return fail(errc::mismatch, "place " + std::to_string(place) + " of a new group is taken twice");
  for (; (*memory)->header().attached.load(std::memory_order_acquire) != wishes.ranks; sleep_for(look_again_after)) {
    if ((*memory)->broken()) return (*memory)->cause();
    if (until.passed())
      (*memory)->break_group(errc::timed_out,
                             list_of_absent(**memory) + " of the new group of " + std::to_string(wishes.ranks) +
                                 " did not come within " + span_in_words(steady_clock::now() - start),
                             "let all of them make the same call");
  }
  return memory;
}

/// Agrees with the other ranks of a broken group on who goes on: all that ask within `patience`, without waiting for those
/// that are known to be gone. @return the ranks that go on, in order; `peer_lost` for a rank that came too late to be one
template <class = void>
[[nodiscard]] result<std::vector<std::uint32_t>> agree_on_survivors(group_memory& group, std::uint32_t rank,
                                                                    seconds patience) {
  const std::uint32_t ranks = group.shape().ranks;
  const process_identity me = this_process();
  group_header& h = group.header();
  group.record(rank).survives.store(survival::asks, std::memory_order_seq_cst);
  const deadline late = deadline::in(patience), too_late = deadline::in(patience * 2 + seconds{1});
  const auto gone = [&](std::uint32_t r) {
    const presence state = group.record(r).state.load(std::memory_order_acquire);
    if (state == presence::dead || state == presence::left) return true;
    const process_identity who = group.identity(r);
    return who.pid != me.pid && state_of(who, me).life == process_life::dead;
  };
  while (h.chosen.load(std::memory_order_seq_cst) != 2) {
    bool all_known = true;
    std::uint32_t first = nobody;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const bool asks = group.record(r).survives.load(std::memory_order_seq_cst) != survival::unknown;
      if (asks && (r == rank || !gone(r)))
        first = first == nobody ? r : first;
      else if (!asks && !gone(r))
        all_known = false;
    }
    std::uint32_t open = 0;
    if ((all_known || late.passed()) && first == rank && h.chosen.compare_exchange_strong(open, 1)) {
      for (std::uint32_t r = 0; r < ranks; ++r) {
        survival asks = survival::asks;
        if (r == rank || !gone(r))
          (void)group.record(r).survives.compare_exchange_strong(asks, survival::goes_on, std::memory_order_seq_cst);
      }
      h.chosen.store(2, std::memory_order_seq_cst);
      break;
    }
    if (too_late.passed())
      return fail(
          errc::timed_out,
          "the ranks that survived could not agree on who they are within " + span_in_words(patience * 2 + seconds{1}),
          "one of them died meanwhile: start anew");
    sleep_for(look_again_after);
  }
  std::vector<std::uint32_t> members;
  bool mine = false;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (group.record(r).survives.load(std::memory_order_seq_cst) != survival::goes_on) continue;
    members.push_back(r);
    mine = mine || r == rank;
  }
  if (mine) return members;
  return fail(errc::peer_lost, "the others went on without rank " + std::to_string(rank) + ", which came too late",
              "allow more time to those that go on");
}

}}}  // namespace topocoll::v0::detail
