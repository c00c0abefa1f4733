// SPDX-License-Identifier: Apache-2.0
#pragma once
// A commutative group of automorphisms that takes every rank to every other in exactly one way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/pack_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Elements of a group that acts on a `pack_network`, each checked arc by arc. `moves[r]` takes rank 0 to rank r.
struct rank_group {
  std::vector<std::vector<std::uint32_t>> moves;       ///< node -> node; empty when no group was found
  std::vector<std::vector<std::uint32_t>> generators;  ///< these make the others
  [[nodiscard]] bool found() const { return !moves.empty(); }
};

/// Where an automorphism takes an arc. Precondition: it is one.
[[nodiscard]] inline std::uint32_t image_of(const pack_network& net, const std::vector<std::uint32_t>& move,
                                            std::uint32_t arc) {
  const pack_network::arc& a = net.arcs[arc];
  return net.arc_between(move[a.from], move[a.to]) + (arc - net.arc_between(a.from, a.to));
}

/// Searches for a group step by step: a subgroup H is extended by an automorphism g of prime order over H that commutes
/// with H. One image decides |H| others, colour refinement decides most of the rest, and what it leaves open is tried.
/// In a commutative group that takes every rank to every other, an element moves all ranks equally far: that tells the
/// shifts of a torus from its reflections.
///
/// Nothing is believed: every automorphism is compared arc by arc, and must commute and close up on all nodes. So a group
/// that is returned is one; but a network may have such a group, or a non-commutative one, that the search misses.
template <class = void>
class group_search {
 public:
  group_search(const pack_network& net, std::int64_t budget) : net_(net), n_(net.ranks), budget_(budget) {
    entering_.assign(net_.nodes + 1, 0);
    for (const pack_network::arc& a : net_.arcs) ++entering_[a.to + 1];
    for (std::uint32_t v = 0; v < net_.nodes; ++v) entering_[v + 1] += entering_[v];
    into_.resize(net_.arcs.size());
    std::vector<std::uint32_t> at = entering_;
    for (std::uint32_t a = 0; a < net_.arcs.size(); ++a) into_[at[net_.arcs[a].to]++] = a;
  }

  [[nodiscard]] rank_group run() {
    plain_.resize(net_.nodes);
    for (std::uint32_t v = 0; v < net_.nodes; ++v) plain_[v] = v < n_ ? 1 : 2;
    std::vector<std::uint64_t> twin = plain_;
    if (!refine(plain_, twin)) return {};
    for (std::uint32_t v = 1; v < n_; ++v)
      if (plain_[v] != plain_[0]) return {};
    measure();
    std::vector<std::uint32_t> same(net_.nodes);
    for (std::uint32_t v = 0; v < net_.nodes; ++v) same[v] = v;
    group_.moves.assign(n_, {});
    group_.moves[0] = std::move(same);
    members_.push_back(0);
    if (!extend()) return {};
    return group_;
  }

 private:
  using colours = std::vector<std::uint64_t>;
  static constexpr std::uint32_t none = UINT32_MAX;

  [[nodiscard]] static std::uint64_t mixed(std::uint64_t x) {  // finaliser of SplitMix64
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }
  [[nodiscard]] colours next(const colours& c) const {
    colours out(c.size());
    for (std::uint32_t v = 0; v < net_.nodes; ++v) {
      std::uint64_t sum = mixed(c[v]);
      for (std::uint32_t a = net_.leaving[v]; a < net_.leaving[v + 1]; ++a)
        sum += mixed(c[net_.arcs[a].to] * 3 + mixed(static_cast<std::uint64_t>(net_.arcs[a].units)));
      for (std::uint32_t i = entering_[v]; i < entering_[v + 1]; ++i) {
        const pack_network::arc& a = net_.arcs[into_[i]];
        sum += mixed(c[a.from] * 5 + mixed(static_cast<std::uint64_t>(a.units) + 1));
      }
      out[v] = sum;
    }
    return out;
  }
  /// Refines both colourings alike; false when they can no longer be images of each other, or the budget is used up.
  bool refine(colours& here, colours& there) {
    std::size_t classes = 0;
    for (;;) {
      budget_ -= static_cast<std::int64_t>(net_.arcs.size());
      step_budget_ -= static_cast<std::int64_t>(net_.arcs.size());
      if (budget_ < 0 || step_budget_ < 0) return false;
      colours a = next(here), b = next(there);
      here = a;
      there = b;
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      if (a != b) return false;
      std::size_t now = 1;
      for (std::size_t i = 1; i < a.size(); ++i) now += a[i] != a[i - 1];
      if (now == classes) return true;
      classes = now;
    }
  }
  /// For every pair of ranks how far they are apart and on how many shortest paths.
  void measure() {
    apart_.resize(std::size_t{n_} * n_);
    std::vector<std::uint32_t> distance(net_.nodes), queue;
    std::vector<std::uint64_t> paths(net_.nodes);
    for (std::uint32_t r = 0; r < n_; ++r) {
      distance.assign(net_.nodes, none);
      paths.assign(net_.nodes, 0);
      queue.assign(1, r);
      distance[r] = 0;
      paths[r] = 1;
      for (std::size_t i = 0; i < queue.size(); ++i)
        for (std::uint32_t a = net_.leaving[queue[i]]; a < net_.leaving[queue[i] + 1]; ++a) {
          const std::uint32_t v = net_.arcs[a].to;
          if (distance[v] == none) {
            distance[v] = distance[queue[i]] + 1;
            queue.push_back(v);
          }
          if (distance[v] == distance[queue[i]] + 1)
            paths[v] += paths[queue[i]] * mixed(static_cast<std::uint64_t>(net_.arcs[a].units));
        }
      for (std::uint32_t v = 0; v < n_; ++v) apart_[std::size_t{r} * n_ + v] = mixed(paths[v]) + distance[v];
      if (r == 0) {
        for (std::uint32_t v = 1; v < n_; ++v) order_.push_back(v);
        // Images far away make groups that later steps can extend.
        seq::sort(order_, [&](std::uint32_t x, std::uint32_t y) { return distance[x] > distance[y]; });
      }
    }
  }

  bool extend() {
    const auto size = static_cast<std::uint32_t>(members_.size());
    if (size == n_) return true;
    if (n_ % size != 0) return false;
    std::uint32_t rest = n_ / size, prime = 2;  // the largest first
    for (std::uint32_t p = 2; rest > 1; ++p)
      while (rest % p == 0) {
        rest /= p;
        prime = p;
      }
    // A wrong first image can cost a long search: one rank of each distance is tried briefly before any is tried at length.
    const std::int64_t passes[] = {4 * std::int64_t{n_}, 32 * std::int64_t{n_}, INT64_MAX};  // rounds of refinement
    for (const std::int64_t rounds : passes) {
      const bool brief = rounds != INT64_MAX;
      std::vector<std::uint64_t> tried;
      for (const std::uint32_t r : order_) {
        if (!group_.moves[r].empty() || (brief && seq::contains(tried, apart_[r])) ||
            reachable(r) % (size * prime) != 0)
          continue;
        tried.push_back(apart_[r]);
        // g^prime is some element of H; the identity last, because cyclic groups extend further.
        for (std::uint32_t i = size; i-- > 0;) {
          if (budget_ < 0) return false;
          step_budget_ = brief ? rounds * static_cast<std::int64_t>(net_.arcs.size()) : INT64_MAX;
          if (!step(prime, r, members_[i])) continue;
          if (extend()) return true;
          group_.generators.pop_back();
          while (members_.size() > size) {
            group_.moves[members_.back()].clear();
            members_.pop_back();
          }
        }
      }
    }
    return false;
  }

  /// How many ranks can be reached from rank 0 by steps of H and of pairs as far apart as 0 and r: the group of H and a g
  /// with g(0) = r moves them among themselves.
  [[nodiscard]] std::uint32_t reachable(std::uint32_t r) const {
    std::vector<bool> seen(n_, false);
    std::vector<std::uint32_t> queue{0};
    seen[0] = true;
    const auto visit = [&](std::uint32_t v) {
      if (seen[v]) return;
      seen[v] = true;
      queue.push_back(v);
    };
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t x = queue[i];
      for (const std::vector<std::uint32_t>& g : group_.generators) visit(g[x]);
      for (std::uint32_t y = 0; y < n_; ++y)
        if (apart_[std::size_t{x} * n_ + y] == apart_[r]) visit(y);
    }
    return static_cast<std::uint32_t>(queue.size());
  }
  /// Finds g with g(0) = r, commuting with H, and g^prime = moves[close]; adds it.
  bool step(std::uint32_t prime, std::uint32_t r, std::uint32_t close) {
    prime_ = prime;
    close_ = close;
    to_.assign(n_, none);
    from_.assign(n_, none);
    colours here = plain_, there = plain_;
    fresh_ = 0;
    if (!assign(0, r, here, there) || !refine(here, there) || !complete(here, there)) return false;
    std::vector<std::uint32_t> g(net_.nodes, none);
    for (std::uint32_t v = 0; v < n_; ++v) g[v] = to_[v];
    if (!place_switches(g) || !automorphism(g)) return false;
    std::vector<std::uint32_t> power = g;
    for (std::uint32_t i = 1; i < prime; ++i) power = after(g, power);
    if (power != group_.moves[close]) return false;
    for (const std::vector<std::uint32_t>& h : group_.generators)
      if (after(g, h) != after(h, g)) return false;
    const std::vector<std::uint32_t> old = members_;
    std::vector<std::uint32_t> times = g;
    for (std::uint32_t i = 1; i < prime; ++i) {
      for (const std::uint32_t m : old) {
        std::vector<std::uint32_t> made = after(times, group_.moves[m]);
        const std::uint32_t at = made[0];
        group_.moves[at] = std::move(made);
        members_.push_back(at);
      }
      times = after(g, times);
    }
    group_.generators.push_back(std::move(g));
    return true;
  }
  [[nodiscard]] static std::vector<std::uint32_t> after(const std::vector<std::uint32_t>& g,
                                                        const std::vector<std::uint32_t>& h) {
    std::vector<std::uint32_t> both(g.size());
    for (std::size_t v = 0; v < g.size(); ++v) both[v] = g[h[v]];
    return both;
  }
  /// g(a) = b, and g(h(a)) = h(b) for all h of H; colours tell the pairs apart.
  bool assign(std::uint32_t a, std::uint32_t b, colours& here, colours& there) {
    for (const std::uint32_t m : members_) {
      const std::uint32_t x = group_.moves[m][a], y = group_.moves[m][b];
      if (here[x] != there[y] || to_[x] != none || from_[y] != none) return false;
      to_[x] = y;
      from_[y] = x;
      here[x] = there[y] = mixed(++fresh_);
    }
    return true;
  }
  /// What the colours say about single nodes must agree with g^prime = moves[close].
  [[nodiscard]] bool closes(const colours& here, const colours& there) const {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> a(net_.nodes), b(net_.nodes);
    for (std::uint32_t v = 0; v < net_.nodes; ++v) {
      a[v] = {here[v], v};
      b[v] = {there[v], v};
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<std::uint32_t> image(net_.nodes, none);
    for (std::size_t i = 0; i < a.size(); ++i)
      if ((i == 0 || a[i].first != a[i - 1].first) && (i + 1 == a.size() || a[i].first != a[i + 1].first))
        image[a[i].second] = b[i].second;
    for (std::uint32_t v = 0; v < net_.nodes; ++v) {
      std::uint32_t at = v;
      for (std::uint32_t i = 0; i < prime_ && at != none; ++i) at = image[at];
      if (at != none && at != group_.moves[close_][v]) return false;
    }
    return true;
  }
  bool complete(colours here, colours there) {
    if (budget_ < 0 || step_budget_ < 0 || !closes(here, there)) return false;
    // The end of an unfinished cycle goes on first.
    std::uint32_t a = none, b = none;
    for (std::uint32_t v = 0; v < n_ && a == none; ++v)
      if (to_[v] != none && to_[to_[v]] == none) a = to_[v];
    if (a != none) {
      std::uint32_t first = a, length = 1;
      while (from_[first] != none) {
        first = from_[first];
        ++length;
      }
      if (length == prime_) b = group_.moves[close_][first];
    }
    for (std::uint32_t v = 0; v < n_ && a == none; ++v)
      if (to_[v] == none) a = v;
    if (a == none) return true;
    for (std::uint32_t y = b == none ? 0 : b; y < (b == none ? n_ : b + 1); ++y) {
      if (from_[y] != none || there[y] != here[a] || apart_[std::size_t{a} * n_ + y] != apart_[to_[0]]) continue;
      if (b == none && on_chain(a, y)) continue;
      const std::vector<std::uint32_t> to = to_, from = from_;
      colours h = here, t = there;
      if (assign(a, y, h, t) && refine(h, t) && complete(h, t)) return true;
      to_ = to;
      from_ = from;
      if (budget_ < 0 || step_budget_ < 0) return false;
    }
    return false;
  }
  /// True when y lies in the H-orbit of a rank of the chain that ends at a: then the cycle would close too early.
  [[nodiscard]] bool on_chain(std::uint32_t a, std::uint32_t y) const {
    for (std::uint32_t v = a;; v = from_[v]) {
      for (const std::uint32_t m : members_)
        if (group_.moves[m][v] == y) return true;
      if (from_[v] == none) return false;
    }
  }
  /// Switches follow their ranks; those that no rank tells apart keep their order, so that products do too.
  bool place_switches(std::vector<std::uint32_t>& g) {
    colours here(net_.nodes, 2), there(net_.nodes, 2);
    for (std::uint32_t v = 0; v < n_; ++v) here[v] = there[g[v]] = mixed(v) | 1U;
    if (!refine(here, there)) return false;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> a, b;
    for (std::uint32_t v = n_; v < net_.nodes; ++v) {
      a.push_back({here[v], v});
      b.push_back({there[v], v});
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].first != b[i].first) return false;
      g[a[i].second] = b[i].second;
    }
    return true;
  }
  [[nodiscard]] bool automorphism(const std::vector<std::uint32_t>& g) const {
    std::vector<bool> hit(net_.nodes, false);
    for (const std::uint32_t v : g) {
      if (v == none || hit[v]) return false;
      hit[v] = true;
    }
    for (std::uint32_t a = 0; a < net_.arcs.size(); ++a) {
      const pack_network::arc& x = net_.arcs[a];
      const std::uint32_t b = image_of(net_, g, a);
      if (b >= net_.arcs.size() || net_.arcs[b].from != g[x.from] || net_.arcs[b].to != g[x.to] ||
          net_.arcs[b].units != x.units)
        return false;
    }
    return true;
  }

  const pack_network& net_;
  std::uint32_t n_;
  std::int64_t budget_, step_budget_ = INT64_MAX;
  std::vector<std::uint32_t> entering_, into_, order_;
  colours plain_;
  std::vector<std::uint64_t> apart_;  // per pair of ranks
  rank_group group_;
  std::vector<std::uint32_t> members_;  // ranks to which H takes rank 0, in the order in which they came
  std::vector<std::uint32_t> to_, from_;
  std::uint32_t prime_ = 2, close_ = 0;
  std::uint64_t fresh_ = 0;
};

}}}}  // namespace topocoll::v0::plan::detail
