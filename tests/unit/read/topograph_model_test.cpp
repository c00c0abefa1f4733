// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/io/yaml.hpp>
#include <topocoll/read/topograph_model.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;
using names = std::vector<std::string>;

namespace {

topocoll::result<rd::topograph_model> parse(const std::string& text) {
  const auto root = topocoll::io::parse_yaml(text, "m.yaml");
  EXPECT_TRUE(root) << (root ? "" : root.error().what);
  if (!root) return root.error();
  return rd::topograph_model_of(*root, "m.yaml");
}

}  // namespace

TEST(topograph_model, puts_the_nodes_of_blocks_below_their_leaves) {
  const auto m = parse(
      "switches:\n  top:\n    labels: {zone: a}\n    switches: [mid]\n  mid:\n    switches:\n    - leaf-[1-2]\n"
      "blocks:\n- switch: leaf-1\n  nodes: [\"n[1-2]\", n5]\n  annotations:\n    x.test/domain: nvl1\n    "
      "x.test/sub-domain: rack9\n"
      "- switch: leaf-2\n  nodes:\n  - n[3-4]\n- switch: leaf-1\n  nodes: n6\n");
  ASSERT_TRUE(m) << m.error().message();
  ASSERT_EQ(m->tree.switches.size(), 4U);
  EXPECT_EQ(m->tree.switches[2].name, "leaf-1");
  EXPECT_EQ(m->tree.switches[2].nodes, (names{"n1", "n2", "n5", "n6"}));
  EXPECT_EQ(m->tree.switches[3].nodes, (names{"n3", "n4"}));
  EXPECT_EQ(rd::slurm_tiers(m->tree), (std::vector<std::uint32_t>{2, 1, 0, 0}));
  ASSERT_EQ(m->blocks.size(), 3U);
  EXPECT_EQ(m->blocks[0].domain, "nvl1");
  EXPECT_EQ(m->blocks[0].sub_domain, "rack9");
  EXPECT_EQ(m->blocks[1].domain, "");
}

TEST(topograph_model, refuses_another_shape_with_the_line) {
  for (const char* text :
       {"a\n", "switches: {}\n", "blocks: []\n", "switches: [a]\nblocks: []\n", "switches: {}\nblocks: {}\n",
        "switches: {}\nblocks:\n- nodes: n1\n", "switches: {}\nblocks:\n- switch: a\n", "switches: {}\nblocks:\n- a\n",
        "switches: {a: 1}\nblocks: []\n", "switches: {a: {switches: [b]}}\nblocks: []\n",
        "switches: {a: {switches: [a]}}\nblocks: []\n", "switches: {}\nblocks:\n- switch: a\n  nodes: [[n1]]\n",
        "switches: {}\nblocks:\n- switch: a\n  nodes: \"n[\"\n"}) {
    const auto m = parse(text);
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, errc::malformed_input) << text;
    EXPECT_EQ(m.error().what.rfind("m.yaml", 0), 0U) << m.error().what;
  }
}

TEST(topograph_model, tells_what_it_passes_over) {
  const auto m = parse("switches: {}\nblocks:\n- switch: a\n  nodes: n1\n  color: red\nmore: 1\n");
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->tree.findings.size(), 2U);
}

TEST(topograph_model, is_known_by_its_two_keys) {
  EXPECT_TRUE(rd::looks_like_topograph_model("# c\nswitches:\n  a:\nblocks:\n- switch: a\n"));
  EXPECT_TRUE(rd::looks_like_topograph_model("blocks:\r\n- switch: a\r\nswitches:\r\n  a:\r\n"));
  for (const char* text : {"", "switches:\n", "blocks:\n", "x: 1\nswitches:\nblocks:\n", "- topology: a\n"}) {
    EXPECT_FALSE(rd::looks_like_topograph_model(text)) << text;
  }
}
