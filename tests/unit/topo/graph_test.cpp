// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string>
#include <vector>
#include <topocoll/topo/concepts.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::errc;
static_assert(topo::LinkGraph<topo::graph>);

namespace {

std::string refusal(const topo::fragment& f) {
  const auto g = topo::graph::from(f);
  if (g) return "";
  EXPECT_EQ(g.error().code, errc::malformed_input);
  return g.error().what;
}

}  // namespace

TEST(graph, of_nothing_has_nothing) {
  const auto g = topo::graph::from({});
  ASSERT_TRUE(g);
  EXPECT_EQ(g->node_count(), 0U);
  EXPECT_EQ(g->link_count(), 0U);
  EXPECT_FALSE(g->find("a"));
  EXPECT_TRUE(topo::graph{}.all(node_kind::gpu).empty());
}

TEST(graph, lists_each_link_once_at_its_tail_in_order) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 17U}) {
    parts p;
    for (std::uint32_t i = 0; i < n; ++i) p.add(node_kind::gpu, "gpu:" + std::to_string(i), "");
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t j = 0; j < i; j += 2) p.join({i}, {j}, link_kind::nvlink, 1);
    const auto g = p.graph();
    std::vector<int> seen(g.link_count(), 0);
    for (std::uint32_t v = 0; v < n; ++v) {
      std::uint32_t last = 0;
      for (const link_id e : g.out_links({v})) {
        EXPECT_EQ(g.tail(e).value, v);
        EXPECT_EQ(g.head(e), p.f.links[e.value].to);
        EXPECT_GE(e.value, last);
        last = e.value;
        ++seen[e.value];
      }
    }
    for (const int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(graph, finds_a_node_by_its_key) {
  parts p;
  std::vector<std::string> keys = {"m", "a", "zz", "z", "b/c"};
  for (const auto& k : keys) p.add(node_kind::gpu, k, "", "");
  const auto g = p.graph();
  for (std::uint32_t i = 0; i < keys.size(); ++i) EXPECT_EQ(g.find(keys[i]), node_id{i});
  EXPECT_FALSE(g.find("b"));
  EXPECT_FALSE(g.find(""));
}

TEST(graph, refuses_what_cannot_be) {
  parts p;
  const node_id a = p.gpu(0), b = p.gpu(1);
  p.join(a, b, link_kind::nvlink, 1);
  EXPECT_EQ(refusal(p.f), "");
  auto bad = p.f;
  bad.source = "x";
  bad.links[0].to = {2};
  EXPECT_EQ(refusal(bad), "x: a link joins node 0 to node 2, but there are only 2");
  bad = p.f;
  bad.links[0].to = a;
  EXPECT_EQ(refusal(bad), ": a link joins 'h/pci:0000:a0:00.0' to itself");
  for (const double capacity :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    bad = p.f;
    bad.links[1].capacity = {capacity};
    EXPECT_NE(refusal(bad), "");
  }
  bad = p.f;
  bad.nodes[1].key = bad.nodes[0].key;
  EXPECT_EQ(refusal(bad), ": two nodes share the key 'h/pci:0000:a0:00.0'");
}
