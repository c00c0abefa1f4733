// SPDX-License-Identifier: Apache-2.0
#pragma once
// A page that the processes of one measurement share: they start together by it, and learn the slowest of them.
//
// Every library is timed with this one barrier, so that none gains or loses by how evenly its own lets ranks go.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace bench {

/// Seconds of a clock that never goes back.
inline double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Ends this program with a sentence; the launcher, or the parent, ends the other ranks.
[[noreturn]] inline void give_up(const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);
}

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `ready()`. Spins, then lets others run: ranks may be more than cores.
template <class Ready>
void wait_until(Ready&& ready, const char* whom) {
  constexpr double longest = 120;  // seconds; far beyond any call that is measured here
  for (int spins = 0; spins < 2000; ++spins) {
    if (ready()) return;
    pause_core();
  }
  const double end = now() + longest;
  for (std::uint64_t turns = 1; !ready(); ++turns) {
    sched_yield();
    if (turns % 256 == 0 && now() > end) give_up(std::string(whom) + " did not come within 120 s");
  }
}

/// Stays on one core if there is one for each rank. A launcher that has chosen a core already is left alone.
inline void pin(std::uint32_t rank, std::uint32_t ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < static_cast<int>(ranks)) return;
  std::uint32_t seen = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(core, &mine);
    (void)sched_setaffinity(0, sizeof mine, &mine);  // unpinned ranks are measured as well, only less evenly
    return;
  }
}

/// The processes of one measurement.
class meeting {
 public:
  /// The slowest rank's part of a sample, and the time that all have spent so far.
  struct slowest {
    double took = 0;
    double since = 0;
  };

  /// To be made before fork(); every process then says who it is by `take`.
  static meeting before_fork(std::uint32_t ranks) {
    void* page = mmap(nullptr, size_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) give_up("no shared memory for " + std::to_string(ranks) + " ranks");
    return meeting(page, ranks);
  }
  /// For processes that do not descend from one another: all open the file of this name, which is zeroes at first.
  static meeting at(const std::string& name, std::uint32_t rank, std::uint32_t ranks) {
    const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size_for(ranks))) != 0)
      give_up("the file " + name + " cannot be made; is there room in that folder?");
    void* page = mmap(nullptr, size_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) give_up("the file " + name + " cannot be mapped");
    meeting m(page, ranks);
    m.take(rank);
    return m;
  }

  void take(std::uint32_t rank) { rank_ = rank; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }

  /// Returns when all are here.
  void gather() {
    ++number_;
    seats_[rank_].arrived.store(number_, std::memory_order_release);
    for (std::uint32_t r = 0; r < ranks_; ++r)
      wait_until([&] { return seats_[r].arrived.load(std::memory_order_acquire) >= number_; }, "a rank");
  }
  /// Equal on all ranks, so that all decide alike.
  [[nodiscard]] slowest of_all(double took, double since) {
    seats_[rank_].took = took;
    seats_[rank_].since = since;
    gather();
    slowest s;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      s.took = std::max(s.took, seats_[r].took);
      s.since = std::max(s.since, seats_[r].since);
    }
    gather();
    return s;
  }

 private:
  struct alignas(128) seat {  // two lines: processors fetch the neighbour of a line along with it
    std::atomic<std::uint64_t> arrived{0};
    double took = 0;
    double since = 0;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

  static std::size_t size_for(std::uint32_t ranks) { return sizeof(seat) * ranks; }
  meeting(void* page, std::uint32_t ranks) : seats_(static_cast<seat*>(page)), ranks_(ranks) {}

  seat* seats_;
  std::uint32_t ranks_;
  std::uint32_t rank_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace bench
