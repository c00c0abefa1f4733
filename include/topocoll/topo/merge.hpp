// SPDX-License-Identifier: Apache-2.0
#pragma once
// Joins what several sources could tell into one fragment: the same key is the same device, the better-trusted fact wins.
#include <span>
#include <string>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Figures that differ by more than this share of the larger one contradict each other.
inline constexpr double contradiction_share = 0.10;

/// Joins fragments.
///
/// First, in copies, each device gets one key:
/// - GPUs with the same "uuid", adapters with the same "node_guid" and ports with the same "port_guid" are the same, whatever
///   their keys; so are nodes with the same key, switches of one name, ports with the same "interface" in one host, and
///   adapters that hold the same port or have the same name. Of several keys one by PCI address stays, else one by name, else
///   one by number. What a source gives to two devices names none.
/// - Hosts that hold the same devices are one, and so are "node7" and "node7.example.com" where no source has two of that
///   short name. "localhost", the default of sources that name no host, is equated by devices alone. Where devices
///   contradict, nothing is renamed.
/// - GPUs that a source only numbers are those with the same numbers in another source of the host that sees as many.
/// - Nodes with the fact "stand_in" give way to real ones of their host: cables of the n-th port that stands for another go to
///   the n-th real one without a cable, by the "rail" of the leaf where that is told. A cable to a switch that a real port
///   reaches is that port's. What finds none is told.
/// - A PCIe function has one link upwards. Where fragments tell different ones, the best-trusted stays, of equals the one to
///   a device that is no stand-in, that tells generation and width, or that has more switches above it.
///
/// Then they are joined:
/// - Nodes with the same key are one node. Each of its facts comes from the best-trusted fragment that has it; a
///   pcie_device that another source knows to be something else is that. Kinds, hosts, indices, ranks, NUMA domains and
///   identities that differ otherwise are findings.
/// - Links with the same ends and kind are one link. Where one source knows several parallel links and another as many,
///   they are matched from the widest to the narrowest; where the numbers differ, the better-trusted source's links stand.
/// - Figures that differ by more than `contradiction_share` become a finding that quotes both; they are never averaged. A
///   figure that was only assumed contradicts nothing: it gives way in silence.
/// - The result does not depend on the order of the fragments. Among equally trusted facts that of the source whose name
///   comes first in the alphabet wins, among equal names that of the fragment whose content comes first.
/// - One fragment comes back as it is, less findings that it repeats. Nodes and links keep their order within each source,
///   sources in alphabetical order.
/// @return `invalid_argument` for no fragments; `malformed_input`, naming the source, for a link to a node that is not there
///         or for two nodes of one fragment with the same key.
/// Cost: O((n + m) log(n + m)) over all fragments, and O(k^2) for a device or host that k of them know under several names.
template <class = void>
[[nodiscard]] result<fragment> merge(std::span<const fragment> fragments);

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/merge_impl.hpp>
