// SPDX-License-Identifier: Apache-2.0
#pragma once
// A topology file of NCCL or RCCL as a topology source. Needs pugixml.
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/nccl_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/nccl_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of a topology file. See `fragment_of` for what becomes what.
/// @param file  name for failures and findings
/// @return `malformed_input` or `unsupported` with file, line and reason
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of_nccl_xml(std::string_view text, const std::string& file,
                                                          const discover_options& options = {}) {
  const auto root = io::parse_xml(text, file);
  if (!root) return root.error();
  const auto topology = read::nccl_topology_of(*root, file);
  if (!topology) return topology.error();
  return fragment_of(*topology, options.host, file);
}

/// A file as NCCL_TOPO_DUMP_FILE writes it and NCCL_TOPO_FILE reads it: `discover({}, nccl_xml{"topo.xml"})`.
class nccl_xml {
 public:
  explicit nccl_xml(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] static std::string_view name() { return "nccl-xml"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path_);
    if (!text) return text.error();
    return fragment_of_nccl_xml(*text, path_, options);
  }

 private:
  std::string path_;
};
static_assert(TopologySource<nccl_xml>);

}}  // namespace topocoll::v0
