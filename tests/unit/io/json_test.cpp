// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <topocoll/io/json.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using topocoll::errc;

namespace {

std::string failure_of(const std::string& text) {
  const auto read = io::parse_json(text, "a.json");
  return read ? "" : read.error().what;
}

io::json must_parse(const std::string& text) {
  auto read = io::parse_json(text, "a.json");
  EXPECT_TRUE(read) << text << ": " << (read ? "" : read.error().what);
  return read ? *read : io::json{};
}

}  // namespace

TEST(parse_json, keeps_the_order_of_fields) {
  EXPECT_EQ(must_parse(R"({"z":1,"a":[true,null,"x"],"m":{}})").dump(), R"({"z":1,"a":[true,null,"x"],"m":{}})");
}

TEST(parse_json, names_line_and_column_of_a_mistake) {
  EXPECT_EQ(failure_of("{\n  \"a\": 1,\n  \"b\": oops\n}"), "a.json:3:8: not JSON: unexpected '\"b\": o'");
}

TEST(parse_json, says_when_the_text_ends_too_early) {
  EXPECT_EQ(failure_of("{\"a\": [1, 2"), "a.json:1:12: not JSON: the text ends too early");
  EXPECT_EQ(failure_of("\"abc"), "a.json:1:5: not JSON: the text ends too early");
}

TEST(parse_json, says_when_there_is_no_text) { EXPECT_EQ(failure_of(""), "a.json:1:1: not JSON: the text is empty"); }

TEST(parse_json, refuses_what_follows_the_value) {
  EXPECT_NE(failure_of("{} {}").find("a.json:1:4"), std::string::npos);
}

TEST(parse_json, refuses_a_number_beyond_double) {
  EXPECT_EQ(failure_of("[1e999]"), "a.json:1:6: not JSON: the number 1e999 is too large");
}

TEST(parse_json, refuses_comments_and_bad_utf8) {
  EXPECT_NE(failure_of("// hello\n1"), "");
  EXPECT_NE(failure_of("\"\xff\""), "");
}

TEST(parse_json, refuses_a_name_that_appears_twice_and_says_where) {
  EXPECT_EQ(failure_of(R"({"nodes":[{"key":"a"},{"key":"b","x":0,"key":"c"}]})"),
            "a.json: /nodes/1: the name 'key' appears twice in one object");
  EXPECT_EQ(failure_of(R"({"a":1,"a":1})"), "a.json: the name 'a' appears twice in one object");
}

TEST(parse_json, takes_one_name_in_two_objects) { EXPECT_EQ(failure_of(R"([{"a":1},{"a":{"a":2}}])"), ""); }

TEST(parse_json, refuses_what_is_nested_too_deep) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(io::parse_json(nested(7), "a.json", 7));
  const auto refused = io::parse_json(nested(8), "a.json", 7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  EXPECT_NE(refused.error().what.find("more than 7 deep"), std::string::npos);
  EXPECT_FALSE(io::parse_json(std::string(10'000'000, '['), "a.json"));  // a stack of that depth would not survive
}

TEST(parse_json, reads_a_wide_object_in_less_than_quadratic_time) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += '"' + std::to_string(i) + "\":0,";
  text += "\"last\":1}";
  EXPECT_EQ(must_parse(text).size(), 200'001U);  // quadratic would be minutes
}

TEST(to_text, gives_back_every_double_exactly) {
  for (const double value : {0.1, 1.0 / 3, 63.015384615384615e9, std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::denorm_min(), -0.0})
    EXPECT_EQ(must_parse(io::to_text(io::json::array({value})))[0].get<double>(), value);
}

TEST(to_text, replaces_what_is_not_utf8) { EXPECT_EQ(io::to_text(io::json("a\xff")), "\"a\xEF\xBF\xBD\"\n"); }

template <class Place>
concept can_be_continued = requires(Place&& place) {
  std::forward<Place>(place) / std::size_t{1};
};
static_assert(can_be_continued<const io::json_place&>);
static_assert(!can_be_continued<io::json_place>, "a place in a temporary would refer to nothing");

TEST(json_place, is_a_pointer_with_escapes) {
  const io::json_place top("a.json");
  const io::json_place nodes = top / "no/d~es";
  EXPECT_EQ(top.text(), "a.json");
  EXPECT_EQ((nodes / 3).text(), "a.json: /no~1d~0es/3");
}

TEST(read_field, gives_the_value_as_its_type) {
  const io::json o = must_parse(R"({"b":true,"u":4294967295,"i":-5,"d":2.5,"w":2,"s":"x"})");
  const io::json_place at("a.json");
  EXPECT_EQ(*io::read_field<bool>(o, "b", at), true);
  EXPECT_EQ(*io::read_field<std::uint32_t>(o, "u", at), 4294967295U);
  EXPECT_EQ(*io::read_field<std::int64_t>(o, "i", at), -5);
  EXPECT_EQ(*io::read_field<double>(o, "d", at), 2.5);
  EXPECT_EQ(*io::read_field<double>(o, "w", at), 2.0);
  EXPECT_EQ(*io::read_field<std::string>(o, "s", at), "x");
}

TEST(read_field, names_the_place_and_both_types) {
  const io::json o = must_parse(R"({"u":4294967296,"i":-5,"d":2.5,"n":null})");
  const io::json_place top("a.json");
  const io::json_place links = top / "links";
  const io::json_place at = links / 2;
  EXPECT_EQ(io::read_field<std::uint32_t>(o, "u", at).error().what,
            "a.json: /links/2/u is 4294967296, more than 4294967295");
  EXPECT_EQ(io::read_field<std::uint32_t>(o, "i", at).error().what,
            "a.json: /links/2/i is number, not a whole number that is not negative");
  EXPECT_EQ(io::read_field<std::int64_t>(o, "d", at).error().what, "a.json: /links/2/d is number, not a whole number");
  EXPECT_EQ(io::read_field<std::string>(o, "d", at).error().what, "a.json: /links/2/d is number, not a text");
  EXPECT_EQ(io::read_field<bool>(o, "n", at).error().what, "a.json: /links/2 has no field 'n'");
  EXPECT_EQ(io::read_field<bool>(must_parse("[1]"), "x", at).error().what, "a.json: /links/2 is array, not an object");
}

TEST(read_optional, is_empty_for_absent_and_null_but_refuses_another_type) {
  const io::json o = must_parse(R"({"n":null,"s":"x"})");
  const io::json_place at("a.json");
  EXPECT_FALSE(io::read_optional<double>(o, "absent", at)->has_value());
  EXPECT_FALSE(io::read_optional<double>(o, "n", at)->has_value());
  EXPECT_EQ(**io::read_optional<std::string>(o, "s", at), "x");
  EXPECT_FALSE(io::read_optional<double>(o, "s", at));
}

TEST(read_array, and_read_object_refuse_each_other) {
  const io::json o = must_parse(R"({"a":[],"o":{}})");
  const io::json_place at("a.json");
  EXPECT_TRUE(io::read_array(o, "a", at));
  EXPECT_TRUE(io::read_object(o, "o", at));
  EXPECT_EQ(io::read_array(o, "o", at).error().what, "a.json: /o is object, not an array");
  EXPECT_EQ(io::read_object(o, "a", at).error().what, "a.json: /a is array, not an object");
  EXPECT_EQ(io::read_array(o, "x", at).error().what, "a.json has no field 'x'");
}

TEST(read_schema, takes_older_versions_and_refuses_newer_ones_with_both_numbers) {
  const io::json_place at("a.json");
  EXPECT_EQ(*io::read_schema(must_parse(R"({"schema":"topocoll.x/2"})"), "topocoll.x", 3, at), 2U);
  const auto newer = io::read_schema(must_parse(R"({"schema":"topocoll.x/4"})"), "topocoll.x", 3, at);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, errc::unsupported);
  EXPECT_EQ(newer.error().what, "a.json: written in version 4 of topocoll.x, but this program reads up to version 3");
}

TEST(read_schema, refuses_other_schemas) {
  const io::json_place at("a.json");
  for (const char* text :
       {R"({"schema":"topocoll.y/1"})", R"({"schema":"topocoll.x/"})", R"({"schema":"topocoll.x/0"})",
        R"({"schema":"topocoll.x/1.5"})", R"({"schema":"topocoll.x/99999999999"})", R"({"schema":1})",
        R"({"schema":""})", R"({})", R"([])"})
    EXPECT_FALSE(io::read_schema(must_parse(text), "topocoll.x", 1, at)) << text;
}
