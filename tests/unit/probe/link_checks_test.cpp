// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/probe/link_checks.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace topo = topocoll::topo;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

// Line rates of x1, coded: PCIe base specifications.
double lane(std::uint32_t generation) {
  return generation == 3 ? 8e9 / 8 * 128 / 130 : (generation == 4 ? 16e9 / 8 * 128 / 130 : 32e9 / 8 * 128 / 130);
}

class machine {
 public:
  machine() {
    topo::node cpu;
    cpu.kind = topo::node_kind::cpu;
    cpu.key = "h/numa:0";
    cpu.name = "NUMA 0";
    cpu.host = "h";
    cpu_ = f_.add(cpu);
    f_.source = "test";
  }
  struct pcie {
    std::uint32_t generation, lanes, best_generation, best_lanes;
    tc::trust how = tc::trust::derived;
    double capacity = 1e9;
  };
  tc::node_id device(topo::node_kind kind, int number, std::optional<pcie> p, std::optional<std::uint32_t> numa = 0) {
    topo::node n;
    n.kind = kind;
    n.key = "h/pci:0000:0" + std::to_string(number) + ":00.0";
    n.name = (kind == topo::node_kind::gpu ? "GPU " : "NIC ") + std::to_string(number);
    n.host = "h";
    n.numa = numa;
    const tc::node_id v = f_.add(n);
    topo::link l;
    l.from = cpu_;
    l.to = v;
    l.kind = topo::link_kind::pcie;
    l.capacity = {1e9};
    if (p) {
      l.generation = p->generation;
      l.lanes = p->lanes;
      l.current = tc::bytes_per_second{lane(p->generation) * p->lanes};
      l.nominal = tc::bytes_per_second{lane(p->best_generation) * p->best_lanes};
      l.how = p->how;
      l.capacity = {p->capacity};
    }
    f_.join(l);
    return v;
  }
  void port(tc::node_id nic, int number, std::optional<tc::bytes_per_second> rate, bool rdma = true) {
    topo::node n;
    n.kind = topo::node_kind::nic_port;
    n.key = "h/net:dev" + std::to_string(number) + "/1";
    n.name = "dev" + std::to_string(number);
    n.host = "h";
    if (rdma) n.facts.emplace_back("layer", "InfiniBand");
    topo::link l;
    l.from = nic;
    l.kind = topo::link_kind::internal;
    l.to = f_.add(n);
    l.current = rate;
    l.capacity = rate.value_or(tc::bytes_per_second{});
    f_.join(l);
  }
  void nvlinks(tc::node_id a, tc::node_id b, std::uint32_t lanes) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = topo::link_kind::nvlink;
    l.lanes = lanes;
    l.capacity = {25e9 * lanes};
    f_.join(l);
  }
  tc::node_id second_domain() {
    topo::node cpu;
    cpu.kind = topo::node_kind::cpu;
    cpu.key = "h/numa:1";
    cpu.host = "h";
    return f_.add(cpu);
  }
  topo::graph graph() const { return topo::graph::from(f_).value(); }

 private:
  topo::fragment f_;
  tc::node_id cpu_;
};

const probe::verdict* find(const std::vector<probe::verdict>& all, const std::string& check) {
  for (const auto& v : all)
    if (v.check == check) return &v;
  return nullptr;
}

TEST(check_pcie_links, passes_links_at_their_best) {
  machine m;
  m.device(topo::node_kind::gpu, 1, machine::pcie{5, 16, 5, 16});
  m.device(topo::node_kind::nic, 2, machine::pcie{4, 16, 4, 16});
  const auto said = probe::check_pcie_links(m.graph());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].is, probe::state::healthy);
  EXPECT_EQ(said[0].how, tc::trust::reported);
  EXPECT_NE(said[0].sentence.find("2 PCIe links"), std::string::npos);
}

TEST(check_pcie_links, calls_lost_lanes_a_fault_even_when_idle) {
  machine m;
  m.device(topo::node_kind::nic, 1, machine::pcie{5, 8, 5, 16});
  const auto said = probe::check_pcie_links(m.graph());
  const auto* v = find(said, "pcie/width");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::degraded);
  EXPECT_EQ(v->headline, "PCIe x8 of x16 at NIC 1 (0000:01:00.0)");
  EXPECT_NE(v->sentence.find("8 of 16 PCIe lanes"), std::string::npos);
  EXPECT_FALSE(v->next_step.empty());
}

// An idle GPU at Gen1-like speed: generation 3 now, 5 at best, same width. The capacity is that of its best generation.
TEST(check_pcie_links, does_not_blame_an_idle_gpu_for_its_speed) {
  machine m;
  m.device(topo::node_kind::gpu, 1, machine::pcie{3, 16, 5, 16, tc::trust::assumed, 48e9});
  const auto said = probe::check_pcie_links(m.graph());
  const auto* v = find(said, "pcie/speed");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::suspect);
  EXPECT_NE(v->next_step.find("under load"), std::string::npos);
}

TEST(check_pcie_links, sees_lost_lanes_behind_a_low_idle_speed) {
  machine m;
  m.device(topo::node_kind::gpu, 1, machine::pcie{3, 8, 5, 16, tc::trust::assumed, 24e9});
  const auto said = probe::check_pcie_links(m.graph());
  const auto* v = find(said, "pcie/width");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::degraded);
  EXPECT_NE(v->headline.find("x8 of x16"), std::string::npos);
}

TEST(check_pcie_links, does_not_decide_between_lanes_and_speed_when_both_explain_it) {
  machine m;
  m.device(topo::node_kind::nic, 1, machine::pcie{4, 8, 4, 16});  // the same rate as Gen5 x8
  const auto said = probe::check_pcie_links(m.graph());
  const auto* v = find(said, "pcie/speed");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::suspect);
  EXPECT_NE(v->sentence.find("lanes or speed"), std::string::npos);
}

// Full width and half the rate: only the speed can be missing.
TEST(check_pcie_links, calls_a_low_rate_at_full_width_a_matter_of_speed) {
  machine m;
  m.device(topo::node_kind::nic, 1, machine::pcie{4, 16, 5, 16});
  const auto said = probe::check_pcie_links(m.graph());
  const auto* v = find(said, "pcie/speed");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::suspect);
  EXPECT_NE(v->sentence.find("both ends can Gen5 x16"), std::string::npos) << v->sentence;
}

TEST(check_pcie_links, is_not_measured_where_links_do_not_tell) {
  machine m;
  m.device(topo::node_kind::gpu, 1, std::nullopt);
  const auto said = probe::check_pcie_links(m.graph());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].is, probe::state::not_measured);
  EXPECT_EQ(said[0].headline, "PCIe link state not told");
  EXPECT_EQ(probe::check_pcie_links(machine().graph())[0].headline, "no PCIe device");
}

TEST(check_ports, blames_a_port_that_is_down_among_siblings_that_are_up) {
  machine m;
  for (int i = 1; i <= 4; ++i)
    m.port(m.device(topo::node_kind::nic, i, std::nullopt), i, i == 3 ? std::nullopt : std::optional(400_Gbps));
  const auto said = probe::check_ports(m.graph());
  const auto* v = find(said, "nic/port");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::degraded);
  EXPECT_NE(v->headline.find("dev3"), std::string::npos);
  EXPECT_NE(find(said, "nic/ports"), nullptr);
}

TEST(check_ports, does_not_blame_a_port_without_a_majority_of_siblings) {
  machine m;
  m.port(m.device(topo::node_kind::nic, 1, std::nullopt), 1, std::nullopt);
  const auto said = probe::check_ports(m.graph());
  const auto* v = find(said, "nic/port");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::suspect);
}

TEST(check_ports, blames_a_rate_below_that_of_the_siblings) {
  machine m;
  for (int i = 1; i <= 4; ++i) m.port(m.device(topo::node_kind::nic, i, std::nullopt), i, i == 2 ? 200_Gbps : 400_Gbps);
  const auto said = probe::check_ports(m.graph());
  const auto* v = find(said, "nic/rate");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->is, probe::state::degraded);
  EXPECT_NE(v->sentence.find("200 Gb/s"), std::string::npos);
  EXPECT_NE(v->sentence.find("400 Gb/s"), std::string::npos);
}

TEST(check_ports, says_that_there_is_no_rdma_port) {
  machine m;
  m.port(m.device(topo::node_kind::nic, 1, std::nullopt), 1, 10_Gbps, false);
  const auto said = probe::check_ports(m.graph());
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].is, probe::state::healthy);
  EXPECT_EQ(said[1].headline, "no RDMA port");
  EXPECT_EQ(probe::check_ports(machine().graph())[0].headline, "no RDMA port");
}

TEST(check_gpu_links, finds_the_gpu_with_fewer_links) {
  machine m;
  std::vector<tc::node_id> gpus;
  for (int i = 1; i <= 4; ++i) gpus.push_back(m.device(topo::node_kind::gpu, i, std::nullopt));
  // 1-2, 3-4 and 1-3 with four links, 2-4 with three: GPUs 2 and 4 have 7 of 8, GPUs 1 and 3 have 8.
  m.nvlinks(gpus[0], gpus[1], 4);
  m.nvlinks(gpus[2], gpus[3], 4);
  m.nvlinks(gpus[0], gpus[2], 4);
  m.nvlinks(gpus[1], gpus[3], 4);
  EXPECT_EQ(probe::check_gpu_links(m.graph())[0].is, probe::state::healthy);
  machine lame;
  gpus.clear();
  for (int i = 1; i <= 3; ++i) gpus.push_back(lame.device(topo::node_kind::gpu, i, std::nullopt));
  const auto nvswitch = lame.device(topo::node_kind::nvswitch, 9, std::nullopt);
  lame.nvlinks(gpus[0], nvswitch, 18);
  lame.nvlinks(gpus[1], nvswitch, 17);
  lame.nvlinks(gpus[2], nvswitch, 18);
  const auto said = probe::check_gpu_links(lame.graph());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].is, probe::state::degraded);
  EXPECT_NE(said[0].headline.find("17 of 18"), std::string::npos);
}

TEST(check_gpu_links, says_nothing_about_gpus_without_any) {
  machine m;
  m.device(topo::node_kind::gpu, 1, std::nullopt);
  EXPECT_TRUE(probe::check_gpu_links(m.graph()).empty());
}

TEST(check_numa, asks_only_where_there_are_several_domains) {
  machine one;
  one.device(topo::node_kind::gpu, 1, std::nullopt, std::nullopt);
  EXPECT_TRUE(probe::check_numa(one.graph()).empty());
  machine two;
  two.second_domain();
  two.device(topo::node_kind::gpu, 1, std::nullopt, std::nullopt);
  EXPECT_EQ(probe::check_numa(two.graph())[0].is, probe::state::not_measured);
  machine good;
  good.second_domain();
  good.device(topo::node_kind::gpu, 1, std::nullopt, 1);
  EXPECT_EQ(probe::check_numa(good.graph())[0].is, probe::state::healthy);
}

}  // namespace
