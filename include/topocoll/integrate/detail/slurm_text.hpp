// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/slurm_topology.hpp writes topologies as text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/slurm_topology.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

[[nodiscard]] inline result<void> takes_name(const std::string& name) {
  if (!name.empty() && slurm_name(name) == name) return {};
  return fail(errc::unsupported, "Slurm does not take '" + name.substr(0, 80) + "' as the name of a switch or block",
              "use letters, digits, '.', '_' and '-', 64 at most");
}
/// A list that reads back as the same names.
[[nodiscard]] inline result<std::string> host_list_text(const std::vector<std::string>& names) {
  std::string list = read::compress_hostlist(names);
  const auto back = read::expand_hostlist(list);
  if (back && *back == names) return list;
  for (const std::string& name : names) {
    const auto alone = read::expand_hostlist(name, 1);
    if (!alone || alone->size() != 1 || alone->front() != name)
      return fail(errc::unsupported, "Slurm does not take '" + name.substr(0, 80) + "' as the name of a host",
                  "rename the host");
  }
  return fail(errc::unsupported,
              "a list of " + std::to_string(names.size()) + " hosts is longer than Slurm files can be");
}

}  // namespace detail

template <class>
result<std::string> to_topology_conf(const read::slurm_topology& t) {
  if (t.flat || !t.toruses.empty())
    return fail(errc::unsupported, std::string("topology.conf cannot hold a ") + (t.flat ? "flat topology" : "torus"),
                "write topology.yaml");
  std::string text;
  for (const read::slurm_switch& s : t.switches) {
    if (auto ok = detail::takes_name(s.name); !ok) return std::move(ok).error();
    text += "SwitchName=" + s.name;
    for (const auto* list : {&s.children, &s.nodes}) {
      if (list->empty()) continue;
      auto names = detail::host_list_text(*list);
      if (!names) return names;
      text += (list == &s.children ? " Switches=" : " Nodes=") + *names;
    }
    if (!s.link_speed.empty() && s.link_speed.find_first_of(" \t\r\n\"#=\\") == std::string::npos)
      text += " LinkSpeed=" + s.link_speed;
    text += '\n';
  }
  for (const auto* groups : {&t.blocks, &t.rings})
    for (const read::slurm_group& g : *groups) {
      if (auto ok = detail::takes_name(g.name); !ok) return std::move(ok).error();
      auto names = detail::host_list_text(g.nodes);
      if (!names) return names;
      text += (groups == &t.blocks ? "BlockName=" : "RingName=") + g.name + " Nodes=" + *names + '\n';
    }
  for (std::size_t i = 0; i < t.block_sizes.size(); ++i)
    text += (i == 0 ? "BlockSizes=" : ",") + std::to_string(t.block_sizes[i]);
  if (!t.block_sizes.empty()) text += '\n';
  return text;
}

template <class>
result<std::string> to_topology_yaml(const std::vector<read::slurm_topology>& topologies) {
  std::string text = "---\n";
  std::uint32_t number = 0;
  for (const read::slurm_topology& t : topologies) {
    ++number;
    const std::string name = t.name.empty() ? "topology" + std::to_string(number) : t.name;
    if (auto ok = detail::takes_name(name); !ok) return std::move(ok).error();
    const int kinds = (t.switches.empty() ? 0 : 1) + (t.blocks.empty() ? 0 : 1) + (t.rings.empty() ? 0 : 1) +
                      (t.toruses.empty() ? 0 : 1) + (t.flat ? 1 : 0);
    if (kinds != 1)
      return fail(errc::unsupported,
                  "the topology '" + name + "' is of " + (kinds == 0 ? "no kind" : "several kinds") +
                      "; an entry of topology.yaml has one",
                  "write each kind as a topology of its own");
    text += "- topology: \"" + name + "\"\n  cluster_default: " + (t.is_default ? "true" : "false") + '\n';
    if (t.flat) text += "  flat: true\n";
    if (!t.switches.empty()) text += "  tree:\n    switches:\n";
    for (const read::slurm_switch& s : t.switches) {
      if (auto ok = detail::takes_name(s.name); !ok) return std::move(ok).error();
      if (t.nodes_are_ports || (!s.nodes.empty() && !s.children.empty()))
        return fail(errc::unsupported,
                    "the switch '" + s.name + "' has " +
                        (t.nodes_are_ports ? "ports" : "nodes as well as switches below it") +
                        ", which topology.yaml cannot say",
                    "write topology.conf");
      text += "      - switch: \"" + s.name + "\"\n";
      for (const auto* list : {&s.children, &s.nodes}) {
        if (list->empty()) continue;
        auto names = detail::host_list_text(*list);
        if (!names) return names;
        text += (list == &s.children ? "        children: \"" : "        nodes: \"") + *names + "\"\n";
      }
    }
    if (!t.blocks.empty()) text += "  block:\n";
    if (!t.blocks.empty() && !t.block_sizes.empty()) {
      text += "    block_sizes:\n";
      for (const std::uint32_t size : t.block_sizes) text += "      - " + std::to_string(size) + '\n';
    }
    if (!t.blocks.empty()) text += "    blocks:\n";
    if (!t.rings.empty()) text += "  ring:\n    rings:\n";
    for (const auto* groups : {&t.blocks, &t.rings})
      for (const read::slurm_group& g : *groups) {
        if (auto ok = detail::takes_name(g.name); !ok) return std::move(ok).error();
        auto names = detail::host_list_text(g.nodes);
        if (!names) return names;
        text += (groups == &t.blocks ? "      - block: \"" : "      - ring: \"") + g.name + "\"\n        nodes: \"" +
                *names + "\"\n";
      }
    if (!t.toruses.empty()) text += "  torus3d:\n    toruses:\n";
    for (const read::slurm_torus& o : t.toruses) {
      if (auto ok = detail::takes_name(o.name); !ok) return std::move(ok).error();
      auto names = detail::host_list_text(o.nodes);
      if (!names) return names;
      text += "      - name: \"" + o.name + "\"\n        dims:\n          x: " + std::to_string(o.x) +
              "\n          y: " + std::to_string(o.y) + "\n          z: " + std::to_string(o.z) +
              "\n        nodes: \"" + *names + "\"\n";
    }
  }
  return text;
}

}}  // namespace topocoll::v0
