// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host files of MPI launchers: Open MPI ("host slots=8"), MPICH and Intel MPI ("host:8"), or bare names.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// One host of one line; a host that several lines name comes several times, as launchers add up its slots.
struct hostfile_entry {
  std::string host;
  std::optional<std::uint32_t> slot_count;  ///< processes; empty when not told
  std::optional<std::uint32_t> max_slots;   ///< of Open MPI
  std::uint32_t line = 0;
};
struct hostfile {
  std::vector<hostfile_entry> entries;
  std::vector<finding> findings;
};

/// True when the first line that says anything is a host with a number of slots. Bare names are not told from other texts.
template <class = void>
[[nodiscard]] bool looks_like_hostfile(std::string_view text);

/// Reads a host file; `#` begins a comment, brackets as in host lists work. Options that are not about slots are told.
/// @return `malformed_input` with file and line for a name that no host has or a bad number; `unsupported` for relative
///         hosts ("+n0") and more than `most_hosts` names. Linear.
template <class = void>
[[nodiscard]] result<hostfile> parse_hostfile(std::string_view text, std::string_view file);

namespace detail {

/// Takes the next word off the front; commas inside brackets and blanks end none.
[[nodiscard]] inline std::string_view take_word(std::string_view& row) {
  row = trimmed(row);
  std::size_t end = 0;
  for (bool inside = false; end < row.size(); ++end) {
    if (row[end] == '[') inside = true;
    if (row[end] == ']') inside = false;
    if (!inside && (row[end] == ' ' || row[end] == '\t')) break;
  }
  const std::string_view word = row.substr(0, end);
  row.remove_prefix(end);
  return word;
}

[[nodiscard]] inline std::string_view hostfile_row(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view row = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trimmed(row.substr(0, row.find('#')));
}

/// "host:8" cut at its only colon outside brackets; an address of IPv6 has more of them.
[[nodiscard]] inline std::size_t slot_colon(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon != std::string_view::npos && word.find(':', colon + 1) == std::string_view::npos
             ? colon
             : std::string_view::npos;
}

}  // namespace detail

template <class>
bool looks_like_hostfile(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    std::string_view row = detail::hostfile_row(text);
    if (row.empty()) continue;
    const std::string_view host = detail::take_word(row);
    if (host.find_first_of("={}<>\"(),/") != std::string_view::npos) return false;
    const std::string_view option = detail::take_word(row);
    if (option.substr(0, 6) == "slots=" || option.substr(0, 10) == "max_slots=" || option.substr(0, 10) == "max-slots=")
      return small_number(option.substr(option.find('=') + 1)).has_value();
    const std::size_t colon = detail::slot_colon(host);
    return colon != std::string_view::npos && colon > 0 && option.empty() &&
           digits_of(host.substr(colon + 1), 10).has_value();
  }
  return false;
}

template <class>
result<hostfile> parse_hostfile(std::string_view text, std::string_view file) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  hostfile h;
  std::uint32_t line = 0;
  std::size_t left = most_hosts;
  std::vector<std::string> told;
  while (!text.empty()) {
    std::string_view row = detail::hostfile_row(text);
    ++line;
    if (row.empty()) continue;
    const std::string where = std::string(file) + " line " + std::to_string(line);
    std::string_view word = detail::take_word(row);
    if (word.front() == '+' || word.front() == '^')
      return fail(errc::unsupported, where + ": '" + std::string(word.substr(0, 80)) + "' names hosts of another list",
                  "write the names of the hosts");
    hostfile_entry e;
    e.line = line;
    const auto number = [&](std::string_view digits, std::optional<std::uint32_t>& to) -> result<void> {
      to = digits_of(digits, 10) ? small_number(digits) : std::nullopt;
      if (to) return {};
      return fail(errc::malformed_input,
                  where + ": '" + std::string(digits.substr(0, 40)) + "' is not a number of slots");
    };
    if (const std::size_t colon = detail::slot_colon(word); colon != std::string_view::npos) {
      if (auto ok = number(word.substr(colon + 1), e.slot_count); !ok) return std::move(ok).error();
      word = word.substr(0, colon);
    }
    while (!(row = trimmed(row)).empty()) {
      const std::string_view option = detail::take_word(row);
      const std::size_t equals = option.find('=');
      if (equals == std::string_view::npos || equals == 0)
        return fail(errc::malformed_input, where + ": '" + std::string(option.substr(0, 80)) +
                                               "' after the host is no option such as slots=8");
      const std::string_view name = option.substr(0, equals);
      const std::string_view value = option.substr(equals + 1);
      result<void> ok;
      if (name == "slots" || name == "cpu" || name == "count") {
        ok = number(value, e.slot_count);
      } else if (name == "max_slots" || name == "max-slots") {
        ok = number(value, e.max_slots);
      } else if (!seq::contains(told, name) && told.size() < 16) {
        told.emplace_back(name);
        h.findings.push_back({severity::note,
                              where,
                              "the option '" + std::string(name) +
                                  "' says nothing about hosts "
                                  "or slots and was passed over",
                              {},
                              {},
                              1});
      }
      if (!ok) return std::move(ok).error();
    }
    auto names = expand_hostlist(word, left);
    if (!names) return fail(names.error().code, where + ": " + names.error().what, names.error().next);
    if (names->empty()) return fail(errc::malformed_input, where + ": the line names no host");
    left -= names->size();
    for (std::string& name : *names) {
      e.host = std::move(name);
      h.entries.push_back(e);
    }
  }
  if (h.entries.empty()) return fail(errc::malformed_input, std::string(file) + " names no host");
  return h;
}

}}}  // namespace topocoll::v0::read
