// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/text.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::severity;

namespace {

topo::graph described(const char* spec) {
  auto f = topocoll::describe(spec);
  EXPECT_TRUE(f) << (f ? "" : f.error().what);
  auto g = topo::graph::from(f ? *std::move(f) : topo::fragment{});
  EXPECT_TRUE(g);
  return g ? *std::move(g) : topo::graph{};
}

/// A small host with everything that the tree has a form for.
parts small_host() {
  parts p;
  p.f.source = "test";
  const node_id cpu0 = p.cpu(0), cpu1 = p.cpu(1);
  p.join(cpu0, p.memory(0), link_kind::memory, 100, trust::assumed, "nobody reports it");
  p.join(cpu1, p.memory(1), link_kind::memory, 100, trust::assumed, "nobody reports it");
  p.join(cpu0, cpu1, link_kind::cpu, 22, trust::assumed, "NCCL's figure");
  const node_id root = p.bridge("0000:10:01.0", node_kind::pcie_root), s = p.bridge("0000:18:00.0");
  p.pcie(cpu0, root);
  const link_id up = p.pcie(root, s);
  for (const std::uint32_t i : {up.value, up.value + 1})
    p.f.links[i].current = p.f.links[i].capacity = bytes_per_second{15.8e9};
  const node_id gpu0 = p.gpu(0), gpu1 = p.gpu(1), nic = p.nic(0), dual = p.nic(1);
  p.f.nodes[gpu0.value].global_rank = 4;
  p.pcie(s, gpu0);
  p.pcie(s, nic);
  const link_id emulated = p.pcie(cpu1, gpu1, 1, 1);
  for (const std::uint32_t i : {emulated.value, emulated.value + 1}) {
    p.f.links[i].capacity = bytes_per_second{48e9};
    p.f.links[i].how = trust::assumed;
    p.f.links[i].reason = "an emulated bridge";
  }
  p.pcie(cpu1, dual, 5, 8);
  const node_id disk_root = p.bridge("0000:90:01.0", node_kind::pcie_root);
  p.pcie(cpu1, disk_root);
  p.pcie(disk_root, p.add(node_kind::pcie_device, "pci:0000:91:00.0", "nvme"));
  const node_id port = p.port(0), port1 = p.port(1, 1), port2 = p.port(1, 2);
  p.join(nic, port, link_kind::internal, 50);
  p.join(dual, port1, link_kind::internal, 25);
  p.join(dual, port2, link_kind::internal, 25);
  const node_id leaf = p.network(node_kind::leaf, 2);
  p.join(port, leaf, link_kind::infiniband, 50);
  p.join(port1, leaf, link_kind::infiniband, 25);
  p.join(gpu0, gpu1, link_kind::nvlink, 100);
  for (std::size_t i = p.f.links.size() - 2; i < p.f.links.size(); ++i) {
    p.f.links[i].generation = 3;
    p.f.links[i].lanes = 4;
  }
  p.f.findings.push_back({severity::note, "numa", "is guessed", "", "", 1});
  p.f.findings.push_back({severity::fault, "mlx5_0", "runs slow", "15.8 of 63.0 GB/s", "reseat it", 1});
  return p;
}

}  // namespace

TEST(topology_text, shows_a_host_as_a_tree) {
  EXPECT_EQ(topo::to_text(small_host().graph()),
            R"(1 host, 2 GPUs, 3 NICs, 2 NUMA domains, 1 PCIe switch, 1 network switch, 17 links
from test

h
+- NUMA 0
|  +- memory 0                           100 GB/s ?1
|  `- root port 0000:10:01.0             Gen5 x16 63.0 GB/s
|     `- switch 0000:18:00.0             Gen5 x16 63.0 GB/s, runs at 15.8 GB/s
|        +- mlx5_0  0000:00:00.0         Gen5 x16 63.0 GB/s, port 400 Gb/s InfiniBand to leaf 2
|        `- GPU 0  0000:a0:00.0  rank 4  Gen5 x16 63.0 GB/s
+- NUMA 1
|  +- memory 1                           100 GB/s ?1
|  +- mlx5_1  0000:01:00.0               Gen5 x8 31.5 GB/s
|  |  +- port mlx5_1/1                   200 Gb/s InfiniBand to leaf 2
|  |  `- port mlx5_1/2                   200 Gb/s, no cable
|  +- GPU 1  0000:a1:00.0                Gen1 x1 250 MB/s, taken as 48.0 GB/s ?2
|  `- 1 other PCIe device
+- NUMA 0 - NUMA 1                       22.0 GB/s ?3
+- GPU 0                                 4 x NVLink3 100 GB/s to GPU 1
`- GPU 1                                 4 x NVLink3 100 GB/s to GPU 0

fabric
`- leaf 2  1 x 400 Gb/s InfiniBand to NIC, 1 x 200 Gb/s InfiniBand to NIC

assumed
  ?1  nobody reports it
  ?2  an emulated bridge
  ?3  NCCL's figure

findings
  fault: mlx5_0: runs slow (15.8 of 63.0 GB/s); reseat it
  note: numa: is guessed
)");
}

TEST(topology_text, shows_equal_hosts_once_and_sums_up_the_fabric) {
  EXPECT_EQ(topo::to_text(described("dgx-h100:nodes=16,leaves=8,oversubscription=2")),
            R"(16 hosts, 128 GPUs, 128 NICs, 16 NVSwitch planes, 16 network switches, 576 links
from description 'dgx-h100:nodes=16,leaves=8,oversubscription=2'

node0  and 15 more hosts like it: node1-15
+- GPU 0-7  (8 alike, the first is shown)
|  `- mlx5_0  0000:12:00.0  Gen5 x16 63.0 GB/s, port 400 Gb/s InfiniBand to leaf 0
`- GPU 0-7                  18 x NVLink4 450 GB/s to NVSwitch

fabric
+- leaf 0-7   each 16 x 400 Gb/s InfiniBand to NICs, 8 x 400 Gb/s InfiniBand to spines; oversubscription 2:1
`- spine 0-7  each 8 x 400 Gb/s InfiniBand to leaf switches
)");
}

TEST(topology_text, shows_a_host_that_differs_beside_those_that_do_not) {
  parts p;
  const node_id leaf = p.network(node_kind::leaf, 0);
  for (std::uint32_t h = 0; h < 5; ++h) {
    const node_id nic = p.nic(0, "node" + std::to_string(h));
    p.join(nic, leaf, link_kind::infiniband, h == 3 ? 25 : 50);
  }
  EXPECT_EQ(topo::to_text(p.graph()), R"(5 hosts, 5 NICs, 1 network switch, 5 links

node0  and 3 more hosts like it: node1-2, node4
`- mlx5_0  0000:00:00.0  400 Gb/s InfiniBand to leaf 0

node3
`- mlx5_0  0000:00:00.0  200 Gb/s InfiniBand to leaf 0

fabric
`- leaf 0  4 x 400 Gb/s InfiniBand to NICs, 1 x 200 Gb/s InfiniBand to NIC
)");
}

TEST(topology_text, shows_everything_when_asked) {
  const auto g = described("dgx-h100:nodes=3");
  const std::string text = topo::to_text(g, {.everything = true});
  for (const topo::node& n : g.nodes()) {
    const std::string label = n.kind == node_kind::nic_port   ? "port"
                              : n.kind == node_kind::nvswitch ? "NVSwitch"
                                                              : n.name;
    EXPECT_NE(text.find(label), std::string::npos) << n.key;
  }
  for (const char* host : {"\nnode0\n", "\nnode2\n"}) EXPECT_NE(text.find(host), std::string::npos);
}

TEST(topology_text, limits_hosts_of_different_shape_and_findings) {
  parts p;
  for (std::uint32_t h = 0; h < 5; ++h)
    for (std::uint32_t i = 0; i <= h; ++i) p.nic(i, "node" + std::to_string(h));
  for (int i = 0; i < 4; ++i) p.f.findings.push_back({severity::note, "", std::to_string(i), "", "", 1});
  const std::string text = topo::to_text(p.graph(), {.hosts = 2, .findings = 3});
  EXPECT_NE(text.find("... and 3 more hosts of other shapes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  note: 2\n  ... and 1 more finding\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("node2"), std::string::npos);
}

TEST(topology_text, draws_with_box_characters_when_asked) {
  parts p;
  const node_id cpu = p.cpu(0);
  p.pcie(cpu, p.gpu(0));
  p.pcie(cpu, p.gpu(1));
  EXPECT_EQ(topo::to_text(p.graph(), {.unicode = true}), R"(1 host, 2 GPUs, 1 NUMA domain, 2 links

h
└─ NUMA 0
   ├─ GPU 0  0000:a0:00.0  Gen5 x16 63.0 GB/s
   └─ GPU 1  0000:a1:00.0  Gen5 x16 63.0 GB/s
)");
}

TEST(topology_text, sums_up_more_than_four_equal_siblings) {
  parts p;
  const node_id cpu = p.cpu(0);
  for (std::uint32_t i = 0; i < 5; ++i) p.pcie(cpu, p.nic(i));
  p.pcie(cpu, p.gpu(0), 4);
  EXPECT_EQ(topo::to_text(p.graph()), R"(1 host, 1 GPU, 5 NICs, 1 NUMA domain, 6 links

h
`- NUMA 0
   +- mlx5_0-4  (5 alike)  Gen5 x16 63.0 GB/s
   `- GPU 0  0000:a0:00.0  Gen4 x16 31.5 GB/s
)");
}

TEST(topology_text, has_a_place_for_devices_without_host_or_numa_domain) {
  parts p;
  p.add(node_kind::gpu, "gpu:x", "GPU x", "");
  const node_id s = p.bridge("0000:18:00.0", node_kind::pcie_switch, "h");
  p.pcie(s, p.gpu(0));
  EXPECT_EQ(topo::to_text(p.graph()), R"(1 host, 2 GPUs, 1 PCIe switch, 1 link

h
`- switch 0000:18:00.0
   `- GPU 0  0000:a0:00.0  Gen5 x16 63.0 GB/s

devices of no named host
`- GPU x
)");
}

TEST(topology_text, survives_loops_and_chains_of_any_depth) {
  parts p;
  node_id up = p.cpu(0);
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const node_id s = p.add(node_kind::pcie_switch, "bridge:" + std::to_string(i), "");
    p.pcie(up, s);
    up = s;
  }
  p.pcie(up, p.gpu(0));
  p.pcie(up, {0});
  EXPECT_NE(topo::to_text(p.graph()).find("GPU 0"), std::string::npos);
}

TEST(joined_names, joins_runs_of_numbers_and_cuts_long_lists) {
  using topo::detail::joined_names;
  EXPECT_EQ(joined_names({}), "");
  EXPECT_EQ(joined_names({"GPU 3"}), "GPU 3");
  EXPECT_EQ(joined_names({"GPU 0", "GPU 1", "GPU 2", "GPU 5", "x"}), "GPU 0-2, GPU 5, x");
  EXPECT_EQ(joined_names({"a1", "a3", "a5", "a7"}, 3), "a1, a3, ... (4 in all)");
  EXPECT_EQ(joined_names({"n99999999999999999999"}), "n99999999999999999999");
}
