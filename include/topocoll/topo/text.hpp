// SPDX-License-Identifier: Apache-2.0
#pragma once
// A topology graph as a tree for people: hosts, NUMA domains, PCIe, NVLink, NICs, the fabric, and what is doubtful about it.
#include <cstddef>
#include <string>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// How much the tree shows.
struct text_options {
  bool unicode = false;       ///< box characters instead of "|", "+-" and "`-"
  bool everything = false;    ///< also PCIe devices and bridges that lead to no GPU and no NIC; nothing is summed up
  std::size_t hosts = 8;      ///< hosts of different shape that are shown in full
  std::size_t findings = 20;  ///< findings that are listed
};

/// The graph as text, lines ending in newlines.
///
/// Rates are line rates of one direction. A link that runs below what its ends can do says both figures; an assumed figure
/// has a mark "?1" that leads to its reason below the tree. More than four equal siblings, and hosts that are equal but
/// for names and addresses, are shown once with their number. Cost: O((n + m) log n).
template <class = void>
[[nodiscard]] std::string to_text(const graph& g, const text_options& options = {});

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/text_impl.hpp>
