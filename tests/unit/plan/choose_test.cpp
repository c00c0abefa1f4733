// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using plan::algorithm;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::fail;
using topocoll::rank_id;

namespace {

topo::graph cluster() {
  return topo::graph::from(topocoll::describe("dgx-h100:nodes=4,pods=2,oversubscription=3").value()).value();
}

plan::problem problem_of(const topo::graph& g, bytes size, collective_kind kind = collective_kind::all_reduce) {
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = size;
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}

/// Has no answer, and says why.
struct refuses {
  [[nodiscard]] std::string_view name() const { return "refuses"; }
  [[nodiscard]] topocoll::result<plan::schedule> synthesize(const plan::problem&) const {
    return fail(errc::unsupported, "it is Sunday");
  }
};

/// Looks fast and is wrong: reduces half of the array only.
struct forgets {
  [[nodiscard]] std::string_view name() const { return "forgets"; }
  [[nodiscard]] topocoll::result<plan::schedule> synthesize(const plan::problem& q) const {
    auto made = plan::hierarchical{}.synthesize(q);
    if (made) made->stages.pop_back();
    return made;
  }
};

}  // namespace

TEST(choose, takes_of_equally_cheap_plans_the_one_whose_senders_meet_least_on_ethernet) {
  for (const auto kind : {topo::link_kind::ethernet, topo::link_kind::infiniband}) {
    topo::fragment f;  // four hosts on one switch
    topo::node hub;
    hub.kind = topo::node_kind::leaf;
    hub.key = "leaf:0";
    const topocoll::node_id h = f.add(hub);
    for (int k = 0; k < 4; ++k) {
      topo::node port;
      port.kind = topo::node_kind::nic_port;
      port.key = port.host = "host" + std::to_string(k);
      topo::link l;
      l.kind = kind;
      l.from = f.add(port);
      l.to = h;
      l.capacity = 1_Gbps;
      f.join(l);
    }
    const topo::graph g = topo::graph::from(std::move(f)).value();
    plan::problem p = problem_of(g, 64_MiB);
    p.ranks = g.all(topo::node_kind::nic_port);
    const auto c = plan::choose(p, plan::alpha_beta{}, plan::direct{}, plan::ring{}).value();
    const bool meets = kind == topo::link_kind::ethernet;
    EXPECT_EQ(c.candidates[0].planner, meets ? "ring" : "direct");
    EXPECT_EQ(c.candidates[0].price->incast, meets ? 1U : 0U);
    EXPECT_EQ(c.candidates[1].price->incast, meets ? 3U : 0U);
    EXPECT_LT(c.candidates[0].price->time, 1.005 * c.candidates[1].price->time);
    EXPECT_EQ(c.candidates[0].reason.find("gentlest") != std::string::npos, meets) << c.candidates[0].reason;
    // A plan that costs more is not taken for that.
    p.size = 8_KiB;
    EXPECT_EQ(plan::choose(p, plan::alpha_beta{}, plan::direct{}, plan::ring{})->candidates[0].planner, "direct");
  }
}

TEST(choose, takes_the_cheapest_plan_and_proves_it) {
  const topo::graph g = cluster();
  const auto c =
      plan::choose(problem_of(g, 64_MiB), plan::alpha_beta{}, plan::ring{}, plan::recursive{}, plan::hierarchical{})
          .value();
  EXPECT_EQ(c.candidates.front().planner, "hierarchical");
  ASSERT_TRUE(c.candidates.front().proved);
  EXPECT_EQ(c.candidates.front().proved->ranks, 32U);
  ASSERT_EQ(c.candidates.size(), 3U);
  EXPECT_LE(c.price().time, c.candidates[1].price->time);
  EXPECT_LE(c.candidates[1].price->time, c.candidates[2].price->time);
  EXPECT_FALSE(c.candidates[1].proved);  // only what could have been chosen
  EXPECT_NEAR(c.gap, c.price().time / c.limit.time - 1, 1e-12);
  EXPECT_GE(c.gap, 0);
}

TEST(choose, does_not_depend_on_the_order_of_planners) {
  const topo::graph g = cluster();
  const auto p = problem_of(g, 1_MiB);
  const auto a = plan::choose(p, plan::alpha_beta{}, plan::ring{}, plan::hierarchical{}, plan::direct{}).value();
  const auto b = plan::choose(p, plan::alpha_beta{}, plan::direct{}, plan::hierarchical{}, plan::ring{}).value();
  EXPECT_EQ(digest(a.best()), digest(b.best()));
}

TEST(choose, lists_a_planner_without_an_answer_with_its_reason) {
  const topo::graph g = cluster();
  const auto c = plan::choose(problem_of(g, 1_MiB), plan::alpha_beta{}, refuses{}, plan::ring{}).value();
  ASSERT_EQ(c.candidates.size(), 2U);
  EXPECT_EQ(c.candidates[1].planner, "refuses");
  EXPECT_EQ(c.candidates[1].reason, "it is Sunday");
  EXPECT_FALSE(c.candidates[1].price);
}

TEST(choose, never_takes_a_plan_that_cannot_be_proved) {
  const topo::graph g = cluster();
  const auto p = problem_of(g, 1_MiB);
  const auto c = plan::choose(p, plan::alpha_beta{}, forgets{}, plan::ring{}).value();
  EXPECT_EQ(c.candidates.front().planner, "ring");
  ASSERT_EQ(c.candidates[1].planner, "forgets");
  ASSERT_TRUE(c.candidates[1].why_not);
  EXPECT_LT(c.candidates[1].price->time, c.price().time);  // it would have been cheaper
  EXPECT_EQ(plan::choose(p, plan::alpha_beta{}, forgets{}).error().code, errc::unsupported);
}

TEST(choose, fails_with_all_reasons_when_nobody_has_a_plan) {
  const topo::graph g = cluster();
  const auto c = plan::choose(problem_of(g, 1_MiB), plan::alpha_beta{}, refuses{});
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::unsupported);
  EXPECT_EQ(c.error().what, "no planner has a plan for all_reduce among 32 ranks (refuses: it is Sunday)");
}

TEST(choose, takes_the_planner_that_is_asked_for) {
  const topo::graph g = cluster();
  plan::simulator<plan::alpha_beta> prices(g, {});
  plan::choose_options options;
  options.only = "ring";
  const auto c = plan::choose(prices, problem_of(g, 64_MiB), options, plan::hierarchical{}, plan::ring{}).value();
  EXPECT_EQ(c.candidates.front().planner, "ring");
  EXPECT_EQ(c.candidates.front().reason, "asked for");
  EXPECT_EQ(c.candidates[1].reason, "faster, but another planner was asked for");
  options.only = "rnig";
  const auto none = plan::choose(prices, problem_of(g, 64_MiB), options, plan::hierarchical{}, plan::ring{});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message(), "no planner is called 'rnig'; take one of hierarchical, ring");
}

TEST(choose, lists_a_plan_once_that_two_planners_make) {
  const topo::graph g = cluster();
  const auto c = plan::choose(problem_of(g, 64_MiB), plan::alpha_beta{}, plan::ring{},
                              plan::ring{.order = plan::ring_order::rank, .rings = 0, .slices = 2})
                     .value();
  EXPECT_EQ(c.candidates.size(), 1U);  // they differ in slices only, and these are chosen by price
}

TEST(choose, cuts_large_arrays_into_slices_and_small_ones_not) {
  const topo::graph g = cluster();
  EXPECT_EQ(plan::choose(problem_of(g, 8_B), plan::alpha_beta{}, plan::hierarchical{})->best().slices, 1U);
  EXPECT_GE(plan::choose(problem_of(g, 1_GiB), plan::alpha_beta{}, plan::hierarchical{})->best().slices, 16U);
}

TEST(choose, works_for_one_rank_and_for_no_bytes) {
  const topo::graph g = cluster();
  auto p = problem_of(g, bytes{0});
  EXPECT_TRUE(
      plan::with_default_planners([&](const auto&... all) { return plan::choose(p, plan::alpha_beta{}, all...); }));
  p.size = 1_MiB;
  p.ranks.resize(1);
  const auto one =
      plan::with_default_planners([&](const auto&... all) { return plan::choose(p, plan::alpha_beta{}, all...); });
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->price().time, plan::alpha_beta{}.launch());
}

TEST(choose, comes_close_to_the_bound_of_large_arrays) {
  const topo::graph g = cluster();
  for (const auto kind : {collective_kind::all_reduce, collective_kind::all_gather}) {
    const auto p = problem_of(g, 256_MiB, kind);
    const auto c = plan::with_default_planners([&](const auto&... all) {
                     return plan::choose(p, plan::alpha_beta{}, all...);
                   }).value();
    EXPECT_LT(c.gap, 0.25) << to_string(kind) << ' ' << c.candidates.front().name;
  }
}

TEST(crossovers, agree_with_choosing_at_each_size) {
  const topo::graph g = cluster();
  plan::simulator<plan::alpha_beta> prices(g, {});
  auto p = problem_of(g, 64_MiB);
  const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
  const auto sizes = plan::doubling_sizes(1_KiB, 256_MiB);
  ASSERT_EQ(sizes.size(), 19U);
  const auto map = plan::with_default_planners([&](const auto&... all) {
                     return plan::crossovers(prices, p, limit, sizes, {}, all...);
                   }).value();
  ASSERT_EQ(map.size(), sizes.size());
  for (std::size_t k = 0; k < map.size(); k += 6) {
    p.size = sizes[k];
    const auto c =
        plan::with_default_planners([&](const auto&... all) { return plan::choose(prices, p, {}, all...); }).value();
    EXPECT_EQ(map[k].name, c.candidates.front().name) << p.size.value;
    EXPECT_NEAR(map[k].time.value, c.price().time.value, 1e-12);
    EXPECT_NEAR(map[k].bound_time.value, c.limit.time.value, 1e-12);
  }
  EXPECT_NE(map.front().name, map.back().name);
}

TEST(doubling_sizes, ends_at_the_last_and_survives_the_largest) {
  EXPECT_EQ(plan::doubling_sizes(1_KiB, 4_KiB), (std::vector<bytes>{1_KiB, 2_KiB, 4_KiB}));
  EXPECT_EQ(plan::doubling_sizes(3_KiB, 4_KiB), (std::vector<bytes>{3_KiB}));
  EXPECT_TRUE(plan::doubling_sizes(bytes{0}, 4_KiB).empty());
  EXPECT_TRUE(plan::doubling_sizes(4_KiB, 1_KiB).empty());
  EXPECT_EQ(plan::doubling_sizes(bytes{1}, bytes{UINT64_MAX}).size(), 64U);
}
