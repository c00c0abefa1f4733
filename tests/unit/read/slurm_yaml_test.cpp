// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/io/yaml.hpp>
#include <topocoll/read/slurm_yaml.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;
using names = std::vector<std::string>;

namespace {

topocoll::result<std::vector<rd::slurm_topology>> parse(const std::string& text) {
  const auto root = topocoll::io::parse_yaml(text, "t.yaml");
  EXPECT_TRUE(root) << (root ? "" : root.error().what);
  if (!root) return root.error();
  return rd::slurm_yaml_of(*root, "t.yaml");
}

/// What is said of a text that breaks a rule; it names the line.
std::string refusal(const std::string& text) {
  const auto t = parse(text);
  EXPECT_FALSE(t) << text;
  if (t) return {};
  EXPECT_EQ(t.error().code, errc::malformed_input) << t.error().what;
  EXPECT_EQ(t.error().what.rfind("t.yaml line ", 0), 0U) << t.error().what;
  return t.error().what;
}

void refused(const std::string& text, const std::string& why) {
  const std::string what = refusal(text);
  EXPECT_NE(what.find(why), std::string::npos) << "'" << what << "' does not say: " << why;
}

const std::string head = "- topology: t\n  cluster_default: true\n";

}  // namespace

TEST(slurm_yaml, reads_every_kind) {
  const auto t = parse(
      "---\n# all\n"
      "- topology: wires\n  cluster_default: True\n  tree:\n    switches:\n      - switch: top\n        children: "
      "s[1-2]\n"
      "      - switch: s1\n        nodes: n[01-02]\n      - {switch: s2, nodes: n03}\n"
      "- topology: racks\n  block:\n    block_sizes: [2, 4]\n    blocks:\n      - block: b1\n        nodes: n[1-2]\n   "
      "   - block: b2\n        nodes: n[3-4]\n"
      "- topology: open\n  flat: true\n  ring:\n"
      "- topology: loops\n  ring:\n    rings:\n      - ring: r\n        nodes: n[1-16]\n"
      "- topology: cube\n  torus3d:\n    toruses:\n      - name: pod\n        dims: {x: 2, y: 2, z: 3}\n        nodes: "
      "n[1-12]\n        placements:\n          - dims: {x: 2, y: 1, z: 1}\n");
  ASSERT_TRUE(t) << t.error().message();
  ASSERT_EQ(t->size(), 5U);
  EXPECT_TRUE((*t)[0].is_default);
  EXPECT_EQ((*t)[0].switches[0].children, (names{"s1", "s2"}));
  EXPECT_EQ((*t)[0].switches[1].nodes, (names{"n01", "n02"}));
  EXPECT_EQ((*t)[0].switches[2].line, 11U);
  EXPECT_EQ((*t)[1].block_sizes, (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ((*t)[1].blocks[1].name, "b2");
  EXPECT_FALSE((*t)[1].is_default);
  EXPECT_TRUE((*t)[2].flat);
  EXPECT_EQ((*t)[3].rings[0].nodes.size(), 16U);
  EXPECT_EQ((*t)[4].toruses[0].z, 3U);
  EXPECT_EQ((*t)[4].toruses[0].nodes.size(), 12U);
}

TEST(slurm_yaml, takes_one_entry_for_a_list_of_one) {
  const auto t = parse("topology: t\ntree:\n  switches:\n    switch: s\n    nodes: n[1-2]\n");
  ASSERT_TRUE(t) << t.error().message();
  EXPECT_EQ((*t)[0].switches[0].nodes.size(), 2U);
}

TEST(slurm_yaml, refuses_another_shape) {
  refused("topology/tree\n", "is a text, not a list of topologies");
  refused("- a\n- b\n", "not a map");
  refused("[]\n", "empty");
  refused("- tree:\n    switches: []\n", "no 'topology'");
  refused("- cluster_default: true\n  topology: t\n  flat: true\n", "not the first key");
  refused("- topology: t\n  flat: maybe\n", "neither true nor false");
  refused("- topology: t\n  cluster_default: 1\n  flat: true\n", "neither true nor false");
  refused("- topology: t\n", "of no kind");
  refused("- topology: t\n  flat: false\n", "of no kind");
  refused("- topology: t\n  tre: {}\n", "'tre' is no key");
  refused("- topology: t\n  flat: true\n- topology: t\n  flat: true\n", "defined twice");
}

TEST(slurm_yaml, refuses_two_kinds_at_once) {
  const std::string block = "  block:\n    block_sizes: [4]\n    blocks:\n      - block: b1\n        nodes: n[1-4]\n";
  refused(head + block + "  flat: true\n", "'block' and 'flat'");
  refused(head + block + "  tree:\n    switches:\n      - switch: s\n        nodes: n1\n", "'block' and 'tree'");
  EXPECT_TRUE(parse(head + block + "  flat: false\n"));
}

TEST(slurm_yaml, refuses_lists_that_are_none) {
  refused(head + "  block:\n    block_sizes: [4]\n    blocks: \"b1=n[1-4]\"\n",
          "line 5: 'blocks' is a text, not a list of blocks");
  refused(head + "  ring:\n    rings: r1\n", "'rings' is a text");
  refused(head + "  tree:\n    switches: s1\n", "'switches' is a text");
  refused(head + "  tree: s1\n", "not a map");
  refused(head + "  tree: {}\n", "has no 'switches'");
  refused(head + "  block:\n    block_sizes: {a: 1}\n    blocks: []\n", "not a list of numbers");
  refused(head +
              "  torus3d:\n    toruses:\n      - name: p\n        dims: {x: 4, y: 2, z: 2}\n        regions: "
              "\"r1=n[1-8]\"\n",
          "'regions' is a text, not a list of regions");
}

TEST(slurm_yaml, refuses_numbers_that_do_not_fit) {
  refused(head + "  block:\n    block_sizes: [4, 6]\n    blocks:\n      - block: b\n        nodes: n[1-4]\n",
          "power of two");
  refused(head + "  block:\n    block_sizes: [x]\n    blocks: []\n", "a block size is not a number");
  refused(head + "  ring:\n    rings:\n      - ring: r\n        nodes: n[1-17]\n", "17 nodes");
  const std::string torus =
      head +
      "  torus3d:\n    toruses:\n      - name: p\n        dims:\n          x: 4\n          y: 4\n          z: 2\n";
  refused(torus + "        nodes: n[1-8]\n", "4 x 4 x 2 places, but 8 nodes");
  refused(torus + "        nodes: n[1-32]\n        placements:\n          - dims: {x: 5, y: 1, z: 1}\n",
          "larger than the torus");
  refused(torus + "        nodes: n[1-32]\n        regions:\n          - nodes: n[1-32]\n", "exclude each other");
  EXPECT_TRUE(parse(torus + "        regions:\n          - name: r1\n            nodes: n[1-16]\n          - name: "
                            "r2\n            nodes: n[17-32]\n"));
  refused(head + "  torus3d:\n    toruses:\n      - name: p\n        dims: {x: 4, y: 0, z: 2}\n        nodes: n1\n",
          "a side of a torus");
  refused(head +
              "  torus3d:\n    toruses:\n      - name: p\n        dims: {x: 1048576, y: 1048576, z: 1048576}\n        "
              "nodes: n1\n",
          "places");
  refused(head + "  torus3d:\n    toruses:\n      - name: p\n        nodes: n1\n", "no 'dims'");
}

TEST(slurm_yaml, refuses_trees_that_are_none) {
  const std::string tree = head + "  tree:\n    switches:\n";
  refused(tree + "      - nodes: n1\n", "no 'switch'");
  refused(tree + "      - switch: a\n        node: n1\n", "'node' is no key of switches");
  refused(tree + "      - switch: a\n        nodes: n1\n        children: b\n      - switch: b\n",
          "exclude each other");
  refused(tree + "      - switch: a\n        nodes: n1\n      - switch: a\n        nodes: n2\n", "defined twice");
  refused(tree + "      - switch: a\n        children: b\n", "'b' below 'a' is not defined");
  refused(tree + "      - switch: a\n        children: b\n      - switch: b\n        children: a\n",
          "its own ancestor");
  refused(tree + "      - switch: a\n        nodes: [n1, n2]\n", "'nodes' is a list, not a host list");
  refused(tree + "      - switch: a\n        nodes: n[1-\n", "bracket");
}

TEST(slurm_yaml, is_known_by_its_first_key) {
  for (const char* text :
       {"- topology: a\n", "---\n# c\n-   topology : a", "topology: a", "-\n  topology: x\n", "topology/tree\n"}) {
    EXPECT_TRUE(rd::looks_like_slurm_yaml(text)) << text;
  }
  for (const char* text :
       {"", "switches:\n", "version: 1\n", "<topology>", "{\"topology\": 1}", "- name: x\n", "topologyx: 1"}) {
    EXPECT_FALSE(rd::looks_like_slurm_yaml(text)) << text;
  }
}
