// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/host_map.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;

TEST(host_map, reads_ports_of_hosts) {
  const auto m = rd::parse_host_map("# ports\r\nn1: 0x155DFF01\r\n\nn1:0x155dff02\nn2 : 0x155dff03", "m.txt");
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_TRUE(m->ports);
  ASSERT_EQ(m->rows.size(), 3U);
  EXPECT_EQ(m->rows[0].value, "00000000155dff01");
  EXPECT_EQ(m->rows[2].host, "n2");
  EXPECT_EQ(m->rows[2].line, 5U);
}

TEST(host_map, reads_domains_of_hosts) {
  const auto m = rd::parse_host_map(
      "a: 00112233-4455-6677-8899-aabbccddeeff\nb: 00112233-4455-6677-8899-aabbccddeeff.32766\n", "m.txt");
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_FALSE(m->ports);
  EXPECT_EQ(m->rows[1].value, "00112233-4455-6677-8899-aabbccddeeff.32766");
}

TEST(host_map, refuses_what_contradicts_itself) {
  for (const char* text : {"", "# only\n", "a: 0x1\nb\n", "a: 0x1\nb: 00112233-4455-6677-8899-aabbccddeeff\n",
                           "a: 0x1\nb: 0x01\n", "a: 0x11223344556677889\n", "a b: 0x1\n",
                           "a: 00112233-4455-6677-8899-aabbccddeeff\na: 00112233-4455-6677-8899-aabbccddeef0\n"}) {
    const auto m = rd::parse_host_map(text, "m.txt");
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, errc::malformed_input);
    EXPECT_EQ(m.error().what.rfind("m.txt", 0), 0U);
  }
  EXPECT_NE(rd::parse_host_map("a: 0x1\nb: 0x01\n", "m").error().what.find("line 2: the port 0x0000000000000001"),
            std::string::npos);
}

TEST(host_map, is_known_by_its_first_line) {
  EXPECT_TRUE(rd::looks_like_host_map("\n# c\nh: 0xab\n"));
  EXPECT_TRUE(rd::looks_like_host_map("h: 00112233-4455-6677-8899-aabbccddeeff"));
  for (const char* other :
       {"", "h: 8", "h:8", "h: 0x", "a: b", "switches:\n", "GPU 0: NVIDIA (UUID: GPU-00112233-4455)", "vendid=0x1",
        "h: 00112233-4455-6677-8899-aabbccddeefg"}) {
    EXPECT_FALSE(rd::looks_like_host_map(other)) << other;
  }
}
