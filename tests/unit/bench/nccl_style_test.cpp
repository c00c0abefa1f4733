// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/bench/nccl_style.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace bench = topocoll::bench;
using namespace topocoll::literals;

namespace {

bench::row example() {
  bench::row r;
  r.collective = tc::collective_kind::all_reduce;
  r.size = 1_MiB;
  r.count = 524288;
  r.type = tc::dtype::bfloat16;
  r.ranks = 8;
  r.out_of_place = {tc::seconds{9.954e-6}, 0};
  r.in_place = {tc::seconds{9.963e-6}, 0};
  return r;
}

// Column widths of nccl-tests 2.18: 12, 12, 8, 6, 6, then 7, 6, 6, 5 for each half, two blanks between.
TEST(to_text, of_a_row_is_the_line_that_nccl_tests_prints) {
  EXPECT_EQ(bench::to_text(example()),
            "     1048576        524288  bfloat16     sum      -1     9.95  105.34  184.35      0     9.96  105.25  "
            "184.18      0\n");
}

TEST(to_text, shows_no_figure_where_nothing_was_checked_and_the_root_where_there_is_one) {
  bench::row r = example();
  r.collective = tc::collective_kind::broadcast;
  r.root = tc::rank_id{3};
  r.out_of_place.wrong.reset();
  const std::string line = bench::to_text(r);
  EXPECT_NE(line.find("    none       3"), std::string::npos) << line;
  EXPECT_NE(line.find("  N/A"), std::string::npos) << line;
}

TEST(to_text, keeps_the_columns_for_short_and_long_times) {
  for (const double us : {0.05, 1.0, 99.99, 100.0, 9999.9, 10000.0, 9999999.0}) {
    bench::row r = example();
    r.out_of_place.time = r.in_place.time = tc::seconds{us * 1e-6};
    r.size = 100_B;
    EXPECT_EQ(bench::to_text(r).size(), bench::to_text(example()).size()) << us;
  }
}

TEST(to_text, adds_the_share_of_the_limit_only_on_demand) {
  bench::row r = example();
  r.bound = 368.7_GBps;
  EXPECT_EQ(bench::to_text(r).find('%'), std::string::npos);
  EXPECT_NE(bench::to_text(r, true).find("    50%    50%\n"), std::string::npos) << bench::to_text(r, true);
  r.bound.reset();
  EXPECT_NE(bench::to_text(r, true).find("N/A"), std::string::npos);
}

TEST(column_lines, are_those_of_nccl_tests) {
  EXPECT_EQ(bench::column_lines(),
            "#\n"
            "#                                                              out-of-place                       "
            "in-place          \n"
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
            "busbw #wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
            "(GB/s)       \n");
}

TEST(header, names_options_and_ranks) {
  bench::sweep_config c;
  c.range = {8_B, 1_MiB, 2, 1_MiB};
  const std::vector<bench::rank_line> ranks = {{0, 4711, "node7", {}}, {1, 4712, "node7", 5}};
  EXPECT_EQ(bench::header(c, ranks),
            "# nThread 1 nGpus 0 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
            "validation: 1 graph: 0\n"
            "#\n# Using devices\n"
            "#  Rank  0 Group  0 Pid   4711 on      node7 device  - [any core] host memory\n"
            "#  Rank  1 Group  0 Pid   4712 on      node7 device  5 [core] host memory\n#\n");
}

TEST(footer, says_ok_failed_or_that_nothing_was_checked) {
  EXPECT_EQ(bench::footer({0, true, 1.5_GBps}), "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n#\n");
  EXPECT_EQ(bench::footer({3, true, {}}).rfind("# Out of bounds values : 3 FAILED\n", 0), 0U);
  EXPECT_EQ(bench::footer({0, false, {}}).find("OK"), std::string::npos);
}

}  // namespace
