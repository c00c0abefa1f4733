// SPDX-License-Identifier: Apache-2.0
// Every folder beside this file is a machine: captured.txt (recording) or topology.xml (NCCL), and what must be seen.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <topocoll/discover/files.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;

namespace {

fs::path folder() {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  return source ? fs::path(source) / "tests/machines" : fs::path(__FILE__).parent_path();
}

std::vector<std::string> machines() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct seen {
  tc::topo::graph graph;
  tc::io::json expected;
};

// The machine as a graph, beside what is expected of it.
seen load(const std::string& name) {
  const fs::path at = folder() / name;
  const fs::path input = fs::exists(at / "captured.txt") ? at / "captured.txt" : at / "topology.xml";
  auto fragment = tc::from_file(input.string());
  EXPECT_TRUE(fragment) << (fragment ? "" : fragment.error().message());
  auto graph = fragment ? tc::topo::graph::from(*fragment) : tc::result<tc::topo::graph>(tc::topo::graph{});
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message());
  auto expected = tc::io::parse_json(text_of(at / "expected.json"), name + "/expected.json");
  EXPECT_TRUE(expected) << (expected ? "" : expected.error().message());
  return {graph ? *graph : tc::topo::graph{}, expected ? *expected : tc::io::json::object()};
}

// Key without the host in front of it.
std::string local(const tc::topo::graph& g, tc::node_id v) {
  const std::string& key = g.at(v).key;
  return key.substr(key.find('/') + 1);
}

const tc::topo::link* find(const tc::topo::graph& g, const std::string& from, const std::string& to,
                           const std::string& kind) {
  for (const tc::topo::link& l : g.links()) {
    const std::string a = local(g, l.from);
    const std::string b = local(g, l.to);
    if (a == from && b == to && (kind.empty() || kind == to_string(l.kind))) return &l;
  }
  return nullptr;
}

class machine : public testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(machine, has_the_expected_counts) {
  const seen s = load(GetParam());
  const tc::topo::summary counted = tc::topo::summarize(s.graph);
  const auto& want = s.expected["summary"];
  ASSERT_GE(want.size(), 4U);
  const auto check = [&](const char* name, std::size_t found) {
    if (want.contains(name)) {
      EXPECT_EQ(found, want[name].get<std::size_t>()) << name;
    }
  };
  check("hosts", counted.hosts);
  check("gpus", counted.gpus);
  check("nics", counted.nics);
  check("numa_domains", counted.numa_domains);
  check("pcie_switches", counted.pcie_switches);
  check("nvswitches", counted.nvswitches);
}

TEST_P(machine, has_the_expected_links_in_both_directions) {
  const seen s = load(GetParam());
  ASSERT_FALSE(s.expected["links"].empty());
  constexpr const char* words[] = {"measured", "reported", "derived", "assumed"};
  for (const auto& want : s.expected["links"]) {
    const auto from = want["from"].get<std::string>();
    const auto to = want["to"].get<std::string>();
    const std::string kind = want.value("kind", std::string());
    for (const auto* l : {find(s.graph, from, to, kind), find(s.graph, to, from, kind)}) {
      ASSERT_NE(l, nullptr) << from << " - " << to;
      const double gb = want["GBps"].get<double>();
      EXPECT_NEAR(l->capacity.value / 1e9, gb, 1e-6 * std::max(1.0, gb)) << from << " - " << to;
      EXPECT_EQ(words[static_cast<int>(l->how)], want["how"].get<std::string>())
          << from << " - " << to << ": " << l->reason;
      if (want.contains("lanes")) {
        EXPECT_EQ(l->lanes, want["lanes"].get<unsigned>()) << from << " - " << to;
      }
      if (want.contains("reason")) {
        EXPECT_NE(l->reason.find(want["reason"].get<std::string>()), std::string::npos) << l->reason;
      }
    }
  }
}

TEST_P(machine, tells_what_it_noticed) {
  const seen s = load(GetParam());
  ASSERT_FALSE(s.expected["findings"].empty());
  for (const auto& want : s.expected["findings"]) {
    const auto text = want.get<std::string>();
    const bool said = std::any_of(s.graph.findings().begin(), s.graph.findings().end(),
                                  [&](const tc::finding& f) { return f.what.find(text) != std::string::npos; });
    EXPECT_TRUE(said) << "no finding says: " << text;
  }
}

TEST_P(machine, gives_a_reason_for_every_figure_that_is_not_told) {
  const seen s = load(GetParam());
  for (const tc::topo::link& l : s.graph.links()) {
    const std::string who = s.graph.at(l.from).key + " - " + s.graph.at(l.to).key;
    if (l.how >= tc::trust::derived || l.capacity.value == 0) {
      EXPECT_NE(l.reason, "") << who;
    }
    EXPECT_TRUE(l.capacity.value > 0 || l.reason.find("carries nothing") != std::string::npos) << who;
  }
  for (const tc::topo::node& n : s.graph.nodes())
    if (n.how >= tc::trust::derived) {
      EXPECT_NE(n.reason, "") << n.key;
    }
}

TEST_P(machine, survives_our_own_format) {
  const seen s = load(GetParam());
  const std::string text = tc::topo::to_json(s.graph);
  const auto back = tc::from_text(text, "again.json");
  ASSERT_TRUE(back) << back.error().message();
  const auto graph = tc::topo::graph::from(*back);
  ASSERT_TRUE(graph);
  EXPECT_EQ(tc::topo::to_json(*graph), text);
}

INSTANTIATE_TEST_SUITE_P(all, machine, testing::ValuesIn(machines()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
