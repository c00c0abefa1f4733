// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees of one rank, mixed by an exact linear program over the orbits of arcs, and moved to all other ranks.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/pack_arborescence.hpp>
#include <topocoll/plan/detail/pack_network.hpp>
#include <topocoll/plan/detail/pack_symmetry.hpp>
#include <topocoll/plan/detail/pack_trees.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Best out-trees of equal weight per rank in a network on which a group acts, by one rank's trees alone.
///
/// If trees of rank 0 with weights y load the arcs of an orbit O count_O(y) times in all, their images under the group
/// load each arc of O equally, N count_O(y) / |O| times. So the best mix maximises the sum of y under N count_O(y) <=
/// |O| c_O: a linear program with a row per orbit. Its columns, all trees of rank 0, are priced exactly: the cheapest
/// arborescence where arcs cost the dual value of their orbit. All in rationals, so the optimum is proved.
/// Source: averaging over the group; column generation as in Gilmore and Gomory, Operations Research 1961.
template <class = void>
class orbit_packer {
 public:
  orbit_packer(const pack_network& net, const rank_group& group) : net_(net), group_(group) {
    orbit_.assign(net_.arcs.size(), none);
    for (std::uint32_t a = 0; a < net_.arcs.size(); ++a) {
      if (orbit_[a] != none) continue;
      const auto name = static_cast<std::uint32_t>(budget_.size());
      std::vector<std::uint32_t> queue{a};
      orbit_[a] = name;
      for (std::size_t i = 0; i < queue.size(); ++i)
        for (const auto& g : group_.generators) {
          const std::uint32_t b = image_of(net_, g, queue[i]);
          if (orbit_[b] != none) continue;
          orbit_[b] = name;
          queue.push_back(b);
        }
      budget_.push_back(rational{net_.arcs[a].units} * rational{static_cast<std::int64_t>(queue.size()), net_.ranks});
    }
  }
  [[nodiscard]] std::size_t orbits() const { return budget_.size(); }

  /// False when the figures do not fit or some rank is not reached; otherwise `rate()` is optimal among unicast trees.
  [[nodiscard]] bool run() {
    const std::size_t m = budget_.size();
    std::vector<rational> inverse(m * m, rational{0}), level = budget_;
    std::vector<std::uint32_t> basis(m, none);  // a tree, or none for the slack of the row it began in
    for (std::size_t i = 0; i < m; ++i) inverse[i * m + i] = rational{1};
    for (int pivot = 0; pivot < 1000; ++pivot) {
      std::vector<rational> dual(m, rational{0});
      for (std::size_t i = 0; i < m; ++i)
        if (basis[i] != none)
          for (std::size_t o = 0; o < m; ++o) dual[o] = dual[o] + inverse[i * m + o];
      std::size_t slack = m;
      for (std::size_t o = 0; o < m && slack == m; ++o) {
        if (!dual[o].valid()) return false;
        if (dual[o] < rational{0}) slack = o;
      }
      std::vector<rational> column(m, rational{0});
      std::uint32_t enters = none;
      if (slack != m) {
        column[slack] = rational{1};
      } else {
        candidate tree;
        if (!cheapest(dual, tree)) return false;
        rational price{0};
        for (std::size_t o = 0; o < m; ++o) price = price + dual[o] * rational{tree.count[o]};
        if (!price.valid()) return false;
        if (price >= rational{1}) {
          for (std::size_t i = 0; i < m; ++i)
            if (basis[i] != none && level[i] > rational{0}) {
              share_.push_back(level[i]);
              chosen_.push_back(basis[i]);
              rate_ = rate_ + level[i];
            }
          binds_.assign(m, false);
          for (std::size_t o = 0; o < m; ++o) binds_[o] = dual[o] > rational{0};
          dual_ = std::move(dual);
          return rate_.valid() && rate_ > rational{0};
        }
        for (std::size_t o = 0; o < m; ++o) column[o] = rational{tree.count[o]};
        enters = static_cast<std::uint32_t>(trees_.size());
        trees_.push_back(std::move(tree));
      }
      std::vector<rational> step(m, rational{0});
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t o = 0; o < m; ++o)
          if (!(column[o] == rational{0})) step[i] = step[i] + inverse[i * m + o] * column[o];
      std::size_t leaves = m;
      rational least{0};
      for (std::size_t i = 0; i < m; ++i) {
        if (!step[i].valid() || !level[i].valid()) return false;
        if (!(step[i] > rational{0})) continue;
        const rational ratio = level[i] / step[i];
        if (leaves == m || ratio < least) {
          leaves = i;
          least = ratio;
        }
      }
      if (leaves == m) return false;  // a tree that loads nothing: one rank only
      for (std::size_t o = 0; o < m; ++o) inverse[leaves * m + o] = inverse[leaves * m + o] / step[leaves];
      level[leaves] = least;
      for (std::size_t i = 0; i < m; ++i) {
        if (i == leaves || step[i] == rational{0}) continue;
        for (std::size_t o = 0; o < m; ++o)
          if (!(inverse[leaves * m + o] == rational{0}))
            inverse[i * m + o] = inverse[i * m + o] - step[i] * inverse[leaves * m + o];
        level[i] = level[i] - step[i] * least;
      }
      basis[leaves] = enters;
    }
    return false;
  }
  /// Units per rank.
  [[nodiscard]] rational rate() const { return rate_; }

  /// The trees of all ranks on at most `most_pieces` pieces; fewer when `wanted` of the rate suffices.
  ///
  /// The program's own solution may need many pieces, because its trees are extreme. Trees between them are made by giving
  /// one rank after the other the parent that it has in another tree, and are dealt out so that the loads follow the
  /// optimal ones as closely as whole trees can; where that ends on the optimum with fewer pieces, it is taken.
  [[nodiscard]] tree_list trees(double wanted, std::int64_t most_pieces) {
    std::int64_t exact = 1, step = 1;  // pieces of the solution; all solutions need a multiple of `step`
    for (const rational& y : share_) exact = common_multiple(exact, (y / rate_).denominator(), most_pieces);
    for (std::size_t o = 0; o < budget_.size(); ++o)
      if (binds_[o]) step = common_multiple(step, (budget_[o] / rate_).denominator(), most_pieces);
    if (exact > step || wanted < 1) {
      add_between();
      add_even();
    }

    const std::int64_t last = exact < most_pieces ? exact : most_pieces;
    std::vector<std::int64_t> best;
    std::int64_t pieces = 0;
    rational reached{0};
    const auto look = [&](std::vector<std::int64_t> weight, std::int64_t k) {
      const rational share = share_of_rate(weight, k);
      if (!(share > reached)) return;
      reached = share;
      best = std::move(weight);
      pieces = k;
    };
    const auto enough = [&]() {
      return reached == rational{1} || (wanted < 1 && reached.valid() && reached.to_double() >= wanted);
    };
    const std::int64_t stride = wanted < 1 ? 1 : step;
    for (std::int64_t k = stride, tries = 0; k < last && tries < 64 && !enough(); k += stride, ++tries)
      look(dealt(k), k);
    if (!enough()) look(shared_out(last), last);
    tree_list list;
    list.pieces = pieces;
    for (std::uint32_t r = 0; r < net_.ranks; ++r)
      for (std::size_t i = 0; i < best.size(); ++i)
        if (best[i] > 0) write(trees_[i], r, best[i], list);
    return list;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct candidate {
    std::vector<std::int64_t> count;  ///< arcs per orbit
    std::vector<grown_edge> edges;    ///< parents before children; `tag` is a route
  };

  [[nodiscard]] static std::int64_t common_multiple(std::int64_t a, std::int64_t b, std::int64_t most) {
    if (b == 0 || a > most) return most + 1;
    const int128 both = int128{a / common_divisor(a, b)} * b;
    return both > most ? most + 1 : static_cast<std::int64_t>(both);
  }
  /// Pieces in proportion to the solution, the largest remainders rounded up.
  [[nodiscard]] std::vector<std::int64_t> shared_out(std::int64_t k) const {
    std::vector<std::int64_t> w(trees_.size(), 0);
    std::vector<std::pair<rational, std::uint32_t>> rest;
    std::int64_t left = k;
    for (std::size_t i = 0; i < share_.size(); ++i) {
      const rational wish = share_[i] / rate_ * rational{k};
      const std::int64_t whole = wish.valid() ? wish.numerator() / wish.denominator() : 0;
      w[chosen_[i]] += whole;
      left -= whole;
      rest.push_back({wish - rational{whole}, chosen_[i]});
    }
    seq::sort(rest, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; left > 0; i = (i + 1) % rest.size(), --left) ++w[rest[i].second];
    return w;
  }
  /// k trees, one after the other, each the one that keeps the loads nearest to the optimal ones.
  [[nodiscard]] std::vector<std::int64_t> dealt(std::int64_t k) const {
    const std::size_t m = budget_.size();
    std::vector<std::int64_t> w(trees_.size(), 0), load(m, 0), up(m, 0), down(m, 0);
    for (std::size_t o = 0; o < m; ++o) {
      const rational ideal = budget_[o] / rate_;  // arcs of this orbit per tree
      if (!ideal.valid() || ideal.numerator() > (std::int64_t{1} << 40)) return w;
      up[o] = ideal.numerator();
      down[o] = ideal.denominator();
    }
    for (std::int64_t j = 1; j <= k; ++j) {
      std::size_t best = trees_.size();
      int128 least = 0;
      for (std::size_t i = 0; i < trees_.size(); ++i) {
        int128 off = 0;
        for (std::size_t o = 0; o < m; ++o) {
          const int128 ahead = (int128{load[o] + trees_[i].count[o]} * down[o] - int128{j} * up[o]) * 1024 / up[o];
          if (ahead > 0 || binds_[o]) off += ahead * ahead;
        }
        if (best == trees_.size() || off < least) {
          best = i;
          least = off;
        }
      }
      ++w[best];
      for (std::size_t o = 0; o < m; ++o) load[o] += trees_[best].count[o];
    }
    return w;
  }
  /// Trees between any two of the solution.
  void add_between() {
    constexpr std::size_t most = 512;
    std::vector<std::uint32_t> parent(net_.ranks), tag(net_.ranks);
    for (const std::uint32_t a : chosen_)
      for (const std::uint32_t b : chosen_) {
        if (a == b) continue;
        candidate now = trees_[a];
        for (const grown_edge& e : now.edges) {
          parent[e.to] = e.from;
          tag[e.to] = e.tag;
        }
        // In the order of the other tree nobody gets a parent below himself.
        for (std::size_t i = 0; i < trees_[b].edges.size() && trees_.size() < most; ++i) {
          const grown_edge e = trees_[b].edges[i];
          if (parent[e.to] == e.from && routes_[tag[e.to]] == routes_[e.tag]) continue;
          for (const std::uint32_t arc : routes_[tag[e.to]]) --now.count[orbit_[arc]];
          for (const std::uint32_t arc : routes_[e.tag]) ++now.count[orbit_[arc]];
          parent[e.to] = e.from;
          tag[e.to] = e.tag;
          if (seq::find_by(trees_, now.count, &candidate::count) != trees_.end()) continue;
          now.edges.clear();
          std::vector<std::vector<std::uint32_t>> children(net_.ranks);
          for (std::uint32_t v = 1; v < net_.ranks; ++v) children[parent[v]].push_back(v);
          std::vector<std::uint32_t> queue{0};
          for (std::size_t q = 0; q < queue.size(); ++q)
            for (const std::uint32_t v : children[queue[q]]) {
              now.edges.push_back({queue[q], v, tag[v]});
              queue.push_back(v);
            }
          trees_.push_back(now);
        }
      }
  }
  [[nodiscard]] rational share_of_rate(const std::vector<std::int64_t>& weight, std::int64_t k) const {
    rational worst{0};
    for (std::size_t o = 0; o < budget_.size(); ++o) {
      std::int64_t load = 0;
      for (std::size_t i = 0; i < weight.size(); ++i) load += weight[i] * trees_[i].count[o];
      const rational time = rational{load} / budget_[o];
      if (!(time <= worst)) worst = time;
    }
    return rational{k} / worst / rate_;
  }
  /// Edges between all ranks, with the cost of their cheapest routes when an arc costs the dual value of its orbit; of
  /// routes that cost the same those of few arcs. The tag of an edge is the rank to which rank 0 has the same route.
  [[nodiscard]] bool price(const std::vector<rational>& dual, route_finder<>& ways,
                           std::vector<priced_edge>& edges) const {
    std::int64_t common = 1;
    for (const rational& d : dual) {
      common = common_multiple(common, d.denominator(), INT64_MAX / 1024);
      if (common > INT64_MAX / 1024) return false;
    }
    constexpr std::int64_t hop = 4096;  // more arcs than any path has
    std::vector<std::int64_t> cost(net_.arcs.size());
    for (std::uint32_t a = 0; a < cost.size(); ++a) {
      const rational p = dual[orbit_[a]] * rational{common};
      if (!p.valid() || p.numerator() > INT64_MAX / hop / hop / 1024) return false;
      cost[a] = p.numerator() * hop + 1;
    }
    ways.run(0, cost);
    std::vector<std::uint32_t> near;  // ranks that rank 0 reaches without passing another
    for (std::uint32_t r = 1; r < net_.ranks; ++r)
      if (ways.reached(r)) near.push_back(r);
    edges.reserve(near.size() * net_.ranks);
    for (std::uint32_t u = 0; u < net_.ranks; ++u)
      for (const std::uint32_t d : near) edges.push_back({u, group_.moves[u][d], ways.cost(d), d});
    return true;
  }
  /// Counts arcs per orbit, and turns tags into routes.
  void count_routes(const route_finder<>& ways, candidate& tree) {
    tree.count.assign(budget_.size(), 0);
    std::vector<std::uint32_t> known(net_.ranks, none);
    for (grown_edge& e : tree.edges) {
      std::uint32_t& route = known[e.tag];
      if (route == none) {
        route = static_cast<std::uint32_t>(routes_.size());
        routes_.push_back(ways.route(e.tag));
      }
      e.tag = route;
      for (const std::uint32_t a : routes_[route]) ++tree.count[orbit_[a]];
    }
  }
  /// Cheapest tree of rank 0; of several one of few arcs and little depth.
  [[nodiscard]] bool cheapest(const std::vector<rational>& dual, candidate& tree) {
    route_finder<> ways(net_);
    std::vector<priced_edge> edges;
    if (!price(dual, ways, edges) || !arborescence_finder<>(net_.ranks, 0, edges).run(tree.edges)) return false;
    count_routes(ways, tree);
    return true;
  }
  /// Cheapest trees that use the orbits evenly, each and one after the other.
  void add_even() {
    route_finder<> ways(net_);
    std::vector<priced_edge> edges;
    if (!price(dual_, ways, edges)) return;
    arborescence_finder<> finder(net_.ranks, 0, edges);
    if (!finder.prepare()) return;
    std::vector<std::vector<std::uint32_t>> route(net_.ranks);
    for (std::uint32_t r = 1; r < net_.ranks; ++r)
      if (ways.reached(r)) route[r] = ways.route(r);
    std::vector<std::int64_t> load(budget_.size(), 0), up(load), down(load);
    for (std::size_t o = 0; o < load.size(); ++o) {
      const rational ideal = budget_[o] / rate_;
      if (!ideal.valid() || ideal.numerator() > (std::int64_t{1} << 40) || ideal.denominator() > (1 << 20)) return;
      up[o] = ideal.numerator();
      down[o] = ideal.denominator();
    }
    const auto score = [&](std::uint32_t tag) {
      std::int64_t worst = 0;
      for (const std::uint32_t a : route[tag]) {
        const std::size_t o = orbit_[a];
        const auto share = static_cast<std::int64_t>(int128{load[o] + 1} * down[o] * 4096 / up[o]);
        worst = share > worst ? share : worst;
      }
      return worst;
    };
    const auto taken = [&](std::uint32_t tag) {
      for (const std::uint32_t a : route[tag]) ++load[orbit_[a]];
    };
    for (int i = 0; i < 24; ++i) {
      candidate tree;
      if (!finder.grow_by(tree.edges, score, taken)) return;
      count_routes(ways, tree);
      if (seq::find_by(trees_, tree.count, &candidate::count) == trees_.end()) trees_.push_back(std::move(tree));
    }
  }
  void write(const candidate& tree, std::uint32_t root, std::int64_t weight, tree_list& list) const {
    const auto& move = group_.moves[root];
    list.trees.push_back({root, weight, static_cast<std::uint32_t>(list.edges.size()),
                          static_cast<std::uint32_t>(tree.edges.size()), false});
    for (const grown_edge& e : tree.edges) {
      const auto first = static_cast<std::uint32_t>(list.arcs.size());
      const auto& there = group_.moves[move[e.from]];
      for (const std::uint32_t a : routes_[e.tag]) list.arcs.push_back(image_of(net_, there, a));
      list.edges.push_back({move[e.from], move[e.to], first, static_cast<std::uint32_t>(list.arcs.size()) - first});
    }
  }

  const pack_network& net_;
  const rank_group& group_;
  std::vector<std::uint32_t> orbit_;  // per arc
  std::vector<rational> budget_;      // units of an orbit per rank
  std::vector<candidate> trees_;
  std::vector<std::vector<std::uint32_t>> routes_;  // arcs that leave rank 0
  std::vector<rational> dual_;
  std::vector<bool> binds_;  // orbits that the optimum uses up
  std::vector<rational> share_;
  std::vector<std::uint32_t> chosen_;
  rational rate_{0};
};

}}}}  // namespace topocoll::v0::plan::detail
