// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>
#include <topocoll/exec/pattern.hpp>
#include <topocoll/exec/reduce.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {

using data = std::vector<std::byte>;

data input(const tc::pattern& p, tc::dtype type, std::uint32_t rank, std::uint64_t count) {
  data d(count * tc::size_of(type).value);
  p.fill({rank}, d);
  return d;
}

/// Serial reduction by the kernels of the executor, rank after rank.
data reduced(const tc::pattern& p, tc::dtype type, tc::reduce_op op, std::uint32_t ranks, std::uint64_t count) {
  data sum = input(p, type, 0, count);
  for (std::uint32_t r = 1; r < ranks; ++r) {
    const data next = input(p, type, r, count);
    tc::reduce_elements(type, op, sum.data(), sum.data(), next.data(), count);
  }
  if (op == tc::reduce_op::avg) tc::divide_elements(type, sum.data(), count, ranks);
  return sum;
}

TEST(pattern, accepts_what_a_serial_reduction_gives) {
  for (const tc::dtype type : tc::all_dtypes)
    for (const tc::reduce_op op : tc::all_reduce_ops)
      for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 7U, 8U, 17U, 130U}) {
        const tc::pattern p(tc::collective_kind::all_reduce, type, op, ranks);
        const data right = reduced(p, type, op, ranks, 5000);
        EXPECT_EQ(p.wrong({0}, right), 0U) << to_string(type) << ' ' << to_string(op) << ' ' << ranks;
      }
}

TEST(pattern, notices_a_rank_that_is_missing_or_counted_twice) {
  for (const tc::reduce_op op : {tc::reduce_op::sum, tc::reduce_op::prod, tc::reduce_op::avg})
    for (const std::uint32_t ranks : {2U, 5U, 17U}) {
      const tc::pattern p(tc::collective_kind::all_reduce, tc::dtype::float32, op, ranks);
      const data without = reduced(p, tc::dtype::float32, op, ranks - 1, 5000);
      EXPECT_GT(p.wrong({0}, without), 5000U / ranks / 2) << to_string(op) << ' ' << ranks;
      data twice = reduced(p, tc::dtype::float32, op, ranks, 5000);
      const data again = input(p, tc::dtype::float32, 1, 5000);
      tc::reduce_elements(tc::dtype::float32, op, twice.data(), twice.data(), again.data(), 5000);
      EXPECT_GT(p.wrong({0}, twice), 5000U / ranks / 2) << to_string(op) << ' ' << ranks;
    }
}

TEST(pattern, notices_a_missing_rank_in_8_bit_sums) {
  for (const tc::dtype type : {tc::dtype::float8_e4m3, tc::dtype::float8_e5m2})
    for (const std::uint32_t ranks : {2U, 5U, 17U, 130U}) {
      const tc::pattern p(tc::collective_kind::all_reduce, type, tc::reduce_op::sum, ranks);
      const data without = reduced(p, type, tc::reduce_op::sum, ranks - 1, 5000);
      EXPECT_GT(p.wrong({0}, without), 5000U / ranks) << to_string(type) << ' ' << ranks;
    }
}

TEST(pattern, notices_a_single_changed_element) {
  for (const tc::dtype type : tc::all_dtypes) {
    const tc::pattern p(tc::collective_kind::all_reduce, type, tc::reduce_op::sum, 3);
    data d = reduced(p, type, tc::reduce_op::sum, 3, 9000);
    const std::size_t width = tc::size_of(type).value;
    for (std::size_t i = 0; i < width; ++i) d[4500 * width + i] ^= std::byte{0x55};
    EXPECT_EQ(p.wrong({0}, d), 1U) << to_string(type);
  }
}

TEST(pattern, notices_data_at_a_wrong_place) {
  constexpr std::uint64_t count = 100000;
  const tc::pattern p(tc::collective_kind::broadcast, tc::dtype::int32, tc::reduce_op::sum, 4, {2});
  data d = input(p, tc::dtype::int32, 2, count);
  EXPECT_EQ(p.wrong({0}, d), 0U);
  for (const std::uint64_t offset : {1ULL, 1024ULL, 4093ULL, 8186ULL, 25000ULL}) {
    data moved(d.size());
    p.fill({2}, moved, offset);
    EXPECT_GT(p.wrong({0}, moved), count / 2) << offset;
  }
}

TEST(pattern, of_all_gather_wants_every_shard_in_its_place) {
  constexpr std::uint32_t ranks = 5;
  constexpr std::uint64_t each = 1234;
  const tc::pattern p(tc::collective_kind::all_gather, tc::dtype::uint8, tc::reduce_op::sum, ranks);
  data all;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const data d = input(p, tc::dtype::uint8, r, each);
    all.insert(all.end(), d.begin(), d.end());
  }
  EXPECT_EQ(p.wrong({3}, all), 0U);
  std::swap_ranges(all.begin(), all.begin() + each, all.begin() + each);
  EXPECT_GT(p.wrong({3}, all), each);
}

TEST(pattern, of_reduce_scatter_wants_the_own_shard) {
  constexpr std::uint32_t ranks = 3;
  constexpr std::uint64_t each = 777;
  const tc::pattern p(tc::collective_kind::reduce_scatter, tc::dtype::float64, tc::reduce_op::sum, ranks);
  const data sum = reduced(p, tc::dtype::float64, tc::reduce_op::sum, ranks, each * ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const data shard(sum.begin() + r * each * 8, sum.begin() + (r + 1) * each * 8);
    EXPECT_EQ(p.wrong({r}, shard), 0U);
    EXPECT_GT(p.wrong({(r + 1) % ranks}, shard), each / 2);
  }
}

TEST(pattern, of_reduce_looks_at_the_root_only) {
  const tc::pattern p(tc::collective_kind::reduce, tc::dtype::float32, tc::reduce_op::sum, 2, {1});
  const data nonsense(4000, std::byte{0xff});
  EXPECT_EQ(p.wrong({0}, nonsense), 0U);
  EXPECT_EQ(p.wrong({1}, nonsense), 1000U);
}

TEST(pattern, of_gather_wants_every_shard_at_the_root) {
  const tc::pattern p(tc::collective_kind::gather, tc::dtype::int32, tc::reduce_op::sum, 3, {1});
  data all;
  for (std::uint32_t r = 0; r < 3; ++r) {
    const data d = input(p, tc::dtype::int32, r, 500);
    all.insert(all.end(), d.begin(), d.end());
  }
  EXPECT_EQ(p.wrong({1}, all), 0U);
  std::swap_ranges(all.begin(), all.begin() + 2000, all.begin() + 4000);
  EXPECT_GT(p.wrong({1}, all), 500U);
  EXPECT_EQ(p.wrong({0}, all), 0U);  // who has no output has no wrong one
}

TEST(pattern, of_scatter_wants_the_own_shard_of_the_root) {
  const tc::pattern p(tc::collective_kind::scatter, tc::dtype::int32, tc::reduce_op::sum, 3, {2});
  const data whole = input(p, tc::dtype::int32, 2, 1500), other = input(p, tc::dtype::int32, 0, 1500);
  for (std::uint32_t r = 0; r < 3; ++r) {
    const data shard(whole.begin() + r * 2000, whole.begin() + (r + 1) * 2000);
    EXPECT_EQ(p.wrong({r}, shard), 0U);
    EXPECT_GT(p.wrong({(r + 1) % 3}, shard), 250U);
    EXPECT_GT(p.wrong({r}, data(other.begin() + r * 2000, other.begin() + (r + 1) * 2000)), 250U);
  }
}

TEST(pattern, of_all_to_all_wants_what_each_rank_meant_for_this_one) {
  constexpr std::uint32_t ranks = 4;
  constexpr std::uint64_t each = 100;
  const tc::pattern p(tc::collective_kind::all_to_all, tc::dtype::int32, tc::reduce_op::sum, ranks);
  data got;
  for (std::uint32_t from = 0; from < ranks; ++from) {
    const data d = input(p, tc::dtype::int32, from, each * ranks);
    got.insert(got.end(), d.begin() + 2 * each * 4, d.begin() + 3 * each * 4);
  }
  EXPECT_EQ(p.wrong({2}, got), 0U);
  EXPECT_GT(p.wrong({1}, got), each);
}

TEST(pattern, of_nothing_is_right) {
  const tc::pattern p(tc::collective_kind::all_reduce, tc::dtype::float32, tc::reduce_op::sum, 3);
  EXPECT_EQ(p.wrong({0}, {}), 0U);
}

TEST(pattern, differs_with_the_seed) {
  const tc::pattern a(tc::collective_kind::all_reduce, tc::dtype::int32, tc::reduce_op::max, 2, {}, 1);
  const tc::pattern b(tc::collective_kind::all_reduce, tc::dtype::int32, tc::reduce_op::max, 2, {}, 2);
  EXPECT_NE(input(a, tc::dtype::int32, 0, 100), input(b, tc::dtype::int32, 0, 100));
}

}  // namespace
