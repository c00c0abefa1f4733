// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/io/xml.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using topocoll::errc;

namespace {
std::string refusal(const std::string& text, const io::xml_limits& limits = {}) {
  const auto x = io::parse_xml(text, "f.xml", limits);
  return x ? "" : x.error().what;
}
}  // namespace

TEST(parse_xml, keeps_names_attributes_children_and_lines_in_order) {
  const auto x = io::parse_xml(
      "<?xml version=\"1.0\"?>\n<!-- hi -->\n<a z=\"1\" b='&lt;2&gt;'>\n text <c/>\n<d e=\"\"/></a>\n", "f.xml");
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_EQ(x->name, "a");
  EXPECT_EQ(x->line, 3U);
  ASSERT_EQ(x->attributes.size(), 2U);
  EXPECT_EQ(x->attributes[0].name, "z");
  EXPECT_EQ(*x->find("b"), "<2>");
  EXPECT_EQ(x->find("q"), nullptr);
  ASSERT_EQ(x->children.size(), 2U);
  EXPECT_EQ(x->children[0].name, "c");
  EXPECT_EQ(x->children[0].line, 4U);
  EXPECT_EQ(x->children[1].line, 5U);
  EXPECT_EQ(*x->children[1].find("e"), "");
}

TEST(parse_xml, accepts_a_byte_order_mark_and_trailing_comments) {
  EXPECT_EQ(refusal("\xef\xbb\xbf<a/>"), "");
  EXPECT_EQ(refusal("<a/>\n<!-- </a> -->\n"), "");
}

TEST(parse_xml, names_the_line_where_a_text_was_cut_off) {
  EXPECT_EQ(refusal("<a>\n<b>\n<c>\n"),
            "f.xml line 3: the text is cut off; the last element that began is <c> on line 3");
  EXPECT_EQ(refusal("<a>\n<b/>\n<c>\n<d></d>").find("f.xml line 4: the text is cut off after a closing tag"), 0U);
  EXPECT_EQ(refusal("<a>\n<b x=\"1").find("f.xml line 2: "), 0U);
  EXPECT_EQ(refusal("<a>\n<b x=\"1\" ").find("f.xml line 2: "), 0U);
  EXPECT_EQ(refusal("<a>\n</").find("f.xml line 2: "), 0U);
}

TEST(parse_xml, refuses_every_prefix_of_a_document_but_the_whole) {
  const std::string whole =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"><gpu dev=\"0\"/></pci></cpu></system>";
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
  EXPECT_EQ(refusal(whole), "");
}

TEST(parse_xml, refuses_what_is_not_one_document) {
  EXPECT_EQ(refusal(""), "f.xml is empty");
  EXPECT_EQ(refusal(" \n\t"), "f.xml is empty");
  EXPECT_NE(refusal("hello").find("does not begin with '<'"), std::string::npos);
  EXPECT_NE(refusal("<a/>\nx").find("f.xml line 2: text outside"), std::string::npos);
  EXPECT_NE(refusal("<a/>\n<b/>").find("f.xml line 2: a second root element <b>"), std::string::npos);
  EXPECT_NE(refusal("<!-- only -->").find("no element"), std::string::npos);
  EXPECT_NE(refusal("<a></b>"), "");
  EXPECT_NE(refusal(std::string("<a>\0</a>", 8)).find("NUL"), std::string::npos);
  EXPECT_NE(refusal("\xff\xfe<\0a\0/\0>\0"), "");
}

TEST(parse_xml, refuses_an_attribute_given_twice) {
  EXPECT_EQ(refusal("<a>\n<b x=\"1\" y=\"2\" x=\"3\"/></a>"), "f.xml line 2: <b> has the attribute 'x' twice");
}

TEST(parse_xml, does_not_expand_entities_of_its_own) {
  std::string bomb = "<!DOCTYPE a [<!ENTITY e0 \"ha\">";
  for (int i = 1; i < 40; ++i)
    bomb += "<!ENTITY e" + std::to_string(i) + " \"&e" + std::to_string(i - 1) + ";&e" + std::to_string(i - 1) + ";\">";
  bomb += "]><a x=\"&e39;\"/>";
  const auto x = io::parse_xml(bomb, "f.xml");
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_EQ(*x->find("x"), "&e39;");
}

TEST(parse_xml, keeps_to_its_limits) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "<a>";
    for (int i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_EQ(refusal(nested(200)), "");
  EXPECT_NE(refusal(nested(201)).find("deeper than 200"), std::string::npos);
  EXPECT_NE(refusal(nested(100000)).find("deeper than 200"), std::string::npos);
  EXPECT_NE(refusal("<a>" + std::string(40, ' ') + "</a>", {.text_bytes = 40}).find("47 bytes"), std::string::npos);
  std::string wide = "<a>";
  for (int i = 0; i < 20; ++i) wide += "<b/>";
  wide += "</a>";
  EXPECT_EQ(refusal(wide, {.elements = 21}), "");
  EXPECT_NE(refusal(wide, {.elements = 20}), "");
  EXPECT_NE(refusal(wide, {.elements = 5}), "");
  std::string many = "<a";
  for (int i = 0; i < 300; ++i) many += " x" + std::to_string(i) + "=\"\"";
  EXPECT_NE(refusal(many + "/>").find("256 attributes"), std::string::npos);
}
