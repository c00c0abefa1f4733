// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <topocoll/topo/kinds.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
using topo::link_kind;
using topo::node_kind;
using topo::path_class;

TEST(kinds, have_their_own_words) {
  EXPECT_EQ(to_string(node_kind::gpu), std::string_view("gpu"));
  EXPECT_EQ(to_string(node_kind::core_switch), std::string_view("core_switch"));
  EXPECT_EQ(to_string(link_kind::pcie), std::string_view("pcie"));
  EXPECT_EQ(to_string(link_kind::ethernet), std::string_view("ethernet"));
  EXPECT_EQ(to_string(path_class::LOC), std::string_view("LOC"));
  EXPECT_EQ(to_string(path_class::DIS), std::string_view("DIS"));
}

TEST(path_class, is_ordered_from_near_to_far_as_in_nccl) {
  constexpr path_class order[] = {path_class::LOC, path_class::NVL, path_class::NVB, path_class::C2C,
                                  path_class::PIX, path_class::PXB, path_class::P2C, path_class::PXN,
                                  path_class::PHB, path_class::SYS, path_class::NET, path_class::DIS};
  for (std::size_t i = 1; i < 12; ++i) EXPECT_LT(order[i - 1], order[i]);
}

TEST(switches, only_pass_data_on) {
  for (const node_kind k : {node_kind::pcie_switch, node_kind::pcie_root, node_kind::nvswitch, node_kind::leaf,
                            node_kind::spine, node_kind::core_switch})
    EXPECT_TRUE(topo::is_switch(k));
  for (const node_kind k : {node_kind::gpu, node_kind::cpu, node_kind::host_memory, node_kind::pcie_device,
                            node_kind::nic, node_kind::nic_port})
    EXPECT_FALSE(topo::is_switch(k));
}
