// SPDX-License-Identifier: Apache-2.0
#pragma once
// The topology graph: devices and switches joined by directed links, each fact with its origin.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// A device, a switch or a memory.
struct node {
  node_kind kind = node_kind::pcie_device;
  /// Identity, unique in a graph and equal in every source that sees the same hardware. Host-local things start with the
  /// host's name and a slash: "node7/pci:0000:1b:00.0", "node7/numa:0", "node7/memory:0", "node7/nvswitch",
  /// "node7/net:mlx5_0/1"; fabric things stand alone: "switch:0x248a070300f8d2c0", "leaf:3".
  std::string key;
  std::string name;                          ///< short name for people: "GPU 3", "mlx5_0", "leaf 2"
  std::string host;                          ///< host that it sits in; empty for fabric switches
  std::optional<std::uint32_t> index;        ///< the number that drivers and users give it (GPU index, leaf number)
  std::optional<std::uint32_t> global_rank;  ///< rank written in the source, if any
  std::optional<std::uint32_t> numa;         ///< NUMA domain; empty when the source does not know (-1 in sysfs)
  trust how = trust::reported;
  std::string reason;  ///< why `how` is not better; empty when there is nothing to say
  /// Facts that the graph carries but does not interpret, sorted by name: "arch", "class", "device", "sm", "vendor", …
  std::vector<std::pair<std::string, std::string>> facts;
};

/// One direction of a connection. Both directions of a cable are two links.
struct link {
  node_id from, to;
  link_kind kind = link_kind::pcie;
  std::uint32_t generation = 0;             ///< PCIe generation 1 to 7, NVLink generation; 0 when unknown
  std::uint32_t lanes = 0;                  ///< PCIe width, lanes of a port, number of bonded NVLinks; 0 when unknown
  std::optional<bytes_per_second> nominal;  ///< best that both ends can do, raw line rate of this direction
  std::optional<bytes_per_second> current;  ///< what it has trained to or is set to now; empty when not told
  bytes_per_second capacity{};              ///< what models use, > 0 unless the link is dead; see `how` and `reason`
  trust how = trust::reported;              ///< how far `capacity` is to be trusted
  std::string reason;                       ///< why, when `how` is derived or assumed: "width 0 taken as 16"
};

/// What one source could tell: link ends are positions in `nodes`. Not yet checked.
struct fragment {
  std::string source;  ///< "sysfs", "nccl-xml machine.xml", …
  std::vector<node> nodes;
  std::vector<link> links;
  std::vector<finding> findings;

  node_id add(node n) {
    nodes.push_back(std::move(n));
    return {static_cast<std::uint32_t>(nodes.size() - 1)};
  }
  /// Adds `l` and its mirror image: a full-duplex connection with the same figures both ways.
  void join(const link& l) {
    links.push_back(l);
    links.push_back(l);
    std::swap(links.back().from, links.back().to);
  }
};

/// An immutable graph. Copies are deep; every accessor is O(1). Models the concept `LinkGraph`.
class graph {
 public:
  graph() = default;

  /// Checks a fragment and freezes it.
  /// @return `malformed_input` when a link names a node that is not there, joins a node to itself, or has a negative or
  ///         non-finite capacity, or when two nodes share a key. Cost: O(n + m).
  [[nodiscard]] static result<graph> from(fragment f);

  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  [[nodiscard]] std::span<const node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const link> links() const { return links_; }
  /// Precondition: the id belongs to this graph.
  [[nodiscard]] const node& at(node_id v) const { return nodes_[v.value]; }
  [[nodiscard]] const link& at(link_id e) const { return links_[e.value]; }

  [[nodiscard]] std::span<const link_id> out_links(node_id v) const {
    return {out_.data() + first_out_[v.value], first_out_[v.value + 1] - first_out_[v.value]};
  }
  [[nodiscard]] node_id head(link_id e) const { return links_[e.value].to; }
  [[nodiscard]] node_id tail(link_id e) const { return links_[e.value].from; }
  [[nodiscard]] bytes_per_second capacity(link_id e) const { return links_[e.value].capacity; }

  /// Node with this key. Cost: O(1).
  [[nodiscard]] std::optional<node_id> find(const std::string& key) const;
  /// Nodes of one kind, in graph order.
  [[nodiscard]] std::vector<node_id> all(node_kind kind) const {
    std::vector<node_id> found;
    for (std::uint32_t v = 0; v < nodes_.size(); ++v)
      if (nodes_[v].kind == kind) found.push_back({v});
    return found;
  }
  /// What the sources had to say beside the graph itself.
  [[nodiscard]] std::span<const finding> findings() const { return findings_; }
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  /// Where a key is in `by_key_`, or is to be put. Precondition: some place is free.
  [[nodiscard]] std::size_t place_of(const std::string& key) const;

  std::string source_;
  std::vector<node> nodes_;
  std::vector<link> links_;
  std::vector<finding> findings_;
  std::vector<std::size_t> first_out_{0};
  std::vector<link_id> out_;
  static constexpr node_id no_node{UINT32_MAX};
  std::vector<node_id> by_key_;  // by hash of the key; a power of two of places
};

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/graph_build.hpp>
