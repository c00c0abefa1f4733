// SPDX-License-Identifier: Apache-2.0
#include <topocoll/backend/nccl.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

TEST(nccl_library, version_text_follows_both_packings) {
  EXPECT_EQ(tc::backend::detail::nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(tc::backend::detail::nccl_version_text(2804), "2.8.4");
}

TEST(nccl_library, tells_both_versions_without_a_gpu) {
  const auto info = tc::nccl_library();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->compiled_against,
            std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH));
  EXPECT_TRUE(info->running.has_value());
  EXPECT_EQ(info->findings.empty(), info->running == info->compiled_against);
  EXPECT_FALSE(info->devices.has_value()) << "NCCL was not asked for devices";
}
