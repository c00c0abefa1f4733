// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shortest and then widest paths on any LinkGraph, and all equally short ones as next hops towards a destination.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/concepts.hpp>
#include <topocoll/topo/detail/spread.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// A way from one node to another.
struct path {
  std::vector<link_id> links;         ///< in order; none from a node to itself
  std::optional<link_id> limit;       ///< the first of the links with the least capacity
  bytes_per_second rate = unlimited;  ///< capacity of `limit`; infinite without links

  [[nodiscard]] bool crosses(link_id e) const {
    for (const link_id l : links)
      if (l == e) return true;
    return false;
  }
};

/// What a path must not use, a flag for each node and each link, not 0 = closed; an empty list closes nothing.
/// A path may start or end at a closed node, but not go through it. Links of capacity 0 are closed anyway.
struct closed_parts {
  std::span<const std::uint8_t> nodes{};
  std::span<const std::uint8_t> links{};
};

namespace detail {

/// Whether a way from `source` that has come to `v` may go on along `e`.
struct opens {
  node_id source;
  closed_parts closed;

  step operator()(node_id v, link_id e) const {
    const bool open = (v == source || closed.nodes.empty() || closed.nodes[v.value] == 0) &&
                      (closed.links.empty() || closed.links[e.value] == 0);
    return open ? step::hop : step::closed;
  }
};

/// The path to `v` that the marks remember; empty when there is none.
template <class = void>
[[nodiscard]] std::optional<path> path_from_marks(const way_marks& marks, node_id v) {
  if (!marks.reached(v)) return std::nullopt;
  path way;
  way.rate = {marks.rate[v.value]};
  std::size_t hops = 0;
  for (node_id at = v; marks.cost[at.value] != 0; at = marks.before[at.value]) ++hops;
  way.links.resize(hops);
  for (std::size_t i = hops; i-- > 0; v = marks.before[v.value]) {
    way.links[i] = marks.via[v.value];
    if (marks.rate[v.value] == way.rate.value) way.limit = way.links[i];  // the first one is seen last
  }
  return way;
}

/// The path along `links`, with its least capacity.
template <LinkGraph G>
[[nodiscard]] path measured_path(const G& g, std::vector<link_id> links) {
  path way;
  for (const link_id e : links)
    if (const auto capacity = g.capacity(e); capacity < way.rate) {
      way.rate = capacity;
      way.limit = e;
    }
  way.links = std::move(links);
  return way;
}

}  // namespace detail

/// The best path from one source to every node: fewest hops, among those the largest least capacity, among those the
/// smallest link ids from the far end. The same graph gives the same paths, whatever asks.
class path_tree {
 public:
  /// Cost: O(nodes + links) time, 24 bytes for each node. The graph is not needed afterwards.
  template <LinkGraph G>
  path_tree(const G& g, node_id source, closed_parts closed = {}) : source_(source), marks_(g.node_count()) {
    marks_.start(source);
    detail::spread(g, marks_, {source}, detail::opens{source, closed});
  }

  [[nodiscard]] node_id source() const { return source_; }
  [[nodiscard]] bool reaches(node_id v) const { return marks_.reached(v); }
  /// Links on the path to `v`. Precondition of this and `rate`: reaches(v).
  [[nodiscard]] std::uint32_t hops(node_id v) const { return static_cast<std::uint32_t>(marks_.cost[v.value]); }
  /// Least capacity on the path to `v`; infinite for the source.
  [[nodiscard]] bytes_per_second rate(node_id v) const { return {marks_.rate[v.value]}; }
  /// The path to `v`; empty when there is none. Cost: O(hops).
  [[nodiscard]] std::optional<path> to(node_id v) const { return detail::path_from_marks(marks_, v); }

 private:
  node_id source_;
  detail::way_marks marks_;
};

/// Best path between two nodes; empty when there is none. Cost: O(what is nearer than `to`), and O(nodes) to start.
template <LinkGraph G>
[[nodiscard]] std::optional<path> shortest_widest(const G& g, node_id from, node_id to, closed_parts closed = {}) {
  detail::way_marks marks(g.node_count());
  marks.start(from);
  detail::spread(g, marks, {from}, detail::opens{from, closed}, to);
  return detail::path_from_marks(marks, to);
}

/// A graph with every link turned round; ids stay. It refers to the graph, which must outlive it. Made in
/// O(nodes + links); itself a LinkGraph. Keep it when asking about many destinations.
template <LinkGraph G>
class reversed {
 public:
  explicit reversed(const G& g)
      : forward_(&g), first_(g.node_count() + 1, 0), in_(g.link_count()), tail_(g.link_count()) {
    const auto n = static_cast<std::uint32_t>(g.node_count());
    for (std::uint32_t v = 0; v < n; ++v)
      for (const link_id e : g.out_links({v})) {
        ++first_[g.head(e).value + 1];
        tail_[e.value] = {v};
      }
    for (std::uint32_t v = 0; v < n; ++v) first_[v + 1] += first_[v];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t v = 0; v < n; ++v)
      for (const link_id e : g.out_links({v})) in_[next[g.head(e).value]++] = e;
  }
  [[nodiscard]] const G& forward() const { return *forward_; }
  [[nodiscard]] std::size_t node_count() const { return first_.size() - 1; }
  [[nodiscard]] std::size_t link_count() const { return tail_.size(); }
  [[nodiscard]] std::span<const link_id> out_links(node_id v) const {
    return {in_.data() + first_[v.value], first_[v.value + 1] - first_[v.value]};
  }
  [[nodiscard]] node_id head(link_id e) const { return tail_[e.value]; }
  [[nodiscard]] bytes_per_second capacity(link_id e) const { return forward_->capacity(e); }

 private:
  const G* forward_;
  std::vector<std::size_t> first_;
  std::vector<link_id> in_;
  std::vector<node_id> tail_;
};

/// All shortest paths to one destination, as routers keep them: at each node the links that lead one hop nearer.
///
/// Only hops count, capacities do not (but dead links are left out): this is what equal-cost multipath spreads over.
class next_hops {
 public:
  /// Closed nodes have next hops, for paths that start there, but none lead to them. Cost: O(nodes + links).
  template <LinkGraph G>
  next_hops(const reversed<G>& g, node_id destination, closed_parts closed = {}) : destination_(destination) {
    detail::way_marks marks(g.node_count());
    marks.start(destination);
    const auto order = detail::spread(g, marks, {destination}, detail::opens{destination, closed});
    hops_ = std::move(marks.cost);
    first_.assign(g.node_count() + 1, 0);
    const G& forward = g.forward();
    for (std::uint32_t v = 0; v < g.node_count(); ++v) {
      for (const link_id e : forward.out_links({v}))
        if (leads_nearer(forward, v, e, closed)) links_.push_back(e);
      first_[v + 1] = links_.size();
    }
    count_.assign(g.node_count(), 0);
    count_[destination.value] = 1;
    for (const node_id v : order)
      for (const link_id e : at(v)) count_[v.value] += count_[forward.head(e).value];
  }
  template <LinkGraph G>
  next_hops(const G& g, node_id destination, closed_parts closed = {})
      : next_hops(reversed<G>(g), destination, closed) {}

  [[nodiscard]] node_id destination() const { return destination_; }
  [[nodiscard]] bool reaches(node_id v) const { return hops_[v.value] != detail::not_reached; }
  /// Links on each shortest path from `v`. Precondition: reaches(v).
  [[nodiscard]] std::uint32_t hops(node_id v) const { return static_cast<std::uint32_t>(hops_[v.value]); }
  /// Links on which a shortest path from `v` may start, in the order of the graph; none at the destination and at a node
  /// that cannot reach it.
  [[nodiscard]] std::span<const link_id> at(node_id v) const {
    return {links_.data() + first_[v.value], first_[v.value + 1] - first_[v.value]};
  }
  /// How many shortest paths lead from `v`; parallel links count. A double, because there can be very many.
  [[nodiscard]] double path_count(node_id v) const { return count_[v.value]; }

 private:
  template <LinkGraph G>
  [[nodiscard]] bool leads_nearer(const G& g, std::uint32_t v, link_id e, closed_parts closed) const {
    const node_id w = g.head(e);
    if (hops_[v] == detail::not_reached || hops_[w.value] == detail::not_reached || hops_[w.value] + 1 != hops_[v])
      return false;
    const bool passed = w == destination_ || closed.nodes.empty() || closed.nodes[w.value] == 0;
    const bool open = closed.links.empty() || closed.links[e.value] == 0;
    return passed && open && g.capacity(e).value > 0;
  }

  node_id destination_;
  std::vector<std::uint64_t> hops_;
  std::vector<double> count_;
  std::vector<std::size_t> first_;
  std::vector<link_id> links_;
};

/// Shortest paths from `from` to the destination of `ways`, at most `most` of them, in the order of link ids at each node.
/// Cost: O(number of paths * hops).
template <LinkGraph G>
[[nodiscard]] std::vector<path> equal_paths(const G& g, const next_hops& ways, node_id from, std::size_t most) {
  std::vector<path> found;
  if (!ways.reaches(from)) return found;
  std::vector<link_id> links;        // of the path being followed
  std::vector<std::size_t> next{0};  // which link to try next at each of its nodes
  while (!next.empty() && found.size() < most) {
    const node_id v = links.empty() ? from : g.head(links.back());
    const auto choices = ways.at(v);
    if (v == ways.destination()) {
      found.push_back(detail::measured_path(g, links));
    } else if (next.back() < choices.size()) {
      links.push_back(choices[next.back()++]);
      next.push_back(0);
      continue;
    }
    next.pop_back();
    if (!links.empty()) links.pop_back();
  }
  return found;
}

/// What part of a flow goes over a link.
struct link_share {
  link_id link;
  double share = 0;  ///< above 0, at most 1
};

/// How equal-cost multipath spreads a large mix of flows from `from`: at each node evenly over its next hops, parallel
/// links counted each. In the order in which the flow meets the links. Empty when there is no path or nothing to cross.
/// Cost: O(links that are crossed * log), and O(nodes) to start.
template <LinkGraph G>
[[nodiscard]] std::vector<link_share> equal_split(const G& g, const next_hops& ways, node_id from) {
  std::vector<link_share> shares;
  if (!ways.reaches(from)) return shares;
  std::vector<double> arriving(g.node_count(), 0);
  arriving[from.value] = 1;
  std::vector<node_id> level{from};
  for (std::size_t i = 0; i < level.size(); ++i) {  // breadth first: a node comes after all that send to it
    const node_id v = level[i];
    const auto choices = ways.at(v);
    for (const link_id e : choices) {
      const double share = arriving[v.value] / static_cast<double>(choices.size());
      const node_id w = g.head(e);
      if (arriving[w.value] == 0) level.push_back(w);
      arriving[w.value] += share;
      shares.push_back({e, share});
    }
  }
  return shares;
}

}}}  // namespace topocoll::v0::topo
