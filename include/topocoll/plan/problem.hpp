// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is to be planned, and what a planner offers.
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Which switches may reduce and multicast what passes through them.
enum class in_network : std::uint8_t {
  nothing,     ///< none: sums are made in ranks
  nvswitches,  ///< NVSwitches, for the ranks that are linked to them (NVLS)
  switches     ///< all switches (SHARP)
};

/// One collective among given ranks on a given machine.
struct problem {
  const topo::graph* graph = nullptr;  ///< borrowed; without it only algorithms that look at no wires apply
  collective_kind collective = collective_kind::all_reduce;
  /// Bytes of the whole array as in nccl-tests: the buffer of one rank for all_reduce, broadcast and reduce; all shards
  /// together for the sharded collectives.
  bytes size{};
  std::vector<node_id> ranks;  ///< rank r sits on node ranks[r]; only its length counts without a graph
  rank_id root{};              ///< for the rooted collectives
  /// Shards of unequal size: one number per rank, in any unit, not all 0 (they are shares of `size`). Empty: equal. For
  /// all_gather, reduce_scatter, gather and scatter. Plans work for shards of any size; shares decide what they cost, which
  /// is best, and how planners that look at rates divide the work.
  std::vector<std::uint64_t> shares{};
  /// Switches that plans may leave sums and copies to. It changes what is the best plan, and the bound on all of them.
  in_network reduces = in_network::nothing;

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(ranks.size()); }
};

/// Whether the shares of a problem can be meant: none, or one per rank of a collective that has such shards.
template <class = void>
[[nodiscard]] result<void> check_shares(const problem& q) {
  if (q.shares.empty()) return {};
  if (!sharded(q.collective) || q.collective == collective_kind::all_to_all)
    return fail(errc::invalid_argument,
                std::string(to_string(q.collective)) + " has no shards that could differ in size");
  if (q.shares.size() != q.ranks.size())
    return fail(errc::invalid_argument, std::to_string(q.shares.size()) + " shares were given for " +
                                            std::to_string(q.ranks.size()) + " ranks");
  std::uint64_t any = 0;
  for (const std::uint64_t s : q.shares) any |= s;
  if (any == 0) return fail(errc::invalid_argument, "the shares of all ranks are 0");
  return {};
}

/// A planner. Implemented by the types in `plan/synth/`.
///
/// Laws that the compiler cannot check: `synthesize` is a pure function of the problem, so every rank gets the same
/// answer; the answer passes `verify` and has the collective, the ranks and the root of the problem; a problem that the
/// planner has no answer for is `unsupported`, with the reason. `name` is stable and short: it appears in tables and files.
/// A planner whose answer does not depend on the size may say so with a member `static constexpr bool any_size = true`; one
/// that leaves work to switches with `bool needs_switches() const`: it is asked only where the problem allows that.
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
