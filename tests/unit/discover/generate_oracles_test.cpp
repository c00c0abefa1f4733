// SPDX-License-Identifier: Apache-2.0
// Generated clusters against graphs that others wrote down: each link of the oracle, and no other, with its capacity.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

using links = std::map<std::pair<std::string, std::string>, double>;  // GB/s

// "16", "25/2" -> GB/s
double number(const std::string& text) {
  const auto slash = text.find('/');
  return slash == std::string::npos ? std::stod(text)
                                    : std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}

std::string oracle_name(const tc::topo::node& n, std::size_t rails, bool one_host, bool one_switch) {
  const std::string host = one_host ? "" : "h" + n.host.substr(n.host.empty() ? 0 : 4) + ".";
  const std::string index = n.index ? std::to_string(*n.index) : "";
  switch (n.kind) {
    case node_kind::gpu: return host + "g" + index;
    case node_kind::nvswitch: return host + "nvs";
    case node_kind::leaf:
      return one_switch ? "fab" : "p" + std::to_string(*n.index / rails) + ".leaf" + std::to_string(*n.index % rails);
    case node_kind::spine: return "spine" + index;
    default: return "";
  }
}

// Links between GPUs and switches. The chain GPU, NIC, port, leaf becomes one link of its least capacity.
links contracted(const tc::topo::graph& g, bool one_host) {
  const bool one_switch = g.all(node_kind::leaf).size() == 1;
  std::size_t rails = 0;
  for (const tc::node_id v : g.all(node_kind::nic))
    if (g.at(v).host == g.nodes()[0].host) ++rails;
  const auto name = [&](tc::node_id v) { return oracle_name(g.at(v), rails, one_host, one_switch); };
  links out;
  for (const tc::topo::link& l : g.links())
    if (!name(l.from).empty() && !name(l.to).empty()) out[{name(l.from), name(l.to)}] = l.capacity.value / 1e9;
  for (const tc::node_id gpu : g.all(node_kind::gpu))
    for (const tc::link_id a : g.out_links(gpu)) {
      if (g.at(g.head(a)).kind != node_kind::nic) continue;
      for (const tc::link_id b : g.out_links(g.head(a))) {
        if (g.at(g.head(b)).kind != node_kind::nic_port) continue;
        for (const tc::link_id c : g.out_links(g.head(b))) {
          if (g.at(g.head(c)).kind != node_kind::leaf) continue;
          const double rate = std::min({g.capacity(a).value, g.capacity(b).value, g.capacity(c).value}) / 1e9;
          out[{name(gpu), name(g.head(c))}] = rate;
          out[{name(g.head(c)), name(gpu)}] = rate;  // generated clusters are symmetric; links() above has both
        }
      }
    }
  return out;
}

}  // namespace

TEST(described_clusters, are_link_for_link_those_of_the_oracles) {
  const char* folder = std::getenv("TOPOCOLL_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set: no oracles";
  std::ifstream file(std::string(folder) + "/oracles/cut-bounds.json");
  if (!file) GTEST_SKIP() << "no oracles in " << folder;
  const auto document = nlohmann::json::parse(file);

  const std::string mini = "dgx-a100:gpus=2,nics=2,nvlinks=4,nic_rate=20GB/s,nodes=4,pods=2,oversubscription=4,";
  const std::map<std::string, std::string> specs{
      {"dgx-a100-x1", "dgx-a100:detail=fabric"},
      {"dgx-a100-x2", "dgx-a100:nodes=2,leaves=1"},
      {"dgx-a100-x4", "dgx-a100:nodes=4,leaves=1"},
      {"dgx-h100-x2", "dgx-h100:nodes=2,leaves=1"},
      {"dgx-h100-x4", "dgx-h100:nodes=4,leaves=1"},
      {"h100-x16-rail-2pod-1to1", "dgx-h100:nodes=16,leaves=16,spines=4"},
      {"h100-x16-rail-2pod-2to1", "dgx-h100:nodes=16,leaves=16,spines=4,oversubscription=2"},
      {"h100-x16-rail-2pod-3to1", "dgx-h100:nodes=16,leaves=16,spines=4,oversubscription=3"},
      {"h100-x16-rail-8pod-3to1", "dgx-h100:nodes=16,leaves=64,spines=2,oversubscription=3"},
      {"h100-x4-rail-2pod-3to1", "dgx-h100:nodes=4,leaves=16,spines=2,oversubscription=3:1"},
      {"mini-2x2x2-4to1", mini + "spines=1"},
      {"deg-rail-2x2-uplink-down", mini + "spines=2,missing=leaf0/spine0"},
      {"deg-a100-x2-nic-half", "dgx-a100:nodes=2,leaves=1,slow=node1/nic3:0.5"},
      {"deg-h100-x4-nic-half", "dgx-h100:nodes=4,leaves=1,slow=node2/nic5:0.5"},
      {"dgx-1v-hcm", "dgx-1v:detail=fabric"},
  };
  std::size_t compared = 0;
  for (const auto& oracle : document["topologies"]) {
    const auto spec = specs.find(oracle["name"]);
    if (spec == specs.end()) continue;
    SCOPED_TRACE(spec->first + " = " + spec->second);
    links want;
    for (const auto& l : oracle["links"]) want[{l[0], l[1]}] = number(l[2]);
    auto f = tc::describe(spec->second);
    ASSERT_TRUE(f) << f.error().message();
    const auto g = tc::topo::graph::from(std::move(*f));
    ASSERT_TRUE(g) << g.error().message();
    EXPECT_EQ(g->all(node_kind::gpu).size(), oracle["n_compute"]);
    const links got = contracted(*g, spec->first == "dgx-1v-hcm");
    EXPECT_EQ(got.size(), want.size());
    for (const auto& [ends, rate] : want) {
      const auto mine = got.find(ends);
      ASSERT_TRUE(mine != got.end()) << ends.first << " -> " << ends.second;
      EXPECT_NEAR(mine->second, rate, 1e-12 * rate) << ends.first << " -> " << ends.second;
    }
    ++compared;
  }
  EXPECT_EQ(compared, specs.size());
}

// The socket cut of a PCIe box is what the oracle says, whatever the PCIe links inside carry.
TEST(described_clusters, have_the_socket_cut_of_the_pcie_oracle) {
  const auto f = tc::describe("pcie:gpus=8,gpus_per_switch=2,nics=0,socket_rate=10GB/s");
  ASSERT_TRUE(f) << f.error().message();
  double between = 0;
  for (const tc::topo::link& l : f->links)
    if (l.kind == tc::topo::link_kind::cpu && f->nodes[l.from.value].index == 0U) between += l.capacity.value;
  EXPECT_DOUBLE_EQ(4 / (between / 1e9), 2.0 / 5);  // 4 shards over 10 GB/s: oracle pcie-8-upi
}
