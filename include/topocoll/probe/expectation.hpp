// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every path of a machine should carry, from its links alone; "not known" where a link that nobody describes decides.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What a path should carry.
///
/// Every link carries its payload by `plan::alpha_beta`: line rate times the efficiency of its kind. A link whose capacity is
/// assumed (memory, links between sockets, silent PCIe links) is an unknown: it is passed over when it is taken to be at least
/// twice as wide as the narrowest known link, which then decides, and the answer is `derived`; otherwise nothing is known.
template <class = void>
[[nodiscard]] path_expectation expected_of(const topo::graph& g, const topo::routes& from, node_id to);

/// The paths that matter, one line per kind of pair with the same answer: GPU to GPU, GPU and NIC to each other, GPU and NIC to
/// the memory of their own NUMA domain, NUMA domain to its own memory, memory of one domain to another domain.
///
/// In a graph of several hosts, sources are the devices of the first host and destinations those of all.
/// Cost: O(sources * (n + m + destinations * path length)).
template <class = void>
[[nodiscard]] std::vector<path_expectation> expected_paths(const topo::graph& g);

namespace detail {

template <class = void>
[[nodiscard]] bool told(const topo::link& l) {
  return l.how != trust::assumed || (l.kind == topo::link_kind::pcie && l.nominal);
}

/// Payload of a link, from its line rate where that is known: the payload figures of NCCL's model are lower than what large
/// copies reach.
template <class = void>
[[nodiscard]] bytes_per_second payload_of(const topo::link& l) {
  if (l.how == trust::measured || !l.nominal || l.capacity.value == 0) return l.capacity;
  const plan::alpha_beta model;
  const bytes_per_second line = l.current && l.how != trust::assumed ? *l.current : *l.nominal;
  return line * model.price(l.kind).efficiency;
}

/// Devices of the same host whose way to their own processor crosses the connection of `e`, in either direction.
template <class = void>
[[nodiscard]] std::uint32_t sharers_of(const topo::graph& g, link_id e) {
  if (g.at(e).kind != topo::link_kind::pcie) return 1;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(topo::below(g, e).devices.size()));
}

}  // namespace detail

template <class>
path_expectation expected_of(const topo::graph& g, const topo::routes& from, node_id to) {
  path_expectation x;
  const bool several = topo::has_several_hosts(g);
  x.from = topo::label_of(g, from.from(), several);
  x.to = topo::label_of(g, to, several);
  const auto way = from.to(to);
  if (!way) {
    x.reason = "no path";
    return x;
  }
  x.distance = topo::class_of(g, *way, from.from());
  std::optional<link_id> narrow;
  std::optional<link_id> guess;
  for (const link_id e : way->links) {
    const topo::link& l = g.at(e);
    const bool known = detail::told(l);
    std::optional<link_id>& least = known ? narrow : guess;
    const auto rate = [&](link_id of) {
      return detail::told(g.at(of)) ? detail::payload_of(g.at(of)) : g.at(of).capacity;
    };
    if (!least || rate(e) < rate(*least)) least = e;
  }
  if (guess && (!narrow || g.at(*guess).capacity.value < 2 * detail::payload_of(g.at(*narrow)).value)) {
    x.reason = topo::describe(g, *guess, several) + ": " +
               (g.at(*guess).reason.empty() ? "nobody reports it" : g.at(*guess).reason);
    return x;
  }
  if (!narrow) return x;
  const topo::link& l = g.at(*narrow);
  x.line_rate = l.current && l.how != trust::assumed ? l.current : (l.nominal ? l.nominal : std::optional(l.capacity));
  x.payload = detail::payload_of(l);
  x.how = guess ? trust::derived : (l.how == trust::assumed ? trust::derived : l.how);
  x.sharers = detail::sharers_of(g, *narrow);
  x.reason = l.capacity.value == 0 ? "link down: " + l.reason : topo::describe(g, *narrow, several);
  return x;
}

template <class>
std::vector<path_expectation> expected_paths(const topo::graph& g) {
  std::vector<path_expectation> lines;
  struct key {
    topo::node_kind from, to;
    std::size_t line;
  };
  std::vector<key> keys;
  const auto all = [&](topo::node_kind k) { return g.all(k); };
  std::string first_host;
  for (const topo::node& n : g.nodes()) {
    if (n.host.empty()) continue;
    first_host = n.host;
    break;
  }
  const auto add = [&](const topo::routes& from, node_id to) {
    path_expectation x = expected_of(g, from, to);
    const topo::node_kind a = g.at(from.from()).kind;
    const topo::node_kind b = g.at(to).kind;
    // Lines are joined when a reader could not tell them apart: same kinds, class, figures and make of the deciding link.
    for (const key& k : keys) {
      path_expectation& line = lines[k.line];
      const bool same_rate =
          line.payload.has_value() == x.payload.has_value() &&
          (!x.payload || std::abs(line.payload->value - x.payload->value) <= 1e-6 * x.payload->value);
      if (k.from != a || k.to != b || line.distance != x.distance || !same_rate || line.how != x.how ||
          line.sharers != x.sharers)
        continue;
      if (line.pairs == 1) {
        line.from = topo::word_of(a);
        line.to = topo::word_of(b);
        if (line.reason != x.reason) line.reason += " and the like";
      }
      ++line.pairs;
      return;
    }
    keys.push_back({a, b, lines.size()});
    lines.push_back(std::move(x));
  };
  const auto gpus = all(topo::node_kind::gpu);
  const auto nics = all(topo::node_kind::nic);
  const auto cpus = all(topo::node_kind::cpu);
  const auto memories = all(topo::node_kind::host_memory);
  for (const auto* sources : {&gpus, &nics, &cpus}) {
    for (const node_id from : *sources) {
      const topo::node& n = g.at(from);
      if (n.host != first_host) continue;
      const topo::routes ways(g, from);
      if (n.kind == topo::node_kind::gpu)
        for (const node_id to : gpus)
          if (to != from) add(ways, to);
      if (n.kind == topo::node_kind::gpu)
        for (const node_id to : nics)
          if (g.at(to).host == n.host) add(ways, to);
      if (n.kind == topo::node_kind::nic && gpus.empty())
        for (const node_id to : nics)
          if (g.at(to).host != n.host) add(ways, to);
      for (const node_id to : memories) {
        const topo::node& m = g.at(to);
        if (m.host != n.host) continue;
        if (n.kind == topo::node_kind::cpu || !n.numa || m.numa == n.numa) add(ways, to);
      }
    }
  }
  return lines;
}

}}}  // namespace topocoll::v0::probe
