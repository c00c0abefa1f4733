// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/integrate/nccl_tuner_csv.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

constexpr std::string_view header =
    "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";

std::string refused(std::string_view text) {
  const auto rows = read_tuner_csv(text, "t.csv");
  EXPECT_FALSE(rows) << text;
  return rows ? std::string() : rows.error().what;
}

}  // namespace

TEST(nccl_tuner_csv, rows_meet_without_gap_and_equal_neighbours_become_one) {
  using a = tuner_algorithm;
  using p = tuner_protocol;
  const tuner_choice choices[] = {{bytes{8}, a::tree, p::ll},
                                  {bytes{1024}, a::tree, p::ll},
                                  {bytes{65536}, a::tree, p::ll128},
                                  {bytes{1U << 20U}, a::ring, p::simple}};
  const auto rows = tuner_rows(collective_kind::all_reduce, choices, 4, 32);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].min_bytes, 0u);
  EXPECT_EQ((*rows)[2].max_bytes, UINT64_MAX);
  for (std::size_t i = 0; i + 1 < rows->size(); ++i) EXPECT_EQ((*rows)[i].max_bytes + 1, (*rows)[i + 1].min_bytes);
  EXPECT_EQ(to_tuner_csv(*rows), std::string(header) +
                                     "allreduce,0,65535,tree,ll,-1,4,32,-1,-1\n"
                                     "allreduce,65536,1048575,tree,ll128,-1,4,32,-1,-1\n"
                                     "allreduce,1048576,18446744073709551615,ring,simple,-1,4,32,-1,-1\n");
  EXPECT_EQ(read_tuner_csv(to_tuner_csv(*rows), "t.csv").value(), *rows);
}

TEST(nccl_tuner_csv, every_word_and_column_comes_back) {
  std::vector<tuner_row> rows;
  for (int k = 0; k < 5; ++k)
    for (int a = 0; a < 7; ++a)
      for (int p = 0; p < 3; ++p) {
        tuner_row r;
        r.collective = static_cast<collective_kind>(k);
        r.algorithm = static_cast<tuner_algorithm>(a);
        r.protocol = static_cast<tuner_protocol>(p);
        r.min_bytes = static_cast<std::uint64_t>(a) * 1000;
        r.max_bytes = r.min_bytes + 999;
        if (a % 2 == 0) r.channels = 16;
        if (p == 1) r.nodes = 2;
        if (p == 2) r.ranks = 64;
        if (k == 3) r.pipe_ops = 1;
        if (k == 4) r.registered = a % 2 == 0;
        rows.push_back(r);
      }
  EXPECT_EQ(read_tuner_csv(to_tuner_csv(rows), "t.csv").value(), rows);
}

TEST(nccl_tuner_csv, reads_the_rows_of_nccls_example) {
  // Source: NCCL 2.28, ext-tuner/example/nccl_tuner.conf.
  const auto rows = read_tuner_csv(
      "# Small\nallreduce,0,65536,tree,simple,2,1,-1,-1,-1\n\nbroadcast,0,32768,tree,simple,-1,1,-1\r\n"
      " allgather , 0 , 4294967295 , ring , ll128 , 4 , -1 , -1 , -1 , 1 \n",
      "nccl_tuner.conf");
  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].channels, 2u);
  EXPECT_EQ((*rows)[0].nodes, 1u);
  EXPECT_EQ((*rows)[1].collective, collective_kind::broadcast);
  EXPECT_EQ((*rows)[2].registered, true);
}

TEST(nccl_tuner_csv, refuses_what_the_plug_in_would_misread) {
  EXPECT_EQ(refused("allreduce,0,1,rings,simple,-1,-1,-1\n"),
            "t.csv line 1: 'rings' is not an algorithm, and the plug-in would take ring");
  EXPECT_EQ(refused("#\nallreduce,0,1,ring,ll64,-1,-1,-1\n"),
            "t.csv line 2: 'll64' is not a protocol, and the plug-in would take simple");
  EXPECT_EQ(refused("alltoall,0,1,ring,ll,-1,-1,-1"), "t.csv line 1: 'alltoall' is not a collective of the plug-in");
  EXPECT_EQ(refused("allreduce,2,1,ring,ll,-1,-1,-1"), "t.csv line 1: '2' to '1' is no range of bytes");
  EXPECT_EQ(refused("allreduce,0,18446744073709551616,ring,ll,-1,-1,-1"),
            "t.csv line 1: '0' to '18446744073709551616' is no range of bytes");
  EXPECT_EQ(refused("allreduce,0,1,ring,ll,-1,-1"), "t.csv line 1: there are 7 columns instead of 8 to 10");
  EXPECT_EQ(refused("allreduce,0,1,ring,ll,-1,-1,-1,-1,-1,-1"),
            "t.csv line 1: there are 11 columns instead of 8 to 10");
  EXPECT_EQ(refused("allreduce,0,1,ring,ll,-1,-1,-1,-1,2"),
            "t.csv line 1: '2' in column 10 is neither a number nor -1");
  EXPECT_EQ(refused("allreduce,0,1,ring,ll,4x,-1,-1"), "t.csv line 1: '4x' in column 6 is neither a number nor -1");
  EXPECT_NE(refused("allreduce" + std::string(300, ' ') + ",0,1,ring,ll,-1,-1,-1").find("longer"), std::string::npos);
}

TEST(nccl_tuner_csv, refuses_choices_that_make_no_sense) {
  const tuner_choice twice[] = {{bytes{8}}, {bytes{8}}};
  EXPECT_EQ(tuner_rows(collective_kind::all_reduce, twice, 1, 8).error().code, errc::invalid_argument);
  EXPECT_EQ(tuner_rows(collective_kind::all_to_all, twice, 1, 8).error().code, errc::unsupported);
}

TEST(nccl_tuner_csv, protocols_are_those_of_nccls_model) {
  plan::nccl_machine m;
  m.ranks = 8;
  m.nodes = 1;
  m.arch = plan::nccl_arch::hopper;
  m.ring = {24, 20, 20, true, true, false};
  m.tree = {24, 20, 20, true, true, false};
  for (const tuner_algorithm a : {tuner_algorithm::ring, tuner_algorithm::tree}) {
    EXPECT_EQ(tuner_protocol_for(collective_kind::all_reduce, a, m, bytes{1024}), tuner_protocol::ll);
    EXPECT_NE(tuner_protocol_for(collective_kind::all_reduce, a, m, bytes{1ULL << 33U}), tuner_protocol::ll);
  }
  EXPECT_EQ(tuner_protocol_for(collective_kind::all_reduce, tuner_algorithm::ring, m, bytes{1ULL << 33U}),
            tuner_protocol::simple);
  // A tree of an all-gather, or an algorithm that the model does not price: simple, which always works.
  EXPECT_EQ(tuner_protocol_for(collective_kind::all_gather, tuner_algorithm::tree, m, bytes{1024}),
            tuner_protocol::simple);
  EXPECT_EQ(tuner_protocol_for(collective_kind::all_reduce, tuner_algorithm::pat, m, bytes{1024}),
            tuner_protocol::simple);
  EXPECT_EQ(tuner_algorithm_of("ring-hardware"), tuner_algorithm::ring);
  EXPECT_EQ(tuner_algorithm_of("hierarchy"), std::nullopt);
}
