// SPDX-License-Identifier: Apache-2.0
#include <topocoll/core/deadline.hpp>
#include <gtest/gtest.h>

using namespace topocoll::literals;
using topocoll::deadline;
using topocoll::seconds;
using topocoll::steady_clock;

TEST(deadline, in_the_past_has_passed_and_leaves_no_time) {
  const deadline d = deadline::in(seconds{-1});
  EXPECT_TRUE(d.passed());
  EXPECT_EQ(d.left(), 0_s);
}

TEST(deadline, in_the_future_leaves_at_most_its_span) {
  const deadline d = deadline::in(1000_s);
  EXPECT_FALSE(d.passed());
  EXPECT_LE(d.left(), 1000_s);
  EXPECT_GT(d.left(), 900_s);
}

TEST(deadline, of_two_is_the_sooner) {
  const deadline a = deadline::in(1_s);
  const deadline b = deadline::in(2_s);
  EXPECT_EQ(sooner(a, b), a);
  EXPECT_EQ(sooner(b, a), a);
}

TEST(steady_clock, never_goes_back) {
  seconds last = steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    const seconds now = steady_clock::now();
    ASSERT_GE(now, last);
    last = now;
  }
}
