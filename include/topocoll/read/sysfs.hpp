// SPDX-License-Identifier: Apache-2.0
#pragma once
// What /sys and /proc of one machine tell about its topology, as plain structs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/tree.hpp>
#include <topocoll/read/acs.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/read/sysfs_text.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// A PCI function that matters to transfers: bridge, adapter, accelerator, storage.
struct sysfs_pci {
  std::string address;             ///< "0000:1b:00.0"
  std::vector<std::string> above;  ///< functions on the way to it, the outermost first
  std::uint32_t class_code = 0;
  std::string vendor, device, subsystem_vendor, subsystem_device;   ///< "0x10de"; empty when not told
  std::optional<std::uint32_t> numa;                                ///< empty when not told or -1
  std::vector<std::pair<std::uint32_t, std::uint32_t>> local_cpus;  ///< processors that the kernel calls near
  std::string max_speed, max_width, speed, width;  ///< of the link above an endpoint, below a root or downstream port
  pcie_port port = pcie_port::unknown;
  acs_state acs;         ///< of bridges; not known without root rights
  std::string physical;  ///< address of the physical function when this is a virtual one
};
/// A network interface.
struct sysfs_net {
  std::string name;
  std::string pci;                    ///< PCI function that it belongs to; empty for none
  bool made_up = false;               ///< without hardware: loopback, bridges, veth
  std::optional<std::int64_t> speed;  ///< Mbit/s; empty when the driver tells none
  std::string state, mtu, address;
  std::optional<std::uint32_t> port;  ///< dev_port: 0 for the first port of its function
};
/// An entry of a port's table of global addresses.
struct sysfs_gid {
  std::uint32_t index = 0;
  std::string gid;   ///< eight groups of four hexadecimal digits
  std::string type;  ///< "IB/RoCE v1", "RoCE v2"; empty when not told
  std::string net;   ///< network interface that it belongs to; empty for InfiniBand
};
/// A port of an RDMA device.
struct sysfs_rdma_port {
  std::uint32_t number = 0;
  std::string state, physical_state, layer;
  std::optional<infiniband_rate> rate;
  std::string lid;                                          ///< as written, "0x12"; of InfiniBand
  std::vector<sysfs_gid> gids;                              ///< those that are not zero
  std::vector<std::pair<std::string, std::string>> errors;  ///< error counters that are not zero, by name
};
struct sysfs_rdma {
  std::string name;
  std::string pci;
  bool made_up = false;  ///< without hardware: Soft-RoCE
  std::string parent;    ///< interface that a device without hardware runs on
  std::string guid, type, firmware;
  std::vector<sysfs_rdma_port> ports;
};
/// A NUMA domain.
struct sysfs_numa {
  std::uint32_t number = 0;
  std::string cpus;                      ///< as listed, "0-23,96-119"; empty for a domain of memory alone
  std::vector<std::uint32_t> distances;  ///< to the domains in the order of `sysfs_machine::domains`
  std::optional<bytes> memory;
  bool of_gpu = false;  ///< the memory of a GPU that the kernel shows as a domain
};
/// XGMI between two AMD GPUs as the compute driver tells it; each end tells its own.
struct sysfs_xgmi {
  std::string from, to;               ///< PCI addresses
  std::string gcn;                    ///< architecture of `from`, "942"; empty when not told
  std::uint64_t least = 0, most = 0;  ///< MB/s of one link and of all together; 0 when not told
};
struct sysfs_machine {
  std::vector<sysfs_numa> domains;
  std::vector<sysfs_pci> functions;
  std::vector<sysfs_net> interfaces;
  std::vector<sysfs_rdma> rdma;
  std::vector<sysfs_xgmi> xgmi;
  processor_text processor;
  std::string online;  ///< processors in use
  std::vector<finding> findings;
};

/// True for what looks like "0000:1b:00.0".
template <class = void>
[[nodiscard]] bool looks_like_pci(std::string_view name);

/// Whether functions of this class are looked at: storage, network, display, bridges between PCI buses and NVSwitches,
/// co-processors, accelerators. The many functions of a processor's own uncore are not.
template <class = void>
[[nodiscard]] bool matters(std::uint32_t class_code);

/// Reads a machine. Nothing needs root rights; what is missing is a finding. Obeys `until` between files.
/// Cost: one file for each PCI function, about ten more for each that matters; 1 to 50 ms.
template <io::FileTree Tree>
[[nodiscard]] sysfs_machine sysfs_machine_of(const Tree& tree, deadline until);

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/sysfs_walk.hpp>
