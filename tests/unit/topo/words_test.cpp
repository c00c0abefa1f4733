// SPDX-License-Identifier: Apache-2.0
#include <topocoll/topo/words.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;

TEST(label_of, is_the_name_or_the_address_or_the_key) {
  topo::node n;
  n.kind = node_kind::gpu;
  n.key = "h/pci:0000:1b:00.0";
  n.host = "h";
  EXPECT_EQ(topo::label_of(n), "GPU 0000:1b:00.0");
  n.name = "GPU 3";
  EXPECT_EQ(topo::label_of(n), "GPU 3");
  n.kind = node_kind::pcie_switch;
  EXPECT_EQ(topo::label_of(n), "switch 0000:1b:00.0") << "a bridge is known by its address";
  n.kind = node_kind::nvswitch;
  n.key = "h/nvswitch";
  n.name.clear();
  EXPECT_EQ(topo::label_of(n), "NVSwitch nvswitch");
  n.kind = node_kind::leaf;
  n.key = "switch:0x248a070300f8d2c0";
  n.host.clear();
  EXPECT_EQ(topo::label_of(n), "leaf switch:0x248a070300f8d2c0");
}

TEST(bits_text, is_how_network_people_write_rates) {
  EXPECT_EQ(topo::bits_text({50e9}), "400 Gb/s");
  EXPECT_EQ(topo::bits_text({12.5e9}), "100 Gb/s");
  EXPECT_EQ(topo::bits_text({7e9}), "56 Gb/s");
  EXPECT_EQ(topo::bits_text({0.125e9}), "1 Gb/s");
  EXPECT_EQ(topo::bits_text({0.3125e9}), "2.5 Gb/s");
  EXPECT_EQ(topo::bits_text({6.82e9}), "54.6 Gb/s");
  EXPECT_EQ(topo::bits_text({0}), "0 Gb/s");
}

TEST(make_of, names_generation_and_width_as_far_as_they_are_known) {
  topo::link l;
  EXPECT_EQ(topo::make_of(l), "PCIe");
  l.lanes = 8;
  EXPECT_EQ(topo::make_of(l), "PCIe x8");
  l.generation = 4;
  EXPECT_EQ(topo::make_of(l), "Gen4 x8");
  l.kind = link_kind::nvlink;
  EXPECT_EQ(topo::make_of(l), "8 x NVLink4");
  l.kind = link_kind::xgmi;
  l.generation = 0;
  EXPECT_EQ(topo::make_of(l), "8 x XGMI");
  l.kind = link_kind::infiniband;
  l.nominal = bytes_per_second{50e9};
  EXPECT_EQ(topo::make_of(l), "400 Gb/s InfiniBand");
  l.kind = link_kind::ethernet;
  l.nominal.reset();
  l.capacity = {1.25e9};
  EXPECT_EQ(topo::make_of(l), "10 Gb/s Ethernet");
}

TEST(below, is_the_side_of_a_pcie_link_away_from_the_cpu) {
  parts p;
  const node_id cpu = p.cpu(0), a = p.bridge("0000:18:00.0"), b = p.bridge("0000:20:00.0"), gpu = p.gpu(0),
                nic = p.nic(0), other = p.gpu(1);
  p.pcie(cpu, a);
  const link_id e = p.pcie(a, b);
  p.pcie(b, gpu);
  p.pcie(b, nic);
  p.pcie(a, other);
  const auto g = p.graph();
  for (const link_id way : {e, link_id{e.value + 1}}) {
    const auto part = topo::below(g, way);
    EXPECT_EQ(part.top, b);
    EXPECT_EQ(part.devices, (std::vector<node_id>{gpu, nic}));
  }
}

TEST(below, takes_the_device_for_the_lower_end_where_no_cpu_is_known) {
  parts p;
  const node_id s = p.bridge("0000:18:00.0"), gpu = p.gpu(0);
  const link_id e = p.pcie(gpu, s);
  const auto g = p.graph();
  EXPECT_EQ(topo::below(g, e).top, gpu);
  EXPECT_EQ(topo::below(g, {e.value + 1}).top, gpu);
}

TEST(describe_link, reads_as_the_object_of_limited_by) {
  parts p;
  const node_id cpu = p.cpu(0), memory = p.memory(0), gpu = p.gpu(0), peer = p.gpu(1), nic = p.nic(0), port = p.port(0);
  const node_id leaf = p.network(node_kind::leaf, 3);
  const link_id c2c = p.join(cpu, gpu, link_kind::c2c, 450);
  const link_id mem = p.join(cpu, memory, link_kind::memory, 450);
  const link_id nv = p.join(gpu, peer, link_kind::nvlink, 450);
  const link_id pcie = p.pcie(cpu, nic, 5, 8);
  const link_id inside = p.join(port, nic, link_kind::internal, 50);
  const link_id cable = p.join(port, leaf, link_kind::infiniband, 50);
  const auto g = p.graph();
  EXPECT_EQ(topo::describe(g, c2c, false), "the C2C link of GPU 0");
  EXPECT_EQ(topo::describe(g, mem, false), "the memory of NUMA 0");
  EXPECT_EQ(topo::describe(g, nv, false), "the NVLink between GPU 0 and GPU 1");
  EXPECT_EQ(topo::describe(g, pcie, false), "the Gen5 x8 link of mlx5_0");
  EXPECT_EQ(topo::describe(g, inside, false), "port mlx5_0/1");
  EXPECT_EQ(topo::describe(g, cable, false), "the 400 Gb/s InfiniBand link between mlx5_0/1 and leaf 3");
  EXPECT_EQ(topo::describe(g, cable, true), "the 400 Gb/s InfiniBand link between mlx5_0/1 of h and leaf 3");
}
