// SPDX-License-Identifier: Apache-2.0
// Bounds of random networks against every cut and every family, and against each other.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/detail/symmetry_classes.hpp>
#include <topocoll/topo/flow.hpp>
#include <gtest/gtest.h>

namespace detail = topocoll::plan::detail;
namespace topo = topocoll::topo;
using topocoll::node_id;
using topocoll::rational;

namespace {

struct generator {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  }
};

struct network {
  detail::exact_network net;
  std::vector<std::int64_t> weight;
};

/// Connected; with `even` links, capacities are the same both ways. `large` capacities need 128 bits.
network random_network(std::uint64_t seed, std::uint32_t most_ranks, std::uint32_t most_switches, bool even,
                       bool large) {
  generator random{seed * 1'000'003 + 11};
  network x;
  const std::uint32_t ranks = 2 + random.below(most_ranks - 1), switches = random.below(most_switches + 1);
  x.net.nodes = ranks + switches;
  for (std::uint32_t v = 0; v < x.net.nodes; ++v) x.weight.push_back(v < ranks ? 1 : 0);
  const std::int64_t scale = large ? 1'000'000'000'000'003 : 1;
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    const std::int64_t there = 1 + random.below(9), back = even ? there : 1 + random.below(9);
    x.net.arcs.push_back({a, b, there * scale});
    x.net.arcs.push_back({b, a, back * scale});
  };
  for (std::uint32_t v = 1; v < x.net.nodes; ++v) join(v, random.below(v));
  for (std::uint32_t k = random.below(2 * x.net.nodes); k > 0; --k) {
    const std::uint32_t a = random.below(x.net.nodes), b = random.below(x.net.nodes);
    if (a != b) join(a, b);
  }
  for (std::size_t k = x.net.arcs.size(); k > 1; --k)
    std::swap(x.net.arcs[k - 1], x.net.arcs[random.below(static_cast<std::uint32_t>(k))]);
  return x;
}

std::int64_t out_of(const network& x, std::uint32_t set) {
  std::int64_t sum = 0;
  for (const auto& a : x.net.arcs)
    if ((set >> a.from & 1U) != 0 && (set >> a.to & 1U) == 0) sum += a.units;
  return sum;
}
std::int64_t weight_of(const network& x, std::uint32_t set) {
  std::int64_t sum = 0;
  for (std::uint32_t v = 0; v < x.net.nodes; ++v) sum += (set >> v & 1U) != 0 ? x.weight[v] : 0;
  return sum;
}

/// The most shards per unit that a set with a receiver outside must let out; by trying all sets.
rational gather_by_force(const network& x, const std::vector<std::uint32_t>& receivers) {
  rational worst{0};
  for (std::uint32_t set = 1; set < 1U << x.net.nodes; ++set) {
    const bool needed = std::any_of(receivers.begin(), receivers.end(), [&](auto v) { return (set >> v & 1U) == 0; });
    if (!needed || weight_of(x, set) == 0) continue;
    const rational ratio{weight_of(x, set), out_of(x, set)};
    if (ratio > worst) worst = ratio;
  }
  return worst;
}

/// The least (sum of exits) / (parts - 1), by trying all partitions of the ranks, each part with its best switches.
rational family_by_force(const network& x, bool inward) {
  const auto n = static_cast<std::uint32_t>(weight_of(x, (1U << x.net.nodes) - 1));
  const std::uint32_t everything = (1U << x.net.nodes) - 1, ranks = (1U << n) - 1;
  std::vector<std::int64_t> exit(1U << n, INT64_MAX);  // per set of ranks: least exit with any switches
  for (std::uint32_t set = 0; set <= everything; ++set) {
    const std::int64_t out = out_of(x, inward ? everything & ~set : set);
    exit[set & ranks] = std::min(exit[set & ranks], out);
  }
  rational best{-1};
  std::vector<std::uint32_t> part(n, 0);
  for (bool more = true; more;) {
    std::uint32_t parts = 0;
    bool numbered = true;  // parts are numbered in the order of their first ranks
    for (const std::uint32_t p : part) {
      numbered = numbered && p <= parts;
      parts = std::max(parts, p + 1);
    }
    if (numbered && parts >= 2) {
      std::int64_t sum = 0;
      for (std::uint32_t p = 0; p < parts; ++p) {
        std::uint32_t set = 0;
        for (std::uint32_t v = 0; v < n; ++v) set |= part[v] == p ? 1U << v : 0U;
        sum += exit[set];
      }
      const rational rate{sum, std::int64_t{parts} - 1};
      if (best < rational{0} || rate < best) best = rate;
    }
    std::uint32_t v = 0;
    while (v < n && ++part[v] == n) part[v++] = 0;
    more = v < n;
  }
  return best;
}

}  // namespace

TEST(worst_gather_cut, is_the_worst_of_all_cuts) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    network x = random_network(seed, 6, 4, seed % 2 == 0, false);
    generator random{seed};
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t v = 0; v < x.net.nodes; ++v)
      if (x.weight[v] > 0) {
        receivers.push_back(v);
        if (seed % 3 == 0) x.weight[v] = random.below(6);
      }
    x.weight[receivers.back()] += 1;  // not all 0
    const auto force = gather_by_force(x, receivers);
    const auto cut = detail::worst_gather_cut(x.net, x.weight, {.receivers = receivers});
    ASSERT_TRUE(cut) << "seed " << seed << ' ' << cut.error().what;
    EXPECT_TRUE((rational{cut->weight, cut->exit}) == force) << "seed " << seed;
    std::int64_t inside = 0;
    for (std::uint32_t v = 0; v < x.net.nodes; ++v) inside += cut->inside[v] ? x.weight[v] : 0;
    EXPECT_EQ(inside, cut->weight) << "seed " << seed;
    EXPECT_EQ(detail::crossing_of(x.net, cut->inside).out, cut->exit) << "seed " << seed;
    // Turned round, and by turning the arcs.
    const auto turned = detail::worst_gather_cut(x.net, x.weight, {.receivers = receivers, .turned = true});
    const auto reversed = detail::worst_gather_cut(detail::reversed(x.net), x.weight, {.receivers = receivers});
    ASSERT_TRUE(turned && reversed) << "seed " << seed;
    EXPECT_TRUE((rational{turned->weight, turned->exit}) == (rational{reversed->weight, reversed->exit})) << seed;
    // From another cut as the start.
    const auto again = detail::worst_gather_cut(x.net, x.weight, {.receivers = receivers, .start = &*cut});
    ASSERT_TRUE(again) << "seed " << seed;
    EXPECT_TRUE(again->weight == cut->weight && again->exit == cut->exit) << "seed " << seed;
  }
}

TEST(worst_gather_cut, to_one_receiver_is_that_of_a_gather) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const network x = random_network(seed, 5, 4, seed % 2 == 0, false);
    const std::vector<std::uint32_t> root{1};
    const auto cut = detail::worst_gather_cut(x.net, x.weight, {.receivers = root});
    ASSERT_TRUE(cut) << "seed " << seed;
    EXPECT_TRUE((rational{cut->weight, cut->exit}) == gather_by_force(x, root)) << "seed " << seed;
  }
}

TEST(worst_root_cut, is_the_least_of_the_minimum_cuts_from_the_root) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const network x = random_network(seed, 12, 6, seed % 2 == 0, false);
    const auto cut = detail::worst_root_cut(x.net, x.weight, 0);
    ASSERT_TRUE(cut) << "seed " << seed;
    std::int64_t least = INT64_MAX;
    for (std::uint32_t v = 1; v < x.net.nodes; ++v) {
      if (x.weight[v] == 0) continue;
      topo::flow_network<> flow(x.net.nodes);
      for (const auto& a : x.net.arcs) flow.add({a.from}, {a.to}, a.units);
      least = std::min(least, flow.maximum_flow({0}, {v}).value());
    }
    EXPECT_EQ(cut->exit, least) << "seed " << seed;
  }
}

TEST(sink_flow, equals_the_flow_of_the_other_implementation) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const network x = random_network(seed, 14, 8, seed % 2 == 0, false);
    generator random{seed * 7};
    detail::sink_flow<std::int64_t> flow(x.net);
    const std::int64_t factor = 1 + random.below(5);
    ASSERT_TRUE(flow.scale(factor, 1000));
    std::vector<std::int64_t> feed(x.net.nodes, 0);
    std::vector<bool> open(x.net.nodes, false);
    for (std::uint32_t question = 0; question < 30; ++question) {
      const std::uint32_t changed = random.below(x.net.nodes);
      open[changed] = random.below(3) == 0;
      feed[changed] = random.below(12);
      if (open[changed])
        flow.open(changed);
      else
        flow.feed(changed, feed[changed]);
      std::uint32_t sink = random.below(x.net.nodes);
      while (open[sink]) {  // all open: close this one
        open[sink] = false;
        feed[sink] = 0;
        flow.feed(sink, 0);
      }
      topo::flow_network<> other(x.net.nodes + 1);
      for (const auto& a : x.net.arcs) other.add({a.from}, {a.to}, a.units * factor);
      for (std::uint32_t v = 0; v < x.net.nodes; ++v) other.add({x.net.nodes}, {v}, open[v] ? 1'000'000 : feed[v]);
      const std::int64_t expected = other.maximum_flow({x.net.nodes}, {sink}).value();
      EXPECT_EQ(flow.flow_into(sink, 1'000'000'000), expected) << "seed " << seed << " question " << question;
      EXPECT_EQ(flow.flow_into(sink, expected / 2 + 1), expected / 2 + 1 < expected ? expected / 2 + 1 : expected);
      if (flow.flow_into(sink, expected + 1) != expected) ADD_FAILURE() << "seed " << seed;
      // The set that was reached lets in what was found.
      std::int64_t in = 0;
      for (const std::uint32_t v : flow.reached()) in += feed[v];
      EXPECT_EQ(in + factor * static_cast<std::int64_t>(flow.units_around_reached().in), expected) << "seed " << seed;
    }
  }
}

TEST(best_partition, is_the_best_of_all_families) {
  std::uint32_t uneven = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const bool even = seed % 3 != 0;
    const network x = random_network(seed, 6, 4, even, false);
    for (const bool inward : {false, true}) {
      const auto found = detail::best_partition(x.net, x.weight, {.inward = inward});
      ASSERT_TRUE(found) << "seed " << seed << ' ' << found.error().what;
      EXPECT_TRUE(found->proved) << "seed " << seed;
      const rational rate{inward ? found->in : found->out, std::int64_t{found->parts} - 1};
      EXPECT_TRUE(rate == family_by_force(x, inward))
          << "seed " << seed << (inward ? " in " : " out ") << rate.to_double();
      auto again = *found;
      ASSERT_TRUE(detail::add_up(x.net, again));
      EXPECT_TRUE(again.out == found->out && again.in == found->in) << "seed " << seed;
      EXPECT_TRUE(!even || found->also.empty()) << "seed " << seed;
      uneven += found->also.empty() ? 0 : 1;
      // Every rank is in one set, every set has one.
      std::vector<std::uint32_t> ranks(found->parts, 0);
      for (std::uint32_t v = 0; v < x.net.nodes; ++v)
        if (x.weight[v] > 0) {
          ASSERT_NE(found->part_of[v], detail::no_part);
          ++ranks[found->part_of[v]];
        }
      EXPECT_TRUE(std::all_of(ranks.begin(), ranks.end(), [](auto k) { return k > 0; })) << "seed " << seed;
      for (const auto& [v, set] : found->also) EXPECT_EQ(x.weight[v], 0) << "seed " << seed;
    }
  }
  EXPECT_GT(uneven, 0U);  // sets that share a switch came up
}

TEST(best_partition, is_at_least_what_all_gather_and_reduce_scatter_leave) {
  // Equal shards, one phase after the other, are a plan where directions are alike: no family asks for more.
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const network x = random_network(seed, 20, 8, true, false);
    const auto cut = detail::worst_gather_cut(x.net, x.weight).value();
    const auto family = detail::best_partition(x.net, x.weight).value();
    std::int64_t n = 0;
    for (const std::int64_t w : x.weight) n += w;
    // exit / weight * n is the rate of all ranks together.
    EXPECT_TRUE((rational{family.out, std::int64_t{family.parts} - 1}) >= (rational{cut.exit * n, cut.weight}))
        << "seed " << seed;
  }
}

TEST(bounds, are_the_same_with_capacities_that_need_128_bits) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const network small = random_network(seed, 7, 3, seed % 2 == 0, false);
    const network large = random_network(seed, 7, 3, seed % 2 == 0, true);
    const auto a = detail::worst_gather_cut(small.net, small.weight).value();
    const auto b = detail::worst_gather_cut(large.net, large.weight);
    ASSERT_TRUE(b) << "seed " << seed << ' ' << b.error().what;
    EXPECT_TRUE((rational{a.weight, a.exit}) == (rational{b->weight, b->exit / 1'000'000'000'000'003})) << seed;
    const auto p = detail::best_partition(small.net, small.weight).value();
    const auto q = detail::best_partition(large.net, large.weight);
    ASSERT_TRUE(q) << "seed " << seed << ' ' << q.error().what;
    EXPECT_TRUE((rational{p.out, std::int64_t{p.parts} - 1}) ==
                (rational{q->out / 1'000'000'000'000'003, std::int64_t{q->parts} - 1}))
        << seed;
  }
}

TEST(bounds, refuse_capacities_that_do_not_fit) {
  network x;
  x.net.nodes = 3;
  x.weight = {1, 1, 1};
  for (std::uint32_t v = 0; v < 3; ++v)
    for (std::uint32_t u = 0; u < 3; ++u)
      if (u != v) x.net.arcs.push_back({v, u, INT64_MAX / 2 + 1});
  const auto cut = detail::worst_gather_cut(x.net, x.weight);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, topocoll::errc::unsupported);
  const auto family = detail::best_partition(x.net, x.weight);
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().code, topocoll::errc::unsupported);
  // Parallel arcs that would wrap to something small.
  network y;
  y.net.nodes = 2;
  y.weight = {1, 1};
  for (int k = 0; k < 4; ++k) {
    y.net.arcs.push_back({0, 1, INT64_MAX / 2 + 1});
    y.net.arcs.push_back({1, 0, INT64_MAX / 2 + 1});
  }
  const auto wrapped = detail::worst_gather_cut(y.net, y.weight);
  ASSERT_FALSE(wrapped);
  EXPECT_EQ(wrapped.error().code, topocoll::errc::unsupported);
  EXPECT_FALSE(detail::best_partition(y.net, y.weight));
}
