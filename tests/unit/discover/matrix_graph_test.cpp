// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/discover/nvidia_smi_topo_file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/matrix.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::read::matrix_word;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

tc::topo::graph built(const std::string& text) {
  const auto matrix = tc::read::parse_nvidia_smi_topo(text, "m");
  EXPECT_TRUE(matrix) << (matrix ? "" : matrix.error().message());
  if (!matrix) return {};
  auto fragment = tc::fragment_of(*matrix, tc::discover_options{}, "m");
  EXPECT_TRUE(fragment);
  auto graph = tc::topo::graph::from(*std::move(fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return graph ? *std::move(graph) : tc::topo::graph{};
}

/// Pairs whose cell, read back from what we write of the graph, is not what the matrix says.
std::string differences(const std::string& text) {
  const auto said = tc::read::parse_nvidia_smi_topo(text, "m");
  if (!said) return said.error().what;
  const auto written = tc::topo::matrix_text(built(text));
  if (!written) return written.error().what;
  const auto back = tc::read::parse_nvidia_smi_topo(*written, "w");
  if (!back) return back.error().what;
  if (back->devices.size() != said->devices.size()) return "other devices";
  std::string found;
  for (std::size_t i = 0; i < said->devices.size(); ++i)
    for (std::size_t j = 0; j < said->devices.size(); ++j) {
      auto want = said->between(i, j);
      if (want.word == matrix_word::untold || want.word >= matrix_word::ok) continue;
      if (want.word == matrix_word::soc) want.word = matrix_word::sys;  // one meaning, two words
      if (back->between(i, j) != want) found += said->devices[i].label + "-" + said->devices[j].label + " ";
    }
  return found;
}

const tc::topo::node* node_at(const tc::topo::graph& g, const std::string& key) {
  const auto v = g.find("localhost/" + key);
  return v ? &g.at(*v) : nullptr;
}
std::string fact(const tc::topo::node& n, const std::string& name) {
  for (const auto& [own, value] : n.facts)
    if (own == name) return value;
  return {};
}
bool says(const tc::topo::graph& g, const std::string& what) {
  return std::any_of(g.findings().begin(), g.findings().end(),
                     [&](const tc::finding& f) { return f.what.find(what) != std::string::npos; });
}
std::string evidence(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return f.evidence;
  return {};
}

/// A machine as a tree, and the matrix that it has: the oracle knows each device's place, not how we build.
struct machine {
  struct place {
    std::uint32_t domain, bridge, pxb, pix;
    bool gpu;
  };
  std::vector<place> places;

  explicit machine(std::uint64_t seed, std::size_t devices) {
    const auto draw = [&](std::uint32_t below) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::uint32_t>(seed >> 33U) % below;
    };
    for (std::size_t i = 0; i < devices; ++i) places.push_back({draw(3), draw(2), draw(2), draw(3), false});
    const std::size_t gpus = 1 + draw(static_cast<std::uint32_t>(devices));
    for (std::size_t i = 0; i < gpus; ++i) places[i].gpu = true;
  }
  static const char* between(const place& a, const place& b) {
    if (a.domain != b.domain) return "SYS";
    if (a.bridge != b.bridge) return "NODE";
    if (a.pxb != b.pxb) return "PHB";
    return a.pix != b.pix ? "PXB" : "PIX";
  }
  std::string text() const {
    std::string all;
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < places.size(); ++i) {
      labels.push_back(places[i].gpu ? "GPU" + std::to_string(i) : "mlx5_" + std::to_string(i));
      all += "\t" + labels.back();
    }
    all += "\tCPU Affinity\tNUMA Affinity\n";
    for (std::size_t i = 0; i < places.size(); ++i) {
      all += labels[i];
      for (std::size_t j = 0; j < places.size(); ++j)
        all += std::string("\t") + (i == j ? " X " : between(places[i], places[j]));
      if (places[i].gpu) all += "\t0-3\t" + std::to_string(2 * places[i].domain);
      all += "\n";
    }
    return all;
  }
};

class matrix_corpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("TOPOCOLL_CORPUS");
    if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nvsmi"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nvsmi";
    root = named;
    for (const auto& entry : fs::directory_iterator(root / "corpus/nvsmi"))
      if (tc::read::looks_like_nvidia_smi_topo(text_of(entry.path()))) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_FALSE(files.empty());
  }
  /// The block of JSON under "## Expected" of a case.
  tc::io::json expected(const std::string& name) const {
    const std::string text = text_of(root / "cases" / name);
    const std::size_t start = text.find("```json");
    if (start == std::string::npos) return {};
    const auto parsed = tc::io::parse_json(text.substr(start + 7, text.find("```", start + 7) - start - 7), name);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return parsed ? *parsed : tc::io::json{};
  }
  fs::path root;
  std::vector<fs::path> files;
};

std::string word_of(const tc::read::matrix_cell& c) {
  switch (c.word) {
    case matrix_word::pix: return "PIX";
    case matrix_word::pxb: return "PXB";
    case matrix_word::phb: return "PHB";
    case matrix_word::node: return "NODE";
    case matrix_word::sys: return "SYS";
    case matrix_word::soc: return "SOC";
    case matrix_word::ok: return "OK";
    case matrix_word::chipset: return "CNS";
    default: return "?";
  }
}

}  // namespace

TEST(matrix_graph, gives_every_pair_of_random_machines_the_class_that_the_matrix_says) {
  for (const std::size_t devices : {1U, 2U, 3U, 5U, 7U, 8U, 17U})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const machine m(seed, devices);
      EXPECT_EQ(differences(m.text()), "") << "seed " << seed << "\n" << m.text();
      EXPECT_FALSE(says(built(m.text()), "contradicts itself")) << seed;
    }
}

TEST(matrix_graph, of_what_we_write_of_generated_machines_has_their_classes) {
  for (const char* spec : {"dgx-h100", "dgx-a100", "dgx-h100:nodes=2"}) {
    auto fragment = tc::describe(spec);
    ASSERT_TRUE(fragment) << spec << ": " << fragment.error().message();
    const auto g = tc::topo::graph::from(*std::move(fragment));
    ASSERT_TRUE(g);
    const auto text = tc::topo::matrix_text(*g, tc::topo::hosts(*g).front().name);
    ASSERT_TRUE(text) << text.error().message();
    EXPECT_EQ(differences(*text), "") << spec;
  }
}

TEST(matrix_graph, has_devices_domains_and_affinities) {
  const auto g = built(
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tSYS\tPIX\tSYS\t0-7\t0\t\tN/A\n"
      "GPU1\tSYS\t X \tSYS\tSYS\t8-15\t3\t\t17\n"
      "NIC0\tPIX\tSYS\t X \tSYS\n"
      "NIC1\tSYS\tSYS\tSYS\t X \n"
      "\nNIC Legend:\n  NIC0: mlx5_2\n");
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, 2U);
  EXPECT_EQ(s.nics, 2U);
  EXPECT_EQ(s.numa_domains, 3U);  // NIC1 is SYS to all
  EXPECT_EQ(s.pcie_switches, 1U);
  ASSERT_TRUE(node_at(g, "gpu:1"));
  EXPECT_EQ(node_at(g, "gpu:1")->numa, 3U);
  EXPECT_EQ(fact(*node_at(g, "gpu:1"), "gpu_numa_id"), "17");
  EXPECT_EQ(fact(*node_at(g, "gpu:1"), "cpu_affinity"), "8-15");
  ASSERT_TRUE(node_at(g, "numa:3"));
  EXPECT_EQ(fact(*node_at(g, "numa:3"), "cpus"), "8-15");
  EXPECT_TRUE(node_at(g, "memory:0"));
  ASSERT_TRUE(node_at(g, "net:mlx5_2/1"));
  EXPECT_EQ(node_at(g, "net:mlx5_2/1")->index, 0U);
  EXPECT_EQ(node_at(g, "net:mlx5_2/1")->numa, 0U);
  EXPECT_EQ(node_at(g, "net:mlx5_2/1")->how, tc::trust::assumed) << "no ports are told";
  ASSERT_TRUE(node_at(g, "nic:NIC1"));
  EXPECT_FALSE(node_at(g, "nic:NIC1")->numa);
  ASSERT_TRUE(node_at(g, "numa:of-NIC1"));
  EXPECT_EQ(node_at(g, "numa:of-NIC1")->how, tc::trust::assumed);
  EXPECT_FALSE(node_at(g, "memory:of-NIC1"));
  for (const tc::topo::link& l : g.links()) {
    EXPECT_GT(l.capacity.value, 0);
    EXPECT_EQ(l.how, tc::trust::assumed);
    EXPECT_NE(l.reason, "");
  }
}

TEST(matrix_graph, splits_links_among_peers_when_a_gpu_can_have_so_many) {
  // 3 peers x 4 links are 12: no switch is needed.
  const auto g = built(
      "\tGPU0\tGPU1\tGPU2\tGPU3\n"
      "GPU0\t X \tNV4\tNV4\tNV4\nGPU1\tNV4\t X \tNV4\tNV4\nGPU2\tNV4\tNV4\t X \tNV4\nGPU3\tNV4\tNV4\tNV4\t X \n");
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 0U);
  std::size_t links = 0;
  for (const tc::topo::link& l : g.links()) {
    if (l.kind != link_kind::nvlink) continue;
    ++links;
    EXPECT_EQ(l.lanes, 4U);
    EXPECT_DOUBLE_EQ(l.capacity.value, 4 * tc::nvlink_rate(std::nullopt).payload.value);
  }
  EXPECT_EQ(links, 12U);  // six pairs, both directions
}

TEST(matrix_graph, puts_a_switch_where_the_links_of_a_gpu_would_not_suffice) {
  // 2 peers x 18 links would be 36, twice what a GPU has.
  const auto g = built(
      "\tGPU0\tGPU1\tGPU2\n"
      "GPU0\t X \tNV18\tNV18\nGPU1\tNV18\t X \tNV18\nGPU2\tNV18\tNV18\t X \n");
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 1U);
  ASSERT_TRUE(node_at(g, "nvswitch"));
  EXPECT_NE(node_at(g, "nvswitch")->reason, "");
  std::size_t links = 0;
  for (const tc::topo::link& l : g.links())
    if (l.kind == link_kind::nvlink) {
      ++links;
      EXPECT_EQ(l.lanes, 18U);  // not times seven
    }
  EXPECT_EQ(links, 6U);
}

TEST(matrix_graph, keeps_a_gpu_that_lost_links_behind_its_switch) {
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\n"
      "GPU0\t X \tNV16\tNV18\nGPU1\tNV16\t X \tNV16\nGPU2\tNV18\tNV16\t X \n";
  EXPECT_EQ(differences(text), "");
  const auto g = built(text);
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 1U);
}

TEST(matrix_graph, does_not_invent_a_switch_for_pairs_that_are_not_connected) {
  // 3 x 12 = 36 links in the middle, but the outer ones do not see each other.
  const auto g = built(
      "\tGPU0\tGPU1\tGPU2\tGPU3\n"
      "GPU0\t X \tNV12\tNV12\tNV12\nGPU1\tNV12\t X \tSYS\tSYS\nGPU2\tNV12\tSYS\t X \tSYS\nGPU3\tNV12\tSYS\tSYS\t X \n");
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 0U);
  EXPECT_TRUE(says(g, "more links to its peers than any GPU has"));
}

TEST(matrix_graph, makes_a_plane_for_each_island) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += "\tGPU" + std::to_string(i);
  text += "\n";
  for (int i = 0; i < 6; ++i) {
    text += "GPU" + std::to_string(i);
    for (int j = 0; j < 6; ++j) text += std::string("\t") + (i == j ? "X" : i / 3 == j / 3 ? "NV12" : "SYS");
    text += "\n";
  }
  const auto g = built(text);
  EXPECT_EQ(tc::topo::summarize(g).nvswitches, 2U);
  EXPECT_EQ(differences(text), "");
}

TEST(matrix_graph, believes_the_classes_where_the_numa_column_speaks_against_them) {
  const std::string one_domain =
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNODE\t0-3\t0\nGPU1\tNODE\t X \t4-7\t1\n";
  EXPECT_EQ(differences(one_domain), "");
  EXPECT_TRUE(says(built(one_domain), "put devices of different NUMA domains into one"));
  EXPECT_EQ(node_at(built(one_domain), "gpu:1")->numa, 1U);
  const std::string two_domains =
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tSYS\t0-3\t0\nGPU1\tSYS\t X \t0-3\t0\n";
  EXPECT_EQ(differences(two_domains), "");
  EXPECT_TRUE(says(built(two_domains), "says SYS between devices that it puts into one NUMA domain"));
}

TEST(matrix_graph, tells_domains_apart_by_processors_when_no_numbers_are_told) {
  const auto g = built(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
      "GPU0\t X \tNV2\tNV2\t0-3\nGPU1\tNV2\t X \tNV2\t4-7\nGPU2\tNV2\tNV2\t X \t0-3\n");
  EXPECT_EQ(tc::topo::summarize(g).numa_domains, 2U);
  const auto home = [&](const char* gpu) {
    for (const tc::topo::link& l : g.links())
      if (l.kind == link_kind::pcie && g.at(l.to).key == std::string("localhost/") + gpu) return g.at(l.from).key;
    return std::string();
  };
  EXPECT_EQ(home("gpu:0"), home("gpu:2"));
  EXPECT_NE(home("gpu:0"), home("gpu:1"));
}

TEST(matrix_graph, names_the_cells_of_a_matrix_that_contradicts_itself) {
  const auto g = built(
      "\tGPU0\tGPU1\tGPU2\n"
      "GPU0\t X \tPIX\tSYS\nGPU1\tPIX\t X \tPIX\nGPU2\tSYS\tPIX\t X \n");
  EXPECT_EQ(evidence(g, "contradicts itself"), "GPU0-GPU2 says SYS, by others PIX");
  const auto h = built("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPHB\t X \n");
  EXPECT_EQ(evidence(h, "the two rows of a pair"), "GPU0-GPU1");
  EXPECT_EQ(tc::topo::classify(h, *h.find("localhost/gpu:0"), *h.find("localhost/gpu:1")), tc::topo::path_class::PHB);
}

TEST(matrix_graph, of_peer_access_has_gpus_and_findings_but_no_links) {
  const auto g = built(" \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n");
  EXPECT_EQ(tc::topo::summarize(g).gpus, 2U);
  EXPECT_EQ(g.link_count(), 0U);
  EXPECT_EQ(evidence(g, "(CNS)"), "GPU0-GPU1");
  EXPECT_EQ(fact(*node_at(g, "gpu:0"), "p2p"), "GPU1:CNS");
}

TEST(nvidia_smi_topo_file, fails_with_a_reason_when_there_is_no_such_file) {
  EXPECT_EQ(tc::nvidia_smi_topo_file{"/nonexistent/m.txt"}.read({}).error().code, tc::errc::not_found);
}

TEST_F(matrix_corpus, of_matrices_comes_out_cell_by_cell) {
  for (const fs::path& file : files) {
    const auto matrix = tc::read::parse_nvidia_smi_topo(text_of(file), file.string());
    ASSERT_TRUE(matrix) << matrix.error().message();
    if (matrix->peers) continue;
    EXPECT_EQ(differences(text_of(file)), "") << file;
    EXPECT_FALSE(says(built(text_of(file)), "contradicts itself")) << file;
  }
  RecordProperty("matrices", static_cast<int>(files.size()));
}

TEST_F(matrix_corpus, of_what_we_write_of_other_graphs_has_their_classes) {
  if (!fs::is_directory(root / "corpus/nccl-xml")) GTEST_SKIP() << "the corpus lacks corpus/nccl-xml";
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(root / "corpus/nccl-xml")) {
    auto fragment = tc::nccl_xml(entry.path().string()).read({});
    if (!fragment) continue;
    const auto g = tc::topo::graph::from(*std::move(fragment));
    ASSERT_TRUE(g);
    if (g->all(node_kind::gpu).empty()) continue;  // no matrix without GPUs
    const auto text = tc::topo::matrix_text(*g);
    if (!text) continue;  // several hosts
    ++seen;
    EXPECT_EQ(differences(*text), "") << entry.path();
  }
  EXPECT_GT(seen, 0U);
}

TEST_F(matrix_corpus, of_matrices_has_the_counts_that_an_independent_reader_found) {
  const auto facts = tc::io::parse_json(text_of(root / "corpus/facts.json"), "facts.json");
  ASSERT_TRUE(facts) << facts.error().message();
  std::size_t seen = 0;
  for (const auto& [name, want] : facts->items()) {
    if (name.rfind("nvsmi/", 0) != 0 || !want.contains("gpu_rows")) continue;
    ++seen;
    const std::string text = text_of(root / "corpus" / name);
    EXPECT_TRUE(tc::read::looks_like_nvidia_smi_topo(text)) << name;
    const auto matrix = tc::read::parse_nvidia_smi_topo(text, name);
    ASSERT_TRUE(matrix) << matrix.error().message();
    std::size_t gpus = 0;
    std::size_t nics = 0;
    tc::io::json classes = tc::io::json::object();
    for (std::size_t i = 0; i < matrix->devices.size(); ++i) {
      (matrix->devices[i].gpu ? gpus : nics) += matrix->devices[i].has_row ? 1U : 0U;
      for (std::size_t j = i + 1; j < matrix->devices.size(); ++j) {
        if (!matrix->devices[i].gpu || !matrix->devices[j].gpu) continue;
        const auto cell = matrix->between(i, j);
        const std::string word = cell.word != matrix_word::gpu_link ? word_of(cell)
                                 : cell.links == 0                  ? matrix->gpu_link_word
                                                   : matrix->gpu_link_word + std::to_string(cell.links);
        classes[word] = classes.value(word, 0) + 1;
      }
    }
    EXPECT_EQ(gpus, want["gpu_rows"].get<std::size_t>()) << name;
    EXPECT_EQ(nics, want["nic_rows"].get<std::size_t>()) << name;
    EXPECT_EQ(classes.size(), want["gpu_pair_classes"].size()) << name;
    for (const auto& [word, count] : want["gpu_pair_classes"].items()) EXPECT_EQ(classes.value(word, 0), count) << name;
    const auto s = tc::topo::summarize(built(text));
    EXPECT_EQ(s.gpus, want["gpu_rows"].get<std::size_t>()) << name;
    EXPECT_EQ(s.nics, matrix->devices.size() - gpus) << name;
  }
  EXPECT_EQ(seen, files.size());
}

TEST_F(matrix_corpus, case_of_reversed_adapters_reads_as_the_report_says) {
  if (!fs::exists(root / "cases/p01-topo.txt")) GTEST_SKIP() << "the corpus lacks cases/p01-topo.txt";
  const auto want = expected("p01-reverse-nics.md");
  const auto g = built(text_of(root / "cases/p01-topo.txt"));
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, want["gpus"].get<std::size_t>());
  EXPECT_EQ(s.nics, want["nics"].get<std::size_t>());
  const auto a = tc::topo::affinity_of(g);
  EXPECT_EQ(a.rails, want["rails"].get<std::size_t>());
  tc::io::json chosen = tc::io::json::object();
  for (const auto& gpu : a.gpus) {
    ASSERT_TRUE(gpu.chosen);
    EXPECT_STREQ(to_string(gpu.distance), want["path_type"].get<std::string>().c_str());
    chosen[std::to_string(*g.at(gpu.gpu).index)] = *g.at(*gpu.chosen).index;
  }
  EXPECT_EQ(chosen, want["gpu_to_nic"]);
  tc::io::json unaffiliated = tc::io::json::array();
  for (const tc::node_id v : a.unaffiliated) unaffiliated.push_back(*g.at(v).index);
  EXPECT_EQ(unaffiliated, want["unaffiliated_nics"]);
  tc::io::json numa = tc::io::json::object();
  for (const tc::node_id v : g.all(node_kind::gpu)) numa[std::to_string(*g.at(v).numa)].push_back(*g.at(v).index);
  for (const tc::node_id v : g.all(node_kind::gpu))
    if (const std::string gpu = std::to_string(*g.at(v).index); want["cpu_affinity"].contains(gpu)) {
      EXPECT_EQ(fact(g.at(v), "cpu_affinity"), want["cpu_affinity"][gpu].get<std::string>());
      EXPECT_EQ(fact(*node_at(g, "numa:" + std::to_string(*g.at(v).numa)), "cpus"), fact(g.at(v), "cpu_affinity"));
    }
  EXPECT_EQ(numa, want["numa"]);
  EXPECT_EQ(s.nvswitches, 1U);
  for (const tc::topo::link& l : g.links())
    if (l.kind == link_kind::nvlink) {
      EXPECT_EQ(l.lanes, want["nvlink_per_pair"].get<std::uint32_t>());
    }
}

TEST_F(matrix_corpus, case_of_shared_adapters_reads_as_the_report_says) {
  if (!fs::exists(root / "cases/p02-topo.txt")) GTEST_SKIP() << "the corpus lacks cases/p02-topo.txt";
  const auto want = expected("p02-shared-nics.md");
  const auto g = built(text_of(root / "cases/p02-topo.txt"));
  const auto a = tc::topo::affinity_of(g);
  EXPECT_EQ(a.gpus_per_nic, want["gpus_per_nic"].get<std::size_t>());
  EXPECT_EQ(a.rails, 4U);
  for (const auto& load : a.used) EXPECT_EQ(load.gpus.size(), 2U);
  tc::io::json chosen = tc::io::json::object();
  tc::io::json numa = tc::io::json::object();
  for (const auto& gpu : a.gpus) {
    ASSERT_TRUE(gpu.chosen);
    EXPECT_STREQ(to_string(gpu.distance), want["path_type"].get<std::string>().c_str());
    const std::string index = std::to_string(*g.at(gpu.gpu).index);
    chosen[index] = *g.at(*gpu.chosen).index;
    numa[index] = *g.at(gpu.gpu).numa;
    if (want["cpu_affinity"].contains(index)) {
      EXPECT_EQ(fact(g.at(gpu.gpu), "cpu_affinity"), want["cpu_affinity"][index].get<std::string>());
    }
  }
  EXPECT_EQ(chosen, want["gpu_to_nic"]);
  EXPECT_EQ(numa, want["numa_of_gpu"]);
  tc::io::json unaffiliated = tc::io::json::array();
  for (const tc::node_id v : a.unaffiliated) unaffiliated.push_back(*g.at(v).index);
  EXPECT_EQ(unaffiliated, want["unaffiliated_nics"]);
  EXPECT_TRUE(says(g, "rows of some adapters are missing"));
}
