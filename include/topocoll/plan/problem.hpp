// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is to be planned, and what a planner offers.
#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One collective among given ranks on a given machine.
struct problem {
  const topo::graph* graph = nullptr;  ///< borrowed; without it only algorithms that look at no wires apply
  collective_kind collective = collective_kind::all_reduce;
  /// Bytes of the whole array as in nccl-tests: the buffer of one rank for all_reduce, broadcast and reduce; all shards
  /// together for the sharded collectives.
  bytes size{};
  std::vector<node_id> ranks;  ///< rank r sits on node ranks[r]; only its length counts without a graph
  rank_id root{};              ///< for the rooted collectives

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(ranks.size()); }
};

/// A planner. Implemented by the types in `plan/synth/`.
///
/// Laws that the compiler cannot check: `synthesize` is a pure function of the problem, so every rank gets the same
/// answer; the answer passes `verify` and has the collective, the ranks and the root of the problem; a problem that the
/// planner has no answer for is `unsupported`, with the reason. `name` is stable and short: it appears in tables and files.
/// A planner whose answer does not depend on the size may say so with a member `static constexpr bool any_size = true`.
template <class P>
concept Synthesizer = requires(const P& p, const problem& q) {
  { p.name() } -> std::convertible_to<std::string_view>;
  { p.synthesize(q) } -> std::same_as<result<schedule>>;
};

/// Says in words what keeps `P` from being a `Synthesizer`.
template <class P>
constexpr void require_synthesizer() {
  static_assert(
      requires(const P& p) {
        { p.name() } -> std::convertible_to<std::string_view>;
      },
      "a Synthesizer has name() const returning a string view");
  static_assert(
      requires(const P& p, const problem& q) {
        { p.synthesize(q) } -> std::same_as<result<schedule>>;
      },
      "a Synthesizer has synthesize(const problem&) const returning result<schedule>");
  static_assert(Synthesizer<P>);
}

}}}  // namespace topocoll::v0::plan
