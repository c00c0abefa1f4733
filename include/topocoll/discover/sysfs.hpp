// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running machine as a topology source: PCI tree, NUMA domains, network and RDMA ports.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs_graph.hpp>
#include <topocoll/io/tree.hpp>
#include <topocoll/read/sysfs.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// The machine whose /sys and /proc lie under `root`: `discover({}, sysfs{})`, `sysfs{.root = "/host"}` in a container.
///
/// Needs no rights and touches no device. A machine that shows no PCI devices still gives processors, memory and a finding;
/// a root without /sys and /proc is `not_found`.
struct sysfs {
  std::string root = "/";

  [[nodiscard]] static std::string_view name() { return "sysfs"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const io::live_tree tree(root);
    if (!tree.list("/sys") && !tree.list("/proc"))
      return fail(errc::not_found, "'" + root + "' holds neither /sys nor /proc",
                  "name the root of a machine's file system, '/' for this one");
    return fragment_of(read::sysfs_machine_of(tree, options.until), options.host, "sysfs");
  }
};
static_assert(TopologySource<sysfs>);

}}  // namespace topocoll::v0
