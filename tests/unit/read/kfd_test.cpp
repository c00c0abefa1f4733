// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/kfd.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {
std::string refusal(const std::string& text) { return tc::read::parse_kfd(text, "k.txt").error().what; }
}  // namespace

TEST(kfd, reads_nodes_and_their_links) {
  const auto k = tc::read::parse_kfd(
      "== system_properties\nplatform_oem 1\n"
      "== nodes/2/io_links/0/properties\r\ntype 11\r\nnode_from 2\r\nnode_to 1\r\nweight 15\r\nmin_bandwidth 50000\r\n"
      "max_bandwidth 100000\r\n"
      "== nodes/2/p2p_links/0/properties\ntype 2\nnode_to 1\n"
      "== nodes/2/properties\ncpu_cores_count 0\nsimd_count 416\nlocation_id 25344\ngfx_target_version 90010\n"
      "hive_id 1111111111111111111\ndomain 3\n"
      "== nodes/0/properties\ncpu_cores_count 64\nsimd_count 0",
      "k.txt");
  ASSERT_TRUE(k) << k.error().message();
  ASSERT_EQ(k->nodes.size(), 2U);
  EXPECT_EQ(k->nodes[0].number, 0U);
  EXPECT_FALSE(k->nodes[0].is_gpu());
  EXPECT_EQ(k->nodes[0].cpu_cores, 64U);
  EXPECT_FALSE(k->nodes[0].location);
  const auto& gpu = k->nodes[1];
  EXPECT_TRUE(gpu.is_gpu());
  EXPECT_EQ(gpu.location, 25344U);
  EXPECT_EQ(gpu.domain, 3U);
  EXPECT_EQ(gpu.hive, 1111111111111111111U);
  ASSERT_EQ(gpu.links.size(), 1U);  // ways over PCIe between GPUs are no links
  EXPECT_EQ(gpu.links[0].type, tc::read::kfd_link_xgmi);
  EXPECT_EQ(gpu.links[0].to, 1U);
  EXPECT_EQ(gpu.links[0].most, 100000U);
  EXPECT_TRUE(k->findings.empty());
}

TEST(kfd, reports_a_property_without_a_number) {
  const auto k = tc::read::parse_kfd("== /sys/class/kfd/kfd/topology/nodes/7/properties\nsimd_count many\n", "k.txt");
  ASSERT_TRUE(k);
  EXPECT_EQ(k->nodes[0].number, 7U);
  ASSERT_EQ(k->findings.size(), 1U);
  EXPECT_EQ(k->findings[0].where, "k.txt line 2");
}

TEST(kfd, refuses_with_the_place) {
  EXPECT_EQ(refusal("== generation_id\n2\n"), "k.txt: there is no block \"== nodes/0/properties\"");
  EXPECT_EQ(refusal("== nodes/0/properties\nsimd_count 0\n== nodes/0/properties\n"),
            "k.txt line 3: node 0 is told a second time");
  std::string many;
  for (int i = 0; i < 1025; ++i) many += "== nodes/" + std::to_string(i) + "/properties\n";
  EXPECT_EQ(tc::read::parse_kfd(many, "k.txt").error().code, tc::errc::unsupported);
}

TEST(looks_like_kfd, asks_for_the_properties_of_a_node) {
  EXPECT_TRUE(tc::read::looks_like_kfd("== generation_id\n2\n== nodes/0/properties\n"));
  EXPECT_FALSE(tc::read::looks_like_kfd("== nodes/x/properties\n"));
  EXPECT_FALSE(tc::read::looks_like_kfd("== nodes/0/io_links/0/properties\n"));
  EXPECT_FALSE(tc::read::looks_like_kfd("nodes/0/properties\n"));
}
