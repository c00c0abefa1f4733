// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a plan was chosen, in words and numbers: for people as text, for programs as an `explanation`.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/explanation.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/library_model.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// A ring as NCCL builds it, in a given order of boxes: one ring per rank of a box, each on its own rail, entering and
/// leaving every box by it (boxes are passed up and down in turn), or one ring when boxes differ. For all_reduce,
/// all_gather and reduce_scatter; other collectives give an empty workload.
/// @param boxes  numbers of boxes in the order of the ring
template <class = void>
[[nodiscard]] workload ring_workload(const problem& p, const levels& at, std::span<const std::uint32_t> boxes);

/// Which plan is the cheapest at every size from `first` to `last`, with the exact byte from which it is.
///
/// Planners are asked at doubling sizes; where the winner changes, the sizes at which two plans cost the same are found in
/// the closed form of their prices, and planners whose plans depend on the size are asked there again. A plan that wins
/// only between two doubling sizes that another one wins is not seen.
/// @return `invalid_argument` for no sizes; `unsupported` when no planner has a plan at some size
/// Cost: as `crossovers`, and a few plans for each change.
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<size_map> winners(simulator<M>& prices, const problem& p, const bound& limit, bytes first,
                                       bytes last, const choose_options& options, const Planners&... planners);

struct explain_options {
  model_constants constants{};                  ///< of the model of GPU libraries
  bound_options nominal{.effort = 10'000'000};  ///< for the bound by nominal rates: a tenth of a second at most
  std::size_t largest_compared =
      16384;  ///< ranks above which rings, rails and nominal rates are left out, and said to be
};

/// Explains a choice. `map` may be empty.
/// Cost: up to five simulations of rings, one bound, and O(nodes + links).
/// @return as `levels_of`
template <CostModel M>
[[nodiscard]] result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made, size_map map = {},
                                          const explain_options& options = {});

/// The same with winners at single sizes (from `crossovers`), as far apart as they are.
template <CostModel M>
[[nodiscard]] result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made,
                                          std::span<const selection> map, const explain_options& options = {});

/// As text of about sixty lines; `brief` keeps the first block. Ends in a newline.
template <class = void>
[[nodiscard]] std::string to_text(const explanation& e, bool brief = false);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/explain_parts.hpp>
#include <topocoll/plan/detail/explain_sizes.hpp>
#include <topocoll/plan/detail/explain_text.hpp>
