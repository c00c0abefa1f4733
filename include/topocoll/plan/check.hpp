// SPDX-License-Identifier: Apache-2.0
#pragma once
// Independent checker of programs and their certificate: shares no code with the planners, the prices or `verify`.
#include <span>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/certificate.hpp>
#include <topocoll/plan/check_report.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Checks programs alone; program r belongs to rank r. Any input is fine, also nonsense.
///
/// Result: programs are executed on multisets of contributions in an order that all waits allow, with separate buffers and
/// in place; without races every other order gives the same. Races: two accesses are ordered when the step of one has ended
/// before the step of the other starts, by `after`, the order of channels, and messages (a receive ends after the step of its
/// send has started). Deadlock: the graph of starts, ends and messages, with an edge from the j-th receive of a channel to
/// the (j+k)-th send for k credits, and both ways without; no circle means no deadlock whatever the timing.
/// Cost: O(operations of all ranks), times the size of the sets where these are ragged.
template <class = void>
[[nodiscard]] check_report check(std::span<const program> programs, const check_options& options = {});

/// Checks programs and what is claimed about them on a graph; rank r sits on node ranks[r]. All sums are exact.
///
/// `rates`: what each link carries; empty for the capacities of the graph. Rates must be fractions with a denominator up to
/// 64, in bytes per second, for claims about time.
/// Cost: as above, and O(sends times links of their routes).
template <class = void>
[[nodiscard]] check_report check(std::span<const program> programs, const topo::graph& graph,
                                 std::span<const node_id> ranks, const certificate& claims,
                                 std::span<const bytes_per_second> rates = {}, const check_options& options = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/check_claims.hpp>
#include <topocoll/plan/detail/check_run.hpp>
