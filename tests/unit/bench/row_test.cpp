// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>
#include <topocoll/bench/row.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace bench = topocoll::bench;
using namespace topocoll::literals;

namespace {

std::vector<std::uint64_t> values(const std::vector<tc::bytes>& sizes) {
  std::vector<std::uint64_t> v;
  for (const auto s : sizes) v.push_back(s.value);
  return v;
}

TEST(sizes, multiply_by_the_factor_up_to_the_last) {
  EXPECT_EQ(values(bench::sizes({.first = 8_B, .last = 100_B, .factor = 4})), (std::vector<std::uint64_t>{8, 32}));
  EXPECT_EQ(values(bench::sizes({.first = 8_B, .last = 128_B, .factor = 4})), (std::vector<std::uint64_t>{8, 32, 128}));
}

TEST(sizes, add_the_step_without_a_factor) {
  EXPECT_EQ(values(bench::sizes({.first = 10_B, .last = 35_B, .factor = {}, .step = 10_B})),
            (std::vector<std::uint64_t>{10, 20, 30}));
}

TEST(sizes, end_where_they_would_not_grow) {
  EXPECT_EQ(bench::sizes({.first = 0_B, .last = 100_B, .factor = 2}).size(), 1U);
  EXPECT_EQ(bench::sizes({.first = {UINT64_MAX - 1}, .last = {UINT64_MAX}, .factor = 2}).size(), 1U);
  EXPECT_EQ(bench::sizes({.first = 5_B, .last = 5_B, .factor = 2}).size(), 1U);
}

TEST(count_of, cuts_the_array_for_the_collectives_with_a_part_per_rank) {
  EXPECT_EQ(bench::count_of(tc::collective_kind::all_reduce, 1024_B, tc::dtype::float32, 3), 256U);
  EXPECT_EQ(bench::count_of(tc::collective_kind::all_gather, 1024_B, tc::dtype::float32, 3), 85U);
  EXPECT_EQ(bench::count_of(tc::collective_kind::reduce_scatter, 8_B, tc::dtype::float64, 3), 0U);
  EXPECT_EQ(bench::size_of_count(tc::collective_kind::all_gather, 85, tc::dtype::float32, 3), 1020_B);
  EXPECT_EQ(bench::count_of(tc::collective_kind::gather, 1024_B, tc::dtype::float32, 3), 85U);
  EXPECT_EQ(bench::size_of_count(tc::collective_kind::scatter, 85, tc::dtype::float32, 3), 1020_B);
  EXPECT_EQ(bench::size_of_count(tc::collective_kind::broadcast, 85, tc::dtype::float32, 3), 340_B);
}

TEST(row, computes_bandwidths_as_nccl_tests_does) {
  bench::row r;
  r.collective = tc::collective_kind::all_reduce;
  r.size = {1000000000};
  r.ranks = 8;
  r.out_of_place.time = 100_ms;
  EXPECT_DOUBLE_EQ(r.algbw(r.out_of_place).value, 1e10);
  EXPECT_DOUBLE_EQ(r.busbw(r.out_of_place).value, 1.75e10);  // 2 (n-1) / n
  for (const auto kind : {tc::collective_kind::gather, tc::collective_kind::scatter}) {
    r.collective = kind;
    EXPECT_DOUBLE_EQ(r.busbw(r.out_of_place).value, 0.875e10);  // (n-1) / n
  }
  r.in_place.time = {};
  EXPECT_EQ(r.algbw(r.in_place).value, 0);
}

TEST(total, adds_wrong_elements_and_averages_bus_bandwidth_over_both_halves) {
  bench::row r;
  r.collective = tc::collective_kind::broadcast;
  r.size = {1000};
  r.ranks = 2;
  r.out_of_place = {tc::seconds{1e-6}, 3};
  r.in_place = {tc::seconds{2e-6}, 4};
  const std::vector<bench::row> rows = {r, r};
  const auto t = bench::total(rows);
  EXPECT_EQ(t.wrong, 14U);
  EXPECT_TRUE(t.checked);
  EXPECT_DOUBLE_EQ(t.average_busbw.value, 0.75e9);
  EXPECT_FALSE(bench::total({}).checked);
}

}  // namespace
