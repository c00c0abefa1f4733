// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what hwloc says of a machine into a fragment of the topology graph.
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one hwloc topology.
///
/// One cpu for every NUMA node, with its host_memory; a NUMA node without processors of its own (memory of a GPU, CXL, HBM)
/// is marked by the fact "memory_of" and carries no device. Root ports and downstream ports of PCIe switches are part of the
/// link below them, as for `sysfs`; functions 1 to 7 of a network card stand for the card.
///
/// A gpu is a function of class 0302, 0380 or 1200, or of class 0300 by a maker of GPUs that is neither on a conventional PCI
/// bus nor driven as a display alone: OS devices (nvml0, cuda0, opencl0d0, renderD128) are names of it, never GPUs of their
/// own. Several partitions of one function are told by the fact "partitions".
///
/// hwloc gives the rate that a PCIe link is trained to, in GB/s. It becomes generation and lanes where only one pair has that
/// rate; otherwise they stay unknown. It tells no rate of network ports: an active port is assumed to be as fast as its
/// adapter's PCIe link. Links between GPUs come from hwloc's bandwidth matrices.
///
/// Keys start with the host name in the file, or with `options.host` when it has none.
/// @param file  name for failures, findings and `fragment::source`
/// @return `malformed_input` with file and line for a PCI address that is none. Cost: O(n log n) for n objects and the size of
///         the matrices.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::hwloc_topology& topology, const discover_options& options,
                                                 const std::string& file);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/hwloc_build.hpp>
