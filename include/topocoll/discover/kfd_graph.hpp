// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what AMD's compute driver tells into a fragment of the topology graph.
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/kfd.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one recording.
///
/// A cpu for each node with processors alone, numbered as they come; a gpu for each node with SIMD units ("host/pci:…"). GPUs
/// that differ only in the function of their address are partitions of one package: the package is a node that they hang
/// on, and the links between packages are told once. XGMI one hop long becomes a link, to a processor a chip-to-chip link;
/// longer ways have none. Rates of PCIe are three quarters of what the driver tells, as in NCCL's model; those of XGMI are
/// `xgmi_rate` times the number of links. What is not told is assumed, with its reason.
/// @param file  name for failures, findings and `fragment::source`
/// @return `malformed_input` when there are no GPUs and no processors. Cost: O(n + m log m) for n nodes and m links.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::kfd_topology& topology, const discover_options& options,
                                                 const std::string& file);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/kfd_build.hpp>
