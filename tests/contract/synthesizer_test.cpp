// SPDX-License-Identifier: Apache-2.0
// What every planner must do.
#include <cstdint>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <vector>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/synth/bruck.hpp>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/pat.hpp>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/synth/ring.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

struct hardware_ring : plan::ring {
  hardware_ring() { order = plan::ring_order::hardware; }
};

template <class P>
class synthesizer : public testing::Test {
 protected:
  P planner;
};

using planners =
    testing::Types<plan::ring, hardware_ring, plan::recursive, plan::recursive_doubling, plan::binary_tree,
                   plan::binomial_tree, plan::pat, plan::direct, plan::bruck, plan::one_shot, plan::hierarchical>;

struct planner_names {
  template <class P>
  static std::string GetName(int) {
    std::string name(P{}.name());
    for (char& c : name)
      if (c == '-') c = '_';
    return name;
  }
};
TYPED_TEST_SUITE(synthesizer, planners, planner_names);

constexpr collective_kind collectives[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                           collective_kind::reduce_scatter, collective_kind::broadcast,
                                           collective_kind::reduce,         collective_kind::all_to_all,
                                           collective_kind::gather,         collective_kind::scatter};

std::vector<plan_test::cluster> machines() {
  std::vector<plan_test::cluster> all;
  for (const auto& shape :
       {plan_test::even(1, 1, 1), plan_test::even(1, 1, 8), plan_test::even(1, 2, 1), plan_test::even(2, 2, 3)})
    all.push_back(plan_test::build(shape));
  all.push_back(plan_test::build({.pods = {{3, 2}, {1}}}));
  return all;
}

TYPED_TEST(synthesizer, meets_the_concept) {
  plan::require_synthesizer<TypeParam>();
  EXPECT_FALSE(this->planner.name().empty());
}

TYPED_TEST(synthesizer, answers_with_a_proved_plan_of_the_problem_or_says_why_not) {
  std::uint32_t answers = 0;
  for (const auto& machine : machines())
    for (const collective_kind c : collectives)
      for (const std::uint64_t size : {0ULL, 1ULL, 4096ULL, 256ULL << 20U}) {
        const rank_id root{static_cast<std::uint32_t>(machine.gpus.size() - 1)};
        const auto made = this->planner.synthesize(plan_test::on(machine, c, bytes{size}, root));
        if (!made) {
          EXPECT_EQ(made.error().code, errc::unsupported) << made.error().what;
          EXPECT_FALSE(made.error().what.empty());
          continue;
        }
        ++answers;
        EXPECT_EQ(made->collective, c);
        EXPECT_EQ(made->ranks, machine.gpus.size());
        EXPECT_EQ(made->root, rooted(c) ? root : rank_id{0});
        EXPECT_EQ(made->name, this->planner.name());
        const auto proved = plan::verify(*made);
        EXPECT_TRUE(proved) << to_string(c) << " of " << size << " bytes among " << made->ranks << ": "
                            << proved.error().what;
      }
  EXPECT_GT(answers, 0U);
}

TYPED_TEST(synthesizer, gives_every_rank_the_same_answer) {
  for (const auto& machine : machines())
    for (const collective_kind c : collectives) {
      const auto q = plan_test::on(machine, c, bytes{1U << 20U});
      const auto first = this->planner.synthesize(q), second = TypeParam{}.synthesize(q);
      ASSERT_EQ(bool(first), bool(second));
      if (!first) continue;
      EXPECT_TRUE(*first == *second);
      EXPECT_EQ(plan::digest(*first), plan::digest(*second));
    }
}

TYPED_TEST(synthesizer, refuses_no_ranks_and_foreign_roots) {
  const auto machine = plan_test::build(plan_test::even(1, 1, 4));
  auto q = plan_test::on(machine, collective_kind::all_reduce, bytes{8});
  q.ranks.clear();
  EXPECT_FALSE(this->planner.synthesize(q));
  EXPECT_FALSE(this->planner.synthesize(plan_test::on(machine, collective_kind::broadcast, bytes{8}, {4})));
}

}  // namespace
