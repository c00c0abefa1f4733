// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a fragment is checked and frozen into a graph.
#include <algorithm>
#include <string>
#include <utility>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

inline result<graph> graph::from(fragment f) {
  graph g;
  g.source_ = std::move(f.source);
  g.nodes_ = std::move(f.nodes);
  g.links_ = std::move(f.links);
  g.findings_ = std::move(f.findings);
  const std::size_t n = g.nodes_.size();

  g.by_key_.resize(n);
  for (std::uint32_t v = 0; v < n; ++v) g.by_key_[v] = {v};
  seq::sort_by(g.by_key_, [&](node_id v) -> const std::string& { return g.nodes_[v.value].key; });
  for (std::size_t i = 1; i < n; ++i) {
    const std::string& key = g.at(g.by_key_[i]).key;
    if (key == g.at(g.by_key_[i - 1]).key)
      return fail(errc::malformed_input, g.source_ + ": two nodes share the key '" + key + "'",
                  "give every device its own address");
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
  const auto it = seq::lower_bound_by(by_key_, key, [&](node_id v) -> const std::string& { return at(v).key; });
  if (it == by_key_.end() || at(*it).key != key) return std::nullopt;
  return *it;
}

}}}  // namespace topocoll::v0::topo
