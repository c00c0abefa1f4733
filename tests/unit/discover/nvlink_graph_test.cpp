// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <topocoll/discover/nvlink_graph.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
tc::read::nvidia_smi_nvlink parsed(const std::string& text) {
  auto n = tc::read::parse_nvidia_smi_nvlink(text, "n");
  EXPECT_TRUE(n) << (n ? "" : n.error().message());
  return n ? *std::move(n) : tc::read::nvidia_smi_nvlink{};
}
tc::topo::graph built(const std::string& text) {
  auto fragment = tc::fragment_of(parsed(text), tc::discover_options{}, "n");
  EXPECT_TRUE(fragment);
  auto graph = tc::topo::graph::from(*std::move(fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return graph ? *std::move(graph) : tc::topo::graph{};
}
const tc::finding* find(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return &f;
  return nullptr;
}

const std::string one_of_three_lost_two =
    "GPU 0: M (UUID: GPU-0)\n Link 0: 25 GB/s\n Link 1: 25 GB/s\n Link 2: 25 GB/s\n Link 3: 25 GB/s\n"
    "GPU 2: M (UUID: GPU-2)\n Link 0: 25 GB/s\n Link 1: <inactive>\n Link 2: <inactive>\n Link 3: 25 GB/s\n"
    "GPU 5: other (UUID: GPU-5)\n Link 0: 20 GB/s\n Link 1: <inactive>\n";

}  // namespace

TEST(nvlink_health_of, compares_with_gpus_of_the_same_model) {
  const auto health = tc::nvlink_health_of(parsed(one_of_three_lost_two));
  ASSERT_EQ(health.size(), 3U);
  EXPECT_FALSE(health[0].degraded());
  EXPECT_TRUE(health[1].degraded());
  EXPECT_EQ(health[1].gpu, 2U);
  EXPECT_EQ(health[1].best_peer, 0U);
  EXPECT_EQ(health[1].inactive, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_DOUBLE_EQ(health[1].share, 0.5);
  EXPECT_DOUBLE_EQ(health[1].total.value, 50e9);
  EXPECT_FALSE(health[2].degraded());  // nothing to compare with
}

TEST(nvlink_graph, names_gpu_and_links_that_are_down) {
  const auto g = built(one_of_three_lost_two);
  const tc::finding* lost = find(g, "GPU 2 has 2 of 4 NVLinks active; inactive: link 1, 2");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->level, tc::severity::fault);
  EXPECT_NE(lost->evidence.find("share 0.500"), std::string::npos);
  ASSERT_TRUE(find(g, "GPUs are missing from the listing: 1, 3, 4"));
  ASSERT_TRUE(find(g, "inactive on all GPUs of a model alike"));
}

TEST(nvlink_graph, carries_what_is_active_and_what_should_be) {
  const auto g = built(one_of_three_lost_two);
  const auto gpu = g.find("localhost/gpu:2");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(g.at(*gpu).index, 2U);
  ASSERT_EQ(g.out_links(*gpu).size(), 1U);
  const tc::topo::link& l = g.at(g.out_links(*gpu)[0]);
  EXPECT_EQ(g.at(l.to).kind, tc::topo::node_kind::nvswitch);
  EXPECT_EQ(g.at(l.to).how, tc::trust::assumed);
  EXPECT_EQ(l.lanes, 2U);
  EXPECT_DOUBLE_EQ(l.nominal->value, 100e9);
  EXPECT_DOUBLE_EQ(l.current->value, 50e9);
  EXPECT_DOUBLE_EQ(l.capacity.value, 2 * tc::nvlink_rate(80).payload.value);
}

TEST(nvlink_graph, keeps_how_many_links_are_active_and_which_are_not) {
  const auto g = built(one_of_three_lost_two);
  const auto fact = [&](const char* key, const std::string& name) {
    for (const auto& [own, value] : g.at(*g.find(key)).facts)
      if (own == name) return value;
    return std::string();
  };
  EXPECT_EQ(fact("localhost/gpu:0", "nvlinks"), "4 of 4 active");
  EXPECT_EQ(fact("localhost/gpu:0", "nvlinks_down"), "");
  EXPECT_EQ(fact("localhost/gpu:2", "nvlinks"), "2 of 4 active");
  EXPECT_EQ(fact("localhost/gpu:2", "nvlinks_down"), "1, 2");
}

TEST(nvlink_graph, takes_a_gpu_without_any_active_link_for_broken) {
  const auto g = built("GPU 0: M\n Link 0: 25 GB/s\nGPU 1: M\n unable: all links are inActive\n");
  const tc::finding* lost = find(g, "GPU 1 has 0 of 1 NVLinks active");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->level, tc::severity::fault);
  EXPECT_TRUE(g.out_links(*g.find("localhost/gpu:1")).empty());
}

TEST(nvlink_graph, warns_of_slow_links_and_of_errors) {
  const auto g =
      built("GPU 0: M\n Link 0: 25 GB/s\n Link 1: 12.5 GB/s\n Link 1: Replay Errors: 4\n Link 0: CRC Errors: 0\n");
  ASSERT_TRUE(find(g, "slower than others of the same GPU"));
  ASSERT_TRUE(find(g, "has counted errors"));
  EXPECT_NE(find(g, "has counted errors")->evidence.find("GPU 0 link 1: 4 Replay Errors"), std::string::npos);
}

TEST(nvlink_graph, of_abilities_alone_has_no_links) {
  const auto g = built("GPU 0: M\n Link 0, P2P is supported: true\n Link 1, P2P is supported: false\n");
  EXPECT_EQ(tc::topo::summarize(g).gpus, 1U);
  EXPECT_EQ(g.link_count(), 0U);
  EXPECT_EQ(g.all(tc::topo::node_kind::nvswitch).size(), 0U);
}

TEST(nvlink_payload, is_that_of_the_generation_that_signals_so) {
  for (const unsigned sm : {60U, 70U, 80U, 90U, 100U})
    EXPECT_EQ(tc::nvlink_payload(tc::nvlink_rate(sm).line).value <= tc::nvlink_rate(sm).line.value, true) << sm;
  EXPECT_EQ(tc::nvlink_payload({25.781e9}), tc::nvlink_rate(70).payload);
  EXPECT_EQ(tc::nvlink_payload({26.562e9}), tc::nvlink_rate(90).payload);
  EXPECT_EQ(tc::nvlink_payload({53.125e9}), tc::nvlink_rate(100).payload);
  EXPECT_DOUBLE_EQ(tc::nvlink_payload({100e9}).value, 75e9);
}

TEST(nvlink_corpus, has_the_counts_that_an_independent_reader_found) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nvsmi"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nvsmi";
  const fs::path root = named;
  const auto facts = tc::io::parse_json(text_of(root / "corpus/facts.json"), "facts.json");
  ASSERT_TRUE(facts) << facts.error().message();
  std::size_t seen = 0;
  for (const auto& [name, want] : facts->items()) {
    if (name.rfind("nvsmi/", 0) != 0 || !want.contains("gpu_blocks")) continue;
    ++seen;
    const std::string text = text_of(root / "corpus" / name);
    EXPECT_TRUE(tc::read::looks_like_nvidia_smi_nvlink(text)) << name;
    const auto n = parsed(text);
    EXPECT_EQ(n.gpus.size(), want["gpu_blocks"].get<std::size_t>()) << name;
    for (const auto& gpu : n.gpus)
      EXPECT_EQ(gpu.active(), want["active_links"][std::to_string(gpu.index)].get<std::size_t>()) << name;
    EXPECT_EQ(tc::topo::summarize(built(text)).gpus, n.gpus.size()) << name;
  }
  EXPECT_GT(seen, 0U);
}

TEST(nvlink_corpus, case_of_inactive_links_reads_as_the_report_says) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::exists(fs::path(named) / "cases/p04-nvlink-s.txt"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with cases/p04-nvlink-s.txt";
  const fs::path root = named;
  const std::string report = text_of(root / "cases/p04-nvlink-inactive.md");
  const std::size_t start = report.find("```json") + 7;
  const auto want = tc::io::parse_json(report.substr(start, report.find("```", start) - start), "p04");
  ASSERT_TRUE(want) << want.error().message();
  const double tolerance = (*want)["tolerance"].get<double>();
  const std::string text = text_of(root / "cases/p04-nvlink-s.txt");
  const auto health = tc::nvlink_health_of(parsed(text));
  ASSERT_EQ(health.size(), (*want)["gpus"].size());
  tc::io::json degraded = tc::io::json::array();
  for (const auto& h : health) {
    const auto& gpu = (*want)["gpus"][std::to_string(h.gpu)];
    EXPECT_EQ(h.links, gpu["links"].get<std::size_t>());
    EXPECT_EQ(h.active, gpu["active"].get<std::size_t>());
    EXPECT_NEAR(h.total.value / 1e9, gpu["GBps_total"].get<double>(), gpu["GBps_total"].get<double>() * tolerance);
    if (gpu.contains("inactive")) {
      EXPECT_EQ(tc::io::json(h.inactive), gpu["inactive"]);
    }
    if (!h.degraded()) continue;
    degraded.push_back(h.gpu);
    EXPECT_NEAR(h.share, (*want)["ratio_vs_peers"].get<double>(), tolerance);
  }
  EXPECT_EQ(degraded, (*want)["degraded_gpus"]);
  const auto g = built(text);
  EXPECT_TRUE(std::any_of(g.findings().begin(), g.findings().end(),
                          [](const tc::finding& f) { return f.level == tc::severity::fault; }));
}
