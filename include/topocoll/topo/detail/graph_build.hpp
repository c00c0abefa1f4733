// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a fragment is checked and frozen into a graph.
#include <algorithm>
#include <string>
#include <utility>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

inline result<graph> graph::from(fragment f) {
  graph g;
  g.source_ = std::move(f.source);
  g.nodes_ = std::move(f.nodes);
  g.links_ = std::move(f.links);
  g.findings_ = std::move(f.findings);
  const std::size_t n = g.nodes_.size();

  // Open addressing, at most half full: sorting the keys of a million nodes took a third of building their graph.
  std::size_t places = 2;
  while (places < 2 * n) places *= 2;
  g.by_key_.assign(places, no_node);
  for (std::uint32_t v = 0; v < n; ++v) {
    node_id& place = g.by_key_[g.place_of(g.nodes_[v].key)];
    if (place != no_node)
      return fail(errc::malformed_input, g.source_ + ": two nodes share the key '" + g.nodes_[v].key + "'",
                  "give every device its own address");
    place = {v};
  }

  g.first_out_.assign(n + 1, 0);
  for (const link& l : g.links_) {
    if (l.from.value >= n || l.to.value >= n)
      return fail(errc::malformed_input, g.source_ + ": a link joins node " + std::to_string(l.from.value) +
                                             " to node " + std::to_string(l.to.value) + ", but there are only " +
                                             std::to_string(n));
    if (l.from == l.to)
      return fail(errc::malformed_input, g.source_ + ": a link joins '" + g.at(l.from).key + "' to itself");
    if (!(l.capacity.value >= 0) || l.capacity.value > 1e300)
      return fail(errc::malformed_input, g.source_ + ": the link from '" + g.at(l.from).key + "' to '" +
                                             g.at(l.to).key +
                                             "' has a capacity that is not a number of bytes per second");
    ++g.first_out_[l.from.value + 1];
  }
  for (std::size_t v = 0; v < n; ++v) g.first_out_[v + 1] += g.first_out_[v];
  g.out_.resize(g.links_.size());
  std::vector<std::size_t> next(g.first_out_.begin(), g.first_out_.end() - 1);
  for (std::uint32_t e = 0; e < g.links_.size(); ++e) g.out_[next[g.links_[e].from.value]++] = {e};
  return g;
}

inline std::optional<node_id> graph::find(const std::string& key) const {
  if (by_key_.empty()) return std::nullopt;
  const node_id found = by_key_[place_of(key)];
  if (found == no_node) return std::nullopt;
  return found;
}

inline std::size_t graph::place_of(const std::string& key) const {
  const std::size_t last = by_key_.size() - 1;
  std::size_t place = std::hash<std::string>{}(key)&last;
  while (by_key_[place] != no_node && at(by_key_[place]).key != key) place = (place + 1) & last;
  return place;
}

}}}  // namespace topocoll::v0::topo
