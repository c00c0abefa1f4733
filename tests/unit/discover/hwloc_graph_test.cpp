// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <topocoll/discover/hwloc_xml.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

std::string machine(const std::string& inside, const std::string& after = {}, const std::string& version = "2.0") {
  return "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology" +
         (version == "1" ? "" : " version=\"" + version + "\"") +
         ">\n<object type=\"Machine\" cpuset=\"0x0000ffff\" nodeset=\"0x00000003\">\n" + inside + "\n</object>\n" +
         after + "</topology>\n";
}

// Two domains of eight processors.
const std::string two_domains = R"(
  <info name="Architecture" value="x86_64"/>
  <object type="Package" os_index="0" cpuset="0x000000ff" nodeset="0x00000001">
    <info name="CPUVendor" value="GenuineIntel"/><info name="CPUFamilyNumber" value="6"/>
    <info name="CPUModelNumber" value="143"/><info name="CPUModel" value="Xeon"/>
    <object type="NUMANode" os_index="0" cpuset="0x000000ff" nodeset="0x00000001" local_memory="1000"/>BELOW0</object>
  <object type="Package" os_index="1" cpuset="0x0000ff00" nodeset="0x00000002">
    <info name="CPUVendor" value="GenuineIntel"/>
    <object type="NUMANode" os_index="1" cpuset="0x0000ff00" nodeset="0x00000002" local_memory="2000"/>BELOW1</object>)";

std::string with(const std::string& first, const std::string& second = {}) {
  std::string text = two_domains;
  text.replace(text.find("BELOW0"), 6, first);
  text.replace(text.find("BELOW1"), 6, second);
  return text;
}

std::string host_bridge(const std::string& inside) {
  return "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-ff]\">" + inside + "</object>\n";
}
std::string pci(const std::string& type, const std::string& address, const std::string& pci_type,
                const std::string& rate, const std::string& inside = {}, const std::string& more = {}) {
  return "<object type=\"" + type + "\" " + more + " pci_busid=\"" + address + "\" pci_type=\"" + pci_type +
         "\" pci_link_speed=\"" + rate + "\">" + inside + "</object>\n";
}
std::string bridge(const std::string& address, const std::string& rate, const std::string& inside) {
  return pci("Bridge", address, "0604 [8086:352a] [0000:0000] 04", rate, inside, "bridge_type=\"1-1\"");
}
std::string device(const std::string& address, const std::string& pci_type, const std::string& rate,
                   const std::string& inside = {}, const std::string& more = {}) {
  return pci("PCIDev", address, pci_type, rate, inside, more);
}
std::string os(const std::string& name, int type, const std::string& infos = {}, const std::string& more = {}) {
  return "<object type=\"OSDev\" " + more + " name=\"" + name + "\" osdev_type=\"" + std::to_string(type) + "\">" +
         infos + "</object>";
}
std::string info(const std::string& name, const std::string& value) {
  return "<info name=\"" + name + "\" value=\"" + value + "\"/>";
}
const std::string v100 = "0302 [10de:1db5] [10de:1249] a1";

struct made {
  tc::topo::fragment fragment;
  tc::topo::graph graph;
  tc::topo::summary counts;

  [[nodiscard]] const tc::topo::node* node(const std::string& key) const {
    for (const auto& n : fragment.nodes)
      if (n.key == key) return &n;
    return nullptr;
  }
  [[nodiscard]] std::string fact(const std::string& key, const std::string& name) const {
    if (const auto* n = node(key))
      for (const auto& f : n->facts)
        if (f.first == name) return f.second;
    return {};
  }
  [[nodiscard]] const tc::topo::link* link(const std::string& a, const std::string& b) const {
    for (const auto& l : fragment.links)
      if (fragment.nodes[l.from.value].key == a && fragment.nodes[l.to.value].key == b) return &l;
    return nullptr;
  }
  [[nodiscard]] bool says(const std::string& words, tc::severity level) const {
    return std::any_of(fragment.findings.begin(), fragment.findings.end(), [&](const tc::finding& f) {
      return f.level == level && (f.what + " " + f.evidence).find(words) != std::string::npos;
    });
  }
};

made of(const std::string& text, const tc::discover_options& options = {.host = "h"}) {
  auto f = tc::fragment_of_hwloc_xml(text, "m.xml", options);
  EXPECT_TRUE(f) << (f ? "" : f.error().message());
  if (!f) return {};
  made m;
  m.fragment = *f;
  for (const auto& n : f->nodes) EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  if (!g) return m;
  m.graph = std::move(*g);
  m.counts = tc::topo::summarize(m.graph);
  return m;
}

}  // namespace

TEST(hwloc_graph, has_the_domains_their_memories_and_what_joins_them) {
  const made m = of(machine(with(""),
                            "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" name=\"NUMALatency\" "
                            "indexing=\"os\"><indexes>1 0</indexes><u64values>11 21 20 10</u64values></distances2>"));
  EXPECT_EQ(m.counts.numa_domains, 2U);
  EXPECT_EQ(m.fact("h/numa:0", "cpus"), "0-7");
  EXPECT_EQ(m.fact("h/numa:1", "cpus"), "8-15");
  EXPECT_EQ(m.fact("h/numa:0", "distances"), "10 20");  // by rising number
  EXPECT_EQ(m.fact("h/numa:1", "distances"), "21 11");
  EXPECT_EQ(m.fact("h/memory:1", "memory_bytes"), "2000");
  EXPECT_EQ(m.fact("h/numa:0", "model_name"), "Xeon");
  ASSERT_NE(m.link("h/numa:0", "h/numa:1"), nullptr);
  EXPECT_EQ(m.link("h/numa:0", "h/numa:1")->kind, link_kind::cpu);
  EXPECT_EQ(m.link("h/numa:0", "h/numa:1")->capacity, tc::bytes_per_second{6e9});  // family of the second is not told
}

TEST(hwloc_graph, says_when_a_file_was_written_without_devices) {
  EXPECT_TRUE(of(machine(with(""))).says("no I/O devices", tc::severity::note));
  EXPECT_FALSE(
      of(machine(with(host_bridge(device("0000:00:01.0", v100, "0"))))).says("no I/O devices", tc::severity::note));
}

TEST(hwloc_xml_file, fails_with_the_path_when_there_is_no_such_file) {
  const auto f = tc::hwloc_xml_file{"/nonexistent/machine.xml"}.read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::not_found);
  EXPECT_NE(f.error().what.find("/nonexistent/machine.xml"), std::string::npos);
}

TEST(hwloc_graph, is_named_as_the_file_says) {
  EXPECT_NE(of(machine(with("") + info("HostName", "oak7"))).node("oak7/numa:0"), nullptr);
  EXPECT_NE(of(machine(with("") + info("HostName", ""))).node("h/numa:0"), nullptr);
}

TEST(hwloc_graph, folds_root_ports_and_downstream_ports_into_the_link_below) {
  const made m = of(machine(with(host_bridge(bridge(
      "0000:16:01.0", "63.015385",
      bridge("0000:17:00.0", "63.015385",
             bridge("0000:18:00.0", "63.015385", device("0000:19:00.0", v100, "63.015385")) +
                 bridge("0000:18:01.0", "31.507692",
                        device("0000:1a:00.0", "0207 [15b3:101b] [15b3:0001] 00", "31.507692", os("mlx5_0", 3)))))))));
  EXPECT_EQ(m.counts.gpus, 1U);
  EXPECT_EQ(m.counts.nics, 1U);
  EXPECT_EQ(m.counts.pcie_switches, 1U);
  EXPECT_EQ(m.node("h/pci:0000:16:01.0"), nullptr);
  EXPECT_EQ(m.node("h/pci:0000:18:00.0"), nullptr);
  EXPECT_EQ(m.fact("h/pci:0000:17:00.0", "root_port"), "0000:16:01.0");
  ASSERT_NE(m.link("h/numa:0", "h/pci:0000:17:00.0"), nullptr);
  ASSERT_NE(m.link("h/pci:0000:17:00.0", "h/pci:0000:19:00.0"), nullptr);
  EXPECT_EQ(m.node("h/pci:0000:19:00.0")->numa, 0U);
  EXPECT_EQ(m.node("h/pci:0000:19:00.0")->how, tc::trust::reported);
}

// hwloc gives GB/s only: 8 GT/s x16 and 16 GT/s x8 are the same to it.
TEST(hwloc_graph, tells_generation_and_lanes_only_where_one_pair_has_the_rate) {
  const auto one = [](const std::string& rate) {
    const made m = of(machine(with(
        host_bridge(bridge("0000:16:01.0", rate, device("0000:17:00.0", "0108 [144d:a808] [0000:0000] 00", rate))))));
    const auto* l = m.link("h/numa:0", "h/pci:0000:17:00.0");
    return l ? *l : tc::topo::link{};
  };
  const auto x16 = one("15.753846");
  EXPECT_EQ(x16.generation, 0U);
  EXPECT_EQ(x16.lanes, 0U);
  EXPECT_NEAR(x16.current->value, 15.753846e9, 1);
  EXPECT_NEAR(x16.capacity.value, 12e9, 1);  // as for Gen3 x16
  EXPECT_EQ(x16.how, tc::trust::derived);
  const auto x1 = one("0.250000");
  EXPECT_EQ(x1.generation, 1U);
  EXPECT_EQ(x1.lanes, 1U);
  const auto gen2 = one("8.000000");
  EXPECT_EQ(gen2.generation, 2U);
  EXPECT_EQ(gen2.lanes, 16U);
  EXPECT_NEAR(gen2.capacity.value, 6e9, 1);
  const auto odd = one("0.200000");
  EXPECT_EQ(odd.generation, 0U);
  EXPECT_NEAR(odd.capacity.value, 0.15e9, 1);
  const auto unknown = one("0.000000");
  EXPECT_FALSE(unknown.current);
  EXPECT_EQ(unknown.how, tc::trust::assumed);
  EXPECT_NEAR(unknown.capacity.value, 12e9, 1);
}

TEST(hwloc_graph, marks_gpus_that_may_be_idle) {
  const std::string gpus = host_bridge(bridge("0000:16:01.0", "4.0", device("0000:17:00.0", v100, "4.0")) +
                                       bridge("0000:16:02.0", "4.0", device("0000:18:00.0", v100, "15.753846")));
  const made m = of(machine(with(gpus)));
  const auto* idle = m.link("h/numa:0", "h/pci:0000:17:00.0");
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(idle->current, tc::bytes_per_second{4e9});
  EXPECT_NEAR(idle->capacity.value, 12e9, 1);  // what the other of its kind has
  EXPECT_EQ(idle->how, tc::trust::assumed);
  EXPECT_TRUE(m.says("idle GPU", tc::severity::note));
  const auto* busy = m.link("h/numa:0", "h/pci:0000:18:00.0");
  EXPECT_NEAR(busy->capacity.value, 12e9, 1);
  EXPECT_TRUE(m.says("the two ends of a PCIe link tell different rates", tc::severity::note));
}

TEST(hwloc_graph, does_not_trust_the_rate_that_emulated_bridges_print) {
  const made m = of(machine(with(host_bridge(bridge(
      "0000:16:01.0", "0.25",
      bridge("0000:17:00.0", "0.25", bridge("0000:18:00.0", "0.25", device("0000:19:00.0", v100, "31.507692"))))))));
  EXPECT_NEAR(m.link("h/pci:0000:17:00.0", "h/pci:0000:19:00.0")->capacity.value, 24e9, 1);
  EXPECT_NEAR(m.link("h/numa:0", "h/pci:0000:17:00.0")->capacity.value, 24e9, 1);
  EXPECT_NEAR(m.link("h/numa:0", "h/pci:0000:17:00.0")->current->value, 0.25e9, 1);
  EXPECT_TRUE(m.says("bridge speed not trusted", tc::severity::warning));
}

TEST(hwloc_graph, counts_gpus_by_pci_function_never_by_os_device) {
  const made m = of(machine(
      with(host_bridge(bridge("0000:16:01.0", "0",
                              device("0000:17:00.0", v100, "0",
                                     os("card0", 1) + os("renderD128", 1) + os("cuda1", 5) + os("opencl0d1", 5) +
                                         os("nvml3", 1, info("GPUModel", "Tesla V100"))))))));
  EXPECT_EQ(m.counts.gpus, 1U);
  EXPECT_EQ(m.node("h/pci:0000:17:00.0")->index, 3U);  // what nvidia-smi calls it
  EXPECT_EQ(m.fact("h/pci:0000:17:00.0", "model"), "Tesla V100");
  EXPECT_EQ(m.fact("h/pci:0000:17:00.0", "os_devices"), "card0 renderD128 cuda1 opencl0d1 nvml3");
}

TEST(hwloc_graph, tells_gpus_from_displays) {
  struct row {
    const char *what, *address, *type;
    std::string names;
    bool behind_bridge, is_gpu;
  };
  const row rows[] = {
      {"a board controller", "0000:17:00.0", "0300 [1a03:2000] [1a03:2000] 41", os("card0", 1), true, false},
      {"a workstation card", "0000:17:00.0", "0300 [10de:1b81] [0000:0000] a1", "", true, true},
      {"the same with a driver", "0000:17:00.0", "0300 [1002:6863] [0000:0000] 00",
       os("card1", 1) + os("renderD129", 1), true, true},
      {"only a display driver", "0000:17:00.0", "0300 [1002:515e] [0000:0000] 02", os("card0", 1), true, false},
      {"on a conventional bus", "0000:17:03.0", "0300 [1002:515e] [0000:0000] 02", "", true, false},
      {"inside the processor", "0000:00:02.0", "0380 [8086:4680] [0000:0000] 00", "", false, false},
      {"an accelerator", "0000:17:00.0", "1200 [1002:74a1] [1002:74a1] 00", "", true, true},
      {"a hypervisor's display", "0000:00:02.0", "0300 [1234:1111] [0000:0000] 00", "", false, false},
  };
  for (const row& r : rows) {
    const std::string d = device(r.address, r.type, "0.000000", r.names);
    const made m = of(machine(with(host_bridge(r.behind_bridge ? bridge("0000:16:01.0", "0", d) : d))));
    EXPECT_EQ(m.counts.gpus, r.is_gpu ? 1U : 0U) << r.what;
    EXPECT_NE(m.node("h/pci:" + std::string(r.address)), nullptr) << r.what;
  }
}

TEST(hwloc_graph, tells_partitions_of_one_gpu_and_their_links_once) {
  const auto gpu = [](int n, const std::string& address) {
    return bridge(
        "000" + std::to_string(n) + ":00:01.0", "63.015385",
        device(address, "1200 [1002:74a0] [1002:74a0] 00", "63.015385",
               os("rsmi" + std::to_string(2 * n), 1, info("XGMIHiveID", "12ab"),
                  "gp_index=\"" + std::to_string(50 + 2 * n) + "\"") +
                   os("rsmi" + std::to_string(2 * n + 1), 1, {}, "gp_index=\"" + std::to_string(51 + 2 * n) + "\"")));
  };
  const made m =
      of(machine(with(host_bridge(gpu(0, "0000:02:00.0")), host_bridge(gpu(1, "0001:02:00.0"))),
                 "<distances2 type=\"OSDev\" nbobjs=\"4\" kind=\"9\" name=\"XGMIBandwidth\" indexing=\"gp\">"
                 "<indexes>50 51 52 53</indexes><u64values>1000000 100000 100000 100000 100000 1000000 100000 "
                 "100000</u64values><u64values>100000 100000 1000000 100000 100000 100000 100000 "
                 "1000000</u64values></distances2>"));
  EXPECT_EQ(m.counts.gpus, 2U);
  EXPECT_EQ(m.fact("h/pci:0000:02:00.0", "partitions"), "2");
  EXPECT_EQ(m.fact("h/pci:0000:02:00.0", "xgmi_hive"), "12ab");
  EXPECT_FALSE(m.node("h/pci:0000:02:00.0")->index);
  EXPECT_TRUE(m.says("2 partitions", tc::severity::note));
  const auto* l = m.link("h/pci:0000:02:00.0", "h/pci:0001:02:00.0");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->kind, link_kind::xgmi);
  EXPECT_EQ(l->nominal, tc::bytes_per_second{100e9});
  EXPECT_NEAR(l->capacity.value, 72e9, 1);
  EXPECT_EQ(std::count_if(m.fragment.links.begin(), m.fragment.links.end(),
                          [](const auto& x) { return x.kind == link_kind::xgmi; }),
            2);
}

TEST(hwloc_graph, joins_gpus_to_one_plane_of_switches) {
  std::string below;
  for (int g = 0; g < 3; ++g)
    below += bridge("0000:16:0" + std::to_string(g) + ".0", "15.753846",
                    device("0000:2" + std::to_string(g) + ":00.0", v100, "15.753846",
                           os("nvml" + std::to_string(g), 1, {}, "gp_index=\"" + std::to_string(70 + g) + "\"")));
  below += bridge("0000:16:08.0", "1",
                  device("0000:61:00.0", "0680 [10de:1ac2] [0000:0000] a1", "1.0", {}, "gp_index=\"80\""));
  below += bridge(
      "0000:16:09.0", "1",
      device("0000:62:00.0", "0000 [0000:0000] [0000:0000] 00", "1.0", {}, "gp_index=\"81\" subtype=\"NVSwitch\""));
  // GPU 0 reaches both chips, GPU 1 one of them and GPU 2 directly, where the two directions disagree.
  const made m = of(
      machine(with(host_bridge(below)),
              "<distances2hetero nbobjs=\"5\" kind=\"25\" name=\"NVLinkBandwidth\"><indexes>OSDev:70 OSDev:71 OSDev:72 "
              "PCIDev:80 PCIDev:81</indexes><u64values>0 0 0 25000 50000 0 0 50000 25000 0 0 25000 0 0 0 25000 25000 0 "
              "0 0 50000 0 0 0 0</u64values>"
              "</distances2hetero>"));
  EXPECT_EQ(m.counts.gpus, 3U);
  EXPECT_EQ(m.counts.nvswitches, 1U);
  EXPECT_EQ(m.fact("h/pci:0000:62:00.0", "role"), "nvswitch");
  EXPECT_EQ(m.link("h/pci:0000:20:00.0", "h/nvswitch")->nominal, tc::bytes_per_second{75e9});
  EXPECT_EQ(m.link("h/pci:0000:21:00.0", "h/nvswitch")->nominal, tc::bytes_per_second{25e9});
  EXPECT_EQ(m.link("h/pci:0000:22:00.0", "h/nvswitch"), nullptr);
  const auto* l = m.link("h/pci:0000:21:00.0", "h/pci:0000:22:00.0");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->kind, link_kind::nvlink);
  EXPECT_EQ(l->nominal, tc::bytes_per_second{25e9});
  EXPECT_EQ(l->how, tc::trust::assumed);
  EXPECT_TRUE(m.says("different bandwidths", tc::severity::warning));
}

TEST(hwloc_graph, takes_named_peers_where_no_bandwidth_is_told) {
  const auto gpu = [](const std::string& address, const std::string& name, const std::string& peers) {
    return bridge("0000:16:0" + name.substr(4) + ".0", "0",
                  device(address, "0380 [1002:738c] [0000:0000] 01", "0", os(name, 1, info("XGMIPeers", peers))));
  };
  const made m =
      of(machine(with(host_bridge(gpu("0000:31:00.0", "rsmi0", "rsmi1 ") +
                                  gpu("0000:32:00.0", "rsmi1", "rsmi0 rsmi9 ") + gpu("0000:33:00.0", "rsmi2", "")))));
  const auto* l = m.link("h/pci:0000:31:00.0", "h/pci:0000:32:00.0");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->kind, link_kind::xgmi);
  EXPECT_EQ(l->how, tc::trust::assumed);
  EXPECT_FALSE(l->nominal);
  EXPECT_EQ(m.link("h/pci:0000:31:00.0", "h/pci:0000:33:00.0"), nullptr);
}

TEST(hwloc_graph, has_one_adapter_for_a_card_and_a_port_for_each_of_its_ports) {
  const std::string guids = info("NodeGUID", "ec0d:9a03:007f:55B2") + info("SysImageGUID", "0000:0000:0000:0000") +
                            info("Port1State", "4") + info("Port1LID", "0xc") +
                            info("Port1GID0", "fe80:0000:0000:0000:ec0d:9a03:007f:55b4");
  const std::string ipoib =
      info("Address", "00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00") + info("Port", "1");
  const std::string card =
      bridge("0000:16:01.0", "15.753846",
             device("0000:17:00.0", "0207 [15b3:1019] [1014:0617] 00", "15.753846",
                    os("ib0", 2, ipoib) + os("mlx5_0", 3, guids)) +
                 device("0000:17:00.1", "0207 [15b3:1019] [1014:0617] 00", "15.753846",
                        os("mlx5_1", 3, info("NodeGUID", "ec0d:9a03:007f:55b3") + info("Port1State", "1"))));
  const made m = of(machine(with(host_bridge(card))));
  EXPECT_EQ(m.counts.nics, 2U);
  EXPECT_EQ(m.graph.all(node_kind::nic).size(), 1U);
  EXPECT_EQ(m.node("h/pci:0000:17:00.0")->name, "mlx5_0");
  EXPECT_EQ(m.fact("h/pci:0000:17:00.0", "node_guid"), "0xec0d9a03007f55b2");
  EXPECT_EQ(m.fact("h/net:mlx5_0/1", "port_guid"), "0xec0d9a03007f55b4");
  EXPECT_EQ(m.fact("h/net:mlx5_0/1", "interface"), "ib0");
  EXPECT_EQ(m.fact("h/net:mlx5_0/1", "system_guid"), "");
  EXPECT_EQ(m.fact("h/net:mlx5_1/1", "pci"), "0000:17:00.1");
  const auto* up = m.link("h/pci:0000:17:00.0", "h/net:mlx5_0/1");
  EXPECT_NEAR(up->capacity.value, 12e9, 1);
  EXPECT_EQ(up->how, tc::trust::assumed);
  const auto* down = m.link("h/pci:0000:17:00.0", "h/net:mlx5_1/1");
  EXPECT_EQ(down->capacity.value, 0);
  EXPECT_EQ(down->how, tc::trust::reported);
  EXPECT_TRUE(m.says("mlx5_1 port 1 (state 1)", tc::severity::warning));
}

TEST(hwloc_graph, gives_no_port_guid_to_ethernet) {
  const made m = of(machine(with(host_bridge(bridge(
      "0000:16:01.0", "0",
      device("0000:17:00.0", "0200 [15b3:101d] [0000:0000] 00", "0",
             os("mlx5_0", 3, info("Port1State", "4") + info("Port1GID0", "fe80:0000:0000:0000:ec0d:9aff:fe7f:55b2")) +
                 os("eth0", 2, info("Address", "ec:0d:9a:7f:55:b2"))))))));
  EXPECT_EQ(m.counts.nics, 1U);
  EXPECT_EQ(m.fact("h/net:mlx5_0/1", "port_guid"), "");
  EXPECT_EQ(m.fact("h/net:mlx5_0/1", "interface_address"), "ec:0d:9a:7f:55:b2");
}

TEST(hwloc_graph, leaves_out_wireless_adapters_virtual_functions_and_virtual_interfaces) {
  const made m = of(
      machine(with(host_bridge(bridge("0000:16:01.0", "0",
                                      device("0000:17:00.0", "0280 [8086:24fb] [0000:0000] 10", "0", os("wlp5s0", 2)) +
                                          device("0000:18:00.2", "0200 [15b3:101e] [0000:0000] 00", "0",
                                                 info("PCIDevice", "ConnectX Family mlx5Gen Virtual Function"))))) +
              os("veth12", 2) + os("eth9", 2)));
  EXPECT_EQ(m.counts.nics, 1U);
  EXPECT_NE(m.node("h/net:eth9/0"), nullptr);
  EXPECT_TRUE(m.says("eth9", tc::severity::warning));
  EXPECT_TRUE(m.says("0000:18:00.2", tc::severity::note));
}

TEST(hwloc_graph, says_which_functions_of_a_card_have_no_interface) {
  const std::string nic = "0200 [1137:0043] [1137:0085] a2";
  const made m = of(machine(with(host_bridge(
      bridge("0000:16:01.0", "0",
             device("0000:17:00.0", nic, "0", os("eth0", 2)) + device("0000:17:00.1", nic, "0", os("eth1", 2)) +
                 device("0000:17:00.2", nic, "0") + device("0000:17:00.3", nic, "0"))))));
  EXPECT_EQ(m.counts.nics, 2U);
  EXPECT_TRUE(m.says("counted with its first 2: 0000:17:00.2, 0000:17:00.3", tc::severity::note));
}

TEST(hwloc_graph, marks_numa_domains_that_are_the_memory_of_a_gpu) {
  const std::string node =
      "<object type=\"NUMANode\" os_index=\"255\" cpuset=\"0x0\" nodeset=\"0x80000000,,,,,,,0x0\" "
      "local_memory=\"1600\"/>";
  const std::string power =
      info("Architecture", "ppc64le") +
      "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x0000ffff\" nodeset=\"0x1\" local_memory=\"5\"/>";
  const made m = of(machine(power + node, {}, "1"));
  EXPECT_EQ(m.counts.numa_domains, 2U);
  EXPECT_EQ(m.fact("h/numa:255", "memory_of"), "gpu");
  EXPECT_EQ(m.fact("h/numa:255", "memory_bytes"), "1600");
  EXPECT_EQ(m.node("h/memory:255"), nullptr);
  EXPECT_TRUE(m.says("memory of a GPU", tc::severity::note));
  // Elsewhere nobody says whose it is; it stays memory of the host.
  const made x =
      of(machine("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xff\" local_memory=\"5\"/>" + node, {}, "1"));
  EXPECT_EQ(x.fact("h/numa:255", "memory_of"), "unknown");
  EXPECT_NE(x.link("h/numa:0", "h/memory:255"), nullptr);
}

TEST(hwloc_graph, joins_special_memory_to_the_domain_with_its_processors) {
  const made m =
      of(machine("<object type=\"Package\" os_index=\"0\" cpuset=\"0xff\"><object type=\"NUMANode\" os_index=\"0\" "
                 "subtype=\"MCDRAM\" cpuset=\"0xff\" local_memory=\"16\"/>"
                 "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0xff\" local_memory=\"96\"/></object>"));
  EXPECT_EQ(m.counts.numa_domains, 2U);
  EXPECT_EQ(m.fact("h/numa:0", "memory_of"), "MCDRAM");
  EXPECT_EQ(m.fact("h/numa:1", "cpus"), "0-7");
  EXPECT_NE(m.link("h/numa:1", "h/memory:0"), nullptr);
  EXPECT_NE(m.link("h/numa:1", "h/memory:1"), nullptr);
}

TEST(hwloc_graph, knows_domains_without_memory) {
  const made m =
      of(machine("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x0f\" local_memory=\"9\"/>"
                 "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0xf0\"/>",
                 {}, "1"));
  EXPECT_EQ(m.counts.numa_domains, 2U);
  EXPECT_EQ(m.node("h/memory:1"), nullptr);
  EXPECT_TRUE(m.says("no memory", tc::severity::note));
  EXPECT_NE(m.link("h/numa:0", "h/numa:1"), nullptr);
}

TEST(hwloc_graph, takes_a_machine_without_numa_nodes_as_one) {
  const made m = of(machine("<object type=\"Package\" cpuset=\"0xf\"><object type=\"PU\"/></object>" +
                                host_bridge(device("0000:00:01.0", v100, "0")),
                            {}, "1"));
  EXPECT_EQ(m.counts.numa_domains, 1U);
  EXPECT_EQ(m.node("h/numa:0")->how, tc::trust::assumed);
  EXPECT_EQ(m.fact("h/numa:0", "cpus"), "0-3");
  EXPECT_EQ(m.node("h/pci:0000:00:01.0")->numa, 0U);
}

TEST(hwloc_graph, does_not_guess_a_domain_where_several_are_near) {
  const made m = of(machine(
      with("", "") + host_bridge(bridge("0000:16:01.0", "15.753846", device("0000:17:00.0", v100, "15.753846")))));
  EXPECT_FALSE(m.node("h/pci:0000:17:00.0")->numa);
  EXPECT_EQ(m.link("h/numa:0", "h/pci:0000:17:00.0")->how, tc::trust::assumed);
  EXPECT_TRUE(m.says("NUMA domains", tc::severity::warning));
}

TEST(hwloc_graph, keeps_both_of_two_devices_with_one_address_and_refuses_none) {
  const made m = of(machine(with(host_bridge(device("0000:17:00.0", v100, "0") + device("0000:17:00.0", v100, "0")))));
  EXPECT_EQ(m.counts.gpus, 2U);
  EXPECT_TRUE(m.says("an address is given to two devices", tc::severity::warning));
  const auto bad = tc::fragment_of_hwloc_xml(machine(with(host_bridge(device("17", v100, "0")))), "m.xml");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, tc::errc::malformed_input);
  EXPECT_EQ(bad.error().what.rfind("m.xml line ", 0), 0U);
}

TEST(hwloc_graph, of_a_description_with_many_domains_stays_small) {
  std::string nodes;
  for (int d = 0; d < 300; ++d) nodes += "<object type=\"NUMANode\" os_index=\"" + std::to_string(d) + "\"/>";
  const made m = of(machine(nodes));
  EXPECT_EQ(m.counts.numa_domains, 300U);
  EXPECT_LT(m.counts.links, 700U);
}

namespace {

class hwloc_corpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("TOPOCOLL_CORPUS");
    if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/hwloc-xml"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/hwloc-xml";
    root = named;
    for (const auto& entry : fs::directory_iterator(root / "corpus/hwloc-xml")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_FALSE(files.empty());
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path root;
  std::vector<fs::path> files;
};

}  // namespace

TEST_F(hwloc_corpus, is_read_with_the_counts_that_an_independent_reader_found) {
  const auto facts = tc::io::parse_json(text_of(root / "corpus/facts.json"), "facts.json");
  ASSERT_TRUE(facts) << facts.error().message();
  for (const fs::path& file : files) {
    const std::string text = text_of(file);
    EXPECT_TRUE(tc::read::looks_like_hwloc_topology(text)) << file;
    const std::string name = "hwloc-xml/" + file.filename().string();
    ASSERT_TRUE(facts->contains(name)) << name;
    const auto& want = (*facts)[name];
    const auto number = [&](const char* key) { return want.contains(key) ? want[key].get<std::size_t>() : 0; };
    const auto root_element = tc::io::parse_xml(text, name);
    ASSERT_TRUE(root_element) << root_element.error().message();
    const auto t = tc::read::hwloc_topology_of(*root_element, name);
    ASSERT_TRUE(t) << t.error().message();
    EXPECT_EQ(t->numas.size(), number("numa_nodes")) << name;
    EXPECT_EQ(t->packages.size(), number("packages")) << name;
    EXPECT_EQ(t->cores, number("cores")) << name;
    EXPECT_EQ(t->processing_units, number("pus")) << name;
    EXPECT_EQ(t->os_devices.size(), number("os_devices")) << name;
    const auto bridges = static_cast<std::size_t>(
        std::count_if(t->functions.begin(), t->functions.end(), [](const auto& f) { return f.bridge; }));
    EXPECT_EQ(bridges + t->host_bridges, number("bridges")) << name;
    EXPECT_EQ(t->functions.size() - bridges, number("pci_devices")) << name;
    auto fragment = tc::hwloc_xml_file{file.string()}.read({});
    ASSERT_TRUE(fragment) << fragment.error().message();
    for (const tc::topo::link& l : fragment->links) {
      EXPECT_LT(l.capacity.value, 2e12) << file;
      if (l.how >= tc::trust::derived) {
        EXPECT_NE(l.reason, "") << file;
        EXPECT_GT(l.capacity.value, 0) << file;
      }
    }
    const auto graph = tc::topo::graph::from(std::move(*fragment));
    ASSERT_TRUE(graph) << graph.error().message();
    if (number("numa_nodes") > 0) {
      EXPECT_EQ(tc::topo::summarize(*graph).numa_domains, number("numa_nodes")) << name;
    }
  }
}

// One machine of the corpus was recorded both ways: hwloc's view and the kernel's own files.
TEST_F(hwloc_corpus, agrees_with_the_kernel_on_a_machine_that_both_describe) {
  const fs::path seen = root / "corpus/hwloc-xml/hwloc_40intel64_pcilocality.xml";
  const fs::path recorded = root / "corpus/other/sysfs_skylake_2x2numa_pci_locality.flat.txt";
  if (!fs::exists(seen) || !fs::exists(recorded)) GTEST_SKIP() << "the corpus lacks one of the two files";
  auto by_hwloc = tc::fragment_of_hwloc_xml(text_of(seen), "hwloc.xml");
  ASSERT_TRUE(by_hwloc) << by_hwloc.error().message();
  const std::string host = by_hwloc->nodes.front().host;
  auto by_kernel = tc::fragment_of_recording(text_of(recorded), "recording", {.host = host});
  ASSERT_TRUE(by_kernel) << by_kernel.error().message();
  const auto keys = [](const tc::topo::fragment& f) {
    std::vector<std::string> all;
    for (const auto& n : f.nodes)
      if (n.kind != node_kind::pcie_device) all.push_back(std::string(tc::topo::to_string(n.kind)) + " " + n.key);
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(keys(*by_hwloc), keys(*by_kernel));
  const std::vector<tc::topo::fragment> both{*by_hwloc, *by_kernel};
  const auto joined = tc::topo::merge(both);
  ASSERT_TRUE(joined) << joined.error().message();
  for (const tc::finding& f : joined->findings) EXPECT_EQ(f.what.find("sources disagree"), std::string::npos) << f.what;
}
