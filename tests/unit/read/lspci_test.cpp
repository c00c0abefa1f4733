// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/lspci.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::read::pcie_port;

namespace {
tc::read::lspci_listing parsed(const std::string& text) {
  auto l = tc::read::parse_lspci(text, "l.txt");
  EXPECT_TRUE(l) << (l ? "" : l.error().message());
  return l ? *std::move(l) : tc::read::lspci_listing{};
}
std::string refusal(const std::string& text) { return tc::read::parse_lspci(text, "l.txt").error().what; }
}  // namespace

TEST(lspci, reads_the_attributes_of_a_function) {
  const auto l = parsed(
      "3a:02.0 PCI bridge: Some Maker Switch 9 (rev b0) (prog-if 00 [Normal decode])\r\n"
      "\tPhysical Slot: 28\r\n"
      "\tNUMA node: 1\r\n"
      "\tBus: primary=3a, secondary=3b, subordinate=3f, sec-latency=0\r\n"
      "\tCapabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00\r\n"
      "\t\tLnkCap:\tPort #4, Speed 32GT/s, Width x16, ASPM L1\r\n"
      "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x4 (strange)\r\n"
      "\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink-\r\n"
      "\tCapabilities: [2a0 v1] Access Control Services\r\n"
      "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+\r\n"
      "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir+ UpstreamFwd- EgressCtrl- DirectTrans-\r\n"
      "\tKernel driver in use: pcieport\r\n");
  ASSERT_EQ(l.functions.size(), 1U);
  const auto& f = l.functions[0];
  EXPECT_EQ(f.address, "0000:3a:02.0");
  EXPECT_EQ(f.class_code, 0x060400U);
  EXPECT_EQ(f.description, "Some Maker Switch 9");
  EXPECT_EQ(f.numa, 1U);
  EXPECT_EQ(f.secondary, 0x3bU);
  EXPECT_EQ(f.subordinate, 0x3fU);
  EXPECT_EQ(f.port, pcie_port::downstream);
  EXPECT_EQ(f.best.speed, "32GT/s");
  EXPECT_EQ(f.best.width, "16");
  EXPECT_EQ(f.now.speed, "16GT/s");
  EXPECT_EQ(f.now.speed_word, "downgraded");
  EXPECT_EQ(f.now.width, "4");
  EXPECT_EQ(f.now.width_word, "strange");
  EXPECT_EQ(f.acs_capability, 0x7f);
  EXPECT_EQ(f.acs_control, 0x09);
  EXPECT_TRUE(f.extended);
  EXPECT_EQ(f.driver, "pcieport");
  EXPECT_EQ(f.slot, "28");
}

TEST(lspci, reads_old_listings_without_judgement_and_listings_without_rights) {
  const auto l = parsed(
      "0001:41:00.0 3D controller: NVIDIA Corporation Device 1234 (rev a1)\n"
      "\tCapabilities: <access denied>\n"
      "42:00.7 Ethernet controller: Maker Card\n"
      "\tLnkSta:\tSpeed 8GT/s, Width x8, TrErr- Train-\n");
  EXPECT_EQ(l.functions[0].address, "0001:41:00.0");
  EXPECT_TRUE(l.functions[0].denied);
  EXPECT_FALSE(l.functions[0].acs_control);
  EXPECT_EQ(l.functions[1].now.width, "8");
  EXPECT_EQ(l.functions[1].now.width_word, "");
  EXPECT_EQ(l.functions[1].best.speed, "");
}

TEST(lspci, reads_numbers_in_brackets_and_numbers_alone) {
  const auto l = parsed(
      "10000:01:00.0 3D controller [0302]: Some Maker G [big one] [10de:20b2] (rev a1)\n"
      "02:00.0 0207: 15b3:101b\n"
      "03:00.0 Odd thing [0fff]: Nobody [abcd:0001]\n");
  EXPECT_EQ(l.functions[0].address, "10000:01:00.0");
  EXPECT_EQ(l.functions[0].class_code, 0x030200U);
  EXPECT_EQ(l.functions[0].vendor, "10de");
  EXPECT_EQ(l.functions[0].device, "20b2");
  EXPECT_EQ(l.functions[0].description, "Some Maker G [big one]");
  EXPECT_EQ(l.functions[1].class_code, 0x020700U);
  EXPECT_EQ(l.functions[1].vendor, "15b3");
  EXPECT_EQ(l.functions[2].class_code, 0x0fff00U);
}

TEST(lspci, reads_trees_with_nested_buses_and_several_roots) {
  const auto l = parsed(
      "-+-[0000:e0]-+-00.0  Maker Root Complex\n"
      " |           \\-01.1-[e1-e4]----00.0-[e2-e4]--+-00.0-[e3]----00.0  Maker Thing A\n"
      " |                                           \\-01.0-[e4]--+-00.0  Maker Thing B\n"
      " |                                                        \\-00.1  Maker Thing C\n"
      " +-[0001:20]---1f.7-[21]--\n"
      " \\-[0000:00]-+-00.0  Maker Root Complex\n"
      "             \\-02.0  Red Hat, Inc. Virtio network device\n");
  EXPECT_TRUE(l.tree);
  std::string all;
  for (const auto& f : l.functions) all += f.address + (f.secondary ? ">" + std::to_string(*f.secondary) : "") + " ";
  EXPECT_EQ(all,
            "0000:e0:00.0 0000:e0:01.1>225 0000:e1:00.0>226 0000:e2:00.0>227 0000:e3:00.0 0000:e2:01.0>228 "
            "0000:e4:00.0 0000:e4:00.1 0001:20:1f.7>33 0000:00:00.0 0000:00:02.0 ");
  EXPECT_EQ(l.functions[1].subordinate, 0xe4U);
  EXPECT_EQ(l.functions[4].description, "Maker Thing A");
  EXPECT_EQ(l.guest_of, "0000:00:02.0 Red Hat, Inc. Virtio network device");
}

TEST(lspci, refuses_with_the_place) {
  EXPECT_EQ(refusal("hello: world\n"),
            "l.txt: no line is that of a PCI function, such as \"41:00.0 3D controller: …\"");
  EXPECT_EQ(refusal("01:00.0 Bridge: a\n02:00.0 Bridge: a\n0000:01:00.0 Bridge: b\n"),
            "l.txt line 3: 0000:01:00.0 was already told in line 1");
  EXPECT_EQ(refusal("-[0000:00]-+-00.0  a\n        \\-01.0  b\n"),
            "l.txt line 2: a branch in column 9 belongs to no bus above it: the columns have shifted");
  EXPECT_EQ(refusal("-[0000:00]-+-00.0  a\n           \\-0x.0  b\n"),
            "l.txt line 2: \"0x.0\" where a device such as 00.0 is expected");
  EXPECT_EQ(refusal("-[0000:00]-+-00.0-[123]--\n"), "l.txt line 1: \"123\" is no PCI bus");
  EXPECT_EQ(refusal("-[0000:00]-+-00.0-[12\n"), "l.txt line 1: a bus number without its bracket");
}

TEST(looks_like_lspci, asks_for_an_address_with_a_class_or_a_tree) {
  EXPECT_TRUE(tc::read::looks_like_lspci("# x\n41:00.0 VGA compatible controller: G\n"));
  EXPECT_TRUE(tc::read::looks_like_lspci("01:00.0 Whatever [0880]: G\n"));
  EXPECT_TRUE(tc::read::looks_like_lspci("-[0000:00]-+-00.0  a\n"));
  EXPECT_TRUE(tc::read::looks_like_lspci("-+-[0000:e0]-+-00.0  a\n"));
  EXPECT_FALSE(tc::read::looks_like_lspci("41:00.0 hello: world\n"));
  EXPECT_FALSE(tc::read::looks_like_lspci("- [link](x)\n"));
  EXPECT_FALSE(tc::read::looks_like_lspci(""));
}
