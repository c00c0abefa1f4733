// SPDX-License-Identifier: Apache-2.0
#pragma once
// What devices and hosts look like without their names: colours of nodes from kinds, models, links and neighbours.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

inline constexpr std::uint32_t no_place = UINT32_MAX;

/// Joins a number to a hash. Source of the mixing steps: Steele, Lea and Flood, OOPSLA 2014 (SplitMix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
  std::uint64_t z = (hash ^ more) + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;  // FNV-1a
  return mixed(mixed(hash, h), text.size());
}

/// Facts that say which product a device is; equal for all devices of a model.
[[nodiscard]] constexpr bool is_model_fact(std::string_view name) {
  for (const std::string_view known : {"arch", "class", "device", "familyid", "gcn", "model", "model_name", "modelid",
                                       "sm", "subsystem_device", "subsystem_vendor", "vendor"})
    if (name == known) return true;
  return false;
}
/// Facts that no two devices share.
[[nodiscard]] constexpr bool is_identity_fact(std::string_view name) {
  for (const std::string_view known : {"node_guid", "port_guid", "serial", "uuid"})
    if (name == known) return true;
  return false;
}
/// Value of a fact; null when the node has none of that name.
template <class = void>
[[nodiscard]] const std::string* fact_of(const node& n, std::string_view name) {
  for (const auto& [known, value] : n.facts)
    if (known == name) return &value;
  return nullptr;
}

/// The key without the host: "pci:0000:1b:00.0".
template <class = void>
[[nodiscard]] std::string_view local_key(const node& n) {
  const std::string_view key = n.key;
  return !n.host.empty() && key.size() > n.host.size() && key.substr(0, n.host.size()) == n.host &&
                 key[n.host.size()] == '/'
             ? key.substr(n.host.size() + 1)
             : key;
}

/// True for cables of the network.
[[nodiscard]] constexpr bool is_cable(link_kind k) { return k == link_kind::infiniband || k == link_kind::ethernet; }

/// True when a port says that it is down.
template <class = void>
[[nodiscard]] bool says_down(const node& n) {
  const std::string* state = fact_of(n, "state");
  if (state == nullptr) return false;
  std::string lower;
  for (const char c : *state) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("down") != std::string::npos || lower.find("disabled") != std::string::npos;
}

/// Rate at which the line runs as far as it is told: what it trained to, else the best of both ends; 0 when untold.
template <class = void>
[[nodiscard]] double line_of(const link& l) {
  if (l.current) return l.current->value;
  return l.nominal ? l.nominal->value : 0;
}

/// What two links must share to be equal for a reader of figures. What a source only assumed counts by its result alone:
/// an idle GPU that lowered its speed is no other GPU.
template <class = void>
[[nodiscard]] std::uint64_t figures_of(const link& l) {
  std::uint64_t h = static_cast<std::uint64_t>(l.kind) + 1;
  if (l.how == trust::assumed) return mixed(h, std::bit_cast<std::uint64_t>(l.capacity.value));
  const double line = line_of(l);
  h = mixed(mixed(h, l.generation), l.lanes);
  // Equal rates that were computed in different orders differ in the last bits; float drops those.
  h = mixed(h, std::bit_cast<std::uint32_t>(static_cast<float>(line > 0 ? line : l.capacity.value)));
  return mixed(h, l.capacity.value > 0 ? 1U : 0U);
}

/// Hosts of a graph and the host of each node.
struct host_table {
  std::vector<group> hosts;
  std::vector<std::uint32_t> host_of;  ///< position in `hosts`; `no_place` for fabric switches
  std::vector<node_id> fabric;         ///< nodes that belong to no host

  host_table() = default;
  template <class = void>
  static host_table of(const graph& g) {
    host_table t;
    t.hosts = topo::hosts(g);
    t.host_of.assign(g.node_count(), no_place);
    for (std::uint32_t h = 0; h < t.hosts.size(); ++h)
      for (const node_id v : t.hosts[h].nodes) t.host_of[v.value] = h;
    for (std::uint32_t v = 0; v < g.node_count(); ++v)
      if (t.host_of[v] == no_place) t.fabric.push_back({v});
    return t;
  }
};

/// Which figures of links colours see.
enum class seen_figures : std::uint8_t {
  none,   ///< what links are made of, not how fast they are
  best,   ///< the best that both ends can do where it is told: a link that trained low looks as it should
  actual  ///< what links run at
};

/// What the colours of nodes tell apart.
struct colour_options {
  unsigned rounds = 3;                        ///< how many links around a node its colour sees
  bool models = true;                         ///< which product a device is
  seen_figures figures = seen_figures::none;  ///< of links; with any of them also whether ports are down
};

/// A colour for each node: equal for nodes that look the same, whatever they are called and numbered. Neighbours in other
/// hosts and switches of the network count by their kind, so that a host's colours do not depend on where it is plugged
/// in. Source: Weisfeiler and Leman's refinement, 1968, with 64-bit hashes for the classes.
/// Cost: O(rounds * (nodes + links log links of a node)).
template <class = void>
[[nodiscard]] std::vector<std::uint64_t> colours_of(const graph& g, const host_table& hosts, colour_options o) {
  const std::size_t n = g.node_count();
  std::vector<std::uint64_t> base(n);
  for (std::uint32_t v = 0; v < n; ++v) {
    const node& d = g.at(node_id{v});
    std::uint64_t h = mixed(0, static_cast<std::uint64_t>(d.kind));
    if (o.models)
      for (const auto& [name, value] : d.facts)
        if (is_model_fact(name)) h = mixed(mixed(h, name), value);
    if (o.figures != seen_figures::none && d.kind == node_kind::nic_port && says_down(d)) h = mixed(h, 1U);
    base[v] = h;
  }
  std::vector<std::uint64_t> links;
  links.reserve(g.link_count());
  for (const link& l : g.links()) {
    const std::uint64_t kind = static_cast<std::uint64_t>(l.kind) + 1;
    if (o.figures == seen_figures::none)
      links.push_back(kind);
    else if (o.figures == seen_figures::best && l.nominal)
      links.push_back(mixed(kind, std::bit_cast<std::uint32_t>(static_cast<float>(l.nominal->value))));
    else
      links.push_back(figures_of(l));
  }
  std::vector<std::uint64_t> now = base;
  std::vector<std::uint64_t> next(n);
  std::vector<std::uint64_t> around;
  for (unsigned round = 0; round < o.rounds; ++round) {
    for (std::uint32_t v = 0; v < n; ++v) {
      around.clear();
      for (const link_id e : g.out_links({v})) {
        const node_id w = g.head(e);
        const bool inside = hosts.host_of[v] == hosts.host_of[w.value];
        around.push_back(mixed(links[e.value], inside ? now[w.value] : static_cast<std::uint64_t>(g.at(w).kind)));
      }
      std::sort(around.begin(), around.end());
      std::uint64_t h = now[v];
      for (const std::uint64_t x : around) h = mixed(h, x);
      next[v] = h;
    }
    now.swap(next);
  }
  return now;
}

/// One number for what a host looks like: equal for hosts with the same devices, joined in the same way.
template <class = void>
[[nodiscard]] std::uint64_t shape_of(const group& host, const std::vector<std::uint64_t>& colours) {
  std::vector<std::uint64_t> all;
  all.reserve(host.nodes.size());
  for (const node_id v : host.nodes) all.push_back(colours[v.value]);
  std::sort(all.begin(), all.end());
  std::uint64_t h = mixed(0, all.size());
  for (const std::uint64_t c : all) h = mixed(h, c);
  return h;
}

}}}}}  // namespace topocoll::v0::topo::detail::sameness
