// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>
#include <topocoll/plan/fair_share.hpp>
#include <gtest/gtest.h>

namespace {

using topocoll::plan::fair_share;
using topocoll::plan::fair_use;

/// Max-min fair rates by the definition, from nothing: raise all rates together, stop those that meet a full place.
/// `ways[i]` has `flows[i]` flows.
std::vector<double> by_definition(const std::vector<double>& capacity, const std::vector<std::vector<fair_use>>& ways,
                                  const std::vector<std::uint32_t>& flows) {
  std::vector<double> rate(ways.size(), 0);
  std::vector<bool> frozen(ways.size());
  for (std::size_t w = 0; w < ways.size(); ++w) frozen[w] = flows[w] == 0;
  double level = 0;
  while (std::find(frozen.begin(), frozen.end(), false) != frozen.end()) {
    double step = std::numeric_limits<double>::infinity();
    std::vector<double> load(capacity.size(), 0), open(capacity.size(), 0);
    for (std::size_t w = 0; w < ways.size(); ++w)
      for (const fair_use& u : ways[w]) {
        load[u.place] += u.share * flows[w] * (frozen[w] ? rate[w] : level);
        if (!frozen[w]) open[u.place] += u.share * flows[w];
      }
    for (std::size_t p = 0; p < capacity.size(); ++p)
      if (open[p] > 0) step = std::min(step, std::max(0.0, capacity[p] - load[p]) / open[p]);
    if (std::isinf(step)) {
      for (std::size_t w = 0; w < ways.size(); ++w)
        if (!frozen[w]) rate[w] = step, frozen[w] = true;
      break;
    }
    level += step;
    for (std::size_t p = 0; p < capacity.size(); ++p) load[p] += step * open[p];
    for (std::size_t w = 0; w < ways.size(); ++w) {
      if (frozen[w]) continue;
      for (const fair_use& u : ways[w])
        if (load[u.place] >= capacity[u.place] * (1 - 1e-11)) frozen[w] = true;
      if (frozen[w]) rate[w] = level;
    }
  }
  return rate;
}

TEST(fair_share, divides_one_link_evenly) {
  fair_share<> s;
  const std::uint32_t link = s.add_place(12);
  const fair_use use{link, 1};
  const std::uint32_t a = s.add_way({&use, 1}), b = s.add_way({&use, 1});
  s.start(a);
  s.settle();
  EXPECT_DOUBLE_EQ(s.rate(a), 12);
  s.start(b);
  s.start(b);
  EXPECT_EQ(s.settle().size(), 2U);
  EXPECT_DOUBLE_EQ(s.rate(a), 4);
  EXPECT_DOUBLE_EQ(s.rate(b), 4);
  EXPECT_EQ(s.bottleneck(b), link);
  s.stop(a);
  s.settle();
  EXPECT_DOUBLE_EQ(s.rate(b), 6);
  EXPECT_DOUBLE_EQ(s.rate(a), 0);
  EXPECT_EQ(s.bottleneck(a), fair_share<>::none);
}

// The textbook example: three flows on two links of 1 and 2.
TEST(fair_share, gives_the_rest_to_those_who_can_use_it) {
  fair_share<> s;
  const std::uint32_t thin = s.add_place(1), wide = s.add_place(2);
  const fair_use both[] = {{thin, 1}, {wide, 1}}, first[] = {{thin, 1}}, second[] = {{wide, 1}};
  const std::uint32_t x = s.add_way(both), y = s.add_way(first), z = s.add_way(second);
  for (const std::uint32_t w : {x, y, z}) s.start(w);
  s.settle();
  EXPECT_DOUBLE_EQ(s.rate(x), 0.5);
  EXPECT_DOUBLE_EQ(s.rate(y), 0.5);
  EXPECT_DOUBLE_EQ(s.rate(z), 1.5);
  EXPECT_EQ(s.bottleneck(z), wide);
}

TEST(fair_share, lets_a_way_without_places_run_free_and_stops_at_dead_places) {
  fair_share<> s;
  const std::uint32_t dead = s.add_place(0);
  const fair_use use{dead, 1};
  const std::uint32_t stuck = s.add_way({&use, 1}), free = s.add_way({});
  s.start(stuck);
  s.start(free);
  s.settle();
  EXPECT_EQ(s.rate(stuck), 0);
  EXPECT_TRUE(std::isinf(s.rate(free)));
}

TEST(fair_share, counts_shares_of_split_ways) {
  fair_share<> s;
  const std::uint32_t left = s.add_place(10), right = s.add_place(30);
  const fair_use split[] = {{left, 0.5}, {right, 0.5}}, only[] = {{right, 1}};
  const std::uint32_t a = s.add_way(split), b = s.add_way(only);
  s.start(a);
  s.start(b);
  s.settle();
  // Both rise to 20, where `left` is full and `right` carries 10 + 20.
  EXPECT_DOUBLE_EQ(s.rate(a), 20);
  EXPECT_DOUBLE_EQ(s.rate(b), 20);
}

TEST(fair_share, equals_the_definition_after_every_change_of_random_networks) {
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t places = 1 + below(20), ways = 1 + below(30);
    fair_share<> s;
    std::vector<double> capacity;
    for (std::uint32_t p = 0; p < places; ++p) {
      capacity.push_back(seed % 3 == 0 ? 100 : 1 + below(1000));
      s.add_place(capacity.back());
    }
    std::vector<std::vector<fair_use>> uses(ways);
    std::vector<std::uint32_t> flows(ways, 0);
    for (std::uint32_t w = 0; w < ways; ++w) {
      std::vector<std::uint32_t> all(places);
      for (std::uint32_t p = 0; p < places; ++p) all[p] = p;
      const std::uint32_t n = 1 + below(std::min(places, 5U));
      for (std::uint32_t i = 0; i < n; ++i) {
        std::swap(all[i], all[i + below(places - i)]);
        constexpr double shares[] = {1, 0.5, 0.25, 1.0 / 3, 3};
        uses[w].push_back({all[i], seed % 2 == 0 ? 1 : shares[below(5)]});
      }
      s.add_way(uses[w]);
    }
    for (std::uint32_t change = 0; change < 60; ++change) {
      for (std::uint32_t k = 1 + below(4); k > 0; --k) {
        const std::uint32_t w = below(ways);
        if (flows[w] != 0 && below(2) == 0) {
          --flows[w];
          s.stop(w);
        } else {
          ++flows[w];
          s.start(w);
        }
      }
      std::vector<double> old(ways);
      for (std::uint32_t w = 0; w < ways; ++w) old[w] = s.rate(w);
      const auto changed = s.settle();
      const std::vector<double> wanted = by_definition(capacity, uses, flows);
      for (std::uint32_t w = 0; w < ways; ++w) {
        ASSERT_NEAR(s.rate(w), wanted[w], 1e-6 * (1 + wanted[w])) << "seed " << seed << ", change " << change;
        const bool told = std::find(changed.begin(), changed.end(), w) != changed.end();
        ASSERT_TRUE(told || flows[w] == 0 || s.rate(w) == old[w]) << "seed " << seed;
      }
    }
  }
}

TEST(fair_share, does_not_touch_what_does_not_depend_on_the_change) {
  fair_share<> s;
  std::vector<std::uint32_t> ways;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const fair_use use{s.add_place(1), 1};
    ways.push_back(s.add_way({&use, 1}));
    s.start(ways.back());
  }
  s.settle();
  const std::uint64_t before = s.filled();
  s.start(ways[500]);
  s.settle();
  EXPECT_EQ(s.filled() - before, 1U);
}

// A full link between two groups that do not depend on each other: only the group that changed is filled again.
TEST(fair_share, stops_at_links_that_have_room) {
  fair_share<> s;
  const std::uint32_t core = s.add_place(1e6);
  std::vector<std::uint32_t> ways;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const fair_use uses[] = {{s.add_place(1), 1}, {core, 1}};
    ways.push_back(s.add_way(uses));
    s.start(ways.back());
  }
  s.settle();
  const std::uint64_t before = s.filled();
  s.stop(ways[3]);
  s.settle();
  EXPECT_EQ(s.filled() - before, 0U);
  s.start(ways[4]);
  s.settle();
  EXPECT_EQ(s.filled() - before, 1U);
}

}  // namespace
