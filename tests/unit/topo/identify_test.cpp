// SPDX-License-Identifier: Apache-2.0
// How merging recognises devices, hosts and stand-ins whose keys differ.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/topo/merge.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topo::fragment;
using topocoll::severity;

namespace {

using facts = std::vector<std::pair<std::string, std::string>>;

/// A fragment whose nodes have whole keys, hosts being what stands before the slash.
struct source {
  parts p;
  explicit source(const std::string& name) { p.f.source = name; }
  node_id add(node_kind kind, const std::string& key, facts told = {}, const std::string& name = {}) {
    const std::size_t slash = key.find('/');
    const bool hosted = slash != std::string::npos;
    const node_id v = p.add(kind, hosted ? key.substr(slash + 1) : key, name, hosted ? key.substr(0, slash) : "");
    p.f.nodes[v.value].facts = std::move(told);
    return v;
  }
  node_id gpu(const std::string& key, std::uint32_t index, facts told = {}) {
    const node_id v = add(node_kind::gpu, key, std::move(told));
    p.f.nodes[v.value].index = index;
    return v;
  }
  /// An adapter with one port.
  node_id adapter(const std::string& key, const std::string& port, facts of_nic = {}, facts of_port = {}) {
    const node_id nic = add(node_kind::nic, key, std::move(of_nic));
    const node_id at = add(node_kind::nic_port, port, std::move(of_port));
    p.join(nic, at, link_kind::internal, 50);
    return at;
  }
  /// What stands for an adapter with a cable to a switch.
  node_id stand_in(const std::string& host, std::uint32_t number, node_id leaf) {
    const std::string place = "?/" + std::to_string(number);
    const node_id at =
        adapter(host + "/nic:" + place, host + "/net:" + place, {{"stand_in", "nic"}}, {{"stand_in", "nic_port"}});
    for (node_id v : {at, node_id{at.value - 1}}) {
      p.f.nodes[v.value].index = number - 1;
      p.f.nodes[v.value].how = trust::assumed;
    }
    p.join(at, leaf, link_kind::infiniband, 25);
    return at;
  }
};

std::string text_of(const fragment& f) {
  std::string text;
  for (const auto& n : f.nodes) {
    text += n.key + "|" + to_string(n.kind) + "|" + n.host + "|" + n.name;
    for (const auto& [name, value] : n.facts) text += "|" + name + "=" + value;
    text += "\n";
  }
  for (const auto& l : f.links)
    text += std::to_string(l.from.value) + ">" + std::to_string(l.to.value) + to_string(l.kind) +
            std::to_string(l.capacity.value) + "\n";
  for (const auto& found : f.findings) text += found.where + ": " + found.what + " (" + found.evidence + ")\n";
  return text;
}
fragment merged(std::vector<fragment> all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.source < b.source; });
  auto first = topo::merge(all);
  EXPECT_TRUE(first) << (first ? "" : first.error().what);
  while (
      std::next_permutation(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.source < b.source; })) {
    const auto other = topo::merge(all);
    EXPECT_EQ(text_of(*other), text_of(*first)) << "the order of the fragments matters";
  }
  EXPECT_TRUE(topo::graph::from(*first));
  return first ? *std::move(first) : fragment{};
}
std::vector<std::string> keys(const fragment& f) {
  std::vector<std::string> all;
  for (const auto& n : f.nodes) all.push_back(n.key);
  std::sort(all.begin(), all.end());
  return all;
}
using names = std::vector<std::string>;
std::vector<std::string> told(const fragment& f, severity least = severity::warning) {
  std::vector<std::string> all;
  for (const auto& found : f.findings)
    if (found.level >= least) all.push_back(found.what);
  return all;
}
/// "a > b" of the links of one kind.
names joined(const fragment& f, link_kind kind) {
  names all;
  for (const auto& l : f.links)
    if (l.kind == kind && f.nodes[l.from.value].key < f.nodes[l.to.value].key)
      all.push_back(f.nodes[l.from.value].key + " > " + f.nodes[l.to.value].key);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST(identity, of_a_device_outweighs_its_key) {
  source a("a"), b("b"), c("c");
  a.gpu("h/gpu:0", 0, {{"model", "x"}, {"uuid", "GPU-1"}});
  b.gpu("h/pci:0000:1b:00.0", 0, {{"uuid", "GPU-1"}});
  c.adapter("h/net:mlx5_0", "h/net:mlx5_0/1", {{"node_guid", "0x00000000000000a1"}});
  b.adapter("h/pci:0000:1c:00.0", "h/net:rdma0/1", {{"node_guid", "0x00000000000000a1"}});
  const fragment f = merged({a.p.f, b.p.f, c.p.f});
  EXPECT_EQ(keys(f), (names{"h/net:mlx5_0/1", "h/net:rdma0/1", "h/pci:0000:1b:00.0", "h/pci:0000:1c:00.0"}));
  EXPECT_EQ(f.nodes[0].facts, (facts{{"model", "x"}, {"uuid", "GPU-1"}}));
}

TEST(identity, that_two_devices_of_a_source_share_is_none) {
  source a("a"), b("b");
  a.gpu("h/gpu:0", 0, {{"uuid", "GPU-1"}});
  a.gpu("h/gpu:1", 1, {{"uuid", "GPU-1"}});
  b.gpu("h/pci:0000:1b:00.0", 7, {{"uuid", "GPU-1"}});
  const fragment f = merged({a.p.f, b.p.f});
  EXPECT_EQ(f.nodes.size(), 3U);
  const auto notes = told(f, severity::note);
  EXPECT_NE(std::find(notes.begin(), notes.end(), "a uuid is that of several devices, so it names none"), notes.end());
}

TEST(identity, that_differs_under_one_key_is_a_contradiction) {
  source a("a"), b("b");
  a.adapter("h/pci:0000:1b:00.0", "h/net:mlx5_0/1", {}, {{"port_guid", "0x00000000000000a1"}});
  b.adapter("h/pci:0000:1b:00.0", "h/net:mlx5_0/1", {}, {{"port_guid", "0x00000000000000b1"}});
  const fragment f = merged({a.p.f, b.p.f});
  EXPECT_EQ(f.nodes.size(), 2U);
  EXPECT_EQ(told(f), names{"sources disagree on the port_guid of 'h/net:mlx5_0/1'"});
}

TEST(identity, of_hosts_comes_from_their_names_with_and_without_a_domain) {
  source a("a"), b("b");
  a.gpu("node7/pci:0000:1b:00.0", 0);
  a.gpu("node8/pci:0000:1b:00.0", 0);
  b.adapter("node7.example.com/net:mlx5_0", "node7.example.com/net:mlx5_0/1");
  b.adapter("node9.example.com/net:mlx5_0", "node9.example.com/net:mlx5_0/1");
  const fragment f = merged({a.p.f, b.p.f});
  EXPECT_EQ(keys(f),
            (names{"node7/net:mlx5_0", "node7/net:mlx5_0/1", "node7/pci:0000:1b:00.0", "node8/pci:0000:1b:00.0",
                   "node9.example.com/net:mlx5_0", "node9.example.com/net:mlx5_0/1"}));
  EXPECT_TRUE(told(f).empty());
}

TEST(identity, of_hosts_is_left_open_where_their_names_can_mean_several) {
  source a("a"), b("b"), c("c"), d("d");
  a.gpu("node7/gpu:0", 0);
  b.gpu("node7.east.example.com/pci:0000:1b:00.0", 1);
  c.gpu("node7.west.example.com/pci:0000:1b:00.0", 1);
  EXPECT_EQ(merged({a.p.f, b.p.f, c.p.f}).nodes.size(), 3U);
  // The default for sources that name no host, and addresses, are no names.
  d.gpu("localhost.localdomain/pci:0000:1b:00.0", 1);
  d.gpu("10.0.0.1/pci:0000:1b:00.0", 1);
  source e("e");
  e.gpu("localhost/gpu:0", 0);
  e.gpu("10/gpu:0", 0);
  EXPECT_EQ(merged({d.p.f, e.p.f}).nodes.size(), 4U);
  // One source that knows both names means two hosts.
  a.gpu("node7.east.example.com/gpu:0", 0);
  EXPECT_EQ(keys(merged({a.p.f, b.p.f})),
            (names{"node7.east.example.com/gpu:0", "node7.east.example.com/pci:0000:1b:00.0", "node7/gpu:0"}));
}

TEST(identity, of_hosts_is_denied_by_devices_that_differ) {
  source a("a"), b("b");
  a.adapter("node7/net:mlx5_0", "node7/net:mlx5_0/1", {{"node_guid", "0x00000000000000a0"}},
            {{"port_guid", "0x00000000000000a1"}});
  b.adapter("node7.example.com/pci:0000:1b:00.0", "node7.example.com/net:mlx5_0/1", {},
            {{"port_guid", "0x00000000000000b1"}});
  const fragment f = merged({a.p.f, b.p.f});
  EXPECT_EQ(f.nodes.size(), 4U);
  EXPECT_EQ(told(f), names{"host names that begin alike are not one host: they hold different devices"});
}

TEST(identity, of_hosts_goes_with_their_name_where_only_one_is_called_so) {
  const auto recording = [](const std::string& name, const std::string& guid) {
    source s(name);
    s.adapter("localhost/pci:0000:1b:00.0", "localhost/net:mlx5_0/1", {}, {{"port_guid", guid}});
    return s.p.f;
  };
  source fabric("fabric"), numbers("numbers");
  fabric.adapter("node7/net:HCA-1", "node7/net:HCA-1/1", {}, {{"port_guid", "0x00000000000000a1"}});
  fabric.adapter("node8/net:HCA-1", "node8/net:HCA-1/1", {}, {{"port_guid", "0x00000000000000b1"}});
  numbers.gpu("localhost/gpu:0", 0);
  const fragment one = merged({fabric.p.f, recording("x", "0x00000000000000a1"), numbers.p.f});
  EXPECT_EQ(keys(one), (names{"node7/gpu:0", "node7/net:mlx5_0/1", "node7/pci:0000:1b:00.0", "node8/net:HCA-1",
                              "node8/net:HCA-1/1"}));
  EXPECT_TRUE(told(one).empty());
  const fragment two =
      merged({fabric.p.f, recording("x", "0x00000000000000a1"), recording("y", "0x00000000000000b1"), numbers.p.f});
  EXPECT_EQ(keys(two), (names{"localhost/gpu:0", "node7/net:mlx5_0/1", "node7/pci:0000:1b:00.0", "node8/net:mlx5_0/1",
                              "node8/pci:0000:1b:00.0"}));
  EXPECT_EQ(told(two), names{"several hosts are called 'localhost', and this source does not tell which one it saw"});
}

TEST(identity, of_hosts_does_not_make_two_hosts_of_a_source_one) {
  // What one source calls localhost is node7 by its GPU, but it knows another node7 beside it.
  source both("both"), other("other");
  both.gpu("localhost/pci:0000:1b:00.0", 0, {{"uuid", "GPU-1"}});
  both.gpu("localhost/pci:0000:1c:00.0", 1);
  both.gpu("node7/pci:0000:1c:00.0", 1);
  other.gpu("node7/pci:0000:1b:00.0", 0, {{"uuid", "GPU-1"}});
  const fragment f = merged({both.p.f, other.p.f});
  EXPECT_EQ(f.nodes.size(), 3U);
  EXPECT_EQ(
      told(f),
      names{"the host 'localhost' is called 'node7' elsewhere, but its source knows another host of that name; it is "
            "not renamed"});
}

TEST(identity, of_numbered_gpus_is_their_number_where_both_see_as_many) {
  for (const std::uint32_t seen : {1U, 2U, 3U, 8U}) {
    source a("a"), b("b");
    for (std::uint32_t i = 0; i < 3; ++i) b.gpu("h/pci:0000:1" + std::to_string(2 - i) + ":00.0", i);
    for (std::uint32_t i = 0; i < seen; ++i) a.gpu("h/gpu:" + std::to_string(i), i, {{"model", std::to_string(i)}});
    const fragment f = merged({a.p.f, b.p.f});
    EXPECT_EQ(f.nodes.size(), seen == 3 ? 3U : 3U + seen);
    EXPECT_EQ(told(f).empty(), seen == 3);
    if (seen != 3) continue;
    EXPECT_EQ(f.nodes[0].key + " " + f.nodes[0].facts[0].second, "h/pci:0000:12:00.0 0");
  }
  // The same number of GPUs, but others of them.
  source a("a"), b("b");
  for (std::uint32_t i = 0; i < 2; ++i) a.gpu("h/gpu:" + std::to_string(i), i);
  for (std::uint32_t i = 2; i < 4; ++i) b.gpu("h/pci:0000:1" + std::to_string(i) + ":00.0", i);
  EXPECT_EQ(merged({a.p.f, b.p.f}).nodes.size(), 4U);
}

TEST(identity, of_an_adapter_comes_from_its_ports_and_its_name) {
  // Two functions of one card, as the fabric sees them, are one adapter of the host.
  source inside("inside"), fabric("fabric"), named("named");
  const node_id cpu = inside.add(node_kind::cpu, "h/numa:0");
  const node_id card = inside.add(node_kind::nic, "h/pci:0000:1b:00.0", {{"node_guid", "0x00000000000000a0"}});
  inside.p.pcie(cpu, card);
  for (const char* name : {"mlx5_0", "mlx5_1"})
    inside.p.join(card,
                  inside.add(node_kind::nic_port, std::string("h/net:") + name + "/1",
                             {{"port_guid", std::string("0x00000000000000") + (name[5] == '0' ? "a1" : "b1")}}),
                  link_kind::internal, 50);
  fabric.adapter("h/net:HCA-1", "h/net:HCA-1/1", {{"node_guid", "0x00000000000000a0"}},
                 {{"port_guid", "0x00000000000000a1"}});
  fabric.adapter("h/net:HCA-2", "h/net:HCA-2/1", {{"node_guid", "0x00000000000000b0"}},
                 {{"port_guid", "0x00000000000000b1"}});
  const names expected{"h/net:mlx5_0/1", "h/net:mlx5_1/1", "h/numa:0", "h/pci:0000:1b:00.0"};
  fragment f = merged({inside.p.f, fabric.p.f});
  EXPECT_EQ(keys(f), expected);
  EXPECT_TRUE(told(f).empty());
  EXPECT_EQ(joined(f, link_kind::pcie), names{"h/numa:0 > h/pci:0000:1b:00.0"});
  EXPECT_EQ(joined(f, link_kind::internal).size(), 2U);

  // A source that gives each function an adapter of its own means the same card.
  source functions("functions");
  const node_id domain = functions.add(node_kind::cpu, "h/numa:0");
  for (const char number : {'0', '1'}) {
    const node_id port =
        functions.adapter(std::string("h/pci:0000:1b:00.") + number, std::string("h/net:mlx5_") + number + "/1");
    functions.p.pcie(domain, {port.value - 1});
  }
  f = merged({inside.p.f, functions.p.f, fabric.p.f});
  EXPECT_EQ(keys(f), expected);
  EXPECT_EQ(joined(f, link_kind::pcie), names{"h/numa:0 > h/pci:0000:1b:00.0"});

  // By name alone, where no port is told.
  named.add(node_kind::nic, "h/nic:mlx5_0");
  inside.p.f.nodes[1].name = "mlx5_0";
  EXPECT_EQ(keys(merged({inside.p.f, named.p.f})), expected);
}

TEST(identity, of_a_port_is_the_name_of_its_interface) {
  source inside("inside"), neighbours("neighbours");
  inside.adapter("h/pci:0000:1b:00.0", "h/net:mlx5_0/1", {}, {{"interface", "ens1"}});
  const node_id leaf = neighbours.add(node_kind::leaf, "switch:leaf0");
  neighbours.p.join(neighbours.adapter("h/nic:ens1", "h/net:ens1/0", {}, {{"interface", "ens1"}}), leaf,
                    link_kind::ethernet, 50);
  const fragment f = merged({inside.p.f, neighbours.p.f});
  EXPECT_EQ(keys(f), (names{"h/net:mlx5_0/1", "h/pci:0000:1b:00.0", "switch:leaf0"}));
  EXPECT_EQ(joined(f, link_kind::ethernet), names{"h/net:mlx5_0/1 > switch:leaf0"});
}

TEST(stand_ins, give_their_cables_to_free_ports_in_the_order_of_names) {
  source lists("lists"), inside("inside"), fabric("fabric");
  const node_id x = lists.add(node_kind::leaf, "switch:x"), y = lists.add(node_kind::leaf, "switch:y");
  lists.stand_in("h", 1, x);
  lists.stand_in("h", 2, y);
  lists.stand_in("unseen", 1, y);
  for (const char* port : {"mlx5_10", "mlx5_2", "mlx5_9"})
    inside.adapter("h/pci:0000:1" + std::string(1, port[5]) + ":00." + (port[6] == '0' ? "1" : "0"),
                   std::string("h/net:") + port + "/1");
  fragment f = merged({lists.p.f, inside.p.f});
  EXPECT_EQ(joined(f, link_kind::infiniband),
            (names{"h/net:mlx5_2/1 > switch:x", "h/net:mlx5_9/1 > switch:y", "switch:y > unseen/net:?/1"}));
  EXPECT_EQ(joined(f, link_kind::internal).size(), 4U);
  // A port that another source gives a cable is not free.
  const node_id z = fabric.add(node_kind::leaf, "switch:0x1");
  fabric.p.join(fabric.adapter("h/net:mlx5_2", "h/net:mlx5_2/1"), z, link_kind::infiniband, 50);
  f = merged({lists.p.f, inside.p.f, fabric.p.f});
  EXPECT_EQ(joined(f, link_kind::infiniband), (names{"h/net:mlx5_10/1 > switch:y", "h/net:mlx5_2/1 > switch:0x1",
                                                     "h/net:mlx5_9/1 > switch:x", "switch:y > unseen/net:?/1"}));
}

TEST(stand_ins, of_a_list_are_the_cables_that_the_fabric_tells) {
  // The list knows switches and hosts by name, the fabric by GUID and port; the third port is free, but of another network.
  source lists("lists"), inside("inside"), fabric("fabric");
  for (const char* leaf : {"x", "y"}) {
    const node_id there = lists.add(node_kind::leaf, std::string("switch:") + leaf, {}, leaf);
    lists.stand_in("h", leaf[0] == 'x' ? 2 : 1, there);
    const node_id real = fabric.add(node_kind::leaf, std::string("switch:0x") + leaf, {}, leaf);
    const std::string name = std::string("mlx5_") + (leaf[0] == 'x' ? "0" : "1");
    fabric.p.join(fabric.adapter("h/net:" + name, "h/net:" + name + "/1"), real, link_kind::infiniband, 50);
  }
  for (const char number : {'0', '1', '2'})
    inside.adapter(std::string("h/pci:0000:1") + number + ":00.0", std::string("h/net:mlx5_") + number + "/1");
  const fragment f = merged({lists.p.f, inside.p.f, fabric.p.f});
  EXPECT_EQ(joined(f, link_kind::infiniband), (names{"h/net:mlx5_0/1 > switch:0xx", "h/net:mlx5_1/1 > switch:0xy"}));
  EXPECT_EQ(f.nodes.size(), 8U);
  EXPECT_TRUE(told(f).empty());
}

TEST(stand_ins, go_by_rail_where_leaves_tell_theirs) {
  source lists("lists"), inside("inside");
  const node_id one = lists.add(node_kind::leaf, "switch:one", {{"rail", "1"}}),
                two = lists.add(node_kind::leaf, "switch:two", {{"rail", "2"}});
  lists.stand_in("h", 1, two);
  lists.stand_in("h", 2, one);
  for (const char number : {'0', '1', '2'})
    inside.adapter(std::string("h/pci:0000:1") + number + ":00.0", std::string("h/net:mlx5_") + number + "/1");
  EXPECT_EQ(joined(merged({lists.p.f, inside.p.f}), link_kind::infiniband),
            (names{"h/net:mlx5_1/1 > switch:one", "h/net:mlx5_2/1 > switch:two"}));
}

TEST(stand_ins, that_find_no_free_port_are_told) {
  source lists("lists"), inside("inside");
  const node_id x = lists.add(node_kind::leaf, "switch:x");
  lists.stand_in("h", 1, x);
  lists.stand_in("h", 2, x);
  inside.adapter("h/pci:0000:1b:00.0", "h/net:mlx5_0/1");
  const fragment f = merged({lists.p.f, inside.p.f});
  EXPECT_EQ(keys(f), (names{"h/net:mlx5_0/1", "h/pci:0000:1b:00.0", "switch:x"}));
  EXPECT_EQ(told(f), names{"a cable belongs to no port: all ports of its host that are known have cables already"});
}

TEST(stand_ins, for_gpus_and_hosts_give_way) {
  source lists("lists"), inside("inside");
  lists.add(node_kind::pcie_device, "a/?", {{"stand_in", "host"}});
  lists.add(node_kind::pcie_device, "c/?", {{"stand_in", "host"}});
  const node_id plane = lists.add(node_kind::nvswitch, "nvswitch:d");
  for (const char* host : {"a", "b", "c"})
    lists.p.join(lists.add(node_kind::pcie_device, std::string(host) + "/nvlink:?", {{"stand_in", "gpu"}}), plane,
                 link_kind::nvlink, 100, trust::assumed);
  // One source saw both hosts with a plane each; the list says that it is one.
  for (const char* host : {"a", "b"})
    inside.p.join(inside.gpu(std::string(host) + "/pci:0000:1b:00.0", 0),
                  inside.add(node_kind::nvswitch, std::string(host) + "/nvswitch"), link_kind::nvlink, 450);
  fragment f = merged({lists.p.f, inside.p.f});
  EXPECT_EQ(keys(f), (names{"a/pci:0000:1b:00.0", "b/pci:0000:1b:00.0", "c/nvlink:?", "nvswitch:d"}));
  EXPECT_EQ(joined(f, link_kind::nvlink),
            (names{"a/pci:0000:1b:00.0 > nvswitch:d", "b/pci:0000:1b:00.0 > nvswitch:d", "c/nvlink:? > nvswitch:d"}));
  // GPUs without links are joined to the plane one by one.
  source bare("bare");
  for (const char number : {'0', '1'}) bare.gpu(std::string("a/pci:0000:1") + number + ":00.0", 0);
  f = merged({lists.p.f, bare.p.f});
  EXPECT_EQ(joined(f, link_kind::nvlink), (names{"a/pci:0000:10:00.0 > nvswitch:d", "a/pci:0000:11:00.0 > nvswitch:d",
                                                 "b/nvlink:? > nvswitch:d", "c/nvlink:? > nvswitch:d"}));
}

TEST(stand_ins, for_where_nvlinks_lead_give_way_to_what_is_known) {
  // One source counts NVLinks without telling where they lead; another knows a mesh, a third a switch.
  source counts("counts"), mesh("mesh"), plane("plane");
  const node_id there = counts.add(node_kind::nvswitch, "h/nvswitch", {{"stand_in", "nvswitch"}});
  const node_id known = plane.add(node_kind::nvswitch, "h/nvswitch");
  std::vector<node_id> gpus;
  for (const char number : {'0', '1'}) {
    counts.p.join(counts.gpu(std::string("h/gpu:") + number, number - '0'), there, link_kind::nvlink, 100);
    gpus.push_back(mesh.gpu(std::string("h/pci:0000:1") + number + ":00.0", number - '0'));
    plane.p.join(plane.gpu(std::string("h/pci:0000:1") + number + ":00.0", number - '0'), known, link_kind::nvlink,
                 100);
  }
  mesh.p.join(gpus[0], gpus[1], link_kind::nvlink, 100);
  EXPECT_EQ(joined(merged({counts.p.f, mesh.p.f}), link_kind::nvlink),
            names{"h/pci:0000:10:00.0 > h/pci:0000:11:00.0"});
  source again("counts again");
  again.p.f.nodes = counts.p.f.nodes;
  again.p.f.links = counts.p.f.links;
  EXPECT_EQ(joined(merged({counts.p.f, again.p.f}), link_kind::nvlink).size(), 2U)
      << "neither knows more than the other";
  const fragment f = merged({counts.p.f, plane.p.f});
  EXPECT_EQ(joined(f, link_kind::nvlink).size(), 2U);
  for (const auto& n : f.nodes) EXPECT_TRUE(n.facts.empty()) << n.key << " is none that stands for others";
}

TEST(pcie_parents, that_go_round_in_a_circle_do_not_cut_devices_off) {
  source a("a"), b("b");
  for (const auto& [s, first, second] : {std::tuple(&a, "h/pci:0000:01:00.0", "h/pci:0000:02:00.0"),
                                         std::tuple(&b, "h/pci:0000:02:00.0", "h/pci:0000:01:00.0")}) {
    const node_id cpu = s->add(node_kind::cpu, "h/numa:0"), x = s->add(node_kind::pcie_switch, first),
                  y = s->add(node_kind::pcie_switch, second);
    s->p.pcie(cpu, x);
    s->p.pcie(x, y);
  }
  // The better-trusted link of each leads to the other.
  for (auto& l : a.p.f.links) l.how = l.from.value + l.to.value == 1 ? trust::derived : trust::reported;
  for (auto& l : b.p.f.links) l.how = l.from.value + l.to.value == 1 ? trust::derived : trust::reported;
  const fragment f = merged({a.p.f, b.p.f});
  EXPECT_EQ(joined(f, link_kind::pcie).size(), 2U) << "one parent each";
  const auto g = topo::graph::from(f);
  EXPECT_FALSE(g->out_links(*g->find("h/numa:0")).empty());
  EXPECT_FALSE(told(f).empty());
}

// Random fragments whose devices carry identities, some of them wrong, under random keys.
TEST(identity, does_not_depend_on_the_order_of_the_fragments) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    std::uint64_t state = seed * 2862933555777941757U + 3037000493U;
    const auto below = [&](std::uint32_t n) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::uint32_t>(state >> 33U) % n;
    };
    const char* hosts[] = {"n", "n.x", "m", "localhost", "0xa"};
    std::vector<fragment> all;
    for (std::uint32_t i = 0; i < 2 + below(3); ++i) {
      source s(std::string(1, static_cast<char>('a' + below(2))) + std::to_string(i));
      const node_id leaf = s.add(node_kind::leaf, "switch:" + std::to_string(below(2)));
      std::vector<std::string> taken;
      const auto free = [&](const std::string& key) {
        if (std::find(taken.begin(), taken.end(), key) != taken.end()) return false;
        taken.push_back(key);
        return true;
      };
      for (std::uint32_t k = 0; k < 10; ++k) {
        const std::string host = hosts[below(5)];
        const std::string number = std::to_string(below(3));
        const bool pci = below(2) == 0;
        const std::string key = host + (pci             ? "/pci:0000:0" + number + ":00.0"
                                        : below(2) == 0 ? "/gpu:" + number
                                                        : "/net:mlx5_" + number);
        if (!free(key)) continue;
        switch (below(4)) {
          case 0: s.gpu(key, below(3), below(2) == 0 ? facts{{"uuid", number}} : facts{}); break;
          case 1: {
            const std::string port = host + "/net:mlx5_" + number + "/1";
            if (!free(port)) break;
            const node_id at =
                s.adapter(key, port, below(2) == 0 ? facts{{"node_guid", "g" + std::to_string(below(4) + 1)}} : facts{},
                          below(2) == 0 ? facts{{"port_guid", "p" + std::to_string(below(4) + 1)}} : facts{});
            if (below(2) == 0) s.p.join(at, leaf, link_kind::infiniband, 50);
            break;
          }
          case 2:
            if (free(host + "/numa:0") && free(host + "/numa:1"))
              s.p.pcie(s.add(node_kind::cpu, host + "/numa:" + std::to_string(below(2))),
                       s.add(node_kind::pcie_switch, key));
            break;
          default:
            if (free(host + "/nic:?/" + number) && free(host + "/net:?/" + number))
              s.stand_in(host, below(3) + 1, leaf);
            break;
        }
      }
      for (std::uint32_t v = 0; v + 1 < s.p.f.nodes.size(); ++v)
        if (below(3) == 0) s.p.pcie({v}, {v + 1}, 1 + below(5));
      // Two stand-ins may have got one number.
      std::vector<std::string> own = keys(s.p.f);
      if (std::adjacent_find(own.begin(), own.end()) == own.end()) all.push_back(s.p.f);
    }
    if (!all.empty()) static_cast<void>(merged(all));
  }
}
