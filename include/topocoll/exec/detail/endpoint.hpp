// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank of a group in shared memory: posts steps, waits for them, and finds out why nothing moves.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/exec/detail/buffer_arena.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/host_calls.hpp>
#include <topocoll/exec/detail/lanes.hpp>
#include <topocoll/exec/detail/patience.hpp>
#include <topocoll/exec/detail/rank_names.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Implements `Transport` on a `group_memory`. Not movable: others hold its address while it is waited on.
class endpoint {
 public:
  /// Precondition: rank `rank` of `memory` was attached for this endpoint.
  endpoint(std::shared_ptr<group_memory> memory, std::uint32_t rank)
      : memory_(std::move(memory)),
        rank_(rank),
        ranks_(memory_->shape().ranks),
        channels_(memory_->shape().channels),
        patience_(*memory_, rank, names_),
        lanes_(*memory_, rank, names_),
        calls_(*memory_, rank, patience_) {}
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;
  ~endpoint() {
    lanes_.drop();
    memory_->leave(rank_);
  }

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t channels() const { return channels_; }
  [[nodiscard]] group_memory& memory() const { return *memory_; }
  template <class = void>
  [[nodiscard]] result<std::shared_ptr<std::byte>> allocate(bytes size) {
    if (!buffers_) buffers_ = std::make_shared<buffer_arena<>>(memory_, rank_);
    return buffer_arena<>::allocate(buffers_, size);
  }
  [[nodiscard]] host_calls<>& calls() { return calls_; }

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
    patience_.note_core();
    if (free_tickets_.empty() && tickets_.size() > 0xffffU)
      return fail(errc::unavailable, "rank " + std::to_string(names_.of(rank_)) +
                                         " has 65536 steps in flight, which is all that have a name");
    const std::uint32_t t = take_ticket(static_cast<std::uint32_t>(out.size() + in.size()));
    for (const incoming& i : in) lanes_.receive(t, i);
    for (const outgoing& o : out) lanes_.send(t, o);
    if (!out.empty()) (void)lanes_.move_sends();
    return name_of_ticket(t);
  }

  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (pending.empty()) return fail(errc::invalid_argument, "rank " + std::to_string(rank_) + " waits for no ticket");
    for (const ticket k : pending)
      if (!known(k)) return unknown(k);
    if (const auto done = finished(pending)) return give_back(pending, *done);
    wait_state w = wait_state::up_to(until);
    const auto missing = [&] { return lanes_.missing(); };
    const auto look = [&] { return lanes_.move() || lanes_.refused(); };
    for (;;) {
      if (memory_->broken()) return patience_.stop(w), broken();
      const bool moved = lanes_.move();
      if (lanes_.refused()) return patience_.stop(w), broken();
      if (const auto done = finished(pending)) {
        patience_.stop(w);
        return give_back(pending, *done);
      }
      if (moved)
        w.moved();
      else if (!patience_.pass(w, missing, look))
        return patience_.stop(w), broken();
    }
  }

  /// The same without waiting, see `PollableTransport`.
  [[nodiscard]] result<polled> poll_any(std::span<const ticket> pending) {
    for (const ticket k : pending)
      if (!known(k)) return unknown(k);
    if (const auto done = finished(pending)) return given_back(pending, *done);
    if (memory_->broken()) return broken();
    const bool moved = lanes_.move();
    if (lanes_.refused()) return broken();
    if (const auto done = finished(pending)) return given_back(pending, *done);
    if (moved) {
      polling_.moved();
    } else {
      const auto awaited = [&] { return lanes_.missing(); };
      const auto look = [&] { return lanes_.move() || lanes_.refused(); };
      if (!patience_.glance(polling_, awaited, look, beyond_.empty() ? nobody : beyond_.front())) return broken();
    }
    return polled{std::nullopt, moved};
  }
  [[nodiscard]] std::vector<std::uint32_t> missing() const { return lanes_.missing(); }
  void also_waits_for(std::span<const rank_id> others) {
    beyond_.clear();
    for (const rank_id r : others) beyond_.push_back(r.value);
  }
  void call_ranks(std::vector<rank_id> numbers) { names_.call(std::move(numbers)); }
  [[nodiscard]] failure give_up(seconds waited) {
    std::vector<std::uint32_t> peers = lanes_.missing();
    peers.insert(peers.end(), beyond_.begin(), beyond_.end());
    seq::sort_unique(peers);
    patience_.give_up(peers, waited);
    return broken();
  }
  [[nodiscard]] failure end(const failure& cause) {
    memory_->break_group(cause.code, cause.what, cause.next);
    return broken();
  }

  void abort(const std::string& why) noexcept { abort_group(*memory_, names_.of(rank_), why); }

 private:
  struct ticket_state {
    std::uint16_t generation = 0;
    bool given = false;
  };
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
  [[nodiscard]] static failure unknown(ticket k) {
    return fail(errc::invalid_argument,
                "ticket " + std::to_string(k.value) + " was never given out, or was given back");
  }
  [[nodiscard]] std::optional<std::size_t> finished(std::span<const ticket> pending) const {
    for (std::size_t i = 0; i < pending.size(); ++i)
      if (lanes_.finished(pending[i].value & 0xffffU)) return i;
    return std::nullopt;
  }
  std::size_t give_back(std::span<const ticket> pending, std::size_t i) {
    const std::uint32_t t = pending[i].value & 0xffffU;
    tickets_[t].given = false;
    ++tickets_[t].generation;
    free_tickets_.push_back(t);
    return i;
  }
  /// The same at the end of a row of looks.
  [[nodiscard]] polled given_back(std::span<const ticket> pending, std::size_t i) {
    patience_.stop(polling_);
    polling_ = {};
    (void)give_back(pending, i);
    return {i, true};
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
  rank_names names_;
  patience patience_;
  lanes lanes_;
  host_calls<> calls_;
  std::shared_ptr<buffer_arena<>> buffers_;  // made when first needed
  std::vector<ticket_state> tickets_;
  std::vector<std::uint32_t> free_tickets_;
  wait_state polling_;                 // since `poll_any` found something last
  std::vector<std::uint32_t> beyond_;  // ranks that are waited for by other means
};

}}}  // namespace topocoll::v0::detail
