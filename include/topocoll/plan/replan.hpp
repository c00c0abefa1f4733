// SPDX-License-Identifier: Apache-2.0
#pragma once
// A new plan beside an old one: what the old one would cost now, which links make it so, and what the new one does differently.
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

/// A link that the old plan keeps busy for longer than the new plan keeps any.
struct busier_link {
  link_id link{};
  std::string name;         ///< by its ends
  bytes before{}, after{};  ///< what it carries under each plan
  seconds busy_before{}, busy_after{};
  bytes_per_second rate{};                           ///< by the cost model
  std::optional<bytes_per_second> current, nominal;  ///< where it is known to run at least 1 % below its nominal rate
};

/// A way of the old plan that the graph of today does not have.
struct lost_way {
  rank_id from{}, to{};
  std::string why;  ///< "the link from X to Y carries nothing"
};

/// What changes when a plan takes the place of another.
struct plan_change {
  bool same = false;                ///< equal digests: no rank does anything else
  std::optional<seconds> before;    ///< of the old plan on the graph of today; empty when it cannot run there
  std::string why_not;              ///< why it cannot
  seconds after{};                  ///< of the new plan
  std::string reason;               ///< why the old plan takes longer, one clause; empty when it does not or cannot run
  std::size_t groups_kept = 0;      ///< groups and trees that both plans have, on the same part of the array
  std::size_t groups_new = 0;       ///< only the new one
  std::size_t groups_dropped = 0;   ///< only the old one
  std::vector<rank_id> ranks;       ///< whose part of the plan changes, in order
  std::size_t ways_lost = 0;        ///< ways of the old plan that the graph of today does not have
  std::vector<lost_way> lost;       ///< the first of them, at most `most_named`
  std::size_t links_busier = 0;     ///< links that the old plan keeps busy for longer than the new one keeps any
  std::vector<busier_link> busier;  ///< those that it keeps busy for longest, at most `most_named`
  std::string words;                ///< the same in a sentence or two

  static constexpr std::size_t most_named = 16;

  /// Share of the old plan's time that the new one saves; below 0 when the old one is faster, 1 when it cannot run.
  [[nodiscard]] double gain() const { return !before ? 1 : (before->value > 0 ? (*before - after) / *before : 0); }
  /// Whether the new plan is worth its loading: it saves at least the share `least`, and is another plan.
  [[nodiscard]] bool worth(double least) const { return !same && gain() > 0 && gain() >= least; }
};

/// The plan with those of its ways that lead through the graph of the problem, from rank to rank; the others are left to
/// routing. A plan that is read from a file may have been made for a graph whose links were numbered otherwise.
/// @param lost   becomes the number of ways that were left out
/// @param first  when not null, becomes the first `plan_change::most_named` of them
template <class = void>
[[nodiscard]] schedule with_ways_that_exist(const schedule& plan, const problem& p, std::size_t& lost,
                                            std::vector<lost_way>* first = nullptr);

/// Compares a plan that was made earlier, for another state of the machine, with one that was made for this problem.
///
/// Plans know nothing of the machine that they were made for. So causes are told by today's: the links that the old plan
/// keeps busy for longer than the new one keeps any, with those among them that run below their nominal rate.
/// @return `invalid_argument` when the plans are of different collectives or numbers of ranks, or do not fit the problem; as
///         `simulator::run` for the new plan
/// Cost: two simulations, and O(size of both plans + links, sorted).
template <CostModel M>
[[nodiscard]] result<plan_change> compare_plans(simulator<M>& prices, const problem& p, const schedule& before,
                                                const schedule& after);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/replan_compare.hpp>
