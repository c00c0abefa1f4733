// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of a graph look alike from everywhere, seen by the ranks of a problem.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/symmetry_classes.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Nodes of a graph by class. Nodes of one class send as much to every class, and receive as much from it; ranks and
/// other nodes are never in one class. The coarsest such partition.
struct symmetry {
  std::vector<std::uint32_t> class_of{};  ///< per node of the graph
  std::uint32_t classes = 0;
  bool checked = false;  ///< the sums were added up and are equal; false only after three collisions of hashes in a row
};

/// Classes of nodes that look alike: a uniform cluster has about as many as it has kinds of devices, whatever its size.
///
/// Looking alike is weaker than being alike: nodes of a class need not be exchangeable (two triangles look like a hexagon).
/// @return as `detail::network_of`
/// Cost: O(links x rounds), a round for each step that a difference travels; checked in O(links).
/// Source: colour refinement; Cardon and Crochemore, "Partitioning a graph in O(|A| log |V|)", 1982.
template <CostModel M>
[[nodiscard]] result<symmetry> symmetry_of(const topo::graph& g, std::span<const node_id> ranks, const M& cost) {
  auto net = detail::network_of(g, ranks, cost);
  if (!net) return net.error();
  std::vector<std::uint64_t> colours(net->net.nodes);
  for (std::uint32_t v = 0; v < net->net.nodes; ++v)
    colours[v] = 2 * static_cast<std::uint64_t>(g.at(net->origin[v]).kind) + (net->weight[v] > 0 ? 1 : 0);
  detail::node_classes c;
  symmetry s;
  for (std::uint64_t seed = 0; seed < 3 && !s.checked; ++seed) {
    c = detail::refine(net->net, colours, seed);
    s.checked = detail::is_equitable(net->net, net->weight, c);
  }
  // Without the nodes that only stand for ranks which share a device.
  const std::vector<std::uint64_t> keys(c.class_of.begin(),
                                        c.class_of.begin() + static_cast<std::ptrdiff_t>(g.node_count()));
  c = detail::number_keys(keys);
  s.class_of = std::move(c.class_of);
  s.classes = c.count;
  return s;
}
template <class = void>
[[nodiscard]] result<symmetry> symmetry_of(const topo::graph& g, std::span<const node_id> ranks) {
  return symmetry_of(g, ranks, alpha_beta::ideal());
}

}}}  // namespace topocoll::v0::plan
