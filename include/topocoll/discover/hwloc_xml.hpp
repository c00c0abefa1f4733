// SPDX-License-Identifier: Apache-2.0
#pragma once
// An XML file of hwloc (lstopo) as a topology source. Needs pugixml.
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/hwloc_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of an hwloc XML of version 1, 2 or 3. See `fragment_of` for what becomes what.
/// @param file  name for failures and findings
/// @return `malformed_input` or `unsupported` with file, line and reason
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of_hwloc_xml(std::string_view text, const std::string& file,
                                                           const discover_options& options = {}) {
  const auto root = io::parse_xml(text, file);
  if (!root) return root.error();
  const auto topology = read::hwloc_topology_of(*root, file);
  if (!topology) return topology.error();
  return fragment_of(*topology, options, file);
}

/// A file that `lstopo FILE.xml` or `hwloc_topology_export_xml` wrote: `discover({}, hwloc_xml_file{"node7.xml"})`.
struct hwloc_xml_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "hwloc-xml"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_hwloc_xml(*text, path, options);
  }
};
static_assert(TopologySource<hwloc_xml_file>);

}}  // namespace topocoll::v0
