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
  for (int a = 0; a <= static_cast<int>(tc::plan::algorithm::one_shot); ++a)
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

}  // namespace export_test
