// SPDX-License-Identifier: Apache-2.0
#pragma once
// Network adapters and ports of an hwloc topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/hwloc_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class Deferred>
topo::link hwloc_builder<Deferred>::port_link(std::size_t card, const cable_rates<>& rates, const std::string& state,
                                              const std::string& label) {
  topo::link l;
  if (!state.empty() && state != "4") {
    l.how = trust::reported;
    l.reason = "port state " + state + ": carries nothing now";
    tally_.add(severity::warning, "a port is not active; it carries nothing", label + " (state " + state + ")",
               "look at cable, switch port and subnet manager");
    return l;
  }
  const std::size_t cable = s_[card].cable;
  const bool told = rates.told(cable);
  l.capacity = told ? rates.capacity(cable) : unknown_port_rate;
  l.how = trust::assumed;
  l.reason = std::string("hwloc tells no rate of ports; taken as ") + (told ? "the adapter's PCIe link" : "10 Gbit/s");
  tally_.add(severity::note, "hwloc tells no rate of network ports; they are assumed", label,
             "merge with sysfs, or measure");
  return l;
}

template <class Deferred>
void hwloc_builder<Deferred>::add_port(std::size_t card, topo::node port, topo::link l, std::uint32_t line) {
  l.from = cables_[s_[card].cable].node;
  port.kind = topo::node_kind::nic_port;
  port.host = host_;
  port.numa = out_.nodes[l.from.value].numa;
  topo::node& nic = out_.nodes[l.from.value];
  if (nic.name.rfind("NIC ", 0) == 0) nic.name = port.name;
  l.kind = topo::link_kind::internal;
  l.to = add(std::move(port), line);
  out_.join(l);
}

template <class Deferred>
void hwloc_builder<Deferred>::add_interface(std::size_t card, const read::hwloc_os_device& d,
                                            const cable_rates<>& rates) {
  topo::node port;
  port.key = host_ + "/net:" + d.name + "/0";
  port.name = d.name;
  fact(port, "address", info_of(d.infos, "Address"));
  fact(port, "pci", to_string(s_[d.function].address));
  add_port(card, std::move(port), port_link(card, rates, {}, d.name), d.line);
}

/// "ec0d:9a03:007f:55b2" as "0xec0d9a03007f55b2"; empty for anything else and for zero.
template <class = void>
[[nodiscard]] std::string hwloc_guid(std::string_view text) {
  std::string guid = "0x";
  for (const char c : text)
    if (c != ':') guid += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto high = guid.size() == 18 ? read::digits_of(std::string_view(guid).substr(2, 8), 16) : std::nullopt;
  const auto low = guid.size() == 18 ? read::digits_of(std::string_view(guid).substr(10), 16) : std::nullopt;
  return high && low && (*high | *low) != 0 ? guid : std::string();
}

/// Numbers of the ports that an RDMA device tells of by "Port1State", "Port1LID" or "Port1GID0": ascending, 1 to 255.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> hwloc_ports(const read::hwloc_infos& infos) {
  std::vector<std::uint32_t> numbers;
  for (const auto& info : infos) {
    std::string_view name = info.first;
    if (name.substr(0, 4) != "Port") continue;
    name.remove_prefix(4);
    for (const std::string_view what : {"State", "LID", "GID0"}) {
      if (name.size() <= what.size() || name.substr(name.size() - what.size()) != what) continue;
      const auto number = read::digits_of(name.substr(0, name.size() - what.size()), 10);
      if (number && *number >= 1 && *number <= 255) numbers.push_back(static_cast<std::uint32_t>(*number));
    }
  }
  seq::sort_unique(numbers);
  return numbers;
}

/// The ports of the RDMA devices and the interfaces of one function. An interface of a function with RDMA ports is one of them.
template <class Deferred>
void hwloc_builder<Deferred>::add_rdma_ports(std::size_t card, const std::vector<std::size_t>& devices,
                                             const cable_rates<>& rates) {
  std::vector<const read::hwloc_os_device*> rdma, interfaces;
  for (const std::size_t k : devices) {
    const read::hwloc_os_device& d = t_.os_devices[k];
    if ((d.kinds & read::hwloc_openfabrics) != 0)
      rdma.push_back(&d);
    else if ((d.kinds & read::hwloc_network) != 0)
      interfaces.push_back(&d);
  }
  if (rdma.empty()) {
    for (const auto* d : interfaces) add_interface(card, *d, rates);
    return;
  }
  std::vector<bool> used(interfaces.size());
  bool infiniband = subclass(t_.functions[rdma.front()->function]) == read::pci_class_infiniband ||
                    subclass(t_.functions[rdma.front()->function]) == 0x0c06;  // InfiniBand on the serial bus class
  for (const auto* d : interfaces)
    infiniband = infiniband || info_of(d->infos, "Address").size() == 59;  // 20 bytes: IP over InfiniBand
  for (std::size_t r = 0; r < rdma.size(); ++r) {
    const read::hwloc_os_device& d = *rdma[r];
    const std::vector<std::uint32_t> told = hwloc_ports(d.infos);
    std::vector<std::uint32_t> ports = told;
    for (std::uint32_t p = 1; told.empty() && p <= 255 && (p == 1 || (r == 0 && p <= interfaces.size())); ++p)
      ports.push_back(p);
    const std::string node_guid = hwloc_guid(info_of(d.infos, "NodeGUID"));
    topo::node& nic = out_.nodes[cables_[s_[card].cable].node.value];
    if (!node_guid.empty() && seq::none_of(nic.facts, [](const auto& f) { return f.first == "node_guid"; }))
      fact(nic, "node_guid", node_guid);
    for (const std::uint32_t p : ports) {
      const std::string start = "Port" + std::to_string(p);
      topo::node port;
      port.key = host_ + "/net:" + d.name + "/" + std::to_string(p);
      port.name = d.name;
      fact(port, "guid", node_guid);
      const std::string gid = info_of(d.infos, start + "GID0");
      if (infiniband && gid.size() == 39) fact(port, "port_guid", hwloc_guid(std::string_view(gid).substr(20)));
      fact(port, "system_guid", hwloc_guid(info_of(d.infos, "SysImageGUID")));
      fact(port, "lid", info_of(d.infos, start + "LID"));
      fact(port, "pci", to_string(s_[d.function].address));
      const std::string state = info_of(d.infos, start + "State");
      fact(port, "state", state == "4" ? "4: ACTIVE" : state);
      if (told.empty()) {
        port.how = trust::assumed;
        port.reason = "hwloc tells no ports of the RDMA device; taken as one for each of its interfaces";
      }
      for (std::size_t n = 0; r == 0 && n < interfaces.size(); ++n) {
        const auto number = read::small_number(info_of(interfaces[n]->infos, "Port"), 255);
        if (used[n] || (number && *number != p)) continue;
        used[n] = true;
        fact(port, "interface", interfaces[n]->name);
        fact(port, "interface_address", info_of(interfaces[n]->infos, "Address"));
        break;
      }
      add_port(card, std::move(port), port_link(card, rates, state, d.name + " port " + std::to_string(p)), d.line);
    }
  }
}

template <class Deferred>
void hwloc_builder<Deferred>::add_loose_adapter(const read::hwloc_os_device& d) {
  if (is_virtual_interface(d.name)) {
    tally_.add(severity::note, "interfaces without hardware are not counted as adapters", d.name);
    return;
  }
  topo::node nic;
  nic.kind = topo::node_kind::nic;
  nic.key = host_ + "/nic:" + d.name;
  nic.name = d.name;
  nic.host = host_;
  if (cpus_.size() == 1) nic.numa = out_.nodes[cpus_[0].value].numa;
  topo::link l;
  l.from = cpus_[0];
  l.to = add(std::move(nic), d.line);
  l.kind = topo::link_kind::pcie;
  l.capacity = unknown_port_rate;
  l.how = trust::assumed;
  l.reason = "the adapter shows no PCI function; taken to be as fast as its port";
  if (cpus_.size() > 1) l.reason += ", at the first NUMA domain";
  out_.join(l);
  topo::node port;
  port.kind = topo::node_kind::nic_port;
  port.key = host_ + "/net:" + d.name + ((d.kinds & read::hwloc_openfabrics) != 0 ? "/1" : "/0");
  port.name = d.name;
  port.host = host_;
  fact(port, "address", info_of(d.infos, "Address"));
  l.from = l.to;
  l.to = add(std::move(port), d.line);
  l.kind = topo::link_kind::internal;
  l.reason = "hwloc tells no rate of ports; taken as 10 Gbit/s";
  out_.join(l);
  tally_.add(severity::warning, "an adapter shows no PCI function, so its place is not known", d.name);
}

template <class Deferred>
void hwloc_builder<Deferred>::add_ports(const cable_rates<>& rates) {
  for (std::size_t i = 0; i < t_.functions.size(); ++i) {
    if (!s_[i].nic) continue;
    const std::size_t card = s_[i].card != none ? s_[i].card : i;
    add_rdma_ports(card, s_[i].names, rates);
  }
  std::vector<bool> has_port(out_.nodes.size());
  for (const topo::link& l : out_.links)
    if (l.kind == topo::link_kind::internal) has_port[l.from.value] = true;
  for (std::size_t i = 0; i < t_.functions.size(); ++i)
    if (s_[i].nic && s_[i].card == none && !has_port[cables_[s_[i].cable].node.value])
      tally_.add(severity::warning, "an adapter shows no port: it has no driver here, or belongs to a guest",
                 to_string(s_[i].address), "load its driver, or leave it out");
  for (const read::hwloc_os_device& d : t_.os_devices)
    if (d.function == none && (d.kinds & (read::hwloc_network | read::hwloc_openfabrics)) != 0) add_loose_adapter(d);
}

}}}  // namespace topocoll::v0::detail
