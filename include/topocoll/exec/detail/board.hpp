// SPDX-License-Identifier: Apache-2.0
#pragma once
// The boards of a group: every rank announces its calls on its own, reads those of the others, and sees whether all make the
// same call.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/host_call.hpp>
#include <topocoll/exec/detail/patience.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// When an announcement leaves the core of the rank that makes it.
enum class announcing : std::uint8_t {
  at_once,    ///< before anything else happens
  in_passing  ///< soon; a rank that goes to sleep at this moment may find it only when it looks again, see `patience`
};

/// One rank's end of the boards. What returns a bool returns false when the call cannot go on; `failed` then says why.
template <class = void>
class board {
 public:
  board(group_memory& memory, std::uint32_t rank, patience& how_to_wait)
      : memory_(memory), rank_(rank), ranks_(memory.shape().ranks), patience_(how_to_wait) {}

  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  // Of the call under way: what rank r announces of it, and where its input of this size lies.
  [[nodiscard]] board_cell& cell_of(std::uint32_t r) const { return memory_.cell(r, sequence_); }
  [[nodiscard]] std::byte* input_of(std::uint32_t r, std::uint64_t size) const {
    return size <= board_cell::short_bytes ? cell_of(r).head : body_of(r);
  }
  [[nodiscard]] std::byte* body_of(std::uint32_t r) const { return memory_.body(r, sequence_); }

  /// The cell of the next call, once no rank still reads what it held; it says what the call is, and waits for its input.
  [[nodiscard]] board_cell* next_cell(wait_state& w, std::uint64_t what, std::uint64_t count) {
    ++sequence_;
    what_ = what;
    meetings_ = 0;
    if (sequence_ > board_counters::depth && known_finished_ < sequence_ - board_counters::depth) {
      const std::uint64_t enough = sequence_ - board_counters::depth;
      std::uint64_t least = UINT64_MAX;
      const auto finished = [this](std::uint32_t p) {
        return memory_.counters(p).finished.load(std::memory_order_acquire);
      };
      // Who has to wait waits for half of them: asking after every call would take the line from the rank that writes it.
      const auto some_room = [&](std::uint32_t p) { return finished(p) >= enough + board_counters::depth / 2; };
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        if (r == rank_) continue;
        if (finished(r) < enough && !wait_for(w, r, some_room)) return nullptr;
        least = std::min(least, finished(r));
      }
      known_finished_ = least;
    }
    if (memory_.broken()) return nullptr;
    board_cell& mine = cell_of(rank_);
    mine.what = what;
    mine.count = count;
    return &mine;
  }
  void announce(board_cell& mine, announcing when = announcing::at_once) {
    mine.sequence.store(sequence_, when == announcing::at_once ? std::memory_order_seq_cst : std::memory_order_release);
    memory_.wake_sleepers(rank_);
  }
  [[nodiscard]] bool announce_only(wait_state& w, std::uint64_t what, std::uint64_t count) {
    board_cell* mine = next_cell(w, what, count);
    if (mine == nullptr) return false;
    announce(*mine);
    return true;
  }
  /// Waits for the announcement of rank r and compares it with ours.
  [[nodiscard]] bool announced(wait_state& w, std::uint32_t r) {
    const auto there = [this](std::uint32_t p) {
      return cell_of(p).sequence.load(std::memory_order_seq_cst) == sequence_;
    };
    if (!wait_for(w, r, there)) return false;
    const board_cell &mine = cell_of(rank_), &theirs = cell_of(r);
    if (theirs.what == mine.what && theirs.count == mine.count) [[likely]]
      return true;
    name_those_who_differ(w);
    return false;
  }
  [[nodiscard]] bool all_announced(wait_state& w) {
    for (std::uint32_t r = 0; r < ranks_; ++r)
      if (r != rank_ && !announced(w, r)) return false;
    return true;
  }
  /// After all ranks have announced this call, they have finished those before it.
  void everybody_was_here() { known_finished_ = sequence_ - 1; }

  /// Waits until all ranks have come to this place of the call.
  [[nodiscard]] bool meet(wait_state& w) {
    ++meetings_;
    memory_.counters(rank_).phase.store(++phase_, std::memory_order_seq_cst);
    memory_.wake_sleepers(rank_);
    return wait_for_all(
        w, [this](std::uint32_t p) { return memory_.counters(p).phase.load(std::memory_order_seq_cst) >= phase_; });
  }
  /// The call is over on this rank.
  [[nodiscard]] result<void> end(const wait_state& w) {
    patience_.stop(w);
    // Nobody is woken for it: who waits for room on its board sees it with our next announcement.
    memory_.counters(rank_).finished.store(sequence_, std::memory_order_release);
    return {};
  }

  /// The cause, after making sure that no other thread touches the caller's memory any more.
  [[nodiscard]] failure failed(const wait_state& w) {
    patience_.stop(w);
    if (differs_.code == errc::mismatch) {
      (void)end(w);
      return std::exchange(differs_, {});
    }
    if (memory_.one_address_space())
      for (std::uint32_t r = 0; r < ranks_; ++r)
        while (r != rank_ && memory_.counters(r).working.load(std::memory_order_seq_cst) != 0) ::sched_yield();
    failure why = memory_.cause();
    add_context(why, rank_,
                name_of_call(what_) + " call " + std::to_string(sequence_) + ", step " + std::to_string(meetings_) +
                    (meetings_ == 0 ? " (announcements)" : " (meeting)"));
    return why;
  }

 private:
  template <class Ready>
  [[nodiscard]] bool wait_for(wait_state& w, std::uint32_t r, const Ready& ready) {
    const auto missing = [&] {
      std::vector<std::uint32_t> all;
      for (std::uint32_t p = 0; p < ranks_; ++p)
        if (p != rank_ && !ready(p)) all.push_back(p);
      return all;
    };
    const auto look = [&] { return ready(r); };
    while (!ready(r))
      // What it did before the group broke still counts: all ranks are to see the same.
      if (memory_.broken() || !patience_.pass(w, missing, look)) return ready(r);
    w.moved();
    return true;
  }
  template <class Ready>
  [[nodiscard]] bool wait_for_all(wait_state& w, const Ready& ready) {
    for (std::uint32_t r = 0; r < ranks_; ++r)
      if (r != rank_ && !wait_for(w, r, ready)) return false;
    return true;
  }

  using announcement = std::pair<std::uint64_t, std::uint64_t>;
  /// Names the ranks whose announcement differs from that of most. The group stays whole if every rank is sure to find the
  /// same: when all of them wait for all others in the call that they announced, and none has had any data of another.
  void name_those_who_differ(wait_state& w) {
    const auto there = [this](std::uint32_t r) {
      return cell_of(r).sequence.load(std::memory_order_seq_cst) == sequence_;
    };
    const auto waits_for_all = [this](std::uint32_t r) {
      const auto form = static_cast<call_form>(cell_of(r).what >> 56U);
      const auto kind = static_cast<collective_kind>((cell_of(r).what >> 48U) & 0xffU);
      return form == call_form::barrier ||
             ((form == call_form::collective || form == call_form::with_counts) && !rooted(kind));
    };
    // Only those that wait are waited for: the others may be far ahead, or somewhere else.
    bool all_wait = waits_for_all(rank_);
    std::vector<announcement> of;
    std::vector<std::uint32_t> here;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if (r != rank_ && !there(r) && (!all_wait || !wait_for(w, r, there))) {
        if (memory_.broken()) return;
        continue;
      }
      here.push_back(r);
      of.emplace_back(cell_of(r).what, cell_of(r).count);
      all_wait = all_wait && waits_for_all(r);
    }
    failure why = fail(errc::mismatch, differences(here, of) + " (call " + std::to_string(sequence_) + ")",
                       "make sure that all ranks make the same calls in the same order");
    if (all_wait)
      differs_ = std::move(why);
    else
      memory_.break_group(why.code, why.what, why.next);
  }
  [[nodiscard]] std::string differences(const std::vector<std::uint32_t>& here,
                                        const std::vector<announcement>& of) const {
    announcement common = of.front();
    std::ptrdiff_t most = 0;
    bool only_lists = here.size() == ranks_ && static_cast<call_form>(common.first >> 56U) == call_form::with_counts;
    std::vector<std::uint64_t> lists;
    for (const announcement& a : of) {
      const auto like = std::count(of.begin(), of.end(), a);
      if (like > most) common = a;
      most = std::max(most, like);
      only_lists = only_lists && a.first == of.front().first;
      lists.push_back(a.second);
    }
    if (only_lists) return call_in_words(common.first, 0) + ": " + who_differs(lists, "list of counts");
    constexpr std::size_t most_named = 4;
    std::string text;
    std::size_t odd = 0;
    std::uint32_t one_of_most = here.front();
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (of[i] == common)
        one_of_most = here[i];
      else if (++odd <= most_named)
        text += (text.empty() ? "" : ", ") + memory_.name_of(here[i]) + " calls " +
                call_in_words(of[i].first, of[i].second);
    }
    if (odd > most_named) text += ", " + std::to_string(odd - most_named) + " more ranks differ too";
    return text + ", " +
           (most == 1 ? memory_.name_of(one_of_most) + " calls " : std::to_string(most) + " ranks call ") +
           call_in_words(common.first, common.second);
  }

  group_memory& memory_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  patience& patience_;
  std::uint64_t sequence_ = 0;        // of the call under way
  std::uint64_t known_finished_ = 0;  // calls that all ranks have finished, as far as this one knows
  std::uint64_t phase_ = 0;
  std::uint64_t what_ = 0;      // call_mark of the call under way
  std::uint32_t meetings_ = 0;  // of it
  failure differs_;             // why this call is not made, though the group is whole
};

}}}  // namespace topocoll::v0::detail
