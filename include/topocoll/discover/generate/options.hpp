// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster to generate, as plain values: hosts, switches, oversubscription, ranks, planted faults.
#include <cstdint>
#include <optional>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 {

/// What a planted fault is about. Numbers count from 0, as in "node3/nic2", "leaf1/spine0", "spine2/core0".
struct fabric_part {
  enum class kind_t : std::uint8_t { host, gpu, nic, leaf, spine, core, leaf_uplink, spine_uplink };
  kind_t kind = kind_t::nic;
  std::uint32_t first = 0;   ///< host, leaf, spine or core switch
  std::uint32_t second = 0;  ///< GPU or NIC of the host; spine of the leaf's uplink; core switch of the spine's

  friend constexpr bool operator==(const fabric_part&, const fabric_part&) = default;
};

/// Something that is wrong in a generated cluster.
struct planted_fault {
  enum class kind_t : std::uint8_t {
    missing,    ///< the part is not there: a host, GPU, NIC, switch or uplink
    unplugged,  ///< the NIC is there, its cable is not
    slow,       ///< the part's connection runs at `share` of its rate: NIC (port and cable), uplink, GPU (PCIe or C2C)
    nvlinks_down  ///< `links` of the GPU's NVLinks are down
  };
  kind_t kind = kind_t::missing;
  fabric_part part;
  rational share{1};        ///< of `slow`: above 0, below 1
  std::uint32_t links = 0;  ///< of `nvlinks_down`

  friend constexpr bool operator==(const planted_fault&, const planted_fault&) = default;
};

/// How ranks are laid over GPUs.
struct rank_order {
  enum class kind_t : std::uint8_t {
    packed,     ///< host after host, GPUs of a host in order
    scattered,  ///< hosts in turn from each pod or leaf, GPUs of a host together: what a scheduler without topology does
    round_robin,  ///< GPU 0 of every host, then GPU 1 of every host, …
    shuffled      ///< hosts in an order drawn from `seed`, GPUs of a host together
  };
  kind_t kind = kind_t::packed;
  std::uint64_t seed = 0;  ///< of `shuffled`

  friend constexpr bool operator==(const rank_order&, const rank_order&) = default;
};

/// A cluster: equal hosts on a network of leaves, spines and core switches.
///
/// Rail-optimised: each pod has one leaf per rail, and the leaf of rail i serves NIC i of every host of the pod. Otherwise
/// a leaf serves all NICs of its hosts. The uplinks of a leaf carry together what its cables to hosts carry, divided by
/// `oversubscription`, spread evenly over the spines that it reaches: all of them, or those of its pod under core
/// switches. Core switches join the spines of all pods in the same way. Port counts of switches are not limited.
///
/// What is left empty is chosen by `shape_of`, which also refuses what cannot be built.
struct fabric_options {
  host_model host = models::hgx_h100;
  std::uint32_t nodes = 1;              ///< hosts, called "node0", "node1", …
  std::vector<std::uint32_t> split;     ///< hosts of each pod (rail-optimised) or leaf; empty: as even as can be
  std::optional<std::uint32_t> leaves;  ///< all of them; 0 for hosts without a network
  std::optional<std::uint32_t> pods;
  std::optional<std::uint32_t> spines;  ///< all of them; 0 for a pod whose rails do not meet
  std::uint32_t cores = 0;              ///< switches of the third tier
  std::optional<bool> rail_optimised;
  rational oversubscription{1};       ///< of leaves: capacity to hosts by capacity to spines
  rational core_oversubscription{1};  ///< of spines: capacity to leaves by capacity to core switches
  topo::link_kind network = topo::link_kind::infiniband;  ///< or ethernet
  host_detail detail = host_detail::automatic;
  std::optional<rank_order> order;  ///< writes `global_rank` into the GPUs; empty: no ranks
  std::vector<planted_fault> faults;

  friend bool operator==(const fabric_options&, const fabric_options&) = default;
};

/// What `fabric_options` comes to once everything is chosen.
struct fabric_shape {
  std::uint32_t nodes = 0;
  std::uint32_t rails = 0;  ///< NICs per host
  bool rail_optimised = false;
  std::uint32_t pods = 0;  ///< groups of hosts that reach each other below the top tier; 0 without a network
  std::uint32_t leaves = 0;
  std::uint32_t spines = 0;
  std::uint32_t cores = 0;
  std::vector<std::uint32_t> split;  ///< hosts of each pod (rail-optimised) or of each leaf
  host_detail detail = host_detail::full;

  [[nodiscard]] std::uint32_t leaves_per_pod() const { return pods == 0 ? 0 : leaves / pods; }
  /// Spines that one leaf reaches.
  [[nodiscard]] std::uint32_t spines_per_leaf() const { return cores == 0 ? spines : spines / pods; }
};

}}  // namespace topocoll::v0
