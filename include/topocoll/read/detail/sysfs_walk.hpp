// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which files of /sys and /proc are read, and into what.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/sysfs.hpp>

namespace topocoll { inline namespace v0 { namespace read {

template <class>
bool looks_like_pci(std::string_view name) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  if (name.size() < 12 || name.size() > 16) return false;
  const std::size_t domain = name.size() - 8;  // ":bb:dd.f"
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool colon = i == domain || i == domain + 3;
    if (colon ? name[i] != ':' : i == domain + 6 ? name[i] != '.' : !hex(name[i])) return false;
  }
  return true;
}

template <class>
bool matters(std::uint32_t class_code) {
  switch (class_code >> 16U) {
    case 0x01:
    case 0x02:
    case 0x03:
    case 0x0b:
    case 0x12: return true;
    default: return pci_subclass(class_code) == pci_class_bridge || pci_subclass(class_code) == pci_class_other_bridge;
  }
}

namespace detail {

/// PCI functions named in a path, the outermost first.
template <class = void>
[[nodiscard]] std::vector<std::string> pci_names_in(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (looks_like_pci(part)) names.emplace_back(part);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return names;
}

template <io::FileTree Tree>
class sysfs_walk {
 public:
  sysfs_walk(const Tree& tree, deadline until) : tree_(tree), until_(until) {}

  [[nodiscard]] sysfs_machine machine() {
    m_.processor = processor_of(beginning("/proc/cpuinfo", bytes{4096}));  // the first of them all
    m_.online = line("/sys/devices/system/cpu/online");
    domains();
    interfaces();
    rdma();
    functions();
    xgmi();
    return std::move(m_);
  }

 private:
  [[nodiscard]] std::string text(const std::string& path) const {
    auto content = tree_.read(path);
    return content ? std::move(*content) : std::string();
  }
  [[nodiscard]] std::string beginning(const std::string& path, bytes most) const {
    auto content = tree_.head(path, most);
    return content ? std::move(*content) : std::string();
  }
  [[nodiscard]] std::string line(const std::string& path) const { return std::string(first_line(text(path))); }
  void note(severity level, std::string where, std::string what, std::string evidence = {}) {
    m_.findings.push_back({level, std::move(where), std::move(what), std::move(evidence), {}, 1});
  }
  /// True when a recording claims more of something than any machine has; says so.
  [[nodiscard]] bool enough(std::size_t count, std::size_t most, const char* where) {
    if (count < most) return false;
    note(severity::warning, where, "more than " + std::to_string(most) + " entries; the rest is passed over");
    return true;
  }
  /// True once the deadline has passed; says so the first time.
  [[nodiscard]] bool late(const char* where) {
    if (!until_.passed()) return false;
    if (!late_)
      note(severity::warning, where, "the deadline passed while the machine was read; what follows is missing");
    late_ = true;
    return true;
  }

  void domains() {
    const std::string base = "/sys/devices/system/node";
    const auto names = tree_.list(base);
    if (!names) {
      note(severity::note, base, "the kernel shows no NUMA domains; the machine is taken as one", names.error().what);
      return;
    }
    for (const std::string& name : *names) {
      if (name.substr(0, 4) != "node") continue;
      const auto number = small_number(std::string_view(name).substr(4), 65535);
      if (!number || name != "node" + std::to_string(*number) || late("/sys/devices/system/node") ||
          !tree_.list(base + "/" + name))
        continue;
      if (enough(m_.domains.size(), 4096, "/sys/devices/system/node")) break;
      sysfs_numa d;
      d.number = *number;
      d.cpus = line(base + "/" + name + "/cpulist");
      d.memory = memory_total(beginning(base + "/" + name + "/meminfo", bytes{256}));
      std::string distances = line(base + "/" + name + "/distance");
      for (std::string_view rest = distances; !rest.empty();) {
        const std::size_t blank = rest.find(' ');
        if (const auto value = small_number(rest.substr(0, blank))) d.distances.push_back(*value);
        rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
      }
      m_.domains.push_back(std::move(d));
    }
    seq::sort(m_.domains, [](const sysfs_numa& a, const sysfs_numa& b) { return a.number < b.number; });
    // POWER9 and later show the memory of each GPU as a NUMA domain.
    if (const auto gpus = tree_.list("/proc/driver/nvidia/gpus"))
      for (const std::string& gpu : *gpus) {
        const std::string status = text("/proc/driver/nvidia/gpus/" + gpu + "/numa_status");
        const std::size_t at = status.find("Node:");
        if (at == std::string::npos) continue;
        const auto number = small_number(first_line(std::string_view(status).substr(at + 5)));
        for (sysfs_numa& d : m_.domains)
          if (number && d.number == *number && d.cpus.empty()) d.of_gpu = true;
      }
  }

  void functions() {
    const std::string base = "/sys/bus/pci/devices";
    const auto names = tree_.list(base);
    if (!names) {
      note(severity::warning, base, "no PCI devices can be seen: neither GPUs nor adapters are known",
           names.error().what);
      return;
    }
    std::vector<std::string> with_port;
    for (const sysfs_net& n : m_.interfaces) with_port.push_back(n.pci);
    for (const sysfs_rdma& r : m_.rdma) with_port.push_back(r.pci);
    seq::sort(with_port);
    for (const std::string& name : *names) {
      if (!looks_like_pci(name)) continue;
      if (late("/sys/bus/pci/devices") || enough(m_.functions.size(), 65536, "/sys/bus/pci/devices")) return;
      const std::string at = base + "/" + name + "/";
      const auto code = pci_class_code(line(at + "class"));
      if (!code) {
        note(severity::note, name, "the class of the PCI function cannot be read; it is passed over");
        continue;
      }
      // Some adapters have a class of their own, such as 0c06 of early InfiniBand: what has a port is one.
      if (!matters(*code) && !std::binary_search(with_port.begin(), with_port.end(), name)) continue;
      sysfs_pci f;
      f.address = name;
      f.class_code = *code;
      if (const auto target = tree_.link(base + "/" + name)) {
        f.above = pci_names_in(*target);
        if (!f.above.empty() && f.above.back() == name) f.above.pop_back();
      }
      f.vendor = line(at + "vendor");
      f.device = line(at + "device");
      f.subsystem_vendor = line(at + "subsystem_vendor");
      f.subsystem_device = line(at + "subsystem_device");
      f.numa = small_number(line(at + "numa_node"), 65535);
      if (!f.numa) {
        f.local_cpus = number_list(text(at + "local_cpulist"));
        if (f.local_cpus.empty()) f.local_cpus = mask_list(text(at + "local_cpus"));
      }
      f.max_speed = line(at + "max_link_speed");
      f.max_width = line(at + "max_link_width");
      f.speed = line(at + "current_link_speed");
      f.width = line(at + "current_link_width");
      if (pci_subclass(*code) == pci_class_bridge) {
        // All of it: which port it is stands in the first 256 bytes, the access control behind them.
        if (const auto config = tree_.head(at + "config", bytes{4096})) {
          f.port = pcie_port_of(*config);
          f.acs = acs_of_config(*config);
        }
      }
      if (const auto physical = tree_.link(base + "/" + name + "/physfn")) {
        auto named = pci_names_in(*physical);
        if (!named.empty()) f.physical = std::move(named.back());
      }
      m_.functions.push_back(std::move(f));
    }
  }

  /// Target of a class link, and the PCI function nearest to the device in it.
  [[nodiscard]] std::pair<std::string, std::string> device_of(const std::string& folder,
                                                              const std::string& name) const {
    std::string target;
    if (auto link = tree_.link(folder + "/" + name)) target = std::move(*link);
    auto names = pci_names_in(target);
    if (names.empty())
      if (const auto device = tree_.link(folder + "/" + name + "/device")) names = pci_names_in(*device);
    return {std::move(target), names.empty() ? std::string() : std::move(names.back())};
  }

  void interfaces() {
    const std::string base = "/sys/class/net";
    const auto names = tree_.list(base);
    if (!names) {
      note(severity::note, base, "no network interfaces can be seen", names.error().what);
      return;
    }
    for (const std::string& name : *names) {
      if (late("/sys/class/net") || enough(m_.interfaces.size(), 65536, "/sys/class/net")) return;
      sysfs_net n;
      n.name = name;
      auto [target, pci] = device_of(base, name);
      if (!tree_.list(base + "/" + name)) continue;  // bonding_masters is a file
      n.pci = std::move(pci);
      n.made_up = n.pci.empty() && target.find("/virtual/") != std::string::npos;
      n.state = line(base + "/" + name + "/operstate");
      if (!n.made_up) {
        // -1 and the 32-bit forms of it mean that the driver does not know.
        const auto speed = whole_number(line(base + "/" + name + "/speed"));
        if (speed && *speed > 0 && *speed < INT32_MAX) n.speed = speed;
        n.mtu = line(base + "/" + name + "/mtu");
        n.address = line(base + "/" + name + "/address");
        n.port = small_number(line(base + "/" + name + "/dev_port"), 255);
      }
      m_.interfaces.push_back(std::move(n));
    }
  }

  void rdma() {
    const std::string base = "/sys/class/infiniband";
    const auto names = tree_.list(base);
    if (!names) return;  // most machines have none
    for (const std::string& name : *names) {
      if (late("/sys/class/infiniband") || enough(m_.rdma.size(), 65536, "/sys/class/infiniband")) return;
      sysfs_rdma r;
      r.name = name;
      if (!tree_.list(base + "/" + name)) continue;
      auto [target, pci] = device_of(base, name);
      r.pci = std::move(pci);
      r.made_up = r.pci.empty() && target.find("/virtual/") != std::string::npos;
      if (r.made_up) r.parent = line(base + "/" + name + "/parent");
      r.guid = line(base + "/" + name + "/node_guid");
      r.type = line(base + "/" + name + "/hca_type");
      r.firmware = line(base + "/" + name + "/fw_ver");
      if (const auto ports = tree_.list(base + "/" + name + "/ports"))
        for (const std::string& port : *ports) {
          const auto number = small_number(port, 255);
          if (!number) continue;
          const std::string at = base + "/" + name + "/ports/" + port + "/";
          sysfs_rdma_port p;
          p.number = *number;
          p.state = line(at + "state");
          p.physical_state = line(at + "phys_state");
          p.layer = line(at + "link_layer");
          p.rate = infiniband_rate_of(text(at + "rate"));
          p.lid = line(at + "lid");
          p.gids = gids(at);
          p.errors = error_counters(at + "counters/");
          r.ports.push_back(std::move(p));
        }
      seq::sort(r.ports, [](const sysfs_rdma_port& a, const sysfs_rdma_port& b) { return a.number < b.number; });
      m_.rdma.push_back(std::move(r));
    }
  }

  /// The table of a port, 16 to 256 entries of which most are zero; it ends at a long run of zeros.
  [[nodiscard]] std::vector<sysfs_gid> gids(const std::string& port) {
    std::vector<sysfs_gid> found;
    constexpr std::uint32_t most = 256, longest_gap = 16;
    for (std::uint32_t i = 0, gap = 0; i < most && gap < longest_gap; ++i) {
      const std::string index = std::to_string(i);
      std::string gid = line(port + "gids/" + index);
      if (gid.find_first_not_of("0:") == std::string::npos) {
        ++gap;
        continue;
      }
      gap = 0;
      found.push_back(
          {i, std::move(gid), line(port + "gid_attrs/types/" + index), line(port + "gid_attrs/ndevs/" + index)});
    }
    return found;
  }
  /// Counters that only ever count trouble. Source: InfiniBand Architecture 1.4, 16.1.3.5 (PortCounters), as the kernel
  /// names them in Documentation/ABI/stable/sysfs-class-infiniband.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> error_counters(const std::string& folder) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const char* name : {"VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
                             "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_errors",
                             "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
                             "port_xmit_constraint_errors", "port_xmit_discards", "symbol_error"}) {
      std::string count = line(folder + name);
      if (count.find_first_of("123456789") != std::string::npos) found.emplace_back(name, std::move(count));
    }
    return found;
  }

  /// The compute driver of AMD GPUs numbers its nodes; those with SIMD units are GPUs, or partitions of one.
  void xgmi() {
    const std::string base = "/sys/class/kfd/kfd/topology/nodes";
    const auto names = tree_.list(base);
    if (!names) return;
    struct gpu {
      std::string node, address, gcn;
    };
    std::vector<gpu> gpus;
    for (const std::string& name : *names) {
      if (late("/sys/class/kfd") || enough(gpus.size(), 4096, "/sys/class/kfd")) break;
      const std::string properties = text(base + "/" + name + "/properties");
      if (property(properties, "simd_count").value_or(0) == 0) continue;
      const auto location = property(properties, "location_id");
      if (!location || *location > 0xffff) continue;
      gpus.push_back({name, address_of(property(properties, "domain").value_or(0), *location),
                      architecture_of(property(properties, "gfx_target_version").value_or(0))});
    }
    for (const gpu& g : gpus) {
      const auto links = tree_.list(base + "/" + g.node + "/io_links");
      if (!links || late("/sys/class/kfd")) continue;
      for (const std::string& link : *links) {
        const std::string properties = text(base + "/" + g.node + "/io_links/" + link + "/properties");
        constexpr std::uint64_t type_xgmi = 11;
        if (property(properties, "type") != type_xgmi) continue;
        const std::string other = std::to_string(property(properties, "node_to").value_or(0));
        const auto to = std::find_if(gpus.begin(), gpus.end(), [&](const gpu& x) { return x.node == other; });
        if (to == gpus.end() || enough(m_.xgmi.size(), 65536, "/sys/class/kfd")) continue;
        m_.xgmi.push_back({g.address, to->address, g.gcn, property(properties, "min_bandwidth").value_or(0),
                           property(properties, "max_bandwidth").value_or(0)});
      }
    }
  }
  /// The number behind a name in lines "name number".
  [[nodiscard]] static std::optional<std::uint64_t> property(std::string_view text, std::string_view name) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view row = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (row.substr(0, name.size()) != name || row.size() <= name.size() || row[name.size()] != ' ') continue;
      const auto value = whole_number(row.substr(name.size() + 1));
      if (value && *value >= 0) return static_cast<std::uint64_t>(*value);
      return std::nullopt;
    }
    return std::nullopt;
  }
  /// The driver packs bus, device and function into 16 bits. Partitions of one GPU differ in the function alone.
  [[nodiscard]] static std::string address_of(std::uint64_t domain, std::uint64_t location) {
    const auto hex = [](std::uint64_t value, int digits) {
      std::string out;
      for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
        out += "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 15U];
      return out;
    };
    return hex(domain, domain > 0xffff ? 8 : 4) + ":" + hex(location >> 8U, 2) + ":" + hex(location >> 3U & 0x1fU, 2) +
           ".0";
  }
  /// 90402 is gfx942, 90010 is gfx90a: two decimal digits each for minor and step, which names write in hexadecimal.
  [[nodiscard]] static std::string architecture_of(std::uint64_t version) {
    if (version < 10000 || version > 999999) return {};
    const std::uint64_t minor_part = version / 100 % 100;
    const std::uint64_t step = version % 100;
    if (minor_part > 15 || step > 15) return {};
    return std::to_string(version / 10000) + "0123456789abcdef"[minor_part] + "0123456789abcdef"[step];
  }

  const Tree& tree_;
  deadline until_;
  bool late_ = false;
  sysfs_machine m_;
};

}  // namespace detail

template <io::FileTree Tree>
sysfs_machine sysfs_machine_of(const Tree& tree, deadline until) {
  return detail::sysfs_walk<Tree>(tree, until).machine();
}

}}}  // namespace topocoll::v0::read
