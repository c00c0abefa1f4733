// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/diff.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::finding;
using topocoll::severity;

namespace {

topo::fragment described(const std::string& spec) {
  auto f = topocoll::describe(spec);
  EXPECT_TRUE(f) << spec << ": " << (f ? "" : f.error().what);
  return f ? *std::move(f) : topo::fragment{};
}
topo::graph frozen(topo::fragment f) {
  auto g = topo::graph::from(std::move(f));
  EXPECT_TRUE(g) << (g ? "" : g.error().what);
  return g ? *std::move(g) : topo::graph{};
}
topo::graph graph_of(const std::string& spec) { return frozen(described(spec)); }

std::string all_of(const std::vector<finding>& findings) {
  std::string text;
  for (const finding& f : findings)
    text += std::string(to_string(f.level)) + " | " + f.where + " | " + f.what + " | " + f.evidence + '\n';
  return text;
}
std::size_t count(const std::vector<finding>& findings, severity level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const finding& f) { return f.level == level; }));
}
bool mentions(const std::vector<finding>& findings, severity level, std::string_view where, std::string_view what) {
  return std::any_of(findings.begin(), findings.end(), [&](const finding& f) {
    return f.level == level && f.where.find(where) != std::string::npos && f.what.find(what) != std::string::npos;
  });
}

/// The same machine as another system may number it: another name, other buses, GPUs and NICs in another order, nodes and
/// links in another order, other GUIDs. `order[i]` is the number that GPU i and NIC i get.
topo::fragment renumbered(const topo::fragment& f, const std::string& host, const std::vector<std::uint32_t>& order,
                          std::uint32_t seed) {
  topo::fragment out;
  out.source = "renumbered";
  std::vector<std::uint32_t> place(f.nodes.size());
  for (std::uint32_t i = 0; i < place.size(); ++i) place[i] = i;
  for (std::size_t i = place.size(); i > 1; --i) {
    seed = seed * 1664525U + 1013904223U;
    std::swap(place[i - 1], place[(seed >> 8U) % i]);
  }
  out.nodes.resize(f.nodes.size());
  for (std::size_t i = 0; i < f.nodes.size(); ++i) {
    topo::node n = f.nodes[i];
    n.host = host;
    const std::string local = n.key.substr(n.key.find('/') + 1);
    if (n.kind == node_kind::gpu || n.kind == node_kind::nic || n.kind == node_kind::nic_port)
      n.index = order[*n.index];
    if (local.substr(0, 4) == "pci:") {
      const topo::pci_address a{0, static_cast<std::uint8_t>(0x80 + place[i]), 0, 0};
      n.key = host + "/pci:" + to_string(a);
      if (n.kind == node_kind::gpu) n.name = "GPU " + std::to_string(*n.index);
      if (n.kind == node_kind::nic) n.name = "net" + std::to_string(*n.index);
    } else if (n.kind == node_kind::nic_port) {
      n.key = host + "/net:net" + std::to_string(*n.index) + "/1";
      n.name = "net" + std::to_string(*n.index) + "/1";
    } else {
      n.key = host + '/' + local;
    }
    if (n.kind == node_kind::nic)
      n.facts.emplace_back("node_guid", "0x" + std::string(13, '0') + std::to_string(100 + i));
    out.nodes[place[i]] = std::move(n);
  }
  for (topo::link l : f.links) {
    l.from = {place[l.from.value]};
    l.to = {place[l.to.value]};
    out.links.push_back(l);
  }
  std::reverse(out.links.begin(), out.links.end());
  return out;
}

const std::vector<std::uint32_t> in_order{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST(diff, of_a_graph_with_itself_is_empty) {
  for (const char* spec : {"dgx-1v", "dgx-a100", "dgx-h100", "gb200-nvl72:nodes=2,leaves=4", "pcie:nodes=3",
                           "dgx-h100:nodes=17,leaves=16,oversubscription=2"}) {
    const topo::graph g = graph_of(spec);
    const topo::difference d = topo::diff(g, g);
    EXPECT_TRUE(d.findings.empty()) << spec << '\n' << all_of(d.findings);
    EXPECT_EQ(d.same.size(), g.node_count()) << spec;
    EXPECT_TRUE(d.missing.empty() && d.added.empty() && d.links.empty() && d.paths.empty());
    for (const topo::same_device& s : d.same) EXPECT_EQ(s.how, topo::recognised::by_key);
  }
}

TEST(diff, of_nothing_is_empty) {
  EXPECT_TRUE(topo::diff(topo::graph{}, topo::graph{}).findings.empty());
  const topo::graph g = graph_of("dgx-a100");
  const topo::difference d = topo::diff(g, topo::graph{});
  EXPECT_TRUE(mentions(d.findings, severity::warning, "node0", "host node0 is in A and not in B"))
      << all_of(d.findings);
  EXPECT_EQ(d.missing.size(), g.node_count());
}

TEST(diff, of_equal_nodes_with_other_names_buses_and_guids_is_empty) {
  for (const char* spec : {"dgx-1v", "dgx-a100", "dgx-h100", "pcie"}) {
    const topo::fragment f = described(spec);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      const topo::graph a = frozen(f);
      const topo::graph b = frozen(renumbered(f, "node7", in_order, seed));
      const topo::difference d = topo::diff(a, b);
      ASSERT_TRUE(d.findings.empty()) << spec << ", seed " << seed << '\n' << all_of(d.findings);
      ASSERT_EQ(d.same.size(), a.node_count());
      for (const topo::same_device& s : d.same) {
        EXPECT_EQ(a.at(s.a).kind, b.at(s.b).kind);
        EXPECT_EQ(a.at(s.a).index, b.at(s.b).index) << a.at(s.a).key;
      }
    }
  }
}

TEST(diff, calls_another_order_of_gpus_a_note) {
  const topo::fragment f = described("dgx-a100");
  const std::vector<std::uint32_t> order{3, 2, 1, 0, 7, 6, 5, 4};
  const topo::difference d = topo::diff(frozen(f), frozen(renumbered(f, "guest", order, 5)));
  EXPECT_EQ(count(d.findings, severity::warning), 0U) << all_of(d.findings);
  EXPECT_TRUE(d.missing.empty() && d.added.empty() && d.links.empty() && d.paths.empty());
}

TEST(diff, calls_other_addresses_of_one_host_a_note) {
  const topo::fragment f = described("dgx-h100");
  const topo::difference d = topo::diff(frozen(f), frozen(renumbered(f, "node0", in_order, 3)));
  EXPECT_TRUE(d.same_but_for_notes()) << all_of(d.findings);
  EXPECT_TRUE(mentions(d.findings, severity::note, "node0", "have other addresses")) << all_of(d.findings);
}

TEST(diff, names_a_slower_link_with_both_figures) {
  const topo::graph a = graph_of("dgx-h100");
  const topo::graph b = graph_of("dgx-h100:slow=node0/gpu3:0.5");
  const topo::difference d = topo::diff(a, b, {.a = "monday", .b = "friday"});
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);
  EXPECT_EQ(d.findings[0].level, severity::warning);
  EXPECT_EQ(d.findings[0].where, "node0/pci:0000:1a:00.0 - node0/pci:0000:19:00.0");
  EXPECT_NE(d.findings[0].what.find("GPU 3"), std::string::npos) << all_of(d.findings);
  EXPECT_NE(d.findings[0].what.find("is slower in friday: Gen5 x16, 63.0 GB/s in monday"), std::string::npos)
      << all_of(d.findings);
  EXPECT_NE(d.findings[0].what.find("31.5 GB/s in friday"), std::string::npos) << all_of(d.findings);
  EXPECT_TRUE(mentions(topo::diff(b, a).findings, severity::warning, "node0/pci:0000:1a:00.0", "is faster in B"));
}

TEST(diff, names_lost_nvlinks) {
  const topo::difference d = topo::diff(graph_of("dgx-h100"), graph_of("dgx-h100:nvlinks_down=node0/gpu6:5"));
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);
  EXPECT_NE(d.findings[0].what.find("18 x NVLink4, 450 GB/s in A, 13 x NVLink4, 325 GB/s in B"), std::string::npos)
      << all_of(d.findings);
  ASSERT_EQ(d.links.size(), 1U);
  EXPECT_EQ(d.links[0].a->lanes, 18U);
  EXPECT_EQ(d.links[0].b->lanes, 13U);
}

TEST(diff, names_missing_and_added_devices_of_renumbered_machines) {
  const topo::fragment whole = described("dgx-h100");
  for (std::uint32_t nic = 0; nic < 8; ++nic) {
    const topo::fragment part = described("dgx-h100:missing=node0/nic" + std::to_string(nic));
    const topo::graph a = frozen(whole);
    const topo::graph b = frozen(renumbered(part, "other", in_order, nic + 1));
    const topo::difference d = topo::diff(a, b);
    ASSERT_EQ(d.missing.size(), 2U) << nic << '\n' << all_of(d.findings);  // the NIC and its port
    EXPECT_TRUE(d.added.empty());
    const std::string name = "mlx5_" + std::to_string(nic);
    EXPECT_TRUE(mentions(d.findings, severity::warning, "node0/pci:", name + " is in A and not in B"))
        << all_of(d.findings);
    EXPECT_EQ(count(d.findings, severity::warning), 1U) << all_of(d.findings);
    const topo::difference back = topo::diff(b, a);
    EXPECT_EQ(back.added.size(), 2U);
    EXPECT_TRUE(mentions(back.findings, severity::warning, "node0/pci:", "is in B and not in A"))
        << all_of(back.findings);
  }
}

TEST(diff, finds_devices_by_uuid_whatever_their_place) {
  parts host, guest;
  for (parts* p : {&host, &guest}) {
    const std::string name = p == &host ? "h" : "vm";
    const node_id cpu = p->cpu(0, name);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const node_id gpu = p->gpu(p == &host ? i : i + 4, name);
      // The guest lists the GPUs backwards.
      const std::uint32_t who = p == &host ? i : 3 - i;
      p->f.nodes[gpu.value].index = i;
      p->f.nodes[gpu.value].facts.emplace_back("uuid", "GPU-" + std::to_string(who));
      p->pcie(cpu, gpu);
    }
  }
  const topo::graph a = host.graph();
  const topo::graph b = guest.graph();
  const topo::difference d = topo::diff(a, b);
  std::size_t by_identity = 0;
  for (const topo::same_device& s : d.same)
    if (a.at(s.a).kind == node_kind::gpu) {
      by_identity += s.how == topo::recognised::by_identity ? 1 : 0;
      EXPECT_EQ(a.at(s.a).facts, b.at(s.b).facts);
    }
  EXPECT_EQ(by_identity, 4U);
  EXPECT_TRUE(d.same_but_for_notes()) << all_of(d.findings);
  EXPECT_TRUE(mentions(d.findings, severity::note, "h | vm", "4 devices have other numbers")) << all_of(d.findings);
}

namespace {

/// Two sockets with two switches each, below each a GPU and a NIC; `flat` leaves the switches out, as guests do.
parts machine(const std::string& host, bool flat) {
  parts p;
  const node_id cpus[] = {p.cpu(0, host), p.cpu(1, host)};
  p.join(cpus[0], cpus[1], link_kind::cpu, 20, trust::assumed, "nobody reports it");
  for (std::uint32_t i = 0; i < 4; ++i) {
    const node_id cpu = cpus[i / 2];
    node_id above = cpu;
    if (!flat) {
      above = p.bridge("0000:5" + std::to_string(i) + ":00.0", node_kind::pcie_switch, host);
      p.pcie(cpu, above);
    }
    p.pcie(above, p.gpu(i, host));
    p.pcie(above, p.nic(i, host));
  }
  return p;
}

}  // namespace

TEST(diff, tells_what_a_flat_guest_does_to_paths) {
  const topo::difference d = topo::diff(machine("metal", false).graph(), machine("guest", true).graph());
  EXPECT_EQ(d.missing.size(), 4U);
  EXPECT_TRUE(mentions(d.findings, severity::note, "metal/pci:0000:50:00.0", "is in A and not in B"))
      << all_of(d.findings);
  ASSERT_TRUE(mentions(d.findings, severity::warning, "metal | guest",
                       "paths between GPUs and NICs are PIX in A and PHB in B (4 pairs)"))
      << all_of(d.findings);
  EXPECT_EQ(count(d.findings, severity::warning), 1U) << all_of(d.findings);
  EXPECT_EQ(d.paths.size(), 4U);
  for (const topo::path_change& p : d.paths) {
    EXPECT_EQ(p.a, topo::path_class::PIX);
    EXPECT_EQ(p.b, topo::path_class::PHB);
  }
  EXPECT_TRUE(
      topo::diff(machine("metal", false).graph(), machine("guest", true).graph(), {.paths = false}).paths.empty());
}

TEST(diff, tells_a_device_that_moved_to_another_numa_domain) {
  parts before = machine("h", false);
  parts after = machine("h", false);
  for (parts* p : {&before, &after})
    for (topo::node& n : p->f.nodes)
      if (n.kind == node_kind::gpu) n.numa = *n.index / 2;
  for (topo::node& n : after.f.nodes)
    if (n.kind == node_kind::gpu && *n.index == 1) n.numa = 1;
  const topo::difference d = topo::diff(before.graph(), after.graph());
  EXPECT_TRUE(mentions(d.findings, severity::warning, "h/pci:", "GPU 1 belongs to NUMA domain 0 in A and to 1 in B"))
      << all_of(d.findings);
  ASSERT_EQ(d.changed.size(), 1U);
}

TEST(diff, does_not_blame_what_one_side_does_not_tell) {
  parts full = machine("h", false);
  parts poor = machine("h", false);
  full.f.nodes[2].numa = 0;
  for (topo::node& n : full.f.nodes)
    if (n.kind == node_kind::gpu) n.numa = *n.index / 2;
  const node_id memory = full.memory(0);
  full.join({0}, memory, link_kind::memory, 200);
  for (topo::link& l : poor.f.links) {  // no figure is told
    l.generation = l.lanes = 0;
    l.nominal.reset();
    l.capacity = {1e9};
    l.how = trust::assumed;
    l.reason = "not told";
  }
  for (const bool turned : {false, true}) {
    const topo::difference d = turned ? topo::diff(poor.graph(), full.graph()) : topo::diff(full.graph(), poor.graph());
    EXPECT_TRUE(d.same_but_for_notes()) << all_of(d.findings);
    EXPECT_TRUE(mentions(d.findings, severity::note, "", "1 memory of")) << all_of(d.findings);
    EXPECT_TRUE(mentions(d.findings, severity::note, "h", "the NUMA domain of")) << all_of(d.findings);
    EXPECT_TRUE(mentions(d.findings, severity::note, "h", "links cannot be compared")) << all_of(d.findings);
  }
}

TEST(diff, does_not_believe_an_idle_gpu_but_a_narrow_width) {
  parts busy = machine("h", true);
  parts idle = machine("h", true);
  parts narrow = machine("h", true);
  for (parts* p : {&idle, &narrow})
    for (topo::link& l : p->f.links) {
      if (l.kind != link_kind::pcie) continue;
      l.generation = 1;
      l.current = bytes_per_second{4e9};
      l.how = trust::assumed;
      l.reason = "idle";
      if (p == &narrow) {
        l.lanes = 8;
        l.capacity = {l.capacity.value / 2};
      }
    }
  EXPECT_TRUE(topo::diff(busy.graph(), idle.graph()).findings.empty())
      << all_of(topo::diff(busy.graph(), idle.graph()).findings);
  const topo::difference d = topo::diff(busy.graph(), narrow.graph());
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);  // many of one sort are told together
  EXPECT_NE(d.findings[0].what.find("8 PCIe links are slower in B: Gen5 x16, 63.0 GB/s in A"), std::string::npos)
      << all_of(d.findings);
  EXPECT_EQ(d.links.size(), 8U);
}

TEST(diff, takes_nvlinks_that_nobody_looked_for_as_untold) {
  for (const bool asked : {false, true}) {  // whether the other side asked the driver
    parts with, without;
    for (parts* p : {&with, &without}) {
      const node_id cpu = p->cpu(0);
      const node_id gpus[] = {p->gpu(0), p->gpu(1)};
      for (const node_id gpu : gpus) {
        p->pcie(cpu, gpu);
        if (asked) p->f.nodes[gpu.value].facts.emplace_back("sm", "90");
      }
      if (p == &with) p->join(gpus[0], gpus[1], link_kind::nvlink, 100);
    }
    const topo::difference d = topo::diff(with.graph(), without.graph());
    if (asked) {
      EXPECT_TRUE(mentions(d.findings, severity::warning, "h/pci:", "the NVLink connection between"))
          << all_of(d.findings);
      EXPECT_TRUE(mentions(d.findings, severity::warning, "h", "paths between GPUs are NVL in A and PHB in B"))
          << all_of(d.findings);
    } else {
      EXPECT_TRUE(d.same_but_for_notes()) << all_of(d.findings);
      EXPECT_TRUE(mentions(d.findings, severity::note, "B", "links of kind nvlink cannot be compared"))
          << all_of(d.findings);
    }
  }
}

TEST(diff, of_clusters_follows_hosts_to_renamed_switches) {
  topo::fragment b = described("dgx-h100:nodes=8,leaves=8,spines=4");
  for (topo::node& n : b.nodes)
    if (n.host.empty()) {
      n.key = "switch:" + std::to_string(100 - *n.index) + to_string(n.kind);
      n.name.clear();
      n.index.reset();
    }
  const topo::graph a = graph_of("dgx-h100:nodes=8,leaves=8,spines=4");
  const topo::difference d = topo::diff(a, frozen(b));
  EXPECT_TRUE(d.same_but_for_notes()) << all_of(d.findings);
  EXPECT_EQ(d.same.size(), a.node_count());
}

TEST(diff, tells_ports_that_went_down) {
  parts up, down;
  for (parts* p : {&up, &down}) {
    const node_id nic = p->nic(0);
    const node_id port = p->port(0);
    p->join(nic, port, link_kind::internal, 50);
    p->f.nodes[port.value].facts.emplace_back("state", p == &up ? "active" : "down");
  }
  const topo::difference d = topo::diff(up.graph(), down.graph());
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);
  EXPECT_EQ(d.findings[0].what, "port mlx5_0/1 is up in A and down in B");
}

TEST(diff, tells_another_model_in_the_same_place) {
  parts before = machine("h", false);
  parts after = machine("h", false);
  for (parts* p : {&before, &after})
    for (topo::node& n : p->f.nodes)
      if (n.kind == node_kind::gpu) n.facts.emplace_back("device", p == &after && *n.index == 2 ? "0x20b2" : "0x2330");
  const topo::difference d = topo::diff(before.graph(), after.graph());
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);
  EXPECT_EQ(d.findings[0].what, "GPU 2 is another model in B");
  EXPECT_EQ(d.findings[0].evidence, "device 0x2330 in A, 0x20b2 in B");
}

TEST(diff, of_clusters_names_each_planted_fault_once) {
  const topo::graph a = graph_of("dgx-h100:nodes=16,leaves=16");
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    const auto options = topocoll::parse_spec("dgx-h100:nodes=16,leaves=16,faults=5:" + std::to_string(seed));
    ASSERT_TRUE(options);
    auto made = topocoll::generate(*options);
    ASSERT_TRUE(made);
    const topo::difference d = topo::diff(a, frozen(*std::move(made)));
    EXPECT_EQ(count(d.findings, severity::warning), 5U) << seed << '\n' << all_of(d.findings);
    EXPECT_EQ(d.findings.size(), 5U) << seed << '\n' << all_of(d.findings);
  }
}

TEST(diff, pairs_hosts_by_what_they_look_like) {
  topo::fragment a = described("dgx-h100:nodes=5,leaves=8,missing=node3/gpu1");
  topo::fragment b = described("dgx-h100:nodes=5,leaves=8,missing=node1/gpu1");
  for (topo::node& n : b.nodes)
    if (!n.host.empty()) {
      n.key = "x" + n.key;
      n.host = "x" + n.host;
    }
  const topo::difference d = topo::diff(frozen(a), frozen(b));
  EXPECT_EQ(d.hosts.size(), 5U);
  EXPECT_NE(std::find(d.hosts.begin(), d.hosts.end(), std::pair<std::string, std::string>("node3", "xnode1")),
            d.hosts.end());
  EXPECT_TRUE(d.findings.empty()) << all_of(d.findings);
}

TEST(diff, follows_a_mapping_of_hosts) {
  topo::fragment b = described("dgx-h100:nodes=3,leaves=8,missing=node1/gpu1");
  const topo::graph a = graph_of("dgx-h100:nodes=3,leaves=8");
  const topo::difference d = topo::diff(a, frozen(b), {.hosts = {{"node0", "node1"}, {"node1", "node0"}}});
  EXPECT_TRUE(mentions(d.findings, severity::warning, "node0/pci:", "GPU 1 of node0 is in A and not in B"))
      << all_of(d.findings);
}

TEST(diff, tells_a_cable_that_leads_to_another_leaf) {
  parts before, after;
  for (parts* p : {&before, &after}) {
    const node_id leaves[] = {p->network(node_kind::leaf, 0), p->network(node_kind::leaf, 1)};
    for (std::uint32_t i = 0; i < 4; ++i) {
      const node_id nic = p->nic(i);
      const node_id port = p->port(i);
      p->join(nic, port, link_kind::internal, 50);
      p->join(port, leaves[p == &after && i == 1 ? 1 : i / 2], link_kind::infiniband, 50);
    }
  }
  const topo::difference d = topo::diff(before.graph(), after.graph());
  ASSERT_EQ(d.findings.size(), 1U) << all_of(d.findings);
  EXPECT_EQ(d.findings[0].level, severity::warning);
  EXPECT_EQ(d.findings[0].what, "the cable of mlx5_1/1 leads to leaf 0 in A and to leaf 1 in B");
}
