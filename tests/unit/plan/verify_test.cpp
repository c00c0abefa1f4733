// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

std::vector<program> programs_of(const schedule& s) {
  std::vector<program> all;
  for (std::uint32_t r = 0; r < s.ranks; ++r) all.push_back(lower(s, {r}).value());
  return all;
}
std::vector<program> ring_programs(std::uint32_t n) {
  return programs_of(flat_schedule(collective_kind::all_reduce, n, {}, algorithm::ring).value());
}
result<proof> check(const std::vector<program>& all) { return verify(std::span<const program>(all)); }

/// Programs written by hand: two ranks, one chunk, all_reduce unless told otherwise.
struct by_hand {
  std::vector<program> all{2};

  explicit by_hand(collective_kind c = collective_kind::all_reduce, std::uint32_t scratch = 1) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      all[r].collective = c;
      all[r].ranks = 2;
      all[r].rank = {r};
      all[r].chunks = sharded(c) ? 2 : 1;
      all[r].scratch_cells = scratch;
      all[r].channels = 2;
      all[r].stages = {"by hand"};
    }
  }
  by_hand& step_of(std::uint32_t rank, std::vector<op> ops, std::vector<std::uint32_t> after = {},
                   std::uint32_t channel = 0) {
    program& p = all[rank];
    p.steps.push_back({channel, 0, static_cast<std::uint32_t>(p.ops.size()), static_cast<std::uint32_t>(ops.size()),
                       std::move(after)});
    p.ops.insert(p.ops.end(), ops.begin(), ops.end());
    return *this;
  }
};
constexpr slice in{buffer::input, 0, 1}, out{buffer::output, 0, 1}, cell{buffer::scratch, 0, 1};
op send(std::uint32_t peer, slice from) { return {op_kind::send, {peer}, from, {}, 0}; }
op receive(std::uint32_t peer, slice to) { return {op_kind::receive, {peer}, {}, to, 0}; }
op receive_reduce(std::uint32_t peer, slice from, slice to) { return {op_kind::receive_reduce, {peer}, from, to, 0}; }
op copy(slice from, slice to) { return {op_kind::copy, {}, from, to, 0}; }
op add(slice from, slice to) { return {op_kind::reduce, {}, from, to, 0}; }

void expect_refused(const std::vector<program>& all, const std::vector<std::string>& words) {
  const auto found = check(all);
  ASSERT_FALSE(found);
  for (const std::string& w : words)
    EXPECT_NE(found.error().what.find(w), std::string::npos) << "'" << w << "' is not in: " << found.error().what;
}

/// Exchange through scratch: right apart and in place.
by_hand good() {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in), receive(1 - r, cell)})
        .step_of(r, {copy(in, out)})
        .step_of(r, {add(cell, out)}, {0, 1});
  return h;
}

TEST(verify, accepts_what_is_right) {
  const auto found = check(good().all);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->method, proof_method::exact);
  EXPECT_EQ(found->messages, 2U);
  EXPECT_EQ(found->steps, 6U);
  EXPECT_EQ(found->operations, 2 * (2 * 2 + 2 * 2U));  // both ends of two messages and four local ones, twice
  EXPECT_TRUE(found->one_step_at_a_time);
  EXPECT_NE(found->summary.find("2 messages"), std::string::npos);
}

TEST(verify, finds_a_send_without_receive) {
  by_hand h = good();
  h.step_of(0, {send(1, in)});
  expect_refused(h.all, {"rank 0, step 3 (by hand)", "send to rank 1", "no receive", "channel 0"});
}

TEST(verify, finds_a_receive_on_another_channel) {
  by_hand h = good();
  for (step& s : h.all[1].steps) s.channel = 1;
  expect_refused(h.all, {"rank 0", "no receive"});
}

TEST(verify, finds_a_dropped_operation_anywhere_in_a_ring) {
  for (std::uint32_t n : {2U, 3U, 5U}) {
    const auto whole = ring_programs(n);
    for (std::uint32_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < whole[r].ops.size(); ++i) {
        auto all = whole;
        for (step& s : all[r].steps) {
          if (s.first_op <= i && i < s.first_op + s.op_count)
            --s.op_count;
          else if (s.first_op > i)
            --s.first_op;
        }
        all[r].ops.erase(all[r].ops.begin() + static_cast<long>(i));
        expect_refused(all, {"rank"});
      }
  }
}

TEST(verify, finds_a_removed_wait_anywhere_in_a_ring) {
  for (const std::uint32_t slices : {1U, 2U}) {
    const auto whole =
        programs_of(flat_schedule(collective_kind::all_reduce, 4, {}, algorithm::ring, {.slices = slices}).value());
    for (std::uint32_t r = 0; r < 4; ++r)
      for (std::size_t s = 0; s < whole[r].steps.size(); ++s)
        for (std::size_t a = 0; a < whole[r].steps[s].after.size(); ++a) {
          auto all = whole;
          // Waits for another slice are about pace alone.
          if (all[r].steps[all[r].steps[s].after[a]].channel != all[r].steps[s].channel) continue;
          all[r].steps[s].after.erase(all[r].steps[s].after.begin() + static_cast<long>(a));
          expect_refused(all, {"rank " + std::to_string(r), "neither waits for the other"});
        }
  }
}

TEST(verify, finds_a_swapped_peer) {
  auto all = ring_programs(4);
  for (op& o : all[2].ops)
    if (o.kind == op_kind::send) {
      o.peer = {1};
      break;
    }
  expect_refused(all, {"rank"});
}

TEST(verify, finds_a_contribution_that_is_counted_twice) {
  by_hand h = good();
  h.step_of(1, {add(cell, out)}, {2});
  expect_refused(h.all, {"rank 1, step 3", "counts the contribution of rank 0 to chunk 0 twice"});
}

TEST(verify, finds_a_missing_contribution) {
  by_hand h;
  h.step_of(0, {copy(in, out)}).step_of(1, {copy(in, out)});
  expect_refused(h.all, {"rank 0: at the end chunk 0 of output lacks the contribution of rank 1 (1 of 2 are in)"});
}

TEST(verify, finds_an_output_that_nobody_writes) {
  by_hand h(collective_kind::broadcast);
  h.step_of(0, {copy(in, out)});
  expect_refused(h.all, {"rank 1: at the end chunk 0 of output was never written"});
}

TEST(verify, finds_the_wrong_shard) {
  by_hand h(collective_kind::all_gather);
  const auto whole = [](buffer b, std::uint32_t c) { return slice{b, c, 1}; };
  for (const std::uint32_t r : {0U, 1U}) {
    h.step_of(r, {{op_kind::copy, {}, whole(buffer::input, r), whole(buffer::output, r), r}});
    h.step_of(r, {{op_kind::send, {1 - r}, whole(buffer::input, r), {}, r},
                  {op_kind::receive, {1 - r}, {}, whole(buffer::output, 1 - r), 1 - r}});
  }
  ASSERT_TRUE(check(h.all));
  h.all[0].ops[1].chunk = h.all[1].ops[2].chunk = 1;  // rank 0 sends its shard as if it were the other
  h.all[0].ops[1].from.first = 1;
  expect_refused(h.all, {"there is no chunk 1 of input at this rank"});
}

TEST(verify, finds_a_read_of_nothing) {
  by_hand h = good();
  h.all[0].ops[0].from = cell;
  expect_refused(h.all, {"rank 0"});
  by_hand g;
  g.step_of(0, {copy(cell, out)}).step_of(1, {copy(in, out)});
  expect_refused(g.all, {"rank 0, step 0", "reads scratch cell 0 before anything is written there"});
}

TEST(verify, finds_places_that_do_not_exist) {
  by_hand h = good();
  h.all[1].ops[1].to.first = 1;
  expect_refused(h.all, {"rank 1, step 0", "there is no scratch cell 1 at this rank"});
  by_hand b(collective_kind::broadcast);
  b.step_of(1, {copy(in, out)});
  expect_refused(b.all, {"rank 1", "there is no chunk 0 of input"});
  by_hand g(collective_kind::reduce);
  g.step_of(1, {copy(in, out)});
  expect_refused(g.all, {"rank 1", "there is no chunk 0 of output"});
}

TEST(verify, finds_a_write_to_the_input) {
  by_hand h = good();
  h.all[0].ops[2] = copy(cell, in);
  expect_refused(h.all, {"writes to the input"});
}

TEST(verify, finds_two_operations_of_a_step_that_collide) {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in), receive(1 - r, cell), copy(in, out)})
        .step_of(r, {add(cell, out), copy(in, out)}, {0});
  expect_refused(h.all, {"both use chunk 0 of output"});
}

TEST(verify, finds_what_is_wrong_only_in_place) {
  by_hand h;  // sends the input while the sum arrives in output: right if they are apart
  for (const std::uint32_t r : {0U, 1U}) h.step_of(r, {send(1 - r, in), receive_reduce(1 - r, in, out)});
  expect_refused(h.all, {"(in place)", "both use chunk 0 of output"});
  // With a wait it is right, but each then waits for the other to receive first.
  by_hand w;
  for (const std::uint32_t r : {0U, 1U})
    w.step_of(r, {send(1 - r, in)}).step_of(r, {receive_reduce(1 - r, in, out)}, {0});
  expect_refused(w.all, {"wait for each other"});
}

TEST(verify, tells_the_circle_of_a_deadlock) {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in)})
        .step_of(r, {receive(1 - r, cell)}, {0})
        .step_of(r, {copy(in, out)}, {1})
        .step_of(r, {add(cell, out)}, {2});
  expect_refused(h.all, {"the ranks wait for each other", "rank 0, step 1", "rank 1, step 1", "cannot start until",
                         "a circle of 4 waits"});
}

TEST(verify, knows_when_one_step_at_a_time_is_not_enough) {
  by_hand h;  // the send has its own step and nobody waits for it: fine, unless steps run one by one
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in)})
        .step_of(r, {receive(1 - r, cell)})
        .step_of(r, {copy(in, out)})
        .step_of(r, {add(cell, out)}, {0, 1, 2});
  const auto found = check(h.all);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_FALSE(found->one_step_at_a_time);
}

TEST(verify, accepts_order_that_only_messages_make) {
  // Rank 0 writes a cell, sends it, and reads it when the answer has come: the last step waits for the answer alone, and
  // that the cell was written before follows from the two messages.
  constexpr slice other{buffer::scratch, 1, 1};
  by_hand h(collective_kind::broadcast, 2);
  h.step_of(0, {copy(in, cell)})
      .step_of(0, {send(1, cell)}, {0})
      .step_of(0, {receive(1, other)}, {}, 1)
      .step_of(0, {copy(cell, out)}, {2}, 1);
  h.step_of(1, {receive(0, cell)}).step_of(1, {copy(cell, out)}, {0}).step_of(1, {send(0, cell)}, {0}, 1);
  ASSERT_TRUE(check(h.all)) << check(h.all).error().what;
  // That its own send has ended does not follow: writing the cell again is a race.
  h.step_of(0, {copy(other, cell)}, {2, 3}, 1);
  expect_refused(h.all, {"rank 0, step 4", "both use scratch cell 0", "step 1"});
}

TEST(verify, wants_equal_programs_in_order) {
  auto all = ring_programs(3);
  std::swap(all[0], all[1]);
  EXPECT_EQ(check(all).error().code, errc::invalid_argument);
  all = ring_programs(3);
  all[2].chunks = 6;
  EXPECT_EQ(check(all).error().code, errc::invalid_argument);
  all.clear();
  EXPECT_EQ(check(all).error().code, errc::invalid_argument);
}

TEST(verify, wants_steps_in_shape) {
  auto all = ring_programs(3);
  all[1].steps[1].after = {1};
  expect_refused(all, {"rank 1, step 1", "waits for step 1, which does not come before it"});
  all = ring_programs(3);
  all[1].steps[1].channel = 1;
  expect_refused(all, {"no channel 1"});
  all = ring_programs(3);
  all[1].steps.pop_back();
  expect_refused(all, {"rank 1", "belong to no step"});
  all = ring_programs(3);
  all[0].ops[0].peer = {0};
  expect_refused(all, {"rank 0 is not another rank"});
  all = ring_programs(3);
  all[0].ops[0].from.count = 0;
  expect_refused(all, {"moves no chunk"});
}

TEST(verify, of_a_schedule_says_which_proof_was_used) {
  const schedule s = flat_schedule(collective_kind::all_reduce, 16, {}, algorithm::ring).value();
  EXPECT_EQ(verify(s).value().method, proof_method::exact);
  const auto c = plan_test::build(plan_test::even(2, 4, 4));
  const schedule h = hierarchical{}.synthesize(plan_test::on(c, collective_kind::all_reduce, bytes{1U << 20U})).value();
  const auto staged = verify(h, {.exact_messages = 100});
  ASSERT_TRUE(staged) << staged.error().what;
  EXPECT_EQ(staged->method, proof_method::by_stage);
  EXPECT_EQ(staged->group_shapes, 5U);  // reduce-scatter and all-gather in box and pod, all-reduce across
  EXPECT_EQ(staged->ranks, 32U);
}

TEST(verify, by_stage_refuses_a_group_that_is_too_large_alone) {
  const schedule s = flat_schedule(collective_kind::all_reduce, 64, {}, algorithm::ring).value();
  const auto found = verify(s, {.exact_messages = 1000});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::unsupported);
  EXPECT_NE(found.error().what.find("64 ranks"), std::string::npos);
}

/// A hierarchical plan with one thing wrong; both ways to prove must object.
TEST(verify, objects_to_wrong_stages_in_both_ways) {
  const auto c = plan_test::build(plan_test::even(2, 3, 4));
  for (const collective_kind kind :
       {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter}) {
    const schedule whole = hierarchical{.slices = 1}.synthesize(plan_test::on(c, kind, bytes{1U << 20U})).value();
    ASSERT_TRUE(verify(whole));
    ASSERT_TRUE(verify(whole, {.exact_messages = 100}));
    for (std::size_t i = 0; i < whole.stages.size(); ++i) {
      schedule without = whole;
      without.stages.erase(without.stages.begin() + static_cast<long>(i));
      schedule twice = whole;
      twice.stages.insert(twice.stages.begin() + static_cast<long>(i), whole.stages[i]);
      schedule crossed = whole;  // two ranks of the first two groups change places
      std::swap(crossed.stages[i].members[0], crossed.stages[i].members[whole.stages[i].offsets[1]]);
      // Some changes are harmless (a gather done twice, leaders that hold the same): then both proofs say so.
      for (const schedule& s : {without, twice, crossed}) {
        const auto exact = verify(s), staged = verify(s, {.exact_messages = 100});
        EXPECT_EQ(bool(exact), bool(staged))
            << to_string(kind) << " stage " << i << ": " << (exact ? staged.error().what : exact.error().what);
      }
      EXPECT_FALSE(verify(without, {.exact_messages = 100}));
      EXPECT_FALSE(verify(without));
    }
  }
}

TEST(verify, by_stage_proves_many_ranks_from_few_groups) {
  const auto c = plan_test::build(plan_test::even(4, 8, 8));
  const schedule s =
      hierarchical{.slices = 1}.synthesize(plan_test::on(c, collective_kind::all_reduce, bytes{1U << 30U})).value();
  const auto found = verify(s, {.exact_messages = 2000});
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->ranks, 256U);
  EXPECT_EQ(found->group_shapes, 5U);
}

}  // namespace
