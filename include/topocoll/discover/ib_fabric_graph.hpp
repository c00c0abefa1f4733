// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns an InfiniBand fabric, whoever told it, into a fragment of the topology graph.
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one fabric.
///
/// A leaf, spine or core_switch for every switch, by its distance from hosts (see `discover/detail/switch_tiers.hpp`), with
/// the key "switch:0x<guid>"; a router is a core_switch. A nic for every channel adapter with a nic_port for each port that
/// is told; host and name come from its description ("node7 mlx5_0"), and where that names no host, or the same one as
/// other adapters' do, the system image GUID stands for the host. The adapters inside switches that reduce (SHARP) are
/// no nodes: the switch has the fact "aggregation_node". Every cable is a link of its own, parallel ones are several.
///
/// `current` is what a link has trained to, `capacity` that less its line coding, `nominal` the best that both ends can,
/// where the source tells it. Findings: links below their best or below most of their siblings, ports that are down, cables
/// that leave and enter the same switch, tiers that cannot be told.
/// @param file  `fragment::source`, and the place of findings
/// Never fails for what the parsers give; fails with `bug` for a peer that is not there. Cost: O(n log n) for n ports.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::ib_fabric& fabric, const discover_options& options,
                                                 std::string file);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/ib_fabric_build.hpp>
