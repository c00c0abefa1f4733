// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <topocoll/discover/netq_json.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::node_kind;

namespace {

std::string end_text(const std::string& node, const std::string& interface) {
  return R"({"node": ")" + node + R"(", "interface": ")" + interface + R"("})";
}
std::string cable_text(const std::string& a, const std::string& b) {
  return R"({"interfaces": [)" + a + ", " + b + "]}";
}
std::string device_text(const std::string& id, const std::string& name, const std::string& type, int tier) {
  return R"({"id": ")" + id + R"(", "name": ")" + name + R"(", "device_type": ")" + type + R"(", "tier": )" +
         std::to_string(tier) + "}";
}
std::string document(const std::string& devices, const std::string& cables) {
  return R"([{"nodes": [{"tier": 1, "compounded_nodes": [)" + devices + R"(]}], "links": [{"compounded_links": [)" +
         cables + "]}]}]";
}
const std::string devices = device_text("n1", "leaf-1", "switch", 1) + "," + device_text("n2", "top", "switch", 2) +
                            "," + device_text("n3", "box", "switch", -1) + "," +
                            device_text("n4", "host-1", "host", -1);

}  // namespace

TEST(netq, gives_switches_by_tier_hosts_and_every_cable) {
  const std::string text = document(devices, cable_text(end_text("n1", "swp1"), end_text("n4", "eth0")) + "," +
                                                 cable_text(end_text("n4", "eth1"), end_text("n1", "swp2")) + "," +
                                                 cable_text(end_text("n1", "swp9"), end_text("n2", "swp1")) + "," +
                                                 cable_text(end_text("n1", "swp10"), end_text("n2", "swp2")) + "," +
                                                 cable_text(end_text("n1", "swp11"), end_text("n1", "swp12")));
  EXPECT_TRUE(tc::looks_like_netq(text));
  const auto f = tc::fragment_of_netq(text, "q.json");
  ASSERT_TRUE(f) << f.error().message();
  const auto g = tc::topo::graph::from(*f);
  ASSERT_TRUE(g) << g.error().message();
  const tc::topo::summary s = tc::topo::summarize(*g);
  EXPECT_EQ(s.switches, 3U);
  EXPECT_EQ(s.hosts, 1U);
  EXPECT_EQ(s.nics, 2U);
  EXPECT_EQ(s.links, 2U + 2U + 2U);
  EXPECT_EQ(g->at(*g->find("switch:top")).kind, node_kind::spine);
  EXPECT_EQ(g->at(*g->find("switch:leaf-1")).kind, node_kind::leaf);
  EXPECT_EQ(g->at(*g->find("switch:box")).how, tc::trust::assumed);
  EXPECT_TRUE(g->find("host-1/net:eth1/0"));
  for (const tc::topo::link& l : g->links()) {
    EXPECT_EQ(l.how, tc::trust::assumed);
    EXPECT_NE(l.reason, "");
  }
  EXPECT_EQ(f->findings.size(), 3U);  // no rates, no tier of one switch, a cable within one
}

TEST(netq, refuses_what_is_no_topology_with_a_reason) {
  const std::string cable = cable_text(end_text("n1", "swp1"), end_text("n9", "eth0"));
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string("[1]"), std::string(R"([{"nodes": 1, "links": []}])"),
        document(devices, cable), document(devices, R"({"interfaces": []})"), document(devices + "," + devices, ""),
        document("{}", ""), document(devices, cable_text(end_text("n1", ""), end_text("n2", "swp1"))),
        std::string("[")}) {
    const auto f = tc::fragment_of_netq(text, "q.json");
    ASSERT_FALSE(f) << text;
    EXPECT_EQ(f.error().code, tc::errc::malformed_input);
    EXPECT_EQ(f.error().what.rfind("q.json", 0), 0U) << f.error().what;
  }
  EXPECT_EQ(tc::netq_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
}

TEST(netq, reads_the_captured_file) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::exists(fs::path(named) / "corpus/ib/netq_topology_graph.json"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/ib/netq_topology_graph.json";
  const auto f = tc::netq_file{(fs::path(named) / "corpus/ib/netq_topology_graph.json").string()}.read({});
  ASSERT_TRUE(f) << f.error().message();
  const auto g = tc::topo::graph::from(*f);
  ASSERT_TRUE(g);
  const tc::topo::summary s = tc::topo::summarize(*g);
  EXPECT_EQ(s.switches, 3U);
  EXPECT_EQ(s.hosts, 8U);
  EXPECT_EQ(s.nics, 32U);
  EXPECT_EQ(s.links, 32U + 32U + 28U + 19U);
}
