// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weighted trees with routes on a network, and the exact rate that they reach.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/plan/detail/exact_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What the trees are for.
enum class pack_kind : std::uint8_t {
  /// Every rank r is the root of out-trees of the total weight w_r, and each tree is used once, downwards: all-gather,
  /// and reduce-scatter on the reversed network. With a weight at one rank only: broadcast, reduce, scatter, gather.
  gather,
  /// Roots are free; the trees are used once upwards, to reduce, and once downwards, to broadcast: all-reduce.
  spanning
};

/// Which way a tree is used.
enum class tree_use : std::uint8_t {
  down,  ///< data flow from the root to all ranks, along the routes `arcs`
  up,    ///< data flow from all ranks to the root, along the routes `back`
  both   ///< first up, then down
};

/// A step of a tree: rank `from` is the parent, rank `to` the child. Routes are numbers of arcs in `packing::arcs`.
struct packed_edge {
  std::uint32_t from = 0, to = 0;
  std::uint32_t first_arc = 0, arc_count = 0;    ///< from `from` to `to`; nothing in trees that are used upwards only
  std::uint32_t first_back = 0, back_count = 0;  ///< from `to` to `from`; nothing in trees that are used downwards only
};

/// A tree that spans all ranks. Its edges stand together, parents before children.
struct packed_tree {
  std::uint32_t root = 0;
  tree_use use = tree_use::down;
  std::int64_t weight = 0;
  std::uint32_t first_edge = 0, edge_count = 0;
};

/// Trees with weights, and what they reach.
///
/// gather: the trees of root r have the weights w_r * weight_per_rank in all. spanning: trees used downwards have
/// weight_per_rank in all, and so have those used upwards, root by root. So data cut into weight_per_rank pieces (per
/// rank, or of the whole array) travel along the trees, `weight` pieces on each.
struct packing {
  pack_kind kind = pack_kind::gather;
  std::vector<packed_tree> trees;
  std::vector<packed_edge> edges;
  std::vector<std::uint32_t> arcs;  ///< numbers of arcs of the network, route by route
  std::int64_t weight_per_rank = 0;
  /// What the trees reach when nothing else limits: the least capacity / load over the arcs, times weight_per_rank. In
  /// units of the network: bandwidth per rank of weight 1 (gather), or bandwidth of the whole array (spanning).
  rational rate;
  /// What no trees can exceed, in the same units: the narrowest cut (gather), the narrowest family of node sets
  /// (spanning). `rate == limit` means that the trees are the best possible.
  rational limit;
  std::uint32_t depth = 0;  ///< most edges from a root to a rank
  std::string method;       ///< how the trees were found and what is known about them, in words
};

/// Load of every arc of the network, in pieces.
template <class = void>
[[nodiscard]] std::vector<std::int64_t> loads_of(const packing& trees, const detail::exact_network& net) {
  std::vector<std::int64_t> load(net.arcs.size(), 0);
  for (const packed_tree& t : trees.trees)
    for (std::uint32_t k = t.first_edge; k < t.first_edge + t.edge_count; ++k) {
      const packed_edge& e = trees.edges[k];
      for (std::uint32_t i = 0; i < e.arc_count; ++i) load[trees.arcs[e.first_arc + i]] += t.weight;
      for (std::uint32_t i = 0; i < e.back_count; ++i) load[trees.arcs[e.first_back + i]] += t.weight;
    }
  return load;
}

}}}  // namespace topocoll::v0::plan
