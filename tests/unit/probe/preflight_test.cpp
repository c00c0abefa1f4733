// SPDX-License-Identifier: Apache-2.0
#include <sanitized.hpp>
#include <string>
#include <vector>
#include <topocoll/probe/preflight.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace topo = topocoll::topo;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

topo::graph small_machine() {
  topo::fragment f;
  f.source = "test";
  topo::node cpu;
  cpu.kind = topo::node_kind::cpu;
  cpu.key = "h/numa:0";
  cpu.name = "NUMA 0";
  cpu.host = "h";
  const auto c = f.add(cpu);
  topo::node memory = cpu;
  memory.kind = topo::node_kind::host_memory;
  memory.key = "h/memory:0";
  memory.name = "memory 0";
  topo::link l;
  l.from = c;
  l.to = f.add(memory);
  l.kind = topo::link_kind::memory;
  l.capacity = 100_GBps;
  l.how = tc::trust::assumed;
  f.join(l);
  return topo::graph::from(f).value();
}

const probe::verdict* find(const probe::report& r, const std::string& check) {
  for (const auto& v : r.verdicts)
    if (v.check == check) return &v;
  return nullptr;
}

TEST(preflight, of_a_recorded_machine_is_never_a_pass) {
  const auto r = probe::preflight(small_machine(), {.live = false}, [](probe::section, const probe::report&) {});
  EXPECT_EQ(probe::overall(probe::count(r.verdicts)), probe::outcome::not_measured);
  EXPECT_TRUE(r.memory.empty());
  EXPECT_TRUE(r.collectives.empty());
  EXPECT_NE(probe::headlines(r, probe::state::not_measured).find("recorded machine"), std::string::npos);
}

TEST(preflight, of_this_machine_measures_and_blames_nothing) {
  if (topocoll_test::sanitized) GTEST_SKIP() << "probes of memory take minutes under a sanitizer; its parts run there";
  std::vector<probe::section> told;
  const auto r = probe::preflight(small_machine(), {.ranks = 3, .budget = 12_s, .sizes = {4_KiB, 256_KiB}},
                                  [&](probe::section s, const probe::report&) { told.push_back(s); });
  using enum probe::section;
  EXPECT_EQ(told, (std::vector<probe::section>{machine, paths, memory, plans, collectives, verdicts}));
  const auto t = probe::count(r.verdicts);
  EXPECT_EQ(t.failed, 0U) << probe::verdict_line(r);
  ASSERT_NE(find(r, "collective/all_reduce/data"), nullptr) << probe::verdict_line(r);
  EXPECT_EQ(find(r, "collective/all_reduce/data")->is, probe::state::healthy);
  EXPECT_EQ(find(r, "collective/all_gather/data")->is, probe::state::healthy);
  EXPECT_EQ(probe::overall(t), probe::outcome::pass);
  EXPECT_EQ(r.collectives.size(), 4U);
  EXPECT_EQ(find(r, "gpu/bandwidth")->is, probe::state::not_measured);
}

TEST(preflight, fails_when_an_impossible_bandwidth_is_asked_for) {
  if (topocoll_test::sanitized) GTEST_SKIP() << "probes of memory take minutes under a sanitizer; its parts run there";
  const auto r = probe::preflight(
      small_machine(), {.ranks = 2, .budget = 12_s, .sizes = {4_KiB}, .min_bandwidth = tc::bytes_per_second{1e18}},
      [](probe::section, const probe::report&) {});
  ASSERT_NE(find(r, "collective/all_reduce/min-bandwidth"), nullptr) << probe::verdict_line(r);
  EXPECT_EQ(find(r, "collective/all_reduce/min-bandwidth")->is, probe::state::degraded);
  EXPECT_EQ(probe::overall(probe::count(r.verdicts)), probe::outcome::fail);
}

// A collective of 16 MiB in `ms` milliseconds, nine samples with some spread.
probe::collective_sample sample(double ms, double spread) {
  probe::collective_sample s;
  s.size = 16_MiB;
  std::vector<tc::seconds> times;
  for (int i = -4; i <= 4; ++i) times.push_back({1e-3 * ms * (1 + spread * i / 4)});
  s.time = *probe::summarise(times);
  return s;
}

probe::state judged(double share, double spread, bool busy) {
  probe::report r;
  probe::preflight_options o;
  probe::detail::memory_model m;
  m.busy = busy;
  const auto s = sample(10, spread);
  const auto reached = probe::detail::busbw_of(s, o.ranks);
  probe::detail::judge_bandwidth(r, s, tc::bytes_per_second{reached.value / share}, o, m, false);
  return r.verdicts.at(0).is;
}

TEST(judge_bandwidth, fails_only_what_is_far_below_expectation_on_a_quiet_machine) {
  EXPECT_EQ(judged(0.5, 0.05, false), probe::state::healthy);
  EXPECT_EQ(judged(0.07, 0.05, false), probe::state::suspect);
  EXPECT_EQ(judged(0.02, 0.05, false), probe::state::degraded);
  EXPECT_EQ(judged(0.02, 0.05, true), probe::state::suspect);
  EXPECT_EQ(judged(0.02, 0.95, false), probe::state::suspect);
}

TEST(judge_bandwidth, is_not_measured_without_an_expectation) {
  probe::report r;
  probe::detail::judge_bandwidth(r, sample(10, 0.1), std::nullopt, {}, {}, false);
  EXPECT_EQ(r.verdicts.at(0).is, probe::state::not_measured);
}

std::vector<probe::summary<tc::bytes_per_second>> rates(const std::vector<double>& medians) {
  std::vector<probe::summary<tc::bytes_per_second>> all;
  for (const double m : medians) {
    std::vector<tc::bytes_per_second> v;
    for (int i = -4; i <= 4; ++i) v.push_back({m * (1 + 0.01 * i)});
    all.push_back(*probe::summarise(v));
  }
  return all;
}

TEST(compare_siblings, names_the_slow_domain_of_four_on_a_quiet_machine_only) {
  for (const bool busy : {false, true}) {
    std::vector<probe::verdict> said;
    probe::detail::compare_siblings(said, "memory/numa", "NUMA domain", {"NUMA 0", "NUMA 1", "NUMA 2", "NUMA 3"},
                                    rates({40e9, 41e9, 20e9, 40e9}), 0.25, busy);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].where, "NUMA 2");
    EXPECT_EQ(said[0].is, busy ? probe::state::suspect : probe::state::degraded);
  }
}

TEST(with_memory, puts_the_measured_rate_on_memory_links) {
  const auto g = probe::detail::with_memory(small_machine(), 36_GBps, 2);
  ASSERT_TRUE(g) << g.error().message();
  EXPECT_EQ(g->links()[0].how, tc::trust::measured);
  EXPECT_EQ(g->links()[0].capacity.value, 18e9);
}

TEST(spread_best, takes_the_plan_that_spreads_its_work_among_equals) {
  const auto tree = tc::plan::flat_schedule(tc::collective_kind::all_reduce, 4, {0}, tc::plan::algorithm::tree).value();
  const auto direct =
      tc::plan::flat_schedule(tc::collective_kind::all_reduce, 4, {0}, tc::plan::algorithm::direct).value();
  // Binomial tree: the root receives 2 arrays and sends 2; direct: every rank sends and receives 2 * 3/4 arrays.
  EXPECT_DOUBLE_EQ(probe::detail::busiest_rank(tree), 4);
  EXPECT_DOUBLE_EQ(probe::detail::busiest_rank(direct), 3);
}

}  // namespace
