// SPDX-License-Identifier: Apache-2.0
// Every algorithm, every collective, every number of ranks: the plan is proved, and runs right on numbers.
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <unit/plan/plan_oracle.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/ring.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using plan::algorithm;
using plan::schedule;

constexpr collective_kind collectives[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                           collective_kind::reduce_scatter, collective_kind::broadcast,
                                           collective_kind::reduce,         collective_kind::all_to_all,
                                           collective_kind::gather,         collective_kind::scatter};
constexpr algorithm algorithms[] = {algorithm::ring,     algorithm::recursive,   algorithm::doubling,
                                    algorithm::tree,     algorithm::double_tree, algorithm::direct,
                                    algorithm::one_shot, algorithm::bruck,       algorithm::pat};

/// Equal numbers on every platform, unlike the distributions of the standard library.
class dice {
 public:
  explicit dice(std::uint32_t seed) : engine_(seed) {}
  /// 0 to sides-1.
  std::uint32_t operator()(std::size_t sides) { return static_cast<std::uint32_t>(engine_() % sides); }

 private:
  std::mt19937 engine_;
};

using loads = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;

loads loads_of(const std::vector<plan::traffic_round>& rounds) {
  loads sum;
  for (const plan::traffic_round& r : rounds)
    for (const plan::transfer& t : r.moves) sum[{t.from.value, t.to.value}] += t.chunks * r.repeat;
  return sum;
}

loads loads_of(const std::vector<plan::program>& programs) {
  loads sum;
  for (const plan::program& p : programs)
    for (const plan::op& o : p.ops)
      if (o.kind == plan::op_kind::send) sum[{p.rank.value, o.peer.value}] += o.from.count;
  return sum;
}

/// Everything that holds for any plan. `elements`: of a buffer or shard.
void expect_sound(const schedule& made, std::span<const std::uint64_t> elements, std::uint32_t seed) {
  std::vector<plan::program> programs;
  for (std::uint32_t r = 0; r < made.ranks; ++r) {
    auto p = plan::lower(made, {r});
    ASSERT_TRUE(p) << p.error().what;
    programs.push_back(*p);
  }
  const auto proved = plan::verify(std::span<const plan::program>(programs));
  ASSERT_TRUE(proved) << proved.error().what;
  EXPECT_TRUE(proved->one_step_at_a_time);
  EXPECT_EQ(loads_of(plan::traffic(made)), loads_of(programs));
  for (const std::uint64_t count : elements)
    EXPECT_EQ(plan_test::second_opinion(programs, count, seed), "") << count << " elements";
  // The same programs, but shards of all sizes.
  if (!plan::sharded(made.collective) || made.collective == collective_kind::all_to_all) return;
  dice random(seed);
  std::vector<std::uint64_t> counts;
  for (std::uint32_t r = 0; r < made.ranks; ++r) counts.push_back(random(4) == 0 ? 0 : random(2 * made.chunks() + 3));
  EXPECT_EQ(plan_test::second_opinion(programs, 0, seed, counts), "") << testing::PrintToString(counts);
}

std::string title(collective_kind c, algorithm a, std::uint32_t n, std::uint32_t slices) {
  return std::string(to_string(c)) + " by " + std::string(to_string(a)) + ", " + std::to_string(n) + " ranks, " +
         std::to_string(slices) + " slices";
}

bool stage_exists(collective_kind c, algorithm a) { return supports(plan::detail::stage_of(c), a); }

TEST(flat_plans, are_proved_and_right_for_every_small_number_of_ranks) {
  for (std::uint32_t n = 1; n <= 17; ++n)
    for (const collective_kind c : collectives)
      for (const algorithm a : algorithms)
        for (const std::uint32_t slices : {1U, 2U, 3U}) {
          SCOPED_TRACE(title(c, a, n, slices));
          const auto made = plan::flat_schedule(c, n, rank_id{n / 2}, a, {.slices = slices});
          ASSERT_EQ(bool(made), stage_exists(c, a));
          if (!made) continue;
          const std::uint64_t elements[] = {0, 1, 2 * std::uint64_t{made->chunks()} + 1};
          expect_sound(*made, elements, n * 8 + slices);
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
}

TEST(flat_plans, are_proved_and_right_for_many_ranks) {
  for (const std::uint32_t n : {23U, 24U, 31U, 32U, 33U, 48U, 64U, 65U, 96U, 129U})
    for (const collective_kind c : collectives)
      for (const algorithm a : algorithms) {
        if (!stage_exists(c, a) || (a == algorithm::one_shot && n > 33) || (c == collective_kind::all_to_all && n > 65))
          continue;
        SCOPED_TRACE(title(c, a, n, 1));
        const auto made = plan::flat_schedule(c, n, rank_id{n - 1}, a);
        ASSERT_TRUE(made) << made.error().what;
        const std::uint64_t elements[] = {plan::sharded(c) ? 1 : std::uint64_t{made->chunks()} + 3};
        std::vector<plan::program> programs;
        for (std::uint32_t r = 0; r < n; ++r) programs.push_back(plan::lower(*made, {r}).value());
        const auto proved = plan::verify(std::span<const plan::program>(programs));
        ASSERT_TRUE(proved) << proved.error().what;
        EXPECT_EQ(loads_of(plan::traffic(*made)), loads_of(programs));
        EXPECT_EQ(plan_test::oracle(programs, {elements[0], n % 2 == 0, n % 3 == 0, n, {}}).run(), "");
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
}

/// A cluster of random shape, ranks on a random part of it in random order.
struct random_machine {
  plan_test::cluster c;
  plan::problem q;
};

random_machine draw(dice& random) {
  plan_test::cluster_shape shape;
  const std::uint32_t pods = 1 + random(3), boxes = 1 + random(4), gpus = 1 + random(5);
  const bool even = random(2) == 0;
  for (std::uint32_t p = 0; p < pods; ++p) {
    shape.pods.emplace_back();
    const std::uint32_t here = even ? boxes : 1 + random(4);
    for (std::uint32_t b = 0; b < here; ++b) shape.pods.back().push_back(even ? gpus : 1 + random(5));
  }
  shape.rail_leaves = random(2) == 0;
  shape.nvswitch = random(2) == 0;
  shape.fabric = random(8) != 0;
  random_machine m{plan_test::build(shape), {}};
  if (random(2) == 0)
    for (std::size_t i = m.c.gpus.size(); i > 1; --i) std::swap(m.c.gpus[i - 1], m.c.gpus[random(i)]);
  if (random(3) == 0 && m.c.gpus.size() > 2) m.c.gpus.resize(m.c.gpus.size() - random(m.c.gpus.size() / 2));
  return m;
}

TEST(hierarchical_plans, are_proved_and_right_on_any_shape) {
  constexpr algorithm stages[] = {algorithm::ring, algorithm::recursive, algorithm::direct, algorithm::pat};
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    dice random(seed);
    random_machine m = draw(random);
    for (const collective_kind c :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter,
          collective_kind::broadcast, collective_kind::reduce, collective_kind::gather, collective_kind::scatter}) {
      plan::hierarchical planner;
      const std::uint32_t known = plan::sharded(c) && !rooted(c) ? 4 : 3;
      if (random(2) == 0)
        planner = {.in_box = stages[random(known)],
                   .on_rail = stages[random(known)],
                   .across = stages[random(known)],
                   .slices = 0};
      planner.slices = random(4);
      const plan::problem q =
          plan_test::on(m.c, c, bytes{random(2) == 0 ? 1000U : 64U << 20U}, {random(m.c.gpus.size())});
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(to_string(c)) + ", " +
                   std::to_string(q.ranks.size()) + " ranks");
      const auto made = planner.synthesize(q);
      ASSERT_TRUE(made) << made.error().what;
      const std::uint64_t elements[] = {1, std::uint64_t{made->chunks()} + 5};
      expect_sound(*made, elements, seed);
      // Proofs by stage agree with exact ones where they can be had.
      const auto by_stage = plan::verify(*made, {.exact_messages = 400});
      EXPECT_TRUE(by_stage || by_stage.error().code == errc::unsupported) << by_stage.error().what;
      EXPECT_EQ(plan::digest(*made), plan::digest(planner.synthesize(q).value()));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST(hardware_order, gives_sound_rings_and_trees_on_any_shape) {
  for (std::uint32_t seed = 100; seed <= 140; ++seed) {
    dice random(seed);
    random_machine m = draw(random);
    for (const collective_kind c : collectives) {
      const plan::problem q =
          plan_test::on(m.c, c, bytes{random(2) == 0 ? 1000U : 64U << 20U}, {random(m.c.gpus.size())});
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(to_string(c)) + ", " +
                   std::to_string(q.ranks.size()) + " ranks");
      const std::uint64_t elements[] = {7};
      if (const auto made = plan::ring{.order = plan::ring_order::hardware}.synthesize(q))
        expect_sound(*made, elements, seed);
      else
        EXPECT_TRUE(c == collective_kind::all_to_all || c == collective_kind::gather || c == collective_kind::scatter)
            << made.error().what;
      if (const auto made = plan::binary_tree{}.synthesize(q))
        expect_sound(*made, elements, seed);
      else
        EXPECT_TRUE(plan::sharded(c)) << made.error().what;
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

/// One of the slices that an operation uses.
plan::slice& used_slice(plan::op& o, dice& random) {
  if (o.kind == plan::op_kind::send) return o.from;
  if (o.kind == plan::op_kind::receive) return o.to;
  return random(2) == 0 ? o.from : o.to;
}

/// One random change to one program; "" when it would have changed nothing.
std::string damage(std::vector<plan::program>& programs, dice& random) {
  plan::program& p = programs[random(programs.size())];
  if (p.ops.empty()) return "";
  const std::size_t i = random(p.ops.size());
  plan::op& o = p.ops[i];
  const std::string where = "rank " + std::to_string(p.rank.value) + ", operation " + std::to_string(i);
  switch (random(9)) {
    case 0: {  // drop an operation
      for (plan::step& s : p.steps) {
        if (s.first_op <= i && i < s.first_op + s.op_count)
          --s.op_count;
        else if (s.first_op > i)
          --s.first_op;
      }
      p.ops.erase(p.ops.begin() + static_cast<long>(i));
      return "dropped: " + where;
    }
    case 1:
      if (o.kind == plan::op_kind::copy || o.kind == plan::op_kind::reduce) return "";
      o.peer = {(o.peer.value + 1 + random(p.ranks - 1)) % p.ranks};
      return "other peer: " + where;
    case 2: used_slice(o, random).first += 1; return "slice moved on: " + where;
    case 3: {
      plan::slice& s = used_slice(o, random);
      s.where = s.where == plan::buffer::input ? plan::buffer::output : plan::buffer::input;
      return "other buffer: " + where;
    }
    case 4: {
      const auto other = static_cast<plan::op_kind>((static_cast<std::uint32_t>(o.kind) + 1 + random(4)) % 5);
      o.kind = other;
      return "other kind: " + where;
    }
    case 5: {
      for (std::size_t k = 0; k < p.steps.size(); ++k) {
        plan::step& s = p.steps[(i + k) % p.steps.size()];
        if (s.after.empty()) continue;
        s.after.erase(s.after.begin() + static_cast<long>(random(s.after.size())));
        return "wait removed: rank " + std::to_string(p.rank.value) + ", step " +
               std::to_string((i + k) % p.steps.size());
      }
      return "";
    }
    case 6: {  // an operation twice, the second time in the step before or after
      plan::op again = o;
      plan::step& s = p.steps.back();
      ++s.op_count;
      p.ops.push_back(again);
      return "once more at the end: " + where;
    }
    case 7: o.chunk = (o.chunk + 1) % p.chunks; return "other chunk: " + where;
    default: {
      plan::op& other = p.ops[random(p.ops.size())];
      if (&other == &o) return "";
      std::swap(o, other);
      return "swapped: " + where;
    }
  }
}

TEST(verifier, objects_whenever_a_damaged_plan_goes_wrong) {
  std::uint32_t refused = 0, accepted = 0;
  for (std::uint32_t seed = 1; seed <= 4000; ++seed) {
    dice random(seed);
    const std::uint32_t n = 2 + random(6);
    const collective_kind c = collectives[random(std::size(collectives))];
    const algorithm a = algorithms[random(7)];
    if (!stage_exists(c, a)) continue;
    const schedule made = plan::flat_schedule(c, n, rank_id{random(n)}, a, {.slices = 1 + random(2)}).value();
    std::vector<plan::program> programs;
    for (std::uint32_t r = 0; r < n; ++r) programs.push_back(plan::lower(made, {r}).value());
    const std::string change = damage(programs, random);
    if (change.empty()) continue;
    const auto verdict = plan::verify(std::span<const plan::program>(programs));
    if (!verdict) {
      ++refused;
      EXPECT_NE(verdict.error().what.find("rank"), std::string::npos) << verdict.error().what;
      continue;
    }
    ++accepted;
    // What is proved must come out right in every run.
    for (std::uint32_t run = 0; run < 6; ++run) {
      const std::string found =
          plan_test::second_opinion(programs, 3 * std::uint64_t{made.chunks()} + 1, seed * 100 + run);
      ASSERT_EQ(found, "") << title(c, a, n, made.slices) << "; " << change;
    }
  }
  // Most damage matters; what is accepted changed nothing that counts (an operation swapped with itself, a needless wait).
  EXPECT_GT(refused, 9 * accepted);
}

}  // namespace
