// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/ibstat.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace ib = topocoll::read;
using ib::ib_state;

namespace {

const std::string two_adapters = R"(CA 'mlx5_0'
	CA type: MT4711
	Number of ports: 1
	Firmware version: 28.1.2
	Hardware version: 0
	Node GUID: 0x00aa000000000100
	System image GUID: 0x00aa000000000100
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Base lid: 17
		LMC: 0
		SM lid: 1
		Capability mask: 0xa651e848
		Port GUID: 0x00aa000000000101
		Link layer: InfiniBand
CA 'bond_mlx_4'
	Number of ports: 2
	Node GUID: 0x0000000000000000
	Port 1:
		State: Down
		Physical state: Polling
		Rate: 40 (FDR10)
		Base lid: 0
		Port GUID: 0xaa000000000401
		Link layer: IB
	Port 2:
		State: Initializing
		Physical state: LinkUp
		Rate: 2.5
		Link layer: Ethernet
)";

ib::ib_adapters parsed(const std::string& text) {
  EXPECT_TRUE(ib::looks_like_ibstat(text));
  auto a = ib::parse_ibstat(text, "s.txt");
  EXPECT_TRUE(a) << a.error().message();
  return a ? *a : ib::ib_adapters{};
}

}  // namespace

TEST(ibstat, reads_adapters_and_ports) {
  const ib::ib_adapters all = parsed(two_adapters);
  ASSERT_EQ(all.adapters.size(), 2U);
  EXPECT_TRUE(all.findings.empty());
  const ib::ib_adapter& a = all.adapters[0];
  EXPECT_EQ(a.name, "mlx5_0");
  EXPECT_EQ(a.type, "MT4711");
  EXPECT_EQ(a.firmware, "28.1.2");
  EXPECT_EQ(a.node_guid, 0xaa000000000100U);
  EXPECT_EQ(a.port_count, 1U);
  ASSERT_EQ(a.ports.size(), 1U);
  EXPECT_EQ(a.ports[0].number, 1U);
  EXPECT_EQ(a.ports[0].state, ib_state::active);
  EXPECT_EQ(a.ports[0].rate->value, 50e9);
  EXPECT_EQ(a.ports[0].lid, 17U);
  EXPECT_EQ(a.ports[0].guid, 0xaa000000000101U);
  EXPECT_EQ(a.ports[0].layer, "InfiniBand");
  const ib::ib_adapter& b = all.adapters[1];
  EXPECT_FALSE(b.node_guid);  // 0 is none
  ASSERT_EQ(b.ports.size(), 2U);
  EXPECT_EQ(b.ports[0].state, ib_state::down);
  EXPECT_EQ(b.ports[0].speed, ib::ib_speed::fdr10);
  EXPECT_FALSE(b.ports[0].lid);
  EXPECT_EQ(b.ports[0].layer, "InfiniBand");
  EXPECT_EQ(b.ports[1].state, ib_state::initialize);
  EXPECT_EQ(b.ports[1].rate->value, 2.5 * 1.25e8);
  EXPECT_EQ(b.ports[1].layer, "Ethernet");
}

TEST(ibstat, reads_one_port_alone_and_other_line_ends) {
  std::string crlf = "\xef\xbb\xbf";
  for (const char c : two_adapters) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parsed(crlf).adapters.size(), 2U);
  const ib::ib_adapters one = parsed("$ ibstat mlx5_0 2\nCA: 'mlx5_0'\nPort 2:\nState: Armed\nRate: 100\n");
  ASSERT_EQ(one.adapters.size(), 1U);
  EXPECT_EQ(one.adapters[0].ports[0].number, 2U);
  EXPECT_EQ(one.adapters[0].ports[0].state, ib_state::armed);
  ASSERT_EQ(one.findings.size(), 1U);  // the prompt
}

TEST(ibstat, reads_ibv_devinfo_too) {
  const ib::ib_adapters all = parsed(R"(hca_id:	mlx5_3
	transport:			InfiniBand (0)
	fw_ver:				20.28.1002
	node_guid:			00aa:0000:0000:0100
	sys_image_guid:			00aa:0000:0000:0100
	phys_port_cnt:			1
		port:	1
			state:			PORT_ACTIVE (4)
			max_mtu:		4096 (5)
			sm_lid:			1
			port_lid:		17
			link_layer:		InfiniBand
			active_width:		4X (2)
			active_speed:		50.0 Gbps (64)
			phys_state:		LINK_UP (5)
)");
  ASSERT_EQ(all.adapters.size(), 1U);
  const ib::ib_adapter& a = all.adapters[0];
  EXPECT_EQ(a.name, "mlx5_3");
  EXPECT_EQ(a.node_guid, 0xaa000000000100U);
  ASSERT_EQ(a.ports.size(), 1U);
  EXPECT_EQ(a.ports[0].state, ib_state::active);
  EXPECT_EQ(a.ports[0].lid, 17U);
  EXPECT_EQ(a.ports[0].width, 4U);
  EXPECT_EQ(a.ports[0].speed, ib::ib_speed::hdr);
  EXPECT_FALSE(a.ports[0].rate);
}

TEST(ibstat, refuses_values_that_are_none_with_the_line) {
  for (const char* broken : {"Node GUID: 0xzz", "Node GUID: 0x12345678901234567", "Port x:\n", "Port 300:",
                             "Number of ports: many", "Port 1:\n\tRate: fast", "Port 1:\n\tBase lid: -1"}) {
    const auto a = ib::parse_ibstat(std::string("CA 'mlx5_0'\n\t") + broken, "s.txt");
    ASSERT_FALSE(a) << broken;
    EXPECT_EQ(a.error().code, tc::errc::malformed_input);
    EXPECT_EQ(a.error().what.rfind("s.txt line ", 0), 0U) << a.error().what;
  }
}

TEST(ibstat, refuses_texts_without_adapters) {
  for (const char* text :
       {"", "State: Active\n", "CA: node1 HCA-1:\n", "CA 'a' 'b'\n\tState: Active\n", "CA 'mlx5_0\n"}) {
    EXPECT_FALSE(ib::looks_like_ibstat(text)) << text;
    EXPECT_FALSE(ib::parse_ibstat(text, "s.txt")) << text;
  }
}
