// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sanitized.hpp>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/xml.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

/// Eight GPUs, each with an adapter of its own behind a PCIe switch of its own, joined by NVSwitch.
std::string one_adapter_each(int sm, int nvlinks, const std::string& pcie, int mbit) {
  std::string text = "<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2; ++cpu) {
    text += "<cpu numaid=\"" + std::to_string(cpu) +
            "\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\">\n";
    for (int i = cpu * 4; i < cpu * 4 + 4; ++i) {
      const std::string bus = std::to_string(i + 1);
      const std::string link = " link_speed=\"" + pcie + " PCIe\" link_width=\"16\"";
      text += "<pci busid=\"0000:" + bus + "0:00.0\" class=\"0x060400\"" + link + ">\n<pci busid=\"0000:" + bus +
              "1:00.0\" class=\"0x030200\"" + link + "><gpu dev=\"" + std::to_string(i) + "\" sm=\"" +
              std::to_string(sm) + "\" rank=\"" + std::to_string(i) +
              "\" gdr=\"1\"><nvlink target=\"0000:d0:00.0\" count=\"" + std::to_string(nvlinks) +
              "\" tclass=\"0x068000\"/></gpu></pci>\n<pci busid=\"0000:" + bus + "2:00.0\" class=\"0x020700\"" + link +
              "><nic><net name=\"mlx5_" + std::to_string(i) + "\" dev=\"" + std::to_string(i) + "\" speed=\"" +
              std::to_string(mbit) + "\" port=\"1\" guid=\"0x50" + bus +
              "\" maxconn=\"131072\" gdr=\"1\"/></nic></pci>\n</pci>\n";
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

/// GPUs joined by bonded NVLinks as the matrix says, behind one CPU.
std::string mesh(const std::vector<std::vector<int>>& links, int sm) {
  std::string text =
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"23\" "
      "modelid=\"1\">\n";
  const auto bus = [](std::size_t i) { return "0000:" + std::to_string(i + 1) + "1:00.0"; };
  for (std::size_t i = 0; i < links.size(); ++i) {
    text += "<pci busid=\"" + bus(i) +
            "\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"" + std::to_string(i) +
            "\" sm=\"" + std::to_string(sm) + "\" rank=\"" + std::to_string(i) + "\" gdr=\"1\">";
    for (std::size_t j = 0; j < links.size(); ++j)
      if (links[i][j] != 0)
        text += "<nvlink target=\"" + bus(j) + "\" count=\"" + std::to_string(links[i][j]) + "\" tclass=\"0x030200\"/>";
    text += "</gpu></pci>\n";
  }
  return text + "</cpu></system>\n";
}
/// NVIDIA's hybrid cube mesh of eight V100, six links each.
std::vector<std::vector<int>> cube_mesh() {
  std::vector<std::vector<int>> m(8, std::vector<int>(8, 0));
  const int edges[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                          {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& e : edges)
    m[static_cast<std::size_t>(e[0])][static_cast<std::size_t>(e[1])] =
        m[static_cast<std::size_t>(e[1])][static_cast<std::size_t>(e[0])] = e[2];
  return m;
}

topo::graph graph_of(const std::string& xml) {
  return topo::graph::from(fragment_of_nccl_xml(xml, "machine.xml").value()).value();
}

/// Searches, writes, reads back, compares and checks.
nccl_graph_file proved(const topo::graph& g, const nccl_graph_options& options) {
  const auto made = nccl_graphs_of(g, options);
  EXPECT_TRUE(made) << (made ? "" : made.error().what);
  if (!made) return {};
  const auto root = io::parse_xml(to_nccl_graph_xml(*made), "graph.xml");
  EXPECT_TRUE(root);
  const auto back = read_nccl_graph_xml(*root, "graph.xml");
  EXPECT_TRUE(back) << (back ? "" : back.error().what);
  if (!back) return {};
  EXPECT_EQ(back->graphs.size(), made->graphs.size());
  for (std::size_t i = 0; i < back->graphs.size(); ++i) {
    EXPECT_EQ(back->graphs[i].channels, made->graphs[i].channels);
    EXPECT_EQ(back->graphs[i].pattern, made->graphs[i].pattern);
    EXPECT_NEAR(back->graphs[i].speed_intra.value / made->graphs[i].speed_intra.value, 1, 1e-6);
  }
  const auto proof = check_nccl_graphs(*back, g, options.host);
  EXPECT_TRUE(proof) << (proof ? "" : proof.error().what);
  return *back;
}
nccl_graph_options on(bool between_nodes, std::uint32_t cross = 2) {
  nccl_graph_options o;
  o.between_nodes = between_nodes;
  o.cross_nic = cross;
  return o;
}
double total(const nccl_graph_file& f, nccl_graph_id id = nccl_graph_id::ring) {
  const nccl_graph* g = f.find(id);
  return g == nullptr ? 0 : g->speed_intra.value * static_cast<double>(g->channels.size()) / 1e9;
}

}  // namespace

TEST(nccl_graph_file, keeps_all_channels_of_a100s_with_an_adapter_each) {
  // NCCL 2.28 finds eight rings of 24 GB/s here, but no balanced tree, and falls back to one channel for both.
  const topo::graph g = graph_of(one_adapter_each(80, 12, "16.0 GT/s", 200000));
  for (const std::uint32_t cross : {0U, 2U}) {
    const nccl_graph_file f = proved(g, on(true, cross));
    EXPECT_NEAR(total(f), 192, 0.1);  // PCIe of generation 4 carries 24 GB/s to each GPU
    EXPECT_GE(f.find(nccl_graph_id::ring)->channels.size(), 8u);
    EXPECT_EQ(f.find(nccl_graph_id::tree)->channels.size(), f.find(nccl_graph_id::ring)->channels.size());
    EXPECT_EQ(f.find(nccl_graph_id::tree)->pattern, nccl_pattern::tree);
    EXPECT_NEAR(total(f, nccl_graph_id::tree), 192, 0.1);
    EXPECT_LE(f.find(nccl_graph_id::ring)->type_inter, topo::path_class::PXN);
  }
}

TEST(nccl_graph_file, fills_adapters_and_nvlinks_of_h100s) {
  const topo::graph g = graph_of(one_adapter_each(90, 18, "32.0 GT/s", 400000));
  EXPECT_NEAR(total(proved(g, on(true))), 384, 0.1);       // 8 x 48, as NCCL
  EXPECT_NEAR(total(proved(g, on(true, 0))), 370.8, 0.1);  // on one rail each hop back takes NVLink too: 18 x 20.6
  EXPECT_NEAR(total(proved(g, on(false))), 370.8, 0.1);    // NCCL: 360, from its table of speeds
}

TEST(nccl_graph_file, changes_adapters_in_pairs) {
  const nccl_graph_file f = proved(graph_of(one_adapter_each(90, 18, "32.0 GT/s", 400000)), on(true));
  const nccl_graph& ring = *f.find(nccl_graph_id::ring);
  ASSERT_EQ(ring.cross_nic, 2u);
  for (std::size_t c = 0; c < ring.channels.size(); c += 2) {
    EXPECT_EQ(ring.channels[c].net_in, ring.channels[c + 1].net_out);
    EXPECT_EQ(ring.channels[c].net_out, ring.channels[c + 1].net_in);
  }
  const nccl_graph_file straight = proved(graph_of(one_adapter_each(90, 18, "32.0 GT/s", 400000)), on(true, 0));
  for (const nccl_channel& c : straight.find(nccl_graph_id::ring)->channels) EXPECT_EQ(c.net_in, c.net_out);
}

TEST(nccl_graph_file, packs_meshes_to_the_brim) {
  EXPECT_NEAR(total(proved(graph_of(mesh(cube_mesh(), 70)), on(false))), 120, 0.1);  // six links of 20 GB/s at each GPU
  // Everybody to all but one: three undirected cycles, both ways.
  std::vector<std::vector<int>> most(8, std::vector<int>(8, 1));
  for (std::size_t i = 0; i < 8; ++i) most[i][i] = most[i][7 - i] = 0;
  EXPECT_NEAR(total(proved(graph_of(mesh(most, 80)), on(false))), 120, 0.1);  // NCCL: 110
  auto lost = cube_mesh();
  lost[0][3] = lost[3][0] = 1;                                               // one of two links
  EXPECT_GE(total(proved(graph_of(mesh(lost, 70)), on(false))), 100 - 0.1);  // NCCL: 100
}

TEST(nccl_graph_file, writes_numbers_in_hexadecimal) {
  std::vector<std::vector<int>> pair(12, std::vector<int>(12, 1));
  for (std::size_t i = 0; i < 12; ++i) pair[i][i] = 0;
  std::string xml = mesh(pair, 80);
  for (const auto& [old, now] :
       {std::pair{"0000:101:", "0000:a1:"}, std::pair{"0000:111:", "0000:b1:"}, std::pair{"0000:121:", "0000:c1:"}})
    for (std::size_t at; (at = xml.find(old)) != std::string::npos;) xml.replace(at, std::string(old).size(), now);
  const std::string text = to_nccl_graph_xml(nccl_graphs_of(graph_of(xml), on(false)).value());
  EXPECT_NE(text.find("<gpu dev=\"0xb\"/>"), std::string::npos);
  EXPECT_EQ(text.find('\t'), std::string::npos);
  EXPECT_EQ(text.find("<net"), std::string::npos);
}

TEST(nccl_graph_file, has_a_head_for_each_gpu_when_nvls_is_asked_for) {
  nccl_graph_options o = on(true);
  o.nvls = true;
  const nccl_graph_file f = proved(graph_of(one_adapter_each(90, 18, "32.0 GT/s", 400000)), o);
  const nccl_graph* nvls = f.find(nccl_graph_id::nvls);
  ASSERT_NE(nvls, nullptr);
  EXPECT_EQ(nvls->pattern, nccl_pattern::nvls);
  ASSERT_EQ(nvls->channels.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(nvls->channels[i].net_in, i);
  const auto old = nccl_graphs_of(graph_of(one_adapter_each(80, 12, "16.0 GT/s", 200000)), o).value();
  EXPECT_EQ(old.find(nccl_graph_id::nvls), nullptr);
  EXPECT_FALSE(old.findings.empty());
}

TEST(nccl_graph_file, of_a_plan_follows_its_rings) {
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=2,leaves=8").value()).value();
  plan::problem p;
  p.graph = &g;
  p.ranks = g.all(topo::node_kind::gpu);
  std::vector<rank_id> order;
  for (const std::uint32_t r : {3U, 1U, 0U, 2U, 7U, 6U, 5U, 4U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U})
    order.push_back({r});
  const auto ring = plan::flat_schedule(collective_kind::all_reduce, order, {}, plan::algorithm::ring).value();
  nccl_graph_options o;
  o.host = "node0";
  const auto f = nccl_graphs_of(p, ring, o);
  ASSERT_TRUE(f) << f.error().what;
  ASSERT_EQ(f->find(nccl_graph_id::ring)->channels.size(), 1u);
  EXPECT_EQ(f->find(nccl_graph_id::ring)->channels[0].gpus, (std::vector<std::uint32_t>{3, 1, 0, 2, 7, 6, 5, 4}));
  EXPECT_EQ(f->find(nccl_graph_id::ring)->channels[0].net_in, 3u);
  const auto proof = check_nccl_graphs(*f, g, "node0");
  EXPECT_TRUE(proof) << proof.error().what;
  const auto tree = plan::flat_schedule(collective_kind::all_reduce, order, {}, plan::algorithm::tree).value();
  EXPECT_EQ(nccl_graphs_of(p, tree, o).error().code, errc::unsupported);
  std::swap(order[1], order[9]);  // now it visits node0 twice
  const auto mixed = plan::flat_schedule(collective_kind::all_reduce, order, {}, plan::algorithm::ring).value();
  EXPECT_EQ(nccl_graphs_of(p, mixed, o).error().code, errc::unsupported);
}

TEST(nccl_graph_file, refuses_what_makes_no_sense) {
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=2,leaves=8").value()).value();
  EXPECT_EQ(nccl_graphs_of(g, on(true)).error().code, errc::invalid_argument);  // two hosts, none named
  nccl_graph_options o = on(true);
  o.host = "nowhere";
  EXPECT_EQ(nccl_graphs_of(g, o).error().code, errc::invalid_argument);
  o.host = "node0";
  o.most_channels = 33;
  EXPECT_EQ(nccl_graphs_of(g, o).error().code, errc::invalid_argument);
  EXPECT_EQ(nccl_graphs_of(topo::graph{}, on(true)).error().code, errc::not_found);
  EXPECT_EQ(nccl_graphs_of(graph_of(mesh(cube_mesh(), 70)), on(true)).error().code, errc::not_found);  // no adapter
}

TEST(nccl_graph_check, finds_each_broken_rule) {
  const topo::graph g = graph_of(one_adapter_each(80, 12, "16.0 GT/s", 200000));
  const nccl_graph_file good = proved(g, on(true, 0));
  const auto refused = [&](const std::function<void(nccl_graph&, nccl_graph_file&)>& change, const std::string& words) {
    nccl_graph_file bad = good;
    change(bad.graphs[0], bad);
    const auto proof = check_nccl_graphs(bad, g);
    ASSERT_FALSE(proof) << "nothing found where this was expected: " << words;
    EXPECT_NE(proof.error().what.find(words), std::string::npos) << proof.error().what;
  };
  refused([](nccl_graph& r, nccl_graph_file&) { r.pattern = nccl_pattern::tree; }, "has pattern 3");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels.pop_back(); }, "would use the smaller number");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].gpus[2] = r.channels[1].gpus[3]; }, "twice");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].gpus.pop_back(); }, "visits 7 GPUs of 8");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].gpus[2] = 9; }, "there is no GPU 9");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].net_in = 11; }, "there is no adapter 11");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].net_out.reset(); }, "lacks an adapter");
  refused([](nccl_graph& r, nccl_graph_file&) { r.channels[1].net_out = *r.channels[1].net_in ^ 1U; },
          "but crossnic is 0");
  refused(
      [](nccl_graph& r, nccl_graph_file&) {
        r.cross_nic = 2;
        r.channels[1].net_out = *r.channels[1].net_in ^ 1U;
      },
      "does not change them back");
  refused([](nccl_graph& r, nccl_graph_file&) { r.speed_intra = r.speed_intra * 1.5; }, "which carries");
  refused([](nccl_graph& r, nccl_graph_file&) { r.type_intra = topo::path_class::SYS; },
          "says SYS within the node, but uses NVL");
  refused([](nccl_graph& r, nccl_graph_file&) { r.type_inter = topo::path_class::PIX; },
          "says PIX to the network, but uses PXN");
  refused([](nccl_graph& r, nccl_graph_file&) { r.speed_inter = {}; }, "has no speed");
  refused([](nccl_graph&, nccl_graph_file& f) { f.graphs.push_back(f.graphs[0]); }, "is there twice");
  refused([](nccl_graph&, nccl_graph_file& f) { f.graphs.clear(); }, "no graph");
}

TEST(nccl_graph_file, reading_names_line_and_attribute) {
  const auto refused = [](const std::string& text) {
    const auto read = read_nccl_graph_xml(io::parse_xml(text, "g.xml").value(), "g.xml");
    EXPECT_FALSE(read) << text;
    return read ? std::string() : read.error().what;
  };
  const std::string head =
      "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" ";
  const std::string rest =
      "speedinter=\"20\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\">\n";
  const std::string end =
      "<channel><net dev=\"0\"/><gpu dev=\"0x1b\"/><gpu dev=\"c\"/><net dev=\"0\"/></channel></graph></graphs>";
  const auto good = read_nccl_graph_xml(io::parse_xml(head + rest + end, "g.xml").value(), "g.xml");
  ASSERT_TRUE(good) << good.error().what;
  EXPECT_EQ(good->graphs[0].channels[0].gpus, (std::vector<std::uint32_t>{0x1b, 0xc}));
  // As NCCL keeps them, in 32 bits; so the numbers that are written back are those that were read.
  EXPECT_EQ(read_nccl_graph_xml(io::parse_xml(to_nccl_graph_xml(*good), "g.xml").value(), "g.xml").value().graphs,
            good->graphs);
  for (const char* speed : {"0.1234567890123", "20.599999", "1e-40", "16777217", "1e9"}) {
    std::string odd = head + rest + end;
    odd.replace(odd.find("speedinter=\"20\""), 15, std::string("speedinter=\"") + speed + "\"");
    const auto once = read_nccl_graph_xml(io::parse_xml(odd, "g.xml").value(), "g.xml").value();
    EXPECT_EQ(once.graphs[0].speed_inter.value, static_cast<double>(std::strtof(speed, nullptr)) * 1e9) << speed;
    EXPECT_EQ(read_nccl_graph_xml(io::parse_xml(to_nccl_graph_xml(once), "g.xml").value(), "g.xml").value().graphs,
              once.graphs)
        << speed;
  }
  EXPECT_EQ(refused("<system/>"), "g.xml line 1: <system> is not the root of a graph file, which is <graphs>");
  EXPECT_NE(refused("<graphs version=\"2\"/>").find("NCCL reads 1"), std::string::npos);
  std::string text = head + rest + end;
  EXPECT_NE(
      refused(text.replace(text.find("nchannels=\"1\""), 13, "nchannels=\"2\"")).find("nchannels=\"2\" and 1 channels"),
      std::string::npos);
  text = head + rest + end;
  EXPECT_NE(refused(text.replace(text.find("\"NVL\""), 5, "\"C2C\"")).find("which NCCL does not know"),
            std::string::npos);
  text = head + rest + end;
  EXPECT_NE(refused(text.replace(text.find("dev=\"c\""), 7, "dev=\"g\"")).find("dev=\"g\""), std::string::npos);
  text = head + end;
  EXPECT_NE(refused("<graphs version=\"1\"><graph id=\"0\"/></graphs>").find("lacks the attribute pattern"),
            std::string::npos);
}

TEST(nccl_graph_file, of_real_machines_passes_the_check) {
  const char* folder = std::getenv("TOPOCOLL_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
  std::size_t written = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(folder) + "/corpus/nccl-xml")) {
    if (entry.path().extension() != ".xml") continue;
    if (topocoll_test::sanitized && written > 10) break;
    const auto f = fragment_of_nccl_xml(io::read_file(entry.path().string()).value(), entry.path().filename().string());
    if (!f) continue;
    const topo::graph g = topo::graph::from(*f).value();
    for (const bool between : {false, true}) {
      if (!between && written % 3 != 0) continue;  // a search takes a moment without optimisation
      const auto made = nccl_graphs_of(g, on(between));
      if (!made) continue;
      const auto proof = check_nccl_graphs(*made, g);
      EXPECT_TRUE(proof) << entry.path() << ": " << (proof ? "" : proof.error().what);
      ++written;
    }
  }
  EXPECT_GT(written, topocoll_test::sanitized ? 10u : 50u);
}
