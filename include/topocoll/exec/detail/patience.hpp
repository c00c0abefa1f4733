// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a rank waits for others: it spins, yields, sleeps, and finds out why nothing comes.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <sched.h>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/rank_names.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Tells the processor that a loop waits for another core.
template <class = void>
void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");
#endif
}

/// One wait, or several in a row that have one end.
struct wait_state {
  deadline until{};  // unset: `span` after the first look at the clock
  seconds span{};
  std::uint32_t idle_polls = 0;
  bool shares_core = false;
  bool said = false;       // that we wait
  seconds since{-1};       // of the first look at the clock
  seconds idle_since{-1};  // of the first look at the clock after something moved
  seconds last_check{};    // of the peers' lives

  [[nodiscard]] static wait_state for_span(seconds s) {
    wait_state w;
    w.span = s;
    return w;
  }
  [[nodiscard]] static wait_state up_to(deadline d) {
    wait_state w;
    w.until = d;
    return w;
  }
  void moved() {
    idle_polls = 0;
    idle_since = {-1};
  }
};

/// What waits of one rank have in common.
///
/// A hand-over between cores takes 0.1 us, a yield to a rank on the same core 1 to 2 us. A yield or a sleep that gives the
/// core to a program that has nothing to do with us costs that program's time slice, some 3 ms: on Linux 6.18 even a woken
/// process of higher priority waits for the end of it. So a rank that shares its core with another yields at once, and one
/// that has its core to itself keeps it for a while.
class patience {
 public:
  patience(group_memory& memory, std::uint32_t rank, const rank_names& names)
      : memory_(memory), rank_(rank), names_(names), me_(this_process()) {
    note_core();
  }

  /// Lets some time pass. False when the group is broken: by somebody else, or by us because a peer died or time is up.
  ///
  /// @param missing  () -> std::vector of the ranks that something is awaited from; called seldom
  /// @param look     () -> whether something is there by now; called before sleeping, and before a peer is given up
  template <class Missing, class Look>
  [[nodiscard]] bool pass(wait_state& w, const Missing& missing, const Look& look) {
    ++w.idle_polls;
    if (w.idle_polls != few_polls && w.idle_polls % (w.shares_core ? few_polls : many_polls) != 0) {
      if (w.idle_polls > few_polls) pause_briefly();
      return true;
    }
    const seconds now = steady_clock::now();
    if (w.since.value < 0) {
      w.since = w.last_check = now;
      if (w.until.at.value == 0) w.until.at = now + w.span;
    }
    if (w.idle_since.value < 0) w.idle_since = now;
    if (now >= w.until.at) {
      give_up(missing(), w, now);
      return false;
    }
    note_core();
    w.shares_core = shares_core();
    if (now - w.idle_since < (w.shares_core ? longest_yielding : longest_spin)) {
      if (w.shares_core) ::sched_yield();
      return true;
    }
    return rest(w, missing, look, now);
  }
  /// For a rank that polls, and lets time pass by itself: now and then, tells the others whom it waits for, and looks
  /// whether these live. False when the group is broken because one does not.
  ///
  /// @param beyond  a rank that is waited for by other means; `nobody` for none
  template <class Missing, class Look>
  [[nodiscard]] bool glance(wait_state& w, const Missing& missing, const Look& look, std::uint32_t beyond) {
    if (++w.idle_polls % few_polls != 0) return true;
    const seconds now = steady_clock::now();
    if (w.idle_since.value < 0) {
      w.idle_since = w.last_check = now;
      note_core();
    }
    if (now - w.idle_since < longest_yielding) return true;
    const std::vector<std::uint32_t> peers = missing();
    say_waiting(w, peers.empty() ? beyond : peers.front(), now);
    return look_after(peers, w, look, now) != outlook::broken;
  }
  /// Breaks the group because these did not answer.
  void give_up(const std::vector<std::uint32_t>& peers, seconds waited) {
    const seconds now = steady_clock::now();
    wait_state w;
    w.since = now - waited;
    give_up(peers, w, now);
  }
  void stop(const wait_state& w) {
    if (w.said) memory_.record(rank_).waits_for.store(nobody, std::memory_order_relaxed);
  }
  /// Tells the others where we run.
  void note_core() {
    const int core = ::sched_getcpu();
    if (core == core_) return;
    core_ = core;
    memory_.record(rank_).core.store(core, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t few_polls = 16;
  static constexpr std::uint32_t many_polls = 256;  // reading the clock costs more than a poll
  static constexpr seconds longest_spin{2e-3};  // somewhat less than the time slice that giving up the core may cost
  // By time, not by number: each yield may cost the time slices of all strangers on the core, and a rank must say soon
  // that it waits, and look whether its peers live.
  static constexpr seconds longest_yielding{10e-3};
  static constexpr seconds look_at_peers_every{0.1};
  static constexpr seconds short_sleep{0.5e-3};  // far more than a store needs
  static constexpr seconds longest_sleep{0.05};

  template <class Missing, class Look>
  [[nodiscard]] bool rest(wait_state& w, const Missing& missing, const Look& look, seconds now) {
    const std::vector<std::uint32_t> peers = missing();
    say_waiting(w, peers.empty() ? nobody : peers.front(), now);
    switch (look_after(peers, w, look, now)) {
      case outlook::broken: return false;
      case outlook::moved: return true;
      case outlook::whole: break;
    }
    const std::uint32_t seen = memory_.lie_down(rank_);
    // Who announces in passing may have looked for sleepers before it could see us, while we could not see its announcement
    // yet. That lasts as long as a store needs to leave a core: after a short sleep we have it.
    for (const seconds most : {short_sleep, longest_sleep}) {
      if (memory_.broken() || look()) break;
      memory_.sleep(rank_, seen, std::min(most, w.until.at - now));
    }
    memory_.get_up(rank_);
    return true;
  }
  enum class outlook : std::uint8_t { whole, moved, broken };
  /// Whether all of these may still answer.
  template <class Look>
  [[nodiscard]] outlook look_after(const std::vector<std::uint32_t>& peers, wait_state& w, const Look& look,
                                   seconds now) {
    const bool ask_system = now - w.last_check >= look_at_peers_every;
    if (ask_system) w.last_check = now;
    for (const std::uint32_t peer : peers) {
      const std::optional<failure> gone = why_gone(memory_, peer, names_.of(rank_), me_, ask_system);
      if (!gone) continue;
      if (look()) return outlook::moved;  // what it did before it went still counts
      memory_.break_group(gone->code, names_.renamed(gone->what, peer), gone->next);
      return outlook::broken;
    }
    return outlook::whole;
  }
  /// True when another rank that is not asleep was last seen on our core: it cannot run while we do.
  [[nodiscard]] bool shares_core() const {
    for (std::uint32_t r = 0; r < memory_.shape().ranks; ++r) {
      if (r == rank_) continue;
      const rank_record& it = memory_.record(r);
      if (it.core.load(std::memory_order_relaxed) == core_ &&
          it.state.load(std::memory_order_relaxed) == presence::present &&
          it.asleep.load(std::memory_order_relaxed) == 0)
        return true;
    }
    return false;
  }
  void say_waiting(wait_state& w, std::uint32_t peer, seconds now) {
    w.said = true;
    memory_.record(rank_).waits_for.store(peer, std::memory_order_relaxed);
    memory_.record(rank_).said_at.store(static_cast<std::uint64_t>(now.value * 1e9), std::memory_order_relaxed);
  }
  void give_up(const std::vector<std::uint32_t>& peers, const wait_state& w, seconds now) {
    for (const std::uint32_t peer : peers) {
      if (const auto gone = why_gone(memory_, peer, rank_, me_, true))
        return memory_.break_group(gone->code, gone->what, gone->next);
    }
    const failure late = why_late(memory_, peers, rank_, me_, now - w.since, now);
    memory_.break_group(late.code, late.what, late.next);
  }

  group_memory& memory_;
  std::uint32_t rank_;
  const rank_names& names_;
  process_identity me_;
  int core_ = -1;  // where we ran last
};

}}}  // namespace topocoll::v0::detail
