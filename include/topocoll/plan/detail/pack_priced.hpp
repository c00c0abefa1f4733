// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees of least price, one after the other, where arcs become dear as they fill.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/pack_arborescence.hpp>
#include <topocoll/plan/detail/pack_network.hpp>
#include <topocoll/plan/detail/pack_trees.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Packs trees of weight 1 in rounds: in each round every rank is root as often as its weight says.
///
/// An arc of capacity c that carries load l costs 2^(s * l / c) / c in fixed point, l / c counted in rounds at the
/// limit; so the trees of a round avoid what earlier trees have filled. After j rounds the trees reach j / (largest l / c):
/// the best number of rounds is kept. Integers only, so the same trees come out everywhere.
/// Source: multiplicative weights for packing, Plotkin, Shmoys and Tardos, 1995; Garg and Könemann, 2007.
template <class = void>
class priced_packer {
 public:
  /// @param mirror  way back of every arc: trees are used both ways; empty for trees used downwards only
  /// @param up      trees used upwards are wanted too, and there is no mirror
  priced_packer(const pack_network& net, std::span<const std::int64_t> weight, std::span<const std::uint32_t> mirror,
                bool up, rational limit)
      : net_(net), weight_(weight), mirror_(mirror), up_(up), limit_(limit), load_(net.arcs.size(), 0) {
    if (up_) backward_ = turned_round(net_, turned_);
    pace_ = limit_ / sum();
  }

  /// False when no tree within the depth exists. `steepness` is s; `effort` counts steps down.
  [[nodiscard]] bool run(double wanted, std::int64_t most_rounds, std::uint32_t most_depth, std::int64_t steepness,
                         std::int64_t& effort) {
    most_depth_ = most_depth;
    steepness_ = steepness;
    std::size_t trees = 0, edges = 0, arcs = 0;
    const rational per_round = up_ ? rational{1} : sum();
    for (std::int64_t round = 1; round <= most_rounds && (round == 1 || effort > 0); ++round) {
      if (up_) {
        if (!add_pair(effort)) return false;
      } else {
        for (std::uint32_t k = 0; k < net_.ranks; ++k) {
          const std::uint32_t root = (k + static_cast<std::uint32_t>(round) * 7) % net_.ranks;
          for (std::int64_t i = 0; i < weight_[root]; ++i)
            if (!add(root, effort)) return false;
        }
      }
      const rational now = rational{round} * per_round / fullest();
      if (!now.valid()) break;
      if (pieces_ == 0 || now > rate_) {
        rate_ = now;
        pieces_ = round;
        trees = list_.trees.size();
        edges = list_.edges.size();
        arcs = list_.arcs.size();
      }
      if (round > 2 * pieces_ + (up_ ? 256 : 32)) break;  // it does not get better
      const rational share = rate_ / limit_;
      if (share == rational{1} || (share.valid() && share.to_double() >= (wanted < 1 ? wanted : 0.998))) break;
    }
    list_.trees.resize(trees);
    list_.edges.resize(edges);
    list_.arcs.resize(arcs);
    return pieces_ > 0;
  }
  /// In the units of the limit.
  [[nodiscard]] rational rate() const { return rate_; }
  [[nodiscard]] std::int64_t rounds() const { return pieces_; }
  [[nodiscard]] tree_list& trees() { return list_; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::int64_t far = INT64_MAX;

  /// gather: 1, the rate is per rank of weight 1. spanning: the sum of the weights, the rate is of all.
  [[nodiscard]] rational sum() const {
    if (mirror_.empty() && !up_) return rational{1};
    std::int64_t all = 0;
    for (const std::int64_t w : weight_) all += w;
    return rational{all};
  }
  [[nodiscard]] rational fullest() const {
    std::int64_t load = 0, units = 1;
    for (std::size_t a = 0; a < load_.size(); ++a)
      if (int128{load_[a]} * units > int128{load} * net_.arcs[a].units) {
        load = load_[a];
        units = net_.arcs[a].units;
      }
    return rational{load, units};
  }
  /// Fixed point, 2^-16: load / capacity in rounds at the limit.
  [[nodiscard]] std::int64_t heat(std::uint32_t a) const {
    const int128 up = int128{load_[a]} * pace_.numerator() * (1 << 16);
    return static_cast<std::int64_t>(up / net_.arcs[a].units / pace_.denominator());
  }
  /// About 2^(x / 2^16), exact at whole numbers and rising in between, for 0 <= x < 48 * 2^16.
  [[nodiscard]] static std::int64_t power(std::int64_t x) {
    const std::int64_t f = x & 0xffff;
    const std::int64_t fraction = 65536 + f * (43026 + 22510 * f / 65536) / 65536;
    const std::int64_t whole = x >> 16;
    return whole >= 16 ? fraction << (whole - 16) : fraction >> (16 - whole);
  }
  void set_prices(bool upwards) {
    std::int64_t hottest = 0, widest = 1;
    std::vector<std::int64_t> h(load_.size());
    for (std::uint32_t a = 0; a < h.size(); ++a) {
      h[a] = heat(a);
      hottest = h[a] > hottest ? h[a] : hottest;
      widest = net_.arcs[a].units > widest ? net_.arcs[a].units : widest;
    }
    constexpr std::int64_t top = std::int64_t{40} << 16, dearest = std::int64_t{1} << 46;
    std::vector<std::int64_t> price(h.size());
    for (std::uint32_t a = 0; a < h.size(); ++a) {
      const int128 below = int128{hottest - h[a]} * steepness_;
      const std::int64_t p = below >= top ? 1 : power(top - static_cast<std::int64_t>(below));
      const int128 scaled = int128{p} * widest / net_.arcs[a].units / 64;
      price[a] = scaled < 1 ? 1 : (scaled > dearest ? dearest : static_cast<std::int64_t>(scaled));
    }
    price_.resize(price.size());
    for (std::uint32_t a = 0; a < price.size(); ++a) {
      const std::uint32_t original = upwards ? turned_[a] : a;
      price_[a] = price[original] + (mirror_.empty() ? 0 : price[mirror_[original]]);
    }
  }
  /// Prices of all edges between ranks.
  void offer_edges(const pack_network& net, bool upwards, std::int64_t& effort) {
    set_prices(upwards);
    edges_.clear();
    route_finder<> ways(net);
    for (std::uint32_t u = 0; u < net.ranks; ++u) {
      ways.run(u, price_);
      for (std::uint32_t v = 0; v < net.ranks; ++v)
        if (v != u && ways.reached(v))
          edges_.push_back({u, v, ways.cost(v), static_cast<std::uint32_t>(edges_.size())});
    }
    effort -= static_cast<std::int64_t>(net.ranks) * static_cast<std::int64_t>(net.arcs.size()) +
              static_cast<std::int64_t>(edges_.size());
  }
  [[nodiscard]] bool grow(std::uint32_t root, std::vector<grown_edge>& tree, std::int64_t& effort) {
    effort -= 4 * static_cast<std::int64_t>(edges_.size());
    if (most_depth_ != 0) return shallow(net_.ranks, root, tree);
    std::vector<priced_edge> edges = edges_;  // edges into the root do no harm
    return arborescence_finder<>(net_.ranks, root, edges).run(tree);
  }
  void write(const pack_network& net, std::uint32_t root, bool upwards, const std::vector<grown_edge>& tree) {
    list_.trees.push_back(
        {root, 1, static_cast<std::uint32_t>(list_.edges.size()), static_cast<std::uint32_t>(tree.size()), upwards});
    route_finder<> ways(net);
    std::uint32_t at = none;
    for (const grown_edge& e : tree) {
      if (e.from != at) ways.run(at = e.from, price_);
      const auto first = static_cast<std::uint32_t>(list_.arcs.size());
      std::vector<std::uint32_t> route = ways.route(e.to);
      if (upwards)
        for (std::size_t i = 0; i < route.size() / 2; ++i) std::swap(route[i], route[route.size() - 1 - i]);
      for (const std::uint32_t a : route) {
        const std::uint32_t original = upwards ? turned_[a] : a;
        list_.arcs.push_back(original);
        ++load_[original];
        if (!mirror_.empty()) ++load_[mirror_[original]];
      }
      list_.edges.push_back({e.from, e.to, first, static_cast<std::uint32_t>(route.size())});
    }
  }
  bool add(std::uint32_t root, std::int64_t& effort) {
    offer_edges(net_, false, effort);
    std::vector<grown_edge> tree;
    if (!grow(root, tree, effort)) return false;
    write(net_, root, false, tree);
    return true;
  }
  /// A tree down and one up, of the root for which both together are cheapest.
  bool add_pair(std::int64_t& effort) {
    std::vector<int128> cost(net_.ranks, 0);
    std::vector<std::vector<grown_edge>> trees[2];
    std::vector<std::int64_t> prices[2];
    for (int way = 0; way < 2; ++way) {
      offer_edges(way == 0 ? net_ : backward_, way == 1, effort);
      prices[way] = price_;
      trees[way].resize(net_.ranks);
      for (std::uint32_t root = 0; root < net_.ranks; ++root) {
        if (!grow(root, trees[way][root], effort)) return false;
        for (const grown_edge& e : trees[way][root]) cost[root] += edges_[e.tag].cost;
      }
    }
    std::uint32_t root = 0;
    for (std::uint32_t r = 1; r < net_.ranks; ++r)
      if (cost[r] < cost[root]) root = r;
    for (int way = 0; way < 2; ++way) {
      price_ = prices[way];
      write(way == 0 ? net_ : backward_, root, way == 1, trees[way][root]);
    }
    return true;
  }
  /// A cheap tree of limited depth: the cheapest next edge as long as that works, else the cheapest edges between levels.
  bool shallow(std::uint32_t n, std::uint32_t root, std::vector<grown_edge>& tree) const {
    std::vector<std::uint32_t> first(n + 1, 0);  // edges come by tail
    for (const priced_edge& e : edges_) ++first[e.from + 1];
    for (std::uint32_t v = 0; v < n; ++v) first[v + 1] += first[v];
    std::vector<std::uint32_t> level(n, none), by(n, none);
    std::vector<std::int64_t> cost(n, far);
    const auto offer = [&](std::uint32_t x) {
      for (std::uint32_t k = first[x]; k < first[x + 1]; ++k) {
        const priced_edge& e = edges_[k];
        if (level[e.to] != none || e.cost >= cost[e.to]) continue;
        cost[e.to] = e.cost;
        by[e.to] = k;
      }
    };
    level[root] = 0;
    offer(root);
    for (std::uint32_t got = 1; got < n; ++got) {
      std::uint32_t best = none;
      for (std::uint32_t v = 0; v < n; ++v)
        if (level[v] == none && cost[v] != far && (best == none || cost[v] < cost[best])) best = v;
      if (best == none) break;
      level[best] = level[edges_[by[best]].from] + 1;
      tree.push_back({edges_[by[best]].from, best, by[best]});
      if (level[best] < most_depth_) offer(best);
    }
    if (tree.size() + 1 == n) return true;
    tree.clear();
    level.assign(n, none);
    level[root] = 0;
    std::vector<std::uint32_t> now{root};
    for (std::uint32_t depth = 1; depth <= most_depth_ && !now.empty(); ++depth) {
      cost.assign(n, far);
      for (const std::uint32_t x : now) offer(x);
      now.clear();
      for (std::uint32_t v = 0; v < n; ++v)
        if (level[v] == none && cost[v] != far) now.push_back(v);
      for (const std::uint32_t v : now) {
        level[v] = depth;
        tree.push_back({edges_[by[v]].from, v, by[v]});
      }
    }
    return tree.size() + 1 == n;
  }

  const pack_network& net_;
  std::span<const std::int64_t> weight_;
  std::span<const std::uint32_t> mirror_;
  bool up_;
  rational limit_, pace_{0}, rate_{0};
  std::int64_t pieces_ = 0, steepness_ = 8;
  std::uint32_t most_depth_ = 0;
  pack_network backward_;
  std::vector<std::uint32_t> turned_;
  std::vector<std::int64_t> load_, price_;
  std::vector<priced_edge> edges_;
  tree_list list_;
};

}}}}  // namespace topocoll::v0::plan::detail
