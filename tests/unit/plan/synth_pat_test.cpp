// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
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

constexpr collective_kind both[] = {collective_kind::all_gather, collective_kind::reduce_scatter};

problem of(std::uint32_t n, collective_kind c) {
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

/// Parts that go from one rank to another in each step of an all-gather, by walking the way of every part to every rank.
std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>> walked(std::uint32_t n) {
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>> steps(log2_up(n));
  for (std::uint32_t part = 0; part < n; ++part)
    for (std::uint32_t o = 1; o < n; ++o) {
      std::uint32_t low = 0;  // the last digit of the way to part + o
      while ((o >> low & 1U) == 0) ++low;
      ++steps[steps.size() - 1 - low][{(part + o - (1U << low)) % n, (part + o) % n}];
    }
  return steps;
}

TEST(pat, sends_every_part_along_the_digits_of_the_distance_far_ones_first) {
  for (const collective_kind c : both)
    for (std::uint32_t n = 1; n <= 40; ++n) {
      const schedule s = pat{}.synthesize(of(n, c)).value();
      auto rounds = traffic(s);
      ASSERT_EQ(rounds.size(), log2_up(n)) << n;
      if (c == collective_kind::reduce_scatter) {  // backwards in time and in direction
        std::reverse(rounds.begin(), rounds.end());
        for (traffic_round& r : rounds)
          for (transfer& t : r.moves) std::swap(t.from, t.to);
      }
      const auto expected = walked(n);
      std::vector<std::uint64_t> sent(n, 0), received(n, 0);
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        ASSERT_EQ(rounds[i].repeat, 1U);
        ASSERT_EQ(rounds[i].moves.size(), expected[i].size());
        for (const transfer& t : rounds[i].moves) {
          const auto way = expected[i].find({t.from.value, t.to.value});
          ASSERT_NE(way, expected[i].end())
              << n << " ranks, step " << i << ": " << t.from.value << " to " << t.to.value;
          EXPECT_EQ(t.chunks, way->second);
          EXPECT_EQ(t.messages, 1U);
          sent[t.from.value] += t.chunks;
          received[t.to.value] += t.chunks;
        }
      }
      if (n > 1) {
        EXPECT_EQ(rounds.front().moves.front().chunks, 1U) << n;
        EXPECT_EQ(rounds.back().moves.front().chunks, n / 2) << n;
      }
      for (std::uint32_t r = 0; r < n; ++r) {
        EXPECT_EQ(sent[r], n - 1);
        EXPECT_EQ(received[r], n - 1);
      }
    }
}

TEST(pat, takes_one_message_per_step_and_passes_all_checkers) {
  for (const collective_kind c : both)
    for (std::uint32_t n = 1; n <= 40; ++n) {
      const schedule s = pat{}.synthesize(of(n, c)).value();
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

TEST(pat, serves_shards_of_unequal_size) {
  for (const collective_kind c : both)
    for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U}) {
      std::vector<std::uint64_t> counts;
      for (std::uint32_t r = 0; r < n; ++r) counts.push_back(r * 7 % 5);  // some are empty
      const std::vector<program> all = lowered(pat{}.synthesize(of(n, c)).value());
      ASSERT_EQ(plan_test::second_opinion(all, 0, n, counts), "") << n;
      // Then every part is a message of its own, and no more is sent than there is.
      const schedule s = pat{}.synthesize(of(n, c)).value();
      std::uint64_t sent = 0, messages = 0, filled = 0;
      for (const traffic_round& r : traffic(s, counts))
        for (const transfer& t : r.moves) {
          sent += t.chunks;
          messages += t.messages;
        }
      for (const std::uint64_t x : counts) filled += x != 0 ? 1 : 0;
      EXPECT_EQ(sent, traffic_unit(s, counts) * (n - 1)) << n;
      EXPECT_EQ(messages, filled * (n - 1)) << n;
    }
}

TEST(pat, is_right_where_parts_cannot_be_bundled) {
  for (const collective_kind c : both)
    for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U}) {
      const schedule sliced = flat_schedule(c, n, {}, algorithm::pat, {.slices = 3}).value();
      ASSERT_TRUE(verify(sliced)) << n;
      ASSERT_EQ(plan_test::second_opinion(lowered(sliced), 7, n), "") << n;

      std::vector<rank_id> order(n);
      for (std::uint32_t r = 0; r < n; ++r) order[r] = {r};
      std::mt19937 random(n);
      for (std::uint32_t r = n; r > 1; --r) std::swap(order[r - 1], order[random() % r]);
      const schedule strewn = flat_schedule(c, std::span<const rank_id>(order), {}, algorithm::pat).value();
      ASSERT_TRUE(verify(strewn)) << n;
      ASSERT_EQ(plan_test::second_opinion(lowered(strewn), 7, n), "") << n;
      // Prices count the messages that programs send.
      std::uint64_t priced = 0, sent = 0;
      for (const traffic_round& r : traffic(strewn))
        for (const transfer& t : r.moves) priced += t.messages;
      for (const program& p : lowered(strewn))
        for (const op& o : p.ops) sent += o.kind == op_kind::send ? 1 : 0;
      EXPECT_EQ(priced, sent) << n;
    }
}

TEST(pat, works_on_rails_and_along_axes) {
  const plan_test::cluster c = plan_test::build(plan_test::even(2, 5, 3));
  for (const collective_kind kind :
       {collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_reduce}) {
    const auto made = hierarchical{.in_box = {}, .on_rail = algorithm::pat, .across = algorithm::recursive}.synthesize(
        plan_test::on(c, kind, 1_MiB));
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_TRUE(std::any_of(made->stages.begin(), made->stages.end(),
                            [](const stage& st) { return st.how == algorithm::pat; }));
    const auto proved = verify(*made);
    ASSERT_TRUE(proved) << proved.error().what;
    ASSERT_EQ(plan_test::second_opinion(lowered(*made), 100, 1), "");
  }

  schedule lattice;
  lattice.collective = collective_kind::all_reduce;
  lattice.ranks = lattice.units = 15;
  lattice.shape = {3, 5};
  const auto add = [&](stage_kind kind, std::uint32_t axis) {
    stage st;
    st.kind = kind;
    st.how = algorithm::pat;
    st.axis = axis;
    lattice.stages.push_back(st);
  };
  add(stage_kind::reduce_scatter, 0);
  add(stage_kind::reduce_scatter, 1);
  add(stage_kind::all_gather, 1);
  add(stage_kind::all_gather, 0);
  const auto proved = verify(lattice);
  ASSERT_TRUE(proved) << proved.error().what;
  ASSERT_EQ(plan_test::second_opinion(lowered(lattice), 40, 1), "");
}

TEST(pat, is_simulated_between_the_bound_and_the_ceiling_and_survives_a_file) {
  const plan_test::cluster c = plan_test::build(plan_test::even(2, 2, 3));
  flow_simulator flows(c.graph, alpha_beta{});
  for (const collective_kind kind : both)
    for (const bytes size : {bytes{12 * 1024}, bytes{12U << 20U}}) {
      const problem q = plan_test::on(c, kind, size);
      const schedule s = pat{}.synthesize(q).value();
      const flow_simulation f = flows.run(q, s).value();
      EXPECT_GE(f.time.value, lower_bound(q, alpha_beta{})->time.value * (1 - 1e-9));
      EXPECT_LE(f.time.value, f.ceiling.value * (1 + 1e-9));
      const schedule again = schedule_from_json(to_json(s), "test").value();
      EXPECT_TRUE(again == s);
      EXPECT_EQ(digest(again), digest(s));
      EXPECT_NE(digest(s), digest(recursive{}.synthesize(q).value()));
    }
}

TEST(pat, is_for_two_collectives_and_some_thousand_ranks) {
  for (std::size_t k = 0; k < collective_count; ++k) {
    const auto c = static_cast<collective_kind>(k);
    const auto made = pat{}.synthesize(of(6, c));
    EXPECT_EQ(static_cast<bool>(made), c == collective_kind::all_gather || c == collective_kind::reduce_scatter);
    if (!made) {
      EXPECT_EQ(made.error().code, errc::unsupported);
    }
  }
  const auto many = pat{.most_ranks = 7}.synthesize(of(8, collective_kind::all_gather));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().what.find("at most 7 ranks, not for 8"), std::string::npos) << many.error().what;
}

/// Parts that leave a group of `m` neighbours, per rank.
std::uint64_t leaving(const schedule& s, std::uint32_t m) {
  std::uint64_t parts = 0;
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves)
      if (t.from.value / m != t.to.value / m) parts += t.chunks * r.repeat;
  return parts / s.ranks;
}

TEST(pat, loads_far_links_least) {
  for (const std::uint32_t groups : {2U, 4U, 8U})
    for (const std::uint32_t m : {1U, 2U, 8U, 16U}) {
      const std::uint32_t n = groups * m;
      for (const collective_kind c : both) {
        const std::uint64_t here = leaving(pat{}.synthesize(of(n, c)).value(), m);
        const std::uint64_t there = leaving(recursive{}.synthesize(of(n, c)).value(), m);
        EXPECT_EQ(here, groups - 1 + groups / 2 * log2_up(m)) << groups << " groups of " << m;
        EXPECT_EQ(there, n - m) << groups << " groups of " << m;
      }
    }
  // The same on links, counted by the price.
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=4,pods=2,oversubscription=3").value()).value();
  for (const collective_kind c : both) {
    problem q = of(0, c);
    q.graph = &g;
    q.size = 32_KiB;
    q.ranks = g.all(topo::node_kind::gpu);
    simulator prices(g, alpha_beta{});
    const simulation here = prices.run(q, pat{}.synthesize(q).value()).value();
    const simulation there = prices.run(q, recursive{}.synthesize(q).value()).value();
    const auto carried = [](const simulation& s, link_class k) {
      return s.by_class[static_cast<std::size_t>(k)].total.value;
    };
    // 32 ranks, 1 KiB each; pods of 16, boxes of 8. NICs carry what leaves the box.
    EXPECT_EQ(carried(here, link_class::nic_out), 32 * 1024 * leaving(pat{}.synthesize(q).value(), 8));
    EXPECT_EQ(carried(there, link_class::nic_out), 32 * 1024 * 24U);
    EXPECT_LT(2 * carried(here, link_class::leaf_up), carried(there, link_class::leaf_up) + 1);
    EXPECT_EQ(here.rounds, there.rounds);
  }
}

TEST(pat, wins_with_one_rank_per_node_where_leaves_are_oversubscribed) {
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=256,pods=8,oversubscription=4").value()).value();
  const std::vector<node_id> gpus = g.all(topo::node_kind::gpu);
  problem q = of(0, collective_kind::all_gather);
  q.graph = &g;
  for (std::size_t i = 0; i < gpus.size(); i += 8) q.ranks.push_back(gpus[i]);
  const auto winner = [&](bytes size) {
    q.size = size;
    return with_default_planners(
               [&](const auto&... known) { return choose(q, alpha_beta{}, known...).value().candidates.front(); })
        .planner;
  };
  EXPECT_EQ(winner(1_MiB), "pat");
  EXPECT_NE(winner(256_MiB), "pat");
}

TEST(bundles, are_refused_when_their_ends_or_their_contents_differ) {
  const std::vector<program> right = lowered(pat{}.synthesize(of(8, collective_kind::all_gather)).value());
  std::size_t bundles = 0;
  for (std::size_t r = 0; r < right.size(); ++r)
    for (std::size_t i = 0; i < right[r].ops.size(); ++i) {
      if (right[r].ops[i].stride == 1) continue;
      ++bundles;
      for (const std::uint32_t stride : {0U, 1U, 3U, 8U, 99U}) {
        if (stride == right[r].ops[i].stride) continue;
        std::vector<program> wrong = right;
        wrong[r].ops[i].stride = stride;
        EXPECT_FALSE(verify(std::span<const program>(wrong))) << "rank " << r << ", operation " << i;
        EXPECT_FALSE(check(std::span<const program>(wrong)).failures.empty()) << "rank " << r << ", operation " << i;
      }
    }
  EXPECT_EQ(bundles, 8U * 2U * 2U);  // steps 2 and 3, at both ends

  // Both ends agree on a wrong name: every rank calls the parts of its steps by the next distance.
  std::vector<program> renamed = right;
  for (program& p : renamed)
    for (op& o : p.ops)
      if (o.stride != 1) o.stride = o.stride == 7 ? 6 : 7;
  EXPECT_FALSE(verify(std::span<const program>(renamed)));
  const check_report report = check(std::span<const program>(renamed));
  ASSERT_FALSE(report.failures.empty());
  EXPECT_EQ(report.failures[0].what, check_kind::value) << report.failures[0].sentence;
}

}  // namespace
