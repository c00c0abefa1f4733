// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an hwloc XML of version 1, 2 or 3 says, as plain structs; what it cannot mean becomes a finding.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/xml_tree.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// `<info>` pairs in the order of the file; a name may come several times.
using hwloc_infos = std::vector<std::pair<std::string, std::string>>;

/// First value of the info `name`, or null. Cost: O(infos).
[[nodiscard]] inline const std::string* find_info(const hwloc_infos& infos, std::string_view name) {
  for (const auto& info : infos)
    if (info.first == name) return &info.second;
  return nullptr;
}

/// Position that means "none" in the lists below.
inline constexpr std::size_t hwloc_none = static_cast<std::size_t>(-1);

/// What an OS device is. The bits are those of `osdev_type` in version 3; the numbers of versions 1 and 2 are translated.
enum hwloc_os_kind : std::uint32_t {
  hwloc_storage = 1,
  hwloc_memory_device = 2,
  hwloc_display = 4,
  hwloc_coprocessor = 8,
  hwloc_network = 16,
  hwloc_openfabrics = 32,
  hwloc_dma = 64
};

/// A device as the operating system or a library names it: "eth0", "mlx5_0", "cuda0", "nvml0", "card0".
struct hwloc_os_device {
  std::string name;
  std::string subtype;     ///< "CUDA", "NVML", "RSMI", …; empty where the file has none
  std::uint32_t kinds{};   ///< bits of `hwloc_os_kind`; 0 when not told or unknown
  std::size_t function{};  ///< position of its PCI function, or `hwloc_none`
  std::optional<std::uint64_t> gp_index;
  hwloc_infos infos;
  std::uint32_t line{};
};

/// A PCI function or PCI bridge. Functions above come before functions below.
struct hwloc_pci {
  std::string address;  ///< as written
  std::string subtype;  ///< "NVSwitch", …; empty where the file has none
  bool bridge{};
  std::optional<std::uint32_t> class_code;         ///< 24 bits; the interface byte is 0 before version 3
  std::string vendor, device;                      ///< "0x10de"; empty when not told
  std::string subsystem_vendor, subsystem_device;  ///< the same
  std::optional<bytes_per_second> link;            ///< what the link up is trained to; empty for 0, which is "unknown"
  std::size_t parent{};             ///< position of the bridge above, or `hwloc_none` below a host bridge
  std::vector<std::uint32_t> near;  ///< NUMA domains of the object that its host bridge hangs on; may be empty
  std::optional<std::uint64_t> gp_index;
  hwloc_infos infos;
  std::uint32_t line{};
};

/// A NUMA node.
struct hwloc_numa {
  std::optional<std::uint32_t> number;  ///< `os_index`
  std::string subtype;                  ///< "MCDRAM", "HBM", "CXLMemory", "GPUMemory", …; empty for ordinary memory
  std::optional<bytes> memory;          ///< empty when not told, which hwloc also does for none
  std::vector<std::uint32_t> cpus;      ///< processors whose local memory it is, 32 to a word, lowest first
  hwloc_infos infos;
  std::uint32_t line{};
};

/// A processor package.
struct hwloc_package {
  std::optional<std::uint32_t> number;
  std::vector<std::uint32_t> cpus;  ///< as for `hwloc_numa`
  hwloc_infos infos;
  std::uint32_t line{};
};

/// One end of a row of a matrix.
struct hwloc_place {
  std::string type;  ///< "NUMANode", "OSDev", "PCIDev", …
  std::uint64_t index{};
};
/// A square matrix between objects, row by row.
struct hwloc_matrix {
  std::string name;    ///< "NUMALatency", "NVLinkBandwidth", "XGMIBandwidth", "XGMIHops", …
  bool by_os_index{};  ///< `index` means `os_index`, else `gp_index`
  std::vector<hwloc_place> places;
  std::vector<double> values;  ///< places × places; MB/s for bandwidths
  std::uint32_t line{};
};

struct hwloc_topology {
  std::uint32_t version{};  ///< 1, 2 or 3
  std::string host_name;    ///< empty when not told
  hwloc_infos infos;        ///< of the machine
  std::size_t cores{}, processing_units{}, host_bridges{};
  std::optional<bytes> memory;  ///< of a machine without NUMA nodes
  std::vector<hwloc_package> packages;
  std::vector<hwloc_numa> numas;
  std::vector<hwloc_pci> functions;
  std::vector<hwloc_os_device> os_devices;
  std::vector<hwloc_matrix> matrices;
  std::vector<finding> findings;
};

/// True when the text is XML whose first element is hwloc's `<topology>` with an `<object>` in it.
/// Reads no more than the prolog and a search for the first object. Any version.
template <class = void>
[[nodiscard]] bool looks_like_hwloc_topology(std::string_view text);

/// Understands the element `<topology>` of an hwloc XML, versions 1 to 3.
///
/// Objects of kinds that are not told here (caches, groups, dies, …) are looked through. What is written so that it cannot be
/// meant is reported and taken as not told.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when the root is not `<topology>`, holds no object, or a PCI object has no
///         address; `unsupported` for a version above 3. Cost: O(text).
template <class = void>
[[nodiscard]] result<hwloc_topology> hwloc_topology_of(const io::xml_element& root, std::string_view file);

template <class>
bool looks_like_hwloc_topology(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (true) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || text[first] != '<') return false;
    text.remove_prefix(first);
    std::string_view end = ">";
    if (text.substr(0, 4) == "<!--")
      end = "-->";
    else if (text.substr(0, 2) == "<?")
      end = "?>";
    else if (text.substr(0, 2) != "<!")
      break;
    const std::size_t close = text.find(end, 2);
    if (close == std::string_view::npos) return false;
    text.remove_prefix(close + end.size());
  }
  constexpr std::string_view root = "<topology";
  if (text.substr(0, root.size()) != root || text.size() == root.size()) return false;
  const char after = text[root.size()];
  if (after != '>' && after != ' ' && after != '\t' && after != '\r' && after != '\n') return false;
  return text.find("<object") != std::string_view::npos;
}

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/hwloc_reader.hpp>
