// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA runtime: its versions, the driver's and the GPUs it sees; the base of device memory and copy probes.
#if !__has_include(<cuda_runtime_api.h>)
#error "topocoll/backend/cuda.hpp needs the CUDA toolkit: on Debian install nvidia-cuda-toolkit, link topocoll::cuda"
#endif
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/library_info.hpp>
#include <topocoll/core/result.hpp>
#include <cuda_runtime_api.h>

namespace topocoll { inline namespace v0 {

namespace backend::detail {

// CUDA writes 13.2 as 13020.
inline std::string cuda_version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

inline failure cuda_failure(const char* call, cudaError_t status) {
  return fail(errc::unavailable, std::string(call) + " says: " + cudaGetErrorString(status),
              "compare with `nvidia-smi`; CUDA_VISIBLE_DEVICES hides GPUs");
}

}  // namespace backend::detail

/// Versions of runtime and driver, and the GPUs in CUDA's order as "NVIDIA H100 80GB HBM3 at 0000:18:00.0".
///
/// Initialises CUDA, which takes some 100 ms per process on a GPU host. CUDA itself reads CUDA_VISIBLE_DEVICES here.
/// `unavailable` when there is no driver or CUDA refuses; the sentence says which.
[[nodiscard]] inline result<library_info> cuda_library() {
  library_info info;
  info.name = "CUDA runtime";
  info.compiled_against = backend::detail::cuda_version_text(CUDART_VERSION);

  int number = 0;
  cudaError_t status = cudaRuntimeGetVersion(&number);
  if (status != cudaSuccess) return backend::detail::cuda_failure("cudaRuntimeGetVersion", status);
  info.running = backend::detail::cuda_version_text(number);

  status = cudaDriverGetVersion(&number);
  if (status != cudaSuccess) return backend::detail::cuda_failure("cudaDriverGetVersion", status);
  if (number == 0) {
    return fail(errc::unavailable, "the CUDA runtime " + *info.running + " finds no NVIDIA driver on this machine",
                "install the driver, or give a container access to the GPUs");
  }
  info.driver = backend::detail::cuda_version_text(number);

  int count = 0;
  status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess && status != cudaErrorNoDevice)
    return backend::detail::cuda_failure("cudaGetDeviceCount", status);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    char address[32] = {};
    status = cudaGetDeviceProperties(&properties, i);
    if (status == cudaSuccess) status = cudaDeviceGetPCIBusId(address, static_cast<int>(sizeof address), i);
    if (status != cudaSuccess) return backend::detail::cuda_failure("CUDA device query", status);
    names.push_back(std::string(properties.name) + " at " + address);
  }
  info.devices = std::move(names);
  return info;
}

}}  // namespace topocoll::v0
