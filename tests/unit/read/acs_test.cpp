// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <topocoll/read/acs.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::read::acs_bits_of;
using tc::read::acs_of_config;
using tc::read::redirects_peer_traffic;

namespace {
void put(std::string& config, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) config[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i) & 0xffU);
}
}  // namespace

TEST(acs_bits_of, reads_the_words_that_lspci_prints) {
  EXPECT_EQ(acs_bits_of("SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"), 0x1d);
  EXPECT_EQ(acs_bits_of("\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"), 0);
  EXPECT_EQ(acs_bits_of("TransBlk+ EgressCtrl+ DirectTrans+"), 0x62);
  EXPECT_FALSE(acs_bits_of(""));
  EXPECT_FALSE(acs_bits_of("SrcValid ReqRedir"));
}

TEST(redirects_peer_traffic, asks_for_request_or_completion_redirect_alone) {
  for (unsigned bits = 0; bits < 128; ++bits)
    EXPECT_EQ(redirects_peer_traffic(static_cast<std::uint16_t>(bits)), (bits & 4) != 0 || (bits & 8) != 0) << bits;
}

TEST(acs_of_config, knows_nothing_when_only_the_head_may_be_read) {
  EXPECT_FALSE(acs_of_config({}).known);
  EXPECT_FALSE(acs_of_config(std::string(64, '\0')).redirects());
  EXPECT_FALSE(acs_of_config(std::string(256, '\0')).redirects());
}

TEST(acs_of_config, follows_the_list_of_extended_capabilities) {
  std::string config(4096, '\0');
  put(config, 0x100, 0x1U | 2U << 16U | 0x148U << 20U);  // error reporting, next at 0x148
  put(config, 0x148, 0x0dU | 1U << 16U);                 // access control, the last
  put(config, 0x148 + 4, 0x001fU | 0x001dU << 16U);      // what it can, what is on
  EXPECT_EQ(acs_of_config(config).control, 0x1d);
  EXPECT_EQ(acs_of_config(config).redirects(), true);
  put(config, 0x148 + 4, 0x001fU | 0x0001U << 16U);
  EXPECT_EQ(acs_of_config(config).redirects(), false);
}

TEST(acs_of_config, says_no_when_root_sees_no_such_capability) {
  const std::string empty(4096, '\0');
  EXPECT_TRUE(acs_of_config(empty).known);
  EXPECT_EQ(acs_of_config(empty).redirects(), false);
}

TEST(acs_of_config, ends_on_a_list_that_goes_round_or_out_of_the_space) {
  std::string config(4096, '\0');
  put(config, 0x100, 0x1U | 1U << 16U | 0x100U << 20U);
  EXPECT_FALSE(acs_of_config(config).control);
  put(config, 0x100, 0x1U | 1U << 16U | 0xffcU << 20U);
  put(config, 0xffc, 0x0dU | 1U << 16U);
  EXPECT_FALSE(acs_of_config(config).control);
}
