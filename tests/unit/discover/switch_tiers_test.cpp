// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/discover/detail/switch_tiers.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

/// Wiring under construction.
struct net {
  tc::detail::switch_wiring w;

  std::uint32_t add(std::uint32_t hosts) {
    w.neighbours.emplace_back();
    w.host_ports.push_back(hosts);
    return static_cast<std::uint32_t>(w.host_ports.size() - 1);
  }
  void cable(std::uint32_t a, std::uint32_t b) {
    w.neighbours[a].push_back(b);
    w.neighbours[b].push_back(a);
  }
  [[nodiscard]] std::vector<tc::detail::switch_tier> tiers() const { return tc::detail::tiers_of(w); }
};

}  // namespace

TEST(switch_tiers, of_leaves_and_spines_are_told_by_hosts) {
  for (const std::uint32_t leaves : {1U, 2U, 3U, 5U, 8U, 17U}) {
    net n;
    for (std::uint32_t l = 0; l < leaves; ++l) n.add(4);
    for (std::uint32_t s = 0; s < 3; ++s) {
      const std::uint32_t spine = n.add(0);
      for (std::uint32_t l = 0; l < leaves; ++l) {
        n.cable(l, spine);
        n.cable(l, spine);  // parallel cables change nothing
      }
    }
    const auto tiers = n.tiers();
    for (std::uint32_t v = 0; v < tiers.size(); ++v) {
      EXPECT_EQ(tiers[v].kind, v < leaves ? node_kind::leaf : node_kind::spine) << leaves;
      EXPECT_EQ(tiers[v].how, v < leaves ? tc::trust::reported : tc::trust::derived);
      EXPECT_EQ(tiers[v].reason.empty(), v < leaves);
    }
  }
}

TEST(switch_tiers, of_a_ring_with_hosts_are_leaves) {
  net n;
  for (std::uint32_t i = 0; i < 7; ++i) n.add(1 + i % 3);
  for (std::uint32_t i = 0; i < 7; ++i) n.cable(i, (i + 1) % 7);
  for (const auto& t : n.tiers()) EXPECT_EQ(t.kind, node_kind::leaf);
}

TEST(switch_tiers, of_a_director_put_its_inner_chips_above_its_outer_ones) {
  // Eight leaves, each with one cable to two of the four outer chips of a director; four inner chips join all outer ones.
  net n;
  for (int l = 0; l < 8; ++l) n.add(18);
  for (int c = 0; c < 4; ++c) n.add(0);
  for (int c = 0; c < 4; ++c) n.add(0);
  for (std::uint32_t l = 0; l < 8; ++l) {
    n.cable(l, 8 + l % 4);
    n.cable(l, 8 + (l + 1) % 4);
  }
  for (std::uint32_t outer = 8; outer < 12; ++outer)
    for (std::uint32_t inner = 12; inner < 16; ++inner) n.cable(outer, inner);
  const auto tiers = n.tiers();
  for (std::uint32_t v = 0; v < 16; ++v)
    EXPECT_EQ(tiers[v].kind, v < 8 ? node_kind::leaf : v < 12 ? node_kind::spine : node_kind::core_switch) << v;
}

TEST(switch_tiers, know_a_leaf_without_hosts_by_its_spines) {
  net n;
  for (const std::uint32_t hosts : {8U, 8U, 0U, 8U}) n.add(hosts);
  for (int s = 0; s < 4; ++s) {
    const std::uint32_t spine = n.add(0);
    for (std::uint32_t l = 0; l < 4; ++l) n.cable(l, spine);
  }
  const auto tiers = n.tiers();
  EXPECT_EQ(tiers[2].kind, node_kind::leaf);
  EXPECT_EQ(tiers[2].how, tc::trust::derived);
  EXPECT_NE(tiers[2].reason, "");
  EXPECT_EQ(tiers[4].kind, node_kind::spine);
}

TEST(switch_tiers, know_a_spine_with_a_management_host_by_the_other_spines) {
  net n;
  for (int l = 0; l < 6; ++l) n.add(8);
  for (const std::uint32_t hosts : {1U, 0U, 0U}) {
    const std::uint32_t spine = n.add(hosts);
    for (std::uint32_t l = 0; l < 6; ++l) n.cable(l, spine);
  }
  const auto tiers = n.tiers();
  for (std::uint32_t v = 0; v < 9; ++v) EXPECT_EQ(tiers[v].kind, v < 6 ? node_kind::leaf : node_kind::spine) << v;
  EXPECT_TRUE(tiers[6].holds_hosts_above_leaves);
  EXPECT_FALSE(tiers[7].holds_hosts_above_leaves);
}

TEST(switch_tiers, keep_a_thin_leaf_beside_one_without_hosts) {
  // One host on leaf 0 and none on leaf 1: both join the same spines, but those have no hosts, so leaf 0 is no spine.
  net n;
  for (const std::uint32_t hosts : {1U, 0U, 9U}) n.add(hosts);
  for (int s = 0; s < 4; ++s) {
    const std::uint32_t spine = n.add(0);
    for (std::uint32_t l = 0; l < 3; ++l) n.cable(l, spine);
  }
  const auto tiers = n.tiers();
  for (std::uint32_t v = 0; v < 7; ++v) EXPECT_EQ(tiers[v].kind, v < 3 ? node_kind::leaf : node_kind::spine) << v;
}

TEST(switch_tiers, without_hosts_are_assumed) {
  net n;
  n.add(0);
  n.add(0);
  n.add(0);
  n.cable(0, 1);
  n.cable(1, 2);
  n.add(3);  // another fabric, with hosts
  const auto tiers = n.tiers();
  for (std::uint32_t v = 0; v < 3; ++v) {
    EXPECT_EQ(tiers[v].how, tc::trust::assumed);
    EXPECT_NE(tiers[v].reason, "");
  }
  EXPECT_EQ(tiers[3].how, tc::trust::reported);
  EXPECT_TRUE(tc::detail::tiers_of({}).empty());
}
