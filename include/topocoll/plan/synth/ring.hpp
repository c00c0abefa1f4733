// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rings: least bandwidth with neighbours only, in the order of ranks or of the hardware.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/plan/detail/level_groups.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/synth/slicing.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

enum class ring_order : std::uint8_t {
  rank,     ///< 0, 1, 2, …: whatever the numbering costs
  hardware  ///< box after box, pod after pod; needs a graph
};

/// All ranks in one circle; broadcast and reduce are chains. 2(n-1) steps for all_reduce, n-1 for the halves.
struct ring {
  ring_order order = ring_order::rank;
  /// Hardware order and all_reduce only: so many rings at once, each entering and leaving the boxes at another GPU, so that
  /// they use as many NICs; 0 takes as many as the smallest box has ranks. Other collectives take one ring.
  std::uint32_t rings = 0;
  std::uint32_t slices = 0;  ///< 0: by size

  [[nodiscard]] std::string_view name() const { return order == ring_order::rank ? "ring" : "ring-hardware"; }

  /// @return `invalid_argument` for hardware order without a graph; `unsupported` for all_to_all
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    const std::uint32_t n = q.rank_count();
    if (order == ring_order::rank) return by_rank(q);
    const auto at = levels_of(q);
    if (!at) return at.error();
    const detail::roster boxes(*at);
    std::size_t most = n;
    for (const auto& b : boxes.box) most = b.size() < most ? b.size() : most;
    std::uint32_t count = rings == 0 ? static_cast<std::uint32_t>(most) : rings;
    if (q.collective != collective_kind::all_reduce || at->boxes < 2) count = 1;
    if (count > most)
      return fail(errc::invalid_argument, std::to_string(count) + " rings were asked for, but a box with " +
                                              std::to_string(most) + " ranks has no more ways in");

    const std::vector<rank_id> once = boxes.in_order();
    auto plan = flat_schedule(q.collective, std::span<const rank_id>(once), q.root, algorithm::ring,
                              {.slices = slices == 0 ? detail::slices_for(q.size, n * count) : slices,
                               .pieces = detail::pieces_for(q.size, n)});
    if (!plan) return plan;
    plan->name = name();
    if (count > 1 && n > 1) several(*plan, boxes, count);
    return plan;
  }

 private:
  [[nodiscard]] result<schedule> by_rank(const problem& q) const {
    const std::uint32_t n = q.rank_count();
    auto plan = flat_schedule(
        q.collective, n, q.root, algorithm::ring,
        {.slices = slices == 0 ? detail::slices_for(q.size, n) : slices, .pieces = detail::pieces_for(q.size, n)});
    if (plan) plan->name = name();
    return plan;
  }

  /// Ring c works on its own share of the units and starts every box at the c-th rank.
  static void several(schedule& plan, const detail::roster& boxes, std::uint32_t count) {
    const std::uint32_t n = plan.ranks;
    plan.units = n * count;
    stage all;
    all.kind = plan.stages[0].kind;
    all.how = algorithm::ring;
    all.label = "all_reduce by " + std::to_string(count) + " rings among all ranks";
    for (std::uint32_t c = 0; c < count; ++c) {
      std::vector<rank_id> members;
      for (const auto& pod : boxes.pod)
        for (const std::uint32_t b : pod)
          for (std::size_t i = 0; i < boxes.box[b].size(); ++i)
            members.push_back(boxes.box[b][(i + c) % boxes.box[b].size()]);
      std::vector<std::uint32_t> bounds;
      for (std::uint32_t j = 0; j <= n; ++j) bounds.push_back(c * n + j);
      all.add(members, bounds);
    }
    plan.stages[0] = all;
  }
};
static_assert(Synthesizer<ring>);

}}}  // namespace topocoll::v0::plan
