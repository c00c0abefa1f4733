// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/topo/groups.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;

namespace {

/// A NIC with one port on a leaf.
node_id plug(parts& p, const std::string& host, std::uint32_t i, node_id leaf) {
  const node_id nic = p.nic(i, host);
  const node_id port = p.port(i, 1, host);
  p.join(nic, port, link_kind::internal, 50);
  p.join(port, leaf, link_kind::infiniband, 50);
  return nic;
}

}  // namespace

TEST(hosts, gather_nodes_that_do_not_follow_each_other) {
  parts p;
  const node_id a0 = p.gpu(0, "b");
  const node_id b0 = p.gpu(0, "a");
  const node_id leaf = p.network(node_kind::leaf, 0);
  const node_id a1 = p.gpu(1, "b");
  static_cast<void>(leaf);
  const auto all = topo::hosts(p.graph());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "b");
  EXPECT_EQ(all[0].nodes, (std::vector<node_id>{a0, a1}));
  EXPECT_EQ(all[1].nodes, (std::vector<node_id>{b0}));
}

TEST(hosts, of_nothing_are_none) { EXPECT_TRUE(topo::hosts(topo::graph{}).empty()); }

TEST(nvlink_islands, are_joined_by_switch_by_chain_and_across_hosts) {
  parts p;
  std::vector<node_id> gpu;
  for (std::uint32_t i = 0; i < 7; ++i) gpu.push_back(p.gpu(i, i < 4 ? "a" : "b"));
  const node_id plane = p.add(node_kind::nvswitch, "nvswitch:0", "", "");
  const node_id s = p.bridge("0000:18:00.0", node_kind::pcie_switch, "a");
  p.join(gpu[0], gpu[1], link_kind::nvlink, 50);
  p.join(gpu[1], gpu[2], link_kind::xgmi, 50);
  p.join(gpu[4], plane, link_kind::nvlink, 50);
  p.join(gpu[3], plane, link_kind::nvlink, 50);
  p.pcie(gpu[5], s);
  p.pcie(gpu[6], s);
  const auto islands = topo::nvlink_islands(p.graph());
  ASSERT_EQ(islands.size(), 4U);
  EXPECT_EQ(islands[0].nodes, (std::vector<node_id>{gpu[0], gpu[1], gpu[2]}));
  EXPECT_EQ(islands[1].nodes, (std::vector<node_id>{gpu[3], gpu[4]}));
  EXPECT_EQ(islands[2].nodes, (std::vector<node_id>{gpu[5]})) << "PCIe makes no island";
  EXPECT_EQ(islands[3].nodes, (std::vector<node_id>{gpu[6]}));
}

TEST(leaves, list_a_nic_once_however_many_ports_it_plugs_in) {
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  const node_id empty = p.network(node_kind::leaf, 1);
  static_cast<void>(empty);
  const node_id nic = plug(p, "a", 0, leaf);
  const node_id second = p.port(0, 2, "a");
  p.join(nic, second, link_kind::internal, 50);
  p.join(second, leaf, link_kind::infiniband, 50);
  const node_id bare = p.nic(0, "b");
  p.join(bare, leaf, link_kind::ethernet, 25);
  const auto all = topo::leaves(p.graph());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "leaf 0");
  EXPECT_EQ(all[0].nodes, (std::vector<node_id>{nic, bare}));
  EXPECT_TRUE(all[1].nodes.empty());
}

TEST(rails, of_a_rail_optimised_fabric_have_leaves_of_their_own) {
  for (const std::uint32_t hosts : {1U, 2U, 3U, 5U, 7U, 8U}) {
    parts p;
    std::vector<node_id> leaf;
    for (std::uint32_t r = 0; r < 3; ++r) leaf.push_back(p.network(node_kind::leaf, r));
    for (std::uint32_t h = 0; h < hosts; ++h)
      for (std::uint32_t r = 0; r < 3; ++r) plug(p, "h" + std::to_string(h), 2 - r, leaf[2 - r]);
    const auto g = p.graph();
    const auto rails = topo::rails(g);
    ASSERT_EQ(rails.size(), 3U);
    for (std::uint32_t r = 0; r < 3; ++r) {
      EXPECT_EQ(rails[r].index, r);
      EXPECT_FALSE(rails[r].shares_leaf);
      EXPECT_EQ(rails[r].leaves, (std::vector<node_id>{leaf[r]}));
      ASSERT_EQ(rails[r].nics.size(), hosts);
      for (const node_id nic : rails[r].nics) EXPECT_EQ(g.at(nic).index, r);
    }
  }
}

TEST(rails, that_meet_on_a_leaf_say_so) {
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  const node_id other = p.network(node_kind::leaf, 1);
  plug(p, "a", 0, leaf);
  plug(p, "a", 1, leaf);
  plug(p, "a", 2, other);
  const auto rails = topo::rails(p.graph());
  ASSERT_EQ(rails.size(), 3U);
  EXPECT_TRUE(rails[0].shares_leaf);
  EXPECT_TRUE(rails[1].shares_leaf);
  EXPECT_FALSE(rails[2].shares_leaf);
}

TEST(rails, leave_out_nics_without_a_cable_where_others_have_one) {
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  p.nic(0, "a");  // management
  const node_id data = plug(p, "a", 1, leaf);
  auto rails = topo::rails(p.graph());
  ASSERT_EQ(rails.size(), 1U);
  EXPECT_EQ(rails[0].nics, (std::vector<node_id>{data}));
  parts q;
  q.nic(0, "a");
  q.nic(1, "a");
  rails = topo::rails(q.graph());
  EXPECT_EQ(rails.size(), 2U) << "no cable is known at all";
  EXPECT_TRUE(rails[0].leaves.empty());
}
