// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCI functions of an hwloc topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/discover/detail/hwloc_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// The number that a name ends with: 3 of "nvml3" for the start "nvml". Empty when the name is not of that kind.
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> number_after(std::string_view name, std::string_view start) {
  if (name.substr(0, start.size()) != start) return std::nullopt;
  const auto digits = read::digits_of(name.substr(start.size()), 10);
  if (!digits || *digits > 65535) return std::nullopt;
  return static_cast<std::uint32_t>(*digits);
}

template <class Deferred>
void hwloc_builder<Deferred>::add_function(std::size_t i) {
  const read::hwloc_pci& f = t_.functions[i];
  seen& s = s_[i];
  const std::size_t up = f.parent;
  // hwloc does not tell which end of a switch a bridge is: below the processor stands a root port, below a root or downstream
  // port the upstream end of a switch, below that its downstream ports.
  if (f.bridge)
    s.port = up == none                          ? port_end::root
             : s_[up].port == port_end::upstream ? port_end::downstream
                                                 : port_end::upstream;
  if (s.port == port_end::root) return;  // the cable below it is the link; it is no node
  const bool on_root = up != none && s_[up].port == port_end::root;
  const std::size_t parent = up == none || on_root ? none : s_[up].cable;
  if (s.port == port_end::downstream) {
    s.cable = parent;  // part of the switch
    return;
  }

  bool told = false;
  const std::size_t home = domain_of(i, told);
  const node_id cpu = home != none ? domains_[home].node : cpus_.front();
  topo::node n;
  const std::string name = to_string(s.address);
  n.key = host_ + "/pci:" + name;
  n.host = host_;
  std::string guess;
  if (told) {
    n.numa = out_.nodes[cpu.value].numa;
  } else if (cpus_.size() == 1) {
    n.numa = out_.nodes[cpu.value].numa;
    n.how = trust::derived;
    n.reason = "NUMA domain not told; taken as the only one";
  } else {
    guess = "NUMA domain not told; attached to " + out_.nodes[cpu.value].name + " so that it has a path";
    if (up == none || on_root)
      tally_.add(
          severity::warning,
          "hwloc tells several or no NUMA domains of a device; it is attached to the first one so that it has a path",
          name, "ask the host, or measure");
  }
  if (f.class_code) {
    std::string code = "0x000000";
    for (std::size_t digit = 0; digit < 6; ++digit)
      code[7 - digit] = "0123456789abcdef"[*f.class_code >> (4 * digit) & 15U];
    fact(n, "class", code);
  }
  fact(n, "vendor", f.vendor);
  fact(n, "device", f.device);
  fact(n, "subsystem_vendor", f.subsystem_vendor);
  fact(n, "subsystem_device", f.subsystem_device);
  if (on_root) fact(n, "root_port", to_string(s_[up].address));
  if (f.bridge) {
    n.kind = topo::node_kind::pcie_switch;
    n.name = "PCIe switch " + name;
  } else if (s.gpu) {
    describe_gpu(i, n);
  } else if (s.nic) {
    n.kind = topo::node_kind::nic;
    n.name = "NIC " + name;
  } else {
    n.kind = topo::node_kind::pcie_device;
    n.name = (subclass(f) == 0x0108       ? "NVMe "
              : subclass(f) >> 8U == 0x01 ? "storage "
              : subclass(f) >> 8U == 0x03 ? "display "
                                          : "device ") +
             name;
    if (is_nvswitch(f)) {
      n.name = "NVSwitch " + name;
      fact(n, "role", "nvswitch");
    }
    if (f.class_code && is_gpu_class(*f.class_code, f.vendor))
      tally_.add(severity::note, "a display of a GPU maker is not counted as a GPU: nothing can compute on it", name);
  }

  pcie_cable c;
  c.bridge = f.bridge;
  c.gpu = s.gpu;
  c.nic = s.nic;
  c.model = f.vendor + f.device;
  c.who = name;
  c.parent = parent;
  c.device_end = f.link;
  if (up != none) c.port_end = t_.functions[up].link;
  c.node = add(std::move(n), f.line);
  c.above = parent != none ? cables_[parent].node : cpu;
  s.cable = cables_.size();
  if (!guess.empty() && parent == none) guesses_.emplace_back(s.cable, std::move(guess));
  cables_.push_back(std::move(c));
}

template <class Deferred>
void hwloc_builder<Deferred>::describe_gpu(std::size_t i, topo::node& n) {
  const read::hwloc_pci& f = t_.functions[i];
  const std::string name = to_string(s_[i].address);
  std::optional<std::uint32_t> nvml, cuda, rsmi;
  std::size_t partitions = 0;
  std::string names, model, hive;
  for (const std::size_t k : s_[i].names) {
    const read::hwloc_os_device& d = t_.os_devices[k];
    names += (names.empty() ? "" : " ") + d.name;
    if (model.empty()) model = info_of(d.infos, "GPUModel");
    if (const std::string id = info_of(d.infos, "XGMIHiveID"); !id.empty() && id != "0") hive = id;
    if (const auto number = number_after(d.name, "nvml"); number && !nvml) nvml = number;
    if (const auto number = number_after(d.name, "cuda"); number && !cuda) cuda = number;
    if (const auto number = number_after(d.name, "rsmi")) {
      ++partitions;
      if (!rsmi) rsmi = number;
    }
  }
  n.kind = topo::node_kind::gpu;
  n.index = nvml ? nvml : cuda ? cuda : partitions == 1 ? rsmi : std::nullopt;
  n.name = "GPU " + (n.index ? std::to_string(*n.index) : name);
  fact(n, "model", model.empty() ? info_of(f.infos, "PCIDevice") : model);
  fact(n, "os_devices", names);
  fact(n, "xgmi_hive", hive);
  if (partitions > 1) {
    fact(n, "partitions", std::to_string(partitions));
    tally_.add(severity::note,
               "one GPU is run as " + std::to_string(partitions) + " partitions; it counts once, by its PCI function",
               name);
  }
}

}}}  // namespace topocoll::v0::detail
