// SPDX-License-Identifier: Apache-2.0
#pragma once
// What has arrived at a rank, and what it waits for: brings both together, in the order of each channel.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/detail/cells.hpp>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/detail/worker.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// Receives of one rank.
class ucx_inbox {
 public:
  /// A channel on which the sender may be told that there is room again.
  struct room {
    std::uint32_t peer = 0;
    std::uint32_t channel = 0;
    std::uint64_t taken = 0;
  };

  ucx_inbox(const ucx_group& group, ucx_worker& worker, open_steps& steps)
      : group_(group), worker_(worker), steps_(steps), peers_(group.ranks()) {}
  ucx_inbox(const ucx_inbox&) = delete;
  ucx_inbox& operator=(const ucx_inbox&) = delete;
  ~ucx_inbox() { forget(); }

  /// Precondition: rank and channel exist.
  void receive(std::uint32_t step, const incoming& in) {
    lane& l = lane_of(in.from.value, in.channel);
    if (l.posted.empty()) ++peers_[in.from.value].waiting;
    const combine with = in.with.value_or(combine{});
    posted_.append(l.posted,
                   posted_.take({step, in.tag, in.into.data(), in.into.size(), 0, with, in.with.has_value()}));
    take_kept(l);
  }

  /// A piece has come. True if UCX must keep its memory, which it does only where `may_be_held`.
  [[nodiscard]] bool arrived(const ucx_head& head, std::byte* data, std::size_t size, bool may_be_held) {
    if (closed_ || trouble_) return false;
    lane& l = lane_of(head.from, head.channel);
    if (head.sequence == l.next && !l.posted.empty()) {
      take(l, head, data, size);
      take_kept(l);
      return false;
    }
    kept_piece k{head, data, size, may_be_held && size != 0, nullptr};
    if (!k.held && size != 0) {
      k.own.reset(new (std::nothrow) std::byte[size]);
      if (!k.own) {
        trouble_ = fail(errc::unavailable,
                        "rank " + std::to_string(group_.rank) + " has no memory for " + std::to_string(size) +
                            " bytes that " + group_.name_of(head.from) + " sent ahead",
                        "give ucx_options a smaller window");
        return false;
      }
      std::memcpy(k.own.get(), data, size);
      k.data = k.own.get();
    }
    const bool held = k.held;
    kept_.insert(l.kept, kept_.take(std::move(k)),
                 [](const kept_piece& a, const kept_piece& b) { return a.head.sequence < b.head.sequence; });
    return held;
  }

  [[nodiscard]] bool waits_for(std::uint32_t peer) const { return peers_[peer].waiting != 0; }
  /// Why the group cannot go on, if so: found here, not yet told.
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  void complain(failure why) {
    if (!trouble_) trouble_ = std::move(why);
  }
  /// Channels to be told of; the caller clears it.
  [[nodiscard]] std::vector<room>& rooms() { return rooms_; }

  /// Lists the channels of which much was taken unsaid: for a moment in which the rank may be about to do something
  /// else for long, and a sender to leave.
  void list_rooms() {
    for (const room& r : listed_) {
      lane& l = peers_[r.peer].lanes[r.channel];
      l.listed = false;
      if (l.taken - l.told > ucx_unsaid) tell(l, r.peer, r.channel);
    }
    listed_.clear();
  }

  /// Forgets what was posted, for good: nothing is written into it any more.
  void drop() {
    for (sender& p : peers_) {
      for (lane& l : p.lanes) posted_.clear(l.posted);
      p.waiting = 0;
    }
    closed_ = true;
  }
  /// Gives back what was kept.
  void forget() {
    for (sender& p : peers_)
      for (lane& l : p.lanes)
        while (!l.kept.empty()) {
          const std::uint32_t at = kept_.pop(l.kept);
          release(kept_[at]);
          kept_.release(at);
        }
  }

 private:
  struct posted_receive {
    std::uint32_t step;
    std::uint64_t tag;
    std::byte* into;
    std::uint64_t size;
    std::uint64_t done;
    combine with;
    bool combines;
  };
  struct kept_piece {
    ucx_head head;
    std::byte* data;
    std::size_t size;
    bool held;  // the memory is UCX's
    std::unique_ptr<std::byte[]> own;
  };
  struct lane {
    std::uint64_t next = 0;   // sequence number of the piece whose turn it is
    std::uint64_t taken = 0;  // cost of what was taken
    std::uint64_t told = 0;   // of that, what the sender was told of
    bool listed = false;
    cell_queue posted;
    cell_queue kept;  // by sequence number
  };
  struct sender {
    std::vector<lane> lanes;    // as many as were used
    std::uint32_t waiting = 0;  // of them, those on which something is awaited
  };

  lane& lane_of(std::uint32_t from, std::uint32_t channel) {
    sender& p = peers_[from];
    if (channel >= p.lanes.size()) p.lanes.resize(channel + 1);
    return p.lanes[channel];
  }
  void release(kept_piece& k) {
    if (k.held) ucp_am_data_release(worker_.handle(), k.data);
    k.own.reset();
  }

  void tell(lane& l, std::uint32_t from, std::uint32_t channel) {
    l.told = l.taken;
    rooms_.push_back({from, channel, l.taken});
  }
  void take_kept(lane& l) {
    while (!trouble_ && !l.posted.empty() && !l.kept.empty() && kept_[l.kept.first].head.sequence == l.next) {
      const std::uint32_t at = l.kept.first;
      take(l, kept_[at].head, kept_[at].data, kept_[at].size);
      if (trouble_) return;
      release(kept_[kept_.pop(l.kept)]);
      kept_.release(at);
    }
  }
  /// Precondition: it is the turn of this piece, and something is awaited.
  void take(lane& l, const ucx_head& head, const std::byte* data, std::size_t size) {
    posted_receive& m = posted_[l.posted.first];
    if (m.done == 0 && (head.tag != m.tag || head.size != m.size)) return refuse(m, head);
    if (head.offset != m.done || size > m.size - m.done) return torn(head);
    if (size != 0) {
      if (m.combines) {
        const std::uint64_t width = size_of(m.with.type).value;
        if (size % width != 0) return torn(head);
        reduce_elements(m.with.type, m.with.op, m.into + m.done, data, m.with.other + m.done, size / width);
      } else {
        std::memcpy(m.into + m.done, data, size);
      }
    }
    m.done += size;
    ++l.next;
    l.taken += size + ucx_piece_cost;
    if (l.taken - l.told >= group_.terms.window / 2) {
      tell(l, head.from, head.channel);
    } else if (!l.listed && l.taken - l.told > ucx_unsaid) {
      l.listed = true;
      listed_.push_back({head.from, head.channel, 0});
    }
    if (m.done != m.size) return;
    steps_.message_done(m.step);
    posted_.release(posted_.pop(l.posted));
    if (l.posted.empty()) --peers_[head.from].waiting;
  }
  void refuse(const posted_receive& m, const ucx_head& head) {
    using topocoll::detail::describe_tag;
    trouble_ =
        fail(errc::mismatch,
             group_.name_of(head.from) + " sent " + std::to_string(head.size) + " bytes (" + describe_tag(head.tag) +
                 ") where rank " + std::to_string(group_.rank) + " expected " + std::to_string(m.size) + " bytes (" +
                 describe_tag(m.tag) + ") on channel " + std::to_string(head.channel),
             "make sure that all ranks make the same calls in the same order");
  }
  void torn(const ucx_head& head) {
    trouble_ = fail(errc::bug, group_.name_of(head.from) + " sent a piece that does not follow the one before it");
  }

  const ucx_group& group_;
  ucx_worker& worker_;
  open_steps& steps_;
  std::vector<sender> peers_;
  cell_pool<posted_receive> posted_;
  cell_pool<kept_piece> kept_;
  std::vector<room> rooms_;
  std::vector<room> listed_;  // where much was taken unsaid
  std::optional<failure> trouble_;
  bool closed_ = false;
};

}}}  // namespace topocoll::v0::backend::detail
