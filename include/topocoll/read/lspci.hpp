// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `lspci -vvv`, `lspci -nn` and `lspci -tv` print, as plain structs.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/read/acs.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/read/sysfs_text.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Speed and width of one end of a PCIe link, as written, with lspci's judgement: "ok", "downgraded", "strange" (better than
/// the capability allows), "overdriven"; empty before pciutils 3.6.
struct lspci_link {
  std::string speed, width;  ///< "32GT/s", "16"; empty when not told
  std::string speed_word, width_word;
};
struct lspci_function {
  std::string address;  ///< "0000:1b:00.0": lower case, the domain always there
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::string class_name;                   ///< "3D controller"; empty in trees
  std::optional<std::uint32_t> class_code;  ///< from the number in brackets, or from a name that is known
  std::string vendor, device;               ///< "10de", "20b2"; empty when not printed
  std::string description;                  ///< maker and device in words
  std::optional<std::uint32_t> numa;
  std::optional<std::uint32_t> secondary, subordinate;  ///< buses behind a bridge
  pcie_port port = pcie_port::unknown;
  lspci_link best, now;  ///< LnkCap and LnkSta
  std::optional<std::uint16_t> acs_capability, acs_control;
  bool denied = false;    ///< "Capabilities: <access denied>"
  bool extended = false;  ///< an extended capability was printed, which only root sees
  bool has_acs = false;   ///< that of access control was printed; its bits only with -vv
  std::string driver, slot;
  std::uint32_t line = 0;
};
struct lspci_listing {
  bool tree = false;  ///< from -t: no classes, no speeds
  std::vector<lspci_function> functions;
  std::string guest_of;  ///< device that only virtual machines have; empty when none was seen
  std::vector<finding> findings;
};

/// Most functions of one listing that are read; machines have some hundreds.
inline constexpr std::size_t most_pci_functions = 8192;

/// True when a line is that of a PCI function with a class, or of a tree of PCI buses.
template <class = void>
[[nodiscard]] bool looks_like_lspci(std::string_view text);

/// Reads a listing of either form. Attributes that matter to nobody are passed over.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when there is no function, for an address that comes twice and for a tree
///         whose branches do not meet; `unsupported` for more than 8,192 functions. Cost: O(text * log).
template <class = void>
[[nodiscard]] result<lspci_listing> parse_lspci(std::string_view text, std::string_view file);

/// Class code of a class in the words of pci.ids: 0x030200 of "3D controller". Empty for classes that carry no traffic.
[[nodiscard]] constexpr std::optional<std::uint32_t> pci_class_of_name(std::string_view name) {
  struct row {
    std::string_view name;
    std::uint32_t code;
  };
  constexpr row rows[] = {{"PCI bridge", 0x060400},
                          {"VGA compatible controller", 0x030000},
                          {"3D controller", 0x030200},
                          {"Display controller", 0x038000},
                          {"Processing accelerators", 0x120000},
                          {"Co-processor", 0x0b4000},
                          {"Ethernet controller", 0x020000},
                          {"Infiniband controller", 0x020700},
                          {"Fabric controller", 0x020800},
                          {"Network controller", 0x028000},
                          {"Non-Volatile memory controller", 0x010800},
                          {"RAID bus controller", 0x010400},
                          {"SATA controller", 0x010600},
                          {"Serial Attached SCSI controller", 0x010700},
                          {"SCSI storage controller", 0x010000},
                          {"Mass storage controller", 0x018000},
                          {"Bridge", 0x068000},
                          {"Host bridge", 0x060000},
                          {"ISA bridge", 0x060100},
                          {"Audio device", 0x040300},
                          {"USB controller", 0x0c0300},
                          {"System peripheral", 0x088000}};
  for (const row& r : rows)
    if (r.name == name) return r.code;
  return std::nullopt;
}

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/lspci_rows.hpp>
