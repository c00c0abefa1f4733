// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searches of the commands that plan: all planners, prices in latency and bandwidth. Whoever compiles several commands
// may compile these once, as the program does with explicit instantiations.
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/pareto.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace app {

using plan_simulator = plan::simulator<plan::alpha_beta>;

/// `plan::choose` with the planners that are worth trying for so many ranks.
template <class = void>
[[nodiscard]] result<plan::choice> choose_plan(plan_simulator& prices, const plan::problem& p,
                                               const plan::choose_options& options) {
  return plan::with_planners_for(
      p.rank_count(), [&](const auto&... planners) { return plan::choose(prices, p, options, planners...); });
}

/// `plan::winners` with the same planners.
template <class = void>
[[nodiscard]] result<plan::size_map> winners_by_size(plan_simulator& prices, const plan::problem& p,
                                                     const plan::bound& limit, bytes first, bytes last,
                                                     const plan::choose_options& options) {
  return plan::with_planners_for(p.rank_count(), [&](const auto&... planners) {
    return plan::winners(prices, p, limit, first, last, options, planners...);
  });
}

/// `plan::pareto` with the same planners.
template <class = void>
[[nodiscard]] result<plan::pareto_list> pareto_plans(plan_simulator& prices, const plan::problem& p,
                                                     const plan::bound& limit, bytes first, bytes last,
                                                     const plan::choose_options& options) {
  return plan::with_planners_for(p.rank_count(), [&](const auto&... planners) {
    return plan::pareto(prices, p, limit, first, last, options, planners...);
  });
}

}}}  // namespace topocoll::v0::app
