// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ports and the GPU links of an NCCL topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/nccl_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Largest rate of one network port that is believed: two times 1.6 Tbit/s, in Mbit/s.
inline constexpr std::int64_t fastest_port = 3200000;

template <class Deferred>
void nccl_builder<Deferred>::add_ports(node_id id, const std::vector<read::nccl_nic>& nics, bytes_per_second limit) {
  const std::string host = out_.nodes[id.value].host;  // nodes move when one is added
  const auto numa = out_.nodes[id.value].numa;
  for (const read::nccl_nic& n : nics) {
    for (const read::nccl_net& net : n.nets)
      add_port(host, numa, id, net, limit.value > 0 ? limit : unknown_port_rate,
               limit.value > 0 ? "the adapter's PCIe link" : "10 Gbit/s");
  }
}

template <class Deferred>
void nccl_builder<Deferred>::add_port(const std::string& host, std::optional<std::uint32_t> numa, node_id nic,
                                      const read::nccl_net& n, bytes_per_second limit, const char* limit_name) {
  topo::node port;
  port.kind = topo::node_kind::nic_port;
  const std::string name = !n.name.empty() ? n.name
                           : n.dev         ? "dev" + std::to_string(*n.dev)
                                           : "line" + std::to_string(n.line);
  port.key = host + "/net:" + name + "/" + std::to_string(n.port.value_or(0));
  port.name = name;
  port.host = host;
  port.index = n.dev;
  port.numa = numa;
  port.facts = n.facts;
  if (is_virtual_interface(name)) {
    if (seq::find_by(port.facts, "virtual", &std::pair<std::string, std::string>::first) == port.facts.end())
      port.facts.emplace_back("virtual", "1");
    seq::sort(port.facts);
    tally_.add(severity::note, "the interface is one that the host made up: no cable belongs to it", name,
               "leave it out with NCCL_SOCKET_IFNAME");
  }

  topo::link l;
  l.from = nic;
  l.kind = topo::link_kind::internal;
  const auto mbit = [](std::int64_t m) { return bytes_per_second{static_cast<double>(m) * 1e6 / 8}; };
  if (n.speed && *n.speed > 0 && *n.speed <= fastest_port) {
    l.current = mbit(*n.speed);
    l.capacity = *l.current;
    l.how = trust::reported;
  } else if (n.speed && *n.speed > fastest_port && *n.speed / 1000 <= fastest_port) {
    l.capacity = mbit(*n.speed / 1000);
    l.how = trust::assumed;
    l.reason = "speed " + std::to_string(*n.speed) + " Mbit/s is beyond any port; read as kbit/s";
    note(severity::warning, n.line,
         "port " + name + " tells " + std::to_string(*n.speed) + " Mbit/s, more than any port has; read as kbit/s", {},
         "check the port with ibstat or ethtool");
  } else {
    l.capacity = limit;
    l.how = trust::assumed;
    l.reason = std::string(n.speed ? "speed " + std::to_string(*n.speed) + " means not known" : "speed not told") +
               "; taken as " + limit_name;
    note(severity::warning, n.line, "the speed of port " + name + " is not known; taken as " + limit_name,
         n.speed ? "speed=\"" + std::to_string(*n.speed) + "\"" : std::string(),
         "check the port with ibstat or ethtool");
  }
  l.to = add(std::move(port), n.line);
  out_.join(l);
}

template <class Deferred>
void nccl_builder<Deferred>::add_unknown_port(node_id nic, bytes_per_second limit) {
  const topo::node& of = out_.nodes[nic.value];
  topo::node port;
  port.kind = topo::node_kind::nic_port;
  const std::string address = of.key.substr(of.key.find("/pci:") + 5);
  port.key = of.host + "/net:" + address + "/0";
  port.name = of.name;
  port.host = of.host;
  port.numa = of.numa;
  port.how = trust::assumed;
  port.reason = "only the PCI class tells that this is an adapter; taken to have one port";
  topo::link l;
  l.from = nic;
  l.kind = topo::link_kind::internal;
  l.capacity = limit;
  l.how = trust::assumed;
  l.reason = "the file tells no ports; taken as one port as fast as the adapter's PCIe link";
  tally_.add(severity::note,
             "only the class tells that the device is an adapter; taken to have one port as fast as its PCIe link",
             address);
  l.to = add(std::move(port), lines_[nic.value]);
  out_.join(l);
}

template <class Deferred>
void nccl_builder<Deferred>::add_bare_nic(const read::nccl_nic& n, std::size_t cpu) {
  if (n.nets.empty()) {
    note(severity::warning, n.line, "<nic> has no <net>, so it has no port and does not count as an adapter");
    return;
  }
  const std::string& host = hosts_[host_index_[cpu]].name;
  topo::node nic;
  nic.kind = topo::node_kind::nic;
  std::string name = "line " + std::to_string(n.line);
  name = !n.nets[0].name.empty() ? n.nets[0].name : n.nets[0].dev ? "dev" + std::to_string(*n.nets[0].dev) : name;
  nic.key = host + "/nic:" + name;
  nic.name = name;
  nic.host = host;
  nic.numa = out_.nodes[cpus_[cpu].value].numa;
  const node_id id = add(std::move(nic), n.line);
  bytes_per_second total{};
  for (const read::nccl_net& net : n.nets) {
    add_port(host, out_.nodes[id.value].numa, id, net, unknown_port_rate, "10 Gbit/s");
    total += out_.links.back().capacity;
  }
  topo::link l;
  l.from = cpus_[cpu];
  l.to = id;
  l.kind = topo::link_kind::pcie;
  l.capacity = total;
  l.how = trust::assumed;
  l.reason = "the file gives the adapter no PCI address; taken to be as fast as its ports";
  out_.join(l);
}

template <class Deferred>
void nccl_builder<Deferred>::add_pcilinks(const pci_links& figures) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& [function, links] : pcilinks_)
    for (const read::nccl_link& p : *links) {
      const auto target = topo::pci_address::parse(read::trimmed(p.target));
      const std::size_t to = target ? function_at(host_of_function_[function], *target) : no_function;
      if (to == no_function || to == function)
        note(severity::warning, p.line,
             "<pcilink> leads to \"" + p.target + "\", which is " +
                 (to == function ? "the device itself" : "not in the file") + "; passed over");
      else
        pairs.emplace_back(std::min(function, to), std::max(function, to));
    }
  seq::sort_unique(pairs);  // both ends may name each other
  for (const auto& ends : pairs) {
    topo::link l;
    l.from = functions_[ends.first].node;
    l.to = functions_[ends.second].node;
    l.kind = topo::link_kind::pcie;
    l.capacity = std::min(figures.capacity(ends.first), figures.capacity(ends.second));
    l.how = trust::assumed;
    l.reason = "a further link between PCIe switches, rate not told; taken as the slower of their links to the host";
    out_.join(l);
  }
}

template <class Deferred>
void nccl_builder<Deferred>::collect_gpu_links() {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (!gpus_[i].says) continue;
    for (const read::nccl_link& l : gpus_[i].says->nvlinks) collect(i, l, topo::link_kind::nvlink);
    for (const read::nccl_link& l : gpus_[i].says->xgmis) collect(i, l, topo::link_kind::xgmi);
  }
}

template <class Deferred>
void nccl_builder<Deferred>::collect(std::size_t from, const read::nccl_link& l, topo::link_kind kind) {
  const gpu& g = gpus_[from];
  const std::string who = out_.nodes[g.node.value].name;
  const char* word = to_string(kind);
  std::uint32_t count = l.count.value_or(1);
  if (!l.count)
    note(severity::warning, l.line, std::string(word) + " of " + who + " tells no usable count; taken as 1");
  if (l.count && *l.count == 0) {
    note(severity::warning, l.line,
         std::string(word) + " of " + who + " to " + l.target + " has count 0; no link is made");
    return;
  }
  const std::string_view text = read::trimmed(l.target);
  const bool switch_class = l.class_code && read::pci_subclass(*l.class_code) == read::pci_class_other_bridge;
  // What NCCL writes for a switch that this machine cannot see: a domain that no device has.
  const bool hidden = text.substr(0, 7) == "fffffff";
  const auto target = topo::pci_address::parse(text);
  if (!target && !hidden) {
    note(severity::warning, l.line,
         std::string(word) + " of " + who + " leads to \"" + l.target +
             "\", which is not a PCI address; no link is made");
    return;
  }
  std::size_t found = no_function;
  if (target) {
    found = function_at(host_index_[g.cpu], *target);
    for (std::size_t h = 0; h < hosts_.size() && found == no_function; ++h) found = function_at(h, *target);
  }
  if (found != no_function && gpu_of_function_[found] != no_function) {
    const std::size_t to = gpu_of_function_[found];
    if (gpus_[to].cpu == g.cpu && gpus_[to].address == g.address) {
      note(severity::warning, l.line, std::string(word) + " of " + who + " leads to the GPU itself; no link is made",
           "target=\"" + l.target + "\" count=\"" + std::to_string(count) + "\"",
           "the file is wrong: ask the machine with nvidia-smi topo -m");
      out_.nodes[g.node.value].facts.emplace_back(std::string(word) + "_to_itself", std::to_string(count));
      return;
    }
    const bool forth = from < to;
    pairs_.push_back({std::min(from, to), std::max(from, to), kind, forth ? count : 0, forth ? 0 : count, l.line});
    return;
  }
  if (l.class_code && *l.class_code == read::pci_class_nvlink_to_cpu) {
    to_cpu_.push_back({from, kind, count, 0});
    return;
  }
  if (switch_class || hidden) {
    if (to_switch_.empty() || to_switch_.back().gpu != from || to_switch_.back().kind != kind)
      to_switch_.push_back({from, kind, 0, 0});
    to_switch_.back().count += count;
    to_switch_.back().targets += hidden ? 0U : 1U;
    return;
  }
  note(severity::warning, l.line,
       std::string(word) + " of " + who + " leads to " + l.target + ", which is " +
           (found == no_function ? "not in the file" : "no GPU") + " and not called a switch; no link is made",
       std::to_string(count) + " cables", "name a file of the whole host");
  out_.nodes[g.node.value].facts.emplace_back(std::string(word) + "_elsewhere",
                                              std::to_string(count) + " to " + l.target);
}

template <class Deferred>
void nccl_builder<Deferred>::add_gpu_links() {
  seq::sort(pairs_, [](const pair_links& x, const pair_links& y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.kind < y.kind;
  });
  std::size_t kept = 0;  // rows to one target are one connection
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const pair_links& row = pairs_[i];
    if (kept > 0 && pairs_[kept - 1].a == row.a && pairs_[kept - 1].b == row.b && pairs_[kept - 1].kind == row.kind) {
      pairs_[kept - 1].forth += row.forth;
      pairs_[kept - 1].back += row.back;
    } else {
      pairs_[kept++] = row;
    }
  }
  pairs_.resize(kept);
  for (const pair_links& p : pairs_) {
    const gpu& a = gpus_[p.a];
    const gpu& b = gpus_[p.b];
    const gpu_link_rate ra = rate_of(a, p.kind);
    const gpu_link_rate rb = rate_of(b, p.kind);
    gpu_link_rate rate = rb.payload < ra.payload ? rb : ra;
    rate.known = ra.known && rb.known;
    const std::uint32_t told = std::min(p.forth, p.back);
    topo::link l = gpu_link(p.kind, rate, told != 0 ? told : std::max(p.forth, p.back));
    const std::string who = out_.nodes[a.node.value].name + " and " + out_.nodes[b.node.value].name;
    if (p.forth != p.back) {
      l.how = trust::assumed;
      l.reason += told != 0 ? "; the two ends tell different counts, the smaller is taken" : "; only one end tells it";
      note(severity::warning, p.line,
           told != 0 ? who + " tell different numbers of links between them; the smaller is taken"
                     : "only one of " + who + " tells of the links between them",
           std::to_string(p.forth) + " and " + std::to_string(p.back),
           "look for a link that is down: nvidia-smi nvlink -s");
      // The graph has the lesser count; the other is kept where it was told.
      if (told != 0)
        out_.nodes[(p.forth > p.back ? a : b).node.value].facts.emplace_back(
            std::string(to_string(p.kind)) + "_more",
            std::to_string(std::max(p.forth, p.back)) + " to " + to_string((p.forth > p.back ? b : a).address));
    }
    if (!rate.known)
      tally_.add(severity::warning,
                 "the rate of the GPU links is assumed, because the architecture of the GPU is not told or unknown",
                 who);
    l.from = a.node;
    l.to = b.node;
    out_.join(l);
  }
  if (!to_switch_.empty()) {
    topo::node plane;
    plane.kind = topo::node_kind::nvswitch;
    plane.key = host_ + "/nvswitch";
    plane.name = "NVSwitch";
    if (hosts_.size() == 1) plane.host = host_;
    plane.how = trust::derived;
    plane.reason = "all switches that GPUs name, taken as one";
    const node_id id = add(std::move(plane), t_.cpus.front().line);
    for (const switch_links& s : to_switch_) {
      const gpu& g = gpus_[s.gpu];
      const gpu_link_rate rate = rate_of(g, s.kind);
      topo::link l = gpu_link(s.kind, rate, s.count);
      if (!rate.known)
        tally_.add(severity::warning,
                   "the rate of the GPU links is assumed, because the architecture of the GPU is not told or unknown",
                   out_.nodes[g.node.value].name);
      l.from = g.node;
      l.to = id;
      out_.join(l);
      auto& facts = out_.nodes[g.node.value].facts;
      const std::string name = std::string(to_string(s.kind)) + "_targets";
      if (s.targets > 0 && seq::find_by(facts, name, &std::pair<std::string, std::string>::first) == facts.end())
        facts.emplace_back(name, std::to_string(s.targets));
    }
  }
  for (const switch_links& s : to_cpu_) {
    const gpu& g = gpus_[s.gpu];
    topo::link l = gpu_link(s.kind, rate_of(g, s.kind), s.count);
    l.from = g.node;
    l.to = cpus_[g.cpu];
    out_.join(l);
  }
  for (const gpu& g : gpus_) {
    if (!g.says) continue;
    for (const read::nccl_c2c& c : g.says->c2cs) {
      const std::string& who = out_.nodes[g.node.value].name;
      if (!c.megabytes_per_second || *c.megabytes_per_second == 0 || !c.count || *c.count == 0) {
        note(severity::warning, c.line, "c2c of " + who + " tells no usable bandwidth or count; no link is made");
        continue;
      }
      topo::link l;
      l.from = g.node;
      l.to = cpus_[g.cpu];
      l.kind = topo::link_kind::c2c;
      l.lanes = *c.count;
      l.capacity = bytes_per_second{1e6} * *c.megabytes_per_second * *c.count;
      l.nominal = l.capacity;
      l.how = trust::derived;
      l.reason = std::to_string(*c.count) + " links of " + std::to_string(*c.megabytes_per_second) +
                 " MB/s as the driver tells";
      out_.join(l);
    }
  }
  for (topo::node& n : out_.nodes) seq::sort(n.facts);
}

}}}  // namespace topocoll::v0::detail
