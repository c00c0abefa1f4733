// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a function on n ranks of this host, each a child process, and says how each ended.
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/shm.hpp>

namespace topocoll { inline namespace v0 {

/// How one rank ended.
struct rank_exit {
  rank_id rank{};
  std::int32_t pid = 0;
  int exit_code = 0;  ///< 0 if the body succeeded, 1 if it failed; its own if it called exit; 0 if a signal ended it
  int signal = 0;     ///< that ended the process; 0 if it ended by itself
  /// What the body gave back; `peer_lost` if the process ended before that, `timed_out` if it was killed at the
  /// deadline.
  result<std::string> outcome = fail(errc::bug, "this rank was not started");

  [[nodiscard]] bool good() const { return exit_code == 0 && signal == 0 && static_cast<bool>(outcome); }
};

struct local_options {
  group_options group{};
  /// Between telling the ranks to stop (at the deadline, or when this process is told to end) and killing them.
  seconds grace{0.5};
};

namespace detail {
using rank_body = result<std::string> (*)(void* context, shm_transport& transport);
template <class = void>
[[nodiscard]] result<std::vector<rank_exit>> run_rank_processes(std::uint32_t ranks, const local_options& options,
                                                                rank_body body, void* context, deadline until);
}  // namespace detail

/// Forks one process per rank, runs `body(transport)` in each, and returns when all have ended, by rank.
///
/// - `body` gives back `result<std::string>`; the string or the failure is carried to the caller. A body that fails, or
///   throws, aborts the group with its reason, so that the other ranks end soon and know why.
/// - A rank that dies is known to the others at once, with the signal that killed it.
/// - At `until` the group is aborted, then whoever is left is killed, also ranks that are stopped.
/// - If this process dies, the kernel kills the ranks (PR_SET_PDEATHSIG: the thread that called this function counts).
///   SIGINT, SIGTERM and SIGHUP that reach this process while it waits are passed on to the ranks, and delivered here
///   after the ranks have ended.
/// - Children leave by `_exit` after flushing C streams: no destructors of globals, no handlers of `atexit` run in
///   them.
///
/// Precondition: the calling process has one thread; in the child of a threaded process even malloc may be locked for
/// ever.
/// @return one entry per rank, or `invalid_argument` for no ranks, `system` if a process could not be made (none is
///          left then)
template <class Body>
requires requires(Body& body, shm_transport& t) {
  { body(t) } -> std::same_as<result<std::string>>;
}
[[nodiscard]] result<std::vector<rank_exit>> run_local_ranks(std::uint32_t ranks, const local_options& options,
                                                             Body&& body, deadline until) {
  const auto call = [](void* context, shm_transport& t) -> result<std::string> {
    return (*static_cast<std::remove_reference_t<Body>*>(context))(t);
  };
  return detail::run_rank_processes(ranks, options, call, const_cast<void*>(static_cast<const void*>(&body)), until);
}

}}  // namespace topocoll::v0

#include <topocoll/exec/detail/rank_processes.hpp>
