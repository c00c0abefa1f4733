// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <topocoll/read/iblinkinfo.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace ib = topocoll::read;
using ib::ib_kind;
using ib::ib_speed;
using ib::ib_state;

namespace {

ib::ib_fabric parsed(const std::string& text) {
  EXPECT_TRUE(ib::looks_like_iblinkinfo(text));
  auto fabric = ib::parse_iblinkinfo(text, "l.txt");
  EXPECT_TRUE(fabric) << fabric.error().message();
  return fabric ? *fabric : ib::ib_fabric{};
}
bool tells(const ib::ib_fabric& f, const std::string& words) {
  return std::any_of(f.findings.begin(), f.findings.end(), [&](const tc::finding& x) {
    return (x.what + ": " + x.evidence).find(words) != std::string::npos;
  });
}
const ib::ib_device& named(const ib::ib_fabric& f, const std::string& description) {
  const auto at =
      std::find_if(f.devices.begin(), f.devices.end(), [&](const auto& d) { return d.description == description; });
  EXPECT_NE(at, f.devices.end()) << description;
  return at == f.devices.end() ? f.devices.front() : *at;
}

// Two hosts on one leaf, under headings; one port of the leaf is down.
const std::string under_headings = R"(CA: node1 HCA-1:
      0x00aa000000000101      4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>      12    1[  ] "leaf-a" ( )
CA: node2 HCA-1:
      0x00aa000000000201      5    1[  ] ==( 4X      14.0625 Gbps Active/  LinkUp)==>      12    2[  ] "leaf-a" ( Could be 25.78125 Gbps)
Switch: 0xbb00000000000100 leaf-a:
          12    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] "node1 HCA-1" ( )
          12    2[  ] ==( 4X       14.0625 Gbps Active/  LinkUp)==>       5    1[  ] "node2 HCA-1" ( Could be 25.78125 Gbps)
          12    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
          12    4[  ] ==(                Down/Disabled)==>             [  ] "" ( )
)";

}  // namespace

TEST(iblinkinfo, reads_rows_under_headings) {
  const ib::ib_fabric f = parsed(under_headings);
  ASSERT_EQ(f.devices.size(), 3U);
  EXPECT_TRUE(f.findings.empty());
  const ib::ib_device& node1 = named(f, "node1 HCA-1");
  EXPECT_EQ(node1.kind, ib_kind::channel_adapter);
  EXPECT_FALSE(node1.guid);  // the row shows that of the port
  ASSERT_EQ(node1.ports.size(), 1U);
  EXPECT_EQ(node1.ports[0].guid, 0xaa000000000101U);
  EXPECT_EQ(node1.ports[0].lid, 4U);
  const ib::ib_device& leaf = named(f, "leaf-a");
  EXPECT_EQ(leaf.kind, ib_kind::switch_device);
  EXPECT_EQ(leaf.guid, 0xbb00000000000100U);
  EXPECT_EQ(leaf.lid, 12U);
  ASSERT_EQ(leaf.ports.size(), 4U);
  EXPECT_EQ(leaf.ports[0].width, 4U);
  EXPECT_EQ(leaf.ports[0].speed, ib_speed::edr);
  EXPECT_EQ(leaf.ports[0].state, ib_state::active);
  EXPECT_EQ(leaf.ports[0].physical, "LinkUp");
  EXPECT_EQ(leaf.ports[0].best_speed, ib_speed::edr);  // no remark: at its best
  EXPECT_EQ(leaf.ports[1].speed, ib_speed::fdr);
  EXPECT_EQ(leaf.ports[1].best_speed, ib_speed::edr);
  EXPECT_EQ(leaf.ports[1].best_width, 4U);
  EXPECT_EQ(leaf.ports[1].remark, "Could be 25.78125 Gbps");
  EXPECT_EQ(leaf.ports[2].state, ib_state::down);
  EXPECT_EQ(leaf.ports[2].physical, "Polling");
  EXPECT_EQ(leaf.ports[2].width, 0U);
  EXPECT_FALSE(leaf.ports[2].peer);
  EXPECT_EQ(leaf.ports[3].physical, "Disabled");
}

TEST(iblinkinfo, reads_rows_that_name_their_device) {
  const ib::ib_fabric f = parsed(
      "0xbb00000000000100 \"                   leaf \"a\"\"     12    1[  ] ==( 4X        53.125 Gbps Active/  "
      "LinkUp)==>  "
      "0x00aa000000000101      4    1[  ] \"node1 mlx5_0\" ( )\n"
      "0xbb00000000000100 \"                   leaf \"a\"\"     12    2[ 7] ==( 2X        53.125 Gbps Active/  "
      "LinkUp)==>  "
      "0x00aa000000000102      5    2[  ] \"node1 mlx5_0\" (Could be 4X )\n"
      "0xbb00000000000100 \"                   leaf \"a\"\"     12    3[  ] ==(                Down/ Polling)==>       "
      "      "
      "[  ] \"\" ( )\n");
  ASSERT_EQ(f.devices.size(), 2U);
  const ib::ib_device& leaf = named(f, "leaf \"a\"");
  EXPECT_EQ(leaf.kind, ib_kind::switch_device);
  EXPECT_EQ(leaf.how, tc::trust::derived);  // nobody says switch; its ports share a GUID
  EXPECT_NE(leaf.reason, "");
  ASSERT_EQ(leaf.ports.size(), 3U);
  EXPECT_EQ(leaf.ports[1].best_width, 4U);
  EXPECT_EQ(leaf.ports[1].width, 2U);
  const ib::ib_device& host = named(f, "node1 mlx5_0");
  EXPECT_EQ(host.kind, ib_kind::channel_adapter);
  ASSERT_EQ(host.ports.size(), 2U);  // one adapter with two ports
  EXPECT_EQ(host.ports[1].guid, 0xaa000000000102U);
  EXPECT_TRUE(tells(f, "told by one of their ends only"));
}

TEST(iblinkinfo, knows_devices_by_lid_where_no_guid_is_printed) {
  const ib::ib_fabric f = parsed(
      "  12   1[  ] ==( 4X 10.0 Gbps (FDR10) Active/  LinkUp)==>   4    1[  ] \"node1 HCA-1\" ( )\n"
      "  12  33[  ] ==( 4X 5.0 Gbps Active/  LinkUp)==>   9    1[  ] \"Gateway of a Vendor\" ( )\n"
      "CA: node1 HCA-1:\n"
      "  0x00aa000000000101  4  1[  ] ==( 4X 10.0 Gbps (FDR10) Active/  LinkUp)==>   12    1[  ] \"old box\" ( )\n");
  ASSERT_EQ(f.devices.size(), 3U);
  const ib::ib_device& box = named(f, "old box");
  EXPECT_EQ(box.kind, ib_kind::switch_device);
  EXPECT_EQ(box.lid, 12U);
  EXPECT_EQ(box.ports.size(), 2U);
  EXPECT_EQ(box.ports[0].speed, ib_speed::fdr10);
  EXPECT_EQ(named(f, "node1 HCA-1").ports[0].speed, ib_speed::fdr10);
  EXPECT_EQ(named(f, "Gateway of a Vendor").how, tc::trust::assumed);
  EXPECT_TRUE(tells(f, "nothing tells a switch from an adapter"));
}

TEST(iblinkinfo, does_not_join_two_devices_of_one_lid_with_other_names) {
  const ib::ib_fabric f = parsed(
      "CA: node1 HCA-1:\n 0x00aa000000000101 4 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 12 1[  ] \"east\" ( )\n"
      "CA: node2 HCA-1:\n 0x00aa000000000201 4 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 12 7[  ] \"west\" ( )\n");
  EXPECT_EQ(f.devices.size(), 4U);
}

TEST(iblinkinfo, finds_the_far_end_without_lids_when_its_own_row_points_back) {
  // Two switches with one description and no subnet manager, so no LIDs.
  const std::string cabled = R"(Switch: 0xbb00000000000100 Box Vendor:
   0   1[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    1[  ] "node1" ( )
   0   8[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    9[  ] "Box Vendor" ( )
Switch: 0xbb00000000000200 Box Vendor:
   0   1[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    1[  ] "node2" ( )
   0   9[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    8[  ] "Box Vendor" ( )
CA: node1:
      0x00aa000000000101      0    1[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    1[  ] "Box Vendor" ( )
CA: node2:
      0x00aa000000000201      0    1[  ] ==( 4X 2.5 Gbps Initialize/  LinkUp)==>       0    1[  ] "Box Vendor" ( )
)";
  const ib::ib_fabric f = parsed(cabled);
  ASSERT_EQ(f.devices.size(), 4U);
  EXPECT_TRUE(f.findings.empty()) << f.findings.front().what << f.findings.front().evidence;
  const auto box = [&](std::uint64_t guid) {
    return std::find_if(f.devices.begin(), f.devices.end(), [&](const auto& d) { return d.guid == guid; });
  };
  ASSERT_NE(box(0xbb00000000000100U), f.devices.end());
  EXPECT_EQ(f.devices[box(0xbb00000000000100U)->ports[1].peer->device].guid, 0xbb00000000000200U);
  EXPECT_EQ(f.devices[box(0xbb00000000000100U)->ports[0].peer->device].description, "node1");
}

TEST(iblinkinfo, leaves_out_cables_whose_far_end_cannot_be_told) {
  const ib::ib_fabric f = parsed(
      "Switch: 0xbb00000000000100 Box Vendor:\n 0 1[  ] ==( 4X 2.5 Gbps Init/LinkUp)==> 0 5[  ] \"Box Vendor\" ( )\n"
      "Switch: 0xbb00000000000200 Box Vendor:\n 0 1[  ] ==( 4X 2.5 Gbps Init/LinkUp)==> 0 6[  ] \"Box Vendor\" ( )\n");
  ASSERT_EQ(f.devices.size(), 2U);
  for (const ib::ib_device& d : f.devices) EXPECT_FALSE(d.ports[0].peer);
  EXPECT_TRUE(tells(f, "neither GUID nor LID"));
}

TEST(iblinkinfo, reads_what_options_of_the_tool_add) {
  const ib::ib_fabric f = parsed(
      "garbage from a shell\nSwitch: 0xbb00000000000100 leaf (a):\n"
      "  12 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp) (HOQ:8 VL_Stall:7)==>  4  1[  ] \"node1 (spare) mlx5_0\" ( "
      ")\r\n");
  EXPECT_EQ(named(f, "leaf (a)").ports[0].speed, ib_speed::ndr);
  EXPECT_EQ(named(f, "leaf (a)").ports[0].physical, "LinkUp");
  EXPECT_EQ(named(f, "node1 (spare) mlx5_0").kind, ib_kind::channel_adapter);
  EXPECT_TRUE(tells(f, "garbage from a shell"));
}

TEST(iblinkinfo, refuses_what_breaks_off_with_the_line) {
  const std::string head = "Switch: 0xbb00000000000100 a:\n";
  for (const char* broken :
       {" 12 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp", " 12 1[  ] ==( 4X 10.0 Gbps Active LinkUp)==> 4 1[  ] \"b\" ( )",
        " 12 [  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 4 1[  ] \"b\" ( )",
        " 12 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==>", " 12 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 4 1[ ",
        " 12 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 4 1[  ] b",
        " 12 300[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 4 1[  ] \"b\" ( )",
        " 12 1[  ] ==( 4X 10.0 Gbps Odd/ LinkUp)==> [  ] \"\"",
        " 12 1[  ] ==", " xx 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )"}) {
    const auto f = ib::parse_iblinkinfo(head + broken, "l.txt");
    ASSERT_FALSE(f) << broken;
    EXPECT_EQ(f.error().code, tc::errc::malformed_input);
    EXPECT_EQ(f.error().what.rfind("l.txt line 2: expected ", 0), 0U) << f.error().what;
  }
  const auto nobody = ib::parse_iblinkinfo(" 0 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )", "l.txt");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().what.rfind("l.txt line 1: expected a heading", 0), 0U) << nobody.error().what;
}

TEST(iblinkinfo, refuses_texts_without_rows) {
  for (const char* text : {"", "CA: node1:\n", "a ==( b )==> c\n", "Switch 8 \"a\"\n[1] \"b\"[1]\n"}) {
    EXPECT_FALSE(ib::looks_like_iblinkinfo(text)) << text;
    EXPECT_FALSE(ib::parse_iblinkinfo(text, "l.txt")) << text;
  }
}
