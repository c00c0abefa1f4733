// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives between local processes: time, bandwidth, and whether every element is right.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <topocoll/exec/pattern.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/probe/memory.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/probe/sampler.hpp>
#include <topocoll/probe/stats.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// One collective at one size.
struct collective_point {
  collective_kind collective = collective_kind::all_reduce;
  bytes size = 1_MiB;                    ///< of the whole array
  std::optional<plan::schedule> plan{};  ///< empty: the communicator's own choice
};

struct collective_options {
  std::uint32_t ranks = 4;
  seconds budget{0.3};  ///< per point, warm-up and checks not included
};

/// What one point reached. Times are those of the slowest rank, one call.
struct collective_sample {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};  ///< as run: what does not divide among the ranks is left off
  std::string plan;
  summary<seconds> time;
  std::uint64_t checked = 0;  ///< elements, all ranks together
  std::uint64_t wrong = 0;
};

/// Runs the points one after the other between `ranks` processes of this host over shared memory: float, sum, out of place.
///
/// Every point is checked element by element before and after it is timed. A sample is a batch of calls that takes about a
/// millisecond, between two barriers. Precondition: this process has one thread (see `run_local_ranks`).
/// @return one sample per point, or fewer when the time would not have sufficed for the next; the failure of the rank that
///         failed first, named with host and pid; `timed_out` when not even one point was finished
template <class = void>
[[nodiscard]] result<std::vector<collective_sample>> measure_collectives(std::span<const collective_point> points,
                                                                         const collective_options& options,
                                                                         deadline until);

/// Least time in which the memory of a host can do a collective among its processes, and the sentence that says so.
struct memory_limit {
  seconds time{};
  std::string formula;
};

/// Every rank must read its input and write its output once: all-reduce reads and writes S on each of n ranks, all-gather reads
/// S/n and writes S. No plan and no transport can do with less, so this is a limit and not a forecast.
///
/// @param copy  payload rate of copying on all cores that the ranks use, at a working set like theirs; it reads and writes each
///              byte once, hence moves twice this. More ranks than cores share it.
template <class = void>
[[nodiscard]] memory_limit limit_by_memory(collective_kind collective, bytes size, std::uint32_t ranks,
                                           bytes_per_second copy, std::size_t cores) {
  const double n = ranks;
  const double s = static_cast<double>(size.value);
  double read = s;
  double written = s;
  switch (collective) {
    case collective_kind::all_reduce:
    case collective_kind::all_to_all: break;
    case collective_kind::all_gather: read = s / n; break;
    case collective_kind::reduce_scatter: written = s / n; break;
    case collective_kind::broadcast: read = s / n; break;  // one rank reads, all write; per rank on average
    case collective_kind::reduce: written = s / n; break;
    case collective_kind::gather:
    case collective_kind::scatter: read = written = s / n; break;  // each reads or writes its shard, one rank the whole
  }
  memory_limit limit;
  limit.time = seconds{n * (read + written) / (2 * copy.value)};
  const auto part = [&](double amount) { return to_string(bytes{static_cast<std::uint64_t>(amount)}); };
  limit.formula = std::to_string(ranks) + " ranks x (" + part(read) + " read + " + part(written) + " written) / (2 x " +
                  to_string(copy) + " measured copy on " + std::to_string(cores) + (cores == 1 ? " core)" : " cores)");
  return limit;
}

/// One sentence on the rank that failed first, with host and pid; empty when all ranks are good.
template <class = void>
[[nodiscard]] std::optional<failure> first_failure(std::span<const rank_exit> exits) {
  const rank_exit* cause = nullptr;
  // A killed rank is the cause; else a rank with a reason of its own; ranks that were told to stop come last.
  const auto weight = [](const rank_exit& e) {
    if (e.good()) return 0;
    if (e.signal != 0) return 4;
    if (!e.outcome && e.outcome.error().code == errc::aborted) return 1;
    if (!e.outcome && e.outcome.error().code == errc::peer_lost) return 2;
    return 3;
  };
  for (const rank_exit& e : exits)
    if (weight(e) > (cause == nullptr ? 0 : weight(*cause))) cause = &e;
  if (cause == nullptr) return std::nullopt;
  if (!cause->outcome) return cause->outcome.error();
  return fail(errc::bug, "rank " + std::to_string(cause->rank.value) + " (pid " + std::to_string(cause->pid) +
                             ") ended with exit code " + std::to_string(cause->exit_code));
}

namespace detail {

/// Rank 0 hands its figures to the parent as text: one line per point.
struct point_text {
  static std::string write(const collective_sample& s, std::span<const seconds> times) {
    std::string line = std::to_string(s.size.value) + ' ' + std::to_string(s.checked) + ' ' + std::to_string(s.wrong) +
                       ' ' + std::to_string(times.size());
    for (const seconds t : times) {
      char number[32];
      std::snprintf(number, sizeof number, " %.9e", t.value);
      line += number;
    }
    return line + '\n';
  }
  /// Takes one line off `text`; false when it is not one.
  static bool read(const char*& text, collective_sample& s) {
    char* end = nullptr;
    const auto whole = [&] {
      const std::uint64_t n = std::strtoull(text, &end, 10);
      const bool good = end != text;
      text = end;
      return std::pair(n, good);
    };
    const auto size = whole();
    const auto checked = whole();
    const auto wrong = whole();
    const auto count = whole();
    if (!size.second || !checked.second || !wrong.second || !count.second || count.first == 0 || count.first > 1000000)
      return false;
    std::vector<seconds> times;
    for (std::uint64_t i = 0; i < count.first; ++i) {
      times.push_back({std::strtod(text, &end)});
      if (end == text) return false;
      text = end;
    }
    s.size = {size.first};
    s.checked = checked.first;
    s.wrong = wrong.first;
    s.time = *summarise(times);
    return true;
  }
};

/// One rank's part of one point. Every rank sees the same times, so every rank stops at the same sample.
template <class = void>
[[nodiscard]] result<std::string> run_point(communicator<shm_transport>& comm, const collective_point& point,
                                            seconds budget, deadline until) {
  const std::uint32_t n = comm.size();
  const bool parts = plan::sharded(point.collective);
  const std::uint64_t elements = point.size.value / sizeof(float);
  const std::uint64_t count = parts ? elements / n : elements;
  const bool is_root = comm.rank() == rank_id{0};
  const std::uint64_t whole = parts ? count * n : count;
  const std::uint64_t in_count = input_of(point.collective, is_root) == region::whole ? whole : count;
  const std::uint64_t out_count = output_of(point.collective, is_root) == region::whole ? whole : count;
  const huge_buffer in(std::max<std::uint64_t>(in_count * sizeof(float), 4096));
  const huge_buffer out(std::max<std::uint64_t>(out_count * sizeof(float), 4096));
  if (in.size() == 0 || out.size() == 0)
    return fail(errc::system,
                "rank " + std::to_string(comm.rank().value) + " has no memory for buffers of " + to_string(point.size));
  const auto options = [&] { return call_options{reduce_op::sum, until.left()}; };
  const auto once = [&] {
    return comm.run(point.collective, rank_id{0}, in.data(), out.data(), count, dtype::float32, options());
  };

  collective_sample s;
  s.size = {count * sizeof(float) * (parts ? n : 1)};
  const auto check = [&](std::uint64_t seed) -> result<void> {
    const pattern data(point.collective, dtype::float32, reduce_op::sum, n, {}, seed);
    data.fill(comm.rank(), {in.data(), in_count * sizeof(float)});
    std::fill_n(out.data(), out_count * sizeof(float), std::byte{0xff});  // a NaN: what nobody writes is wrong
    if (auto ran = once(); !ran) return ran;
    s.wrong += data.wrong(comm.rank(), {out.data(), out_count * sizeof(float)});
    s.checked += out_count;
    return {};
  };
  if (auto right = check(1); !right) return std::move(right).error();

  std::vector<double> all(n);
  const auto timed = [&](std::uint32_t calls) -> result<seconds> {
    if (auto together = comm.barrier(options()); !together) return std::move(together).error();
    const seconds start = steady_clock::now();
    for (std::uint32_t i = 0; i < calls; ++i)
      if (auto ran = once(); !ran) return std::move(ran).error();
    const double mine = (steady_clock::now() - start).value / calls;
    if (auto shared = comm.all_gather(std::span(&mine, 1), std::span(all), options()); !shared)
      return std::move(shared).error();
    return seconds{*std::max_element(all.begin(), all.end())};
  };
  const auto first = timed(1);
  if (!first) return first.error();
  const auto calls = static_cast<std::uint32_t>(std::clamp(1e-3 / std::max(first->value, 1e-7), 1.0, 200.0));
  const either rule{relative_spread{.share = 0.03, .least = 9, .most = 400}, time_budget{.span = budget, .least = 6}};
  std::vector<seconds> times;
  seconds spent{};
  do {
    const auto one = timed(calls);
    if (!one) return one.error();
    times.push_back(*one);
    spent += calls * *one;
  } while (!rule.enough(times, spent));

  if (auto right = check(2); !right) return std::move(right).error();
  const std::uint64_t mine[2] = {s.checked, s.wrong};
  std::vector<std::uint64_t> sums(2);
  if (auto added = comm.all_reduce(std::span(mine), std::span(sums), options()); !added)
    return std::move(added).error();
  s.checked = sums[0];
  s.wrong = sums[1];
  return point_text::write(s, times);
}

}  // namespace detail

template <class>
result<std::vector<collective_sample>> measure_collectives(std::span<const collective_point> points,
                                                           const collective_options& options, deadline until) {
  const auto body = [&](shm_transport& transport) -> result<std::string> {
    auto comm = communicator<shm_transport>::create(std::move(transport));
    if (!comm) return std::move(comm).error();
    std::string text;
    for (const collective_point& point : points) {
      // All ranks look at the shortest time that any of them has left, so all of them stop at the same point.
      double left = until.left().value;
      if (auto least = comm->all_reduce(std::span(&left, 1), {reduce_op::min, until.left()}); !least)
        return std::move(least).error();
      if (!text.empty() && left < 4 * options.budget.value) break;
      if (point.plan)
        if (auto taken = comm->adopt(*point.plan, until.left()); !taken) return std::move(taken).error();
      auto line = detail::run_point(*comm, point, options.budget, until);
      if (!line) return line;
      text += *line;
    }
    return text;
  };
  auto exits = run_local_ranks(options.ranks, {}, body, until);
  if (!exits) return std::move(exits).error();
  if (auto why = first_failure(*exits)) return std::move(*why);
  std::vector<collective_sample> samples;
  const char* text = exits->front().outcome->c_str();
  for (const collective_point& point : points) {
    if (*text == '\0' && !samples.empty()) break;
    collective_sample s;
    s.collective = point.collective;
    s.plan = point.plan ? point.plan->name : "built-in";
    if (!detail::point_text::read(text, s)) return fail(errc::bug, "rank 0 gave back figures that cannot be read");
    samples.push_back(std::move(s));
  }
  return samples;
}

}}}  // namespace topocoll::v0::probe
