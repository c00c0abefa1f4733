// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <topocoll/discover/cluster_toml.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

const std::string head = "schema = \"topocoll.cluster/1\"\n";

tc::topo::graph graph_of(const std::string& text, tc::host_text_reader reader = nullptr) {
  auto f = tc::fragment_of_cluster_toml(text, "c.toml", {}, reader);
  EXPECT_TRUE(f) << (f ? "" : f.error().message());
  if (!f) return {};
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? std::move(*g) : tc::topo::graph();
}

std::string refusal(const std::string& text, tc::errc code = tc::errc::malformed_input) {
  const auto f = tc::fragment_of_cluster_toml(text, "c.toml");
  EXPECT_FALSE(f) << text;
  if (f) return {};
  EXPECT_EQ(f.error().code, code) << f.error().what;
  EXPECT_EQ(f.error().what.rfind("c.toml", 0), 0U) << f.error().what;
  return f.error().message();
}

void refused(const std::string& text, const std::string& why, tc::errc code = tc::errc::malformed_input) {
  const std::string what = refusal(text, code);
  EXPECT_NE(what.find(why), std::string::npos) << "'" << what << "' does not say: " << why;
}

/// Capacities of all links from a to b.
std::vector<double> rates(const tc::topo::graph& g, const std::string& a, const std::string& b) {
  std::vector<double> found;
  for (const tc::topo::link& l : g.links())
    if (g.at(l.from).key == a && g.at(l.to).key == b) found.push_back(l.capacity.value);
  return found;
}

const tc::finding* said(const tc::topo::graph& g, const std::string& text) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(text) != std::string::npos || f.evidence.find(text) != std::string::npos) return &f;
  return nullptr;
}

std::string fact(const tc::topo::graph& g, const std::string& key, const std::string& name) {
  const auto v = g.find(key);
  if (!v) return "no node";
  for (const auto& [n, value] : g.at(*v).facts)
    if (n == name) return value;
  return "";
}

/// Two tiers in nine lines.
const std::string two_tiers = head +
                              "[[hosts]]\n"
                              "names = \"n[00-15]\"\n"
                              "model = \"dgx-h100\"\n"
                              "leaves = \"leaf[0-7]\"\n"
                              "[[switches]]\n"
                              "names = \"leaf[0-7]\"\n"
                              "up = \"spine[0-3]\"\n"
                              "oversubscription = 2\n"
                              "[[switches]]\n"
                              "names = \"spine[0-3]\"\n";

}  // namespace

TEST(cluster_graph, of_a_minimal_file_is_the_described_fabric) {
  const auto g = graph_of(two_tiers);
  auto described = tc::describe("dgx-h100:nodes=16,leaves=8,spines=4,oversubscription=2");
  ASSERT_TRUE(described);
  const auto want = tc::topo::graph::from(std::move(*described));
  ASSERT_TRUE(want);
  EXPECT_EQ(tc::topo::summarize(g), tc::topo::summarize(*want));
  // The same cluster by another road: every uplink carries as much.
  EXPECT_EQ(rates(g, "switch:leaf3", "switch:spine1"), rates(*want, "leaf:3", "spine:1"));
  EXPECT_EQ(fact(g, "switch:leaf3", "oversubscription"), "2.00");
  EXPECT_EQ(fact(g, "switch:leaf3", "rail"), "3");
  const auto rails = tc::topo::rails(g);
  ASSERT_EQ(rails.size(), 8U);
  EXPECT_FALSE(rails[0].shares_leaf);
  EXPECT_EQ(tc::topo::nvlink_islands(g).size(), 16U);
}

TEST(cluster_graph, derives_oversubscription_from_cables) {
  const std::string cabled = head +
                             "[fabric]\nnetwork = \"ethernet\"\nrate = \"400Gb/s\"\n"
                             "[[hosts]]\nnames = \"n[0-7]\"\nnics = 8\nleaves = \"l[0-7]\"\n"
                             "[[switches]]\nnames = \"l[0-7]\"\nup = \"s[0-1]\"\ncables = 2\n";
  const auto g = graph_of(cabled + "oversubscription = 2\n[[switches]]\nnames = \"s[0-1]\"\n");
  EXPECT_EQ(rates(g, "switch:l0", "switch:s1"), (std::vector<double>{50e9, 50e9}));
  EXPECT_EQ(fact(g, "switch:l0", "oversubscription"), "2.00");
  EXPECT_EQ(said(g, "stated oversubscription"), nullptr);
  EXPECT_EQ(g.links()[0].how, tc::trust::reported);
  const auto contradiction = graph_of(cabled + "oversubscription = 1\n[[switches]]\nnames = \"s[0-1]\"\n");
  const auto* f = said(contradiction, "the stated oversubscription is not the one that the cables give");
  ASSERT_NE(f, nullptr);
  EXPECT_NE(f->evidence.find("1.00 stated, 2.00 cabled"), std::string::npos) << f->evidence;
  EXPECT_EQ(fact(contradiction, "switch:l0", "oversubscription"), "2.00");
}

TEST(cluster_graph, says_what_it_assumes) {
  const auto g = graph_of(head +
                          "[[hosts]]\nnames = \"n[0-2]\"\nleaves = \"l0\"\n[[switches]]\nnames = \"l0\"\nup = "
                          "\"s0\"\n[[switches]]\nnames = \"s0\"\n");
  EXPECT_EQ(tc::topo::summarize(g).hosts, 3U);
  EXPECT_EQ(rates(g, "n0/net:?/1", "switch:l0"), (std::vector<double>{tc::unknown_port_rate.value}));
  EXPECT_EQ(rates(g, "switch:l0", "switch:s0"), (std::vector<double>{3 * tc::unknown_port_rate.value}));
  EXPECT_NE(said(g, "the rate of links upwards is assumed"), nullptr);
  for (const auto& l : g.links()) {
    EXPECT_EQ(l.how, tc::trust::assumed);
    EXPECT_NE(l.reason, "");
  }
}

TEST(cluster_graph, plugs_named_adapters_into_named_leaves) {
  const auto g = graph_of(head +
                          "[[hosts]]\nnames = \"a,b\"\nnics = [\"mlx5_0\", \"mlx5_[3-4]\"]\nnic_rate = "
                          "\"200Gb/s\"\nplug = { mlx5_0 = \"l0\", 2 = \"l1\" }\n"
                          "[[switches]]\nnames = \"l[0-1]\"\n");
  EXPECT_EQ(rates(g, "a/net:mlx5_0/1", "switch:l0"), (std::vector<double>{25e9}));
  EXPECT_EQ(rates(g, "b/net:mlx5_4/1", "switch:l1"), (std::vector<double>{25e9}));
  EXPECT_NE(said(g, "an adapter has no cable"), nullptr);
  EXPECT_EQ(said(g, "an adapter has no cable")->evidence, "2: a/mlx5_3, b/mlx5_3");
  EXPECT_EQ(g.at(*g.find("a/nic:mlx5_3")).how, tc::trust::reported);
}

TEST(cluster_graph, builds_three_tiers_and_pods) {
  const auto g = graph_of(
      head +
      "[[hosts]]\nnames = \"p0n[0-3]\"\nmodel = \"dgx-a100\"\nleaves = \"p0l[0-7]\"\n"
      "[[hosts]]\nnames = \"p1n[0-3]\"\nmodel = \"dgx-a100\"\nleaves = \"p1l[0-7]\"\n"
      "[[switches]]\nnames = \"p0l[0-7]\"\nup = \"p0s[0-1]\"\n[[switches]]\nnames = \"p1l[0-7]\"\nup = \"p1s[0-1]\"\n"
      "[[switches]]\nnames = \"p[0-1]s[0-1]\"\nup = \"c[0-2]\"\ntier = \"spine\"\noversubscription = "
      "4\n[[switches]]\nnames = \"c[0-2]\"\ntier = \"core\"\n");
  EXPECT_EQ(g.all(node_kind::leaf).size(), 16U);
  EXPECT_EQ(g.all(node_kind::spine).size(), 4U);
  EXPECT_EQ(g.all(node_kind::core_switch).size(), 3U);
  // 8 leaves of 4 hosts at 25 GB/s below two spines; a quarter of that over three core switches.
  EXPECT_DOUBLE_EQ(rates(g, "switch:p1s0", "switch:c2").at(0), 8 * 4 * 25e9 / 2 / 4 / 3);
  EXPECT_EQ(said(g, "stated tier"), nullptr);
}

TEST(cluster_graph, tells_tiers_that_cables_contradict) {
  const auto g = graph_of(head +
                          "[[hosts]]\nnames = \"n0\"\nleaves = \"l0\"\n[[switches]]\nnames = \"l0\"\ntier = "
                          "\"spine\"\nup = \"s0\"\n[[switches]]\nnames = \"s0\"\ntier = \"core\"\n");
  EXPECT_EQ(g.at(*g.find("switch:l0")).kind, node_kind::leaf);
  EXPECT_EQ(g.at(*g.find("switch:s0")).kind, node_kind::spine);
  ASSERT_NE(said(g, "stated tier"), nullptr);
  EXPECT_EQ(said(g, "stated tier")->evidence.substr(0, 2), "2:");
}

TEST(cluster_graph, applies_exceptions_and_names_both_ends) {
  const std::string base =
      head +
      "[fabric]\nrate = \"400Gb/s\"\n[[hosts]]\nnames = \"n[0-3]\"\nnics = 2\nleaves = \"l[0-1]\"\n"
      "[[switches]]\nnames = \"l[0-1]\"\nup = \"s[0-1]\"\ncables = 2\n[[switches]]\nnames = \"s[0-1]\"\n";
  const auto g = graph_of(base +
                          "[[links]]\nbetween = [\"n2/1\", \"l1\"]\nmissing = true\nreason = \"cable pulled\"\n"
                          "[[links]]\nbetween = [\"s1\", \"l0\"]\ncables = 1\nreason = \"port 7 dead\"\n"
                          "[[links]]\nbetween = [\"l1\", \"s0\"]\nrate = \"200Gb/s\"\nreason = \"old optics\"\n"
                          "[[links]]\nbetween = [\"l0\", \"n0/0\"]\nrate = \"100Gb/s\"\nreason = \"bent\"\n");
  EXPECT_TRUE(rates(g, "n2/net:?/2", "switch:l1").empty());
  EXPECT_EQ(rates(g, "switch:l0", "switch:s1"), (std::vector<double>{50e9}));
  EXPECT_EQ(rates(g, "switch:s0", "switch:l1"), (std::vector<double>{25e9, 25e9}));
  EXPECT_EQ(rates(g, "n0/net:?/1", "switch:l0"), (std::vector<double>{12.5e9}));
  const auto* missing = said(g, "the link between n2/1 and l1 is missing");
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->level, tc::severity::fault);
  EXPECT_NE(missing->evidence.find("cable pulled"), std::string::npos);
  EXPECT_NE(said(g, "has 1 cable, others like it have 2"), nullptr);
  EXPECT_NE(said(g, "runs at 25.0 GB/s, others like it at 50.0 GB/s"), nullptr);
  for (const auto& l : g.links())
    if (g.at(l.from).key == "switch:s0" && g.at(l.to).key == "switch:l1") {
      EXPECT_DOUBLE_EQ(l.nominal->value, 50e9);
      EXPECT_DOUBLE_EQ(l.current->value, 25e9);
      EXPECT_EQ(l.reason, "old optics");
    }
  EXPECT_EQ(fact(g, "switch:l1", "oversubscription"), "1.00");  // 150 GB/s below, 50 + 100 upwards
  refused(base + "[[links]]\nbetween = [\"s0\", \"s1\"]\nmissing = true\nreason = \"x\"\n", "not joined by a cable");
  refused(base + "[[links]]\nbetween = [\"n9/0\", \"l1\"]\nmissing = true\nreason = \"x\"\n",
          "the host 'n9' is not named");
  refused(base + "[[links]]\nbetween = [\"n1/5\", \"l1\"]\nmissing = true\nreason = \"x\"\n", "no adapter '5'");
  refused(base + "[[links]]\nbetween = [\"l9\", \"s1\"]\nmissing = true\nreason = \"x\"\n",
          "'l9' is not named in [[switches]]");
  refused(base + "[[links]]\nbetween = [\"l0\", \"s1\"]\nmissing = true\n", "no 'reason'");
  refused(base + "[[links]]\nbetween = [\"l0\", \"s1\"]\nreason = \"x\"\n", "says nothing");
  refused(base + "[[links]]\nbetween = [\"n0/0\", \"n1/0\"]\nmissing = true\nreason = \"x\"\n", "two adapters");
  refused(base +
              "[[links]]\nbetween = [\"l0\", \"s1\"]\nmissing = true\nreason = \"x\"\n[[links]]\nbetween = [\"s1\", "
              "\"l0\"]\ncables = 1\nreason = \"x\"\n",
          "two exceptions");
}

TEST(cluster_graph, corrects_single_facts_with_a_reason) {
  const auto g =
      graph_of(two_tiers +
               "[[corrections]]\nnode = \"switch:leaf0\"\nfact = \"asset\"\nvalue = \"A17\"\nreason = \"label\"\n"
               "[[corrections]]\nnode = \"n03/net:mlx5_2/1\"\nfact = \"index\"\nvalue = 7\nreason = \"renumbered\"\n");
  EXPECT_EQ(fact(g, "switch:leaf0", "asset"), "A17");
  EXPECT_EQ(g.at(*g.find("n03/net:mlx5_2/1")).index, 7U);
  ASSERT_NE(said(g, "'index' of n03/net:mlx5_2/1 is corrected to '7', was '2'"), nullptr);
  for (const auto& n : g.nodes()) EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
  refused(two_tiers + "[[corrections]]\nnode = \"switch:leaf9\"\nfact = \"a\"\nvalue = \"b\"\nreason = \"c\"\n",
          "no node 'switch:leaf9'");
  refused(two_tiers + "[[corrections]]\nnode = \"switch:leaf0\"\nfact = \"kind\"\nvalue = \"gpu\"\nreason = \"c\"\n",
          "cannot be corrected");
  refused(two_tiers + "[[corrections]]\nnode = \"switch:leaf0\"\nfact = \"numa\"\nvalue = \"x\"\nreason = \"c\"\n",
          "not a number");
}

TEST(cluster_graph, shares_planes_between_hosts_of_a_rack) {
  const auto g = graph_of(head + "[[hosts]]\nnames = \"t[1-20]\"\nmodel = \"gb200-nvl72\"\n");
  EXPECT_EQ(tc::topo::summarize(g).hosts, 20U);
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 2U);
  EXPECT_TRUE(g.find("nvswitch:t1"));
  EXPECT_TRUE(g.find("nvswitch:t19"));
  EXPECT_EQ(tc::topo::nvlink_islands(g).size(), 2U);
}

TEST(cluster_graph, reads_the_files_of_hosts) {
  const auto dir = std::filesystem::temp_directory_path() / ("topocoll_cluster_" + std::to_string(::getpid()));
  std::filesystem::create_directory(dir);
  std::ofstream(dir / "host.txt") << "any text";
  std::ofstream(dir / "self.toml") << head + "[[hosts]]\nnames = \"a\"\nfile = \"self.toml\"\n";
  std::ofstream(dir / "c.toml")
      << head + "[[hosts]]\nnames = \"a,b\"\nfile = \"host.txt\"\nleaves = \"l0\"\n[[switches]]\nnames = \"l0\"\n";
  const tc::host_text_reader reader = [](std::string_view text, const std::string&,
                                         const tc::discover_options& o) -> tc::result<tc::topo::fragment> {
    EXPECT_EQ(text, "any text");
    return tc::single_host(tc::models::hgx_h100, o.host);
  };
  auto f = tc::cluster_toml{(dir / "c.toml").string(), reader}.read({});
  ASSERT_TRUE(f) << f.error().message();
  const auto g = tc::topo::graph::from(std::move(*f));
  ASSERT_TRUE(g);
  EXPECT_EQ(tc::topo::summarize(*g).hosts, 2U);
  EXPECT_EQ(tc::topo::leaves(*g).at(0).nodes.size(), 16U);
  EXPECT_EQ(rates(*g, "b/net:mlx5_7/1", "switch:l0"), (std::vector<double>{50e9}));
  const auto self = tc::cluster_toml{(dir / "self.toml").string(), reader}.read({});
  ASSERT_FALSE(self);
  EXPECT_NE(self.error().what.find("is a cluster file, not the topology of a host"), std::string::npos);
  EXPECT_EQ((tc::cluster_toml{(dir / "c.toml").string()}.read({}).error().code), tc::errc::unsupported);
  std::filesystem::remove_all(dir);
  EXPECT_EQ((tc::cluster_toml{(dir / "c.toml").string()}.read({}).error().code), tc::errc::not_found);
}

TEST(cluster_graph, refuses_references_to_nothing) {
  const std::string hosts = head + "[[hosts]]\nnames = \"n[0-1]\"\nnics = 2\n";
  refused(hosts + "leaves = \"l0\"\n", "line 2: the leaf 'l0' is not named in [[switches]]");
  refused(hosts + "leaves = \"laef0\"\n[[switches]]\nnames = \"leaf0\"\n", "did you mean 'leaf0'?");
  refused(hosts + "leaves = \"l[0-2]\"\n[[switches]]\nnames = \"l[0-2]\"\n", "2 adapters, but 'leaves' names 3");
  refused(hosts + "plug = { 2 = \"l0\" }\n[[switches]]\nnames = \"l0\"\n", "no adapter '2'");
  refused(hosts + "[[switches]]\nnames = \"l0\"\nup = \"s0\"\n", "the switch 's0' is not named");
  refused(hosts + "[[switches]]\nnames = \"l0\"\nup = \"l1\"\n[[switches]]\nnames = \"l1\"\nup = \"l0\"\n",
          "back to itself");
  refused(hosts + "[[switches]]\nnames = \"l0\"\nup = \"s0,s0\"\n[[switches]]\nnames = \"s0\"\n",
          "names a switch twice");
  refused(head + "[[hosts]]\nnames = \"n0\"\nmodel = \"dgx-h1000\"\n", "unknown model");
  refused(head + "[[hosts]]\nnames = \"n0\"\nmodel = \"dgx-h100:leaves=8\"\n", "describes a network");
}

TEST(cluster_graph, bounds_what_a_small_file_can_ask_for) {
  refused(head + "[[hosts]]\nnames = \"n[0-399999]\"\nmodel = \"dgx-h100\"\n", "nodes", tc::errc::unsupported);
  refused(head + "[[hosts]]\nnames = \"n[0-9999]\"\nnics = 1000\n", "nodes", tc::errc::unsupported);
  refused(head +
              "[[hosts]]\nnames = \"n0\"\n[[switches]]\nnames = \"l[0-9999]\"\nup = \"s[0-9999]\"\ncables = "
              "1024\n[[switches]]\nnames = \"s[0-9999]\"\n",
          "links", tc::errc::unsupported);
  refused(head + "[[hosts]]\nnames = \"n[0-99999999]\"\n", "1048576", tc::errc::unsupported);
}
