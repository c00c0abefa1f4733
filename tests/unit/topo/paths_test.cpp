// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>
#include <topocoll/topo/concepts.hpp>
#include <topocoll/topo/paths.hpp>
#include <gtest/gtest.h>

using namespace topocoll::literals;
using topocoll::bytes_per_second;
using topocoll::link_id;
using topocoll::node_id;
namespace topo = topocoll::topo;

namespace {

/// The least that a LinkGraph can be.
class plain_graph {
 public:
  explicit plain_graph(std::size_t nodes) : out_(nodes) {}
  link_id add(std::uint32_t from, std::uint32_t to, double capacity) {
    const link_id e{static_cast<std::uint32_t>(head_.size())};
    out_[from].push_back(e);
    head_.push_back({to});
    capacity_.push_back({capacity});
    return e;
  }
  void join(std::uint32_t a, std::uint32_t b, double capacity) {
    add(a, b, capacity);
    add(b, a, capacity);
  }
  [[nodiscard]] std::size_t node_count() const { return out_.size(); }
  [[nodiscard]] std::size_t link_count() const { return head_.size(); }
  [[nodiscard]] std::span<const link_id> out_links(node_id v) const { return out_[v.value]; }
  [[nodiscard]] node_id head(link_id e) const { return head_[e.value]; }
  [[nodiscard]] bytes_per_second capacity(link_id e) const { return capacity_[e.value]; }

 private:
  std::vector<std::vector<link_id>> out_;
  std::vector<node_id> head_;
  std::vector<bytes_per_second> capacity_;
};
static_assert(topo::LinkGraph<plain_graph>);
static_assert(topo::LinkGraph<topo::reversed<plain_graph>>);

/// Small numbers from a seed, the same everywhere.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 2862933555777941757U + 3037000493U) {}
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33U) % n;
  }

 private:
  std::uint64_t state_;
};

struct random_case {
  plain_graph g{0};
  std::vector<std::uint8_t> closed_nodes, closed_links;
  [[nodiscard]] topo::closed_parts closed() const { return {closed_nodes, closed_links}; }
};

random_case random_graph(std::uint64_t seed) {
  dice d(seed);
  random_case c;
  const std::uint32_t n = 1 + d.below(7);
  c.g = plain_graph(n);
  const std::uint32_t links = n < 2 ? 0 : d.below(4 * n);
  for (std::uint32_t i = 0; i < links; ++i) {
    const std::uint32_t a = d.below(n);
    const std::uint32_t b = d.below(n);
    if (a != b) c.g.add(a, b, d.below(5));  // 0 is a dead link
  }
  for (std::uint32_t v = 0; v < n; ++v) c.closed_nodes.push_back(d.below(4) == 0 ? 1 : 0);
  for (std::uint32_t e = 0; e < c.g.link_count(); ++e) c.closed_links.push_back(d.below(6) == 0 ? 1 : 0);
  return c;
}

/// Every simple path, found by trying everything.
void every_path(const random_case& c, node_id at, node_id to, std::vector<bool>& seen, std::vector<link_id>& links,
                std::vector<std::vector<link_id>>& found) {
  if (at == to) {
    found.push_back(links);
    return;
  }
  if (!links.empty() && c.closed_nodes[at.value] != 0) return;
  for (const link_id e : c.g.out_links(at)) {
    const node_id w = c.g.head(e);
    if (seen[w.value] || c.closed_links[e.value] != 0 || c.g.capacity(e).value <= 0) continue;
    seen[w.value] = true;
    links.push_back(e);
    every_path(c, w, to, seen, links, found);
    links.pop_back();
    seen[w.value] = false;
  }
}
std::vector<std::vector<link_id>> every_path(const random_case& c, node_id from, node_id to) {
  std::vector<bool> seen(c.g.node_count(), false);
  seen[from.value] = true;
  std::vector<link_id> links;
  std::vector<std::vector<link_id>> found;
  every_path(c, from, to, seen, links, found);
  return found;
}
double least_capacity(const plain_graph& g, const std::vector<link_id>& links) {
  double least = topo::unlimited.value;
  for (const link_id e : links) least = std::min(least, g.capacity(e).value);
  return least;
}

constexpr std::uint64_t seeds = 400;

}  // namespace

TEST(path_tree, agrees_with_trying_every_path) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const random_case c = random_graph(seed);
    for (std::uint32_t a = 0; a < c.g.node_count(); ++a) {
      const topo::path_tree tree(c.g, {a}, c.closed());
      for (std::uint32_t b = 0; b < c.g.node_count(); ++b) {
        const auto all = every_path(c, {a}, {b});
        ASSERT_EQ(tree.reaches({b}), !all.empty());
        const auto way = tree.to({b});
        ASSERT_EQ(way.has_value(), !all.empty());
        if (!way) continue;
        std::size_t hops = all[0].size();
        for (const auto& p : all) hops = std::min(hops, p.size());
        double widest = 0;
        for (const auto& p : all)
          if (p.size() == hops) widest = std::max(widest, least_capacity(c.g, p));
        ASSERT_EQ(way->links.size(), hops);
        ASSERT_EQ(tree.hops({b}), hops);
        ASSERT_EQ(way->rate.value, widest);
        ASSERT_EQ(tree.rate({b}).value, widest);
        ASSERT_NE(std::ranges::find(all, way->links), all.end()) << "not one of the possible paths";
        ASSERT_EQ(way->limit.has_value(), hops > 0);
        if (!way->limit) continue;
        ASSERT_EQ(c.g.capacity(*way->limit).value, widest);
        ASSERT_TRUE(way->crosses(*way->limit));
        for (const link_id e : way->links) {  // the limit is the first of its kind
          if (e == *way->limit) break;
          ASSERT_GT(c.g.capacity(e).value, widest);
        }
        const auto single = topo::shortest_widest(c.g, {a}, {b}, c.closed());
        ASSERT_TRUE(single);
        ASSERT_EQ(single->links, way->links);
        ASSERT_EQ(single->limit, way->limit);
      }
    }
  }
}

TEST(path_tree, prefers_the_smaller_link_id_between_equal_ways) {
  plain_graph g(4);
  g.add(0, 2, 5);
  g.add(0, 1, 5);
  g.add(1, 3, 5);
  g.add(2, 3, 5);
  const auto way = topo::shortest_widest(g, {0}, {3});
  ASSERT_TRUE(way);
  EXPECT_EQ(way->links, (std::vector<link_id>{{1}, {2}}));
}

TEST(path_tree, prefers_fewer_hops_to_more_width) {
  plain_graph g(3);
  g.add(0, 2, 1);
  g.add(0, 1, 9);
  g.add(1, 2, 9);
  EXPECT_EQ(topo::shortest_widest(g, {0}, {2})->rate.value, 1);
}

TEST(path_tree, takes_the_wider_of_parallel_links) {
  plain_graph g(2);
  g.add(0, 1, 1);
  g.add(0, 1, 3);
  g.add(0, 1, 2);
  EXPECT_EQ(topo::shortest_widest(g, {0}, {1})->links[0].value, 1U);
}

TEST(path_tree, of_a_node_to_itself_has_no_links_and_no_limit) {
  plain_graph g(1);
  const auto way = topo::shortest_widest(g, {0}, {0});
  ASSERT_TRUE(way);
  EXPECT_TRUE(way->links.empty());
  EXPECT_FALSE(way->limit);
  EXPECT_EQ(way->rate, topo::unlimited);
}

TEST(path_tree, of_a_long_chain_takes_linear_time) {
  constexpr std::uint32_t n = 300'000;
  plain_graph g(n);
  for (std::uint32_t v = 0; v + 1 < n; ++v) g.join(v, v + 1, v == 777 ? 1 : 2);
  const topo::path_tree tree(g, {0});
  EXPECT_EQ(tree.hops({n - 1}), n - 1);
  EXPECT_EQ(tree.to({n - 1})->limit->value, 2 * 777U);
}

TEST(reversed, has_every_link_the_other_way_round) {
  const random_case c = random_graph(11);
  const topo::reversed<plain_graph> r(c.g);
  std::size_t links = 0;
  for (std::uint32_t v = 0; v < c.g.node_count(); ++v)
    for (const link_id e : r.out_links({v})) {
      ++links;
      EXPECT_EQ(c.g.head(e).value, v);
      const auto out = c.g.out_links(r.head(e));
      EXPECT_NE(std::ranges::find(out, e), out.end());
      EXPECT_EQ(r.capacity(e), c.g.capacity(e));
    }
  EXPECT_EQ(links, c.g.link_count());
}

TEST(next_hops, lead_along_all_shortest_paths_and_no_others) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const random_case c = random_graph(seed);
    const topo::reversed<plain_graph> r(c.g);
    for (std::uint32_t b = 0; b < c.g.node_count(); ++b) {
      const topo::next_hops ways(r, {b}, c.closed());
      for (std::uint32_t a = 0; a < c.g.node_count(); ++a) {
        auto all = every_path(c, {a}, {b});
        std::size_t hops = static_cast<std::size_t>(-1);
        for (const auto& p : all) hops = std::min(hops, p.size());
        std::erase_if(all, [&](const auto& p) { return p.size() != hops; });
        ASSERT_EQ(ways.reaches({a}), !all.empty());
        ASSERT_EQ(ways.path_count({a}), static_cast<double>(all.size()));
        auto found = topo::equal_paths(c.g, ways, {a}, 1000);
        std::vector<std::vector<link_id>> links;
        for (const auto& p : found) {
          links.push_back(p.links);
          ASSERT_EQ(p.rate.value, least_capacity(c.g, p.links));
        }
        std::ranges::sort(links);
        std::ranges::sort(all);
        ASSERT_EQ(links, all);
        const std::size_t fewer = all.size() / 2;
        ASSERT_EQ(topo::equal_paths(c.g, ways, {a}, fewer).size(), fewer);
      }
    }
  }
}

TEST(equal_split, is_what_a_walker_does_who_chooses_evenly) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const random_case c = random_graph(seed);
    for (std::uint32_t b = 0; b < c.g.node_count(); ++b) {
      const topo::next_hops ways(c.g, {b}, c.closed());
      for (std::uint32_t a = 0; a < c.g.node_count(); ++a) {
        std::map<std::uint32_t, double> expected;
        for (const auto& p : topo::equal_paths(c.g, ways, {a}, 1000)) {
          double chance = 1;
          node_id at{a};
          for (const link_id e : p.links) {
            chance /= static_cast<double>(ways.at(at).size());
            at = c.g.head(e);
          }
          for (const link_id e : p.links) expected[e.value] += chance;
        }
        const auto split = topo::equal_split(c.g, ways, {a});
        ASSERT_EQ(split.size(), expected.size());
        for (const auto& s : split) ASSERT_NEAR(s.share, expected[s.link.value], 1e-12);
      }
    }
  }
}

TEST(equal_split, of_a_leaf_spreads_over_its_uplinks) {
  plain_graph g(6);  // leaves 0 and 1, spines 2 to 5, one spine with two cables to each leaf
  for (std::uint32_t s = 2; s < 6; ++s)
    for (std::uint32_t l = 0; l < 2; ++l)
      for (std::uint32_t k = 0; k < (s == 5 ? 2U : 1U); ++k) g.join(l, s, 50);
  const topo::next_hops ways(g, {1});
  EXPECT_EQ(ways.path_count({0}), 3 * 1 + 2 * 2);
  double up = 0;
  for (const auto& s : topo::equal_split(g, ways, {0}))
    if (g.head(s.link).value >= 2) {
      EXPECT_DOUBLE_EQ(s.share, 0.2);
      up += s.share;
    }
  EXPECT_DOUBLE_EQ(up, 1);
}
