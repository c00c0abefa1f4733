// SPDX-License-Identifier: Apache-2.0
#pragma once
// A listing of an InfiniBand fabric by ibnetdiscover as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What `ibnetdiscover` printed, in full or with -p or -l, or a net file of ibsim:
/// `discover({}, ibnetdiscover_file{"fabric.txt"})`.
struct ibnetdiscover_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "ibnetdiscover"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto fabric = read::parse_ibnetdiscover(*text, path);
    if (!fabric) return fabric.error();
    return fragment_of(*fabric, options, path);
  }
};
static_assert(TopologySource<ibnetdiscover_file>);

}}  // namespace topocoll::v0
