// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of topo/check.hpp share: the graph, its hosts, what was said already, and links below their best.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/check_options.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// The value that more than half of the entries have; `found` is false when none has.
struct majority {
  std::uint64_t value = 0;
  std::size_t count = 0;
  bool found = false;
};
template <class = void>
[[nodiscard]] majority majority_of(std::vector<std::uint64_t> all) {
  std::sort(all.begin(), all.end());
  majority m;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end] == all[i]) ++end;
    if (end - i > m.count) m = {all[i], end - i, 2 * (end - i) > all.size()};
    i = end;
  }
  return m;
}

/// Findings of one sort, of which only so many are written out.
struct sort_of_finding {
  std::string_view name;  ///< a literal
  std::size_t said = 0, unsaid = 0;
};

struct check_context {
  const graph& g;
  const check_options& o;
  host_table hosts;
  bool several = false;
  std::vector<std::uint8_t> named_links;  ///< by link: a finding is about it
  std::vector<std::uint32_t> lost_nics;   ///< by host: NICs missing or without cable that were named
  std::vector<std::uint32_t> kinds;       ///< by host: equal for hosts that are compared with each other
  std::vector<finding> findings;
  std::vector<sort_of_finding> sorts;

  template <class = void>
  check_context(const graph& of, const check_options& options)
      : g(of),
        o(options),
        hosts(host_table::of(of)),
        several(has_several_hosts(of)),
        named_links(of.link_count(), 0),
        lost_nics(hosts.hosts.size(), 0),
        kinds(hosts.hosts.size(), 0) {}

  template <class = void>
  void say(std::string_view sort, severity level, std::string where, std::string what, std::string evidence = {},
           std::string next = {}) {
    std::size_t s = 0;
    while (s < sorts.size() && sorts[s].name != sort) ++s;
    if (s == sorts.size()) sorts.push_back({sort});
    if (sorts[s].said == o.most_named) {
      ++sorts[s].unsaid;
      return;
    }
    ++sorts[s].said;
    findings.push_back({level, std::move(where), std::move(what), std::move(evidence), std::move(next), 1});
  }
  template <class = void>
  [[nodiscard]] std::string name(node_id v) const {
    return label_of(g, v, several);
  }
  [[nodiscard]] std::string ends(node_id a, node_id b) const { return g.at(a).key + " - " + g.at(b).key; }
  [[nodiscard]] bool named(node_id from, node_id to) const {
    for (const link_id e : g.out_links(from))
      if (g.head(e) == to && named_links[e.value] != 0) return true;
    return false;
  }
  void name_links(node_id from, node_id to) {
    for (const link_id e : g.out_links(from))
      if (g.head(e) == to) named_links[e.value] = 1;
    for (const link_id e : g.out_links(to))
      if (g.head(e) == from) named_links[e.value] = 1;
  }
};

/// True when a cable of the network ends at the node.
template <class = void>
[[nodiscard]] bool has_cables(const graph& g, node_id v) {
  return seq::any_of(g.out_links(v), [&](link_id e) { return is_cable(g.at(e).kind); });
}

/// The network switch at the other end of a cable, and the cable.
struct plug {
  node_id port, far;
  link_id cable;
};

/// Cables of a node to switches of the network.
template <class = void>
[[nodiscard]] std::vector<plug> plugs_of(const graph& g, node_id v) {
  std::vector<plug> all;
  for (const link_id e : g.out_links(v))
    if (is_network_switch(g.at(g.head(e)).kind)) all.push_back({v, g.head(e), e});
  return all;
}

/// Links that run below what both ends can do, and dead ones.
template <class = void>
void check_links(check_context& c) {
  const graph& g = c.g;
  const auto below_best = [&](const link& l) {
    return l.capacity.value <= 0 || (l.how != trust::assumed && l.nominal && l.current &&
                                     l.current->value < l.nominal->value * (1 - c.o.tolerance));
  };
  for (std::uint32_t e = 0; e < g.link_count(); ++e)
    if (below_best(g.at(link_id{e}))) c.named_links[e] = 1;
  for (std::uint32_t e = 0; e < g.link_count(); ++e) {
    if (c.named_links[e] == 0) continue;
    const link& l = g.at(link_id{e});
    // The way back says nothing new, and an adapter goes with the cable of its port.
    bool told = false;
    for (const link_id back : g.out_links(l.to)) {
      const link& b = g.at(back);
      if (b.to == l.from && b.kind == l.kind && b.capacity == l.capacity && c.named_links[back.value] != 0)
        told = told || back.value < e;
    }
    if (l.kind == link_kind::internal)
      for (const node_id end : {l.from, l.to})
        for (const link_id other : g.out_links(end))
          told = told || (is_cable(g.at(other).kind) && c.named_links[other.value] != 0);
    if (told) continue;
    const std::string ends =
        std::string("the ") + link_word(l.kind) + " between " + c.name(l.from) + " and " + c.name(l.to);
    const auto text = [&](bytes_per_second r) { return is_cable(l.kind) ? bits_text(r) : to_string(r); };
    if (l.capacity.value <= 0 && l.kind == link_kind::internal) continue;  // a port that is down, told with its host
    if (l.capacity.value <= 0) {
      c.say("dead link", severity::fault, c.ends(l.from, l.to), ends + " carries nothing",
            l.nominal ? "both ends can do " + text(*l.nominal) : l.reason, "look at both ends and what is between");
      continue;
    }
    const bool plain = g.at(l.from).kind == node_kind::pcie_device || g.at(l.to).kind == node_kind::pcie_device;
    std::string evidence = "runs at " + text(*l.current) + ", both ends can do " + text(*l.nominal);
    if (l.lanes != 0 && !is_cable(l.kind)) evidence += " (now " + make_of(l) + ")";
    c.say("link below its best", plain ? severity::note : severity::warning, c.ends(l.from, l.to),
          ends + " runs at " + text(*l.current) + " of " + text(*l.nominal), std::move(evidence),
          is_cable(l.kind) ? "reseat or replace the cable; look at error counters and the port's settings"
                           : "reseat the card; look at the slot's settings and at the device's error counters");
  }
}

}}}}}  // namespace topocoll::v0::topo::detail::sameness
