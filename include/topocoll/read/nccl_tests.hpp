// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables that nccl-tests, rccl-tests and `topocoll bench` print, as plain structs.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// One half of a line.
struct nccl_tests_half {
  seconds time{};
  double algbw = 0, busbw = 0;  ///< GB/s as printed; 0 for small sizes
};

/// One line of a table.
struct nccl_tests_row {
  bytes size{};
  std::uint64_t count = 0;
  std::string type, op;  ///< "float", "sum"; op is "none" for collectives that do not reduce
  std::optional<nccl_tests_half> out_of_place, in_place;
};

/// One run.
struct nccl_tests_table {
  std::string collective;   ///< "all_reduce" from "all_reduce_perf" where the text names the program; else empty
  std::uint32_t ranks = 0;  ///< "#  Rank  0 Group ..." lines; 0 when there are none
  std::uint32_t hosts = 0;  ///< different names behind " on " in them
  std::vector<nccl_tests_row> rows;
};

/// True when the text has the line that names the columns: "#  size  count  type ... busbw".
[[nodiscard]] inline bool looks_like_nccl_tests(std::string_view text) {
  for (std::size_t at = text.find("size"); at != std::string_view::npos; at = text.find("size", at + 4)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.find("count") < line.find("type") && line.find("algbw") < line.find("busbw")) return true;
  }
  return false;
}

namespace detail {

[[nodiscard]] inline std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return words;
    line.remove_prefix(first);
    const std::size_t end = line.find_first_of(" \t\r");
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}

/// A line without what launchers put before it: "[1,0]<stdout>:" of mpirun, "0: " of srun -l.
[[nodiscard]] inline std::string_view without_tag(std::string_view line) {
  if (const std::size_t at = line.find("<stdout>:"); at != std::string_view::npos) return line.substr(at + 9);
  const std::size_t digits = line.find_first_not_of(" 0123456789");
  if (digits != std::string_view::npos && digits > 0 && line[digits] == ':' && line.substr(digits, 2) == ": ")
    return line.substr(digits + 2);
  return line;
}

[[nodiscard]] inline std::optional<double> decimal(std::string_view word) {
  double value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// The three figures of a half that begin at word `i`.
[[nodiscard]] inline std::optional<nccl_tests_half> half_at(const std::vector<std::string_view>& words, std::size_t i) {
  if (i + 3 > words.size()) return std::nullopt;
  const auto time = decimal(words[i]), algbw = decimal(words[i + 1]), busbw = decimal(words[i + 2]);
  if (!time || !algbw || !busbw || !(*time > 0)) return std::nullopt;
  return nccl_tests_half{{*time * 1e-6}, *algbw, *busbw};
}

}  // namespace detail

/// Reads one or more tables of one run, or the tables of several runs one after the other.
///
/// Columns: size, count, type, redop, root (absent in old versions), then time (us), algbw, busbw and wrong elements out
/// of place and in place. What is no such line (warnings, NCCL's log) is passed over. Linear.
/// @param file  for failures
/// @return `malformed_input` when there is no line of figures, or a line of figures lacks some
template <class = void>
[[nodiscard]] result<std::vector<nccl_tests_table>> parse_nccl_tests(std::string_view text, std::string_view file) {
  std::vector<nccl_tests_table> tables(1);
  std::vector<std::string> hosts;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = detail::without_tag(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const auto words = detail::columns_of(line);
    if (words.empty()) continue;
    const auto begins_run = [&] {
      if (tables.back().rows.empty()) return;
      tables.emplace_back();
      hosts.clear();
    };
    if (const std::size_t perf = line.find("_perf"); perf != std::string_view::npos && words[0][0] == '#') {
      std::size_t first = perf;
      while (first > 0 && ((line[first - 1] >= 'a' && line[first - 1] <= 'z') || line[first - 1] == '_')) --first;
      begins_run();
      tables.back().collective = std::string(line.substr(first, perf - first));
      continue;
    }
    if (words.size() > 3 && words[0] == "#" && words[1] == "Rank") {
      if (words[2] == "0") begins_run();
      ++tables.back().ranks;
      for (std::size_t i = 3; i + 1 < words.size(); ++i) {
        if (words[i] != "on") continue;
        bool known = false;
        for (const std::string& h : hosts) known = known || h == words[i + 1];
        if (!known) hosts.emplace_back(words[i + 1]);
        break;
      }
      tables.back().hosts = static_cast<std::uint32_t>(hosts.size());
      continue;
    }
    const auto size = digits_of(words[0], 10);
    const auto count = words.size() > 1 ? digits_of(words[1], 10) : std::nullopt;
    if (!size || !count || words.size() < 7 || is_digit(words[2][0])) continue;
    // With a root the fifth word is a whole number and eight or more words follow; without, it is a time.
    const bool root = words.size() == 13 || words.size() == 9 || words[4] == "-1";
    nccl_tests_row r;
    r.size = {*size};
    r.count = *count;
    r.type = std::string(words[2]);
    r.op = std::string(words[3]);
    const std::size_t first = root ? 5 : 4;
    r.out_of_place = detail::half_at(words, first);
    r.in_place = detail::half_at(words, first + 4);
    if (!r.out_of_place && !r.in_place)
      return fail(
          errc::malformed_input,
          std::string(file) + ":" + std::to_string(number) + ": a line of figures has no time with two bandwidths",
          "give the table as nccl-tests prints it");
    tables.back().rows.push_back(std::move(r));
  }
  if (tables.back().rows.empty()) tables.pop_back();
  if (tables.empty()) return fail(errc::malformed_input, std::string(file) + " has no line of figures");
  return tables;
}

}}}  // namespace topocoll::v0::read
