// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many of each thing a topology graph holds.
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Counts. A device that is not to be trusted still counts.
struct summary {
  std::size_t hosts = 0;
  std::size_t gpus = 0;
  std::size_t nics = 0;  ///< network interfaces: the ports of an adapter that shows ports, else the adapter as one
  std::size_t numa_domains = 0;
  std::size_t pcie_switches = 0;
  std::size_t nvswitches = 0;  ///< NVSwitch planes, not chips
  std::size_t switches = 0;    ///< leaves, spines and core switches
  std::size_t links = 0;       ///< connections: both directions of one are one, parallel ones are several

  friend constexpr bool operator==(const summary&, const summary&) = default;
};

namespace detail {

/// A directed link by its ends: equal but for `upwards` are the two directions of one connection.
struct connection {
  node_id low, high;
  link_kind kind;
  bool upwards;

  friend constexpr auto operator<=>(const connection&, const connection&) = default;
  friend constexpr bool operator==(const connection&, const connection&) = default;
};

}  // namespace detail

/// Counts what is in the graph. Cost: O(n log n + m log m).
template <class = void>
[[nodiscard]] summary summarize(const graph& g) {
  summary s;
  s.hosts = hosts(g).size();
  for (std::uint32_t v = 0; v < g.node_count(); ++v) switch (g.at(node_id{v}).kind) {
      case node_kind::gpu: ++s.gpus; break;
      case node_kind::nic: {
        const bool shows_ports = seq::any_of(g.out_links({v}), [&](link_id e) {
          return g.at(e).kind == link_kind::internal && g.at(g.head(e)).kind == node_kind::nic_port;
        });
        s.nics += shows_ports ? 0 : 1;
        break;
      }
      case node_kind::nic_port: ++s.nics; break;
      case node_kind::cpu: ++s.numa_domains; break;
      case node_kind::pcie_switch: ++s.pcie_switches; break;
      case node_kind::nvswitch: ++s.nvswitches; break;
      case node_kind::leaf:
      case node_kind::spine:
      case node_kind::core_switch: ++s.switches; break;
      case node_kind::host_memory:
      case node_kind::pcie_root:
      case node_kind::pcie_device: break;
    }
  // Between two nodes there are as many connections of a kind as the direction with more links has.
  std::vector<detail::connection> ends;
  ends.reserve(g.link_count());
  for (const link& l : g.links())
    ends.push_back({std::min(l.from, l.to), std::max(l.from, l.to), l.kind, l.from < l.to});
  seq::sort(ends);
  std::size_t there = 0;
  std::size_t back = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const detail::connection& c = ends[i];
    ++(c.upwards ? there : back);
    if (i + 1 < ends.size() && ends[i + 1].low == c.low && ends[i + 1].high == c.high && ends[i + 1].kind == c.kind)
      continue;
    s.links += std::max(there, back);
    there = back = 0;
  }
  return s;
}

/// "1 host, 8 GPUs, 9 NICs, 2 NUMA domains, 4 PCIe switches": what there is none of is left out.
template <class = void>
[[nodiscard]] std::string to_string(const summary& s) {
  std::string text;
  const auto add = [&](std::size_t n, const char* one, const char* many) {
    if (n == 0) return;
    if (!text.empty()) text += ", ";
    text += std::to_string(n) + ' ' + (n == 1 ? one : many);
  };
  add(s.hosts, "host", "hosts");
  add(s.gpus, "GPU", "GPUs");
  add(s.nics, "NIC", "NICs");
  add(s.numa_domains, "NUMA domain", "NUMA domains");
  add(s.pcie_switches, "PCIe switch", "PCIe switches");
  add(s.nvswitches, "NVSwitch plane", "NVSwitch planes");
  add(s.switches, "network switch", "network switches");
  add(s.links, "link", "links");
  return text.empty() ? "nothing" : text;
}

}}}  // namespace topocoll::v0::topo
