// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/reduce.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

// Numbers from a seed: xorshift64 (Marsaglia 2003).
struct generator {
  std::uint64_t state;
  std::uint64_t next() {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return state;
  }
};

template <class T>
T arbitrary(generator& g) {
  T x;
  const std::uint64_t bits = g.next();
  std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
  return x;
}

// One element at a time, in the widest type that keeps the result exact, or as the documentation says.
template <class T>
T expected(reduce_op op, T a, T b) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    const float r = expected<float>(op, to_float(a), to_float(b));
    if constexpr (std::is_same_v<T, half>)
      return to_half(r);
    else
      return to_bfloat16(r);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (op == reduce_op::sum || op == reduce_op::avg) return a + b;
    if (op == reduce_op::prod) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == (op == reduce_op::min) ? a : b;  // the zeros: -0 is smaller
    return (a < b) == (op == reduce_op::min) ? a : b;
  } else {
    __extension__ using wide = __int128;
    if (op == reduce_op::sum || op == reduce_op::avg)
      return static_cast<T>(static_cast<std::uint64_t>(wide{a} + wide{b}));
    if (op == reduce_op::prod)
      return static_cast<T>(
          static_cast<std::uint64_t>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b)));
    return (a < b) == (op == reduce_op::min) ? a : b;
  }
}

template <class T>
bool same(T a, T b, bool any_nan) {
  if (any_nan) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      if (std::isnan(to_float(a)) && std::isnan(to_float(b))) return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) && std::isnan(b)) return true;
    }
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
class reduce_elements_of : public ::testing::Test {};
using elements = ::testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                                  half, float, double, bfloat16>;
TYPED_TEST_SUITE(reduce_elements_of, elements);

constexpr reduce_op all_ops[] = {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max, reduce_op::avg};

TYPED_TEST(reduce_elements_of, equals_one_element_at_a_time_for_every_length_and_alignment) {
  using T = TypeParam;
  constexpr std::uint64_t seed = 0x1234567;
  generator g{seed};
  for (const std::size_t n : {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1000}) {
    for (const std::size_t skew : {std::size_t{0}, std::size_t{1}, sizeof(T)}) {
      for (const reduce_op op : all_ops) {
        std::vector<std::byte> a(n * sizeof(T) + 16), b(n * sizeof(T) + 16), r(n * sizeof(T) + 16, std::byte{0xa5});
        for (std::size_t i = 0; i < n; ++i) {
          const T x = arbitrary<T>(g), y = arbitrary<T>(g);
          std::memcpy(a.data() + skew + i * sizeof(T), &x, sizeof(T));
          std::memcpy(b.data() + skew + i * sizeof(T), &y, sizeof(T));
        }
        reduce_elements(dtype_of<T>(), op, r.data() + skew, a.data() + skew, b.data() + skew, n);
        for (std::size_t i = 0; i < n; ++i) {
          T x, y, z;
          std::memcpy(static_cast<void*>(&x), a.data() + skew + i * sizeof(T), sizeof(T));
          std::memcpy(static_cast<void*>(&y), b.data() + skew + i * sizeof(T), sizeof(T));
          std::memcpy(static_cast<void*>(&z), r.data() + skew + i * sizeof(T), sizeof(T));
          const bool arithmetic = op == reduce_op::sum || op == reduce_op::prod || op == reduce_op::avg;
          ASSERT_TRUE(same(z, expected(op, x, y), arithmetic))
              << to_string(op) << " element " << i << " of " << n << ", seed " << seed;
        }
        for (std::size_t i = 0; i < r.size(); ++i) {
          if (i < skew || i >= skew + n * sizeof(T)) {
            ASSERT_EQ(r[i], std::byte{0xa5}) << "byte " << i << " beside the result was written";
          }
        }
      }
    }
  }
}

TYPED_TEST(reduce_elements_of, may_write_into_either_operand) {
  using T = TypeParam;
  generator g{42};
  constexpr std::size_t n = 53;
  for (const reduce_op op : all_ops) {
    std::vector<T> a(n), b(n), r(n);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = arbitrary<T>(g);
      b[i] = arbitrary<T>(g);
    }
    std::vector<T> into_a = a, into_b = b;
    const auto bytes_of = [](std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); };
    reduce_elements(dtype_of<T>(), op, bytes_of(r), bytes_of(a), bytes_of(b), n);
    reduce_elements(dtype_of<T>(), op, bytes_of(into_a), bytes_of(into_a), bytes_of(b), n);
    reduce_elements(dtype_of<T>(), op, bytes_of(into_b), bytes_of(a), bytes_of(into_b), n);
    EXPECT_EQ(std::memcmp(r.data(), into_a.data(), n * sizeof(T)), 0) << to_string(op);
    EXPECT_EQ(std::memcmp(r.data(), into_b.data(), n * sizeof(T)), 0) << to_string(op);
  }
}

TYPED_TEST(reduce_elements_of, gives_min_and_max_that_do_not_depend_on_the_order) {
  using T = TypeParam;
  generator g{7};
  constexpr std::size_t n = 4096;
  std::vector<T> a(n), b(n), one(n), other(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = arbitrary<T>(g);
    b[i] = arbitrary<T>(g);
  }
  const auto bytes_of = [](std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); };
  for (const reduce_op op : {reduce_op::min, reduce_op::max}) {
    reduce_elements(dtype_of<T>(), op, bytes_of(one), bytes_of(a), bytes_of(b), n);
    reduce_elements(dtype_of<T>(), op, bytes_of(other), bytes_of(b), bytes_of(a), n);
    EXPECT_EQ(std::memcmp(one.data(), other.data(), n * sizeof(T)), 0) << to_string(op);
  }
}

// All pairs of one operand with every bit pattern.
template <class T>
void check_all_patterns_against(std::uint16_t other) {
  std::vector<T> a(65536), b(65536, T{other}), r(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) a[i] = T{static_cast<std::uint16_t>(i)};
  for (const reduce_op op : {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max}) {
    reduce_elements(dtype_of<T>(), op, reinterpret_cast<std::byte*>(r.data()), reinterpret_cast<std::byte*>(a.data()),
                    reinterpret_cast<std::byte*>(b.data()), a.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      wrong += !same(r[i], expected(op, a[i], b[i]), op == reduce_op::sum || op == reduce_op::prod);
    EXPECT_EQ(wrong, 0U) << to_string(op) << " with " << std::hex << other;
  }
}
TEST(reduce_elements, of_16_bit_floats_is_right_for_all_bit_patterns) {
  for (const int other : {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0x3c01, 0x3f80, 0xbf81, 0x7bff, 0x7c00,
                          0xfc00, 0x7e00, 0x7f80, 0xff80, 0x7d01}) {
    check_all_patterns_against<half>(static_cast<std::uint16_t>(other));
    check_all_patterns_against<bfloat16>(static_cast<std::uint16_t>(other));
  }
}

TEST(reduce_elements, wraps_signed_integers) {
  const std::int32_t a = std::numeric_limits<std::int32_t>::max(), b = 1;
  std::int32_t r = 0;
  reduce_elements(dtype::int32, reduce_op::sum, reinterpret_cast<std::byte*>(&r),
                  reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b), 1);
  EXPECT_EQ(r, std::numeric_limits<std::int32_t>::min());
}

TEST(divide_elements, truncates_integers_toward_zero) {
  std::int32_t x[] = {7, -7, 8, -8, 0, std::numeric_limits<std::int32_t>::min()};
  divide_elements(dtype::int32, reinterpret_cast<std::byte*>(x), 6, 4);
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(x[1], -1);
  EXPECT_EQ(x[2], 2);
  EXPECT_EQ(x[3], -2);
  EXPECT_EQ(x[4], 0);
  EXPECT_EQ(x[5], std::numeric_limits<std::int32_t>::min() / 4);
}

TEST(divide_elements, takes_divisors_that_the_element_cannot_hold) {
  std::int8_t x[] = {100, -100};
  divide_elements(dtype::int8, reinterpret_cast<std::byte*>(x), 2, 200);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[1], 0);
}

TEST(divide_elements, rounds_16_bit_floats_once) {
  half h[] = {to_half(1.0F), to_half(10.0F)};
  divide_elements(dtype::float16, reinterpret_cast<std::byte*>(h), 2, 3);
  EXPECT_EQ(h[0].bits, to_half(1.0F / 3.0F).bits);
  EXPECT_EQ(h[1].bits, to_half(10.0F / 3.0F).bits);
}

}  // namespace
