// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hosts as physical parameters: how many GPUs, NVLinks, switches, sockets and NICs, and how fast each of them is.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 {

/// A direct connection of two GPUs of one host by `links` bonded links.
struct peer_link {
  std::uint32_t a = 0, b = 0;
  std::uint32_t links = 1;

  friend constexpr bool operator==(const peer_link&, const peer_link&) = default;
};

/// One kind of host. Everything that `generate` and the layers above do follows from these figures, never from the name.
///
/// GPUs, NICs and PCIe switches are spread evenly over what they hang on, in order: with 8 GPUs and 2 sockets, GPUs 0 to 3
/// belong to socket 0. NIC i belongs to rail i. All rates are nominal and count one direction.
struct host_model {
  std::string_view name = "pcie";  ///< what descriptions call it; no other meaning
  std::uint32_t gpus = 4;
  std::uint32_t sm = 0;  ///< CUDA compute capability times ten, a fact that the GPUs carry; 0 leaves it out

  /// Links between GPUs. With an empty `mesh` every GPU has `nvlinks` of them into one NVSwitch plane, none when 0.
  std::uint32_t nvlinks = 0;
  std::uint32_t nvlink_generation = 0;
  bytes_per_second nvlink_rate{};     ///< of one link
  std::span<const peer_link> mesh{};  ///< direct wiring; pairs that name an absent GPU are left out
  topo::link_kind peer_kind = topo::link_kind::nvlink;
  std::uint32_t domain_hosts = 1;  ///< hosts whose GPUs share one NVSwitch plane: 18 compute trays in an NVL72 rack

  /// PCIe tree: GPUs and NICs sit under switches, each switch under the host bridge of its socket.
  std::uint32_t pcie_generation = 4;
  std::uint32_t pcie_lanes = 16;      ///< of every link of the tree
  std::uint32_t gpus_per_switch = 0;  ///< 0: no switches, everything sits at host bridges
  bytes_per_second c2c_rate{};        ///< chip-to-chip link of a GPU to its CPU, in place of PCIe; 0 for none

  std::uint32_t sockets = 2;       ///< each one NUMA domain with its memory
  bytes_per_second socket_rate{};  ///< what peer traffic between two sockets is taken to reach
  bytes_per_second memory_rate{};  ///< peak of one socket's memory

  std::uint32_t nics = 2;
  bytes_per_second nic_rate{};  ///< line rate of one NIC; each has one port

  /// True when all GPUs of a host, or of `domain_hosts` hosts, hang on one NVSwitch plane.
  [[nodiscard]] constexpr bool has_nvswitch() const { return nvlinks > 0 && mesh.empty(); }
  [[nodiscard]] constexpr std::uint32_t switches() const {
    return gpus_per_switch == 0 ? 0 : (gpus + gpus_per_switch - 1) / gpus_per_switch;
  }

  friend constexpr bool operator==(const host_model& x, const host_model& y) {
    if (x.mesh.size() != y.mesh.size()) return false;
    for (std::size_t i = 0; i < x.mesh.size(); ++i)
      if (x.mesh[i] != y.mesh[i]) return false;
    return x.name == y.name && x.gpus == y.gpus && x.sm == y.sm && x.nvlinks == y.nvlinks &&
           x.nvlink_generation == y.nvlink_generation && x.nvlink_rate == y.nvlink_rate && x.peer_kind == y.peer_kind &&
           x.domain_hosts == y.domain_hosts && x.pcie_generation == y.pcie_generation && x.pcie_lanes == y.pcie_lanes &&
           x.gpus_per_switch == y.gpus_per_switch && x.c2c_rate == y.c2c_rate && x.sockets == y.sockets &&
           x.socket_rate == y.socket_rate && x.memory_rate == y.memory_rate && x.nics == y.nics &&
           x.nic_rate == y.nic_rate;
  }
};

/// The models that descriptions can name. Rates of NVLink, PCIe and NICs are those of public data sheets.
///
/// `socket_rate` is NCCL's figure for peer traffic between sockets (2.28, graph/topo.h): Broadwell 6, Skylake 10, Sapphire
/// Rapids 22, Emerald Rapids 40, AMD 16, ARM 6 GB/s. `memory_rate` is channels times transfer rate times 8 bytes.
namespace models {

/// Hybrid cube mesh of the DGX-1 with V100: two NVLinks along the edges of a ring of eight and one along the chords, six
/// per GPU. Source: NVIDIA DGX-1 with Tesla V100 system architecture white paper, 2017.
inline constexpr std::array<peer_link, 16> cube_mesh{{{0, 1, 1},
                                                      {0, 2, 1},
                                                      {0, 3, 2},
                                                      {0, 4, 2},
                                                      {1, 2, 2},
                                                      {1, 3, 1},
                                                      {1, 5, 2},
                                                      {2, 3, 1},
                                                      {2, 6, 2},
                                                      {3, 7, 2},
                                                      {4, 5, 1},
                                                      {4, 6, 1},
                                                      {4, 7, 2},
                                                      {5, 6, 2},
                                                      {5, 7, 1},
                                                      {6, 7, 1}}};

/// 8 V100: NVLink 2 at 25 GB/s a link; four PCIe 3 switches with two GPUs and one 100 Gb/s NIC each; two Broadwells with
/// four channels of DDR4-2400.
inline constexpr host_model dgx_1v{.name = "dgx-1v",
                                   .gpus = 8,
                                   .sm = 70,
                                   .nvlinks = 6,
                                   .nvlink_generation = 2,
                                   .nvlink_rate = {25e9},
                                   .mesh = cube_mesh,
                                   .pcie_generation = 3,
                                   .gpus_per_switch = 2,
                                   .socket_rate = {6e9},
                                   .memory_rate = {76.8e9},
                                   .nics = 4,
                                   .nic_rate = {12.5e9}};

/// 8 A100: 12 NVLinks of 25 GB/s into six NVSwitches; four PCIe 4 switches with two GPUs and two 200 Gb/s NICs each; two
/// EPYC 7002 with eight channels of DDR4-3200. Source: NVIDIA DGX A100 data sheet and user guide.
inline constexpr host_model dgx_a100{.name = "dgx-a100",
                                     .gpus = 8,
                                     .sm = 80,
                                     .nvlinks = 12,
                                     .nvlink_generation = 3,
                                     .nvlink_rate = {25e9},
                                     .pcie_generation = 4,
                                     .gpus_per_switch = 2,
                                     .socket_rate = {16e9},
                                     .memory_rate = {204.8e9},
                                     .nics = 8,
                                     .nic_rate = {25e9}};

/// 8 H100: 18 NVLinks of 25 GB/s into four NVSwitches; a PCIe 5 switch port pair with one GPU and one 400 Gb/s NIC, eight
/// times; two Sapphire Rapids with eight channels of DDR5-4800. Source: NVIDIA DGX H100/H200 user guide.
inline constexpr host_model hgx_h100{.name = "hgx-h100",
                                     .gpus = 8,
                                     .sm = 90,
                                     .nvlinks = 18,
                                     .nvlink_generation = 4,
                                     .nvlink_rate = {25e9},
                                     .pcie_generation = 5,
                                     .gpus_per_switch = 1,
                                     .socket_rate = {22e9},
                                     .memory_rate = {307.2e9},
                                     .nics = 8,
                                     .nic_rate = {50e9}};

/// 8 H200: as `hgx_h100` with other GPU memory, which no link shows.
inline constexpr host_model hgx_h200 = [] {
  host_model m = hgx_h100;
  m.name = "hgx-h200";
  return m;
}();

/// 8 B200: 18 NVLinks of 50 GB/s into two NVSwitches; PCIe 5 and 400 Gb/s NICs as `hgx_h100`; two Emerald Rapids with eight
/// channels of DDR5-5600. Source: NVIDIA DGX B200 data sheet.
inline constexpr host_model hgx_b200{.name = "hgx-b200",
                                     .gpus = 8,
                                     .sm = 100,
                                     .nvlinks = 18,
                                     .nvlink_generation = 5,
                                     .nvlink_rate = {50e9},
                                     .pcie_generation = 5,
                                     .gpus_per_switch = 1,
                                     .socket_rate = {40e9},
                                     .memory_rate = {358.4e9},
                                     .nics = 8,
                                     .nic_rate = {50e9}};

/// One compute tray of a GB200 NVL72 rack, of which 18 share an NVSwitch plane: 4 GPUs with 18 NVLinks of 50 GB/s, two
/// Grace CPUs, four 400 Gb/s NICs at PCIe 5. A Grace has 900 GB/s of C2C to its two GPUs, both ways counted: 225 GB/s per
/// GPU and direction; its LPDDR5X reaches 512 GB/s. Source: NVIDIA GB200 NVL72 data sheet.
inline constexpr host_model gb200_nvl72{.name = "gb200-nvl72",
                                        .gpus = 4,
                                        .sm = 100,
                                        .nvlinks = 18,
                                        .nvlink_generation = 5,
                                        .nvlink_rate = {50e9},
                                        .domain_hosts = 18,
                                        .pcie_generation = 5,
                                        .gpus_per_switch = 0,
                                        .c2c_rate = {225e9},
                                        .socket_rate = {6e9},
                                        .memory_rate = {512e9},
                                        .nics = 4,
                                        .nic_rate = {50e9}};

/// A server with PCIe cards only: two GPUs and a 200 Gb/s NIC under each PCIe 4 switch, a switch per socket. A starting
/// point for own figures; sockets and memory as in `dgx_a100`.
inline constexpr host_model pcie{.name = "pcie",
                                 .gpus = 4,
                                 .sm = 80,
                                 .pcie_generation = 4,
                                 .gpus_per_switch = 2,
                                 .socket_rate = {16e9},
                                 .memory_rate = {204.8e9},
                                 .nics = 2,
                                 .nic_rate = {25e9}};

/// Every model, in the order in which help texts list them.
inline constexpr std::array<host_model, 7> all{dgx_1v, dgx_a100, hgx_h100, hgx_h200, hgx_b200, gb200_nvl72, pcie};

}  // namespace models

/// The model of this name; the marketing names dgx-h100, dgx-h200 and dgx-b200 mean the hgx board inside. Null if unknown.
[[nodiscard]] constexpr const host_model* find_model(std::string_view name) {
  constexpr std::string_view other[][2] = {
      {"dgx-h100", "hgx-h100"}, {"dgx-h200", "hgx-h200"}, {"dgx-b200", "hgx-b200"}};
  for (const auto& [alias, canonical] : other)
    if (name == alias) name = canonical;
  for (const host_model& m : models::all)
    if (m.name == name) return &m;
  return nullptr;
}

}}  // namespace topocoll::v0
