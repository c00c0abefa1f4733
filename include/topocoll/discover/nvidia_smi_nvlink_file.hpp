// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `nvidia-smi nvlink` printed as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/nvlink_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/nvidia_smi_nvlink.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A file that holds the output of `nvidia-smi nvlink -s`, `-c` or `-e`.
struct nvidia_smi_nvlink_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "nvidia-smi-nvlink"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto listing = topocoll::read::parse_nvidia_smi_nvlink(*text, path);
    if (!listing) return listing.error();
    return fragment_of(*listing, options, path);
  }
};
static_assert(TopologySource<nvidia_smi_nvlink_file>);

}}  // namespace topocoll::v0
