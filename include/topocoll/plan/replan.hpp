// SPDX-License-Identifier: Apache-2.0
#pragma once
// A new plan beside an old one: what the old one would cost now, and what the new one does differently.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What changes when a plan takes the place of another.
struct plan_change {
  bool same = false;               ///< equal digests: no rank does anything else
  std::optional<seconds> before;   ///< of the old plan on the graph of today; empty when it cannot run there
  std::string why_not;             ///< why it cannot
  seconds after{};                 ///< of the new plan
  std::size_t groups_kept = 0;     ///< groups and trees that both plans have, on the same part of the array
  std::size_t groups_new = 0;      ///< only the new one
  std::size_t groups_dropped = 0;  ///< only the old one
  std::vector<rank_id> ranks;      ///< whose part of the plan changes, in order
  std::size_t ways_lost = 0;       ///< ways of the old plan that the graph of today does not have
  std::string words;               ///< the same in a sentence or two
};

/// The plan with those of its ways that lead through the graph of the problem, from rank to rank; the others are left to
/// routing. A plan that is read from a file may have been made for a graph whose links were numbered otherwise.
/// @param lost  becomes the number of ways that were left out
template <class = void>
[[nodiscard]] schedule with_ways_that_exist(const schedule& plan, const problem& p, std::size_t& lost);

/// Compares a plan that was made earlier, for another state of the machine, with one that was made for this problem.
///
/// @return `invalid_argument` when the plans are of different collectives or numbers of ranks, or do not fit the problem; as
///         `simulator::run` for the new plan
/// Cost: two simulations, and O(size of both plans, sorted).
template <CostModel M>
[[nodiscard]] result<plan_change> compare_plans(simulator<M>& prices, const problem& p, const schedule& before,
                                                const schedule& after);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/replan_compare.hpp>
