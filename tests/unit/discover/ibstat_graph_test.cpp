// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <topocoll/discover/ibstat_file.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

tc::topo::fragment built(const std::string& text) {
  const auto adapters = tc::read::parse_ibstat(text, "s.txt");
  EXPECT_TRUE(adapters) << adapters.error().message();
  if (!adapters) return {};
  auto f = tc::fragment_of(*adapters, {.host = "node7"}, "s.txt");
  EXPECT_TRUE(f);
  if (!f) return {};
  EXPECT_TRUE(tc::topo::graph::from(*f));
  for (const tc::topo::node& n : f->nodes) EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
  for (const tc::topo::link& l : f->links) EXPECT_TRUE(l.how < tc::trust::derived || !l.reason.empty());
  return *f;
}
std::string port_text(const std::string& name, const std::string& state, const std::string& rate,
                      const std::string& layer) {
  return "CA '" + name + "'\n\tNumber of ports: 1\n\tNode GUID: 0xaa01\n\tPort 1:\n\t\tState: " + state +
         "\n\t\tPhysical state: LinkUp\n\t\tRate: " + rate +
         "\n\t\tBase lid: 7\n\t\tPort GUID: 0xaa02\n\t\tLink layer: " + layer + "\n";
}
const tc::topo::link& port_link(const tc::topo::fragment& f) { return f.links.at(0); }

}  // namespace

TEST(ibstat_graph, gives_adapters_and_ports_with_their_identities) {
  const tc::topo::fragment f =
      built(port_text("mlx5_3", "Active", "400", "InfiniBand") + port_text("mlx5_4", "Active", "100", "Ethernet"));
  ASSERT_EQ(f.nodes.size(), 4U);
  EXPECT_EQ(f.nodes[0].kind, node_kind::nic);
  EXPECT_EQ(f.nodes[0].key, "node7/net:mlx5_3");
  EXPECT_EQ(f.nodes[0].host, "node7");
  EXPECT_EQ(f.nodes[0].index, 3U);
  EXPECT_EQ(f.nodes[0].facts.front(), (std::pair<std::string, std::string>{"node_guid", "0x000000000000aa01"}));
  EXPECT_EQ(f.nodes[1].kind, node_kind::nic_port);
  EXPECT_EQ(f.nodes[1].key, "node7/net:mlx5_3/1");
  EXPECT_TRUE(std::any_of(f.nodes[1].facts.begin(), f.nodes[1].facts.end(),
                          [](const auto& x) { return x.first == "port_guid" && x.second == "0x000000000000aa02"; }));
  EXPECT_EQ(port_link(f).capacity.value, 50e9);
  EXPECT_EQ(port_link(f).how, tc::trust::reported);
  EXPECT_TRUE(f.findings.empty());
}

TEST(ibstat_graph, takes_line_coding_from_slow_infiniband_rates_alone) {
  const auto capacity = [](const char* rate, const char* layer) {
    return port_link(built(port_text("a_0", "Active", rate, layer))).capacity.value / 1.25e8;
  };
  EXPECT_EQ(capacity("10", "InfiniBand"), 8);
  EXPECT_EQ(capacity("40", "InfiniBand"), 32);
  EXPECT_EQ(capacity("40 (FDR10)", "InfiniBand"), 40);
  EXPECT_NEAR(capacity("56", "InfiniBand"), 54.54, 0.01);
  EXPECT_EQ(capacity("100", "InfiniBand"), 100);
  EXPECT_EQ(capacity("40", "Ethernet"), 40);
}

TEST(ibstat_graph, gives_nothing_to_ports_that_are_not_active) {
  for (const char* state : {"Down", "Initializing", "Armed"}) {
    const tc::topo::fragment f = built(port_text("mlx5_0", state, "400", "InfiniBand"));
    EXPECT_EQ(port_link(f).capacity.value, 0) << state;
    EXPECT_FALSE(port_link(f).current);
    ASSERT_EQ(f.findings.size(), 1U);
    EXPECT_EQ(f.findings[0].level, tc::severity::warning);
    EXPECT_NE(f.findings[0].evidence.find("mlx5_0 port 1"), std::string::npos);
  }
}

TEST(ibstat_graph, doubts_ports_without_rate_or_state) {
  const tc::topo::fragment f = built("CA 'mlx5_0'\n\tPort 1:\n\t\tLink layer: InfiniBand\n");
  EXPECT_EQ(port_link(f).how, tc::trust::assumed);
  EXPECT_EQ(port_link(f).capacity.value, tc::unknown_port_rate.value);
  EXPECT_EQ(f.findings.size(), 2U);
}

TEST(ibstat_graph, keeps_adapters_of_one_name_apart) {
  const tc::topo::fragment f =
      built(port_text("mlx5_0", "Active", "100", "InfiniBand") + port_text("mlx5_0", "Active", "100", "InfiniBand"));
  EXPECT_EQ(f.nodes.size(), 4U);
  EXPECT_FALSE(f.findings.empty());
}

TEST(ibstat_graph, file_fails_with_a_reason_when_it_is_not_there) {
  EXPECT_EQ(tc::ibstat_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
}
