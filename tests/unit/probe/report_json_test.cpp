// SPDX-License-Identifier: Apache-2.0
#include <vector>
#include <topocoll/probe/report_json.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

TEST(report_json, of_an_empty_report_is_not_measured_and_has_every_field) {
  const auto j = probe::to_json({});
  EXPECT_EQ(j["schema"], "topocoll.report/1");
  EXPECT_EQ(j["outcome"], "not_measured");
  for (const char* field : {"topocoll_version", "host", "started", "took_seconds", "summary", "counts", "source",
                            "live", "ranks", "machine", "last_level_cache_bytes", "load_before", "checks", "paths",
                            "memory", "plans", "collectives", "findings"})
    EXPECT_TRUE(j.contains(field)) << field;
}

TEST(report_json, writes_null_for_what_is_not_known) {
  probe::report r;
  r.paths.push_back(
      {"NUMA 0", "memory 0", 1, tc::topo::path_class::LOC, {}, {}, 1, tc::trust::assumed, "nobody reports it"});
  r.verdicts.emplace_back();
  const auto j = probe::to_json(r);
  EXPECT_TRUE(j["paths"][0]["payload_bytes_per_second"].is_null());
  EXPECT_TRUE(j["paths"][0]["known"].is_null());
  EXPECT_TRUE(j["checks"][0]["measured_bytes_per_second"].is_null());
  EXPECT_EQ(j["checks"][0]["state"], "not_measured");
  EXPECT_TRUE(j["load_before"].is_null());
}

TEST(report_json, keeps_numbers_exactly) {
  probe::report r;
  r.memory.push_back({"core 0", "copy", 1, 64_MiB,
                      *probe::summarise(std::vector<tc::bytes_per_second>{{18123456789.125}, {19e9}, {17e9}}), 9, 2,
                      0.5});
  const auto text = tc::io::to_text(probe::to_json(r));
  const auto back = tc::io::parse_json(text, "report");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ((*back)["memory"][0]["bytes_per_second"]["median"].get<double>(), 18123456789.125);
  EXPECT_EQ((*back)["memory"][0]["buffer_bytes"], 67108864);
  EXPECT_TRUE((*back)["memory"][0]["bytes_per_second"]["low_95"].is_null());
}

TEST(report_json, says_state_outcome_and_evidence_of_each_check) {
  probe::report r;
  probe::verdict v;
  v.check = "collective/all_reduce/data";
  v.is = probe::state::dead;
  v.how = tc::trust::measured;
  v.why = probe::cause::fault;
  v.measured = 1.0_GBps;
  r.verdicts.push_back(v);
  const auto j = probe::to_json(r);
  EXPECT_EQ(j["outcome"], "fail");
  EXPECT_EQ(j["checks"][0]["outcome"], "fail");
  EXPECT_EQ(j["checks"][0]["state"], "dead");
  EXPECT_EQ(j["checks"][0]["cause"], "fault");
  EXPECT_EQ(j["checks"][0]["known"], "measured");
  EXPECT_EQ(j["checks"][0]["measured_bytes_per_second"], 1e9);
  EXPECT_EQ(j["counts"]["failed"], 1);
}

}  // namespace
