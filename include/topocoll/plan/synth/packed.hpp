// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans made of packed trees: as much bandwidth as any trees can have on any graph, however irregular.
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/packed_build.hpp>
#include <topocoll/plan/pack.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Trees packed into the links of the graph (`pack`): uneven meshes, islands joined by PCIe, boxes with a slow part.
///
/// Every tree has its part of the array and its way through the graph. all_gather: trees from every rank; reduce_scatter:
/// the same against the links; all_reduce: trees with free roots, up and down, so that slow ranks are leaves; broadcast and
/// reduce: trees of the root; gather and scatter: paths to and from the root, the parts of a maximum flow. Bandwidth comes first: trees may be deep, so small messages are for other planners.
struct packed {
  alpha_beta cost{};                  ///< its rates, rounded to three digits, are what the trees share
  std::uint32_t most_depth = 0;       ///< of a tree; 0 for any, fewer rounds cost bandwidth
  std::uint32_t most_ranks = 128;     ///< above it the time to plan grows fast
  std::uint64_t effort = 40'000'000;  ///< steps of the search, as in `pack_options`

  static constexpr bool any_size = true;  ///< the same plan at every size: made once for a map of sizes

  [[nodiscard]] std::string_view name() const { return most_depth == 0 ? "packed" : "packed-flat"; }

  /// @return `invalid_argument` without a graph; `unsupported` for all_to_all, for ranks that share a node and for more
  ///         than `most_ranks`; as `pack`
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    if (q.rank_count() > most_ranks)
      return fail(errc::unsupported, "trees are packed for at most " + std::to_string(most_ranks) + " ranks, not for " +
                                         std::to_string(q.rank_count()));
    auto made = detail::packed_build(q, cost, {most_depth, effort}).run();
    if (made) made->name = name();
    return made;
  }
};
static_assert(Synthesizer<packed>);

}}}  // namespace topocoll::v0::plan
