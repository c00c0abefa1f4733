// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a problem sit: in which box, on which rail, in which pod.
#include <cstdint>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Levels of the hardware below the ranks; index all vectors by rank.
///
/// A box is what NVLink or one host joins: ranks of one host share a box, and so do ranks whose NVLink or XGMI wires meet,
/// also across hosts. A pod is a set of boxes whose nearest NICs share leaf switches; when no NIC of a rank leads to a leaf,
/// all boxes are one pod. A rail is the place of a rank among the ranks of its box: 0 to the size of the box less one, in
/// the order of the device numbers, but so that ranks whose nearest NICs hang on equal leaves of their pods have equal
/// rails where the sizes of the boxes allow it.
/// Boxes and pods are numbered in the order of their lowest rank.
struct levels {
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> rail;
  std::vector<std::uint32_t> pod;
  /// Bytes per second at which a rank reaches the network: the narrowest link on the way through each of its nearest NICs,
  /// added up; NICs that are nearest to several ranks are shared evenly. 0 when no NIC with a cable is near.
  std::vector<double> entry;
  std::uint32_t boxes = 0;
  std::uint32_t pods = 0;
  std::uint32_t rails = 0;    ///< ranks of the fullest box
  bool fabric_known = false;  ///< a leaf switch was found for every box
  /// Per box: all its ranks hang on one NVSwitch plane or directly on each other, so all pairs can talk at once.
  std::vector<bool> all_pairs;
};

/// Reads the levels off the graph.
/// @return `invalid_argument` without a graph, without ranks, or when a rank sits on no node of the graph
/// Cost: O(nodes + links + ranks * size of a host).
template <class = void>
[[nodiscard]] result<levels> levels_of(const problem& q);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/levels_walk.hpp>
