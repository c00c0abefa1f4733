// SPDX-License-Identifier: Apache-2.0
#pragma once
// The matrix of `nvidia-smi topo` as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/matrix_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/nvidia_smi_topo.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A file that holds the output of `nvidia-smi topo -m`.
struct nvidia_smi_topo_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "nvidia-smi-topo"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto matrix = topocoll::read::parse_nvidia_smi_topo(*text, path);
    if (!matrix) return matrix.error();
    return fragment_of(*matrix, options, path);
  }
};
static_assert(TopologySource<nvidia_smi_topo_file>);

}}  // namespace topocoll::v0
