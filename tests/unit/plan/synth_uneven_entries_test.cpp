// SPDX-License-Identifier: Apache-2.0
// Hierarchical plans on clusters in which some NICs are slower than others.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/verify.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>
#include "plan_oracle.hpp"

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using plan::algorithm;
using topocoll::collective_kind;

/// A described cluster in which NIC `k` of all carries only `factor(k)` of its rate, both ways.
template <class Factor>
topo::graph cluster(const std::string& what, Factor factor) {
  topo::fragment f = topocoll::describe(what).value();
  std::vector<std::uint32_t> number(f.nodes.size(), 0);
  std::uint32_t ports = 0;
  for (std::size_t v = 0; v < f.nodes.size(); ++v)
    if (f.nodes[v].kind == topo::node_kind::nic_port) number[v] = ports++;
  for (topo::link& l : f.links) {
    if (l.kind == topo::link_kind::internal) continue;
    for (const auto end : {l.from, l.to})
      if (f.nodes[end.value].kind == topo::node_kind::nic_port)
        l.capacity = {l.capacity.value * factor(number[end.value])};
  }
  return topo::graph::from(std::move(f)).value();
}

plan::problem problem_on(const topo::graph& g, collective_kind c) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 30U};
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}

constexpr plan::hierarchical rings{.in_box = algorithm::ring, .on_rail = algorithm::ring, .across = algorithm::ring};
constexpr collective_kind three[] = {collective_kind::all_reduce, collective_kind::all_gather,
                                     collective_kind::reduce_scatter};

/// Time of the busiest link over the bound, less 1.
double gap_of(const topo::graph& g, collective_kind c) {
  const plan::problem p = problem_on(g, c);
  const auto limit = plan::lower_bound(p);
  const auto made = rings.synthesize(p);
  EXPECT_TRUE(made) << made.error().what;
  const auto price = plan::simulate(p, *made, plan::alpha_beta::ideal());
  EXPECT_TRUE(price) << price.error().what;
  return price->busiest / limit->bandwidth_time - 1;
}

TEST(slow_nics, are_seen_as_slow_entries) {
  const topo::graph g = cluster("dgx-h100:nodes=2", [](std::uint32_t k) { return k == 3 ? 0.5 : k == 9 ? 0.0 : 1.0; });
  const auto at = plan::levels_of(problem_on(g, collective_kind::all_reduce)).value();
  for (std::uint32_t r = 0; r < 16; ++r) EXPECT_EQ(at.entry[r], r == 3 ? 25e9 : r == 9 ? 0 : 50e9) << r;
}

TEST(slow_nics, cost_less_than_one_percent_above_the_bound_on_a_large_cluster) {
  for (const double factor : {0.9, 0.5, 0.0}) {
    const topo::graph g = cluster("dgx-h100:nodes=128,leaves=64,oversubscription=2",
                                  [&](std::uint32_t k) { return k == 77 ? factor : 1; });
    for (const collective_kind c : three) EXPECT_LE(gap_of(g, c), 0.01) << to_string(c) << " " << factor;
  }
}

TEST(slow_nics, cost_nothing_while_all_are_equally_slow) {
  const topo::graph g = cluster("dgx-h100:nodes=16,leaves=16", [](std::uint32_t) { return 0.5; });
  for (const collective_kind c : three) EXPECT_NEAR(gap_of(g, c), 0, 1e-9) << to_string(c);
}

TEST(slow_nics, are_spared_so_that_a_half_rate_nic_costs_no_half) {
  // Without sparing it, one NIC of 64 at half rate doubles the time.
  const topo::graph g = cluster("dgx-h100:nodes=8,leaves=8", [](std::uint32_t k) { return k == 20 ? 0.5 : 1; });
  for (const collective_kind c : three) EXPECT_LE(gap_of(g, c), 0.02) << to_string(c);
}

TEST(slow_nics, anywhere_leave_the_plan_right) {
  std::uint32_t seed = 0;
  for (const char* what : {"dgx-h100:nodes=2", "dgx-h100:nodes=3,leaves=8", "dgx-a100:nodes=4,pods=2"})
    for (int round = 0; round < 2; ++round) {
      std::mt19937 random(++seed);
      std::vector<double> factors(128, 1);
      for (std::uint32_t k = 0; k < 1 + seed % 4; ++k) factors[random() % 24] = static_cast<double>(random() % 4) * 0.3;
      const topo::graph g = cluster(what, [&](std::uint32_t k) { return factors[k]; });
      for (const collective_kind c : three) {
        const auto made = plan::hierarchical{}.synthesize(problem_on(g, c));
        ASSERT_TRUE(made) << made.error().what;
        const auto proved = plan::verify(*made);
        ASSERT_TRUE(proved) << what << " " << to_string(c) << ": " << proved.error().what;
        std::vector<plan::program> all;
        for (std::uint32_t r = 0; r < made->ranks; ++r) all.push_back(plan::lower(*made, {r}).value());
        plan_test::oracle run(std::move(all),
                              {.elements = 3, .in_place = seed % 2 == 0, .buffered = false, .seed = seed});
        EXPECT_EQ(run.run(), "") << what << " " << to_string(c);
      }
    }
}

}  // namespace
