// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/discover/capacity_json.hpp>
#include <topocoll/discover/files.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

const std::string three = R"({"name": "three", "nodes": [["a", "compute"], ["hub", "switch"], ["b", "compute"]],
  "links": [["a", "hub", "25/2"], ["hub", "a", 12.5], ["b", "hub", "100/3"], ["hub", "b", "7"], ["a", "b", 0]]})";

TEST(capacity_graph, is_read_with_its_rates_in_each_direction) {
  const auto read = from_text(three, "three.json");
  ASSERT_TRUE(read) << read.error().what;
  const topo::graph g = topo::graph::from(*read).value();
  ASSERT_EQ(g.node_count(), 3U);
  ASSERT_EQ(g.link_count(), 4U);
  EXPECT_EQ(g.all(topo::node_kind::gpu).size(), 2U);
  EXPECT_EQ(g.at(node_id{2}).index, 1U);
  EXPECT_EQ(g.links()[0].capacity.value, 12.5e9);
  EXPECT_EQ(g.links()[1].capacity.value, 12.5e9);
  EXPECT_DOUBLE_EQ(g.links()[2].capacity.value, 100e9 / 3);
  EXPECT_EQ(g.links()[3].capacity.value, 7e9);
}

TEST(capacity_graph, may_be_the_only_one_of_a_collection) {
  EXPECT_TRUE(from_text(R"({"topologies": [)" + three + "]}", "x"));
  const auto two = from_text(R"({"topologies": [)" + three + "," + three + "]}", "x");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, errc::unsupported);
}

TEST(capacity_graph, is_refused_with_the_place_where_it_is_wrong) {
  const auto wrong = [](const std::string& nodes, const std::string& links) {
    const auto read = fragment_of_capacity_graph(R"({"nodes": )" + nodes + R"(, "links": )" + links + "}", "f.json");
    return read ? std::string("read") : read.error().what;
  };
  const std::string good = R"([["a", "compute"], ["b", "compute"]])";
  EXPECT_EQ(wrong(good, "[]"), "read");
  EXPECT_NE(wrong(R"([["a"]])", "[]").find("f.json: /nodes/0: "), std::string::npos);
  EXPECT_NE(wrong(R"([["a", "gpu"]])", "[]").find("neither"), std::string::npos);
  EXPECT_NE(wrong(R"([["a", "compute"], ["a", "switch"]])", "[]").find("twice"), std::string::npos);
  EXPECT_NE(wrong(good, R"([["a", "c", 1]])").find("/links/0: it names no node: \"c\""), std::string::npos);
  EXPECT_NE(wrong(good, R"([["a", "a", 1]])").find("itself"), std::string::npos);
  for (const char* rate : {"\"1/0\"", "\"-1\"", "-1", "\"\"", "\"fast\"", "null", "\"1/2/3\"", "1e9", "[]", "\"/\""})
    EXPECT_NE(wrong(good, std::string(R"([["a", "b", )") + rate + "]]").find("rate"), std::string::npos) << rate;
  EXPECT_NE(wrong("3", "[]").find("no arrays"), std::string::npos);
}

}  // namespace
