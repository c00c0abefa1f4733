// SPDX-License-Identifier: Apache-2.0
#pragma once
// libibverbs of rdma-core: the RDMA devices it sees; the base of the verbs transport and its pair probe.
#if !__has_include(<infiniband/verbs.h>)
#error "topocoll/backend/verbs.hpp needs rdma-core's headers: on Debian install libibverbs-dev, link topocoll::verbs"
#endif
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/library_info.hpp>
#include <topocoll/core/result.hpp>
#include <infiniband/verbs.h>

namespace topocoll { inline namespace v0 {

/// RDMA devices by name, such as "mlx5_0", sorted. rdma-core tells no version, neither in headers nor at run time.
///
/// Reads sysfs, opens no device. `unavailable` when the kernel has no RDMA support loaded, which differs from an empty
/// list: then the kernel was asked and has no device.
[[nodiscard]] inline result<library_info> verbs_library() {
  library_info info;
  info.name = "libibverbs";
  int count = 0;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) {
    const int why = errno;
    return fail(errc::unavailable, std::string("libibverbs gives no list of RDMA devices: ") + std::strerror(why),
                why == ENOSYS ? "load the kernel module ib_uverbs" : "run `ibv_devices` as the same user and compare");
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(ibv_get_device_name(list[i]));
  ibv_free_device_list(list);
  std::sort(names.begin(), names.end());
  info.devices = std::move(names);
  return info;
}

}}  // namespace topocoll::v0
