// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/probe/report_text.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

probe::report example() {
  probe::report r;
  r.host = "node7";
  r.ranks = 4;
  r.took = {2.5};
  r.last_level_cache = 32_MiB;
  r.paths.push_back(
      {"GPU", "memory", 8, tc::topo::path_class::PHB, 63.0_GBps, 54.2_GBps, 2, tc::trust::reported, "Gen5 x16 uplink"});
  r.paths.push_back(
      {"NUMA 0", "memory 0", 1, tc::topo::path_class::LOC, {}, {}, 1, tc::trust::assumed, "nobody reports it"});
  for (const char* kernel : {"copy", "read", "reduce"})
    r.memory.push_back({"core 0", kernel, 1, 64_MiB,
                        *probe::summarise(std::vector<tc::bytes_per_second>{{18e9}, {19e9}, {20e9}}), 9, 0, 1});
  probe::collective_figure c;
  c.collective = tc::collective_kind::all_reduce;
  c.size = 16_MiB;
  c.ranks = 4;
  c.plan = "direct";
  c.time = *probe::summarise(std::vector<tc::seconds>{{0.01}, {0.01}, {0.01}});
  c.algbw = c.size / 10_ms;
  c.busbw = c.algbw * 1.5;
  c.expected = 5_ms;
  c.formula = "model";
  r.collectives.push_back(c);
  probe::verdict v;
  v.check = "pcie/width";
  v.where = "GPU \"0\"";
  v.is = probe::state::degraded;
  v.sentence = "GPU 0 runs on 8 of 16 lanes";
  v.next_step = "reseat the card";
  v.confidence = 0.95;
  r.verdicts.push_back(v);
  return r;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    all.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return all;
}

TEST(paths_text, never_invents_a_figure) {
  const std::string text = probe::paths_text(example());
  EXPECT_NE(text.find("54.2"), std::string::npos);
  const auto all = lines(text);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_NE(all[3].find("not known"), std::string::npos);
  EXPECT_EQ(all[3].find("GB/s"), std::string::npos);
}

TEST(paths_text, says_how_many_lines_it_left_out) {
  probe::report r = example();
  for (int i = 0; i < 50; ++i) r.paths.push_back(r.paths[0]);
  const std::string text = probe::paths_text(r, 10);
  EXPECT_NE(text.find("42 more lines"), std::string::npos);
  EXPECT_EQ(lines(text).size(), 13U);
}

TEST(memory_text, has_one_line_for_each_place) {
  const auto all = lines(probe::memory_text(example()));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NE(all[0].find("32 MiB"), std::string::npos);
  EXPECT_NE(all[2].find("19.0"), std::string::npos);
  EXPECT_NE(probe::memory_text({}).find("not measured"), std::string::npos);
}

TEST(memory_text, says_when_others_disturbed_the_measurement) {
  probe::report r = example();
  for (auto& m : r.memory) m.disturbed = 6;
  EXPECT_NE(probe::memory_text(r).find("other programs took the cores away in 18 of 27 passes"), std::string::npos);
}

TEST(collectives_text, puts_the_expectation_beside_the_measurement) {
  const std::string text = probe::collectives_text(example());
  EXPECT_NE(text.find("50 %"), std::string::npos) << text;  // 10 ms where 5 ms were expected
  EXPECT_NE(text.find("10.0 ms"), std::string::npos) << text;
}

TEST(verdicts_text, gives_next_step_and_confidence_for_what_is_bad) {
  const std::string text = probe::verdicts_text(example());
  EXPECT_NE(text.find("FAIL"), std::string::npos);
  EXPECT_NE(text.find("next: reseat the card"), std::string::npos);
  EXPECT_NE(text.find("confidence 95 %"), std::string::npos);
}

// Rules of the text format: HELP and TYPE once per metric before its samples, escaped labels, one sample per label set, a newline at the end.
TEST(to_prometheus, follows_the_text_format) {
  probe::report r = example();
  r.verdicts.push_back(r.verdicts.front());
  const std::string text = probe::to_prometheus(r, 1.5e9);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("where=\"GPU \\\"0\\\"\""), std::string::npos);
  std::set<std::string> helped, typed, samples;
  for (const std::string& line : lines(text)) {
    if (line.rfind("# HELP ", 0) == 0)
      EXPECT_TRUE(helped.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    else if (line.rfind("# TYPE ", 0) == 0)
      EXPECT_TRUE(typed.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    else {
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
      EXPECT_TRUE(typed.count(line.substr(0, line.find_first_of("{ ")))) << line;
    }
  }
  EXPECT_EQ(helped, typed);
  EXPECT_NE(text.find("topocoll_preflight_success 0\n"), std::string::npos);
  EXPECT_NE(text.find("topocoll_preflight_checks{outcome=\"fail\"} 2\n"), std::string::npos);
}

TEST(text_table, lines_up_columns_and_leaves_empty_ones_out) {
  probe::detail::text_table t({"a", ">n", "empty", "last"});
  t.add({"x", "1", "", "end"});
  t.add({"long", "100", "", "e"});
  EXPECT_EQ(t.text(""), "a       n  last\nx       1  end\nlong  100  e\n");
}

TEST(wrapped, breaks_at_blanks_and_indents) {
  EXPECT_EQ(probe::detail::wrapped("aa bb cc dd", 2, 8), "aa bb\n  cc dd");
}

}  // namespace
