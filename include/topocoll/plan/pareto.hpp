// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plans of one communicator that are the cheapest for some size, the others left out.
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/explanation.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// A plan that is the cheapest somewhere. Plans of one name, which differ in slices or pieces by the size, are one line.
struct pareto_line {
  std::string name;
  seconds latency{};  ///< of an array of no bytes
  /// What each further byte of the array adds at the largest size of the list, in as many slices as are best there.
  double seconds_per_byte = 0;
  std::uint32_t fewest_rounds = 0, most_rounds = 0;  ///< at the ends of the ranges in `wins`
  std::vector<size_range> wins;                      ///< ascending; more than one where another plan lies between
  bool proved = false;   ///< every plan of the name that won at a size that was asked for, each in the fewest slices
  std::string unproved;  ///< why not, when proofs were asked for
};

/// A plan that is nowhere the cheapest, or a planner without one.
struct pareto_other {
  std::string name;
  double factor = 0;  ///< its time over that of the cheapest where it comes nearest, at least 1; 0 when it has no price
  bytes size{};       ///< where that is
  std::string why_not;  ///< why it has no price
};

/// What a communicator needs to know of plans: which to take for which size. Refers to nothing, and may outlive graph and
/// problem.
struct pareto_list {
  collective_kind collective = collective_kind::all_reduce;
  std::uint32_t ranks = 0;
  std::string machine;  ///< source of the graph
  bytes first{}, last{};
  std::vector<pareto_line> lines;     ///< in the order in which they first win
  std::vector<pareto_other> others;   ///< the nearest first, then those without a price
  seconds bound_latency{};            ///< no plan takes less for any size
  double bound_seconds_per_byte = 0;  ///< nor less for each byte of a very large array
  size_map map;                       ///< the same as ranges of sizes and as curves

  /// The line to take for a size; sizes outside of the list have the plan of its nearest end.
  /// Precondition: the list has lines, as `pareto` makes them. Cost: O(ranges).
  [[nodiscard]] const pareto_line& at(bytes size) const {
    const size_range* range = &map.ranges.front();
    for (const size_range& r : map.ranges)
      if (r.first <= size) range = &r;
    const pareto_line* found = &lines.front();
    for (const pareto_line& l : lines)
      if (l.name == range->name) found = &l;
    return *found;
  }
  /// busbw of arrays so large that `seconds_per_byte` is all that counts; 0 for one rank.
  [[nodiscard]] bytes_per_second busbw(double seconds_per_byte) const {
    return {seconds_per_byte > 0 ? busbw_factor(collective, ranks) / seconds_per_byte : 0};
  }
};

/// The plans that are the cheapest for some size from `first` to `last`.
///
/// Sizes and changes are those of `winners`: planners are asked at doubling sizes, and where the winner changes, by
/// bisection in the closed form of prices, to the byte. A plan that does only as well as its neighbour in all of its range
/// is left out, and the neighbour has the range. So every line is cheaper than any other of the list somewhere. Latency
/// rises and seconds per byte fall along the list, but where a plan owes its range to the slices that are best there.
/// With `options.prove` every plan that won is proved; one that is wrong is left out, and the search repeated.
/// `options.only` is not looked at. The plan itself, for a size, is what `choose` gives, or does as well.
/// @param limit  the bound of the same problem at any size
/// @return `invalid_argument` for no sizes; `unsupported` when no planner has a plan at some size
/// Cost: per doubling and for each change of winner every planner once, except those whose plan is the same at any size;
/// one simulation for each plan that differs, one proof for each that wins (see `verify`), and O(plans) for each size.
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<pareto_list> pareto(simulator<M>& prices, const problem& p, const bound& limit, bytes first,
                                         bytes last, const choose_options& options, const Planners&... planners);

/// As a table: name, latency, busbw of large arrays, sizes, rounds; the bound; who was left out. Ends in a newline.
template <class = void>
[[nodiscard]] std::string to_text(const pareto_list& list);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/pareto_parts.hpp>
