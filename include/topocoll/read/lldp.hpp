// SPDX-License-Identifier: Apache-2.0
#pragma once
// What LLDP tables say about who is plugged into what, as plain structs; the JSON of lldpctl is read by lldp_json.hpp.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// One neighbour of one interface.
struct lldp_neighbor {
  std::string net_interface;      ///< of the machine that asked
  std::string name;               ///< of the neighbour's chassis; empty when it tells none
  std::string id;                 ///< of its chassis, as written: a MAC address unless `id_type` says otherwise
  std::string id_type;            ///< "mac", "local", "ip", …
  std::string port;               ///< the neighbour's port: its id, or its description where the id is a MAC address
  std::optional<bool> is_switch;  ///< bridge or router, by the capabilities that are on; empty when it tells none
  std::optional<bytes_per_second> rate;  ///< what auto-negotiation came to; empty when not told
};
/// The table of one machine.
struct lldp_table {
  std::string host;  ///< empty when the file does not say whose table it is
  std::vector<lldp_neighbor> neighbors;
};

/// True for a JSON text that holds one table (`{"lldp": …}`), tables by host (`{"node1": {"lldp": …}}`), or a list of tables
/// with names (`[{"host": "node1", "lldp": …}]`).
template <class = void>
[[nodiscard]] bool looks_like_lldp(std::string_view text);

/// Rate of a port by the name of its medium: "100GbaseCR4 - …", "10GigBaseLR", "1000BaseTFD". Empty for anything else.
/// Source: the names are those of IEEE 802.3, clause 1.2.3: rate in Mb/s, or in Gb/s with a G.
[[nodiscard]] constexpr std::optional<bytes_per_second> medium_rate(std::string_view text) {
  text = trimmed(text);
  double number = 0;
  std::size_t at = 0;
  while (at < text.size() && at < 6 && text[at] >= '0' && text[at] <= '9') number = number * 10 + (text[at++] - '0');
  const bool giga = at < text.size() && (text[at] | 0x20) == 'g';
  if (giga) at += (text.substr(at, 3) == "Gig" || text.substr(at, 3) == "gig") ? 3U : 1U;
  constexpr std::string_view base = "base";
  for (std::size_t i = 0; i < base.size(); ++i)
    if (at + i >= text.size() || (text[at + i] | 0x20) != base[i]) return std::nullopt;
  if (number <= 0) return std::nullopt;
  return bytes_per_second{number * (giga ? 1.25e8 : 1.25e5)};
}

template <class>
bool looks_like_lldp(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  std::size_t at = 0;
  const auto blanks = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) ++at;
  };
  const auto is = [&](char c) {
    blanks();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  const auto word = [&]() -> std::string_view {
    if (!is('"')) return {};
    const std::size_t end = text.find('"', at);
    const std::string_view found = text.substr(at, end == std::string_view::npos ? 0 : end - at);
    at = end == std::string_view::npos ? text.size() : end + 1;
    return found;
  };
  const bool list = is('[');
  if (!is('{')) return false;
  std::string_view key = word();
  if (list) {
    if ((key != "host" && key != "hostname") || !is(':') || word().empty() || !is(',')) return key == "lldp";
    return word() == "lldp";
  }
  if (key == "lldp") return is(':');
  return !key.empty() && is(':') && is('{') && word() == "lldp" && is(':');
}

}}}  // namespace topocoll::v0::read
