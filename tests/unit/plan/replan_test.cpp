// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/replan.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using topocoll::collective_kind;
using topocoll::errc;

/// Six GPUs in a ring with two chords; the link from 0 to 1 carries `rate` GB/s.
topo::graph chords(double rate, bool without = false) {
  topo::fragment f;
  for (std::uint32_t v = 0; v < 6; ++v) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = std::to_string(v);
    f.add(n);
  }
  for (const auto& [a, b] : {std::pair{0U, 1U}, {1U, 2U}, {2U, 3U}, {3U, 4U}, {4U, 5U}, {5U, 0U}, {0U, 3U}, {1U, 4U}}) {
    if (without && a == 0 && b == 1) continue;
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = {a};
    l.to = {b};
    l.capacity = {(a == 0 && b == 1 ? rate : 20) * 1e9};
    f.join(l);
  }
  return topo::graph::from(std::move(f)).value();
}
plan::problem problem_on(const topo::graph& g, collective_kind c = collective_kind::all_reduce) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 28U};
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}
plan::packed planner() {
  plan::packed p;
  p.cost = plan::alpha_beta::ideal();
  return p;
}

TEST(replanning, beats_the_plan_of_the_healthy_machine_when_a_link_slows_down) {
  const topo::graph healthy = chords(20), slow = chords(5);
  for (const collective_kind c : {collective_kind::all_reduce, collective_kind::all_gather}) {
    const auto before = planner().synthesize(problem_on(healthy, c)).value();
    const auto after = planner().synthesize(problem_on(slow, c)).value();
    plan::simulator<plan::alpha_beta> prices(slow, plan::alpha_beta::ideal());
    const auto change = plan::compare_plans(prices, problem_on(slow, c), before, after);
    ASSERT_TRUE(change) << change.error().what;
    EXPECT_FALSE(change->same);
    ASSERT_TRUE(change->before);
    EXPECT_GT(change->before->value, change->after.value * 1.2) << to_string(c);
    EXPECT_EQ(change->ways_lost, 0U);
    EXPECT_FALSE(change->ranks.empty());
    EXPECT_NE(change->words.find("the new one takes"), std::string::npos) << change->words;
  }
}

TEST(replanning, changes_nothing_when_nothing_changed) {
  const topo::graph g = chords(20);
  const auto made = planner().synthesize(problem_on(g)).value();
  plan::simulator<plan::alpha_beta> prices(g, plan::alpha_beta::ideal());
  const auto change = plan::compare_plans(prices, problem_on(g), made, made).value();
  EXPECT_TRUE(change.same);
  EXPECT_TRUE(change.ranks.empty());
  EXPECT_EQ(change.groups_new + change.groups_dropped, 0U);
  EXPECT_EQ(*change.before, change.after);
}

TEST(replanning, leaves_ways_that_are_gone_to_routing) {
  const topo::graph healthy = chords(20), cut = chords(0, true);
  const auto before = planner().synthesize(problem_on(healthy)).value();
  const auto after = planner().synthesize(problem_on(cut)).value();
  plan::simulator<plan::alpha_beta> prices(cut, plan::alpha_beta::ideal());
  const auto change = plan::compare_plans(prices, problem_on(cut), before, after);
  ASSERT_TRUE(change) << change.error().what;
  EXPECT_GT(change->ways_lost, 0U);  // links are numbered otherwise without the first
  EXPECT_TRUE(!change->before || *change->before > change->after) << change->words;
}

TEST(replanning, touches_only_some_groups_when_a_nic_slows_down_in_a_large_cluster) {
  const auto cluster = [](double factor) {
    topo::fragment f = topocoll::describe("dgx-h100:nodes=16,leaves=8").value();
    std::uint32_t port = 0;
    while (f.nodes[port].kind != topo::node_kind::nic_port) ++port;
    for (topo::link& l : f.links)
      if (l.kind != topo::link_kind::internal && (l.from.value == port || l.to.value == port))
        l.capacity = {l.capacity.value * factor};
    return topo::graph::from(std::move(f)).value();
  };
  const topo::graph healthy = cluster(1), slow = cluster(0.5);
  const plan::hierarchical rings{
      .in_box = plan::algorithm::ring, .on_rail = plan::algorithm::ring, .across = plan::algorithm::ring, .slices = 8};
  const auto before = rings.synthesize(problem_on(healthy, collective_kind::all_gather)).value();
  const auto after = rings.synthesize(problem_on(slow, collective_kind::all_gather)).value();
  plan::simulator<plan::alpha_beta> prices(slow, plan::alpha_beta{});
  const auto change = plan::compare_plans(prices, problem_on(slow, collective_kind::all_gather), before, after).value();
  EXPECT_GT(change.before->value, change.after.value * 1.3);
  EXPECT_GT(change.groups_kept, 0U);
}

TEST(replanning, refuses_plans_of_other_collectives) {
  const topo::graph g = chords(20);
  plan::simulator<plan::alpha_beta> prices(g, plan::alpha_beta::ideal());
  const auto a = planner().synthesize(problem_on(g)).value();
  const auto b = planner().synthesize(problem_on(g, collective_kind::all_gather)).value();
  EXPECT_EQ(plan::compare_plans(prices, problem_on(g), a, b).error().code, errc::invalid_argument);
}

}  // namespace
