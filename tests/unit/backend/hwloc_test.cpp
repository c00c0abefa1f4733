// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <topocoll/backend/hwloc.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

TEST(hwloc_library, runs_the_interface_that_was_compiled_against) {
  const auto info = tc::hwloc_library();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->compiled_against->substr(0, 2), info->running->substr(0, 2));
}

TEST(hwloc_library, version_text_follows_the_packed_number) {
  EXPECT_EQ(tc::backend::detail::hwloc_version_text(0x00020900), "2.9.0");
  EXPECT_EQ(tc::backend::detail::hwloc_version_text(0x00010b0c), "1.11.12");
}

// What hwloc names must exist: each device is a PCI function's network, disk, InfiniBand or display device in sysfs.
TEST(hwloc_library, names_network_devices_that_the_kernel_has) {
  const auto info = tc::hwloc_library();
  ASSERT_TRUE(info) << info.error().message();
  ASSERT_TRUE(info->devices.has_value());
  EXPECT_TRUE(std::is_sorted(info->devices->begin(), info->devices->end()));
  for (const std::string& name : *info->devices) {
    if (name.rfind("eth", 0) == 0 || name.rfind("en", 0) == 0) {
      EXPECT_TRUE(std::filesystem::exists("/sys/class/net/" + name)) << name;
    }
  }
}
