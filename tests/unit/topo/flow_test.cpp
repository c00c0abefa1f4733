// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/topo/flow.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
using topocoll::bytes_per_second;
using topocoll::errc;
using topocoll::node_id;

namespace {

struct arc {
  std::uint32_t from, to;
  std::int64_t capacity;
};

topo::flow_network<> network(std::uint32_t nodes, const std::vector<arc>& arcs) {
  topo::flow_network<> net(nodes);
  for (const arc& a : arcs) net.add({a.from}, {a.to}, a.capacity);
  return net;
}

/// The narrowest of all cuts between s and t, by trying every one of them.
std::int64_t narrowest(std::uint32_t nodes, const std::vector<arc>& arcs, std::uint32_t s, std::uint32_t t) {
  std::int64_t best = INT64_MAX;
  for (std::uint32_t side = 0; side < 1U << nodes; ++side) {
    if ((side >> s & 1U) == 0 || (side >> t & 1U) != 0) continue;
    std::int64_t out = 0;
    for (const arc& a : arcs)
      if ((side >> a.from & 1U) != 0 && (side >> a.to & 1U) == 0) out += a.capacity;
    best = std::min(best, out);
  }
  return best;
}

/// Small numbers from a seed, the same on every platform.
struct generator {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  }
};

}  // namespace

TEST(maximum_flow, equals_the_narrowest_of_all_cuts_on_random_graphs) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    generator random{seed};
    const std::uint32_t nodes = 2 + random.below(8);
    std::vector<arc> arcs;
    for (std::uint32_t k = random.below(4 * nodes); k > 0; --k) {
      const std::uint32_t a = random.below(nodes), b = random.below(nodes);
      if (a != b) arcs.push_back({a, b, random.below(20)});
    }
    auto net = network(nodes, arcs);
    const auto value = net.maximum_flow({0}, {1});
    ASSERT_TRUE(value) << "seed " << seed;
    EXPECT_EQ(*value, narrowest(nodes, arcs, 0, 1)) << "seed " << seed;
    std::int64_t over = 0;  // the source side must be such a cut
    for (const arc& a : arcs)
      if (net.on_source_side({a.from}) && !net.on_source_side({a.to})) over += a.capacity;
    EXPECT_EQ(over, *value) << "seed " << seed;
    EXPECT_TRUE(net.on_source_side({0}));
    EXPECT_FALSE(net.on_source_side({1}));
  }
}

TEST(maximum_flow, keeps_what_enters_a_node_equal_to_what_leaves_it) {
  generator random{7};
  const std::uint32_t nodes = 17;
  std::vector<arc> arcs;
  for (int k = 0; k < 80; ++k) {
    const std::uint32_t a = random.below(nodes), b = random.below(nodes);
    if (a != b) arcs.push_back({a, b, 1 + random.below(50)});
  }
  auto net = network(nodes, arcs);
  const auto value = net.maximum_flow({0}, {16});
  ASSERT_TRUE(value);
  ASSERT_GT(*value, 0);
  std::vector<std::int64_t> surplus(nodes, 0);
  for (std::uint32_t a = 0; a < net.arc_count(); ++a) {
    EXPECT_GE(net.flow(a), 0);
    EXPECT_LE(net.flow(a), net.capacity(a));
    surplus[net.head(a).value] += net.flow(a);
    surplus[net.tail(a).value] -= net.flow(a);
  }
  for (std::uint32_t v = 1; v < nodes - 1; ++v) EXPECT_EQ(surplus[v], 0) << "node " << v;
  EXPECT_EQ(surplus[16], *value);
}

TEST(maximum_flow, forgets_the_flow_before_when_a_capacity_changes) {
  topo::flow_network<> net(3);
  const auto first = net.add({0}, {1}, 5);
  net.add({1}, {2}, 9);
  EXPECT_EQ(net.maximum_flow({0}, {2}).value(), 5);
  net.set(first, 7);
  EXPECT_EQ(net.maximum_flow({0}, {2}).value(), 7);
  net.set(first, 0);
  EXPECT_EQ(net.maximum_flow({0}, {2}).value(), 0);
}

TEST(maximum_flow, stops_when_it_is_enough) {
  auto net = network(2, {{0, 1, 5}, {0, 1, 5}, {0, 1, 5}});
  EXPECT_EQ(net.maximum_flow({0}, {1}, 7).value(), 7);
  EXPECT_EQ(net.maximum_flow({0}, {1}).value(), 15);
}

TEST(maximum_flow, refuses_capacities_that_do_not_fit) {
  auto net = network(3, {{0, 1, INT64_MAX - 1}, {1, 2, 2}});
  const auto value = net.maximum_flow({0}, {2});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, errc::unsupported);
  EXPECT_NE(value.error().what.find("64 bits"), std::string::npos);
}

TEST(maximum_flow, counts_beyond_64_bits_in_128) {
  __extension__ using wide = __int128;
  topo::flow_network<wide> net(3);
  for (int k = 0; k < 4; ++k) net.add({0}, {1}, INT64_MAX);
  net.add({1}, {2}, wide{INT64_MAX} * 3);
  const auto value = net.maximum_flow({0}, {2});
  ASSERT_TRUE(value);
  EXPECT_TRUE(*value == wide{INT64_MAX} * 3);
}

TEST(maximum_flow, refuses_a_source_that_is_the_sink) {
  auto net = network(2, {{0, 1, 1}});
  EXPECT_EQ(net.maximum_flow({1}, {1}).error().code, errc::invalid_argument);
  EXPECT_EQ(net.maximum_flow({0}, {2}).error().code, errc::invalid_argument);
}

TEST(minimum_cut, of_two_boxes_on_one_wire_is_the_wire) {
  topo::fragment f;
  const auto add = [&](const std::string& key) {
    topo::node n;
    n.key = key;
    return f.add(n);
  };
  const auto join = [&](node_id a, node_id b, double rate) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.capacity = {rate};
    f.join(l);
  };
  const node_id a0 = add("a0"), a1 = add("a1"), b0 = add("b0"), b1 = add("b1");
  join(a0, a1, 300e9);
  join(b0, b1, 300e9);
  join(a1, b0, 25e9);
  const auto graph = topo::graph::from(f).value();
  const auto cut = topo::minimum_cut(graph, a0, b1, bytes_per_second{1e9}).value();
  EXPECT_EQ(cut.capacity, 25);
  EXPECT_EQ(cut.side, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(topo::minimum_cut(graph, a0, b1, bytes_per_second{2e9}).value().capacity, 12);  // rounded down
  EXPECT_EQ(topo::minimum_cut(graph, a0, b1, bytes_per_second{0}).error().code, errc::invalid_argument);
  EXPECT_EQ(topo::minimum_cut(graph, a0, b1, bytes_per_second{1e-9}).error().code, errc::invalid_argument);
}
