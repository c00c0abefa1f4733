// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace hw = topocoll::read;

namespace {

tc::result<hw::hwloc_topology> parsed(const std::string& text) {
  const auto root = tc::io::parse_xml(text, "m.xml");
  if (!root) return root.error();
  return hw::hwloc_topology_of(*root, "m.xml");
}

const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";

// The least machine around some content.
std::string machine(const std::string& version, const std::string& inside, const std::string& after = {}) {
  return head + "<topology" + (version.empty() ? "" : " version=\"" + version + "\"") +
         ">\n<object type=\"Machine\">\n" + inside + "\n</object>\n" + after + "</topology>\n";
}

}  // namespace

TEST(looks_like_hwloc_topology, by_the_first_element_behind_any_prolog) {
  EXPECT_TRUE(hw::looks_like_hwloc_topology(machine("2.0", "")));
  EXPECT_TRUE(
      hw::looks_like_hwloc_topology("\xef\xbb\xbf\r\n<!-- a > b --><topology><object type=\"Machine\"/></topology>"));
  EXPECT_TRUE(hw::looks_like_hwloc_topology("<topology\n version=\"2.0\">\n<object/></topology>"));
}

TEST(looks_like_hwloc_topology, is_no_other_xml) {
  for (const char* text : {"", "<", "<system version=\"1\"><cpu/></system>", "<topologydiff><diff/></topologydiff>",
                           "<topology/>", "<topology><switch/></topology>", "SwitchName=a Nodes=b", "{\"object\": 1}",
                           "<!-- <topology><object> -->", "<?xml", "<!-- unclosed", "text <topology><object/>"})
    EXPECT_FALSE(hw::looks_like_hwloc_topology(text)) << text;
}

TEST(hwloc_topology, of_version_1_wraps_cores_in_numa_nodes) {
  const auto t = parsed(machine("", R"(
    <info name="HostName" value=" pine3 "/>
    <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" local_memory="4096">
      <object type="Socket" os_index="0" cpuset="0x0000000f"><info name="CPUModel" value="P9"/>
        <object type="Core"><object type="PU" os_index="0"/><object type="PU" os_index="1"/></object></object>
      <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
        <object type="PCIDev" pci_busid="0000:00:03.0" pci_type="0200 [15b3:1017] [0000:0000] 00" pci_link_speed="0.000000">
          <object type="OSDev" name="ib0" osdev_type="2"/><object type="OSDev" name="mlx5_0" osdev_type="3"/>
        </object></object></object>
    <object type="NUMANode" os_index="255" cpuset="0x0" nodeset="0x80000000,,,,,,,0x0" local_memory="16911433728"/>
    <distances nbobjs="2" relative_depth="1" latency_base="10.000000">
      <latency value="1.000000"/><latency value="8.000000"/><latency value="8.000000"/><latency value="1.000000"/>
    </distances>)"));
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ(t->version, 1U);
  EXPECT_EQ(t->host_name, "pine3");
  EXPECT_EQ(t->cores, 1U);
  EXPECT_EQ(t->processing_units, 2U);
  EXPECT_EQ(t->host_bridges, 1U);
  ASSERT_EQ(t->packages.size(), 1U);
  ASSERT_EQ(t->numas.size(), 2U);
  EXPECT_EQ(t->numas[0].number, 0U);
  EXPECT_EQ(t->numas[0].memory, tc::bytes{4096});
  EXPECT_EQ(t->numas[0].cpus, std::vector<std::uint32_t>{15});
  EXPECT_EQ(t->numas[1].number, 255U);
  EXPECT_TRUE(t->numas[1].cpus.empty());
  ASSERT_EQ(t->functions.size(), 1U);
  EXPECT_EQ(t->functions[0].class_code, 0x020000U);
  EXPECT_EQ(t->functions[0].vendor, "0x15b3");
  EXPECT_EQ(t->functions[0].device, "0x1017");
  EXPECT_EQ(t->functions[0].subsystem_vendor, "");
  EXPECT_FALSE(t->functions[0].link);
  EXPECT_EQ(t->functions[0].near, std::vector<std::uint32_t>{0});
  EXPECT_EQ(t->functions[0].parent, hw::hwloc_none);
  ASSERT_EQ(t->os_devices.size(), 2U);
  EXPECT_EQ(t->os_devices[0].kinds, hw::hwloc_network);
  EXPECT_EQ(t->os_devices[1].kinds, hw::hwloc_openfabrics);
  EXPECT_EQ(t->os_devices[1].function, 0U);
  ASSERT_EQ(t->matrices.size(), 1U);
  EXPECT_EQ(t->matrices[0].name, "NUMALatency");
  EXPECT_EQ(t->matrices[0].values, (std::vector<double>{10, 80, 80, 10}));
  EXPECT_EQ(t->matrices[0].places[1].index, 255U);
}

TEST(hwloc_topology, of_version_2_has_memory_children_and_matrices_in_pieces) {
  const auto t =
      parsed(machine("2.0", R"(
    <object type="Package" os_index="0" cpuset="0x0000ffff,0xffffffff" nodeset="0x00000005">
      <object type="NUMANode" os_index="2" cpuset="0x0000ffff,0xffffffff" nodeset="0x00000004" local_memory="7" gp_index="5"/>
      <object type="Die" nodeset="0x00000005"><object type="Core"/></object>
      <object type="Bridge" gp_index="6" bridge_type="0-1"><object type="Bridge" gp_index="7" pci_busid="0000:20:01.0" pci_type="0604 [1022:1453] [1022:1453] 00" pci_link_speed="15.753846">
        <object type="PCIDev" gp_index="8" pci_busid="0000:21:00.0" pci_type="0380 [1002:738c] [1002:0c34] 01" pci_link_speed="31.507692">
          <object type="OSDev" gp_index="9" name="rsmi0" subtype="RSMI" osdev_type="1"><info name="GPUVendor" value="AMD"/></object>
          <object type="OSDev" gp_index="10" name="opencl0d0" osdev_type="5"/>
        </object></object></object></object>)",
                     R"(<distances2 type="NUMANode" nbobjs="1" kind="5" indexing="os"><indexes length="2">2 </indexes>
    <u64values length="3">10 </u64values></distances2>
  <distances2 type="OSDev" nbobjs="3" kind="9" name="XGMIBandwidth" indexing="gp">
    <indexes length="4">9 12 </indexes><indexes length="3">15 </indexes>
    <u64values length="9">1000000 2 </u64values><u64values length="9">3 4 5 6 7 8 9 </u64values></distances2>
  <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth"><indexes length="16">OSDev:9 PCIDev:8 </indexes>
    <u64values length="12">0 25000 25000 0</u64values></distances2hetero>)"));
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ(t->version, 2U);
  EXPECT_EQ(t->numas[0].cpus, (std::vector<std::uint32_t>{0xffffffffU, 0xffffU}));
  ASSERT_EQ(t->functions.size(), 2U);
  EXPECT_TRUE(t->functions[0].bridge);
  EXPECT_EQ(t->functions[1].parent, 0U);
  EXPECT_EQ(t->functions[1].near, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_NEAR(t->functions[1].link->value, 31.507692e9, 1);
  EXPECT_EQ(t->functions[1].subsystem_device, "0x0c34");
  EXPECT_EQ(t->os_devices[0].kinds, hw::hwloc_display);
  EXPECT_EQ(t->os_devices[1].kinds, hw::hwloc_coprocessor);
  ASSERT_EQ(t->matrices.size(), 3U);
  EXPECT_EQ(t->matrices[0].name, "NUMALatency");
  EXPECT_TRUE(t->matrices[0].by_os_index);
  EXPECT_EQ(t->matrices[1].places.size(), 3U);
  EXPECT_EQ(t->matrices[1].places[2].index, 15U);
  EXPECT_EQ(t->matrices[1].values, (std::vector<double>{1000000, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(t->matrices[2].places[0].type, "OSDev");
  EXPECT_EQ(t->matrices[2].places[1].type, "PCIDev");
  EXPECT_TRUE(t->findings.empty());
}

TEST(hwloc_topology, of_version_3_numbers_os_devices_by_bits_and_tells_the_interface_byte) {
  const auto t =
      parsed(machine("3.0", R"(
    <object type="Bridge" bridge_type="0-1">
      <object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1 05" pci_link_speed="63.015385">
        <object type="OSDev" name="nvml0" osdev_type="12"/><object type="OSDev" name="mlx5_0" osdev_type="48"/>
        <object type="OSDev" name="sda" osdev_type="1"/></object></object>)",
                     "<info name=\"HostName\" value=\"oak\"/><info name=\"Architecture\" value=\"x86_64\"/>"));
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ(t->host_name, "oak");
  EXPECT_EQ(*hw::find_info(t->infos, "Architecture"), "x86_64");
  EXPECT_EQ(t->functions[0].class_code, 0x030205U);
  EXPECT_EQ(t->os_devices[0].kinds, hw::hwloc_display | hw::hwloc_coprocessor);
  EXPECT_EQ(t->os_devices[1].kinds, hw::hwloc_network | hw::hwloc_openfabrics);
  EXPECT_EQ(t->os_devices[2].kinds, hw::hwloc_storage);
}

TEST(hwloc_topology, reads_texts_with_a_byte_order_mark_and_dos_line_ends) {
  std::string dos = "\xef\xbb\xbf";
  for (const char c : machine("2.0", "<object type=\"NUMANode\" os_index=\"1\"/>"))
    dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto t = parsed(dos);
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ(t->numas[0].number, 1U);
}

TEST(hwloc_topology, refuses_what_is_no_topology_with_file_line_and_reason) {
  const auto refused = [](const std::string& text, tc::errc code, const char* word) {
    const auto t = parsed(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code, code) << text;
    EXPECT_EQ(t.error().what.rfind("m.xml line ", 0), 0U) << t.error().what;
    EXPECT_NE(t.error().what.find(word), std::string::npos) << t.error().what;
  };
  refused("<system/>", tc::errc::malformed_input, "<topology>");
  refused("<topologydiff/>", tc::errc::malformed_input, "differ");
  refused("<topology version=\"2.0\"/>", tc::errc::malformed_input, "no <object>");
  refused("<topology version=\"x\"><object/></topology>", tc::errc::malformed_input, "version");
  refused("<topology version=\"4.0\"><object/></topology>", tc::errc::unsupported, "4.0");
  refused(machine("2.0", "<object type=\"PCIDev\"/>"), tc::errc::malformed_input, "pci_busid");
}

TEST(hwloc_topology, takes_nonsense_as_not_told_and_says_so) {
  const auto t = parsed(machine(
      "2.0", R"(
    <object type="NUMANode" os_index="-1" cpuset="0xf...f" local_memory="x"/>
    <object type="OSDev" osdev_type="2"/><object type="OSDev" name="odd" osdev_type="77"/>
    <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="none" pci_link_speed="fast"/>
    <object type="PCIDev" pci_busid="0000:02:00.0" subtype="NVSwitch" pci_type="0000 [0000:0000] [0000:0000] 00 00"/>)",
      R"(<distances2 type="OSDev" nbobjs="2" name="XGMIHops" indexing="gp"><indexes>1 2</indexes><u64values>1 2 3</u64values></distances2>
      <distances2 type="OSDev" nbobjs="1" name="XGMIHops" indexing="gp"><indexes>1</indexes><u64values>-4</u64values></distances2>
      <distances2 type="OSDev" nbobjs="2" name="XGMIHops" indexing="gp"><indexes>1</indexes><u64values>4</u64values></distances2>)"));
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_FALSE(t->numas[0].number);
  EXPECT_TRUE(t->numas[0].cpus.empty());
  EXPECT_FALSE(t->numas[0].memory);
  ASSERT_EQ(t->os_devices.size(), 1U);
  EXPECT_EQ(t->os_devices[0].kinds, 0U);
  EXPECT_EQ(t->os_devices[0].function, hw::hwloc_none);
  EXPECT_FALSE(t->functions[0].class_code);
  EXPECT_FALSE(t->functions[1].class_code);
  EXPECT_EQ(t->functions[1].vendor, "");
  EXPECT_EQ(t->functions[1].subtype, "NVSwitch");
  EXPECT_TRUE(t->matrices.empty());
  EXPECT_EQ(t->findings.size(), 8U);
  for (const tc::finding& f : t->findings) EXPECT_EQ(f.where.rfind("m.xml line ", 0), 0U);
}

TEST(hwloc_topology, keeps_bitmaps_of_any_width_that_a_machine_can_have) {
  EXPECT_EQ(hw::detail::hwloc_bitmap("0x00000001"), std::vector<std::uint32_t>{1});
  EXPECT_EQ(hw::detail::hwloc_bitmap("0x10000000,,,,,,,0x0").size(), 8U);
  EXPECT_EQ(hw::detail::hwloc_bitmap("0x1,0x80000000"), (std::vector<std::uint32_t>{0x80000000U, 1}));
  EXPECT_EQ(hw::detail::hwloc_bitmap(",0x3"), std::vector<std::uint32_t>{3});
  for (const char* none : {"", "0x0", "0xf...f", "0xf...f,0x1", "0x123456789", "zz", ","})
    EXPECT_TRUE(hw::detail::hwloc_bitmap(none).empty()) << none;
  EXPECT_TRUE(hw::detail::hwloc_bitmap(std::string(100000, ',')).empty());
}
