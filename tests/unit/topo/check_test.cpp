// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/check.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::finding;
using topocoll::severity;

namespace {

topo::graph graph_of(const std::string& spec) {
  auto f = topocoll::describe(spec);
  EXPECT_TRUE(f) << spec << ": " << (f ? "" : f.error().what);
  if (!f) return {};
  auto g = topo::graph::from(*std::move(f));
  EXPECT_TRUE(g);
  return g ? *std::move(g) : topo::graph{};
}
std::vector<finding> checked(const std::string& spec) { return topo::check(graph_of(spec)); }

std::string all_of(const std::vector<finding>& findings) {
  std::string text;
  for (const finding& f : findings)
    text += std::string(to_string(f.level)) + " | " + f.where + " | " + f.what + " | " + f.evidence + '\n';
  return text;
}
std::vector<finding> bad(const std::vector<finding>& all) {
  std::vector<finding> some;
  for (const finding& f : all)
    if (f.level != severity::note) some.push_back(f);
  return some;
}
bool mentions(const std::vector<finding>& findings, severity level, std::string_view where, std::string_view what) {
  return std::any_of(findings.begin(), findings.end(), [&](const finding& f) {
    return f.level == level && f.where.find(where) != std::string::npos && f.what.find(what) != std::string::npos;
  });
}

/// Hosts with some NICs, each NIC on the leaf of its rail; leaves joined to spines by `cables` links each.
struct rails {
  parts p;
  std::vector<node_id> leaf, spine;
  std::vector<std::vector<node_id>> port;

  rails(std::uint32_t hosts, std::uint32_t nics, std::uint32_t spines, std::uint32_t cables = 1) {
    for (std::uint32_t k = 0; k < nics; ++k) leaf.push_back(p.network(node_kind::leaf, k));
    for (std::uint32_t s = 0; s < spines; ++s) spine.push_back(p.network(node_kind::spine, s));
    for (std::uint32_t h = 0; h < hosts; ++h) {
      const std::string host = "n" + std::to_string(h);
      port.emplace_back();
      for (std::uint32_t k = 0; k < nics; ++k) {
        const node_id nic = p.nic(k, host);
        port[h].push_back(p.port(k, 1, host));
        p.join(nic, port[h][k], link_kind::internal, 50);
      }
    }
    for (const node_id l : leaf)
      for (const node_id s : spine)
        for (std::uint32_t c = 0; c < cables; ++c) p.join(l, s, link_kind::infiniband, 50);
  }
  void plug(std::uint32_t h, std::uint32_t k, std::uint32_t to) {
    p.join(port[h][k], leaf[to], link_kind::infiniband, 50);
  }
  void plug_all() {
    for (std::uint32_t h = 0; h < port.size(); ++h)
      for (std::uint32_t k = 0; k < port[h].size(); ++k) plug(h, k, k);
  }
};

/// Drops the first link from `a` to `b` and its way back.
void cut(parts& p, node_id a, node_id b) {
  for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)})
    for (std::size_t i = 0; i < p.f.links.size(); ++i)
      if (p.f.links[i].from == x && p.f.links[i].to == y) {
        p.f.links.erase(p.f.links.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
}

}  // namespace

TEST(check, of_nothing_finds_nothing) { EXPECT_TRUE(topo::check(topo::graph{}).empty()); }

TEST(check, names_the_host_that_lacks_a_device) {
  const auto found = checked("dgx-h100:nodes=8,leaves=8,missing=node3/nic2");
  const auto odd = bad(found);
  ASSERT_EQ(odd.size(), 1U) << all_of(found);
  EXPECT_EQ(odd[0].where, "node3");
  EXPECT_EQ(odd[0].what, "node3 lacks mlx5_2: it has 7 NICs, 7 of 8 hosts have 8");
}

TEST(check, cannot_tell_which_of_two_hosts_is_odd) {
  const auto odd = bad(checked("dgx-h100:nodes=2,leaves=8,missing=node1/gpu4"));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "node0 - node1");
  EXPECT_NE(odd[0].what.find("nobody can tell which"), std::string::npos);
  EXPECT_NE(odd[0].evidence.find("GPU 4"), std::string::npos);
}

TEST(check, takes_no_side_without_a_majority) {
  const auto found =
      checked("dgx-h100:nodes=4,leaves=8,missing=node0/gpu0+node1/gpu1+node1/gpu2+node2/gpu4+node2/gpu5+node2/gpu6");
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "node", "look 4 ways")) << all_of(found);
}

TEST(check, takes_hosts_of_another_kind_for_no_fault) {
  parts p;
  for (std::uint32_t h = 0; h < 8; ++h) {
    const std::string host = (h < 5 ? "compute" : "storage") + std::to_string(h);
    for (std::uint32_t k = 0; k < (h < 5 ? 8U : 2U); ++k) p.nic(k, host);
    for (std::uint32_t k = 0; k < (h < 5 ? 4U : 0U); ++k) p.gpu(k, host);
  }
  EXPECT_TRUE(bad(topo::check(p.graph())).empty()) << all_of(topo::check(p.graph()));
}

TEST(check, names_the_gpu_with_a_narrow_link_among_siblings) {
  parts p;
  const node_id cpu = p.cpu(0);
  for (std::uint32_t i = 0; i < 8; ++i) p.pcie(p.gpu(i), cpu, 5, i == 5 ? 8 : 16);
  const auto odd = bad(topo::check(p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "h/pci:0000:a5:00.0 - h/numa:0");
  EXPECT_EQ(odd[0].what,
            "the PCIe or chip-to-chip link of GPU 5 is slower than its siblings': Gen5 x8, 31.5 GB/s against "
            "Gen5 x16, 63.0 GB/s");
}

TEST(check, notes_only_what_is_so_in_every_host) {
  parts p;
  for (std::uint32_t h = 0; h < 3; ++h) {
    const std::string host = "n" + std::to_string(h);
    const node_id cpu = p.cpu(0, host);
    for (std::uint32_t i = 0; i < 4; ++i) p.pcie(p.gpu(i, host), cpu, 5, i == 3 ? 8 : 16);
  }
  const auto found = topo::check(p.graph());
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "n0/pci:0000:a3:00.0", "in 3 hosts alike")) << all_of(found);
}

TEST(check, does_not_blame_what_is_assumed) {
  parts p;
  const node_id cpu = p.cpu(0);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const node_id gpu = p.gpu(i);
    p.join(gpu, cpu, link_kind::pcie, i == 1 ? 10 : 60, i == 1 ? trust::assumed : trust::reported, "not told");
  }
  EXPECT_TRUE(bad(topo::check(p.graph())).empty()) << all_of(topo::check(p.graph()));
}

TEST(check, names_the_gpu_with_fewer_nvlinks) {
  parts p;
  const node_id plane = p.add(node_kind::nvswitch, "nvswitch", "NVSwitch");
  for (std::uint32_t i = 0; i < 8; ++i) {
    const link_id e = p.join(p.gpu(i), plane, link_kind::nvlink, i == 6 ? 400 : 450);
    p.f.links[e.value].lanes = p.f.links[e.value + 1].lanes = i == 6 ? 16 : 18;
  }
  const auto odd = bad(topo::check(p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "h/pci:0000:a6:00.0");
  EXPECT_EQ(odd[0].what, "GPU 6 has 16 NVLinks up, its siblings have 18");
}

TEST(check, names_links_below_their_best_and_dead_ones) {
  parts p;
  const node_id cpu = p.cpu(0);
  const link_id slow = p.pcie(p.nic(0), cpu);
  const link_id dead = p.join(p.gpu(0), p.gpu(1), link_kind::nvlink, 100);
  for (const std::uint32_t i : {0U, 1U}) {
    p.f.links[slow.value + i].current = bytes_per_second{8e9};
    p.f.links[dead.value + i].capacity = {0};
  }
  const auto odd = bad(topo::check(p.graph()));
  ASSERT_EQ(odd.size(), 2U) << all_of(odd);
  EXPECT_TRUE(mentions(odd, severity::warning, "h/pci:0000:00:00.0 - h/numa:0",
                       "the PCIe link between mlx5_0 and NUMA 0 runs at 8.00 GB/s of 63.0 GB/s"))
      << all_of(odd);
  EXPECT_TRUE(mentions(odd, severity::fault, "h/pci:0000:a0:00.0 - h/pci:0000:a1:00.0", "carries nothing"))
      << all_of(odd);
}

TEST(check, names_a_port_that_is_down_beside_ports_that_are_up) {
  parts p;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const node_id port = p.port(i);
    p.join(p.nic(i), port, link_kind::internal, 50);
    p.f.nodes[port.value].facts.emplace_back("state", i == 2 ? "1: DOWN" : "4: ACTIVE");
  }
  const auto odd = bad(topo::check(p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "h/net:mlx5_2/1");
}

TEST(check, notes_ports_that_nobody_uses) {
  parts p;
  for (std::uint32_t i = 0; i < 2; ++i) {  // cards with two ports, the second without a cable
    const node_id nic = p.nic(i);
    p.join(nic, p.port(i, 1), link_kind::internal, 50);
    p.join(nic, p.port(i, 2), link_kind::internal, 0);
  }
  const auto found = topo::check(p.graph());
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "h/net:mlx5_1/2", "is down")) << all_of(found);
}

TEST(check, names_the_nic_slower_than_its_siblings) {
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const node_id port = p.port(i);
    const double rate = i == 1 ? 12.5 : 50;
    p.join(p.nic(i), port, link_kind::internal, rate);
    p.join(port, leaf, link_kind::infiniband, rate);
  }
  const auto odd = bad(topo::check(p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "h/net:mlx5_1/1 - leaf:0");
  EXPECT_EQ(odd[0].what, "the cable of mlx5_1/1 is slower than its siblings': 100 Gb/s against 400 Gb/s");
}

TEST(check, notes_gpus_spread_unevenly_over_numa_domains) {
  parts p;
  for (std::uint32_t i = 0; i < 8; ++i) p.f.nodes[p.gpu(i).value].numa = i < 5 ? 0 : 1;
  const auto found = topo::check(p.graph());
  EXPECT_TRUE(bad(found).empty());
  EXPECT_TRUE(mentions(found, severity::note, "h", "spread unevenly")) << all_of(found);
}

TEST(check, of_rails_on_two_tiers_finds_nothing) {
  for (const std::uint32_t hosts : {1U, 2U, 3U, 8U, 17U}) {
    rails r(hosts, 4, 4);
    r.plug_all();
    EXPECT_TRUE(bad(topo::check(r.p.graph())).empty()) << hosts << '\n' << all_of(topo::check(r.p.graph()));
  }
}

TEST(check, names_a_leaf_that_lacks_a_spine) {
  rails r(8, 4, 4);
  r.plug_all();
  cut(r.p, r.leaf[1], r.spine[2]);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "leaf:1 - spine:2");
  EXPECT_EQ(odd[0].what, "leaf 1 has no cable to spine 2, 3 of 4 leaves have");
}

TEST(check, names_a_leaf_and_a_spine_that_nothing_reaches) {
  rails r(8, 4, 2);
  r.plug_all();
  for (const node_id s : r.spine) cut(r.p, r.leaf[3], s);
  auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 2U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "leaf:3 - spine:0");
  EXPECT_EQ(odd[1].where, "leaf:3 - spine:1");
  rails t(8, 4, 3);
  t.plug_all();
  for (const node_id l : t.leaf) cut(t.p, l, t.spine[1]);
  odd = bad(topo::check(t.p.graph()));
  ASSERT_EQ(odd.size(), 4U) << all_of(odd);
  for (const finding& f : odd) EXPECT_NE(f.where.find("spine:1"), std::string::npos) << all_of(odd);
}

TEST(check, names_a_pair_with_fewer_parallel_cables) {
  rails r(8, 4, 4, 2);
  r.plug_all();
  cut(r.p, r.leaf[0], r.spine[3]);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "leaf:0 - spine:3");
  EXPECT_EQ(odd[0].what, "leaf 0 and spine 3 are joined by 1 cable, 15 of 16 pairs by 2");
}

TEST(check, names_an_uplink_slower_than_its_siblings) {
  rails r(8, 4, 4);
  r.plug_all();
  for (topo::link& l : r.p.f.links)
    if ((l.from == r.leaf[2] && l.to == r.spine[1]) || (l.to == r.leaf[2] && l.from == r.spine[1])) {
      l.capacity = {25e9};
      l.nominal = l.capacity;
    }
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "leaf:2 - spine:1");
  EXPECT_EQ(odd[0].what, "the cable between leaf 2 and spine 1 has 200 Gb/s, others of leaf 2 have 400 Gb/s");
}

TEST(check, names_a_host_with_a_cable_missing) {
  rails r(8, 4, 2);
  for (std::uint32_t h = 0; h < 8; ++h)
    for (std::uint32_t k = 0; k < 4; ++k)
      if (h != 5 || k != 2) r.plug(h, k, k);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "n5/net:mlx5_2/1");
}

TEST(check, names_cables_that_cross_rails) {
  rails r(8, 4, 2);
  for (std::uint32_t h = 0; h < 8; ++h)
    for (std::uint32_t k = 0; k < 4; ++k) r.plug(h, k, h == 3 && (k == 1 || k == 2) ? 3 - k : k);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 2U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "n3/net:mlx5_1/1 - leaf:2");
  EXPECT_EQ(odd[0].what, "mlx5_1/1 of n3 (rail 1) goes to leaf 2, rail 1 of its neighbours to leaf 1");
  EXPECT_EQ(odd[1].where, "n3/net:mlx5_2/1 - leaf:1");
}

TEST(check, names_a_cable_on_the_leaf_of_another_rail) {
  rails r(8, 4, 2);
  for (std::uint32_t h = 0; h < 8; ++h)
    for (std::uint32_t k = 0; k < 4; ++k) r.plug(h, k, h == 6 && k == 0 ? 3 : k);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "n6/net:mlx5_0/1 - leaf:3");
  EXPECT_EQ(odd[0].what, "mlx5_0/1 of n6 goes to leaf 3, that of its neighbours to leaf 0");
}

TEST(check, cannot_tell_which_of_two_hosts_is_cabled_wrong) {
  rails r(2, 4, 2);
  for (std::uint32_t h = 0; h < 2; ++h)
    for (std::uint32_t k = 0; k < 4; ++k) r.plug(h, k, h == 1 && k == 0 ? 3 : k);
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "n0 - n1");
  EXPECT_EQ(odd[0].evidence, "cables to leaf 0: 1 and 0, leaf 3: 1 and 2");
}

TEST(check, compares_rails_of_hosts_of_one_kind) {
  rails r(8, 4, 2);
  for (std::uint32_t h = 0; h < 8; ++h)
    for (std::uint32_t k = 0; k < 4; ++k) r.plug(h, k, k);
  for (std::uint32_t s = 0; s < 3; ++s) {  // storage with one rail
    const std::string host = "storage" + std::to_string(s);
    const node_id port = r.p.port(0, 1, host);
    r.p.join(r.p.nic(0, host), port, link_kind::internal, 50);
    r.p.join(port, r.leaf[s], link_kind::infiniband, 50);
  }
  const auto found = topo::check(r.p.graph());
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "storage0", "3 hosts with 0 GPUs and 1 NIC are taken for another kind"))
      << all_of(found);
}

TEST(check, tells_ratios_and_names_the_leaf_that_deviates) {
  rails r(8, 4, 4);  // 400 GB/s down, 200 GB/s up
  r.plug_all();
  auto found = topo::check(r.p.graph());
  EXPECT_TRUE(bad(found).empty());
  EXPECT_TRUE(mentions(found, severity::note, "network", "oversubscribed: 2.00:1")) << all_of(found);
  for (topo::link& l : r.p.f.links)  // all uplinks of leaf 1 at a quarter, by design: its best is no more
    if (l.kind == link_kind::infiniband &&
        ((l.from == r.leaf[1] && l.to.value < 8) || (l.to == r.leaf[1] && l.from.value < 8)))
      l.nominal = l.capacity = {12.5e9};
  const auto odd = bad(topo::check(r.p.graph()));
  ASSERT_EQ(odd.size(), 1U) << all_of(odd);
  EXPECT_EQ(odd[0].where, "leaf:1");
  EXPECT_EQ(odd[0].what, "leaf 1 is oversubscribed 8.00:1, 3 of 4 leaves 2.00:1");
}

TEST(check, notes_leaves_with_unequal_numbers_of_hosts) {
  const auto found = checked("dgx-h100:nodes=17,rails=no,leaves=4");
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "network", "unequal numbers of hosts")) << all_of(found);
}

TEST(check, tells_networks_without_tiers) {
  rails r(4, 2, 0);
  r.plug_all();
  auto found = topo::check(r.p.graph());
  EXPECT_TRUE(bad(found).empty());
  EXPECT_TRUE(mentions(found, severity::note, "network", "2 leaves have no tier above and do not reach each other"));
  r.p.join(r.leaf[0], r.leaf[1], link_kind::infiniband, 50);
  found = topo::check(r.p.graph());
  EXPECT_TRUE(bad(found).empty()) << all_of(found);
  EXPECT_TRUE(mentions(found, severity::note, "network", "switches of one tier are joined to each other"))
      << all_of(found);
}

TEST(check, writes_out_no_more_than_asked_for) {
  std::string spec = "dgx-h100:nodes=9,leaves=8";
  for (int h = 0; h < 4; ++h) spec += ",slow=node" + std::to_string(h) + "/nic1:0.5";
  const auto found = topo::check(graph_of(spec), {.most_named = 2});
  EXPECT_TRUE(mentions(found, severity::warning, "network", "2 more findings of the sort 'link below its best'"))
      << all_of(found);
}

TEST(check_hosts, takes_a_tenth_of_a_cluster_with_fewer_adapters_for_another_kind_of_host) {
  namespace tc = topocoll;
  const auto cluster = [](std::uint32_t short_of_one) {
    tc::topo::fragment all;
    for (std::uint32_t h = 0; h < 12; ++h) {
      const std::string host = "n" + std::to_string(h);
      const auto add = [&](tc::topo::node_kind kind, const std::string& key) {
        tc::topo::node n;
        n.kind = kind;
        n.key = host + "/" + key;
        n.name = key;
        n.host = host;
        return all.add(n);
      };
      const tc::node_id cpu = add(tc::topo::node_kind::cpu, "numa:0");
      for (std::uint32_t k = 0; k < (h < short_of_one ? 3U : 4U); ++k) {
        tc::topo::link l;
        l.from = cpu;
        l.to = add(tc::topo::node_kind::nic, "pci:0000:0" + std::to_string(k + 1) + ":00.0");
        l.generation = 5;
        l.lanes = 16;
        l.capacity = {48e9};
        all.join(l);
      }
    }
    const auto g = tc::topo::graph::from(std::move(all));
    EXPECT_TRUE(g);
    std::size_t warnings = 0;
    for (const tc::finding& f : tc::topo::check(*g)) warnings += f.level != tc::severity::note ? 1U : 0U;
    return warnings;
  };
  EXPECT_EQ(cluster(0), 0U);
  EXPECT_EQ(cluster(1), 1U);
  EXPECT_EQ(cluster(4), 0U);
}
