// SPDX-License-Identifier: Apache-2.0
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;

TEST(summary, counts_each_kind) {
  parts p;
  const node_id cpu = p.cpu(0);
  p.memory(0);
  const node_id s = p.bridge("0000:18:00.0");
  p.bridge("0000:10:01.0", node_kind::pcie_root);
  p.add(node_kind::pcie_device, "pci:0000:19:00.0", "");
  const node_id gpu = p.gpu(0, "other");
  p.add(node_kind::nvswitch, "nvswitch", "");
  p.network(node_kind::leaf, 0);
  p.network(node_kind::spine, 0);
  p.network(node_kind::core_switch, 0);
  p.pcie(cpu, s);
  p.pcie(s, gpu);
  const topo::summary s2 = topo::summarize(p.graph());
  EXPECT_EQ(s2.hosts, 2U);
  EXPECT_EQ(s2.gpus, 1U);
  EXPECT_EQ(s2.nics, 0U);
  EXPECT_EQ(s2.numa_domains, 1U);
  EXPECT_EQ(s2.pcie_switches, 1U);
  EXPECT_EQ(s2.nvswitches, 1U);
  EXPECT_EQ(s2.switches, 3U);
  EXPECT_EQ(s2.links, 2U);
}

TEST(summary, counts_ports_where_an_adapter_shows_them_and_the_adapter_where_not) {
  parts p;
  const node_id two = p.nic(0);
  p.join(two, p.port(0, 1), link_kind::internal, 25);
  p.join(two, p.port(0, 2), link_kind::internal, 25);
  p.nic(1);
  EXPECT_EQ(topo::summarize(p.graph()).nics, 3U);
}

TEST(summary, counts_both_directions_once_parallel_links_each_and_a_single_direction_too) {
  parts p;
  const node_id a = p.network(node_kind::leaf, 0), b = p.network(node_kind::spine, 0),
                c = p.network(node_kind::spine, 1);
  for (int i = 0; i < 3; ++i) p.join(b, a, link_kind::infiniband, 50);
  p.join(a, b, link_kind::ethernet, 50);
  p.join(a, c, link_kind::infiniband, 50);
  p.f.links.pop_back();
  EXPECT_EQ(topo::summarize(p.graph()).links, 5U);
}

TEST(summary, of_nothing_is_nothing) {
  EXPECT_EQ(topo::summarize(topo::graph{}), topo::summary{});
  EXPECT_EQ(to_string(topo::summary{}), "nothing");
}

TEST(summary, is_a_line_with_singulars_and_plurals) {
  topo::summary s;
  s.hosts = 1;
  s.gpus = 8;
  s.nics = 1;
  s.pcie_switches = 4;
  s.switches = 1;
  EXPECT_EQ(to_string(s), "1 host, 8 GPUs, 1 NIC, 4 PCIe switches, 1 network switch");
}
