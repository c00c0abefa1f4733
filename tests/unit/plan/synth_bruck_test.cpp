// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <unit/plan/plan_oracle.hpp>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/check.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/flow_simulate.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;
using namespace topocoll::literals;

problem of(std::uint32_t n, collective_kind c = collective_kind::all_to_all) {
  problem q;
  q.collective = c;
  q.ranks.resize(n);
  return q;
}

std::vector<program> lowered(const schedule& s) {
  std::vector<program> all;
  for (std::uint32_t r = 0; r < s.ranks; ++r) all.push_back(lower(s, {r}).value());
  return all;
}

std::uint32_t log2_up(std::uint32_t n) {
  std::uint32_t steps = 0;
  while ((1U << steps) < n) ++steps;
  return steps;
}

TEST(bruck, takes_log_steps_of_one_message_and_up_to_half_of_the_array) {
  for (std::uint32_t n = 1; n <= 40; ++n) {
    const schedule s = bruck{}.synthesize(of(n)).value();
    const auto rounds = traffic(s);
    ASSERT_EQ(rounds.size(), log2_up(n)) << n;
    std::uint64_t by_rank_0 = 0, digits = 0;
    for (std::uint32_t o = 1; o < n; ++o) digits += static_cast<std::uint32_t>(std::popcount(o));
    for (std::uint32_t i = 0; i < rounds.size(); ++i) {
      ASSERT_EQ(rounds[i].moves.size(), n);
      std::uint64_t parts = 0;  // those that still have to go 2^i places ahead
      for (std::uint32_t o = 1; o < n; ++o) parts += o >> i & 1U;
      for (const transfer& t : rounds[i].moves) {
        EXPECT_EQ(t.to.value, (t.from.value + (1U << i)) % n);
        EXPECT_EQ(t.chunks, parts);
        EXPECT_EQ(t.messages, 1U);
        if (t.from.value == 0) by_rank_0 += t.chunks;
      }
      EXPECT_LE(2 * parts, n);
      if (std::has_single_bit(n)) {
        EXPECT_EQ(2 * parts, n);
      }
    }
    EXPECT_EQ(by_rank_0, digits);  // every part travels once for each digit of its distance
  }
}

TEST(bruck, passes_all_checkers) {
  for (std::uint32_t n = 1; n <= 40; ++n) {
    const schedule s = bruck{}.synthesize(of(n)).value();
    const auto proved = verify(s);
    ASSERT_TRUE(proved) << n << ": " << proved.error().what;
    EXPECT_EQ(proved->messages, std::uint64_t{n} * log2_up(n));
    EXPECT_TRUE(proved->one_step_at_a_time);
    const std::vector<program> all = lowered(s);
    const check_report report = check(std::span<const program>(all));
    ASSERT_TRUE(report.failures.empty()) << n << ": " << report.failures[0].sentence;
    EXPECT_LE(report.credits_needed, 1U);
    for (const std::uint64_t elements : {0U, 1U, 7U})
      ASSERT_EQ(plan_test::second_opinion(all, elements, n), "") << n << " ranks, " << elements << " elements";
  }
}

TEST(bruck, is_right_where_parts_cannot_be_bundled_and_in_any_order_of_ranks) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U}) {
    const schedule sliced = flat_schedule(collective_kind::all_to_all, n, {}, algorithm::bruck, {.slices = 3}).value();
    ASSERT_TRUE(verify(sliced)) << n;
    ASSERT_EQ(plan_test::second_opinion(lowered(sliced), 7, n), "") << n;

    std::vector<rank_id> order(n);
    for (std::uint32_t r = 0; r < n; ++r) order[r] = {n - 1 - r};
    std::swap(order[0], order[n / 2]);
    const schedule turned =
        flat_schedule(collective_kind::all_to_all, std::span<const rank_id>(order), {}, algorithm::bruck).value();
    const auto proved = verify(turned);
    ASSERT_TRUE(proved) << n << ": " << proved.error().what;
    EXPECT_EQ(proved->messages, std::uint64_t{n} * log2_up(n));
    ASSERT_EQ(plan_test::second_opinion(lowered(turned), 7, n), "") << n;
  }
}

TEST(bruck, counts_the_same_traffic_as_its_programs_send) {
  for (const std::uint32_t n : {2U, 3U, 8U, 17U})
    for (const std::uint32_t slices : {1U, 3U}) {
      const schedule s =
          flat_schedule(collective_kind::all_to_all, n, {}, algorithm::bruck, {.slices = slices}).value();
      std::uint64_t counted = 0, messages = 0, sent = 0, sends = 0;
      for (const traffic_round& r : traffic(s))
        for (const transfer& t : r.moves) {
          counted += t.chunks;
          messages += std::uint64_t{t.messages} * slices;
        }
      for (const program& p : lowered(s))
        for (const op& o : p.ops)
          if (o.kind == op_kind::send) {
            sent += o.from.count;
            ++sends;
          }
      EXPECT_EQ(counted, sent) << n;
      EXPECT_EQ(messages, sends) << n;
    }
}

TEST(bruck, is_simulated_between_the_bound_and_the_ceiling_and_survives_a_file) {
  const plan_test::cluster c = plan_test::build(plan_test::even(2, 2, 3));
  flow_simulator flows(c.graph, alpha_beta{});
  for (const collective_kind kind : {collective_kind::all_to_all})
    for (const bytes size : {bytes{12 * 1024}, bytes{12U << 20U}}) {
      const problem q = plan_test::on(c, kind, size);
      const schedule s = bruck{}.synthesize(q).value();
      const flow_simulation f = flows.run(q, s).value();
      EXPECT_GE(f.time.value, lower_bound(q, alpha_beta{})->time.value * (1 - 1e-9));
      EXPECT_LE(f.time.value, f.ceiling.value * (1 + 1e-9));
      const schedule again = schedule_from_json(to_json(s), "test").value();
      EXPECT_TRUE(again == s);
      EXPECT_EQ(digest(again), digest(s));
      EXPECT_NE(digest(s), digest(direct{}.synthesize(q).value()));
    }
}

TEST(bruck, is_refused_for_other_collectives_uneven_parts_and_too_many_ranks) {
  for (std::size_t k = 0; k < collective_count; ++k) {
    const auto c = static_cast<collective_kind>(k);
    if (c != collective_kind::all_to_all) {
      EXPECT_EQ(bruck{}.synthesize(of(6, c)).error().code, errc::unsupported);
    }
  }
  const auto many = bruck{.most_ranks = 7}.synthesize(of(8));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().what.find("at most 7 ranks, not for 8"), std::string::npos) << many.error().what;

  schedule s = bruck{}.synthesize(of(4)).value();
  s.stages[0].bounds = {0, 1, 1, 3, 4};
  const auto fits = validate(s);
  ASSERT_FALSE(fits);
  EXPECT_NE(fits.error().what.find("parts 0 and 1 of group 0 differ in length"), std::string::npos)
      << fits.error().what;
}

TEST(bruck, wins_for_few_bytes_among_many_ranks) {
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=32,pods=4,oversubscription=4").value()).value();
  problem q = of(0);
  q.graph = &g;
  q.ranks = g.all(topo::node_kind::gpu);
  const auto winner = [&](bytes size) {
    q.size = size;
    return with_default_planners(
               [&](const auto&... known) { return choose(q, alpha_beta{}, known...).value().candidates.front(); })
        .planner;
  };
  EXPECT_EQ(winner(1_KiB), "bruck");
  EXPECT_EQ(winner(1_MiB), "direct");
}

}  // namespace
