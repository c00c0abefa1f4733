// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/dot.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;

namespace {

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++n;
  return n;
}

}  // namespace

TEST(topology_drawing, has_the_pinned_form) {
  parts p;
  p.f.source = "s";
  const node_id cpu = p.cpu(0), gpu = p.gpu(0), leaf = p.network(node_kind::leaf, 0);
  p.pcie(gpu, cpu, 4, 16);
  p.join(gpu, leaf, link_kind::ethernet, 0, trust::assumed);
  EXPECT_EQ(topo::to_dot(p.graph()), R"(digraph topology {
  graph [rankdir=TB label="s"]
  node [fontname="sans-serif"]
  edge [fontname="sans-serif" fontsize=9]
  subgraph cluster_0 {
    label="h"
    "h/numa:0" [label="NUMA 0" shape=box style=filled fillcolor="#dae8fc"]
    "h/pci:0000:a0:00.0" [label="GPU 0\n0000:a0:00.0" shape=box style=filled fillcolor="#d5e8d4"]
  }
  "leaf:0" [label="leaf 0" shape=box style="filled,rounded" fillcolor="#fff2cc"]
  "h/numa:0" -> "h/pci:0000:a0:00.0" [label="Gen4 x16\n31.5 GB/s" dir=none]
  "h/pci:0000:a0:00.0" -> "leaf:0" [label="0 Gb/s Ethernet" dir=none style=dashed color=red]
}
)");
}

TEST(topology_drawing, draws_one_edge_for_each_connection) {
  for (const char* spec : {"dgx-1v", "pcie:nodes=2", "dgx-h100:nodes=3", "gb200-nvl72"}) {
    auto g = topo::graph::from(*topocoll::describe(spec));
    ASSERT_TRUE(g);
    EXPECT_EQ(count(topo::to_dot(*g), " -> "), topo::summarize(*g).links) << spec;
  }
}

TEST(topology_drawing, draws_parallel_cables_and_arrows_for_what_differs_by_direction) {
  parts p;
  const node_id a = p.network(node_kind::leaf, 0), b = p.network(node_kind::spine, 0);
  for (int i = 0; i < 3; ++i) p.join(a, b, link_kind::infiniband, 50);
  p.join(a, b, link_kind::infiniband, 25);
  p.f.links.back().capacity = {1e9};
  const std::string text = topo::to_dot(p.graph());
  EXPECT_EQ(count(text, "dir=none"), 3U);
  EXPECT_EQ(count(text, " -> "), 5U);
}

TEST(topology_drawing, escapes_names) {
  EXPECT_EQ(topo::detail::dot_quoted("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd e\"");
  parts p;
  p.add(node_kind::gpu, "k\"]; evil [", "n\\", "h\"o");
  const std::string text = topo::to_dot(p.graph());
  EXPECT_NE(text.find("\"h\\\"o/k\\\"]; evil [\" [label=\"n\\\\\""), std::string::npos) << text;
}
