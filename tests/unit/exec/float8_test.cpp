// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <topocoll/exec/float8.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

// The format by its definition, in doubles, and conversion by search in the list of its numbers: independent of the bit
// tricks under test.
template <class T>
struct format;
template <>
struct format<float8_e4m3> {
  static constexpr int bias = 7, fraction_bits = 3;
  static constexpr std::uint32_t largest = 0x7e;
  static constexpr bool infinities = false;
  static float8_e4m3 of(float f) { return to_float8_e4m3(f); }
};
template <>
struct format<float8_e5m2> {
  static constexpr int bias = 15, fraction_bits = 2;
  static constexpr std::uint32_t largest = 0x7b;
  static constexpr bool infinities = true;
  static float8_e5m2 of(float f) { return to_float8_e5m2(f); }
};

// Of the finite magnitudes 0 .. largest.
template <class T>
double magnitude(std::uint32_t bits) {
  using f = format<T>;
  const auto exponent = static_cast<int>(bits >> f::fraction_bits);
  const double fraction = std::ldexp(bits % (1U << f::fraction_bits), -f::fraction_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - f::bias) : std::ldexp(1 + fraction, exponent - f::bias);
}

template <class T>
std::uint32_t nearest(float x) {
  const std::uint32_t sign = std::signbit(x) ? 0x80U : 0U;
  if (std::isinf(x)) return sign | (format<T>::infinities ? format<T>::largest + 1 : format<T>::largest);
  const double a = std::fabs(static_cast<double>(x));
  if (a >= 2 * magnitude<T>(format<T>::largest)) return sign | format<T>::largest;  // where doubles tell no differences
  std::uint32_t best = 0;
  for (std::uint32_t b = 1; b <= format<T>::largest; ++b) {
    const double nearer = std::fabs(magnitude<T>(best) - a) - std::fabs(magnitude<T>(b) - a);
    if (nearer > 0 || (nearer == 0 && b % 2 == 0)) best = b;
  }
  return sign | best;
}

template <class T>
class float8 : public ::testing::Test {};
using formats = ::testing::Types<float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(float8, formats);

TYPED_TEST(float8, has_the_value_that_its_format_says_for_all_bit_patterns) {
  using T = TypeParam;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const float f = to_float(T{static_cast<std::uint8_t>(b)});
    EXPECT_EQ(std::signbit(f), b >= 128) << std::hex << b;
    const std::uint32_t m = b % 128;
    if (m <= format<T>::largest)
      EXPECT_EQ(std::fabs(static_cast<double>(f)), magnitude<T>(m)) << std::hex << b;
    else if (format<T>::infinities && m == format<T>::largest + 1)
      EXPECT_TRUE(std::isinf(f)) << std::hex << b;
    else
      EXPECT_TRUE(std::isnan(f)) << std::hex << b;
  }
}

TYPED_TEST(float8, comes_back_from_float_for_all_bit_patterns) {
  using T = TypeParam;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const float f = to_float(T{static_cast<std::uint8_t>(b)});
    EXPECT_EQ(format<T>::of(f).bits, std::isnan(f) ? (b | 0x7fU) : b) << std::hex << b;
  }
}

TYPED_TEST(float8, rounds_to_nearest_even_on_and_beside_every_number_and_every_middle) {
  using T = TypeParam;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::uint32_t b = 0; b <= format<T>::largest; ++b) {
    const double low = magnitude<T>(b);
    // Above the largest: where the next number would be, if there were one.
    const double high = b < format<T>::largest ? magnitude<T>(b + 1) : 2 * low - magnitude<T>(b - 1);
    for (const double x : {low, (low + high) / 2, high}) {
      const auto middle = static_cast<float>(x);
      for (const float f : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, infinity)}) {
        EXPECT_EQ(format<T>::of(f).bits, nearest<T>(f)) << f;
        EXPECT_EQ(format<T>::of(-f).bits, nearest<T>(-f)) << -f;
      }
    }
  }
}

TYPED_TEST(float8, rounds_a_spread_of_all_floats_correctly) {
  using T = TypeParam;
  std::uint64_t wrong = 0;
  for (std::uint64_t u = 0; u <= 0xffffffffU; u += 131071) {  // a prime, so that all fields of the format vary
    const auto f = __builtin_bit_cast(float, static_cast<std::uint32_t>(u));
    wrong += std::isnan(f) ? (format<T>::of(f).bits & 0x7fU) != 0x7fU : format<T>::of(f).bits != nearest<T>(f);
  }
  EXPECT_EQ(wrong, 0U);
}

TYPED_TEST(float8, keeps_the_sign_of_a_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(format<TypeParam>::of(nan).bits, 0x7f);
  EXPECT_EQ(format<TypeParam>::of(-nan).bits, 0xff);
}

TEST(float8_e4m3, saturates_all_that_is_too_large_at_448) {
  EXPECT_EQ(to_float(to_float8_e4m3(464.0F)), 448.0F);  // half way to what would be 480
  EXPECT_EQ(to_float(to_float8_e4m3(480.0F)), 448.0F);
  EXPECT_EQ(to_float(to_float8_e4m3(std::numeric_limits<float>::max())), 448.0F);
  EXPECT_EQ(to_float(to_float8_e4m3(-std::numeric_limits<float>::infinity())), -448.0F);
}

TEST(float8_e5m2, saturates_finite_numbers_at_57344_and_keeps_infinities) {
  EXPECT_EQ(to_float(to_float8_e5m2(61440.0F)), 57344.0F);
  EXPECT_EQ(to_float(to_float8_e5m2(-std::numeric_limits<float>::max())), -57344.0F);
  EXPECT_EQ(to_float(to_float8_e5m2(-std::numeric_limits<float>::infinity())), -std::numeric_limits<float>::infinity());
}

TEST(float8_e5m2, is_the_upper_byte_of_a_half) {
  static_assert(to_float(float8_e5m2{0x3c}) == 1.0F);
  static_assert(to_float(float8_e5m2{0x01}) == 0x1p-16F);
}

TEST(float8_e4m3, converts_in_constant_expressions) {
  static_assert(to_float8_e4m3(1.5F).bits == 0x3c);
  static_assert(to_float(float8_e4m3{0x01}) == 0x1p-9F);
  static_assert(to_float(float8_e4m3{0x7e}) == 448.0F);
}

}  // namespace
