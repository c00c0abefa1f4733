// SPDX-License-Identifier: Apache-2.0
#pragma once
// What AMD's compute driver tells in /sys/class/kfd/kfd/topology, recorded as one text: "== path" and the lines of the file.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/text_rows.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Kinds of links. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h.
inline constexpr std::uint64_t kfd_link_pcie = 2;
inline constexpr std::uint64_t kfd_link_xgmi = 11;

/// From the node that tells it to another. 0 stands for what the driver does not know.
struct kfd_link {
  std::uint64_t type = 0;
  std::uint64_t to = 0;      ///< number of the other node
  std::uint64_t weight = 0;  ///< 15 for one XGMI hop, 13 within a package, 20 to a processor; sums for longer ways
  std::uint64_t least = 0, most = 0;  ///< MB/s of one link and of all together
};
/// A processor, a GPU or a partition of one.
struct kfd_node {
  std::uint32_t number = 0;
  std::uint64_t cpu_cores = 0, simd_count = 0;
  std::optional<std::uint64_t>
      location;              ///< PCI bus, device and function: 8, 5 and 3 bits; partitions count in the function
  std::uint64_t domain = 0;  ///< of PCI
  std::uint64_t gfx_target_version = 0;  ///< 90010 is gfx90a
  std::uint64_t hive = 0;                ///< 0 for none
  std::uint64_t device = 0;
  std::vector<kfd_link> links;  ///< of io_links; p2p_links are ways over PCIe that no wire stands for

  [[nodiscard]] bool is_gpu() const { return simd_count > 0; }
};
struct kfd_topology {
  std::vector<kfd_node> nodes;  ///< by number
  std::vector<finding> findings;
};

/// Most nodes of one recording that are read.
inline constexpr std::size_t most_kfd_nodes = 1024;

/// True when blocks "== …nodes/N/properties" are there.
template <class = void>
[[nodiscard]] bool looks_like_kfd(std::string_view text);

/// Reads a recording; blocks of other files are passed over.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when no node has properties, and for a node told twice; `unsupported` for
///         more than 1,024 nodes. Cost: O(text * log).
template <class = void>
[[nodiscard]] result<kfd_topology> parse_kfd(std::string_view text, std::string_view file);

namespace detail {

template <class = void>
class kfd_reader {
 public:
  kfd_reader(std::string_view text, std::string_view file) : rows_(text), file_(file) {}

  [[nodiscard]] result<kfd_topology> read() {
    while (rows_.next()) {
      const std::string_view row = trimmed(rows_.row());
      if (row.substr(0, 3) == "== ") {
        if (auto ok = block(row.substr(3)); !ok) return ok.error();
      } else if (what_ != file_kind::other && !row.empty()) {
        property(row);
      }
    }
    for (const auto& [node, link] : links_)
      if (const auto at = seq::lower_bound_by(out_.nodes, node, &kfd_node::number);
          at != out_.nodes.end() && at->number == node)
        at->links.push_back(link);
    if (out_.nodes.empty())
      return fail(errc::malformed_input, file_ + ": there is no block \"== nodes/0/properties\"",
                  "name a recording of /sys/class/kfd/kfd/topology");
    return std::move(out_);
  }

 private:
  enum class file_kind : std::uint8_t { other, node, link };

  /// "nodes/3/properties" or "nodes/3/io_links/0/properties", with anything before.
  [[nodiscard]] result<void> block(std::string_view path) {
    what_ = file_kind::other;
    const std::size_t start = path.rfind("nodes/");
    if (start == std::string_view::npos) return {};
    path.remove_prefix(start + 6);
    const std::size_t slash = path.find('/');
    const auto number = digits_of(path.substr(0, slash), 10);
    if (slash == std::string_view::npos || !number || *number > 65535) return {};
    path.remove_prefix(slash + 1);
    const auto n = static_cast<std::uint32_t>(*number);
    if (path == "properties") {
      const auto at = seq::lower_bound_by(out_.nodes, n, &kfd_node::number);
      if (at != out_.nodes.end() && at->number == n)
        return fail(errc::malformed_input, file_ + " line " + std::to_string(rows_.number()) + ": node " +
                                               std::to_string(n) + " is told a second time");
      if (out_.nodes.size() == most_kfd_nodes)
        return fail(errc::unsupported, file_ + " line " + std::to_string(rows_.number()) + ": more than " +
                                           std::to_string(most_kfd_nodes) + " nodes");
      now_ = static_cast<std::size_t>(at - out_.nodes.begin());
      kfd_node node;
      node.number = n;
      out_.nodes.insert(at, std::move(node));
      what_ = file_kind::node;
    } else if (path.substr(0, 9) == "io_links/" && path.size() > 11 && path.substr(path.size() - 11) == "/properties") {
      links_.emplace_back(n, kfd_link{});
      what_ = file_kind::link;
    }
    return {};
  }
  void property(std::string_view row) {
    const std::size_t blank = row.find(' ');
    const std::string_view name = row.substr(0, blank);
    const auto value = blank == std::string_view::npos ? std::nullopt : digits_of(trimmed(row.substr(blank)), 10);
    std::uint64_t* to = nullptr;
    if (what_ == file_kind::link) {
      kfd_link& l = links_.back().second;
      to = name == "type"            ? &l.type
           : name == "node_to"       ? &l.to
           : name == "weight"        ? &l.weight
           : name == "min_bandwidth" ? &l.least
           : name == "max_bandwidth" ? &l.most
                                     : nullptr;
    } else {
      kfd_node& n = out_.nodes[now_];
      if (name == "location_id") {
        if (value) n.location = *value;
        return;
      }
      to = name == "cpu_cores_count"      ? &n.cpu_cores
           : name == "simd_count"         ? &n.simd_count
           : name == "domain"             ? &n.domain
           : name == "gfx_target_version" ? &n.gfx_target_version
           : name == "hive_id"            ? &n.hive
           : name == "device_id"          ? &n.device
                                          : nullptr;
    }
    if (to == nullptr) return;
    if (value)
      *to = *value;
    else if (out_.findings.size() < 32)
      out_.findings.push_back({severity::note,
                               file_ + " line " + std::to_string(rows_.number()),
                               "\"" + std::string(row) + "\" has no number; taken as not told",
                               {},
                               {},
                               1});
  }

  text_rows rows_;
  std::string file_;
  kfd_topology out_;
  std::vector<std::pair<std::uint32_t, kfd_link>> links_;  // with the node that tells each
  file_kind what_ = file_kind::other;                      // the block that rows belong to
  std::size_t now_ = 0;                                    // the node that rows belong to
};

}  // namespace detail

template <class>
bool looks_like_kfd(std::string_view text) {
  detail::text_rows rows(text);
  while (rows.next()) {
    const std::string_view row = trimmed(rows.row());
    const std::size_t at = row.find("nodes/");
    if (row.substr(0, 3) != "== " || at == std::string_view::npos) continue;
    const std::size_t slash = row.find('/', at + 6);
    if (slash != std::string_view::npos && row.substr(slash) == "/properties" &&
        digits_of(row.substr(at + 6, slash - at - 6), 10))
      return true;
  }
  return false;
}

template <class>
result<kfd_topology> parse_kfd(std::string_view text, std::string_view file) {
  return detail::kfd_reader<>(text, file).read();
}

}}}  // namespace topocoll::v0::read
