// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums and copies made by the NVSwitches that all ranks hang on (NVLS).
#include <string_view>
#include <topocoll/plan/detail/switch_groups.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Every rank reads the sum of its part from the switch, and writes it once for all. Links of k ranks carry (1 + 1/k) of the
/// array each way in an all_reduce, those of a ring 2 (1 - 1/k) of it. Across NVLink domains see `hierarchical`, whose
/// stages in the box may be `algorithm::in_switch`, too.
///
/// Programs of such a plan send and add up like `direct`, so they run anywhere and are proved as they are; what is priced
/// is the switch, and needs a runtime that uses it (multicast objects of CUDA, NCCL's NVLS).
struct in_switch {
  static constexpr bool any_size = true;

  [[nodiscard]] std::string_view name() const { return "in_switch"; }
  [[nodiscard]] bool needs_switches() const { return true; }

  /// @return `unsupported` for collectives without a sum or a copy for all, where the problem does not allow switches to
  ///         reduce, shards differ in size, or the ranks do not hang on the same NVSwitches of a generation that can
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    if (auto why = detail::switch_use_fault(q)) return fail(errc::unsupported, *why);
    for (const node_id v : q.ranks)
      if (v.value >= q.graph->node_count())
        return fail(errc::invalid_argument, "a rank sits on a node that the graph does not have");
    if (auto why = detail::switch_fault(*q.graph, q.ranks)) return fail(errc::unsupported, *why);
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::in_switch);
  }
};
static_assert(Synthesizer<in_switch>);

}}}  // namespace topocoll::v0::plan
