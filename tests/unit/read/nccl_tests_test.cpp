// SPDX-License-Identifier: Apache-2.0
#include <topocoll/read/nccl_tests.hpp>
#include <gtest/gtest.h>

namespace tests = topocoll::read;
using topocoll::errc;

namespace {

constexpr const char* recent = R"(# nccl-tests version 2.17.1
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on      alpha device  0 [0000:1b:00] ACME X100
#  Rank  1 Group  0 Pid   4712 on      alpha device  1 [0000:43:00] ACME X100
#  Rank  2 Group  0 Pid   1301 on       beta device  0 [0000:1b:00] ACME X100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024            85     float    none      -1    21.50    0.05    0.03      0    20.75    0.05    0.03      0
alpha:4711:4711 [0] NCCL INFO something in between
        2048           170     float    none      -1    22.25    0.09    0.06      0    21.25    0.10    0.06    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.045
)";

// Before there was a root, with the largest error in place of wrong elements.
constexpr const char* old =
    R"(#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
           8             2   float     sum    17.03    0.00    0.00  1e-07    17.15    0.00    0.00  0e+00
     1048576        262144   float     sum    74.65   14.05   24.58  2e-07    74.41   14.09   24.66  2e-07
)";

}  // namespace

TEST(parse_nccl_tests, reads_a_table_with_its_header) {
  ASSERT_TRUE(tests::looks_like_nccl_tests(recent));
  const auto tables = tests::parse_nccl_tests(recent, "t").value();
  ASSERT_EQ(tables.size(), 1U);
  const auto& t = tables[0];
  EXPECT_EQ(t.collective, "all_gather");
  EXPECT_EQ(t.ranks, 3U);
  EXPECT_EQ(t.hosts, 2U);
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_EQ(t.rows[1].size.value, 2048U);
  EXPECT_EQ(t.rows[1].count, 170U);
  EXPECT_EQ(t.rows[1].op, "none");
  EXPECT_DOUBLE_EQ(t.rows[1].out_of_place->time.value, 22.25e-6);
  EXPECT_DOUBLE_EQ(t.rows[1].in_place->algbw, 0.10);
}

TEST(parse_nccl_tests, reads_tables_without_a_root) {
  ASSERT_TRUE(tests::looks_like_nccl_tests(old));
  const auto t = tests::parse_nccl_tests(old, "t").value().front();
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_TRUE(t.collective.empty());
  EXPECT_EQ(t.ranks, 0U);
  EXPECT_DOUBLE_EQ(t.rows[1].out_of_place->busbw, 24.58);
  EXPECT_DOUBLE_EQ(t.rows[1].in_place->time.value, 74.41e-6);
}

TEST(parse_nccl_tests, sees_through_what_launchers_put_before_a_line) {
  std::string mpirun, srun;
  const std::string text = recent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    mpirun += "[1,0]<stdout>:" + text.substr(at, end - at) + "\r\n";
    srun += " 0: " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  for (const std::string& tagged : {mpirun, srun}) {
    ASSERT_TRUE(tests::looks_like_nccl_tests(tagged));
    const auto t = tests::parse_nccl_tests(tagged, "t").value();
    ASSERT_EQ(t.size(), 1U);
    EXPECT_EQ(t[0].ranks, 3U);
    EXPECT_EQ(t[0].rows.size(), 2U);
  }
}

TEST(parse_nccl_tests, tells_runs_apart) {
  const auto tables = tests::parse_nccl_tests(std::string(recent) + recent, "t").value();
  ASSERT_EQ(tables.size(), 2U);
  for (const auto& t : tables) {
    EXPECT_EQ(t.ranks, 3U);
    EXPECT_EQ(t.rows.size(), 2U);
  }
}

TEST(parse_nccl_tests, takes_lines_with_one_half) {
  const auto t = tests::parse_nccl_tests("  1024 256 float sum -1 21.50 0.05 0.08 0\n", "t").value().front();
  EXPECT_TRUE(t.rows[0].out_of_place);
  EXPECT_FALSE(t.rows[0].in_place);
}

TEST(parse_nccl_tests, refuses_texts_without_figures_and_lines_that_break_off) {
  EXPECT_EQ(tests::parse_nccl_tests("# nothing here\n", "t").error().code, errc::malformed_input);
  const auto broken = tests::parse_nccl_tests("#\n 1024 256 float sum -1 fast 0.05 0.08 0\n", "t");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().what.rfind("t:2:", 0), 0U) << broken.error().what;
  EXPECT_FALSE(tests::looks_like_nccl_tests("size of things, count of them, type"));
}
