// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running machine from all that it tells by itself: the kernel, and NVIDIA's library where its GPUs are seen.
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/nvml.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/merge.hpp>

namespace topocoll { inline namespace v0 {

/// `sysfs` and `nvml` joined: what `topocoll topo` and `topocoll preflight` look at when nothing is named.
///
/// NVML speaks of the machine that the process runs on, so it is asked only where `root` is "/". Its silence matters only on
/// a machine that shows an NVIDIA GPU: there it is a warning, for without it nothing tells of NVLinks.
/// @return from `read`: what `sysfs` refuses
struct live_machine {
  std::string root = "/";
  std::string nvml_library = "libnvidia-ml.so.1";

  [[nodiscard]] static std::string_view name() { return "live"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    auto kernel = sysfs{root}.read(options);
    if (!kernel || root != "/") return kernel;
    auto driver = nvml{nvml_library}.read(options);
    if (driver) {
      const topo::fragment parts[] = {std::move(*kernel), std::move(*driver)};
      return topo::merge(parts);
    }
    const bool nvidia = seq::any_of(kernel->nodes, [](const topo::node& n) {
      return n.kind == topo::node_kind::gpu &&
             seq::contains(n.facts, std::pair<std::string, std::string>("vendor", "0x10de"));
    });
    if (nvidia)
      kernel->findings.push_back({severity::warning, options.host,
                                  "there are NVIDIA GPUs, but their NVLinks are not known: " + driver.error().what, "",
                                  driver.error().next, 1});
    return kernel;
  }
};
static_assert(TopologySource<live_machine>);

}}  // namespace topocoll::v0
