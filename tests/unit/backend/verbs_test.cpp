// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>
#include <topocoll/backend/verbs.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

// The kernel's own list is the other witness.
TEST(verbs_library, lists_what_the_kernel_lists_or_says_why_not) {
  std::vector<std::string> known;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    known.push_back(entry.path().filename());
  }
  std::sort(known.begin(), known.end());
  const auto info = tc::verbs_library();
  if (!info) {
    EXPECT_TRUE(known.empty());
    EXPECT_EQ(info.error().code, tc::errc::unavailable);
    EXPECT_FALSE(info.error().next.empty());
    return;
  }
  EXPECT_EQ(info->devices, known);
  EXPECT_FALSE(info->running.has_value()) << "rdma-core tells no version; where does this one come from?";
}
