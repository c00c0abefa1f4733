// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tries planners on a problem: each plan is made and priced, the cheapest that can be proved is chosen, the others say why not.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/verify.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One planner's answer to a problem.
struct candidate {
  std::string planner;           ///< its name
  std::string name;              ///< the same with the algorithms of the stages, where there are several
  std::optional<schedule> plan;  ///< empty when the planner had no answer
  std::optional<simulation> price;
  std::optional<proof> proved;     ///< only plans that could have been chosen are proved
  std::string unproved;            ///< why the chosen plan has no proof all the same: it is too large for one
  std::optional<failure> why_not;  ///< no answer, no way on the graph, or no proof
  std::string reason;              ///< why it was chosen or lost, one clause
};

/// The plan to use, and everything that speaks for it.
struct choice {
  /// Chosen plan first, then by price, then those without one. Of plans whose prices are the same to half a percent, and which
  /// the cables of hosts limit, the one with the least `simulation::incast` is chosen.
  std::vector<candidate> candidates;
  bound limit;     ///< what no plan can beat, by the same cost model
  double gap = 0;  ///< time of the chosen plan over the bound, less 1: 0.02 is 2 % above

  [[nodiscard]] const schedule& best() const { return *candidates.front().plan; }
  [[nodiscard]] const simulation& price() const { return *candidates.front().price; }
};

struct choose_options {
  /// Name of the planner whose plan must be taken, whatever it costs; the others are still tried and listed. Empty: any.
  std::string only;
  /// Set the number of slices of every plan to the one with the best price (1 or one of `slice_counts`), whatever its
  /// planner took; of `bruck` and `pat`, which travel in bundles, one.
  bool cut = true;
  bool prove = true;  ///< `verify` the plan before it is chosen; the next one is taken when it fails
  verify_options proof{.exact_messages = 50'000};  ///< an exact proof of so many takes a fraction of a second
  bound_options effort{};
};

/// Cheapest plan of some planners for a problem.
///
/// @return  `invalid_argument` as `lower_bound`, or when no planner has the name that `options.only` asks for; `unsupported` when no planner has a plan that can be priced and proved,
///          naming the reasons; `bug` when the chosen plan beats the bound, which means that one of the two is wrong
/// Cost: every planner once and one simulation each; proofs until one holds (see `verify`). Pure: equal on all ranks.
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<choice> choose(simulator<M>& prices, const problem& p, const choose_options& options,
                                    const Planners&... planners);

/// The same with a simulator of its own and default options.
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<choice> choose(const problem& p, const M& cost, const Planners&... planners) {
  if (p.graph == nullptr) return fail(errc::invalid_argument, "a choice needs a graph");
  simulator<M> prices(*p.graph, cost);
  return choose(prices, p, choose_options{}, planners...);
}

/// Which plan is the cheapest at one size, and which comes second.
struct selection {
  bytes size{};
  std::string name;
  seconds time{};
  std::string second;  ///< empty when there is no other
  seconds second_time{};
  seconds bound_time{};
};

/// Cheapest plan at each of some sizes, by price alone. `limit` is the bound of the same problem at any size.
///
/// A plan that stays the same at several sizes is priced once.
/// @return  `unsupported` when no planner has a plan at some size
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<std::vector<selection>> crossovers(simulator<M>& prices, const problem& p, const bound& limit,
                                                        std::span<const bytes> sizes, const choose_options& options,
                                                        const Planners&... planners);

/// Sizes from `first` to `last` inclusive, doubling. Empty when first is 0 or above last.
template <class = void>
[[nodiscard]] std::vector<bytes> doubling_sizes(bytes first, bytes last) {
  std::vector<bytes> sizes;
  for (bytes b = first; b.value != 0 && b <= last; b = b * 2) {
    sizes.push_back(b);
    if (b.value > UINT64_MAX / 2) break;
  }
  return sizes;
}

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/choose_search.hpp>
