// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `rocm-smi --showtopo` printed as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/rocm_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/rocm_smi_topo.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A file that holds the output of `rocm-smi --showtopo`.
struct rocm_smi_topo_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "rocm-smi-topo"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto listing = topocoll::read::parse_rocm_smi_topo(*text, path);
    if (!listing) return listing.error();
    return fragment_of(*listing, options, path);
  }
};
static_assert(TopologySource<rocm_smi_topo_file>);

}}  // namespace topocoll::v0
