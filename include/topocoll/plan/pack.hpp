// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds weighted trees that use the links of a network as fully as any trees can, and checks them.
#include <cstdint>
#include <span>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/packing.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What is asked of the trees.
struct pack_options {
  /// Share of the limit that suffices; less than 1 allows fewer and larger pieces.
  double wanted = 1;
  /// Most pieces per rank of weight 1 (gather) or in all (spanning), so that chunks stay large.
  std::int64_t most_pieces = 4096;
  /// Most edges from a root to a rank; 0 for any number. A small number costs bandwidth: see `packing::rate`.
  std::uint32_t most_depth = 0;
  /// About how many steps the search may take; the exact method is used where it is expected to need fewer.
  std::uint64_t effort = 400'000'000;
};

/// Packs trees into a network.
///
/// @param net      capacities; nodes that are no ranks only forward, they neither copy nor reduce
/// @param node_of  the node of each rank; no two ranks on one node
/// @param weight   shards per rank, 0 or more, one at least above 0; empty means 1 each. Only for gather.
/// @return  `invalid_argument` for fewer than two ranks, ranks that share a node, weights that are not one per rank or
///          not positive in all, or no pieces; `unavailable` when some rank cannot be reached; `unsupported` when
///          capacities do not fit
///
/// Methods, in the order in which they are tried (docs/models/packing.md):
/// 1. Ranks that look alike by a commutative group of automorphisms: trees of one rank under a price per orbit of arcs,
///    mixed by an exact linear program, and moved to the other ranks by the group. Optimal among unicast trees.
/// 2. Otherwise, within `effort`: switches are split off and out-trees grown one edge at a time, each step proved safe by
///    maximum flows. Reaches the cut bound wherever every switch has as much capacity in as out. For spanning trees with
///    equal capacity both ways the roots are chosen first, so that half of each capacity suffices for the downward half.
/// 3. Otherwise, and under `most_depth`: trees of least price, where loaded arcs are dear; until `wanted` is reached.
/// Equal input gives equal trees on all machines: no floating-point number takes part in a decision (but for `wanted`).
template <class = void>
[[nodiscard]] result<packing> pack(const detail::exact_network& net, std::span<const std::uint32_t> node_of,
                                   std::span<const std::int64_t> weight, pack_kind kind,
                                   const pack_options& options = {});

/// Whether a packing is what it says, recomputed from its trees: each spans all ranks once with parents before children,
/// routes are connected arcs of the network between the ends of their edges, weights per root are as promised, `rate` and
/// `depth` follow from the trees. Says nothing about `limit` except that `rate` does not exceed it.
/// @return `bug` with the first contradiction. Shares no code with `pack`. Cost: O(size of the packing + arcs).
template <class = void>
[[nodiscard]] result<void> check(const packing& trees, const detail::exact_network& net,
                                 std::span<const std::uint32_t> node_of, std::span<const std::int64_t> weight);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/pack_check.hpp>
#include <topocoll/plan/detail/pack_search.hpp>
