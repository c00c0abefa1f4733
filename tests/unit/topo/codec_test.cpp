// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/discover/describe.hpp>
#include <topocoll/topo/codec.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::errc;
using topocoll::severity;

namespace {

void expect_same(const topo::node& a, const topo::node& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.host, b.host);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.global_rank, b.global_rank);
  EXPECT_EQ(a.numa, b.numa);
  EXPECT_EQ(a.how, b.how);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.facts, b.facts);
}
void expect_same(const topo::link& a, const topo::link& b) {
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.to, b.to);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.lanes, b.lanes);
  EXPECT_EQ(a.nominal, b.nominal);
  EXPECT_EQ(a.current, b.current);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.how, b.how);
  EXPECT_EQ(a.reason, b.reason);
}
void expect_same(const topocoll::finding& a, const topocoll::finding& b) {
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.where, b.where);
  EXPECT_EQ(a.what, b.what);
  EXPECT_EQ(a.evidence, b.evidence);
  EXPECT_EQ(a.next_step, b.next_step);
  EXPECT_EQ(a.confidence, b.confidence);
}

/// Graph -> JSON -> graph, every field compared.
void expect_round_trip(const topo::graph& g) {
  const auto back = topo::from_json(topo::to_json(g), "test");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->source, g.source());
  ASSERT_EQ(back->nodes.size(), g.node_count());
  ASSERT_EQ(back->links.size(), g.link_count());
  ASSERT_EQ(back->findings.size(), g.findings().size());
  for (std::uint32_t v = 0; v < g.node_count() && !testing::Test::HasFailure(); ++v)
    expect_same(back->nodes[v], g.at(node_id{v}));
  for (std::uint32_t e = 0; e < g.link_count() && !testing::Test::HasFailure(); ++e)
    expect_same(back->links[e], g.at(link_id{e}));
  for (std::size_t i = 0; i < g.findings().size(); ++i) expect_same(back->findings[i], g.findings()[i]);
}

/// Every field filled, with what is hard to write: quotes, controls, other scripts, one-way and asymmetric links.
topo::graph full_graph() {
  parts p;
  p.f.source = "a \"source\"\n\t\x01 with \xC3\xBC";
  const node_id gpu = p.gpu(0), nic = p.nic(0), leaf = p.network(node_kind::leaf, 7);
  topo::node& n = p.f.nodes[gpu.value];
  n.global_rank = 4294967295U;
  n.numa = 0;
  n.how = trust::assumed;
  n.reason = "because \\";
  n.facts = {{"arch", "x"}, {"empty", ""}, {"sm", "90"}};
  p.pcie(gpu, nic, 5, 16);
  const link_id up = p.join(nic, leaf, link_kind::ethernet, 1.0 / 3, trust::derived, "r");
  p.f.links[up.value].current = bytes_per_second{0.1};
  p.f.links.push_back(p.f.links[up.value]);  // a third one, one way
  p.f.links.back().nominal.reset();
  p.f.links.back().capacity = {0};
  p.join(nic, leaf, link_kind::infiniband, 50);
  p.join(leaf, nic, link_kind::infiniband, 50);
  p.f.findings.push_back({severity::fault, "w", "what", "e", "n", 0.1});
  p.f.findings.push_back({severity::note, "", "bare", "", "", 1});
  return p.graph();
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = R"({
  "schema": "topocoll.topology/1",
  "nodes": [
    {"key": "a", "kind": "gpu", "trust": "reported"},
    {"key": "b", "kind": "nic", "trust": "reported", "facts": {"x": "y"}}
  ],
  "links": [
    {"from": "a", "to": "b", "kind": "pcie", "duplex": true, "capacity_bytes_per_second": 1e9, "trust": "reported"}
  ],
  "findings": [{"severity": "note", "what": "w"}]
})";
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return from.empty() ? text : text.replace(at, from.size(), to);
}

std::string refusal(const std::string& from, const std::string& to) {
  const auto read = topo::from_json(changed(from, to), "t.json");
  return read ? "" : read.error().message();
}

}  // namespace

TEST(topology_codec, gives_back_every_field) { expect_round_trip(full_graph()); }

TEST(topology_codec, gives_back_a_graph_of_nothing) { expect_round_trip(topo::graph{}); }

TEST(topology_codec, gives_back_every_generated_cluster) {
  for (const char* spec :
       {"dgx-h100", "dgx-h100:nodes=2", "dgx-h100:nodes=16,leaves=8,oversubscription=2", "dgx-a100:nodes=3", "dgx-1v",
        "dgx-b200:nodes=5", "gb200-nvl72", "gb200-nvl72:nodes=36", "pcie", "pcie:nodes=7"}) {
    SCOPED_TRACE(spec);
    auto f = topocoll::describe(spec);
    ASSERT_TRUE(f) << f.error().what;
    auto g = topo::graph::from(*std::move(f));
    ASSERT_TRUE(g) << g.error().what;
    expect_round_trip(*g);
  }
}

TEST(topology_codec, writes_the_same_text_again) {
  const std::string once = topo::to_json(full_graph());
  auto again = topo::graph::from(*topo::from_json(once, "t"));
  ASSERT_TRUE(again);
  EXPECT_EQ(topo::to_json(*again), once);
}

TEST(topology_codec, writes_the_pinned_form) {
  parts p;
  p.f.source = "s";
  const node_id cpu = p.cpu(0), gpu = p.gpu(1);
  p.f.nodes[1].facts = {{"sm", "90"}};
  p.pcie(cpu, gpu, 4, 16);
  p.f.findings.push_back({severity::warning, "here", "it is odd", "", "look", 0.5});
  EXPECT_EQ(topo::to_json(p.graph()), R"({
  "schema": "topocoll.topology/1",
  "source": "s",
  "summary": {
    "hosts": 1,
    "gpus": 1,
    "nics": 0,
    "numa_domains": 1,
    "pcie_switches": 0,
    "nvswitches": 0,
    "switches": 0,
    "links": 1
  },
  "nodes": [
    {
      "key": "h/numa:0",
      "kind": "cpu",
      "name": "NUMA 0",
      "host": "h",
      "index": 0,
      "trust": "reported"
    },
    {
      "key": "h/pci:0000:a1:00.0",
      "kind": "gpu",
      "name": "GPU 1",
      "host": "h",
      "index": 1,
      "trust": "reported",
      "facts": {
        "sm": "90"
      }
    }
  ],
  "links": [
    {
      "from": "h/numa:0",
      "to": "h/pci:0000:a1:00.0",
      "kind": "pcie",
      "duplex": true,
      "generation": 4,
      "lanes": 16,
      "nominal_bytes_per_second": 31504000000.0,
      "capacity_bytes_per_second": 31504000000.0,
      "trust": "reported"
    }
  ],
  "findings": [
    {
      "severity": "warning",
      "where": "here",
      "what": "it is odd",
      "next_step": "look",
      "confidence": 0.5
    }
  ]
}
)");
}

TEST(topology_codec, reads_what_a_person_writes) {
  const auto read = topo::from_json(changed("", ""), "t.json");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->links.size(), 2U);
  EXPECT_EQ(read->links[1].from, node_id{1});
  EXPECT_EQ(read->findings[0].confidence, 1);
}

TEST(topology_codec, passes_over_unknown_fields) {
  EXPECT_EQ(refusal("\"key\": \"a\",", "\"key\": \"a\", \"colour\": {\"deep\": [1, 2]},"), "");
  EXPECT_EQ(refusal("\"findings\"", "\"paths\": [], \"findings\""), "");
}

TEST(topology_codec, refuses_a_newer_schema_with_both_numbers) {
  EXPECT_EQ(refusal("topology/1", "topology/2"),
            "t.json: written in version 2 of topocoll.topology, but this program reads up to version 1; use a newer "
            "topocoll");
}

TEST(topology_codec, refuses_with_place_fact_and_remedy) {
  EXPECT_EQ(refusal("\"key\": \"b\"", "\"key\": \"a\""),
            "t.json: /nodes/1 has the key 'a' of node 0; give every node its own key");
  EXPECT_EQ(refusal("\"to\": \"b\"", "\"to\": \"c\""),
            "t.json: /links/0/to: there is no node with the key 'c'; add the node, or remove the link");
  EXPECT_EQ(refusal("\"to\": \"b\"", "\"to\": \"a\""), "t.json: /links/0 joins 'a' to itself; remove the link");
  EXPECT_EQ(
      refusal("\"kind\": \"pcie\"", "\"kind\": \"rope\""),
      "t.json: /links/0/kind is 'rope', which is not known; use one of pcie, nvlink, xgmi, c2c, cpu, memory, internal, "
      "infiniband, ethernet");
  EXPECT_EQ(refusal("1e9", "-1"), "t.json: /links/0/capacity_bytes_per_second is not a number of bytes per second");
  EXPECT_EQ(refusal("\"capacity_bytes_per_second\": 1e9, ", ""),
            "t.json: /links/0 has no field 'capacity_bytes_per_second'; give it the rate that models should use, or 0 "
            "for a dead link");
  EXPECT_EQ(refusal("\"key\": \"a\"", "\"key\": \"\""), "t.json: /nodes/0/key is empty; give the node an address");
  EXPECT_EQ(refusal("\"x\": \"y\"", "\"x\": 5"), "t.json: /nodes/1/facts/x is number, not a text");
  EXPECT_EQ(refusal("\"trust\": \"reported\"}", "\"trust\": \"hoped\"}"),
            "t.json: /nodes/0/trust is 'hoped', which is not known; use one of measured, reported, derived, assumed");
  EXPECT_EQ(refusal("\"nodes\": [", "\"nodes\": 5, \"n\": ["), "t.json: /nodes is number, not an array");
  EXPECT_EQ(refusal("\"links\"", "\"links_\""), "t.json has no field 'links'");
  EXPECT_EQ(refusal("\"duplex\": true", "\"duplex\": 1"), "t.json: /links/0/duplex is number, not true or false");
}

TEST(topology_codec, refuses_a_text_that_was_cut_anywhere) {
  const std::string text = topo::to_json(full_graph());
  for (std::size_t n = 0; n + 2 < text.size(); ++n)
    ASSERT_FALSE(topo::from_json(std::string_view(text).substr(0, n), "t")) << n;
}
