// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans that follow the machine: inside the box, along the rails of a pod, across pods.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/plan/detail/hierarchy_build.hpp>
#include <topocoll/plan/detail/switch_groups.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Reduce-scatter in the box, along the rail, all-reduce across pods, and back; the other collectives are parts of that.
///
/// Every byte crosses a NIC only as often as it must: all_gather and reduce_scatter move H-1 shards per NIC with H boxes,
/// and P-1 of them over the spine with P pods. With equal boxes that is the least possible but for the NVLink term: NICs
/// could take over a part of what NVLink moves, a factor of at most 1 + NIC rate / NVLink rate.
/// Gather and scatter meet at the NICs of the root's box, each with its share of what passes there.
/// Parts stay on the rail of the rank that holds them.
/// Any shape works. Boxes of unequal size share their parts evenly among the ranks that they have, and where parts of two
/// boxes overlap their holders meet; a rank may then be in several groups of a stage. Numbering of ranks does not matter.
struct hierarchical {
  std::optional<algorithm>
      in_box{};  ///< by default direct where all pairs are wired and parts are at most 1 MiB, else ring
  std::optional<algorithm> on_rail{};  ///< by default ring, or recursive when a part is below 64 KiB
  std::optional<algorithm> across{};   ///< the same, between pods
  std::uint32_t slices = 0;            ///< 0: by size

  [[nodiscard]] std::string_view name() const { return "hierarchical"; }
  [[nodiscard]] bool needs_switches() const { return in_box == algorithm::in_switch; }

  /// @return `invalid_argument` without a graph; `unsupported` for all_to_all, or for an algorithm that the stages of this
  ///         collective do not have (ring, recursive and direct always work), or for `in_switch` where switches cannot
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    if (q.collective == collective_kind::all_to_all)
      return fail(errc::unsupported, "all_to_all has no hierarchical plan: nothing is reduced or copied on the way",
                  "use direct");
    if (rooted(q.collective) && q.root.value >= q.rank_count())
      return fail(errc::invalid_argument, "the root " + std::to_string(q.root.value) + " is not one of the " +
                                              std::to_string(q.rank_count()) + " ranks");
    if (auto fits = check_shares(q); !fits) return fits.error();
    if (needs_switches())
      if (auto why = detail::switch_use_fault(q)) return fail(errc::unsupported, *why);
    const auto at = levels_of(q);
    if (!at) return at.error();
    auto made = detail::hierarchy_build({in_box, on_rail, across, slices, std::string(name())}, q, *at).run();
    if (made && needs_switches())
      if (auto why = detail::switch_fault(q, *made)) return fail(errc::unsupported, *why);
    return made;
  }
};
static_assert(Synthesizer<hierarchical>);

}}}  // namespace topocoll::v0::plan
