// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/nvidia_smi_nvlink.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {
tc::read::nvidia_smi_nvlink parsed(const std::string& text) {
  auto n = tc::read::parse_nvidia_smi_nvlink(text, "n.txt");
  EXPECT_TRUE(n) << (n ? "" : n.error().message());
  return n ? *std::move(n) : tc::read::nvidia_smi_nvlink{};
}
}  // namespace

TEST(nvidia_smi_nvlink, reads_rates_and_inactive_links_by_the_printed_number) {
  const auto n = parsed(
      "GPU 0: Some GPU (80 GB) (UUID: GPU-aa-bb)\r\n"
      "  Link 0: 26.562 GB/s\r\n"
      "\t Link 1: <inactive>\r\n"
      "GPU 5: Some GPU (80 GB) (UUID: GPU-cc)\n"
      " Link 0: 50 GB/s");
  ASSERT_EQ(n.gpus.size(), 2U);
  EXPECT_EQ(n.gpus[0].model, "Some GPU (80 GB)");
  EXPECT_EQ(n.gpus[0].uuid, "GPU-aa-bb");
  EXPECT_EQ(n.gpus[1].index, 5U);
  ASSERT_EQ(n.gpus[0].links.size(), 2U);
  EXPECT_DOUBLE_EQ(n.gpus[0].links[0].rate->value, 26.562e9);
  EXPECT_FALSE(n.gpus[0].links[1].rate);
  EXPECT_TRUE(n.gpus[0].links[1].inactive);
  EXPECT_EQ(n.gpus[0].active(), 1U);
  EXPECT_TRUE(n.findings.empty());
}

TEST(nvidia_smi_nvlink, reads_abilities_and_counters) {
  const auto n = parsed(
      "GPU 1: G (UUID: GPU-1)\n"
      "\t Link 0, P2P is supported: true\n"
      "\t Link 0, SLI is supported: false\n"
      "\t Link 0: Replay Errors: 0\n"
      "\t Link 0: CRC Errors: 17\n");
  const auto& link = n.gpus.at(0).links.at(0);
  ASSERT_EQ(link.abilities.size(), 2U);
  EXPECT_EQ(link.abilities[0].first, "P2P is supported");
  EXPECT_TRUE(link.abilities[0].second);
  EXPECT_FALSE(link.abilities[1].second);
  ASSERT_EQ(link.counters.size(), 2U);
  EXPECT_EQ(link.counters[1].first, "CRC Errors");
  EXPECT_EQ(link.counters[1].second, 17U);
  EXPECT_FALSE(link.inactive);
  EXPECT_EQ(n.gpus[0].active(), 0U);
}

TEST(nvidia_smi_nvlink, joins_listings_one_after_the_other) {
  const auto n = parsed("GPU 0: G\n Link 0: 25 GB/s\n===\nGPU 0: G\n Link 0: Recovery Errors: 2\n");
  ASSERT_EQ(n.gpus.size(), 1U);
  ASSERT_EQ(n.gpus[0].links.size(), 1U);
  EXPECT_TRUE(n.gpus[0].links[0].rate);
  EXPECT_EQ(n.gpus[0].links[0].counters.size(), 1U);
}

TEST(nvidia_smi_nvlink, notices_that_all_links_are_inactive_and_keeps_other_lines) {
  const auto n = parsed(
      "GPU 0: G\nNVML: Unable to retrieve NVLink information as all links are inActive\nGPU 1: G\n Unknown Error\n"
      " Link 3: fast\n");
  EXPECT_TRUE(n.gpus[0].all_inactive);
  EXPECT_FALSE(n.gpus[1].all_inactive);
  ASSERT_EQ(n.gpus[1].remarks.size(), 1U);
  EXPECT_EQ(n.gpus[1].remarks[0], "Unknown Error");
  ASSERT_EQ(n.findings.size(), 1U);
  EXPECT_EQ(n.findings[0].where, "n.txt line 5");
}

TEST(nvidia_smi_nvlink, refuses_with_the_place) {
  const auto what = [](const char* text) { return tc::read::parse_nvidia_smi_nvlink(text, "n.txt").error().what; };
  EXPECT_EQ(what("hello\n"), "n.txt: no line names a GPU, such as \"GPU 0: name (UUID: …)\"");
  EXPECT_EQ(what("\n Link 0: 25 GB/s\n"), "n.txt line 2: a link, but no line such as \"GPU 0: name\" before it");
  EXPECT_EQ(what("GPU 2: G\n Link 4: 25 GB/s\n Link 4: <inactive>\n"),
            "n.txt line 3: link 4 of GPU 2 is told twice, and the two do not agree");
  std::string many;
  for (int i = 0; i < 1025; ++i) many += "GPU " + std::to_string(i) + ": G\n";
  EXPECT_EQ(tc::read::parse_nvidia_smi_nvlink(many, "n.txt").error().code, tc::errc::unsupported);
}

TEST(looks_like_nvidia_smi_nvlink, asks_for_a_gpu_and_a_link) {
  EXPECT_TRUE(tc::read::looks_like_nvidia_smi_nvlink("GPU 0: G (UUID: GPU-1)\n\t Link 0: 25 GB/s\n"));
  EXPECT_TRUE(tc::read::looks_like_nvidia_smi_nvlink("GPU 7: G\n Link 0, P2P is supported: true\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_nvlink("GPU 0: G (UUID: GPU-1)\nGPU 1: G\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_nvlink("\tGPU0\tGPU1\nGPU0\tX\tOK\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_nvlink("Link 0: 25 GB/s\nGPU 0: G\n"));
}
