// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives out the part of a group's memory that is for buffers of one rank.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/spin_lock.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Whole pages of one rank's room for buffers: first fit, neighbours joined when they are free again. Buffers keep it, and
/// so the memory, alive.
template <class = void>
class buffer_arena {
 public:
  buffer_arena(std::shared_ptr<group_memory> memory, std::uint32_t rank)
      : memory_(std::move(memory)), rank_(rank), room_(memory_->buffers(rank)) {
    if (!room_.empty()) free_.push_back({0, room_.size()});
  }

  [[nodiscard]] static result<std::shared_ptr<std::byte>> allocate(const std::shared_ptr<buffer_arena>& from,
                                                                   bytes size) {
    if (size.value == 0) return std::shared_ptr<std::byte>();
    if (from->memory_->one_address_space()) {
      auto* ordinary = static_cast<std::byte*>(::operator new(size.value, alignment, std::nothrow));
      if (ordinary == nullptr) return no_memory(size);
      return std::shared_ptr<std::byte>(ordinary, [](std::byte* p) { ::operator delete(p, alignment); });
    }
    auto given = from->take(size);
    if (!given) return std::move(given).error();
    const std::span<std::byte> it = *given;
    return std::shared_ptr<std::byte>(it.data(), [from, it](std::byte*) { from->give_back(it); });
  }

 private:
  struct stretch_of_room {
    std::uint64_t from, length;
  };
  static constexpr std::align_val_t alignment{4096};
  static constexpr std::uint64_t page = 4096;
  // Arrays of this size and more may lie on huge pages, where the system has them for shared memory.
  static constexpr std::uint64_t huge_page = 2U << 20U;

  [[nodiscard]] static failure no_memory(bytes size) {
    return fail(errc::unavailable, "the system has no " + std::to_string(size.value) + " bytes of memory to give");
  }
  [[nodiscard]] result<std::span<std::byte>> take(bytes size) {
    std::span<std::byte> found;
    {
      const spin_lock::holder one_at_a_time(lock_);
      found = find(size.value);
    }
    if (found.empty())
      return fail(errc::unavailable,
                  "rank " + std::to_string(rank_) + " has no room left for a buffer of " + std::to_string(size.value) +
                      " bytes: its group gives each rank " + std::to_string(room_.size()),
                  "give buffers back, or set group_options::buffers higher");
    if (found.size() >= huge_page) (void)::madvise(found.data(), found.size(), MADV_HUGEPAGE);
    // All pages now: otherwise the first use of each costs as much as 10 us, and one that does not fit the life.
    if (::madvise(found.data(), found.size(), populate) == 0) return found;
    const int why = errno;
    if (why == EINVAL && memory_->how() == sharing::forked) {  // before Linux 5.14
      for (std::size_t at = 0; at < found.size(); at += page) found[at] = std::byte{0};
      return found;
    }
    give_back(found);
    if (why == EINVAL)
      return fail(errc::unsupported,
                  "this kernel cannot reserve pages of shared memory in time (MADV_POPULATE_WRITE, Linux 5.14)",
                  "use ordinary memory, which the collectives take as well");
    return fail(
        errc::unavailable,
        "the system has no " + std::to_string(size.value) + " bytes of shared memory to give: " + std::strerror(why),
        memory_->how() == sharing::named ? "free or enlarge /dev/shm" : "");
  }
  [[nodiscard]] std::span<std::byte> find(std::uint64_t size) {
    const std::uint64_t wanted = (size + page - 1) / page * page;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      const auto [from, length] = free_[i];
      // Where huge pages could be, the buffer begins at one.
      const auto address = reinterpret_cast<std::uintptr_t>(room_.data()) + from;
      const std::uint64_t skipped = size < huge_page ? 0 : (huge_page - address % huge_page) % huge_page;
      if (length < skipped || length - skipped < wanted) continue;
      const auto at = free_.begin() + static_cast<std::ptrdiff_t>(i);
      const std::uint64_t rest = length - skipped - wanted;
      if (skipped == 0 && rest == 0) {
        free_.erase(at);
      } else if (skipped == 0) {
        *at = {from + wanted, rest};
      } else {
        *at = {from, skipped};
        if (rest != 0) free_.insert(at + 1, {from + skipped + wanted, rest});
      }
      return room_.subspan(from + skipped, wanted);
    }
    return {};
  }
  void give_back(std::span<std::byte> it) noexcept {
    (void)::madvise(it.data(), it.size(), MADV_REMOVE);  // the pages go back to the system
    const spin_lock::holder one_at_a_time(lock_);
    const auto from = static_cast<std::uint64_t>(it.data() - room_.data());
    std::size_t i = 0;
    while (i < free_.size() && free_[i].from < from) ++i;
    const auto at = free_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool after = at != free_.end() && from + it.size() == at->from;
    const bool before = i != 0 && (at - 1)->from + (at - 1)->length == from;
    if (before && after) {
      (at - 1)->length += it.size() + at->length;
      free_.erase(at);
    } else if (before) {
      (at - 1)->length += it.size();
    } else if (after) {
      *at = {from, it.size() + at->length};
    } else {
      free_.insert(at, {from, it.size()});  // who has no memory left for that has worse to worry about than this buffer
    }
  }

#ifdef MADV_POPULATE_WRITE
  static constexpr int populate = MADV_POPULATE_WRITE;
#else
  static constexpr int populate = 23;  // linux/mman.h of 5.14
#endif

  std::shared_ptr<group_memory> memory_;
  std::uint32_t rank_;
  std::span<std::byte> room_;
  spin_lock lock_;
  std::vector<stretch_of_room> free_;  // in their order; no two touch
};

}}}  // namespace topocoll::v0::detail
