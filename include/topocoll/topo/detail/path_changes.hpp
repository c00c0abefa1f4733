// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes of paths that differ between two hosts whose devices are recognised.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/topo/detail/compare.hpp>
#include <topocoll/topo/detail/match.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/routes.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// A host without the network, cut out of a graph in the time of its own nodes and links.
struct local_host {
  graph local;
  std::vector<std::uint32_t> original;
};

/// @param place  one entry for each node of the graph, all `no_place`; so again afterwards
template <class = void>
[[nodiscard]] local_host local_host_of(const graph& g, const std::vector<node_id>& nodes,
                                       std::vector<std::uint32_t>& place) {
  local_host h;
  fragment f;
  const auto take = [&](node_id v) {
    if (place[v.value] != no_place) return;
    place[v.value] = f.add(g.at(v)).value;
    h.original.push_back(v.value);
  };
  for (const node_id v : nodes) take(v);
  for (const node_id v : nodes)
    for (const link_id e : g.out_links(v))
      if (g.at(g.head(e)).kind == node_kind::nvswitch) take(g.head(e));
  for (std::size_t i = 0; i < h.original.size(); ++i)
    for (const link_id e : g.out_links({h.original[i]})) {
      const link& l = g.at(e);
      if (place[l.to.value] == no_place || is_cable(l.kind)) continue;
      f.links.push_back(l);
      f.links.back().from = {place[l.from.value]};
      f.links.back().to = {place[l.to.value]};
    }
  for (const std::uint32_t v : h.original) place[v] = no_place;
  if (auto made = graph::from(std::move(f))) h.local = std::move(*made);  // part of a checked graph: it always is
  return h;
}

/// Classes of paths compared between two hosts.
template <class = void>
class path_comparer {
 public:
  path_comparer(const side& a, const side& b, const told_kinds& told_a, const told_kinds& told_b)
      : a_(a),
        b_(b),
        told_a_(told_a),
        told_b_(told_b),
        place_a_(a.g->node_count(), no_place),
        place_b_(b.g->node_count(), no_place) {}

  /// Pairs of GPUs, and of GPUs and NICs, that are on both sides and whose paths belong to different classes; how the
  /// devices were recognised is left open. Cost: O(nodes and links of the hosts) for each GPU.
  [[nodiscard]] std::vector<path_change> run(const group& x, const group& y) {
    const local_host l = local_host_of(*a_.g, x.nodes, place_a_);
    const local_host r = local_host_of(*b_.g, y.nodes, place_b_);
    std::vector<std::uint32_t> in_r(l.original.size(), no_place);
    for (std::uint32_t i = 0; i < r.original.size(); ++i) place_b_[r.original[i]] = i;
    for (std::uint32_t i = 0; i < l.original.size(); ++i)
      if (const std::uint32_t v = a_.match[l.original[i]]; v != no_place) in_r[i] = place_b_[v];
    for (const std::uint32_t v : r.original) place_b_[v] = no_place;
    std::vector<node_id> gpus, ends;
    for (std::uint32_t i = 0; i < l.original.size(); ++i) {
      const node_kind kind = l.local.at(node_id{i}).kind;
      if (in_r[i] == no_place) continue;
      if (kind == node_kind::gpu) gpus.push_back({i});
      if (kind == node_kind::gpu || kind == node_kind::nic) ends.push_back({i});
    }
    const auto same = [&](node_id v) {
      const std::uint32_t u = l.original[v.value];
      return same_device{{u}, {a_.match[u]}, topo::recognised::by_key};
    };
    std::vector<path_change> changes;
    for (const node_id from : gpus) {
      const routes in_left(l.local, from);
      const routes in_right(r.local, {in_r[from.value]});
      for (const node_id to : ends) {
        if (l.local.at(to).kind == node_kind::gpu && to <= from) continue;
        const path_class p = in_left.kind(to);
        const path_class q = in_right.kind({in_r[to.value]});
        if (p != q && !untold(p, told_b_) && !untold(q, told_a_)) changes.push_back({same(from), same(to), p, q});
      }
    }
    return changes;
  }

 private:
  /// A class that rests on links which the other graph does not know; and no way at all is no answer.
  [[nodiscard]] static bool untold(path_class c, const told_kinds& other) {
    if (c == path_class::DIS) return true;
    return (c == path_class::NVL || c == path_class::NVB) && !other.of(link_kind::nvlink);
  }

  const side& a_;
  const side& b_;
  const told_kinds& told_a_;
  const told_kinds& told_b_;
  std::vector<std::uint32_t> place_a_, place_b_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
