// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an outcome becomes an exit code and one line, for the programs that call us.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/probe/verdict.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// Whose conventions to follow.
enum class exit_style : std::uint8_t {
  plain,  ///< 0 pass, 1 fail, 2 not measured
  npd,  ///< Kubernetes node-problem-detector custom plug-in: 0 OK, 1 problem, 2 unknown; message of at most 80 characters
  nagios,  ///< 0 OK, 1 warning (suspect), 2 critical, 3 unknown
  slurm  ///< prolog: non-zero drains the node, so only a failure gives 1; silent on success, reason under 80 characters
};

[[nodiscard]] constexpr std::string_view to_string(exit_style s) {
  constexpr std::string_view words[] = {"plain", "npd", "nagios", "slurm"};
  return words[static_cast<std::size_t>(s)];
}
[[nodiscard]] constexpr std::optional<exit_style> parse_exit_style(std::string_view word) {
  for (int s = 0; s <= static_cast<int>(exit_style::slurm); ++s)
    if (to_string(static_cast<exit_style>(s)) == word) return static_cast<exit_style>(s);
  return std::nullopt;
}

/// Exit code of a set of checks.
///
/// Slurm knows no "unknown": a prolog that could not look must leave the node as it is (mej/nhc#139), so `not_measured` is 0
/// there and the line says so. Sources: node-problem-detector custom plug-in monitor; Nagios plug-in guidelines; Slurm prolog
/// and epilog guide.
template <class = void>
[[nodiscard]] int exit_code_of(const tally& t, exit_style style) {
  const outcome all = overall(t);
  switch (style) {
    case exit_style::plain:
    case exit_style::npd: return all == outcome::pass ? 0 : (all == outcome::fail ? 1 : 2);
    case exit_style::nagios:
      if (all == outcome::fail) return 2;
      if (all == outcome::not_measured) return 3;
      return t.suspect > 0 ? 1 : 0;
    case exit_style::slurm: return all == outcome::fail ? 1 : 0;
  }
  return 2;
}

/// Cuts a line to `most` bytes at a word, never inside a UTF-8 character; three dots mark the cut.
template <class = void>
[[nodiscard]] std::string shortened(std::string_view line, std::size_t most) {
  if (line.size() <= most) return std::string(line);
  if (most < 4) return std::string(line.substr(0, most));
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
  const std::size_t blank = line.rfind(' ', end);
  if (blank != std::string_view::npos && blank > most / 2) end = blank;
  return std::string(line.substr(0, end)) + "...";
}

}}}  // namespace topocoll::v0::probe
