// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <unit/plan/plan_cluster.hpp>
#include <vector>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/traffic.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

std::vector<traffic_round> rounds_of(collective_kind c, std::uint32_t n, algorithm a, flat_options options = {}) {
  return traffic(flat_schedule(c, n, {}, a, options).value());
}

TEST(traffic, of_a_ring_is_one_round) {
  for (const std::uint32_t n : {2U, 3U, 8U, 17U}) {
    const auto reduce = rounds_of(collective_kind::all_reduce, n, algorithm::ring, {.slices = 2});
    ASSERT_EQ(reduce.size(), 1U);
    EXPECT_EQ(reduce[0].repeat, 2 * (n - 1));
    ASSERT_EQ(reduce[0].moves.size(), n);
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(reduce[0].moves[i], (transfer{{i}, {(i + 1) % n}, 2, 1}));
    EXPECT_EQ(rounds_of(collective_kind::all_gather, n, algorithm::ring).at(0).repeat, n - 1);
  }
}

TEST(traffic, of_one_rank_is_nothing) {
  EXPECT_TRUE(rounds_of(collective_kind::all_reduce, 1, algorithm::ring).empty());
  EXPECT_TRUE(rounds_of(collective_kind::broadcast, 1, algorithm::tree).empty());
}

TEST(traffic, has_as_many_rounds_as_the_algorithm_has_steps) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U, 64U}) {
    const std::uint32_t log = static_cast<std::uint32_t>(std::bit_width(n - 1));
    EXPECT_EQ(rounds_of(collective_kind::reduce_scatter, n, algorithm::recursive).size(), log);
    EXPECT_EQ(rounds_of(collective_kind::all_reduce, n, algorithm::recursive).size(), 2 * log);
    EXPECT_EQ(rounds_of(collective_kind::broadcast, n, algorithm::tree).size(), log);
    EXPECT_EQ(rounds_of(collective_kind::all_reduce, n, algorithm::doubling).size(),
              static_cast<std::uint32_t>(std::bit_width(n) - 1) + (std::has_single_bit(n) ? 0 : 2));
    EXPECT_EQ(rounds_of(collective_kind::all_reduce, n, algorithm::direct).size(), 2U);
    EXPECT_EQ(rounds_of(collective_kind::all_reduce, n, algorithm::one_shot).size(), 1U);
    EXPECT_LE(rounds_of(collective_kind::all_reduce, n, algorithm::double_tree).size(), 2 * log + 2);
  }
}

TEST(traffic, of_a_chain_counts_fill_apart) {
  const auto chain = rounds_of(collective_kind::broadcast, 5, algorithm::ring, {.slices = 1, .pieces = 12});
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].repeat, 12U);  // every link carries every piece once
  EXPECT_EQ(chain[0].fill, 3U);     // the last link starts three rounds late
  EXPECT_EQ(chain[0].moves.size(), 4U);
}

TEST(traffic, of_two_trees_gives_every_rank_about_two_vectors) {
  for (const std::uint32_t n : {4U, 8U, 16U, 17U}) {
    std::vector<std::uint64_t> sent(n, 0);
    for (const traffic_round& r : rounds_of(collective_kind::all_reduce, n, algorithm::double_tree, {.slices = 2}))
      for (const transfer& t : r.moves) sent[t.from.value] += t.chunks * r.repeat;
    // In units of a half vector: in one tree a leaf sends 1, in the other an inner rank sends 1 up and 2 down.
    std::uint64_t most = 0, all = 0;
    for (const std::uint64_t s : sent) {
      most = std::max(most, s);
      all += s;
    }
    EXPECT_EQ(all, 4 * (n - 1));
    EXPECT_LE(most, 5U) << n;
  }
}

TEST(traffic, runs_groups_of_a_stage_side_by_side) {
  const auto c = plan_test::build(plan_test::even(1, 4, 2));
  const auto made =
      hierarchical{.slices = 1}.synthesize(plan_test::on(c, collective_kind::all_reduce, bytes{64U << 20U})).value();
  const auto rounds = traffic(made);
  // Box: one direct step; rail: 2 * 3 ring steps of both rails at once; box again.
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_EQ(rounds[0].moves.size(), 8U);
  EXPECT_EQ(rounds[1].repeat, 6U);
  EXPECT_EQ(rounds[1].moves.size(), 8U);
  EXPECT_EQ(rounds[1].stage, 1U);
}

TEST(traffic, cuts_rounds_where_groups_differ) {
  schedule s = flat_schedule(collective_kind::all_reduce, 5, {}, algorithm::ring).value();
  s.units = 6;
  s.stages[0] = {};
  const std::vector<rank_id> two{{0}, {1}}, three{{2}, {3}, {4}};
  const std::vector<std::uint32_t> halves{0, 3, 6}, thirds{0, 2, 4, 6};
  s.stages[0].add(two, halves);
  s.stages[0].add(three, thirds);
  const auto rounds = traffic(s);
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].repeat, 2U);
  EXPECT_EQ(rounds[0].moves.size(), 5U);
  EXPECT_EQ(rounds[1].repeat, 2U);
  EXPECT_EQ(rounds[1].moves.size(), 3U);
}

TEST(traffic, counts_the_pieces_of_a_message) {
  // Shards that are apart in the array travel as several messages.
  schedule s = flat_schedule(collective_kind::all_gather, 4, {}, algorithm::recursive).value();
  EXPECT_EQ(traffic(s).back().moves.at(0).messages, 1U);
  s.order = {{0}, {2}, {1}, {3}};
  s.stages[0] = {};
  s.stages[0].kind = stage_kind::all_gather;
  s.stages[0].how = algorithm::recursive;
  const std::vector<std::uint32_t> bounds{0, 1, 2, 3, 4};
  s.stages[0].add(s.order, bounds);
  EXPECT_EQ(traffic(s).back().moves.at(0).messages, 2U);
}

}  // namespace
