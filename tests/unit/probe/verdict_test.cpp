// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>
#include <topocoll/probe/verdict.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

probe::verdict of(probe::state is, tc::trust how = tc::trust::measured) {
  probe::verdict v;
  v.is = is;
  v.how = how;
  return v;
}

probe::outcome answer(const std::vector<probe::verdict>& verdicts) { return probe::overall(probe::count(verdicts)); }

TEST(verdict, is_not_measured_by_default) {
  EXPECT_EQ(probe::verdict{}.is, probe::state::not_measured);
  EXPECT_EQ(probe::outcome_of(probe::verdict{}.is), probe::outcome::not_measured);
}

TEST(overall, of_no_checks_is_not_measured) { EXPECT_EQ(answer({}), probe::outcome::not_measured); }

TEST(overall, never_passes_when_nothing_was_measured) {
  EXPECT_EQ(answer({of(probe::state::not_measured), of(probe::state::not_measured)}), probe::outcome::not_measured);
  EXPECT_EQ(answer({of(probe::state::healthy, tc::trust::reported)}), probe::outcome::not_measured);
  EXPECT_EQ(answer({of(probe::state::suspect)}), probe::outcome::not_measured);
}

TEST(overall, passes_with_one_measured_pass_beside_things_nobody_could_look_at) {
  EXPECT_EQ(answer({of(probe::state::healthy), of(probe::state::not_measured), of(probe::state::suspect)}),
            probe::outcome::pass);
}

TEST(overall, fails_with_one_failure_also_a_reported_one) {
  EXPECT_EQ(answer({of(probe::state::healthy), of(probe::state::degraded, tc::trust::reported)}), probe::outcome::fail);
  EXPECT_EQ(answer({of(probe::state::dead)}), probe::outcome::fail);
}

TEST(count, puts_every_state_into_one_box) {
  const std::vector<probe::verdict> all = {of(probe::state::healthy), of(probe::state::healthy, tc::trust::reported),
                                           of(probe::state::suspect), of(probe::state::degraded),
                                           of(probe::state::dead),    of(probe::state::not_measured)};
  const probe::tally t = probe::count(all);
  EXPECT_EQ(t.passed, 2U);
  EXPECT_EQ(t.measured, 1U);
  EXPECT_EQ(t.suspect, 1U);
  EXPECT_EQ(t.failed, 2U);
  EXPECT_EQ(t.not_measured, 1U);
  EXPECT_EQ(t.checks(), all.size());
}

TEST(judge, passes_what_reaches_the_mark) {
  EXPECT_EQ(probe::judge({.measured = 5.0_GBps,
                          .upper = 5.1_GBps,
                          .expected = 10.0_GBps,
                          .fail_below = 0.25,
                          .suspect_below = 0.5,
                          .noise = 0.9}),
            probe::state::healthy);
}

TEST(judge, suspects_between_floor_and_mark) {
  EXPECT_EQ(
      probe::judge(
          {.measured = 4.0_GBps, .upper = 4.1_GBps, .expected = 10.0_GBps, .fail_below = 0.25, .suspect_below = 0.5}),
      probe::state::suspect);
}

TEST(judge, blames_only_when_the_whole_interval_is_under_the_floor) {
  EXPECT_EQ(
      probe::judge(
          {.measured = 2.0_GBps, .upper = 2.2_GBps, .expected = 10.0_GBps, .fail_below = 0.25, .suspect_below = 0.5}),
      probe::state::degraded);
  EXPECT_EQ(
      probe::judge(
          {.measured = 2.0_GBps, .upper = 2.6_GBps, .expected = 10.0_GBps, .fail_below = 0.25, .suspect_below = 0.5}),
      probe::state::suspect);
}

TEST(judge, blames_nothing_on_a_noisy_machine_or_without_an_interval) {
  EXPECT_EQ(probe::judge({.measured = 2.0_GBps,
                          .upper = 2.2_GBps,
                          .expected = 10.0_GBps,
                          .fail_below = 0.25,
                          .suspect_below = 0.5,
                          .noise = 0.6}),
            probe::state::suspect);
  const tc::bytes_per_second unknown{std::numeric_limits<double>::infinity()};
  EXPECT_EQ(
      probe::judge(
          {.measured = 2.0_GBps, .upper = unknown, .expected = 10.0_GBps, .fail_below = 0.25, .suspect_below = 0.5}),
      probe::state::suspect);
}

}  // namespace
