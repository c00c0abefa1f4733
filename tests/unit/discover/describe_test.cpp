// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {

tc::fabric_options read(std::string_view spec) {
  auto o = tc::parse_spec(spec);
  EXPECT_TRUE(o) << spec << ": " << o.error().message();
  return o ? *o : tc::fabric_options{};
}

std::string canonical(std::string_view spec) {
  const auto text = tc::to_spec(read(spec));
  EXPECT_TRUE(text) << text.error().message();
  return text ? *text : std::string();
}

void refused(std::string_view spec, const std::vector<std::string>& words) {
  const auto o = tc::parse_spec(spec);
  ASSERT_FALSE(o) << spec;
  for (const std::string& w : words)
    EXPECT_NE(o.error().message().find(w), std::string::npos) << o.error().message() << "\nlacks " << w;
}

// Options that cover every key, by chance from a seed. Whether they can be built does not matter here.
tc::fabric_options any_options(std::uint64_t seed) {
  tc::detail::random_stream draw(seed);
  const auto n = [&](std::uint64_t below) { return static_cast<std::uint32_t>(draw.below(below)); };
  const auto often = [&] { return draw.below(3) == 0; };
  tc::fabric_options o = tc::detail::plain(tc::models::all[n(tc::models::all.size())]);
  if (often()) o.nodes = n(5000);
  if (often()) {
    o.split = {1 + n(9), 1 + n(9), 1 + n(9)};
    o.nodes = o.split[0] + o.split[1] + o.split[2];
  }
  if (often()) o.leaves = n(100);
  if (often()) o.pods = n(100);
  if (often()) o.spines = n(100);
  if (often()) o.cores = n(100);
  if (often()) o.rail_optimised = n(2) == 0;
  if (often()) o.oversubscription = {1 + n(30), 1 + n(30)};
  if (often()) o.core_oversubscription = {1 + n(3000), 1 + n(64)};
  if (often()) o.network = tc::topo::link_kind::ethernet;
  if (often()) o.detail = n(2) == 0 ? tc::host_detail::full : tc::host_detail::fabric;
  if (often()) o.order = tc::rank_order{static_cast<tc::rank_order::kind_t>(n(3)), 0};
  if (often()) o.order = tc::rank_order{tc::rank_order::kind_t::shuffled, draw.next()};
  if (often()) o.host.gpus = n(20);
  if (often() && o.host.mesh.empty()) o.host.nvlinks = n(20);
  if (often()) o.host.nvlink_rate = {static_cast<double>(draw.next() % 1000000000000) / 7};
  if (often()) o.host.nic_rate = {static_cast<double>(n(4000)) * 1.25e8};
  if (often()) o.host.memory_rate = {static_cast<double>(n(4000)) * 1e6 / 3};
  if (often()) o.host.c2c_rate = {static_cast<double>(n(4000)) * 1e9};
  if (often()) o.host.socket_rate = {static_cast<double>(n(4000)) * 1e8};
  if (often()) o.host.pcie_generation = n(9);
  if (often()) o.host.pcie_lanes = n(40);
  if (often()) o.host.gpus_per_switch = n(9);
  if (often()) o.host.sockets = n(9);
  if (often()) o.host.nics = n(20);
  if (often()) o.host.sm = n(200);
  if (often()) o.host.domain_hosts = n(40);
  if (often()) o.host.nvlink_generation = n(8);
  while (often()) {
    tc::planted_fault f;
    f.kind = static_cast<tc::planted_fault::kind_t>(n(4));
    f.part.kind = static_cast<tc::fabric_part::kind_t>(n(8));
    f.part.first = n(9999);
    const bool pair = to_string(f.part).find('/') != std::string::npos;
    if (pair) f.part.second = n(999);
    if (f.kind == tc::planted_fault::kind_t::slow) f.share = {1 + n(20), 1 + n(20)};
    if (f.kind == tc::planted_fault::kind_t::nvlinks_down) f.links = n(30);
    o.faults.push_back(f);
  }
  return o;
}

}  // namespace

TEST(parse_spec, reads_a_model_alone) {
  EXPECT_EQ(read("dgx-h100").host, tc::models::hgx_h100);
  EXPECT_EQ(read("dgx-h100").nodes, 1U);
  EXPECT_EQ(read("gb200-nvl72").nodes, 18U) << "a rack is the unit";
  EXPECT_EQ(read("dgx-1v:").host, tc::models::dgx_1v);
  EXPECT_EQ(read("hgx-h200"), read("dgx-h200"));
}

TEST(parse_spec, reads_every_key) {
  const auto o = read(
      "dgx-a100:nodes=7+8,leaves=4,pods=2,spines=6,cores=3,rails=no,oversubscription=3:2,core_oversubscription=1.5,"
      "network=ethernet,gpus=6,nvlinks=10,nvlink_rate=26GB/"
      "s,nvlink_generation=9,domain_hosts=2,sm=81,pcie_generation=5,"
      "pcie_lanes=8,gpus_per_switch=3,c2c_rate=100GB/s,sockets=4,socket_rate=12GB/s,memory_rate=300GB/s,nics=6,"
      "nic_rate=100Gb/s,detail=full,order=shuffled:12,missing=node1/nic2+leaf1/spine0,unplugged=node2/nic0,"
      "slow=node0/nic1:0.25,nvlinks_down=node3/gpu4:5");
  EXPECT_EQ(o.nodes, 15U);
  EXPECT_EQ(o.split, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_EQ(o.leaves, 4U);
  EXPECT_EQ(o.pods, 2U);
  EXPECT_EQ(o.spines, 6U);
  EXPECT_EQ(o.cores, 3U);
  EXPECT_EQ(o.rail_optimised, false);
  EXPECT_EQ(o.oversubscription, (tc::rational{3, 2}));
  EXPECT_EQ(o.core_oversubscription, (tc::rational{3, 2}));
  EXPECT_EQ(o.network, tc::topo::link_kind::ethernet);
  EXPECT_EQ(o.host.gpus, 6U);
  EXPECT_EQ(o.host.nvlinks, 10U);
  EXPECT_EQ(o.host.nvlink_rate.value, 26e9);
  EXPECT_EQ(o.host.nvlink_generation, 9U);
  EXPECT_EQ(o.host.domain_hosts, 2U);
  EXPECT_EQ(o.host.sm, 81U);
  EXPECT_EQ(o.host.pcie_generation, 5U);
  EXPECT_EQ(o.host.pcie_lanes, 8U);
  EXPECT_EQ(o.host.gpus_per_switch, 3U);
  EXPECT_EQ(o.host.c2c_rate.value, 100e9);
  EXPECT_EQ(o.host.sockets, 4U);
  EXPECT_EQ(o.host.socket_rate.value, 12e9);
  EXPECT_EQ(o.host.memory_rate.value, 300e9);
  EXPECT_EQ(o.host.nics, 6U);
  EXPECT_EQ(o.host.nic_rate.value, 12.5e9);
  EXPECT_EQ(o.detail, tc::host_detail::full);
  EXPECT_EQ(o.order, (tc::rank_order{tc::rank_order::kind_t::shuffled, 12}));
  ASSERT_EQ(o.faults.size(), 5U);
  EXPECT_EQ(to_string(o.faults[1].part), "leaf1/spine0");
  EXPECT_EQ(o.faults[3].share, (tc::rational{1, 4}));
  EXPECT_EQ(o.faults[4].links, 5U);
}

TEST(parse_spec, does_not_mind_blanks_and_repeated_faults) {
  EXPECT_EQ(read(" dgx-h100 : nodes = 4 , missing = node1/nic0 ,missing=node2/nic0"),
            read("dgx-h100:nodes=4,missing=node1/nic0+node2/nic0"));
}

TEST(parse_spec, answers_mistakes_with_place_and_choices) {
  refused("", {"no model is named", "models are", "dgx-a100"});
  refused("dgx-h10", {"unknown model 'dgx-h10' at character 1", "did you mean 'dgx-h100'", "gb200-nvl72"});
  refused("abacus", {"unknown model 'abacus'", "models are dgx-1v"});
  refused("dgx-h100:nodes=16,leafs=8",
          {"unknown key 'leafs' at character 19", "did you mean 'leaves'", "oversubscription"});
  refused("dgx-h100:nodes=16,,leaves=8", {"a key is missing at character 19"});
  refused("dgx-h100:nodes=16,", {"a key is missing at character 19"});
  refused("dgx-h100:nodes", {"'nodes' has no value at character 10"});
  refused("dgx-h100:nodes=", {"'' is not a whole number", "character 16"});
  refused("dgx-h100:nodes=x", {"nodes: 'x' is not a whole number", "character 16"});
  refused("dgx-h100:nodes=-1", {"'-1'"});
  refused("dgx-h100:nodes=99999999999", {"from 0 to 4294967295"});
  refused("dgx-h100:nodes=4294967295+1", {"can be generated"});
  refused("dgx-h100:nodes=4,nodes=5", {"given twice", "character 18"});
  refused("dgx-h100:oversubscription=a", {"ratio"});
  refused("dgx-h100:oversubscription=1:0", {"ratio"});
  refused("dgx-h100:oversubscription=1.2.3", {"ratio"});
  refused("dgx-h100:oversubscription=.", {"ratio"});
  refused("dgx-h100:nic_rate=400", {"nic_rate", "400Gb/s"});
  refused("dgx-h100:rails=maybe", {"yes or no"});
  refused("dgx-h100:network=token_ring", {"infiniband or ethernet"});
  refused("dgx-h100:detail=some", {"full or fabric"});
  refused("dgx-h100:order=shuffled", {"shuffled:7"});
  refused("dgx-h100:order=packed:3", {"shuffled:7"});
  refused("dgx-h100:missing=nodeX", {"'nodeX' is not a part"});
  refused("dgx-h100:missing=node1/", {"is not a part"});
  refused("dgx-h100:missing=node1/nic", {"is not a part"});
  refused("dgx-h100:missing=leaf1/nic0", {"is not a part"});
  refused("dgx-h100:slow=node1/nic0", {"node3/nic2:0.5"});
  refused("dgx-h100:nvlinks_down=node1/gpu0", {"node3/gpu5:9"});
  refused("dgx-h100:faults=3", {"3:7"});
  refused("dgx-h100:faults=5000:1", {"from 0 to 4096"});
  refused("dgx-1v:nvlinks=3", {"wires GPU to GPU"});
}

TEST(parse_spec, draws_faults_from_a_seed) {
  const auto o = read("dgx-h100:nodes=4,faults=3:7");
  EXPECT_EQ(o.faults.size(), 3U);
  EXPECT_EQ(o, read(canonical("dgx-h100:nodes=4,faults=3:7"))) << "the description names them";
  refused("dgx-h100:leaves=99,faults=3:7", {"99"});  // the cluster must be buildable before faults are drawn
}

TEST(to_spec, is_the_shortest_description) {
  EXPECT_EQ(canonical("dgx-h100"), "hgx-h100");
  EXPECT_EQ(canonical("dgx-h100:gpus=8,nodes=1,oversubscription=1"), "hgx-h100");
  EXPECT_EQ(canonical("hgx-h100:oversubscription=4:2,nodes=16,leaves=8"),
            "hgx-h100:nodes=16,leaves=8,oversubscription=2");
  EXPECT_EQ(canonical("dgx-a100:nic_rate=25GB/s"), "dgx-a100");
  EXPECT_EQ(canonical("dgx-a100:nic_rate=50GB/s"), "dgx-a100:nic_rate=400Gb/s");
  EXPECT_EQ(canonical("pcie:oversubscription=1.250,nodes=2"), "pcie:nodes=2,oversubscription=1.25");
  EXPECT_EQ(canonical("pcie:nodes=2,oversubscription=4:3"), "pcie:nodes=2,oversubscription=4:3");
  EXPECT_EQ(canonical("gb200-nvl72:nodes=18"), "gb200-nvl72");
  EXPECT_EQ(canonical("dgx-h100:nodes=4,slow=node1/nic0:1:3"), "hgx-h100:nodes=4,slow=node1/nic0:1:3");
}

TEST(to_spec, is_read_back_unchanged) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const auto o = any_options(seed);
    const auto spec = tc::to_spec(o);
    ASSERT_TRUE(spec) << "seed " << seed << ": " << spec.error().message();
    const auto back = tc::parse_spec(*spec);
    ASSERT_TRUE(back) << "seed " << seed << ": " << *spec << ": " << back.error().message();
    ASSERT_EQ(*back, o) << "seed " << seed << ": " << *spec;
    ASSERT_EQ(*tc::to_spec(*back), *spec) << "seed " << seed;
  }
}

TEST(to_spec, refuses_models_without_a_name) {
  tc::fabric_options o;
  o.host.name = "mine";
  EXPECT_FALSE(tc::to_spec(o));
  o.host = tc::models::hgx_h100;
  static constexpr tc::peer_link ring[] = {{0, 1, 1}};
  o.host.mesh = ring;
  EXPECT_FALSE(tc::to_spec(o));
}

TEST(describe, builds_the_same_graph_from_the_canonical_text) {
  for (const char* spec :
       {"dgx-1v", "dgx-a100:nodes=2,leaves=1", "dgx-h100:nodes=16,leaves=8,oversubscription=2", "gb200-nvl72:nodes=36",
        "pcie:nodes=3,faults=4:9", "dgx-b200:nodes=5+6,spines=3,order=scattered,slow=node0/nic1:0.5"}) {
    SCOPED_TRACE(spec);
    const auto a = tc::describe(spec);
    const auto b = tc::describe(canonical(spec));
    ASSERT_TRUE(a) << a.error().message();
    ASSERT_TRUE(b) << b.error().message();
    ASSERT_EQ(a->nodes.size(), b->nodes.size());
    ASSERT_EQ(a->links.size(), b->links.size());
    for (std::size_t v = 0; v < a->nodes.size(); ++v) EXPECT_EQ(a->nodes[v].key, b->nodes[v].key);
    for (std::size_t e = 0; e < a->links.size(); ++e) {
      EXPECT_EQ(a->links[e].from, b->links[e].from);
      EXPECT_EQ(a->links[e].capacity, b->links[e].capacity);
    }
    EXPECT_EQ(a->source, "description '" + std::string(spec) + "'");
  }
}

TEST(describe, passes_on_why_a_cluster_cannot_be_built) {
  const auto f = tc::describe("dgx-h100:nodes=4,leaves=64");
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::invalid_argument);
  EXPECT_NE(f.error().what.find("8 pods cannot be filled by 4 hosts"), std::string::npos) << f.error().what;
}

TEST(description, is_a_source) {
  tc::description d{"dgx-a100:nodes=2"};
  const auto f = d.read(tc::discover_options{});
  ASSERT_TRUE(f);
  EXPECT_EQ(d.name(), "description");
  EXPECT_EQ(f->nodes[0].host, "node0");
}

TEST(spec_help, and_the_manual_name_every_model_and_key) {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  std::string manual;
  if (source != nullptr) {
    std::ifstream file(std::string(source) + "/docs/formats/fabric.md");
    manual.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string help = tc::spec_help();
  for (const tc::host_model& m : tc::models::all) {
    EXPECT_NE(help.find(m.name), std::string::npos) << m.name;
    if (source != nullptr) {
      EXPECT_NE(manual.find('`' + std::string(m.name) + '`'), std::string::npos) << m.name;
    }
  }
  for (const tc::detail::spec_key& key : tc::detail::spec_keys) {
    EXPECT_NE(help.find("  " + std::string(key.name) + ' '), std::string::npos) << key.name;
    if (source != nullptr) {
      EXPECT_NE(manual.find('`' + std::string(key.name) + '`'), std::string::npos) << key.name;
    }
  }
}

TEST(nearest, forgives_small_slips_only) {
  const std::vector<std::string_view> words{"leaves", "spines", "pods", "preflight"};
  EXPECT_EQ(tc::detail::nearest("leafs", words), "leaves");
  EXPECT_EQ(tc::detail::nearest("prefligth", words), "preflight");
  EXPECT_EQ(tc::detail::nearest("pod", words), "pods");
  EXPECT_EQ(tc::detail::nearest("zebra", words), "");
  EXPECT_EQ(tc::detail::nearest("", words), "");
  EXPECT_EQ(tc::detail::nearest(std::string(1000, 'x'), words), "");
}

TEST(edit_distance, counts_letters) {
  EXPECT_EQ(tc::detail::edit_distance("", ""), 0U);
  EXPECT_EQ(tc::detail::edit_distance("", "abc"), 3U);
  EXPECT_EQ(tc::detail::edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(tc::detail::edit_distance("ab", "ba"), 1U);
}

// The last table of the manual: a description in the first column of each row.
TEST(describe, builds_every_example_of_the_manual) {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "TOPOCOLL_SOURCE_DIR is not set";
  std::ifstream file(std::string(source) + "/docs/formats/fabric.md");
  bool examples = false;
  std::size_t built = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) examples = line == "## Examples";
    if (!examples || !line.starts_with("| `")) continue;
    const std::string spec = line.substr(3, line.find('`', 3) - 3);
    const auto f = tc::describe(spec);
    EXPECT_TRUE(f) << spec << ": " << f.error().message();
    ++built;
  }
  EXPECT_EQ(built, 8U);
}
