// SPDX-License-Identifier: Apache-2.0
// Stages that run along an axis of the plan's shape: groups that nobody has to write down.
#include <algorithm>
#include <cstdint>
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
using shape_t = std::vector<std::uint32_t>;

stage along(stage_kind kind, std::uint32_t axis, algorithm how) {
  stage st;
  st.kind = kind;
  st.how = how;
  st.axis = axis;
  return st;
}

/// Down the axes and up again, or one half of it.
schedule lattice(collective_kind c, const shape_t& shape, std::span<const algorithm> how, std::uint32_t slices = 1) {
  schedule plan;
  plan.collective = c;
  plan.name = "lattice";
  plan.shape = shape;
  plan.ranks = 1;
  for (const std::uint32_t s : shape) plan.ranks *= s;
  plan.units = plan.ranks;
  plan.slices = slices;
  const auto axes = static_cast<std::uint32_t>(shape.size());
  const auto algorithm_of = [&](std::uint32_t a) { return how[a % how.size()]; };
  if (c != collective_kind::all_gather)
    for (std::uint32_t a = 0; a + (c == collective_kind::all_reduce ? 1 : 0) < axes; ++a)
      plan.stages.push_back(along(stage_kind::reduce_scatter, a, algorithm_of(a)));
  if (c == collective_kind::all_reduce)
    plan.stages.push_back(along(stage_kind::all_reduce, axes - 1, algorithm_of(axes - 1)));
  if (c != collective_kind::reduce_scatter)
    for (std::uint32_t a = axes - (c == collective_kind::all_reduce ? 1 : 0); a-- > 0;)
      plan.stages.push_back(along(stage_kind::all_gather, a, algorithm_of(a)));
  return plan;
}

void shuffle(schedule& plan, std::uint32_t seed) {
  std::mt19937 random(seed);
  plan.order.clear();
  for (std::uint32_t r = 0; r < plan.ranks; ++r) plan.order.push_back({r});
  std::shuffle(plan.order.begin(), plan.order.end(), random);
}

std::string text_of(const program& p) {
  std::string text;
  for (const step& s : p.steps) {
    text += std::to_string(s.channel) + ':' + std::to_string(s.stage);
    for (const std::uint32_t a : s.after) text += '<' + std::to_string(a);
    for (std::uint32_t i = s.first_op; i < s.first_op + s.op_count; ++i) {
      const op& o = p.ops[i];
      text += ' ' + std::to_string(static_cast<int>(o.kind)) + ',' + std::to_string(o.peer.value) + ',' +
              std::to_string(static_cast<int>(o.from.where)) + '/' + std::to_string(o.from.first) + '+' +
              std::to_string(o.from.count) + ',' + std::to_string(static_cast<int>(o.to.where)) + '/' +
              std::to_string(o.to.first) + ',' + std::to_string(o.chunk);
    }
    text += '\n';
  }
  return text;
}

constexpr collective_kind three[] = {collective_kind::all_reduce, collective_kind::all_gather,
                                     collective_kind::reduce_scatter};
constexpr algorithm mixed[] = {algorithm::ring, algorithm::recursive, algorithm::direct};

TEST(stages_along_axes, compute_the_collective_for_every_shape_and_order) {
  std::uint32_t seed = 0;
  for (const collective_kind c : three)
    for (const shape_t& shape : {shape_t{1}, {5}, {2, 3}, {3, 1, 2}, {2, 3, 2}, {2, 2, 2, 2}, {8, 1, 1}})
      for (const bool shuffled : {false, true}) {
        schedule plan = lattice(c, shape, mixed, 1 + seed % 2);
        if (shuffled) shuffle(plan, ++seed);
        ASSERT_TRUE(validate(plan)) << validate(plan).error().what;
        const auto proved = verify(plan);
        ASSERT_TRUE(proved) << proved.error().what;
        std::vector<program> all;
        for (std::uint32_t r = 0; r < plan.ranks; ++r) all.push_back(lower(plan, {r}).value());
        plan_test::oracle run(std::move(all), {.elements = 13, .in_place = shuffled, .buffered = false, .seed = seed});
        EXPECT_EQ(run.run(), "") << to_string(c);
      }
}

TEST(stages_along_axes, mean_the_same_as_their_groups_written_down) {
  for (const collective_kind c : three) {
    schedule plan = lattice(c, {2, 3, 4}, mixed, 2);
    shuffle(plan, 4);
    const schedule wide = expanded(plan);
    ASSERT_TRUE(validate(wide));
    EXPECT_EQ(wide.stages[0].group_count(), c == collective_kind::all_gather ? 6U : 12U);
    for (std::uint32_t r = 0; r < plan.ranks; ++r)
      EXPECT_EQ(text_of(lower(plan, {r}).value()), text_of(lower(wide, {r}).value()));
    const auto a = traffic(plan), b = traffic(wide);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].moves, b[i].moves);
  }
}

TEST(stages_along_axes, give_one_rank_only_its_own_groups) {
  schedule plan = lattice(collective_kind::all_reduce, {8, 64, 32}, mixed);
  const schedule mine = part_of(plan, {5000});
  for (const stage& st : mine.stages) {
    ASSERT_EQ(st.group_count(), 1U);
    EXPECT_LE(st.members.size(), 64U);
    EXPECT_NE(std::find(st.members.begin(), st.members.end(), rank_id{5000}), st.members.end());
  }
}

TEST(stages_along_axes, are_proved_at_sizes_that_nobody_could_write_down) {
  const algorithm rings[] = {algorithm::ring};
  for (const collective_kind c : three) {
    const schedule plan = lattice(c, {8, 16, 64}, rings);
    const auto proved = verify(plan, {.exact_messages = 100'000});
    ASSERT_TRUE(proved) << proved.error().what;
    EXPECT_EQ(proved->method, proof_method::by_stage);
    EXPECT_EQ(proved->ranks, 8192U);
  }
}

TEST(stages_along_axes, that_do_not_fit_together_are_found_out) {
  const algorithm rings[] = {algorithm::ring};
  const auto refused = [&](const shape_t& shape, auto&& change) {
    schedule plan = lattice(collective_kind::all_reduce, shape, rings);
    change(plan);
    return !verify(plan, {.exact_messages = 20'000});
  };
  for (const shape_t& shape : {shape_t{4, 3, 2}, {8, 32, 32}}) {
    EXPECT_FALSE(refused(shape, [](schedule&) {}));
    EXPECT_TRUE(refused(shape, [](schedule& p) { p.stages.pop_back(); }));
    EXPECT_TRUE(refused(shape, [](schedule& p) { std::swap(p.stages[0], p.stages[1]); }));
    EXPECT_TRUE(refused(shape, [](schedule& p) { p.stages[1].axis = 0; }));
    EXPECT_TRUE(refused(shape, [](schedule& p) { p.stages.insert(p.stages.begin(), p.stages[0]); }));
    EXPECT_TRUE(refused(shape, [](schedule& p) { p.collective = collective_kind::all_gather; }));
  }
}

TEST(stages_along_axes, are_refused_where_the_shape_does_not_fit) {
  const auto broken = [](auto&& change) {
    schedule plan = lattice(collective_kind::all_reduce, {2, 3}, mixed);
    change(plan);
    return !validate(plan);
  };
  EXPECT_FALSE(broken([](schedule&) {}));
  EXPECT_TRUE(broken([](schedule& p) { p.shape = {2, 2}; }));
  EXPECT_TRUE(broken([](schedule& p) { p.shape = {0, 3}; }));
  EXPECT_TRUE(broken([](schedule& p) { p.shape = {65536, 65536}; }));
  EXPECT_TRUE(broken([](schedule& p) { p.shape.clear(); }));
  EXPECT_TRUE(broken([](schedule& p) { p.units = 7; }));
  EXPECT_TRUE(broken([](schedule& p) { p.stages[0].axis = 2; }));
  EXPECT_TRUE(broken([](schedule& p) { p.stages[0].members = {{0}}; }));
  EXPECT_TRUE(broken([](schedule& p) { p.stages[0].how = algorithm::packed; }));
  EXPECT_TRUE(broken([](schedule& p) { p.stages[1].kind = stage_kind::broadcast; }));
  EXPECT_TRUE(broken([](schedule& p) { p.order = {{0}, {0}, {1}, {2}, {3}, {4}}; }));
}

TEST(stages_along_axes, come_back_from_json) {
  schedule plan = lattice(collective_kind::all_reduce, {2, 3}, mixed, 2);
  shuffle(plan, 8);
  const auto back = schedule_from_json(to_json(plan), "plan");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, plan);
}

}  // namespace
