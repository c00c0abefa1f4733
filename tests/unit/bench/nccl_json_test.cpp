// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/bench/nccl_json.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace bench = topocoll::bench;
using namespace topocoll::literals;

namespace {

TEST(nccl_json, has_the_fields_of_version_3_and_no_environment) {
  bench::row r;
  r.collective = tc::collective_kind::all_gather;
  r.size = {1000000};
  r.count = 125000;
  r.ranks = 2;
  r.iterations = 20;
  r.plan = "direct";
  r.out_of_place = {tc::seconds{1e-3}, 0};
  r.in_place.time = tc::seconds{2e-3};
  const std::vector<bench::row> rows = {r};
  bench::run_facts facts;
  facts.ranks = {{0, 1, "h", {}}, {1, 2, "h", 3}};
  const auto j = bench::to_json({}, rows, facts);
  for (const char* field : {"version", "start_time", "args", "config", "devices", "results", "out_of_bounds",
                            "average_bus_bandwidth", "errors", "end_time"})
    EXPECT_TRUE(j.contains(field)) << field;
  EXPECT_FALSE(j.contains("env"));
  EXPECT_EQ(j["version"], 3);
  EXPECT_EQ(j["devices"][1]["device"], 3);
  const auto& one = j["results"][0];
  EXPECT_EQ(one["redop"], "none");
  EXPECT_EQ(one["root"], -1);
  EXPECT_DOUBLE_EQ(one["out_of_place"]["time"], 1000);
  EXPECT_DOUBLE_EQ(one["out_of_place"]["alg_bw"], 1);
  EXPECT_DOUBLE_EQ(one["out_of_place"]["bus_bw"], 0.5);
  EXPECT_EQ(one["out_of_place"]["nwrong"], "0");
  EXPECT_EQ(one["in_place"]["nwrong"], "N/A");
  EXPECT_EQ(j["out_of_bounds"]["okay"], "true");
}

TEST(nccl_json, does_not_call_an_unchecked_run_okay) {
  EXPECT_TRUE(bench::to_json({}, {}, {})["out_of_bounds"]["okay"].is_null());
}

}  // namespace
