// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport whose ranks are processes of one host, over POSIX shared memory.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/lane_transport.hpp>
#include <topocoll/exec/detail/named_memory.hpp>
#include <topocoll/exec/detail/remote_reads.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// One rank of a group of processes.
///
/// Collectives that no plan was adopted for work straight on the buffers, where all of these come from `allocate`. Else
/// ranks read private memory of one another (process_vm_readv; under Yama's ptrace_scope 1, attaching permits that to
/// processes of the same user), or, if the system refuses, copy through shared memory.
/// Messages go through slots in shared memory: the sender copies in, the receiver copies or combines straight out of
/// the slot. A rank that waits spins for up to 2 ms if it has its core to itself, yields if another rank runs on the
/// same core, then sleeps until woken. A peer that dies is noticed within 0.2 s by whoever waits for it, by its process
/// id and start time, and all ranks then fail with `peer_lost`; one that is silent is named when the deadline passes,
/// with what its process is doing. Ranks in different pid namespaces cannot see each other's death, only their silence.
class shm_transport : public detail::lane_transport {
 public:
  /// One rank's part in a new group of `ranks` ranks of this one, for `split`. Its members give the same number, which was not
  /// used before for a group made from this one, and each its own place.
  /// @return `timed_out` naming who did not come; for processes also what `join_shm` gives
  template <class = void>
  [[nodiscard]] result<shm_transport> part(std::uint64_t number, std::uint32_t place, std::uint32_t ranks,
                                           deadline until) const {
    auto end = end_in_part(number, place, ranks, until);
    if (!end) return std::move(end).error();
    return shm_transport(*std::move(end));
  }
  /// The group without those of its ranks that are gone, for `shrink`. Breaks this one, if it is not broken yet.
  template <class = void>
  [[nodiscard]] result<shm_transport> survivors(seconds patience) const {
    auto end = end_among_survivors(patience);
    if (!end) return std::move(end).error();
    return shm_transport(*std::move(end));
  }

 private:
  explicit shm_transport(std::unique_ptr<detail::endpoint> end) : lane_transport(std::move(end)) {}
  friend class shm_group;
  friend result<shm_transport> join_shm(std::string_view name, rank_id rank, std::uint32_t ranks, deadline until,
                                        const group_options& options);
};
static_assert(PollableTransport<shm_transport>);

/// Shared memory of a group whose ranks are this process and its children: made before fork(), gone with the last of
/// them. It has no name, so nothing is ever left behind. A copy is another handle of the same group.
class shm_group {
 public:
  /// @return `invalid_argument` for no ranks or no channels, `system` if there is no memory
  [[nodiscard]] static result<shm_group> create(std::uint32_t ranks, const group_options& options = {}) {
    auto shape =
        detail::group_shape::of({ranks, options.channels, options.memory, options.buffers}, detail::sharing::forked);
    if (!shape) return std::move(shape).error();
    auto memory = detail::make_group_memory(*shape, detail::sharing::forked);
    if (!memory) return std::move(memory).error();
    return shm_group(*std::move(memory));
  }

  [[nodiscard]] std::uint32_t size() const { return memory_->shape().ranks; }

  /// Takes the place of a rank: to be called in the process that is to be this rank. Two threads of one process may be
  /// two ranks. @return `invalid_argument` for a rank that is not, `mismatch` for a place that is taken
  [[nodiscard]] result<shm_transport> attach(rank_id rank) const {
    if (rank.value >= size())
      return fail(errc::invalid_argument,
                  "there is no rank " + std::to_string(rank.value) + " in a group of " + std::to_string(size()));
    if (!memory_->attach(rank.value, detail::this_process(), detail::host_name()))
      return fail(errc::mismatch, "the place of " + memory_->name_of(rank.value) + " is taken");
    detail::allow_reads();
    return shm_transport(std::make_unique<detail::endpoint>(memory_, rank.value));
  }
  /// For the process that starts the ranks: says that the process `pid` will be `rank`, so that its death has a name
  /// even if it comes before `attach`.
  void expect(rank_id rank, std::int32_t pid) const {
    memory_->record(rank.value).pid.store(pid, std::memory_order_release);
  }
  /// For the process that starts the ranks: says that a rank is dead. Whoever waits for it fails at once. `fate`
  /// follows the rank's name in their sentence: "was killed by signal 9 (Killed)".
  void mark_dead(rank_id rank, std::string_view fate) const { memory_->mark_dead(rank.value, fate); }
  /// Makes every wait of every rank fail with `aborted`, for this reason. From any process, at any time.
  void abort(std::string_view why) const noexcept { memory_->break_group(errc::aborted, why, {}); }

 private:
  explicit shm_group(std::shared_ptr<detail::group_memory> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<detail::group_memory> memory_;
};

/// Joins processes that do not descend from one another, by a name that they share: the job's id, for example.
///
/// Rank 0 makes the segment `/dev/shm/topocoll-<uid>-<name>`, all pages of it, and removes the name as soon as all
/// ranks have attached. A segment left behind by a rank 0 that died is recognised (the kernel dropped its lock) and
/// replaced. Returns when all ranks are there.
/// @param name  letters, digits, `.`, `_` and `-`, at most 100
/// @return `timed_out` naming the ranks that did not come, `mismatch` if ranks disagree on the number of ranks or two
///          claim one place, `unavailable` if /dev/shm has no room or the name is in use by a living group, `peer_lost`
///          if rank 0 died
[[nodiscard]] inline result<shm_transport> join_shm(std::string_view name, rank_id rank, std::uint32_t ranks,
                                                    deadline until, const group_options& options = {}) {
  auto memory =
      detail::join_named_memory(name, rank.value, {ranks, options.channels, options.memory, options.buffers}, until);
  if (!memory) return std::move(memory).error();
  detail::allow_reads();
  return shm_transport(std::make_unique<detail::endpoint>(*std::move(memory), rank.value));
}

}}  // namespace topocoll::v0
