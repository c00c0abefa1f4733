// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sanitized.hpp>
#include <span>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/flow_simulate.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/simulate.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using plan::algorithm;
using plan::alpha_beta;
using plan::flow_options;
using plan::flow_simulation;

topo::graph described(const std::string& spec) { return topo::graph::from(describe(spec).value()).value(); }

plan::problem problem_of(const topo::graph& g, collective_kind kind, bytes size) {
  return {.graph = &g, .collective = kind, .size = size, .ranks = g.all(topo::node_kind::gpu), .root = {}};
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
                                         collective_kind::reduce,         collective_kind::all_to_all,
                                         collective_kind::gather,         collective_kind::scatter};

std::vector<plan::program> programs_of(const plan::schedule& s) {
  std::vector<plan::program> all;
  for (std::uint32_t r = 0; r < s.ranks; ++r) all.push_back(plan::lower(s, {r}).value());
  return all;
}

/// Two ranks and one chunk each way, by hand.
struct by_hand {
  std::vector<plan::program> all = std::vector<plan::program>(2);

  by_hand() {
    for (std::uint32_t r = 0; r < 2; ++r) {
      all[r].ranks = 2;
      all[r].rank = {r};
      all[r].scratch_cells = 8;
      all[r].channels = 8;
      all[r].stages = {"by hand"};
    }
  }
  by_hand& step_of(std::uint32_t rank, std::vector<plan::op> ops, std::vector<std::uint32_t> after = {},
                   std::uint32_t channel = 0) {
    plan::program& p = all[rank];
    p.steps.push_back({channel, 0, static_cast<std::uint32_t>(p.ops.size()), static_cast<std::uint32_t>(ops.size()),
                       std::move(after)});
    p.ops.insert(p.ops.end(), ops.begin(), ops.end());
    return *this;
  }
};
plan::op send(std::uint32_t peer) { return {plan::op_kind::send, {peer}, {plan::buffer::input, 0, 1}, {}, 0}; }
plan::op receive(std::uint32_t peer, std::uint32_t cell = 0) {
  return {plan::op_kind::receive, {peer}, {}, {plan::buffer::scratch, cell, 1}, 0};
}

result<flow_simulation> run(const topo::graph& g, const plan::problem& p, const std::vector<plan::program>& all,
                            alpha_beta cost = {}, flow_options options = {}) {
  return plan::flow_simulator<alpha_beta>(g, cost).run(p, std::span<const plan::program>(all), options);
}

// ---- closed forms

TEST(flow_simulate, gives_the_closed_forms_of_rings_on_one_switch) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U}) {
    const topo::graph g = star(n);
    const bytes size{n * std::uint64_t{1'000'000}};
    for (const auto kind :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter}) {
      const auto p = problem_of(g, kind, size);
      const auto ring = plan::flat_schedule(kind, n, {}, algorithm::ring).value();
      const auto s = plan::simulate_flows(p, ring, alpha_beta::ideal()).value();
      const double phases = kind == collective_kind::all_reduce ? 2 : 1;
      EXPECT_NEAR(s.time.value, phases * (n - 1) * 1e6 / 100e9, 1e-12) << n << ' ' << to_string(kind);
      EXPECT_NEAR(s.ceiling.value, s.time.value, 1e-12) << n << ' ' << to_string(kind);
      EXPECT_EQ(s.messages, phases * n * (n - 1));
    }
  }
}

TEST(flow_simulate, divides_a_link_among_those_that_use_it) {
  // Everybody sends his megabyte to rank 0, whose link is the bottleneck; reduction is free.
  for (const std::uint32_t n : {2U, 3U, 8U}) {
    const topo::graph g = star(n);
    const auto p = problem_of(g, collective_kind::reduce, bytes{1'000'000});
    std::vector<plan::program> all(n);
    for (std::uint32_t r = 0; r < n; ++r) {
      all[r].collective = p.collective;
      all[r].ranks = n;
      all[r].rank = {r};
      all[r].scratch_cells = n;
      all[r].steps.push_back({0, 0, 0, r == 0 ? n - 1 : 1, {}});
      if (r != 0) all[r].ops.push_back(send(0));
      for (std::uint32_t k = 1; r == 0 && k < n; ++k) all[r].ops.push_back(receive(k, k));
    }
    const auto s = run(g, p, all, alpha_beta::ideal()).value();
    EXPECT_NEAR(s.time.value, (n - 1) * 1e6 / 100e9, 1e-12);
    EXPECT_NEAR(s.ceiling.value, s.time.value, 1e-12);
  }
}

TEST(flow_simulate, gives_the_rest_of_a_link_to_who_still_uses_it) {
  // Two messages from rank 0 to rank 1 on two channels, 1 MB and, when half of it is through, another of 1 MB.
  const topo::graph g = star(2);
  auto p = problem_of(g, collective_kind::all_reduce, bytes{2'000'000});
  by_hand h;
  for (plan::program& x : h.all) x.chunks = 2;
  const auto piece = [](plan::op o, std::uint32_t count) {
    o.from.count = o.to.count = count;
    return o;
  };
  h.step_of(0, {piece(send(1), 2)}).step_of(0, {send(1)}, {}, 1);
  h.step_of(1, {piece(receive(0), 2)}).step_of(1, {receive(0, 4)}, {}, 1);
  const auto s = run(g, p, h.all, alpha_beta::ideal()).value();
  // 2 MB and 1 MB together: the short one gets half the link and ends after 2 MB are through; then 1 MB alone.
  EXPECT_NEAR(s.time.value, 3e6 / 100e9, 1e-12);
  EXPECT_EQ(s.critical.size(), 1U);
  EXPECT_EQ(s.critical[0].amount, bytes{2'000'000});
}

TEST(flow_simulate, adds_latency_and_posts_one_after_the_other) {
  const topo::graph g = star(8);
  const alpha_beta cost;
  const double way = 2 * cost.price(topo::link_kind::nvlink).latency.value, post = cost.post().value;
  auto p = problem_of(g, collective_kind::all_reduce, bytes{8});
  const auto ring = plan::flat_schedule(p.collective, 8, {}, algorithm::ring).value();
  const double bytes_alone = 14 * 1.0 / 100e9;
  EXPECT_NEAR(plan::simulate_flows(p, ring, cost)->time.value, cost.launch().value + 14 * way + bytes_alone, 1e-10);
  p.collective = collective_kind::all_gather;
  const auto direct = plan::flat_schedule(p.collective, 8, {}, algorithm::direct).value();
  const auto s = plan::simulate_flows(p, direct, cost).value();
  EXPECT_NEAR(s.time.value, cost.launch().value + way + 6 * post, 1e-9);
  ASSERT_EQ(s.critical.size(), 1U);
  EXPECT_NEAR(s.critical[0].posting.value, 6 * post, 1e-12);
}

TEST(flow_simulate, lets_reduction_set_the_pace) {
  const topo::graph g = star(4);
  alpha_beta slow = alpha_beta::ideal();
  slow.reduce_rate = 10.0_GBps;
  const auto p = problem_of(g, collective_kind::reduce_scatter, bytes{4'000'000});
  const auto ring = plan::flat_schedule(p.collective, 4, {}, algorithm::ring).value();
  const auto s = plan::simulate_flows(p, ring, slow).value();
  EXPECT_NEAR(s.time.value, 3 * 1e6 / 10e9, 1e-12);
  EXPECT_NE(s.critical_path.find("limited by what a rank reduces"), std::string::npos) << s.critical_path;
}

TEST(flow_simulate, does_not_send_what_is_empty) {
  const topo::graph g = star(5);
  const auto none = problem_of(g, collective_kind::all_reduce, bytes{0});
  const auto ring = plan::flat_schedule(none.collective, 5, {}, algorithm::ring).value();
  const auto s = plan::simulate_flows(none, ring, alpha_beta{}).value();
  EXPECT_EQ(s.messages, 0U);
  EXPECT_EQ(s.time, alpha_beta{}.launch());
  const auto two = problem_of(g, collective_kind::all_reduce, bytes{2});  // chunks of 1, 1, 0, 0 and 0 bytes
  EXPECT_EQ(plan::simulate_flows(two, ring, alpha_beta{})->messages, 16U);
}

TEST(flow_simulate, counts_whole_elements) {
  const topo::graph g = star(3);
  const auto p = problem_of(g, collective_kind::all_gather, bytes{10});
  const auto ring = plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value();
  plan::flow_simulator<alpha_beta> flows(g, {});
  EXPECT_EQ(flows.run(p, ring)->critical[0].amount, bytes{4});  // 10 bytes are 3 shards of 4
  EXPECT_EQ(flows.run(p, ring, {.element = bytes{8}})->critical[0].amount, bytes{8});
}

TEST(flow_simulate, skips_copies_onto_themselves_in_place) {
  const topo::graph g = star(2);
  const auto p = problem_of(g, collective_kind::all_gather, 1_GiB);
  const auto ring = plan::flat_schedule(p.collective, 2, {}, algorithm::ring).value();
  plan::flow_simulator<alpha_beta> flows(g, {});
  EXPECT_LT(flows.run(p, ring, {.in_place = true})->flows, flows.run(p, ring)->flows);
}

// ---- what it tells

TEST(flow_simulate, puts_exactly_the_traffic_of_the_plan_on_the_links) {
  const topo::graph g = described("dgx-h100:nodes=2,pods=2,oversubscription=2");
  plan::flow_simulator<alpha_beta> flows(g, {});
  plan::simulator<alpha_beta> quick(g, {});
  for (const auto kind : all_kinds) {
    auto p = problem_of(g, kind, bytes{std::uint64_t{8'000'000}});
    plan::with_default_planners([&](const auto&... planners) {
      const auto compare = [&](const auto& planner) {
        const auto made = planner.synthesize(p);
        if (!made) return;
        auto q = p;
        q.size = bytes{made->chunks() * std::uint64_t{1000}};  // so that all chunks are equal
        const auto s = flows.run(q, *made).value();
        const auto t = quick.run(q, *made).value();
        for (std::size_t e = 0; e < s.links.size(); ++e) {
          ASSERT_NEAR(static_cast<double>(s.links[e].carried.value), static_cast<double>(t.loads[e].value), 1.0)
              << planner.name() << ' ' << to_string(kind) << " link " << e;
          // A link is busy as long as its bytes need at least, and never longer than the collective.
          const double least = static_cast<double>(t.loads[e].value) /
                               alpha_beta{}.rate(g.at(link_id{static_cast<std::uint32_t>(e)})).value;
          ASSERT_GE(s.links[e].busy.value, least * (1 - 1e-6) - 1e-10);
          ASSERT_LE(s.links[e].busy.value, s.time.value * (1 + 1e-9));
        }
      };
      (compare(planners), ...);
    });
  }
}

TEST(flow_simulate, tells_a_critical_path_that_adds_up) {
  const topo::graph g = described("dgx-h100:nodes=2,pods=2,oversubscription=3");
  plan::flow_simulator<alpha_beta> flows(g, {});
  for (const auto kind : all_kinds)
    for (const bytes size : {bytes{999}, 8_MiB}) {
      const auto p = problem_of(g, kind, size);
      plan::with_default_planners([&](const auto&... planners) {
        const auto look = [&](const auto& planner) {
          const auto made = planner.synthesize(p);
          if (!made) return;
          const auto s = flows.run(p, *made).value();
          seconds at = s.launch;
          for (const plan::flow_leg& leg : s.critical) {
            ASSERT_NEAR(leg.start.value, at.value, 1e-9 * s.time.value) << planner.name() << ' ' << to_string(kind);
            at = leg.start + leg.posting + leg.latency + leg.transfer;
          }
          ASSERT_NEAR(at.value, s.time.value, 1e-9 * s.time.value) << planner.name() << ' ' << to_string(kind);
          double last = 0;
          for (const plan::stage_end& e : s.stages) last = std::max(last, e.time.value);
          ASSERT_NEAR(last, s.time.value, 1e-12);
        };
        (look(planners), ...);
      });
    }
}

TEST(flow_simulate, tells_the_critical_path_in_words) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=2,oversubscription=3");
  const auto p = problem_of(g, collective_kind::all_gather, 256_MiB);
  const auto s = plan::simulate_flows(p, plan::hierarchical{.slices = 1}.synthesize(p).value(), alpha_beta{}).value();
  for (const char* words : {"to launch", "messages from rank", "of latency", "bytes limited by", "in the box"})
    EXPECT_NE(s.critical_path.find(words), std::string::npos) << words << ": " << s.critical_path;
}

// ---- grouping

TEST(flow_simulate, gives_the_same_answer_for_classes_and_for_all_ranks) {
  for (const std::string spec : {"dgx-h100:nodes=2,pods=2,oversubscription=2", "dgx-1v"}) {
    const topo::graph g = described(spec);
    plan::flow_simulator<alpha_beta> flows(g, {});
    for (const auto kind : all_kinds)
      for (const bytes size : {bytes{1000}, 16_MiB}) {
        const auto p = problem_of(g, kind, size);
        plan::with_default_planners([&](const auto&... planners) {
          const auto compare = [&](const auto& planner) {
            const auto made = planner.synthesize(p);
            if (!made) return;
            const auto s = flows.run(p, *made).value(), alone = flows.run(p, *made, {.group = false}).value();
            ASSERT_NEAR(s.time.value, alone.time.value, 1e-9 * alone.time.value)
                << spec << ' ' << planner.name() << ' ' << to_string(kind) << ' ' << size.value;
            // Links of a class are loaded alike at all times, so the least of their ceilings holds for all.
            ASSERT_LE(s.ceiling.value, alone.ceiling.value * (1 + 1e-9));
            ASSERT_GE(s.ceiling.value, s.time.value * (1 - 1e-9));
            ASSERT_EQ(s.messages, alone.messages);
            ASSERT_LE(s.rank_classes, alone.rank_classes);
            for (std::size_t e = 0; e < s.links.size(); ++e) {
              ASSERT_NEAR(s.links[e].busy.value, alone.links[e].busy.value, 1e-9 * alone.time.value);
              ASSERT_NEAR(static_cast<double>(s.links[e].carried.value),
                          static_cast<double>(alone.links[e].carried.value), 1.0);
            }
          };
          (compare(planners), ...);
        });
      }
  }
}

TEST(flow_simulate, needs_one_rank_where_all_are_alike) {
  const topo::graph g = described("dgx-h100:nodes=16,pods=4,oversubscription=2");
  const auto p = problem_of(g, collective_kind::all_reduce, 1_GiB);
  const auto s = plan::simulate_flows(p, plan::hierarchical{}.synthesize(p).value(), alpha_beta{}).value();
  EXPECT_EQ(s.rank_classes, 1U);
  EXPECT_LT(s.flows * 100, s.messages);
}

TEST(flow_simulate, keeps_apart_what_one_slow_link_makes_different) {
  plan_test::cluster c = plan_test::build(plan_test::even(1, 4, 2));
  topo::fragment f;
  for (const topo::node& n : c.graph.nodes()) f.nodes.push_back(n);
  for (const topo::link& l : c.graph.links()) f.links.push_back(l);
  for (topo::link& l : f.links)
    if (l.kind == topo::link_kind::infiniband && c.graph.at(l.from).kind == topo::node_kind::nic_port) {
      l.capacity = l.capacity * 0.5;
      break;
    }
  const topo::graph g = topo::graph::from(f).value();
  plan::problem p{.graph = &g, .collective = collective_kind::all_gather, .size = 64_MiB, .ranks = c.gpus, .root = {}};
  const auto made = plan::hierarchical{}.synthesize(p).value();
  plan::flow_simulator<alpha_beta> flows(g, {});
  const auto s = flows.run(p, made).value();
  EXPECT_GT(s.rank_classes, 1U);
  EXPECT_NEAR(s.time.value, flows.run(p, made, {.group = false})->time.value, 1e-9 * s.time.value);
}

// ---- bounds

struct order_tally {
  std::size_t plans = 0;
  double best_gap = 1e9, worst_ceiling = 0;
};

template <class M>
void expect_order(const topo::graph& g, const plan::problem& p, plan::flow_simulator<M>& flows, order_tally& tally,
                  const std::string& name) {
  ASSERT_EQ(&g, p.graph);
  const auto b = plan::lower_bound(p, flows.cost()).value();
  plan::with_default_planners([&](const auto&... planners) {
    const auto judge = [&](const auto& planner) {
      const auto made = planner.synthesize(p);
      if (!made) return;
      for (const plan::path_choice paths : {plan::path_choice::ideal, plan::path_choice::hashed}) {
        const auto s = flows.run(p, *made, {.paths = paths});
        ASSERT_TRUE(s) << name << ' ' << planner.name() << ": " << s.error().message();
        ++tally.plans;
        const std::string what = name + " " + std::string(planner.name()) + " " + std::string(to_string(p.collective)) +
                                 " of " + std::to_string(p.size.value);
        EXPECT_GE(s->time.value, b.time.value * (1 - 1e-9)) << what << ": " << b.cut;
        EXPECT_LE(s->time.value, s->ceiling.value * (1 + 1e-9)) << what;
        if (p.size >= 1_GiB) tally.best_gap = std::min(tally.best_gap, s->time / b.time - 1);
        tally.worst_ceiling = std::max(tally.worst_ceiling, s->ceiling / s->time);
      }
    };
    (judge(planners), ...);
  });
}

TEST(flow_simulate, lies_between_the_lower_bound_and_the_ceiling) {
  order_tally tally;
  for (const std::string spec : {"dgx-a100", "dgx-1v", "dgx-a100:nodes=2,pods=2,oversubscription=4"}) {
    if (topocoll_test::sanitized && tally.plans > 200) break;
    const topo::graph g = described(spec);
    plan::flow_simulator<alpha_beta> real(g, {}), ideal(g, alpha_beta::ideal());
    for (const auto kind : all_kinds)
      for (const bytes size : {bytes{8}, bytes{1'000'019}, 1_GiB}) {
        const auto p = problem_of(g, kind, size);
        expect_order(g, p, real, tally, spec);
        if (size == 1_GiB) expect_order(g, p, ideal, tally, spec + " (ideal)");
      }
  }
  EXPECT_GT(tally.plans, topocoll_test::sanitized ? 200U : 700U);
  EXPECT_LT(tally.best_gap, 0.1) << "no plan comes near its bound: the bound is too loose or the simulator too slow";
}

TEST(flow_simulate, lies_between_the_bounds_for_processes_of_a_host) {
  const topo::graph g = described("dgx-a100:detail=full");
  const auto domains = g.all(topo::node_kind::cpu);
  plan::flow_simulator<alpha_beta> flows(g, alpha_beta::host());
  order_tally tally;
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U})
    for (const auto kind : all_kinds) {
      plan::problem p{.graph = &g, .collective = kind, .size = 16_MiB, .ranks = {}, .root = {}};
      for (std::uint32_t r = 0; r < n; ++r) p.ranks.push_back(domains[r * domains.size() / n]);
      expect_order(g, p, flows, tally, std::to_string(n) + " processes");
    }
  EXPECT_GT(tally.plans, 200U);
}

TEST(flow_simulate, says_when_it_could_not_price_a_hand_over) {
  const topo::graph g = star(2);
  auto p = problem_of(g, collective_kind::all_gather, 1_MiB);
  p.ranks = {p.ranks[0], p.ranks[0], p.ranks[1]};
  const auto ring = plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value();
  const auto s = plan::simulate_flows(p, ring, alpha_beta{}).value();
  ASSERT_EQ(s.notes.size(), 1U);
  EXPECT_NE(s.notes[0].find("not priced"), std::string::npos);
}

// ---- ECMP

TEST(flow_simulate, takes_one_path_per_connection_when_hashed) {
  const topo::graph g = described("dgx-h100:nodes=4,pods=4,spines=4");
  const auto p = problem_of(g, collective_kind::all_gather, 1_GiB);
  const auto made = plan::ring{}.synthesize(p).value();
  plan::flow_simulator<alpha_beta> flows(g, alpha_beta::ideal());
  const auto split = flows.run(p, made).value();
  const auto spread = flows.spread(p, made, 9).value();
  ASSERT_EQ(spread.times.size(), 9U);
  EXPECT_NEAR(spread.ideal.value, split.time.value, 1e-15);
  EXPECT_LE(spread.best, spread.median);
  EXPECT_LE(spread.median, spread.worst);
  EXPECT_GE(spread.worst, spread.ideal);
  EXPECT_TRUE(std::is_permutation(spread.times.begin(), spread.times.end(), flows.spread(p, made, 9)->times.begin()))
      << "equal seeds give equal times";
  // Whole messages on every link: the bytes on links are whole multiples of what a rank sends to its neighbour.
  const auto one = flows.run(p, made, {.paths = plan::path_choice::hashed, .seed = 3}).value();
  const std::uint64_t rank_sends = 31 * (p.size.value / 32);
  for (std::size_t e = 0; e < one.links.size(); ++e) {
    const std::uint64_t channels = rank_sends / made.slices;
    const double times = static_cast<double>(one.links[e].carried.value) / static_cast<double>(channels);
    EXPECT_NEAR(times, std::round(times), 1e-3) << e;
  }
}

TEST(flow_simulate, finds_the_collision_that_ideal_splitting_hides) {
  // Four GPUs behind one leaf send over two spines to four behind another: with two seeds out of many all take one spine.
  const topo::graph g = described("dgx-h100:nodes=2,pods=2,spines=2");
  const auto p = problem_of(g, collective_kind::all_to_all, 1_GiB);
  const auto made = plan::direct{}.synthesize(p).value();
  plan::flow_simulator<alpha_beta> flows(g, alpha_beta::ideal());
  const auto spread = flows.spread(p, made, 8).value();
  EXPECT_GT(spread.worst.value, spread.ideal.value * 1.01);
}

// ---- what cannot go on

TEST(flow_simulate, reports_a_deadlock_with_ranks_and_steps) {
  const topo::graph g = star(2);
  const auto p = problem_of(g, collective_kind::all_reduce, 1_MiB);
  by_hand h;
  for (const std::uint32_t r : {0U, 1U}) h.step_of(r, {send(1 - r)}).step_of(r, {receive(1 - r)}, {0});
  const auto s = run(g, p, h.all);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, errc::bug);
  for (const char* words : {"the plan hangs after", "rank 0, step 0", "rank 1, step 1", "a circle of"})
    EXPECT_NE(s.error().what.find(words), std::string::npos) << words << " is not in " << s.error().what;
}

TEST(flow_simulate, reports_a_message_without_its_other_end) {
  const topo::graph g = star(2);
  const auto p = problem_of(g, collective_kind::all_reduce, 1_MiB);
  by_hand h;
  h.step_of(0, {send(1)}).step_of(0, {send(1)}).step_of(1, {receive(0)});
  auto s = run(g, p, h.all);
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().what.find("rank 0, step 1 (by hand) sends to rank 1, which has no receive for it"),
            std::string::npos)
      << s.error().what;
  by_hand k;
  k.step_of(0, {send(1)}).step_of(1, {receive(0)}).step_of(1, {receive(0, 1)});
  s = run(g, p, k.all);
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().what.find("rank 1, step 1 (by hand) receives from rank 0, which has no send for it"),
            std::string::npos)
      << s.error().what;
}

/// A cost model whose links of one kind carry nothing.
struct dead_links : alpha_beta {
  [[nodiscard]] bytes_per_second rate(const topo::link& l) const {
    return l.kind == topo::link_kind::nvlink ? bytes_per_second{0} : alpha_beta::rate(l);
  }
};

TEST(flow_simulate, reports_a_message_that_gets_no_bandwidth) {
  const topo::graph g = star(3);
  const auto p = problem_of(g, collective_kind::all_gather, 1_MiB);
  const auto ring = plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value();
  const auto s = plan::flow_simulator<dead_links>(g, {}).run(p, ring);
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().what.find("gets no bandwidth on link"), std::string::npos) << s.error().what;
}

TEST(flow_simulate, refuses_what_does_not_fit_together) {
  const topo::graph g = star(3), other = star(3);
  const auto p = problem_of(g, collective_kind::all_reduce, 1_MiB);
  const auto ring = plan::flat_schedule(p.collective, 3, {}, algorithm::ring).value();
  plan::flow_simulator<alpha_beta> flows(g, {});
  EXPECT_EQ(flows.run(problem_of(other, p.collective, 1_MiB), ring).error().code, errc::invalid_argument);
  const auto four = plan::flat_schedule(p.collective, 4, {}, algorithm::ring).value();
  EXPECT_EQ(flows.run(p, four).error().code, errc::invalid_argument);
  auto lost = p;
  lost.ranks[1] = {99};
  EXPECT_EQ(flows.run(lost, ring).error().code, errc::invalid_argument);
  for (const auto& spoil : std::vector<void (*)(plan::program&)>{
           [](plan::program& x) { x.rank = {2}; }, [](plan::program& x) { x.chunks = 0; },
           [](plan::program& x) { x.steps[1].after = {7}; }, [](plan::program& x) { x.steps[1].channel = 9; },
           [](plan::program& x) { x.steps[1].first_op = 99; }, [](plan::program& x) { x.ops[0].chunk = 99; },
           [](plan::program& x) { x.ops[0].peer = {99}; }, [](plan::program& x) { x.ops[0].peer = x.rank; }}) {
    auto all = programs_of(ring);
    spoil(all[1]);
    EXPECT_EQ(run(g, p, all).error().code, errc::invalid_argument);
  }
  topo::fragment f;
  for (const char* key : {"a", "b"}) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = key;
    f.add(n);
  }
  const topo::graph apart = topo::graph::from(f).value();
  const auto q = problem_of(apart, collective_kind::all_reduce, 1_MiB);
  EXPECT_EQ(plan::simulate_flows(q, plan::flat_schedule(q.collective, 2, {}, algorithm::ring).value(), alpha_beta{})
                .error()
                .code,
            errc::unavailable);
}

// ---- against the quick price

// On rings, which no two stages share, both models are the same.
TEST(flow_simulate, agrees_with_the_quick_price_of_rings) {
  for (const std::string spec : {"dgx-a100", "dgx-h100:nodes=4,pods=2,oversubscription=2"}) {
    const topo::graph g = described(spec);
    for (const auto kind : {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter})
      for (const bytes size : {bytes{64'000}, 64_MiB, 1_GiB}) {
        const auto p = problem_of(g, kind, size);
        const auto ring = plan::ring{.slices = 1}.synthesize(p).value();
        const double flow = plan::simulate_flows(p, ring, alpha_beta{})->time.value;
        const double quick = plan::simulate(p, ring, alpha_beta{})->time.value;
        EXPECT_NEAR(flow, quick, 0.01 * quick) << spec << ' ' << to_string(kind) << ' ' << size.value;
      }
  }
}

}  // namespace
