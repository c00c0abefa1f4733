// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>
#include <topocoll/probe/sampler.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

TEST(sample, throws_warm_up_away) {
  int calls = 0;
  const auto got = probe::sample([&]() -> tc::result<tc::seconds> { return tc::seconds{static_cast<double>(++calls)}; },
                                 probe::fixed_count{3}, 2, tc::deadline::in(10_s));
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->times.size(), 3U);
  EXPECT_EQ(got->times.front().value, 3);
  EXPECT_EQ(calls, 5);
  EXPECT_FALSE(got->cut_short);
}

TEST(sample, passes_the_failure_of_a_measurement_on) {
  const auto got =
      probe::sample([]() -> tc::result<tc::seconds> { return tc::fail(tc::errc::peer_lost, "rank 1 left"); },
                    probe::fixed_count{3}, 0, tc::deadline::in(10_s));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, tc::errc::peer_lost);
}

TEST(sample, fails_when_there_is_no_time_for_one) {
  const auto got = probe::sample([]() -> tc::result<tc::seconds> { return tc::seconds{1}; }, probe::fixed_count{3}, 0,
                                 tc::deadline::in(tc::seconds{-1}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, tc::errc::timed_out);
}

TEST(sample, keeps_what_it_has_when_the_deadline_cuts_it_short) {
  const auto until = tc::deadline::in(20_ms);
  const auto got = probe::sample([]() -> tc::result<tc::seconds> { return tc::seconds{1}; },
                                 probe::fixed_count{1000000000}, 0, until);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_TRUE(got->cut_short);
  EXPECT_FALSE(got->times.empty());
}

TEST(fixed_count, is_enough_at_its_count) {
  const std::vector<tc::seconds> two(2, tc::seconds{1});
  EXPECT_FALSE(probe::fixed_count{3}.enough(two, {}));
  EXPECT_TRUE(probe::fixed_count{2}.enough(two, {}));
}

TEST(relative_spread, stops_early_when_samples_agree) {
  const probe::relative_spread rule{.share = 0.05, .least = 6, .most = 50};
  const std::vector<tc::seconds> five(5, tc::seconds{1});
  const std::vector<tc::seconds> six(6, tc::seconds{1});
  EXPECT_FALSE(rule.enough(five, {}));
  EXPECT_TRUE(rule.enough(six, {}));
}

TEST(relative_spread, goes_on_while_samples_disagree_and_gives_up_at_the_most) {
  const probe::relative_spread rule{.share = 0.05, .least = 6, .most = 20};
  std::vector<tc::seconds> wild;
  for (int i = 0; i < 19; ++i) wild.push_back({i % 2 == 0 ? 1.0 : 2.0});
  EXPECT_FALSE(rule.enough(wild, {}));
  wild.push_back({1.0});
  EXPECT_TRUE(rule.enough(wild, {}));
}

TEST(time_budget, never_stops_before_its_least_count) {
  const probe::time_budget rule{.span = 100_ms, .least = 3};
  const std::vector<tc::seconds> two(2, tc::seconds{1});
  const std::vector<tc::seconds> three(3, tc::seconds{1});
  EXPECT_FALSE(rule.enough(two, 10_s));
  EXPECT_TRUE(rule.enough(three, 10_s));
  EXPECT_FALSE(rule.enough(three, 50_ms));
}

TEST(either, is_satisfied_by_the_first_of_two) {
  const probe::either rule{probe::fixed_count{3}, probe::time_budget{.span = 1_s, .least = 1}};
  const std::vector<tc::seconds> one(1, tc::seconds{1});
  const std::vector<tc::seconds> three(3, tc::seconds{1});
  EXPECT_FALSE(rule.enough(one, 0_s));
  EXPECT_TRUE(rule.enough(one, 2_s));
  EXPECT_TRUE(rule.enough(three, 0_s));
  EXPECT_EQ(rule.name(), "after 3 samples or after 1000 ms");
}

}  // namespace
