// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of a hierarchical plan: who of a unit (box, pod) keeps which part, and who meets whom one level up.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Units lo to hi-1 are in the hands of one rank.
struct holding {
  std::uint32_t lo = 0, hi = 0;
  rank_id rank{};
};
/// Who holds what of all units within a box or a pod; sorted, without gaps.
using holders = std::vector<holding>;

/// Units lo to hi-1 go to child `to`.
struct wish {
  std::uint32_t lo = 0, hi = 0, to = 0;
};

/// Cuts an interval into equal parts for `children`; some are empty when there are fewer units.
template <class = void>
void share_evenly(std::uint32_t lo, std::uint32_t hi, std::uint32_t children, std::vector<wish>& wishes) {
  for (std::uint32_t j = 0; j < children; ++j)
    wishes.push_back({lo + static_cast<std::uint32_t>(std::uint64_t{hi - lo} * j / children),
                      lo + static_cast<std::uint32_t>(std::uint64_t{hi - lo} * (j + 1) / children), j});
}

/// Groups of one level, before it is known what they do.
struct level_groups {
  struct group {
    std::vector<rank_id> members;
    std::vector<std::uint32_t> bounds;
  };
  std::vector<group> groups;

  void put(stage& into) const {
    for (const group& g : groups) into.add(g.members, g.bounds);
  }
};

/// One rank as holder of everything.
template <class = void>
[[nodiscard]] holders all_held_by(rank_id r, std::uint32_t units) {
  return {{0, units, r}};
}

/// Visits the intervals in which every child has one holder, and as many neighbours with the same holders as follow.
template <class Visit>
void each_common(std::span<const holders> children, std::uint32_t units, Visit&& visit) {
  std::vector<std::size_t> at(children.size(), 0);
  std::vector<rank_id> ranks(children.size());
  std::uint32_t lo = 0, merged_from = 0;
  std::vector<rank_id> merged;
  while (lo < units) {
    std::uint32_t hi = units;
    for (std::size_t c = 0; c < children.size(); ++c) {
      while (children[c][at[c]].hi <= lo) ++at[c];
      hi = std::min(hi, children[c][at[c]].hi);
      ranks[c] = children[c][at[c]].rank;
    }
    if (ranks != merged) {
      if (!merged.empty()) visit(merged_from, lo, std::span<const rank_id>(merged));
      merged = ranks;
      merged_from = lo;
    }
    lo = hi;
  }
  if (!merged.empty()) visit(merged_from, units, std::span<const rank_id>(merged));
}

/// Stands for the holder of units that a child takes no part in.
inline constexpr rank_id no_rank{0xffffffffU};

/// Brings the holders of several children together: in every interval in which each child has one holder these form a
/// group, and `wishes(lo, hi, children)` says which part goes to which child that has a holder there, counted without the
/// others. Adds the groups to `out`; returns the holders of all.
template <class Wishes>
[[nodiscard]] holders meet(std::span<const holders> children, std::uint32_t units, Wishes&& wishes, level_groups& out) {
  if (children.size() == 1) return children[0];
  holders joint;
  each_common(children, units, [&](std::uint32_t lo, std::uint32_t hi, std::span<const rank_id> all) {
    std::vector<rank_id> ranks(all.begin(), all.end());
    std::erase(ranks, no_rank);
    if (ranks.size() < 2) {
      joint.push_back({lo, hi, ranks.empty() ? no_rank : ranks[0]});
      return;
    }
    // A group gives each member one part, in the order of the parts. Who is wanted twice begins another group.
    level_groups::group g;
    std::vector<bool> used(ranks.size(), false);
    const auto close = [&](std::uint32_t end) {
      if (g.members.empty()) return;
      // Those without a part follow in turn, so that in rings nobody is always the last.
      std::size_t after = 0;
      for (std::size_t c = 0; c < ranks.size(); ++c)
        if (ranks[c] == g.members.back()) after = c + 1;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::size_t c = (after + i) % ranks.size();
        if (used[c]) continue;
        g.members.push_back(ranks[c]);
        g.bounds.push_back(end);
      }
      g.bounds.push_back(end);
      out.groups.push_back(std::move(g));
      g = {};
      used.assign(ranks.size(), false);
    };
    const std::vector<wish> parts = wishes(lo, hi, static_cast<std::uint32_t>(ranks.size()));
    std::uint32_t last = 0xffffffffU;  // nobody
    for (const wish& w : parts) {
      if (w.lo >= w.hi) continue;
      if (w.to == last) {  // goes on where the part before ended
        joint.back().hi = w.hi;
        continue;
      }
      if (used[w.to]) close(w.lo);
      g.members.push_back(ranks[w.to]);
      g.bounds.push_back(w.lo);
      used[w.to] = true;
      last = w.to;
      joint.push_back({w.lo, w.hi, ranks[w.to]});
    }
    close(hi);
  });
  return joint;
}

/// Ranks by box and boxes by pod, as lists in a fixed order.
struct roster {
  std::vector<std::vector<rank_id>> box;        ///< members by rail
  std::vector<std::vector<std::uint32_t>> pod;  ///< boxes of each pod
  std::vector<std::uint32_t> place_in_pod;      ///< of box
  std::vector<std::uint32_t> pod_of_box;

  explicit roster(const levels& at) : box(at.boxes), pod(at.pods), place_in_pod(at.boxes), pod_of_box(at.boxes) {
    for (std::uint32_t r = 0; r < at.box.size(); ++r) box[at.box[r]].push_back({r});
    for (auto& members : box) seq::sort_by(members, [&](rank_id r) { return at.rail[r.value]; });
    for (std::uint32_t b = 0; b < at.boxes; ++b) {
      pod_of_box[b] = at.pod[box[b].front().value];
      place_in_pod[b] = static_cast<std::uint32_t>(pod[pod_of_box[b]].size());
      pod[pod_of_box[b]].push_back(b);
    }
  }
  /// All ranks, box after box, pod after pod.
  [[nodiscard]] std::vector<rank_id> in_order() const {
    std::vector<rank_id> all;
    for (const auto& boxes : pod)
      for (const std::uint32_t b : boxes) all.insert(all.end(), box[b].begin(), box[b].end());
    return all;
  }
};

/// One stage over all ranks, in the order of the hardware if there is a graph.
template <class = void>
[[nodiscard]] result<schedule> in_hardware_order(const problem& q, algorithm how, flat_options options,
                                                 std::string_view name) {
  std::vector<rank_id> order;
  if (q.graph != nullptr) {
    const auto at = levels_of(q);
    if (!at) return at.error();
    order = roster(*at).in_order();
  }
  auto plan = q.graph == nullptr ? flat_schedule(q.collective, q.rank_count(), q.root, how, options)
                                 : flat_schedule(q.collective, std::span<const rank_id>(order), q.root, how, options);
  if (plan) plan->name = name;
  return plan;
}

}}}}  // namespace topocoll::v0::plan::detail
