// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cheapest routes through switches, and cheapest out-trees over them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/pack_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Cheapest routes from one rank to those that it reaches through switches only. Source: Dijkstra, 1959.
template <class = void>
class route_finder {
 public:
  explicit route_finder(const pack_network& net) : net_(net) {}

  void run(std::uint32_t from, std::span<const std::int64_t> price) {
    cost_.assign(net_.nodes, far);
    by_.assign(net_.nodes, none);
    heap_.clear();
    from_ = from;
    relax(from, 0, price);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const auto [cost, v] = heap_.back();
      heap_.pop_back();
      if (cost == cost_[v] && v >= net_.ranks) relax(v, cost, price);
    }
  }
  [[nodiscard]] bool reached(std::uint32_t r) const { return by_[r] != none; }
  [[nodiscard]] std::int64_t cost(std::uint32_t r) const { return cost_[r]; }
  /// Arcs of the route to a rank that was reached.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t r) const {
    std::vector<std::uint32_t> back;
    for (std::uint32_t v = r; v != from_ || back.empty(); v = net_.arcs[back.back()].from) back.push_back(by_[v]);
    return {back.rbegin(), back.rend()};
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::int64_t far = INT64_MAX;
  using entry = std::pair<std::int64_t, std::uint32_t>;
  static bool later(const entry& a, const entry& b) { return a > b; }

  void relax(std::uint32_t v, std::int64_t cost, std::span<const std::int64_t> price) {
    for (std::uint32_t a = net_.leaving[v]; a < net_.leaving[v + 1]; ++a) {
      const std::uint32_t to = net_.arcs[a].to;
      if (to == from_ || price[a] < 0 || cost + price[a] >= cost_[to]) continue;  // a negative price closes an arc
      cost_[to] = cost + price[a];
      by_[to] = a;
      if (to < net_.ranks) continue;  // ranks end a route
      heap_.push_back({cost_[to], to});
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }

  const pack_network& net_;
  std::uint32_t from_ = 0;
  std::vector<std::int64_t> cost_;
  std::vector<std::uint32_t> by_;
  std::vector<entry> heap_;
};

/// A possible edge of a tree. `tag` is for the caller.
struct priced_edge {
  std::uint32_t from, to;
  std::int64_t cost;
  std::uint32_t tag;
};
/// An edge of a tree.
struct grown_edge {
  std::uint32_t from, to, tag;
};

/// A cheapest out-tree from `root` over nodes 0 to n-1, and among these one that grows level by level.
///
/// First, while some strongly connected part of the edges without cost has no such edge into it, the costs of all edges
/// into it fall by the least of them. Then a tree of edges without cost that enters each such part once is optimal; it is
/// grown breadth first. `edges` loses its costs. False when a node cannot be reached.
/// Source: Fulkerson, "Packing rooted directed cuts in a weighted directed graph", 1974. Cost: O(levels * edges).
template <class = void>
class arborescence_finder {
 public:
  arborescence_finder(std::uint32_t n, std::uint32_t root, std::vector<priced_edge>& edges)
      : n_(n), root_(root), edges_(edges) {}

  [[nodiscard]] bool run(std::vector<grown_edge>& tree) { return prepare() && grow(tree); }

  /// The first half of `run`: afterwards `grow` gives optimal trees.
  [[nodiscard]] bool prepare() {
    // Edges by tail.
    first_.assign(n_ + 1, 0);
    for (const priced_edge& e : edges_) ++first_[e.from + 1];
    for (std::uint32_t v = 0; v < n_; ++v) first_[v + 1] += first_[v];
    sorted_.resize(edges_.size());
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for (std::uint32_t k = 0; k < edges_.size(); ++k) sorted_[at[edges_[k].from]++] = k;
    inside_.assign(n_, {});
    part_.resize(n_);
    for (std::uint32_t v = 0; v < n_; ++v) part_[v] = v;
    parts_ = n_;
    for (bool changed = true; changed;) {
      if (!lower(changed)) return false;
      if (changed) find_parts();
    }
    return true;
  }

  /// Another optimal tree, level by level: of the edges that a rank of the next level may have it gets the one of least
  /// `score(tag)`; `taken(tag)` tells about each edge, so that scores can follow.
  template <class Score, class Taken>
  [[nodiscard]] bool grow_by(std::vector<grown_edge>& tree, const Score& score, const Taken& taken) const {
    tree.clear();
    std::vector<bool> has(n_, false), entered(sets_, false);
    std::vector<std::uint32_t> level{root_}, next;
    has[root_] = true;
    for (const std::uint32_t s : inside_[root_]) entered[s] = true;
    std::vector<std::vector<std::uint32_t>> choice(n_);
    while (!level.empty()) {
      for (auto& c : choice) c.clear();
      for (const std::uint32_t x : level)
        for (std::uint32_t k = first_[x]; k < first_[x + 1]; ++k)
          if (edges_[sorted_[k]].cost == 0 && !has[edges_[sorted_[k]].to])
            choice[edges_[sorted_[k]].to].push_back(sorted_[k]);
      next.clear();
      for (std::uint32_t y = 0; y < n_; ++y) {
        std::uint32_t best = none;
        std::int64_t least = 0;
        for (const std::uint32_t k : choice[y]) {
          bool allowed = true;
          for (const std::uint32_t s : inside_[y])
            if (entered[s]) allowed = allowed && within(edges_[k].from, s);
          if (!allowed) continue;
          const std::int64_t here = score(edges_[k].tag);
          if (best != none && here >= least) continue;
          best = k;
          least = here;
        }
        if (best == none) continue;
        has[y] = true;
        for (const std::uint32_t s : inside_[y]) entered[s] = true;
        next.push_back(y);
        tree.push_back({edges_[best].from, y, edges_[best].tag});
        taken(edges_[best].tag);
      }
      if (next.empty()) break;
      // A rank that could not be given a parent now may get one at a later level, from any of those before it.
      level.insert(level.end(), next.begin(), next.end());
      if (tree.size() + 1 == n_) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::int64_t far = INT64_MAX;

  [[nodiscard]] bool within(std::uint32_t v, std::uint32_t set) const {
    for (const std::uint32_t s : inside_[v])
      if (s == set) return true;
    return false;
  }
  /// Lowers the edges into every part that none without cost enters.
  bool lower(bool& changed) {
    changed = false;
    std::vector<std::int64_t> least(parts_, far);
    for (const priced_edge& e : edges_)
      if (part_[e.from] != part_[e.to] && e.cost < least[part_[e.to]]) least[part_[e.to]] = e.cost;
    std::vector<std::uint32_t> set(parts_, none);
    for (std::uint32_t p = 0; p < parts_; ++p) {
      if (p == part_[root_] || least[p] == 0) continue;
      if (least[p] == far) return false;
      set[p] = sets_++;
      changed = true;
    }
    if (!changed) return true;
    for (priced_edge& e : edges_)
      if (part_[e.from] != part_[e.to] && set[part_[e.to]] != none) e.cost -= least[part_[e.to]];
    for (std::uint32_t v = 0; v < n_; ++v)
      if (set[part_[v]] != none) inside_[v].push_back(set[part_[v]]);
    return true;
  }
  /// Strongly connected parts of the edges without cost. Source: Tarjan, 1972, with a stack of its own.
  void find_parts() {
    std::vector<std::uint32_t> index(n_, none), low(n_, 0), stack, call, next(first_.begin(), first_.end() - 1);
    std::vector<bool> open(n_, false);
    std::uint32_t clock = 0;
    parts_ = 0;
    for (std::uint32_t s = 0; s < n_; ++s) {
      if (index[s] != none) continue;
      call.push_back(s);
      while (!call.empty()) {
        const std::uint32_t v = call.back();
        if (index[v] == none) {
          index[v] = low[v] = clock++;
          stack.push_back(v);
          open[v] = true;
        }
        bool deeper = false;
        for (; next[v] < first_[v + 1]; ++next[v]) {
          const priced_edge& e = edges_[sorted_[next[v]]];
          if (e.cost != 0) continue;
          if (index[e.to] == none) {
            call.push_back(e.to);
            deeper = true;
            break;
          }
          if (open[e.to] && index[e.to] < low[v]) low[v] = index[e.to];
        }
        if (deeper) continue;
        if (low[v] == index[v]) {
          for (;;) {
            const std::uint32_t u = stack.back();
            stack.pop_back();
            open[u] = false;
            part_[u] = parts_;
            if (u == v) break;
          }
          ++parts_;
        }
        call.pop_back();
        if (!call.empty() && low[v] < low[call.back()]) low[call.back()] = low[v];
      }
    }
  }
  bool grow(std::vector<grown_edge>& tree) {
    tree.clear();
    std::vector<bool> has(n_, false), entered(sets_, false);
    std::vector<std::uint32_t> stamp(sets_, none), queue{root_};
    has[root_] = true;
    for (const std::uint32_t s : inside_[root_]) entered[s] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t x = queue[i];
      for (const std::uint32_t s : inside_[x]) stamp[s] = x;
      for (std::uint32_t k = first_[x]; k < first_[x + 1]; ++k) {
        const priced_edge& e = edges_[sorted_[k]];
        if (e.cost != 0 || has[e.to]) continue;
        bool allowed = true;
        for (const std::uint32_t s : inside_[e.to]) allowed = allowed && (stamp[s] == x || !entered[s]);
        if (!allowed) continue;
        has[e.to] = true;
        for (const std::uint32_t s : inside_[e.to]) entered[s] = true;
        queue.push_back(e.to);
        tree.push_back({x, e.to, e.tag});
      }
    }
    return queue.size() == n_;
  }

  std::uint32_t n_, root_, parts_ = 0, sets_ = 0;
  std::vector<priced_edge>& edges_;
  std::vector<std::uint32_t> first_, sorted_, part_;
  std::vector<std::vector<std::uint32_t>> inside_;  // lowered sets that hold a node, the innermost first
};

template <class = void>
[[nodiscard]] bool cheapest_arborescence(std::uint32_t n, std::uint32_t root, std::vector<priced_edge>& edges,
                                         std::vector<grown_edge>& tree) {
  return arborescence_finder<>(n, root, edges).run(tree);
}

}}}}  // namespace topocoll::v0::plan::detail
