// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <sanitized.hpp>
#include <string>
#include <vector>
#include <topocoll/probe/collective_probe.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

TEST(limit_by_memory, of_all_reduce_reads_and_writes_everything_on_every_rank) {
  const auto l = probe::limit_by_memory(tc::collective_kind::all_reduce, 16_MiB, 4, 16.777216_GBps, 2);
  // 4 ranks x 32 MiB moved at 2 x 16 MiB per ms.
  EXPECT_NEAR(l.time.value, 4e-3, 1e-9);
  EXPECT_NE(l.formula.find("4 ranks x (16 MiB read + 16 MiB written)"), std::string::npos) << l.formula;
}

TEST(limit_by_memory, of_all_gather_reads_only_the_shards) {
  const auto l = probe::limit_by_memory(tc::collective_kind::all_gather, 16_MiB, 4, 16.777216_GBps, 2);
  EXPECT_NEAR(l.time.value, 4e-3 * (0.25 + 1) / 2, 1e-9);
}

tc::rank_exit ended(std::uint32_t rank, int signal, tc::result<std::string> outcome) {
  tc::rank_exit e;
  e.rank = {rank};
  e.pid = 100 + static_cast<int>(rank);
  e.signal = signal;
  e.exit_code = outcome || signal != 0 ? 0 : 1;
  e.outcome = std::move(outcome);
  return e;
}

TEST(first_failure, is_empty_when_all_are_good) {
  const std::vector<tc::rank_exit> exits = {ended(0, 0, std::string("a")), ended(1, 0, std::string())};
  EXPECT_FALSE(probe::first_failure(exits).has_value());
}

TEST(first_failure, names_the_killed_rank_and_not_those_who_noticed) {
  const std::vector<tc::rank_exit> exits = {ended(0, 0, tc::fail(tc::errc::peer_lost, "rank 2 went away")),
                                            ended(1, 0, tc::fail(tc::errc::aborted, "told to stop")),
                                            ended(2, 9, tc::fail(tc::errc::peer_lost, "rank 2 was killed"))};
  EXPECT_EQ(probe::first_failure(exits)->what, "rank 2 was killed");
}

TEST(first_failure, prefers_the_rank_with_a_reason_of_its_own) {
  const std::vector<tc::rank_exit> exits = {ended(0, 0, tc::fail(tc::errc::aborted, "told to stop")),
                                            ended(1, 0, tc::fail(tc::errc::system, "no memory"))};
  EXPECT_EQ(probe::first_failure(exits)->what, "no memory");
}

TEST(measure_collectives, gives_right_data_and_times_for_every_point) {
  std::vector<probe::collective_point> points;
  for (const auto kind :
       {tc::collective_kind::all_reduce, tc::collective_kind::all_gather, tc::collective_kind::reduce_scatter,
        tc::collective_kind::broadcast, tc::collective_kind::reduce, tc::collective_kind::all_to_all})
    for (const tc::bytes size : {12_B, 10000_B}) points.push_back({kind, size, {}});
  const auto got = probe::measure_collectives(points, {.ranks = 3, .budget = 2_ms}, tc::deadline::in(50_s));
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& s = (*got)[i];
    EXPECT_EQ(s.collective, points[i].collective);
    EXPECT_LE(s.size, points[i].size);
    EXPECT_GT(s.checked, 0U) << to_string(s.collective);
    EXPECT_EQ(s.wrong, 0U) << to_string(s.collective);
    EXPECT_GT(s.time.median.value, 0) << to_string(s.collective);
    EXPECT_GE(s.time.count, 6U);
  }
}

TEST(measure_collectives, runs_the_plan_that_it_is_given) {
  const auto ring = tc::plan::flat_schedule(tc::collective_kind::all_reduce, 3, {0}, tc::plan::algorithm::ring);
  ASSERT_TRUE(ring);
  auto named = *ring;
  named.name = "my ring";
  const std::vector<probe::collective_point> points = {{tc::collective_kind::all_reduce, 4_KiB, named}};
  const auto got = probe::measure_collectives(points, {.ranks = 3, .budget = 1_ms}, tc::deadline::in(50_s));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->front().plan, "my ring");
  EXPECT_EQ(got->front().wrong, 0U);
}

TEST(measure_collectives, ends_at_its_deadline) {
  const std::vector<probe::collective_point> points = {{tc::collective_kind::all_reduce, 1_MiB, {}}};
  const auto start = tc::steady_clock::now();
  const auto got =
      probe::measure_collectives(points, {.ranks = 2, .budget = 1000_s}, tc::deadline::in(tc::seconds{0.3}));
  EXPECT_LT((tc::steady_clock::now() - start).value, topocoll_test::sanitized ? 200 : 20);
  if (!got) {
    EXPECT_EQ(got.error().code, tc::errc::timed_out) << got.error().message();
  }
}

}  // namespace
