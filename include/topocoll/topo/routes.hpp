// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which way data takes between devices of a topology graph, NCCL's class of that way, and the rate to expect, with reasons.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/paths.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Ways that need another GPU's help; both are off unless asked for, because a program must arrange them.
struct route_options {
  bool nvb = false;  ///< between GPUs by way of one other GPU, NVLink (or XGMI) on both sides
  bool pxn = false;  ///< from a GPU to a NIC by NVLink to another GPU of the NIC's host that is near the NIC
};

/// What a path should reach and why: from capacities of links alone, no other traffic, no table of products.
struct path_rate {
  bytes_per_second rate{};       ///< 0 when there is no path; infinite from a node to itself
  std::optional<link_id> limit;  ///< the first link that limits it; empty in these two cases
  path_class kind = path_class::DIS;
  trust how = trust::reported;  ///< of the least trusted link on the way
  std::string
      why;  ///< "48.0 GB/s, limited by the Gen5 x16 uplink of switch 0000:18:00.0 (shared by 2 NICs)", then `doubt`
  std::string doubt;  ///< which figures on the way are only assumed, and for what reason; empty when none is
};

/// NCCL's class of a path in `g` that starts at `from`.
///
/// Network links make it NET; otherwise two NUMA domains SYS; one PHB (C2C when only chip-to-chip links touch it, P2C when
/// one of the ends is a NIC and the other side of the domain is a chip-to-chip link); NVLink or XGMI alone NVL, or NVB
/// through a GPU; NVLink to a GPU and PCIe from there PXN; PCIe alone PIX with at most one switch (root ports do not
/// count), PXB with more. What stays within one adapter, or between a NUMA domain and its memory, is LOC.
/// Source of the classes: NCCL 2.28 graph/topo.h and paths.cc. Cost: O(links of the path).
template <class = void>
[[nodiscard]] path_class class_of(const graph& g, const path& way, node_id from);

/// The ways from one device to all others.
///
/// Fewest CPUs on the way win, then fewest hops, then the largest least capacity: so data leaves a host by a NIC near the
/// sender and enters by one near the receiver, as NCCL has it. GPUs, memories and PCIe devices are not passed through;
/// NICs and ports are, and CPUs, which stand for host bridges. A way between devices of one host (or of one NVLink domain)
/// stays off the network if it can; a way over the network does not pass through a third host.
/// The graph must outlive this object. Cost: O(nodes + links) once, 25 bytes for each node.
class routes {
 public:
  routes(const graph& g, node_id from, route_options options = {}) : routes(g, from, options, std::nullopt) {}

  [[nodiscard]] node_id from() const { return from_; }
  /// The way to `to`; empty when there is none. Cost: O(hops), with `nvb` or `pxn` also the links of the GPUs nearby.
  [[nodiscard]] std::optional<path> to(node_id to) const;
  /// Class of the way to `to`; DIS when there is none.
  [[nodiscard]] path_class kind(node_id to) const {
    const auto way = this->to(to);
    return way ? class_of(*g_, *way, from_) : path_class::DIS;
  }
  /// What the way to `to` should reach. Cost: as `to`, and the PCIe tree of the host for the reasons.
  [[nodiscard]] path_rate rate(node_id to) const;

 private:
  friend std::optional<path> route(const graph& g, node_id from, node_id to, route_options options);
  friend path_rate expected_rate(const graph& g, node_id from, node_id to, route_options options);
  routes(const graph& g, node_id from, route_options options, std::optional<node_id> only);
  [[nodiscard]] std::optional<path> by_gpu(node_id to) const;
  [[nodiscard]] std::optional<path> by_peer_nic(node_id to, const std::optional<path>& direct) const;

  const graph* g_;
  node_id from_;
  route_options options_;
  detail::way_marks marks_;
};

/// The way between two devices, as `routes` finds it. Cheaper than `routes` for one pair: stops when it is found.
[[nodiscard]] inline std::optional<path> route(const graph& g, node_id from, node_id to, route_options options = {});

/// Class of the way between two devices.
template <class = void>
[[nodiscard]] path_class classify(const graph& g, node_id from, node_id to, route_options options = {}) {
  const auto way = route(g, from, to, options);
  return way ? class_of(g, *way, from) : path_class::DIS;
}

/// What a transfer between two devices should reach when nothing else is under way.
[[nodiscard]] inline path_rate expected_rate(const graph& g, node_id from, node_id to, route_options options = {});

/// What `way`, which leads from `from` to `to`, should reach; no way gives the sentence that there is none.
template <class = void>
[[nodiscard]] path_rate rate_of(const graph& g, const std::optional<path>& way, node_id from, node_id to);

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/routes_impl.hpp>
