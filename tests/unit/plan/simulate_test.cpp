// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <sanitized.hpp>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/topo/routes.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using plan::algorithm;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::link_id;
using topocoll::node_id;
using topocoll::rank_id;
using topocoll::seconds;

namespace {

topo::graph described(const std::string& spec) { return topo::graph::from(topocoll::describe(spec).value()).value(); }

plan::problem problem_of(const topo::graph& g, collective_kind kind, bytes size) {
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = size;
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}

/// n GPUs on one switch, each with its own link of 100 GB/s.
topo::graph star(std::uint32_t n) {
  topo::fragment f;
  topo::node hub;
  hub.kind = topo::node_kind::nvswitch;
  hub.key = "hub";
  const node_id h = f.add(hub);
  for (std::uint32_t k = 0; k < n; ++k) {
    topo::node gpu;
    gpu.kind = topo::node_kind::gpu;
    gpu.key = "gpu" + std::to_string(k);
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = f.add(gpu);
    l.to = h;
    l.capacity = 100.0_GBps;
    f.join(l);
  }
  return topo::graph::from(f).value();
}

constexpr collective_kind all_kinds[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::broadcast,
                                         collective_kind::reduce,         collective_kind::all_to_all};

}  // namespace

TEST(simulate, gives_the_closed_forms_of_rings_on_one_switch) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U}) {
    const topo::graph g = star(n);
    const double one = 1e9 / 100e9;  // the whole array over one link
    for (const auto kind :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter}) {
      auto p = problem_of(g, kind, bytes{1'000'000'000});
      const auto ring = plan::flat_schedule(kind, n, {}, algorithm::ring).value();
      const auto s = plan::simulate(p, ring, plan::alpha_beta::ideal()).value();
      const double phases = kind == collective_kind::all_reduce ? 2 : 1;
      EXPECT_NEAR(s.time.value, phases * (n - 1) / n * one, 1e-9 * one) << n << ' ' << to_string(kind);
      EXPECT_EQ(s.rounds, phases * (n - 1));
      EXPECT_NEAR(s.share, 1, 1e-9);
    }
  }
}

TEST(simulate, adds_latency_of_every_round) {
  const topo::graph g = star(5);
  const plan::alpha_beta cost;
  auto p = problem_of(g, collective_kind::all_reduce, bytes{0});
  const auto ring = plan::flat_schedule(p.collective, 5, {}, algorithm::ring).value();
  const auto s = plan::simulate(p, ring, cost).value();
  const double step = 2 * cost.price(topo::link_kind::nvlink).latency.value;
  EXPECT_NEAR(s.time.value, cost.launch().value + 8 * step, 1e-15);
}

TEST(simulate, charges_each_further_message_of_a_round) {
  const topo::graph g = star(8);
  const plan::alpha_beta cost;
  auto p = problem_of(g, collective_kind::all_gather, bytes{8});
  const auto direct = plan::flat_schedule(p.collective, 8, {}, algorithm::direct).value();
  const auto s = plan::simulate(p, direct, cost).value();
  EXPECT_NEAR(s.latency.value, 2 * cost.price(topo::link_kind::nvlink).latency.value + 6 * cost.post().value, 1e-15);
}

TEST(simulate, puts_exactly_the_traffic_of_the_plan_on_the_links) {
  const topo::graph g = star(7);
  for (const auto kind : all_kinds)
    for (const auto how :
         {algorithm::ring, algorithm::recursive, algorithm::direct, algorithm::tree, algorithm::double_tree}) {
      const auto plan =
          plan::flat_schedule(kind, 7, {}, how, {.slices = how == algorithm::double_tree ? 2U : 1U, .pieces = 0});
      if (!plan) continue;
      auto p = problem_of(g, kind, bytes{plan->chunks() * std::uint64_t{1000}});
      const auto s = plan::simulate(p, *plan, plan::alpha_beta::ideal()).value();
      std::uint64_t chunks = 0;
      for (const plan::traffic_round& r : plan::traffic(*plan))
        for (const plan::transfer& t : r.moves) chunks += t.chunks * r.repeat;
      // Every transfer crosses two links of the star.
      EXPECT_EQ(s.by_class[static_cast<std::size_t>(plan::link_class::gpu_link)].total.value, 2 * chunks * 1000)
          << to_string(kind) << ' ' << to_string(how);
    }
}

TEST(simulate, of_another_size_is_what_at_foretells) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=2,oversubscription=2");
  const auto p = problem_of(g, collective_kind::all_reduce, 64_MiB);
  const auto made = plan::hierarchical{.in_box = {}, .on_rail = algorithm::ring, .across = algorithm::ring, .slices = 4}
                        .synthesize(p)
                        .value();
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto s = prices.run(p, made).value();
  auto q = p;
  q.size = 1_GiB;
  EXPECT_NEAR(s.at(q.size).value, prices.run(q, made)->time.value, 1e-9);
}

TEST(simulate, of_another_number_of_slices_is_what_cut_into_foretells) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=2,oversubscription=2");
  const auto p = problem_of(g, collective_kind::all_gather, 64_MiB);
  const plan::alpha_beta cost;
  plan::simulator<plan::alpha_beta> prices(g, cost);
  auto made = plan::hierarchical{.in_box = {}, .on_rail = algorithm::ring, .across = algorithm::ring, .slices = 1}
                  .synthesize(p)
                  .value();
  auto s = prices.run(p, made).value();
  made.slices = 4;
  s.cut_into(4);
  EXPECT_NEAR(s.time.value, prices.run(p, made)->time.value, 1e-12);
  EXPECT_LT(
      s.unhidden,
      prices
          .run(p, plan::hierarchical{.in_box = {}, .on_rail = algorithm::ring, .across = algorithm::ring, .slices = 1}
                      .synthesize(p)
                      .value())
          ->unhidden);
}

TEST(simulate, hands_data_of_one_numa_domain_over_through_its_memory) {
  topo::fragment f;
  topo::node cpu, memory;
  cpu.kind = topo::node_kind::cpu;
  cpu.key = "numa:0";
  memory.kind = topo::node_kind::host_memory;
  memory.key = "memory:0";
  topo::link l;
  l.kind = topo::link_kind::memory;
  l.from = f.add(cpu);
  l.to = f.add(memory);
  l.capacity = 20.0_GBps;
  f.join(l);
  const topo::graph g = topo::graph::from(f).value();
  plan::problem p;
  p.graph = &g;
  p.collective = collective_kind::all_gather;
  p.size = bytes{4'000'000'000};
  p.ranks.assign(4, node_id{0});
  const auto direct = plan::flat_schedule(p.collective, 4, {}, algorithm::direct).value();
  const auto s = plan::simulate(p, direct, plan::alpha_beta::ideal()).value();
  EXPECT_NEAR(s.time.value, 3 * 4e9 / 20e9, 1e-9);  // twelve shards of 1 GB, one after the other
  EXPECT_EQ(s.by_class[static_cast<std::size_t>(plan::link_class::memory)].used, 2U);
  EXPECT_TRUE(s.notes.empty());
}

TEST(simulate, says_when_it_could_not_price_a_hand_over) {
  const topo::graph g = star(2);
  auto p = problem_of(g, collective_kind::all_gather, 1_MiB);
  p.ranks = {p.ranks[0], p.ranks[0], p.ranks[1]};
  const auto ring = plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value();
  const auto s = plan::simulate(p, ring, plan::alpha_beta{}).value();
  ASSERT_EQ(s.notes.size(), 1U);
  EXPECT_NE(s.notes[0].find("not priced"), std::string::npos);
}

TEST(simulate, refuses_plans_that_are_for_something_else) {
  const topo::graph g = star(3);
  const auto p = problem_of(g, collective_kind::all_reduce, 1_MiB);
  const auto four = plan::flat_schedule(p.collective, 4, {}, algorithm::ring).value();
  EXPECT_EQ(plan::simulate(p, four, plan::alpha_beta{}).error().code, errc::invalid_argument);
  const auto gather = plan::flat_schedule(collective_kind::all_gather, 3, {}, algorithm::ring).value();
  EXPECT_EQ(plan::simulate(p, gather, plan::alpha_beta{}).error().code, errc::invalid_argument);
  auto lost = p;
  lost.ranks[2] = {77};
  EXPECT_EQ(plan::simulate(lost, plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value(), plan::alpha_beta{})
                .error()
                .code,
            errc::invalid_argument);
}

TEST(simulate, refuses_ranks_that_no_way_joins) {
  topo::fragment f;
  for (const char* key : {"a", "b"}) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = key;
    f.add(n);
  }
  const topo::graph g = topo::graph::from(f).value();
  const auto p = problem_of(g, collective_kind::all_reduce, 1_MiB);
  const auto ring = plan::flat_schedule(p.collective, 2, {}, algorithm::ring).value();
  EXPECT_EQ(plan::simulate(p, ring, plan::alpha_beta{}).error().code, errc::unavailable);
}

TEST(router, keeps_what_enters_a_node_equal_to_what_leaves_it) {
  for (const std::string spec : {"dgx-h100:nodes=4,pods=2,oversubscription=2", "dgx-h100:nodes=2,detail=full", "dgx-1v",
                                 "dgx-a100:nodes=3,leaves=3"}) {
    const topo::graph g = described(spec);
    plan::detail::router<> routes(g);
    const auto gpus = g.all(topo::node_kind::gpu);
    for (const node_id a : gpus)
      for (const node_id b : gpus) {
        std::vector<double> surplus(g.node_count(), 0);
        ASSERT_TRUE(routes.route(a, b, [&](link_id e, double share) {
          surplus[g.tail(e).value] -= share;
          surplus[g.head(e).value] += share;
        })) << spec;
        for (std::uint32_t v = 0; v < g.node_count(); ++v) {
          const double wanted = a == b ? 0 : (v == a.value ? -1 : (v == b.value ? 1 : 0));
          ASSERT_NEAR(surplus[v], wanted, 1e-12) << spec << " node " << g.at(node_id{v}).key;
        }
      }
  }
}

TEST(router, uses_as_many_links_as_the_ways_that_topo_finds) {
  for (const std::string spec : {"dgx-h100:nodes=4,pods=2,oversubscription=2", "dgx-h100:nodes=4,leaves=8", "dgx-a100",
                                 "dgx-a100:nodes=3,leaves=3"}) {
    const topo::graph g = described(spec);
    plan::detail::router<> routes(g);
    const auto gpus = g.all(topo::node_kind::gpu);
    for (const node_id a : gpus)
      for (const node_id b : gpus) {
        const auto way = topo::route(g, a, b);
        ASSERT_TRUE(way);
        double hops = 0;  // shares of links add up to the length of the route, all equal ways being as long
        (void)routes.route(a, b, [&](link_id, double share) { hops += share; });
        ASSERT_NEAR(hops, static_cast<double>(way->links.size()), 1e-9)
            << spec << ' ' << g.at(a).key << " to " << g.at(b).key;
      }
  }
}

TEST(router, splits_evenly_over_the_spines) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=2,spines=4");
  plan::detail::router<> routes(g);
  const auto gpus = g.all(topo::node_kind::gpu);
  std::vector<double> up;
  ASSERT_TRUE(routes.route(gpus[0], gpus[31], [&](link_id e, double share) {
    if (plan::class_of(g, e) == plan::link_class::leaf_up) up.push_back(share);
  }));
  EXPECT_EQ(up, (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

TEST(router, stays_inside_a_host_when_it_can) {
  const topo::graph g = described("dgx-a100:nodes=2,detail=full");
  plan::detail::router<> routes(g);
  const auto gpus = g.all(topo::node_kind::gpu);
  for (int k = 1; k < 8; ++k)
    ASSERT_TRUE(
        routes.route(gpus[0], gpus[k], [&](link_id e, double) { EXPECT_EQ(g.at(e).kind, topo::link_kind::nvlink); }));
}

TEST(router, gives_the_same_routes_whatever_was_asked_before) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=2,detail=full");
  const auto gpus = g.all(topo::node_kind::gpu);
  const auto told = [&](plan::detail::router<>& r, node_id a, node_id b) {
    std::vector<std::pair<std::uint32_t, double>> links;
    (void)r.route(a, b, [&](link_id e, double share) { links.push_back({e.value, share}); });
    std::ranges::sort(links);
    return links;
  };
  plan::detail::router<> busy(g);
  for (const node_id a : gpus)
    for (const node_id b : gpus) (void)told(busy, a, b);
  for (const std::size_t k : {1U, 9U, 17U, 31U}) {
    plan::detail::router<> fresh(g);
    EXPECT_EQ(told(fresh, gpus[3], gpus[k]), told(busy, gpus[3], gpus[k]));
  }
}

// The two judges of a plan do not share code: one of them is wrong when a price beats the bound.
TEST(simulate, never_beats_the_lower_bound) {
  std::size_t plans = 0;
  double best_gap = 1e9;
  for (const std::string spec : {"dgx-a100", "dgx-1v", "dgx-h100:nodes=2", "dgx-h100:nodes=3,detail=full",
                                 "dgx-h100:nodes=4,pods=2,oversubscription=3", "dgx-h100:nodes=5,leaves=5",
                                 "dgx-a100:nodes=4,pods=4,oversubscription=4"}) {
    if (topocoll_test::sanitized && plans > 300) break;
    const topo::graph g = described(spec);
    plan::simulator<plan::alpha_beta> real(g, {}), ideal(g, plan::alpha_beta::ideal());
    for (const auto kind : all_kinds)
      for (const bytes size : {bytes{0}, bytes{8}, 64_KiB, bytes{10'000'019}, 1_GiB}) {
        auto p = problem_of(g, kind, size);
        const auto b = plan::lower_bound(p, plan::alpha_beta{}).value();
        const auto nominal = plan::lower_bound(p).value();
        const auto judge = [&](const auto& planner) {
          const auto made = planner.synthesize(p);
          if (!made) return;
          ++plans;
          const auto s = real.run(p, *made), t = ideal.run(p, *made);
          ASSERT_TRUE(s && t) << spec << ' ' << planner.name() << (s ? "" : s.error().message());
          EXPECT_GE(s->time.value, b.time.value * (1 - 1e-9))
              << spec << ' ' << to_string(kind) << ' ' << size.value << ' ' << planner.name();
          EXPECT_GE(t->time.value, nominal.bandwidth_time.value * (1 - 1e-9))
              << spec << ' ' << to_string(kind) << ' ' << planner.name();
          if (size == 1_GiB) best_gap = std::min(best_gap, s->time / b.time - 1);
        };
        plan::with_default_planners([&](const auto&... planners) { (judge(planners), ...); });
      }
  }
  EXPECT_GT(plans, topocoll_test::sanitized ? 300U : 1000U);
  EXPECT_LT(best_gap, 0.05) << "no plan comes near its bound: the bound or the price is too loose";
}

TEST(simulate, never_beats_the_lower_bound_on_processes_of_a_host) {
  const topo::graph g = described("dgx-a100:detail=full");
  const auto domains = g.all(topo::node_kind::cpu);
  for (const std::uint32_t n : {2U, 3U, 5U, 8U})
    for (const auto kind : all_kinds) {
      plan::problem p;
      p.graph = &g;
      p.collective = kind;
      p.size = 16_MiB;
      for (std::uint32_t r = 0; r < n; ++r) p.ranks.push_back(domains[r * domains.size() / n]);
      const plan::alpha_beta cost = plan::alpha_beta::host();
      const auto b = plan::lower_bound(p, cost).value();
      plan::with_default_planners([&](const auto&... planners) {
        const auto judge = [&](const auto& planner) {
          const auto made = planner.synthesize(p);
          if (!made) return;
          const auto s = plan::simulate(p, *made, cost);
          ASSERT_TRUE(s) << s.error().message();
          EXPECT_GE(s->time.value, b.time.value * (1 - 1e-9))
              << n << ' ' << to_string(kind) << ' ' << planner.name() << ": " << b.cut;
        };
        (judge(planners), ...);
      });
    }
}
