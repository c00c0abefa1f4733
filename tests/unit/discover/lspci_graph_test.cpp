// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <topocoll/discover/lspci_graph.hpp>
#include <topocoll/io/json.hpp>
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
tc::read::lspci_listing parsed(const std::string& text) {
  auto l = tc::read::parse_lspci(text, "l");
  EXPECT_TRUE(l) << (l ? "" : l.error().message());
  return l ? *std::move(l) : tc::read::lspci_listing{};
}
tc::topo::graph built(const std::string& text) {
  auto fragment = tc::fragment_of(parsed(text), tc::discover_options{}, "l");
  EXPECT_TRUE(fragment) << (fragment ? "" : fragment.error().message());
  if (!fragment) return {};
  auto graph = tc::topo::graph::from(*std::move(fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return graph ? *std::move(graph) : tc::topo::graph{};
}
tc::node_id at(const tc::topo::graph& g, const std::string& address) {
  const auto v = g.find("localhost/pci:" + address);
  EXPECT_TRUE(v) << address;
  return v.value_or(tc::node_id{0});
}
const tc::finding* find(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return &f;
  return nullptr;
}

/// A root port, a switch with two cards, and a GPU of its own at another root port.
const std::string machine =
    "10:01.0 PCI bridge: Maker Root\n\tNUMA node: 0\n\tBus: primary=10, secondary=11, subordinate=14, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Root Port (Slot-), MSI 00\n"
    "\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 32GT/s (ok), Width x16 (ok)\n"
    "11:00.0 PCI bridge: Maker Switch\n\tNUMA node: 0\n\tBus: primary=11, secondary=12, subordinate=14, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Upstream Port, MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 32GT/s (ok), Width x16 (ok)\n"
    "12:00.0 PCI bridge: Maker Switch\n\tNUMA node: 0\n\tBus: primary=12, secondary=13, subordinate=13, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Downstream Port (Slot+), MSI 00\n"
    "\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16 (ok)\n"
    "12:01.0 PCI bridge: Maker Switch\n\tNUMA node: 0\n\tBus: primary=12, secondary=14, subordinate=14, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Downstream Port (Slot+), MSI 00\n"
    "\t\tLnkCap:\tPort #2, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n"
    "13:00.0 3D controller: NVIDIA Corporation G\n\tNUMA node: 0\n\tCapabilities: [40] Express (v2) Endpoint, MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16 (ok)\n"
    "14:00.0 Infiniband controller: Maker Card\n\tNUMA node: 0\n\tCapabilities: [40] Express (v2) Endpoint, MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x8\n\t\tLnkSta:\tSpeed 16GT/s (ok), Width x8 (ok)\n"
    "20:01.0 PCI bridge: Maker Root\n\tNUMA node: 1\n\tBus: primary=20, secondary=21, subordinate=21, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Root Port (Slot-), MSI 00\n"
    "\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)\n"
    "21:00.0 3D controller: NVIDIA Corporation G\n\tNUMA node: 1\n\tCapabilities: [40] Express (v2) Endpoint, MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)\n"
    "30:00.0 VGA compatible controller: ASPEED Technology, Inc. Graphics\n";

}  // namespace

TEST(lspci_graph, builds_the_tree_from_bus_numbers) {
  const auto g = built(machine);
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, 2U);  // the display of the board controller is none
  EXPECT_EQ(s.nics, 1U);
  EXPECT_EQ(s.numa_domains, 2U);
  EXPECT_EQ(s.pcie_switches, 1U);
  EXPECT_EQ(tc::topo::classify(g, at(g, "0000:13:00.0"), at(g, "0000:14:00.0")), path_class::PIX);
  EXPECT_EQ(tc::topo::classify(g, at(g, "0000:13:00.0"), at(g, "0000:21:00.0")), path_class::SYS);
}

TEST(lspci_graph, compares_the_two_ends_of_a_link) {
  const auto g = built(machine);
  // Idle, so the best that both ends can do counts.
  const auto gpu = tc::topo::route(g, at(g, "0000:11:00.0"), at(g, "0000:13:00.0"));
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->rate, tc::pcie_payload_rate(5, 16));
  ASSERT_TRUE(find(g, "which an idle GPU does to save power"));
  EXPECT_EQ(find(g, "which an idle GPU does to save power")->level, tc::severity::note);
  // The slot is wider and faster than the card: nothing is wrong.
  const auto nic = tc::topo::route(g, at(g, "0000:11:00.0"), at(g, "0000:14:00.0"));
  ASSERT_TRUE(nic);
  EXPECT_EQ(nic->rate, tc::pcie_payload_rate(4, 8));
  // A GPU that lost half of its lanes.
  const tc::finding* narrow = find(g, "runs narrower than both ends can");
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->evidence, "0000:21:00.0");
}

TEST(lspci_graph, guesses_the_devices_of_a_tree_and_says_so) {
  const auto g = built(
      "-+-[0000:40]---01.0-[41-43]----00.0-[42-43]--+-00.0-[43]--+-00.0  NVIDIA Corporation Thing\n"
      " |                                           |            \\-00.1  NVIDIA Corporation High Definition Audio "
      "Controller\n"
      " |                                           \\-01.0  Mellanox Technologies MT0 Family [ConnectX-0]\n"
      " \\-[0000:00]---00.0  Maker Root Complex\n");
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.gpus, 1U);
  EXPECT_EQ(s.nics, 1U);
  EXPECT_EQ(g.at(at(g, "0000:43:00.0")).how, tc::trust::assumed);
  ASSERT_TRUE(find(g, "is guessed from their descriptions"));
  EXPECT_EQ(find(g, "is guessed from their descriptions")->level, tc::severity::warning);
  ASSERT_TRUE(find(g, "not known whether PCIe bridges redirect"));
}

TEST(lspci_graph, keeps_the_access_control_of_root_ports_and_judges_it_once) {
  const auto of = [](const std::string& control) {
    return built("10:01.0 PCI bridge: a\n\tBus: primary=10, secondary=11, subordinate=11\n" + control +
                 "11:00.0 3D controller: NVIDIA c\n");
  };
  const auto fact = [](const tc::topo::graph& g) {
    for (const auto& [name, value] : g.at(at(g, "0000:11:00.0")).facts)
      if (name == "root_port_acs") return value;
    return std::string();
  };
  const auto judged = [](const tc::topo::graph& g) {
    std::string all;
    for (const tc::finding& f : g.findings())
      if (f.what.find("ACS") != std::string::npos) all += f.what.substr(0, 12) + ";";
    return all;
  };
  const auto redirecting = of("\t\tACSCtl:\tSrcValid+ ReqRedir+ CmpltRedir-\n");
  EXPECT_EQ(fact(redirecting), "0x0005");
  EXPECT_EQ(judged(redirecting), "access contr;");
  const auto clean = of("\t\tACSCtl:\tSrcValid+ ReqRedir- CmpltRedir-\n");
  EXPECT_EQ(fact(clean), "0x0001");
  EXPECT_EQ(judged(clean), "");
  EXPECT_EQ(fact(of("")), "");
  EXPECT_EQ(judged(of("")), "it is not kn;");
}

TEST(lspci_graph, of_a_flat_listing_says_that_nothing_tells_the_tree) {
  const auto g =
      built("0001:00:00.0 3D controller [0302]: Maker [10de:1234]\n0005:00:00.0 Bridge [0680]: Maker [10de:1af1]\n");
  EXPECT_EQ(tc::topo::summarize(g).gpus, 1U);
  EXPECT_TRUE(find(g, "does not tell what stands above"));
}

TEST(lspci_graph, bears_bus_numbers_that_go_round) {
  const auto g = built(
      "01:00.0 PCI bridge: a\n\tBus: primary=01, secondary=02, subordinate=02\n"
      "02:00.0 PCI bridge: b\n\tBus: primary=02, secondary=01, subordinate=01\n"
      "02:01.0 3D controller: NVIDIA c\n");
  EXPECT_EQ(tc::topo::summarize(g).gpus, 1U);
}

TEST(lspci_graph, finds_the_bridge_around_a_bus_when_the_one_above_is_missing) {
  const auto l = parsed(
      "10:01.0 PCI bridge: a\n\tBus: primary=10, secondary=11, subordinate=1f\n\t\tACSCtl:\tSrcValid+ ReqRedir+\n"
      "14:00.0 3D controller: NVIDIA c\n");
  EXPECT_EQ(tc::acs_of(l).gpus_affected, (std::vector<std::string>{"0000:14:00.0"}));
}

TEST(acs_of, is_unknown_without_root) {
  const auto l = parsed(
      "10:01.0 PCI bridge: a\n\tBus: primary=10, secondary=11, subordinate=11\n\tCapabilities: <access denied>\n"
      "11:00.0 3D controller: NVIDIA c\n");
  EXPECT_EQ(tc::acs_of(l).verdict, tc::acs_verdict::unknown);
  EXPECT_FALSE(tc::acs_of(l).bridges.at(0).redirects);
}

TEST(acs_of, is_unknown_when_the_capability_is_named_without_its_bits) {
  const auto l = parsed(
      "10:01.0 PCI bridge: a\n\tBus: primary=10, secondary=11, subordinate=11\n\tCapabilities: [2a0 v1] Access Control "
      "Services\n"
      "11:00.0 3D controller: NVIDIA c\n");
  EXPECT_EQ(tc::acs_of(l).verdict, tc::acs_verdict::unknown);
}

TEST(acs_of, is_clean_when_root_sees_bridges_without_the_capability) {
  const auto l = parsed(
      "10:01.0 PCI bridge: a\n\tBus: primary=10, secondary=11, subordinate=11\n\tCapabilities: [100 v1] Device Serial "
      "Number\n"
      "11:00.0 3D controller: NVIDIA c\n");
  EXPECT_EQ(tc::acs_of(l).verdict, tc::acs_verdict::clean);
}

TEST(lspci_corpus, is_read_with_the_counts_of_its_lines) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/other"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/other";
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/other")) {
    const std::string text = text_of(entry.path());
    const bool is_one = entry.path().filename().string().rfind("lspci", 0) == 0;
    EXPECT_EQ(tc::read::looks_like_lspci(text), is_one) << entry.path();
    if (!is_one) continue;
    ++seen;
    const auto count = [&](const std::string& word) {
      std::size_t n = 0;
      for (std::size_t p = text.find(word); p != std::string::npos; p = text.find(word, p + 1)) ++n;
      return n;
    };
    const auto s = tc::topo::summarize(built(text));
    if (!parsed(text).tree) {
      EXPECT_EQ(s.gpus, count("3D controller") + count("VGA compatible controller: NVIDIA")) << entry.path();
      EXPECT_LE(s.nics, count("Ethernet controller") + count("Infiniband controller")) << entry.path();
    }
    EXPECT_GT(s.gpus, 0U) << entry.path();
    EXPECT_GT(s.nics, 0U) << entry.path();
  }
  EXPECT_GT(seen, 0U);
}

TEST(lspci_corpus, case_of_access_control_reads_as_the_report_says) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::exists(fs::path(named) / "cases/p03-acs.txt"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with cases/p03-acs.txt";
  const fs::path root = named;
  const std::string report = text_of(root / "cases/p03-acs.md");
  const std::size_t start = report.find("```json") + 7;
  const auto want = tc::io::parse_json(report.substr(start, report.find("```", start) - start), "p03");
  ASSERT_TRUE(want) << want.error().message();
  const auto short_name = [](const std::string& address) { return address.substr(5); };
  const auto is = tc::acs_of(parsed(text_of(root / "cases/p03-acs.txt")));
  EXPECT_STREQ(to_string(is.verdict), (*want)["verdict"].get<std::string>().c_str());
  EXPECT_EQ(tc::io::json(is.advice_keys), (*want)["advice_keys"]);
  ASSERT_EQ(is.bridges.size(), (*want)["bridges"].size());
  for (const tc::acs_bridge& b : is.bridges) {
    const auto& bridge = (*want)["bridges"][short_name(b.address)];
    EXPECT_EQ(b.redirects, bridge["redirects_p2p"].get<bool>());
    char hex[8];
    std::snprintf(hex, sizeof hex, "0x%04x", b.control.value());
    EXPECT_EQ(hex, bridge["acsctl_hex"].get<std::string>());
    tc::io::json below = tc::io::json::array();
    for (const std::string& a : b.below) below.push_back(short_name(a));
    EXPECT_EQ(below, bridge["below"]);
  }
  tc::io::json affected = tc::io::json::array();
  for (const std::string& a : is.gpus_affected) affected.push_back(short_name(a));
  EXPECT_EQ(affected, (*want)["gpus_affected"]);
}
