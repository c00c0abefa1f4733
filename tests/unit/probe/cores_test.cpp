// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdlib.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <topocoll/io/file.hpp>
#include <topocoll/probe/cores.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace probe = topocoll::probe;

namespace {

using cores = std::vector<std::uint32_t>;

TEST(parse_core_list, reads_ranges_and_single_cores) {
  EXPECT_EQ(*probe::parse_core_list("0-3,8,10-11"), (cores{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(*probe::parse_core_list("5"), (cores{5}));
  EXPECT_EQ(*probe::parse_core_list(""), cores{});
}

TEST(parse_core_list, refuses_everything_else) {
  for (const char* bad : {"a", "1-", "-1", "3-1", "1,,2", "1,", "1 2", "0-99999999", "0-4294967295"})
    EXPECT_FALSE(probe::parse_core_list(bad).has_value()) << bad;
}

TEST(read_core_layout, knows_at_least_the_core_it_runs_on) {
  const auto layout = probe::read_core_layout();
  EXPECT_GE(layout.cores.size(), 1U);
  EXPECT_EQ(layout.cores.size(), static_cast<std::size_t>([] {
              cpu_set_t mine;
              CPU_ZERO(&mine);
              sched_getaffinity(0, sizeof mine, &mine);
              return CPU_COUNT(&mine);
            }()));
}

// A recorded machine with two NUMA domains of two cores each, every domain with one cache of 1 MiB.
class recorded_machine : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/topocoll-cores-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/node/online", "0-1\n");
    write("sys/devices/system/node/node0/cpulist", "0-1\n");
    write("sys/devices/system/node/node1/cpulist", "2-3\n");
    for (int c = 0; c < 4; ++c) {
      const std::string cache = "sys/devices/system/cpu/cpu" + std::to_string(c) + "/cache/";
      write(cache + "index0/level", "1\n");
      write(cache + "index0/size", "32K\n");
      write(cache + "index0/shared_cpu_list", std::to_string(c) + "\n");
      write(cache + "index1/level", "3\n");
      write(cache + "index1/size", "1024K\n");
      write(cache + "index1/shared_cpu_list", c < 2 ? "0-1\n" : "2-3\n");
    }
    write("proc/meminfo", "MemTotal:  8000000 kB\nMemFree:  1 kB\nMemAvailable:    4096 kB\n");
    write("proc/loadavg", "1.50 0.10 0.05 1/234 567\n");
  }
  void TearDown() override {
    for (auto it = made_.rbegin(); it != made_.rend(); ++it) remove(it->c_str());
    remove(root_.c_str());
  }
  void write(const std::string& path, const std::string& text) {
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      const std::string folder = root_ + "/" + path.substr(0, at);
      if (mkdir(folder.c_str(), 0755) == 0) made_.push_back(folder);
    }
    made_.push_back(root_ + "/" + path);
    ASSERT_TRUE(tc::io::write_file(made_.back(), text));
  }
  std::string root_;
  std::vector<std::string> made_;
};

TEST_F(recorded_machine, gives_cores_domains_caches_memory_and_load) {
  const auto layout = probe::read_core_layout(root_);
  ASSERT_EQ(layout.cores.size(), 4U);
  EXPECT_EQ(layout.in_numa(1), (cores{2, 3}));
  EXPECT_EQ(layout.numa_domains(), (std::vector<std::optional<std::uint32_t>>{0, 1}));
  EXPECT_EQ(layout.last_level_cache->value, 1U << 20U);
  EXPECT_EQ(layout.all_last_level_caches->value, 2U << 20U);
  EXPECT_EQ(layout.memory_available->value, 4U << 20U);
  EXPECT_DOUBLE_EQ(*layout.load, 1.5);
}

TEST_F(recorded_machine, leaves_empty_what_is_not_told) {
  const auto layout = probe::read_core_layout(root_ + "/sys");
  EXPECT_TRUE(layout.cores.empty());
  EXPECT_FALSE(layout.last_level_cache.has_value());
  EXPECT_FALSE(layout.memory_available.has_value());
  EXPECT_FALSE(layout.load.has_value());
}

}  // namespace
