// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hardware addresses: what a device is called, whoever looks.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace topo {

/// Address of a PCI function: domain (32 bits: Hyper-V and VMD use more than 16), bus, device, function.
struct pci_address {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    ///< 0 to 31
  std::uint8_t function = 0;  ///< 0 to 7

  friend constexpr auto operator<=>(const pci_address&, const pci_address&) = default;
  friend constexpr bool operator==(const pci_address&, const pci_address&) = default;

  /// Reads "[domain:]bus:device.function", hexadecimal in either case; the domain has up to 8 digits.
  /// Empty for anything else, also for a device above 0x1f or a function above 7.
  [[nodiscard]] static constexpr std::optional<pci_address> parse(std::string_view text) {
    std::uint32_t part[4] = {0, 0, 0, 0};
    std::uint32_t digits[4] = {0, 0, 0, 0};
    std::size_t at = 0;
    std::size_t colons = 0;
    for (const char c : text)
      if (c == ':') ++colons;
    if (colons != 1 && colons != 2) return std::nullopt;
    std::size_t which = colons == 2 ? 0 : 1;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == ':' || c == '.') {
        if (digits[which] == 0 || which == 3 || (c == '.') != (which == 2)) return std::nullopt;
        ++which;
        continue;
      }
      std::uint32_t nibble = 0;
      if (c >= '0' && c <= '9')
        nibble = static_cast<std::uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f')
        nibble = static_cast<std::uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        nibble = static_cast<std::uint32_t>(c - 'A' + 10);
      else
        return std::nullopt;
      if (++digits[which] > (which == 0 ? 8U : 2U)) return std::nullopt;
      part[which] = part[which] << 4U | nibble;
    }
    if (which != 3 || digits[3] == 0 || part[2] > 0x1f || part[3] > 7) return std::nullopt;
    return pci_address{part[0], static_cast<std::uint8_t>(part[1]), static_cast<std::uint8_t>(part[2]),
                       static_cast<std::uint8_t>(part[3])};
  }
};

/// "0000:1b:00.0": lower case, the domain at least four digits, as the Linux kernel writes it.
template <class = void>
[[nodiscard]] std::string to_string(const pci_address& a) {
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  int digits = 4;
  while (digits < 8 && a.domain >> (4 * digits) != 0) ++digits;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += hex[a.domain >> shift & 15U];
  out += ':';
  out += hex[a.bus >> 4U];
  out += hex[a.bus & 15U];
  out += ':';
  out += hex[a.device >> 4U];
  out += hex[a.device & 15U];
  out += '.';
  out += hex[a.function];
  return out;
}

}}}  // namespace topocoll::v0::topo
