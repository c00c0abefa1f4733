// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hand-written cluster file (TOML, docs/formats/cluster.md) as a topology source. Needs toml++.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/cluster_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/toml.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of a cluster file. See `fragment_of` for what becomes what.
/// @param file  name for failures and findings; files of hosts are looked for beside it
[[nodiscard]] inline result<topo::fragment> fragment_of_cluster_toml(std::string_view text, const std::string& file,
                                                                     const discover_options& options = {},
                                                                     host_text_reader read_host = nullptr) {
  const auto root = io::parse_toml(text, file);
  if (!root) return root.error();
  const auto cluster = read::cluster_file_of(*root, file);
  if (!cluster) return cluster.error();
  return fragment_of(*cluster, options, file, read_host);
}

/// A cluster file: `discover({}, cluster_toml{"cluster.toml"})`.
struct cluster_toml {
  std::string path;
  host_text_reader read_host = nullptr;  ///< reads the files that hosts name; null: such hosts are refused

  [[nodiscard]] static std::string_view name() { return "cluster-file"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_cluster_toml(*text, path, options, read_host);
  }
};
static_assert(TopologySource<cluster_toml>);

}}  // namespace topocoll::v0
