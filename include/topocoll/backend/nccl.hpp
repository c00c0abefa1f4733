// SPDX-License-Identifier: Apache-2.0
#pragma once
// NCCL: its versions; the base of the NCCL transport and of comparisons with its own collectives.
#if !__has_include(<nccl.h>)
#error "topocoll/backend/nccl.hpp needs the headers of NCCL: install NVIDIA's package libnccl-dev, link topocoll::nccl"
#endif
#include <string>
#include <topocoll/backend/library_info.hpp>
#include <topocoll/core/result.hpp>
#include <nccl.h>

namespace topocoll { inline namespace v0 {

namespace backend::detail {

// NCCL writes 2.28.9 as 22809; before 2.9 it wrote 2.8.4 as 2804 (see NCCL_VERSION in nccl.h).
inline std::string nccl_version_text(int number) {
  const int scale = number >= 10000 ? 10000 : 1000;
  return std::to_string(number / scale) + "." + std::to_string(number % scale / 100) + "." +
         std::to_string(number % 100);
}

}  // namespace backend::detail

/// Versions of the headers and of the library in this process. NCCL lists no devices of its own: ask `cuda_library()`.
///
/// Needs no GPU. Two different versions become a finding; `unavailable` when NCCL refuses to tell its version.
[[nodiscard]] inline result<library_info> nccl_library() {
  library_info info;
  info.name = "NCCL";
  info.compiled_against = backend::detail::nccl_version_text(NCCL_VERSION_CODE);
  int number = 0;
  const ncclResult_t status = ncclGetVersion(&number);
  if (status != ncclSuccess) {
    return fail(errc::unavailable, std::string("ncclGetVersion says: ") + ncclGetErrorString(status),
                "check which libnccl.so.2 the loader finds");
  }
  info.running = backend::detail::nccl_version_text(number);
  if (number != NCCL_VERSION_CODE) {
    finding differs;
    differs.where = "NCCL";
    differs.what = "the library in this process is not the version that was compiled against";
    differs.evidence = "headers " + *info.compiled_against + ", library " + *info.running;
    differs.next_step = "check which libnccl.so.2 the loader finds first";
    info.findings.push_back(differs);
  }
  return info;
}

}}  // namespace topocoll::v0
