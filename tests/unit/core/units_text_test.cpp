// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <topocoll/core/units_text.hpp>
#include <gtest/gtest.h>

using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::parse_bytes;
using topocoll::parse_rate;
using topocoll::parse_seconds;
using topocoll::seconds;
using topocoll::to_string;

TEST(text_of_bytes, is_exact_when_it_has_no_decimals) {
  EXPECT_EQ(to_string(0_B), "0 B");
  EXPECT_EQ(to_string(1_B), "1 B");
  EXPECT_EQ(to_string(1023_B), "1023 B");
  EXPECT_EQ(to_string(1_KiB), "1 KiB");
  EXPECT_EQ(to_string(1025_B), "1025 B");
  EXPECT_EQ(to_string(1536_KiB), "1536 KiB");
  EXPECT_EQ(to_string(64_MiB), "64 MiB");
  EXPECT_EQ(to_string(bytes{1ULL << 63U}), "8 EiB");
}

TEST(text_of_bytes, shows_decimals_when_it_is_rounded) {
  EXPECT_EQ(to_string(bytes{(1U << 20U) + 1}), "1.00 MiB");
  EXPECT_EQ(to_string(bytes{100'000'001}), "95.4 MiB");
  EXPECT_EQ(to_string(bytes{123'456'789'001}), "115.0 GiB");
  EXPECT_EQ(to_string(bytes{std::numeric_limits<std::uint64_t>::max()}), "16.0 EiB");
}

TEST(text_of_bytes, without_decimals_reads_back_as_the_same_amount) {
  for (std::uint64_t n = 1; n < 1ULL << 62U; n += n / 3 + 1) {
    const std::string text = to_string(bytes{n});
    if (text.find('.') != std::string::npos) continue;
    const auto back = parse_bytes(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(back->value, n) << text;
  }
}

TEST(text_of_rates, has_three_digits) {
  EXPECT_EQ(to_string(bytes_per_second{63.015384e9}), "63.0 GB/s");
  EXPECT_EQ(to_string(450_GBps), "450 GB/s");
  EXPECT_EQ(to_string(3600_GBps), "3600 GB/s");
  EXPECT_EQ(to_string(400_Gbps), "50.0 GB/s");
  EXPECT_EQ(to_string(bytes_per_second{1.25e8}), "125 MB/s");
  EXPECT_EQ(to_string(bytes_per_second{1.25e6}), "1.25 MB/s");
  EXPECT_EQ(to_string(bytes_per_second{12}), "12.0 B/s");
  EXPECT_EQ(to_string(bytes_per_second{0.25}), "0.250 B/s");
}

TEST(text_of_rates, changes_unit_where_rounding_does) {
  EXPECT_EQ(to_string(bytes_per_second{999.4e6}), "999 MB/s");
  EXPECT_EQ(to_string(bytes_per_second{999.6e6}), "1.00 GB/s");
  EXPECT_EQ(to_string(bytes_per_second{9.996e9}), "10.0 GB/s");
  EXPECT_EQ(to_string(bytes_per_second{99.96e9}), "100 GB/s");
}

TEST(text_of_rates, shows_what_is_not_finite) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_string(bytes_per_second{0}), "0 B/s");
  EXPECT_EQ(to_string(bytes_per_second{infinite}), "inf GB/s");
  EXPECT_EQ(to_string(bytes_per_second{-infinite}), "-inf GB/s");
  EXPECT_EQ(to_string(bytes_per_second{std::numeric_limits<double>::quiet_NaN()}), "nan GB/s");
  EXPECT_EQ(to_string(bytes_per_second{-2.5e9}), "-2.50 GB/s");
}

TEST(text_of_seconds, picks_the_unit) {
  EXPECT_EQ(to_string(0_s), "0 s");
  EXPECT_EQ(to_string(8_us), "8.00 us");
  EXPECT_EQ(to_string(125_ms), "125 ms");
  EXPECT_EQ(to_string(seconds{3.2}), "3.20 s");
  EXPECT_EQ(to_string(seconds{7200}), "7200 s");
  EXPECT_EQ(to_string(seconds{12.34e-9}), "12.3 ns");
  EXPECT_EQ(to_string(seconds{-1.5e-3}), "-1.50 ms");
}

TEST(parse_bytes, reads_the_forms_that_people_write) {
  const auto value = [](std::string_view text) {
    const auto read = parse_bytes(text);
    EXPECT_TRUE(read) << text;
    return read ? read->value : 0;
  };
  EXPECT_EQ(value("8"), 8U);
  EXPECT_EQ(value("0"), 0U);
  EXPECT_EQ(value("8B"), 8U);
  EXPECT_EQ(value("64MiB"), 64ULL << 20U);
  EXPECT_EQ(value("64M"), 64ULL << 20U);
  EXPECT_EQ(value("64m"), 64ULL << 20U);
  EXPECT_EQ(value(" 64 MiB "), 64ULL << 20U);
  EXPECT_EQ(value("10MB"), 10'000'000U);
  EXPECT_EQ(value("10kB"), 10'000U);
  EXPECT_EQ(value("1.5GiB"), 3ULL << 29U);
  EXPECT_EQ(value("1.50000000000000000000000000000000000000000000GiB"), 3ULL << 29U);
  EXPECT_EQ(value(".5K"), 512U);
  EXPECT_EQ(value("8.0"), 8U);
  EXPECT_EQ(value("16777215T"), 16777215ULL << 40U);
  EXPECT_EQ(value("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(parse_bytes, refuses_everything_else) {
  for (const std::string_view text : {"",
                                      " ",
                                      "B",
                                      "MiB",
                                      ".",
                                      "-1",
                                      "+1",
                                      "1e6",
                                      "0x10",
                                      "1..2",
                                      "1.2.3",
                                      "1 2",
                                      "1Mi",
                                      "1MiBs",
                                      "1Mb",
                                      "1P",
                                      "1iB",
                                      "1.5",
                                      "0.3K",
                                      "18446744073709551616",
                                      "16777216T",
                                      "99999999999999999999999999999999999999999999",
                                      "nan",
                                      "1\n",
                                      "0.00000000000000000000000000000000000000000000000000000000000000001T"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(parse_bytes, quotes_the_text_that_it_refuses) {
  EXPECT_EQ(parse_bytes("1.5").error().what, "'1.5' is not a whole number of bytes");
  EXPECT_EQ(parse_bytes("16777216T").error().what, "'16777216T' does not fit into 64 bits");
}

TEST(parse_rate, tells_bits_from_bytes) {
  const auto value = [](std::string_view text) {
    const auto read = parse_rate(text);
    EXPECT_TRUE(read) << text;
    return read ? read->value : -1;
  };
  EXPECT_EQ(value("400Gb/s"), 50e9);
  EXPECT_EQ(value("400 Gbps"), 50e9);
  EXPECT_EQ(value("400Gbit/s"), 50e9);
  EXPECT_EQ(value("50GB/s"), 50e9);
  EXPECT_EQ(value("50 GBps"), 50e9);
  EXPECT_EQ(value("0.5TB/s"), 0.5e12);
  EXPECT_EQ(value("1GiB/s"), 1073741824.0);
  EXPECT_EQ(value("8b/s"), 1.0);
  EXPECT_EQ(value("0 B/s"), 0.0);
}

TEST(parse_rate, refuses_a_rate_without_unit_and_everything_else) {
  for (const std::string_view text : {"", "400", "400G", "400Gb", "Gb/s", "-1GB/s", "infGB/s", "nanGB/s", "1e9B/s",
                                      "1 GB / s", "1 Gibit", "1iB/s", "1GBs", "/s", "1/s", "1ps"})
    EXPECT_FALSE(parse_rate(text)) << text;
  EXPECT_FALSE(parse_rate(std::string(400, '9') + "GB/s"));
}

TEST(parse_seconds, reads_a_number_with_a_unit) {
  EXPECT_EQ(parse_seconds("30s").value(), 30_s);
  EXPECT_EQ(parse_seconds("1.5 ms").value().value, 1.5e-3);
  EXPECT_EQ(parse_seconds("2min").value(), 120_s);
  EXPECT_EQ(parse_seconds("0s").value(), 0_s);
  for (const std::string_view text : {"", "30", "s", "-1s", "1h", "1 sec"}) EXPECT_FALSE(parse_seconds(text)) << text;
}
