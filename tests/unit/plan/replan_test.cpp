// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/replan.hpp>
#include <topocoll/plan/replan_codec.hpp>
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
    l.nominal = topocoll::bytes_per_second{20e9};
    l.current = l.capacity;
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

TEST(replanning, names_the_link_that_makes_the_plan_slow) {
  const topo::graph healthy = chords(20), slow = chords(5);
  const auto before = planner().synthesize(problem_on(healthy)).value();
  const auto after = planner().synthesize(problem_on(slow)).value();
  plan::simulator<plan::alpha_beta> prices(slow, plan::alpha_beta::ideal());
  const auto change = plan::compare_plans(prices, problem_on(slow), before, after).value();
  ASSERT_FALSE(change.busier.empty());
  EXPECT_EQ(change.links_busier, change.busier.size());
  const plan::busier_link& worst = change.busier.front();
  EXPECT_TRUE(worst.name == "0 to 1" || worst.name == "1 to 0") << worst.name;
  EXPECT_EQ(worst.rate.value, 5e9);
  ASSERT_TRUE(worst.current && worst.nominal);
  EXPECT_EQ(worst.current->value, 5e9);
  EXPECT_EQ(worst.nominal->value, 20e9);
  EXPECT_GT(worst.busy_before.value, worst.busy_after.value * 1.2);
  EXPECT_NEAR(worst.busy_before.value, static_cast<double>(worst.before.value) / 5e9, 1e-9);
  EXPECT_NE(change.reason.find(worst.name.substr(0, 1)), std::string::npos) << change.reason;
  EXPECT_NE(change.reason.find("with the new plan nothing is busy for more than"), std::string::npos) << change.reason;
  const auto longest = prices.run(problem_on(slow), after).value().busiest;
  for (const plan::busier_link& b : change.busier) {
    EXPECT_GT(b.busy_before, longest) << b.name;
    EXPECT_LE(b.busy_before, worst.busy_before);
    EXPECT_EQ(b.nominal.has_value(), b.rate.value == 5e9) << b.name;  // the others run as they should
  }
}

TEST(replanning, counts_what_is_saved_and_says_when_that_is_enough) {
  plan::plan_change c;
  c.before = topocoll::seconds{10};
  c.after = topocoll::seconds{8};
  EXPECT_DOUBLE_EQ(c.gain(), 0.2);
  EXPECT_TRUE(c.worth(0.2));
  EXPECT_FALSE(c.worth(0.21));
  c.same = true;
  EXPECT_FALSE(c.worth(0));
  c.same = false;
  c.after = topocoll::seconds{10};
  EXPECT_FALSE(c.worth(0)) << "another plan that saves nothing";
  c.after = topocoll::seconds{11};
  EXPECT_DOUBLE_EQ(c.gain(), -0.1);
  EXPECT_FALSE(c.worth(0));
  c.before.reset();
  EXPECT_TRUE(c.worth(1)) << "what cannot run must be replaced";
}

TEST(replanning, tells_why_ways_are_lost) {
  const topo::graph healthy = chords(20), dead = chords(0), renumbered = chords(0, true);
  const auto before = planner().synthesize(problem_on(healthy)).value();
  std::size_t lost = 0;
  std::vector<plan::lost_way> first;
  EXPECT_EQ(plan::with_ways_that_exist(before, problem_on(healthy), lost, &first), before);
  EXPECT_EQ(lost, 0U);
  EXPECT_TRUE(first.empty());
  const auto kept = plan::with_ways_that_exist(before, problem_on(dead), lost, &first);
  EXPECT_EQ(first.size(), std::min(lost, plan::plan_change::most_named));
  ASSERT_FALSE(first.empty());
  for (const plan::lost_way& w : first) {
    EXPECT_TRUE(w.why == "the link from 0 to 1 carries nothing" || w.why == "the link from 1 to 0 carries nothing")
        << w.why;
    EXPECT_NE(w.from, w.to);
  }
  first.clear();
  static_cast<void>(plan::with_ways_that_exist(before, problem_on(renumbered), lost, &first));
  EXPECT_GT(lost, 0U);
  for (const plan::lost_way& w : first)
    EXPECT_TRUE(w.why.find("does not start at") != std::string::npos ||
                w.why.find("not in the graph") != std::string::npos || w.why.find("end at") != std::string::npos)
        << w.why;
}

TEST(replanning, is_told_to_programs) {
  const topo::graph healthy = chords(20), slow = chords(5);
  const auto before = planner().synthesize(problem_on(healthy)).value();
  const auto after = planner().synthesize(problem_on(slow)).value();
  plan::simulator<plan::alpha_beta> prices(slow, plan::alpha_beta::ideal());
  const auto change = plan::compare_plans(prices, problem_on(slow), before, after).value();
  const auto j = plan::to_json_value(change);
  EXPECT_EQ(j.at("same"), false);
  EXPECT_DOUBLE_EQ(j.at("gain").get<double>(), 1 - change.after / *change.before);
  EXPECT_EQ(j.at("busier").size(), change.busier.size());
  EXPECT_EQ(j.at("busier").at(0).at("nominal_rate"), 20e9);
  EXPECT_EQ(j.at("ranks").size(), change.ranks.size());
  EXPECT_EQ(j.at("groups").at("new"), change.groups_new);
  EXPECT_FALSE(j.contains("lost"));
}

TEST(replanning, refuses_plans_of_other_collectives) {
  const topo::graph g = chords(20);
  plan::simulator<plan::alpha_beta> prices(g, plan::alpha_beta::ideal());
  const auto a = planner().synthesize(problem_on(g)).value();
  const auto b = planner().synthesize(problem_on(g, collective_kind::all_gather)).value();
  EXPECT_EQ(plan::compare_plans(prices, problem_on(g), a, b).error().code, errc::invalid_argument);
}

}  // namespace
