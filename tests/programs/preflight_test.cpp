// SPDX-License-Identifier: Apache-2.0
// `topocoll preflight` as a process: time, verdict, report, and what happens when the report has no place.
#include <programs/program.hpp>
#include <string>
#include <sys/stat.h>
#include <topocoll/io/json.hpp>

namespace {

TEST(preflight_program, judges_this_machine_within_twenty_seconds_and_writes_its_report) {
  TOPOCOLL_NEEDS_PROGRAM();
  programs::process p({"preflight"});
  const auto start = topocoll::steady_clock::now();
  EXPECT_EQ(p.wait(120), 0) << p.out() << p.err();
  EXPECT_LT((topocoll::steady_clock::now() - start).value, 20);
  const std::string out = p.out();
  const auto last = out.rfind('\n', out.size() - 2);
  EXPECT_EQ(out.substr(last + 1).rfind("PASS: ", 0), 0U) << out;
  const auto text = topocoll::io::read_file(p.file("topocoll-preflight.json"));
  ASSERT_TRUE(text) << text.error().message();
  const auto j = topocoll::io::parse_json(*text, "report");
  ASSERT_TRUE(j) << j.error().message();
  EXPECT_EQ((*j)["outcome"], "pass");
  EXPECT_EQ((*j)["counts"]["failed"], 0);
  EXPECT_GE((*j)["counts"]["passed"].get<int>(), 3);
  EXPECT_EQ((*j)["summary"].get<std::string>() + "\n", out.substr(last + 1));
}

TEST(preflight_program, prints_json_alone) {
  TOPOCOLL_NEEDS_PROGRAM();
  programs::process p({"preflight", "--json", "--ranks", "2", "--time-budget", "30s"});
  EXPECT_EQ(p.wait(120), 0) << p.err();
  const auto j = topocoll::io::parse_json(p.out(), "output");
  ASSERT_TRUE(j) << j.error().message();
  EXPECT_EQ((*j)["schema"], "topocoll.report/1");
  EXPECT_FALSE(topocoll::io::read_file(p.file("topocoll-preflight.json")));
}

TEST(preflight_program, fails_with_exit_1_and_says_what_falls_short) {
  TOPOCOLL_NEEDS_PROGRAM();
  programs::process p(
      {"preflight", "--ranks", "2", "--time-budget", "30s", "--min-bandwidth", "100000GB/s", "--output", "r.json"});
  EXPECT_EQ(p.wait(120), 1) << p.err();
  const std::string out = p.out();
  const auto last = out.rfind('\n', out.size() - 2);
  EXPECT_EQ(out.substr(last + 1).rfind("FAIL: all_reduce ", 0), 0U) << out.substr(last + 1);
}

TEST(preflight_program, gives_its_verdict_also_on_a_full_disk) {
  TOPOCOLL_NEEDS_PROGRAM();
  programs::process p({"preflight", "--ranks", "2", "--time-budget", "30s", "--output", "/dev/full"});
  EXPECT_EQ(p.wait(120), 2);
  EXPECT_NE(p.err().find("the report was not written"), std::string::npos) << p.err();
  EXPECT_NE(p.out().find("PASS: "), std::string::npos) << p.out();
}

}  // namespace
