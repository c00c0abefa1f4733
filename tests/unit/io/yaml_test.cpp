// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/io/yaml.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using io::value_kind;
using topocoll::errc;

namespace {

topocoll::result<io::value> parse(const std::string& text, const io::yaml_limits& limits = {}) {
  return io::parse_yaml(text, "t.yaml", limits);
}

}  // namespace

TEST(yaml, keeps_order_kinds_and_lines) {
  const auto v = parse("# comment\n---\nb: 1\na:\n  - x\n  - {k: 'y', n: ~}\nempty:\nblock: |\n  two\n  lines\n");
  ASSERT_TRUE(v) << v.error().message();
  ASSERT_EQ(v->kind, value_kind::map);
  ASSERT_EQ(v->items.size(), 4U);
  EXPECT_EQ(v->items[0].key, "b");
  EXPECT_EQ(v->items[0].text, "1");
  EXPECT_FALSE(v->items[0].quoted);
  EXPECT_EQ(v->items[0].line, 3U);
  const io::value* a = v->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->line, 4U);
  ASSERT_EQ(a->items.size(), 2U);
  EXPECT_EQ(a->items[0].text, "x");
  EXPECT_EQ(a->items[0].line, 5U);
  EXPECT_TRUE(a->items[1].find("k")->quoted);
  EXPECT_EQ(a->items[1].find("n")->kind, value_kind::none);
  EXPECT_EQ(v->find("empty")->kind, value_kind::none);
  EXPECT_EQ(v->find("block")->text, "two\nlines\n");
  EXPECT_EQ(v->find("c"), nullptr);
}

TEST(yaml, reads_texts_from_other_systems) {
  EXPECT_EQ(parse("\xef\xbb\xbf"
                  "a: 1\r\nb: 2")
                ->find("b")
                ->text,
            "2");
  EXPECT_EQ(parse("just a text")->text, "just a text");
}

TEST(yaml, repeats_what_an_alias_stands_for) {
  const auto v = parse("a: &x [1, {b: 2}]\nc: *x\n");
  ASSERT_TRUE(v) << v.error().message();
  EXPECT_EQ(v->find("c")->items.at(1).find("b")->text, "2");
  EXPECT_EQ(v->find("c")->line, 2U);
  EXPECT_EQ(parse("a: *x").error().code, errc::malformed_input);
  EXPECT_EQ(parse("a: &x [*x]").error().code, errc::malformed_input);
}

TEST(yaml, refuses_what_grows_without_bound) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", " : "") + before;
    bomb += "]\n";
  }
  const auto v = parse(bomb);
  ASSERT_FALSE(v);
  EXPECT_EQ(v.error().code, errc::unsupported);
  EXPECT_EQ(parse("[1, 2, 3]", {.values = 3}).error().code, errc::unsupported);
  EXPECT_TRUE(parse("[1, 2, 3]", {.values = 4}));
  EXPECT_EQ(parse("[1]", {.text_bytes = 2}).error().code, errc::unsupported);
}

TEST(yaml, refuses_deep_nesting) {
  EXPECT_EQ(parse(std::string(100000, '[')).error().code, errc::unsupported);
  EXPECT_TRUE(parse("[[[x]]]", {.depth = 3}));
  EXPECT_EQ(parse("[[[[x]]]]", {.depth = 3}).error().code, errc::unsupported);
  EXPECT_EQ(parse("a: &d [[x]]\nb: [[*d]]", {.depth = 4}).error().code, errc::unsupported);
}

TEST(yaml, says_the_line_of_what_is_wrong) {
  for (const char* text :
       {"a: 1\nb: [\n", "a: 1\n\tb: 2\n", "a: 1\na: 2\n", "x: y\n? [k]\n: v\n", "a: 1\n...\n---\nb: 2\n", "a: \"\n"}) {
    const auto v = parse(text);
    ASSERT_FALSE(v) << text;
    EXPECT_EQ(v.error().code, errc::malformed_input) << text;
    EXPECT_EQ(v.error().what.rfind("t.yaml line ", 0), 0U) << v.error().what;
  }
  EXPECT_NE(parse("a: 1\nb: 2\na: 3\n").error().what.find("line 3: the key 'a' appears twice, first on line 1"),
            std::string::npos);
}

TEST(yaml, of_nothing_is_refused) {
  for (const char* text : {"", "\n\n", "# only a comment\n"}) {
    EXPECT_EQ(parse(text).error().code, errc::malformed_input) << text;
  }
}

TEST(yaml, takes_a_text_that_is_nothing_at_all) {
  const auto nothing = topocoll::io::parse_yaml({}, "n.yaml");
  EXPECT_TRUE(nothing || nothing.error().what.rfind("n.yaml", 0) == 0);
}
