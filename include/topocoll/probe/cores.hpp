// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which cores this process may use, in which NUMA domains they are, and how large their caches are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/file.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// A core that this process may run on.
struct usable_core {
  std::uint32_t number = 0;           ///< as the kernel numbers them
  std::optional<std::uint32_t> numa;  ///< empty when the system does not tell
};

/// What the system says of its processors, seen by this process (a container may see fewer cores than the machine has).
struct core_layout {
  std::vector<usable_core> cores;              ///< sorted by number; never empty on Linux
  std::optional<bytes> last_level_cache;       ///< of one core: the cache farthest from it
  std::optional<bytes> all_last_level_caches;  ///< sum of the distinct ones that the cores above can fill
  std::optional<bytes> memory_available;       ///< that a new program can use without swapping
  std::optional<double> load;                  ///< runnable threads, mean of the last minute

  /// Numbers of the cores of one NUMA domain.
  [[nodiscard]] std::vector<std::uint32_t> in_numa(std::optional<std::uint32_t> numa) const {
    std::vector<std::uint32_t> found;
    for (const usable_core& c : cores)
      if (c.numa == numa) found.push_back(c.number);
    return found;
  }
  /// The NUMA domains that have a core above, sorted, an unknown one first.
  [[nodiscard]] std::vector<std::optional<std::uint32_t>> numa_domains() const {
    std::vector<std::optional<std::uint32_t>> found;
    for (const usable_core& c : cores)
      if (seq::find(found, c.numa) == found.end()) found.push_back(c.numa);
    seq::sort(found);
    return found;
  }
};

/// Reads a list of cores as the kernel writes it: "0-3,8,10-11". Empty for anything else and for more than 65,536 cores.
template <class = void>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_core_list(std::string_view text);

/// Reads the layout from /sys and /proc under `root`. What cannot be read stays empty; nothing here fails.
/// Cost: about four small files per core and NUMA domain.
template <class = void>
[[nodiscard]] core_layout read_core_layout(const std::string& root = "");

namespace detail {

/// A file of the kernel without the line end; empty when it cannot be read.
template <class = void>
[[nodiscard]] std::optional<std::string> system_file(const std::string& path) {
  auto text = io::read_file(path, bytes{65536});
  if (!text) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return std::move(*text);
}

template <class = void>
[[nodiscard]] std::optional<std::uint64_t> leading_number(std::string_view text, std::size_t* used = nullptr) {
  std::uint64_t n = 0;
  std::size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && i < 18; ++i)
    n = 10 * n + static_cast<std::uint64_t>(text[i] - '0');
  if (i == 0) return std::nullopt;
  if (used != nullptr) *used = i;
  return n;
}

/// "32768K", "96M" as cache sizes are written.
template <class = void>
[[nodiscard]] std::optional<bytes> cache_size(std::string_view text) {
  std::size_t used = 0;
  const auto n = leading_number(text, &used);
  if (!n) return std::nullopt;
  const std::string_view unit = text.substr(used);
  if (unit.empty()) return bytes{*n};
  if (unit == "K") return bytes{*n << 10U};
  if (unit == "M") return bytes{*n << 20U};
  return std::nullopt;
}

}  // namespace detail

template <class>
std::optional<std::vector<std::uint32_t>> parse_core_list(std::string_view text) {
  std::vector<std::uint32_t> cores;
  while (!text.empty()) {
    std::size_t used = 0;
    const auto first = detail::leading_number(text, &used);
    if (!first) return std::nullopt;
    text.remove_prefix(used);
    std::uint64_t last = *first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      const auto end = detail::leading_number(text, &used);
      if (!end) return std::nullopt;
      last = *end;
      text.remove_prefix(used);
    }
    if (last < *first || last > UINT32_MAX - 1 || cores.size() + (last - *first) >= 65536) return std::nullopt;
    for (std::uint64_t c = *first; c <= last; ++c) cores.push_back(static_cast<std::uint32_t>(c));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return cores;
}

template <class>
core_layout read_core_layout(const std::string& root) {
  core_layout layout;
  std::vector<std::uint32_t> numbers;
  if (root.empty() || root == "/") {
    // 8,192 cores: CONFIG_NR_CPUS of the largest distribution kernels.
    std::vector<unsigned long> mask(8192 / (8 * sizeof(unsigned long)), 0);
    if (sched_getaffinity(0, mask.size() * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(mask.data())) == 0)
      for (std::uint32_t c = 0; c < 8192; ++c)
        if ((mask[c / (8 * sizeof(unsigned long))] >> (c % (8 * sizeof(unsigned long))) & 1UL) != 0)
          numbers.push_back(c);
  } else if (const auto online = detail::system_file(root + "/sys/devices/system/cpu/online")) {
    numbers = parse_core_list(*online).value_or(std::vector<std::uint32_t>{});
  }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> numa_of;  // core, domain
  if (const auto online = detail::system_file(root + "/sys/devices/system/node/online"))
    for (const std::uint32_t domain : parse_core_list(*online).value_or(std::vector<std::uint32_t>{}))
      if (const auto list =
              detail::system_file(root + "/sys/devices/system/node/node" + std::to_string(domain) + "/cpulist"))
        for (const std::uint32_t c : parse_core_list(*list).value_or(std::vector<std::uint32_t>{}))
          numa_of.emplace_back(c, domain);
  seq::sort(numa_of);

  std::vector<std::pair<std::string, std::uint64_t>> caches;  // by the cores that share it, so that each counts once
  for (const std::uint32_t c : numbers) {
    usable_core core{.number = c, .numa = std::nullopt};
    const auto domain = std::lower_bound(numa_of.begin(), numa_of.end(), std::pair{c, std::uint32_t{0}});
    if (domain != numa_of.end() && domain->first == c) core.numa = domain->second;
    layout.cores.push_back(core);

    std::uint64_t farthest = 0;
    for (int index = 0; index < 6; ++index) {
      const std::string folder =
          root + "/sys/devices/system/cpu/cpu" + std::to_string(c) + "/cache/index" + std::to_string(index) + "/";
      const auto level = detail::system_file(folder + "level");
      const auto size = detail::system_file(folder + "size");
      if (!level || !size) break;
      const auto depth = detail::leading_number(*level);
      const auto amount = detail::cache_size(*size);
      if (!depth || !amount || *depth < farthest) continue;
      farthest = *depth;
      layout.last_level_cache = amount;
    }
    if (farthest == 0) continue;
    for (int index = 0; index < 6; ++index) {
      const std::string folder =
          root + "/sys/devices/system/cpu/cpu" + std::to_string(c) + "/cache/index" + std::to_string(index) + "/";
      if (detail::system_file(folder + "level").value_or("") != std::to_string(farthest)) continue;
      if (const auto shared = detail::system_file(folder + "shared_cpu_list"))
        if (const auto amount = detail::cache_size(detail::system_file(folder + "size").value_or("")))
          caches.emplace_back(*shared, amount->value);
    }
  }
  seq::sort_unique(caches);
  if (!caches.empty()) {
    std::uint64_t sum = 0;
    for (const auto& [sharers, amount] : caches) sum += amount;
    layout.all_last_level_caches = bytes{sum};
  }

  if (const auto info = detail::system_file(root + "/proc/meminfo")) {
    constexpr std::string_view word = "MemAvailable:";
    if (std::size_t at = info->find(word); at != std::string::npos) {
      at = info->find_first_not_of(' ', at + word.size());
      if (at != std::string::npos)
        if (const auto kib = detail::leading_number(std::string_view(*info).substr(at)))
          layout.memory_available = bytes{*kib << 10U};
    }
  }
  if (const auto load = detail::system_file(root + "/proc/loadavg")) {
    char* end = nullptr;
    const double value = std::strtod(load->c_str(), &end);
    if (end != load->c_str()) layout.load = value;
  }
  return layout;
}

}}}  // namespace topocoll::v0::probe
