// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <topocoll/discover/link_rates.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using namespace tc::literals;

TEST(pcie_line_rate, is_what_the_specifications_give) {
  // Widely published figures of x16, one direction, GB/s.
  const double x16[] = {4.0, 8.0, 15.754, 31.508, 63.015, 121.0, 242.0};
  for (unsigned g = 1; g <= 7; ++g) {
    EXPECT_NEAR(tc::pcie_line_rate(g, 16).value / 1e9, x16[g - 1], 0.001) << g;
    EXPECT_NEAR(tc::pcie_line_rate(g, 1).value * 16, tc::pcie_line_rate(g, 16).value, 1) << g;
  }
  EXPECT_EQ(tc::pcie_line_rate(0, 16).value, 0);
  EXPECT_EQ(tc::pcie_line_rate(8, 16).value, 0);
  EXPECT_EQ(tc::pcie_line_rate(4, 0).value, 0);
}

TEST(pcie_payload_rate, is_that_of_the_nccl_model_and_below_the_line_rate) {
  const double x16[] = {3, 6, 12, 24, 48, 96, 192};
  for (unsigned g = 1; g <= 7; ++g) {
    EXPECT_DOUBLE_EQ(tc::pcie_payload_rate(g, 16).value, x16[g - 1] * 1e9) << g;
    EXPECT_LT(tc::pcie_payload_rate(g, 8), tc::pcie_line_rate(g, 8)) << g;
    EXPECT_GT(tc::pcie_payload_rate(g, 8).value, 0.7 * tc::pcie_line_rate(g, 8).value) << g;
  }
}

TEST(nvlink_rate, follows_the_compute_capability) {
  struct row {
    unsigned sm, generation;
    double payload;
    unsigned cables;
    double data_sheet;  // of all cables, one direction
  };
  for (const row& r : {row{60, 1, 18, 4, 80}, row{70, 2, 20, 6, 150}, row{80, 3, 20, 12, 300}, row{86, 3, 12, 4, 56.25},
                       row{90, 4, 20.6, 18, 450}, row{100, 5, 40.1, 18, 900}, row{103, 5, 40.1, 18, 900}}) {
    const auto rate = tc::nvlink_rate(r.sm);
    EXPECT_TRUE(rate.known) << r.sm;
    EXPECT_EQ(rate.generation, r.generation) << r.sm;
    EXPECT_DOUBLE_EQ(rate.payload.value, r.payload * 1e9) << r.sm;
    EXPECT_DOUBLE_EQ(rate.line.value * r.cables, r.data_sheet * 1e9) << r.sm;
    EXPECT_LT(rate.payload, rate.line) << r.sm;
  }
}

TEST(nvlink_rate, is_marked_unknown_for_what_is_no_compute_capability) {
  for (const std::optional<std::uint32_t> sm : {std::optional<std::uint32_t>{}, std::optional<std::uint32_t>{0},
                                                std::optional<std::uint32_t>{35}, std::optional<std::uint32_t>{5000}}) {
    EXPECT_FALSE(tc::nvlink_rate(sm).known);
    EXPECT_GT(tc::nvlink_rate(sm).payload.value, 0);
  }
}

TEST(xgmi_rate, reads_an_architecture_in_every_spelling) {
  EXPECT_EQ(tc::xgmi_rate("906").payload, 24.0_GBps);
  EXPECT_EQ(tc::xgmi_rate("gfx908").payload, 24.0_GBps);
  EXPECT_EQ(tc::xgmi_rate("910").payload, 36.0_GBps);
  EXPECT_EQ(tc::xgmi_rate("gfx90a").payload, 36.0_GBps);
  EXPECT_EQ(tc::xgmi_rate("gfx942").payload, 48.0_GBps);
  EXPECT_EQ(tc::xgmi_rate("gfx950").payload, 48.0_GBps);
  EXPECT_DOUBLE_EQ(tc::xgmi_rate("942").line.value * 7, 448e9);
  EXPECT_DOUBLE_EQ(tc::xgmi_rate("950").line.value * 7, 537.6e9);
  for (const char* gcn : {"", "gfx", "1100", "777"}) EXPECT_FALSE(tc::xgmi_rate(gcn).known) << gcn;
}

TEST(between_numa_domains, follows_vendor_and_model) {
  const auto rate = [](const char* arch, const char* vendor, unsigned family, unsigned model) {
    return tc::between_numa_domains(arch, vendor, family, model).rate.value / 1e9;
  };
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 79), 6);    // Broadwell
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 85), 10);   // Skylake
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 106), 10);  // Ice Lake
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 143), 22);  // Sapphire Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 207), 40);  // Emerald Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 15, 207), 6);
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 175, 17), 16);
  EXPECT_EQ(rate("arm64", "", 0, 0), 6);
  EXPECT_EQ(rate("ppc64", "", 0, 0), 32);
  EXPECT_EQ(rate("", "", 0, 0), 6);
}
