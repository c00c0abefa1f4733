// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>
#include <topocoll/read/hostlist.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;
using names = std::vector<std::string>;

namespace {

names expand(const std::string& list) {
  auto found = rd::expand_hostlist(list);
  EXPECT_TRUE(found) << (found ? "" : found.error().message());
  return found ? *found : names{};
}

}  // namespace

TEST(hostlist, of_nothing_is_nothing) {
  EXPECT_EQ(expand(""), names{});
  EXPECT_EQ(expand(" , ,"), names{});
  EXPECT_EQ(rd::compress_hostlist(names{}), "");
}

TEST(hostlist, of_plain_names_is_those_names) {
  EXPECT_EQ(expand("b,a , c"), (names{"b", "a", "c"}));
  EXPECT_EQ(expand("n1,n1"), (names{"n1", "n1"}));
}

TEST(hostlist, keeps_the_width_of_the_lower_end) {
  EXPECT_EQ(expand("a[008-011]"), (names{"a008", "a009", "a010", "a011"}));
  EXPECT_EQ(expand("a[8-11]"), (names{"a8", "a9", "a10", "a11"}));
  EXPECT_EQ(expand("a[0,00,000]"), (names{"a0", "a00", "a000"}));
}

TEST(hostlist, separates_by_commas_outside_brackets_only) {
  EXPECT_EQ(expand("a[1-2],b[3,5-6]c"), (names{"a1", "a2", "b3c", "b5c", "b6c"}));
}

TEST(hostlist, counts_its_last_bracket_fastest) {
  EXPECT_EQ(expand("r[1-2]n[08-09]x"), (names{"r1n08x", "r1n09x", "r2n08x", "r2n09x"}));
}

TEST(hostlist, keeps_a_prefix_only_up_to_the_comma) {
  EXPECT_EQ(expand("rack-n[1-2],n[3]"), (names{"rack-n1", "rack-n2", "n3"}));
  const auto pieces = rd::hostlist_pieces("rack-n[1-2],n[3,4],solo");
  ASSERT_TRUE(pieces);
  ASSERT_EQ(pieces->size(), 3U);
  EXPECT_EQ((*pieces)[1].prefix, "n");
  EXPECT_EQ((*pieces)[1].text, "n[3,4]");
  EXPECT_EQ((*pieces)[2].prefix, "solo");
}

TEST(hostlist, refuses_broken_brackets_with_the_piece) {
  for (const char* list : {"a[1-2", "a1]", "a[[1]]", "a[1]b]", "x,a[", "]"}) {
    const auto found = rd::expand_hostlist(list);
    ASSERT_FALSE(found) << list;
    EXPECT_EQ(found.error().code, errc::malformed_input);
    EXPECT_NE(found.error().what.find("bracket"), std::string::npos) << found.error().what;
  }
}

TEST(hostlist, refuses_what_is_no_range) {
  for (const char* list : {"a[]", "a[1,]", "a[-3]", "a[3-]", "a[x]", "a[1-2-3]", "a[0x1]", "a[1234567890123456789]"}) {
    const auto found = rd::expand_hostlist(list);
    ASSERT_FALSE(found) << list;
    EXPECT_EQ(found.error().code, errc::malformed_input) << list;
  }
  EXPECT_NE(rd::expand_hostlist("a[5-3]").error().what.find("backwards"), std::string::npos);
  EXPECT_NE(rd::expand_hostlist("a[8-012]").error().what.find("padded"), std::string::npos);
}

TEST(hostlist, refuses_characters_that_no_host_has) {
  for (const char* list : {"a b", "a=b", "a\tb", "\"a\"", "a#1", "a\x01"})
    EXPECT_FALSE(rd::expand_hostlist(list)) << list;
}

TEST(hostlist, refuses_huge_ranges_before_it_builds_them) {
  for (const char* list : {"a[0-999999999999]", "a[0-999999999999999999]", "a[0-1023]b[0-1023]c[0-1]", "a[1-1048577]",
                           "a[0-1048575],b", "a[0-99999,0-999999]"}) {
    const auto found = rd::expand_hostlist(list);
    ASSERT_FALSE(found) << list;
    EXPECT_EQ(found.error().code, errc::unsupported);
    EXPECT_NE(found.error().what.find("1048576"), std::string::npos) << found.error().what;
  }
  EXPECT_EQ(rd::expand_hostlist("a[0-1048575]").value().size(), std::size_t{1} << 20U);
  EXPECT_FALSE(rd::expand_hostlist("a[1-4]", 3));
  EXPECT_EQ(rd::expand_hostlist("a[1-4]", 4).value().size(), 4U);
  EXPECT_FALSE(rd::expand_hostlist(std::string(254, 'a')));
}

TEST(hostlist, becomes_the_shortest_usual_form) {
  EXPECT_EQ(rd::compress_hostlist(expand("n001,n002,n003,n005,login")), "n[001-003,005],login");
  EXPECT_EQ(rd::compress_hostlist(expand("n9,n10,n11")), "n[9-11]");
  EXPECT_EQ(rd::compress_hostlist(expand("n09,n10")), "n[09-10]");
  EXPECT_EQ(rd::compress_hostlist(expand("n1,n02")), "n[1,02]");
  EXPECT_EQ(rd::compress_hostlist(expand("n7")), "n7");
  EXPECT_EQ(rd::compress_hostlist(expand("r1n1-ib,r1n2-ib,r2n3-ib")), "r1n[1-2]-ib,r2n3-ib");
  EXPECT_EQ(rd::compress_hostlist(expand("n3,n2,n1")), "n[3,2,1]");
}

TEST(hostlist, reads_back_what_it_wrote_for_any_names) {
  std::mt19937 random(20260111);
  const names parts = {"a", "b-", "n", "rack1.", "x_0", ""};
  for (int round = 0; round < 300; ++round) {
    names list;
    const std::size_t count = random() % 18;
    for (std::size_t i = 0; i < count; ++i) {
      std::string name = "h" + parts[random() % parts.size()];
      if (random() % 4 != 0) {
        const std::string digits = std::to_string(random() % 13);
        name += std::string(random() % 3, '0') + digits;
      }
      if (random() % 3 == 0) name += parts[random() % 3];
      list.push_back(name);
    }
    const std::string text = rd::compress_hostlist(list);
    EXPECT_EQ(expand(text), list) << text;
    EXPECT_EQ(rd::compress_hostlist(expand(text)), text);
  }
}

TEST(host_order, counts_numbers_by_value) {
  names list = {"n10", "n2", "n02", "m3", "n2a", "n2-1", "n", "n1"};
  std::sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) { return rd::host_order(a, b); });
  EXPECT_EQ(list, (names{"m3", "n", "n1", "n02", "n2", "n2-1", "n2a", "n10"}));
}

TEST(host_order, is_a_strict_order) {
  const names list = {"n10", "n2", "n02", "n2a", "n", "", "0", "00", "a0b", "a00b", "a0c", "1a", "01", "1"};
  for (const auto& a : list) {
    EXPECT_FALSE(rd::host_order(a, a));
    for (const auto& b : list) {
      if (a != b) {
        EXPECT_NE(rd::host_order(a, b), rd::host_order(b, a)) << a << ' ' << b;
      }
      for (const auto& c : list)
        if (rd::host_order(a, b) && rd::host_order(b, c)) {
          EXPECT_TRUE(rd::host_order(a, c)) << a << ' ' << b << ' ' << c;
        }
    }
  }
}
