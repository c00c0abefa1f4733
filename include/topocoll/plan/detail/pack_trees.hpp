// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees on their way to a packing: routes in arcs of the reduced network.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/pack_network.hpp>
#include <topocoll/plan/packing.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Trees with routes in arcs of a `pack_network`. An edge of a tree used upwards has the route from child to parent.
struct tree_list {
  struct edge {
    std::uint32_t from, to;
    std::uint32_t first, count;  ///< in `arcs`
  };
  struct tree {
    std::uint32_t root;
    std::int64_t weight;
    std::uint32_t first, count;  ///< in `edges`
    bool upwards;
  };
  std::vector<tree> trees;
  std::vector<edge> edges;
  std::vector<std::uint32_t> arcs;
  std::int64_t pieces = 0;
};

/// Trees that are alike become one. The edges of each are brought into the order of the children first, so that equal
/// trees look equal, then level by level.
template <class = void>
void merge_equal(tree_list& list, std::uint32_t ranks) {
  using edge = tree_list::edge;
  std::vector<std::uint32_t> level(ranks);
  for (const tree_list::tree& t : list.trees) {
    level[t.root] = 0;
    for (std::uint32_t k = t.first; k < t.first + t.count; ++k) level[list.edges[k].to] = level[list.edges[k].from] + 1;
    std::vector<edge> edges(list.edges.begin() + t.first, list.edges.begin() + t.first + t.count);
    seq::sort(edges, [&](const edge& a, const edge& b) {
      return level[a.to] != level[b.to] ? level[a.to] < level[b.to] : a.to < b.to;
    });
    for (std::uint32_t k = 0; k < t.count; ++k) list.edges[t.first + k] = edges[k];
  }
  const auto order = [&](const tree_list::tree& a, const tree_list::tree& b) {
    if (a.root != b.root) return a.root < b.root ? -1 : 1;
    if (a.upwards != b.upwards) return b.upwards ? -1 : 1;
    for (std::uint32_t k = 0; k < a.count; ++k) {
      const edge &x = list.edges[a.first + k], &y = list.edges[b.first + k];
      if (x.to != y.to) return x.to < y.to ? -1 : 1;
      if (x.from != y.from) return x.from < y.from ? -1 : 1;
      if (x.count != y.count) return x.count < y.count ? -1 : 1;
      for (std::uint32_t i = 0; i < x.count; ++i)
        if (list.arcs[x.first + i] != list.arcs[y.first + i])
          return list.arcs[x.first + i] < list.arcs[y.first + i] ? -1 : 1;
    }
    return 0;
  };
  seq::sort(list.trees, [&](const tree_list::tree& a, const tree_list::tree& b) { return order(a, b) < 0; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.trees.size(); ++i) {
    if (kept > 0 && order(list.trees[kept - 1], list.trees[i]) == 0)
      list.trees[kept - 1].weight += list.trees[i].weight;
    else
      list.trees[kept++] = list.trees[i];
  }
  list.trees.resize(kept);
}

/// Writes trees with the arcs of the original network; adds up loads, rate and depth. `mirror` gives every tree its way
/// back (see `mirrors`); without it trees are used in their own direction only.
template <class = void>
[[nodiscard]] packing finished(const tree_list& list, const pack_network& net, const exact_network& original,
                               pack_kind kind, std::span<const std::uint32_t> mirror) {
  packing p;
  p.kind = kind;
  p.weight_per_rank = list.pieces;
  std::vector<std::uint32_t> level(net.ranks);
  const auto write = [&](std::uint32_t arc) {
    const pack_network::arc& a = net.arcs[arc];
    p.arcs.insert(p.arcs.end(), net.route.begin() + a.first, net.route.begin() + a.first + a.count);
  };
  for (const tree_list::tree& t : list.trees) {
    const tree_use use = !mirror.empty() ? tree_use::both : (t.upwards ? tree_use::up : tree_use::down);
    p.trees.push_back({t.root, use, t.weight, static_cast<std::uint32_t>(p.edges.size()), t.count});
    level[t.root] = 0;
    for (std::uint32_t k = t.first; k < t.first + t.count; ++k) {
      const tree_list::edge& e = list.edges[k];
      level[e.to] = level[e.from] + 1;
      p.depth = level[e.to] > p.depth ? level[e.to] : p.depth;
      packed_edge out{e.from, e.to};
      const auto start = static_cast<std::uint32_t>(p.arcs.size());
      for (std::uint32_t i = 0; i < e.count; ++i) write(list.arcs[e.first + i]);
      const auto middle = static_cast<std::uint32_t>(p.arcs.size());
      if (t.upwards) {
        out.first_back = start;
        out.back_count = middle - start;
      } else {
        out.first_arc = start;
        out.arc_count = middle - start;
      }
      if (!mirror.empty()) {
        for (std::uint32_t i = e.count; i-- > 0;) write(mirror[list.arcs[e.first + i]]);
        out.first_back = middle;
        out.back_count = static_cast<std::uint32_t>(p.arcs.size()) - middle;
      }
      p.edges.push_back(out);
    }
  }
  const std::vector<std::int64_t> load = loads_of(p, original);
  std::int64_t units = 0, most = 0;  // the narrowest arc
  for (std::size_t a = 0; a < load.size(); ++a)
    if (load[a] > 0 && (most == 0 || int128{original.arcs[a].units} * most < int128{units} * load[a])) {
      units = original.arcs[a].units;
      most = load[a];
    }
  p.rate = rational{units, most} * rational{p.weight_per_rank};
  return p;
}

}}}}  // namespace topocoll::v0::plan::detail
