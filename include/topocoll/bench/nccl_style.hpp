// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table that nccl-tests prints, with the same columns, widths and footer, so that existing scripts read it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <topocoll/bench/row.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace bench {

/// Whose time a line shows.
enum class averaging : std::uint8_t { rank0, mean, least, most };

/// How a sweep is run; the letters are the options of nccl-tests.
struct sweep_config {
  collective_kind collective = collective_kind::all_reduce;
  size_range range;                     ///< -b -e -f -i
  dtype type = dtype::float32;          ///< -d
  reduce_op op = reduce_op::sum;        ///< -o
  rank_id root{};                       ///< -r
  std::uint64_t iterations = 20;        ///< -n
  std::uint64_t warm_up = 1;            ///< -w
  std::uint64_t checked = 1;            ///< -c: iterations whose result is checked; 0 checks nothing
  averaging average = averaging::mean;  ///< -a: 0 rank 0, 1 mean, 2 min, 3 max over ranks
  std::optional<seconds> timeout{};     ///< -T: of one size; empty leaves only the limit of a single call
  std::string algorithm{};              ///< empty: the planner chooses
  bool registered = false;              ///< -R: buffers from `communicator::allocate`, which all ranks of a host see
};

/// A rank as the header lists it.
struct rank_line {
  std::uint32_t rank = 0;
  long pid = 0;
  std::string host;
  std::optional<std::uint32_t> core;  ///< that it is bound to; empty when it is not
};

/// The lines before the table. There is no GPU in this run, so "nGpus" is 0 and devices are cores or plain processes.
template <class = void>
[[nodiscard]] std::string header(const sweep_config& config, std::span<const rank_line> ranks);

/// The three lines that name the columns; with `bound` a fourth column follows in each line.
template <class = void>
[[nodiscard]] std::string column_lines(bool bound = false);

/// One line of the table.
template <class = void>
[[nodiscard]] std::string to_text(const row& r, bool bound = false);

/// The lines after the table: "# Out of bounds values : 0 OK" and "# Avg bus bandwidth    : 1.234".
template <class = void>
[[nodiscard]] std::string footer(const totals& t);

namespace detail {

template <class... Values>
[[nodiscard]] std::string printed(const char* format, Values... values) {
  char line[256];
  const int length = std::snprintf(line, sizeof line, format, values...);
  return {line, length < 0 ? 0 : std::min(static_cast<std::size_t>(length), sizeof line - 1)};
}

/// Microseconds in seven characters: two decimals below 100, one below 10,000, none above.
template <class = void>
[[nodiscard]] std::string time_text(seconds time) {
  const double us = time.value * 1e6;
  return printed(us >= 9999.95 ? "%7.0f" : (us >= 99.995 ? "%7.1f" : "%7.2f"), us);
}

template <class = void>
[[nodiscard]] std::string half_text(const row& r, const timing& half) {
  const std::string wrong = half.wrong ? std::to_string(*half.wrong) : "N/A";
  return "  " + time_text(half.time) +
         printed("  %6.2f  %6.2f  %5s", r.algbw(half).value / 1e9, r.busbw(half).value / 1e9, wrong.c_str());
}

}  // namespace detail

template <class>
std::string header(const sweep_config& config, std::span<const rank_line> ranks) {
  const unsigned long long step = config.range.factor ? *config.range.factor : config.range.step.value;
  std::string text = "# nThread 1 nGpus 0 minBytes " + std::to_string(config.range.first.value) + " maxBytes " +
                     std::to_string(config.range.last.value) + " step: " + std::to_string(step) +
                     (config.range.factor ? "(factor)" : "(bytes)") +
                     " warmup iters: " + std::to_string(config.warm_up) +
                     " iters: " + std::to_string(config.iterations) +
                     " agg iters: 1 validation: " + std::to_string(config.checked) + " graph: 0\n#\n# Using devices\n";
  for (const rank_line& r : ranks) {
    text += detail::printed("#  Rank %2u Group  0 Pid %6ld on %10s device", r.rank, r.pid, r.host.c_str());
    text += r.core ? detail::printed(" %2u [core] host memory\n", *r.core) : "  - [any core] host memory\n";
  }
  return text + "#\n";
}

template <class>
std::string column_lines(bool bound) {
  const std::string_view more[] = {bound ? "  share of limit" : "", bound ? "    out     in" : "", ""};
  std::string text = "#\n";
  text +=
      "#                                                              out-of-place                       in-place      "
      "    ";
  text += std::string(more[0]) + "\n";
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong";
  text += std::string(more[1]) + "\n";
  text +=
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)   "
      "    ";
  text += std::string(more[2]) + "\n";
  return text;
}

template <class>
std::string to_text(const row& r, bool bound) {
  const std::string op = reduces(r.collective) ? std::string(to_string(r.op)) : "none";
  const std::string type(to_string(r.type));
  std::string text = detail::printed("%12llu  %12llu  %8s  %6s  %6d", static_cast<unsigned long long>(r.size.value),
                                     static_cast<unsigned long long>(r.count), type.c_str(), op.c_str(),
                                     r.root ? static_cast<int>(r.root->value) : -1);
  text += detail::half_text(r, r.out_of_place) + detail::half_text(r, r.in_place);
  if (bound) {
    for (const timing* half : {&r.out_of_place, &r.in_place})
      text +=
          r.bound && r.bound->value > 0 ? detail::printed("  %4.0f%%", 100 * (r.busbw(*half) / *r.bound)) : "    N/A";
  }
  return text + "\n";
}

template <class>
std::string footer(const totals& t) {
  std::string text = "# Out of bounds values : " + std::to_string(t.wrong) + (t.wrong == 0 ? " OK\n" : " FAILED\n");
  if (!t.checked) text = "# Out of bounds values : N/A (nothing was checked)\n";
  return text + detail::printed("# Avg bus bandwidth    : %g \n#\n", t.average_busbw.value / 1e9);
}

}}}  // namespace topocoll::v0::bench
