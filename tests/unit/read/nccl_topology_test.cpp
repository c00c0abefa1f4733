// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/nccl_topology.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;

namespace {

topocoll::result<rd::nccl_topology> parse(const std::string& text) {
  const auto root = topocoll::io::parse_xml(text, "t.xml");
  EXPECT_TRUE(root) << (root ? "" : root.error().what);
  return root ? rd::nccl_topology_of(*root, "t.xml") : topocoll::result<rd::nccl_topology>(root.error());
}

bool says(const rd::nccl_topology& t, const std::string& text, const std::string& where = {}) {
  return std::any_of(t.findings.begin(), t.findings.end(), [&](const topocoll::finding& f) {
    return f.what.find(text) != std::string::npos && (where.empty() || f.where == where);
  });
}

}  // namespace

TEST(nccl_topology, keeps_every_attribute_that_it_does_not_interpret) {
  const auto t = parse(
      R"(<system version="2"><cpu numaid="5" arch="x86_64" color="red"><pci busid="0000:01:00.0" zeta="1" alpha="2"><nic><net name="n" dev="3" port="2" speed="100000" guid="0x5"/></nic></pci></cpu></system>)");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->version, "2");
  ASSERT_EQ(t->cpus.size(), 1U);
  EXPECT_EQ(t->cpus[0].numaid, 5U);
  EXPECT_EQ(t->cpus[0].facts, (rd::attributes{{"arch", "x86_64"}, {"color", "red"}}));
  const rd::nccl_pci& p = t->cpus[0].devices.at(0);
  EXPECT_EQ(p.facts, (rd::attributes{{"alpha", "2"}, {"zeta", "1"}}));
  const rd::nccl_net& n = p.nics.at(0).nets.at(0);
  EXPECT_EQ(n.name, "n");
  EXPECT_EQ(n.dev, 3U);
  EXPECT_EQ(n.port, 2U);
  EXPECT_EQ(n.speed, 100000);
  EXPECT_EQ(n.facts, (rd::attributes{{"guid", "0x5"}, {"speed", "100000"}}));
}

TEST(nccl_topology, remembers_the_line_of_each_element) {
  const auto t =
      parse("<system>\n<cpu numaid=\"0\">\n\n<pci busid=\"0000:01:00.0\">\n<gpu dev=\"0\"/>\n</pci></cpu></system>");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->cpus[0].line, 2U);
  EXPECT_EQ(t->cpus[0].devices[0].line, 4U);
  EXPECT_EQ(t->cpus[0].devices[0].gpus[0].line, 5U);
}

TEST(nccl_topology, refuses_other_roots_by_name) {
  for (const char* text : {"<topology version=\"2.0\"/>", "<graphs/>", "<cpu/>", "<System><cpu/></System>"}) {
    const auto t = parse(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code, errc::malformed_input);
    EXPECT_NE(t.error().what.find("t.xml line 1"), std::string::npos);
    EXPECT_NE(t.error().what.find("<system>"), std::string::npos);
  }
}

TEST(nccl_topology, refuses_a_file_without_cpus) {
  const auto t = parse("<system version=\"1\">\n</system>");
  ASSERT_FALSE(t);
  EXPECT_NE(t.error().what.find("no <cpu>"), std::string::npos);
}

TEST(nccl_topology, refuses_a_device_without_busid_and_names_the_line) {
  for (const char* attribute : {"", " busid=\"\""}) {
    const auto t =
        parse(std::string("<system><cpu numaid=\"0\">\n<pci") + attribute + " class=\"0x030200\"/></cpu></system>");
    ASSERT_FALSE(t);
    EXPECT_EQ(t.error().what.find("t.xml line 2: <pci> has no busid"), 0U) << t.error().what;
  }
}

TEST(nccl_topology, reports_numbers_that_are_none_and_reads_on) {
  const auto t = parse(
      R"(<system><cpu numaid="zero"><pci busid="0000:01:00.0"><gpu dev="-5" sm="9999999999" rank="-1"><nvlink target="x" count="300"/></gpu></pci></cpu></system>)");
  ASSERT_TRUE(t);
  EXPECT_FALSE(t->cpus[0].numaid);
  const rd::nccl_gpu& g = t->cpus[0].devices[0].gpus[0];
  EXPECT_FALSE(g.dev || g.sm || g.rank || g.nvlinks[0].count);
  EXPECT_TRUE(says(*t, "numaid=\"zero\"", "t.xml line 1"));
  EXPECT_TRUE(says(*t, "dev=\"-5\""));
  EXPECT_TRUE(says(*t, "sm=\"9999999999\""));
  EXPECT_TRUE(says(*t, "count=\"300\""));
  EXPECT_FALSE(says(*t, "rank=\"-1\""));  // -1 is how the kernel says that it does not know
}

TEST(nccl_topology, counts_unknown_elements_once_a_kind) {
  const auto t =
      parse(R"(<system><cpu numaid="0"><fan/><fan/><fan/><pci busid="0000:01:00.0"><fan/></pci></cpu></system>)");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->findings.size(), 2U);
  EXPECT_TRUE(says(*t, "<fan> inside <cpu>"));
  EXPECT_TRUE(says(*t, "<fan> inside <pci>"));
  EXPECT_EQ(t->findings[0].evidence, "3 such elements");
}

TEST(nccl_topology, takes_devices_outside_a_cpu_as_those_of_the_first) {
  const auto t = parse(
      R"(<system><pci busid="0000:02:00.0"/><cpu numaid="0"><pci busid="0000:01:00.0"/></cpu><cpu numaid="1"/></system>)");
  ASSERT_TRUE(t);
  ASSERT_EQ(t->cpus[0].devices.size(), 2U);
  EXPECT_EQ(t->cpus[0].devices[1].busid, "0000:02:00.0");
  EXPECT_TRUE(says(*t, "outside every <cpu>"));
}
