// SPDX-License-Identifier: Apache-2.0
#pragma once
// hwloc: its versions and the devices it sees; the base of the hwloc topology source.
#if !__has_include(<hwloc.h>)
#error "topocoll/backend/hwloc.hpp needs the headers of hwloc: on Debian install libhwloc-dev, link topocoll::hwloc"
#endif
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/library_info.hpp>
#include <topocoll/core/result.hpp>
#include <hwloc.h>

namespace topocoll { inline namespace v0 {

namespace backend::detail {

// hwloc writes version 2.9.0 of its interface as 0x00020900.
inline std::string hwloc_version_text(unsigned number) {
  return std::to_string(number >> 16U) + "." + std::to_string(number >> 8U & 0xffU) + "." +
         std::to_string(number & 0xffU);
}

struct hwloc_destroy {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using hwloc_handle = std::unique_ptr<hwloc_topology, hwloc_destroy>;

}  // namespace backend::detail

/// Versions of hwloc's interface and the devices of this machine by their system names ("eth0", "nvme0n1"), sorted.
///
/// Loads the whole topology, which takes 10 to 1000 ms with the number of PCI devices. hwloc itself reads its HWLOC_*
/// environment variables here. `mismatch` when headers and library are of different major versions.
[[nodiscard]] inline result<library_info> hwloc_library() {
  library_info info;
  info.name = "hwloc";
  const unsigned running = hwloc_get_api_version();
  info.compiled_against = backend::detail::hwloc_version_text(HWLOC_API_VERSION);
  info.running = backend::detail::hwloc_version_text(running);
  if (running >> 16U != HWLOC_API_VERSION >> 16U) {
    return fail(errc::mismatch,
                "hwloc " + *info.running + " runs, but " + *info.compiled_against + " was compiled against",
                "rebuild with the headers of the installed hwloc");
  }

  hwloc_topology_t made = nullptr;
  errno = 0;
  if (hwloc_topology_init(&made) != 0) {
    return fail(errc::system, std::string("hwloc_topology_init fails: ") + std::strerror(errno));
  }
  const backend::detail::hwloc_handle topology(made);
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
      hwloc_topology_load(made) != 0) {
    return fail(errc::system, std::string("hwloc cannot read this machine: ") + std::strerror(errno),
                "run `lstopo` and compare");
  }
  std::vector<std::string> names;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_osdev(made, device)) != nullptr;) {
    if (device->name != nullptr) names.emplace_back(device->name);
  }
  std::sort(names.begin(), names.end());
  info.devices = std::move(names);
  return info;
}

}}  // namespace topocoll::v0
