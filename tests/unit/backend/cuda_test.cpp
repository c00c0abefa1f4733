// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <topocoll/backend/cuda.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

TEST(cuda_library, version_text_follows_the_packed_number) {
  EXPECT_EQ(tc::backend::detail::cuda_version_text(13000), "13.0");
  EXPECT_EQ(tc::backend::detail::cuda_version_text(11080), "11.8");
}

// /proc/driver/nvidia exists exactly where the kernel module is loaded.
TEST(cuda_library, lists_gpus_or_says_that_there_is_no_driver) {
  const bool driver = std::filesystem::exists("/proc/driver/nvidia/version");
  const auto info = tc::cuda_library();
  if (!driver) {
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code, tc::errc::unavailable);
    EXPECT_NE(info.error().what.find("finds no NVIDIA driver"), std::string::npos) << info.error().what;
    EXPECT_FALSE(info.error().next.empty());
    return;
  }
  ASSERT_TRUE(info) << info.error().message();
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(info->devices->size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(info->driver.has_value());
}
