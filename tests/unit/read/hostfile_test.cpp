// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/hostfile.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;

TEST(hostfile, reads_the_form_of_open_mpi) {
  const auto h = rd::parse_hostfile("# hosts\r\nn1 slots=8 max_slots=16\r\nn2\tslots=4 # half\r\nn1 slots=1", "h");
  ASSERT_TRUE(h) << h.error().message();
  ASSERT_EQ(h->entries.size(), 3U);
  EXPECT_EQ(h->entries[0].slot_count, 8U);
  EXPECT_EQ(h->entries[0].max_slots, 16U);
  EXPECT_EQ(h->entries[1].slot_count, 4U);
  EXPECT_EQ(h->entries[2].host, "n1");
  EXPECT_EQ(h->entries[2].line, 4U);
}

TEST(hostfile, reads_the_form_of_mpich_and_bare_names) {
  const auto h = rd::parse_hostfile("n[01-02]:8\nplain\n10.0.0.7:2\nfe80::1\n", "h");
  ASSERT_TRUE(h) << h.error().message();
  ASSERT_EQ(h->entries.size(), 5U);
  EXPECT_EQ(h->entries[1].host, "n02");
  EXPECT_EQ(h->entries[1].slot_count, 8U);
  EXPECT_FALSE(h->entries[2].slot_count);
  EXPECT_EQ(h->entries[3].host, "10.0.0.7");
  EXPECT_EQ(h->entries[4].host, "fe80::1");
}

TEST(hostfile, tells_options_that_it_passes_over) {
  const auto h = rd::parse_hostfile("n1 ifname=eth1\nn2 ifname=eth1\n", "h");
  ASSERT_TRUE(h);
  ASSERT_EQ(h->findings.size(), 1U);
  EXPECT_NE(h->findings[0].what.find("'ifname'"), std::string::npos);
}

TEST(hostfile, refuses_what_names_no_host) {
  for (const char* text :
       {"", "#\n", "n1 slots=x\n", "n1 slots=-1\n", "n1 8\n", "n1:x\n", "n[1\n", ":8\n", "n1 =8\n"}) {
    const auto h = rd::parse_hostfile(text, "h");
    ASSERT_FALSE(h) << text;
    EXPECT_EQ(h.error().code, errc::malformed_input);
  }
  EXPECT_EQ(rd::parse_hostfile("+n0\n", "h").error().code, errc::unsupported);
  EXPECT_EQ(rd::parse_hostfile("n[0-9999999] slots=1\n", "h").error().code, errc::unsupported);
}

TEST(hostfile, is_known_by_its_slots) {
  EXPECT_TRUE(rd::looks_like_hostfile("# c\nn1 slots=8\n"));
  EXPECT_TRUE(rd::looks_like_hostfile("n1 max_slots=8"));
  EXPECT_TRUE(rd::looks_like_hostfile("n1:8\n"));
  for (const char* other :
       {"", "n1\n", "a: 8\n", "n1 speed=8", "a:b", "\"x\":8", "SwitchName=a slots=8", "x slots=y"}) {
    EXPECT_FALSE(rd::looks_like_hostfile(other)) << other;
  }
}
