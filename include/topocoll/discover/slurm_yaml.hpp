// SPDX-License-Identifier: Apache-2.0
#pragma once
// Slurm's topology.yaml and topograph's cluster models as topology sources. Needs libyaml.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/yaml.hpp>
#include <topocoll/read/slurm_yaml.hpp>
#include <topocoll/read/topograph_model.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of a topology.yaml. See `fragment_of` for what becomes what.
/// @param file  name for failures and findings
/// @return `malformed_input` or `unsupported` with file, line and reason
[[nodiscard]] inline result<topo::fragment> fragment_of_slurm_yaml(std::string_view text, const std::string& file,
                                                                   const discover_options& options = {}) {
  const auto root = io::parse_yaml(text, file);
  if (!root) return root.error();
  const auto topologies = read::slurm_yaml_of(*root, file);
  if (!topologies) return topologies.error();
  return fragment_of(*topologies, options, file);
}

/// Reads the text of a topograph model. @return as `fragment_of_slurm_yaml`
[[nodiscard]] inline result<topo::fragment> fragment_of_topograph_model(std::string_view text, const std::string& file,
                                                                        const discover_options& options = {}) {
  const auto root = io::parse_yaml(text, file);
  if (!root) return root.error();
  const auto model = read::topograph_model_of(*root, file);
  if (!model) return model.error();
  return fragment_of(*model, options, file);
}

/// A topology.yaml of Slurm.
struct slurm_yaml_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "slurm-yaml"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_slurm_yaml(*text, path, options);
  }
};
static_assert(TopologySource<slurm_yaml_file>);

/// A cluster model of topograph.
struct topograph_model_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "topograph-model"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_topograph_model(*text, path, options);
  }
};
static_assert(TopologySource<topograph_model_file>);

}}  // namespace topocoll::v0
