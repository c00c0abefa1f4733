// SPDX-License-Identifier: Apache-2.0
#pragma once
// The odd one out: a host unlike its siblings, a device below its neighbours, a leaf short of cables.
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/topo/check_options.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Looks for what differs from its like, without knowing how it should be.
///
/// Hosts: those with GPUs and NICs of the same models are siblings. Where most of them look the same (devices, how they are
/// joined, rates, ports up and cabled; not names, addresses or order), the others are named with what differs. Most are
/// more than half; or at least three, and half with the rest divided, or three times as many as look any other way. Of two
/// that differ nobody can tell which is right: both are named in one warning. Several alike with less than half of the
/// usual devices are another kind of host, and so are four or more, a tenth of all, with another number of devices. Within a host GPUs of one model are compared by their PCIe links and NVLinks,
/// NICs by their rates; what is so in every one of several hosts is taken for design and only noted.
/// Links: below the best that both ends can do, or dead.
/// Network: pairs of switches of neighbouring tiers that lack cables which the other pairs have, uplinks slower than the
/// leaf's others, hosts with a rail missing or on another leaf than their neighbours' rail, and leaves with another ratio
/// of capacity to hosts and capacity up (as it would be without faults named already). Notes: ratios above 1, leaves with
/// unequal numbers of hosts, networks without tiers.
/// What is assumed is never blamed. Findings have keys in `where`: "node3/pci:0000:1b:00.0", "leaf:1 - spine:0", or the
/// host of something that is not there. Warnings may cost performance; faults are dead links.
/// Cost: O(n log n + m log m); a host that differs costs O(k^2) for its k nodes where addresses do not tell them apart.
template <class = void>
[[nodiscard]] std::vector<finding> check(const graph& g, const check_options& options = {});

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/check_impl.hpp>
