// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns the matrix of `nvidia-smi topo -m` into a fragment whose paths have the classes that the matrix tells.
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/nvidia_smi_topo.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one matrix.
///
/// A gpu for each GPU column ("host/gpu:0"), a nic with one nic_port for each other one ("host/net:mlx5_0/1"), a cpu for each
/// NUMA domain that the affinity columns tell or that SYS demands. PCIe switches are invented so that two devices are as far
/// apart as the matrix says: PIX shares one, PXB has several between, PHB and NODE meet at the cpu (the fact `host_bridge` of
/// what hangs there keeps them apart), SYS at two. Where the matrix contradicts itself (two devices PIX to a third but not
/// to each other) the nearer class is built and a finding names the cells. The NUMA columns give way to the classes.
///
/// NV# between GPUs becomes links between them, unless some GPU would need more links than any GPU has while all pairs are
/// connected: then there is an NVSwitch plane, and # is the number of links from each GPU to it. The matrix tells no rates,
/// so every capacity is assumed, with its reason.
///
/// An answer of `topo -p2p` becomes GPUs without links; pairs without peer access are findings.
/// @param file  name for failures, findings and `fragment::source`
/// Cost: O(n^2) for n devices.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::nvidia_smi_topo& matrix, const discover_options& options,
                                                 const std::string& file);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/matrix_build.hpp>
