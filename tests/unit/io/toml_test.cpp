// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/io/toml.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using io::value_kind;
using topocoll::errc;

namespace {

topocoll::result<io::value> parse(const std::string& text, const io::toml_limits& limits = {}) {
  return io::parse_toml(text, "t.toml", limits);
}

}  // namespace

TEST(toml, keeps_order_kinds_and_lines) {
  const auto v = parse("z = 'x'\na = [1, 2.5, true]\n\n[[hosts]]\nn = 3\n[[hosts]]\nn = 4\n[f]\ng.h = -7\n");
  ASSERT_TRUE(v) << v.error().message();
  ASSERT_EQ(v->items.size(), 4U);
  EXPECT_EQ(v->items[0].key, "z");
  EXPECT_EQ(v->items[0].text, "x");
  EXPECT_EQ(v->items[1].key, "a");
  ASSERT_EQ(v->items[1].items.size(), 3U);
  EXPECT_EQ(v->items[1].items[0].text, "1");
  EXPECT_EQ(v->items[1].items[1].text, "2.5");
  EXPECT_EQ(v->items[1].items[2].kind, value_kind::boolean);
  EXPECT_EQ(v->items[1].items[2].text, "true");
  const io::value* hosts = v->find("hosts");
  ASSERT_EQ(hosts->items.size(), 2U);
  EXPECT_EQ(hosts->items[1].find("n")->text, "4");
  EXPECT_EQ(hosts->items[1].find("n")->line, 7U);
  EXPECT_EQ(v->find("f")->find("g")->find("h")->text, "-7");
}

TEST(toml, of_nothing_is_an_empty_map) {
  EXPECT_EQ(parse("")->kind, value_kind::map);
  EXPECT_TRUE(parse("\xef\xbb\xbf# only a comment\r\n")->items.empty());
}

TEST(toml, says_the_line_of_what_is_wrong) {
  for (const char* text : {"[=x]\n", "[ \n", "[[=", "[\rx]\n", "a = [}]\n", "a = {]}\n", "a = 1]\n", "a = 1\nb = \n",
                           "a = 1\na = 2\n", "a = 1\n[a]\nb = 2\n", "a = \"x\n"}) {
    const auto v = parse(text);
    ASSERT_FALSE(v) << text;
    EXPECT_EQ(v.error().code, errc::malformed_input);
    EXPECT_EQ(v.error().what.rfind("t.toml line ", 0), 0U) << v.error().what;
  }
  EXPECT_EQ(parse("a = inf").error().code, errc::unsupported);
}

TEST(toml, refuses_deep_nesting) {
  std::string chain = "a";
  for (int i = 0; i < 100000; ++i) chain += ".a";
  EXPECT_EQ(parse(chain + " = 1").error().code, errc::unsupported);
  EXPECT_FALSE(parse("a = " + std::string(100000, '[')));
  EXPECT_EQ(parse("a = " + std::string(100, '[') + std::string(100, ']')).error().code, errc::unsupported);
  EXPECT_TRUE(parse(
      "a.b.c.d = 1 # ..............................\nb = 'x. y. z. x. y. z. x. y. z. x. y. z. x y. z. x. y. z.'"));
  EXPECT_EQ(parse("a = 1", {.text_bytes = 4}).error().code, errc::unsupported);
}

TEST(toml, takes_arrays_and_texts_over_several_lines) {
  const auto v = parse(
      "a = [\n  [1, 2], # [=\n  [\n], \"[=\", \n]\nb = \"\"\"\n[=\n\\\"\"\"\"\"\nc = '''\n[=\n'''\n[t]\nd = {x = {y = "
      "[{}]}}\n");
  ASSERT_TRUE(v) << v.error().message();
  EXPECT_EQ(v->find("a")->items.size(), 3U);
  EXPECT_EQ(v->find("b")->text, "[=\n\"\"");
  EXPECT_EQ(v->find("c")->text, "[=\n");
  EXPECT_EQ(v->find("t")->find("d")->find("x")->find("y")->items.size(), 1U);
}
