// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>
#include <topocoll/probe/memory.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

probe::core_layout machine(std::size_t cores, tc::bytes one_cache, tc::bytes all_caches, tc::bytes memory) {
  probe::core_layout l;
  for (std::uint32_t c = 0; c < cores; ++c) l.cores.push_back({c, 0});
  l.last_level_cache = one_cache;
  l.all_last_level_caches = all_caches;
  l.memory_available = memory;
  return l;
}

TEST(streaming_buffer, of_one_core_exceeds_its_cache_four_times_with_two_buffers) {
  EXPECT_EQ(probe::streaming_buffer(machine(2, 32_MiB, 32_MiB, 16_GiB), 1)->value, (64_MiB).value);
}

TEST(streaming_buffer, of_all_cores_exceeds_all_caches_together) {
  const auto each = probe::streaming_buffer(machine(64, 32_MiB, 256_MiB, 512_GiB), 64);
  ASSERT_TRUE(each.has_value());
  EXPECT_GE(2 * 64 * each->value, 4 * (256_MiB).value);
}

TEST(streaming_buffer, is_empty_when_memory_is_too_small_for_an_honest_figure) {
  EXPECT_FALSE(probe::streaming_buffer(machine(2, 32_MiB, 32_MiB, 256_MiB), 1).has_value());
}

TEST(measure_memory, refuses_no_cores_and_no_buffer) {
  EXPECT_EQ(probe::measure_memory({}, {}, tc::deadline::in(1_s)).error().code, tc::errc::invalid_argument);
  const std::vector<std::uint32_t> one = {probe::read_core_layout().cores.front().number};
  EXPECT_EQ(probe::measure_memory(one, {.buffer = 8_B}, tc::deadline::in(1_s)).error().code,
            tc::errc::invalid_argument);
}

TEST(measure_memory, names_a_core_that_it_may_not_use) {
  const std::vector<std::uint32_t> none = {1000000};
  const auto got = probe::measure_memory(none, {.buffer = 1_MiB}, tc::deadline::in(5_s));
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().what.find("core 1000000"), std::string::npos);
}

TEST(measure_memory, says_so_when_time_is_up) {
  const std::vector<std::uint32_t> one = {probe::read_core_layout().cores.front().number};
  const auto got = probe::measure_memory(one, {.buffer = 64_MiB, .repeats = 1000000, .most = 1000000},
                                         tc::deadline::in(tc::seconds{0.02}));
  // Either it had three passes of each kernel in that time, or it says that it had not.
  if (!got) {
    EXPECT_EQ(got.error().code, tc::errc::timed_out);
  }
}

TEST(measure_memory, gives_three_kernels_with_plausible_rates) {
  std::vector<std::uint32_t> cores;
  for (const auto& c : probe::read_core_layout().cores)
    if (cores.size() < 2) cores.push_back(c.number);
  const auto got = probe::measure_memory(cores, {.buffer = 4_MiB, .repeats = 5, .most = 20}, tc::deadline::in(20_s));
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->size(), 3U);
  for (const auto& s : *got) {
    EXPECT_EQ(s.cores, cores);
    EXPECT_EQ(s.alone.size(), cores.size());
    EXPECT_GE(s.passes, 5U);
    EXPECT_LE(s.disturbed, s.passes);
    // 10 MB/s to 100 TB/s: whatever computes here is inside.
    EXPECT_GT(s.together.median.value, 1e7) << to_string(s.kernel);
    EXPECT_LT(s.together.median.value, 1e14) << to_string(s.kernel);
    EXPECT_GT(s.core_share, 0);
    EXPECT_LE(s.core_share, 1);
    for (const auto& a : s.alone)
      EXPECT_LE(s.together.median.value, 1.5 * static_cast<double>(cores.size()) * a.most.value);
  }
}

}  // namespace
