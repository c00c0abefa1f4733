// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs of this machine by way of NVIDIA's management library, which is opened while the program runs.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/detail/nvml_ask.hpp>
#include <topocoll/discover/detail/nvml_build.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What NVML tells that the PCI tree does not: `discover({}, sysfs{}, nvml{})`.
///
/// One gpu for each GPU that the driver gives a handle for, with its NVLinks to other GPUs, to the plane of NVSwitches or to
/// its CPU (chip-to-chip). A link that is not active is no part of the capacity; the number that is active is compared with
/// other GPUs of the same device, and fewer is a fault that names the links. GPUs below their best PCIe speed are idle;
/// a narrower width is a warning. MIG mode and the state of the NVLink fabric take NVLinks out of use, with the reason.
///
/// The PCIe link itself is told as facts only (pcie_current, pcie_best): NVML does not know what stands above a GPU, `sysfs`
/// does, and the two join by the PCI address. CUDA_VISIBLE_DEVICES does not change what NVML shows; a container can.
///
/// Needs no headers and no link-time library. The library must be NVML of driver 535 or later; an older one gives what it
/// can, and a finding that names the calls it lacks.
/// @return from `read`: `unavailable` when the library cannot be opened or the driver is not loaded; `permission`;
///         `mismatch` when driver and library are of different versions; `not_found` when the driver shows no GPU;
///         `timed_out` when the deadline passed before the first GPU. A call of the driver cannot be interrupted.
struct nvml {
  std::string library = "libnvidia-ml.so.1";

  [[nodiscard]] static std::string_view name() { return "nvml"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto machine = detail::ask_nvml(library, options.until);
    if (!machine) return machine.error();
    return detail::nvml_builder(*machine, options.host).build();
  }
};
static_assert(TopologySource<nvml>);

}}  // namespace topocoll::v0
