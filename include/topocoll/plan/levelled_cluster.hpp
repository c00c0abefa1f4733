// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster described by levels, from pods to GPUs, with what is not as the levels say.
#include <cstdint>
#include <optional>
#include <vector>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Capacity of a connection in both directions: from the lower end to the upper, and back.
struct two_way {
  bytes_per_second up{}, down{};

  /// Both directions alike.
  [[nodiscard]] static constexpr two_way both(bytes_per_second rate) { return {rate, rate}; }
};

/// How units are joined.
enum class joint : std::uint8_t {
  through_switch,  ///< each by its own connection to switches that do not limit them otherwise
  in_pairs         ///< each two of them by a connection of their own (full mesh)
};

/// A tier of a fabric: what joins the units below it.
struct fabric_tier {
  std::uint32_t units = 1;  ///< how many it joins
  /// Of one switch at the top of a unit into this tier; where units are joined in pairs, to one other unit. Where rails
  /// are apart in the unit, each of them has such a switch.
  two_way uplink{};
  joint how = joint::through_switch;
  /// True: switches of this tier carry all rails, and there is one kind of switch at its top. False: each rail has
  /// switches of its own (rail-only networks). Without meaning where the rails have been joined below.
  bool joins_rails = true;
};

/// Something in a cluster that is not as the levels say. Later ones win where two speak of the same.
struct level_exception {
  /// Which unit: its number in each level from the outside in, as far as needed: {pod}, {pod, box}, {pod, box, gpu} in a
  /// cluster of one tier. What is set below holds for all of the unit.
  std::vector<std::uint32_t> unit;
  std::optional<two_way> nic{};     ///< of its GPUs
  std::optional<two_way> nvlink{};  ///< of its GPUs; only where boxes have NVSwitches
  std::optional<two_way> uplink{};  ///< of the switches at its top; only for units that a tier joins through switches
  std::optional<std::uint32_t> rail{};   ///< `uplink` is that of the switch of this rail only
  std::optional<std::uint32_t> units{};  ///< how many units it has, at most as many as the others: the first ones
};

/// A cluster of boxes of GPUs with a NIC each, on leaves, under any number of tiers.
struct levelled_cluster {
  std::vector<fabric_tier> tiers{};  ///< from the outside in; the innermost joins pods. None: the cluster is one pod
  std::uint32_t boxes = 1;           ///< per pod
  std::uint32_t gpus = 8;            ///< per box
  bool rails =
      true;       ///< GPU i of all boxes of a pod is on leaf i of the pod; otherwise all GPUs of a pod are on one leaf
  two_way nic{};  ///< of a GPU to its leaf
  two_way nvlink{};  ///< of a GPU to the NVSwitches of its box; joined in pairs: to one other GPU (up is used)
  joint inside = joint::through_switch;  ///< how the GPUs of a box are joined
  std::vector<level_exception> exceptions{};
};

/// Pods of boxes on rails and one tier of spines, all links alike both ways.
///
/// @param oversubscription  what the NICs below a leaf can send, by what its uplinks carry: 1, 2, 3, …
template <class = void>
[[nodiscard]] levelled_cluster rail_cluster(std::uint32_t pods, std::uint32_t boxes, std::uint32_t gpus,
                                            bytes_per_second nvlink, bytes_per_second nic,
                                            double oversubscription = 1) {
  levelled_cluster c;
  if (pods > 1) c.tiers.push_back({pods, two_way::both(nic * boxes / oversubscription)});
  c.boxes = boxes;
  c.gpus = gpus;
  c.nic = two_way::both(nic);
  c.nvlink = two_way::both(nvlink);
  return c;
}

}}}  // namespace topocoll::v0::plan
