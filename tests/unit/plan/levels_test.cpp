// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/levels.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

problem on(const plan_test::cluster& c) { return plan_test::on(c, collective_kind::all_reduce, bytes{1}); }

TEST(levels_of, finds_boxes_rails_and_pods) {
  const auto c = plan_test::build(plan_test::even(2, 3, 4));
  const levels at = levels_of(on(c)).value();
  EXPECT_EQ(at.boxes, 6U);
  EXPECT_EQ(at.pods, 2U);
  EXPECT_EQ(at.rails, 4U);
  EXPECT_TRUE(at.fabric_known);
  for (std::uint32_t r = 0; r < 24; ++r) {
    EXPECT_EQ(at.box[r], r / 4);
    EXPECT_EQ(at.rail[r], r % 4);
    EXPECT_EQ(at.pod[r], r / 12);
  }
  EXPECT_EQ(at.all_pairs, std::vector<bool>(6, true));
}

TEST(levels_of, follows_the_hardware_when_ranks_are_scattered) {
  auto c = plan_test::build(plan_test::even(2, 2, 4));
  std::vector<node_id> scattered;
  for (std::uint32_t r = 0; r < 16; ++r) scattered.push_back(c.gpus[(r * 5 + 3) % 16]);
  problem q = on(c);
  q.ranks = scattered;
  const levels at = levels_of(q).value();
  for (std::uint32_t a = 0; a < 16; ++a)
    for (std::uint32_t b = 0; b < 16; ++b) {
      const std::uint32_t ga = (a * 5 + 3) % 16, gb = (b * 5 + 3) % 16;
      EXPECT_EQ(at.box[a] == at.box[b], ga / 4 == gb / 4);
      EXPECT_EQ(at.rail[a] == at.rail[b], ga % 4 == gb % 4);
      EXPECT_EQ(at.pod[a] == at.pod[b], ga / 8 == gb / 8);
    }
  EXPECT_EQ(at.box[0], 0U);  // numbered by the lowest rank
  EXPECT_EQ(at.pod[0], 0U);
}

TEST(levels_of, closes_ranks_when_a_box_is_not_full) {
  const auto c = plan_test::build({.pods = {{4, 4}}});
  problem q = on(c);
  q.ranks = {c.gpus[1], c.gpus[3], c.gpus[4], c.gpus[5], c.gpus[7]};
  const levels at = levels_of(q).value();
  EXPECT_EQ(at.box, (std::vector<std::uint32_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(at.rails, 3U);
  // Leaves 0, 1 and 3 are in use. GPU 1 of the first box keeps leaf 1's place, GPU 3 takes what is left of its two.
  EXPECT_EQ(at.rail, (std::vector<std::uint32_t>{1, 0, 0, 1, 2}));
}

TEST(levels_of, gives_equal_leaves_equal_rails_in_partly_used_boxes) {
  const auto c = plan_test::build({.pods = {{4, 4}}});
  problem q = on(c);
  q.ranks = {c.gpus[0], c.gpus[1], c.gpus[2], c.gpus[5], c.gpus[6], c.gpus[7]};  // GPUs 0 1 2 here, 1 2 3 there
  const levels at = levels_of(q).value();
  EXPECT_EQ(at.rail[1], at.rail[3]);  // both GPU 1
  EXPECT_EQ(at.rail[2], at.rail[4]);  // both GPU 2
}

TEST(levels_of, makes_one_pod_of_boxes_without_a_fabric) {
  plan_test::cluster_shape shape = plan_test::even(2, 2, 2);
  shape.fabric = false;
  const auto c = plan_test::build(shape);
  const levels at = levels_of(on(c)).value();
  EXPECT_EQ(at.pods, 1U);
  EXPECT_FALSE(at.fabric_known);
}

TEST(levels_of, makes_a_pod_of_what_one_leaf_joins) {
  plan_test::cluster_shape shape = plan_test::even(3, 2, 2);
  shape.rail_leaves = false;
  const auto c = plan_test::build(shape);
  EXPECT_EQ(levels_of(on(c)).value().pods, 3U);
}

TEST(levels_of, makes_one_box_of_hosts_that_nvlink_joins) {
  topo::fragment f;
  for (std::uint32_t i = 0; i < 4; ++i) {
    topo::node gpu;
    gpu.kind = topo::node_kind::gpu;
    gpu.host = i < 2 ? "a" : "b";
    gpu.key = gpu.host + "/gpu:" + std::to_string(i % 2);
    gpu.index = i % 2;
    f.add(gpu);
  }
  topo::node plane;
  plane.kind = topo::node_kind::nvswitch;
  plane.key = "rack/nvswitch";
  const node_id p = f.add(plane);
  for (std::uint32_t i = 0; i < 4; ++i) {
    topo::link l;
    l.from = {i};
    l.to = p;
    l.kind = topo::link_kind::nvlink;
    l.capacity = {450e9};
    f.join(l);
  }
  const topo::graph g = topo::graph::from(f).value();
  const problem q{
      .graph = &g, .collective = collective_kind::all_reduce, .size = {}, .ranks = {{0}, {1}, {2}, {3}}, .root = {}};
  const levels at = levels_of(q).value();
  EXPECT_EQ(at.boxes, 1U);
  EXPECT_EQ(at.rail, (std::vector<std::uint32_t>{0, 1, 2, 3}));  // host by host
  EXPECT_TRUE(at.all_pairs[0]);

  // A wire that carries nothing joins nobody.
  for (topo::link& l : f.links)
    if (l.from.value == 3 || l.to.value == 3) l.capacity = {};
  const topo::graph broken = topo::graph::from(f).value();
  problem r = q;
  r.graph = &broken;
  EXPECT_EQ(levels_of(r).value().boxes, 1U);  // still one host with rank 2
  EXPECT_FALSE(levels_of(r).value().all_pairs[0]);
}

TEST(levels_of, needs_a_graph_and_ranks_on_it) {
  problem q;
  EXPECT_EQ(levels_of(q).error().code, errc::invalid_argument);
  const auto c = plan_test::build(plan_test::even(1, 1, 2));
  q = on(c);
  q.ranks.push_back({999});
  EXPECT_NE(levels_of(q).error().what.find("rank 2 sits on node 999"), std::string::npos);
  q.ranks.clear();
  EXPECT_FALSE(levels_of(q));
}

}  // namespace
