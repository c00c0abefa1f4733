// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCIe link speeds, widths and class codes as the kernel, NCCL and clouds spell them.
#include <cstdint>
#include <optional>
#include <string_view>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// PCIe generation, 1 to 7, of a transfer rate in any spelling that begins with the number: "8 GT/s", "8.0 GT/s PCIe",
/// "32 GT/s PCIe/s". Empty for "", "Unknown", and for rates that no generation has.
/// Source: PCI-SIG, PCI Express Base Specifications 1.0 to 7.0.
[[nodiscard]] constexpr std::optional<std::uint32_t> pcie_generation(std::string_view text) {
  constexpr double rates[] = {2.5, 5, 8, 16, 32, 64, 128};
  const auto rate = leading_number(text);
  if (!rate) return std::nullopt;
  for (std::uint32_t g = 0; g < 7; ++g)
    if (*rate == rates[g]) return g + 1;
  return std::nullopt;
}

/// Lanes of a link: 1 to 32 in the widths that PCIe has. Empty for 0, which hypervisors write for "not known", for 63 and
/// 255, which the kernel prints when the device does not answer, and for anything else.
[[nodiscard]] constexpr std::optional<std::uint32_t> pcie_width(std::string_view text) {
  const auto lanes = small_number(text, 32);
  if (!lanes) return std::nullopt;
  switch (*lanes) {
    case 1:
    case 2:
    case 4:
    case 8:
    case 12:
    case 16:
    case 32: return *lanes;
    default: return std::nullopt;
  }
}

/// Class code of a PCI function, "0x030200" or "030200" or (without interface) "0302": 24 bits. Empty when it is not one.
/// Source: PCI-SIG, PCI Code and ID Assignment Specification.
[[nodiscard]] constexpr std::optional<std::uint32_t> pci_class_code(std::string_view text) {
  text = trimmed(text);
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") text.remove_prefix(2);
  if (text.size() != 4 && text.size() != 6) return std::nullopt;
  const auto code = digits_of(text, 16);
  if (!code) return std::nullopt;
  return static_cast<std::uint32_t>(text.size() == 4 ? *code << 8U : *code);
}

/// Base class and subclass of a class code: 0x0302 of 0x030200.
[[nodiscard]] constexpr std::uint32_t pci_subclass(std::uint32_t class_code) { return class_code >> 8U; }

inline constexpr std::uint32_t pci_class_ethernet = 0x0200;
inline constexpr std::uint32_t pci_class_infiniband = 0x0207;
inline constexpr std::uint32_t pci_class_vga = 0x0300;
inline constexpr std::uint32_t pci_class_3d = 0x0302;
inline constexpr std::uint32_t pci_class_display = 0x0380;
inline constexpr std::uint32_t pci_class_bridge = 0x0604;
inline constexpr std::uint32_t pci_class_other_bridge = 0x0680;  ///< NVSwitch says so
inline constexpr std::uint32_t pci_class_accelerator = 0x1200;
/// Whole class code of the bridge at which NVLinks of POWER8 and POWER9 processors end. Source: NCCL 2.28 graph/topo.cc.
inline constexpr std::uint32_t pci_class_nvlink_to_cpu = 0x068001;

}}}  // namespace topocoll::v0::read
