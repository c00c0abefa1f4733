// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

/// What a plan sends, as shares of the whole array.
struct load {
  std::vector<double> nic_out;  ///< per rank, to other boxes
  double across_pods = 0;       ///< all ranks together
  bool keeps_rails = true;      ///< what leaves a box arrives on the same rail
};

load load_of(const schedule& s, const levels& at) {
  load l;
  l.nic_out.assign(s.ranks, 0);
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves) {
      if (at.box[t.from.value] == at.box[t.to.value]) continue;
      const double share = static_cast<double>(t.chunks) * r.repeat / s.chunks();
      l.nic_out[t.from.value] += share;
      if (at.pod[t.from.value] != at.pod[t.to.value]) l.across_pods += share;
      l.keeps_rails = l.keeps_rails && at.rail[t.from.value] == at.rail[t.to.value];
    }
  return l;
}

std::vector<std::string> labels(const schedule& s) {
  std::vector<std::string> all;
  for (const stage& st : s.stages) all.push_back(st.label);
  return all;
}

TEST(hierarchical, moves_the_least_over_nics_and_spine_and_keeps_rails) {
  constexpr std::uint32_t pods = 2, boxes = 3, gpus = 4, all_boxes = pods * boxes, n = all_boxes * gpus;
  auto c = plan_test::build(plan_test::even(pods, boxes, gpus));
  for (std::uint32_t r = 0; r < n; ++r) std::swap(c.gpus[r], c.gpus[(r * 7 + 5) % n]);  // numbering must not matter
  for (const collective_kind kind :
       {collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_reduce}) {
    const problem q = plan_test::on(c, kind, bytes{64U << 20U});
    const schedule s = hierarchical{}.synthesize(q).value();
    const load l = load_of(s, levels_of(q).value());
    const double halves = kind == collective_kind::all_reduce ? 2 : 1;
    // Shards of 1/n: H-1 leave every NIC, P-1 of each cross the spine.
    for (const double out : l.nic_out) EXPECT_NEAR(out, halves * (all_boxes - 1) / n, 1e-12) << to_string(kind);
    EXPECT_NEAR(l.across_pods, halves * (pods - 1), 1e-12) << to_string(kind);
    EXPECT_TRUE(l.keeps_rails) << to_string(kind);
  }
}

TEST(hierarchical, of_rooted_collectives_sends_an_equal_part_on_every_rail) {
  constexpr std::uint32_t gpus = 4;
  const auto c = plan_test::build(plan_test::even(2, 3, gpus));
  for (const collective_kind kind : {collective_kind::broadcast, collective_kind::reduce}) {
    const problem q = plan_test::on(c, kind, bytes{64U << 20U}, {6});
    const schedule s = hierarchical{}.synthesize(q).value();
    const levels at = levels_of(q).value();
    const load l = load_of(s, at);
    EXPECT_TRUE(l.keeps_rails);
    EXPECT_NEAR(l.across_pods, 1, 1e-12);  // once to the other pod
    for (std::uint32_t r = 0; r < s.ranks; ++r)
      EXPECT_LE(l.nic_out[r], 1.0 / gpus + 1e-12);  // a chain: to the next box
  }
}

TEST(hierarchical, goes_up_and_down_the_levels) {
  const auto c = plan_test::build(plan_test::even(2, 3, 4));
  const auto of = [&](collective_kind kind) {
    return labels(hierarchical{}.synthesize(plan_test::on(c, kind, bytes{64U << 20U}, {5})).value());
  };
  EXPECT_EQ(of(collective_kind::all_reduce),
            (std::vector<std::string>{"reduce_scatter in the box", "reduce_scatter on the rail in the pod",
                                      "all_reduce across pods", "all_gather on the rail in the pod",
                                      "all_gather in the box"}));
  EXPECT_EQ(of(collective_kind::all_gather),
            (std::vector<std::string>{"all_gather across pods", "all_gather on the rail in the pod",
                                      "all_gather in the box"}));
  EXPECT_EQ(of(collective_kind::reduce_scatter),
            (std::vector<std::string>{"reduce_scatter in the box", "reduce_scatter on the rail in the pod",
                                      "reduce_scatter across pods"}));
  EXPECT_EQ(of(collective_kind::broadcast),
            (std::vector<std::string>{"scatter in the root's box", "broadcast on the rail", "all_gather in the box"}));
  const hierarchical trees{.in_box = {}, .on_rail = algorithm::tree, .across = algorithm::tree};
  EXPECT_EQ(labels(trees.synthesize(plan_test::on(c, collective_kind::broadcast, bytes{64U << 20U}, {5})).value()),
            (std::vector<std::string>{"scatter in the root's box", "broadcast across pods",
                                      "broadcast on the rail in the pod", "all_gather in the box"}));
}

TEST(hierarchical, leaves_out_levels_that_are_not_there) {
  const auto stages = [&](const plan_test::cluster_shape& shape) {
    const auto c = plan_test::build(shape);
    return labels(hierarchical{}.synthesize(plan_test::on(c, collective_kind::all_reduce, bytes{64U << 20U})).value());
  };
  EXPECT_EQ(stages(plan_test::even(1, 1, 8)), (std::vector<std::string>{"all_reduce in the box"}));
  EXPECT_EQ(stages(plan_test::even(1, 4, 1)), (std::vector<std::string>{"all_reduce on the rail"}));
  EXPECT_EQ(stages(plan_test::even(4, 1, 1)), (std::vector<std::string>{"all_reduce across pods"}));
  EXPECT_EQ(stages(plan_test::even(1, 4, 2)),
            (std::vector<std::string>{"reduce_scatter in the box", "all_reduce on the rail", "all_gather in the box"}));
  EXPECT_TRUE(stages(plan_test::even(1, 1, 1)).empty());
}

TEST(hierarchical, shares_the_work_of_unequal_boxes) {
  // 8 + 7 ranks: each box must send and get the array once (all_reduce), so a rank of the smaller box at least 1/7 of it.
  const auto c = plan_test::build({.pods = {{8, 7}}});
  const problem q = plan_test::on(c, collective_kind::all_reduce, bytes{64U << 20U});
  const schedule s = hierarchical{}.synthesize(q).value();
  const load l = load_of(s, levels_of(q).value());
  for (std::uint32_t r = 0; r < 15; ++r) EXPECT_NEAR(l.nic_out[r], r < 8 ? 1.0 / 8 : 1.0 / 7, 1e-12) << r;
  ASSERT_TRUE(verify(s));
}

TEST(hierarchical, works_on_awkward_shapes) {
  const std::vector<plan_test::cluster_shape> shapes{
      {.pods = {{8, 7}}},      {.pods = {{8, 8, 1}}}, {.pods = {{1, 1, 1}}},   {.pods = {{3}, {5, 2}, {1}}},
      {.pods = {{2, 2}, {2}}}, {.pods = {{8}, {1}}},  {.pods = {{5, 3, 7, 2}}}};
  for (const auto& shape : shapes) {
    const auto c = plan_test::build(shape);
    for (const collective_kind kind :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter,
          collective_kind::broadcast, collective_kind::reduce})
      for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{64} << 20U}) {
        const auto s = hierarchical{}.synthesize(
            plan_test::on(c, kind, bytes{size}, {static_cast<std::uint32_t>(c.gpus.size() - 1)}));
        ASSERT_TRUE(s) << s.error().what;
        const auto proved = verify(*s);
        EXPECT_TRUE(proved) << to_string(kind) << ": " << proved.error().what;
      }
  }
}

TEST(hierarchical, carries_the_shards_of_a_missing_rail_evenly) {
  // Boxes of 8, 8 and 4: the small one must get 16 foreign shards over 4 NICs, so 4 each; nobody may get many more.
  const auto c = plan_test::build({.pods = {{8, 8, 4}}});
  const problem q = plan_test::on(c, collective_kind::all_gather, bytes{64U << 20U});
  const schedule s =
      hierarchical{.in_box = {}, .on_rail = algorithm::direct, .across = {}, .slices = 1}.synthesize(q).value();
  const levels at = levels_of(q).value();
  std::vector<double> in(20, 0);
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves)
      if (at.box[t.from.value] != at.box[t.to.value])
        in[t.to.value] += static_cast<double>(t.chunks) * r.repeat / s.chunks() * 20;
  for (std::uint32_t r = 16; r < 20; ++r) EXPECT_NEAR(in[r], 4, 1e-9) << r;
}

TEST(hierarchical, is_direct_in_boxes_where_all_pairs_are_wired_until_scratch_gets_large) {
  plan_test::cluster_shape shape = plan_test::even(1, 2, 4);
  const auto wired = plan_test::build(shape);
  shape.nvswitch = false;
  const auto plain = plan_test::build(shape);
  const auto how = [](const plan_test::cluster& c, hierarchical h, bytes size) {
    return h.synthesize(plan_test::on(c, collective_kind::all_reduce, size)).value().stages[0].how;
  };
  EXPECT_EQ(how(wired, {}, bytes{1U << 20U}), algorithm::direct);
  EXPECT_EQ(how(wired, {}, bytes{1U << 30U}), algorithm::ring);
  EXPECT_EQ(how(plain, {}, bytes{1U << 20U}), algorithm::ring);
  EXPECT_EQ(how(plain, {.in_box = algorithm::recursive}, bytes{1U << 20U}), algorithm::recursive);
}

TEST(hierarchical, takes_fewer_steps_for_few_bytes) {
  const auto c = plan_test::build(plan_test::even(1, 8, 2));
  const auto rail = [&](std::uint64_t size) {
    return hierarchical{}.synthesize(plan_test::on(c, collective_kind::all_reduce, bytes{size})).value().stages[1].how;
  };
  EXPECT_EQ(rail(1U << 10U), algorithm::recursive);
  EXPECT_EQ(rail(std::uint64_t{1} << 30U), algorithm::ring);
}

TEST(hierarchical, lets_each_byte_of_a_broadcast_leave_the_root_and_each_nic_once) {
  for (const std::string spec :
       {"dgx-h100:nodes=2", "dgx-h100:nodes=4", "dgx-a100:nodes=5", "dgx-h100:nodes=6,pods=3"}) {
    const topo::graph g = topo::graph::from(describe(spec).value()).value();
    for (const auto kind : {collective_kind::broadcast, collective_kind::reduce})
      for (const std::uint32_t root : {0U, 5U, 7U}) {
        problem p;
        p.graph = &g;
        p.collective = kind;
        p.size = bytes{std::uint64_t{1} << 30U};
        p.ranks = g.all(topo::node_kind::gpu);
        p.root = {root};
        const hierarchical planner{
            .in_box = algorithm::direct, .on_rail = algorithm::ring, .across = algorithm::ring, .slices = 2};
        const schedule plan = planner.synthesize(p).value();
        const auto proved = verify(plan);
        ASSERT_TRUE(proved) << spec << ' ' << to_string(kind) << ' ' << root << ": " << proved.error().what;
        const auto price = simulate(p, plan, alpha_beta::ideal()).value();
        const auto limit = lower_bound(p).value();
        EXPECT_NEAR(price.busiest / limit.bandwidth_time, 1, 0.01) << spec << ' ' << to_string(kind) << ' ' << root;
      }
  }
}

TEST(hierarchical, lets_each_byte_of_a_broadcast_leave_the_root_of_a_box_once) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 17U}) {
    const auto c = plan_test::build(plan_test::even(1, 1, n));
    for (const auto kind : {collective_kind::broadcast, collective_kind::reduce}) {
      const auto p = plan_test::on(c, kind, bytes{std::uint64_t{1} << 30U}, {n / 2});
      const schedule plan = hierarchical{.in_box = algorithm::direct}.synthesize(p).value();
      ASSERT_TRUE(verify(plan)) << n;
      std::uint64_t root_moves = 0;
      for (const traffic_round& r : traffic(plan))
        for (const transfer& t : r.moves)
          if (t.from == p.root || t.to == p.root) root_moves += t.chunks * r.repeat;
      EXPECT_EQ(root_moves, plan.chunks()) << n << ' ' << to_string(kind);
    }
  }
}

TEST(hierarchical, refuses_what_it_has_no_plan_for) {
  const auto c = plan_test::build(plan_test::even(1, 2, 2));
  EXPECT_EQ(hierarchical{}.synthesize(plan_test::on(c, collective_kind::all_to_all, bytes{1})).error().code,
            errc::unsupported);
  EXPECT_EQ(hierarchical{}.synthesize(plan_test::on(c, collective_kind::broadcast, bytes{1}, {4})).error().code,
            errc::invalid_argument);
  EXPECT_EQ((hierarchical{.on_rail = algorithm::doubling})
                .synthesize(plan_test::on(c, collective_kind::all_gather, bytes{1}))
                .error()
                .code,
            errc::unsupported);
  problem flat;
  flat.ranks.resize(4);
  EXPECT_EQ(hierarchical{}.synthesize(flat).error().code, errc::invalid_argument);
}

}  // namespace
