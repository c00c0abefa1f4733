// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/read/slurm_topology.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;
using names = std::vector<std::string>;

namespace {

topocoll::result<rd::slurm_topology> parse(const std::string& text) { return rd::parse_slurm_topology(text, "t.conf"); }

bool says(const rd::slurm_topology& t, const std::string& text) {
  return std::any_of(t.findings.begin(), t.findings.end(), [&](const topocoll::finding& f) {
    return f.what.find(text) != std::string::npos || f.evidence.find(text) != std::string::npos;
  });
}

std::string refusal(const std::string& text, errc code = errc::malformed_input) {
  const auto t = parse(text);
  EXPECT_FALSE(t) << text;
  if (t) return {};
  EXPECT_EQ(t.error().code, code) << t.error().what;
  EXPECT_EQ(t.error().what.rfind("t.conf", 0), 0U) << t.error().what;
  return t.error().what;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(slurm_topology, reads_a_tree_in_any_order_and_case) {
  const auto t = parse(
      "# a fabric\r\n"
      "switchname=TOP SWITCHES=s[1-2] LinkSpeed=400G # the root\r\n"
      "\r\n"
      "SwitchName = s1 Nodes = a[01-03],\\\r\n"
      "   b7\r\n"
      "Nodes=a[04, 05] SwitchName=s2");
  ASSERT_TRUE(t) << t.error().message();
  ASSERT_EQ(t->switches.size(), 3U);
  EXPECT_EQ(t->switches[0].name, "TOP");
  EXPECT_EQ(t->switches[0].children, (names{"s1", "s2"}));
  EXPECT_EQ(t->switches[0].link_speed, "400G");
  EXPECT_EQ(t->switches[0].line, 2U);
  EXPECT_EQ(t->switches[1].nodes, (names{"a01", "a02", "a03", "b7"}));
  EXPECT_EQ(t->switches[1].line, 4U);
  EXPECT_EQ(t->switches[2].nodes, (names{"a04", "a05"}));
  EXPECT_EQ(rd::slurm_tiers(*t), (std::vector<std::uint32_t>{1, 0, 0}));
  EXPECT_TRUE(t->findings.empty());
}

TEST(slurm_topology, takes_several_roots_and_single_leaves) {
  const auto t = parse(
      "\xef\xbb\xbfSwitchName=r Switches=a\nSwitchName=a Nodes=n1\nSwitchName=alone Nodes=n2\nSwitchName=r2 "
      "Switches=r\n");
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ(rd::slurm_tiers(*t), (std::vector<std::uint32_t>{1, 0, 0, 2}));
}

TEST(slurm_topology, reads_blocks_and_rings) {
  const auto t =
      parse("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8,32\nRingName=r Nodes=n[1-16]\n");
  ASSERT_TRUE(t) << t.error().message();
  ASSERT_EQ(t->blocks.size(), 2U);
  EXPECT_EQ(t->blocks[1].nodes.size(), 4U);
  EXPECT_EQ(t->block_sizes, (std::vector<std::uint32_t>{4, 8, 32}));
  EXPECT_EQ(t->rings.at(0).nodes.size(), rd::most_ring_nodes);
}

TEST(slurm_topology, refuses_what_is_no_line_of_it) {
  EXPECT_TRUE(contains(refusal("SwitchName=a Nodes=n1\nswitch b\n"), "line 2"));
  EXPECT_TRUE(contains(refusal("SwitchName=a Node=n1\n"), "'Node' is no key"));
  EXPECT_TRUE(contains(parse("SwitchName=a Node=n1\n").error().next, "did you mean 'Nodes'?"));
  EXPECT_TRUE(contains(refusal("Nodes=n1\n"), "names no switch"));
  EXPECT_TRUE(contains(refusal("SwitchName=a BlockName=b\n"), "more than one"));
  EXPECT_TRUE(contains(refusal("SwitchName=a SwitchName=b\n"), "given twice"));
  EXPECT_TRUE(contains(refusal("SwitchName= \n"), "a name is empty"));
  EXPECT_TRUE(contains(refusal("BlockName=b Switches=c\n"), "belong to a SwitchName"));
  EXPECT_TRUE(contains(refusal("SwitchName=\"a\n"), "quote"));
  EXPECT_TRUE(contains(refusal("SwitchName=a Nodes=n[1-\n"), "bracket"));
  EXPECT_TRUE(contains(refusal("SwitchName=a[1-2] Nodes=n1\n"), "does not take"));
  EXPECT_TRUE(contains(refusal("SwitchName=" + std::string(65, 'x') + " Nodes=n1\n"), "65 letters"));
  EXPECT_TRUE(contains(refusal("# nothing\n"), "names no switch, block or ring"));
  refusal("Include other.conf\n", errc::unsupported);
}

TEST(slurm_topology, refuses_contradictions_with_both_places) {
  EXPECT_TRUE(contains(refusal("SwitchName=a Nodes=n1\n\nSwitchName=a Nodes=n2\n"),
                       "line 3: the switch 'a' is defined twice, first on line 1"));
  EXPECT_TRUE(contains(refusal("BlockName=a Nodes=n1\nBlockName=a Nodes=n2\n"), "the block 'a' is defined twice"));
  EXPECT_TRUE(contains(refusal("RingName=a Nodes=n1\nRingName=a Nodes=n2\n"), "the ring 'a' is defined twice"));
  EXPECT_TRUE(contains(refusal("SwitchName=top Switches=leaf1,leaf2\nSwitchName=leaf1 Nodes=n1\n"),
                       "'leaf2' below 'top' is not defined"));
  EXPECT_EQ(parse("SwitchName=top Switches=laef1\nSwitchName=leaf1 Nodes=n1\n").error().next, "did you mean 'leaf1'?");
}

TEST(slurm_topology, refuses_a_switch_that_is_its_own_ancestor) {
  EXPECT_TRUE(contains(refusal("SwitchName=a Switches=a\n"), "below itself"));
  const std::string circle = refusal(
      "SwitchName=x Switches=a\nSwitchName=a Switches=b\nSwitchName=b Switches=c,l\nSwitchName=c "
      "Switches=a\nSwitchName=l Nodes=n1\n");
  EXPECT_TRUE(contains(circle, "its own ancestor: a -> b -> c -> a")) << circle;
  EXPECT_TRUE(contains(refusal("SwitchName=a Switches=b,l\nSwitchName=b Switches=a\nSwitchName=l Nodes=n1\n"),
                       "its own ancestor"));
}

TEST(slurm_topology, refuses_block_sizes_that_do_not_double) {
  EXPECT_TRUE(contains(refusal("BlockName=b Nodes=n[1-4]\nBlockSizes=4,12\n"),
                       "12 is not the base size 4 times a power of two"));
  EXPECT_TRUE(contains(refusal("BlockName=b Nodes=n[1-4]\nBlockSizes=4,8,8\n"), "comes after 8"));
  EXPECT_TRUE(contains(refusal("BlockName=b Nodes=n[1-4]\nBlockSizes=4,x\n"), "not a number"));
  EXPECT_TRUE(contains(refusal("BlockName=b Nodes=n[1-4]\nBlockSizes=0\n"), "base size 0"));
  EXPECT_TRUE(contains(refusal("BlockName=b Nodes=n1\nBlockSizes=1\nBlockSizes=2\n"), "given twice"));
  EXPECT_TRUE(parse("BlockName=b Nodes=n[1-30]\nBlockSizes=30,120\n"));
  EXPECT_TRUE(says(*parse("BlockName=b Nodes=n[1-3]\nBlockSizes=4\n"), "fewer than the base size"));
}

TEST(slurm_topology, refuses_rings_that_are_too_long) {
  EXPECT_TRUE(contains(refusal("RingName=r Nodes=n[1-17]\n"), "17 nodes"));
}

TEST(slurm_topology, bounds_all_names_of_a_file_together) {
  EXPECT_TRUE(
      contains(refusal("SwitchName=a Nodes=n[0-1048574]\nSwitchName=b Nodes=m[1-2]\n", errc::unsupported), "line 2"));
}

TEST(slurm_topology, tells_rails_from_mistakes) {
  const auto rails = parse("SwitchName=r0 Nodes=n[1-3]\nSwitchName=r1 Nodes=n[1-3]\n");
  ASSERT_TRUE(rails);
  EXPECT_TRUE(says(*rails, "2 rails"));
  const auto odd = parse("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\n");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(says(*odd, "under several leaves, others under one"));
  EXPECT_TRUE(says(*odd, "1 of 5 nodes: n3 (lines 1, 2)"));
  EXPECT_EQ(odd->findings[0].level, topocoll::severity::warning);
  EXPECT_TRUE(says(*parse("SwitchName=a Nodes=n1,n1\n"), "'n1' is listed twice"));
}

TEST(slurm_topology, tells_a_prefix_that_ends_at_the_comma) {
  const auto t = parse("SwitchName=a Nodes=row-n[1-4],n[7-8]\n");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->switches[0].nodes.back(), "n8");
  EXPECT_TRUE(says(*t, "begin with 'n', not with 'row-n'"));
  EXPECT_TRUE(parse("SwitchName=a Nodes=an[1-4],n1\n")->findings.empty());
}

TEST(slurm_topology, tells_switches_with_nothing_below) {
  EXPECT_TRUE(says(*parse("SwitchName=a\n"), "neither nodes nor switches"));
}

TEST(slurm_topology, takes_lists_of_port_guids_with_neighbours) {
  const auto t = parse(
      "SwitchName=l1 Nodes=0x155d01,0x155D02\nSwitchName=l2 Nodes=0x155d03\nSwitchName=s1 Switches=l1,l2,c\n"
      "SwitchName=l3 Nodes=0x155d04\nSwitchName=s2 Switches=l3,c\nSwitchName=c Switches=s1,s2\n");
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_TRUE(t->nodes_are_ports);
  EXPECT_TRUE(t->lists_neighbours);
  EXPECT_EQ(rd::slurm_tiers(*t), (std::vector<std::uint32_t>{0, 0, 1, 0, 1, 2}));
  EXPECT_FALSE(parse("SwitchName=l Nodes=0x155d01\nSwitchName=s Switches=l\n")->lists_neighbours);
}

TEST(slurm_topology, handles_ten_thousand_switches) {
  std::string text;
  for (int i = 0; i + 1 < 10000; ++i)
    text += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i + 1) + "\n";
  const auto deep = parse(text + "SwitchName=s9999 Nodes=n1\n");
  ASSERT_TRUE(deep) << deep.error().message();
  EXPECT_EQ(rd::slurm_tiers(*deep)[0], 9999U);
  EXPECT_TRUE(contains(refusal(text + "SwitchName=s9999 Switches=s0\n"), "its own ancestor"));
}

TEST(slurm_topology, is_known_by_its_first_line) {
  EXPECT_TRUE(rd::looks_like_slurm_topology("# c\n\n switchname=a Nodes=b"));
  EXPECT_TRUE(rd::looks_like_slurm_topology("Nodes=b SwitchName = a"));
  EXPECT_TRUE(rd::looks_like_slurm_topology("BlockSizes=4"));
  for (const char* other : {"", "SwitchName", "switches:\n  a: 1\n", "GPU0 GPU1", "vendid=0x2c9\nswitchguid=0x1",
                            "- topology: x", "host: 0x1", "NotSwitchName=a", "{\"SwitchName=\": 1}\nSwitchName=a"}) {
    EXPECT_FALSE(rd::looks_like_slurm_topology(other)) << other;
  }
}
