// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <topocoll/backend/ucx.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

TEST(ucx_library, runs_the_version_of_its_own_text) {
  const auto info = tc::ucx_library();
  ASSERT_TRUE(info) << info.error().message();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  ucp_get_version(&major, &minor, &patch);
  EXPECT_EQ(info->running, std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch));
  EXPECT_EQ(info->compiled_against, std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR));
}

TEST(ucx_library, sees_the_transport_of_a_process_to_itself) {
  const auto info = tc::ucx_library();
  ASSERT_TRUE(info) << info.error().message();
  ASSERT_TRUE(info->devices.has_value());
  // A process can always talk to itself; UCX calls that transport "self".
  EXPECT_TRUE(std::any_of(info->devices->begin(), info->devices->end(),
                          [](const std::string& name) { return name.rfind("self/", 0) == 0; }));
  EXPECT_TRUE(std::is_sorted(info->devices->begin(), info->devices->end()));
}
