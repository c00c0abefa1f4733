// SPDX-License-Identifier: Apache-2.0
// What a plain loop reaches between two processes of one host: a limit that collectives are held against.
//
//   bench_plain_loop [--op NAME,…] [--min BYTES] [--max BYTES] [--factor N] [--rewrite 0|1] [--seconds S]
//
// All buffers lie in memory that both processes see, so nothing is copied twice. Each rank: one flag exchange, half of
// the work straight from the inputs into every output that needs it, one flag exchange. Variants are ordinary stores
// ("stores"), stores past the caches ("streaming"), each also on huge pages ("stores+huge"), and for short arrays
// ("slots") one message each way through a ring of slots, with a single flag exchange. The limit at a size is the best.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include "../peers/measure.hpp"

namespace {

using bench::operation;
using bench::shape;

/// Where a result goes: one output, or two.
struct targets {
  float* first = nullptr;
  float* second = nullptr;
};

// The loops are written for any processor; where AVX2 is there, whole vectors are left to the functions below.
void copy_rest(const float* a, targets to, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t i = from; i < count; ++i) {
    to.first[i] = a[i];
    if (to.second != nullptr) to.second[i] = a[i];
  }
}
void add_rest(const float* a, const float* b, targets to, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t i = from; i < count; ++i) {
    const float sum = a[i] + b[i];
    to.first[i] = sum;
    if (to.second != nullptr) to.second[i] = sum;
  }
}

#if defined(__x86_64__)
bool has_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

template <bool Streaming>
[[gnu::target("avx2"), gnu::always_inline]] inline void put(float* at, __m256 v) {
  if constexpr (Streaming)
    _mm256_stream_ps(at, v);
  else
    _mm256_storeu_ps(at, v);
}
/// @return elements done; 32 at a time, so that a streamed line is written whole
template <bool Streaming, bool Twice, bool Adds>
[[gnu::target("avx2")]] std::uint64_t vectors(const float* a, const float* b, targets to, std::uint64_t count) {
  std::uint64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m256 v[4];
    for (std::uint64_t k = 0; k < 4; ++k) {
      v[k] = _mm256_loadu_ps(a + i + 8 * k);
      if constexpr (Adds) v[k] = _mm256_add_ps(v[k], _mm256_loadu_ps(b + i + 8 * k));
    }
    for (std::uint64_t k = 0; k < 4; ++k) put<Streaming>(to.first + i + 8 * k, v[k]);
    if constexpr (Twice)
      for (std::uint64_t k = 0; k < 4; ++k) put<Streaming>(to.second + i + 8 * k, v[k]);
  }
  if constexpr (Streaming) _mm_sfence();
  return i;
}
template <bool Adds>
std::uint64_t vectors_of(bool streaming, const float* a, const float* b, targets to, std::uint64_t count) {
  if (!has_vectors()) return 0;
  const auto aligned = [](const float* p) { return reinterpret_cast<std::uintptr_t>(p) % 32 == 0; };
  if (streaming && aligned(to.first) && aligned(to.second))
    return to.second != nullptr ? vectors<true, true, Adds>(a, b, to, count)
                                : vectors<true, false, Adds>(a, b, to, count);
  return to.second != nullptr ? vectors<false, true, Adds>(a, b, to, count)
                              : vectors<false, false, Adds>(a, b, to, count);
}
#else
bool has_vectors() { return false; }
template <bool Adds>
std::uint64_t vectors_of(bool, const float*, const float*, targets, std::uint64_t) {
  return 0;
}
#endif

void copy_to(bool streaming, const float* a, targets to, std::uint64_t count) {
  if (!streaming && to.second == nullptr)
    std::memcpy(to.first, a, count * sizeof(float));  // the C library knows its processor best
  else
    copy_rest(a, to, vectors_of<false>(streaming, a, a, to, count), count);
}
void add_to(bool streaming, const float* a, const float* b, targets to, std::uint64_t count) {
  add_rest(a, b, to, vectors_of<true>(streaming, a, b, to, count), count);
}

/// What the two processes share: flags, slots, buffers.
class plain_pair {
 public:
  static constexpr std::uint64_t slot_size =
      4096;  // bytes; from some hundreds on, two exchanges cost less than two copies

  plain_pair(std::uint64_t largest, bool huge)
      : shared_(static_cast<common*>(map(sizeof(common), false))), size_(largest * sizeof(float)) {
    for (auto* set : {&in_, &out_})
      for (float*& buffer : *set) buffer = static_cast<float*>(map(size_, huge));
  }
  plain_pair(const plain_pair&) = delete;
  plain_pair& operator=(const plain_pair&) = delete;
  ~plain_pair() {
    for (auto* set : {&in_, &out_})
      for (float* buffer : *set) munmap(buffer, size_);
    munmap(shared_, sizeof(common));
  }
  void take(std::uint32_t rank) {
    me_ = rank;
    other_ = 1 - rank;
  }
  [[nodiscard]] float* in() const { return in_[me_]; }
  [[nodiscard]] float* out() const { return out_[me_]; }

  /// One flag exchange, work, one flag exchange.
  void run(const shape& s, bool streaming) {
    exchange();
    switch (s.op) {
      case operation::all_reduce: {
        const part p = half_of(s.count);
        add_to(streaming, in_[0] + p.from, in_[1] + p.from, {out_[me_] + p.from, out_[other_] + p.from}, p.count);
        break;
      }
      case operation::reduce_scatter: {
        const std::uint64_t at = me_ * s.shard;
        add_to(streaming, in_[0] + at, in_[1] + at, {out_[me_], nullptr}, s.shard);
        break;
      }
      case operation::all_gather: {
        const std::uint64_t at = me_ * s.shard;
        copy_to(streaming, in_[me_], {out_[me_] + at, out_[other_] + at}, s.shard);
        break;
      }
      case operation::broadcast: {  // from rank 0, in place there
        const part p = half_of(s.count);
        copy_to(streaming, out_[0] + p.from, {out_[1] + p.from, nullptr}, p.count);
        break;
      }
      case operation::all_to_all:
        copy_to(streaming, in_[me_] + me_ * s.shard, {out_[me_] + me_ * s.shard, nullptr}, s.shard);
        copy_to(streaming, in_[me_] + other_ * s.shard, {out_[other_] + me_ * s.shard, nullptr}, s.shard);
        break;
    }
    exchange();
  }

  /// One message each way: what the other needs goes into a slot, and the flag tells of it.
  void run_by_slots(const shape& s) {
    const std::uint64_t call = ++calls_;
    const auto at = static_cast<std::size_t>(call % slots);
    // The other has left the slot once it has finished the call that used it before.
    if (call > slots)
      bench::wait_until([&] { return shared_->done[other_].value.load(std::memory_order_acquire) + slots >= call; },
                        "the other rank");
    float* mine = shared_->slot[me_][at].data();
    const float* theirs = shared_->slot[other_][at].data();
    const float* in = in_[me_];
    float* out = out_[me_];
    const std::uint64_t there = other_ * s.shard;
    const std::uint64_t here = me_ * s.shard;
    switch (s.op) {
      case operation::all_reduce:
        copy_to(false, in, {mine, nullptr}, s.count);
        arrive(call);
        add_to(false, in, theirs, {out, nullptr}, s.count);
        break;
      case operation::reduce_scatter:
        copy_to(false, in + there, {mine, nullptr}, s.shard);
        arrive(call);
        add_to(false, in + here, theirs, {out, nullptr}, s.shard);
        break;
      case operation::all_gather:
        copy_to(false, in, {mine, nullptr}, s.shard);
        copy_to(false, in, {out + here, nullptr}, s.shard);
        arrive(call);
        copy_to(false, theirs, {out + there, nullptr}, s.shard);
        break;
      case operation::broadcast:  // the root does not wait: small broadcasts are a rate
        if (me_ == 0) {
          copy_to(false, out, {mine, nullptr}, s.count);
          shared_->filled[me_].value.store(call, std::memory_order_release);
        } else {
          await(call);
          copy_to(false, theirs, {out, nullptr}, s.count);
        }
        break;
      case operation::all_to_all:
        copy_to(false, in + there, {mine, nullptr}, s.shard);
        copy_to(false, in + here, {out + here, nullptr}, s.shard);
        arrive(call);
        copy_to(false, theirs, {out + there, nullptr}, s.shard);
        break;
    }
    shared_->done[me_].value.store(call, std::memory_order_release);
  }

 private:
  static constexpr std::size_t slots = 8;
  struct alignas(128) flag {
    std::atomic<std::uint64_t> value{0};
  };
  struct common {
    std::array<flag, 2> ready, filled, done;
    alignas(4096) std::array<std::array<std::array<float, slot_size / sizeof(float)>, slots>, 2> slot;
  };
  struct part {
    std::uint64_t from, count;
  };

  static void* map(std::uint64_t size, bool huge) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) bench::give_up("no " + std::to_string(size) + " bytes of shared memory");
    (void)madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // where there are none, the rows are equal
    std::memset(memory, 0, size);
    return memory;
  }
  /// This rank's half, cut at a cache line.
  [[nodiscard]] part half_of(std::uint64_t count) const {
    const std::uint64_t cut = count < 64 ? count / 2 : count / 32 * 16;
    return me_ == 0 ? part{0, cut} : part{cut, count - cut};
  }
  void exchange() {
    const std::uint64_t number = ++exchanges_;
    shared_->ready[me_].value.store(number, std::memory_order_release);
    bench::wait_until([&] { return shared_->ready[other_].value.load(std::memory_order_acquire) >= number; },
                      "the other rank");
  }
  void arrive(std::uint64_t call) {
    shared_->filled[me_].value.store(call, std::memory_order_release);
    await(call);
  }
  void await(std::uint64_t call) const {
    bench::wait_until([&] { return shared_->filled[other_].value.load(std::memory_order_acquire) >= call; },
                      "the other rank");
  }

  common* shared_;
  std::uint64_t size_;  ///< bytes of a buffer
  std::array<float*, 2> in_{};
  std::array<float*, 2> out_{};
  std::uint32_t me_ = 0;
  std::uint32_t other_ = 1;
  std::uint64_t exchanges_ = 0;
  std::uint64_t calls_ = 0;
};

void measure_all(plain_pair& pair, bench::meeting& all, const bench::options& o, bool huge) {
  const bench::expected data(2);
  const auto settle = [] {};
  const std::string suffix = std::string(huge ? "+huge" : "") + (o.rewrite ? "+rewrite" : "");
  const auto print = [&](const shape& s, const char* variant, const bench::point& p) {
    if (all.rank() == 0) bench::print_point(s, variant + suffix, p);
  };
  for (const operation op : o.ops)
    for (std::uint64_t size = o.least; size <= o.most; size *= o.factor) {
      const shape s = shape::of(op, size, 2);
      const auto timed = [&](auto&& call) {
        return bench::measure_one(all, o, data, s, pair.in(), pair.out(), call, settle);
      };
      // Short arrays fit into one page, whatever its size.
      if (huge && s.bytes() < 65536) continue;
      print(s, "stores", timed([&] { pair.run(s, false); }));
      if (s.bytes() >= 65536 && has_vectors()) print(s, "streaming", timed([&] { pair.run(s, true); }));
      if (s.bytes() <= plain_pair::slot_size) print(s, "slots", timed([&] { pair.run_by_slots(s); }));
    }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options o = bench::parse(argc, argv);
  if (o.ranks != 2) bench::give_up("bench_plain_loop is a loop for 2 ranks, not " + std::to_string(o.ranks));
  std::uint64_t largest = 0;
  for (const operation op : o.ops) largest = std::max(largest, shape::of(op, std::max(o.least, o.most), 2).count);
  bench::print_head("plain loop");
  std::fflush(stdout);
  int code = 0;
  for (const bool huge : {false, true}) {
    bench::meeting all = bench::meeting::before_fork(2);
    std::array<pid_t, 2> ranks{};
    plain_pair pair(largest, huge);
    for (std::uint32_t r = 0; r < 2; ++r) {
      ranks[r] = fork();
      if (ranks[r] < 0) bench::give_up("a process for rank " + std::to_string(r) + " cannot be made");
      if (ranks[r] != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      bench::pin(r, 2);
      all.take(r);
      pair.take(r);
      measure_all(pair, all, o, huge);
      std::fflush(stdout);
      std::_Exit(0);
    }
    for (int left = 2; left > 0; --left) {
      int status = 0;
      const pid_t ended = wait(&status);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      code = 1;
      for (const pid_t p : ranks)
        if (p != ended) kill(p, SIGKILL);  // it would wait for the one that failed
    }
    if (code != 0) break;
  }
  return code;
}
