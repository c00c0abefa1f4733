// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what /sys and /proc tell about a machine into a fragment of the topology graph.
#include <string>
#include <topocoll/read/sysfs.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one machine.
///
/// One cpu a NUMA domain with processors, with its memory; memory of other domains hangs on the nearest. A PCIe switch is
/// one node with the address of its upstream port, as NCCL names it; its downstream ports and the root ports are no nodes,
/// because the cable below them is the link (the fact "root_port" names them). A card's network functions are one nic with
/// a nic_port each; virtual functions count with their physical one. An RDMA port and the interface on it are one nic_port.
/// Of a link the best is the lesser of what both ends can, the current one what it has trained to.
/// @param host    start of the keys
/// @param source  `fragment::source`
template <class = void>
[[nodiscard]] topo::fragment fragment_of(const read::sysfs_machine& machine, const std::string& host,
                                         const std::string& source);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/sysfs_build.hpp>
