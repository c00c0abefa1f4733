// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/verify.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>
#include "plan_oracle.hpp"

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::node_id;

constexpr collective_kind with_trees[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                          collective_kind::reduce_scatter, collective_kind::broadcast,
                                          collective_kind::reduce,         collective_kind::gather,
                                          collective_kind::scatter};

/// GPUs joined by links of so many GB/s: `joined[k]` is {a, b, rate from a to b, rate back}.
struct wire {
  std::uint32_t a, b;
  double there, back;
};
topo::graph mesh(std::uint32_t gpus, std::uint32_t switches, const std::vector<wire>& wires) {
  topo::fragment f;
  for (std::uint32_t v = 0; v < gpus + switches; ++v) {
    topo::node n;
    n.kind = v < gpus ? topo::node_kind::gpu : topo::node_kind::pcie_switch;
    n.key = std::to_string(v);
    f.add(n);
  }
  for (const wire& w : wires) {
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = {w.a};
    l.to = {w.b};
    l.capacity = {w.there * 1e9};
    f.links.push_back(l);
    std::swap(l.from, l.to);
    l.capacity = {w.back * 1e9};
    f.links.push_back(l);
  }
  return topo::graph::from(std::move(f)).value();
}

plan::problem problem_on(const topo::graph& g, collective_kind c) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 28U};
  p.ranks = g.all(topo::node_kind::gpu);
  p.root = {static_cast<std::uint32_t>(p.ranks.size() / 2)};
  return p;
}

/// Proved, right on numbers, and at most `most` above the bound.
void expect_good(const topo::graph& g, double most, const std::string& what) {
  const plan::alpha_beta nominal = plan::alpha_beta::ideal();
  plan::packed planner;
  planner.cost = nominal;
  for (const collective_kind c : with_trees) {
    const plan::problem p = problem_on(g, c);
    const auto made = planner.synthesize(p);
    ASSERT_TRUE(made) << what << " " << to_string(c) << ": " << made.error().what;
    const auto proved = plan::verify(*made);
    ASSERT_TRUE(proved) << what << " " << to_string(c) << ": " << proved.error().what;
    const auto limit = plan::lower_bound(p, nominal);
    const auto price = plan::simulate(p, *made, nominal);
    ASSERT_TRUE(price) << price.error().what;
    EXPECT_LE(price->busiest / limit->bandwidth_time - 1, most) << what << " " << to_string(c);
    EXPECT_GE(price->busiest / limit->bandwidth_time - 1, -1e-9) << what << " " << to_string(c);
    std::vector<plan::program> all;
    for (std::uint32_t r = 0; r < made->ranks; ++r) all.push_back(plan::lower(*made, {r}).value());
    plan_test::oracle run(std::move(all), {.elements = 5, .in_place = true, .buffered = false, .seed = 3});
    EXPECT_EQ(run.run(), "") << what << " " << to_string(c);
  }
}

TEST(packed, uses_two_islands_joined_by_a_slow_bridge_to_the_full) {
  // Two islands of three with links of 40 GB/s, joined by two links of 10 GB/s.
  expect_good(mesh(6, 0,
                   {{0, 1, 40, 40},
                    {1, 2, 40, 40},
                    {0, 2, 40, 40},
                    {3, 4, 40, 40},
                    {4, 5, 40, 40},
                    {3, 5, 40, 40},
                    {0, 3, 10, 10},
                    {1, 4, 10, 10}}),
              1e-9, "islands");
}

TEST(packed, works_around_a_lost_link_and_a_slow_one) {
  std::vector<wire> wires;
  for (std::uint32_t a = 0; a < 5; ++a)
    for (std::uint32_t b = a + 1; b < 5; ++b)
      wires.push_back({a, b, a == 0 && b == 3 ? 12.5 : 25.0, a == 0 && b == 3 ? 12.5 : 25.0});
  expect_good(mesh(5, 0, wires), 1e-9, "slow link");
  wires.erase(wires.begin() + 4);
  expect_good(mesh(5, 0, wires), 1e-9, "lost link");
}

TEST(packed, makes_a_pendant_gpu_a_leaf) {
  expect_good(mesh(4, 1, {{0, 4, 30, 30}, {1, 4, 30, 30}, {2, 4, 30, 30}, {3, 0, 5, 5}}), 1e-9, "pendant");
}

TEST(packed, uses_links_that_are_faster_one_way) {
  expect_good(mesh(4, 0, {{0, 1, 20, 10}, {1, 2, 20, 10}, {2, 3, 20, 10}, {3, 0, 20, 10}}), 0.01, "one way");
}

TEST(packed, reaches_the_bound_on_boxes_whose_nvlinks_bind) {
  for (const char* what : {"dgx-a100:nodes=2,leaves=8", "dgx-h100:nodes=2", "dgx-h100:nodes=3"})
    expect_good(topo::graph::from(topocoll::describe(what).value()).value(), 1e-4, what);
}

TEST(packed, refuses_what_trees_cannot_do) {
  const topo::graph g = mesh(3, 0, {{0, 1, 10, 10}, {1, 2, 10, 10}});
  EXPECT_EQ(plan::packed{}.synthesize(problem_on(g, collective_kind::all_to_all)).error().code, errc::unsupported);
  plan::problem p = problem_on(g, collective_kind::all_reduce);
  p.ranks = {{0}, {0}, {1}};
  p.root = {};
  EXPECT_EQ(plan::packed{}.synthesize(p).error().code, errc::unsupported);
  p.graph = nullptr;
  EXPECT_EQ(plan::packed{}.synthesize(p).error().code, errc::invalid_argument);
  p = problem_on(g, collective_kind::all_reduce);
  EXPECT_EQ((plan::packed{.cost = {}, .most_depth = 0, .most_ranks = 2, .effort = 1}.synthesize(p).error().code),
            errc::unsupported);
  const topo::graph apart = mesh(3, 0, {{0, 1, 10, 10}});
  EXPECT_FALSE(plan::packed{}.synthesize(problem_on(apart, collective_kind::all_reduce)));
}

TEST(packed, of_one_rank_does_nothing) {
  const topo::graph g = mesh(1, 0, {});
  for (const collective_kind c : with_trees) {
    const auto made = plan::packed{}.synthesize(problem_on(g, c));
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_TRUE(plan::verify(*made));
  }
}

}  // namespace
