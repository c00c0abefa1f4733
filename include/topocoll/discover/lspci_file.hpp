// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lspci printed on one machine as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/lspci_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/lspci.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A file that holds the output of `lspci -vvv`, `-nn` or `-tv`.
struct lspci_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "lspci"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto listing = topocoll::read::parse_lspci(*text, path);
    if (!listing) return listing.error();
    return fragment_of(*listing, options, path);
  }
};
static_assert(TopologySource<lspci_file>);

}}  // namespace topocoll::v0
