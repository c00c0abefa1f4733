// SPDX-License-Identifier: Apache-2.0
// Stages whose groups are trees that somebody drew.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>
#include "plan_oracle.hpp"

namespace {

using namespace topocoll;
using namespace topocoll::plan;

struct drawn_tree {
  std::vector<rank_id> members;
  std::vector<std::uint32_t> parents;
};

/// A tree over all ranks from `root`, each member below a random earlier one.
drawn_tree random_tree(std::uint32_t ranks, std::uint32_t root, std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  drawn_tree t;
  for (std::uint32_t r = 0; r < ranks; ++r) t.members.push_back({r});
  std::swap(t.members[0], t.members[root]);
  std::shuffle(t.members.begin() + 1, t.members.end(), random);
  for (std::uint32_t j = 0; j < ranks; ++j) t.parents.push_back(j == 0 ? 0 : below(j));
  return t;
}

/// A plan of random trees: `per_root` for each shard or for the whole array, of random widths.
schedule random_plan(collective_kind c, std::uint32_t ranks, std::uint32_t slices, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  schedule plan;
  plan.collective = c;
  plan.ranks = ranks;
  plan.slices = slices;
  plan.name = "random trees";
  const bool rooted = c == collective_kind::broadcast || c == collective_kind::reduce;
  plan.root = rooted ? rank_id{below(ranks)} : rank_id{0};
  const std::uint32_t pieces = 1 + below(4);
  plan.units = sharded(c) ? ranks * pieces : pieces;
  stage st;
  st.how = algorithm::packed;
  st.kind = c == collective_kind::all_reduce                                       ? stage_kind::all_reduce
            : c == collective_kind::reduce_scatter || c == collective_kind::reduce ? stage_kind::reduce
                                                                                   : stage_kind::broadcast;
  const auto put = [&](std::uint32_t root, std::uint32_t lo, std::uint32_t hi) {
    const drawn_tree t = random_tree(ranks, root, random);
    st.add_tree(t.members, t.parents, lo, hi);
  };
  for (std::uint32_t shard = 0; shard < (sharded(c) ? ranks : 1); ++shard)
    for (std::uint32_t u = 0; u < pieces;) {
      const std::uint32_t next = u + 1 + below(pieces - u);
      put(sharded(c) ? shard : rooted ? plan.root.value : below(ranks), shard * pieces + u, shard * pieces + next);
      u = next;
    }
  plan.stages.push_back(std::move(st));
  return plan;
}

std::vector<program> programs_of(const schedule& plan) {
  std::vector<program> all;
  for (std::uint32_t r = 0; r < plan.ranks; ++r) all.push_back(lower(plan, {r}).value());
  return all;
}

constexpr collective_kind with_trees[] = {collective_kind::all_reduce, collective_kind::all_gather,
                                          collective_kind::reduce_scatter, collective_kind::broadcast,
                                          collective_kind::reduce};

TEST(trees, of_any_shape_are_proved_and_compute_the_collective) {
  std::uint32_t seed = 0;
  for (const collective_kind c : with_trees)
    for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U, 17U})
      for (const std::uint32_t slices : {1U, 3U}) {
        const schedule plan = random_plan(c, n, slices, ++seed);
        ASSERT_TRUE(validate(plan)) << validate(plan).error().what;
        const auto proved = verify(plan);
        ASSERT_TRUE(proved) << to_string(c) << " " << n << ": " << proved.error().what;
        EXPECT_TRUE(proved->one_step_at_a_time || n == 1);
        for (const bool in_place : {false, true})
          for (const bool buffered : {false, true}) {
            plan_test::oracle run(programs_of(plan),
                                  {.elements = 11, .in_place = in_place, .buffered = buffered, .seed = seed});
            EXPECT_EQ(run.run(), "") << to_string(c) << " " << n;
          }
      }
}

TEST(trees, are_proved_stage_by_stage_too) {
  for (const collective_kind c : with_trees) {
    const schedule plan = random_plan(c, 9, 4, 77);
    // One tree of nine ranks in two slices is proved exactly, but not all four slices.
    const auto proved = verify(plan, {.exact_messages = c == collective_kind::all_reduce ? 32U : 16U});
    ASSERT_TRUE(proved) << to_string(c) << ": " << proved.error().what;
    EXPECT_EQ(proved->method, proof_method::by_stage);
  }
}

TEST(trees, that_miss_a_rank_are_found_out) {
  schedule plan = random_plan(collective_kind::all_reduce, 6, 1, 5);
  stage& st = plan.stages[0];
  stage cut;
  cut.kind = st.kind;
  cut.how = st.how;
  for (std::size_t g = 0; g < st.group_count(); ++g) {
    const group_view group = st.group(g);
    cut.add_tree(group.members.first(5), group.parents.first(5), group.first(), group.last());
  }
  st = cut;
  ASSERT_TRUE(validate(plan));
  EXPECT_EQ(verify(plan).error().code, errc::bug);
  EXPECT_EQ(verify(plan, {.exact_messages = 10}).error().code, errc::bug);
}

TEST(trees, send_what_traffic_says) {
  std::uint32_t seed = 100;
  for (const collective_kind c : with_trees) {
    const schedule plan = random_plan(c, 7, 2, ++seed);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> said, done;
    for (const topocoll::plan::traffic_round& r : traffic(plan))
      for (const transfer& t : r.moves) said[{t.from.value, t.to.value}] += t.chunks * r.repeat;
    for (const program& p : programs_of(plan))
      for (const op& o : p.ops)
        if (o.kind == op_kind::send) done[{p.rank.value, o.peer.value}] += o.from.count;
    EXPECT_EQ(said, done) << to_string(c);
  }
}

TEST(trees, take_as_many_rounds_as_they_are_deep) {
  schedule chain;
  chain.collective = collective_kind::broadcast;
  chain.ranks = 5;
  stage st;
  st.kind = stage_kind::broadcast;
  st.how = algorithm::packed;
  const std::vector<rank_id> members{{0}, {1}, {2}, {3}, {4}};
  st.add_tree(members, std::vector<std::uint32_t>{0, 0, 1, 2, 3}, 0, 1);
  chain.stages = {st};
  EXPECT_EQ(traffic(chain).size(), 4U);
  chain.stages[0].parents = {0, 0, 0, 0, 0};
  EXPECT_EQ(traffic(chain).size(), 1U);  // a star sends to all at once
  chain.collective = collective_kind::all_reduce;
  chain.stages[0].kind = stage_kind::all_reduce;
  EXPECT_EQ(traffic(chain).size(), 5U);  // but adds up one child after the other
}

TEST(trees, come_back_from_json_with_their_ways) {
  schedule plan = random_plan(collective_kind::all_reduce, 5, 2, 3);
  plan.ways = {{{{4}, {9}}}, {{{2}}}};
  plan.stages[0].ways_down.assign(plan.stages[0].members.size(), 1);
  plan.stages[0].ways_up.assign(plan.stages[0].members.size(), 2);
  const auto back = schedule_from_json(to_json(plan), "plan");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, plan);
}

TEST(trees, carry_their_ways_into_the_traffic) {
  schedule plan = random_plan(collective_kind::all_reduce, 4, 1, 3);
  plan.ways = {{{{4}}}, {{{2}}}};
  plan.stages[0].ways_down.assign(plan.stages[0].members.size(), 1);
  plan.stages[0].ways_up.assign(plan.stages[0].members.size(), 2);
  const auto rounds = traffic(plan);
  EXPECT_EQ(rounds.front().moves.front().way, 2U);
  EXPECT_EQ(rounds.back().moves.front().way, 1U);
}

TEST(trees, that_are_none_are_refused) {
  const auto broken = [](auto&& change) {
    schedule plan = random_plan(collective_kind::broadcast, 5, 1, 9);
    change(plan.stages[0], plan);
    return !validate(plan) && validate(plan).error().code == errc::invalid_argument;
  };
  EXPECT_FALSE(broken([](stage&, schedule&) {}));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.parents[0] = 1; }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.parents[1] = 1; }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.parents[2] = 4; }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.parents.pop_back(); }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.parents.clear(); }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.bounds[1] = s.bounds[0]; }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.how = algorithm::tree; }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.ways_down.assign(s.members.size(), 1); }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.ways_up.assign(1, 0); }));
  EXPECT_TRUE(broken([](stage& s, schedule&) { s.kind = stage_kind::all_gather; }));
}

TEST(trees, change_the_digest_and_ways_do_not) {
  schedule plan = random_plan(collective_kind::broadcast, 6, 1, 12);
  const auto before = digest(plan);
  plan.ways = {{{{1}}}};
  plan.stages[0].ways_down.assign(plan.stages[0].members.size(), 1);
  EXPECT_EQ(digest(plan), before);
  plan.stages[0].parents.back() = plan.stages[0].parents.back() == 0 ? 1 : 0;
  EXPECT_NE(digest(plan), before);
}

}  // namespace
