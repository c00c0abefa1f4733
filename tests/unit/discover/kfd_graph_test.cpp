// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <topocoll/discover/kfd_file.hpp>
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
  const auto topology = tc::read::parse_kfd(text, "k");
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().message());
  if (!topology) return {};
  auto fragment = tc::fragment_of(*topology, tc::discover_options{}, "k");
  EXPECT_TRUE(fragment);
  auto graph = tc::topo::graph::from(*std::move(fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return graph ? *std::move(graph) : tc::topo::graph{};
}
std::string cpu(int n) { return "== nodes/" + std::to_string(n) + "/properties\ncpu_cores_count 64\nsimd_count 0\n"; }
std::string gpu(int n, int location, int version = 90402) {
  return "== nodes/" + std::to_string(n) + "/properties\nsimd_count 80\nlocation_id " + std::to_string(location) +
         "\nhive_id 5\ngfx_target_version " + std::to_string(version) + "\n";
}
std::string link(int from, int number, int to, int type, int weight, int least = 0, int most = 0) {
  return "== nodes/" + std::to_string(from) + "/io_links/" + std::to_string(number) + "/properties\ntype " +
         std::to_string(type) + "\nnode_to " + std::to_string(to) + "\nweight " + std::to_string(weight) +
         "\nmin_bandwidth " + std::to_string(least) + "\nmax_bandwidth " + std::to_string(most) + "\n";
}
tc::node_id at(const tc::topo::graph& g, const std::string& key) {
  const auto v = g.find("localhost/" + key);
  EXPECT_TRUE(v) << key;
  return v.value_or(tc::node_id{0});
}
bool says(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(kfd_graph, joins_gpus_of_a_hive_and_each_to_its_processor) {
  const auto g =
      built(cpu(0) + cpu(1) + gpu(2, 0x6300) + link(2, 0, 0, 2, 20, 312, 32000) + link(2, 1, 3, 11, 15, 50000, 100000) +
            link(2, 2, 4, 11, 30) + gpu(3, 0x4300) + link(3, 0, 0, 2, 20, 312, 32000) +
            link(3, 1, 2, 11, 15, 50000, 100000) + gpu(4, 0x2600) + link(4, 0, 1, 2, 20));
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, 3U);
  EXPECT_EQ(s.numa_domains, 2U);
  const auto a = at(g, "pci:0000:63:00.0");
  const auto way = tc::topo::route(g, a, at(g, "pci:0000:43:00.0"));
  ASSERT_TRUE(way);
  EXPECT_EQ(tc::topo::class_of(g, *way, a), path_class::NVL);
  EXPECT_EQ(way->rate.value, 2 * tc::xgmi_rate("942").payload.value);
  EXPECT_EQ(tc::topo::classify(g, a, at(g, "pci:0000:26:00.0")), path_class::SYS);
  EXPECT_TRUE(says(g, "only by way of others"));
  const auto up = tc::topo::route(g, at(g, "numa:0"), a);
  ASSERT_TRUE(up);
  EXPECT_DOUBLE_EQ(up->rate.value, tc::pcie_payload_rate(4, 16).value);  // 16 GT/s x16 is 32,000 MB/s before coding
  EXPECT_EQ(g.at(a).numa, 0U);
}

TEST(kfd_graph, counts_partitions_as_gpus_that_share_the_links_of_their_package) {
  const auto g =
      built(cpu(0) + gpu(1, 2560) + link(1, 0, 0, 2, 20, 312, 64000) + link(1, 1, 2, 11, 13, 819200, 819200) +
            link(1, 2, 3, 11, 41) + gpu(2, 2561) + link(2, 0, 1, 11, 13, 819200, 819200) + link(2, 1, 3, 11, 41) +
            gpu(3, 5120) + link(3, 0, 0, 2, 20));
  EXPECT_EQ(tc::topo::summarize(g).gpus, 3U);
  EXPECT_EQ(tc::topo::summarize(g).pcie_switches, 1U);
  const auto first = at(g, "pci:0000:0a:00.0/gpu:0");
  EXPECT_EQ(g.at(first).numa, 0U);
  EXPECT_EQ(g.at(at(g, "pci:0000:0a:00.0/gpu:1")).index, 1U);
  EXPECT_EQ(tc::topo::classify(g, first, at(g, "pci:0000:14:00.0")),
            path_class::PHB);  // 41 is a step too many for these
}

TEST(kfd_graph, joins_packages_of_partitions_once) {
  std::string text = cpu(0);
  for (int i = 1; i <= 4; ++i) {
    text += gpu(i, (i <= 2 ? 2560 : 5120) + (i - 1) % 2) + link(i, 0, 0, 2, 20, 312, 64000);
    int n = 1;
    for (int j = 1; j <= 4; ++j)
      if (j != i) text += link(i, n++, j, 11, (i <= 2) == (j <= 2) ? 13 : 41);
  }
  const auto g = built(text);
  EXPECT_EQ(tc::topo::summarize(g).gpus, 4U);
  std::size_t xgmi = 0;
  for (const tc::topo::link& l : g.links()) xgmi += l.kind == tc::topo::link_kind::xgmi ? 1U : 0U;
  EXPECT_EQ(xgmi, 2U);  // both directions of one
  EXPECT_EQ(tc::topo::classify(g, at(g, "pci:0000:0a:00.0/gpu:0"), at(g, "pci:0000:14:00.0/gpu:1")), path_class::NVL);
}

TEST(kfd_graph, keeps_two_gpus_of_one_address_apart) {
  const auto g = built(cpu(0) + gpu(1, 6400) + gpu(2, 6400));
  EXPECT_EQ(tc::topo::summarize(g).gpus, 2U);
  EXPECT_TRUE(says(g, "an address is given to two devices"));
}

TEST(kfd_graph, says_what_it_assumes) {
  const auto g = built(cpu(0) + gpu(1, 0x0300, 0) + link(1, 0, 9, 11, 15) + gpu(2, 0x0400, 0) + link(2, 0, 1, 11, 15));
  EXPECT_TRUE(says(g, "no link of a GPU to a processor is told"));
  EXPECT_TRUE(says(g, "leads to a node that is not in the recording"));
  EXPECT_TRUE(says(g, "the rate of XGMI is assumed"));
  for (const tc::topo::link& l : g.links()) {
    EXPECT_GT(l.capacity.value, 0);
    EXPECT_NE(l.reason, "");
  }
  const auto nothing = tc::read::parse_kfd("== nodes/0/properties\nsimd_count 0\n", "k");
  ASSERT_TRUE(nothing);
  EXPECT_EQ(tc::fragment_of(*nothing, tc::discover_options{}, "k").error().code, tc::errc::malformed_input);
}

TEST(kfd_file, fails_with_a_reason_when_there_is_no_such_file) {
  EXPECT_EQ(tc::kfd_file{"/nonexistent/k.txt"}.read({}).error().code, tc::errc::not_found);
}

TEST(kfd_corpus, has_a_gpu_for_each_node_with_simd_units) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/other"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/other";
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/other")) {
    const std::string text = text_of(entry.path());
    EXPECT_EQ(tc::read::looks_like_kfd(text), entry.path().filename().string().rfind("kfd", 0) == 0) << entry.path();
    if (!tc::read::looks_like_kfd(text)) continue;
    ++seen;
    std::size_t gpus = 0;
    for (std::size_t p = text.find("\nsimd_count "); p != std::string::npos; p = text.find("\nsimd_count ", p + 1))
      gpus += text[p + 12] != '0' ? 1U : 0U;
    EXPECT_EQ(tc::topo::summarize(built(text)).gpus, gpus) << entry.path();
  }
  EXPECT_GT(seen, 0U);
}
