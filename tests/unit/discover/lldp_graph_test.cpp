// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>
#include <topocoll/discover/lldp_graph.hpp>
#include <topocoll/discover/lldp_json.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace rd = topocoll::read;
using tc::topo::node_kind;

namespace {

rd::lldp_neighbor seen(const std::string& net_interface, const std::string& name, const std::string& id,
                       std::optional<bool> is_switch = true, std::optional<double> gigabits = std::nullopt) {
  rd::lldp_neighbor n;
  n.net_interface = net_interface;
  n.name = name;
  n.id = id;
  n.port = "p" + net_interface;
  n.is_switch = is_switch;
  if (gigabits) n.rate = tc::bytes_per_second{*gigabits * 1.25e8};
  return n;
}

tc::topo::graph graph_of(const std::vector<rd::lldp_table>& tables, const std::string& host = "me") {
  tc::discover_options options;
  options.host = host;
  auto f = tc::fragment_of(tables, options, "l");
  EXPECT_TRUE(f);
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  if (!g) return {};
  for (const auto& n : g->nodes()) EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
  return std::move(*g);
}

bool says(const tc::topo::graph& g, const std::string& text) {
  return std::any_of(g.findings().begin(), g.findings().end(),
                     [&](const tc::finding& f) { return (f.what + f.evidence).find(text) != std::string::npos; });
}

std::size_t cables(const tc::topo::graph& g, const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::count_if(g.links().begin(), g.links().end(), [&](const tc::topo::link& l) {
    return g.at(l.from).key == a && g.at(l.to).key == b;
  }));
}

}  // namespace

TEST(lldp_graph, makes_rails_of_equal_positions) {
  std::vector<rd::lldp_table> tables;
  for (const char* host : {"n1", "n2", "n3"})
    tables.push_back({host, {seen("eth10", "leaf-b", "02:0b", true, 100), seen("eth2", "leaf-a", "02:0a", true, 100)}});
  const auto g = graph_of(tables);
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 3U);
  EXPECT_EQ(s.nics, 6U);
  EXPECT_EQ(s.switches, 2U);
  const auto& leaf = g.at(*g.find("switch:leaf-b"));
  EXPECT_EQ(leaf.kind, node_kind::leaf);
  EXPECT_EQ(leaf.facts, (std::vector<std::pair<std::string, std::string>>{{"chassis_id", "02:0b"}, {"rail", "1"}}));
  const auto rails = tc::topo::rails(g);
  ASSERT_EQ(rails.size(), 2U);
  EXPECT_FALSE(rails[0].shares_leaf);
  EXPECT_EQ(g.at(rails[0].leaves.at(0)).name, "leaf-a");
  const auto port = g.find("n2/net:eth10/0");
  ASSERT_TRUE(port);
  EXPECT_EQ(g.at(*port).facts.at(1).second, "peth10");
  for (const auto& l : g.links()) EXPECT_DOUBLE_EQ(l.capacity.value, 12.5e9);
  EXPECT_FALSE(says(g, "no rate is told"));
}

TEST(lldp_graph, joins_switches_by_the_tables_of_either_side) {
  const auto g =
      graph_of({{"n1", {seen("e0", "l1", "1")}},
                {"n2", {seen("e0", "l2", "2")}},
                {"l1", {seen("u1", "s1", "11"), seen("u2", "s1", "11"), seen("d1", "n1", "21", false)}},
                {"s1", {seen("d1", "l1", "1"), seen("d2", "l1", "1"), seen("d3", "l2", "2"), seen("u1", "c1", "31")}}});
  EXPECT_EQ(cables(g, "switch:l1", "switch:s1"), 2U);
  EXPECT_EQ(cables(g, "switch:l2", "switch:s1"), 1U);
  EXPECT_EQ(g.at(*g.find("switch:s1")).kind, node_kind::spine);
  EXPECT_EQ(g.at(*g.find("switch:c1")).kind, node_kind::core_switch);
  EXPECT_EQ(tc::topo::summarize(g).hosts, 2U);
  EXPECT_TRUE(says(g, "a neighbour is no switch"));
  EXPECT_TRUE(says(g, "no rate is told for"));
}

TEST(lldp_graph, tells_switches_apart_by_chassis) {
  const auto g = graph_of({{"n1", {seen("e0", "tor", "1"), seen("e1", "tor", "2"), seen("e2", "", "3")}}});
  EXPECT_TRUE(g.find("switch:1") && g.find("switch:2") && g.find("switch:3"));
  EXPECT_EQ(g.at(*g.find("switch:1")).name, "tor");
  EXPECT_TRUE(says(g, "switches share a name"));
  const auto renamed = graph_of({{"n1", {seen("e0", "old", "1")}}, {"n2", {seen("e0", "new", "1")}}});
  EXPECT_EQ(tc::topo::summarize(renamed).switches, 1U);
  EXPECT_TRUE(says(renamed, "tells two names"));
}

TEST(lldp_graph, passes_over_what_is_no_switch) {
  const auto g = graph_of({{"", {seen("e0", "phone", "1", false), seen("e1", "tor", "2", std::nullopt)}}}, "me");
  EXPECT_EQ(tc::topo::summarize(g).switches, 1U);
  EXPECT_TRUE(g.find("me/net:e1/0"));
  EXPECT_TRUE(says(graph_of({{"lone", {}}}), "a host sees no switch"));
}

TEST(lldp_graph, keeps_an_interface_with_two_switches_once) {
  const auto g = graph_of({{"n1", {seen("e0", "a", "1"), seen("e0", "b", "2"), seen("e0", "b", "2")}}});
  EXPECT_EQ(tc::topo::summarize(g).nics, 1U);
  EXPECT_EQ(cables(g, "n1/net:e0/0", "switch:b"), 1U);
  EXPECT_TRUE(says(g, "sees several switches"));
}

TEST(lldp_json, takes_the_names_of_hosts_from_their_files) {
  const auto dir = std::filesystem::temp_directory_path() / ("topocoll_lldp_" + std::to_string(::getpid()));
  std::filesystem::create_directory(dir);
  for (const char* host : {"n1", "n2"})
    std::ofstream(dir / (std::string(host) + ".lldp.json"))
        << R"({"lldp": {"interface": {"eth0": {"chassis": {"tor": {"id": {"type": "mac", "value": "02:01"}}}}}}})";
  auto f = tc::lldp_json{{(dir / "n1.lldp.json").string(), (dir / "n2.lldp.json").string()}}.read({});
  ASSERT_TRUE(f) << f.error().message();
  const auto g = tc::topo::graph::from(std::move(*f));
  ASSERT_TRUE(g);
  EXPECT_TRUE(g->find("n1/net:eth0/0") && g->find("n2/net:eth0/0"));
  EXPECT_EQ(tc::topo::leaves(*g).at(0).nodes.size(), 2U);
  std::filesystem::remove_all(dir);
  EXPECT_EQ(tc::lldp_json{{"/nonexistent"}}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::lldp_json{}.read({}).error().code, tc::errc::invalid_argument);
}
