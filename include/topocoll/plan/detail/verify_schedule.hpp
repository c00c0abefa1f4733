// SPDX-License-Identifier: Apache-2.0
#pragma once
// Proofs of schedules: all programs at once, or stage by stage.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/contribution_sets.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/verify.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Slices have data of their own and are lowered alike, those of a double tree in turn; they wait for the two before. What
/// holds for four of them on two channels holds for more on `max_channels`.
inline constexpr std::uint32_t few_slices = 4, few_channels = 2;
template <class = void>
[[nodiscard]] schedule in_few_slices(schedule plan) {
  plan.slices = std::min(plan.slices, few_slices);
  return plan;
}

/// Programs of all ranks, or nothing when they have more than `most` messages.
template <class = void>
[[nodiscard]] result<std::optional<std::vector<program>>> lower_all(const schedule& plan, std::uint64_t most,
                                                                    std::uint32_t channels = max_channels) {
  std::vector<program> programs;
  std::uint64_t messages = 0;
  for (std::uint32_t r = 0; r < plan.ranks; ++r) {
    auto p = lower_valid(plan, {r}, channels);
    if (!p) return p.error();
    for (const op& o : p->ops) messages += o.kind == op_kind::send ? 1 : 0;
    if (messages > most) return std::optional<std::vector<program>>{};
    programs.push_back(std::move(*p));
  }
  return std::optional(std::move(programs));
}

/// Contributions that one rank holds of every unit: intervals with the number of a set; gaps hold nothing.
class holdings {
 public:
  struct piece {
    std::uint32_t lo, hi, set;
  };
  [[nodiscard]] const std::vector<piece>& pieces() const { return pieces_; }
  void assign(std::uint32_t lo, std::uint32_t hi, std::uint32_t set) {
    if (lo >= hi) return;
    std::vector<piece> next;
    const auto put = [&](piece p) {
      if (p.lo >= p.hi || p.set == 0) return;
      if (!next.empty() && next.back().hi == p.lo && next.back().set == p.set)
        next.back().hi = p.hi;
      else
        next.push_back(p);
    };
    bool placed = false;
    for (const piece& p : pieces_) {
      put({p.lo, std::min(p.hi, lo), p.set});
      if (!placed && p.hi > lo) {
        put({lo, hi, set});
        placed = true;
      }
      put({std::max(p.lo, hi), p.hi, p.set});
    }
    if (!placed) put({lo, hi, set});
    pieces_ = std::move(next);
  }
  /// Set at unit u, 0 for none; `until` becomes the end of the interval in which that holds.
  [[nodiscard]] std::uint32_t at(std::uint32_t u, std::uint32_t& until) const {
    for (const piece& p : pieces_) {
      if (u < p.lo) {
        until = std::min(until, p.lo);
        return 0;
      }
      if (u < p.hi) {
        until = std::min(until, p.hi);
        return p.set;
      }
    }
    return 0;
  }

 private:
  std::vector<piece> pieces_;
};

/// Proves a schedule by its stages. The schedule is valid.
template <class = void>
class stage_check {
 public:
  stage_check(const schedule& plan, verify_options options)
      : plan_(plan),
        options_(options),
        lattice_(seq::any_of(plan.stages, [](const stage& st) { return st.axis.has_value(); })),
        sets_(lattice_ ? 1 : plan.ranks),
        held_(lattice_ ? 0 : plan.ranks) {}

  [[nodiscard]] result<proof> run() {
    if (auto fits = prove_shapes(); !fits) return fits.error();
    if (auto fits = lattice_ ? compose_lattice() : compose(); !fits) return fits.error();
    if (auto fits = check_ranks(); !fits) return fits.error();
    done_.method = proof_method::by_stage;
    done_.ranks = plan_.ranks;
    done_.summary = std::to_string(done_.group_shapes) + " distinct groups were executed exactly (" +
                    std::to_string(done_.messages) + " messages), the " + std::to_string(plan_.stages.size()) +
                    " stages were composed for all " + std::to_string(plan_.ranks) +
                    " ranks, and the order of steps was checked at " + std::to_string(ranks_checked_) + " of them";
    return done_;
  }

 private:
  [[nodiscard]] bool copies() const { return !reduces(plan_.collective); }

  // ---- every distinct group alone

  [[nodiscard]] result<void> prove_shapes() {
    std::vector<std::vector<std::uint32_t>> shapes;
    for (const stage& st : plan_.stages) {
      if (st.axis) {  // groups that are not written down are all alike
        const axis_steps s = steps_of(plan_, *st.axis);
        if (s.size < 2) continue;
        const std::uint32_t part =
            std::min(s.stride * (plan_.units / plan_.ranks), 2U);  // longer ones are no different
        std::vector<std::uint32_t> shape{static_cast<std::uint32_t>(st.kind), static_cast<std::uint32_t>(st.how),
                                         s.size};
        for (std::uint32_t j = 0; j <= s.size; ++j) shape.push_back(j * part);
        shapes.push_back(std::move(shape));
      }
      for (std::size_t g = 0; g < st.group_count(); ++g) {
        const group_view group = st.group(g);
        if (group.size() < 2 || group.first() == group.last()) continue;
        std::vector<std::uint32_t> shape{static_cast<std::uint32_t>(st.kind), static_cast<std::uint32_t>(st.how)};
        shape.push_back(group.size());
        for (const std::uint32_t b : group.bounds) shape.push_back(b - group.first());
        shape.insert(shape.end(), group.parents.begin(), group.parents.end());
        // Most groups equal the one before: do not keep them.
        if (shapes.empty() || shapes.back() != shape) shapes.push_back(std::move(shape));
      }
    }
    seq::sort_unique(shapes);
    done_.one_step_at_a_time = true;
    for (const auto& shape : shapes) {
      const schedule alone = isolate(static_cast<stage_kind>(shape[0]), static_cast<algorithm>(shape[1]),
                                     std::span(shape).subspan(3, shape[2] + 1), std::span(shape).subspan(shape[2] + 4));
      if (auto fits = validate(alone); !fits) return fits;
      auto programs = lower_all(alone, options_.exact_messages);
      if (!programs) return programs.error();
      if (!*programs)
        return fail(errc::unsupported,
                    "schedule '" + plan_.name + "': a group of " + std::to_string(alone.ranks) + " ranks that does " +
                        alone.name + " has more than " + std::to_string(options_.exact_messages) +
                        " messages, too many for an exact proof",
                    "use stages with smaller groups, or raise verify_options::exact_messages");
      const auto proved = verify(std::span<const program>(**programs));
      if (!proved)
        return fail(proved.error().code,
                    alone.name + " among " + std::to_string(alone.ranks) + " ranks: " + proved.error().what);
      done_.steps += proved->steps;
      done_.operations += proved->operations;
      done_.messages += proved->messages;
      done_.one_step_at_a_time = done_.one_step_at_a_time && proved->one_step_at_a_time;
      ++done_.group_shapes;
    }
    return {};
  }

  /// A collective that comes out right only if a group does what its kind says: the other half is direct.
  [[nodiscard]] schedule isolate(stage_kind kind, algorithm how, std::span<const std::uint32_t> bounds,
                                 std::span<const std::uint32_t> parents) const {
    schedule alone;
    alone.ranks = static_cast<std::uint32_t>(bounds.size() - 1);
    alone.units = bounds.back();
    alone.slices = std::min(plan_.slices, 2U);  // slices of equal parity are alike
    alone.name = std::string(to_string(kind)) + " by " + std::string(to_string(how));
    bool even = true;
    for (std::size_t j = 1; j < bounds.size(); ++j) even = even && bounds[j] - bounds[j - 1] == bounds[1];
    std::vector<rank_id> members(alone.ranks);
    for (std::uint32_t r = 0; r < alone.ranks; ++r) members[r] = {r};
    const auto add = [&](stage_kind k, algorithm a) {
      alone.stages.emplace_back();
      alone.stages.back().kind = k;
      alone.stages.back().how = a;
      if (a == algorithm::packed)
        alone.stages.back().add_tree(members, parents, 0, bounds.back());
      else
        alone.stages.back().add(members, bounds);
    };
    switch (kind) {
      case stage_kind::reduce_scatter:
        if (plan_.collective == collective_kind::all_reduce) {
          alone.collective = collective_kind::all_reduce;
          add(kind, how);
          add(stage_kind::all_gather, algorithm::direct);
        } else if (even) {
          alone.collective = collective_kind::reduce_scatter;
          add(kind, how);
        } else {
          alone.collective = collective_kind::reduce;
          add(kind, how);
          add(stage_kind::gather, algorithm::direct);
        }
        break;
      case stage_kind::all_gather:
        if (plan_.collective != collective_kind::all_reduce && even) {
          alone.collective = collective_kind::all_gather;
        } else {
          alone.collective = collective_kind::all_reduce;
          add(stage_kind::reduce_scatter, algorithm::direct);
        }
        add(kind, how);
        break;
      case stage_kind::all_reduce:
        alone.collective = collective_kind::all_reduce;
        add(kind, how);
        break;
      case stage_kind::broadcast:
        alone.collective = collective_kind::broadcast;
        add(kind, how);
        break;
      case stage_kind::reduce:
        alone.collective = collective_kind::reduce;
        add(kind, how);
        break;
      case stage_kind::scatter:
        alone.collective = copies() && even ? collective_kind::scatter : collective_kind::broadcast;
        add(kind, how);
        if (alone.collective == collective_kind::broadcast) add(stage_kind::all_gather, algorithm::direct);
        break;
      case stage_kind::gather:
        if (copies() && even) {
          alone.collective = collective_kind::gather;
          add(kind, how);
          break;
        }
        alone.collective = collective_kind::reduce;
        add(stage_kind::reduce_scatter, algorithm::direct);
        add(kind, how);
        break;
      case stage_kind::all_to_all:
        alone.collective = collective_kind::all_to_all;
        add(kind, how);
        break;
    }
    return alone;
  }

  // ---- what ranks hold from stage to stage

  [[nodiscard]] std::uint32_t original() const { return 1; }  // of data that are only copied there is just one content

  void start() {
    const std::uint32_t per_shard = plan_.units / plan_.ranks;
    for (std::uint32_t r = 0; r < plan_.ranks; ++r) {
      if (!copies())
        held_[r].assign(0, plan_.units, sets_.of(r));
      else if (plan_.root.value == r &&
               (plan_.collective == collective_kind::broadcast || plan_.collective == collective_kind::scatter))
        held_[r].assign(0, plan_.units, original());
    }
    if (plan_.collective == collective_kind::all_gather || plan_.collective == collective_kind::gather)
      for (std::uint32_t v = 0; v < plan_.ranks; ++v)
        held_[plan_.order.empty() ? v : plan_.order[v].value].assign(v * per_shard, (v + 1) * per_shard, original());
  }

  [[nodiscard]] result<void> compose() {
    if (plan_.collective == collective_kind::all_to_all)
      return plan_.stages.size() == 1 && plan_.stages[0].group_count() == 1 &&
                     plan_.stages[0].members.size() == plan_.ranks
                 ? result<void>{}
                 : fail(errc::bug, "schedule '" + plan_.name +
                                       "': all_to_all in several stages or groups is not a plan that can be proved");
    start();
    for (std::uint32_t i = 0; i < plan_.stages.size(); ++i)
      for (std::size_t g = 0; g < plan_.stages[i].group_count(); ++g)
        if (auto fits = apply(i, plan_.stages[i].group(g)); !fits) return fits;
    return check_end();
  }

  /// The same for stages along axes, for all ranks at once. After any number of them every rank holds the units of the
  /// positions that agree with it along the first `cut` axes, each with the contributions of all ranks that agree with it
  /// along the axes not in `summed`.
  [[nodiscard]] result<void> compose_lattice() const {
    const auto axes = static_cast<std::uint32_t>(plan_.shape.size());
    const bool gathers = plan_.collective == collective_kind::all_gather;
    std::vector<bool> summed(axes, gathers);
    std::uint32_t cut = gathers ? axes : 0;
    for (std::uint32_t i = 0; i < plan_.stages.size(); ++i) {
      const stage& st = plan_.stages[i];
      if (!st.axis)
        return fail(errc::unsupported,
                    "schedule '" + plan_.name + "', " + stage_name(plan_, i) +
                        ": groups that are written down among stages along axes are not proved for so many ranks");
      const std::uint32_t a = *st.axis;
      const bool gather = st.kind == stage_kind::all_gather;
      if (cut != (gather ? a + 1 : a))
        return wrong(i, "it runs along axis " + std::to_string(a) + ", but ranks hold what " + std::to_string(cut) +
                            " axes cut out");
      if (!gather && gathers) return wrong(i, "it adds up in a collective that only copies");
      if (gather && !summed[a])
        return wrong(i, "it gathers along axis " + std::to_string(a) + " what has not been added up along it");
      if (!gather && summed[a]) return wrong(i, "contributions along axis " + std::to_string(a) + " are counted twice");
      if (st.kind == stage_kind::reduce_scatter) ++cut;
      if (gather) --cut;
      summed[a] = true;
    }
    const bool scatters = plan_.collective == collective_kind::reduce_scatter;
    const bool every = seq::all_of(summed, [](bool axis) { return axis; });
    if (every && cut == (scatters ? axes : 0)) return {};
    return fail(errc::bug, "schedule '" + plan_.name + "': at the end ranks hold what " + std::to_string(cut) +
                               " axes cut out, " + (every ? "with all" : "but not with all") + " contributions");
  }

  using piece = holdings::piece;

  [[nodiscard]] failure wrong(std::uint32_t index, std::string what) const {
    return fail(errc::bug, "schedule '" + plan_.name + "', " + stage_name(plan_, index) + ": " + std::move(what));
  }

  /// What a member holds of an interval, without gaps.
  [[nodiscard]] result<std::vector<piece>> all_of(std::uint32_t index, rank_id r, std::uint32_t lo,
                                                  std::uint32_t hi) const {
    std::vector<piece> found;
    while (lo < hi) {
      std::uint32_t until = hi;
      const std::uint32_t set = held_[r.value].at(lo, until);
      if (set == 0)
        return wrong(index, "rank " + std::to_string(r.value) + " has no value of unit " + std::to_string(lo));
      found.push_back({lo, until, set});
      lo = until;
    }
    return found;
  }

  [[nodiscard]] result<std::vector<piece>> sum(std::uint32_t index, const group_view& group) {
    if (copies()) return wrong(index, "it adds up in a collective that only copies");
    std::vector<piece> sums;
    for (std::uint32_t lo = group.first(); lo < group.last();) {
      std::uint32_t until = group.last(), total = 0;
      for (const rank_id r : group.members) {
        const std::uint32_t set = held_[r.value].at(lo, until);
        if (set == 0)
          return wrong(index, "rank " + std::to_string(r.value) + " has no value of unit " + std::to_string(lo));
        const std::uint32_t next = sets_.join(total, set);
        if (next == contribution_sets::overlap)
          return wrong(index, "the contribution of rank " + std::to_string(sets_.common(total, set)) + " to unit " +
                                  std::to_string(lo) + " is counted twice");
        total = next;
      }
      sums.push_back({lo, until, total});
      lo = until;
    }
    return sums;
  }

  void give(rank_id r, std::span<const piece> pieces, std::uint32_t lo, std::uint32_t hi) {
    for (const piece& p : pieces)
      if (p.lo < hi && p.hi > lo) held_[r.value].assign(std::max(p.lo, lo), std::min(p.hi, hi), p.set);
  }

  [[nodiscard]] result<void> apply(std::uint32_t index, const group_view& group) {
    const stage_kind kind = plan_.stages[index].kind;
    const bool adds =
        kind == stage_kind::reduce_scatter || kind == stage_kind::all_reduce || kind == stage_kind::reduce;
    std::vector<piece> values;
    if (adds) {
      auto sums = sum(index, group);
      if (!sums) return sums.error();
      values = std::move(*sums);
    } else if (kind == stage_kind::broadcast || kind == stage_kind::scatter) {
      auto roots = all_of(index, group.members[0], group.first(), group.last());
      if (!roots) return roots.error();
      values = std::move(*roots);
    } else {
      for (std::uint32_t j = 0; j < group.size(); ++j) {
        auto part = all_of(index, group.members[j], group.bounds[j], group.bounds[j + 1]);
        if (!part) return part.error();
        for (const piece& p : *part)
          if (!values.empty() && values.back().hi == p.lo && values.back().set == p.set)
            values.back().hi = p.hi;
          else
            values.push_back(p);
      }
    }
    for (std::uint32_t j = 0; j < group.size(); ++j) {
      std::uint32_t lo = group.first(), hi = group.last();
      if (kind == stage_kind::reduce_scatter || (kind == stage_kind::scatter && j != 0)) {
        lo = group.bounds[j];
        hi = group.bounds[j + 1];
      } else if ((kind == stage_kind::reduce || kind == stage_kind::gather) && j != 0) {
        hi = lo;
      }
      held_[group.members[j].value].assign(group.first(), group.last(), 0);
      give(group.members[j], values, lo, hi);
    }
    return {};
  }

  [[nodiscard]] result<void> check_end() const {
    const std::uint32_t per_shard = plan_.units / plan_.ranks;
    for (std::uint32_t v = 0; v < plan_.ranks; ++v) {
      const std::uint32_t r = plan_.order.empty() ? v : plan_.order[v].value;
      std::uint32_t lo = 0, hi = plan_.units;
      const region promised = output_of(plan_.collective, plan_.root.value == r);
      if (promised == region::nothing) continue;
      if (promised == region::own_shard) {
        lo = v * per_shard;
        hi = lo + per_shard;
      }
      for (std::uint32_t u = lo; u < hi;) {
        std::uint32_t until = hi;
        const std::uint32_t set = held_[r].at(u, until);
        const bool right = copies() ? set == original() : sets_.is_full(set);
        if (!right)
          return fail(errc::bug, "schedule '" + plan_.name + "': at the end rank " + std::to_string(r) + " has " +
                                     (set == 0 ? std::string("no value")
                                               : "only " + std::to_string(sets_.size(set)) + " of " +
                                                     std::to_string(plan_.ranks) + " contributions") +
                                     " of unit " + std::to_string(u));
        u = until;
      }
    }
    return {};
  }

  // ---- order between the stages, rank by rank

  [[nodiscard]] result<void> check_ranks() {
    // Evenly spread when there are many; equal roles repeat long before that, and on a lattice all have the same role.
    const schedule few = in_few_slices(plan_);
    const std::uint32_t most = lattice_ ? 8 : std::clamp((1U << 19U) / few.chunks(), 64U, 1024U);
    ranks_checked_ = std::min(plan_.ranks, most);
    for (std::uint32_t i = 0; i < ranks_checked_; ++i) {
      const auto r = static_cast<std::uint32_t>(std::uint64_t{i} * plan_.ranks / ranks_checked_);
      auto p = lower_valid(few, {r}, few_channels);
      if (!p) return p.error();
      if (auto fits = program_view(*p).check_shape(); !fits) return fits;
      local_order order(*p);
      std::vector<std::uint32_t> steps(p->steps.size());
      for (std::uint32_t s = 0; s < steps.size(); ++s) steps[s] = s;
      for (const bool in_place : {false, true})
        if (auto fits =
                find_race(*p, steps, in_place, [&](std::uint32_t a, std::uint32_t b) { return order.before(a, b); });
            !fits)
          return fits;
    }
    return {};
  }

  const schedule& plan_;
  verify_options options_;
  bool lattice_;  ///< stages run along axes: their groups are alike, and nothing is kept per rank
  contribution_sets sets_;
  std::vector<holdings> held_;
  proof done_;
  std::uint32_t ranks_checked_ = 0;
};

}  // namespace detail

template <class>
result<proof> verify(const schedule& compact, verify_options options) {
  if (auto fits = validate(compact); !fits) return fits.error();
  const bool written = seq::none_of(compact.stages, [](const stage& st) { return st.axis.has_value(); });
  if (!written && compact.ranks > 4096) return detail::stage_check(compact, options).run();
  const schedule copy = written ? schedule{} : expanded(compact);
  const schedule& plan = written ? compact : copy;
  // Few large groups make as many messages as exact proofs can bear; beyond this many ranks even one message each is many.
  if (plan.ranks <= 4096) {
    auto programs = detail::lower_all(plan, options.exact_messages);
    if (!programs) return programs.error();
    if (*programs) return verify(std::span<const program>(**programs));
    if (plan.slices > detail::few_slices) {
      programs = detail::lower_all(detail::in_few_slices(plan), options.exact_messages, detail::few_channels);
      if (!programs) return programs.error();
      if (*programs) {
        auto proved = verify(std::span<const program>(**programs));
        if (proved)
          proved->summary += "; done with " + std::to_string(detail::few_slices) + " slices, of which the other " +
                             std::to_string(plan.slices - detail::few_slices) + " are repetitions";
        return proved;
      }
    }
  }
  if (plan.ranks > 65'536)  // the sets of contributions would take ranks² / 8 bytes
    return fail(errc::unsupported, "schedule '" + plan.name + "': " + std::to_string(plan.ranks) +
                                       " ranks are more than a proof by stages handles, 65536");
  return detail::stage_check(plan, options).run();
}

}}}  // namespace topocoll::v0::plan
