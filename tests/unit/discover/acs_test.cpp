// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/discover/acs.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::acs_verdict;

namespace {
constexpr std::size_t top = static_cast<std::size_t>(-1);
tc::acs_function bridge(const char* address, std::size_t above, tc::read::acs_state state) {
  return {address, above, true, false, state};
}
tc::acs_function gpu(const char* address, std::size_t above) { return {address, above, false, true, {}}; }
const tc::read::acs_state on{true, 0x1d};
const tc::read::acs_state off{true, 0x01};
const tc::read::acs_state absent{true, {}};
const tc::read::acs_state hidden{};
}  // namespace

TEST(acs_report_of, warns_of_gpus_below_a_bridge_that_redirects_at_any_depth) {
  const auto r = tc::acs_report_of(
      {bridge("a", top, on), bridge("b", 0, off), gpu("g", 1), bridge("c", top, off), gpu("h", 3)}, false);
  EXPECT_EQ(r.verdict, acs_verdict::warn);
  EXPECT_EQ(r.gpus_affected, (std::vector<std::string>{"g"}));
  EXPECT_EQ(r.advice_keys, (std::vector<std::string>{"disable_acs_bios_or_kernel", "or_disable_p2p"}));
  ASSERT_EQ(r.bridges.size(), 3U);
  EXPECT_EQ(r.bridges[0].below, (std::vector<std::string>{"g"}));
}

TEST(acs_report_of, advises_otherwise_in_a_virtual_machine) {
  const auto r = tc::acs_report_of({bridge("a", top, on), gpu("g", 0)}, true);
  EXPECT_EQ(r.advice_keys, (std::vector<std::string>{"keep_acs_in_guest", "enable_ats_on_nic"}));
}

TEST(acs_report_of, is_clean_only_when_every_bridge_above_a_gpu_was_seen) {
  EXPECT_EQ(tc::acs_report_of({bridge("a", top, off), bridge("b", 0, absent), gpu("g", 1)}, false).verdict,
            acs_verdict::clean);
  EXPECT_EQ(tc::acs_report_of({bridge("a", top, off), bridge("b", 0, hidden), gpu("g", 1)}, false).verdict,
            acs_verdict::unknown);
  EXPECT_EQ(tc::acs_report_of({bridge("a", top, off), {"n", 0, false, false, {}}}, false).verdict,
            acs_verdict::unknown);
  EXPECT_EQ(tc::acs_report_of({gpu("g", top)}, false).verdict, acs_verdict::unknown);
  EXPECT_EQ(tc::acs_report_of({}, false).verdict, acs_verdict::unknown);
}

TEST(acs_report_of, ends_on_bridges_above_each_other) {
  const auto r = tc::acs_report_of({bridge("a", 1, on), bridge("b", 0, on), gpu("g", 0)}, false);
  EXPECT_EQ(r.gpus_affected, (std::vector<std::string>{"g"}));
}

TEST(tell_acs, names_bridges_and_never_calls_unknown_clean) {
  std::vector<tc::finding> found;
  tc::tell_acs(tc::acs_report_of({bridge("a", top, on), gpu("g", 0)}, false), "here", "", found);
  tc::tell_acs(tc::acs_report_of({bridge("b", top, hidden), gpu("g", 0)}, false), "here", "", found);
  tc::tell_acs(tc::acs_report_of({bridge("c", top, off), gpu("g", 0)}, false), "here", "", found);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].level, tc::severity::warning);
  EXPECT_EQ(found[0].evidence, "GPUs g; bridges a");
  EXPECT_EQ(found[1].level, tc::severity::note);
  EXPECT_NE(found[1].next_step.find("root"), std::string::npos);
}
