// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of NVIDIA's management library (NVML) that is called here: own declarations of its calls, structures and numbers.
//
// Facts from NVIDIA's "NVML API Reference Guide", release 550; they hold from driver 535 on, since NVML never changes the
// layout behind a versioned name. Calls that came later than others are optional and named so.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/io/library.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// nvmlReturn_t.
using nvml_return = int;
inline constexpr nvml_return nvml_success = 0;
inline constexpr nvml_return nvml_invalid_argument = 2;
inline constexpr nvml_return nvml_not_supported = 3;
inline constexpr nvml_return nvml_no_permission = 4;
inline constexpr nvml_return nvml_not_found = 6;
inline constexpr nvml_return nvml_driver_not_loaded = 9;
inline constexpr nvml_return nvml_library_not_found = 12;
inline constexpr nvml_return nvml_function_not_found = 13;
inline constexpr nvml_return nvml_gpu_is_lost = 15;
inline constexpr nvml_return nvml_operating_system = 17;  // control device blocked, as by a container
inline constexpr nvml_return nvml_version_mismatch = 18;  // of driver and library
inline constexpr nvml_return nvml_argument_version_mismatch = 25;
inline constexpr nvml_return nvml_unknown_error = 999;

/// nvmlDevice_t: a handle that only the library understands.
struct nvml_device_state;
using nvml_device = nvml_device_state*;

/// nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2 fill it.
struct nvml_pci_info {
  char short_bus_id[16];  // domain of four digits
  std::uint32_t domain, bus, device;
  std::uint32_t device_id;     // device in the upper half, vendor in the lower
  std::uint32_t subsystem_id;  // the same
  char bus_id[32];             // "00000000:1B:00.0"
};
static_assert(sizeof(nvml_pci_info) == 68 && offsetof(nvml_pci_info, bus_id) == 36);

/// nvmlFieldValue_t: a question by number, and its answer.
struct nvml_field {
  std::uint32_t id;     // what is asked
  std::uint32_t scope;  // of which link
  std::int64_t timestamp, latency;
  std::uint32_t type;  // of the value
  nvml_return outcome;
  union {
    double real;
    std::uint32_t u32;
    std::uint64_t large;
    std::uint16_t tiny;
  } value;
};
static_assert(sizeof(nvml_field) == 40 && offsetof(nvml_field, value) == 32);

/// nvmlValueType_t.
inline constexpr std::uint32_t nvml_type_double = 0, nvml_type_unsigned_int = 1, nvml_type_unsigned_long = 2,
                               nvml_type_unsigned_long_long = 3, nvml_type_signed_long_long = 4,
                               nvml_type_signed_int = 5, nvml_type_unsigned_short = 6;
/// NVML_FI_DEV_…
inline constexpr std::uint32_t nvml_field_nvlink_common_speed = 90;  // MB/s of one active link, one direction
inline constexpr std::uint32_t nvml_field_nvlink_count = 91;         // links that the GPU has, active or not
inline constexpr std::uint32_t nvml_field_nvlink_speed = 164;        // MB/s of link `scope`; Hopper and later
inline constexpr std::uint32_t nvml_field_c2c_count = 170;
inline constexpr std::uint32_t nvml_field_c2c_active = 171;  // of link `scope`
inline constexpr std::uint32_t nvml_field_c2c_speed = 172;   // MB/s of link `scope`

/// nvmlIntNvLinkDeviceType_t: what stands at the other end.
inline constexpr std::uint32_t nvml_end_gpu = 0, nvml_end_cpu = 1, nvml_end_switch = 2, nvml_end_unknown = 255;

/// nvmlGpuFabricInfo_t of nvmlDeviceGetGpuFabricInfo (driver 525).
struct nvml_fabric_info {
  unsigned char cluster[16];
  nvml_return status;  // of the attempt to join, once it completed
  std::uint32_t clique;
  unsigned char state;
};
static_assert(sizeof(nvml_fabric_info) == 28);
/// nvmlGpuFabricInfo_v2_t of nvmlDeviceGetGpuFabricInfoV (driver 545).
struct nvml_fabric_info_v2 {
  std::uint32_t version;
  unsigned char cluster[16];
  nvml_return status;
  std::uint32_t clique;
  unsigned char state;
  std::uint32_t health;
};
static_assert(sizeof(nvml_fabric_info_v2) == 36 && offsetof(nvml_fabric_info_v2, health) == 32);
/// Size in the lower three bytes, version in the highest: nvmlGpuFabricInfo_v2.
inline constexpr std::uint32_t nvml_fabric_version_2 = 0x02000024;
static_assert((nvml_fabric_version_2 & 0xffffffU) == sizeof(nvml_fabric_info_v2));
/// nvmlGpuFabricState_t.
inline constexpr unsigned nvml_fabric_not_supported = 0, nvml_fabric_not_started = 1, nvml_fabric_in_progress = 2,
                          nvml_fabric_completed = 3;
/// Fields of two bits in `health`: 0 not supported, 1 true, 2 false. NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_…
inline constexpr unsigned nvml_fabric_degraded = 0, nvml_fabric_route_recovery = 2, nvml_fabric_route_unhealthy = 4;

/// nvmlC2cModeInfo_v1_t of nvmlDeviceGetC2cModeInfoV (driver 535).
struct nvml_c2c_mode {
  std::uint32_t enabled;
};
static_assert(sizeof(nvml_c2c_mode) == 4);

/// The library with the calls that are used. Null pointers are calls that this version does not have.
struct nvml_calls {
  explicit nvml_calls(io::library l) : opened(std::move(l)) {}
  io::library opened;

  nvml_return (*init)() = nullptr;
  nvml_return (*shutdown)() = nullptr;
  const char* (*error_string)(nvml_return) = nullptr;
  nvml_return (*driver_version)(char*, unsigned) = nullptr;
  nvml_return (*device_count)(unsigned*) = nullptr;
  nvml_return (*device_by_index)(unsigned, nvml_device*) = nullptr;
  nvml_return (*pci_info)(nvml_device, nvml_pci_info*) = nullptr;
  nvml_return (*uuid)(nvml_device, char*, unsigned) = nullptr;
  nvml_return (*name)(nvml_device, char*, unsigned) = nullptr;
  nvml_return (*compute_capability)(nvml_device, int*, int*) = nullptr;
  nvml_return (*pcie_generation)(nvml_device, unsigned*) = nullptr;
  nvml_return (*pcie_width)(nvml_device, unsigned*) = nullptr;
  nvml_return (*pcie_most_generation)(nvml_device, unsigned*) = nullptr;
  nvml_return (*pcie_most_width)(nvml_device, unsigned*) = nullptr;
  nvml_return (*memory_affinity)(nvml_device, unsigned, unsigned long*, unsigned) = nullptr;
  nvml_return (*nvlink_state)(nvml_device, unsigned, unsigned*) = nullptr;
  nvml_return (*nvlink_version)(nvml_device, unsigned, unsigned*) = nullptr;
  nvml_return (*nvlink_remote_pci)(nvml_device, unsigned, nvml_pci_info*) = nullptr;
  nvml_return (*nvlink_remote_type)(nvml_device, unsigned, unsigned*) = nullptr;
  nvml_return (*field_values)(nvml_device, int, nvml_field*) = nullptr;
  nvml_return (*fabric)(nvml_device, nvml_fabric_info*) = nullptr;
  nvml_return (*fabric_v)(nvml_device, nvml_fabric_info_v2*) = nullptr;
  nvml_return (*mig_mode)(nvml_device, unsigned*, unsigned*) = nullptr;
  nvml_return (*mig_most)(nvml_device, unsigned*) = nullptr;
  nvml_return (*mig_device)(nvml_device, unsigned, nvml_device*) = nullptr;
  nvml_return (*c2c_mode)(nvml_device, nvml_c2c_mode*) = nullptr;

  std::vector<std::string> missing;  ///< names of optional calls that the library does not have

  /// What the library calls an error, with its number.
  [[nodiscard]] std::string words(nvml_return code) const {
    const char* text = error_string != nullptr ? error_string(code) : nullptr;
    return (text != nullptr ? text : "error") + (" (" + std::to_string(code)) + ")";
  }
};

/// Opens the library and looks up its calls.
/// @return `unavailable`, naming file and symbol, when it cannot be opened or lacks a call that nothing can do without
template <class = void>
[[nodiscard]] result<nvml_calls> open_nvml(const std::string& library) {
  auto opened = io::library::open(library);
  if (!opened) {
    failure why = std::move(opened).error();
    why.next = "install the NVIDIA driver, or in a container let the runtime mount its libraries";
    return why;
  }
  nvml_calls c(std::move(*opened));
  std::string lacks;
  const auto needed = [&]<class F>(F*& call, const char* symbol) {
    call = c.opened.find<F>(symbol);
    if (call == nullptr && lacks.empty()) lacks = symbol;
  };
  const auto wanted = [&]<class F>(F*& call, const char* symbol) {
    call = c.opened.find<F>(symbol);
    if (call == nullptr) c.missing.emplace_back(symbol);
  };
  needed(c.init, "nvmlInit_v2");
  needed(c.shutdown, "nvmlShutdown");
  needed(c.error_string, "nvmlErrorString");
  needed(c.device_count, "nvmlDeviceGetCount_v2");
  needed(c.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  needed(c.pci_info, "nvmlDeviceGetPciInfo_v3");
  if (!lacks.empty())
    return fail(errc::unavailable, "the library " + library + " has no function " + lacks + ", so it is no NVML",
                "name the libnvidia-ml.so.1 of an NVIDIA driver");
  wanted(c.driver_version, "nvmlSystemGetDriverVersion");
  wanted(c.uuid, "nvmlDeviceGetUUID");
  wanted(c.name, "nvmlDeviceGetName");
  wanted(c.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  wanted(c.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  wanted(c.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  wanted(c.pcie_most_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  wanted(c.pcie_most_width, "nvmlDeviceGetMaxPcieLinkWidth");
  wanted(c.memory_affinity, "nvmlDeviceGetMemoryAffinity");
  wanted(c.nvlink_state, "nvmlDeviceGetNvLinkState");
  wanted(c.nvlink_version, "nvmlDeviceGetNvLinkVersion");
  wanted(c.nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  wanted(c.nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  wanted(c.field_values, "nvmlDeviceGetFieldValues");
  // Either tells of the fabric; the later one also of its health.
  c.fabric_v = c.opened.find<nvml_return(nvml_device, nvml_fabric_info_v2*)>("nvmlDeviceGetGpuFabricInfoV");
  c.fabric = c.opened.find<nvml_return(nvml_device, nvml_fabric_info*)>("nvmlDeviceGetGpuFabricInfo");
  if (c.fabric_v == nullptr && c.fabric == nullptr) c.missing.emplace_back("nvmlDeviceGetGpuFabricInfoV");
  wanted(c.mig_mode, "nvmlDeviceGetMigMode");
  wanted(c.mig_most, "nvmlDeviceGetMaxMigDeviceCount");
  wanted(c.mig_device, "nvmlDeviceGetMigDeviceHandleByIndex");
  wanted(c.c2c_mode, "nvmlDeviceGetC2cModeInfoV");
  return c;
}

}}}  // namespace topocoll::v0::detail
