// SPDX-License-Identifier: Apache-2.0
#pragma once
// One host of a topology graph as the XML that NCCL and RCCL read and dump.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// What is written, and for whom.
struct nccl_xml_options {
  std::string host;  ///< which host; empty: the only one of the graph
  bool whole_domain =
      false;               ///< also every host whose GPUs share an NVSwitch plane with it, told apart by `host_hash` as
                           ///< in NCCL's dumps of such domains; NCCL itself overwrites `host_hash` when it reads
  bool every_fact = true;  ///< also facts that NCCL does not know, as further attributes, as far as they fit
  bool fill = false;  ///< also what NCCL looks up in /sys of the machine when a file does not tell it: PCI classes by
                      ///< kind, and its own "not told" for links; for programs that plan without the machine
  std::optional<std::uint32_t> version;  ///< 1 for NCCL, 2 for RCCL; empty: 2 for hosts with XGMI or AMD's GPUs, else 1
  /// NCCL 2.28 has room for 256 elements and needs one for whatever comes next, the end of the file included. Its own
  /// dumps of joined hosts may be larger.
  std::size_t most_elements = 255;
};

/// A topology file and what it does not say.
struct nccl_xml_document {
  std::string text;
  std::vector<finding> findings;  ///< what the format cannot carry, and what was left out to stay within its limits
};

/// Writes the host so that NCCL's own parser takes it and `fragment_of_nccl_xml` gives the same host back.
///
/// One element a line, attributes apart by one blank, no tabs, no declaration, no entities: NCCL 2.28 (graph/xml.cc) knows
/// neither. PCIe links are written as the generation and width that the model of the graph uses, which is what they have
/// trained to where that is told; NVLinks by their number; ports at the speed they run at. What the graph does not know is
/// left out, and NCCL looks for it in /sys. Devices and ports that are dead are left out and reported.
/// @return `invalid_argument` when the host is not in the graph, or none is named and there are several; `unsupported` for
///         a host without NUMA domains or a GPU without PCI address (the format has no other place or name for it), for a
///         text that NCCL could not read (quotes, more than 255 characters), and for more than 128 children or
///         `most_elements` elements after leaving out what leads to no GPU and no NIC, as NCCL does.
/// Cost: O(n log n + m) for the graph.
template <class = void>
[[nodiscard]] result<nccl_xml_document> nccl_xml_of(const graph& g, const nccl_xml_options& options = {});

/// The text alone. See `nccl_xml_of`.
template <class = void>
[[nodiscard]] result<std::string> to_nccl_xml(const graph& g, const nccl_xml_options& options = {});

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/nccl_xml_build.hpp>
