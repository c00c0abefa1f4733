// SPDX-License-Identifier: Apache-2.0
#pragma once
// The small texts of /sys and /proc: lists of processors, rates of InfiniBand ports, PCIe capabilities.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// First line of a file, without blanks around it.
[[nodiscard]] constexpr std::string_view first_line(std::string_view text) {
  return trimmed(text.substr(0, text.find('\n')));
}

/// Closed ranges of a list such as "0-3,8,250-255". Parts that are no range are left out; at most 65,536 parts are read.
template <class = void>
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> number_list(std::string_view text) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  text = first_line(text);
  while (!text.empty() && ranges.size() < 65536) {
    const std::size_t comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t dash = part.find('-');
    const auto first = small_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : small_number(part.substr(dash + 1));
    if (first && last && *first <= *last) ranges.emplace_back(*first, *last);
  }
  return ranges;
}

/// Ranges of a kernel bit mask: comma-separated 32-bit hexadecimal words, most significant first.
template <class = void>
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> mask_list(std::string_view text) {
  std::vector<std::uint32_t> words;
  text = first_line(text);
  while (!text.empty() && words.size() < 4096) {
    const std::size_t comma = text.find(',');
    words.push_back(static_cast<std::uint32_t>(digits_of(text.substr(0, comma), 16).value_or(0)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (std::uint32_t bit = 0; bit < 32 * words.size(); ++bit) {
    if ((words[words.size() - 1 - bit / 32] >> (bit % 32) & 1U) == 0) continue;
    if (!ranges.empty() && ranges.back().second + 1 == bit)
      ranges.back().second = bit;
    else
      ranges.emplace_back(bit, bit);
  }
  return ranges;
}

/// "400 Gb/sec (4X NDR)": rate of one direction, lanes, and the name of the lane's speed.
struct infiniband_rate {
  bytes_per_second rate{};
  std::uint32_t lanes = 0;  ///< 0 when not told
  std::string speed;        ///< "NDR"; empty when not told
};
template <class = void>
[[nodiscard]] std::optional<infiniband_rate> infiniband_rate_of(std::string_view text) {
  text = first_line(text);
  const auto number = leading_number(text);
  const std::size_t unit = text.find("Gb/sec");
  if (!number || unit == std::string_view::npos || !(*number < 1e6)) return std::nullopt;
  infiniband_rate rate{{*number * 1.25e8}, 0, {}};
  if (const std::size_t open = text.find('('); open != std::string_view::npos) {
    std::string_view inside = text.substr(open + 1, text.find(')', open) - open - 1);
    const std::size_t x = inside.find('X');
    if (x != std::string_view::npos) {
      rate.lanes = small_number(inside.substr(0, x), 64).value_or(0);
      rate.speed = std::string(trimmed(inside.substr(x + 1)));
    }
  }
  return rate;
}

/// What kind of port a PCIe function has, from its capability. Source: PCI Express Base Specification, 7.5.3.2.
enum class pcie_port : std::uint8_t { unknown, endpoint, root, upstream, downstream, to_pci };

/// Reads the PCIe capability out of configuration space. Without root rights the kernel gives 64 bytes, which end before
/// the capability: unknown.
template <class = void>
[[nodiscard]] pcie_port pcie_port_of(std::string_view config) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(config[at])); };
  if (config.size() < 64 || (byte(6) & 0x10U) == 0) return pcie_port::unknown;
  std::size_t at = byte(0x34) & 0xfcU;
  for (int hops = 0; at >= 0x40 && at + 4 <= config.size() && hops < 48; ++hops) {
    if (byte(at) == 0x10) {
      switch (byte(at + 2) >> 4U) {
        case 0:
        case 1:
        case 9:
        case 10: return pcie_port::endpoint;
        case 4: return pcie_port::root;
        case 5: return pcie_port::upstream;
        case 6: return pcie_port::downstream;
        case 7:
        case 8: return pcie_port::to_pci;
        default: return pcie_port::unknown;
      }
    }
    at = byte(at + 1) & 0xfcU;
  }
  return pcie_port::unknown;
}

/// Processor as /proc/cpuinfo describes its first one.
struct processor_text {
  std::string arch;    ///< "x86_64", "arm64", "ppc64", or empty
  std::string vendor;  ///< CPUID vendor
  std::string model_name;
  std::optional<std::uint32_t> family, model;
  bool guest = false;  ///< the processor says that a hypervisor stands between it and this system
};
template <class = void>
[[nodiscard]] processor_text processor_of(std::string_view cpuinfo) {
  processor_text p;
  while (!cpuinfo.empty()) {
    const std::size_t end = cpuinfo.find('\n');
    const std::string_view row = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(end == std::string_view::npos ? cpuinfo.size() : end + 1);
    const std::size_t colon = row.find(':');
    if (colon == std::string_view::npos) {
      if (!p.arch.empty() && trimmed(row).empty()) break;  // the first processor ends
      continue;
    }
    const std::string_view name = trimmed(row.substr(0, colon));
    const std::string_view value = trimmed(row.substr(colon + 1));
    if (name == "vendor_id") {
      p.arch = "x86_64";
      p.vendor = std::string(value);
    } else if (name == "CPU implementer") {
      p.arch = "arm64";
    } else if (name == "cpu" && value.substr(0, 5) == "POWER") {
      p.arch = "ppc64";
      p.model_name = std::string(value);
    } else if (name == "cpu family") {
      p.family = small_number(value);
    } else if (name == "model") {
      p.model = small_number(value);
    } else if (name == "model name") {
      p.model_name = std::string(value);
    } else if (name == "flags") {
      const std::size_t at = value.find(" hypervisor");  // CPUID leaf 1, ECX bit 31: reserved for hypervisors to set
      p.guest = at != std::string_view::npos && (at + 11 == value.size() || value[at + 11] == ' ');
    }
  }
  return p;
}

/// Bytes of the line "Node 0 MemTotal: 4417748 kB" in a NUMA domain's meminfo.
template <class = void>
[[nodiscard]] std::optional<bytes> memory_total(std::string_view meminfo) {
  const std::size_t at = meminfo.find("MemTotal:");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = first_line(meminfo.substr(at + 9));
  rest = rest.substr(0, rest.find(' '));
  const auto kib = whole_number(rest);
  if (!kib || *kib < 0 || *kib > (std::int64_t{1} << 50)) return std::nullopt;
  return bytes{static_cast<std::uint64_t>(*kib) << 10U};
}

}}}  // namespace topocoll::v0::read
