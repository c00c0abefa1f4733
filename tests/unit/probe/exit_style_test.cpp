// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/probe/exit_style.hpp>
#include <gtest/gtest.h>

namespace probe = topocoll::probe;

namespace {

constexpr probe::tally pass{.passed = 3, .measured = 2};
constexpr probe::tally warned{.passed = 3, .suspect = 1, .measured = 2};
constexpr probe::tally failed{.passed = 3, .failed = 1, .measured = 2};
constexpr probe::tally blind{.not_measured = 4};

TEST(exit_code_of, plain_and_npd_say_0_1_2) {
  for (const auto style : {probe::exit_style::plain, probe::exit_style::npd}) {
    EXPECT_EQ(probe::exit_code_of(pass, style), 0);
    EXPECT_EQ(probe::exit_code_of(warned, style), 0);
    EXPECT_EQ(probe::exit_code_of(failed, style), 1);
    EXPECT_EQ(probe::exit_code_of(blind, style), 2);
  }
}

TEST(exit_code_of, nagios_warns_of_suspects_and_has_its_own_unknown) {
  EXPECT_EQ(probe::exit_code_of(pass, probe::exit_style::nagios), 0);
  EXPECT_EQ(probe::exit_code_of(warned, probe::exit_style::nagios), 1);
  EXPECT_EQ(probe::exit_code_of(failed, probe::exit_style::nagios), 2);
  EXPECT_EQ(probe::exit_code_of(blind, probe::exit_style::nagios), 3);
}

TEST(exit_code_of, slurm_drains_only_for_a_failure) {
  EXPECT_EQ(probe::exit_code_of(pass, probe::exit_style::slurm), 0);
  EXPECT_EQ(probe::exit_code_of(blind, probe::exit_style::slurm), 0);
  EXPECT_EQ(probe::exit_code_of(failed, probe::exit_style::slurm), 1);
}

TEST(parse_exit_style, reads_what_to_string_writes) {
  for (const auto style :
       {probe::exit_style::plain, probe::exit_style::npd, probe::exit_style::nagios, probe::exit_style::slurm})
    EXPECT_EQ(probe::parse_exit_style(probe::to_string(style)), style);
  EXPECT_FALSE(probe::parse_exit_style("Plain").has_value());
}

TEST(shortened, leaves_short_lines_alone_and_cuts_long_ones_at_a_word) {
  EXPECT_EQ(probe::shortened("short", 80), "short");
  const std::string cut = probe::shortened("PCIe x8 of x16 at 0000:1b:00.0 and another long reason", 40);
  EXPECT_LE(cut.size(), 40U);
  EXPECT_EQ(cut, "PCIe x8 of x16 at 0000:1b:00.0 and...");
}

TEST(shortened, never_cuts_inside_a_character) {
  std::string long_line(30, 'a');
  for (int i = 0; i < 20; ++i) long_line += "\xc3\xa4";  // a letter of two bytes
  for (std::size_t most = 34; most < 60; ++most) {
    const std::string cut = probe::shortened(long_line, most);
    EXPECT_LE(cut.size(), most);
    const std::string kept = cut.substr(0, cut.size() - 3);
    EXPECT_EQ((kept.size() - 30) % 2, 0U) << most;
  }
}

}  // namespace
