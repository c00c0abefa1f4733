// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asks NVML everything that is of interest, and keeps the answers as plain structs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/detail/nvml_api.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/topo/address.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// One NVLink of a GPU.
struct nvml_link_seen {
  std::uint32_t number = 0;
  bool active = false;
  std::uint32_t end = nvml_end_unknown;     ///< what stands at the other end
  std::optional<topo::pci_address> remote;  ///< its address, when that is one
  std::optional<std::uint32_t> megabytes;   ///< per second, one direction
  std::uint32_t version = 0;                ///< as the driver numbers them; 0 when not told
};
struct nvml_fabric_seen {
  unsigned state = nvml_fabric_not_supported;
  nvml_return status = nvml_success;
  std::uint32_t clique = 0;
  std::string cluster;                  ///< 32 hexadecimal digits; empty when all are zero
  std::optional<std::uint32_t> health;  ///< of a driver that tells it
};
struct nvml_gpu_seen {
  unsigned index = 0;
  std::optional<topo::pci_address> address;
  std::uint32_t device_id = 0, subsystem_id = 0;
  std::string uuid, name;
  std::optional<std::uint32_t> sm;  ///< compute capability times ten
  std::optional<unsigned> pcie_generation, pcie_width, pcie_most_generation, pcie_most_width;
  std::optional<std::uint32_t> numa;
  std::vector<nvml_link_seen> links;
  std::optional<nvml_fabric_seen> fabric;
  std::optional<bool> mig, mig_pending;
  unsigned mig_devices = 0;
  unsigned c2c_links = 0, c2c_active = 0;
  std::optional<std::uint32_t> c2c_megabytes;  ///< of one link
};
struct nvml_machine {
  std::string driver;
  std::vector<nvml_gpu_seen> gpus;
  tally remarks;
};

/// NVML between its start and its end.
class nvml_session {
 public:
  template <class = void>
  [[nodiscard]] static result<nvml_session> begin(const std::string& library) {
    auto calls = open_nvml(library);
    if (!calls) return calls.error();
    const nvml_return code = calls->init();
    if (code == nvml_success) return nvml_session(std::move(*calls));
    const std::string told = ": " + calls->words(code);
    switch (code) {
      case nvml_driver_not_loaded:
        return fail(errc::unavailable, "the NVIDIA driver is not loaded" + told,
                    "load it (modprobe nvidia) and look at dmesg");
      case nvml_no_permission:
      case nvml_operating_system:
        return fail(errc::permission, "the NVIDIA driver refuses access" + told,
                    "look at the rights of /dev/nvidiactl, in a container at its device rules");
      case nvml_version_mismatch:
        return fail(errc::mismatch, "the NVIDIA driver and its library are of different versions" + told,
                    "reload the driver or restart the machine after an update");
      default: return fail(errc::system, "NVML cannot start" + told, "compare with nvidia-smi");
    }
  }
  nvml_session(nvml_session&& other) noexcept
      : calls_(std::move(other.calls_)), open_(std::exchange(other.open_, false)) {}
  nvml_session(const nvml_session&) = delete;
  nvml_session& operator=(const nvml_session&) = delete;
  nvml_session& operator=(nvml_session&&) = delete;
  ~nvml_session() {
    if (open_) calls_.shutdown();
  }
  [[nodiscard]] const nvml_calls& calls() const { return calls_; }

 private:
  explicit nvml_session(nvml_calls calls) : calls_(std::move(calls)) {}
  nvml_calls calls_;
  bool open_ = true;
};

/// Asks about one machine. What the driver does not support stays empty; what it refuses is remarked.
template <class = void>
class nvml_asker {
 public:
  nvml_asker(const nvml_calls& calls, nvml_machine& into) : c_(calls), m_(into) {}

  void ask_driver() {
    char text[128] = {};
    if (c_.driver_version != nullptr && c_.driver_version(text, sizeof text - 1) == nvml_success) m_.driver = text;
    std::string names;
    for (const std::string& name : c_.missing) names += (names.empty() ? "" : ", ") + name;
    if (!names.empty())
      m_.remarks.add(severity::note, "the NVML of this driver is older and lacks calls; what they tell is left out",
                     (m_.driver.empty() ? "" : "driver " + m_.driver + ": ") + names,
                     "update the driver to 550 or later");
  }

  void ask(unsigned index) {
    nvml_device device = nullptr;
    who_ = "GPU " + std::to_string(index);
    const nvml_return code = c_.device_by_index(index, &device);
    if (code == nvml_no_permission || code == nvml_operating_system) {
      m_.remarks.add(severity::note, "the driver gives no handle of a GPU to this process, which may be meant so", who_,
                     "look at the rights of /dev/nvidia*, in a container at its device rules");
      return;
    }
    if (code != nvml_success) {
      m_.remarks.add(severity::fault,
                     code == nvml_gpu_is_lost ? "a GPU has fallen off the bus"
                                              : "the driver gives no handle of a GPU: " + c_.words(code),
                     who_, "look for Xid messages in dmesg; reset or restart the machine");
      return;
    }
    nvml_gpu_seen g;
    g.index = index;
    nvml_pci_info pci{};
    if (told(c_.pci_info(device, &pci), "its PCI address")) {
      g.address = address_of(pci);
      g.device_id = pci.device_id;
      g.subsystem_id = pci.subsystem_id;
    }
    char text[128] = {};
    if (c_.uuid != nullptr && told(c_.uuid(device, text, sizeof text - 1), "its UUID")) g.uuid = text;
    char name[128] = {};
    if (c_.name != nullptr && told(c_.name(device, name, sizeof name - 1), "its name")) g.name = name;
    int major = 0;
    int minor = 0;
    if (c_.compute_capability != nullptr &&
        told(c_.compute_capability(device, &major, &minor), "its compute capability") && major > 0 && major < 100 &&
        minor >= 0 && minor < 10)
      g.sm = static_cast<std::uint32_t>(major * 10 + minor);
    const auto number = [&](nvml_return (*call)(nvml_device, unsigned*), const char* what) {
      unsigned value = 0;
      return call != nullptr && told(call(device, &value), what) && value != 0 ? std::optional(value) : std::nullopt;
    };
    g.pcie_generation = number(c_.pcie_generation, "its PCIe speed");
    g.pcie_width = number(c_.pcie_width, "its PCIe width");
    g.pcie_most_generation = number(c_.pcie_most_generation, "its best PCIe speed");
    g.pcie_most_width = number(c_.pcie_most_width, "its best PCIe width");
    ask_numa(device, g);
    ask_links(device, g);
    ask_fabric(device, g);
    ask_mig(device, g);
    ask_c2c(device, g);
    m_.gpus.push_back(std::move(g));
  }

 private:
  /// Whether a call answered. What a GPU or driver does not have is no remark.
  bool told(nvml_return code, const char* what) {
    switch (code) {
      case nvml_success: return true;
      case nvml_invalid_argument:
      case nvml_not_supported:
      case nvml_not_found:
      case nvml_function_not_found:
      case nvml_argument_version_mismatch: return false;
      case nvml_no_permission:
        m_.remarks.add(severity::note,
                       std::string("the driver refuses to tell of a GPU ") + what + " for lack of rights", who_,
                       "ask as root");
        return false;
      case nvml_gpu_is_lost:
        if (lost_ == who_) return false;  // every call after the first says so again
        lost_ = who_;
        m_.remarks.add(severity::fault, "a GPU has fallen off the bus", who_,
                       "look for Xid messages in dmesg; reset or restart the machine");
        return false;
      default:
        m_.remarks.add(severity::warning,
                       std::string("the driver cannot tell of a GPU ") + what + ": " + c_.words(code), who_,
                       "compare with nvidia-smi -q");
        return false;
    }
  }

  [[nodiscard]] static std::optional<topo::pci_address> address_of(const nvml_pci_info& pci) {
    std::string text(pci.bus_id, std::find(pci.bus_id, pci.bus_id + sizeof pci.bus_id, '\0'));
    return topo::pci_address::parse(text);
  }

  [[nodiscard]] std::optional<std::uint64_t> field(nvml_device device, std::uint32_t id, std::uint32_t scope = 0) {
    if (c_.field_values == nullptr) return std::nullopt;
    nvml_field f{};
    f.id = id;
    f.scope = scope;
    if (c_.field_values(device, 1, &f) != nvml_success || f.outcome != nvml_success) return std::nullopt;
    switch (f.type) {
      case nvml_type_unsigned_int: return f.value.u32;
      case nvml_type_signed_int:
        return f.value.u32 <= INT32_MAX ? std::optional<std::uint64_t>(f.value.u32) : std::nullopt;
      case nvml_type_unsigned_short: return f.value.tiny;
      case nvml_type_unsigned_long:
      case nvml_type_unsigned_long_long: return f.value.large;
      case nvml_type_signed_long_long:
        return f.value.large <= INT64_MAX ? std::optional<std::uint64_t>(f.value.large) : std::nullopt;
      default: return std::nullopt;
    }
  }
  /// MB/s that a link can have: above 0, below 10 TB/s.
  [[nodiscard]] std::optional<std::uint32_t> speed(nvml_device device, std::uint32_t id, std::uint32_t scope = 0) {
    const auto value = field(device, id, scope);
    if (!value || *value == 0 || *value > 10000000) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
  }

  void ask_numa(nvml_device device, nvml_gpu_seen& g) {
    unsigned long nodes[16] = {};  // 1024 domains, the most that Linux has
    constexpr std::size_t bits = 8 * sizeof nodes[0];
    if (c_.memory_affinity == nullptr || !told(c_.memory_affinity(device, 16, nodes, 0), "its NUMA domain")) return;
    std::size_t count = 0;
    for (std::size_t bit = 0; bit < 16 * bits; ++bit)
      if ((nodes[bit / bits] >> (bit % bits) & 1U) != 0 && ++count == 1) g.numa = static_cast<std::uint32_t>(bit);
    if (count != 1) g.numa.reset();
  }

  void ask_links(nvml_device device, nvml_gpu_seen& g) {
    if (c_.nvlink_state == nullptr) return;
    constexpr unsigned most = 64;  // NVML_NVLINK_MAX_LINKS is 18 up to release 570, and grows
    const auto count = field(device, nvml_field_nvlink_count);
    const auto common = speed(device, nvml_field_nvlink_common_speed);
    for (unsigned n = 0; n < (count ? std::min<std::uint64_t>(*count, most) : most); ++n) {
      unsigned state = 0;
      const nvml_return code = c_.nvlink_state(device, n, &state);
      if (code == nvml_invalid_argument || (code == nvml_not_supported && n == 0)) break;
      if (code == nvml_not_supported) continue;
      if (!told(code, "the state of its NVLinks")) break;
      nvml_link_seen l;
      l.number = n;
      l.active = state == 1;
      if (l.active) {
        unsigned type = nvml_end_unknown;
        if (c_.nvlink_remote_type != nullptr && c_.nvlink_remote_type(device, n, &type) == nvml_success) l.end = type;
        nvml_pci_info remote{};
        if (c_.nvlink_remote_pci != nullptr && c_.nvlink_remote_pci(device, n, &remote) == nvml_success)
          l.remote = address_of(remote);
        unsigned version = 0;
        if (c_.nvlink_version != nullptr && c_.nvlink_version(device, n, &version) == nvml_success) l.version = version;
        l.megabytes = speed(device, nvml_field_nvlink_speed, n);
        if (!l.megabytes) l.megabytes = common;
      }
      g.links.push_back(l);
    }
  }

  void ask_fabric(nvml_device device, nvml_gpu_seen& g) {
    nvml_fabric_seen f;
    const unsigned char* cluster = nullptr;
    nvml_fabric_info_v2 now{};
    nvml_fabric_info before{};
    now.version = nvml_fabric_version_2;
    if (c_.fabric_v != nullptr && told(c_.fabric_v(device, &now), "its NVLink fabric")) {
      f.state = now.state;
      f.status = now.status;
      f.clique = now.clique;
      f.health = now.health;
      cluster = now.cluster;
    } else if (c_.fabric != nullptr && told(c_.fabric(device, &before), "its NVLink fabric")) {
      f.state = before.state;
      f.status = before.status;
      f.clique = before.clique;
      cluster = before.cluster;
    } else {
      return;
    }
    if (std::any_of(cluster, cluster + 16, [](unsigned char c) { return c != 0; }))
      for (std::size_t i = 0; i < 16; ++i) {
        f.cluster += "0123456789abcdef"[cluster[i] >> 4U];
        f.cluster += "0123456789abcdef"[cluster[i] & 15U];
      }
    g.fabric = f;
  }

  void ask_mig(nvml_device device, nvml_gpu_seen& g) {
    unsigned now = 0;
    unsigned pending = 0;
    if (c_.mig_mode == nullptr || !told(c_.mig_mode(device, &now, &pending), "its MIG mode")) return;
    g.mig = now == 1;
    g.mig_pending = pending == 1;
    unsigned most = 0;
    if (!*g.mig || c_.mig_most == nullptr || c_.mig_device == nullptr || c_.mig_most(device, &most) != nvml_success)
      return;
    for (unsigned i = 0; i < std::min(most, 64U); ++i) {
      nvml_device instance = nullptr;
      if (c_.mig_device(device, i, &instance) == nvml_success) ++g.mig_devices;
    }
  }

  void ask_c2c(nvml_device device, nvml_gpu_seen& g) {
    nvml_c2c_mode mode{};
    if (c_.c2c_mode == nullptr || !told(c_.c2c_mode(device, &mode), "its chip-to-chip links") || mode.enabled != 1)
      return;
    g.c2c_links = static_cast<unsigned>(std::min<std::uint64_t>(field(device, nvml_field_c2c_count).value_or(0), 256));
    for (unsigned n = 0; n < g.c2c_links; ++n) {
      if (field(device, nvml_field_c2c_active, n).value_or(0) != 1) continue;
      ++g.c2c_active;
      if (!g.c2c_megabytes) g.c2c_megabytes = speed(device, nvml_field_c2c_speed, n);
    }
  }

  const nvml_calls& c_;
  nvml_machine& m_;
  std::string who_, lost_;
};

/// Everything that the library tells. See `nvml::read` for failures.
template <class = void>
[[nodiscard]] result<nvml_machine> ask_nvml(const std::string& library, deadline until) {
  if (until.passed()) return fail(errc::timed_out, "the deadline passed before NVML was asked");
  const auto session = nvml_session::begin(library);
  if (!session) return session.error();
  nvml_machine m;
  nvml_asker asker(session->calls(), m);
  asker.ask_driver();
  unsigned count = 0;
  if (const nvml_return code = session->calls().device_count(&count); code != nvml_success)
    return fail(errc::system, "NVML cannot count the GPUs: " + session->calls().words(code),
                "compare with nvidia-smi -L");
  constexpr unsigned most = 1024;
  for (unsigned i = 0; i < std::min(count, most); ++i) {
    if (until.passed()) {
      if (m.gpus.empty()) return fail(errc::timed_out, "the deadline passed before NVML told of the first GPU");
      m.remarks.add(severity::warning, "the deadline passed before all GPUs were asked",
                    std::to_string(m.gpus.size()) + " of " + std::to_string(count), "allow more time");
      break;
    }
    asker.ask(i);
  }
  if (m.gpus.empty()) {
    std::vector<finding> why;
    m.remarks.report("nvml", why);
    std::string what = count == 0
                           ? "the NVIDIA driver shows no GPU to this process"
                           : "the NVIDIA driver gives no handle of any of its " + std::to_string(count) + " GPUs";
    for (const finding& f : why)
      if (f.level != severity::note || count != 0)
        what += "; " + f.what + (f.evidence.empty() ? "" : " (" + f.evidence + ")");
    return fail(count == 0 ? errc::not_found : errc::permission, std::move(what),
                "compare with nvidia-smi -L; in a container look at its device rules");
  }
  return m;
}

}}}  // namespace topocoll::v0::detail
