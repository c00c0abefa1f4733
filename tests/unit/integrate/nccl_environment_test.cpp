// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/integrate/nccl_environment.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

/// GPUs with an adapter each behind a PCIe switch each, joined by NVSwitch; further devices at the first CPU.
std::string machine(int gpus, int sm, int nvlinks, const std::string& more = {}) {
  std::string text =
      "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" "
      "modelid=\"1\">\n";
  const std::string link = " link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
  for (int i = 0; i < gpus; ++i) {
    const std::string bus = std::to_string(i + 1);
    text += "<pci busid=\"0000:" + bus + "0:00.0\" class=\"0x060400\"" + link + ">\n<pci busid=\"0000:" + bus +
            "1:00.0\" class=\"0x030200\"" + link + "><gpu dev=\"" + std::to_string(i) + "\" sm=\"" +
            std::to_string(sm) + "\" rank=\"" + std::to_string(i) + "\" gdr=\"1\">";
    if (i < nvlinks) text += "<nvlink target=\"0000:d0:00.0\" count=\"12\" tclass=\"0x068000\"/>";
    text += "</gpu></pci>\n<pci busid=\"0000:" + bus + "2:00.0\" class=\"0x020700\"" + link +
            "><nic><net name=\"mlx5_" + std::to_string(i) + "\" dev=\"" + std::to_string(i) +
            "\" speed=\"200000\" port=\"1\" guid=\"0x50" + bus +
            "\" maxconn=\"131072\" gdr=\"1\"/></nic></pci>\n</pci>\n";
  }
  return text + more + "</cpu>\n</system>\n";
}
std::string adapter(const std::string& name, int dev, int mbit) {
  return "<pci busid=\"0000:e" + std::to_string(dev % 10) +
         ":00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"" + name +
         "\" dev=\"" + std::to_string(dev) + "\" speed=\"" + std::to_string(mbit) + "\" port=\"1\" guid=\"0x99" +
         std::to_string(dev) + "\" maxconn=\"131072\" gdr=\"0\"/></nic></pci>\n";
}
topo::graph graph_of(const std::string& xml) {
  return topo::graph::from(fragment_of_nccl_xml(xml, "machine.xml").value()).value();
}
nccl_environment of(const topo::graph& g, const nccl_environment_options& o = {}) {
  auto e = nccl_environment_of(g, o);
  EXPECT_TRUE(e) << (e ? "" : e.error().what);
  return e ? std::move(*e) : nccl_environment{};
}
std::string value(const nccl_environment& e, std::string_view name) {
  const nccl_variable* v = e.find(name);
  return v == nullptr ? "-" : v->value;
}

}  // namespace

TEST(nccl_environment, sets_nothing_without_a_reason) {
  EXPECT_TRUE(of(graph_of(machine(8, 90, 8))).variables.empty());
  EXPECT_EQ(to_export_lines({}), "# nothing that this topology tells speaks against NCCL's own choices\n");
}

TEST(nccl_environment, every_variable_has_a_reason) {
  nccl_environment_options o;
  o.topology_file = "/etc/topo.xml";
  o.tuner_file = "/etc/tuner.csv";
  o.most_channels = 8;
  const auto e = of(graph_of(machine(8, 80, 7, adapter("mlx5_9", 9, 25000))), o);
  EXPECT_GE(e.variables.size(), 5u);
  for (const nccl_variable& v : e.variables) EXPECT_GT(v.why.size(), 20u) << v.name;
  for (std::size_t i = 0; i + 1 < e.variables.size(); ++i) EXPECT_LT(e.variables[i].name, e.variables[i + 1].name);
}

TEST(nccl_environment, leaves_out_slow_adapters) {
  const auto e = of(graph_of(machine(4, 90, 4, adapter("mlx5_9", 9, 25000))));
  EXPECT_EQ(value(e, "NCCL_IB_HCA"), "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
  EXPECT_NE(e.find("NCCL_IB_HCA")->why.find("mlx5_9"), std::string::npos);
  // Half the rate is a rail with a fault, which is still worth its rate.
  EXPECT_EQ(value(of(graph_of(machine(4, 90, 4))), "NCCL_IB_HCA"), "-");
}

TEST(nccl_environment, avoids_pxn_where_nccl_loses_its_tree) {
  const topo::graph g = graph_of(machine(8, 80, 8));
  const auto e = of(g);
  EXPECT_EQ(value(e, "NCCL_PXN_DISABLE"), "1");
  EXPECT_NE(e.find("NCCL_PXN_DISABLE")->why.find("1952"), std::string::npos);
  EXPECT_EQ(value(of(graph_of(machine(8, 90, 8))), "NCCL_PXN_DISABLE"), "-");  // Hopper's search is another
  // With a graph file that has the tree, PXN stays.
  const auto graphs = nccl_graphs_of(g, {}).value();
  nccl_environment_options o;
  o.graphs = &graphs;
  o.graph_file = "/etc/graph.xml";
  const auto with = of(g, o);
  EXPECT_EQ(value(with, "NCCL_PXN_DISABLE"), "-");
  EXPECT_EQ(value(with, "NCCL_GRAPH_FILE"), "/etc/graph.xml");
}

TEST(nccl_environment, turns_nvls_off_where_a_gpu_lost_its_nvlink) {
  const auto e = of(graph_of(machine(8, 90, 7)));
  EXPECT_EQ(value(e, "NCCL_NVLS_ENABLE"), "0");
  EXPECT_EQ(value(of(graph_of(machine(8, 90, 8))), "NCCL_NVLS_ENABLE"), "-");
  EXPECT_EQ(value(of(graph_of(machine(8, 90, 0))), "NCCL_NVLS_ENABLE"), "-");  // NCCL sees that itself
}

TEST(nccl_environment, keeps_rails_apart_where_their_leaves_are) {
  const topo::graph rails = topo::graph::from(describe("dgx-h100:nodes=4,leaves=8,spines=4").value()).value();
  EXPECT_EQ(value(of(rails), "NCCL_CROSS_NIC"), "0");
  const topo::graph shared = topo::graph::from(describe("dgx-h100:nodes=4,rails=no").value()).value();
  EXPECT_EQ(value(of(shared), "NCCL_CROSS_NIC"), "-");
}

TEST(nccl_environment, forces_an_algorithm_only_when_it_always_wins_clearly) {
  const topo::graph g = graph_of(machine(8, 90, 8));
  nccl_environment_options o;
  std::vector<plan::selection> map(2);
  for (std::size_t i = 0; i < 2; ++i) {
    map[i].size = bytes{1024ULL << (10 * i)};
    map[i].name = "ring";
    map[i].time = seconds{1};
    map[i].second = "tree";
    map[i].second_time = seconds{1.2};
  }
  o.map = map;
  EXPECT_EQ(value(of(g, o), "NCCL_ALGO"), "allreduce:ring");
  map[1].second_time = seconds{1.05};
  EXPECT_EQ(value(of(g, o), "NCCL_ALGO"), "-");
  map[1].second_time = seconds{1.2};
  map[1].name = "tree";
  const auto e = of(g, o);
  EXPECT_EQ(value(e, "NCCL_ALGO"), "-");
  EXPECT_EQ(e.findings.size(), 1u);
  map[0].name = map[1].name = "hierarchy";  // nothing of NCCL's
  EXPECT_EQ(value(of(g, o), "NCCL_ALGO"), "-");
}

TEST(nccl_environment, forms_agree) {
  nccl_environment e;
  e.variables = {{"NCCL_GRAPH_FILE", "/a b/it's.xml", "first\nreason $(x)", ""},
                 {"NCCL_MAX_CTAS", "4", "asked", "maxCTAs"}};
  EXPECT_EQ(to_export_lines(e),
            "# first reason $(x)\nexport NCCL_GRAPH_FILE='/a b/it'\\''s.xml'\n# asked\nexport NCCL_MAX_CTAS=4\n");
  EXPECT_EQ(to_env_file(e), "# first reason $(x)\nNCCL_GRAPH_FILE=/a b/it's.xml\n# asked\nNCCL_MAX_CTAS=4\n");
  EXPECT_EQ(to_mpirun_options(e), "-x NCCL_GRAPH_FILE='/a b/it'\\''s.xml' -x NCCL_MAX_CTAS=4\n");
  EXPECT_EQ(to_config_notes(e),
            "ncclConfig_t config = NCCL_CONFIG_INITIALIZER;\nconfig.maxCTAs = 4;  // asked\n"
            "// No field of ncclConfig_t; set before the first communicator:\n//   NCCL_GRAPH_FILE=/a b/it's.xml\n");
}

TEST(nccl_environment, says_what_is_missing) {
  nccl_environment_options o;
  o.host = "nowhere";
  EXPECT_EQ(nccl_environment_of(graph_of(machine(2, 90, 2)), o).error().code, errc::invalid_argument);
  EXPECT_EQ(nccl_environment_of(topo::graph{}).error().code, errc::not_found);
}
