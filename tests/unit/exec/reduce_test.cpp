// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/float8.hpp>
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

template <class T>
constexpr bool narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float8_e4m3> ||
                        std::is_same_v<T, float8_e5m2>;

template <class T>
T from_float(float f) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(f);
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(f);
  else if constexpr (std::is_same_v<T, float8_e4m3>)
    return to_float8_e4m3(f);
  else
    return to_float8_e5m2(f);
}

template <class T>
bool is_nan(T x) {
  if constexpr (narrow<T>)
    return std::isnan(to_float(x));
  else if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else
    return false;
}

template <class T>
T element(const std::byte* at) {
  T x;
  std::memcpy(static_cast<void*>(&x), at, sizeof x);
  return x;
}

// One element at a time, in the widest type that keeps the result exact, or as the documentation says.
template <class T>
T expected(reduce_op op, T a, T b) {
  if constexpr (narrow<T>) {
    return from_float<T>(expected<float>(op, to_float(a), to_float(b)));
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
  if (any_nan && is_nan(a) && is_nan(b)) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
class reduce_elements_of : public ::testing::Test {};
using elements = ::testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                                  half, float, double, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(reduce_elements_of, elements);

// Those that this processor has.
std::vector<vector_level> levels() {
  std::vector<vector_level> found;
  for (int l = 0; l <= static_cast<int>(best_vector_level()); ++l) found.push_back(static_cast<vector_level>(l));
  return found;
}

// Whether a result may be another NaN than expected.
bool arithmetic(reduce_op op) { return op != reduce_op::min && op != reduce_op::max; }

TYPED_TEST(reduce_elements_of, equals_one_element_at_a_time_at_every_level_length_and_alignment) {
  using T = TypeParam;
  constexpr std::uint64_t seed = 0x1234567;
  generator g{seed};
  for (const std::size_t n : {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257, 1023}) {
    for (const std::size_t skew : {std::size_t{0}, std::size_t{1}, sizeof(T)}) {
      std::vector<std::byte> a(n * sizeof(T) + 16), b(n * sizeof(T) + 16);
      for (std::size_t i = 0; i < n; ++i) {
        const T x = arbitrary<T>(g), y = arbitrary<T>(g);
        std::memcpy(a.data() + skew + i * sizeof(T), &x, sizeof(T));
        std::memcpy(b.data() + skew + i * sizeof(T), &y, sizeof(T));
      }
      for (const vector_level level : levels())
        for (const reduce_op op : all_reduce_ops) {
          std::vector<std::byte> r(n * sizeof(T) + 16, std::byte{0xa5});
          reduce_kernel_of(dtype_of<T>(), op, level)(r.data() + skew, a.data() + skew, b.data() + skew, n);
          for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = skew + i * sizeof(T);
            const T x = element<T>(a.data() + at), y = element<T>(b.data() + at), z = element<T>(r.data() + at);
            ASSERT_TRUE(same(z, expected(op, x, y), arithmetic(op)))
                << to_string(op) << " at level " << to_string(level) << ", element " << i << " of " << n << ", seed "
                << seed;
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

// Operand after operand, one element at a time. Wide: the narrow types are rounded at the end only.
template <class T>
T expected_of_many(reduce_op op, const std::vector<T>& operands, bool wide, std::uint32_t divide_by) {
  if constexpr (narrow<T>) {
    float all = to_float(operands[0]);
    for (std::size_t k = 1; k < operands.size(); ++k) {
      all = expected<float>(op, all, to_float(operands[k]));
      if (!wide) all = to_float(from_float<T>(all));
    }
    return from_float<T>(divide_by == 1 ? all : all / static_cast<float>(divide_by));
  } else {
    T all = operands[0];
    for (std::size_t k = 1; k < operands.size(); ++k) all = expected(op, all, operands[k]);
    if (divide_by == 1) return all;
    if constexpr (std::is_floating_point_v<T>)
      return all / static_cast<T>(divide_by);
    else if constexpr (std::is_signed_v<T>)
      return static_cast<T>(std::int64_t{all} / std::int64_t{divide_by});
    else
      return static_cast<T>(std::uint64_t{all} / divide_by);
  }
}

struct bytes_deleter {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
};
std::unique_ptr<std::byte, bytes_deleter> aligned_bytes(std::size_t n) {
  auto* p = static_cast<std::byte*>(::operator new (n + 1, std::align_val_t{64}));
  std::memset(p, 0xa5, n);
  return std::unique_ptr<std::byte, bytes_deleter>(p);
}

TYPED_TEST(reduce_elements_of, combines_many_operands_in_their_order_at_every_level) {
  using T = TypeParam;
  constexpr std::uint64_t seed = 0x7654321;
  generator g{seed};
  constexpr std::size_t room = 1023 * sizeof(T) + 64;
  for (const std::size_t sources : {1U, 2U, 3U, 8U, 17U}) {
    std::vector<std::vector<std::byte>> data(sources, std::vector<std::byte>(room));
    for (auto& d : data)
      for (std::size_t i = 0; i < room; ++i) d[i] = static_cast<std::byte>(g.next());
    for (const std::size_t n : {0U, 1U, 3U, 17U, 1023U})
      for (const std::size_t skew : {std::size_t{0}, std::size_t{1}, 3 * sizeof(T)})
        for (const reduce_op op : all_reduce_ops)
          for (const bool each_step : {false, true}) {
            const std::uint32_t divide_by = op == reduce_op::avg ? static_cast<std::uint32_t>(sources) : 1;
            std::vector<T> want(n);
            for (std::size_t i = 0; i < n; ++i) {
              std::vector<T> operands;
              for (const auto& d : data) operands.push_back(element<T>(d.data() + skew + i * sizeof(T)));
              want[i] = expected_of_many(op, operands, !each_step, divide_by);
            }
            std::vector<const std::byte*> from;
            for (const auto& d : data) from.push_back(d.data() + skew);
            for (const vector_level level : levels())
              for (const bool streaming : {false, true}) {
                const auto one = aligned_bytes(room), other = aligned_bytes(room);
                std::byte* const into[] = {one.get() + skew, other.get() + skew};
                reduce_kernel_of(dtype_of<T>(), op, level)(
                    into, from, n,
                    {.round_each_step = each_step, .streaming_stores = streaming, .divide_by = divide_by});
                for (std::size_t i = 0; i < n; ++i)
                  ASSERT_TRUE(same(element<T>(into[0] + i * sizeof(T)), want[i], arithmetic(op) || sources == 1))
                      << to_string(op) << " of " << sources << " at level " << to_string(level) << ", element " << i
                      << " of " << n << (each_step ? ", rounded each time" : "") << (streaming ? ", streaming" : "")
                      << ", seed " << seed;
                ASSERT_EQ(std::memcmp(one.get(), other.get(), room), 0) << "the outputs differ";
                for (std::size_t i = 0; i < room; ++i) {
                  if (i < skew || i >= skew + n * sizeof(T)) {
                    ASSERT_EQ(one.get()[i], std::byte{0xa5}) << "byte " << i << " beside the result was written";
                  }
                }
              }
          }
  }
}

TYPED_TEST(reduce_elements_of, many_operands_rounded_each_time_equals_the_kernel_of_two) {
  using T = TypeParam;
  generator g{99};
  constexpr std::size_t n = 301;
  for (const reduce_op op : {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max}) {
    std::vector<std::vector<T>> data(5, std::vector<T>(n));
    for (auto& d : data)
      for (T& x : d) x = arbitrary<T>(g);
    std::vector<T> steps = data[0], at_once(n);
    const auto bytes_of = [](std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); };
    for (std::size_t k = 1; k < data.size(); ++k)
      reduce_elements(dtype_of<T>(), op, bytes_of(steps), bytes_of(steps), bytes_of(data[k]), n);
    std::vector<const std::byte*> from;
    for (auto& d : data) from.push_back(bytes_of(d));
    reduce_many(dtype_of<T>(), op, bytes_of(at_once), from, n, {.round_each_step = true});
    for (std::size_t i = 0; i < n; ++i) ASSERT_TRUE(same(at_once[i], steps[i], arithmetic(op))) << to_string(op) << i;
  }
}

TYPED_TEST(reduce_elements_of, many_operands_may_be_overwritten_by_the_result) {
  using T = TypeParam;
  generator g{5};
  constexpr std::size_t n = 5000;
  for (const std::uint32_t divide_by : {1U, 3U}) {
    std::vector<std::vector<T>> data(4, std::vector<T>(n));
    for (auto& d : data)
      for (T& x : d) x = arbitrary<T>(g);
    std::vector<T> apart(n);
    const auto bytes_of = [](std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); };
    std::vector<const std::byte*> from;
    for (auto& d : data) from.push_back(bytes_of(d));
    reduce_many(dtype_of<T>(), reduce_op::sum, bytes_of(apart), from, n, {.divide_by = divide_by});
    const std::array<std::byte*, 4> onto{bytes_of(data[3]), bytes_of(data[0]), bytes_of(data[2]), bytes_of(data[1])};
    reduce_many(dtype_of<T>(), reduce_op::sum, std::span<std::byte* const>(onto), from, n, {.divide_by = divide_by});
    for (const auto& d : data) EXPECT_EQ(std::memcmp(d.data(), apart.data(), n * sizeof(T)), 0);
  }
}

TYPED_TEST(reduce_elements_of, may_write_into_either_operand) {
  using T = TypeParam;
  generator g{42};
  constexpr std::size_t n = 53;
  for (const reduce_op op : all_reduce_ops) {
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
  for (const vector_level level : levels())
    for (const reduce_op op : {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max}) {
      reduce_kernel_of(dtype_of<T>(), op, level)(reinterpret_cast<std::byte*>(r.data()),
                                                 reinterpret_cast<std::byte*>(a.data()),
                                                 reinterpret_cast<std::byte*>(b.data()), a.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < a.size(); ++i) wrong += !same(r[i], expected(op, a[i], b[i]), arithmetic(op));
      EXPECT_EQ(wrong, 0U) << to_string(op) << " with " << std::hex << other << " at level " << to_string(level);
    }
}
TEST(reduce_elements, of_16_bit_floats_is_right_for_all_bit_patterns) {
  for (const int other : {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0x3c01, 0x3f80, 0xbf81, 0x7bff, 0x7c00,
                          0xfc00, 0x7e00, 0x7f80, 0xff80, 0x7d01}) {
    check_all_patterns_against<half>(static_cast<std::uint16_t>(other));
    check_all_patterns_against<bfloat16>(static_cast<std::uint16_t>(other));
  }
}

template <class T>
void check_all_pairs() {
  std::vector<T> a(65536), b(65536), r(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    a[i] = T{static_cast<std::uint8_t>(i)};
    b[i] = T{static_cast<std::uint8_t>(i >> 8U)};
  }
  for (const vector_level level : levels())
    for (const reduce_op op : {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max}) {
      reduce_kernel_of(dtype_of<T>(), op, level)(reinterpret_cast<std::byte*>(r.data()),
                                                 reinterpret_cast<std::byte*>(a.data()),
                                                 reinterpret_cast<std::byte*>(b.data()), a.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < a.size(); ++i) wrong += !same(r[i], expected(op, a[i], b[i]), arithmetic(op));
      EXPECT_EQ(wrong, 0U) << to_string(dtype_of<T>()) << ' ' << to_string(op) << " at level " << to_string(level);
    }
}
TEST(reduce_elements, of_8_bit_floats_is_right_for_all_pairs_of_bit_patterns) {
  check_all_pairs<float8_e4m3>();
  check_all_pairs<float8_e5m2>();
}

// One pair of elements, by every level.
template <class T>
std::vector<T> results(reduce_op op, T a, T b) {
  std::vector<T> found;
  for (const vector_level level : levels()) {
    T r{};
    reduce_kernel_of(dtype_of<T>(), op, level)(reinterpret_cast<std::byte*>(&r), reinterpret_cast<const std::byte*>(&a),
                                               reinterpret_cast<const std::byte*>(&b), 1);
    found.push_back(r);
  }
  return found;
}

TEST(reduce_elements, takes_minus_zero_for_smaller_than_plus_zero) {
  for (const float8_e4m3 r : results(reduce_op::min, float8_e4m3{0x00}, float8_e4m3{0x80})) EXPECT_EQ(r.bits, 0x80);
  for (const float8_e5m2 r : results(reduce_op::max, float8_e5m2{0x80}, float8_e5m2{0x00})) EXPECT_EQ(r.bits, 0x00);
  for (const half r : results(reduce_op::min, half{0x0000}, half{0x8000})) EXPECT_EQ(r.bits, 0x8000);
  for (const bfloat16 r : results(reduce_op::max, bfloat16{0x8000}, bfloat16{0x0000})) EXPECT_EQ(r.bits, 0x0000);
  for (const double r : results(reduce_op::min, 0.0, -0.0)) EXPECT_TRUE(std::signbit(r));
}

TEST(reduce_elements, gives_one_nan_for_min_and_max_whichever_came) {
  for (const reduce_op op : {reduce_op::min, reduce_op::max}) {
    for (const float8_e4m3 r : results(op, float8_e4m3{0xff}, float8_e4m3{0x38})) EXPECT_EQ(r.bits, 0x7f);
    for (const float8_e5m2 r : results(op, float8_e5m2{0x3c}, float8_e5m2{0xfd})) EXPECT_EQ(r.bits, 0x7f);
    for (const half r : results(op, half{0xfd01}, half{0x3c00})) EXPECT_EQ(r.bits, 0x7e00);
    for (const bfloat16 r : results(op, bfloat16{0x3f80}, bfloat16{0xff81})) EXPECT_EQ(r.bits, 0x7fc0);
  }
}

TEST(reduce_elements, saturates_8_bit_floats_and_overflows_the_others) {
  for (const float8_e4m3 r : results(reduce_op::sum, float8_e4m3{0x7e}, float8_e4m3{0x7e})) EXPECT_EQ(r.bits, 0x7e);
  for (const float8_e4m3 r : results(reduce_op::sum, float8_e4m3{0xfe}, float8_e4m3{0xfe})) EXPECT_EQ(r.bits, 0xfe);
  for (const float8_e5m2 r : results(reduce_op::sum, float8_e5m2{0x7b}, float8_e5m2{0x7b})) EXPECT_EQ(r.bits, 0x7b);
  for (const float8_e5m2 r : results(reduce_op::sum, float8_e5m2{0x7c}, float8_e5m2{0x3c})) EXPECT_EQ(r.bits, 0x7c);
  for (const float8_e5m2 r : results(reduce_op::sum, float8_e5m2{0x7c}, float8_e5m2{0xfc}))
    EXPECT_TRUE(std::isnan(to_float(r)));
  for (const half r : results(reduce_op::sum, half{0x7bff}, half{0x7bff})) EXPECT_EQ(r.bits, 0x7c00);
  for (const bfloat16 r : results(reduce_op::prod, bfloat16{0x7f7f}, bfloat16{0x7f7f})) EXPECT_EQ(r.bits, 0x7f80);
}

TEST(reduce_many, keeps_sums_of_narrow_floats_wide_until_the_end) {
  // 60000 + 60000 - 60000 - 60000 + 1 is more than half holds on its way, and 1 is less than it resolves.
  const half big = to_half(60000.0F), minus = to_half(-60000.0F), one = to_half(1.0F);
  const auto at = [](const half& h) { return reinterpret_cast<const std::byte*>(&h); };
  const std::array<const std::byte*, 5> from{at(big), at(big), at(minus), at(minus), at(one)};
  half wide, stepwise, mean;
  reduce_many(dtype::float16, reduce_op::sum, reinterpret_cast<std::byte*>(&wide), from, 1);
  reduce_many(dtype::float16, reduce_op::sum, reinterpret_cast<std::byte*>(&stepwise), from, 1,
              {.round_each_step = true});
  const std::span<const std::byte* const> two(from.data(), 2);
  reduce_many(dtype::float16, reduce_op::avg, reinterpret_cast<std::byte*>(&mean), two, 1, {.divide_by = 2});
  EXPECT_EQ(wide.bits, one.bits);
  EXPECT_EQ(stepwise.bits, to_half(std::numeric_limits<float>::infinity()).bits);
  EXPECT_EQ(mean.bits, big.bits);
}

TEST(reduce_many, writes_nothing_when_there_is_nothing) {
  std::int32_t x = 7;
  auto* const at = reinterpret_cast<std::byte*>(&x);
  const std::byte* const from = at;
  reduce_many(dtype::int32, reduce_op::sum, at, {}, 1);
  reduce_many(dtype::int32, reduce_op::sum, at, {&from, 1}, 0);
  reduce_many(dtype::int32, reduce_op::sum, std::span<std::byte* const>{}, {&from, 1}, 1);
  EXPECT_EQ(x, 7);
}

TEST(reduce_many, streams_into_outputs_of_any_alignment) {
  constexpr std::size_t n = 3000;
  std::vector<std::uint16_t> a(n), b(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = static_cast<std::uint16_t>(i);
    b[i] = static_cast<std::uint16_t>(2 * i);
  }
  std::vector<float> x(a.begin(), a.end()), y(b.begin(), b.end());
  const std::array<const std::byte*, 2> from{reinterpret_cast<std::byte*>(x.data()),
                                             reinterpret_cast<std::byte*>(y.data())};
  for (const std::size_t first : {0U, 1U, 4U, 20U, 63U})
    for (const std::size_t second : {0U, 4U, 20U}) {
      const auto p = aligned_bytes(n * 4 + 64), q = aligned_bytes(n * 4 + 64);
      std::byte* const into[] = {p.get() + first, q.get() + second};
      reduce_many(dtype::float32, reduce_op::sum, into, from, n, {.streaming_stores = true});
      for (std::byte* const out : into)
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(element<float>(out + i * 4), static_cast<float>(3 * i)) << i;
    }
}

// Complex numbers that are multiplied, and a count of the elements that went through.
struct complex_product {
  std::size_t elements = 0;
  static void multiply(void* context, std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) {
    static_cast<complex_product*>(context)->elements += count;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = element<std::array<double, 2>>(a + 16 * i), y = element<std::array<double, 2>>(b + 16 * i);
      const std::array<double, 2> z{x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]};
      std::memcpy(into + 16 * i, z.data(), 16);
    }
  }
};

TEST(custom_reduction, combines_two_and_many_operands_in_their_order) {
  constexpr std::size_t n = 1500;  // more than a piece
  complex_product product;
  const custom_reduction reduction{complex_product::multiply, &product, 16};
  std::vector<std::array<double, 2>> turn(n, {0, 1}), twice(n, {2, 0}), r(n), again(n);
  for (std::size_t i = 0; i < n; ++i) twice[i][0] = static_cast<double>(i);
  const auto at = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  reduce_elements(reduction, at(r), at(turn), at(twice), n);
  EXPECT_EQ(product.elements, n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(r[i], (std::array<double, 2>{0, static_cast<double>(i)}));
  const std::array<const std::byte*, 3> from{at(turn), at(twice), at(turn)};
  const std::array<std::byte*, 2> into{at(r), at(again)};
  reduce_many(reduction, into, from, n);
  EXPECT_EQ(product.elements, 3 * n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(r[i], (std::array<double, 2>{-static_cast<double>(i), 0})) << i;
  EXPECT_EQ(r, again);
}

TEST(custom_reduction, copies_a_single_operand_and_takes_elements_larger_than_a_piece) {
  struct counter {
    static void add(void*, std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) {
      for (std::size_t i = 0; i < count * 10000; ++i)
        into[i] = static_cast<std::byte>(std::to_integer<unsigned>(a[i]) + std::to_integer<unsigned>(b[i]));
    }
  };
  std::vector<std::byte> a(30000, std::byte{1}), b(30000, std::byte{2}), r(30000);
  const std::array<const std::byte*, 3> from{a.data(), b.data(), b.data()};
  reduce_many(custom_reduction{counter::add, nullptr, 10000}, r.data(), from, 3);
  EXPECT_EQ(r, std::vector<std::byte>(30000, std::byte{5}));
  reduce_many(custom_reduction{counter::add, nullptr, 10000}, r.data(), {from.data(), 1}, 3);
  EXPECT_EQ(r, a);
  reduce_many(custom_reduction{counter::add, nullptr, 10000}, a.data(), {from.data(), 2}, 3);
  EXPECT_EQ(a, std::vector<std::byte>(30000, std::byte{3})) << "into the first operand";
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

TEST(divide_elements, rounds_8_bit_floats_once) {
  float8_e4m3 x[] = {to_float8_e4m3(448.0F), to_float8_e4m3(-1.0F)};
  divide_elements(dtype::float8_e4m3, reinterpret_cast<std::byte*>(x), 2, 3);
  EXPECT_EQ(x[0].bits, to_float8_e4m3(448.0F / 3.0F).bits);
  EXPECT_EQ(x[1].bits, to_float8_e4m3(-1.0F / 3.0F).bits);
}

TEST(divide_elements, rounds_16_bit_floats_once) {
  half h[] = {to_half(1.0F), to_half(10.0F)};
  divide_elements(dtype::float16, reinterpret_cast<std::byte*>(h), 2, 3);
  EXPECT_EQ(h[0].bits, to_half(1.0F / 3.0F).bits);
  EXPECT_EQ(h[1].bits, to_half(10.0F / 3.0F).bits);
}

}  // namespace
