// SPDX-License-Identifier: Apache-2.0
#pragma once
// A listing of InfiniBand links by iblinkinfo as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What `iblinkinfo` printed, with or without -l: `discover({}, iblinkinfo_file{"links.txt"})`.
struct iblinkinfo_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "iblinkinfo"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto fabric = read::parse_iblinkinfo(*text, path);
    if (!fabric) return fabric.error();
    return fragment_of(*fabric, options, path);
  }
};
static_assert(TopologySource<iblinkinfo_file>);

}}  // namespace topocoll::v0
