// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/detail/measurement_table.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/plan/nccl_model.hpp>
#include <gtest/gtest.h>

namespace plan = topocoll::plan;
using namespace topocoll::literals;
using plan::gpu_fabric;
using plan::nccl_algorithm;
using plan::nccl_arch;
using plan::nccl_channels;
using plan::nccl_machine;
using plan::network_kind;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;

namespace {

nccl_machine ampere(std::uint32_t nodes, std::uint32_t channels, double speed) {
  nccl_machine m;
  m.nodes = nodes;
  m.ranks = 8 * nodes;
  m.arch = nccl_arch::ampere;
  m.ring = {channels, speed, speed, true, true, false};
  m.tree = m.ring;
  return m;
}

}  // namespace

// By hand, from the formulas: one node of eight A100s, 12 channels of 20 GB/s.
TEST(nccl_predict, of_a_simple_ring_in_one_node_is_the_closed_form) {
  const auto p = plan::nccl_predict(ampere(1, 12, 20), collective_kind::all_reduce, 1_GiB).value();
  EXPECT_EQ(p.algorithm, nccl_algorithm::ring);
  EXPECT_EQ(p.protocol, plan::library_protocol::simple);
  const double us = 8.4 + 14 * 3.4 + (1 << 30) / (1e3 * 240 * 8 / 14);
  EXPECT_NEAR(p.time.value * 1e6, us, 1e-6 * us);
}

TEST(nccl_predict, of_an_all_gather_is_half_of_the_ring) {
  const auto p = plan::nccl_predict(ampere(1, 12, 20), collective_kind::all_gather, 1_GiB).value();
  const double us = 8.4 + 7 * 3.4 + (1 << 30) / (1e3 * 240 * 8 / 7);
  EXPECT_NEAR(p.time.value * 1e6, us, 1e-6 * us);
  EXPECT_EQ(plan::nccl_predict(ampere(1, 12, 20), collective_kind::reduce_scatter, 1_GiB)->time, p.time);
}

TEST(nccl_predict, takes_a_tree_for_small_arrays_of_many_nodes) {
  const auto p = plan::nccl_predict(ampere(16, 8, 24), collective_kind::all_reduce, 8_B).value();
  EXPECT_EQ(p.algorithm, nccl_algorithm::tree);
  EXPECT_EQ(p.protocol, plan::library_protocol::ll);
  EXPECT_NEAR(p.time.value * 1e6, 6.8 + 2 * (7 * 0.6 + 4 * 5.0), 0.01);
}

TEST(nccl_predict, plans_all_graphs_with_the_fewest_channels_of_any) {
  nccl_machine m = ampere(2, 8, 24);
  m.tree = {1, 0.1, 0.1, true, true, true};  // no balanced tree found
  const auto p = plan::nccl_predict(m, collective_kind::all_reduce, 1_GiB).value();
  EXPECT_NEAR((1 << 30) / p.time.value / 1e9 * 2 * 15 / 16, 24, 0.3);  // 192 were found
}

TEST(nccl_predict, refuses_what_it_does_not_model) {
  EXPECT_EQ(plan::nccl_predict(ampere(1, 12, 20), collective_kind::broadcast, 1_KiB).error().code, errc::unsupported);
  EXPECT_EQ(plan::nccl_predict(ampere(1, 0, 20), collective_kind::all_reduce, 1_KiB).error().code,
            errc::invalid_argument);
  nccl_machine m = ampere(1, 12, 20);
  m.ranks = 1;
  EXPECT_EQ(plan::nccl_predict(m, collective_kind::all_reduce, 1_KiB).error().code, errc::invalid_argument);
}

// What NCCL 2.28.9's own search finds: 12 x 20, 12 x 30 and 8 x 48, 16 x 45, 6 x 20 and 8 x 24.
TEST(nccl_machine_of, finds_the_channels_of_regular_machines) {
  const auto found = [](std::uint32_t generation, double links, std::uint32_t hosts, std::uint32_t nics, double gbps) {
    plan::machine_summary m;
    m.hosts = m.domains = hosts;
    m.ranks = 8 * hosts;
    m.fabric = gpu_fabric::nvswitch;
    m.generation = generation;
    m.gpu_links = {links * 1e9};
    m.gpus_in_mesh = 8;
    m.multicast = generation >= 4;
    m.network = hosts > 1 ? network_kind::infiniband : network_kind::none;
    m.nics = nics;
    m.nic_rate = {gbps * 1.25e8};
    return plan::nccl_machine_of(m).value();
  };
  const auto expect = [](const nccl_channels& c, std::uint32_t count, double speed) {
    EXPECT_EQ(c.count, count);
    EXPECT_DOUBLE_EQ(c.intra, speed);
  };
  expect(found(3, 300, 1, 0, 0).ring, 12, 20);
  expect(found(4, 450, 1, 0, 0).ring, 12, 30);
  expect(found(5, 900, 1, 0, 0).ring, 16, 45);
  expect(found(2, 150, 1, 0, 0).ring, 6, 20);
  expect(found(4, 450, 2, 8, 400).ring, 8, 48);
  expect(found(3, 300, 2, 8, 200).ring, 8, 24);
  expect(found(3, 300, 16, 4, 100).ring, 4, 12);
  expect(found(4, 450, 1, 0, 0).nvls, 8, 40);
  expect(found(5, 900, 1, 0, 0).nvls, 8, 80);
  expect(found(4, 450, 2, 8, 400).nvls, 8, 48);
  EXPECT_EQ(found(3, 300, 1, 0, 0).nvls.count, 0U);
}

// NCCL's own code was run on 219 topologies; its predictions at 8 MiB and 1 GiB must come out of the channels it found.
TEST(nccl_predict, agrees_with_the_code_of_nccl) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
  const auto text = topocoll::io::read_file(std::string(corpus) + "/anchors/nccl-graph.tsv");
  if (!text) GTEST_SKIP() << text.error().what;
  std::vector<std::string_view> names;
  unsigned compared = 0, apart = 0;
  for (const std::string_view line : topocoll::app::detail::cut_at(*text, '\n')) {
    if (line.empty()) continue;
    if (names.empty()) {
      names = topocoll::app::detail::cut_at(line, '\t');
      continue;
    }
    const topocoll::app::detail::table_line l(names, topocoll::app::detail::cut_at(line, '\t'));
    const auto gpus = l.number("gpus/node"), nodes = l.number("nodes"), ring = l.number("ring_nch");
    if (!gpus || !nodes || !ring || *ring < 1) continue;
    // Hosts that NCCL splits have other ranks and nodes than the table says: PCIe-only hosts with a NIC beside each GPU.
    if (*gpus <= 2) continue;
    nccl_machine m;
    m.nodes = static_cast<std::uint32_t>(*nodes);
    m.ranks = m.nodes * static_cast<std::uint32_t>(*gpus);
    const auto sm = static_cast<std::uint32_t>(*l.number("sm"));
    m.arch = plan::nccl_arch_of(sm);
    const auto channels = [&](const std::string& graph) {
      nccl_channels c;
      c.count = static_cast<std::uint32_t>(l.number(graph + "_nch").value_or(0));
      c.intra = l.number(graph + "_bwIntra").value_or(0);
      c.inter = l.number(graph + "_bwInter").value_or(0);
      const std::string_view intra = l.text(graph + "_typeIntra"), inter = l.text(graph + "_typeInter");
      c.over_nvlink = intra == "NVL" || intra == "LOC";
      const bool near = m.nodes == 1 || inter == "PIX" || inter == "PXB" || inter == "LOC" ||
                        (sm >= 90 && (inter == "PXN" || inter == "P2C"));
      c.ll128 = (c.over_nvlink || intra == "NVB") && near;
      c.tree_pattern = graph == "tree" && l.text("tree_pattern") == "3";
      return c;
    };
    m.ring = channels("ring");
    m.tree = channels("tree");
    m.nvls = channels("nvls");
    for (const auto& [size, column] : {std::pair<bytes, const char*>{8_MiB, "t_8MiB_us"}, {1_GiB, "t_1GiB_us"}}) {
      const auto expected = l.number(column);
      if (!expected) continue;
      double nearest = 1e9;
      for (const bool amd : {false, true}) {  // the table does not tell the maker of the CPU
        m.amd_cpu = amd;
        const double us = plan::nccl_predict(m, collective_kind::all_reduce, size)->time.value * 1e6;
        nearest = std::min(nearest, std::abs(us / *expected - 1));
      }
      ++compared;
      if (nearest > 0.002) {
        ++apart;
        ADD_FAILURE() << l.text("file") << " x " << m.nodes << ", " << column << ": off by " << 100 * nearest << " %";
      }
    }
  }
  EXPECT_GT(compared, 350U);
  EXPECT_EQ(apart, 0U);
}
