// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what an NCCL topology file says into a fragment of the topology graph.
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/read/nccl_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one NCCL or RCCL topology.
///
/// One cpu and one host_memory for every `<cpu>`; a pcie_switch for bridges (class 0604) and for functions without a class
/// that have functions below; a gpu for `<gpu>` or class 0302, 0380, 1200, and for class 0300 unless the vendor is told and
/// is none of 10de, 1002, 8086 (a display of a board controller or hypervisor); a nic with one nic_port a `<net>` (one port of unknown rate when only a class says that it is an
/// adapter); a pcie_device for the rest. NVLink and XGMI become one link a pair of GPUs; those that end in switches become
/// links to one nvswitch. Everything assumed says so in `how` and `reason`, and is summed up in a finding.
///
/// Files with several `host_hash` values become several hosts, named `host`, `host#2`, …
/// @param file  name for failures, findings and `fragment::source`
/// @return `malformed_input` with file and line for a busid that is no PCI address or that contains itself; `unsupported`
///         for more than 128 NUMA domains in one host. Cost: O(n log n) for n elements.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::nccl_topology& topology, const std::string& host,
                                                 const std::string& file);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/nccl_build.hpp>
