// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists of "host: value" that fabric tools write before a scheduler file: ports of hosts by GUID, hosts of NVLink domains.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// One line.
struct host_value {
  std::string host;
  std::string value;  ///< a GUID as 16 lower-case hexadecimal digits, or a domain as written
  std::uint32_t line = 0;
};
struct host_map {
  bool ports = false;  ///< values are GUIDs of InfiniBand ports; else names of NVLink domains (UUIDs)
  std::vector<host_value> rows;
};

/// True when the first line that says anything is "host: 0x<hexadecimal digits>" or "host: <UUID>".
template <class = void>
[[nodiscard]] bool looks_like_host_map(std::string_view text);

/// Reads such a list; `#` comments and empty lines do not matter. A host may have several ports, but one domain.
/// @return `malformed_input` with file and line for any other line, for values of both kinds, a port that two lines have, or
///         a host in two domains; `unsupported` for more than `most_hosts` lines. Cost: O(n log n).
template <class = void>
[[nodiscard]] result<host_map> parse_host_map(std::string_view text, std::string_view file);

/// The 16 lower-case hexadecimal digits of "0x155dfffd33ff33"; empty for what is no 64-bit number with 0x.
[[nodiscard]] inline std::string guid_digits(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || (text[1] | 0x20) != 'x') return {};
  std::string digits(18 - text.size(), '0');
  for (const char c : text.substr(2)) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
      digits += c;
    else if (c >= 'A' && c <= 'F')
      digits += static_cast<char>(c + ('a' - 'A'));
    else
      return {};
  }
  return digits;
}

namespace detail {

/// 8-4-4-4-12 hexadecimal digits; a clique number after one of ".:/_" may follow.
[[nodiscard]] constexpr bool is_domain_uuid(std::string_view text) {
  if (text.size() < 36) return false;
  for (std::size_t i = 0; i < 36; ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) return false;
  }
  text.remove_prefix(36);
  if (text.empty()) return true;
  if (text.size() < 2 || std::string_view(".:/_").find(text[0]) == std::string_view::npos) return false;
  return text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// Takes one line off the front, without its comment and blanks.
[[nodiscard]] inline std::string_view take_row(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view row = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trimmed(row.substr(0, row.find('#')));
}

/// "host: value" taken apart; both empty when the row is something else.
[[nodiscard]] inline std::pair<std::string_view, std::string_view> host_and_value(std::string_view row) {
  const std::size_t colon = row.find(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  const std::string_view host = trimmed(row.substr(0, colon));
  const std::string_view value = trimmed(row.substr(colon + 1));
  if (value.empty() || host.find_first_of(" \t,[]={}\"") != std::string_view::npos || host.size() > longest_host_name)
    return {};
  return {host, value};
}

}  // namespace detail

template <class>
bool looks_like_host_map(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const std::string_view row = detail::take_row(text);
    if (row.empty()) continue;
    const auto [host, value] = detail::host_and_value(row);
    return !host.empty() && (!guid_digits(value).empty() || detail::is_domain_uuid(value));
  }
  return false;
}

template <class>
result<host_map> parse_host_map(std::string_view text, std::string_view file) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  host_map m;
  std::uint32_t line = 0;
  const auto refuse = [&](std::uint32_t at, const std::string& why) {
    return fail(errc::malformed_input, std::string(file) + " line " + std::to_string(at) + ": " + why);
  };
  while (!text.empty()) {
    const std::string_view row = detail::take_row(text);
    ++line;
    if (row.empty()) continue;
    const auto [host, value] = detail::host_and_value(row);
    const std::string guid = guid_digits(value);
    if (host.empty() || (guid.empty() && !detail::is_domain_uuid(value)))
      return refuse(line, "'" + std::string(row.substr(0, 80)) +
                              "' is not a host, a colon, and a port GUID (0x…) or a domain UUID");
    if (m.rows.empty()) m.ports = !guid.empty();
    if (m.ports != !guid.empty()) return refuse(line, "port GUIDs and domain UUIDs are mixed");
    if (m.rows.size() == most_hosts)
      return fail(errc::unsupported, std::string(file) + " has more than " + std::to_string(most_hosts) + " lines");
    m.rows.push_back({std::string(host), m.ports ? guid : std::string(value), line});
  }
  if (m.rows.empty()) return fail(errc::malformed_input, std::string(file) + " names no host");
  std::vector<std::uint32_t> order(m.rows.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::uint32_t i) -> const std::string& { return m.ports ? m.rows[i].value : m.rows[i].host; };
  seq::sort_by(order, key);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const host_value& a = m.rows[order[i - 1]];
    const host_value& b = m.rows[order[i]];
    if (key(order[i]) != key(order[i - 1]) || (!m.ports && a.value == b.value)) continue;
    return refuse(b.line,
                  m.ports ? "the port 0x" + b.value + " was given on line " + std::to_string(a.line) + " already"
                          : "the host '" + b.host + "' is in another domain than on line " + std::to_string(a.line));
  }
  return m;
}

}}}  // namespace topocoll::v0::read
