// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules of every planner for exporters to prove themselves on.
#include <cstdint>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/schedule.hpp>
#include <gtest/gtest.h>

namespace export_test {

namespace tc = topocoll;

inline const std::vector<tc::collective_kind>& collectives() {
  using k = tc::collective_kind;
  static const std::vector<k> all{k::all_reduce, k::all_gather, k::reduce_scatter,
                                  k::broadcast,  k::reduce,     k::all_to_all};
  return all;
}

/// Every algorithm over `ranks` ranks that knows no machine, with one and with three slices.
inline std::vector<tc::plan::schedule> flat(std::uint32_t ranks, tc::collective_kind collective) {
  std::vector<tc::plan::schedule> all;
  for (std::size_t a = 0; a < tc::plan::algorithm_count; ++a)
    for (const std::uint32_t slices : {1U, 3U}) {
      tc::plan::flat_options how;
      how.slices = slices;
      auto made =
          tc::plan::flat_schedule(collective, ranks, tc::rank_id{ranks / 2}, static_cast<tc::plan::algorithm>(a), how);
      if (made) all.push_back(std::move(*made));
    }
  return all;
}

/// What the planners make of a cluster whose boxes have the given numbers of GPUs, in two pods.
inline std::vector<tc::plan::schedule> planned(const std::vector<std::vector<std::uint32_t>>& pods,
                                               tc::collective_kind collective) {
  const plan_test::cluster c = plan_test::build({pods, true, true, true});
  tc::plan::problem p;
  p.graph = &c.graph;
  p.collective = collective;
  p.size = tc::bytes{1 << 20};
  p.ranks = c.gpus;
  p.root = tc::rank_id{1};
  std::vector<tc::plan::schedule> all;
  tc::plan::with_default_planners([&](const auto&... planners) {
    const auto add = [&](const auto& planner) {
      auto made = planner.synthesize(p);
      if (made) all.push_back(std::move(*made));
    };
    (add(planners), ...);
  });
  return all;
}

/// One plan.
inline tc::plan::schedule flat(std::uint32_t ranks, tc::collective_kind collective, tc::plan::algorithm how,
                               std::uint32_t slices = 1) {
  tc::plan::flat_options options;
  options.slices = slices;
  return tc::plan::flat_schedule(collective, ranks, {}, how, options).value();
}

/// Clusters as pods of boxes with numbers of GPUs: alone, even, uneven.
inline const std::vector<std::vector<std::vector<std::uint32_t>>>& clusters() {
  static const std::vector<std::vector<std::vector<std::uint32_t>>> all{{{2}, {1}}, {{2, 2}, {2, 2}}, {{3, 1}, {2}},
                                                                        {{4, 4}},   {{4, 4}, {4, 4}}, {{7}}};
  return all;
}

/// What an exporter made, with the reason in the failure where it made nothing.
template <class Plan>
Plan made(tc::result<Plan> plan, const tc::plan::schedule& s) {
  EXPECT_TRUE(plan) << s.name << ", " << to_string(s.collective) << ", " << s.ranks
                    << " ranks: " << (plan ? "" : plan.error().what);
  return plan ? *std::move(plan) : Plan{};
}

/// A check that must find something, in these words.
template <class Proof>
void expect_refused(const tc::result<Proof>& proof, const std::string& words,
                    tc::errc code = tc::errc::malformed_input) {
  ASSERT_FALSE(proof) << "nothing found where this was expected: " << words;
  EXPECT_EQ(proof.error().code, code);
  EXPECT_NE(proof.error().what.find(words), std::string::npos) << proof.error().what;
}

/// The failure of a reader for a text in which `old` is replaced.
template <class Read>
std::string refused_with(std::string text, const std::string& old, const std::string& now, const Read& read) {
  const auto at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  const auto got = read(text.replace(at, old.size(), now));
  EXPECT_FALSE(got) << now;
  return got ? std::string() : got.error().what;
}

}  // namespace export_test
