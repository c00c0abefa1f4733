// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <topocoll/read/number.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;

TEST(whole_number, reads_decimal_and_hexadecimal_with_blanks_around) {
  EXPECT_EQ(rd::whole_number("17"), 17);
  EXPECT_EQ(rd::whole_number(" -1\n"), -1);
  EXPECT_EQ(rd::whole_number("0x1F"), 31);
  EXPECT_EQ(rd::whole_number("+5"), 5);
  EXPECT_EQ(rd::whole_number("9223372036854775807"), INT64_MAX);
}

TEST(whole_number, refuses_what_is_not_all_number) {
  for (const char* text :
       {"", " ", "-", "0x", "1.5", "12abc", "1 2", "--1", "9223372036854775808", "99999999999999999999999", "0xg"})
    EXPECT_FALSE(rd::whole_number(text)) << text;
}

TEST(small_number, keeps_to_its_limit) {
  EXPECT_EQ(rd::small_number("256", 256), 256U);
  EXPECT_FALSE(rd::small_number("257", 256));
  EXPECT_FALSE(rd::small_number("-1", 256));
  EXPECT_EQ(rd::small_number("4294967295"), UINT32_MAX);
  EXPECT_FALSE(rd::small_number("4294967296"));
}

TEST(leading_number, stops_where_the_number_stops) {
  EXPECT_EQ(rd::leading_number("2.5 GT/s PCIe"), 2.5);
  EXPECT_EQ(rd::leading_number("\t400 Gb/sec"), 400);
  EXPECT_EQ(rd::leading_number("1.2.3"), 1.2);
  EXPECT_FALSE(rd::leading_number("Unknown"));
  EXPECT_FALSE(rd::leading_number(""));
  EXPECT_FALSE(rd::leading_number("."));
  EXPECT_FALSE(rd::leading_number("-3"));
  EXPECT_FALSE(rd::leading_number(std::string(400, '9')));
}

TEST(trimmed, drops_blanks_and_zero_bytes_at_both_ends) {
  using namespace std::string_view_literals;
  EXPECT_EQ(rd::trimmed(" a b\r\n\0"sv), "a b");
  EXPECT_EQ(rd::trimmed("\0\n"sv), "");
}
