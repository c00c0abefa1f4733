// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <topocoll/core/units.hpp>
#include <gtest/gtest.h>

using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::seconds;

TEST(units, have_exact_literals) {
  EXPECT_EQ((1_KiB).value, 1024U);
  EXPECT_EQ((3_MiB).value, 3145728U);
  EXPECT_EQ((2_GiB).value, 2147483648U);
  EXPECT_EQ((25.0_GBps).value, 25e9);
  EXPECT_EQ((400_Gbps).value, 50e9);
  EXPECT_EQ(400_Gbps, 50_GBps);
  EXPECT_EQ((8_us).value, 8e-6);
  EXPECT_EQ((1.5_ms).value, 1.5e-3);
}

TEST(units, divide_into_rates_times_and_ratios) {
  EXPECT_EQ(100_B / 4_s, bytes_per_second{25});
  EXPECT_EQ(bytes{50'000'000'000} / 50_GBps, 1_s);
  EXPECT_EQ(6_MiB / 2_MiB, 3.0);
  EXPECT_EQ(3_s / 2_s, 1.5);
  EXPECT_EQ(75_GBps / 50_GBps, 1.5);
}

TEST(units, of_a_dead_link_give_an_infinite_time) {
  EXPECT_EQ((1_B / bytes_per_second{0}).value, std::numeric_limits<double>::infinity());
}

TEST(units, add_subtract_and_compare_with_their_own_kind) {
  bytes b = 3_KiB;
  b += 1_KiB;
  b -= 2_KiB;
  EXPECT_EQ(b, 2_KiB);
  EXPECT_EQ(2_KiB * 3 / 2, 3_KiB);
  EXPECT_EQ(3 * 2_KiB, 6_KiB);
  seconds s = 1_s;
  s += 2_s;
  s -= 5_s;
  EXPECT_EQ(s.value, -2.0);
  EXPECT_LT(24_GBps, 25_GBps);
  EXPECT_EQ(2.0 * 25_GBps - 10_GBps, 40_GBps);
}
