// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where threads of one process wait for each other's news.
#include <ctime>
#include <pthread.h>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A lock and a wait on it with a deadline. POSIX threads: <condition_variable> costs a compiler 18,000 lines.
class waiting_room {
 public:
  waiting_room() noexcept {
    pthread_condattr_t monotonic;
    ::pthread_condattr_init(&monotonic);
    ::pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);  // that of `deadline`
    ::pthread_cond_init(&news_, &monotonic);
    ::pthread_condattr_destroy(&monotonic);
  }
  waiting_room(const waiting_room&) = delete;
  waiting_room& operator=(const waiting_room&) = delete;
  ~waiting_room() {
    ::pthread_cond_destroy(&news_);
    ::pthread_mutex_destroy(&mutex_);
  }

  /// Whoever has one is alone in the room, but while it waits.
  class visit {
   public:
    explicit visit(waiting_room& room) noexcept : room_(room) { ::pthread_mutex_lock(&room.mutex_); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { ::pthread_mutex_unlock(&room_.mutex_); }
    /// Until there is news, or the deadline; or for no reason, at the latest after an hour.
    void wait(deadline until) noexcept {
      const seconds at = sooner(until, deadline::in(seconds{3600})).at;
      timespec t{};
      t.tv_sec = static_cast<time_t>(at.value);
      t.tv_nsec = static_cast<long>((at.value - static_cast<double>(t.tv_sec)) * 1e9);
      ::pthread_cond_timedwait(&room_.news_, &room_.mutex_, &t);
    }

   private:
    waiting_room& room_;
  };
  void tell_news() noexcept { ::pthread_cond_broadcast(&news_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t news_{};
};

}}}  // namespace topocoll::v0::detail
