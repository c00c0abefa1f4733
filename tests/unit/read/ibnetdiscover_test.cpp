// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fabrics/fabric_text.hpp>
#include <string>
#include <topocoll/read/ibnetdiscover.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace ib = topocoll::read;
using ib::ib_kind;
using ib::ib_speed;

namespace {

// One managed leaf, one spine without management, a host on two ports, and the leaf's own adapter.
const std::string small = R"(#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#
# Initiated from node 00aa000000000100 port 00aa000000000101

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xbb00000000000100
switchguid=0xbb00000000000100(bb00000000000100)
Switch	65 "S-bb00000000000100"		# "MF0;leaf-a:XQM/U1" enhanced port 0 lid 12 lmc 0
[1]	"H-00aa000000000100"[1](aa000000000101) 		# "node "one" mlx5_0" lid 4 4xNDR
[2]	"H-00aa000000000100"[2](aa000000000102) 		# "node "one" mlx5_0" lid 5 2xNDR
[33]	"S-bb00000000000200"[1]		# "Spine Vendor" lid 0 4xNDR
[34]	"S-bb00000000000200"[2]		# "Spine Vendor" lid 0 4xNDR
[65]	"H-bb00000000000110"[1](bb00000000000110) 		# "Mellanox Technologies Aggregation Node" lid 99 4xNDR

vendid=0x2c9
devid=0xd2f2
switchguid=0xbb00000000000200(bb00000000000200)
Switch	64 "S-bb00000000000200"		# "Spine Vendor" base port 0 lid 0 lmc 0
[1]	"S-bb00000000000100"[33]		# "MF0;leaf-a:XQM/U1" lid 12 4xNDR
[2]	"S-bb00000000000100"[34]		# "MF0;leaf-a:XQM/U1" lid 12 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xaa000000000100
caguid=0xaa000000000100
Ca	2 "H-00aa000000000100"		# "node "one" mlx5_0"
[1](aa000000000101) 	"S-bb00000000000100"[1]		# lid 4 lmc 1 "MF0;leaf-a:XQM/U1" lid 12 4xNDR
[2](aa000000000102) 	"S-bb00000000000100"[2]		# lid 5 lmc 0 "MF0;leaf-a:XQM/U1" lid 12 2xNDR

vendid=0x2c9
sysimgguid=0xbb00000000000100
caguid=0xbb00000000000110
Ca	1 "H-bb00000000000110"		# "Mellanox Technologies Aggregation Node"
[1](bb00000000000110) 	"S-bb00000000000100"[65]		# lid 99 lmc 0 "MF0;leaf-a:XQM/U1" lid 12 4xNDR
)";

ib::ib_fabric parsed(const std::string& text) {
  EXPECT_TRUE(ib::looks_like_ibnetdiscover(text));
  auto fabric = ib::parse_ibnetdiscover(text, "f.txt");
  EXPECT_TRUE(fabric) << fabric.error().message();
  return fabric ? *fabric : ib::ib_fabric{};
}
tc::failure refused(const std::string& text) {
  const auto fabric = ib::parse_ibnetdiscover(text, "f.txt");
  EXPECT_FALSE(fabric) << text;
  return fabric ? tc::failure{} : fabric.error();
}
bool tells(const ib::ib_fabric& f, const std::string& words) {
  return std::any_of(f.findings.begin(), f.findings.end(), [&](const tc::finding& x) {
    return (x.what + ": " + x.evidence).find(words) != std::string::npos;
  });
}
/// Every peer of a peer is the port itself.
void expect_mutual(const ib::ib_fabric& f) {
  for (std::uint32_t d = 0; d < f.devices.size(); ++d)
    for (const ib::ib_port& p : f.devices[d].ports) {
      if (!p.peer) continue;
      ASSERT_LT(p.peer->device, f.devices.size());
      const ib::ib_port* back = ib::find_port(f.devices[p.peer->device], p.peer->port);
      ASSERT_NE(back, nullptr);
      ASSERT_TRUE(back->peer);
      EXPECT_EQ(*back->peer, (ib::ib_end{d, p.number}));
    }
}
std::size_t cables(const ib::ib_fabric& f) {
  std::size_t ends = 0;
  for (const ib::ib_device& d : f.devices)
    for (const ib::ib_port& p : d.ports) ends += p.peer ? 1 : 0;
  return ends / 2;
}

}  // namespace

TEST(ibnetdiscover, reads_devices_ports_and_cables) {
  const ib::ib_fabric f = parsed(small);
  ASSERT_EQ(f.devices.size(), 4U);
  EXPECT_TRUE(f.findings.empty());
  expect_mutual(f);
  EXPECT_EQ(cables(f), 5U);

  const ib::ib_device& leaf = f.devices[0];
  EXPECT_EQ(leaf.kind, ib_kind::switch_device);
  EXPECT_EQ(leaf.guid, 0xbb00000000000100U);
  EXPECT_EQ(leaf.system_image, 0xbb00000000000100U);
  EXPECT_EQ(leaf.description, "MF0;leaf-a:XQM/U1");
  EXPECT_EQ(leaf.lid, 12U);
  EXPECT_EQ(leaf.port_count, 65U);
  EXPECT_EQ(leaf.vendor, 0x2c9U);
  EXPECT_EQ(leaf.product, 0xd2f2U);
  EXPECT_EQ(leaf.line, 10U);
  ASSERT_EQ(leaf.ports.size(), 5U);
  EXPECT_EQ(leaf.ports[1].number, 2U);
  EXPECT_EQ(leaf.ports[1].width, 2U);
  EXPECT_EQ(leaf.ports[1].speed, ib_speed::ndr);
  EXPECT_EQ(leaf.ports[1].state, ib::ib_state::unknown);
  EXPECT_EQ(leaf.ports[2].peer, (ib::ib_end{1, 1}));

  EXPECT_FALSE(f.devices[1].lid);  // 0 is no LID
  EXPECT_FALSE(f.devices[1].system_image);

  const ib::ib_device& host = f.devices[2];
  EXPECT_EQ(host.kind, ib_kind::channel_adapter);
  EXPECT_EQ(host.description, "node \"one\" mlx5_0");  // quotes inside
  ASSERT_EQ(host.ports.size(), 2U);
  EXPECT_EQ(host.ports[0].guid, 0xaa000000000101U);
  EXPECT_EQ(host.ports[0].lid, 4U);
  EXPECT_EQ(host.ports[0].lmc, 1U);
}

TEST(ibnetdiscover, reads_the_same_with_other_line_ends_marks_colours_and_blanks) {
  const ib::ib_fabric plain = parsed(small);
  std::string crlf = "\xef\xbb\xbf";
  for (const char c : small) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::string blanks;
  for (const char c : small) blanks += c == '\t' ? std::string("    ") : std::string(1, c);
  std::string cut = small;
  cut.pop_back();
  const std::string coloured = "\x1b[1m\x1b[4m" + small + "\x1b[0m";
  for (const std::string& text : {crlf, blanks, cut, coloured}) {
    const ib::ib_fabric f = parsed(text);
    ASSERT_EQ(f.devices.size(), plain.devices.size());
    for (std::size_t d = 0; d < f.devices.size(); ++d) {
      EXPECT_EQ(f.devices[d].guid, plain.devices[d].guid);
      EXPECT_EQ(f.devices[d].description, plain.devices[d].description);
      ASSERT_EQ(f.devices[d].ports.size(), plain.devices[d].ports.size());
      for (std::size_t p = 0; p < f.devices[d].ports.size(); ++p) {
        EXPECT_EQ(f.devices[d].ports[p].peer, plain.devices[d].ports[p].peer);
        EXPECT_EQ(f.devices[d].ports[p].width, plain.devices[d].ports[p].width);
        EXPECT_EQ(f.devices[d].ports[p].speed, plain.devices[d].ports[p].speed);
      }
    }
  }
}

TEST(ibnetdiscover, passes_over_prompts_and_messages_and_says_so) {
  const ib::ib_fabric f = parsed("[root@head ~]# ibnetdiscover\nsrc/query.c:1; umad bad status 110\n" + small);
  EXPECT_EQ(f.devices.size(), 4U);
  EXPECT_TRUE(tells(f, "2 lines are no part of the listing"));
  EXPECT_TRUE(tells(f, "line 1: [root@head ~]# ibnetdiscover"));
}

TEST(ibnetdiscover, reads_what_the_full_form_appends) {
  // Without a speed in words, the codes tell it; with one, the word does.
  const ib::ib_fabric f = parsed(
      "Switch 36 \"S-bb00000000000001\" # \"a\" base port 0 lid 1 lmc 0\n"
      "[1] \"S-bb00000000000002\"[1] # \"b\" lid 2 4xHDR s=4 w=2 v=4 e=4\n"
      "[2] \"S-bb00000000000002\"[2] # \"b\" lid 2 s=4 w=8 v=4 e=2\n"
      "[3] \"S-bb00000000000002\"[3] # \"b\" lid 2 1x??? s=2 w=1 v=4\n"
      "[4][ext 12] \"S-bb00000000000002\"[4][ext 3] # \"b\" lid 2 4xFDR10\n");
  const auto& p = f.devices[0].ports;
  ASSERT_EQ(p.size(), 4U);
  EXPECT_EQ(p[0].width, 4U);
  EXPECT_EQ(p[0].speed, ib_speed::hdr);
  EXPECT_EQ(p[1].width, 12U);
  EXPECT_EQ(p[1].speed, ib_speed::edr);
  EXPECT_EQ(p[2].width, 1U);
  EXPECT_EQ(p[2].speed, ib_speed::ddr);
  EXPECT_EQ(p[3].speed, ib_speed::fdr10);
}

TEST(ibnetdiscover, keeps_devices_that_only_others_mention) {
  const ib::ib_fabric f = parsed(
      "Switch 37 \"S-bb00000000000001\" # \"a\" base port 0 lid 1 lmc 0\n"
      "[1] \"H-00aa000000000100\"[1](aa000000000101) # \"node1 HCA-1\" lid 7 4xEDR\n"
      "[2] \"H-00aa000000000200\"[1] # 4xEDR\n"
      "[5] \"S-bb00000000000002\"[9] # \"b\" lid 2 4xEDR\n");
  ASSERT_EQ(f.devices.size(), 4U);
  expect_mutual(f);
  for (std::size_t d = 1; d < 4; ++d) EXPECT_FALSE(f.devices[d].told);
  EXPECT_TRUE(tells(f, "told by one of their ends only"));
  const auto with_guid = [&](std::uint64_t guid) {
    return *std::find_if(f.devices.begin(), f.devices.end(), [&](const auto& d) { return d.guid == guid; });
  };
  const ib::ib_device node1 = with_guid(0xaa000000000100U);
  EXPECT_EQ(node1.description, "node1 HCA-1");
  ASSERT_EQ(node1.ports.size(), 1U);
  EXPECT_EQ(node1.ports[0].guid, 0xaa000000000101U);
  EXPECT_EQ(node1.ports[0].lid, 7U);
  EXPECT_FALSE(node1.ports[0].told);
  EXPECT_EQ(with_guid(0xaa000000000200U).kind, ib_kind::channel_adapter);
  EXPECT_EQ(with_guid(0xbb00000000000002U).kind, ib_kind::switch_device);
  EXPECT_EQ(with_guid(0xbb00000000000002U).lid, 2U);
}

TEST(ibnetdiscover, reads_net_files_of_ibsim) {
  const ib::ib_fabric f = parsed(
      "# an example\n\nSwitch\t8 \"Top\"\n[1]\t\"Box A\"[1]\n[2]\t\"Box A\"[2]  w=12\n[3] \"Other\"[3] s=4 w=1\n\n"
      "Switch 8 \"Other\"\n[3]\t\"Top\"[3] s=4 w=1\n[4]\t\"Far\"[7]\n\nHca 2 \"Box A\"\n[1] \"Top\"[1]\n[2] \"Top\"[2] "
      "w=12\n");
  ASSERT_EQ(f.devices.size(), 4U);
  expect_mutual(f);
  EXPECT_EQ(f.devices[0].id, "Top");
  EXPECT_FALSE(f.devices[0].guid);
  EXPECT_EQ(f.devices[2].kind, ib_kind::channel_adapter);
  EXPECT_EQ(f.devices[0].ports[0].width, 0U);  // not told
  EXPECT_EQ(f.devices[0].ports[1].width, 12U);
  EXPECT_EQ(f.devices[0].ports[2].speed, ib_speed::qdr);
  EXPECT_EQ(f.devices[3].how, tc::trust::assumed);  // "Far" has no record; its port 7 makes it a switch
  EXPECT_EQ(f.devices[3].kind, ib_kind::switch_device);
  EXPECT_NE(f.devices[3].reason, "");
}

TEST(ibnetdiscover, tells_when_the_ends_of_a_cable_disagree) {
  // a:1 says b:2, but b:2 says c:3, and c:3 agrees with b.
  const ib::ib_fabric f =
      parsed("Switch 8 \"a\"\n[1] \"b\"[2]\n\nSwitch 8 \"b\"\n[2] \"c\"[3]\n\nSwitch 8 \"c\"\n[3] \"b\"[2]\n");
  expect_mutual(f);
  EXPECT_EQ(cables(f), 1U);
  EXPECT_FALSE(f.devices[0].ports[0].peer);
  EXPECT_TRUE(tells(f, "disagree on where it leads"));
  EXPECT_TRUE(tells(f, "a port 1 - b port 2, but the far end says b port 2 - c port 3 (lines 2 and 5)"));
}

TEST(ibnetdiscover, tells_when_the_ends_of_a_cable_have_other_rates) {
  const ib::ib_fabric f = parsed(
      "Switch 8 \"S-bb00000000000001\" # \"a\"\n[1] \"S-bb00000000000002\"[2] # \"b\" lid 2 4xSDR\n\n"
      "Switch 8 \"S-bb00000000000002\" # \"b\"\n[2] \"S-bb00000000000001\"[1] # \"a\" lid 1 1xSDR\n");
  EXPECT_EQ(cables(f), 1U);
  EXPECT_TRUE(tells(f, "(4x SDR and 1x SDR)"));
}

TEST(ibnetdiscover, gives_a_port_to_one_cable_only) {
  const ib::ib_fabric claimed_twice =
      parsed("Switch 8 \"a\"\n[1] \"x\"[1]\n[2] \"x\"[1]\n");  // x has no record; both cables end at its port 1
  expect_mutual(claimed_twice);
  EXPECT_EQ(cables(claimed_twice), 1U);
  EXPECT_TRUE(tells(claimed_twice, "another cable ends"));
  // The far device's own ports and the twice claimed one in any order.
  const ib::ib_fabric mixed = parsed(
      "Switch 8 \"a\"\n[1] \"b\"[5]\n[2] \"b\"[1]\n[5] \"c\"[1]\n\nSwitch 8 \"b\"\n[7] \"c\"[1]\n[8] \"a\"[4]\n");
  expect_mutual(mixed);
  EXPECT_EQ(cables(mixed), 4U);
  const ib::ib_fabric itself = parsed("Switch 8 \"a\"\n[1] \"a\"[1]\n");
  EXPECT_EQ(cables(itself), 0U);
  EXPECT_TRUE(tells(itself, "cabled to itself"));
  const ib::ib_fabric twice = parsed("Switch 8 \"a\"\n[1] \"b\"[1]\n[1] \"b\"[2]\n\nSwitch 8 \"b\"\n[1] \"a\"[1]\n");
  expect_mutual(twice);
  EXPECT_EQ(cables(twice), 1U);
  EXPECT_TRUE(tells(twice, "told twice"));
}

TEST(ibnetdiscover, keeps_cables_within_one_switch) {
  const ib::ib_fabric f = parsed("Switch 8 \"a\"\n[1] \"a\"[2]\n[2] \"a\"[1]\n");
  expect_mutual(f);
  EXPECT_EQ(cables(f), 1U);
}

TEST(ibnetdiscover, takes_listings_that_were_pasted_together_as_one) {
  const ib::ib_fabric once = parsed(small);
  const ib::ib_fabric f = parsed(small + "\n" + small);
  EXPECT_EQ(f.devices.size(), once.devices.size());
  EXPECT_EQ(cables(f), cables(once));
  EXPECT_TRUE(f.findings.empty());
  // A record in two parts is one device, in whatever order its parts come.
  const ib::ib_fabric parts =
      parsed("Switch 8 \"a\"\n[5] \"b\"[5]\n\nSwitch 8 \"b\"\n[1] \"a\"[1]\n\nSwitch 8 \"a\"\n[1] \"b\"[1]\n");
  ASSERT_EQ(parts.devices.size(), 2U);
  expect_mutual(parts);
  EXPECT_EQ(cables(parts), 2U);
}

TEST(ibnetdiscover, reads_the_list_of_ports) {
  const ib::ib_fabric f = parsed(
      "CA     4  1 0x00aa000000000101 4x EDR - SW    12 10 0xbb00000000000100 ( 'node1 HCA-1' - 'leaf'a' )\n"
      "CA     5  2 0x00aa000000000102 4x EDR - SW    12 11 0xbb00000000000100 ( 'node1 HCA-1' - 'leaf'a' )\n"
      "SW    12 10 0xbb00000000000100 4x EDR - CA     4  1 0x00aa000000000101 ( 'leaf'a' - 'node1 HCA-1' )\n"
      "SW    12 11 0xbb00000000000100 4x EDR - CA     5  2 0x00aa000000000102 ( 'leaf'a' - 'node1 HCA-1' )\n"
      "SW    12 12 0xbb00000000000100 4x ???                                    'leaf'a'\n"
      "SW    12 13 0xbb00000000000100 ?? SDR                                    'leaf'a'\n");
  ASSERT_EQ(f.devices.size(), 2U);
  expect_mutual(f);
  EXPECT_TRUE(f.findings.empty());
  EXPECT_EQ(cables(f), 2U);
  const ib::ib_device& host = f.devices[0];  // two GUIDs of ports, one adapter by its description
  EXPECT_EQ(host.kind, ib_kind::channel_adapter);
  EXPECT_FALSE(host.guid);
  ASSERT_EQ(host.ports.size(), 2U);
  EXPECT_EQ(host.ports[1].guid, 0xaa000000000102U);
  EXPECT_EQ(host.ports[1].lid, 5U);
  const ib::ib_device& leaf = f.devices[1];
  EXPECT_EQ(leaf.description, "leaf'a");
  EXPECT_EQ(leaf.guid, 0xbb00000000000100U);
  EXPECT_EQ(leaf.lid, 12U);
  ASSERT_EQ(leaf.ports.size(), 4U);
  EXPECT_FALSE(leaf.ports[2].peer);
  EXPECT_EQ(leaf.ports[2].speed, ib_speed::unknown);
}

TEST(ibnetdiscover, does_not_join_adapters_that_share_a_description) {
  const ib::ib_fabric f = parsed(
      "CA 4 1 0x00aa000000000101 4x EDR - SW 12 10 0xbb00000000000100 ( 'node1 HCA-1' - 'leaf' )\n"
      "CA 5 1 0x00aa000000000201 4x EDR - SW 12 11 0xbb00000000000100 ( 'node1 HCA-1' - 'leaf' )\n"
      "CA 6 1 0x00aa000000000301 4x EDR - SW 12 13 0xbb00000000000100 ( 'An Adapter Type' - 'leaf' )\n"
      "CA 7 2 0x00aa000000000402 4x EDR - SW 12 14 0xbb00000000000100 ( 'An Adapter Type' - 'leaf' )\n");
  EXPECT_EQ(f.devices.size(), 5U);
}

TEST(ibnetdiscover, reads_the_list_of_nodes) {
  const ib::ib_fabric f = parsed(
      "Ca\t : 0x00aa000000000100 ports 2 devid 0x1021 vendid 0x2c9 \"node1 mlx5_0\"\n"
      "Switch\t : 0xbb00000000000100 ports 65 devid 0xd2f2 vendid 0x2c9 \"leaf \"a\"\"\n");
  ASSERT_EQ(f.devices.size(), 2U);
  EXPECT_EQ(f.devices[0].kind, ib_kind::channel_adapter);
  EXPECT_EQ(f.devices[1].kind, ib_kind::switch_device);
  EXPECT_EQ(f.devices[1].port_count, 65U);
  EXPECT_EQ(f.devices[1].description, "leaf \"a\"");
}

TEST(ibnetdiscover, refuses_what_breaks_off_with_the_line) {
  const std::string head = "Switch 8 \"S-bb00000000000001\" # \"a\"\n";
  for (const char* broken :
       {"[1", "[1]x", "[1] \"S-bb0000", "[1] \"b\"", "[1] \"b\"[", "[1] \"b\"[2", "[1] \"b\"[256]", "[300] \"b\"[1]",
        "[1] \"\"[1]", "[1](zz) \"b\"[1]", "[1](12 \"b\"[1]", "[1] \"b\"[1](", "[1] \"b\"[1] junk"}) {
    const tc::failure why = refused(head + broken);
    EXPECT_EQ(why.code, tc::errc::malformed_input) << broken;
    EXPECT_EQ(why.what.rfind("f.txt line 2: expected ", 0), 0U) << why.what;
  }
  EXPECT_EQ(refused("[1] \"b\"[1]\n").what.rfind("f.txt line 1: ", 0), 0U);  // no record above
  EXPECT_EQ(refused(head + "switchguid=xyz").what.rfind("f.txt line 2: ", 0), 0U);
  EXPECT_EQ(refused(head + "Switch 8 \"cut").what.rfind("f.txt line 2: ", 0), 0U);
  EXPECT_EQ(refused("SW 12 3 0xbb00000000000001 4x EDR 'a'\nSW 12 4 0xbb0000").what.rfind("f.txt line 2: ", 0), 0U);
}

TEST(ibnetdiscover, refuses_texts_without_a_fabric) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "hello\n", "SwitchName=a Nodes=b\n"}) {
    EXPECT_FALSE(ib::looks_like_ibnetdiscover(text)) << text;
    EXPECT_EQ(refused(text).code, tc::errc::malformed_input);
  }
}

TEST(ibnetdiscover, reads_back_generated_fabrics_of_all_sizes) {
  for (const std::uint32_t leaves : {1U, 2U, 3U, 5U, 8U, 17U})
    for (const std::uint32_t hosts : {0U, 1U, 7U})
      for (const bool reducing : {false, true}) {
        const fabrics::shape s{leaves, hosts, 3, 2, "4xHDR", reducing};
        const ib::ib_fabric f = parsed(fabrics::ibnetdiscover_text(s));
        EXPECT_TRUE(f.findings.empty());
        EXPECT_EQ(2 * cables(f), fabrics::ports(s));
        EXPECT_EQ(f.devices.size(), leaves + 3 + leaves * hosts + (reducing ? leaves + 3 : 0));
        expect_mutual(f);
        const ib::ib_fabric net = parsed(fabrics::ibsim_text(s));
        EXPECT_TRUE(net.findings.empty());
        EXPECT_EQ(cables(net), leaves * hosts + leaves * 6);
      }
}
