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
#include <topocoll/plan/detail/entry_shares.hpp>
#include <topocoll/plan/detail/gather_build.hpp>
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
    else if (rooted(q_.collective) && sharded(q_.collective))
      plan_gather();
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
  /// Boxes whose entries are not equally fast, and whether there are any.
  [[nodiscard]] bool find_uneven_entries() {
    uneven_entries_.assign(who_.box.size(), false);
    if (who_.box.size() < 2) return false;
    bool any = false;
    for (std::size_t b = 0; b < who_.box.size(); ++b) {
      uneven_entries_[b] = uneven_rates(entries_of(at_, who_.box[b]));
      any = any || uneven_entries_[b];
    }
    return any;
  }

  /// Rails that are slower than others in most boxes carry smaller parts; `rail_rates_` says how much each can. Only where
  /// all boxes have the same number of ranks, because parts of unequal boxes do not follow rails.
  [[nodiscard]] bool find_slow_rails() {
    rail_rates_.clear();
    if (who_.box.size() < 2) return false;
    for (const auto& members : who_.box) {
      if (members.size() != who_.box[0].size()) return false;
      const std::vector<double> rates = entries_of(at_, members);
      if (rail_rates_.empty()) rail_rates_ = rates;
      for (std::size_t j = 0; j < rates.size(); ++j) rail_rates_[j] = std::min(rail_rates_[j], rates[j]);
    }
    // An entry that is faster than most is several NICs that others use too; what each can carry is then not known.
    std::vector<double> sorted = rail_rates_;
    seq::sort(sorted);
    const bool own = sorted.back() <= sorted[sorted.size() / 2] * 1.01;
    if (own && uneven_rates(rail_rates_)) return true;
    rail_rates_.clear();
    return false;
  }

  /// Chooses units such that equal shares are whole units, or nearly so when shapes differ too much.
  void cut() {
    const std::uint32_t n = plan_.ranks;
    std::uint64_t units = n;
    const bool slow_entries = find_uneven_entries();
    if (sharded(q_.collective) && rooted(q_.collective)) {
      const gather_build ends(at_, who_, plan_.root, q_.shares);
      units = std::uint64_t{n} * ends.units_per_shard();
      take_order(ends.order());
    } else if (sharded(q_.collective)) {
      // Shares of a missing rail are cut from other boxes' shards; those of a slow one are a few hundred units.
      std::uint32_t per_shard = uneven() ? std::clamp(2 * at_.rails / std::max(at_.boxes, 1U), 1U, 8U) : 1;
      if (slow_entries) per_shard = std::clamp(2048U / n, per_shard, 16U);
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
      if (rooted(q_.collective)) grow(boxes, std::max<std::size_t>(who_.box[at_.box[plan_.root.value]].size(), 2) - 1);
      units = std::min(boxes * pods, most);
      if (q_.collective == collective_kind::all_reduce) {
        units = std::min(units * at_.pods, most);
        weak_ = weak_boxes(at_, who_, static_cast<std::uint32_t>(units));
        if (!weak_.empty()) {  // what is handed over is cut as finely as the rest
          units *= std::max<std::uint64_t>(8, (4096 + units - 1) / units);
          weak_ = weak_boxes(at_, who_, static_cast<std::uint32_t>(units));
        } else if (find_slow_rails()) {  // parts as different as the rails, to within a part in a thousand
          units *= std::max<std::uint64_t>(1, (4096 + units - 1) / units);
        }
      }  // else a chain passes on units, and slices, which follow one another as closely
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
    take_order(std::move(order));
  }
  void take_order(std::vector<rank_id> order) {
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
    level_groups weak, box, rail, pods;  ///< `weak`: in boxes that hand units over before the others start
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
        const weak_box* weak = nullptr;
        for (const weak_box& w : weak_) weak = w.box == b ? &w : weak;
        boxes.push_back(meet(
            ranks, plan_.units,
            [&](std::uint32_t lo, std::uint32_t hi, std::uint32_t k) { return in_box(b, lo, hi, k); },
            weak != nullptr ? t.weak : t.box));
        if (weak != nullptr) leave_out(weak->leaf, boxes.back());
      }
      pods.push_back(meet(
          boxes, plan_.units, [&](std::uint32_t lo, std::uint32_t hi, std::uint32_t k) { return in_pod(p, lo, hi, k); },
          t.rail));
    }
    static_cast<void>(meet(pods, plan_.units, among_pods, t.pods));
    return t;
  }

  /// Takes units that are handed over out of the hands of a box.
  void leave_out(std::span<const hand_over> leaf, holders& held) const {
    std::vector<rank_id> of_unit(plan_.units);
    for (const holding& h : held)
      for (std::uint32_t u = h.lo; u < h.hi; ++u) of_unit[u] = h.rank;
    for (const hand_over& h : leaf) of_unit[h.unit] = no_rank;
    held.clear();
    for (std::uint32_t u = 0; u < plan_.units; ++u) {
      if (held.empty() || held.back().rank != of_unit[u]) held.push_back({u, u, of_unit[u]});
      held.back().hi = u + 1;
    }
  }

  /// Pairs of a partner and a member of a weak box on its rail, with the units that the one does for the other.
  [[nodiscard]] level_groups hand_overs() const {
    level_groups pairs;
    for (const weak_box& w : weak_)
      for (const hand_over& h : w.leaf) {
        const rank_id partner = who_.box[h.partner][h.member], mine = who_.box[w.box][h.member];
        if (!pairs.groups.empty()) {
          level_groups::group& last = pairs.groups.back();
          if (last.members[0] == partner && last.members[1] == mine && last.bounds[1] == h.unit) {
            last.bounds[1] = last.bounds[2] = h.unit + 1;
            continue;
          }
        }
        pairs.groups.push_back({{partner, mine}, {h.unit, h.unit + 1, h.unit + 1}});
      }
    return pairs;
  }

  void plan_all_reduce() {
    const auto even = [](std::uint32_t lo, std::uint32_t hi, std::uint32_t children) {
      wishes parts;
      share_evenly(lo, hi, children, parts);
      return parts;
    };
    const tower t = climb(
        [&](std::uint32_t b, std::uint32_t lo, std::uint32_t hi, std::uint32_t children) {
          for (const weak_box& w : weak_)
            if (w.box == b) return runs_of(w.member, lo, hi);
          return children == rail_rates_.size() ? by_rail(lo, hi) : even(lo, hi, children);
        },
        [&](std::uint32_t, std::uint32_t lo, std::uint32_t hi, std::uint32_t children) {
          return even(lo, hi, children);
        },
        even);
    const level_groups pairs = hand_overs();
    const algorithm inside = box_algorithm(), rail = net_algorithm(how_.on_rail), across = net_algorithm(how_.across);
    // The highest level that has groups does both halves in one stage.
    const bool rail_is_top = t.pods.groups.empty(), box_is_top = rail_is_top && t.rail.groups.empty();
    if (box_is_top) {
      add(stage_kind::all_reduce, inside, t.box, box_words());
      return;
    }
    add(stage_kind::reduce_scatter, inside, t.weak, "in boxes with slow entries");
    add(stage_kind::reduce, algorithm::direct, pairs, "from slow boxes to others on the rail");
    add(stage_kind::reduce_scatter, inside, t.box, box_words());
    if (rail_is_top) {
      add(stage_kind::all_reduce, rail, t.rail, rail_words());
    } else {
      add(stage_kind::reduce_scatter, rail, t.rail, rail_words());
      add(stage_kind::all_reduce, across, t.pods, "across pods");
      add(stage_kind::all_gather, rail, t.rail, rail_words());
    }
    add(stage_kind::all_gather, inside, t.box, box_words());
    add(stage_kind::broadcast, algorithm::direct, pairs, "back to slow boxes on the rail");
    add(stage_kind::all_gather, inside, t.weak, "in boxes with slow entries");
  }

  /// Parts of an interval as large as the rails are fast.
  [[nodiscard]] wishes by_rail(std::uint32_t lo, std::uint32_t hi) const {
    wishes parts;
    const std::vector<std::uint32_t> shares = whole_shares(hi - lo, rail_rates_);
    for (std::uint32_t j = 0; j < shares.size(); ++j) {
      parts.push_back({lo, lo + shares[j], j});
      lo += shares[j];
    }
    return parts;
  }

  /// What `of_unit` says of units lo to hi-1, as runs.
  [[nodiscard]] static wishes runs_of(std::span<const std::uint32_t> of_unit, std::uint32_t lo, std::uint32_t hi) {
    wishes runs;
    for (std::uint32_t u = lo; u < hi; ++u) {
      if (runs.empty() || runs.back().to != of_unit[u]) runs.push_back({u, u, of_unit[u]});
      runs.back().hi = u + 1;
    }
    return runs;
  }

  /// Who of a box with uneven entries takes each unit in and out.
  ///
  /// Most units come in as often as they go out. A box is the last on a ring along its pod for the shards of one neighbour,
  /// and the first to spread those of its own place that come from other pods: a slow entry keeps both before others, as the
  /// one makes up for the other. Its own shard stays unless that alone would take too long.
  [[nodiscard]] std::vector<std::uint32_t> by_entries(std::uint32_t b, std::uint32_t per_shard) const {
    const auto g = static_cast<std::uint32_t>(who_.box[b].size());
    const auto h = static_cast<std::uint32_t>(who_.pod[who_.pod_of_box[b]].size());
    const std::uint32_t here = who_.place_in_pod[b];
    const std::uint32_t last = q_.collective == collective_kind::all_gather ? here + 1 : here + h - 1;
    const std::vector<double> rates = entries_of(at_, who_.box[b]);
    const double all = sum_of(rates);
    std::vector<bool> keeps_own(g);
    for (std::uint32_t j = 0; j < g; ++j) keeps_own[j] = rates[j] * plan_.ranks > 3 * all;
    std::vector<std::uint32_t> member(plan_.units), home, moving;
    const auto each = [&](auto&& wanted) {
      for (std::uint32_t v = 0; v < plan_.ranks; ++v) {
        const rank_id owner = owner_[v];
        const std::uint32_t box = at_.box[owner.value], rail = at_.rail[owner.value];
        if (!wanted(box, who_.place_in_pod[box] % h)) continue;
        for (std::uint32_t u = v * per_shard; u < (v + 1) * per_shard; ++u) {
          member[u] = rail;
          if (box == b && keeps_own[rail]) continue;
          moving.push_back(u);
          home.push_back(box == b ? g : rail);
        }
      }
    };
    each([&](std::uint32_t box, std::uint32_t place) { return box != b && place == last % h; });
    each([&](std::uint32_t box, std::uint32_t place) { return box != b && place == here && place != last % h; });
    each([&](std::uint32_t box, std::uint32_t place) { return box != b && place != here && place != last % h; });
    each([&](std::uint32_t box, std::uint32_t) { return box == b; });
    const std::vector<std::uint32_t> spread = spread_over_entries(rates, std::move(home));
    for (std::size_t i = 0; i < moving.size(); ++i) member[moving[i]] = spread[i];
    return member;
  }

  /// Units of own shards that leave their box by another entry than the owner's: the owner first, then who takes them.
  [[nodiscard]] level_groups moved_in_the_box(std::uint32_t per_shard) const {
    level_groups moves;
    for (std::uint32_t b = 0; b < who_.box.size(); ++b) {
      if (!uneven_entries_[b]) continue;
      const std::vector<std::uint32_t> member = by_entries(b, per_shard);
      for (std::uint32_t u = 0; u < plan_.units; ++u) {
        const rank_id owner = owner_[u / per_shard];
        if (at_.box[owner.value] != b || member[u] == at_.rail[owner.value]) continue;
        moves.groups.push_back({{owner, who_.box[b][member[u]]}, {u, u + 1, u + 1}});
      }
    }
    return moves;
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
        [&](std::uint32_t b, std::uint32_t lo, std::uint32_t hi, std::uint32_t) {
          if (uneven_entries_[b]) return runs_of(by_entries(b, per_shard), lo, hi);
          const auto g = static_cast<std::uint32_t>(who_.box[b].size());
          return to_children(lo, hi, g,
                             [&](rank_id owner) { return at_.rail[owner.value] < g ? at_.rail[owner.value] : nobody; });
        },
        [&](std::uint32_t p, std::uint32_t lo, std::uint32_t hi, std::uint32_t) {
          const auto h = static_cast<std::uint32_t>(who_.pod[p].size());
          return to_children(lo, hi, h, [&](rank_id owner) {
            const std::uint32_t place = who_.place_in_pod[at_.box[owner.value]];
            return place < h ? place : nobody;
          });
        },
        [&](std::uint32_t lo, std::uint32_t hi, std::uint32_t) {
          return to_children(lo, hi, at_.pods, [&](rank_id owner) { return at_.pod[owner.value]; });
        });
    const algorithm inside = box_algorithm(), rail = net_algorithm(how_.on_rail), across = net_algorithm(how_.across);
    level_groups moves = moved_in_the_box(per_shard);
    if (q_.collective == collective_kind::reduce_scatter) {
      add(stage_kind::reduce_scatter, inside, t.box, box_words());
      add(stage_kind::reduce_scatter, rail, t.rail, rail_words());
      add(stage_kind::reduce_scatter, across, t.pods, "across pods");
      for (level_groups::group& m : moves.groups) std::swap(m.members[0], m.members[1]);
      add(stage_kind::broadcast, algorithm::direct, moves, "from faster entries to the owners");
    } else {
      add(stage_kind::broadcast, algorithm::direct, moves, "to faster entries of the box");
      add(stage_kind::all_gather, across, t.pods, "across pods");
      add(stage_kind::all_gather, rail, t.rail, rail_words());
      add(stage_kind::all_gather, inside, t.box, box_words());
    }
  }

  /// Broadcast: the root scatters in its box, so that all its NICs send; the parts travel along their rails to one box of
  /// every pod, then to the others; every box gathers. The root, which has everything, takes no part in its box's gathering
  /// and scatters its own rail's part too, so that each byte leaves it once. Reduce is the mirror image.
  void plan_rooted() {
    const std::uint32_t root_box = at_.box[plan_.root.value], root_pod = at_.pod[plan_.root.value],
                        root_rail = at_.rail[plan_.root.value];
    const bool outward = q_.collective == collective_kind::broadcast;
    level_groups with_root, boxes, rail, pods;
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
      if (b == root_box)
        around_root(g, outward, with_root, boxes);
      else
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
    const algorithm inside = box_algorithm(), on_rail = net_algorithm(how_.on_rail),
                    across = net_algorithm(how_.across);
    // Two chains one after the other would leave the root's NICs twice; one that visits pod after pod leaves them once. So
    // does a double tree over all boxes, and few of its branches lead from pod to pod.
    const bool one_group = on_rail == across && (on_rail == algorithm::ring || on_rail == algorithm::double_tree);
    std::vector<holders> leaders, all;  // one box of each pod, the root's first; all boxes, pod by pod
    for (std::uint32_t i = 0; i < at_.pods; ++i) {
      const std::uint32_t p = (root_pod + i) % at_.pods;
      const std::uint32_t leader = p == root_pod ? root_box : who_.pod[p].front();
      leaders.push_back(held[leader]);
      std::vector<holders> children{held[leader]};
      for (const std::uint32_t b : who_.pod[p])
        if (b != leader) children.push_back(held[b]);
      if (one_group)
        all.insert(all.end(), children.begin(), children.end());
      else
        meet_first(children, rail);
    }
    meet_first(one_group ? all : leaders, one_group ? rail : pods);

    const algorithm root_algorithm =
        inside == algorithm::recursive ? inside : algorithm::direct;  // a scatter has no ring
    if (outward) {
      add(stage_kind::scatter, root_algorithm, with_root, "in the root's box");
      add(stage_kind::broadcast, across, pods, "across pods");
      add(stage_kind::broadcast, on_rail, rail, one_group ? "on the rail" : rail_words());
      add(stage_kind::all_gather, inside, boxes, box_words());
    } else {
      add(stage_kind::reduce_scatter, inside, boxes, box_words());
      add(stage_kind::reduce, on_rail, rail, one_group ? "on the rail" : rail_words());
      add(stage_kind::reduce, across, pods, "across pods");
      add(stage_kind::reduce, root_algorithm, with_root, "in the root's box");
    }
  }

  /// Groups of the root's box, in which `g` has the root first: those with the root, and those of the others.
  void around_root(const level_groups::group& g, bool outward, level_groups& with_root, level_groups& others) const {
    const std::span<const rank_id> peers = std::span(g.members).subspan(1);
    const auto among_peers = [&](std::vector<std::uint32_t> bounds) {
      if (bounds.front() == bounds.back()) return;
      if (peers.size() > 1) others.groups.push_back({{peers.begin(), peers.end()}, bounds});
      if (outward) {
        bounds.insert(bounds.begin(), bounds.front());  // nothing for the root
        with_root.groups.push_back({g.members, std::move(bounds)});
        return;
      }
      // What a peer has the sum of, the root has too: it is added, not only moved.
      for (std::size_t j = 0; j < peers.size(); ++j)
        if (bounds[j] < bounds[j + 1])
          with_root.groups.push_back({{g.members[0], peers[j]}, {bounds[j], bounds[j + 1], bounds[j + 1]}});
    };
    const std::uint32_t own = at_.boxes > 1 ? g.bounds[1] : plan_.units;  // what leaves by the root's own NIC
    wishes parts;
    share_evenly(0, own, static_cast<std::uint32_t>(peers.size()), parts);
    std::vector<std::uint32_t> bounds{0};
    for (const wish& w : parts) bounds.push_back(w.hi);
    among_peers(std::move(bounds));
    if (own < plan_.units) among_peers({g.bounds.begin() + 1, g.bounds.end()});
  }

  /// Gather: shards of other boxes go along their rails to the root's box, then all to the root. Scatter is the mirror image.
  void plan_gather() {
    gather_build ends(at_, who_, plan_.root, q_.shares);
    ends.run(owner_, plan_.units / plan_.ranks);
    // Neither has a ring: everything passes the one entry, or the root, in any case.
    const auto star = [](algorithm how) { return how == algorithm::recursive ? how : algorithm::direct; };
    const algorithm inside = star(box_algorithm()), rail = star(net_algorithm(how_.on_rail));
    if (q_.collective == collective_kind::gather) {
      add(stage_kind::gather, rail, ends.between, "on the rail");
      add(stage_kind::gather, inside, ends.in_box, box_words());
    } else {
      add(stage_kind::scatter, inside, ends.in_box, box_words());
      add(stage_kind::scatter, rail, ends.between, "on the rail");
    }
  }

  hierarchy_choice how_;
  const problem& q_;
  const levels& at_;
  roster who_;
  std::vector<rank_id> owner_;        ///< of the shard at each position
  std::vector<double> rail_rates_;    ///< for all_reduce, where rails differ; else empty
  std::vector<bool> uneven_entries_;  ///< per box
  std::vector<weak_box> weak_;        ///< for all_reduce
  schedule plan_;
};

}}}}  // namespace topocoll::v0::plan::detail
