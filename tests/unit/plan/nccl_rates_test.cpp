// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/nccl_rates.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace plan = topocoll::plan;
namespace topo = topocoll::topo;
using namespace topocoll::literals;
using plan::nccl_rates;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::collective_kind;
using topocoll::node_id;

namespace {

topo::link link_of(topo::link_kind kind, std::uint32_t generation, std::uint32_t lanes, bytes_per_second capacity) {
  topo::link l;
  l.kind = kind;
  l.generation = generation;
  l.lanes = lanes;
  l.capacity = capacity;
  return l;
}

/// GPUs, switches and processors of one machine.
struct machine {
  topo::fragment f;
  std::vector<node_id> gpus;

  node_id add(topo::node_kind kind, const std::string& key, const std::string& host = "box") {
    topo::node n;
    n.kind = kind;
    n.key = host + "/" + key;
    n.host = host;
    return f.add(n);
  }
  void add_gpus(std::uint32_t count, const std::string& host = "box") {
    for (std::uint32_t i = 0; i < count; ++i)
      gpus.push_back(add(topo::node_kind::gpu, "gpu:" + std::to_string(i), host));
  }
  void join(node_id a, node_id b, topo::link_kind kind, std::uint32_t generation, std::uint32_t lanes) {
    topo::link l = link_of(kind, generation, lanes, 1e12_GBps);
    l.from = a;
    l.to = b;
    f.join(l);
  }
  void join_port(node_id a, node_id b, topo::link_kind kind, bytes_per_second rate) {
    topo::link l = link_of(kind, 0, 0, rate);
    l.from = a;
    l.to = b;
    f.join(l);
  }

  /// Bus bandwidth in GB/s that a proved plan of all-reduce reaches with NCCL's rates.
  [[nodiscard]] double planned() const {
    const topo::graph raw = topo::graph::from(f).value();
    const topo::graph g = plan::with_rates_of(raw, nccl_rates{}, "as NCCL books it").value();
    plan::problem q;
    q.graph = &g;
    q.size = 1_GiB;
    q.ranks = gpus;
    plan::packed packed;
    packed.cost = plan::alpha_beta::ideal();
    const plan::schedule made = packed.synthesize(q).value();
    EXPECT_TRUE(plan::verify(made)) << plan::verify(made).error().message();
    const auto n = static_cast<double>(gpus.size());
    return q.size / plan::simulate(q, made, nccl_rates{})->busiest / 1.0_GBps * 2 * (n - 1) / n;
  }
};

/// All links of all GPUs busy in both directions all the time: what trees could carry at most, as bus bandwidth.
double all_links_busy(double sum_of_outgoing, double ranks) { return sum_of_outgoing / ranks; }

}  // namespace

// NCCL 2.28.9, graph/topo.h and xml.cc.
TEST(nccl_rates, of_pcie_are_whole_gigabytes_for_sixteen_lanes) {
  const double x16[] = {12, 3, 6, 12, 24, 48, 96};  // of generation 0, which it takes for 3
  for (std::uint32_t generation = 0; generation <= 6; ++generation) {
    const topo::link l = link_of(topo::link_kind::pcie, generation, 16, 1000.0_GBps);
    EXPECT_DOUBLE_EQ(nccl_rates{}.rate(l).value, x16[generation] * 1e9) << generation;
  }
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::pcie, 1, 1, 48.0_GBps)).value, 0.1875e9);
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::pcie, 4, 0, 48.0_GBps)).value, 24e9);  // no width: x16
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::pcie, 7, 16, 192.0_GBps)).value, 12e9);
}

TEST(nccl_rates, of_a_pcie_link_that_nobody_describes_is_its_capacity) {
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::pcie, 0, 0, 7.0_GBps)).value, 7e9);
}

TEST(nccl_rates, of_nvlink_go_by_generation_and_count) {
  const std::pair<std::uint32_t, double> six_links[] = {{1, 108}, {2, 120}, {3, 120}, {4, 123.6}, {5, 240.6}};
  for (const auto& [generation, gigabytes] : six_links)
    EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::nvlink, generation, 6, 900.0_GBps)).value,
                     gigabytes * 1e9);
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::nvlink, 0, 4, 77.0_GBps)).value, 77e9);
}

TEST(nccl_rates, are_never_above_the_capacity) {
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::nvlink, 4, 18, 100.0_GBps)).value, 100e9);
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(link_of(topo::link_kind::pcie, 5, 16, 10.0_GBps)).value, 10e9);
  topo::link port = link_of(topo::link_kind::internal, 0, 0, 50.0_GBps);
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(port).value, 50e9);
  port.current = 25.0_GBps;
  EXPECT_DOUBLE_EQ(nccl_rates{}.rate(port).value, 25e9);
}

TEST(nccl_rates, know_no_latency) {
  const topo::link l = link_of(topo::link_kind::cpu, 0, 0, 10.0_GBps);
  EXPECT_EQ(nccl_rates{}.latency(l).value, 0);
  EXPECT_EQ(nccl_rates{}.reduce(1_GiB).value, 0);
  EXPECT_DOUBLE_EQ(nccl_rates{}.transfer(l, bytes{10'000'000'000}).value, 1);
  EXPECT_EQ(nccl_rates{}.transfer(l, 0_B).value, 0);
}

TEST(with_rates_of, changes_capacities_and_says_why) {
  machine m;
  m.add_gpus(2);
  m.join(m.gpus[0], m.gpus[1], topo::link_kind::nvlink, 4, 18);
  m.join_port(m.gpus[0], m.gpus[1], topo::link_kind::cpu, 10.0_GBps);
  const topo::graph raw = topo::graph::from(m.f).value();
  const topo::graph g = plan::with_rates_of(raw, nccl_rates{}, "as NCCL books it").value();
  ASSERT_EQ(g.link_count(), raw.link_count());
  ASSERT_EQ(g.node_count(), raw.node_count());
  EXPECT_DOUBLE_EQ(g.links()[0].capacity.value, 370.8e9);
  EXPECT_EQ(g.links()[0].reason, "as NCCL books it");
  EXPECT_EQ(g.links()[0].how, topocoll::trust::derived);
  EXPECT_DOUBLE_EQ(g.links()[2].capacity.value, 10e9);
  EXPECT_EQ(g.links()[2].reason, "");
}

// NCCL's rings over two islands of four with 3 x 20 GB/s a GPU carry 10 to 40 GB/s: every one crosses PCIe.
TEST(plans_with_nccl_rates, use_nvlink_of_islands_that_pcie_joins) {
  machine m;
  m.add_gpus(8);
  const node_id cpu = m.add(topo::node_kind::cpu, "numa:0");
  for (std::uint32_t a = 0; a < 8; ++a) {
    m.join(m.gpus[a], cpu, topo::link_kind::pcie, 4, 16);
    for (std::uint32_t b = a + 1; b < 8; ++b)
      if (a / 4 == b / 4) m.join(m.gpus[a], m.gpus[b], topo::link_kind::nvlink, 3, 1);
  }
  const double most = 60 + 24;  // of one GPU
  EXPECT_LE(m.planned(), most * (1 + 1e-9));
  EXPECT_GE(m.planned(), most * 0.99);
}

// NCCL: 4 channels of 20 GB/s, because GPU 0 and GPU 3 have four links left and lie on every ring.
TEST(plans_with_nccl_rates, use_all_links_of_a_cube_mesh_that_lost_one) {
  constexpr std::array<std::array<std::uint32_t, 8>, 8> links = {{{0, 1, 1, 0, 2, 0, 0, 0},
                                                                  {1, 0, 2, 1, 0, 2, 0, 0},
                                                                  {1, 2, 0, 2, 0, 0, 1, 0},
                                                                  {0, 1, 2, 0, 0, 0, 0, 1},
                                                                  {2, 0, 0, 0, 0, 1, 1, 2},
                                                                  {0, 2, 0, 0, 1, 0, 2, 1},
                                                                  {0, 0, 1, 0, 1, 2, 0, 2},
                                                                  {0, 0, 0, 1, 2, 1, 2, 0}}};
  machine m;
  m.add_gpus(8);
  double sum = 0;
  for (std::uint32_t a = 0; a < 8; ++a)
    for (std::uint32_t b = 0; b < 8; ++b) {
      sum += 20 * links[a][b];
      if (a < b && links[a][b] > 0) m.join(m.gpus[a], m.gpus[b], topo::link_kind::nvlink, 2, links[a][b]);
    }
  EXPECT_LE(m.planned(), all_links_busy(sum, 8) * (1 + 1e-9));
  EXPECT_GE(m.planned(), all_links_busy(sum, 8) * 0.99);  // 110
}

// NCCL: 180, what the weak GPU could do if it were on every ring.
TEST(plans_with_nccl_rates, let_a_gpu_with_half_its_nvlinks_be_a_leaf) {
  machine m;
  m.add_gpus(8);
  const node_id nvswitch = m.add(topo::node_kind::nvswitch, "nvswitch");
  for (std::uint32_t i = 0; i < 8; ++i) m.join(m.gpus[i], nvswitch, topo::link_kind::nvlink, 4, i == 5 ? 9 : 18);
  const double most =
      185.4 * 2 * 7 / 8;  // 324: the weak GPU must send all that it has once; all links together allow 348
  ASSERT_LT(most, all_links_busy(7 * 370.8 + 185.4, 8));
  EXPECT_LE(m.planned(), most * (1 + 1e-9));
  EXPECT_GE(m.planned(), most * 0.99);
}

// NCCL: 384 with 32 equal NICs, 192 when one has half the speed.
TEST(plans_with_nccl_rates, lose_little_by_one_nic_of_half_speed) {
  const auto cluster = [](bool slow) {
    machine m;
    const node_id network = m.add(topo::node_kind::leaf, "leaf:0", "");
    for (std::uint32_t h = 0; h < 4; ++h) {
      const std::string host = "box" + std::to_string(h);
      m.add_gpus(8, host);
      const node_id nvswitch = m.add(topo::node_kind::nvswitch, "nvswitch", host);
      for (std::uint32_t i = 0; i < 8; ++i) {
        const std::string n = std::to_string(i);
        const node_id gpu = m.gpus[8 * h + i], nic = m.add(topo::node_kind::nic, "nic:" + n, host),
                      port = m.add(topo::node_kind::nic_port, "net:" + n, host);
        const bytes_per_second rate = slow && h == 3 && i == 3 ? 25.0_GBps : 50.0_GBps;
        m.join(gpu, nvswitch, topo::link_kind::nvlink, 4, 18);
        m.join(gpu, nic, topo::link_kind::pcie, 5, 16);
        m.join_port(nic, port, topo::link_kind::internal, rate);
        m.join_port(port, network, topo::link_kind::infiniband, rate);
      }
    }
    return m;
  };
  const double whole = cluster(false).planned(), slowed = cluster(true).planned();
  EXPECT_GE(whole, 384);
  EXPECT_GE(slowed, 0.98 * whole);
}
