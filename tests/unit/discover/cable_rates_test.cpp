// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/discover/detail/cable_rates.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using namespace tc::literals;

TEST(meaning_of, knows_every_pair_by_its_rate) {
  for (std::uint32_t g = 1; g <= 7; ++g)
    for (std::uint32_t lanes = 1; lanes <= 16; lanes *= 2) {
      const auto m = tc::detail::meaning_of(tc::pcie_line_rate(g, lanes));
      const std::string name = "Gen" + std::to_string(g) + " x" + std::to_string(lanes);
      EXPECT_NE((" " + m.text + ",").find(" " + name + (m.text.size() > name.size() ? "" : ",")), std::string::npos)
          << name << ": " << m.text;
      EXPECT_GE(m.pairs, 1U);
      // Whichever of the pairs it is, models get the same of it.
      EXPECT_NEAR(tc::detail::payload_of_rate(tc::pcie_line_rate(g, lanes)) / tc::pcie_payload_rate(g, lanes), 1, 0.01)
          << name;
    }
}

TEST(meaning_of, names_one_pair_only_where_there_is_one) {
  EXPECT_EQ(tc::detail::meaning_of(0.25_GBps).text, "Gen1 x1");
  EXPECT_EQ(tc::detail::meaning_of(8_GBps).text, "Gen2 x16");
  EXPECT_EQ(tc::detail::meaning_of(4_GBps).text, "Gen1 x16 or Gen2 x8");
  EXPECT_EQ(tc::detail::meaning_of(15.753846_GBps).text, "Gen3 x16, Gen4 x8, Gen5 x4, Gen6 x2 or Gen7 x1");
  for (const tc::bytes_per_second odd : {0.2_GBps, 0.615385_GBps, 31_GBps, 5000_GBps, tc::bytes_per_second{}}) {
    EXPECT_EQ(tc::detail::meaning_of(odd).pairs, 0U) << odd.value;
    EXPECT_NEAR(tc::detail::payload_of_rate(odd).value, odd.value * 0.75, 1);
  }
}

namespace {

tc::detail::pcie_cable cable(std::uint32_t node, std::size_t parent, tc::bytes_per_second told) {
  tc::detail::pcie_cable c;
  c.node = {node + 1};
  c.above = {parent == tc::detail::no_cable ? 0 : static_cast<std::uint32_t>(parent) + 1};
  c.parent = parent;
  if (told.value > 0) c.device_end = told;
  c.who = std::to_string(node);
  return c;
}

std::vector<tc::topo::link> judged(const std::vector<tc::detail::pcie_cable>& cables) {
  tc::topo::fragment f;
  tc::detail::tally t;
  tc::detail::cable_rates(cables).join(f, t);
  std::vector<tc::topo::link> up;
  for (std::size_t i = 0; i < f.links.size(); i += 2) up.push_back(f.links[i]);
  return up;
}

}  // namespace

TEST(cable_rates, borrow_from_the_bridge_above_then_from_a_neighbour_then_assume) {
  using tc::detail::no_cable;
  auto links = judged({cable(0, no_cable, 31.507692_GBps), cable(1, 0, {})});
  EXPECT_NEAR(links[1].capacity.value, 24e9, 1);
  EXPECT_EQ(links[1].how, tc::trust::assumed);
  EXPECT_FALSE(links[1].current);
  links = judged({cable(0, no_cable, {}), cable(1, 0, {}), cable(2, 0, 63.015385_GBps)});
  EXPECT_NEAR(links[1].capacity.value, 48e9, 1);
  EXPECT_NEAR(links[0].capacity.value, 48e9, 1);  // the bridge as the fastest below
  links = judged({cable(0, no_cable, {})});
  EXPECT_NEAR(links[0].capacity.value, 12e9, 1);
}

TEST(cable_rates, believe_the_device_where_the_ends_differ_unless_it_is_an_idle_gpu) {
  using tc::detail::no_cable;
  auto nic = cable(0, no_cable, 7.876923_GBps);
  nic.nic = true;
  nic.port_end = 15.753846_GBps;
  EXPECT_NEAR(judged({nic})[0].capacity.value, 6e9, 1);
  auto gpu = nic;
  gpu.nic = false;
  gpu.gpu = true;
  EXPECT_NEAR(judged({gpu})[0].capacity.value, 12e9, 1);
  EXPECT_EQ(judged({gpu})[0].how, tc::trust::assumed);
  EXPECT_EQ(judged({gpu})[0].current, 7.876923_GBps);
}
