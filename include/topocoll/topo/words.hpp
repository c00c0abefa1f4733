// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes and links of a topology graph in words: "GPU 3 of node7", "Gen5 x16 uplink of switch 0000:18:00.0".
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// The PCI address in a key such as "node7/pci:0000:1b:00.0"; empty for other keys.
template <class = void>
[[nodiscard]] std::string_view pci_part(std::string_view key) {
  const auto at = key.find("pci:");
  return at == std::string_view::npos ? std::string_view{} : key.substr(at + 4);
}

/// "PCIe switch", "GPU", "NUMA domain", …: what a kind is called in a sentence.
[[nodiscard]] constexpr const char* word_of(node_kind kind) {
  constexpr const char* words[] = {"GPU",      "NUMA domain", "memory",   "root port", "switch", "PCIe device",
                                   "NVSwitch", "NIC",         "NIC port", "leaf",      "spine",  "core switch"};
  return words[static_cast<std::size_t>(kind)];
}

/// What a node is called within its host: its name, with the address where a name alone says little.
template <class = void>
[[nodiscard]] std::string label_of(const node& n) {
  const std::string_view address = pci_part(n.key);
  const bool plumbing =
      n.kind == node_kind::pcie_switch || n.kind == node_kind::pcie_root || n.kind == node_kind::pcie_device;
  if (plumbing && !address.empty()) return std::string(word_of(n.kind)) + ' ' + std::string(address);
  if (!n.name.empty()) return n.name;
  if (!address.empty()) return std::string(word_of(n.kind)) + ' ' + std::string(address);
  const auto slash = n.host.empty() ? std::string::npos : n.key.find('/');
  return std::string(word_of(n.kind)) + ' ' + n.key.substr(slash == std::string::npos ? 0 : slash + 1);
}

/// True when the nodes of the graph sit in more than one host, so that a label needs the host's name beside it.
template <class = void>
[[nodiscard]] bool has_several_hosts(const graph& g) {
  const std::string* first = nullptr;
  for (const node& n : g.nodes()) {
    if (n.host.empty()) continue;
    if (first == nullptr) first = &n.host;
    if (*first != n.host) return true;
  }
  return false;
}

/// "GPU 3", or "GPU 3 of node7" in a graph of several hosts.
template <class = void>
[[nodiscard]] std::string label_of(const graph& g, node_id v, bool several_hosts) {
  const node& n = g.at(v);
  return several_hosts && !n.host.empty() ? label_of(n) + " of " + n.host : label_of(n);
}

/// A rate as network people write it: "400 Gb/s".
template <class = void>
[[nodiscard]] std::string bits_text(bytes_per_second rate) {
  std::string digits = topocoll::detail::three_digits(rate.value * 8 / 1e9);
  if (const auto point = digits.find('.'); point != std::string::npos) {
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
  }
  return digits + " Gb/s";
}

/// What a link is made of, without its ends: "Gen5 x16", "18 x NVLink4", "C2C", "400 Gb/s InfiniBand".
template <class = void>
[[nodiscard]] std::string make_of(const link& l) {
  const auto bundle = [&](const char* what) {
    std::string text = l.lanes > 0 ? std::to_string(l.lanes) + " x " : std::string();
    text += what;
    return l.generation > 0 ? text + std::to_string(l.generation) : text;
  };
  switch (l.kind) {
    case link_kind::pcie: {
      std::string text = l.generation > 0 ? "Gen" + std::to_string(l.generation) : "PCIe";
      return l.lanes > 0 ? text + " x" + std::to_string(l.lanes) : text;
    }
    case link_kind::nvlink: return bundle("NVLink");
    case link_kind::xgmi: return bundle("XGMI");
    case link_kind::c2c: return "C2C";
    case link_kind::cpu: return "inter-socket";
    case link_kind::memory: return "memory";
    case link_kind::internal: return "internal";
    case link_kind::infiniband: return bits_text(l.nominal.value_or(l.capacity)) + " InfiniBand";
    case link_kind::ethernet: return bits_text(l.nominal.value_or(l.capacity)) + " Ethernet";
  }
  return {};
}

/// What lies below a PCIe link, away from the CPU.
struct pcie_below {
  node_id top;                   ///< the lower end of the link
  std::vector<node_id> devices;  ///< GPUs and NICs that have no other way up, `top` included
};

/// Finds the lower end of a PCIe link and what hangs on it. Cost: O(PCIe tree of the host), and a bit for each node.
template <class = void>
[[nodiscard]] pcie_below below(const graph& g, link_id e) {
  const auto search = [&](node_id top, node_id other, bool& reaches_cpu) {
    pcie_below part{top, {}};
    std::vector<node_id> found{top};
    std::vector<bool> seen(g.node_count(), false);
    seen[top.value] = true;
    reaches_cpu = g.at(top).kind == node_kind::cpu;
    for (std::size_t i = 0; i < found.size() && !reaches_cpu; ++i) {
      const node_kind kind = g.at(found[i]).kind;
      if (kind == node_kind::gpu || kind == node_kind::nic) part.devices.push_back(found[i]);
      for (const link_id out : g.out_links(found[i])) {
        const node_id next = g.head(out);
        if (g.at(out).kind != link_kind::pcie || seen[next.value] || (found[i] == top && next == other)) continue;
        reaches_cpu = reaches_cpu || g.at(next).kind == node_kind::cpu;
        seen[next.value] = true;
        found.push_back(next);
      }
    }
    return part;
  };
  const node_id from = g.tail(e);
  const node_id to = g.head(e);
  bool head_is_up = false;
  bool tail_is_up = false;
  pcie_below head_side = search(to, from, head_is_up);
  pcie_below tail_side = search(from, to, tail_is_up);
  if (head_is_up != tail_is_up) return head_is_up ? tail_side : head_side;
  // Both or neither lead to a CPU: devices hang on switches, not switches on devices.
  const bool tail_is_device = !is_switch(g.at(from).kind) && is_switch(g.at(to).kind);
  return tail_is_device ? tail_side : head_side;
}

/// A link in words, as the object of "limited by": "the Gen5 x16 uplink of switch 0000:18:00.0 (shared by 2 NICs)".
/// Cost: O(PCIe tree of the host) for PCIe links.
template <class = void>
[[nodiscard]] std::string describe(const graph& g, link_id e, bool several_hosts) {
  const link& l = g.at(e);
  const node& a = g.at(l.from);
  const node& b = g.at(l.to);
  const std::string make = make_of(l);
  const auto name = [&](node_id v) { return label_of(g, v, several_hosts); };
  const auto between = [&](const std::string& what) {
    return what + " between " + name(l.from) + " and " + name(l.to);
  };
  switch (l.kind) {
    case link_kind::pcie: {
      const pcie_below lower = below(g, e);
      const bool up = is_switch(g.at(lower.top).kind);
      std::string text = "the " + make + (up ? " uplink of " : " link of ") + name(lower.top);
      std::size_t gpus = 0;
      for (const node_id v : lower.devices) gpus += g.at(v).kind == node_kind::gpu ? 1 : 0;
      const std::size_t nics = lower.devices.size() - gpus;
      if (gpus + nics < 2) return text;
      const auto counted = [](std::size_t n, const char* what) {
        return std::to_string(n) + ' ' + what + (n == 1 ? "" : "s");
      };
      return text + " (shared by " + (gpus > 0 ? counted(gpus, "GPU") : "") + (gpus > 0 && nics > 0 ? " and " : "") +
             (nics > 0 ? counted(nics, "NIC") : "") + ")";
    }
    case link_kind::nvlink:
    case link_kind::xgmi: return between("the " + make);
    case link_kind::c2c: return "the C2C link of " + name(a.kind == node_kind::gpu ? l.from : l.to);
    case link_kind::cpu: return between("the link");
    case link_kind::memory: return "the memory of " + name(a.kind == node_kind::host_memory ? l.to : l.from);
    case link_kind::internal: return "port " + name(b.kind == node_kind::nic_port ? l.to : l.from);
    case link_kind::infiniband:
    case link_kind::ethernet: return between("the " + make + " link");
  }
  return between("the link");
}

}}}  // namespace topocoll::v0::topo
