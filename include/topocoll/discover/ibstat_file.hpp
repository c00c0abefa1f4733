// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ibstat printed on one machine as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/ibstat_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/ibstat.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What `ibstat` or `ibv_devinfo` printed on the machine that `discover_options::host` names:
/// `discover({.host = "node7"}, ibstat_file{"ibstat.txt"})`.
struct ibstat_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "ibstat"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto adapters = read::parse_ibstat(*text, path);
    if (!adapters) return adapters.error();
    return fragment_of(*adapters, options, path);
  }
};
static_assert(TopologySource<ibstat_file>);

}}  // namespace topocoll::v0
