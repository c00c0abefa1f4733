// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/topo/matrix.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace tc = topocoll;
using tc::topo::matrix_text;
using topocoll_test::link_kind;
using topocoll_test::node_kind;
using topocoll_test::parts;

namespace {

/// The rows before the legend.
std::string rows(const tc::topo::graph& g, const std::string& host = {}) {
  const auto text = matrix_text(g, host);
  EXPECT_TRUE(text) << (text ? "" : text.error().what);
  return text ? text->substr(0, text->find("\n\n") + 1) : std::string();
}

}  // namespace

TEST(matrix_text, shows_classes_affinities_and_names) {
  parts p;
  const auto near = p.cpu(0);
  const auto far = p.cpu(1);
  p.join(near, far, link_kind::cpu, 10);
  p.f.nodes[near.value].numa = 0;
  p.f.nodes[near.value].facts = {{"cpus", "0-7"}};
  const auto bridge = p.bridge("0000:10:00.0");
  p.pcie(near, bridge);
  const auto first = p.gpu(0);
  const auto second = p.gpu(1);
  p.f.nodes[first.value].numa = 0;
  p.pcie(bridge, first);
  p.pcie(far, second);
  const auto nic = p.nic(0);
  p.pcie(bridge, nic);
  p.join(nic, p.port(0, 1), link_kind::internal, 25);
  p.join(nic, p.port(0, 2), link_kind::internal, 25);
  const auto g = p.graph();
  EXPECT_EQ(rows(g),
            "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
            "GPU0\t X \tSYS\tPIX\tPIX\t0-7\t0\t\tN/A\n"
            "GPU1\tSYS\t X \tSYS\tSYS\t\tN/A\t\tN/A\n"
            "NIC0\tPIX\tSYS\t X \tPIX\n"
            "NIC1\tPIX\tSYS\tPIX\t X \n");
  EXPECT_NE(matrix_text(g)->find("  NIC1: mlx5_0_2\n"), std::string::npos);
}

TEST(matrix_text, counts_bonded_links_of_pairs_and_of_switches) {
  parts p;
  for (std::uint32_t i = 0; i < 4; ++i) p.gpu(i);
  const auto link = [&](std::uint32_t a, std::uint32_t b, std::uint32_t lanes, link_kind kind = link_kind::nvlink) {
    const auto e = p.join({a}, {b}, kind, 25);
    p.f.links[e.value].lanes = p.f.links[e.value + 1].lanes = lanes;
  };
  const auto plane = p.add(node_kind::nvswitch, "nvswitch", "NVSwitch");
  link(0, 1, 2);
  link(0, 1, 1);  // a second bundle
  link(1, plane.value, 18);
  link(2, plane.value, 16);
  link(0, 3, 3, link_kind::xgmi);
  link(2, 3, 0);
  EXPECT_EQ(rows(p.graph()),
            "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
            "GPU0\t X \tNV3\tN/A\tXGMI\t\tN/A\t\tN/A\n"
            "GPU1\tNV3\t X \tNV16\tN/A\t\tN/A\t\tN/A\n"
            "GPU2\tN/A\tNV16\t X \tNV\t\tN/A\t\tN/A\n"
            "GPU3\tXGMI\tN/A\tNV\t X \t\tN/A\t\tN/A\n");
}

TEST(matrix_text, tells_node_from_phb_where_host_bridges_are_known) {
  parts p;
  const auto cpu = p.cpu(0);
  for (std::uint32_t i = 0; i < 3; ++i) p.pcie(cpu, p.gpu(i));
  p.f.nodes[1].facts = {{"host_bridge", "a"}};
  p.f.nodes[2].facts = {{"host_bridge", "b"}};
  const std::string text = rows(p.graph());
  EXPECT_NE(text.find("GPU0\t X \tNODE\tPHB"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU2\tPHB\tPHB\t X "), std::string::npos) << text;
}

TEST(matrix_text, orders_gpus_by_their_numbers_and_counts_where_they_clash) {
  parts p;
  const auto a = p.gpu(5);
  const auto b = p.gpu(2);
  p.join(a, b, link_kind::nvlink, 25);
  EXPECT_EQ(rows(p.graph()).substr(0, 10), "\tGPU2\tGPU5");
  p.f.nodes[a.value].index = 2;
  EXPECT_EQ(rows(p.graph()).substr(0, 10), "\tGPU0\tGPU1");
}

TEST(matrix_text, shows_one_host) {
  parts p;
  p.gpu(0, "a");
  p.gpu(1, "a");
  p.gpu(3, "b");
  const auto g = p.graph();
  EXPECT_EQ(matrix_text(g).error().code, tc::errc::invalid_argument);
  EXPECT_EQ(matrix_text(g, "c").error().code, tc::errc::not_found);
  EXPECT_EQ(rows(g, "b").substr(0, 6), "\tGPU3\t");
  EXPECT_EQ(matrix_text(tc::topo::graph{}).error().code, tc::errc::invalid_argument);
}

TEST(matrix_text, turns_a_mask_of_processors_into_a_list) {
  const auto list = [](const char* mask) { return tc::topo::detail::processors_of_mask(mask); };
  EXPECT_EQ(list("f"), "0-3");
  EXPECT_EQ(list("10f"), "0-3,8");
  EXPECT_EQ(list("1,80000001"), "0,31-32");
  EXPECT_EQ(list("ffff,f00000ff,fff00000"), "20-39,60-79");
  EXPECT_EQ(list(""), "");
  EXPECT_EQ(list("0-3"), "");
  EXPECT_EQ(list("fffffffff"), "");
  parts p;
  const auto cpu = p.cpu(3);
  p.f.nodes[cpu.value].numa = 3;
  p.f.nodes[cpu.value].facts = {{"affinity", "ff0"}};
  const auto gpu = p.gpu(0);
  p.f.nodes[gpu.value].numa = 3;
  p.pcie(cpu, gpu);
  EXPECT_NE(rows(p.graph()).find("GPU0\t X \t4-11\t3\t\tN/A"), std::string::npos);
}
