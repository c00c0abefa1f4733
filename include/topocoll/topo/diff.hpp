// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs between two topologies: host and guest, node and node, today and yesterday.
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Compares two graphs.
///
/// Hosts are paired first, then the devices of each pair: by key where the two number their devices alike, by identity,
/// else by place, so that two equal nodes of a cluster compare equal although names, PCI buses and GUIDs differ. Switches
/// of the network are found in the same way. Neither names nor GUIDs are differences by themselves.
/// A link that is slower on one side is a warning with both figures. A kind of device or link that one graph does not hold
/// at all is taken for not looked at and never for missing, but for GPUs and NICs in a graph that shows PCIe links.
/// Findings have the keys of A in `where`, for things that only B has those of B.
/// Cost: O(n log n + m log m) where keys agree. A host whose keys do not costs O(k^2) for its k nodes, one whose devices
/// or links come or go O(GPUs * links of the host) for its paths.
template <class = void>
[[nodiscard]] difference diff(const graph& a, const graph& b, const diff_options& options = {});

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/diff_impl.hpp>
