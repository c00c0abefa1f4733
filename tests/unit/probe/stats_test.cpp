// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/probe/stats.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;

namespace {

std::span<const double> view(const std::vector<double>& v) { return v; }

// A generator of our own, so that the expected numbers do not depend on a library.
class draws {
 public:
  explicit draws(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11U) / static_cast<double>(1ULL << 53U);
  }

 private:
  std::uint64_t state_;
};

TEST(median, of_nothing_is_empty) { EXPECT_FALSE(probe::median(std::span<const double>{}).has_value()); }

TEST(median, of_an_odd_number_is_the_middle_one) {
  EXPECT_EQ(*probe::median(view({5, 1, 9})), 5);
  EXPECT_EQ(*probe::median(view({7})), 7);
}

TEST(median, of_an_even_number_is_the_mean_of_the_two_middle_ones) {
  EXPECT_EQ(*probe::median(view({4, 1, 3, 100})), 3.5);
}

TEST(median, keeps_the_unit) {
  const std::vector<tc::seconds> times = {{0.3}, {0.1}, {0.2}};
  EXPECT_EQ(probe::median(std::span<const tc::seconds>(times))->value, 0.2);
}

TEST(mad, needs_three_samples) {
  EXPECT_FALSE(probe::mad(view({1, 2})).has_value());
  EXPECT_TRUE(probe::mad(view({1, 2, 3})).has_value());
}

TEST(mad, is_not_moved_by_one_wild_sample) {
  EXPECT_EQ(*probe::mad(view({1, 2, 3, 4, 5})), 1);
  EXPECT_EQ(*probe::mad(view({1, 2, 3, 4, 5e9})), 1);
}

TEST(quantile, of_the_tail_needs_enough_samples) {
  const std::vector<double> ninety_nine(99, 1.0);
  const std::vector<double> hundred(100, 1.0);
  EXPECT_FALSE(probe::quantile(view(ninety_nine), 0.99).has_value());
  EXPECT_TRUE(probe::quantile(view(hundred), 0.99).has_value());
  EXPECT_FALSE(probe::quantile(view({1}), 0.5).has_value());
  EXPECT_TRUE(probe::quantile(view({1, 2}), 0.5).has_value());
}

TEST(quantile, interpolates_between_neighbours) {
  EXPECT_DOUBLE_EQ(*probe::quantile(view({10, 20, 30, 40, 50}), 0.25), 20);
  EXPECT_DOUBLE_EQ(*probe::quantile(view({10, 20, 30, 40}), 0.5), 25);
  EXPECT_DOUBLE_EQ(*probe::quantile(view({3, 1, 2}), 0), 1);
  EXPECT_DOUBLE_EQ(*probe::quantile(view({3, 1, 2}), 1), 3);
}

TEST(quantile, refuses_a_share_that_is_none) {
  EXPECT_FALSE(probe::quantile(view({1, 2, 3}), -0.1).has_value());
  EXPECT_FALSE(probe::quantile(view({1, 2, 3}), 1.1).has_value());
}

TEST(median_interval, needs_six_samples_for_95_percent) {
  const std::vector<double> five = {1, 2, 3, 4, 5};
  const std::vector<double> six = {1, 2, 3, 4, 5, 6};
  EXPECT_FALSE(probe::median_interval(view(five), 0.95).has_value());
  const auto i = probe::median_interval(view(six), 0.95);
  ASSERT_TRUE(i.has_value());
  EXPECT_EQ(i->low, 1);
  EXPECT_EQ(i->high, 6);
  EXPECT_DOUBLE_EQ(i->confidence, 1 - 2.0 / 64);  // all six on one side of the median
}

// Table in David and Nagaraja, "Order Statistics": the 95 % interval of n = 20 is the 6th and 15th of the sorted samples.
TEST(median_interval, of_twenty_samples_is_the_sixth_and_fifteenth) {
  std::vector<double> v;
  for (int i = 20; i >= 1; --i) v.push_back(i);
  const auto i = probe::median_interval(view(v), 0.95);
  ASSERT_TRUE(i.has_value());
  EXPECT_EQ(i->low, 6);
  EXPECT_EQ(i->high, 15);
}

TEST(median_interval, does_not_underflow_for_many_samples) {
  std::vector<double> v;
  for (int i = 0; i < 5000; ++i) v.push_back(i);
  const auto i = probe::median_interval(view(v), 0.95);
  ASSERT_TRUE(i.has_value());
  // Normal approximation: 2499.5 -+ 1.96 * sqrt(5000) / 2.
  EXPECT_NEAR(i->low, 2499.5 - 69.3, 2);
  EXPECT_NEAR(i->high, 2499.5 + 69.3, 2);
}

// Monte Carlo with a skewed distribution, whose median is known: the promise must hold without any assumption.
TEST(median_interval, covers_the_true_median_as_often_as_it_says) {
  draws d(7);
  int covered = 0;
  constexpr int trials = 2000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> v;
    for (int i = 0; i < 15; ++i) {
      const double u = d.next();
      v.push_back(u * u * u);  // median 1/8
    }
    const auto i = probe::median_interval(view(v), 0.95);
    if (i->low <= 0.125 && 0.125 <= i->high) ++covered;
  }
  EXPECT_GE(covered, trials * 94 / 100);  // 96.5 % promised at n = 15; 94 % is five deviations lower
}

TEST(summarise, of_nothing_is_empty) { EXPECT_FALSE(probe::summarise(std::vector<double>{}).has_value()); }

TEST(summarise, tells_noise_as_a_share_of_the_median) {
  const auto s = probe::summarise(std::vector<double>{90, 100, 110, 100, 95, 105, 100});
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->count, 7U);
  EXPECT_EQ(s->least, 90);
  EXPECT_EQ(s->most, 110);
  EXPECT_NEAR(*s->noise(), 1.4826 * 5 / 100, 1e-12);
}

TEST(summarise, of_two_samples_has_neither_noise_nor_interval) {
  const auto s = probe::summarise(std::vector<double>{1, 2});
  ASSERT_TRUE(s.has_value());
  EXPECT_FALSE(s->noise().has_value());
  EXPECT_FALSE(s->range.has_value());
}

std::vector<probe::summary<double>> siblings(const std::vector<double>& medians, double spread) {
  std::vector<probe::summary<double>> parts;
  for (const double m : medians) {
    std::vector<double> v;
    for (int i = -4; i <= 4; ++i) v.push_back(m * (1 + spread * i / 4));
    parts.push_back(*probe::summarise(v));
  }
  return parts;
}

std::vector<probe::sibling> judged(const std::vector<probe::summary<double>>& parts) {
  return probe::odd_ones(std::span<const probe::summary<double>>(parts), 0.2);
}

TEST(odd_ones, finds_the_slow_one_of_four) {
  const auto said = judged(siblings({10, 10.2, 6, 9.9}, 0.02));
  EXPECT_EQ(said[2], probe::sibling::odd);
  EXPECT_EQ(std::ranges::count(said, probe::sibling::alike), 3);
}

TEST(odd_ones, cannot_tell_which_of_two_is_wrong) {
  const auto said = judged(siblings({10, 5}, 0.02));
  EXPECT_EQ(said[0], probe::sibling::alike);
  EXPECT_EQ(said[1], probe::sibling::cannot_tell);
}

TEST(odd_ones, does_not_blame_a_noisy_one) {
  const auto said = judged(siblings({10, 10, 7, 10}, 0.5));
  EXPECT_EQ(said[2], probe::sibling::cannot_tell);
}

TEST(odd_ones, tolerates_small_differences_and_single_parts) {
  for (const auto s : judged(siblings({10, 9, 9.5, 8.5}, 0.01))) EXPECT_EQ(s, probe::sibling::alike);
  EXPECT_EQ(judged(siblings({1}, 0.01)).front(), probe::sibling::alike);
}

TEST(odd_ones, does_not_blame_a_part_that_is_faster) {
  for (const auto s : judged(siblings({10, 10, 30, 10}, 0.01))) EXPECT_EQ(s, probe::sibling::alike);
}

}  // namespace
