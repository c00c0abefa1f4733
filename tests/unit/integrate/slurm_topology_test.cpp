// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/discover/slurm_yaml.hpp>
#include <topocoll/integrate/slurm_topology.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace rd = topocoll::read;
namespace fs = std::filesystem;
using names = std::vector<std::string>;

namespace {

tc::topo::graph graph_of(tc::result<tc::topo::fragment> f) {
  EXPECT_TRUE(f) << (f ? "" : f.error().message());
  auto g = f ? tc::topo::graph::from(std::move(*f)) : tc::result<tc::topo::graph>(f.error());
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? std::move(*g) : tc::topo::graph();
}

rd::slurm_topology read_back(const tc::result<std::string>& text) {
  EXPECT_TRUE(text) << (text ? "" : text.error().message());
  if (!text) return {};
  auto t = rd::parse_slurm_topology(*text, "back");
  EXPECT_TRUE(t) << (t ? "" : t.error().message() + *text);
  return t ? std::move(*t) : rd::slurm_topology();
}

rd::slurm_topology read_back_yaml(const tc::result<std::string>& text) {
  EXPECT_TRUE(text) << (text ? "" : text.error().message());
  if (!text) return {};
  const auto root = tc::io::parse_yaml(*text, "back");
  EXPECT_TRUE(root) << *text;
  auto t = root ? rd::slurm_yaml_of(*root, "back") : tc::result<std::vector<rd::slurm_topology>>(root.error());
  EXPECT_TRUE(t) << (t ? "" : t.error().message() + *text);
  return t && !t->empty() ? std::move(t->front()) : rd::slurm_topology();
}

/// A tree as text that does not depend on any order.
names shape(const rd::slurm_topology& t) {
  names lines;
  for (const auto& s : t.switches) {
    names below = s.children;
    names nodes = s.nodes;
    std::sort(below.begin(), below.end());
    std::sort(nodes.begin(), nodes.end());
    std::string line = s.name + ":";
    for (const auto& b : below) line += " " + b;
    line += " |";
    for (const auto& n : nodes) line += " " + n;
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

rd::slurm_topology tree_of(const tc::topo::graph& g) {
  auto t = tc::slurm_tree_of(g);
  EXPECT_TRUE(t) << (t ? "" : t.error().message());
  return t ? std::move(*t) : rd::slurm_topology();
}

/// A random forest of switches whose leaves have hosts, as topology.conf allows it.
rd::slurm_topology random_tree(std::mt19937& random) {
  rd::slurm_topology t;
  std::size_t host = 0;
  names tops;
  const std::size_t leaves = 1 + random() % 12;
  for (std::size_t l = 0; l < leaves; ++l) {
    rd::slurm_switch s;
    s.name = "leaf" + std::string(l < 10 && random() % 2 != 0 ? "0" : "") + std::to_string(l) +
             (random() % 3 == 0 ? ".a" : "");
    const std::size_t count = 1 + random() % 8;
    for (std::size_t i = 0; i < count; ++i) s.nodes.push_back("n" + std::to_string(host += 1 + random() % 3));
    tops.push_back(s.name);
    t.switches.push_back(s);
  }
  for (std::uint32_t tier = 1; tier < 4 && tops.size() > 1; ++tier) {
    names next;
    for (std::size_t i = 0; i < tops.size();) {
      rd::slurm_switch s;
      s.name = "t" + std::to_string(tier) + "_" + std::to_string(i);
      for (std::size_t end = std::min(tops.size(), i + 1 + random() % 4); i < end; ++i) s.children.push_back(tops[i]);
      next.push_back(s.name);
      t.switches.push_back(s);
    }
    tops = next;
  }
  return t;
}

}  // namespace

TEST(slurm_tree, folds_rails_and_spines_into_one_each) {
  const auto t = tree_of(graph_of(tc::describe("dgx-h100:nodes=16,leaves=8,spines=4")));
  ASSERT_EQ(t.switches.size(), 2U);
  EXPECT_EQ(t.switches[0].name, "leaf-0-x8");
  EXPECT_EQ(t.switches[0].nodes.size(), 16U);
  EXPECT_EQ(t.switches[0].nodes[10], "node10");
  EXPECT_EQ(t.switches[1].name, "spine-0-x4");
  EXPECT_EQ(t.switches[1].children, (names{"leaf-0-x8"}));
  EXPECT_EQ(*tc::to_topology_conf(t),
            "SwitchName=leaf-0-x8 Nodes=node[0-15]\nSwitchName=spine-0-x4 Switches=leaf-0-x8\n");
}

TEST(slurm_tree, keeps_every_tier_and_pod) {
  const auto t = tree_of(graph_of(tc::describe("dgx-h100:nodes=64,pods=4,cores=2,spines=8")));
  std::size_t leaves = 0;
  std::size_t root = 0;
  for (const auto& s : t.switches) {
    leaves += s.nodes.size() == 16 ? 1 : 0;
    root += s.children.size() == 4 ? 1 : 0;
  }
  EXPECT_EQ(leaves, 4U);
  EXPECT_EQ(root, 1U);
  EXPECT_EQ(t.switches.size(), 9U);  // four pods, the spines of each, one for all core switches
}

TEST(slurm_tree, has_a_leaf_for_each_leaf_where_hosts_plug_into_one) {
  const auto t = tree_of(graph_of(tc::describe("dgx-h100:nodes=7+8+1,rails=no")));
  ASSERT_EQ(t.switches.size(), 4U);
  EXPECT_EQ(t.switches[0].nodes.size(), 7U);
  EXPECT_EQ(t.switches[3].children.size(), 3U);
}

TEST(slurm_tree, gives_separate_fabrics_separate_roots) {
  const auto two = rd::parse_slurm_topology("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\n", "t");
  EXPECT_EQ(tree_of(graph_of(tc::fragment_of(*two, {}, "t"))).switches.size(), 2U);
}

TEST(slurm_tree, gives_leaves_that_are_joined_side_by_side_one_root) {
  tc::topo::fragment f;
  for (const char* name : {"a", "b"}) {
    tc::topo::node s;
    s.kind = tc::topo::node_kind::leaf;
    s.key = std::string("switch:") + name;
    s.name = name;
    f.add(s);
    tc::topo::node n;
    n.kind = tc::topo::node_kind::nic;
    n.host = std::string("h") + name;
    n.key = n.host + "/nic:0";
    f.add(n);
  }
  tc::topo::link l;
  l.kind = tc::topo::link_kind::ethernet;
  l.capacity = {1e9};
  for (const auto& [from, to] : {std::pair{0U, 1U}, {2U, 3U}, {0U, 2U}}) {
    l.from = {from};
    l.to = {to};
    f.join(l);
  }
  const auto t = tree_of(graph_of(f));
  ASSERT_EQ(t.switches.size(), 3U);
  EXPECT_EQ(t.switches[2].name, "fabric");
  EXPECT_EQ(t.switches[2].children, (names{"a", "b"}));
}

TEST(slurm_tree, is_not_torn_by_one_odd_host) {
  const auto odd = rd::parse_slurm_topology(
      "SwitchName=a Nodes=n[1-9]\nSwitchName=b Nodes=n[9-15]\nSwitchName=s Switches=a,b\n", "t");
  const auto t = tree_of(graph_of(tc::fragment_of(*odd, {}, "t")));
  EXPECT_EQ(t.switches.size(), 3U);
  std::size_t nodes = 0;
  for (const auto& s : t.switches) nodes += s.nodes.size();
  EXPECT_EQ(nodes, 15U);  // every host once
  const auto f = tc::describe("dgx-h100:nodes=4,leaves=8,spines=2,unplugged=node1/nic3");
  EXPECT_EQ(tree_of(graph_of(f)).switches[0].nodes.size(), 4U);
}

TEST(slurm_tree, needs_hosts_on_switches_with_names_that_slurm_takes) {
  EXPECT_EQ(tc::slurm_tree_of(graph_of(tc::describe("dgx-h100"))).error().code, tc::errc::not_found);
  auto f = tc::describe("dgx-h100:nodes=2,leaves=8");
  for (auto& n : f->nodes)
    if (n.host == "node1") n.host = "node 1";
  const auto t = tc::slurm_tree_of(graph_of(std::move(f)));
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, tc::errc::unsupported);
  EXPECT_NE(t.error().what.find("'node 1'"), std::string::npos);
}

TEST(slurm_tree, comes_back_from_its_texts_whatever_it_is) {
  std::mt19937 random(20260301);
  for (int round = 0; round < 200; ++round) {
    const rd::slurm_topology t = random_tree(random);
    const auto want = shape(t);
    EXPECT_EQ(shape(read_back(tc::to_topology_conf(t))), want);
    EXPECT_EQ(shape(read_back_yaml(tc::to_topology_yaml({t}))), want);
    // And by way of the graph: text, fragment, graph, tree, text, tree.
    const auto parsed = read_back(tc::to_topology_conf(t));
    const auto again = tree_of(graph_of(tc::fragment_of(parsed, {}, "t")));
    EXPECT_EQ(shape(read_back(tc::to_topology_conf(again))), want) << *tc::to_topology_conf(t) << "became\n"
                                                                   << *tc::to_topology_conf(again);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(slurm_blocks, are_nvlink_domains_of_several_hosts) {
  const auto t = tc::slurm_blocks_of(graph_of(tc::describe("gb200-nvl72:nodes=54,rails=no,leaves=3")));
  ASSERT_TRUE(t) << t.error().message();
  ASSERT_EQ(t->blocks.size(), 3U);
  EXPECT_EQ(t->blocks[1].name, "nvswitch-1");
  EXPECT_EQ(t->blocks[1].nodes.front(), "node18");
  EXPECT_EQ(t->block_sizes, (std::vector<std::uint32_t>{18, 36}));
  const auto back = read_back(tc::to_topology_conf(*t));
  EXPECT_EQ(back.blocks[2].nodes, t->blocks[2].nodes);
  EXPECT_EQ(back.block_sizes, t->block_sizes);
  const auto yaml = read_back_yaml(tc::to_topology_yaml({*t}));
  EXPECT_EQ(yaml.blocks[0].nodes, t->blocks[0].nodes);
  EXPECT_EQ(yaml.block_sizes, t->block_sizes);
  EXPECT_EQ(tc::slurm_blocks_of(graph_of(tc::describe("dgx-h100:nodes=4,leaves=8"))).error().code, tc::errc::not_found);
}

TEST(slurm_blocks, come_back_from_a_file_of_blocks) {
  const auto t =
      rd::parse_slurm_topology("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,16\n", "t");
  const auto blocks = tc::slurm_blocks_of(graph_of(tc::fragment_of(*t, {}, "t")));
  ASSERT_TRUE(blocks) << blocks.error().message();
  EXPECT_EQ(*tc::to_topology_conf(*blocks), "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,16\n");
  const auto both = rd::parse_slurm_topology("SwitchName=l Nodes=n[1-3]\nBlockName=b Nodes=n[1-2]\n", "t");
  const auto inside = tc::slurm_blocks_of(graph_of(tc::fragment_of(*both, {}, "t")));
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->blocks.at(0).nodes, (names{"n1", "n2"}));
  ASSERT_EQ(inside->findings.size(), 1U);
  EXPECT_EQ(inside->findings[0].evidence, "n3");
}

TEST(slurm_text, refuses_what_a_format_cannot_say) {
  rd::slurm_topology flat;
  flat.flat = true;
  EXPECT_EQ(tc::to_topology_conf(flat).error().code, tc::errc::unsupported);
  EXPECT_TRUE(read_back_yaml(tc::to_topology_yaml({flat})).flat);
  EXPECT_EQ(tc::to_topology_yaml({rd::slurm_topology()}).error().code, tc::errc::unsupported);
  const auto mixed = rd::parse_slurm_topology("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n", "t");
  EXPECT_TRUE(tc::to_topology_conf(*mixed));
  EXPECT_EQ(tc::to_topology_yaml({*mixed}).error().code, tc::errc::unsupported);
  rd::slurm_topology bad = *mixed;
  bad.switches[0].name = "a b";
  EXPECT_EQ(tc::to_topology_conf(bad).error().code, tc::errc::unsupported);
  bad = *mixed;
  bad.switches[1].nodes = {"x=y"};
  EXPECT_EQ(tc::to_topology_conf(bad).error().code, tc::errc::unsupported);
}

TEST(slurm_text, writes_rings_and_tori) {
  rd::slurm_topology ring;
  ring.rings.push_back({"r", {"n3", "n1", "n2"}, 0});
  EXPECT_EQ(read_back(tc::to_topology_conf(ring)).rings.at(0).nodes, (names{"n3", "n1", "n2"}));
  EXPECT_EQ(read_back_yaml(tc::to_topology_yaml({ring})).rings.at(0).nodes, (names{"n3", "n1", "n2"}));
  rd::slurm_topology torus;
  torus.toruses.push_back({"o", 2, 1, 2, {"n1", "n2", "n3", "n4"}, 0});
  EXPECT_EQ(tc::to_topology_conf(torus).error().code, tc::errc::unsupported);
  EXPECT_EQ(read_back_yaml(tc::to_topology_yaml({torus})).toruses.at(0).z, 2U);
}

TEST(slurm_name, is_one_that_slurm_takes) {
  EXPECT_EQ(tc::slurm_name("MF0;core 1:L/[2]=x"), "MF0-core-1-L--2--x");
  EXPECT_EQ(tc::slurm_name(""), "switch");
  EXPECT_EQ(tc::slurm_name(std::string(100, 'a')).size(), rd::longest_switch_name);
}

TEST(slurm_tree, comes_back_from_files_of_real_clusters) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/slurm"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/slurm";
  std::size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/slurm")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!rd::looks_like_slurm_topology(text)) continue;
    const auto t = rd::parse_slurm_topology(text, entry.path().string());
    ASSERT_TRUE(t) << t.error().message();
    EXPECT_EQ(shape(read_back(tc::to_topology_conf(*t))), shape(*t)) << entry.path();
    const bool overlaps = std::any_of(t->findings.begin(), t->findings.end(), [](const tc::finding& f) {
      return f.what.find("under several leaves") != std::string::npos;
    });
    if (t->nodes_are_ports || overlaps || t->switches.empty())
      continue;  // ports have no host; one host under two leaves is written under one
    EXPECT_EQ(shape(tree_of(graph_of(tc::fragment_of(*t, {}, "t")))), shape(*t)) << entry.path();
    ++compared;
  }
  EXPECT_GE(compared, 1U);
}
