// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/topo/affinity.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace tc = topocoll;
using tc::topo::affinity_of;
using tc::topo::path_class;
using topocoll_test::link_kind;
using topocoll_test::node_kind;
using topocoll_test::parts;

namespace {

/// A NIC with one port below `above`.
tc::node_id port_below(parts& p, tc::node_id above, std::uint32_t i, double gigabytes_per_second = 50,
                       const std::string& host = "h") {
  const tc::node_id nic = p.nic(i, host);
  p.pcie(above, nic);
  const tc::node_id port = p.port(i, 1, host);
  p.join(nic, port, link_kind::internal, gigabytes_per_second);
  return port;
}
std::vector<tc::node_id> chosen(const tc::topo::affinity& a) {
  std::vector<tc::node_id> all;
  for (const auto& g : a.gpus) all.push_back(g.chosen.value());
  return all;
}

}  // namespace

TEST(affinity, of_a_graph_without_gpus_is_empty) {
  parts p;
  p.pcie(p.cpu(0), p.nic(0));
  const auto a = affinity_of(p.graph());
  EXPECT_TRUE(a.gpus.empty());
  EXPECT_EQ(a.rails, 0U);
  EXPECT_EQ(a.gpus_per_nic, 0U);
  EXPECT_EQ(a.unaffiliated.size(), 1U);
}

TEST(affinity, of_a_gpu_without_nics_chooses_none) {
  parts p;
  p.pcie(p.cpu(0), p.gpu(0));
  const auto a = affinity_of(p.graph());
  ASSERT_EQ(a.gpus.size(), 1U);
  EXPECT_FALSE(a.gpus[0].chosen);
  EXPECT_EQ(a.gpus[0].distance, path_class::DIS);
}

TEST(affinity, prefers_the_nic_behind_the_same_switch) {
  parts p;
  const auto cpu = p.cpu(0);
  const auto far = port_below(p, cpu, 0, 100);  // faster, but farther
  const auto bridge = p.bridge("0000:10:00.0");
  p.pcie(cpu, bridge);
  const auto gpu = p.gpu(0);
  p.pcie(bridge, gpu);
  const auto near = port_below(p, bridge, 1);
  const auto a = affinity_of(p.graph());
  EXPECT_EQ(a.gpus[0].gpu, gpu);
  EXPECT_EQ(a.gpus[0].distance, path_class::PIX);
  EXPECT_EQ(a.gpus[0].nearest, (std::vector<tc::node_id>{near}));
  EXPECT_TRUE(a.unaffiliated.empty());
  EXPECT_NE(a.gpus[0].chosen, far);
}

TEST(affinity, lets_gpus_with_the_same_choices_take_turns) {
  for (const std::uint32_t gpus : {1U, 2U, 3U, 5U, 7U, 8U, 17U}) {
    parts p;
    const auto cpu = p.cpu(0);
    for (std::uint32_t i = 0; i < gpus; ++i) p.pcie(cpu, p.gpu(i));
    std::vector<tc::node_id> ports;
    for (std::uint32_t i = 0; i < 3; ++i) ports.push_back(port_below(p, cpu, i));
    const auto a = affinity_of(p.graph());
    for (std::uint32_t i = 0; i < gpus; ++i) {
      EXPECT_EQ(a.gpus[i].nearest, ports);
      EXPECT_EQ(a.gpus[i].chosen, ports[i % 3]);
    }
    EXPECT_EQ(a.rails, std::min(gpus, 3U));
    EXPECT_EQ(a.gpus_per_nic, (gpus + 2) / 3);
  }
}

TEST(affinity, lets_a_gpu_with_one_choice_go_before_those_with_more) {
  parts p;
  const auto cpu = p.cpu(0);
  const auto bridge = p.bridge("0000:10:00.0");
  p.pcie(cpu, bridge);
  p.pcie(cpu, p.gpu(0));     // PHB to both
  p.pcie(bridge, p.gpu(1));  // PIX to the first
  const auto first = port_below(p, bridge, 0);
  const auto second = port_below(p, cpu, 1);
  EXPECT_EQ(chosen(affinity_of(p.graph())), (std::vector<tc::node_id>{second, first}));
}

TEST(affinity, prefers_the_faster_of_two_equally_near) {
  parts p;
  const auto cpu = p.cpu(0);
  p.pcie(cpu, p.gpu(0));
  port_below(p, cpu, 0, 3);
  const auto fast = port_below(p, cpu, 1, 50);
  EXPECT_EQ(affinity_of(p.graph()).gpus[0].nearest, (std::vector<tc::node_id>{fast}));
}

TEST(affinity, prefers_the_same_host_bridge_where_it_is_known) {
  parts p;
  const auto cpu = p.cpu(0);
  const auto gpu = p.gpu(0);
  p.pcie(cpu, gpu);
  const auto other = port_below(p, cpu, 0);
  const auto same = port_below(p, cpu, 1);
  EXPECT_EQ(affinity_of(p.graph()).gpus[0].nearest, (std::vector<tc::node_id>{other, same}));
  p.f.nodes[gpu.value].facts = {{"root_port", "0000:15:01.0"}};
  p.f.nodes[other.value - 1].facts = {{"root_port", "0000:37:01.0"}};
  p.f.nodes[same.value - 1].facts = {{"root_port", "0000:15:02.0"}};
  EXPECT_EQ(affinity_of(p.graph()).gpus[0].nearest, (std::vector<tc::node_id>{same}));
}

TEST(affinity, leaves_out_what_nobody_is_near_to_what_is_dead_and_what_is_made_up) {
  parts p;
  const auto near = p.cpu(0);
  const auto far = p.cpu(1);
  p.join(near, far, link_kind::cpu, 10);
  p.pcie(near, p.gpu(0));
  const auto own = port_below(p, near, 0);
  const auto distant = port_below(p, far, 1);
  const auto made_up = port_below(p, near, 2, 90);
  p.f.nodes[made_up.value].facts = {{"virtual", "1"}};
  const auto dead = port_below(p, near, 3, 0);
  const auto a = affinity_of(p.graph());
  EXPECT_EQ(a.gpus[0].nearest, (std::vector<tc::node_id>{own}));
  EXPECT_EQ(a.unaffiliated, (std::vector<tc::node_id>{distant, dead}));
}

TEST(affinity, takes_a_nic_without_ports_as_one_interface) {
  parts p;
  const auto cpu = p.cpu(0);
  p.pcie(cpu, p.gpu(0));
  const auto nic = p.nic(0);
  p.pcie(cpu, nic);
  EXPECT_EQ(affinity_of(p.graph()).gpus[0].chosen, nic);
}

TEST(affinity, stays_within_the_host) {
  parts p;
  for (const char* host : {"a", "b"}) {
    const auto cpu = p.cpu(0, host);
    p.pcie(cpu, p.gpu(0, host));
    p.pcie(cpu, p.gpu(1, host));
    port_below(p, cpu, 0, 50, host);
  }
  const auto leaf = p.network(node_kind::leaf, 0);
  const auto g0 = p.graph();
  for (const tc::node_id port : g0.all(node_kind::nic_port)) p.join(port, leaf, link_kind::infiniband, 50);
  const auto g = p.graph();
  const auto a = affinity_of(g);
  ASSERT_EQ(a.gpus.size(), 4U);
  for (const auto& gpu : a.gpus) EXPECT_EQ(g.at(gpu.chosen.value()).host, g.at(gpu.gpu).host);
  EXPECT_EQ(a.used.size(), 2U);
  EXPECT_EQ(a.rails, 1U);
  EXPECT_EQ(a.gpus_per_nic, 2U);
}
