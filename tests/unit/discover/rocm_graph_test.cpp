// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <topocoll/discover/rocm_graph.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::path_class;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
tc::topo::graph built(const std::string& text) {
  const auto listing = tc::read::parse_rocm_smi_topo(text, "r");
  EXPECT_TRUE(listing) << (listing ? "" : listing.error().message());
  if (!listing) return {};
  auto fragment = tc::fragment_of(*listing, tc::discover_options{}, "r");
  EXPECT_TRUE(fragment);
  auto graph = tc::topo::graph::from(*std::move(fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return graph ? *std::move(graph) : tc::topo::graph{};
}
path_class between(const tc::topo::graph& g, const std::string& a, const std::string& b) {
  return tc::topo::classify(g, *g.find("localhost/gpu:" + a), *g.find("localhost/gpu:" + b));
}
bool says(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return true;
  return false;
}

const std::string kinds =
    "=== Link Type between two GPUs ===\n"
    "      GPU0  GPU1  GPU2  GPU3\n"
    "GPU0  0     XGMI  PCIE  PCIE\n"
    "GPU1  XGMI  0     PCIE  PCIE\n"
    "GPU2  PCIE  PCIE  0     XGMI\n"
    "GPU3  PCIE  PCIE  XGMI  0\n"
    "=== Hops between two GPUs ===\n"
    "      GPU0  GPU1  GPU2  GPU3\n"
    "GPU0  0     1     2     3\n"
    "GPU1  1     0     2     3\n"
    "GPU2  2     2     0     2\n"
    "GPU3  3     3     2     0\n"
    "GPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: 0\n"
    "GPU[2] : (Topology) Numa Node: 0\nGPU[3] : (Topology) Numa Node: 1\n";

}  // namespace

TEST(rocm_graph, joins_gpus_one_hop_apart_by_xgmi_and_the_others_by_their_processors) {
  const auto g = built(kinds);
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, 4U);
  EXPECT_EQ(s.numa_domains, 2U);
  EXPECT_EQ(between(g, "0", "1"), path_class::NVL);
  EXPECT_EQ(between(g, "0", "2"), path_class::PHB);
  EXPECT_EQ(between(g, "1", "3"), path_class::SYS);
  EXPECT_EQ(between(g, "2", "3"), path_class::SYS);  // XGMI, but over two hops
  EXPECT_TRUE(says(g, "only by way of others"));
  for (const tc::topo::link& l : g.links()) {
    EXPECT_GT(l.capacity.value, 0);
    EXPECT_NE(l.reason, "");
  }
}

TEST(rocm_graph, keeps_gpus_without_a_numa_node_together_and_says_so) {
  const auto g =
      built("=== Link Type between two GPUs\nGPU0 GPU1\nGPU0 0 PCIE\nGPU1 PCIE 0\nGPU[0] : (Topology) Numa Node: -1\n");
  EXPECT_EQ(tc::topo::summarize(g).numa_domains, 1U);
  EXPECT_TRUE(says(g, "the NUMA node of a GPU is not told"));
  EXPECT_FALSE(g.at(*g.find("localhost/gpu:0")).numa);
}

TEST(rocm_graph, reports_rows_that_differ_and_kinds_that_are_not_told) {
  const auto g =
      built("=== Link Type between two GPUs\nGPU0 GPU1 GPU2\nGPU0 0 PCIE N/A\nGPU1 XGMI 0 N/A\nGPU2 N/A N/A 0\n");
  EXPECT_TRUE(says(g, "the two rows of a pair"));
  EXPECT_TRUE(says(g, "the kind of the link between two GPUs is not told"));
  EXPECT_EQ(between(g, "0", "1"), path_class::NVL);
}

TEST(rocm_corpus, of_a_hive_joins_all_pairs) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nvsmi"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nvsmi";
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/nvsmi")) {
    const std::string text = text_of(entry.path());
    if (!tc::read::looks_like_rocm_smi_topo(text)) continue;
    ++seen;
    const auto listing = tc::read::parse_rocm_smi_topo(text, entry.path().string());
    ASSERT_TRUE(listing) << listing.error().message();
    const auto g = built(text);
    EXPECT_EQ(tc::topo::summarize(g).gpus, listing->gpus.size());
    for (const auto& a : listing->gpus)
      for (std::size_t j = 0; j < a.to.size(); ++j)
        if (a.to[j].kind == "XGMI" && a.to[j].hops == 1U) {
          EXPECT_EQ(between(g, std::to_string(a.index), std::to_string(listing->gpus[j].index)), path_class::NVL);
        }
  }
  EXPECT_GT(seen, 0U);
}
