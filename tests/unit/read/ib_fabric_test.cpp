// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <topocoll/read/ib_codes.hpp>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/read/ib_speed.hpp>
#include <gtest/gtest.h>

namespace ib = topocoll::read;
using ib::ib_speed;

TEST(ib_speed, goes_from_word_to_speed_and_back) {
  for (const ib_speed s : {ib_speed::sdr, ib_speed::ddr, ib_speed::qdr, ib_speed::fdr10, ib_speed::fdr, ib_speed::edr,
                           ib_speed::hdr, ib_speed::ndr, ib_speed::xdr})
    EXPECT_EQ(ib::ib_speed_named(to_string(s)), s);
  for (const char* word : {"", "???", "hdr", "HDR ", "HDR100", "4xHDR"})
    EXPECT_EQ(ib::ib_speed_named(word), ib_speed::unknown) << word;
}

TEST(ib_speed, is_told_by_what_one_lane_signals) {
  EXPECT_EQ(ib::ib_speed_of_lane(2.5), ib_speed::sdr);
  EXPECT_EQ(ib::ib_speed_of_lane(5), ib_speed::ddr);
  EXPECT_EQ(ib::ib_speed_of_lane(10), ib_speed::qdr);
  EXPECT_EQ(ib::ib_speed_of_lane(10.3125), ib_speed::fdr10);
  EXPECT_EQ(ib::ib_speed_of_lane(14.0625), ib_speed::fdr);
  EXPECT_EQ(ib::ib_speed_of_lane(25.78125), ib_speed::edr);
  EXPECT_EQ(ib::ib_speed_of_lane(53.125), ib_speed::hdr);
  EXPECT_EQ(ib::ib_speed_of_lane(106.25), ib_speed::ndr);
  EXPECT_EQ(ib::ib_speed_of_lane(212.5), ib_speed::xdr);
  for (const double odd : {0.0, -2.5, 1.0, 7.0, 40.0, 1e9}) EXPECT_EQ(ib::ib_speed_of_lane(odd), ib_speed::unknown);
}

TEST(ib_codes, name_widths_speeds_and_states) {
  EXPECT_EQ(ib::ib_lanes_of_code(1), 1U);
  EXPECT_EQ(ib::ib_lanes_of_code(2), 4U);
  EXPECT_EQ(ib::ib_lanes_of_code(8), 12U);
  EXPECT_EQ(ib::ib_lanes_of_code(16), 2U);
  EXPECT_EQ(ib::ib_lanes_of_code(3), 0U);  // a mask, no code
  EXPECT_EQ(ib::ib_speed_of_code(4, 0), ib_speed::qdr);
  EXPECT_EQ(ib::ib_speed_of_code(4, 8), ib_speed::ndr);  // the extended one counts
  EXPECT_EQ(ib::ib_speed_of_code(4, 64), ib_speed::unknown);
  EXPECT_EQ(ib::ib_state_of_code(4), ib::ib_state::active);
  EXPECT_EQ(ib::ib_state_of_code(9), ib::ib_state::unknown);
  EXPECT_STREQ(ib::ib_physical_state_of_code(2), "Polling");
  EXPECT_STREQ(ib::ib_physical_state_of_code(99), "");
}

TEST(ib_codes, find_the_best_of_masks) {
  EXPECT_EQ(ib::widest_of_mask(1 | 2), 4U);
  EXPECT_EQ(ib::widest_of_mask(1 | 2 | 8), 12U);
  EXPECT_EQ(ib::widest_of_mask(1 | 16), 2U);
  EXPECT_EQ(ib::widest_of_mask(0), 0U);
  EXPECT_EQ(ib::fastest_of_masks(7, 0), ib_speed::qdr);
  EXPECT_EQ(ib::fastest_of_masks(7, 7), ib_speed::hdr);
  EXPECT_EQ(ib::fastest_of_masks(1, 0), ib_speed::sdr);
  EXPECT_EQ(ib::fastest_of_masks(0, 0), ib_speed::unknown);
}

TEST(ib_description, of_host_and_device_tells_both) {
  const auto mlx = ib::ib_description_of("node7 mlx5_11");
  EXPECT_EQ(mlx.host, "node7");
  EXPECT_EQ(mlx.device, "mlx5_11");
  EXPECT_EQ(mlx.index, 11U);
  const auto hca = ib::ib_description_of("  node7   HCA-3 ");
  EXPECT_EQ(hca.host, "node7");
  EXPECT_EQ(hca.device, "HCA-3");
  EXPECT_EQ(hca.index, 2U);  // openibd counts from 1
  EXPECT_EQ(ib::ib_description_of("node7 HCA-0").index, std::nullopt);
  const auto by_slot = ib::ib_description_of("NODE7 ibp11s0f0");
  EXPECT_EQ(by_slot.host, "NODE7");
  EXPECT_EQ(by_slot.device, "ibp11s0f0");
  EXPECT_EQ(by_slot.index, std::nullopt);
  EXPECT_EQ(ib::ib_description_of("rack 7 node 3 mlx5_0").host, "rack");
}

TEST(ib_description, of_one_word_is_a_host) {
  const auto one = ib::ib_description_of("storage-3");
  EXPECT_EQ(one.host, "storage-3");
  EXPECT_EQ(one.device, "");
}

TEST(ib_description, of_a_product_names_no_host) {
  for (const char* product : {"", "   ", "MT4129 ConnectX7   Mellanox Technologies", "SomeAdapter Vendor Inc.",
                              "A Large Adapter Type 4711", "localhost mlx5_0", "(none) mlx5_0", "localhost"}) {
    EXPECT_EQ(ib::ib_description_of(product).host, "") << product;
    EXPECT_EQ(ib::ib_description_of(product).device, "") << product;
  }
}

TEST(ib_switch_name, takes_managed_switches_apart) {
  const auto line_card = ib::ib_switch_name_of("MF0;core-1:XS7500/L11/U2");
  EXPECT_EQ(line_card.system, "core-1");
  EXPECT_EQ(line_card.model, "XS7500");
  EXPECT_EQ(line_card.place, "L11/U2");
  const auto box = ib::ib_switch_name_of("MF0;leaf 4:XQM9700");
  EXPECT_EQ(box.system, "leaf 4");
  EXPECT_EQ(box.model, "XQM9700");
  EXPECT_EQ(box.place, "");
  EXPECT_EQ(ib::ib_switch_name_of("SwitchY Vendor").system, "SwitchY Vendor");
  EXPECT_EQ(ib::ib_switch_name_of("MF0;").system, "");
  EXPECT_EQ(ib::ib_switch_name_of("MF0;:x").system, ":x");
}

TEST(guid_text, has_sixteen_digits) {
  EXPECT_EQ(ib::guid_text(0), "0x0000000000000000");
  EXPECT_EQ(ib::guid_text(0x2c903000a1b2cULL), "0x0002c903000a1b2c");
  EXPECT_EQ(ib::guid_text(~std::uint64_t{0}), "0xffffffffffffffff");
}

TEST(find_port, finds_what_is_there) {
  ib::ib_device d;
  for (const std::uint32_t number : {2U, 3U, 7U, 40U}) {
    ib::ib_port p;
    p.number = number;
    d.ports.push_back(p);
  }
  for (const std::uint32_t number : {2U, 3U, 7U, 40U}) {
    const ib::ib_port* p = ib::find_port(d, number);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(p->number, number);
  }
  for (const std::uint32_t number : {0U, 1U, 5U, 41U}) EXPECT_EQ(ib::find_port(d, number), nullptr);
  EXPECT_EQ(ib::find_port({}, 1), nullptr);
}
