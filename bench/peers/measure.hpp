// SPDX-License-Identifier: Apache-2.0
#pragma once
// One way to time a collective and to check its results, for every library that is compared.
//
// A sample is a batch of back-to-back calls after a barrier: the slowest rank's time over the batch. With rewritten
// inputs, each call is timed by itself: every rank writes its input, all meet, then the call; the writing is not timed.
// Sizes are those of the whole array, as in nccl-tests: a shard is the n-th part of it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
#include "meeting.hpp"

namespace bench {

enum class operation : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
inline constexpr std::array<std::string_view, 5> operation_names = {"all_reduce", "reduce_scatter", "all_gather",
                                                                    "broadcast", "all_to_all"};
inline std::string_view name_of(operation op) { return operation_names[static_cast<std::size_t>(op)]; }

struct options {
  std::vector<operation> ops = {operation::all_reduce};
  std::uint64_t least = 8;  ///< bytes
  std::uint64_t most = 256ULL << 20U;
  std::uint64_t factor = 4;
  std::uint32_t ranks = 2;
  bool library_buffers = false;  ///< memory that the library gives, where it does; otherwise ordinary memory
  bool rewrite = false;          ///< inputs are written anew before each call
  double budget = 0.3;           ///< seconds for one point, once there are five samples
};

/// Reads the command line that all programs have. Ends the program with a sentence if it cannot be understood.
inline options parse(int argc, char** argv) {
  options o;
  const auto usage = [&](const std::string& what) {
    give_up(
        std::string(argv[0]) + ": " + what +
        "\nusage: [--op NAME,NAME,…] [--min BYTES] [--max BYTES] [--factor N] [--ranks N] [--buffers private|library]"
        " [--rewrite 0|1] [--seconds S]\noperations: all_reduce reduce_scatter all_gather broadcast all_to_all");
  };
  const auto whole = [&](const std::string& key, const std::string& text) {
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
      usage(key + " wants a whole number, not \"" + text + "\"");
    return std::strtoull(text.c_str(), nullptr, 10);
  };
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (i + 1 >= argc) usage(key + " wants a value, or is not an option");
    const std::string value = argv[i + 1];
    if (key == "--op") {
      o.ops.clear();
      for (std::size_t from = 0; from <= value.size();) {
        const std::size_t comma = std::min(value.find(',', from), value.size());
        const auto at = std::find(operation_names.begin(), operation_names.end(), value.substr(from, comma - from));
        if (at == operation_names.end())
          usage("there is no operation \"" + value.substr(from, comma - from) + "\"");
        else
          o.ops.push_back(static_cast<operation>(at - operation_names.begin()));
        from = comma + 1;
      }
    } else if (key == "--min") {
      o.least = std::max<std::uint64_t>(sizeof(float), whole(key, value));
    } else if (key == "--max") {
      o.most = whole(key, value);
      if (o.most > 1ULL << 32U) usage("--max is 4 GiB at most: peers count elements in an int");
    } else if (key == "--factor") {
      o.factor = whole(key, value);
      if (o.factor < 2) usage("--factor is at least 2");
    } else if (key == "--ranks") {
      o.ranks = static_cast<std::uint32_t>(whole(key, value));
      if (o.ranks < 1 || o.ranks > 64) usage("--ranks is from 1 to 64");
    } else if (key == "--buffers") {
      if (value != "private" && value != "library") usage("--buffers is private or library");
      o.library_buffers = value == "library";
    } else if (key == "--rewrite") {
      if (value != "0" && value != "1") usage("--rewrite is 0 or 1");
      o.rewrite = value == "1";
    } else if (key == "--seconds") {
      o.budget = std::strtod(value.c_str(), nullptr);
      if (!(o.budget > 0)) usage("--seconds is more than 0");
    } else {
      usage("there is no option " + key);
    }
  }
  return o;
}

/// Elements of one call's buffers.
struct shape {
  operation op{};
  std::uint32_t ranks = 1;
  std::uint64_t count = 0;  ///< the whole array
  std::uint64_t shard = 0;

  static shape of(operation op, std::uint64_t size, std::uint32_t ranks) {
    shape s{op, ranks, std::max<std::uint64_t>(1, size / sizeof(float)), 0};
    s.shard = (s.count + ranks - 1) / ranks;
    if (op != operation::all_reduce && op != operation::broadcast) s.count = s.shard * ranks;
    return s;
  }
  [[nodiscard]] std::uint64_t bytes() const { return count * sizeof(float); }
  /// A broadcast has one buffer, the output, as in MPI.
  [[nodiscard]] std::uint64_t in_count() const {
    return op == operation::broadcast ? 0 : op == operation::all_gather ? shard : count;
  }
  [[nodiscard]] std::uint64_t out_count() const { return op == operation::reduce_scatter ? shard : count; }
  /// busbw = bytes / time * this, as nccl-tests counts.
  [[nodiscard]] double busbw_factor() const {
    const double others = static_cast<double>(ranks - 1) / ranks;
    return op == operation::broadcast ? 1 : op == operation::all_reduce ? 2 * others : others;
  }
};

/// Inputs that depend on rank and position, and what must come out. Whole numbers: sums are exact in any order.
class expected {
 public:
  explicit expected(std::uint32_t ranks) : inputs_(ranks, table(period)), sum_(period) {
    for (std::uint32_t r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < period; ++i) {
        inputs_[r][i] = static_cast<float>((i * 37 + i / 64 * 11 + r * 29) % 1009 % 97);
        sum_[i] += inputs_[r][i];
      }
  }
  /// Writes rank `r`'s input for the call, element `first` of it at `to`.
  void fill(std::uint32_t r, float* to, std::uint64_t count) const {
    runs(0, count, [&](std::size_t from, std::size_t run, std::uint64_t at) {
      std::memcpy(to + at, inputs_[r].data() + from, run * sizeof(float));
    });
  }
  /// Ends the program if rank `r`'s output is not what it must be.
  void check(const shape& s, std::uint32_t r, const float* out, const char* when) const {
    switch (s.op) {
      case operation::all_reduce: return same(s, r, sum_, out, 0, s.count, when);
      case operation::reduce_scatter: return same(s, r, sum_, out, r * s.shard, s.shard, when);
      case operation::broadcast: return same(s, r, inputs_[0], out, 0, s.count, when);
      case operation::all_gather:
      case operation::all_to_all:
        for (std::uint32_t from = 0; from < s.ranks; ++from)
          same(s, r, inputs_[from], out + from * s.shard, s.op == operation::all_to_all ? r * s.shard : 0, s.shard,
               when);
        return;
    }
  }

 private:
  using table = std::vector<float>;
  static constexpr std::size_t period = 4093;  // prime: no chunk of a power of two has this length

  template <class Visit>
  static void runs(std::uint64_t first, std::uint64_t count, Visit&& visit) {
    for (std::uint64_t done = 0; done < count;) {
      const std::size_t in_table = (first + done) % period;
      const std::size_t run = std::min<std::uint64_t>(count - done, period - in_table);
      visit(in_table, run, done);
      done += run;
    }
  }
  static void same(const shape& s, std::uint32_t r, const table& want, const float* have, std::uint64_t first,
                   std::uint64_t count, const char* when) {
    runs(first, count, [&](std::size_t from, std::size_t run, std::uint64_t at) {
      if (std::memcmp(want.data() + from, have + at, run * sizeof(float)) == 0) return;
      for (std::size_t i = 0; i < run; ++i)
        if (want[from + i] != have[at + i])
          give_up("wrong result " + std::string(when) + " timing: " + std::string(name_of(s.op)) + " of " +
                  std::to_string(s.bytes()) + " bytes, rank " + std::to_string(r) + ", element " +
                  std::to_string(at + i) + " is " + std::to_string(have[at + i]) + ", not " +
                  std::to_string(want[from + i]));
    });
  }

  std::vector<table> inputs_;
  table sum_;
};

/// Ordinary memory, aligned to a cache line. Never given back: the program is about to end then.
inline float* private_buffer(std::uint64_t count) {
  void* memory = std::aligned_alloc(64, (count * sizeof(float) + 64) / 64 * 64);
  if (memory == nullptr) give_up("the system has no " + std::to_string(count * sizeof(float)) + " bytes to give");
  return static_cast<float*>(memory);
}

struct point {
  double median = 0;  ///< seconds of one call
  double least = 0;
  std::size_t samples = 0;
};

/// Times `call` on all ranks; `settle` is the library's own barrier, `write` writes this rank's input.
template <class Call, class Settle, class Write>
point time_calls(meeting& all, const options& o, Call&& call, Settle&& settle, Write&& write) {
  constexpr std::size_t enough = 2000;
  constexpr int largest_batch = 50;
  const double began = now();
  const auto batch_of = [&](int calls) {
    settle();  // a peer may need us in its own calls until it has finished; ours keep no such work back
    all.gather();
    double took = 0;
    if (!o.rewrite) {
      const double start = now();
      for (int k = 0; k < calls; ++k) call();
      took = now() - start;
    } else {
      for (int k = 0; k < calls; ++k) {
        write();
        settle();
        all.gather();
        const double start = now();
        call();
        took += now() - start;
      }
    }
    return all.of_all(took / calls, now() - began);
  };
  const double one = std::min({batch_of(1).took, batch_of(1).took, batch_of(1).took});
  const int calls = static_cast<int>(std::clamp(0.001 / std::max(one, 1e-9), 1.0, double{largest_batch}));
  std::vector<double> samples;
  for (bool more = true; more;) {
    const meeting::slowest s = batch_of(calls);
    samples.push_back(s.took);
    more = samples.size() < 5 || (s.since < o.budget && samples.size() < enough);
  }
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  return {(samples[(n - 1) / 2] + samples[n / 2]) / 2, samples.front(), n};
}

/// First lines of the output, from rank 0.
inline void print_head(const std::string& library) {
  std::printf("# %s\nop\tbytes\tvariant\tranks\tmedian_us\tmin_us\tbusbw_GBps\n", library.c_str());
}
inline void print_point(const shape& s, const std::string& variant, const point& p) {
  std::printf("%s\t%llu\t%s\t%u\t%.3f\t%.3f\t%.6f\n", std::string(name_of(s.op)).c_str(),
              static_cast<unsigned long long>(s.bytes()), variant.c_str(), s.ranks, p.median * 1e6, p.least * 1e6,
              static_cast<double>(s.bytes()) / p.median * s.busbw_factor() / 1e9);
  std::fflush(stdout);
}

/// Checks, times and checks again one operation at one size.
template <class Call, class Settle>
point measure_one(meeting& all, const options& o, const expected& data, const shape& s, float* in, float* out,
                  Call&& call, Settle&& settle) {
  const std::uint32_t me = all.rank();
  const bool in_place = s.op == operation::broadcast;
  const auto write = [&] {
    if (!in_place)
      data.fill(me, in, s.in_count());
    else if (me == 0)
      data.fill(0, out, s.count);
  };
  const auto checked = [&](const char* when) {
    if (!in_place || me != 0) std::fill_n(out, s.out_count(), -1.0F);
    settle();
    all.gather();
    call();
    settle();
    data.check(s, me, out, when);
  };
  write();
  checked("before");
  const point p = time_calls(all, o, call, settle, write);
  settle();
  data.check(s, me, out, "after");
  checked("after");
  all.gather();
  return p;
}

/// Measures all that the options ask for.
///
/// `Library` has name(), allocate(count), barrier(), has(op) and run(shape, in, out); the last ends the program if the
/// library reports a failure. A broadcast is from rank 0, in `out`.
template <class Library>
void measure(Library& library, meeting& all, const options& o) {
  const expected data(o.ranks);
  std::uint64_t largest = 0;
  for (const operation op : o.ops) largest = std::max(largest, shape::of(op, o.most, o.ranks).count);
  float* in = library.allocate(largest);
  float* out = library.allocate(largest);
  std::fill_n(in, largest, 0.0F);  // pages come with the first touch
  std::fill_n(out, largest, 0.0F);
  const std::string variant = std::string(o.library_buffers ? "library" : "private") + (o.rewrite ? "+rewrite" : "");
  if (all.rank() == 0) print_head(library.name());
  for (const operation op : o.ops) {
    if (!library.has(op)) continue;
    for (std::uint64_t size = o.least; size <= o.most; size *= o.factor) {
      const shape s = shape::of(op, size, o.ranks);
      const point p = measure_one(
          all, o, data, s, in, out, [&] { library.run(s, in, out); }, [&] { library.barrier(); });
      if (all.rank() == 0) print_point(s, variant, p);
    }
  }
}

}  // namespace bench
