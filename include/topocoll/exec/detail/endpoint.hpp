// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's end of all its lanes: posts messages, moves them piece by piece, waits, and finds out why nothing moves.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Tells the processor that a loop waits for another core.
inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");
#endif
}

/// Implements `Transport` on a `group_memory`. Not movable: others hold its address while it is waited on.
class endpoint {
 public:
  /// From this size on a message within one address space is read where the sender has it; below, a copy is cheaper than
  /// waiting for the receiver. Measured on two cores of a Zen 5 server: equal at 4 to 16 KiB.
  static constexpr std::uint64_t lend_from = 8U << 10U;

  /// Precondition: rank `rank` of `memory` was attached for this endpoint.
  endpoint(std::shared_ptr<group_memory> memory, std::uint32_t rank)
      : memory_(std::move(memory)), rank_(rank), ranks_(memory_->shape().ranks), channels_(memory_->shape().channels), me_(this_process()) {
    outs_.resize(std::size_t{ranks_} * channels_);
    ins_.resize(std::size_t{ranks_} * channels_);
    for (std::uint32_t peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      for (std::uint32_t c = 0; c < channels_; ++c) {
        outs_[index(peer, c)].view = memory_->lane(rank_, peer, c);
        ins_[index(peer, c)].view = memory_->lane(peer, rank_, c);
      }
    }
    touched_.assign(ranks_, 0);
    note_core();
  }
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;
  ~endpoint() {
    drop_everything();
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
        return fail(errc::invalid_argument, "a message of " + std::to_string(i.into.size()) + " bytes cannot be combined as " +
                                                std::string(to_string(i.with->type)) + " elements");
    }
    if (memory_->broken()) return broken();
    note_core();
    if (free_tickets_.empty() && tickets_.size() > 0xffffU)
      return fail(errc::unavailable, "rank " + std::to_string(rank_) + " has 65536 steps in flight, which is all that have a name");
    const std::uint32_t t = take_ticket(static_cast<std::uint32_t>(out.size() + in.size()));
    for (const incoming& i : in) {
      in_lane& lane = ins_[index(i.from.value, i.channel)];
      if (lane.todo.empty()) active_ins_.push_back(index(i.from.value, i.channel));
      push(lane.todo, {t, nobody, i.tag, nullptr, i.into.data(), i.into.size(), 0, i.with.value_or(combine{}), i.with.has_value()});
    }
    for (const outgoing& o : out) {
      out_lane& lane = outs_[index(o.to.value, o.channel)];
      if (lane.todo.empty() && lane.lent.empty()) active_outs_.push_back(index(o.to.value, o.channel));
      push(lane.todo, {t, nobody, o.tag, o.data.data(), nullptr, o.data.size(), 0, {}, false});
    }
    if (!out.empty()) {
      if (move_out()) wake_touched();
    }
    return name_of_ticket(t);
  }

  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (pending.empty()) return fail(errc::invalid_argument, "rank " + std::to_string(rank_) + " waits for no ticket");
    for (const ticket k : pending)
      if (!known(k)) return fail(errc::invalid_argument, "ticket " + std::to_string(k.value) + " was never given out, or was given back");
    if (const auto done = finished(pending)) return give_back(pending, *done);
    wait_state w;
    for (;;) {
      if (memory_->broken()) return stop_waiting(w), broken();
      const bool moved = move();
      if (refused_) return stop_waiting(w), broken();
      if (const auto done = finished(pending)) {
        stop_waiting(w);
        return give_back(pending, *done);
      }
      if (moved) w.moved();
      else if (!pass_time(w, until)) return stop_waiting(w), broken();
    }
  }

  void abort(const std::string& why) noexcept { abort_group(*memory_, rank_, why); }

 private:
  struct message {
    std::uint32_t owner;  // index of its ticket
    std::uint32_t next;   // in its queue
    std::uint64_t tag;
    const std::byte* from;
    std::byte* into;
    std::uint64_t size;
    std::uint64_t done;  // bytes moved; for a lent message, the number of its slot
    combine with;
    bool combines;
  };
  struct queue {
    std::uint32_t first = nobody;
    std::uint32_t last = nobody;
    [[nodiscard]] bool empty() const { return first == nobody; }
  };
  struct out_lane {
    lane_view view;
    std::uint64_t filled = 0;         // slots, ever
    std::uint64_t consumed_seen = 0;  // last seen value of the receiver's count
    queue todo;                       // not yet completely handed over
    queue lent;                       // handed over, and not yet read
  };
  struct in_lane {
    lane_view view;
    std::uint64_t consumed = 0;
    queue todo;
  };
  struct ticket_state {
    std::uint32_t remaining = 0;
    std::uint16_t generation = 0;
    bool given = false;
  };
  struct wait_state {
    std::uint32_t idle_polls = 0;
    std::uint32_t yields = 0;
    bool shares_core = false;
    bool said = false;       // that we wait
    seconds since{-1};       // of the first look at the clock
    seconds idle_since{-1};  // of the first look at the clock after something moved
    seconds last_check{};    // of the peers' lives

    void moved() {
      idle_polls = yields = 0;
      idle_since = {-1};
    }
  };

  static constexpr std::uint32_t few_polls = 16;
  static constexpr std::uint32_t many_polls = 256;  // reading the clock costs more than a poll
  static constexpr std::uint32_t most_yields = 200;
  static constexpr std::uint32_t yields_after_sleep = 20;
  static constexpr seconds longest_spin{2e-3};  // somewhat less than the time slice that giving up the core may cost
  static constexpr seconds look_at_peers_every{0.1};
  static constexpr seconds longest_sleep{0.05};

  [[nodiscard]] std::uint32_t index(std::uint32_t peer, std::uint32_t channel) const { return peer * channels_ + channel; }
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t lane) const { return lane / channels_; }

  [[nodiscard]] result<void> check_peer(rank_id peer, std::uint32_t channel) const {
    if (peer.value >= ranks_)
      return fail(errc::invalid_argument, "there is no rank " + std::to_string(peer.value) + " in a group of " + std::to_string(ranks_));
    if (peer.value == rank_) return fail(errc::invalid_argument, "rank " + std::to_string(rank_) + " has no lane to itself");
    if (channel >= channels_)
      return fail(errc::invalid_argument, "there is no channel " + std::to_string(channel) + ", the transport has " + std::to_string(channels_),
                  "ask for more channels when the group is made");
    return {};
  }

  // Queues of messages, linked through one pool so that posting allocates nothing once warm.
  void push(queue& q, const message& m) {
    std::uint32_t at = free_messages_;
    if (at == nobody) {
      at = static_cast<std::uint32_t>(messages_.size());
      messages_.push_back(m);
    } else {
      free_messages_ = messages_[at].next;
      messages_[at] = m;
    }
    append(q, at);
  }
  void append(queue& q, std::uint32_t at) {
    messages_[at].next = nobody;
    if (q.empty()) q.first = at;
    else messages_[q.last].next = at;
    q.last = at;
  }
  std::uint32_t take_first(queue& q) {
    const std::uint32_t at = q.first;
    q.first = messages_[at].next;
    if (q.first == nobody) q.last = nobody;
    return at;
  }
  void finish_first(queue& q) {
    const std::uint32_t at = take_first(q);
    --tickets_[messages_[at].owner].remaining;
    messages_[at].next = free_messages_;
    free_messages_ = at;
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
    tickets_[t].remaining = parts;
    tickets_[t].given = true;
    return t;
  }
  [[nodiscard]] ticket name_of_ticket(std::uint32_t t) const { return {(std::uint32_t{tickets_[t].generation} << 16U) | t}; }
  [[nodiscard]] bool known(ticket k) const {
    const std::uint32_t t = k.value & 0xffffU;
    return t < tickets_.size() && tickets_[t].given && tickets_[t].generation == k.value >> 16U;
  }
  [[nodiscard]] std::optional<std::size_t> finished(std::span<const ticket> pending) const {
    for (std::size_t i = 0; i < pending.size(); ++i)
      if (tickets_[pending[i].value & 0xffffU].remaining == 0) return i;
    return std::nullopt;
  }
  [[nodiscard]] result<std::size_t> give_back(std::span<const ticket> pending, std::size_t i) {
    const std::uint32_t t = pending[i].value & 0xffffU;
    tickets_[t].given = false;
    ++tickets_[t].generation;
    free_tickets_.push_back(t);
    return i;
  }

  /// Moves what can be moved and wakes whom it concerns. Whether anything moved.
  bool move() {
    bool moved = move_in();
    if (!refused_) moved = move_out() || moved;
    if (moved) wake_touched();
    return moved;
  }
  // Sending. Each returns whether anything moved.
  bool move_out() {
    bool moved = false;
    for (std::size_t i = 0; i < active_outs_.size();) {
      out_lane& lane = outs_[active_outs_[i]];
      if (fill(lane)) {
        moved = true;
        touch(peer_of(active_outs_[i]));
      }
      if (collect_lent(lane)) moved = true;
      if (lane.todo.empty() && lane.lent.empty()) {
        active_outs_[i] = active_outs_.back();
        active_outs_.pop_back();
      } else {
        ++i;
      }
    }
    return moved;
  }
  [[nodiscard]] bool room_in(out_lane& lane) const {
    const std::uint32_t slots = memory_->shape().slots;
    if (lane.filled - lane.consumed_seen < slots) return true;
    lane.consumed_seen = lane.view.control->consumed.load(std::memory_order_acquire);
    return lane.filled - lane.consumed_seen < slots;
  }
  bool fill(out_lane& lane) {
    const group_shape& shape = memory_->shape();
    bool moved = false;
    while (!lane.todo.empty() && room_in(lane)) {
      message& m = messages_[lane.todo.first];
      slot_header& slot = lane.view.headers[lane.filled % shape.slots];
      slot.tag = m.tag;
      slot.size = m.size;
      moved = true;
      if (memory_->one_address_space() && m.size >= lend_from) {
        ::new (static_cast<void*>(slot.data)) lent_message{m.from, lent_offered};
        m.done = lane.filled;
        slot.sequence.store(++lane.filled, std::memory_order_release);
        append(lane.lent, take_first(lane.todo));
        continue;
      }
      if (m.size <= slot_header::short_bytes) {
        if (m.size != 0) std::memcpy(slot.data, m.from, m.size);
        m.done = m.size;
      } else {
        const std::uint64_t piece = std::min<std::uint64_t>(shape.slot_bytes, m.size - m.done);
        std::memcpy(lane.view.payload + (lane.filled % shape.slots) * shape.slot_bytes, m.from + m.done, piece);
        m.done += piece;
      }
      slot.sequence.store(++lane.filled, std::memory_order_release);
      if (m.done == m.size) finish_first(lane.todo);
    }
    return moved;
  }
  bool collect_lent(out_lane& lane) {
    if (lane.lent.empty()) return false;
    lane.consumed_seen = lane.view.control->consumed.load(std::memory_order_acquire);
    bool moved = false;
    while (!lane.lent.empty() && messages_[lane.lent.first].done < lane.consumed_seen) {
      finish_first(lane.lent);
      moved = true;
    }
    return moved;
  }

  // Receiving.
  bool move_in() {
    bool moved = false;
    for (std::size_t i = 0; i < active_ins_.size();) {
      in_lane& lane = ins_[active_ins_[i]];
      if (empty_slots(lane, peer_of(active_ins_[i]), active_ins_[i] % channels_)) {
        moved = true;
        touch(peer_of(active_ins_[i]));
      }
      if (refused_) return moved;
      if (lane.todo.empty()) {
        active_ins_[i] = active_ins_.back();
        active_ins_.pop_back();
      } else {
        ++i;
      }
    }
    return moved;
  }
  bool empty_slots(in_lane& lane, std::uint32_t peer, std::uint32_t channel) {
    const group_shape& shape = memory_->shape();
    bool moved = false;
    while (!lane.todo.empty()) {
      message& m = messages_[lane.todo.first];
      slot_header& slot = lane.view.headers[lane.consumed % shape.slots];
      if (slot.sequence.load(std::memory_order_acquire) != lane.consumed + 1) break;
      if (m.done == 0 && (slot.tag != m.tag || slot.size != m.size)) {
        refuse(m, slot, peer, channel);
        return moved;
      }
      if (memory_->one_address_space() && m.size >= lend_from) {
        auto& lent = *std::launder(reinterpret_cast<lent_message*>(slot.data));
        std::uint32_t offered = lent_offered;
        if (!lent.claim.compare_exchange_strong(offered, lent_in_use, std::memory_order_acq_rel)) {
          memory_->break_group(errc::peer_lost, memory_->name_of(peer) + " took back a message to rank " + std::to_string(rank_) + " that it had sent", {});
          refused_ = true;
          return moved;
        }
        take(m, lent.data, m.size);
        lent.claim.store(lent_done, std::memory_order_release);
      } else if (m.size <= slot_header::short_bytes) {
        take(m, slot.data, m.size);
      } else {
        take(m, lane.view.payload + (lane.consumed % shape.slots) * shape.slot_bytes, std::min<std::uint64_t>(shape.slot_bytes, m.size - m.done));
      }
      lane.view.control->consumed.store(++lane.consumed, std::memory_order_release);
      moved = true;
      if (m.done == m.size) finish_first(lane.todo);
    }
    return moved;
  }
  static void take(message& m, const std::byte* piece, std::uint64_t size) {
    if (size != 0) {
      if (m.combines)
        reduce_elements(m.with.type, m.with.op, m.into + m.done, piece, m.with.other + m.done, size / size_of(m.with.type).value);
      else
        std::memcpy(m.into + m.done, piece, size);
    }
    m.done += size;
  }
  void refuse(const message& m, const slot_header& slot, std::uint32_t peer, std::uint32_t channel) {
    memory_->break_group(errc::mismatch,
                         memory_->name_of(peer) + " sent " + std::to_string(slot.size) + " bytes (" + describe_tag(slot.tag) + ") where rank " +
                             std::to_string(rank_) + " expected " + std::to_string(m.size) + " bytes (" + describe_tag(m.tag) + ") on channel " +
                             std::to_string(channel),
                         "make sure that all ranks make the same calls in the same order");
    refused_ = true;
  }

  void touch(std::uint32_t peer) {
    if (touched_[peer] == 0) {
      touched_[peer] = 1;
      touched_list_.push_back(peer);
    }
  }
  void wake_touched() {
    for (const std::uint32_t peer : touched_list_) {
      touched_[peer] = 0;
      memory_->wake(peer);
    }
    touched_list_.clear();
  }

  // Waiting. False when the group is broken: by somebody else, or by us because a peer died or time is up.
  //
  // A hand-over between cores takes 0.1 us, a yield to a rank on the same core 1 to 2 us. A yield or a sleep that gives the core to
  // a program that has nothing to do with us costs that program's time slice, some 3 ms: on Linux 6.18 even a woken process of
  // higher priority waits for the end of it. So a rank that shares its core with another yields at once, and one that has its
  // core to itself keeps it for a while.
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
    if (w.shares_core ? w.yields++ < most_yields : now - w.idle_since < longest_spin) {
      if (w.shares_core) ::sched_yield();
      return true;
    }
    say_waiting(w, first_missing(), now);
    const bool ask_system = now - w.last_check >= look_at_peers_every;
    if (ask_system) w.last_check = now;
    if (!look_at_peers(ask_system)) return false;
    rank_record& mine = memory_->record(rank_);
    const std::uint32_t seen = mine.bell.load(std::memory_order_acquire);
    mine.asleep.exchange(1, std::memory_order_acq_rel);
    if (!memory_->broken() && !move() && !refused_) memory_->sleep(rank_, seen, std::min(longest_sleep, until.at - now));
    mine.asleep.store(0, std::memory_order_release);
    w.yields = most_yields - std::min(most_yields, yields_after_sleep);
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
      if (it.core.load(std::memory_order_relaxed) == core_ && it.state.load(std::memory_order_relaxed) == presence::present &&
          it.asleep.load(std::memory_order_relaxed) == 0)
        return true;
    }
    return false;
  }
  [[nodiscard]] std::uint32_t first_missing() const {
    if (!active_ins_.empty()) return peer_of(active_ins_.front());
    return active_outs_.empty() ? nobody : peer_of(active_outs_.front());
  }
  [[nodiscard]] std::vector<std::uint32_t> missing() const {
    std::vector<std::uint32_t> peers;
    for (const std::uint32_t lane : active_ins_) peers.push_back(peer_of(lane));
    for (const std::uint32_t lane : active_outs_) peers.push_back(peer_of(lane));
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
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
    for (const std::uint32_t peer : missing()) {
      const std::optional<failure> gone = why_gone(*memory_, peer, rank_, me_, ask_system);
      if (!gone) continue;
      // What it sent before it went still counts.
      if (move() || refused_) return true;
      memory_->break_group(gone->code, gone->what, gone->next);
      return false;
    }
    return true;
  }
  void give_up(const wait_state& w, seconds now) {
    const std::vector<std::uint32_t> peers = missing();
    for (const std::uint32_t peer : peers) {
      if (const auto gone = why_gone(*memory_, peer, rank_, me_, true)) return memory_->break_group(gone->code, gone->what, gone->next);
    }
    const failure late = why_late(*memory_, peers, rank_, me_, now - w.since, now);
    memory_->break_group(late.code, late.what, late.next);
  }

  /// The cause, after making sure that no other thread reads the caller's memory any more.
  [[nodiscard]] failure broken() {
    drop_everything();
    return memory_->cause();
  }
  void drop_everything() {
    for (const std::uint32_t i : active_outs_) {
      out_lane& lane = outs_[i];
      for (std::uint32_t at = lane.lent.first; at != nobody; at = messages_[at].next) revoke(lane, messages_[at]);
      lane.todo = lane.lent = {};
    }
    for (const std::uint32_t i : active_ins_) ins_[i].todo = {};
    active_outs_.clear();
    active_ins_.clear();
    touched_list_.clear();
    std::fill(touched_.begin(), touched_.end(), std::uint8_t{0});
  }
  void revoke(out_lane& lane, const message& m) {
    if (lane.view.control->consumed.load(std::memory_order_acquire) > m.done) return;
    auto& lent = *std::launder(reinterpret_cast<lent_message*>(lane.view.headers[m.done % memory_->shape().slots].data));
    std::uint32_t offered = lent_offered;
    if (lent.claim.compare_exchange_strong(offered, lent_revoked, std::memory_order_acq_rel)) return;
    // A thread of this process is in the middle of reading: it needs no more than the time of one copy.
    while (lent.claim.load(std::memory_order_acquire) == lent_in_use) ::sched_yield();
  }

  std::shared_ptr<group_memory> memory_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  std::uint32_t channels_;
  process_identity me_;
  int core_ = -1;         // where we ran last
  bool refused_ = false;  // a message came that was not expected
  std::vector<out_lane> outs_;  // by peer and channel
  std::vector<in_lane> ins_;
  std::vector<std::uint32_t> active_outs_;  // lanes with something to do
  std::vector<std::uint32_t> active_ins_;
  std::vector<message> messages_;
  std::uint32_t free_messages_ = nobody;
  std::vector<ticket_state> tickets_;
  std::vector<std::uint32_t> free_tickets_;
  std::vector<std::uint8_t> touched_;  // peers to wake
  std::vector<std::uint32_t> touched_list_;
};

}}}  // namespace topocoll::v0::detail
