// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/probe/report.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;

namespace {

probe::verdict said(probe::state is, std::string headline, tc::trust how = tc::trust::measured) {
  probe::verdict v;
  v.is = is;
  v.how = how;
  v.headline = std::move(headline);
  return v;
}

TEST(verdict_line, of_a_good_machine_counts_and_says_what_was_not_measured) {
  probe::report r;
  r.took = {8.24};
  for (int i = 0; i < 7; ++i) r.verdicts.push_back(said(probe::state::healthy, ""));
  for (const char* why : {"no GPU", "no GPU", "no RDMA port"})
    r.verdicts.push_back(said(probe::state::not_measured, why));
  EXPECT_EQ(probe::verdict_line(r), "PASS: 7 checks passed, 0 failed, 3 not measured (no GPU, no RDMA port) in 8.2 s");
}

TEST(verdict_line, of_nothing_is_not_a_pass) {
  EXPECT_EQ(probe::verdict_line({}), "NOT MEASURED: 0 checks passed, 0 failed, 0 not measured in 0.0 s");
  probe::report r;
  r.verdicts.push_back(said(probe::state::healthy, "", tc::trust::reported));
  EXPECT_EQ(probe::verdict_line(r).rfind("NOT MEASURED: 1 check passed", 0), 0U);
}

TEST(verdict_line, of_a_bad_machine_leads_with_what_failed) {
  probe::report r;
  r.took = {1};
  r.verdicts = {said(probe::state::healthy, ""), said(probe::state::degraded, "PCIe x8 of x16 at 0000:1b:00.0"),
                said(probe::state::dead, "wrong data from all_reduce"),
                said(probe::state::suspect, "PCIe speed of GPU 1")};
  EXPECT_EQ(probe::verdict_line(r),
            "FAIL: wrong data from all_reduce, PCIe x8 of x16 at 0000:1b:00.0: 1 check passed, 2 failed, 1 undecided "
            "(PCIe speed of GPU 1), "
            "0 not measured in 1.0 s");
}

TEST(headlines, are_each_named_once_and_cut_at_the_most) {
  probe::report r;
  for (const char* h : {"a", "b", "a", "c", "d"}) r.verdicts.push_back(said(probe::state::suspect, h));
  EXPECT_EQ(probe::headlines(r, probe::state::suspect, 2), "a, b, 2 more");
}

TEST(status_line, is_short_for_the_programs_that_cut_it) {
  probe::report r;
  for (int i = 0; i < 9; ++i)
    r.verdicts.push_back(
        said(probe::state::degraded, "PCIe x8 of x16 at GPU " + std::to_string(i) + " at 0000:1b:00.0"));
  for (const auto style : {probe::exit_style::npd, probe::exit_style::nagios, probe::exit_style::slurm}) {
    const std::string line = probe::status_line(r, style);
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_NE(line.find("PCIe x8 of x16"), std::string::npos) << line;
  }
  EXPECT_EQ(probe::status_line(r, probe::exit_style::nagios).rfind("TOPOCOLL CRITICAL - ", 0), 0U);
}

TEST(status_line, of_a_prolog_is_silent_on_success_and_not_when_nothing_was_measured) {
  probe::report good;
  good.verdicts.push_back(said(probe::state::healthy, ""));
  EXPECT_EQ(probe::status_line(good, probe::exit_style::slurm), "");
  probe::report blind;
  blind.verdicts.push_back(said(probe::state::not_measured, "no GPU"));
  EXPECT_EQ(probe::status_line(blind, probe::exit_style::slurm), "topocoll: not measured: no GPU");
  EXPECT_EQ(probe::status_line(blind, probe::exit_style::nagios), "TOPOCOLL UNKNOWN - not measured: no GPU");
}

}  // namespace
