// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the stages of a hierarchical plan, level by level.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/level_groups.hpp>
#include <topocoll/plan/detail/schedule_flat.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/synth/slicing.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// What the user of `hierarchical` decided.
struct hierarchy_choice {
  std::optional<algorithm> in_box, on_rail, across;
  std::uint32_t slices = 0;
  std::string name;
};

/// One plan in the making.
template <class = void>
class hierarchy_build {
  using wishes = std::vector<wish>;

 public:
  hierarchy_build(hierarchy_choice how, const problem& q, const levels& at)
      : how_(std::move(how)), q_(q), at_(at), who_(at) {}

  [[nodiscard]] result<schedule> run() && {
    plan_.collective = q_.collective;
    plan_.ranks = q_.rank_count();
    plan_.root = rooted(q_.collective) ? q_.root : rank_id{0};
    plan_.name = how_.name;
    cut();
    if (q_.collective == collective_kind::all_reduce)
      plan_all_reduce();
    else if (sharded(q_.collective))
      plan_shards();
    else
      plan_rooted();
    if (auto fits = validate(plan_); !fits)
      return fail(errc::unsupported, fits.error().what, "ring, recursive and direct work in every stage");
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool uneven() const {
    for (const auto& b : who_.box)
      if (b.size() != who_.box[0].size()) return true;
    for (const auto& p : who_.pod)
      if (p.size() != who_.pod[0].size()) return true;
    return false;
  }

  /// Chooses units such that equal shares are whole units, or nearly so when shapes differ too much.
  void cut() {
    const std::uint32_t n = plan_.ranks;
    std::uint64_t units = n;
    if (sharded(q_.collective)) {
      // Shares of a missing rail are cut from other boxes' shards.
      const std::uint32_t per_shard = uneven() ? std::clamp(2 * at_.rails / std::max(at_.boxes, 1U), 1U, 8U) : 1;
      units = std::uint64_t{n} * per_shard;
      order_shards();
    } else {
      std::uint64_t boxes = 1, pods = 1;
      const std::uint64_t most = std::uint64_t{8} * n + 64;
      const auto grow = [&](std::uint64_t& product, std::uint64_t factor) {
        std::uint64_t a = product, b = factor;
        while (b != 0) a = std::exchange(b, a % b);  // a: greatest common divisor
        if (product / a * factor <= most) product = product / a * factor;
      };
      for (const auto& b : who_.box) grow(boxes, b.size());
      for (const auto& p : who_.pod) grow(pods, p.size());
      units = std::min(boxes * pods, most);
      if (q_.collective == collective_kind::all_reduce)
        units = std::min(units * at_.pods, most);
      else
        units *=
            std::clamp<std::uint64_t>(q_.size.value / (least_message.value * units), 1, 8);  // chains pass on units
    }
    plan_.units = static_cast<std::uint32_t>(units);
    plan_.slices = how_.slices == 0 ? slices_for(q_.size, plan_.units) : how_.slices;
  }

  /// Shards by rail, then by place of the box in its pod, then by pod: what a rank holds at each level is one interval.
  void order_shards() {
    std::vector<rank_id> order;
    for (std::uint32_t r = 0; r < plan_.ranks; ++r) order.push_back({r});
    const auto key = [&](rank_id r) {
      const std::uint64_t rail = at_.rail[r.value], place = who_.place_in_pod[at_.box[r.value]], pod = at_.pod[r.value];
      return (rail << 42U) | (place << 21U) | pod;
    };
    seq::sort_by(order, key);
    bool numbered = true;
    for (std::uint32_t v = 0; v < plan_.ranks; ++v) numbered = numbered && order[v].value == v;
    owner_ = order;
    if (!numbered) plan_.order = std::move(order);
  }

  // ---- algorithms of the levels

  [[nodiscard]] algorithm box_algorithm() const {
    if (how_.in_box) return *how_.in_box;
    for (const bool wired : at_.all_pairs)
      if (!wired) return algorithm::ring;
    // A part of 1 MiB takes 2.3 µs at 450 GB/s, about what a step costs. Above that a ring is as fast and needs no scratch,
    // while direct keeps what arrives at once apart until it is added.
    return q_.size.value / at_.rails <= (std::uint64_t{1} << 20U) ? algorithm::direct : algorithm::ring;
  }
  [[nodiscard]] algorithm net_algorithm(const std::optional<algorithm>& wanted) const {
    if (wanted) return *wanted;
    // A ring of H boxes sends parts of size / (g H); below 64 KiB (1.3 µs at 50 GB/s) its H-1 latencies outweigh them.
    return q_.size.value / std::max(plan_.ranks, 1U) < (std::uint64_t{64} << 10U) ? algorithm::recursive
                                                                                  : algorithm::ring;
  }

  void add(stage_kind kind, algorithm how, const level_groups& groups, const char* where) {
    if (groups.groups.empty()) return;
    stage st;
    st.kind = kind;
    st.how = how;
    st.label = std::string(to_string(kind)) + " " + where;
    groups.put(st);
    plan_.stages.push_back(std::move(st));
  }
  [[nodiscard]] const char* box_words() const { return "in the box"; }
  [[nodiscard]] const char* rail_words() const { return at_.pods > 1 ? "on the rail in the pod" : "on the rail"; }

  // ---- the levels, bottom up

  struct tower {
    level_groups box, rail, pods;
  };

  /// `in_box(box, lo, hi)`, `in_pod(pod, lo, hi)` and `among_pods(lo, hi)` say what part of an interval goes to which child.
  template <class InBox, class InPod, class AmongPods>
  [[nodiscard]] tower climb(InBox&& in_box, InPod&& in_pod, AmongPods&& among_pods) const {
    tower t;
    std::vector<holders> pods;
    for (std::uint32_t p = 0; p < who_.pod.size(); ++p) {
      std::vector<holders> boxes;
      for (const std::uint32_t b : who_.pod[p]) {
        std::vector<holders> ranks;
        for (const rank_id r : who_.box[b]) ranks.push_back(all_held_by(r, plan_.units));
        boxes.push_back(meet(
            ranks, plan_.units, [&](std::uint32_t lo, std::uint32_t hi) { return in_box(b, lo, hi); }, t.box));
      }
      pods.push_back(meet(
          boxes, plan_.units, [&](std::uint32_t lo, std::uint32_t hi) { return in_pod(p, lo, hi); }, t.rail));
    }
    static_cast<void>(meet(pods, plan_.units, among_pods, t.pods));
    return t;
  }

  void plan_all_reduce() {
    const auto even = [&](std::uint32_t lo, std::uint32_t hi, std::size_t children) {
      wishes parts;
      share_evenly(lo, hi, static_cast<std::uint32_t>(children), parts);
      return parts;
    };
    const tower t =
        climb([&](std::uint32_t b, std::uint32_t lo, std::uint32_t hi) { return even(lo, hi, who_.box[b].size()); },
              [&](std::uint32_t p, std::uint32_t lo, std::uint32_t hi) { return even(lo, hi, who_.pod[p].size()); },
              [&](std::uint32_t lo, std::uint32_t hi) { return even(lo, hi, who_.pod.size()); });
    const algorithm inside = box_algorithm(), rail = net_algorithm(how_.on_rail), across = net_algorithm(how_.across);
    // The highest level that has groups does both halves in one stage.
    const bool rail_is_top = t.pods.groups.empty(), box_is_top = rail_is_top && t.rail.groups.empty();
    if (box_is_top) {
      add(stage_kind::all_reduce, inside, t.box, box_words());
      return;
    }
    add(stage_kind::reduce_scatter, inside, t.box, box_words());
    if (rail_is_top) {
      add(stage_kind::all_reduce, rail, t.rail, rail_words());
    } else {
      add(stage_kind::reduce_scatter, rail, t.rail, rail_words());
      add(stage_kind::all_reduce, across, t.pods, "across pods");
      add(stage_kind::all_gather, rail, t.rail, rail_words());
    }
    add(stage_kind::all_gather, inside, t.box, box_words());
  }

  /// All_gather and reduce_scatter: in the end the shard must be at its owner, so at every level it goes to the child that
  /// contains the owner, and elsewhere to the child that stands at the same place.
  void plan_shards() {
    const std::uint32_t per_shard = plan_.units / plan_.ranks;
    // Calls `child(owner)` for the shards from lo to hi; where it says "nobody" (its second argument), all children share.
    const auto to_children = [&](std::uint32_t lo, std::uint32_t hi, std::uint32_t children, auto&& child) {
      wishes parts;
      for (std::uint32_t u = lo; u < hi;) {
        const std::uint32_t wanted = child(owner_[u / per_shard]);
        std::uint32_t end = std::min(hi, (u / per_shard + 1) * per_shard);
        while (end < hi && child(owner_[end / per_shard]) == wanted) end = std::min(hi, end + per_shard);
        if (wanted < children)
          parts.push_back({u, end, wanted});
        else
          share_evenly(u, end, children, parts);
        u = end;
      }
      return parts;
    };
    constexpr std::uint32_t nobody = 0xffffffffU;
    const tower t = climb(
        [&](std::uint32_t b, std::uint32_t lo, std::uint32_t hi) {
          const auto g = static_cast<std::uint32_t>(who_.box[b].size());
          return to_children(lo, hi, g,
                             [&](rank_id owner) { return at_.rail[owner.value] < g ? at_.rail[owner.value] : nobody; });
        },
        [&](std::uint32_t p, std::uint32_t lo, std::uint32_t hi) {
          const auto h = static_cast<std::uint32_t>(who_.pod[p].size());
          return to_children(lo, hi, h, [&](rank_id owner) {
            const std::uint32_t place = who_.place_in_pod[at_.box[owner.value]];
            return place < h ? place : nobody;
          });
        },
        [&](std::uint32_t lo, std::uint32_t hi) {
          return to_children(lo, hi, at_.pods, [&](rank_id owner) { return at_.pod[owner.value]; });
        });
    const algorithm inside = box_algorithm(), rail = net_algorithm(how_.on_rail), across = net_algorithm(how_.across);
    if (q_.collective == collective_kind::reduce_scatter) {
      add(stage_kind::reduce_scatter, inside, t.box, box_words());
      add(stage_kind::reduce_scatter, rail, t.rail, rail_words());
      add(stage_kind::reduce_scatter, across, t.pods, "across pods");
    } else {
      add(stage_kind::all_gather, across, t.pods, "across pods");
      add(stage_kind::all_gather, rail, t.rail, rail_words());
      add(stage_kind::all_gather, inside, t.box, box_words());
    }
  }

  /// Broadcast: the root scatters in its box, so that all its NICs send; the parts travel along their rails to one box of
  /// every pod, then to the others; every box gathers. Reduce is the mirror image.
  void plan_rooted() {
    const std::uint32_t root_box = at_.box[plan_.root.value], root_pod = at_.pod[plan_.root.value],
                        root_rail = at_.rail[plan_.root.value];
    const bool outward = q_.collective == collective_kind::broadcast;
    level_groups root_group, boxes, rail, pods;
    std::vector<holders> held(at_.boxes);
    for (std::uint32_t b = 0; b < at_.boxes; ++b) {
      // The root's rail comes first everywhere, so that equal parts lie on equal rails.
      std::vector<rank_id> members = who_.box[b];
      if (root_rail < members.size())
        std::rotate(members.begin(), members.begin() + root_rail, members.begin() + root_rail + 1);
      wishes parts;
      share_evenly(0, plan_.units, static_cast<std::uint32_t>(members.size()), parts);
      level_groups::group g;
      g.members = members;
      for (const wish& w : parts) {
        g.bounds.push_back(w.lo);
        if (w.lo < w.hi) held[b].push_back({w.lo, w.hi, members[w.to]});
      }
      g.bounds.push_back(plan_.units);
      if (members.size() < 2) continue;
      if (b == root_box) root_group.groups.push_back(g);
      boxes.groups.push_back(std::move(g));
    }
    const auto meet_first = [&](const std::vector<holders>& children, level_groups& out) {
      if (children.size() < 2) return;
      each_common(children, plan_.units, [&](std::uint32_t lo, std::uint32_t hi, std::span<const rank_id> ranks) {
        level_groups::group g;
        g.members.assign(ranks.begin(), ranks.end());
        for (std::uint32_t j = 0; j <= ranks.size(); ++j)
          g.bounds.push_back(lo + static_cast<std::uint32_t>(std::uint64_t{hi - lo} * j / ranks.size()));
        out.groups.push_back(std::move(g));
      });
    };
    std::vector<holders> leaders;  // one box of each pod, the root's first
    for (std::uint32_t i = 0; i < at_.pods; ++i) {
      const std::uint32_t p = (root_pod + i) % at_.pods;
      const std::uint32_t leader = p == root_pod ? root_box : who_.pod[p].front();
      leaders.push_back(held[leader]);
      std::vector<holders> children{held[leader]};
      for (const std::uint32_t b : who_.pod[p])
        if (b != leader) children.push_back(held[b]);
      meet_first(children, rail);
    }
    meet_first(leaders, pods);

    const algorithm inside = box_algorithm(), on_rail = net_algorithm(how_.on_rail),
                    across = net_algorithm(how_.across);
    const algorithm root_algorithm =
        inside == algorithm::recursive ? inside : algorithm::direct;  // a scatter has no ring
    if (outward) {
      add(stage_kind::scatter, root_algorithm, root_group, "in the root's box");
      add(stage_kind::broadcast, across, pods, "across pods");
      add(stage_kind::broadcast, on_rail, rail, rail_words());
      add(stage_kind::all_gather, inside, boxes, box_words());
    } else {
      add(stage_kind::reduce_scatter, inside, boxes, box_words());
      add(stage_kind::reduce, on_rail, rail, rail_words());
      add(stage_kind::reduce, across, pods, "across pods");
      add(stage_kind::gather, root_algorithm, root_group, "in the root's box");
    }
  }

  hierarchy_choice how_;
  const problem& q_;
  const levels& at_;
  roster who_;
  std::vector<rank_id> owner_;  ///< of the shard at each position
  schedule plan_;
};

}}}}  // namespace topocoll::v0::plan::detail
