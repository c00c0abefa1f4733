// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recording of what AMD's compute driver tells as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/kfd_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/kfd.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A file that holds /sys/class/kfd/kfd/topology as blocks "== path".
struct kfd_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "kfd"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto topology = topocoll::read::parse_kfd(*text, path);
    if (!topology) return topology.error();
    return fragment_of(*topology, options, path);
  }
};
static_assert(TopologySource<kfd_file>);

}}  // namespace topocoll::v0
