// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds of nodes and links in a topology graph, and NCCL's classes of paths.
#include <cstddef>
#include <cstdint>

namespace topocoll { inline namespace v0 { namespace topo {

/// What a node is.
enum class node_kind : std::uint8_t {
  gpu,          ///< an accelerator that can be a rank
  cpu,          ///< a NUMA domain: its cores and its PCIe host bridges
  host_memory,  ///< the memory of one NUMA domain
  pcie_root,    ///< a PCIe root port
  pcie_switch,  ///< a PCIe switch or bridge
  pcie_device,  ///< a PCIe function that is none of the others: storage, or a device whose role nobody states
  nvswitch,     ///< all NVSwitches of one NVLink domain, as one plane
  nic,          ///< a network adapter
  nic_port,     ///< a port of an adapter: where a cable plugs in
  leaf,         ///< a switch that hosts plug into
  spine,        ///< a switch that only joins leaves (second tier)
  core_switch   ///< a switch that joins spines (third tier)
};

/// What a link is made of.
enum class link_kind : std::uint8_t {
  pcie,        ///< between PCIe devices, switches and host bridges
  nvlink,      ///< GPU to GPU or GPU to NVSwitch
  xgmi,        ///< AMD's link between GPUs
  c2c,         ///< coherent chip-to-chip link between CPU and GPU
  cpu,         ///< between NUMA domains
  memory,      ///< between a NUMA domain and its memory
  internal,    ///< inside one adapter: NIC to its port
  infiniband,  ///< cable between ports or switches
  ethernet     ///< cable between ports or switches
};

/// NCCL's classes of paths between two devices; a larger value is farther.
enum class path_class : std::uint8_t {
  LOC,  ///< the same device
  NVL,  ///< NVLink or XGMI, directly or through NVSwitch
  NVB,  ///< NVLink by way of one other GPU
  C2C,  ///< chip-to-chip link
  PIX,  ///< at most one PCIe switch
  PXB,  ///< several PCIe switches, no host bridge
  P2C,  ///< chip-to-chip link to the CPU, then PCIe to a NIC
  PXN,  ///< NVLink to another GPU, then the NIC beside that one
  PHB,  ///< through the host bridge of one NUMA domain
  SYS,  ///< between NUMA domains
  NET,  ///< through the network
  DIS   ///< no path
};

[[nodiscard]] constexpr const char* to_string(node_kind k) {
  constexpr const char* words[] = {"gpu",      "cpu", "host_memory", "pcie_root", "pcie_switch", "pcie_device",
                                   "nvswitch", "nic", "nic_port",    "leaf",      "spine",       "core_switch"};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] constexpr const char* to_string(link_kind k) {
  constexpr const char* words[] = {"pcie",   "nvlink",   "xgmi",       "c2c",     "cpu",
                                   "memory", "internal", "infiniband", "ethernet"};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] constexpr const char* to_string(path_class c) {
  constexpr const char* words[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return words[static_cast<std::size_t>(c)];
}

/// True for nodes that only pass data on: they are never the source or the target of a transfer.
[[nodiscard]] constexpr bool is_switch(node_kind k) {
  return k == node_kind::pcie_switch || k == node_kind::pcie_root || k == node_kind::nvswitch || k == node_kind::leaf ||
         k == node_kind::spine || k == node_kind::core_switch;
}

}}}  // namespace topocoll::v0::topo
