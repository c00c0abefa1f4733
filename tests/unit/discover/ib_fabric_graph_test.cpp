// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <fabrics/fabric_text.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <topocoll/discover/iblinkinfo_file.hpp>
#include <topocoll/discover/ibnetdiscover_file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace ib = topocoll::read;
namespace fs = std::filesystem;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

tc::topo::fragment built(const std::string& text) {
  const auto fabric =
      ib::looks_like_iblinkinfo(text) ? ib::parse_iblinkinfo(text, "f.txt") : ib::parse_ibnetdiscover(text, "f.txt");
  EXPECT_TRUE(fabric) << fabric.error().message();
  if (!fabric) return {};
  auto f = tc::fragment_of(*fabric, {}, "f.txt");
  EXPECT_TRUE(f) << f.error().message();
  if (!f) return {};
  EXPECT_TRUE(tc::topo::graph::from(*f));
  for (const tc::topo::node& n : f->nodes) EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
  for (const tc::topo::link& l : f->links) EXPECT_TRUE(l.how < tc::trust::derived || !l.reason.empty());
  return *f;
}
bool tells(const tc::topo::fragment& f, const std::string& words) {
  return std::any_of(f.findings.begin(), f.findings.end(), [&](const tc::finding& x) {
    return (x.what + ": " + x.evidence).find(words) != std::string::npos;
  });
}
const tc::topo::node* find(const tc::topo::fragment& f, const std::string& key) {
  const auto at = std::find_if(f.nodes.begin(), f.nodes.end(), [&](const auto& n) { return n.key == key; });
  return at == f.nodes.end() ? nullptr : &*at;
}
std::string fact(const tc::topo::node& n, const std::string& name) {
  for (const auto& [key, value] : n.facts)
    if (key == name) return value;
  return "";
}
/// Links from one node to another.
std::vector<tc::topo::link> between(const tc::topo::fragment& f, const std::string& from, const std::string& to) {
  std::vector<tc::topo::link> found;
  for (const tc::topo::link& l : f.links)
    if (f.nodes[l.from.value].key == from && f.nodes[l.to.value].key == to) found.push_back(l);
  return found;
}
std::size_t count(const tc::topo::fragment& f, node_kind kind) {
  return static_cast<std::size_t>(
      std::count_if(f.nodes.begin(), f.nodes.end(), [&](const auto& n) { return n.kind == kind; }));
}

}  // namespace

TEST(infiniband_rates, are_those_of_the_specification) {
  const auto gbit = [](tc::bytes_per_second r) { return r.value / 1.25e8; };
  EXPECT_EQ(gbit(tc::infiniband_rate(ib::ib_speed::sdr, 4)), 10);
  EXPECT_EQ(gbit(tc::infiniband_data_rate(ib::ib_speed::sdr, 4)), 8);
  EXPECT_EQ(gbit(tc::infiniband_rate(ib::ib_speed::qdr, 12)), 120);
  EXPECT_EQ(gbit(tc::infiniband_data_rate(ib::ib_speed::qdr, 4)), 32);
  EXPECT_EQ(gbit(tc::infiniband_rate(ib::ib_speed::fdr, 4)), 56);
  EXPECT_NEAR(gbit(tc::infiniband_data_rate(ib::ib_speed::fdr, 4)), 54.54, 0.01);
  for (const auto& [speed, lane] : {std::pair{ib::ib_speed::fdr10, 10.0},
                                    {ib::ib_speed::edr, 25.0},
                                    {ib::ib_speed::hdr, 50.0},
                                    {ib::ib_speed::ndr, 100.0},
                                    {ib::ib_speed::xdr, 200.0}})
    for (const std::uint32_t lanes : {1U, 2U, 4U, 8U}) {
      EXPECT_EQ(gbit(tc::infiniband_rate(speed, lanes)), lane * lanes);
      EXPECT_EQ(gbit(tc::infiniband_data_rate(speed, lanes)), lane * lanes);
    }
  EXPECT_EQ(tc::infiniband_rate(ib::ib_speed::unknown, 4).value, 0);
}

TEST(ib_fabric, becomes_switches_adapters_ports_and_cables) {
  for (const std::uint32_t leaves : {1U, 2U, 3U, 5U, 8U})
    for (const bool reducing : {false, true}) {
      const fabrics::shape s{leaves, 7, 3, 2, "4xNDR", reducing};
      const tc::topo::fragment f = built(fabrics::ibnetdiscover_text(s));
      EXPECT_EQ(f.source, "f.txt");
      EXPECT_EQ(count(f, node_kind::leaf), leaves);
      EXPECT_EQ(count(f, node_kind::spine), 3U);
      EXPECT_EQ(count(f, node_kind::nic), leaves * 7);
      EXPECT_EQ(count(f, node_kind::nic_port), leaves * 7);
      const auto g = tc::topo::graph::from(f);
      ASSERT_TRUE(g);
      const tc::topo::summary sum = tc::topo::summarize(*g);
      EXPECT_EQ(sum.hosts, leaves * 7);
      EXPECT_EQ(sum.switches, leaves + 3);
      EXPECT_EQ(sum.nics, leaves * 7);
      EXPECT_EQ(sum.links, leaves * 7 * 2 + leaves * 3 * 2);  // adapter to port, port to leaf, leaf to spine
      EXPECT_EQ(f.findings.size(), reducing ? 1U : 0U);
    }
}

TEST(ib_fabric, keeps_parallel_cables_apart_and_carries_identities) {
  const tc::topo::fragment f = built(fabrics::ibnetdiscover_text({2, 2, 2, 3, "4xHDR", true}));
  const auto up = between(f, "switch:0x0a10000000000000", "switch:0x0a20000000000100");
  ASSERT_EQ(up.size(), 3U);
  EXPECT_EQ(between(f, "switch:0x0a20000000000100", "switch:0x0a10000000000000").size(), 3U);
  for (const tc::topo::link& l : up) {
    EXPECT_EQ(l.kind, link_kind::infiniband);
    EXPECT_EQ(l.lanes, 4U);
    EXPECT_EQ(l.current->value, 25e9);
    EXPECT_EQ(l.capacity.value, 25e9);
    EXPECT_FALSE(l.nominal);  // nobody says what the ends could do
    EXPECT_EQ(l.how, tc::trust::reported);
  }
  const tc::topo::node* leaf = find(f, "switch:0x0a10000000000000");
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->name, "leaf0");
  EXPECT_EQ(leaf->host, "");
  EXPECT_EQ(fact(*leaf, "node_guid"), "0x0a10000000000000");
  EXPECT_EQ(fact(*leaf, "aggregation_node"), "0x0a10000000000008");
  const tc::topo::node* nic = find(f, "node1-1/net:mlx5_0");
  const tc::topo::node* port = find(f, "node1-1/net:mlx5_0/1");
  ASSERT_NE(nic, nullptr);
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(nic->host, "node1-1");
  EXPECT_EQ(nic->index, 0U);
  EXPECT_EQ(fact(*nic, "node_guid"), "0x0a30000000000300");
  EXPECT_EQ(fact(*port, "port_guid"), "0x0a30000000000301");
  EXPECT_NE(fact(*port, "lid"), "");
  EXPECT_EQ(between(f, "node1-1/net:mlx5_0", "node1-1/net:mlx5_0/1").size(), 1U);
  EXPECT_EQ(between(f, "node1-1/net:mlx5_0/1", "switch:0x0a10000000000100").size(), 1U);
}

TEST(ib_fabric, says_what_line_coding_takes) {
  const tc::topo::fragment f =
      built("Switch 8 \"S-bb00000000000001\" # \"a\"\n[1] \"H-00aa000000000100\"[1] # \"n1 HCA-1\" lid 2 4xQDR\n");
  const auto l = between(f, "n1/net:HCA-1/1", "switch:0xbb00000000000001");
  ASSERT_EQ(l.size(), 1U);
  EXPECT_EQ(l[0].current->value, 5e9);
  EXPECT_EQ(l[0].capacity.value, 4e9);
  EXPECT_EQ(l[0].how, tc::trust::derived);
}

TEST(ib_fabric, assumes_a_rate_only_where_none_is_told) {
  const tc::topo::fragment f = built(fabrics::ibsim_text({2, 1, 1, 1}));
  for (const tc::topo::link& l : f.links) {
    EXPECT_EQ(l.how, tc::trust::assumed);
    EXPECT_EQ(l.capacity.value, tc::unknown_port_rate.value);
    EXPECT_FALSE(l.current);
  }
  EXPECT_TRUE(tells(f, "width or speed of links is not told"));
  EXPECT_NE(find(f, "switch:leaf0"), nullptr);
  EXPECT_NE(find(f, "node1-0/net:node1-0/1"), nullptr);
}

TEST(ib_fabric, does_not_count_adapters_inside_switches) {
  // By name, by the system image of the switch, and, where nothing is told of it, as the last port with the next GUID.
  const tc::topo::fragment f = built(
      "sysimgguid=0xbb00000000000001\nSwitch 37 \"S-bb00000000000001\" # \"a\"\n[1] \"H-00aa000000000100\"[1] # \"n1 "
      "HCA-1\" lid 2 4xEDR\n"
      "[36] \"H-00cc000000000001\"[1] # \"Some Box\" lid 9 4xEDR\n[37] \"H-00dd000000000001\"[1] # \"X Aggregation "
      "Node\" lid 3 4xEDR\n\n"
      "Switch 41 \"S-bb000000000000f8\" # \"b\"\n[41] \"H-bb00000000000100\"[1] # 4xHDR\n[40] "
      "\"H-bb00000000000101\"[1] # 4xHDR\n\n"
      "sysimgguid=0xbb00000000000001\nCa 1 \"H-00cc000000000001\" # \"Some Box\"\n[1] \"S-bb00000000000001\"[36] # lid "
      "9 lmc 0 \"a\" lid 1 4xEDR\n");
  EXPECT_EQ(count(f, node_kind::nic), 2U);  // n1, and what sits on port 40
  EXPECT_EQ(count(f, node_kind::leaf), 2U);
  EXPECT_EQ(fact(*find(f, "switch:0xbb000000000000f8"), "aggregation_node"), "0xbb00000000000100");
  EXPECT_TRUE(tells(f, "neither hosts nor NICs: 3"));
}

TEST(ib_fabric, tells_apart_adapters_and_switches_that_share_a_description) {
  const tc::topo::fragment f = built(
      "Switch 8 \"S-bb00000000000001\" # \"Plain Box\"\n[1] \"H-00aa000000000100\"[1] # \"n1 mlx5_0\" lid 2 4xEDR\n"
      "[2] \"H-00aa000000000200\"[1] # \"n1 mlx5_0\" lid 3 4xEDR\n[3] \"H-00aa000000000300\"[1] # \"A Product of "
      "Somebody\" lid 4 4xEDR\n"
      "[4] \"H-00aa000000000400\"[1] # \"A Product of Somebody\" lid 5 4xEDR\n[5] \"H-00aa000000000500\"[1] # \"n5\" "
      "lid 6 4xEDR\n"
      "[6] \"H-00aa000000000600\"[1] # \"n5\" lid 7 4xEDR\n[8] \"S-bb00000000000002\"[8] # \"Plain Box\" lid 9 "
      "4xEDR\n\n"
      "Switch 8 \"S-bb00000000000002\" # \"Plain Box\"\n[8] \"S-bb00000000000001\"[8] # \"Plain Box\" lid 1 4xEDR\n");
  EXPECT_EQ(count(f, node_kind::nic), 6U);
  EXPECT_EQ(count(f, node_kind::leaf) + count(f, node_kind::spine), 2U);
  const tc::topo::node* first = find(f, "0x00aa000000000100/net:0x00aa000000000100/1");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->how, tc::trust::assumed);
  EXPECT_NE(first->reason, "");
  EXPECT_TRUE(tells(f, "adapters share one description"));
  EXPECT_TRUE(tells(f, "name no host"));
  EXPECT_NE(find(f, "n5/net:0x00aa000000000500/1"), nullptr);  // one host with two adapters
  EXPECT_NE(find(f, "n5/net:0x00aa000000000600/1"), nullptr);
  EXPECT_EQ(find(f, "switch:0xbb00000000000002")->name, "Plain Box (0xbb00000000000002)");
  const auto g = tc::topo::graph::from(f);
  ASSERT_TRUE(g);
  EXPECT_EQ(tc::topo::hosts(*g).size(), 5U);
}

TEST(ib_fabric, counts_the_cards_of_one_system_image_as_one_host_when_no_name_tells_it) {
  const tc::topo::fragment f = built(
      "Switch 8 \"S-bb00000000000001\" # \"s\"\n[1] \"H-00aa000000000100\"[1] # 4xEDR\n[2] \"H-00aa000000000101\"[1] # "
      "4xEDR\n\n"
      "sysimgguid=0xaa000000000100\nCa 1 \"H-00aa000000000100\" # \"A Product of X\"\n[1] \"S-bb00000000000001\"[1] # "
      "4xEDR\n\n"
      "sysimgguid=0xaa000000000100\nCa 1 \"H-00aa000000000101\" # \"A Product of X\"\n[1] \"S-bb00000000000001\"[2] # "
      "4xEDR\n");
  const auto g = tc::topo::graph::from(f);
  ASSERT_TRUE(g);
  EXPECT_EQ(tc::topo::hosts(*g).size(), 1U);
}

TEST(ib_fabric, gives_both_ways_of_counting_one_rail) {
  const tc::topo::fragment f = built(
      "Switch 8 \"S-bb00000000000001\" # \"s\"\n[1] \"H-00aa000000000100\"[1] # \"n1 HCA-6\" lid 2 4xEDR\n"
      "[2] \"H-00aa000000000200\"[1] # \"n2 mlx5_5\" lid 2 4xEDR\n");
  EXPECT_EQ(find(f, "n1/net:HCA-6")->index, 5U);
  EXPECT_EQ(find(f, "n2/net:mlx5_5")->index, 5U);
}

TEST(ib_fabric, reports_slow_links_with_both_their_ends) {
  fabrics::shape s{4, 4, 4, 1, "4xHDR"};
  std::string text = fabrics::ibnetdiscover_text(s);
  // The cable between leaf 1, port 6, and spine 1, port 2, trained to one lane; host 2 of leaf 0 has an older adapter.
  const auto slow = [&](const std::string& line, const std::string& rate) {
    const std::size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    const std::size_t end = text.find("4xHDR\n", at);
    text.replace(end, 5, rate);
  };
  slow("[6]\t\"S-0a20000000000100\"[2]", "1xHDR");
  slow("[2]\t\"S-0a10000000000100\"[6]", "1xHDR");
  slow("[3]\t\"H-0a30000000000200\"", "4xEDR");
  slow("\"S-0a10000000000000\"[3]\t\t# lid", "4xEDR");
  const tc::topo::fragment f = built(text);
  EXPECT_TRUE(tells(f, "links between switches are slower"));
  EXPECT_TRUE(tells(f, "leaf1 0x0a10000000000100 port 6 - spine1 0x0a20000000000100 port 2 (1x HDR)"));
  EXPECT_TRUE(tells(f, "hosts' links are slower"));
  EXPECT_TRUE(tells(f, "leaf0 0x0a10000000000000 port 3 - node0-2 mlx5_0 0x0a30000000000200 port 1 (4x EDR)"));
  EXPECT_EQ(f.findings.size(), 2U);
  EXPECT_EQ(between(f, "switch:0x0a10000000000100", "switch:0x0a20000000000100")[0].capacity.value, 6.25e9);
}

TEST(ib_fabric, reports_links_below_their_best_and_ports_that_are_down) {
  const tc::topo::fragment f = built(
      "Switch: 0xbb00000000000100 leaf-a:\n"
      "  12    1[  ] ==( 1X 25.78125 Gbps Active/  LinkUp)==>       4    1[  ] \"node1 HCA-1\" ( Could be 4X )\n"
      "  12    2[  ] ==( Down/ Polling)==>             [  ] \"\" ( )\n"
      "CA: node1 HCA-1:\n"
      "  0x00aa000000000101 4 1[  ] ==( 1X 25.78125 Gbps Active/  LinkUp)==>      12    1[  ] \"leaf-a\" ( Could be 4X "
      ")\n"
      "  0x00aa000000000102 5 2[  ] ==( Down/ Polling)==>             [  ] \"\" ( )\n");
  const auto l = between(f, "node1/net:HCA-1/1", "switch:0xbb00000000000100");
  ASSERT_EQ(l.size(), 1U);
  EXPECT_EQ(l[0].current->value, 25 * 1.25e8);
  EXPECT_EQ(l[0].nominal->value, 100 * 1.25e8);
  EXPECT_TRUE(tells(f, "leaf-a 0xbb00000000000100 port 1 - node1 HCA-1 port 1 (1x EDR, could be 4x EDR)"));
  EXPECT_TRUE(tells(f, "ports of adapters have no partner"));
  EXPECT_TRUE(tells(f, "ports of switches have no partner"));
  const auto down = between(f, "node1/net:HCA-1", "node1/net:HCA-1/2");
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(down[0].capacity.value, 0);
  EXPECT_NE(down[0].reason, "");
}

TEST(ib_fabric, leaves_out_cables_within_one_switch_and_says_so) {
  const tc::topo::fragment f =
      built("Switch 8 \"a\"\n[1] \"a\"[2]\n[2] \"a\"[1]\n[3] \"h\"[1]\n\nHca 1 \"h\"\n[1] \"a\"[3]\n");
  EXPECT_TRUE(tells(f, "leave and enter the same switch"));
  EXPECT_EQ(f.links.size(), 4U);
}

TEST(ib_fabric, says_when_tiers_cannot_be_told) {
  const tc::topo::fragment f = built("Switch 8 \"a\"\n[1] \"b\"[1]\n\nSwitch 8 \"b\"\n[1] \"a\"[1]\n");
  EXPECT_EQ(f.nodes[0].how, tc::trust::assumed);
  EXPECT_TRUE(tells(f, "cannot be told apart"));
}

TEST(ib_fabric, names_the_chips_of_directors_by_their_place) {
  const tc::topo::fragment f = built(
      "Switch 36 \"S-bb00000000000001\" # \"MF0;core1:XS/L03/U1\"\nSwitch 36 \"S-bb00000000000002\" # "
      "\"MF0;leaf:XS/U1\"\n");
  EXPECT_EQ(f.nodes[0].name, "core1/L03/U1");
  EXPECT_EQ(f.nodes[1].name, "leaf");
  EXPECT_EQ(fact(f.nodes[0], "model"), "XS");
}

TEST(ib_fabric, refuses_peers_that_are_not_there) {
  ib::ib_fabric f;
  f.devices.emplace_back();
  f.devices[0].ports.emplace_back();
  f.devices[0].ports[0].peer = ib::ib_end{7, 1};
  EXPECT_EQ(tc::fragment_of(f, {}, "f.txt").error().code, tc::errc::bug);
  EXPECT_TRUE(tc::fragment_of(ib::ib_fabric{}, {}, "f.txt"));
}

TEST(ib_files, fail_with_a_reason_when_there_is_no_such_file) {
  EXPECT_EQ(tc::ibnetdiscover_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
  EXPECT_EQ(tc::iblinkinfo_file{"/nonexistent"}.read({}).error().code, tc::errc::not_found);
}

// ---- captured files ----

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ib_corpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("TOPOCOLL_CORPUS");
    if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/ib"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/ib";
    root = named;
    for (const auto& entry : fs::directory_iterator(root / "corpus/ib"))
      if (entry.path().extension() == ".txt") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_FALSE(files.empty());
  }
  fs::path root;
  std::vector<fs::path> files;
};

}  // namespace

TEST_F(ib_corpus, is_read_with_the_counts_that_an_independent_reader_found) {
  const auto facts = tc::io::parse_json(text_of(root / "corpus/facts.json"), "facts.json");
  ASSERT_TRUE(facts) << facts.error().message();
  for (const fs::path& file : files) {
    const std::string text = text_of(file);
    const bool links = ib::looks_like_iblinkinfo(text);
    ASSERT_NE(links, ib::looks_like_ibnetdiscover(text)) << file;
    const auto fabric = links ? ib::parse_iblinkinfo(text, "f") : ib::parse_ibnetdiscover(text, "f");
    ASSERT_TRUE(fabric) << file << fabric.error().message();
    auto fragment = tc::fragment_of(*fabric, {}, "f");
    ASSERT_TRUE(fragment);
    const auto graph = tc::topo::graph::from(*fragment);
    ASSERT_TRUE(graph) << graph.error().message();
    const auto want = facts->find("ib/" + file.filename().string());
    if (want == facts->end()) continue;
    const auto expected = [&](const char* name) { return (*want)[name].get<std::size_t>(); };
    if (links) {
      std::size_t told = 0;
      for (const ib::ib_device& d : fabric->devices)
        for (const ib::ib_port& p : d.ports) told += p.told ? 1 : 0;
      EXPECT_EQ(told, expected("link_lines")) << file;
      continue;
    }
    EXPECT_EQ(tc::topo::summarize(*graph).switches, expected("switches")) << file;
    std::size_t adapters = 0;
    std::size_t ends = 0;
    std::size_t switch_ends = 0;
    for (const ib::ib_device& d : fabric->devices) {
      adapters += d.kind == ib::ib_kind::channel_adapter && d.told ? 1 : 0;
      for (const ib::ib_port& p : d.ports) {
        ends += p.peer ? 1 : 0;
        switch_ends += p.peer && d.kind == ib::ib_kind::switch_device &&
                               fabric->devices[p.peer->device].kind == ib::ib_kind::switch_device &&
                               &fabric->devices[p.peer->device] != &d
                           ? 1
                           : 0;
      }
    }
    EXPECT_EQ(adapters, expected("channel_adapters")) << file;
    EXPECT_EQ(ends / 2, expected("cables")) << file;
    EXPECT_EQ(switch_ends / 2, expected("switch_switch")) << file;
  }
}

TEST_F(ib_corpus, has_no_link_without_capacity_and_no_doubt_without_reason) {
  for (const fs::path& file : files) {
    const auto fragment = ib::looks_like_iblinkinfo(text_of(file)) ? tc::iblinkinfo_file{file.string()}.read({})
                                                                   : tc::ibnetdiscover_file{file.string()}.read({});
    ASSERT_TRUE(fragment) << file;
    for (const tc::topo::link& l : fragment->links) {
      EXPECT_GT(l.capacity.value, 0) << file;
      EXPECT_TRUE(l.how < tc::trust::derived || !l.reason.empty()) << file;
      EXPECT_TRUE(!l.current || l.capacity <= *l.current) << file;
    }
    for (const tc::topo::node& n : fragment->nodes)
      EXPECT_TRUE(n.how < tc::trust::derived || !n.reason.empty()) << file << n.key;
  }
}
