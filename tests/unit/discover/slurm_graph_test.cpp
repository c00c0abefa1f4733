// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/discover/slurm_yaml.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace rd = topocoll::read;
namespace fs = std::filesystem;
using tc::topo::node_kind;

namespace {

tc::topo::graph graph_of(tc::result<tc::topo::fragment> f) {
  EXPECT_TRUE(f) << (f ? "" : f.error().message());
  if (!f) return {};
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? std::move(*g) : tc::topo::graph();
}

tc::topo::graph conf(const std::string& text) {
  const auto t = rd::parse_slurm_topology(text, "t.conf");
  EXPECT_TRUE(t) << (t ? "" : t.error().message());
  return t ? graph_of(tc::fragment_of(*t, {}, "t.conf")) : tc::topo::graph();
}

const tc::topo::link* between(const tc::topo::graph& g, const std::string& a, const std::string& b) {
  for (const tc::topo::link& l : g.links())
    if (g.at(l.from).key == a && g.at(l.to).key == b) return &l;
  return nullptr;
}

bool says(const tc::topo::graph& g, const std::string& text) {
  return std::any_of(g.findings().begin(), g.findings().end(),
                     [&](const tc::finding& f) { return f.what.find(text) != std::string::npos; });
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Laws of every fragment from a scheduler file.
void expect_reasons(const tc::topo::graph& g, const std::string& name) {
  for (const tc::topo::link& l : g.links()) {
    EXPECT_GT(l.capacity.value, 0) << name;
    if (l.how >= tc::trust::derived) {
      EXPECT_NE(l.reason, "") << name;
    }
  }
  for (const tc::topo::node& n : g.nodes()) {
    EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
    if (n.how == tc::trust::assumed) {
      EXPECT_NE(n.reason, "") << n.key;
    }
  }
}

}  // namespace

TEST(slurm_graph, has_a_leaf_a_spine_and_hosts) {
  const auto g = conf("SwitchName=top Switches=l[1-2]\nSwitchName=l1 Nodes=n[1-3]\nSwitchName=l2 Nodes=n4\n");
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 4U);
  EXPECT_EQ(s.switches, 3U);
  EXPECT_EQ(s.nics, 4U);
  EXPECT_EQ(s.gpus, 0U);
  EXPECT_EQ(g.at(*g.find("switch:top")).kind, node_kind::spine);
  EXPECT_EQ(g.at(*g.find("switch:l2")).kind, node_kind::leaf);
  const auto* port = between(g, "n1/net:?/1", "switch:l1");
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(port->capacity.value, tc::unknown_port_rate.value);
  EXPECT_EQ(port->how, tc::trust::assumed);
  // No oversubscription is told, so none is assumed.
  EXPECT_DOUBLE_EQ(between(g, "switch:l1", "switch:top")->capacity.value, 3 * tc::unknown_port_rate.value);
  EXPECT_DOUBLE_EQ(between(g, "switch:top", "switch:l2")->capacity.value, tc::unknown_port_rate.value);
  EXPECT_FALSE(port->nominal);
  expect_reasons(g, "t");
  EXPECT_EQ(tc::topo::leaves(g).at(0).nodes.size(), 3U);
}

TEST(slurm_graph, believes_link_speeds_with_a_unit) {
  const auto g = conf("SwitchName=top Switches=l LinkSpeed=800Gb/s\nSwitchName=l Nodes=n[1-2] LinkSpeed=400G\n");
  EXPECT_DOUBLE_EQ(between(g, "n1/net:?/1", "switch:l")->capacity.value, 50e9);
  EXPECT_EQ(between(g, "n1/net:?/1", "switch:l")->how, tc::trust::derived);
  EXPECT_DOUBLE_EQ(between(g, "switch:l", "switch:top")->nominal->value, 100e9);
  EXPECT_FALSE(says(g, "no rate is told"));
}

TEST(slurm_graph, does_not_guess_the_unit_of_a_link_speed) {
  const auto g = conf("SwitchName=l Nodes=n[1-2] LinkSpeed=100\n");
  EXPECT_EQ(between(g, "n1/net:?/1", "switch:l")->how, tc::trust::assumed);
  EXPECT_TRUE(says(g, "LinkSpeed=100 of the switch 'l' has no unit"));
  const auto& facts = g.at(*g.find("switch:l")).facts;
  EXPECT_EQ(facts.at(0), (std::pair<std::string, std::string>{"link_speed", "100"}));
}

TEST(slurm_graph, makes_rails_of_hosts_under_several_leaves) {
  const auto g = conf("SwitchName=r0 Nodes=n[1-4]\nSwitchName=r1 Nodes=n[1-4]\nSwitchName=s Switches=r[0-1]\n");
  EXPECT_EQ(tc::topo::summarize(g).hosts, 4U);
  EXPECT_EQ(tc::topo::summarize(g).nics, 8U);
  const auto rails = tc::topo::rails(g);
  ASSERT_EQ(rails.size(), 2U);
  EXPECT_EQ(rails[1].nics.size(), 4U);
  EXPECT_FALSE(rails[0].shares_leaf);
  EXPECT_NE(between(g, "n2/net:?/2", "switch:r1"), nullptr);
}

TEST(slurm_graph, says_when_several_trees_are_not_joined) {
  const std::string leaves = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Nodes=n[5-6]\n";
  const auto evidence = [](const tc::topo::graph& g) {
    for (const tc::finding& f : g.findings())
      if (f.what.find("parts that nothing joins") != std::string::npos) return f.what.substr(0, 24) + ": " + f.evidence;
    return std::string();
  };
  EXPECT_EQ(evidence(conf(leaves + "SwitchName=s Switches=a,b\n")), "the switches form 2 part: at the top: c, s");
  EXPECT_EQ(evidence(conf(leaves)), "the switches form 3 part: at the top: a, b, c");
  EXPECT_EQ(evidence(conf(leaves + "SwitchName=s Switches=a,b,c\n")), "");
  EXPECT_EQ(evidence(conf(leaves + "SwitchName=s Switches=a,b\nSwitchName=t Switches=b,c\n")), "") << "b joins them";
  EXPECT_EQ(evidence(conf("SwitchName=a Nodes=n1\nSwitchName=spare\n")), "") << "a switch without hosts parts nobody";
}

TEST(slurm_graph, spreads_uplinks_over_several_parents) {
  const auto g =
      conf("SwitchName=a Switches=l\nSwitchName=b Switches=l\nSwitchName=l Nodes=n[1-6]\nSwitchName=c Switches=a,b\n");
  EXPECT_DOUBLE_EQ(between(g, "switch:l", "switch:a")->capacity.value, 3 * tc::unknown_port_rate.value);
  EXPECT_EQ(g.at(*g.find("switch:c")).kind, node_kind::core_switch);
  EXPECT_DOUBLE_EQ(between(g, "switch:a", "switch:c")->capacity.value, 3 * tc::unknown_port_rate.value);
}

TEST(slurm_graph, takes_blocks_for_leaves_only_where_no_switch_is) {
  const auto alone = conf("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n");
  EXPECT_EQ(tc::topo::summarize(alone).hosts, 8U);
  EXPECT_EQ(tc::topo::summarize(alone).switches, 2U);
  EXPECT_TRUE(says(alone, "not what joins the blocks"));
  const auto both = conf("SwitchName=l Nodes=n[1-8]\nBlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n");
  EXPECT_EQ(tc::topo::summarize(both).switches, 1U);
  EXPECT_EQ(both.at(*both.find("n5/nic:?/1")).facts.at(0).second, "b2");
  expect_reasons(both, "both");
}

TEST(slurm_graph, joins_rings_and_tori_to_their_neighbours) {
  const auto ring = conf("RingName=r Nodes=n[1-5]\n");
  EXPECT_EQ(tc::topo::summarize(ring).hosts, 5U);
  EXPECT_EQ(tc::topo::summarize(ring).links, 10U);  // five cables, five adapters
  EXPECT_NE(between(ring, "n5/net:?/1", "n1/net:?/1"), nullptr);
  EXPECT_EQ(tc::topo::summarize(conf("RingName=r Nodes=n[1-2]\n")).links, 3U);
  EXPECT_EQ(tc::topo::summarize(conf("RingName=r Nodes=n1\n")).links, 1U);
  const auto torus =
      graph_of(tc::fragment_of_slurm_yaml("- topology: t\n  torus3d:\n    toruses:\n      - name: p\n        dims: {x: "
                                          "4, y: 3, z: 2}\n        nodes: n[1-24]\n",
                                          "t.yaml"));
  // A torus of a x b x c has as many cables a dimension as nodes, half as many where a side has two.
  EXPECT_EQ(tc::topo::summarize(torus).links, 24U + 24 + 24 + 12);
  EXPECT_NE(between(torus, "n1/net:?/1", "n2/net:?/1"), nullptr);
  EXPECT_NE(between(torus, "n4/net:?/1", "n1/net:?/1"), nullptr);
  EXPECT_NE(between(torus, "n1/net:?/1", "n5/net:?/1"), nullptr);
  EXPECT_NE(between(torus, "n9/net:?/1", "n1/net:?/1"), nullptr);
  EXPECT_NE(between(torus, "n1/net:?/1", "n13/net:?/1"), nullptr);
  EXPECT_EQ(between(torus, "n1/net:?/1", "n6/net:?/1"), nullptr);
}

TEST(slurm_graph, knows_ports_by_guid_and_hosts_by_map) {
  const auto t = rd::parse_slurm_topology(
      "SwitchName=r0 Nodes=0x1a,0x1c\nSwitchName=r1 Nodes=0x1b,0x1d\nSwitchName=s Switches=r0,r1\n", "t.conf");
  ASSERT_TRUE(t);
  const auto ports = graph_of(tc::fragment_of(*t, {}, "t.conf"));
  EXPECT_EQ(tc::topo::summarize(ports).hosts, 0U);
  const auto port = ports.find("port:0x000000000000001a");
  ASSERT_TRUE(port);
  EXPECT_EQ(ports.at(*port).facts.at(0), (std::pair<std::string, std::string>{"port_guid", "0x000000000000001a"}));
  const auto map = rd::parse_host_map("n1: 0x1a\nn1: 0x1b\nn2: 0x1c\nn2: 0x1d\n", "m.txt");
  ASSERT_TRUE(map);
  const auto hosts = graph_of(tc::fragment_of(*map, {}, "m.txt"));
  EXPECT_EQ(tc::topo::summarize(hosts).hosts, 2U);
  EXPECT_EQ(hosts.at(*hosts.find("n2/net:?/2")).facts.at(0).second, "0x000000000000001d");
  const auto both = graph_of(tc::fragment_of(tc::with_hosts(*t, *map), {}, "both"));
  EXPECT_EQ(tc::topo::summarize(both).hosts, 2U);
  EXPECT_EQ(tc::topo::rails(both).size(), 2U);
  EXPECT_NE(between(both, "n2/net:?/2", "switch:r1"), nullptr);
}

TEST(slurm_graph, keeps_a_port_that_two_leaves_claim) {
  const auto g = conf("SwitchName=r0 Nodes=0x1a\nSwitchName=r1 Nodes=0x1A\n");
  EXPECT_TRUE(g.find("port:0x000000000000001a"));
  EXPECT_TRUE(g.find("port:0x000000000000001a#2"));
  EXPECT_TRUE(says(g, "an address is given to two devices"));
}

TEST(slurm_graph, joins_domains_without_inventing_gpus) {
  const auto map = rd::parse_host_map(
      "a: 00112233-4455-6677-8899-aabbccddeeff\nb: 00112233-4455-6677-8899-aabbccddeeff\nc: "
      "00112233-4455-6677-8899-aabbccddee00\n",
      "m");
  ASSERT_TRUE(map);
  const auto g = graph_of(tc::fragment_of(*map, {}, "m"));
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 3U);
  EXPECT_EQ(s.nvswitches, 2U);
  EXPECT_EQ(s.gpus, 0U);
  EXPECT_EQ(s.links, 3U);
  expect_reasons(g, "m");
}

TEST(slurm_graph, chooses_the_default_of_several_topologies) {
  const std::string tree = "\n  tree:\n    switches:\n      - switch: s\n        nodes: n[1-2]\n";
  const std::string block = "\n  block:\n    blocks:\n      - block: b\n        nodes: n[1-3]\n";
  const auto second = graph_of(
      tc::fragment_of_slurm_yaml("- topology: a" + tree + "- topology: b\n  cluster_default: true" + block, "t"));
  EXPECT_EQ(tc::topo::summarize(second).hosts, 3U);
  EXPECT_TRUE(says(second, "'b' is read"));
  const auto first = graph_of(tc::fragment_of_slurm_yaml("- topology: a" + tree + "- topology: b" + block, "t"));
  EXPECT_EQ(tc::topo::summarize(first).hosts, 2U);
  const auto flat = graph_of(
      tc::fragment_of_slurm_yaml("- topology: f\n  cluster_default: true\n  flat: true\n- topology: a" + tree, "t"));
  EXPECT_EQ(tc::topo::summarize(flat).hosts, 2U);
  EXPECT_EQ(graph_of(tc::fragment_of_slurm_yaml("- topology: f\n  flat: true\n", "t")).node_count(), 0U);
}

TEST(slurm_graph, counts_hosts_of_a_host_file) {
  const auto h = rd::parse_hostfile("n1 slots=4\nn[2-3]:2\nn1 slots=4\nn4\n", "h");
  ASSERT_TRUE(h);
  const auto g = graph_of(tc::fragment_of(*h, {}, "h"));
  EXPECT_EQ(tc::topo::summarize(g).hosts, 4U);
  EXPECT_EQ(g.at(*g.find("n1/?")).facts.at(0), (std::pair<std::string, std::string>{"slots", "8"}));
  EXPECT_EQ(g.at(*g.find("n4/?")).facts.size(), 1U);
}

TEST(slurm_graph, fails_with_a_reason_when_there_is_no_such_file) {
  EXPECT_EQ(tc::slurm_topology_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::slurm_yaml_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::topograph_model_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::host_map_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::mpi_hostfile{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
}

// ---- files of real and simulated clusters, where the environment names them ----

class scheduler_corpus : public testing::Test {
 protected:
  struct row {
    std::string file, facts, notes;
  };
  void SetUp() override {
    const char* named = std::getenv("TOPOCOLL_CORPUS");
    if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/slurm"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/slurm";
    root = fs::path(named) / "corpus";
    std::istringstream manifest(text_of(root / "MANIFEST.tsv"));
    for (std::string line; std::getline(manifest, line);) {
      std::vector<std::string> cells;
      std::istringstream cut(line);
      for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
      cells.resize(std::max<std::size_t>(cells.size(), 11));
      rows.push_back({cells[0], cells[9], cells[10]});
    }
    const auto read = tc::io::parse_json(text_of(root / "facts.json"), "facts.json");
    ASSERT_TRUE(read) << read.error().message();
    facts = *read;
  }
  /// The number after `word` in a row's facts, or -1.
  static long number(const std::string& text, const std::string& word) {
    const auto at = text.find(word);
    return at == std::string::npos ? -1 : std::atol(text.c_str() + at + word.size());
  }
  fs::path root;
  std::vector<row> rows;
  tc::io::json facts;
};

TEST_F(scheduler_corpus, of_topology_conf_is_read_with_independent_counts) {
  std::size_t read = 0;
  for (const row& r : rows) {
    if (r.file.rfind("slurm/", 0) != 0 || r.file.find(".conf") == std::string::npos) continue;
    const std::string text = text_of(root / r.file);
    EXPECT_TRUE(rd::looks_like_slurm_topology(text)) << r.file;
    EXPECT_FALSE(rd::looks_like_slurm_yaml(text) || rd::looks_like_host_map(text) || rd::looks_like_hostfile(text))
        << r.file;
    const auto t = rd::parse_slurm_topology(text, r.file);
    ASSERT_TRUE(t) << t.error().message();
    EXPECT_EQ(t->switches.size(), facts[r.file]["switches"].get<std::size_t>()) << r.file;
    EXPECT_EQ(t->blocks.size(), facts[r.file]["blocks"].get<std::size_t>()) << r.file;
    long nodes = 0;
    long leaves = 0;
    for (const auto& s : t->switches) {
      nodes += static_cast<long>(s.nodes.size());
      leaves += s.nodes.empty() ? 0 : 1;
    }
    for (const auto& b : t->blocks) nodes += static_cast<long>(b.nodes.size());
    EXPECT_EQ(nodes, number(r.facts, "node references=")) << r.file;
    EXPECT_EQ(leaves, number(r.facts, "leaf with Nodes=")) << r.file;
    const auto g = graph_of(tc::slurm_topology_file{(root / r.file).string()}.read({}));
    expect_reasons(g, r.file);
    EXPECT_EQ(tc::topo::summarize(g).switches, t->switches.size() + t->blocks.size()) << r.file;
    ++read;
  }
  EXPECT_GE(read, 1U);
}

TEST_F(scheduler_corpus, of_topology_yaml_is_refused_for_the_rule_that_it_breaks) {
  // What the notes call broken, and a word of our reason.
  const std::pair<const char*, const char*> reasons[] = {
      {"blocks not list", "'blocks' is a text"},     {"flat bool mutually exclusive", "'block' and 'flat'"},
      {"root not list", "not a list of topologies"}, {"regions not list", "'regions' is a text"},
      {"bad options", "places, but 8 nodes"},        {"tree mutually exclusive", "'block' and 'tree'"}};
  for (const row& r : rows) {
    if (r.file.rfind("slurm/", 0) != 0 || r.file.find(".yaml") == std::string::npos) continue;
    const std::string text = text_of(root / r.file);
    EXPECT_TRUE(rd::looks_like_slurm_yaml(text)) << r.file;
    const auto f = tc::fragment_of_slurm_yaml(text, r.file);
    if (r.notes.find("NEGATIVE") == std::string::npos) {
      EXPECT_TRUE(f) << f.error().message();
      continue;
    }
    ASSERT_FALSE(f) << r.file;
    EXPECT_NE(f.error().what.find(" line "), std::string::npos) << f.error().what;
    for (const auto& [note, why] : reasons)
      if (r.notes.find(note) != std::string::npos) {
        EXPECT_NE(f.error().what.find(why), std::string::npos) << f.error().what;
      }
  }
}

TEST_F(scheduler_corpus, of_host_maps_is_read_with_independent_counts) {
  for (const row& r : rows) {
    if (r.facts.rfind("map;", 0) != 0) continue;
    const std::string text = text_of(root / r.file);
    EXPECT_TRUE(rd::looks_like_host_map(text)) << r.file;
    const auto m = rd::parse_host_map(text, r.file);
    ASSERT_TRUE(m) << m.error().message();
    EXPECT_EQ(static_cast<long>(m->rows.size()), number(r.facts, "lines=")) << r.file;
    const auto g = graph_of(tc::fragment_of(*m, {}, r.file));
    expect_reasons(g, r.file);
    const auto s = tc::topo::summarize(g);
    EXPECT_EQ(static_cast<long>(s.hosts), number(r.facts, "hosts=")) << r.file;
    EXPECT_EQ(static_cast<long>(m->ports ? s.nics : s.nvswitches), number(r.facts, "values=")) << r.file;
  }
}

TEST_F(scheduler_corpus, of_topograph_models_is_read_with_independent_counts) {
  std::size_t read = 0;
  for (const row& r : rows) {
    if (r.file.rfind("other/topograph_model", 0) != 0) continue;
    const std::string text = text_of(root / r.file);
    EXPECT_TRUE(rd::looks_like_topograph_model(text)) << r.file;
    const auto root_value = tc::io::parse_yaml(text, r.file);
    ASSERT_TRUE(root_value);
    const auto m = rd::topograph_model_of(*root_value, r.file);
    ASSERT_TRUE(m) << m.error().message();
    EXPECT_EQ(static_cast<long>(m->blocks.size()), number(r.facts, "blocks=")) << r.file;
    const auto g = graph_of(tc::topograph_model_file{(root / r.file).string()}.read({}));
    expect_reasons(g, r.file);
    std::size_t nodes = 0;
    for (const auto& b : m->blocks) nodes += b.nodes.size();
    EXPECT_EQ(tc::topo::summarize(g).hosts, nodes) << r.file;
    EXPECT_GT(tc::topo::summarize(g).nvswitches, 0U) << r.file;
    ++read;
  }
  EXPECT_GE(read, 1U);
}

TEST_F(scheduler_corpus, of_ports_and_of_hosts_give_rails_together) {
  const fs::path ports = root / "slurm/azure_topology_guids.conf";
  const fs::path hosts = root / "slurm/azure_nodes_guids.txt";
  if (!fs::exists(ports) || !fs::exists(hosts)) GTEST_SKIP() << "the corpus lacks the pair of files";
  const auto t = rd::parse_slurm_topology(text_of(ports), "ports");
  const auto m = rd::parse_host_map(text_of(hosts), "hosts");
  ASSERT_TRUE(t && m);
  EXPECT_TRUE(t->lists_neighbours);
  const auto g = graph_of(tc::fragment_of(tc::with_hosts(*t, *m), {}, "both"));
  EXPECT_EQ(tc::topo::summarize(g).hosts, 16U);
  EXPECT_EQ(tc::topo::summarize(g).nics, 128U);
  EXPECT_EQ(tc::topo::rails(g).size(), 8U);
  EXPECT_EQ(g.all(node_kind::core_switch).size(), 1U);
  EXPECT_EQ(g.all(node_kind::spine).size(), 8U);
}
