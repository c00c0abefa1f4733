// SPDX-License-Identifier: Apache-2.0
#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>
#include <topocoll/core/rational.hpp>
#include <gtest/gtest.h>

using topocoll::rational;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST(rational, is_kept_in_lowest_terms_with_a_positive_denominator) {
  const rational r(6, -4);
  EXPECT_EQ(r.numerator(), -3);
  EXPECT_EQ(r.denominator(), 2);
  EXPECT_EQ(rational(0, -7).denominator(), 1);
  EXPECT_EQ(rational(5).denominator(), 1);
  EXPECT_EQ(rational{}, rational(0));
}

// Checked against cross multiplication in small integers, which cannot overflow here.
TEST(rational, computes_exactly_for_all_small_fractions) {
  for (std::int64_t a = -7; a <= 7; ++a)
    for (std::int64_t b = 1; b <= 8; ++b)
      for (std::int64_t c = -7; c <= 7; ++c)
        for (std::int64_t d = 1; d <= 8; ++d) {
          const rational x(a, b);
          const rational y(c, d);
          const auto is = [](rational r, std::int64_t num, std::int64_t den) {
            return r.valid() && r.numerator() * den == num * r.denominator() && r.denominator() > 0 &&
                   std::gcd(r.numerator(), r.denominator()) == 1;
          };
          ASSERT_TRUE(is(x + y, a * d + c * b, b * d));
          ASSERT_TRUE(is(x - y, a * d - c * b, b * d));
          ASSERT_TRUE(is(x * y, a * c, b * d));
          ASSERT_EQ((x / y).valid(), c != 0);
          ASSERT_TRUE(c == 0 || is(x / y, a * d, b * c));
          ASSERT_EQ(x < y, a * d < c * b);
          ASSERT_EQ(x == y, a * d == c * b);
        }
}

TEST(rational, is_invalid_after_a_division_by_zero) {
  EXPECT_FALSE(rational(1, 0).valid());
  EXPECT_FALSE((rational(1) / rational(0)).valid());
}

TEST(rational, is_invalid_when_it_does_not_fit) {
  EXPECT_TRUE(rational(most).valid());
  EXPECT_FALSE((rational(most) + rational(1)).valid());
  EXPECT_FALSE((rational(-most) - rational(1)).valid());
  EXPECT_FALSE((rational(most) * rational(2)).valid());
  EXPECT_FALSE((rational(1, most) / rational(2)).valid());
  EXPECT_FALSE((rational(1, most) + rational(1, most - 1)).valid());
}

TEST(rational, survives_intermediate_results_of_more_than_64_bits) {
  EXPECT_EQ(rational(most) * rational(2, most), rational(2));
  EXPECT_EQ(rational(most, 3) - rational(most, 3), rational(0));
  EXPECT_EQ(rational(most, most - 1) / rational(most, most - 1), rational(1));
  EXPECT_LT(rational(most - 1, most), rational(most, most - 1));
}

TEST(rational, that_is_invalid_spreads_and_equals_nothing) {
  const rational bad(1, 0);
  const rational one(1);
  for (const rational r : {bad + one, one + bad, bad - one, bad * one, one * bad, bad / one, one / bad})
    EXPECT_FALSE(r.valid());
  EXPECT_FALSE(bad == bad);
  EXPECT_EQ(bad <=> one, std::partial_ordering::unordered);
  EXPECT_FALSE(bad < one);
  EXPECT_FALSE(one < bad);
}

TEST(rational, takes_the_smallest_integer_only_when_it_can_negate_it) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_FALSE(rational(least, 1).valid());
  EXPECT_FALSE(rational(least).valid());
  EXPECT_EQ(rational(least, 2), rational(least / 2));
  EXPECT_EQ(rational(least, least), rational(1));
}

TEST(rational, becomes_the_nearest_double) {
  EXPECT_EQ(rational(1, 3).to_double(), 1.0 / 3.0);
  EXPECT_EQ(rational(-7, 2).to_double(), -3.5);
}
