// SPDX-License-Identifier: Apache-2.0
#pragma once
// What links of known make carry: line rates by their specifications, and the payload that models should expect.
#include <cstdint>
#include <optional>
#include <string_view>
#include <topocoll/core/units.hpp>
#include <topocoll/read/ib_speed.hpp>

namespace topocoll { inline namespace v0 {

/// Raw line rate of a PCIe link, one direction, after line coding. Generation 1 to 7, lanes 1 to 32; 0 otherwise.
///
/// Source: PCI Express Base Specifications: 2.5 and 5 GT/s with 8b/10b; 8, 16 and 32 GT/s with 128b/130b; 64 and 128 GT/s in
/// flits of 256 bytes of which 242 carry transaction and link layer bytes (6.0, section 4.2.3: 14 bytes CRC and FEC).
[[nodiscard]] constexpr bytes_per_second pcie_line_rate(std::uint32_t generation, std::uint32_t lanes) {
  constexpr double bytes_per_lane[] = {0,
                                       2.5e9 / 8 * 8 / 10,
                                       5e9 / 8 * 8 / 10,
                                       8e9 / 8 * 128 / 130,
                                       16e9 / 8 * 128 / 130,
                                       32e9 / 8 * 128 / 130,
                                       64e9 / 8 * 242 / 256,
                                       128e9 / 8 * 242 / 256};
  return {generation <= 7 ? bytes_per_lane[generation] * lanes : 0};
}

/// What large transfers between devices get of a PCIe link, one direction: 12, 24, 48 GB/s for x16 of generation 3, 4, 5.
///
/// Source: NCCL 2.28 graph/topo.cc and xml.cc: 15, 30, 60, 120, 240, 480 hundred Mbit/s a lane, in bytes by a division by
/// 80; generation 7, which it does not know, is twice generation 6. Packet headers, flow control and 256-byte payloads
/// make the difference to the line rate.
[[nodiscard]] constexpr bytes_per_second pcie_payload_rate(std::uint32_t generation, std::uint32_t lanes) {
  constexpr double tenths[] = {0, 15, 30, 60, 120, 240, 480, 960};
  return {generation <= 7 ? tenths[generation] / 80 * 1e9 * lanes : 0};
}

/// What an InfiniBand link is called by, one direction: lanes times 2.5, 5, 10, 10, 14, 25, 50, 100, 200 Gbit/s for SDR to
/// XDR; 0 for unknown.
///
/// Source: the Linux kernel's drivers/infiniband/core/sysfs.c, whose "40 Gb/sec (4X QDR)" NCCL takes as the port's speed.
[[nodiscard]] constexpr bytes_per_second infiniband_rate(read::ib_speed speed, std::uint32_t lanes) {
  constexpr double gbit[] = {0, 2.5, 5, 10, 10, 14, 25, 50, 100, 200};
  return {gbit[static_cast<std::uint8_t>(speed)] * lanes * 1.25e8};
}

/// What an InfiniBand link moves, one direction, after line coding; packet headers are still in it. 0 for unknown.
///
/// Source: InfiniBand Architecture Specification, volume 2: 8b/10b for SDR, DDR and QDR, 64b/66b for FDR10, FDR (14.0625
/// Gbit/s) and EDR (25.78125); HDR, NDR and XDR signal 53.125, 106.25 and 212.5 Gbit/s, of which 256b/257b and RS(544,514)
/// leave 50, 100 and 200.
[[nodiscard]] constexpr bytes_per_second infiniband_data_rate(read::ib_speed speed, std::uint32_t lanes) {
  constexpr double gbit[] = {0, 2, 4, 8, 10, 14.0625 * 64 / 66, 25, 50, 100, 200};
  return {gbit[static_cast<std::uint8_t>(speed)] * lanes * 1.25e8};
}

/// Rates of one cable of a GPU interconnect, one direction.
struct gpu_link_rate {
  std::uint32_t generation = 0;  ///< of NVLink; 0 for XGMI, whose generations have no number that devices tell
  bytes_per_second line{};       ///< as the maker states it
  bytes_per_second payload{};    ///< what models use
  bool known = true;  ///< false when the architecture is not told or unknown, and a neighbour's rate stands in
};

/// One NVLink of a GPU with compute capability `sm` / 10.
///
/// Payload: NCCL 2.28 graph/topo.h, 18, 20, 20, 12, 20.6, 40.1 GB/s for sm60, 70, 80, 86, 90, 100 (and what NCCL takes for
/// an unknown one: sm80). Line: NVIDIA's data sheets, both directions halved: P100 160 GB/s over 4 links, V100 300 over 6,
/// A100 600 over 12, RTX A6000 112.5 over 4, H100 900 over 18, B200 1800 over 18.
[[nodiscard]] constexpr gpu_link_rate nvlink_rate(std::optional<std::uint32_t> sm) {
  const auto gb = [](double g) { return bytes_per_second{g * 1e9}; };
  if (!sm || *sm < 60 || *sm >= 1000) return {0, gb(25), gb(20), false};
  if (*sm >= 100) return {5, gb(50), gb(40.1), true};
  if (*sm >= 90) return {4, gb(25), gb(20.6), true};
  if (*sm == 86) return {3, gb(14.0625), gb(12), true};
  if (*sm >= 80) return {3, gb(25), gb(20), true};
  if (*sm >= 70) return {2, gb(25), gb(20), true};
  return {1, gb(20), gb(18), true};
}

/// One XGMI link of an AMD GPU of architecture `gcn`: "906", "gfx90a", "910" (NCCL's decimal form of 90a), "gfx942".
///
/// Payload: RCCL 2.21 graph/topo.h, 24, 36, 48 GB/s for Vega and MI100, MI200, MI300; an unknown one is taken for the
/// slowest. Line: AMD's data sheets, both directions halved: MI50 and MI100 92 GB/s a link, MI250X 100, MI300X 128,
/// MI350 153.6.
[[nodiscard]] constexpr gpu_link_rate xgmi_rate(std::string_view gcn) {
  const auto gb = [](double g) { return bytes_per_second{g * 1e9}; };
  if (gcn.substr(0, 3) == "gfx") gcn.remove_prefix(3);
  if (gcn == "900" || gcn == "906" || gcn == "908") return {0, gb(46), gb(24), true};
  if (gcn == "90a" || gcn == "910") return {0, gb(50), gb(36), true};
  if (gcn == "940" || gcn == "941" || gcn == "942") return {0, gb(64), gb(48), true};
  if (gcn == "950") return {0, gb(76.8), gb(48), true};
  return {0, gb(46), gb(24), false};
}

/// A rate and where it comes from.
struct assumed_rate {
  bytes_per_second rate{};
  const char* reason = "";
};

/// Between two NUMA domains, one direction: nobody reports it, so it is NCCL's prior.
///
/// @param arch    "x86_64", "arm64", "ppc64", or empty
/// @param vendor  CPUID vendor, "GenuineIntel", or empty; family and model as CPUID gives them, for Intel family 6
/// Source: NCCL 2.28 graph/topo.h. Users report errors of three times and more (NVIDIA/nccl issues 1163, 2113): measure.
[[nodiscard]] constexpr assumed_rate between_numa_domains(std::string_view arch, std::string_view vendor,
                                                          std::optional<std::uint32_t> family,
                                                          std::optional<std::uint32_t> model) {
  const auto of = [](double gb, const char* why) { return assumed_rate{{gb * 1e9}, why}; };
  if (vendor == "GenuineIntel") {
    if (family && *family == 6 && model) {
      if (*model >= 0xcf) return of(40, "nobody reports it; 40 GB/s is NCCL's figure for Intel since Emerald Rapids");
      if (*model >= 0x8f) return of(22, "nobody reports it; 22 GB/s is NCCL's figure for Intel Sapphire Rapids");
      if (*model >= 0x55) return of(10, "nobody reports it; 10 GB/s is NCCL's figure for Intel since Skylake");
    }
    return of(6, "nobody reports it; 6 GB/s is NCCL's figure for older or unnamed Intel processors");
  }
  if (vendor == "AuthenticAMD") return of(16, "nobody reports it; 16 GB/s is NCCL's figure for all AMD processors");
  if (vendor == "CentaurHauls" || vendor == "  Shanghai  ")
    return of(6, "nobody reports it; 6 GB/s is NCCL's figure for Zhaoxin processors");
  if (arch == "ppc64" || arch == "ppc64le") return of(32, "nobody reports it; 32 GB/s is NCCL's figure for POWER9");
  if (arch == "arm64" || arch == "aarch64")
    return of(6, "nobody reports it; 6 GB/s is NCCL's figure for all Arm processors");
  return of(6, "neither architecture nor vendor is told; 6 GB/s is the least of NCCL's figures");
}

/// Between the cores of a NUMA domain and its memory: four channels of DDR4-3200 (JEDEC JESD79-4: 25.6 GB/s each), the
/// least that servers with accelerators have in one domain.
[[nodiscard]] constexpr assumed_rate to_host_memory() {
  return {{4 * 25.6e9}, "nobody reports it; taken as four channels of DDR4-3200"};
}

/// Rate of a network port that tells none and has no PCIe link: 10 Gbit/s, as NCCL 2.28 takes it.
inline constexpr bytes_per_second unknown_port_rate{10 * 1.25e8};

}}  // namespace topocoll::v0
