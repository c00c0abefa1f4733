// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <thread>
#include <vector>
#include <topocoll/bench/sweep.hpp>
#include <topocoll/exec/inproc.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace bench = topocoll::bench;
using namespace topocoll::literals;

namespace {

/// Runs a sweep between threads; what rank 0 saw.
tc::result<std::vector<bench::row>> swept(std::uint32_t ranks, const bench::sweep_config& config,
                                          bench::whereabouts* at = nullptr) {
  auto group = tc::make_inproc_group(ranks).value();
  std::vector<tc::result<std::vector<bench::row>>> all(ranks, tc::fail(tc::errc::bug, "did not run"));
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      all[r] = [&]() -> tc::result<std::vector<bench::row>> {
        auto comm = tc::communicator<tc::inproc_transport>::create(std::move(group[r])).value();
        bench::sweep<tc::inproc_transport> sweep(comm, config, r == 0 ? at : nullptr);
        if (auto ready = sweep.prepare(); !ready) return ready.error();
        std::vector<bench::row> rows;
        for (const auto size : bench::sizes(config.range)) {
          auto row = sweep.measure(size);
          if (!row) return row.error();
          rows.push_back(*row);
        }
        return rows;
      }();
    });
  for (auto& t : threads) t.join();
  return all[0];
}

bench::sweep_config quick(tc::collective_kind kind) {
  bench::sweep_config c;
  c.collective = kind;
  c.range = {0_B, 1000_B, {}, 500_B};
  c.iterations = 3;
  return c;
}

TEST(sweep, measures_every_collective_with_right_data_in_and_out_of_place) {
  for (const auto kind :
       {tc::collective_kind::all_reduce, tc::collective_kind::all_gather, tc::collective_kind::reduce_scatter,
        tc::collective_kind::broadcast, tc::collective_kind::reduce, tc::collective_kind::gather,
        tc::collective_kind::scatter, tc::collective_kind::all_to_all})
    for (const std::uint32_t ranks : {1U, 2U, 3U, 5U}) {
      auto config = quick(kind);
      config.registered = ranks != 3;
      const auto rows = swept(ranks, config);
      ASSERT_TRUE(rows) << rows.error().message();
      ASSERT_EQ(rows->size(), 3U);
      for (const auto& r : *rows) {
        EXPECT_EQ(r.out_of_place.wrong, 0U) << to_string(kind) << ' ' << ranks << ' ' << r.size.value;
        EXPECT_EQ(r.in_place.wrong, 0U) << to_string(kind) << ' ' << ranks << ' ' << r.size.value;
        EXPECT_EQ(r.ranks, ranks);
      }
      EXPECT_GT((*rows)[2].out_of_place.time.value, 0);
    }
}

TEST(sweep, knows_every_type_and_operation) {
  for (const tc::dtype type : tc::all_dtypes)
    for (const tc::reduce_op op : tc::all_reduce_ops) {
      auto c = quick(tc::collective_kind::all_reduce);
      c.type = type;
      c.op = op;
      c.root = {1};
      const auto rows = swept(3, c);
      ASSERT_TRUE(rows) << rows.error().message();
      EXPECT_EQ(bench::total(*rows).wrong, 0U) << to_string(c.type) << ' ' << to_string(c.op);
    }
}

TEST(sweep, checks_nothing_when_told_so) {
  auto c = quick(tc::collective_kind::all_reduce);
  c.checked = 0;
  const auto rows = swept(2, c);
  ASSERT_TRUE(rows);
  EXPECT_FALSE(rows->back().out_of_place.wrong.has_value());
}

TEST(sweep, runs_the_algorithm_that_it_is_given) {
  auto c = quick(tc::collective_kind::all_reduce);
  c.algorithm = "ring";
  const auto rows = swept(3, c);
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_NE(rows->back().plan.find("ring"), std::string::npos) << rows->back().plan;
  EXPECT_EQ(bench::total(*rows).wrong, 0U);
}

TEST(sweep, refuses_roots_and_algorithms_that_are_not_there) {
  auto c = quick(tc::collective_kind::broadcast);
  c.root = {7};
  EXPECT_EQ(swept(2, c).error().code, tc::errc::invalid_argument);
  c.root = {0};
  c.algorithm = "magic";
  EXPECT_EQ(swept(2, c).error().code, tc::errc::invalid_argument);
  c.algorithm = "one_shot";
  EXPECT_EQ(swept(2, c).error().code, tc::errc::unsupported);
}

TEST(sweep, ends_a_size_that_takes_too_long) {
  auto c = quick(tc::collective_kind::all_reduce);
  c.range = {1_MiB, 1_MiB, 2, 1_MiB};
  c.iterations = 1000000000;
  c.timeout = 100_ms;
  const auto start = tc::steady_clock::now();
  const auto rows = swept(2, c);
  ASSERT_FALSE(rows);
  EXPECT_LT((tc::steady_clock::now() - start).value, 20);
}

TEST(whereabouts, says_what_a_rank_does) {
  bench::whereabouts at;
  EXPECT_NE(bench::to_string(at, tc::collective_kind::all_reduce).find("before the first all_reduce"),
            std::string::npos);
  auto c = quick(tc::collective_kind::all_reduce);
  ASSERT_TRUE(swept(2, c, &at));
  EXPECT_EQ(bench::to_string(at, tc::collective_kind::all_reduce), "all_reduce of 1000 B in place, timed call 3 of 3");
}

}  // namespace
