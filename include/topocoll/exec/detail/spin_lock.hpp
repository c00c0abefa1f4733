// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lock for a few instructions, where the standard one would make every includer read a header of clocks and threads.
#include <atomic>
#include <sched.h>

namespace topocoll { inline namespace v0 { namespace detail {

class spin_lock {
 public:
  /// Holds a lock as long as it lives.
  class holder {
   public:
    explicit holder(spin_lock& lock) noexcept : flag_(lock.flag_) {
      while (flag_.test_and_set(std::memory_order_acquire)) ::sched_yield();
    }
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() { flag_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& flag_;
  };

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}}}  // namespace topocoll::v0::detail
