// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading private memory of other ranks of the host, where the system allows it.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/process.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Lets the ranks of a group read memory of this process. Yama (`kernel.yama.ptrace_scope` 1) asks for it; without Yama it
/// does nothing. What else could read: processes of the same user, which may so by default.
template <class = void>
void allow_reads() noexcept {
#ifdef PR_SET_PTRACER
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

/// Copies memory of rank `r`, at its address `from`. Reads only: whatever happens to this rank, that one's memory stays as
/// it is. False if the system refuses, or the process is gone; `errno` says why.
template <class = void>
[[nodiscard]] bool read_from(const group_memory& memory, std::uint32_t r, std::byte* into, std::uint64_t from,
                             std::uint64_t size) noexcept {
  const pid_t pid = memory.identity(r).pid;
  // The system reads at most 2 GiB at a time, and may read less.
  for (std::uint64_t done = 0; done < size;) {
    iovec here{into + done, static_cast<std::size_t>(std::min<std::uint64_t>(size - done, 1U << 30U))};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
    iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(from + done)), here.iov_len};
    const ssize_t n = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    done += static_cast<std::uint64_t>(n);
  }
  return true;
}

/// Whether this rank can read memory of all others: tried on the first word of the memory that they share, at the address
/// where each has it. Precondition: all have attached.
template <class = void>
[[nodiscard]] bool can_read_all(const group_memory& memory, std::uint32_t me) noexcept {
  const process_identity mine = memory.identity(me);
  for (std::uint32_t r = 0; r < memory.shape().ranks; ++r) {
    if (r == me) continue;
    if (memory.identity(r).namespace_id != mine.namespace_id) return false;  // its number means another process here
    std::uint64_t word = 0;
    const std::uint64_t at = memory.record(r).mapped_at.load(std::memory_order_acquire);
    if (!read_from(memory, r, reinterpret_cast<std::byte*>(&word), at, sizeof word) ||
        word != group_memory::layout_mark)
      return false;
  }
  return true;
}

}}}  // namespace topocoll::v0::detail
