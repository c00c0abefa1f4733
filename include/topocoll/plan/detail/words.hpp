// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes, sides of cuts and counts in words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// "1 link", "16 links".
template <class = void>
[[nodiscard]] std::string plural(std::size_t count, std::string_view word) {
  std::string text = std::to_string(count) + ' ' + std::string(word);
  if (count != 1) text += 's';
  return text;
}

/// "GPU 3 of node2", "leaf 1"; the key for nodes without a name.
template <class = void>
[[nodiscard]] std::string name_of(const topo::graph& g, node_id v) {
  const topo::node& n = g.at(v);
  const std::string& name = n.name.empty() ? n.key : n.name;
  return n.host.empty() || n.name.empty() ? name : name + " of " + n.host;
}

/// "a", "a and b", "a, b and c", "a, b, … and z" (first two and last of four or more).
template <class = void>
[[nodiscard]] std::string listed(std::span<const std::string> names) {
  if (names.empty()) return "nothing";
  if (names.size() == 1) return names[0];
  if (names.size() == 2) return names[0] + " and " + names[1];
  if (names.size() == 3) return names[0] + ", " + names[1] + " and " + names[2];
  return names[0] + ", " + names[1] + ", ... and " + names.back();
}

/// The ranks `members` (rank numbers, ascending) of a problem, as hosts where they fill them.
template <class = void>
[[nodiscard]] std::string ranks_in_words(const topo::graph& g, std::span<const node_id> ranks,
                                         std::span<const std::uint32_t> members) {
  if (members.empty()) return "no rank";
  if (members.size() == ranks.size()) return "all " + plural(ranks.size(), "rank");
  bool shared = false;
  for (std::size_t k = 0; k < ranks.size() && members.size() == 1; ++k)
    shared = shared || (k != members[0] && ranks[k] == ranks[members[0]]);
  if (members.size() == 1)
    return (shared ? "rank " + std::to_string(members[0]) + " on " : "") + name_of(g, ranks[members[0]]);
  std::vector<std::string> hosts;  // few: stop at the first rank without a host
  for (const std::uint32_t k : members) {
    const std::string& host = g.at(ranks[k]).host;
    if (host.empty()) {
      hosts.clear();
      break;
    }
    if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
  }
  seq::sort_unique(hosts);
  std::size_t there = 0;  // ranks on these hosts
  for (const node_id v : ranks)
    if (std::binary_search(hosts.begin(), hosts.end(), g.at(v).host)) ++there;
  if (hosts.empty()) {
    std::vector<std::string> names;
    for (const std::uint32_t k : members)
      if (names.size() < 3 || k == members.back()) names.push_back(name_of(g, ranks[k]));
    return plural(members.size(), "rank") + " (" + listed(names) + ")";
  }
  // Names sort by length first: node2 before node10.
  seq::sort(hosts, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  if (there != members.size())
    return std::to_string(members.size()) + " of the " + plural(there, "rank") + " of " + listed(hosts);
  if (hosts.size() == 1) return "host " + hosts[0];
  return plural(hosts.size(), "host") + " (" + listed(hosts) + ")";
}

}}}}  // namespace topocoll::v0::plan::detail
