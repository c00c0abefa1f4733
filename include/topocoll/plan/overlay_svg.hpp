// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan as a picture on its machine: what every link carries, who sends to whom, and the trees of packed plans.
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

struct overlay_options {
  std::size_t boxes = 32;    ///< hosts or switches of a tier that are drawn one by one; more are summed up
  std::size_t cables = 100;  ///< connections between tiers that are drawn one by one; more are summed up
  std::size_t hosts = 2;     ///< whose inside is drawn: the one with the busiest link first
  std::size_t trees = 6;     ///< of a packed plan, the heaviest first
};

/// A plan with its price, drawn on the graph of its problem; one SVG text without scripts, fonts or references to anything
/// outside.
///
/// Links are as wide and as dark as they are busy, measured by the busiest one, in five colours that the colour-blind tell
/// apart; what carries nothing is grey and dashed; the busiest has its bytes written on it. First the network in tiers, then
/// the inside of a host, below it arcs between the ranks that send to each other, in a colour for each stage (or tree), then
/// the heaviest trees. Every line and box has a title with its bytes, and the picture a description with the main figures.
/// @param price  of `made` on the problem's graph, with its loads: `choice::price()`
/// Cost: O((nodes + links + transfers) log), as `topo::to_svg`.
template <CostModel M>
[[nodiscard]] std::string overlay_svg(const problem& p, const schedule& made, const simulation& price, const M& cost,
                                      const overlay_options& options = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/overlay_draw.hpp>
