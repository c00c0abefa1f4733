// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network ports of a machine: RDMA ports, interfaces, and which of them are one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/sysfs_build.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/read/ib_speed.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class Deferred>
topo::link sysfs_builder<Deferred>::unknown_rate(bool told, bytes_per_second pcie, const std::string& why) {
  topo::link l;
  l.capacity = told ? pcie : unknown_port_rate;
  l.how = trust::assumed;
  l.reason = why + "; taken as " + (told ? "the adapter's PCIe link" : "10 Gbit/s");
  return l;
}

template <class Deferred>
node_id sysfs_builder<Deferred>::add_adapter(const std::string& name) {
  topo::node n;
  n.kind = topo::node_kind::nic;
  n.key = host_ + "/nic:" + name;
  n.name = name;
  n.host = host_;
  if (cpus_.size() == 1) n.numa = out_.nodes[cpus_[0].value].numa;
  topo::link l;
  l.from = cpus_[0];
  l.to = out_.add(std::move(n));
  l.kind = topo::link_kind::pcie;
  l.how = trust::assumed;
  l.reason = "the adapter shows no PCI function; taken to be as fast as its ports";
  if (cpus_.size() > 1) l.reason += ", at the first NUMA domain";
  placeless_.push_back(out_.links.size());
  out_.join(l);
  tally_.add(severity::warning, "an adapter shows no PCI function, so its place is not known", name,
             "record /sys/bus/pci as well");
  return l.to;
}

template <class Deferred>
node_id sysfs_builder<Deferred>::add_port(node_id nic, const std::string& key, const std::string& name, topo::link l,
                                          std::vector<std::pair<std::string, std::string>> facts) {
  topo::node port;
  port.kind = topo::node_kind::nic_port;
  port.key = host_ + "/net:" + key;
  port.name = name;
  port.host = host_;
  port.numa = out_.nodes[nic.value].numa;
  for (auto& fact : facts)
    if (!fact.second.empty()) port.facts.push_back(std::move(fact));
  seq::sort(port.facts);
  l.from = nic;
  l.kind = topo::link_kind::internal;
  l.to = out_.add(std::move(port));
  out_.join(l);
  return l.to;
}

/// "248a:0703:00f8:d2c0" as "0x248a070300f8d2c0"; empty for what is no such number, or zero.
template <class = void>
[[nodiscard]] std::string guid_of(std::string_view groups) {
  std::string guid = "0x";
  for (const char c : groups)
    if (c != ':') guid += c;
  const bool hex = guid.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
  return guid.size() == 18 && hex && guid.find_first_not_of('0', 2) != std::string::npos ? guid : std::string();
}
/// The second half of the first entry in an InfiniBand port's table is the port's GUID. Source: InfiniBand Architecture 1.4,
/// 4.1.1. Ethernet ports keep addresses there.
template <class = void>
[[nodiscard]] std::string port_guid_of(const read::sysfs_rdma_port& p) {
  if (p.layer != "InfiniBand" || p.gids.empty() || p.gids[0].index != 0 || p.gids[0].gid.size() != 39) return {};
  return guid_of(std::string_view(p.gids[0].gid).substr(20));
}
/// "3=0000:…:0102 (RoCE v2, eth0); 5=…"
template <class = void>
[[nodiscard]] std::string gids_of(const read::sysfs_rdma_port& p) {
  std::string text;
  for (const read::sysfs_gid& g : p.gids) {
    text += (text.empty() ? "" : "; ") + std::to_string(g.index) + "=" + g.gid;
    if (g.type.empty() && g.net.empty()) continue;
    text += " (" + g.type + (g.type.empty() || g.net.empty() ? "" : ", ") + g.net + ")";
  }
  return text;
}
/// "link_downed=3, symbol_error=7"
template <class = void>
[[nodiscard]] std::string errors_of(const read::sysfs_rdma_port& p) {
  std::string text;
  for (const auto& [name, count] : p.errors) text += (text.empty() ? "" : ", ") + name + "=" + count;
  return text;
}
/// Whether an error counter can grow no more. Source: InfiniBand Architecture 1.4, 16.1.3.5 (PortCounters): four, eight and
/// sixteen bits, and they do not wrap.
[[nodiscard]] constexpr bool is_full(std::string_view name, std::string_view count) {
  if (name == "local_link_integrity_errors" || name == "excessive_buffer_overrun_errors") return count == "15";
  if (name == "link_downed" || name == "link_error_recovery" || name == "port_rcv_constraint_errors" ||
      name == "port_xmit_constraint_errors")
    return count == "255";
  return count == "65535";
}

template <class Deferred>
void sysfs_builder<Deferred>::add_ports(const pci_links& links) {
  struct shown {
    std::string pci;
    std::uint32_t number;
    node_id port;
    bool has_interface;
  };
  std::vector<shown> rdma_ports;
  std::vector<std::pair<std::string, node_id>> by_interface;
  std::vector<std::string> made_up;

  // The adapter's function in functions_, or none.
  const auto adapter_of = [&](const std::string& pci) {
    std::size_t i = pci.empty() ? none : position(pci);
    if (i != none && !m_.functions[i].physical.empty() && position(m_.functions[i].physical) != none) return none;
    if (i != none && s_[i].adapter != none) i = s_[i].adapter;
    return i == none || !is_nic(i) ? none : s_[i].function;
  };
  const auto name_adapter = [&](std::size_t function, const std::string& name) {
    topo::node& n = out_.nodes[functions_[function].node.value];
    if (n.name.substr(0, 4) == "NIC ") n.name = name;
  };

  for (const read::sysfs_rdma& r : m_.rdma) {
    if (r.made_up) continue;
    const std::size_t adapter = adapter_of(r.pci);
    if (adapter == none && !r.pci.empty()) {
      tally_.add(severity::note, "an RDMA device belongs to no adapter that counts; it is passed over", r.name);
      continue;
    }
    if (adapter != none) name_adapter(adapter, r.name);
    const node_id nic = adapter != none ? functions_[adapter].node : add_adapter(r.name);
    if (std::string guid = guid_of(r.guid); !guid.empty()) {
      auto& facts = out_.nodes[nic.value].facts;
      if (seq::find_by(facts, "node_guid", &std::pair<std::string, std::string>::first) == facts.end())
        facts.emplace_back("node_guid", std::move(guid));
      seq::sort(facts);
    }
    const bool told = adapter != none && links.told(adapter);
    const bytes_per_second pcie = told ? links.capacity(adapter) : bytes_per_second{};
    for (const read::sysfs_rdma_port& p : r.ports) {
      const std::string label = r.name + " port " + std::to_string(p.number);
      const bool active = p.state.substr(0, 2) == "4:";
      topo::link l;
      if (p.state.empty()) {
        l = unknown_rate(told, pcie, "the state of the port cannot be read");
        tally_.add(severity::warning, "the state of a port cannot be read; its rate is assumed", label, "run ibstat");
      } else if (!active) {
        l.how = trust::reported;
        l.reason = "port state \"" + p.state + "\"" +
                   (p.physical_state.empty() ? "" : ", \"" + p.physical_state + "\"") + ": carries nothing now";
        tally_.add(severity::warning,
                   "a port is not active; it carries nothing, and the rate that it shows means nothing",
                   label + " (" + p.state + ")", "look at cable, switch port and subnet manager");
      } else if (p.rate && p.rate->rate.value > 0) {
        // The kernel calls a link by its signalling rate up to QDR; the data take what the line coding leaves of it.
        const auto data = infiniband_data_rate(read::ib_speed_named(p.rate->speed), p.rate->lanes);
        l.current = l.capacity = p.rate->rate;
        if (p.layer == "InfiniBand" && data.value > 0 && data < p.rate->rate) l.capacity = data;
        l.lanes = p.rate->lanes;
        l.how = trust::reported;
      } else {
        l = unknown_rate(told, pcie, "the port tells no rate");
        tally_.add(severity::warning, "an active port tells no rate", label, "run ibstat");
      }
      for (const auto& [name, count] : p.errors)
        if (is_full(name, count))
          tally_.add(severity::note, "an error counter of a port stands at its ceiling and counts no further",
                     label + ": " + name + "=" + count, "reset it with perfquery -R, and look again later");
      const node_id port = add_port(nic, r.name + "/" + std::to_string(p.number), r.name, l,
                                    {{"guid", r.guid},
                                     {"port_guid", port_guid_of(p)},
                                     {"lid", p.layer == "InfiniBand" ? p.lid : std::string()},
                                     {"gids", gids_of(p)},
                                     {"error_counters", errors_of(p)},
                                     {"type", r.type},
                                     {"firmware", r.firmware},
                                     {"layer", p.layer},
                                     {"state", p.state},
                                     {"physical_state", p.physical_state},
                                     {"pci", r.pci},
                                     {"speed", p.rate && active ? p.rate->speed : std::string()}});
      rdma_ports.push_back({r.pci, p.number, port, false});
    }
  }

  seq::sort(rdma_ports, [](const shown& a, const shown& b) { return a.pci < b.pci; });
  for (const read::sysfs_net& n : m_.interfaces) {
    if (n.made_up || (n.pci.empty() && is_virtual_interface(n.name))) {
      made_up.push_back(n.name);
      continue;
    }
    const std::vector<std::pair<std::string, std::string>> facts{
        {"address", n.address}, {"mtu", n.mtu}, {"state", n.state}, {"pci", n.pci}};
    // An interface of a function with RDMA ports is the same port seen twice.
    bool same = false;
    bool has_rdma = false;
    auto at = std::lower_bound(rdma_ports.begin(), rdma_ports.end(), n.pci,
                               [](const shown& p, const std::string& pci) { return p.pci < pci; });
    for (; !n.pci.empty() && at != rdma_ports.end() && at->pci == n.pci; ++at) {
      shown& s = *at;
      has_rdma = true;
      if (s.has_interface || s.number != n.port.value_or(0) + 1) continue;
      s.has_interface = same = true;
      topo::node& port = out_.nodes[s.port.value];
      port.facts.emplace_back("interface", n.name);
      for (const auto& [name, value] : facts)
        if (!value.empty() && name != "state" && name != "pci") port.facts.emplace_back("interface_" + name, value);
      seq::sort(port.facts);
      by_interface.emplace_back(n.name, s.port);
      break;
    }
    if (same || has_rdma) continue;
    const std::size_t adapter = adapter_of(n.pci);
    if (adapter == none && !n.pci.empty()) {
      tally_.add(severity::note, "an interface belongs to no adapter that counts; it is passed over", n.name);
      continue;
    }
    if (adapter != none) name_adapter(adapter, n.name);
    const node_id nic = adapter != none ? functions_[adapter].node : add_adapter(n.name);
    topo::link l;
    const bool down = n.state == "down" || n.state == "lowerlayerdown" || n.state == "notpresent";
    if (down) {
      l.how = trust::reported;
      l.reason = "interface state \"" + n.state + "\": carries nothing now";
      tally_.add(severity::note, "an interface is down; it carries nothing, and the speed that it shows means nothing",
                 n.name);
    } else if (n.speed) {
      l.current = l.capacity = bytes_per_second{static_cast<double>(*n.speed) * 1e6 / 8};
      l.how = trust::reported;
    } else {
      l = adapter != none ? unknown_rate(links.told(adapter), links.capacity(adapter), "the driver tells no speed")
                          : unknown_rate(false, {}, "the driver tells no speed");
      tally_.add(severity::note, "the driver of an interface tells no speed; it is assumed", n.name, "measure");
    }
    by_interface.emplace_back(n.name, add_port(nic, n.name + "/0", n.name, l, facts));
  }

  for (const read::sysfs_rdma& r : m_.rdma) {
    if (!r.made_up) continue;
    for (const auto& [name, port] : by_interface)
      if (name == r.parent) {
        out_.nodes[port.value].facts.emplace_back("software_rdma", r.name);
        seq::sort(out_.nodes[port.value].facts);
      }
  }
  if (!made_up.empty()) {
    std::string names;
    for (const std::string& name : made_up) names += (names.empty() ? "" : ", ") + name;
    out_.findings.push_back(
        {severity::note, out_.source, "interfaces without hardware are not counted as adapters", names, {}, 1});
  }
  std::vector<bytes_per_second> ports(out_.nodes.size());
  std::vector<bool> has_port(out_.nodes.size());
  for (const topo::link& l : out_.links)
    if (l.kind == topo::link_kind::internal && out_.nodes[l.from.value].kind == topo::node_kind::nic) {
      ports[l.from.value] += l.capacity;
      has_port[l.from.value] = true;
    }
  for (const std::size_t up : placeless_) {
    const bytes_per_second all = ports[out_.links[up].to.value];
    out_.links[up].capacity = out_.links[up + 1].capacity = all.value > 0 ? all : unknown_port_rate;
  }
  for (std::size_t f = 0; f < functions_.size(); ++f) {
    if (!functions_[f].nic) continue;
    if (!has_port[functions_[f].node.value])
      tally_.add(severity::warning, "an adapter shows no port: it has no driver here, or belongs to a guest",
                 functions_[f].who, "load its driver, or leave it out");
  }
}

/// Partitions of one GPU stand for it; what its partitions tell of another GPU is one connection told several times.
template <class Deferred>
void sysfs_builder<Deferred>::add_xgmi() {
  struct pair_of_gpus {
    std::size_t a, b;  // positions in functions_, a < b
    std::uint64_t count;
    const read::sysfs_xgmi* told;
  };
  std::vector<pair_of_gpus> pairs;
  for (const read::sysfs_xgmi& x : m_.xgmi) {
    const std::size_t from = position(x.from);
    const std::size_t to = position(x.to);
    const bool known = from != none && to != none && s_[from].function != none && s_[to].function != none &&
                       is_gpu(from) && is_gpu(to);
    if (!known) {
      tally_.add(severity::note,
                 "the compute driver tells of XGMI to a GPU that has no PCI function here; it is passed over",
                 x.from + " - " + x.to);
      continue;
    }
    const std::size_t a = s_[from].function;
    const std::size_t b = s_[to].function;
    if (a == b) continue;
    const std::uint64_t count = x.least > 0 && x.most >= x.least && x.most / x.least <= 16 ? x.most / x.least : 0;
    pairs.push_back({std::min(a, b), std::max(a, b), count, &x});
  }
  seq::sort(pairs, [](const pair_of_gpus& x, const pair_of_gpus& y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.count > y.count;
  });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0 && pairs[i - 1].a == pairs[i].a && pairs[i - 1].b == pairs[i].b) continue;
    const pair_of_gpus& p = pairs[i];
    gpu_link_rate rate = xgmi_rate(p.told->gcn);
    for (std::size_t other = i + 1; other < pairs.size() && pairs[other].a == p.a && pairs[other].b == p.b; ++other)
      if (const gpu_link_rate end = xgmi_rate(pairs[other].told->gcn); end.payload < rate.payload || !end.known)
        rate = end;
    const std::uint32_t count = p.count == 0 ? 1 : static_cast<std::uint32_t>(p.count);
    topo::link l;
    l.from = functions_[p.a].node;
    l.to = functions_[p.b].node;
    l.kind = topo::link_kind::xgmi;
    l.lanes = static_cast<std::uint32_t>(p.count);
    if (p.told->most > 0) l.nominal = bytes_per_second{static_cast<double>(p.told->most) * 1e6};
    l.capacity = rate.payload * count;
    l.how = rate.known && p.count != 0 ? trust::derived : trust::assumed;
    l.reason = std::to_string(count) + " × XGMI, payload as in RCCL's model";
    if (p.count == 0) l.reason += "; the number of links is not told, taken as 1";
    if (!rate.known) l.reason += "; architecture not known, rate of a common one";
    if (l.how == trust::assumed)
      tally_.add(severity::note,
                 "the rate of XGMI is assumed, because the driver does not tell the number of links or the "
                 "architecture is not known",
                 functions_[p.a].who + " - " + functions_[p.b].who);
    out_.join(l);
  }
}

}}}  // namespace topocoll::v0::detail
