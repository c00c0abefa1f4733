// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <topocoll/discover/recording.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

TEST(sysfs_recording, names_its_host_before_the_options_do) {
  const auto named = tc::fragment_of_recording("# host node7\n/proc/cpuinfo\tx\n", "r.txt", {.host = "h"});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->nodes[0].host, "node7");
  const auto open = tc::fragment_of_recording("/proc/cpuinfo\tx\n", "r.txt", {.host = "h"});
  ASSERT_TRUE(open);
  EXPECT_EQ(open->nodes[0].host, "h");
  EXPECT_EQ(open->source, "sysfs r.txt");
}

TEST(sysfs_recording, fails_with_the_line_of_what_is_no_recording) {
  EXPECT_EQ(tc::fragment_of_recording("/a\t1\nb\n", "r.txt").error().what,
            "r.txt line 2: a recording has lines 'path<TAB>value' with an absolute path");
  EXPECT_EQ(tc::fragment_of_recording("/a\t1\n", "r.txt").error().what,
            "r.txt is a recording, but holds neither /sys nor /proc");
}

TEST(sysfs_recording, fails_when_there_is_no_file) {
  EXPECT_EQ(tc::sysfs_recording{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
}

TEST(sysfs_recording, reads_flattened_trees_of_others) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  const auto folder = std::filesystem::path(corpus ? corpus : "") / "corpus/other";
  if (corpus == nullptr || !std::filesystem::is_directory(folder))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/other";
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind("sysfs_", 0) != 0) continue;
    const auto f = tc::sysfs_recording{entry.path().string()}.read({});
    ASSERT_TRUE(f) << f.error().message();
    EXPECT_TRUE(tc::topo::graph::from(*f)) << entry.path();
    ++read;
  }
  EXPECT_GT(read, 0);
}
