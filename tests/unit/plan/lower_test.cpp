// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/lower.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

schedule flat(collective_kind c, std::uint32_t n, algorithm a, flat_options options = {}) {
  return flat_schedule(c, n, {}, a, options).value();
}

std::uint64_t chunks_sent(const program& p) {
  std::uint64_t sum = 0;
  for (const op& o : p.ops) sum += o.kind == op_kind::send ? o.from.count : 0;
  return sum;
}
std::size_t count(const program& p, op_kind kind) {
  std::size_t n = 0;
  for (const op& o : p.ops) n += o.kind == kind ? 1 : 0;
  return n;
}

TEST(lower, sends_what_the_closed_forms_say) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 17U}) {
    const std::uint32_t log = n == 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(n - 1));
    for (std::uint32_t r = 0; r < n; ++r) {
      SCOPED_TRACE(std::to_string(r) + " of " + std::to_string(n));
      // Rings: n-1 parts of 1/n per phase.
      EXPECT_EQ(chunks_sent(lower(flat(collective_kind::all_reduce, n, algorithm::ring), {r}).value()), 2 * (n - 1));
      EXPECT_EQ(chunks_sent(lower(flat(collective_kind::all_gather, n, algorithm::ring), {r}).value()), n - 1);
      EXPECT_EQ(chunks_sent(lower(flat(collective_kind::reduce_scatter, n, algorithm::direct), {r}).value()), n - 1);
      // Halving: each contribution leaves once, whatever n.
      EXPECT_EQ(
          chunks_sent(lower(flat(collective_kind::reduce_scatter, n, algorithm::recursive), {r}).value()) >= n - 1,
          true);
      if (std::has_single_bit(n)) {
        EXPECT_EQ(chunks_sent(lower(flat(collective_kind::reduce_scatter, n, algorithm::recursive), {r}).value()),
                  n - 1);
        EXPECT_EQ(chunks_sent(lower(flat(collective_kind::all_reduce, n, algorithm::doubling), {r}).value()), log);
      }
      EXPECT_EQ(chunks_sent(lower(flat(collective_kind::all_reduce, n, algorithm::one_shot), {r}).value()), n - 1);
    }
    // Trees: every rank but the root sends its sum once and gets the result once.
    for (const algorithm a : {algorithm::tree, algorithm::double_tree}) {
      std::uint64_t all = 0;
      for (std::uint32_t r = 0; r < n; ++r)
        all += chunks_sent(lower(flat(collective_kind::all_reduce, n, a), {r}).value());
      EXPECT_EQ(all, 2 * (n - 1));
    }
  }
}

TEST(lower, needs_no_scratch_for_all_reduce_by_ring_halving_or_tree) {
  for (const algorithm a : {algorithm::ring, algorithm::recursive, algorithm::tree, algorithm::double_tree})
    for (const std::uint32_t n : {2U, 3U, 7U, 8U})
      for (std::uint32_t r = 0; r < n; ++r)
        EXPECT_EQ(lower(flat(collective_kind::all_reduce, n, a, {.slices = 2}), {r}).value().scratch_cells, 0U);
}

TEST(lower, needs_two_cells_per_slice_for_a_ring_reduce_scatter) {
  for (const std::uint32_t n : {4U, 7U, 64U}) {
    EXPECT_EQ(lower(flat(collective_kind::reduce_scatter, n, algorithm::ring), {1}).value().scratch_cells, 2U);
    EXPECT_EQ(
        lower(flat(collective_kind::reduce_scatter, n, algorithm::ring, {.slices = 3}), {1}).value().scratch_cells, 6U);
    EXPECT_EQ(lower(flat(collective_kind::reduce, n, algorithm::ring), {1}).value().scratch_cells, 2U);
  }
}

TEST(lower, reads_input_where_it_lies) {
  for (const algorithm a :
       {algorithm::ring, algorithm::recursive, algorithm::tree, algorithm::double_tree, algorithm::direct})
    for (std::uint32_t r = 0; r < 8; ++r)
      EXPECT_EQ(count(lower(flat(collective_kind::all_reduce, 8, a), {r}).value(), op_kind::copy), 0U) << to_string(a);
  for (std::uint32_t r = 0; r < 8; ++r) {
    EXPECT_EQ(count(lower(flat(collective_kind::reduce_scatter, 8, algorithm::ring), {r}).value(), op_kind::copy), 0U);
    // A gather moves the own shard to its place, after its first message has left.
    const program gather = lower(flat(collective_kind::all_gather, 8, algorithm::ring), {r}).value();
    ASSERT_EQ(count(gather, op_kind::copy), 1U);
    EXPECT_EQ(gather.ops[gather.steps[1].first_op].kind, op_kind::copy);
    EXPECT_TRUE(gather.steps[1].after.empty());
  }
}

TEST(lower, of_one_rank_only_copies) {
  for (const collective_kind c :
       {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter,
        collective_kind::broadcast, collective_kind::reduce}) {
    const program p = lower(flat(c, 1, algorithm::ring), {0}).value();
    ASSERT_EQ(p.ops.size(), 1U) << to_string(c);
    EXPECT_EQ(p.ops[0].kind, op_kind::copy);
    EXPECT_EQ(p.ops[0].to.count, p.chunks);
  }
}

TEST(lower, puts_slices_on_channels_in_turn_and_lets_each_follow_the_one_before_the_last) {
  for (const algorithm how : {algorithm::ring, algorithm::direct, algorithm::double_tree})
    for (const std::uint32_t slices : {1U, 3U, 19U}) {
      const program p = lower(flat(collective_kind::all_reduce, 5, how, {.slices = slices}), {2}).value();
      EXPECT_EQ(p.channels, std::min(slices, max_channels));
      const std::uint32_t units = p.chunks / slices, lag = 2;
      std::vector<std::vector<std::uint32_t>> of_slice(slices);
      for (std::uint32_t i = 0; i < p.steps.size(); ++i) {
        const step& st = p.steps[i];
        const std::uint32_t s = p.ops[st.first_op].chunk / units;
        EXPECT_EQ(st.channel, s % max_channels);
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) EXPECT_EQ(p.ops[o].chunk / units, s);
        bool follows = s < lag;
        for (const std::uint32_t a : st.after) {
          const std::uint32_t other = p.ops[p.steps[a].first_op].chunk / units;
          if (other == s) continue;
          ASSERT_EQ(other, s - lag);
          EXPECT_EQ(a, of_slice[other].at(of_slice[s].size()));  // the same step of that slice
          follows = true;
        }
        EXPECT_TRUE(follows || of_slice[s].size() >= of_slice[s - lag].size());
        of_slice[s].push_back(i);
      }
    }
}

TEST(lower, lets_one_slice_at_a_time_into_trees_of_one_root_and_two_into_trees_of_several) {
  const auto tree = [](std::initializer_list<std::uint32_t> roots, collective_kind c, stage_kind kind) {
    schedule plan;
    plan.collective = c;
    plan.ranks = 4;
    plan.units = 4;
    plan.slices = 4;
    stage st;
    st.kind = kind;
    st.how = algorithm::packed;
    std::uint32_t at = 0;
    for (const std::uint32_t root : roots) {
      std::vector<rank_id> members;
      for (std::uint32_t i = 0; i < 4; ++i) members.push_back({(root + i) % 4});
      st.add_tree(members, std::vector<std::uint32_t>{0, 0, 1, 2}, at,
                  at + static_cast<std::uint32_t>(4 / roots.size()));
      at += static_cast<std::uint32_t>(4 / roots.size());
    }
    plan.stages.push_back(std::move(st));
    return plan;
  };
  EXPECT_EQ(slices_at_once(tree({0}, collective_kind::broadcast, stage_kind::broadcast).stages[0]), 1U);
  EXPECT_EQ(slices_at_once(tree({0, 1, 2, 3}, collective_kind::all_gather, stage_kind::broadcast).stages[0]), 2U);
  const schedule plan = tree({0}, collective_kind::broadcast, stage_kind::broadcast);
  const program p = lower(plan, {0}).value();
  std::size_t waits = 0;  // for another slice
  for (const step& st : p.steps) {
    const std::uint32_t s = p.ops[st.first_op].chunk / plan.units;
    for (const std::uint32_t a : st.after) {
      const std::uint32_t other = p.ops[p.steps[a].first_op].chunk / plan.units;
      if (other == s) continue;
      EXPECT_EQ(other, s - 1);
      ++waits;
    }
  }
  EXPECT_GE(waits, 3U);
}

TEST(lower, lets_a_slice_enter_a_stage_while_the_next_is_in_the_stage_before) {
  schedule plan = flat(collective_kind::all_gather, 4, algorithm::direct);
  plan.collective = collective_kind::all_reduce;
  stage first = plan.stages[0];
  first.kind = stage_kind::reduce_scatter;
  plan.stages.insert(plan.stages.begin(), first);
  plan.slices = 3;
  const program p = lower(plan, {1}).value();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;  // stage and slice, as listed
  for (const step& st : p.steps) {
    const std::pair<std::uint32_t, std::uint32_t> now{st.stage, st.channel};
    if (st.stage < 2 && (seen.empty() || seen.back() != now)) seen.push_back(now);
  }
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> wanted{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}};
  EXPECT_EQ(seen, wanted);
}

TEST(lower, names_the_stage_of_every_step) {
  schedule s = flat(collective_kind::all_reduce, 3, algorithm::ring);
  s.stages[0].label = "around";
  const program p = lower(s, {0}).value();
  for (const step& st : p.steps) EXPECT_EQ(p.stages.at(st.stage), "around");
  const program alone = lower(flat(collective_kind::broadcast, 1, algorithm::ring), {0}).value();
  EXPECT_EQ(alone.stages.at(alone.steps[0].stage), "copy to output");
}

TEST(lower, says_who_lacks_what_when_stages_do_not_fit) {
  schedule s = flat(collective_kind::all_reduce, 4, algorithm::ring);
  s.stages[0].kind = stage_kind::reduce_scatter;  // and nobody gathers
  const auto p = lower(s, {2});
  ASSERT_FALSE(p);
  EXPECT_NE(p.error().what.find("rank 2 has no value of unit 0 when the end needs it"), std::string::npos)
      << p.error().what;
  schedule twice = flat(collective_kind::reduce_scatter, 4, algorithm::ring);
  twice.stages.push_back(twice.stages[0]);
  twice.stages[1].label = "again";
  const auto q = lower(twice, {1});
  ASSERT_FALSE(q);
  EXPECT_NE(q.error().what.find("stage 1 (again)"), std::string::npos) << q.error().what;
}

TEST(lower, refuses_a_rank_that_is_not_there) {
  EXPECT_EQ(lower(flat(collective_kind::all_reduce, 4, algorithm::ring), {4}).error().code, errc::invalid_argument);
}

TEST(lower, gives_all_ranks_of_a_one_shot_the_same_order_of_sums) {
  // Every rank adds contribution 0, 1, 2, … in this order (the first two either way round).
  const schedule s = flat(collective_kind::all_reduce, 6, algorithm::one_shot);
  for (std::uint32_t r = 0; r < 6; ++r) {
    const program p = lower(s, {r}).value();
    std::vector<std::uint32_t> order;  // ranks in the order in which they are added
    const auto origin = [&](const slice& where) {
      if (where.where != buffer::scratch) return r;
      for (const op& o : p.ops)
        if (o.kind == op_kind::receive && o.to == where) return o.peer.value;
      return 99U;
    };
    for (const op& o : p.ops) {
      if (o.kind != op_kind::reduce) continue;
      if (order.empty()) order.push_back(origin(o.to));
      order.push_back(origin(o.from));
    }
    if (order.at(0) == 1) std::swap(order[0], order[1]);
    EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5})) << "rank " << r;
  }
}

}  // namespace
