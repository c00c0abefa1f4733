// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>
#include <topocoll/read/sysfs_text.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(number_list, reads_ranges_and_single_numbers) {
  EXPECT_EQ(rd::number_list("0-3,8,250-255\n"), (ranges{{0, 3}, {8, 8}, {250, 255}}));
  EXPECT_EQ(rd::number_list("0-1\n\0"), (ranges{{0, 1}}));
  EXPECT_EQ(rd::number_list(""), ranges{});
}

TEST(number_list, leaves_out_what_is_no_range) { EXPECT_EQ(rd::number_list("3-1,x,5,-,7-"), (ranges{{5, 5}})); }

TEST(mask_list, reads_the_most_significant_word_first) {
  EXPECT_EQ(rd::mask_list("0000,00000000,0000ffff"), (ranges{{0, 15}}));
  EXPECT_EQ(rd::mask_list("000000ff,ff000000,00000000"), (ranges{{56, 71}}));
  EXPECT_EQ(rd::mask_list("11"), (ranges{{0, 0}, {4, 4}}));
  EXPECT_EQ(rd::mask_list("00000000"), ranges{});
}

TEST(infiniband_rate, is_read_with_lanes_and_name) {
  const auto ndr = rd::infiniband_rate_of("400 Gb/sec (4X NDR)\n");
  ASSERT_TRUE(ndr);
  EXPECT_EQ(ndr->rate.value, 50e9);
  EXPECT_EQ(ndr->lanes, 4U);
  EXPECT_EQ(ndr->speed, "NDR");
  EXPECT_EQ(rd::infiniband_rate_of("2.5 Gb/sec (1X SDR)")->rate.value, 0.3125e9);
  EXPECT_EQ(rd::infiniband_rate_of("10 Gb/sec")->lanes, 0U);
  EXPECT_FALSE(rd::infiniband_rate_of("100000"));
  EXPECT_FALSE(rd::infiniband_rate_of("<unknown>"));
  EXPECT_FALSE(rd::infiniband_rate_of(""));
}

namespace {
// Configuration space with the PCIe capability of a port kind, behind `others` other capabilities.
std::string config_space(unsigned kind, int others) {
  std::string c(256, '\0');
  c[6] = 0x10;
  unsigned at = 0x40;
  c[0x34] = static_cast<char>(at);
  for (int i = 0; i < others; ++i) {
    c[at] = 0x05;
    c[at + 1] = static_cast<char>(at + 0x10);
    at += 0x10;
  }
  c[at] = 0x10;
  c[at + 2] = static_cast<char>(kind << 4U | 2U);
  return c;
}
}  // namespace

TEST(pcie_port, follows_the_list_of_capabilities) {
  for (const int others : {0, 1, 2, 5, 8}) {
    EXPECT_EQ(rd::pcie_port_of(config_space(4, others)), rd::pcie_port::root);
    EXPECT_EQ(rd::pcie_port_of(config_space(5, others)), rd::pcie_port::upstream);
    EXPECT_EQ(rd::pcie_port_of(config_space(6, others)), rd::pcie_port::downstream);
    EXPECT_EQ(rd::pcie_port_of(config_space(7, others)), rd::pcie_port::to_pci);
    EXPECT_EQ(rd::pcie_port_of(config_space(0, others)), rd::pcie_port::endpoint);
  }
}

TEST(pcie_port, is_unknown_where_the_capability_cannot_be_read) {
  EXPECT_EQ(rd::pcie_port_of(config_space(4, 0).substr(0, 64)), rd::pcie_port::unknown);
  EXPECT_EQ(rd::pcie_port_of(""), rd::pcie_port::unknown);
  EXPECT_EQ(rd::pcie_port_of(std::string(256, '\0')), rd::pcie_port::unknown);
  EXPECT_EQ(rd::pcie_port_of(std::string(256, '\xff')), rd::pcie_port::unknown);
}

TEST(pcie_port, ends_when_capabilities_run_in_a_circle) {
  std::string c(256, '\0');
  c[6] = 0x10;
  c[0x34] = 0x40;
  c[0x40] = 0x05;
  c[0x41] = 0x40;
  EXPECT_EQ(rd::pcie_port_of(c), rd::pcie_port::unknown);
}

TEST(processor, is_that_of_the_first_entry) {
  const auto intel = rd::processor_of(
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Big "
      "One\n\nprocessor\t: 1\nmodel\t: 7\n");
  EXPECT_EQ(intel.arch, "x86_64");
  EXPECT_EQ(intel.vendor, "GenuineIntel");
  EXPECT_EQ(intel.family, 6U);
  EXPECT_EQ(intel.model, 143U);
  EXPECT_EQ(intel.model_name, "Big One");
  EXPECT_EQ(rd::processor_of("processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\n").arch, "arm64");
  EXPECT_EQ(rd::processor_of("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n").arch, "ppc64");
  EXPECT_EQ(rd::processor_of("").arch, "");
}

TEST(memory_total, is_in_bytes) {
  EXPECT_EQ(rd::memory_total("Node 0 MemTotal:        4417748 kB\nNode 0 MemFree: 1 kB\n"),
            topocoll::bytes{4417748ULL * 1024});
  EXPECT_FALSE(rd::memory_total("Node 0 MemFree: 1 kB"));
  EXPECT_FALSE(rd::memory_total("MemTotal: lots kB"));
}
