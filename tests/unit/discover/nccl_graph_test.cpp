// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

// A file of one Intel CPU that contains `inside`.
std::string system_with(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
         "modelid=\"143\">" +
         inside + "</cpu></system>";
}
std::string pci(const std::string& busid, const std::string& more, const std::string& inside = {},
                const std::string& link = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"") {
  return "<pci busid=\"" + busid + "\" " + more + " " + link + ">" + inside + "</pci>";
}
std::string gpu(const std::string& busid, int dev, const std::string& links, const std::string& sm = "90") {
  return pci(busid, "class=\"0x030200\"",
             "<gpu dev=\"" + std::to_string(dev) + "\" sm=\"" + sm + "\" rank=\"" + std::to_string(dev) + "\">" +
                 links + "</gpu>");
}

struct read_file {
  tc::topo::graph graph;
  std::string refusal;

  [[nodiscard]] const tc::topo::link* link(const std::string& from, const std::string& to) const {
    for (const tc::topo::link& l : graph.links())
      if (graph.at(l.from).key == "h/" + from && graph.at(l.to).key == "h/" + to) return &l;
    return nullptr;
  }
  [[nodiscard]] const tc::topo::node* node(const std::string& key) const {
    const auto v = graph.find("h/" + key);
    return v ? &graph.at(*v) : nullptr;
  }
  [[nodiscard]] std::size_t count(node_kind kind) const { return graph.all(kind).size(); }
  [[nodiscard]] bool says(const std::string& text) const {
    return std::any_of(graph.findings().begin(), graph.findings().end(),
                       [&](const tc::finding& f) { return f.what.find(text) != std::string::npos; });
  }
};

read_file read(const std::string& text) {
  auto fragment = tc::fragment_of_nccl_xml(text, "f.xml", {.host = "h"});
  if (!fragment) return {{}, fragment.error().what};
  auto graph = tc::topo::graph::from(std::move(*fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
  return {graph ? std::move(*graph) : tc::topo::graph{}, {}};
}

}  // namespace

TEST(nccl_graph, of_one_cpu_has_its_memory) {
  const auto f = read(system_with(""));
  EXPECT_EQ(f.graph.node_count(), 2U);
  const auto* m = f.link("numa:0", "memory:0");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->how, tc::trust::assumed);
  EXPECT_GT(m->capacity.value, 0);
  EXPECT_NE(f.link("memory:0", "numa:0"), nullptr);
}

TEST(nccl_graph, joins_every_two_numa_domains) {
  for (const int n : {1, 2, 3, 5, 7, 8, 17}) {
    std::string text = "<system>";
    for (int i = 0; i < n; ++i)
      text += "<cpu numaid=\"" + std::to_string(3 * i + 1) + "\" vendor=\"AuthenticAMD\" arch=\"x86_64\"/>";
    const auto f = read(text + "</system>");
    EXPECT_EQ(f.count(node_kind::cpu), static_cast<std::size_t>(n));
    EXPECT_EQ(f.graph.link_count(), static_cast<std::size_t>(n * (n - 1) + 2 * n));
  }
}

TEST(nccl_graph, tells_a_display_of_a_board_controller_from_a_gpu) {
  const auto count = [](const std::string& more) {
    return read(system_with(pci("0000:01:00.0", more))).count(node_kind::gpu);
  };
  EXPECT_EQ(count("class=\"0x030000\""), 1U);  // nothing speaks against it
  EXPECT_EQ(count("class=\"0x030000\" vendor=\"0x10de\""), 1U);
  EXPECT_EQ(count("class=\"0x030000\" vendor=\"0x1002\""), 1U);
  EXPECT_EQ(count("class=\"0x030000\" vendor=\"0x1a03\""), 0U);
  EXPECT_EQ(count("class=\"0x030000\" vendor=\"0x102b\""), 0U);
  EXPECT_EQ(count("class=\"0x030200\" vendor=\"0x1234\""), 1U);
  EXPECT_EQ(count("class=\"0x038000\""), 1U);
  EXPECT_EQ(count("class=\"0x120000\""), 1U);
  EXPECT_EQ(count("class=\"0x010802\""), 0U);
  EXPECT_EQ(count(""), 0U);
}

TEST(nccl_graph, counts_a_network_class_as_one_port_unless_the_file_tells_ports) {
  EXPECT_EQ(read(system_with(pci("0000:01:00.0", "class=\"0x020000\""))).count(node_kind::nic_port), 1U);
  EXPECT_EQ(read(system_with(pci("0000:01:00.0", "class=\"0x020700\""))).count(node_kind::nic_port), 1U);
  const auto two = read(system_with(
      pci("0000:01:00.0", "class=\"0x020700\"",
          "<nic><net name=\"m\" port=\"1\" speed=\"100000\"/><net name=\"m\" port=\"2\" speed=\"200000\"/></nic>")));
  EXPECT_EQ(two.count(node_kind::nic), 1U);
  EXPECT_EQ(two.count(node_kind::nic_port), 2U);
  EXPECT_EQ(two.link("pci:0000:01:00.0", "net:m/2")->capacity.value, 25e9);
  const auto none = read(system_with(pci("0000:01:00.0", "class=\"0x020700\"", "<nic/>")));
  EXPECT_EQ(tc::topo::summarize(none.graph).nics, 0U);
  EXPECT_TRUE(none.says("<nic> has no <net>"));
}

TEST(nccl_graph, keeps_nominal_rate_and_expected_payload_apart) {
  const auto f = read(
      system_with(gpu("0000:01:00.0", 0, "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>")));
  const auto* p = f.link("numa:0", "pci:0000:01:00.0");
  EXPECT_NEAR(p->nominal->value, 63.015e9, 1e6);
  EXPECT_EQ(p->capacity.value, 48e9);
  EXPECT_FALSE(p->current);  // the file tells no trained speed
  EXPECT_EQ(p->generation, 5U);
  EXPECT_EQ(p->lanes, 16U);
  const auto* n = f.link("pci:0000:01:00.0", "nvswitch");
  EXPECT_EQ(n->nominal->value, 450e9);
  EXPECT_NEAR(n->capacity.value, 370.8e9, 1);
  EXPECT_EQ(n->how, tc::trust::derived);
}

TEST(nccl_graph, sums_the_links_to_all_switches_and_makes_one_plane) {
  std::string text;
  for (int g = 0; g < 8; ++g) {
    std::string links;
    for (int s = 0; s < 4; ++s)
      links += "<nvlink target=\"0000:f" + std::to_string(s) + ":00.0\" count=\"" + std::to_string(s < 2 ? 5 : 4) +
               "\" tclass=\"0x068000\"/>";
    text += gpu("0000:1" + std::to_string(g) + ":00.0", g, links);
  }
  const auto f = read(system_with(text));
  EXPECT_EQ(f.count(node_kind::nvswitch), 1U);
  for (int g = 0; g < 8; ++g) EXPECT_EQ(f.link("pci:0000:1" + std::to_string(g) + ":00.0", "nvswitch")->lanes, 18U);
  EXPECT_EQ(f.graph.findings().size(), 0U);
}

TEST(nccl_graph, counts_the_switches_that_a_gpu_names) {
  const auto row = [](const std::string& target) {
    return "<nvlink target=\"" + target + "\" count=\"6\" tclass=\"0x068000\"/>";
  };
  const auto f = read(system_with(gpu("0000:11:00.0", 0, row("0000:f0:00.0") + row("0000:f1:00.0")) +
                                  gpu("0000:12:00.0", 1, row("fffffff:ff:ff.0"))));
  const auto targets = [&](const char* key) {
    for (const auto& [name, value] : f.node(key)->facts)
      if (name == "nvlink_targets") return value;
    return std::string();
  };
  EXPECT_EQ(targets("pci:0000:11:00.0"), "2");
  EXPECT_EQ(targets("pci:0000:12:00.0"), "") << "switches that cannot be seen cannot be counted";
}

TEST(nccl_graph, counts_direct_links_once_though_both_ends_tell_them) {
  for (const int n : {1, 2, 3, 12}) {
    const auto both = [&](const std::string& to) {
      return "<nvlink target=\"" + to + "\" count=\"" + std::to_string(n) + "\" tclass=\"0x030200\"/>";
    };
    const auto f = read(system_with(gpu("0000:01:00.0", 0, both("0000:02:00.0"), "80") +
                                    gpu("0000:02:00.0", 1, both("0000:01:00.0"), "80")));
    EXPECT_EQ(std::count_if(f.graph.links().begin(), f.graph.links().end(),
                            [](const tc::topo::link& l) { return l.kind == tc::topo::link_kind::nvlink; }),
              2);
    EXPECT_EQ(f.link("pci:0000:01:00.0", "pci:0000:02:00.0")->lanes, static_cast<unsigned>(n));
    EXPECT_EQ(f.link("pci:0000:02:00.0", "pci:0000:01:00.0")->capacity.value, 20e9 * n);
  }
}

TEST(nccl_graph, never_reads_the_compute_units_of_an_amd_gpu_as_compute_capability) {
  const auto amd = [](const std::string& busid, const std::string& to, const std::string& gcn) {
    return pci(busid, "class=\"0x038000\"",
               "<gpu dev=\"0\" sm=\"90\" gcn=\"" + gcn + "\"><xgmi target=\"" + to +
                   "\" count=\"1\" tclass=\"0x038000\"/></gpu>");
  };
  const auto f =
      read(system_with(amd("0000:01:00.0", "0000:02:00.0", "906") + amd("0000:02:00.0", "0000:01:00.0", "906")));
  EXPECT_EQ(f.link("pci:0000:01:00.0", "pci:0000:02:00.0")->capacity.value, 24e9);
  EXPECT_EQ(f.link("pci:0000:01:00.0", "pci:0000:02:00.0")->kind, tc::topo::link_kind::xgmi);
}

TEST(nccl_graph, trusts_a_slow_bridge_above_slow_devices) {
  const std::string slow = "link_speed=\"2.5 GT/s\" link_width=\"1\"";
  const auto f = read(
      system_with(pci("0000:01:00.0", "class=\"0x060400\"",
                      pci("0000:02:00.0", "class=\"0x020000\"", {}, "link_speed=\"5 GT/s\" link_width=\"1\""), slow)));
  EXPECT_DOUBLE_EQ(f.link("numa:0", "pci:0000:01:00.0")->capacity.value, 0.1875e9);
  EXPECT_EQ(f.link("numa:0", "pci:0000:01:00.0")->how, tc::trust::derived);
}

TEST(nccl_graph, does_not_plan_with_the_gen1_that_a_gpu_tells) {
  for (const char* width : {"1", "8", "16"}) {
    const std::string gen1 = std::string("link_speed=\"2.5 GT/s PCIe\" link_width=\"") + width + "\"";
    const auto f = read(system_with(pci("0000:01:00.0", "class=\"0x030200\"", {}, gen1) +
                                    pci("0000:02:00.0", "class=\"0x020000\"", {}, gen1)));
    const auto* gpu = f.link("numa:0", "pci:0000:01:00.0");
    EXPECT_EQ(gpu->generation, 1U);
    EXPECT_EQ(gpu->nominal->value, 0.25e9 * std::stoi(width)) << "the figure is kept";
    EXPECT_EQ(gpu->capacity.value, 0.75e9 * std::stoi(width)) << "and Gen3 is the model's";
    EXPECT_EQ(gpu->how, tc::trust::assumed);
    EXPECT_NE(gpu->reason, "");
    EXPECT_TRUE(f.says("the PCIe link of a GPU tells 2.5 GT/s"));
    // Adapters do run at it.
    EXPECT_EQ(f.link("numa:0", "pci:0000:02:00.0")->how, tc::trust::derived);
    EXPECT_EQ(f.link("numa:0", "pci:0000:02:00.0")->capacity.value, 0.1875e9 * std::stoi(width));
  }
}

TEST(nccl_graph, believes_a_slow_bridge_above_faster_devices_and_says_so) {
  const auto under = [](const std::string& bridge) {
    return read(
        system_with(pci("0000:01:00.0", "class=\"0x060400\"", pci("0000:02:00.0", "class=\"0x030200\""), bridge)));
  };
  const auto slow = under("link_speed=\"5.0 GT/s PCIe\" link_width=\"16\"");
  EXPECT_EQ(slow.link("numa:0", "pci:0000:01:00.0")->capacity.value, 6e9);
  EXPECT_TRUE(slow.says("carries less than that of a device below it"));
  const auto narrow = under("link_speed=\"32.0 GT/s PCIe\" link_width=\"8\"");
  EXPECT_TRUE(narrow.says("carries less than that of a device below it"));
  EXPECT_FALSE(under("link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"").says("carries less"));
  EXPECT_FALSE(under("link_speed=\"\" link_width=\"0\"").says("carries less"));
}

TEST(nccl_graph, marks_speeds_that_no_kernel_writes) {
  const auto of = [](const std::string& speed) {
    return read(
        system_with(pci("0000:01:00.0", "class=\"0x030200\"", {}, "link_speed=\"" + speed + "\" link_width=\"16\"")));
  };
  for (const char* speed : {"32 GT/s PCIe/s", "32GT/s", "32"}) {
    EXPECT_TRUE(of(speed).says("is not spelt as any kernel does")) << speed;
    EXPECT_EQ(of(speed).link("numa:0", "pci:0000:01:00.0")->generation, 5U) << speed;
  }
  for (const char* speed : {"32.0 GT/s PCIe", "8 GT/s", "2.5 GT/s", "", "Unknown"})
    EXPECT_FALSE(of(speed).says("is not spelt")) << speed;
}

TEST(nccl_graph, misses_affinity_masks_only_where_there_are_several_domains) {
  const std::string bare = "<cpu numaid=\"0\"/>", other = "<cpu numaid=\"1\"/>";
  EXPECT_FALSE(read("<system>" + bare + "</system>").says("tells no affinity mask"));
  EXPECT_TRUE(read("<system>" + bare + other + "</system>").says("tells no affinity mask"));
  EXPECT_FALSE(read("<system><cpu numaid=\"0\" affinity=\"f\"/><cpu numaid=\"1\" affinity=\"f0\"/></system>")
                   .says("tells no affinity mask"));
}

TEST(nccl_graph, sees_through_emulated_bridges_at_any_depth) {
  const std::string slow = "link_speed=\"2.5 GT/s PCIe\" link_width=\"1\"";
  std::string inside = gpu("0000:99:00.0", 0, "");
  for (int d = 0; d < 10; ++d) inside = pci("0000:0" + std::to_string(d) + ":00.0", "class=\"0x060400\"", inside, slow);
  const auto f = read(system_with(inside));
  for (const tc::topo::link& l : f.graph.links())
    if (l.kind == tc::topo::link_kind::pcie) {
      EXPECT_EQ(l.capacity.value, 48e9);
    }
  const auto* top = f.link("numa:0", "pci:0000:09:00.0");
  EXPECT_NEAR(top->nominal->value, 0.25e9, 1);  // what the file says is kept
  EXPECT_EQ(top->generation, 1U);
  EXPECT_EQ(top->lanes, 1U);
}

TEST(nccl_graph, keeps_a_bridge_that_is_slower_but_plausible) {
  const auto f = read(system_with(pci("0000:01:00.0", "class=\"0x060400\"", gpu("0000:02:00.0", 0, ""),
                                      "link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"")));
  EXPECT_EQ(f.link("numa:0", "pci:0000:01:00.0")->capacity.value, 12e9);
  EXPECT_EQ(f.link("numa:0", "pci:0000:01:00.0")->how, tc::trust::derived);
}

TEST(nccl_graph, believes_port_speeds_up_to_what_ports_have) {
  const auto port = [](const std::string& speed) {
    const auto f = read(system_with(
        pci("0000:01:00.0", "class=\"0x020000\"", "<nic><net name=\"n\" port=\"1\" speed=\"" + speed + "\"/></nic>")));
    return *f.link("pci:0000:01:00.0", "net:n/1");
  };
  EXPECT_EQ(port("400000").capacity.value, 50e9);
  EXPECT_EQ(port("400000").how, tc::trust::reported);
  EXPECT_EQ(port("3200000").how, tc::trust::reported);
  EXPECT_EQ(port("200000000").capacity.value, 25e9);
  EXPECT_EQ(port("200000000").how, tc::trust::assumed);
  for (const char* speed : {"0", "-1", "fast", "99999999999999"}) {
    EXPECT_EQ(port(speed).capacity.value, 48e9) << speed;  // as the adapter's PCIe link
    EXPECT_EQ(port(speed).how, tc::trust::assumed) << speed;
  }
}

TEST(nccl_graph, takes_an_interface_without_pcie_and_speed_as_ten_gigabit) {
  const auto f = read(system_with("<nic><net name=\"eth0\" speed=\"-1\" port=\"0\"/></nic>"));
  EXPECT_EQ(f.link("nic:eth0", "net:eth0/0")->capacity.value, 1.25e9);
  EXPECT_EQ(f.link("numa:0", "nic:eth0")->capacity.value, 1.25e9);
}

TEST(nccl_graph, marks_interfaces_that_the_host_made_up) {
  for (const char* name : {"veth12ab", "virbr0", "docker0", "lo"}) {
    const auto f = read(system_with(std::string("<nic><net name=\"") + name + "\" speed=\"10000\" port=\"0\"/></nic>"));
    const auto* n = f.node(std::string("net:") + name + "/0");
    ASSERT_NE(n, nullptr);
    EXPECT_TRUE(std::find(n->facts.begin(), n->facts.end(), std::pair<std::string, std::string>("virtual", "1")) !=
                n->facts.end())
        << name;
    EXPECT_EQ(tc::topo::summarize(f.graph).nics, 1U);  // it still counts
  }
  EXPECT_FALSE(read(system_with("<nic><net name=\"eth0\" speed=\"10000\"/></nic>")).says("made up"));
}

TEST(nccl_graph, keeps_two_devices_that_claim_one_address) {
  const auto f =
      read(system_with(gpu("0000:01:00.0", 0, "") + gpu("0000:01:00.0", 1, "") + gpu("0000:01:00.0", 2, "")));
  EXPECT_EQ(f.count(node_kind::gpu), 3U);
  EXPECT_NE(f.node("pci:0000:01:00.0#2"), nullptr);
  EXPECT_NE(f.node("pci:0000:01:00.0#3"), nullptr);
  EXPECT_TRUE(f.says("given to two devices"));
}

TEST(nccl_graph, refuses_a_device_below_itself_at_any_distance) {
  for (const int between : {0, 1, 5}) {
    std::string inside = "\n" + pci("0000:01:00.0", "class=\"0x030200\"");
    for (int i = 0; i < between; ++i)
      inside = pci("0000:0" + std::to_string(i + 2) + ":00.0", "class=\"0x060400\"", inside);
    EXPECT_EQ(read(system_with(pci("0000:01:00.0", "class=\"0x060400\"", inside))).refusal,
              "f.xml line 2: busid 0000:01:00.0 lies below itself");
  }
}

TEST(nccl_graph, refuses_what_is_no_pci_address_and_names_the_line) {
  for (const char* bad :
       {"01", "0000:01:00", "0000:01:00.9", "0000:01:20.0", "gpu0", "0000:01:00.0x", "123456789:01:00.0"})
    EXPECT_EQ(read(system_with("\n<pci busid=\"" + std::string(bad) + "\"/>")).refusal,
              "f.xml line 2: busid \"" + std::string(bad) + "\" is not a PCI address");
}

TEST(nccl_graph, accepts_addresses_of_large_domains_and_in_capitals) {
  for (const char* good : {"10000:E1:00.0", "ffff:ff:01.0", "0001:00:00.0", "00000000:1B:00.0", "1b:00.0"})
    EXPECT_EQ(read(system_with(gpu(good, 0, ""))).count(node_kind::gpu), 1U) << good;
}

TEST(nccl_graph, shares_one_pcie_link_among_the_partitions_of_a_gpu) {
  const auto f =
      read(system_with(pci("0000:01:00.0", "class=\"0x120000\"",
                           "<gpu dev=\"0\" sm=\"90\"/><gpu dev=\"1\" sm=\"90\"/><gpu dev=\"2\" sm=\"90\"/>")));
  EXPECT_EQ(f.count(node_kind::gpu), 3U);
  EXPECT_EQ(std::count_if(f.graph.links().begin(), f.graph.links().end(),
                          [](const tc::topo::link& l) { return l.kind == tc::topo::link_kind::pcie; }),
            2);
}

TEST(nccl_graph, numbers_cpus_without_numaid_around_those_that_have_one) {
  const auto f = read("<system><cpu/><cpu numaid=\"0\"/><cpu numaid=\"-1\"/></system>");
  EXPECT_NE(f.node("numa:0"), nullptr);
  EXPECT_NE(f.node("numa:1"), nullptr);
  EXPECT_NE(f.node("numa:2"), nullptr);
  EXPECT_FALSE(f.node("numa:1")->numa);  // not told, so not known
  EXPECT_EQ(f.node("numa:0")->numa, 0U);
}

TEST(nccl_graph, refuses_more_numa_domains_than_it_can_join) {
  std::string text = "<system>";
  for (int i = 0; i < 129; ++i) text += "<cpu numaid=\"" + std::to_string(i) + "\"/>\n";
  EXPECT_EQ(read(text + "</system>").refusal, "f.xml line 129: more than 128 NUMA domains in one host");
}

TEST(nccl_graph, is_the_same_every_time) {
  const std::string text =
      system_with(gpu("0000:01:00.0", 0,
                      "<nvlink target=\"0000:02:00.0\" count=\"2\"/><nvlink target=\"0000:03:00.0\" count=\"2\"/>") +
                  gpu("0000:02:00.0", 1, "<nvlink target=\"0000:01:00.0\" count=\"2\"/>") + gpu("0000:03:00.0", 2, ""));
  const auto a = read(text);
  const auto b = read(text);
  ASSERT_EQ(a.graph.link_count(), b.graph.link_count());
  for (std::uint32_t e = 0; e < a.graph.link_count(); ++e) {
    EXPECT_EQ(a.graph.at(tc::link_id{e}).from, b.graph.at(tc::link_id{e}).from);
    EXPECT_EQ(a.graph.at(tc::link_id{e}).to, b.graph.at(tc::link_id{e}).to);
  }
}
