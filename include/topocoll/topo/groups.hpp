// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of nodes that belong together: hosts, NVLink islands, leaves with their NICs, rails.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Nodes under one name.
struct group {
  std::string name;
  std::vector<node_id> nodes;
};

/// NICs that belong to one rail.
struct rail {
  std::uint32_t index = 0;      ///< position of its NICs in their hosts, counted over NICs that have a cable
  std::vector<node_id> nics;    ///< at most one of each host
  std::vector<node_id> leaves;  ///< where they plug in; none in a graph without a fabric
  bool shares_leaf = false;     ///< a leaf of this rail serves another rail too: the fabric is not rail-optimised
};

/// Nodes by host, hosts in the order of their first node; fabric switches belong to none. Cost: O(n log n).
template <class = void>
[[nodiscard]] std::vector<group> hosts(const graph& g);

/// GPUs that NVLink or XGMI joins, directly, through NVSwitch or by way of each other; a GPU without such links is an
/// island of one. An island may span hosts. In the order of their first GPU. Cost: O(n + m).
template <class = void>
[[nodiscard]] std::vector<group> nvlink_islands(const graph& g);

/// For each leaf its NICs (a NIC once, however many of its ports plug in there), leaves in the order of the graph.
/// Cost: O(n + m).
template <class = void>
[[nodiscard]] std::vector<group> leaves(const graph& g);

/// NICs by their position in the host: the i-th NICs of all hosts are rail i.
///
/// The position is the order of the NICs' index, or of their keys where the index is not told. NICs without a cable are
/// left out when any NIC of the graph has one (a management port would shift all others). Cost: O(n log n + m).
template <class = void>
[[nodiscard]] std::vector<rail> rails(const graph& g);

/// The leaf, spine or core switches that a NIC plugs into, through its ports or directly; sorted, each once.
template <class = void>
[[nodiscard]] std::vector<node_id> switches_of(const graph& g, node_id nic);

namespace detail {

[[nodiscard]] constexpr bool is_network_switch(node_kind k) {
  return k == node_kind::leaf || k == node_kind::spine || k == node_kind::core_switch;
}

/// True when a cable ends at the NIC or at one of its ports.
template <class = void>
[[nodiscard]] bool has_cable(const graph& g, node_id nic) {
  const auto plugged = [&](node_id v) {
    return seq::any_of(g.out_links(v), [&](link_id e) {
      return g.at(e).kind == link_kind::infiniband || g.at(e).kind == link_kind::ethernet;
    });
  };
  return plugged(nic) || seq::any_of(g.out_links(nic), [&](link_id e) {
           return g.at(e).kind == link_kind::internal && plugged(g.head(e));
         });
}

}  // namespace detail

template <class>
std::vector<group> hosts(const graph& g) {
  std::vector<group> all;
  std::vector<std::size_t> by_name;  // positions in `all`, sorted by name
  for (std::uint32_t v = 0; v < g.node_count(); ++v) {
    const std::string& host = g.at(node_id{v}).host;
    if (host.empty()) continue;
    // Nodes of a host mostly follow each other.
    if (!all.empty() && all.back().name == host) {
      all.back().nodes.push_back({v});
      continue;
    }
    const auto it =
        seq::lower_bound_by(by_name, host, [&](std::size_t i) -> const std::string& { return all[i].name; });
    if (it != by_name.end() && all[*it].name == host) {
      all[*it].nodes.push_back({v});
      continue;
    }
    by_name.insert(it, all.size());
    all.push_back({host, {{v}}});
  }
  return all;
}

template <class>
std::vector<group> nvlink_islands(const graph& g) {
  std::vector<group> all;
  std::vector<bool> seen(g.node_count(), false);
  for (const node_id start : g.all(node_kind::gpu)) {
    if (seen[start.value]) continue;
    seen[start.value] = true;
    std::vector<node_id> found{start};
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const link_id e : g.out_links(found[i])) {
        const node_id w = g.head(e);
        if (seen[w.value] || (g.at(e).kind != link_kind::nvlink && g.at(e).kind != link_kind::xgmi)) continue;
        seen[w.value] = true;
        found.push_back(w);
      }
    std::erase_if(found, [&](node_id v) { return g.at(v).kind != node_kind::gpu; });
    seq::sort(found);
    all.push_back({"island " + std::to_string(all.size()), std::move(found)});
  }
  return all;
}

template <class>
std::vector<node_id> switches_of(const graph& g, node_id nic) {
  std::vector<node_id> found;
  const auto add = [&](node_id v) {
    for (const link_id e : g.out_links(v))
      if (detail::is_network_switch(g.at(g.head(e)).kind)) found.push_back(g.head(e));
  };
  add(nic);
  for (const link_id e : g.out_links(nic))
    if (g.at(e).kind == link_kind::internal) add(g.head(e));
  seq::sort_unique(found);
  return found;
}

template <class>
std::vector<group> leaves(const graph& g) {
  std::vector<group> all;
  std::vector<std::size_t> place(g.node_count(), 0);
  for (const node_id v : g.all(node_kind::leaf)) {
    place[v.value] = all.size();
    all.push_back({g.at(v).name.empty() ? g.at(v).key : g.at(v).name, {}});
  }
  for (const node_id nic : g.all(node_kind::nic))
    for (const node_id s : switches_of(g, nic))
      if (g.at(s).kind == node_kind::leaf) all[place[s.value]].nodes.push_back(nic);
  return all;
}

template <class>
std::vector<rail> rails(const graph& g) {
  std::vector<node_id> nics = g.all(node_kind::nic);
  std::vector<node_id> plugged;
  for (const node_id v : nics)
    if (detail::has_cable(g, v)) plugged.push_back(v);
  if (!plugged.empty()) nics = std::move(plugged);
  seq::sort(nics, [&](node_id a, node_id b) {
    const node& x = g.at(a);
    const node& y = g.at(b);
    if (x.host != y.host) return x.host < y.host;
    constexpr std::uint32_t last = UINT32_MAX;
    if (x.index.value_or(last) != y.index.value_or(last)) return x.index.value_or(last) < y.index.value_or(last);
    return x.key < y.key;
  });
  std::vector<rail> all;
  std::uint32_t position = 0;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    position = i > 0 && g.at(nics[i]).host == g.at(nics[i - 1]).host ? position + 1 : 0;
    if (position == all.size()) {
      all.emplace_back();
      all.back().index = position;
    }
    all[position].nics.push_back(nics[i]);
  }
  std::vector<std::uint32_t> rail_of_leaf(g.node_count(), UINT32_MAX);
  for (rail& r : all) {
    for (const node_id nic : r.nics)
      for (const node_id s : switches_of(g, nic)) r.leaves.push_back(s);
    seq::sort_unique(r.leaves);
    seq::sort(r.nics);
    for (const node_id s : r.leaves) {
      std::uint32_t& owner = rail_of_leaf[s.value];
      if (owner == UINT32_MAX)
        owner = r.index;
      else if (owner != r.index)
        r.shares_leaf = all[owner].shares_leaf = true;
    }
  }
  return all;
}

}}}  // namespace topocoll::v0::topo
