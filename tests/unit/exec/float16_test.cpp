// SPDX-License-Identifier: Apache-2.0
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <topocoll/exec/float16.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

std::uint32_t bits_of(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
float float_of(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

// The definition of the format, in doubles: independent of the bit tricks under test.
double value_of(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1U);
  const double sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
  const double significand =
      exponent == 0 ? std::ldexp(fraction, -fraction_bits) : 1.0 + std::ldexp(fraction, -fraction_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias);
}
// Nearest, ties to even, by the current rounding mode of nearbyint.
std::uint32_t nearest_bits(double x, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t sign = std::signbit(x) ? 1U << (exponent_bits + fraction_bits) : 0U;
  const std::uint32_t infinity = ((1U << exponent_bits) - 1U) << fraction_bits;
  double a = std::fabs(x);
  if (std::isinf(a)) return sign | infinity;
  int e = 1 - bias;
  if (a >= std::ldexp(1.0, 1 - bias)) e = std::ilogb(a);
  double units = std::nearbyint(std::ldexp(a, fraction_bits - e));  // of the last place at exponent e
  if (units == std::ldexp(1.0, fraction_bits + 1)) {
    units /= 2;
    ++e;
  }
  if (e > bias) return sign | infinity;
  const auto n = static_cast<std::uint32_t>(units);
  if (n < (1U << fraction_bits)) return sign | n;  // subnormal
  return sign | (static_cast<std::uint32_t>(e + bias) << fraction_bits) | (n - (1U << fraction_bits));
}

TEST(half, has_the_value_that_its_format_says_for_all_bit_patterns) {
  for (std::uint32_t b = 0; b <= 0xffffU; ++b) {
    const float f = to_float(half{static_cast<std::uint16_t>(b)});
    const double expected = value_of(b, 5, 10);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f)) << std::hex << b;
      ASSERT_EQ(std::signbit(f), b >> 15U != 0) << std::hex << b;
      ASSERT_EQ((bits_of(f) >> 13U) & 0x1ffU, b & 0x1ffU) << std::hex << b;  // payload below the quiet bit
    } else {
      ASSERT_EQ(static_cast<double>(f), expected) << std::hex << b;
      ASSERT_EQ(std::signbit(f), b >> 15U != 0) << std::hex << b;
    }
  }
}

TEST(half, comes_back_from_float_for_all_bit_patterns) {
  for (std::uint32_t b = 0; b <= 0xffffU; ++b) {
    const half h{static_cast<std::uint16_t>(b)};
    const half back = to_half(to_float(h));
    const bool nan = (b & 0x7c00U) == 0x7c00U && (b & 0x3ffU) != 0;
    ASSERT_EQ(back.bits, nan ? (b | 0x200U) : b) << std::hex << b;
  }
}

TEST(bfloat16, has_the_value_that_its_format_says_for_all_bit_patterns) {
  for (std::uint32_t b = 0; b <= 0xffffU; ++b) {
    const float f = to_float(bfloat16{static_cast<std::uint16_t>(b)});
    const double expected = value_of(b, 8, 7);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(f)) << std::hex << b;
    else
      ASSERT_EQ(static_cast<double>(f), expected) << std::hex << b;
    const bool nan = (b & 0x7f80U) == 0x7f80U && (b & 0x7fU) != 0;
    ASSERT_EQ(to_bfloat16(f).bits, nan ? (b | 0x40U) : b) << std::hex << b;
  }
}

// Every float that lies on, or one step beside, a number of the format or the middle between two of them.
template <class Check>
void around_every_boundary(int exponent_bits, int fraction_bits, Check check) {
  const std::uint32_t infinity = ((1U << exponent_bits) - 1U) << fraction_bits;
  for (std::uint32_t b = 0; b < infinity; ++b) {
    const double low = value_of(b, exponent_bits, fraction_bits);
    const double high = b + 1 == infinity ? low + (low - value_of(b - 1, exponent_bits, fraction_bits))
                                          : value_of(b + 1, exponent_bits, fraction_bits);
    for (const double x : {low, (low + high) / 2}) {
      const std::uint32_t center = bits_of(static_cast<float>(x));
      for (int d = -1; d <= 1; ++d) {
        if (center == 0 && d < 0) continue;
        const float f = float_of(center + static_cast<std::uint32_t>(d));
        check(f);
        check(-f);
      }
    }
  }
}

TEST(half, rounds_to_nearest_even_at_every_boundary) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  std::uint64_t wrong = 0;
  around_every_boundary(5, 10, [&](float f) { wrong += to_half(f).bits != nearest_bits(f, 5, 10); });
  EXPECT_EQ(wrong, 0U);
}

TEST(bfloat16, rounds_to_nearest_even_at_every_boundary) {
  std::uint64_t wrong = 0;
  around_every_boundary(8, 7, [&](float f) { wrong += to_bfloat16(f).bits != nearest_bits(f, 8, 7); });
  EXPECT_EQ(wrong, 0U);
}

TEST(half, rounds_a_spread_of_all_floats_correctly) {
  std::uint64_t wrong = 0;
  for (std::uint64_t u = 0; u <= 0xffffffffU; u += 4099) {  // a prime, so that all fields of the format vary
    const float f = float_of(static_cast<std::uint32_t>(u));
    if (std::isnan(f)) {
      wrong += (to_half(f).bits & 0x7e00U) != 0x7e00U || (to_bfloat16(f).bits & 0x7fc0U) != 0x7fc0U;
    } else {
      wrong += to_half(f).bits != nearest_bits(f, 5, 10) || to_bfloat16(f).bits != nearest_bits(f, 8, 7);
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(half, overflows_from_65520_on) {
  EXPECT_EQ(to_half(65519.996F).bits, 0x7bffU);
  EXPECT_EQ(to_half(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(to_half(-65520.0F).bits, 0xfc00U);
  EXPECT_EQ(to_half(std::numeric_limits<float>::max()).bits, 0x7c00U);
}

TEST(half, converts_in_constant_expressions) {
  static_assert(to_half(1.5F).bits == 0x3e00U);
  static_assert(to_float(half{0x0001U}) == 0x1p-24F);
  static_assert(to_bfloat16(1.5F).bits == 0x3fc0U);
  static_assert(to_float(bfloat16{0x3fc0U}) == 1.5F);
}

}  // namespace
