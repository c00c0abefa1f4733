// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory bandwidth of one core, of all cores, of one NUMA domain: copy, read and reduce beyond the last-level cache.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <pthread.h>
#include <sched.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/probe/cores.hpp>
#include <topocoll/probe/stats.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What is done with the memory. Rates count the bytes of one buffer, as a collective counts its payload.
enum class memory_kernel : std::uint8_t {
  copy,   ///< b := a, by memcpy: 1 read and 1 write per byte (2 reads without streaming stores)
  read,   ///< sum of a: 1 read per byte
  reduce  ///< b := b + a, float, by the kernel of the executor: 2 reads and 1 write per byte
};

[[nodiscard]] constexpr std::string_view to_string(memory_kernel k) {
  constexpr std::string_view words[] = {"copy", "read", "reduce"};
  return words[static_cast<std::size_t>(k)];
}

struct memory_options {
  /// Of one core; a kernel with two buffers uses twice that. A pass goes over a small one as often as makes 8 MiB.
  bytes buffer = 64_MiB;
  std::size_t repeats = 9;  ///< undisturbed passes over the buffers that are wanted; the median is reported
  std::size_t most = 30;    ///< passes after which it stops looking for undisturbed ones
  std::size_t warm_up = 2;
};

/// What one kernel reached on a set of cores that ran at the same time.
struct memory_sample {
  memory_kernel kernel = memory_kernel::copy;
  std::vector<std::uint32_t> cores;
  bytes buffer{};
  summary<bytes_per_second> together;            ///< all cores: bytes of all over the time from first start to last end
  std::vector<summary<bytes_per_second>> alone;  ///< each core by its own clock, in the order of `cores`
  std::size_t passes = 0;                        ///< timed passes, disturbed ones included
  std::size_t disturbed = 0;  ///< passes in which a core was taken away; left out when 3 others remain
  double core_share = 1;      ///< CPU time over wall time of all passes: 0.5 means that others used the cores too
};

/// The buffer per core that makes `threads` cores together exceed the last-level caches `factor` times.
///
/// Two buffers of it are in use per core. At least 16 MiB; empty when that would need more than a quarter of the memory that
/// is available, so that the answer is "not measured" and not a cache's bandwidth. An unknown cache is taken as 32 MiB a core.
template <class = void>
[[nodiscard]] std::optional<bytes> streaming_buffer(const core_layout& layout, std::size_t threads, double factor = 4) {
  if (threads == 0) return std::nullopt;
  const std::size_t all = std::max<std::size_t>(layout.cores.size(), 1);
  const double per_core_guess = 32.0 * 1024 * 1024;
  double cache = threads == 1 ? static_cast<double>(layout.last_level_cache.value_or(bytes{32U << 20U}).value)
                              : (layout.all_last_level_caches ? static_cast<double>(layout.all_last_level_caches->value)
                                                              : per_core_guess * static_cast<double>(all));
  const double each = std::max(factor * cache / 2 / static_cast<double>(threads), 16.0 * 1024 * 1024);
  const auto rounded = static_cast<std::uint64_t>(each / (2U << 20U) + 0.999) * (2U << 20U);  // whole huge pages
  if (layout.memory_available && 2 * rounded * threads > layout.memory_available->value / 4) return std::nullopt;
  return bytes{rounded};
}

/// Runs all three kernels on `cores` at once, one pinned thread per core, each on memory that it touched first itself.
///
/// @param cores  numbers of cores that this process may use, each once
/// @return one sample per kernel in the order copy, read, reduce; `invalid_argument` for no cores or an empty buffer, `system`
///         when a thread cannot be pinned or memory cannot be had, `timed_out` when `until` passed before every kernel had its
///         three samples. Starts and joins its own threads. Cost: 3 * (warm_up + repeats) passes over the buffers on a quiet
///         machine, up to 3 * (warm_up + most) on a busy one.
///
/// A pass is disturbed when a thread had its core for less than 95 % of the time, or started late by more than 10 % of the
/// pass: other programs then share the figure.
template <class = void>
[[nodiscard]] result<std::vector<memory_sample>> measure_memory(std::span<const std::uint32_t> cores,
                                                                const memory_options& options, deadline until);

namespace detail {

/// Anonymous memory in huge pages where the system gives them; a first touch of 4 KiB pages costs more than the test.
class huge_buffer {
 public:
  huge_buffer() = default;
  explicit huge_buffer(std::size_t size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    madvise(at, size, MADV_HUGEPAGE);  // a hint: without it the test is slower to start, not wrong
    at_ = at;
    size_ = size;
  }
  huge_buffer(const huge_buffer&) = delete;
  huge_buffer& operator=(const huge_buffer&) = delete;
  ~huge_buffer() {
    if (at_ != nullptr) munmap(at_, size_);
  }
  [[nodiscard]] float* floats() const { return static_cast<float*>(at_); }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(at_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

/// Everybody waits for everybody, but not past a deadline. Yields: cores may be shared with other programs.
class timed_barrier {
 public:
  timed_barrier(std::uint32_t parties, deadline until) : parties_(parties), until_(until) {}

  /// False when the deadline passed or someone gave up; then every later call is false too.
  [[nodiscard]] bool arrive() {
    const std::uint32_t phase = phase_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
      if (until_.passed()) broken_.store(true, std::memory_order_release);
      waiting_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return !broken_.load(std::memory_order_acquire);
    }
    for (std::uint32_t spin = 0; phase_.load(std::memory_order_acquire) == phase; ++spin) {
      if (broken_.load(std::memory_order_acquire)) return false;
      if (spin > 200) sched_yield();
      if ((spin & 1023U) == 1023U && until_.passed()) broken_.store(true, std::memory_order_release);
    }
    return !broken_.load(std::memory_order_acquire);
  }
  void give_up() { broken_.store(true, std::memory_order_release); }

 private:
  std::uint32_t parties_;
  deadline until_;
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<bool> broken_{false};
};

/// Sum of 64-bit words in eight strands, so that the additions do not wait for each other.
template <class = void>
[[nodiscard]] std::uint64_t sum_words(const std::uint64_t* from, std::size_t n) {
  std::uint64_t s[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) s[k] += from[i + k];
  for (; i < n; ++i) s[0] += from[i];
  return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

template <class = void>
[[nodiscard]] seconds thread_cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return {static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9};
}

/// Binds the calling thread to one core; the errno of the system call, 0 for success.
template <class = void>
[[nodiscard]] int pin_this_thread(std::uint32_t core) {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(std::max<std::size_t>(core / bits + 1, 16), 0);
  mask[core / bits] = 1UL << (core % bits);
  return pthread_setaffinity_np(pthread_self(), mask.size() * sizeof(unsigned long),
                                reinterpret_cast<const cpu_set_t*>(mask.data()));
}

/// Times of one pass of one thread.
struct pass {
  seconds start{}, end{}, cpu{};
};

struct memory_worker {
  std::uint32_t core = 0;
  const memory_options* options = nullptr;
  timed_barrier* gate = nullptr;
  std::span<const memory_worker> all;
  std::vector<pass> passes[3];  ///< by kernel
  int pin_error = 0;
  bool no_memory = false;
  std::uint64_t checksum = 0;  ///< keeps the reads from being optimised away
};

/// How often one pass goes over a buffer: short passes would measure the clock.
[[nodiscard]] constexpr std::uint64_t turns_of(bytes buffer) {
  constexpr std::uint64_t least = 8U << 20U;
  return buffer.value >= least ? 1 : (least + buffer.value - 1) / buffer.value;
}

template <class = void>
[[nodiscard]] bool undisturbed(std::span<const memory_worker> all, int kernel, std::size_t at) {
  seconds first = all[0].passes[kernel][at].start;
  seconds last = first;
  seconds longest{};
  for (const memory_worker& w : all) {
    const pass& p = w.passes[kernel][at];
    if (p.cpu < 0.95 * (p.end - p.start)) return false;
    first = std::min(first, p.start);
    last = std::max(last, p.start);
    longest = std::max(longest, p.end - p.start);
  }
  return last - first <= 0.1 * longest;
}

template <class = void>
[[nodiscard]] bool enough_quiet_passes(std::span<const memory_worker> all, std::size_t wanted) {
  for (int kernel = 0; kernel < 3; ++kernel) {
    std::size_t quiet = 0;
    for (std::size_t at = 0; at < all[0].passes[kernel].size(); ++at)
      if (undisturbed(all, kernel, at)) ++quiet;
    if (quiet < wanted) return false;
  }
  return true;
}

template <class = void>
void run_memory_worker(memory_worker& me) {
  const std::uint32_t core = me.core;
  const memory_options& options = *me.options;
  timed_barrier& gate = *me.gate;
  me.pin_error = pin_this_thread(core);
  const huge_buffer a(options.buffer.value);
  const huge_buffer b(options.buffer.value);
  me.no_memory = a.size() == 0 || b.size() == 0;
  if (me.pin_error != 0 || me.no_memory) {
    gate.give_up();
    return;
  }
  const std::size_t n = options.buffer.value / sizeof(float);
  const std::uint64_t turns = turns_of(options.buffer);
  std::fill_n(a.floats(), n, 1.0F);
  std::fill_n(b.floats(), n, 0.0F);
  // Kernels take turns, so that a deadline leaves some passes of each.
  for (std::size_t i = 0; i < options.warm_up + options.most; ++i) {
    for (int kernel = 0; kernel < 3; ++kernel) {
      if (!gate.arrive()) return;
      pass p;
      const seconds cpu = thread_cpu_time();
      p.start = steady_clock::now();
      for (std::uint64_t turn = 0; turn < turns; ++turn) switch (static_cast<memory_kernel>(kernel)) {
          case memory_kernel::copy: std::memcpy(b.data(), a.data(), options.buffer.value); break;
          case memory_kernel::read:
            me.checksum += sum_words(reinterpret_cast<const std::uint64_t*>(a.data()), options.buffer.value / 8);
            break;
          case memory_kernel::reduce:
            reduce_elements(dtype::float32, reduce_op::sum, b.data(), b.data(), a.data(), n);
            break;
        }
      p.end = steady_clock::now();
      p.cpu = thread_cpu_time() - cpu;
      if (i >= options.warm_up) me.passes[kernel].push_back(p);
    }
    // Everybody looks at the same figures between two barriers, so everybody stops at the same pass.
    if (!gate.arrive()) return;
    if (i >= options.warm_up && enough_quiet_passes(me.all, options.repeats)) return;
  }
}

}  // namespace detail

template <class>
result<std::vector<memory_sample>> measure_memory(std::span<const std::uint32_t> cores, const memory_options& options,
                                                  deadline until) {
  if (cores.empty()) return fail(errc::invalid_argument, "measuring memory needs at least one core");
  if (options.buffer.value < 4096)
    return fail(errc::invalid_argument, "measuring memory needs a buffer of at least 4 KiB");
  memory_options taken = options;
  taken.buffer.value -= taken.buffer.value % 8;
  taken.repeats = std::max<std::size_t>(taken.repeats, 3);
  taken.most = std::max(taken.most, taken.repeats);

  std::vector<detail::memory_worker> workers(cores.size());
  {
    detail::timed_barrier gate(static_cast<std::uint32_t>(cores.size()), until);
    // POSIX threads: <thread> would double what this header costs to compile.
    std::vector<pthread_t> threads;
    int refused = 0;
    for (std::size_t i = 0; i < cores.size() && refused == 0; ++i) {
      workers[i].core = cores[i];
      workers[i].options = &taken;
      workers[i].gate = &gate;
      workers[i].all = workers;
      pthread_t started{};
      refused = pthread_create(
          &started, nullptr,
          [](void* worker) -> void* {
            detail::run_memory_worker(*static_cast<detail::memory_worker*>(worker));
            return nullptr;
          },
          &workers[i]);
      if (refused == 0) threads.push_back(started);
    }
    if (refused != 0) gate.give_up();
    for (const pthread_t t : threads) pthread_join(t, nullptr);
    if (refused != 0)
      return fail(errc::system, "thread " + std::to_string(threads.size()) + " of " + std::to_string(cores.size()) +
                                    " could not be started: " + std::strerror(refused));
  }

  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (workers[i].pin_error != 0)
      return fail(errc::system, "core " + std::to_string(cores[i]) + ": " + std::strerror(workers[i].pin_error) +
                                    " when binding a thread to it");
    if (workers[i].no_memory)
      return fail(errc::system, "core " + std::to_string(cores[i]) + ": no memory for two buffers of " +
                                    std::to_string(taken.buffer.value >> 20U) + " MiB");
  }

  std::vector<memory_sample> samples;
  for (int kernel = 0; kernel < 3; ++kernel) {
    memory_sample s;
    s.kernel = static_cast<memory_kernel>(kernel);
    s.cores.assign(cores.begin(), cores.end());
    s.buffer = taken.buffer;
    std::vector<bytes_per_second> together;
    std::vector<std::vector<bytes_per_second>> alone(cores.size());
    // The last pass may be there for some threads only when the deadline came.
    std::size_t complete = taken.most;
    for (const detail::memory_worker& w : workers) complete = std::min(complete, w.passes[kernel].size());
    if (complete < 3)
      return fail(errc::timed_out, "not measured in time, " + std::to_string(complete) + " passes of '" +
                                       std::string(to_string(s.kernel)) + "' on " + std::to_string(cores.size()) +
                                       (cores.size() == 1 ? " core" : " cores") + " were done");
    std::vector<bool> quiet(complete);
    s.passes = complete;
    for (std::size_t pass = 0; pass < complete; ++pass) {
      quiet[pass] = detail::undisturbed(workers, kernel, pass);
      if (!quiet[pass]) ++s.disturbed;
    }
    const bytes moved = taken.buffer * detail::turns_of(taken.buffer);
    const bool leave_out = s.passes - s.disturbed >= 3;
    seconds cpu{};
    seconds wall{};
    for (std::size_t pass = 0; pass < complete; ++pass) {
      seconds first = workers[0].passes[kernel][pass].start;
      seconds last = workers[0].passes[kernel][pass].end;
      for (std::size_t i = 0; i < cores.size(); ++i) {
        const detail::pass& p = workers[i].passes[kernel][pass];
        first = std::min(first, p.start);
        last = std::max(last, p.end);
        cpu += p.cpu;
        wall += p.end - p.start;
        if (!leave_out || quiet[pass]) alone[i].push_back(moved / (p.end - p.start));
      }
      if (!leave_out || quiet[pass]) together.push_back(moved * cores.size() / (last - first));
    }
    s.together = *summarise(together);
    for (const auto& rates : alone) s.alone.push_back(*summarise(rates));
    s.core_share = std::min(1.0, cpu / wall);
    samples.push_back(std::move(s));
  }
  return samples;
}

}}}  // namespace topocoll::v0::probe
