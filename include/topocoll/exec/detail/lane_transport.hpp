// SPDX-License-Identifier: Apache-2.0
#pragma once
// What inproc_transport and shm_transport share: everything but how the memory comes about.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/endpoint.hpp>
#include <topocoll/exec/detail/regroup.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// `Transport` over memory that all ranks see. A moved-from object may only be destroyed or assigned to.
class lane_transport {
 public:
  [[nodiscard]] rank_id rank() const { return {end_->rank()}; }
  [[nodiscard]] std::uint32_t size() const { return end_->ranks(); }
  [[nodiscard]] std::uint32_t channels() const { return end_->channels(); }
  /// Memory that the whole group may come to use, as reserved; pages are only taken when first used, except in groups
  /// joined by name. See `group_options`.
  [[nodiscard]] bytes memory() const { return end_->memory().size(); }
  /// "rank 2 (pid 4711 on host node17)".
  [[nodiscard]] std::string name_of(rank_id r) const { return end_->memory().name_of(r.value); }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    return end_->post(out, in);
  }
  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    return end_->wait_any(pending, until);
  }
  void abort(const std::string& why) noexcept { end_->abort(why); }

  // See `PollableTransport`.
  [[nodiscard]] result<polled> poll_any(std::span<const ticket> pending) { return end_->poll_any(pending); }
  [[nodiscard]] std::vector<rank_id> missing() const {
    std::vector<rank_id> ranks;
    for (const std::uint32_t r : end_->missing()) ranks.push_back({r});
    return ranks;
  }
  void also_waits_for(std::span<const rank_id> others) { end_->also_waits_for(others); }
  [[nodiscard]] failure give_up(seconds waited) { return end_->give_up(waited); }
  [[nodiscard]] failure end(const failure& cause) { return end_->end(cause); }
  /// For `mixed_transport`: what this rank's sentences from `post` and `poll_any` call the ranks of the group, by rank.
  void call_ranks(std::vector<rank_id> numbers) { end_->call_ranks(std::move(numbers)); }

  /// Memory that all ranks of the group see, aligned to a page; given back with the last copy of the pointer, from any
  /// thread. Collectives on it need no copies between processes. (Threads see all memory anyway: there it is ordinary.)
  /// @return `unavailable` if the host has no more, or the group no more room for buffers
  /// Cost: the pages come with the call, so make few and keep them.
  template <class = void>
  [[nodiscard]] result<std::shared_ptr<std::byte>> allocate(bytes size) {
    return end_->allocate(size);
  }
  /// Most memory that `allocate` can give to this rank.
  [[nodiscard]] bytes buffers() const { return {end_->memory().shape().buffer_bytes}; }
  /// For `communicator`: collectives in memory that all ranks see.
  [[nodiscard]] host_calls<>& direct() { return end_->calls(); }

 protected:
  /// This rank's end in a group made from this one. Its messages have 8 MiB for all.
  template <class = void>
  [[nodiscard]] result<std::unique_ptr<endpoint>> end_in_part(std::uint64_t number, std::uint32_t place,
                                                              std::uint32_t ranks, deadline until) const {
    const group_wishes wishes{ranks, channels(), {8U << 20U}, {end_->memory().shape().buffer_bytes}};
    auto memory = regroup(end_->memory(), number, place, wishes, until);
    if (!memory) return std::move(memory).error();
    return std::make_unique<endpoint>(*std::move(memory), place);
  }
  template <class = void>
  [[nodiscard]] result<std::unique_ptr<endpoint>> end_among_survivors(seconds patience) const {
    end_->memory().break_group(errc::aborted, "rank " + std::to_string(end_->rank()) + " shrinks the group", {});
    auto members = agree_on_survivors(end_->memory(), end_->rank(), patience);
    if (!members) return std::move(members).error();
    const auto place =
        static_cast<std::uint32_t>(std::lower_bound(members->begin(), members->end(), end_->rank()) - members->begin());
    return end_in_part(UINT64_MAX, place, static_cast<std::uint32_t>(members->size()),
                       deadline::in(patience + seconds{5}));
  }
  explicit lane_transport(std::unique_ptr<endpoint> end) : end_(std::move(end)) {}

 private:
  std::unique_ptr<endpoint> end_;
};

}  // namespace detail

/// How much a group of ranks on one host may use.
struct group_options {
  std::uint32_t channels = 8;  ///< lanes per ordered pair of ranks; programs need one per slice
  /// Most memory for messages under way, in all; 0 stands for 256 MiB where pages are taken as they are used (threads
  /// and forked processes) and for 32 MiB where they are taken at once (groups joined by name, so that they fit the 64
  /// MiB that containers have in /dev/shm). Each of the ranks * (ranks-1) * channels lanes gets 8 slots of equal size,
  /// at least 256 bytes and at most 32 KiB each, and 576 bytes besides, whatever this says. To this come, per rank, a
  /// board of 1 MiB and a staging area of 1 MiB; in groups joined by name, 8 MiB each of all ranks together, as long as
  /// that leaves a rank 64 KiB of both.
  bytes memory{};
  /// Most memory that `allocate` can give to each rank; only addresses are taken beforehand. 0: four times the rank's
  /// part of the host's memory, not more than all of it.
  bytes buffers{};
};

}}  // namespace topocoll::v0
