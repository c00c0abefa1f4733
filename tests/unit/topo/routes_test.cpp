// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/topo/routes.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topo::classify;
using topo::path_class;

namespace {

/// Two sockets. Socket 0: GPU 0 and NIC 0 under switch s0, GPU 1 under switch s1, both switches under switch top.
/// Socket 1: GPU 2 on a root port, NIC 1 on another. Memories. Two ports on NIC 0.
struct host {
  parts p;
  node_id cpu0, cpu1, mem0, mem1, root0, top, s0, s1, root1, root2, gpu0, gpu1, gpu2, nic0, nic1, port0, port0b, port1;
  topocoll::link_id top_link;

  host() {
    cpu0 = p.cpu(0);
    cpu1 = p.cpu(1);
    mem0 = p.memory(0);
    mem1 = p.memory(1);
    root0 = p.bridge("0000:10:01.0", node_kind::pcie_root);
    top = p.bridge("0000:18:00.0");
    s0 = p.bridge("0000:20:00.0");
    s1 = p.bridge("0000:28:00.0");
    root1 = p.bridge("0000:80:01.0", node_kind::pcie_root);
    root2 = p.bridge("0000:90:01.0", node_kind::pcie_root);
    gpu0 = p.gpu(0);
    gpu1 = p.gpu(1);
    gpu2 = p.gpu(2);
    nic0 = p.nic(0);
    nic1 = p.nic(1);
    port0 = p.port(0, 1);
    port0b = p.port(0, 2);
    port1 = p.port(1, 1);
    p.join(cpu0, cpu1, link_kind::cpu, 22, trust::assumed, "nobody reports it");
    p.join(cpu0, mem0, link_kind::memory, 200);
    p.join(cpu1, mem1, link_kind::memory, 200);
    p.pcie(cpu0, root0);
    top_link = p.pcie(root0, top, 4);
    p.pcie(top, s0);
    p.pcie(top, s1);
    p.pcie(s0, gpu0);
    p.pcie(s0, nic0);
    p.pcie(s1, gpu1);
    p.pcie(cpu1, root1);
    p.pcie(cpu1, root2);
    p.pcie(root1, gpu2);
    p.pcie(root2, nic1);
    p.join(nic0, port0, link_kind::internal, 25);
    p.join(nic0, port0b, link_kind::internal, 25);
    p.join(nic1, port1, link_kind::internal, 50);
  }
};

}  // namespace

TEST(classify, uses_the_classes_of_nccl_for_pcie) {
  const host h;
  const auto g = h.p.graph();
  EXPECT_EQ(classify(g, h.gpu0, h.gpu0), path_class::LOC);
  EXPECT_EQ(classify(g, h.gpu0, h.nic0), path_class::PIX);
  EXPECT_EQ(classify(g, h.gpu0, h.port0), path_class::PIX);
  EXPECT_EQ(classify(g, h.gpu0, h.gpu1), path_class::PXB);
  EXPECT_EQ(classify(g, h.gpu1, h.nic0), path_class::PXB);
  EXPECT_EQ(classify(g, h.gpu2, h.nic1), path_class::PHB);
  EXPECT_EQ(classify(g, h.gpu0, h.mem0), path_class::PHB);
  EXPECT_EQ(classify(g, h.gpu0, h.cpu0), path_class::PHB);
  EXPECT_EQ(classify(g, h.gpu0, h.gpu2), path_class::SYS);
  EXPECT_EQ(classify(g, h.gpu0, h.mem1), path_class::SYS);
  EXPECT_EQ(classify(g, h.mem0, h.mem1), path_class::SYS);
  EXPECT_EQ(classify(g, h.cpu0, h.mem0), path_class::LOC);
  EXPECT_EQ(classify(g, h.port0, h.port0b), path_class::LOC);
}

TEST(classify, says_dis_where_nothing_leads) {
  parts p;
  const node_id a = p.gpu(0);
  const node_id b = p.gpu(1);
  EXPECT_EQ(classify(p.graph(), a, b), path_class::DIS);
}

TEST(classify, does_not_use_a_dead_link) {
  parts p;
  const node_id a = p.gpu(0);
  const node_id b = p.gpu(1);
  p.join(a, b, link_kind::nvlink, 0);
  EXPECT_EQ(classify(p.graph(), a, b), path_class::DIS);
}

TEST(classify, sees_nvlink_directly_and_through_nvswitch) {
  parts p;
  const node_id a = p.gpu(0);
  const node_id b = p.gpu(1);
  const node_id c = p.gpu(2);
  const node_id plane = p.add(node_kind::nvswitch, "nvswitch", "NVSwitch");
  p.join(a, b, link_kind::nvlink, 50);
  p.join(a, plane, link_kind::nvlink, 450);
  p.join(c, plane, link_kind::nvlink, 450);
  const auto g = p.graph();
  EXPECT_EQ(classify(g, a, b), path_class::NVL);
  EXPECT_EQ(classify(g, a, c), path_class::NVL);
  EXPECT_EQ(classify(g, b, c), path_class::DIS) << "a GPU relays only when it is allowed to";
}

TEST(classify, offers_nvb_only_when_asked_and_only_over_one_gpu) {
  parts p;
  std::vector<node_id> gpu;
  for (std::uint32_t i = 0; i < 4; ++i) gpu.push_back(p.gpu(i));
  for (std::uint32_t i = 0; i + 1 < 4; ++i) p.join(gpu[i], gpu[i + 1], link_kind::xgmi, 50 - i);
  const auto g = p.graph();
  EXPECT_EQ(classify(g, gpu[0], gpu[2]), path_class::DIS);
  EXPECT_EQ(classify(g, gpu[0], gpu[2], {.nvb = true}), path_class::NVB);
  EXPECT_EQ(classify(g, gpu[0], gpu[3], {.nvb = true}), path_class::DIS);
  EXPECT_EQ(topo::expected_rate(g, gpu[0], gpu[2], {.nvb = true}).rate.value, 49e9);
}

TEST(classify, prefers_pcie_that_is_as_short_and_wider_to_nvb) {
  parts p;
  const node_id a = p.gpu(0), b = p.gpu(1), c = p.gpu(2);
  const node_id s = p.bridge("0000:18:00.0");
  for (const node_id v : {a, b, c}) p.pcie(v, s);
  p.join(a, b, link_kind::nvlink, 20);
  p.join(b, c, link_kind::nvlink, 20);
  EXPECT_EQ(classify(p.graph(), a, c, {.nvb = true}), path_class::PIX);
  parts q = p;
  q.f.links.resize(6);
  q.join(a, b, link_kind::nvlink, 200);
  q.join(b, c, link_kind::nvlink, 200);
  EXPECT_EQ(classify(q.graph(), a, c, {.nvb = true}), path_class::NVB);
}

TEST(classify, offers_pxn_only_when_asked) {
  host h;
  h.p.join(h.gpu0, h.gpu2, link_kind::nvlink, 100);
  const auto g = h.p.graph();
  EXPECT_EQ(classify(g, h.gpu2, h.nic0), path_class::SYS);
  EXPECT_EQ(classify(g, h.gpu2, h.nic0, {.pxn = true}), path_class::PXN);
  EXPECT_EQ(classify(g, h.gpu2, h.port0, {.pxn = true}), path_class::PXN);
  EXPECT_EQ(classify(g, h.gpu0, h.nic0, {.pxn = true}), path_class::PIX) << "its own NIC is near enough";
  EXPECT_EQ(classify(g, h.gpu1, h.nic0, {.pxn = true}), path_class::PXB) << "no NVLink, no help";
  EXPECT_EQ(classify(g, h.gpu0, h.nic1, {.pxn = true}), path_class::SYS) << "the peer is not near that NIC either";
}

TEST(classify, tells_chip_to_chip_links_apart) {
  parts p;
  const node_id cpu = p.cpu(0), cpu1 = p.cpu(1), memory = p.memory(0), gpu = p.gpu(0), gpu1 = p.gpu(1),
                other = p.gpu(2), nic = p.nic(0);
  p.join(cpu, memory, link_kind::memory, 500);
  p.join(cpu, cpu1, link_kind::cpu, 100);
  p.join(cpu, gpu, link_kind::c2c, 450);
  p.join(cpu, gpu1, link_kind::c2c, 450);
  p.join(cpu1, other, link_kind::c2c, 450);
  p.pcie(cpu, nic);
  const auto g = p.graph();
  EXPECT_EQ(classify(g, gpu, cpu), path_class::C2C);
  EXPECT_EQ(classify(g, gpu, memory), path_class::C2C);
  EXPECT_EQ(classify(g, gpu, gpu1), path_class::C2C);
  EXPECT_EQ(classify(g, gpu, nic), path_class::P2C);
  EXPECT_EQ(classify(g, nic, gpu), path_class::P2C);
  EXPECT_EQ(classify(g, gpu, other), path_class::SYS);
}

namespace {

/// Hosts a and b with `nics` GPUs and NICs each, PCIe switches for each pair, NIC i of both on leaf i, leaves on one spine
/// if `spine`.
struct two_hosts {
  parts p;
  std::vector<node_id> gpu[2], nic[2], port[2], leaf;
  explicit two_hosts(std::uint32_t nics, bool spine) {
    const char* const names[] = {"a", "b"};
    for (std::uint32_t i = 0; i < nics; ++i) leaf.push_back(p.network(node_kind::leaf, i));
    if (spine) {
      const node_id top = p.network(node_kind::spine, 0);
      for (const node_id l : leaf) p.join(l, top, link_kind::infiniband, 25);
    }
    for (int h = 0; h < 2; ++h) {
      const node_id cpu = p.cpu(0, names[h]);
      for (std::uint32_t i = 0; i < nics; ++i) {
        const node_id s = p.bridge("0000:f" + std::to_string(i) + ":00.0", node_kind::pcie_switch, names[h]);
        gpu[h].push_back(p.gpu(i, names[h]));
        nic[h].push_back(p.nic(i, names[h]));
        port[h].push_back(p.port(i, 1, names[h]));
        p.pcie(cpu, s);
        p.pcie(s, gpu[h][i]);
        p.pcie(s, nic[h][i]);
        p.join(nic[h][i], port[h][i], link_kind::internal, 50);
        p.join(port[h][i], leaf[i], link_kind::infiniband, 50);
      }
    }
  }
};

std::vector<std::string> names_on(const topo::graph& g, const topo::path& way) {
  std::vector<std::string> names;
  for (const link_id e : way.links) names.push_back(g.at(g.head(e)).key);
  return names;
}

}  // namespace

TEST(route, between_hosts_goes_out_by_the_near_nic_and_over_the_leaf) {
  const two_hosts t(2, true);
  const auto g = t.p.graph();
  const auto way = topo::route(g, t.gpu[0][1], t.gpu[1][1]);
  ASSERT_TRUE(way);
  EXPECT_EQ(names_on(g, *way), (std::vector<std::string>{"a/pci:0000:f1:00.0", "a/pci:0000:01:00.0", "a/net:mlx5_1/1",
                                                         "leaf:1", "b/net:mlx5_1/1", "b/pci:0000:01:00.0",
                                                         "b/pci:0000:f1:00.0", "b/pci:0000:a1:00.0"}));
  EXPECT_EQ(topo::class_of(g, *way, t.gpu[0][1]), path_class::NET);
  EXPECT_EQ(way->rate.value, 50e9);
  EXPECT_EQ(topo::route(g, t.gpu[0][0], t.gpu[1][1])->rate.value, 25e9) << "over the spine";
}

TEST(route, within_a_host_stays_off_the_network_even_if_that_is_longer) {
  // The way through the leaf has 8 links, that through PCIe of two deep trees 9.
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  const node_id cpu = p.cpu(0);
  std::vector<node_id> gpu;
  for (std::uint32_t i = 0; i < 2; ++i) {
    node_id up = cpu;
    for (std::uint32_t depth = 0; depth < 4; ++depth) {
      const node_id s = p.bridge("0000:" + std::to_string(i) + std::to_string(depth) + ":01.0");
      p.pcie(up, s);
      up = s;
    }
    gpu.push_back(p.gpu(i));
    const node_id nic = p.nic(i);
    const node_id port = p.port(i);
    p.pcie(up, gpu[i]);
    p.pcie(up, nic);
    p.join(nic, port, link_kind::internal, 50);
    p.join(port, leaf, link_kind::infiniband, 50);
  }
  const auto g = p.graph();
  const auto way = topo::route(g, gpu[0], gpu[1]);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->links.size(), 10U);
  EXPECT_EQ(topo::class_of(g, *way, gpu[0]), path_class::PHB);
}

TEST(route, does_not_pass_through_a_third_host) {
  // Rails that do not meet: NIC 0 of a and b on leaf 0, NIC 1 of b and c on leaf 1. From a to c one would have to cross b.
  parts p;
  const node_id leaf0 = p.network(node_kind::leaf, 0);
  const node_id leaf1 = p.network(node_kind::leaf, 1);
  const auto plug = [&](const char* host, node_id leaf, std::uint32_t i) {
    const node_id nic = p.nic(i, host);
    const node_id port = p.port(i, 1, host);
    p.join(nic, port, link_kind::internal, 50);
    p.join(port, leaf, link_kind::infiniband, 50);
    return nic;
  };
  const node_id a = plug("a", leaf0, 0);
  const node_id b0 = plug("b", leaf0, 0);
  const node_id b1 = plug("b", leaf1, 1);
  const node_id c = plug("c", leaf1, 1);
  p.pcie(b0, b1);
  const auto g = p.graph();
  EXPECT_EQ(classify(g, a, b0), path_class::NET);
  EXPECT_EQ(classify(g, a, b1), path_class::NET);
  EXPECT_EQ(classify(g, a, c), path_class::DIS);
}

TEST(route, to_the_other_rail_crosses_one_cpu_only_where_no_spine_joins_the_rails) {
  const auto cpus = [](const topo::graph& g, const topo::path& way) {
    return std::ranges::count_if(way.links, [&](link_id e) { return g.at(g.head(e)).kind == node_kind::cpu; });
  };
  for (const bool spine : {true, false}) {
    const two_hosts t(2, spine);
    const auto g = t.p.graph();
    const auto way = topo::route(g, t.gpu[0][0], t.gpu[1][1]);
    ASSERT_TRUE(way);
    EXPECT_EQ(cpus(g, *way), spine ? 0 : 1);
  }
}

TEST(route, over_a_cpu_is_shorter_than_over_a_spine_but_not_taken) {
  // 7 links by the CPU, its NIC and one leaf; 8 by the near NIC, two leaves and the spine.
  parts p;
  const node_id leaf0 = p.network(node_kind::leaf, 0), leaf1 = p.network(node_kind::leaf, 1),
                spine = p.network(node_kind::spine, 0);
  p.join(leaf0, spine, link_kind::infiniband, 10);
  p.join(leaf1, spine, link_kind::infiniband, 10);
  const node_id s = p.bridge("0000:18:00.0", node_kind::pcie_switch, "a"), cpu = p.cpu(0, "a"), gpu = p.gpu(0, "a");
  p.pcie(cpu, s);
  p.pcie(s, gpu);
  const auto plug = [&](const char* host, std::uint32_t i, node_id leaf) {
    const node_id nic = p.nic(i, host), port = p.port(i, 1, host);
    p.join(nic, port, link_kind::internal, 50);
    p.join(port, leaf, link_kind::infiniband, 50);
    return nic;
  };
  p.pcie(s, plug("a", 0, leaf0));
  p.pcie(cpu, plug("a", 1, leaf1));
  const node_id there = plug("b", 1, leaf1);
  const auto g = p.graph();
  const auto way = topo::route(g, gpu, there);
  ASSERT_TRUE(way);
  EXPECT_TRUE(std::ranges::any_of(way->links, [&](link_id e) { return g.head(e) == spine; }));
}

namespace {

/// The rule of `routes` in its own words: every simple way that obeys it, tried one by one.
struct every_way {
  const topo::graph& g;
  node_id to;
  bool network;  ///< whether network links may be used
  struct merit {
    std::size_t cpus, hops;
    double rate;
  };
  std::optional<merit> best;
  std::vector<bool> seen;

  every_way(const topo::graph& graph, node_id from, node_id target, bool with_network)
      : g(graph), to(target), network(with_network), seen(graph.node_count(), false) {
    seen[from.value] = true;
    go(from, {0, 0, topo::unlimited.value}, true, false, false);
  }
  void go(node_id at, merit m, bool first, bool was_out, bool came_back) {
    if (at == to) {
      const bool better = !best || m.cpus < best->cpus || (m.cpus == best->cpus && m.hops < best->hops) ||
                          (m.cpus == best->cpus && m.hops == best->hops && m.rate > best->rate);
      if (better) best = m;
      return;
    }
    const node_kind kind = g.at(at).kind;
    if (!first && (kind == node_kind::gpu || kind == node_kind::host_memory || kind == node_kind::pcie_device)) return;
    if (!first && kind == node_kind::cpu) ++m.cpus;
    for (const link_id e : g.out_links(at)) {
      const topo::link& l = g.at(e);
      const bool cable = l.kind == link_kind::infiniband || l.kind == link_kind::ethernet;
      if (seen[l.to.value] || l.capacity.value <= 0 || (cable && (!network || came_back))) continue;
      seen[l.to.value] = true;
      const bool switch_ahead = g.at(l.to).kind == node_kind::leaf;
      go(l.to, {m.cpus, m.hops + 1, std::min(m.rate, l.capacity.value)}, false, was_out || cable,
         came_back || ((was_out || cable) && !switch_ahead));
      seen[l.to.value] = false;
    }
  }
};

/// A machine or two of a few parts, joined at random.
topo::graph random_machine(std::uint64_t seed) {
  std::uint64_t state = seed * 2862933555777941757U + 3037000493U;
  const auto below = [&](std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  };
  parts p;
  constexpr node_kind kinds[] = {node_kind::gpu, node_kind::cpu, node_kind::pcie_switch,
                                 node_kind::nic, node_kind::nic, node_kind::host_memory};
  std::vector<node_id> inner, nics, leaves;
  const std::uint32_t n = 4 + below(4);
  for (std::uint32_t i = 0; i < n; ++i) {
    const node_kind kind = kinds[below(6)];
    inner.push_back(p.add(kind, "part:" + std::to_string(i), "", i < n / 2 ? "a" : "b"));
    if (kind == node_kind::nic) nics.push_back(inner.back());
  }
  for (std::uint32_t i = 0; i < 1 + below(2); ++i) leaves.push_back(p.network(node_kind::leaf, i));
  for (std::uint32_t i = 0; i < 2 * n; ++i) {
    const std::uint32_t a = below(n), b = below(n);
    if (a != b && (a < n / 2) == (b < n / 2)) p.join(inner[a], inner[b], link_kind::pcie, below(4));
  }
  for (const node_id nic : nics)
    p.join(nic, leaves[below(static_cast<std::uint32_t>(leaves.size()))], link_kind::infiniband, below(4));
  if (leaves.size() > 1) p.join(leaves[0], leaves[1], link_kind::infiniband, 1 + below(3));
  return p.graph();
}

}  // namespace

TEST(routes, agree_with_trying_every_way_that_obeys_the_rule) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const auto g = random_machine(seed);
    for (std::uint32_t a = 0; a < g.node_count(); ++a) {
      const topo::routes ways(g, {a});
      for (std::uint32_t b = 0; b < g.node_count(); ++b) {
        auto best = every_way(g, {a}, {b}, false).best;
        if (!best) best = every_way(g, {a}, {b}, true).best;
        const auto way = ways.to({b});
        ASSERT_EQ(way.has_value(), best.has_value()) << a << " to " << b;
        if (!way) continue;
        ++found;
        std::size_t cpus = 0;
        for (std::size_t i = 0; i + 1 < way->links.size(); ++i)
          cpus += g.at(g.head(way->links[i])).kind == node_kind::cpu ? 1 : 0;
        ASSERT_EQ(cpus, best->cpus) << a << " to " << b;
        ASSERT_EQ(way->links.size(), best->hops) << a << " to " << b;
        ASSERT_EQ(way->rate.value, best->rate) << a << " to " << b;
      }
    }
  }
  EXPECT_GT(found, 5000U) << "the machines are joined well enough to say something";
}

TEST(routes, answer_like_single_questions) {
  const two_hosts t(3, true);
  const auto g = t.p.graph();
  for (std::uint32_t a = 0; a < g.node_count(); ++a) {
    const topo::routes ways(g, {a});
    for (std::uint32_t b = 0; b < g.node_count(); ++b) {
      const auto one = topo::route(g, {a}, {b});
      const auto other = ways.to({b});
      ASSERT_EQ(one.has_value(), other.has_value());
      ASSERT_TRUE(!one || one->links == other->links);
      ASSERT_EQ(ways.kind({b}), classify(g, {a}, {b}));
    }
  }
}

TEST(expected_rate, explains_the_limit_and_who_shares_it) {
  const host h;
  const auto g = h.p.graph();
  const auto rate = topo::expected_rate(g, h.gpu0, h.mem0);
  EXPECT_EQ(rate.kind, path_class::PHB);
  ASSERT_TRUE(rate.limit);
  EXPECT_EQ(rate.limit->value, h.top_link.value + 1) << "upwards";
  EXPECT_EQ(rate.why, "31.5 GB/s, limited by the Gen4 x16 uplink of switch 0000:18:00.0 (shared by 2 GPUs and 1 NIC)");
  EXPECT_EQ(rate.how, trust::reported);
  EXPECT_EQ(topo::expected_rate(g, h.mem0, h.gpu0).why, rate.why) << "the same cable downwards";
}

TEST(expected_rate, says_when_a_figure_on_the_way_is_assumed) {
  const host h;
  const auto g = h.p.graph();
  const auto limit = topo::expected_rate(g, h.gpu0, h.gpu2);
  EXPECT_EQ(limit.why,
            "22.0 GB/s, limited by the link between NUMA 0 and NUMA 1; this figure is assumed (nobody reports it)");
  EXPECT_EQ(limit.doubt, "this figure is assumed (nobody reports it)");
  EXPECT_EQ(limit.how, trust::assumed);
  host slow;
  slow.p.f.links[slow.top_link.value].capacity = slow.p.f.links[slow.top_link.value + 1].capacity = {4e9};
  const auto beside = topo::expected_rate(slow.p.graph(), slow.gpu0, slow.gpu2);
  EXPECT_EQ(beside.why,
            "4.00 GB/s, limited by the Gen4 x16 uplink of switch 0000:18:00.0 (shared by 2 GPUs and 1 NIC); the figure "
            "of the link "
            "between NUMA 0 and NUMA 1 is assumed (nobody reports it)");
}

TEST(expected_rate, says_when_the_limit_runs_below_what_it_can_do) {
  parts p;
  const node_id cpu = p.cpu(0);
  const node_id gpu = p.gpu(0);
  const link_id e = p.pcie(cpu, gpu);
  for (const std::uint32_t i : {e.value, e.value + 1}) {
    p.f.links[i].current = bytes_per_second{15.8e9};
    p.f.links[i].capacity = bytes_per_second{15.8e9};
  }
  EXPECT_EQ(topo::expected_rate(p.graph(), gpu, cpu).why,
            "15.8 GB/s, limited by the Gen5 x16 link of GPU 0, which runs at 15.8 GB/s of 63.0 GB/s");
}

TEST(expected_rate, names_hosts_where_there_are_several) {
  const two_hosts t(1, false);
  const auto g = t.p.graph();
  EXPECT_EQ(topo::expected_rate(g, t.gpu[0][0], t.gpu[1][0]).why, "50.0 GB/s, limited by port mlx5_0/1 of a");
}

TEST(expected_rate, of_no_path_is_zero_with_a_reason) {
  parts p;
  const node_id a = p.gpu(0);
  const node_id b = p.gpu(1);
  const auto rate = topo::expected_rate(p.graph(), a, b);
  EXPECT_EQ(rate.rate.value, 0);
  EXPECT_FALSE(rate.limit);
  EXPECT_EQ(rate.kind, path_class::DIS);
  EXPECT_EQ(rate.why, "no path from GPU 0 to GPU 1");
}

TEST(expected_rate, of_a_device_to_itself_is_unlimited) {
  parts p;
  const node_id a = p.gpu(0);
  const auto rate = topo::expected_rate(p.graph(), a, a);
  EXPECT_EQ(rate.rate, topo::unlimited);
  EXPECT_EQ(rate.kind, path_class::LOC);
}
