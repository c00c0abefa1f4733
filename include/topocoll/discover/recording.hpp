// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recorded machine as a topology source.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs_graph.hpp>
#include <topocoll/io/recording.hpp>
#include <topocoll/io/tree.hpp>
#include <topocoll/read/sysfs.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of a recording. A recording that names its host overrides `options.host`.
/// @return `malformed_input` with the line for what is no recording, or when it holds nothing of a machine
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of_recording(std::string_view text, const std::string& file,
                                                           const discover_options& options = {}) {
  const auto tree = io::recorded_tree::parse(text, file);
  if (!tree) return tree.error();
  if (!tree->list("/sys") && !tree->list("/proc"))
    return fail(errc::malformed_input, file + " is a recording, but holds neither /sys nor /proc");
  return fragment_of(read::sysfs_machine_of(*tree, options.until), tree->host().empty() ? options.host : tree->host(),
                     "sysfs " + file);
}

/// A machine that was recorded with `capture` (docs/formats/recording.md).
struct sysfs_recording {
  std::string path;

  /// A recording is a few hundred KiB; what is longer than this is cut off and then refused at the cut.
  static constexpr bytes longest{64U << 20U};

  [[nodiscard]] static std::string_view name() { return "recording"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::live_tree().head(path, longest);
    if (!text) return text.error();
    return fragment_of_recording(*text, path, options);
  }
};
static_assert(TopologySource<sysfs_recording>);

}}  // namespace topocoll::v0
