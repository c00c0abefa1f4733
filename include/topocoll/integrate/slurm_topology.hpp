// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes a topology graph as Slurm's topology.conf and topology.yaml: trees of switches, and blocks of hosts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/slurm_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// The network of a graph as a tree for topology/tree.
///
/// Slurm wants one parent for everything, so what several switches do together becomes one: the leaves that the same hosts
/// plug into (rails), and the switches that join the same ones below. Such a switch is called after its first, with "-x8"
/// for eight. Every tier is kept. Fabrics without a path between them get roots of their own; those that are joined in
/// another way than by a higher tier get one root, "fabric". Findings name hosts without a switch.
/// @return `not_found` for a graph without hosts on switches; `unsupported` for a host whose name Slurm does not take, with
///         the name. Names of switches are made to fit. Cost: O((n + m) log n)
template <class = void>
[[nodiscard]] result<read::slurm_topology> slurm_tree_of(const topo::graph& g);

/// The NVLink domains of a graph as blocks for topology/block: hosts whose GPUs NVLink or XGMI joins.
///
/// Where no domain joins several hosts, blocks that a scheduler file named come back. Block sizes are those of that file,
/// else the smallest block times 1, 2, 4, … up to all blocks (as topograph infers them). Findings name hosts in no block.
/// @return `not_found` when nothing joins hosts to blocks; else as `slurm_tree_of`
template <class = void>
[[nodiscard]] result<read::slurm_topology> slurm_blocks_of(const topo::graph& g);

/// The text of a topology.conf, one line a switch, block or ring; lists in their shortest form.
/// @return `unsupported` for what the format cannot say: a name that Slurm does not take, a torus, a flat topology
template <class = void>
[[nodiscard]] result<std::string> to_topology_conf(const read::slurm_topology& topology);

/// The text of a topology.yaml with these topologies; those without a name are called "topology1", "topology2", …
/// @return `unsupported` for what the format cannot say: a name that Slurm does not take, two kinds in one topology, a
///         switch with nodes as well as switches, port GUIDs
template <class = void>
[[nodiscard]] result<std::string> to_topology_yaml(const std::vector<read::slurm_topology>& topologies);

/// `text` as the name of a switch: what Slurm does not take becomes '-', at most 64 letters.
[[nodiscard]] inline std::string slurm_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, read::longest_switch_name)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter || c == '.' || c == '_' || c == '-' ? c : '-';
  }
  return name.empty() ? "switch" : name;
}

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/slurm_blocks.hpp>
#include <topocoll/integrate/detail/slurm_text.hpp>
#include <topocoll/integrate/detail/slurm_tree.hpp>
