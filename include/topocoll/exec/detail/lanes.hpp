// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's ends of all lanes: the messages under way, moved piece by piece through the slots.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <sched.h>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/rank_names.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Sends and receives of one rank. Messages belong to owners, numbers that the caller gives out; it asks how many parts
/// of an owner are still open.
class lanes {
 public:
  /// From this size on a message within one address space is read where the sender has it. Below, it is copied, so that
  /// both sides work at once and the sender need not wait. Measured with two threads on cores that share no L2 cache:
  /// copying is a quarter faster at 16 and 32 KiB, equal at 64 KiB.
  static constexpr std::uint64_t lend_from = 64U << 10U;

  lanes(group_memory& memory, std::uint32_t rank, const rank_names& names)
      : memory_(memory), names_(names), rank_(rank), channels_(memory.shape().channels) {
    const std::uint32_t ranks = memory.shape().ranks;
    outs_.resize(std::size_t{ranks} * channels_);
    ins_.resize(std::size_t{ranks} * channels_);
    for (std::uint32_t peer = 0; peer < ranks; ++peer) {
      if (peer == rank_) continue;
      for (std::uint32_t c = 0; c < channels_; ++c) {
        outs_[index(peer, c)].view = memory.lane(rank_, peer, c);
        ins_[index(peer, c)].view = memory.lane(peer, rank_, c);
      }
    }
    touched_.assign(ranks, 0);
  }

  /// Says how many parts an owner will have.
  void expect(std::uint32_t owner, std::uint32_t parts) {
    if (owner >= open_.size()) open_.resize(owner + 1, 0);
    open_[owner] = parts;
  }
  [[nodiscard]] bool finished(std::uint32_t owner) const { return open_[owner] == 0; }

  /// Precondition of both: peer and channel exist, and the peer is not this rank.
  void send(std::uint32_t owner, const outgoing& o) {
    const std::uint32_t i = index(o.to.value, o.channel);
    if (outs_[i].todo.empty() && outs_[i].lent.empty()) active_outs_.push_back(i);
    push(outs_[i].todo, {owner, nobody, o.tag, o.data.data(), nullptr, o.data.size(), 0, {}, false});
  }
  void receive(std::uint32_t owner, const incoming& in) {
    const std::uint32_t i = index(in.from.value, in.channel);
    if (ins_[i].todo.empty()) active_ins_.push_back(i);
    push(ins_[i].todo, {owner, nobody, in.tag, nullptr, in.into.data(), in.into.size(), 0, in.with.value_or(combine{}),
                        in.with.has_value()});
  }

  /// Moves what can be moved and wakes whom it concerns. Whether anything moved.
  bool move() {
    bool moved = move_in();
    if (!refused_) moved = move_out() || moved;
    if (moved) wake_touched();
    return moved;
  }
  /// The half of `move` that sends.
  bool move_sends() {
    const bool moved = move_out();
    if (moved) wake_touched();
    return moved;
  }
  /// True after a message that was not expected: the group is broken then.
  [[nodiscard]] bool refused() const { return refused_; }

  /// Peers for which something waits, in order.
  [[nodiscard]] std::uint32_t first_missing() const {
    if (!active_ins_.empty()) return peer_of(active_ins_.front());
    return active_outs_.empty() ? nobody : peer_of(active_outs_.front());
  }
  [[nodiscard]] std::vector<std::uint32_t> missing() const {
    std::vector<std::uint32_t> peers;
    for (const std::uint32_t lane : active_ins_) peers.push_back(peer_of(lane));
    for (const std::uint32_t lane : active_outs_) peers.push_back(peer_of(lane));
    seq::sort_unique(peers);
    return peers;
  }

  /// Forgets all messages. When it returns, no other thread reads what was to be sent.
  void drop() {
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

 private:
  struct message {
    std::uint32_t owner;
    std::uint32_t next;  // in its queue
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

  [[nodiscard]] std::uint32_t index(std::uint32_t peer, std::uint32_t channel) const {
    return peer * channels_ + channel;
  }
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t lane) const { return lane / channels_; }

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
    if (q.empty())
      q.first = at;
    else
      messages_[q.last].next = at;
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
    --open_[messages_[at].owner];
    messages_[at].next = free_messages_;
    free_messages_ = at;
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
    const std::uint32_t slot_count = memory_.shape().slot_count;
    if (lane.filled - lane.consumed_seen < slot_count) return true;
    lane.consumed_seen = lane.view.control->consumed.load(std::memory_order_acquire);
    return lane.filled - lane.consumed_seen < slot_count;
  }
  bool fill(out_lane& lane) {
    const group_shape& shape = memory_.shape();
    bool moved = false;
    while (!lane.todo.empty() && room_in(lane)) {
      message& m = messages_[lane.todo.first];
      slot_header& slot = lane.view.headers[lane.filled % shape.slot_count];
      slot.tag = m.tag;
      slot.size = m.size;
      moved = true;
      if (memory_.one_address_space() && m.size >= lend_from) {
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
        std::memcpy(lane.view.payload + (lane.filled % shape.slot_count) * shape.slot_bytes, m.from + m.done, piece);
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
    const group_shape& shape = memory_.shape();
    bool moved = false;
    while (!lane.todo.empty()) {
      message& m = messages_[lane.todo.first];
      slot_header& slot = lane.view.headers[lane.consumed % shape.slot_count];
      if (slot.sequence.load(std::memory_order_acquire) != lane.consumed + 1) break;
      if (m.done == 0 && (slot.tag != m.tag || slot.size != m.size)) {
        refuse(m, slot, peer, channel);
        return moved;
      }
      if (memory_.one_address_space() && m.size >= lend_from) {
        auto& lent = *std::launder(reinterpret_cast<lent_message*>(slot.data));
        std::uint32_t offered = lent_offered;
        if (!lent.claim.compare_exchange_strong(offered, lent_in_use, std::memory_order_acq_rel)) {
          memory_.break_group(errc::peer_lost,
                              names_.full(memory_, peer) + " took back a message to rank " +
                                  std::to_string(names_.of(rank_)) + " that it had sent",
                              {});
          refused_ = true;
          return moved;
        }
        take(m, lent.data, m.size);
        lent.claim.store(lent_done, std::memory_order_release);
      } else if (m.size <= slot_header::short_bytes) {
        take(m, slot.data, m.size);
      } else {
        take(m, lane.view.payload + (lane.consumed % shape.slot_count) * shape.slot_bytes,
             std::min<std::uint64_t>(shape.slot_bytes, m.size - m.done));
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
        reduce_elements(m.with.type, m.with.op, m.into + m.done, piece, m.with.other + m.done,
                        size / size_of(m.with.type).value);
      else
        std::memcpy(m.into + m.done, piece, size);
    }
    m.done += size;
  }
  void refuse(const message& m, const slot_header& slot, std::uint32_t peer, std::uint32_t channel) {
    memory_.break_group(errc::mismatch,
                        names_.full(memory_, peer) + " sent " + std::to_string(slot.size) + " bytes (" +
                            describe_tag(slot.tag) + ") where rank " + std::to_string(names_.of(rank_)) + " expected " +
                            std::to_string(m.size) + " bytes (" + describe_tag(m.tag) + ") on channel " +
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
      memory_.wake(peer);
    }
    touched_list_.clear();
  }

  void revoke(out_lane& lane, const message& m) {
    if (lane.view.control->consumed.load(std::memory_order_acquire) > m.done) return;
    auto& lent =
        *std::launder(reinterpret_cast<lent_message*>(lane.view.headers[m.done % memory_.shape().slot_count].data));
    std::uint32_t offered = lent_offered;
    if (lent.claim.compare_exchange_strong(offered, lent_revoked, std::memory_order_acq_rel)) return;
    // A thread of this process is in the middle of reading: it needs no more than the time of one copy.
    while (lent.claim.load(std::memory_order_acquire) == lent_in_use) ::sched_yield();
  }

  group_memory& memory_;
  const rank_names& names_;
  std::uint32_t rank_;
  std::uint32_t channels_;
  bool refused_ = false;
  std::vector<out_lane> outs_;  // by peer and channel
  std::vector<in_lane> ins_;
  std::vector<std::uint32_t> active_outs_;  // lanes with something to do
  std::vector<std::uint32_t> active_ins_;
  std::vector<message> messages_;
  std::uint32_t free_messages_ = nobody;
  std::vector<std::uint32_t> open_;    // parts, by owner
  std::vector<std::uint8_t> touched_;  // peers to wake
  std::vector<std::uint32_t> touched_list_;
};

}}}  // namespace topocoll::v0::detail
