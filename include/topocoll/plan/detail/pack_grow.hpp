// SPDX-License-Identifier: Apache-2.0
#pragma once
// Out-trees with given weights at the roots, grown edge by edge so that the others always still fit.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/pack_flow.hpp>
#include <topocoll/plan/detail/pack_split.hpp>
#include <topocoll/plan/detail/pack_trees.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Packs out-trees into a network of ranks, `feed[r]` of them with root r, by capacitated growth of sets of trees.
///
/// A set of m equal trees, so far on the ranks R, may take the edge (x, y) for as many of its trees as every cut into a
/// set A with y but not x has capacity to spare over the trees that have yet to enter A: one maximum flow from x to y, in
/// which each other set i offers its m_i trees at all ranks that it has reached. Where that is fewer than m, the set
/// falls in two. An edge that was refused once is refused to the set for good. Ranks near the root are extended first,
/// so trees are shallow where that is free.
/// Precondition: the flow from a source that feeds feed[r] into r to every rank is the sum of all (Edmonds' condition).
/// Source: Edmonds, "Edge-disjoint branchings", 1973; with capacities as in Bérczi and Frank, "Packing arborescences",
/// 2009, and Schrijver, "Combinatorial optimization", 2003, chapter 53.
template <class = void>
class tree_grower {
 public:
  tree_grower(const pack_routes& routes, std::uint32_t ranks, std::span<const std::int64_t> feed)
      : n_(ranks),
        routes_(routes),
        bare_(feed.begin(), feed.end()),
        capacity_(std::size_t{ranks} * ranks, 0),
        flow_(0) {
    for (std::uint32_t x = 0; x < n_; ++x)
      for (std::uint32_t y = 0; y < n_; ++y)
        for (std::uint32_t p = routes_.head_of(x, y); p != pack_routes::none; p = routes_.pieces[p].next)
          capacity_[std::size_t{x} * n_ + y] += routes_.pieces[p].amount;
    for (const std::int64_t f : feed) all_ += f;
  }

  /// False when `budget`, a number of flows, is used up or the precondition does not hold.
  /// @param together  all trees grow at once, level by level, instead of one root after the other: often shallower, but
  ///                  every flow then has to mind all other sets, which takes two or three times as long
  [[nodiscard]] bool run(tree_list& out, std::int64_t& budget, bool together = false) {
    out.arcs = routes_.arcs;
    for (std::uint32_t r = 0; r < n_; ++r) {
      if (bare_[r] == 0) continue;
      sets_.push_back({r, bare_[r]});
      sets_.back().reached.push_back(r);
      sets_.back().has.assign(n_, false);
      sets_.back().has[r] = true;
      sets_.back().level.assign(n_, 0);
    }
    rebuild(63 - n_ % 64);  // whole words
    // Sets that fall in two add to the end.
    for (std::uint32_t depth = 0; together && depth < n_; ++depth)
      for (std::size_t i = 0; i < sets_.size(); ++i)
        if (!advance(i, depth + 1, budget)) return false;
    for (std::size_t r = 0, next = sets_.size(); r < sets_.size(); ++r) {
      if (!advance(r, n_, budget)) return false;
      for (; next < sets_.size(); ++next)
        if (!advance(next, n_, budget)) return false;
    }
    for (const grown& set : sets_) {
      if (set.reached.size() < n_) return false;  // Edmonds' condition did not hold
      out.trees.push_back({set.root, set.weight, static_cast<std::uint32_t>(out.edges.size()), n_ - 1, false});
      out.edges.insert(out.edges.end(), set.edges.begin(), set.edges.end());
    }
    return true;
  }

 private:
  struct grown {
    std::uint32_t root;
    std::int64_t weight;
    std::vector<std::uint32_t> reached{};  // in the order in which they were, so by level
    std::vector<bool> has{};
    std::vector<std::uint32_t> level{};
    std::vector<tree_list::edge> edges{};
    std::uint32_t seat = UINT32_MAX;
    std::uint32_t depth = 0;  // ranks of lower levels have no edges left
  };
  static constexpr std::int64_t wide = std::int64_t{1} << 60;

  // Nodes of the flow: ranks, the source, then one for each set that has grown beyond its root.
  void rebuild(std::uint32_t seats) {
    flow_ = matrix_flow<std::int64_t>(n_ + 1 + seats);
    free_.clear();
    for (std::uint32_t s = seats; s-- > 0;) free_.push_back(s);
    for (std::uint32_t x = 0; x < n_; ++x) {
      for (std::uint32_t y = 0; y < n_; ++y) flow_.set(x, y, capacity_[std::size_t{x} * n_ + y]);
      flow_.set(n_, x, bare_[x]);
    }
    for (grown& set : sets_)
      if (set.seat != UINT32_MAX) {
        set.seat = free_.back();
        free_.pop_back();
        seat(set, set.weight);
      }
    seats_ = seats;
  }
  void seat(const grown& set, std::int64_t weight) {
    flow_.set(n_, n_ + 1 + set.seat, weight);
    for (std::uint32_t v = 0; v < n_; ++v) flow_.set(n_ + 1 + set.seat, v, weight > 0 && set.has[v] ? wide : 0);
  }
  /// The set's trees offer what they carry at all ranks that they have reached.
  void enter(std::size_t i) {
    grown& set = sets_[i];
    if (set.reached.size() == 1) {
      bare_[set.root] += set.weight;
      flow_.set(n_, set.root, bare_[set.root]);
      return;
    }
    if (free_.empty()) rebuild(seats_ + 64);
    set.seat = free_.back();
    free_.pop_back();
    seat(set, set.weight);
  }
  void leave(std::size_t i) {
    grown& set = sets_[i];
    if (set.reached.size() == 1) {
      bare_[set.root] -= set.weight;
      flow_.set(n_, set.root, bare_[set.root]);
      return;
    }
    seat(set, 0);
    free_.push_back(set.seat);
    set.seat = UINT32_MAX;
  }

  /// How many trees of `set` the edge (x, y) can take, at most `most`; what it refuses for good is noted.
  [[nodiscard]] std::int64_t room(const grown& set, std::uint32_t x, std::uint32_t y, std::int64_t most) {
    const std::int64_t others = all_ - set.weight;
    flow_.set(n_, x, wide);
    const std::int64_t value = flow_.run(n_, y, others + most);
    // A cut without room to spare refuses every edge across it.
    if (value <= others)
      for (std::uint32_t u = 0; u < n_; ++u)
        for (std::uint32_t v = 0; flow_.on_source_side(u) && v < n_; ++v)
          if (!flow_.on_source_side(v)) refused_[std::size_t{u} * n_ + v] = true;
    flow_.undo();
    flow_.set(n_, x, bare_[x]);
    return value - others < most ? value - others : most;
  }
  /// Piece of the way from x to y that suits `weight` trees best: the smallest that takes all, else the largest.
  [[nodiscard]] std::uint32_t piece_for(std::uint32_t x, std::uint32_t y, std::int64_t weight) const {
    std::uint32_t best = pack_routes::none;
    for (std::uint32_t p = routes_.head_of(x, y); p != pack_routes::none; p = routes_.pieces[p].next) {
      const std::int64_t a = routes_.pieces[p].amount;
      if (a == 0) continue;
      if (best == pack_routes::none) {
        best = p;
        continue;
      }
      const std::int64_t b = routes_.pieces[best].amount;
      if (a >= weight ? b < weight || a < b : a > b) best = p;
    }
    return best;
  }
  /// Extends set i from its ranks of levels below `end`.
  bool advance(std::size_t i, std::uint32_t end, std::int64_t& budget) {
    if (sets_[i].reached.size() == n_) return true;
    leave(i);
    for (std::uint32_t depth = sets_[i].depth; depth < end && sets_[i].reached.size() < n_; ++depth) {
      sets_[i].depth = depth;
      if (!grow(i, depth, budget)) return false;
      sets_[i].depth = depth + 1;
    }
    if (sets_[i].reached.size() < n_)
      enter(i);
    else
      all_ -= sets_[i].weight;
    return true;
  }
  /// Extends set i from its ranks of level `depth` as far as it goes.
  bool grow(std::size_t i, std::uint32_t depth, std::int64_t& budget) {
    refused_.assign(std::size_t{n_} * n_, false);
    std::size_t first = 0;
    while (first < sets_[i].reached.size() && sets_[i].level[sets_[i].reached[first]] < depth) ++first;
    while (sets_[i].reached.size() < n_) {
      const grown& set = sets_[i];
      // An edge for all trees of the set is better than one for some of them.
      std::uint32_t from = 0, to = 0, piece = pack_routes::none;
      std::int64_t trees = 0;
      bool any = false;
      for (std::size_t k = first; k < set.reached.size() && set.level[set.reached[k]] == depth && trees < set.weight;
           ++k) {
        const std::uint32_t x = set.reached[k];
        for (std::uint32_t y = 0; y < n_ && trees < set.weight; ++y) {
          if (set.has[y] || capacity_[std::size_t{x} * n_ + y] == 0 || refused_[std::size_t{x} * n_ + y]) continue;
          any = true;
          const std::uint32_t p = piece_for(x, y, set.weight);
          const std::int64_t a = routes_.pieces[p].amount, most = a < set.weight ? a : set.weight;
          if (most <= trees) continue;
          if (--budget < 0) return false;
          const std::int64_t here = room(set, x, y, most);
          if (here > trees) {
            from = x;
            to = y;
            piece = p;
            trees = here;
          }
        }
      }
      if (trees == 0) {
        if (!any) break;
        continue;
      }
      if (trees < set.weight) {
        grown rest = set;
        rest.weight -= trees;
        sets_[i].weight = trees;
        sets_.push_back(std::move(rest));
        enter(sets_.size() - 1);
      }
      routes_.pieces[piece].amount -= trees;
      std::int64_t& c = capacity_[std::size_t{from} * n_ + to];
      c -= trees;
      flow_.set(from, to, c);
      grown& now = sets_[i];
      now.reached.push_back(to);
      now.has[to] = true;
      now.level[to] = depth + 1;
      now.edges.push_back({from, to, routes_.pieces[piece].first, routes_.pieces[piece].count});
    }
    return true;
  }

  std::uint32_t n_, seats_ = 0;
  pack_routes routes_;
  std::vector<std::int64_t> bare_, capacity_;
  matrix_flow<std::int64_t> flow_;
  std::int64_t all_ = 0;
  std::vector<grown> sets_;
  std::vector<std::uint32_t> free_;  // seats
  std::vector<bool> refused_;
};

}}}}  // namespace topocoll::v0::plan::detail
