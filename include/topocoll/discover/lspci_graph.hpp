// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what lspci prints into a fragment of the topology graph, and judges access control on the way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/acs.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs_graph.hpp>
#include <topocoll/read/lspci.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one listing.
///
/// The tree of functions comes from the bus numbers of the bridges; from there on it is built as what sysfs tells
/// (`fragment_of(read::sysfs_machine)`): one link for each cable from what its two ends tell, a GPU that idles at a low speed
/// is not broken, a slot wider than its card is not either. Functions of a tree (-tv) have no class: bridges are those with a
/// bus behind them, GPUs and adapters are guessed by their description, with trust assumed and a warning. The listing tells
/// no ports of adapters and no processors.
/// @param file  name for failures, findings and `fragment::source`
/// Cost: O(n^2) at worst for n functions, else O(n log n).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::lspci_listing& listing, const discover_options& options,
                                                 const std::string& file);

/// Which bridges of a listing redirect peer traffic. Listings by users without root rights, trees and -nn tell nothing.
template <class = void>
[[nodiscard]] acs_report acs_of(const read::lspci_listing& listing);

namespace detail {

/// What a function is taken for, and whether that is a guess.
struct lspci_role {
  std::uint32_t class_code = 0;  // 0 for a function that nobody needs
  std::string vendor;            // "0x10de"; "other" for a maker of no GPUs
  bool guessed = false;
};

[[nodiscard]] inline bool says(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

template <class = void>
[[nodiscard]] lspci_role role_of(const read::lspci_function& f) {
  lspci_role role;
  const std::string& d = f.description;
  role.vendor = !f.vendor.empty()                         ? "0x" + f.vendor
                : says(d, "NVIDIA")                       ? "0x10de"
                : says(d, "Advanced Micro Devices, Inc.") ? "0x1002"
                : says(d, "Intel Corporation")            ? "0x8086"
                                                          : "other";
  if (f.class_code) {
    role.class_code = *f.class_code;
    return role;
  }
  if (!f.class_name.empty()) return role;  // a class that is printed, but carries no traffic
  const bool first = f.address.back() == '0';
  const auto any = [&](std::initializer_list<std::string_view> words) {
    return seq::any_of(words, [&](std::string_view w) { return says(d, w); });
  };
  role.guessed = true;
  if (any({"NVSwitch"}))
    role.class_code = 0x068000;
  else if (any({"Audio", "USB", "UCSI", "Bridge", "bridge", "Switch", "DMA"}))
    role.class_code = 0;
  else if (any({"NVIDIA"}) && first)
    role.class_code = 0x030200;
  else if (any({"Instinct", "Aldebaran", "Arcturus"}) && first)
    role.class_code = 0x038000;
  else if (any({"ConnectX", "BlueField", "Infiniband", "InfiniBand"}))
    role.class_code = 0x020700;
  else if (any({"Ethernet", "network device", "Network Connection", "Elastic Fabric Adapter"}))
    role.class_code = 0x020000;
  else if (any({"NVMe", "Non-Volatile"}))
    role.class_code = 0x010800;
  return role;
}

/// What a listing tells of the access control of a bridge.
template <class = void>
[[nodiscard]] read::acs_state acs_state_of(const read::lspci_function& f) {
  read::acs_state state;
  state.control = f.acs_control;
  // The upstream port of a switch has no ACS (PCI Express Base Specification 6.12.1); root would have seen one elsewhere.
  state.known =
      f.acs_control.has_value() || (f.extended && !f.denied && !f.has_acs) || f.port == read::pcie_port::upstream;
  return state;
}

/// Position of the bridge above each function, by bus numbers; the size of the list for none.
template <class = void>
[[nodiscard]] std::vector<std::size_t> bridges_above(const std::vector<read::lspci_function>& all) {
  struct behind {
    std::uint32_t domain, bus;
    std::size_t bridge;
  };
  std::vector<behind> buses;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].secondary) buses.push_back({all[i].domain, *all[i].secondary, i});
  const auto before = [](const behind& a, const behind& b) {
    return a.domain != b.domain ? a.domain < b.domain : a.bus != b.bus ? a.bus < b.bus : a.bridge < b.bridge;
  };
  seq::sort(buses, before);
  std::vector<std::size_t> above(all.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto it = std::lower_bound(buses.begin(), buses.end(), behind{all[i].domain, all[i].bus, 0}, before);
    if (it != buses.end() && it->domain == all[i].domain && it->bus == all[i].bus && it->bridge != i) {
      above[i] = it->bridge;
      continue;
    }
    // The bridge right above may be missing from the listing: take the one that reaches least far around the bus.
    std::uint32_t least = 256;
    for (const behind& b : buses) {
      const read::lspci_function& f = all[b.bridge];
      const std::uint32_t last = f.subordinate.value_or(b.bus);
      if (b.bridge == i || b.domain != all[i].domain || b.bus > all[i].bus || last < all[i].bus ||
          f.bus == all[i].bus || last - b.bus >= least)
        continue;
      least = last - b.bus;
      above[i] = b.bridge;
    }
  }
  // Bus numbers that lead round in a circle cannot be true.
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t steps = 0;
    for (std::size_t up = above[i]; up < all.size(); up = above[up])
      if (++steps > 256) {
        above[i] = all.size();
        break;
      }
  }
  return above;
}

}  // namespace detail

template <class>
acs_report acs_of(const read::lspci_listing& listing) {
  const std::vector<std::size_t> above = detail::bridges_above(listing.functions);
  std::vector<acs_function> functions;
  for (std::size_t i = 0; i < listing.functions.size(); ++i) {
    const read::lspci_function& f = listing.functions[i];
    const detail::lspci_role role = detail::role_of(f);
    acs_function a;
    a.address = f.address;
    a.above = above[i];
    a.bridge = f.secondary.has_value() || read::pci_subclass(role.class_code) == read::pci_class_bridge;
    a.gpu = !a.bridge && detail::is_gpu_class(role.class_code, role.vendor);
    a.state = detail::acs_state_of(f);
    functions.push_back(std::move(a));
  }
  return acs_report_of(functions, !listing.guest_of.empty());
}

template <class>
result<topo::fragment> fragment_of(const read::lspci_listing& listing, const discover_options& options,
                                   const std::string& file) {
  const auto& all = listing.functions;
  const std::vector<std::size_t> above = detail::bridges_above(all);
  read::sysfs_machine machine;
  machine.findings = listing.findings;
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> guessed;
  std::size_t bridges = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const read::lspci_function& f = all[i];
    const detail::lspci_role role = detail::role_of(f);
    bridges += f.secondary ? 1U : 0U;
    if (f.numa) numbers.push_back(*f.numa);
    if (role.class_code == 0 || !read::matters(role.class_code)) continue;
    if (role.guessed) guessed.push_back(f.address);
    read::sysfs_pci p;
    p.address = f.address;
    for (std::size_t up = above[i]; up < all.size(); up = above[up]) p.above.push_back(all[up].address);
    std::reverse(p.above.begin(), p.above.end());
    p.class_code = role.class_code;
    if (role.vendor != "other" || read::pci_subclass(role.class_code) == read::pci_class_vga) p.vendor = role.vendor;
    if (!f.device.empty()) p.device = "0x" + f.device;
    p.numa = f.numa;
    p.max_speed = f.best.speed;
    p.max_width = f.best.width;
    p.speed = f.now.speed;
    p.width = f.now.width;
    p.port = f.port;
    p.acs = detail::acs_state_of(f);
    machine.functions.push_back(std::move(p));
  }
  seq::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() > 128) return fail(errc::unsupported, file + ": more than 128 NUMA domains in one host");
  // Which processors a domain has is not told, only that it has some: devices are near it.
  constexpr const char* some = "not told";
  for (const std::uint32_t n : numbers) {
    read::sysfs_numa d;
    d.number = n;
    d.cpus = some;
    machine.domains.push_back(std::move(d));
  }
  topo::fragment out = fragment_of(machine, options.host, "lspci " + file);
  // Ports are not in a listing. Access control is judged below: here all bridges count, and what marks a guest is known.
  std::erase_if(out.findings, [](const finding& f) {
    return f.what.rfind("an adapter shows no port", 0) == 0 || f.what.find("(ACS)") != std::string::npos;
  });
  seq::sort(guessed);
  for (topo::node& n : out.nodes) {
    std::erase_if(n.facts, [&](const auto& fact) {
      return (fact.first == "cpus" && fact.second == some) || (fact.first == "vendor" && fact.second == "other");
    });
    const std::size_t at = n.key.find("/pci:");
    const bool guess =
        at != std::string::npos && std::binary_search(guessed.begin(), guessed.end(), n.key.substr(at + 5));
    if (!guess || n.kind == topo::node_kind::pcie_switch) continue;
    n.how = trust::assumed;
    n.reason = "the tree tells no classes; what the device is was guessed from its description";
  }
  if (!guessed.empty())
    out.findings.push_back({severity::warning, file,
                            "the tree tells no classes: what its devices are is guessed from their descriptions",
                            std::to_string(guessed.size()) + " devices, such as " + guessed.front(),
                            "name the output of lspci -vvv or lspci -nn", 1});
  if (bridges == 0)
    out.findings.push_back({severity::warning,
                            file,
                            "the listing does not tell what stands above the devices; each is taken to hang at the "
                            "processor",
                            {},
                            "name the output of lspci -vvv",
                            1});
  tell_acs(acs_of(listing), file, listing.guest_of, out.findings);
  return out;
}

}}  // namespace topocoll::v0
