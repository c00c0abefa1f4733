// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predicted busbw against size as a picture: the plans that win somewhere, the bound, and models of GPU libraries.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/explanation.hpp>
#include <topocoll/plan/library_model.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One line of the chart.
struct chart_line {
  enum class role : std::uint8_t { bound, plan, model };
  role what = role::plan;
  std::string name;
  std::vector<bytes_per_second> busbw;  ///< at each of the chart's sizes
  double spread = 0;                    ///< as `library_line::spread`; 0 for none
};

/// What is drawn.
struct busbw_chart {
  std::string title, subtitle;
  std::vector<bytes> sizes;       ///< ascending
  std::vector<chart_line> lines;  ///< the bound first, then plans in the order in which they win, then models
  std::vector<size_range> winners;
};

/// The chart of an explanation that has a map of sizes: eight sizes for each doubling, the bound, every winner, and for GPUs
/// the library model and NCCL's own where they apply.
/// @return `invalid_argument` for an explanation without `curves`, for one rank, or for fewer than two sizes
/// Cost: O(sizes) and one summary of the graph.
template <class = void>
[[nodiscard]] result<busbw_chart> busbw_chart_of(const problem& p, const explanation& e,
                                                 const model_constants& constants = {});

/// The chart as one SVG text without scripts, fonts or references to anything outside; sizes on a logarithmic axis. Lines
/// differ in colour and dashes, are named at their right end without overlap, and the text tells in desc who wins where.
/// A plan's line is wide where the plan wins. Precondition: as `busbw_chart_of` makes it.
template <class = void>
[[nodiscard]] std::string to_svg(const busbw_chart& chart);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/busbw_chart_draw.hpp>
