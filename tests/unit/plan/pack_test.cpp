// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/pack.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using namespace topocoll;
using plan::pack_kind;
using plan::pack_options;
using plan::packing;
using plan::detail::exact_network;

/// A network under construction: ranks first, or wherever they are made.
struct builder {
  exact_network net{};
  std::vector<std::uint32_t> ranks{};

  std::uint32_t rank() {
    ranks.push_back(net.nodes);
    return net.nodes++;
  }
  std::uint32_t relay() { return net.nodes++; }
  void arc(std::uint32_t u, std::uint32_t v, std::int64_t c) { net.arcs.push_back({u, v, c}); }
  void link(std::uint32_t u, std::uint32_t v, std::int64_t c) {
    arc(u, v, c);
    arc(v, u, c);
  }
  [[nodiscard]] result<packing> pack(pack_kind kind, pack_options options = {},
                                     std::vector<std::int64_t> w = {}) const {
    return plan::pack(net, ranks, w, kind, options);
  }
};

builder ring(std::uint32_t n, std::int64_t c = 6) {
  builder b;
  for (std::uint32_t i = 0; i < n; ++i) b.rank();
  for (std::uint32_t i = 0; i < n && n > 1; ++i)
    if (n > 2 || i == 0) b.link(i, (i + 1) % n, c);
  return b;
}
builder torus(std::uint32_t rows, std::uint32_t columns, std::int64_t x, std::int64_t y) {
  builder b;
  for (std::uint32_t i = 0; i < rows * columns; ++i) b.rank();
  for (std::uint32_t i = 0; i < rows; ++i)
    for (std::uint32_t k = 0; k < columns; ++k) {
      b.link(i * columns + k, i * columns + (k + 1) % columns, x);
      b.link(i * columns + k, (i + 1) % rows * columns + k, y);
    }
  return b;
}
/// Boxes of GPUs on a switch, each GPU with a way to one switch between the boxes.
builder boxes(std::uint32_t count, std::uint32_t gpus, std::int64_t inside, std::int64_t outside) {
  builder b;
  const std::uint32_t fabric = b.relay();
  for (std::uint32_t h = 0; h < count; ++h) {
    const std::uint32_t box = b.relay();
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const std::uint32_t r = b.rank();
      b.link(r, box, inside);
      b.link(r, fabric, outside);
    }
  }
  return b;
}
/// Pods of boxes; GPU i of all boxes of a pod on leaf i, all leaves on all spines.
builder rails(std::uint32_t pods, std::uint32_t per_pod, std::uint32_t gpus, std::int64_t inside, std::int64_t nic,
              std::uint32_t spines, std::int64_t uplink) {
  builder b;
  std::vector<std::uint32_t> spine(spines);
  for (std::uint32_t& s : spine) s = b.relay();
  for (std::uint32_t p = 0; p < pods; ++p) {
    std::vector<std::uint32_t> leaf(gpus);
    for (std::uint32_t& l : leaf) {
      l = b.relay();
      for (const std::uint32_t s : spine) b.link(l, s, uplink);
    }
    for (std::uint32_t h = 0; h < per_pod; ++h) {
      const std::uint32_t box = b.relay();
      for (std::uint32_t g = 0; g < gpus; ++g) {
        const std::uint32_t r = b.rank();
        b.link(r, box, inside);
        b.link(r, leaf[g], nic);
      }
    }
  }
  return b;
}
/// Islands of directly linked GPUs, joined by a few links, one of them missing: nothing is regular.
builder islands() {
  builder b;
  for (int i = 0; i < 10; ++i) b.rank();
  for (std::uint32_t base : {0U, 5U})
    for (std::uint32_t i = 0; i < 5; ++i)
      for (std::uint32_t k = i + 1; k < 5; ++k)
        if (!(base == 5 && i == 1 && k == 3)) b.link(base + i, base + k, (i + k) % 2 == 0 ? 4 : 2);
  b.link(0, 5, 3);
  b.link(1, 6, 3);
  b.link(4, 7, 2);
  return b;
}

/// The packing, checked; fails the test when there is none.
packing checked(const builder& b, pack_kind kind, pack_options options = {}, std::vector<std::int64_t> w = {}) {
  auto p = b.pack(kind, options, w);
  EXPECT_TRUE(p) << (p ? "" : p.error().message());
  if (!p) return {};
  const auto fine = plan::check(*p, b.net, b.ranks, w);
  EXPECT_TRUE(fine) << (fine ? "" : fine.error().message());
  EXPECT_LE(p->weight_per_rank, options.most_pieces);
  return *p;
}
void expect_exact(const builder& b, rational gather, rational spanning) {
  const packing g = checked(b, pack_kind::gather), s = checked(b, pack_kind::spanning);
  EXPECT_EQ(g.rate, gather) << g.rate.numerator() << "/" << g.rate.denominator() << " by " << g.method;
  EXPECT_EQ(g.limit, gather);
  EXPECT_EQ(s.rate, spanning) << s.rate.numerator() << "/" << s.rate.denominator() << " by " << s.method;
  EXPECT_EQ(s.limit, spanning);
}

TEST(pack, uses_every_link_of_a_ring_both_ways) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U})
    expect_exact(ring(n), n == 2 ? rational{6} : rational{12, n - 1}, n == 2 ? rational{6} : rational{6 * n, n - 1});
}
TEST(pack, uses_every_link_of_a_torus_of_any_shape) {
  expect_exact(torus(4, 4, 10, 10), rational{40, 15}, rational{40 * 16, 30});
  expect_exact(torus(4, 4, 10, 4), rational{28, 15}, rational{28 * 16, 30});
  expect_exact(torus(3, 5, 3, 4), rational{1}, rational{15, 2});
}
TEST(pack, of_a_torus_is_as_shallow_as_the_torus) {
  EXPECT_EQ(checked(torus(4, 4, 10, 10), pack_kind::gather).depth, 4U);
}
TEST(pack, of_one_box_sends_straight_to_everybody) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 17U}) {
    builder b;
    const std::uint32_t box = b.relay();
    for (std::uint32_t i = 0; i < n; ++i) b.link(b.rank(), box, 300);
    expect_exact(b, rational{300, n - 1}, rational{std::int64_t{300} * n, 2 * (n - 1)});
    EXPECT_EQ(checked(b, pack_kind::gather).depth, 1U);
  }
}
TEST(pack, of_boxes_reaches_the_closed_form) {
  // max{(N-1) / (b_n + b_r), (H-1) / b_r} is the time per shard.
  expect_exact(boxes(2, 8, 300, 25), rational{325, 15}, rational{325 * 16, 30});
  expect_exact(boxes(4, 8, 300, 25), rational{25, 3}, rational{25 * 32, 6});
  expect_exact(boxes(3, 3, 70, 9), rational{9, 2}, rational{9 * 9, 4});
}
TEST(pack, of_rails_and_spines_reaches_the_closed_form_in_three_steps) {
  const packing narrow = checked(rails(2, 2, 2, 100, 20, 1, 10), pack_kind::gather);
  EXPECT_EQ(narrow.rate, rational{5});  // r (P-1) / b_r = 4 / 20
  EXPECT_EQ(narrow.depth, 3U);
  const packing wide = checked(rails(4, 2, 4, 450, 50, 2, 50), pack_kind::gather);
  EXPECT_EQ(wide.rate, (rational{50, 7}));
  EXPECT_EQ(wide.limit, wide.rate);
  EXPECT_LE(wide.depth, 3U);
}
TEST(pack, of_128_ranks_is_exact) {
  const packing p = checked(rails(8, 2, 8, 1350, 150, 2, 50), pack_kind::gather);
  EXPECT_EQ(p.rate, (rational{50, 7}));  // 112 shards enter a pod by 8 leaves of 2 x 50
  EXPECT_LE(p.depth, 3U);
}
TEST(pack, of_irregular_islands_reaches_the_cut) {
  const builder b = islands();
  const packing g = checked(b, pack_kind::gather), s = checked(b, pack_kind::spanning);
  EXPECT_EQ(g.rate, g.limit);
  EXPECT_EQ(g.rate, (rational{2, 3}));  // rank 8 lacks a link: nine shards through 6
  EXPECT_EQ(s.rate, s.limit);
}
TEST(pack, spans_a_rank_behind_a_thin_link_better_than_equal_shares_would) {
  builder b;
  const std::uint32_t box = b.relay();
  for (int i = 0; i < 3; ++i) b.link(b.rank(), box, 40);
  b.link(b.rank(), b.ranks[0], 5);
  expect_exact(b, rational{5, 3}, rational{5});
}
TEST(pack, puts_all_roots_in_the_middle_of_a_star) {
  builder b;
  const std::uint32_t middle = b.rank();
  for (int i = 0; i < 6; ++i) b.link(middle, b.rank(), 7);
  const packing s = checked(b, pack_kind::spanning);
  EXPECT_EQ(s.rate, rational{7});  // weights of half a share each would not do: the leaves send and receive all once
  EXPECT_EQ(s.rate, s.limit);
}
TEST(pack, loses_nothing_to_one_slow_link_but_that_link) {
  builder b = boxes(2, 8, 300, 25);
  for (exact_network::arc& a : b.net.arcs) a.units *= 2;
  for (exact_network::arc& a : b.net.arcs)
    if ((a.from == b.ranks[11] && a.to == 0) || (a.to == b.ranks[11] && a.from == 0)) a.units /= 2;
  const packing g = checked(b, pack_kind::gather), s = checked(b, pack_kind::spanning);
  EXPECT_EQ(g.rate, (rational{625, 15}));
  EXPECT_EQ(s.rate, s.limit);
  EXPECT_EQ(s.limit, (rational{15 * 650 + 625, 30}));  // sixteen parts of one rank
}
TEST(pack, broadcasts_at_the_narrowest_cut) {
  const builder b = islands();
  for (const std::uint32_t root : {0U, 3U, 8U}) {
    std::vector<std::int64_t> w(10, 0);
    w[root] = 1;
    const packing p = checked(b, pack_kind::gather, {}, w);
    EXPECT_EQ(p.rate, rational{6});  // into rank 8, or out of it
    EXPECT_EQ(p.limit, p.rate);
    for (const plan::packed_tree& t : p.trees) EXPECT_EQ(t.root, root);
  }
}
TEST(pack, serves_uneven_shards_and_ranks_without_any) {
  const packing p = checked(boxes(2, 4, 100, 10), pack_kind::gather, {}, {3, 0, 1, 1, 2, 2, 0, 5});
  EXPECT_EQ(p.rate, p.limit);
}
TEST(pack, takes_equal_weights_above_one) {
  const packing one = checked(boxes(2, 4, 100, 10), pack_kind::gather),
                three = checked(boxes(2, 4, 100, 10), pack_kind::gather, {}, std::vector<std::int64_t>(8, 3));
  EXPECT_EQ(three.rate * rational{3}, one.rate);
}
TEST(pack, goes_different_ways_up_and_down_where_directions_differ) {
  builder b;  // two cliques, 10 one way and 30 back
  for (int i = 0; i < 8; ++i) b.rank();
  for (std::uint32_t u = 0; u < 8; ++u)
    for (std::uint32_t v = 0; v < 8; ++v)
      if (u != v && (u < 3) == (v < 3)) b.arc(u, v, 50);
  b.arc(2, 3, 10);
  b.arc(3, 2, 30);
  const packing g = checked(b, pack_kind::gather), s = checked(b, pack_kind::spanning);
  EXPECT_EQ(g.rate, (rational{10, 3}));
  EXPECT_EQ(s.rate, rational{10});  // all that is reduced or broadcast passes both arcs
  EXPECT_EQ(s.limit, rational{10});
  bool up = false, down = false;
  for (const plan::packed_tree& t : s.trees) {
    up = up || t.use == plan::tree_use::up;
    down = down || t.use == plan::tree_use::down;
  }
  EXPECT_TRUE(up && down);
}
TEST(pack, of_a_one_way_ring_uses_it_all) {
  builder b;
  for (int i = 0; i < 7; ++i) b.rank();
  for (std::uint32_t i = 0; i < 7; ++i) b.arc(i, (i + 1) % 7, 12);
  expect_exact(b, rational{2}, rational{7});
  EXPECT_EQ(checked(b, pack_kind::gather).depth, 6U);
}
TEST(pack, says_when_only_copying_switches_could_do_better) {
  builder b;  // each rank sends 10 into the switch and could receive 30
  const std::uint32_t box = b.relay();
  for (int i = 0; i < 4; ++i) {
    b.arc(b.rank(), box, 10);
    b.arc(box, b.ranks.back(), 30);
  }
  const packing p = checked(b, pack_kind::gather);
  EXPECT_EQ(p.limit, rational{10});
  EXPECT_EQ(p.rate, (rational{10, 3}));
  EXPECT_NE(p.method.find("copy"), std::string::npos) << p.method;
}
TEST(pack, drops_dead_ends_and_joins_what_lies_between_two_nodes) {
  builder b = ring(5);
  const packing plain = checked(b, pack_kind::gather);
  b.link(0, b.relay(), 100);  // leads nowhere
  const std::uint32_t middle = b.relay(), other = b.relay();
  for (exact_network::arc& a : b.net.arcs)
    if ((a.from == 1 && a.to == 2) || (a.from == 2 && a.to == 1)) a.units = 0;
  b.link(1, middle, 6);
  b.link(middle, other, 60);
  b.link(other, 2, 6);
  const packing split = checked(b, pack_kind::gather);
  EXPECT_EQ(split.rate, plain.rate);
  EXPECT_EQ(split.limit, plain.limit);
}
TEST(pack, scales_with_the_capacities_and_not_with_the_numbers_of_the_nodes) {
  const builder b = islands();
  builder thrice = b, turned = b;
  for (exact_network::arc& a : thrice.net.arcs) a.units *= 3;
  for (exact_network::arc& a : turned.net.arcs) {
    a.from = 9 - a.from;
    a.to = 9 - a.to;
  }
  const packing p = checked(b, pack_kind::gather);
  EXPECT_EQ(checked(thrice, pack_kind::gather).rate, p.rate * rational{3});
  EXPECT_EQ(checked(turned, pack_kind::gather).rate, p.rate);
}
TEST(pack, gives_equal_trees_for_equal_networks) {
  const auto a = checked(islands(), pack_kind::spanning), b = checked(islands(), pack_kind::spanning);
  ASSERT_EQ(a.trees.size(), b.trees.size());
  EXPECT_EQ(a.arcs, b.arcs);
}
TEST(pack, needs_fewer_pieces_where_less_than_all_is_wanted) {
  const builder b = boxes(2, 8, 3708, 485);  // 15 / 4193: thousands of pieces for the last bit
  const packing all = checked(b, pack_kind::gather), most = checked(b, pack_kind::gather, {.wanted = 0.97});
  EXPECT_GE((all.rate / all.limit).to_double(), 0.999);
  EXPECT_GE((most.rate / most.limit).to_double(), 0.97);
  EXPECT_LT(most.weight_per_rank, 64);
  builder odd = b;
  odd.net.arcs[5].units = odd.net.arcs[4].units = 1851;
  const packing near = checked(odd, pack_kind::spanning, {.wanted = 0.97});
  EXPECT_GE((near.rate / near.limit).to_double(), 0.97);
  const packing few = checked(odd, pack_kind::gather, {.most_pieces = 5});
  EXPECT_GT(few.rate, rational{0});
}
TEST(pack, stays_within_one_per_cent_on_capacities_that_have_nothing_in_common) {
  builder b = boxes(2, 4, 3701, 483);
  std::int64_t odd = 1;
  for (std::size_t a = 0; a < b.net.arcs.size(); a += 2) {
    b.net.arcs[a].units += odd;
    b.net.arcs[a + 1].units = b.net.arcs[a].units;
    odd = odd * 7 % 31;
  }
  for (const pack_kind kind : {pack_kind::gather, pack_kind::spanning}) {
    const packing p = checked(b, kind);
    EXPECT_GE((p.rate / p.limit).to_double(), 0.99) << p.method;
  }
}
TEST(pack, keeps_trees_as_shallow_as_wanted) {
  const builder b = islands();
  const packing deep = checked(b, pack_kind::gather);
  for (const std::uint32_t depth : {5U, 4U, 3U}) {
    const packing p = checked(b, pack_kind::gather, {.most_depth = depth});
    EXPECT_LE(p.depth, depth);
    EXPECT_LE(p.rate, deep.rate);
  }
  EXPECT_EQ(b.pack(pack_kind::gather, {.most_depth = 1}).error().code, errc::unsupported);
}
TEST(pack, finds_trees_by_price_where_other_methods_are_too_dear) {
  const packing g = checked(islands(), pack_kind::gather, {.effort = 10'000});
  EXPECT_NE(g.method.find("price"), std::string::npos) << g.method;
  EXPECT_GE((g.rate / g.limit).to_double(), 0.9);
}
TEST(pack, refuses_what_makes_no_sense) {
  const builder b = ring(4);
  const std::vector<std::uint32_t> twice{0, 1, 1}, beyond{0, 9}, one{0};
  EXPECT_EQ(plan::pack(b.net, twice, {}, pack_kind::gather).error().code, errc::invalid_argument);
  EXPECT_EQ(plan::pack(b.net, beyond, {}, pack_kind::gather).error().code, errc::invalid_argument);
  EXPECT_EQ(plan::pack(b.net, one, {}, pack_kind::gather).error().code, errc::invalid_argument);
  EXPECT_EQ(b.pack(pack_kind::gather, {}, {1, 1}).error().code, errc::invalid_argument);
  EXPECT_EQ(b.pack(pack_kind::gather, {}, {0, 0, 0, 0}).error().code, errc::invalid_argument);
  EXPECT_EQ(b.pack(pack_kind::gather, {}, {1, -1, 0, 0}).error().code, errc::invalid_argument);
  EXPECT_EQ(b.pack(pack_kind::spanning, {}, {1, 1, 1, 1}).error().code, errc::invalid_argument);
  EXPECT_EQ(b.pack(pack_kind::gather, {.most_pieces = 0}).error().code, errc::invalid_argument);
  builder apart = ring(4);
  apart.rank();
  EXPECT_EQ(apart.pack(pack_kind::gather).error().code, errc::unavailable);
  EXPECT_EQ(apart.pack(pack_kind::spanning).error().code, errc::unavailable);
}

class tampered_packing : public testing::Test {
 protected:
  builder b = boxes(2, 3, 12, 4);
  packing p = checked(b, pack_kind::gather);
  [[nodiscard]] bool accepted() const { return static_cast<bool>(plan::check(p, b.net, b.ranks, {})); }
};
TEST_F(tampered_packing, is_refused_for_a_wrong_rate) {
  p.rate = p.rate * rational{99, 100};
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_wrong_weight) {
  ++p.trees[1].weight;
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_missing_rank) {
  p.edges[0].to = p.edges[1].to;
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_child_before_its_parent) {
  std::swap(p.edges[p.trees[0].first_edge], p.edges[p.trees[0].first_edge + p.trees[0].edge_count - 1]);
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_broken_route) {
  p.arcs[p.edges[0].first_arc] ^= 1U;
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_limit_below_the_rate) {
  p.limit = p.rate * rational{1, 2};
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_wrong_depth) {
  ++p.depth;
  EXPECT_FALSE(accepted());
}
TEST_F(tampered_packing, is_refused_for_a_tree_used_both_ways_without_a_way_back) {
  p.trees[0].use = plan::tree_use::both;
  EXPECT_FALSE(accepted());
}

rational parse(const std::string& text) {
  const auto slash = text.find('/');
  return slash == std::string::npos ? rational{std::stoll(text)}
                                    : rational{std::stoll(text.substr(0, slash)), std::stoll(text.substr(slash + 1))};
}

TEST(pack, reaches_the_exact_answers_of_all_oracles) {
  const char* folder = std::getenv("TOPOCOLL_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
  std::ifstream in(std::string(folder) + "/oracles/cut-bounds.json");
  if (!in) GTEST_SKIP() << "no oracles/cut-bounds.json under " << folder;
  const auto json = nlohmann::json::parse(in);
  int seen = 0;
  for (const auto& t : json["topologies"]) {
    SCOPED_TRACE(t["name"].get<std::string>());
    builder b;
    std::map<std::string, std::uint32_t> id;
    for (const auto& n : t["nodes"]) id[n[0]] = n[1] == "compute" ? b.rank() : b.relay();
    std::int64_t common = 1;
    for (const auto& l : t["links"]) {
      const std::int64_t d = parse(l[2]).denominator();
      common = common / plan::detail::common_divisor(common, d) * d;
    }
    for (const auto& l : t["links"]) b.arc(id[l[0]], id[l[1]], (parse(l[2]) * rational{common}).numerator());
    const rational unit{1, common};
    const auto& e = t["expected"];

    const packing g = checked(b, pack_kind::gather);
    EXPECT_EQ(g.limit * unit, rational{1} / parse(e["inv_rate_allgather"]));
    if (e["balanced_switches"].get<bool>()) {
      EXPECT_EQ(g.rate, g.limit) << g.method;
    } else {
      EXPECT_EQ(g.rate * unit, rational{1} / parse(e["inv_rate_allgather_without_switch_multicast"])) << g.method;
    }
    builder back = b;
    back.net = plan::detail::reversed(back.net);
    const packing r = checked(back, pack_kind::gather);
    EXPECT_EQ(r.limit * unit, rational{1} / parse(e["inv_rate_reducescatter"]));

    const packing s = checked(b, pack_kind::spanning);
    if (e.contains("allreduce_rate_GBps") && e["allreduce_rate_GBps"].is_string()) {
      EXPECT_EQ(s.limit * unit, parse(e["allreduce_rate_GBps"]));
      EXPECT_EQ(s.rate, s.limit) << s.method;
    } else {
      EXPECT_GE((s.rate / s.limit).to_double(), 0.99) << s.method;
    }
    ++seen;
  }
  EXPECT_GE(seen, 31);
}

}  // namespace
