// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank of a group in shared memory: posts steps, waits for them, and finds out why nothing moves.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <sched.h>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/lanes.hpp>
#include <topocoll/exec/transport.hpp>

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

/// Implements `Transport` on a `group_memory`. Not movable: others hold its address while it is waited on.
class endpoint {
 public:
  /// Precondition: rank `rank` of `memory` was attached for this endpoint.
  endpoint(std::shared_ptr<group_memory> memory, std::uint32_t rank)
      : memory_(std::move(memory)),
        rank_(rank),
        ranks_(memory_->shape().ranks),
        channels_(memory_->shape().channels),
        me_(this_process()),
        lanes_(*memory_, rank) {
    note_core();
  }
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;
  ~endpoint() {
    lanes_.drop();
    memory_->leave(rank_);
  }

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t channels() const { return channels_; }
  [[nodiscard]] const group_memory& memory() const { return *memory_; }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    for (const outgoing& o : out)
      if (auto ok = check_peer(o.to, o.channel); !ok) return ok.error();
    for (const incoming& i : in) {
      if (auto ok = check_peer(i.from, i.channel); !ok) return ok.error();
      if (i.with && (i.into.size() % size_of(i.with->type).value != 0 || (i.with->other == nullptr && !i.into.empty())))
        return fail(errc::invalid_argument, "a message of " + std::to_string(i.into.size()) +
                                                " bytes cannot be combined as " + std::string(to_string(i.with->type)) +
                                                " elements");
    }
    if (memory_->broken()) return broken();
    note_core();
    if (free_tickets_.empty() && tickets_.size() > 0xffffU)
      return fail(errc::unavailable,
                  "rank " + std::to_string(rank_) + " has 65536 steps in flight, which is all that have a name");
    const std::uint32_t t = take_ticket(static_cast<std::uint32_t>(out.size() + in.size()));
    for (const incoming& i : in) lanes_.receive(t, i);
    for (const outgoing& o : out) lanes_.send(t, o);
    if (!out.empty()) (void)lanes_.move_sends();
    return name_of_ticket(t);
  }

  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (pending.empty()) return fail(errc::invalid_argument, "rank " + std::to_string(rank_) + " waits for no ticket");
    for (const ticket k : pending)
      if (!known(k))
        return fail(errc::invalid_argument,
                    "ticket " + std::to_string(k.value) + " was never given out, or was given back");
    if (const auto done = finished(pending)) return give_back(pending, *done);
    wait_state w;
    for (;;) {
      if (memory_->broken()) return stop_waiting(w), broken();
      const bool moved = lanes_.move();
      if (lanes_.refused()) return stop_waiting(w), broken();
      if (const auto done = finished(pending)) {
        stop_waiting(w);
        return give_back(pending, *done);
      }
      if (moved)
        w.moved();
      else if (!pass_time(w, until))
        return stop_waiting(w), broken();
    }
  }

  void abort(const std::string& why) noexcept { abort_group(*memory_, rank_, why); }

 private:
  struct ticket_state {
    std::uint16_t generation = 0;
    bool given = false;
  };
  struct wait_state {
    std::uint32_t idle_polls = 0;
    bool shares_core = false;
    bool said = false;       // that we wait
    seconds since{-1};       // of the first look at the clock
    seconds idle_since{-1};  // of the first look at the clock after something moved
    seconds last_check{};    // of the peers' lives

    void moved() {
      idle_polls = 0;
      idle_since = {-1};
    }
  };

  static constexpr std::uint32_t few_polls = 16;
  static constexpr std::uint32_t many_polls = 256;  // reading the clock costs more than a poll
  static constexpr seconds longest_spin{2e-3};  // somewhat less than the time slice that giving up the core may cost
  // By time, not by number: each yield may cost the time slices of all strangers on the core, and a rank must say soon
  // that it waits, and look whether its peers live.
  static constexpr seconds longest_yielding{10e-3};
  static constexpr seconds look_at_peers_every{0.1};
  static constexpr seconds longest_sleep{0.05};

  [[nodiscard]] result<void> check_peer(rank_id peer, std::uint32_t channel) const {
    if (peer.value >= ranks_)
      return fail(errc::invalid_argument,
                  "there is no rank " + std::to_string(peer.value) + " in a group of " + std::to_string(ranks_));
    if (peer.value == rank_)
      return fail(errc::invalid_argument, "rank " + std::to_string(rank_) + " has no lane to itself");
    if (channel >= channels_)
      return fail(errc::invalid_argument,
                  "there is no channel " + std::to_string(channel) + ", the transport has " + std::to_string(channels_),
                  "ask for more channels when the group is made");
    return {};
  }

  std::uint32_t take_ticket(std::uint32_t parts) {
    std::uint32_t t;
    if (free_tickets_.empty()) {
      t = static_cast<std::uint32_t>(tickets_.size());
      tickets_.push_back({});
    } else {
      t = free_tickets_.back();
      free_tickets_.pop_back();
    }
    lanes_.expect(t, parts);
    tickets_[t].given = true;
    return t;
  }
  [[nodiscard]] ticket name_of_ticket(std::uint32_t t) const {
    return {(std::uint32_t{tickets_[t].generation} << 16U) | t};
  }
  [[nodiscard]] bool known(ticket k) const {
    const std::uint32_t t = k.value & 0xffffU;
    return t < tickets_.size() && tickets_[t].given && tickets_[t].generation == k.value >> 16U;
  }
  [[nodiscard]] std::optional<std::size_t> finished(std::span<const ticket> pending) const {
    for (std::size_t i = 0; i < pending.size(); ++i)
      if (lanes_.finished(pending[i].value & 0xffffU)) return i;
    return std::nullopt;
  }
  [[nodiscard]] result<std::size_t> give_back(std::span<const ticket> pending, std::size_t i) {
    const std::uint32_t t = pending[i].value & 0xffffU;
    tickets_[t].given = false;
    ++tickets_[t].generation;
    free_tickets_.push_back(t);
    return i;
  }

  // Waiting. False when the group is broken: by somebody else, or by us because a peer died or time is up.
  //
  // A hand-over between cores takes 0.1 us, a yield to a rank on the same core 1 to 2 us. A yield or a sleep that gives
  // the core to a program that has nothing to do with us costs that program's time slice, some 3 ms: on Linux 6.18 even
  // a woken process of higher priority waits for the end of it. So a rank that shares its core with another yields at
  // once, and one that has its core to itself keeps it for a while.
  bool pass_time(wait_state& w, deadline until) {
    ++w.idle_polls;
    if (w.idle_polls != few_polls && w.idle_polls % (w.shares_core ? few_polls : many_polls) != 0) {
      pause_briefly();
      return true;
    }
    const seconds now = steady_clock::now();
    if (w.since.value < 0) w.since = w.last_check = now;
    if (w.idle_since.value < 0) w.idle_since = now;
    if (now >= until.at) {
      give_up(w, now);
      return false;
    }
    note_core();
    w.shares_core = shares_core();
    if (now - w.idle_since < (w.shares_core ? longest_yielding : longest_spin)) {
      if (w.shares_core) ::sched_yield();
      return true;
    }
    say_waiting(w, lanes_.first_missing(), now);
    const bool ask_system = now - w.last_check >= look_at_peers_every;
    if (ask_system) w.last_check = now;
    if (!look_at_peers(ask_system)) return false;
    rank_record& mine = memory_->record(rank_);
    const std::uint32_t seen = mine.bell.load(std::memory_order_acquire);
    mine.asleep.exchange(1, std::memory_order_acq_rel);
    if (!memory_->broken() && !lanes_.move() && !lanes_.refused())
      memory_->sleep(rank_, seen, std::min(longest_sleep, until.at - now));
    mine.asleep.store(0, std::memory_order_release);
    return true;
  }
  /// Tells the others where we run.
  void note_core() {
    const int core = ::sched_getcpu();
    if (core == core_) return;
    core_ = core;
    memory_->record(rank_).core.store(core, std::memory_order_relaxed);
  }
  /// True when another rank that is not asleep was last seen on our core: it cannot run while we do.
  [[nodiscard]] bool shares_core() const {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if (r == rank_) continue;
      const rank_record& it = memory_->record(r);
      if (it.core.load(std::memory_order_relaxed) == core_ &&
          it.state.load(std::memory_order_relaxed) == presence::present &&
          it.asleep.load(std::memory_order_relaxed) == 0)
        return true;
    }
    return false;
  }
  void say_waiting(wait_state& w, std::uint32_t peer, seconds now) {
    w.said = true;
    memory_->record(rank_).waits_for.store(peer, std::memory_order_relaxed);
    memory_->record(rank_).said_at.store(static_cast<std::uint64_t>(now.value * 1e9), std::memory_order_relaxed);
  }
  void stop_waiting(const wait_state& w) {
    if (w.said) memory_->record(rank_).waits_for.store(nobody, std::memory_order_relaxed);
  }
  /// False if a peer that we wait for is gone; the group is then broken.
  bool look_at_peers(bool ask_system) {
    for (const std::uint32_t peer : lanes_.missing()) {
      const std::optional<failure> gone = why_gone(*memory_, peer, rank_, me_, ask_system);
      if (!gone) continue;
      // What it sent before it went still counts.
      if (lanes_.move() || lanes_.refused()) return true;
      memory_->break_group(gone->code, gone->what, gone->next);
      return false;
    }
    return true;
  }
  void give_up(const wait_state& w, seconds now) {
    const std::vector<std::uint32_t> peers = lanes_.missing();
    for (const std::uint32_t peer : peers) {
      if (const auto gone = why_gone(*memory_, peer, rank_, me_, true))
        return memory_->break_group(gone->code, gone->what, gone->next);
    }
    const failure late = why_late(*memory_, peers, rank_, me_, now - w.since, now);
    memory_->break_group(late.code, late.what, late.next);
  }

  /// The cause, after making sure that no other thread reads the caller's memory any more.
  [[nodiscard]] failure broken() {
    lanes_.drop();
    return memory_->cause();
  }

  std::shared_ptr<group_memory> memory_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  std::uint32_t channels_;
  process_identity me_;
  int core_ = -1;  // where we ran last
  lanes lanes_;
  std::vector<ticket_state> tickets_;
  std::vector<std::uint32_t> free_tickets_;
};

}}}  // namespace topocoll::v0::detail
