// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns the actions of a rank in one slice into operations on buffers, with just the waits that shared memory demands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/detail/bundles.hpp>
#include <topocoll/plan/detail/group_actions.hpp>
#include <topocoll/plan/detail/schedule_flat.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Where a rank's value of a unit is.
enum class place : std::uint8_t { nowhere, input, output, scratch, temporary };

/// Lowers one slice of one rank. Units and steps are numbered within the slice.
template <class = void>
class slice_lowering {
 public:
  slice_lowering(const schedule& plan, rank_id rank, std::uint32_t slice)
      : plan_(plan),
        rank_(rank),
        slice_(slice),
        units_(plan.units),
        at_(plan.units, place::nowhere),
        temp_at_(plan.units, 0),
        copied_(plan.units, 0) {
    for (std::uint32_t u = 0; u < units_; ++u)
      if (input_exists(u)) at_[u] = place::input;
    const std::uint32_t cells = units_ * 2;  // data of the slice, then one scratch cell per unit, then temporary cells
    last_write_.assign(cells, none);
    first_reader_.assign(cells, none);
  }

  /// Appends one stage. Fails when the schedule makes the rank send what it does not have.
  [[nodiscard]] result<void> run(std::uint32_t stage_index) {
    stage_ = stage_index;
    const stage& st = plan_.stages[stage_index];
    std::vector<task> tasks;
    std::uint32_t temporary = 0;
    for (std::size_t g = 0; g < st.group_count(); ++g) {
      const group_view group = st.group(g);
      const auto me = seq::find(group.members, rank_);
      if (me == group.members.end()) continue;
      const member_actions mine = actions_of(st, group, static_cast<std::uint32_t>(me - group.members.begin()), slice_);
      for (std::size_t i = 0; i < mine.list.size();) {
        task t{mine.list[i], group, temporary, mine.slot_length, 1, {}};
        const bundle together = bundle_at(plan_, mine, i);
        t.stride = together.stride;
        for (std::uint32_t j = 0; together.count > 1 && j < together.count; ++j) t.units.push_back(mine.list[i + j].lo);
        tasks.push_back(std::move(t));
        i += together.count;
      }
      temporary += mine.slot_count * mine.slot_length;
    }
    last_write_.resize(std::max<std::size_t>(last_write_.size(), units_ * 2 + temporary), none);
    first_reader_.resize(last_write_.size(), none);
    packed_.assign(temporary, none);
    // By round, what happens on this rank alone after the messages; groups keep their order, which is the same at all ranks.
    seq::sort_by(tasks, [](const task& t) { return std::pair(t.a.round, is_local(t.a.what)); });

    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const task& t = tasks[i];
      const bool begins =
          i == 0 || t.a.round != tasks[i - 1].a.round || is_local(t.a.what) != is_local(tasks[i - 1].a.what);
      if (begins) {
        if (i > 0) end_round();
        // Strewn values are brought together before any message of the round: a copy in between would make messages wait
        // for each other that belong together.
        if (!is_local(t.a.what))
          for (std::size_t j = i; j < tasks.size() && tasks[j].a.round == t.a.round; ++j) {
            if (!tasks[j].units.empty())
              pack(tasks[j]);
            else if (st.kind != stage_kind::all_to_all && !is_local(tasks[j].a.what))
              bring_together(tasks[j].a);
          }
        end_step();
      }
      if (!t.units.empty())
        bundled_message(t);
      else if (st.kind == stage_kind::all_to_all)
        exchange(t.a, t.group.members[t.a.peer], t.slot_base, t.slot_length, st.how == algorithm::bruck);
      else if (is_local(t.a.what))
        add_up(t.a, t.slot_base, t.slot_length);
      else
        message(t.a, t.group.members[t.a.peer], t.slot_base, t.slot_length);
    }
    end_round();
    if (st.kind == stage_kind::all_to_all && !tasks.empty()) {
      if (st.how == algorithm::bruck)
        turn(tasks.front().group);
      else
        unpack(tasks.front().group, tasks.front().slot_base, tasks.front().slot_length);
    }
    return verdict();
  }

  /// Brings to `output` what the collective promises there and is not there yet.
  [[nodiscard]] result<void> finish() {
    stage_ = static_cast<std::uint32_t>(plan_.stages.size());
    for (std::uint32_t u = 0; u < units_;) {
      std::uint32_t n = 1;
      const bool wanted = output_exists(u) && at_[u] != place::output && copied_[u] == 0;
      const std::uint32_t run = run_length(plan_, u, units_);
      while (n < run && (output_exists(u + n) && at_[u + n] != place::output && copied_[u + n] == 0) == wanted &&
             like(u, n))
        ++n;
      if (wanted) {
        if (at_[u] == place::nowhere) lacks(u);
        if (at_[u] == place::input)
          settle(u, n);
        else
          add(op_kind::copy, {}, here(u, n), {buffer::output, chunk(u), n}, chunk(u));
      }
      u += n;
    }
    end_step();
    return verdict();
  }

  struct local_step {
    std::uint32_t stage = 0, first_op = 0, op_count = 0;
    std::vector<std::uint32_t> after;
  };
  [[nodiscard]] std::vector<local_step>& steps() { return steps_; }
  [[nodiscard]] std::vector<op>& ops() { return ops_; }
  /// Scratch cells as used by `ops`: one per unit, then the temporary ones.
  [[nodiscard]] std::uint32_t scratch_cells() const { return static_cast<std::uint32_t>(last_write_.size()) - units_; }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  struct task {
    action a;  ///< the first of a bundle
    group_view group;
    std::uint32_t slot_base, slot_length;
    std::uint32_t stride;              ///< of a bundle
    std::vector<std::uint32_t> units;  ///< of a bundle; empty for a single action
  };

  // ---- what exists

  [[nodiscard]] std::uint32_t chunk(std::uint32_t u) const { return chunk_of(plan_, slice_, u); }
  [[nodiscard]] bool own_shard(std::uint32_t u) const {
    const std::uint32_t v = u / (units_ / plan_.ranks);
    return (plan_.order.empty() ? v : plan_.order[v].value) == rank_.value;
  }
  [[nodiscard]] bool input_exists(std::uint32_t u) const {
    return holds(input_of(plan_.collective, rank_ == plan_.root), u);
  }
  [[nodiscard]] bool output_exists(std::uint32_t u) const {
    return holds(output_of(plan_.collective, rank_ == plan_.root), u);
  }
  [[nodiscard]] bool holds(region what, std::uint32_t u) const {
    return what == region::whole || (what == region::own_shard && own_shard(u));
  }

  // ---- where values are

  /// True when unit u+n lies right behind unit u+n-1, at the same kind of place.
  [[nodiscard]] bool like(std::uint32_t u, std::uint32_t n) const {
    return at_[u + n] == at_[u] && (at_[u] != place::temporary || temp_at_[u + n] == temp_at_[u] + n);
  }
  [[nodiscard]] slice here(std::uint32_t u, std::uint32_t n) const {
    switch (at_[u]) {
      case place::input: return {buffer::input, chunk(u), n};
      case place::output: return {buffer::output, chunk(u), n};
      case place::scratch: return {buffer::scratch, u, n};
      default: return {buffer::scratch, units_ + temp_at_[u], n};
    }
  }
  [[nodiscard]] slice slot(std::uint32_t base, std::uint32_t length, std::uint32_t index, std::uint32_t offset,
                           std::uint32_t n) const {
    return {buffer::scratch, units_ + base + index * length + offset, n};
  }
  void now_at(std::uint32_t u, std::uint32_t n, place p, std::uint32_t temp = 0) {
    for (std::uint32_t i = 0; i < n; ++i) {
      at_[u + i] = p;
      temp_at_[u + i] = temp + i;
    }
  }

  /// One slice that holds the values of a run, made so by copying where they are strewn.
  [[nodiscard]] slice value(std::uint32_t u, std::uint32_t n) {
    bool together = true, all_copied = true;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (at_[u + i] == place::nowhere) lacks(u + i);
      together = together && like(u, i);
      all_copied = all_copied && (at_[u + i] == place::output || copied_[u + i] != 0);
    }
    if (together) return here(u, n);
    // What is only copied ends up in output anyway; sums, and what is just passed on, are brought together in scratch.
    if (!reduces(plan_.collective) && target(u, n) == place::output && nowhere_else(u, n)) {
      for (std::uint32_t i = 0; i < n && !all_copied; ++i)
        if (at_[u + i] == place::input && copied_[u + i] == 0) settle(u + i, 1);
      if (!all_copied) end_step();
      return {buffer::output, chunk(u), n};
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      if (at_[u + i] == place::scratch) continue;
      add(op_kind::copy, {}, here(u + i, 1), {buffer::scratch, u + i, 1}, chunk(u + i));
      now_at(u + i, 1, place::scratch);
    }
    end_step();
    return here(u, n);
  }

  /// True when all values of a run are in input or output.
  [[nodiscard]] bool nowhere_else(std::uint32_t u, std::uint32_t n) const {
    for (std::uint32_t i = 0; i < n; ++i)
      if (at_[u + i] != place::input && at_[u + i] != place::output) return false;
    return true;
  }

  /// Where a run's new value goes: output if all of it may be there.
  [[nodiscard]] place target(std::uint32_t u, std::uint32_t n) const {
    for (std::uint32_t i = 0; i < n; ++i)
      if (!output_exists(u + i)) return place::scratch;
    return place::output;
  }
  [[nodiscard]] slice in(place p, std::uint32_t u, std::uint32_t n) const {
    return p == place::output ? slice{buffer::output, chunk(u), n} : slice{buffer::scratch, u, n};
  }

  /// Copies input to output; does nothing in an in-place call, so it waits for nobody who reads the input.
  void settle(std::uint32_t u, std::uint32_t n) {
    add(op_kind::copy, {}, {buffer::input, chunk(u), n}, {buffer::output, chunk(u), n}, chunk(u));
    for (std::uint32_t i = 0; i < n; ++i) copied_[u + i] = 1;
  }

  // ---- actions

  /// Puts what a message is made of, or added to, in one place.
  void bring_together(const action& a) {
    if (a.what == act::store || a.what == act::stash) return;
    for (std::uint32_t u = a.lo; u < a.hi && !broken_;) {
      const std::uint32_t n = run_length(plan_, u, a.hi);
      static_cast<void>(value(u, n));
      u += n;
    }
    end_step();
  }

  void message(const action& a, rank_id peer, std::uint32_t base, std::uint32_t length) {
    for (std::uint32_t u = a.lo; u < a.hi && !broken_;) {
      const std::uint32_t n = run_length(plan_, u, a.hi), offset = u - a.lo;
      switch (a.what) {
        case act::send:
          add(op_kind::send, peer, value(u, n), {}, chunk(u));
          if (!reduces(plan_.collective)) sent_.push_back({u, n});
          break;
        case act::give:
          add(op_kind::send, peer, value(u, n), {}, chunk(u));
          now_at(u, n, place::nowhere);
          break;
        case act::store: {
          const place to = target(u, n);
          add(op_kind::receive, peer, {}, in(to, u, n), chunk(u));
          now_at(u, n, to);
          break;
        }
        case act::combine:
        case act::pass_through: {
          const place to = target(u, n);
          const bool through = a.what == act::pass_through && to == place::scratch;
          const slice into = through ? slot(base, length, a.slot, offset, n) : in(to, u, n);
          add(op_kind::receive_reduce, peer, value(u, n), into, chunk(u));
          now_at(u, n, through ? place::temporary : to, base + a.slot * length + offset);
          break;
        }
        case act::stash: add(op_kind::receive, peer, {}, slot(base, length, a.slot, offset, n), chunk(u)); break;
        case act::swap:
        case act::last_swap: {
          // A final sum is made in place if the own value is elsewhere, so that nothing has to be moved afterwards.
          const slice own = value(u, n);
          const bool last = a.what == act::last_swap;
          const slice final_place = in(target(u, n), u, n);
          const slice theirs = last && at_[u] == place::temporary ? final_place : slot(base, length, a.slot, offset, n);
          add(op_kind::send, peer, own, {}, chunk(u));
          add(op_kind::receive, peer, {}, theirs, chunk(u));
          end_step();
          if (at_[u] == place::output || at_[u] == place::scratch) {
            add(op_kind::reduce, {}, theirs, own, chunk(u));
          } else if (last && at_[u] == place::input) {
            add(op_kind::copy, {}, own, final_place, chunk(u));
            add(op_kind::reduce, {}, theirs, final_place, chunk(u));
            now_at(u, n, target(u, n));
          } else {
            add(op_kind::reduce, {}, own, theirs, chunk(u));
            if (last)
              now_at(u, n, target(u, n));
            else
              now_at(u, n, place::temporary, base + a.slot * length + offset);
          }
          end_step();
          break;
        }
        case act::fold:
        case act::sum_slots: break;
      }
      u += n;
    }
  }

  void add_up(const action& a, std::uint32_t base, std::uint32_t length) {
    for (std::uint32_t u = a.lo; u < a.hi && !broken_;) {
      const std::uint32_t n = run_length(plan_, u, a.hi), offset = u - a.lo;
      if (a.what == act::fold) {
        add(op_kind::reduce, {}, slot(base, length, a.slot, offset, n), value(u, n), chunk(u));
      } else {
        const std::uint32_t members = a.peer, me = a.slot;
        const slice own = value(u, n), result = in(target(u, n), u, n);
        const auto term = [&](std::uint32_t j) { return j == me ? own : slot(base, length, j, offset, n); };
        // x0 ⊕ x1 is x1 ⊕ x0, so the first two may sum up in output; later members sum up in slot 0 to keep the order.
        const bool early = me < 2;
        const slice sum = early ? result : term(0);
        if (early && own != result) add(op_kind::copy, {}, own, result, chunk(u));
        if (early) add(op_kind::reduce, {}, term(1 - me), sum, chunk(u));
        for (std::uint32_t j = early ? 2 : 1; j < members; ++j) add(op_kind::reduce, {}, term(j), sum, chunk(u));
        if (!early) add(op_kind::copy, {}, sum, result, chunk(u));
        now_at(u, n, target(u, n));
      }
      u += n;
    }
  }

  /// The slots of a bundle, which are cells side by side.
  [[nodiscard]] slice slots_of(const task& t) const {
    return slot(t.slot_base, 1, t.a.slot, 0, static_cast<std::uint32_t>(t.units.size()));
  }
  /// Copies what a bundle sends to its slots.
  void pack(const task& t) {
    if (!sends(t.a.what)) return;
    for (std::uint32_t i = 0; i < t.units.size(); ++i) {
      const std::uint32_t u = t.units[i];
      const std::uint32_t own = at_[u] == place::input ? u : none;
      std::uint32_t& there = packed_[t.slot_base + t.a.slot + i];
      if (at_[u] == place::nowhere) lacks(u);
      if (own == none || there != own)  // input does not change
        add(op_kind::copy, {}, here(u, 1), slot(t.slot_base, 1, t.a.slot + i, 0, 1), chunk(u));
      there = own;
    }
  }
  void bundled_message(const task& t) {
    const rank_id peer = t.group.members[t.a.peer];
    // In an all_to_all only the size counts, and any so many neighbours have it.
    const std::uint32_t named = plan_.collective == collective_kind::all_to_all ? 0 : chunk(t.units.front());
    if (sends(t.a.what)) {
      add(op_kind::send, peer, slots_of(t), {}, named, t.stride);
      for (const std::uint32_t u : t.units)
        if (t.a.what == act::give) at_[u] = place::nowhere;
      return;
    }
    add(op_kind::receive, peer, {}, slots_of(t), named, t.stride);
    if (t.a.what == act::combine)
      arrived_.push_back(t);
    else
      for (std::uint32_t i = 0; i < t.units.size(); ++i)
        now_at(t.units[i], 1, place::temporary, t.slot_base + t.a.slot + i);
  }
  /// Adds the own values to what has arrived in bundles; the sums stay where that is.
  void add_arrived() {
    for (const task& t : arrived_)
      for (std::uint32_t i = 0; i < t.units.size(); ++i) {
        const std::uint32_t u = t.units[i];
        if (at_[u] == place::nowhere) lacks(u);
        add(op_kind::reduce, {}, here(u, 1), slot(t.slot_base, 1, t.a.slot + i, 0, 1), chunk(u));
        now_at(u, 1, place::temporary, t.slot_base + t.a.slot + i);
      }
    arrived_.clear();
    end_step();
  }

  /// `passed_on`: the two ends have it at different places of the array, so it is named by its place in the shard.
  void exchange(const action& a, rank_id peer, std::uint32_t base, std::uint32_t length, bool passed_on) {
    for (std::uint32_t u = a.lo; u < a.hi;) {
      const std::uint32_t n = run_length(plan_, u, a.hi), offset = u - a.lo;
      const std::uint32_t named = passed_on ? chunk(u) % (plan_.chunks() / plan_.ranks) : chunk(u);
      if (a.what == act::send) {
        add(op_kind::send, peer, here(u, n), {}, named);
      } else {
        add(op_kind::receive, peer, {}, slot(base, length, a.slot, offset, n), named);
        if (a.what == act::store) now_at(u, n, place::temporary, base + a.slot * length + offset);
      }
      u += n;
    }
  }

  /// After an all_to_all: from the slots, one per member, to the members' shards of the output.
  void unpack(const group_view& group, std::uint32_t base, std::uint32_t length) {
    for (std::uint32_t j = 0; j < group.size(); ++j)
      for (std::uint32_t u = group.bounds[j]; u < group.bounds[j + 1];) {
        const std::uint32_t n = run_length(plan_, u, group.bounds[j + 1]);
        if (group.members[j] == rank_)
          settle(u, n);
        else
          add(op_kind::copy, {}, slot(base, length, j, u - group.bounds[j], n), {buffer::output, chunk(u), n},
              chunk(u));
        now_at(u, n, place::output);
        u += n;
      }
    end_step();
  }

  /// After an all_to_all by `bruck`: what came from the member o places behind lies where the part for the one o places
  /// ahead was.
  void turn(const group_view& group) {
    const std::uint32_t k = group.size();
    const auto me = static_cast<std::uint32_t>(seq::find(group.members, rank_) - group.members.begin());
    for (std::uint32_t j = 0; j < k; ++j)
      for (std::uint32_t u = group.bounds[j]; u < group.bounds[j + 1];) {
        const std::uint32_t n = run_length(plan_, u, group.bounds[j + 1]);
        const std::uint32_t mirror = group.bounds[(2 * me + k - j) % k] + (u - group.bounds[j]);
        if (j == me)
          settle(u, n);
        else
          add(op_kind::copy, {}, here(mirror, n), {buffer::output, chunk(u), n}, chunk(u));
        u += n;
      }
    end_step();
    now_at(group.first(), group.last() - group.first(), place::output);
  }

  /// Ends the messages of a round; then brings what was sent from input to its place in output while the messages travel.
  void end_round() {
    end_step();
    add_arrived();
    for (const auto& [u, n] : sent_)
      for (std::uint32_t i = u; i < u + n; ++i)
        if (at_[i] == place::input && copied_[i] == 0 && output_exists(i)) {
          std::uint32_t m = 1;
          while (i + m < u + n && at_[i + m] == place::input && copied_[i + m] == 0) ++m;
          settle(i, m);
        }
    sent_.clear();
    end_step();
  }

  // ---- steps and waits

  /// Cells of a slice in the tables below.
  [[nodiscard]] std::uint32_t cell(const slice& s, std::uint32_t i) const {
    return s.where == buffer::scratch ? units_ + s.first + i : unit_of(s.first + i);
  }
  [[nodiscard]] std::uint32_t unit_of(std::uint32_t c) const {
    if (!sharded(plan_.collective)) return c - slice_ * units_;
    const std::uint32_t per_shard = units_ / plan_.ranks, shard = c / (per_shard * plan_.slices);
    return position_of(shard) * per_shard + c % per_shard;
  }
  [[nodiscard]] std::uint32_t position_of(std::uint32_t shard) const {
    if (plan_.order.empty()) return shard;
    if (position_.empty()) {
      position_.resize(plan_.ranks);
      for (std::uint32_t v = 0; v < plan_.ranks; ++v) position_[plan_.order[v].value] = v;
    }
    return position_[shard];
  }

  void add(op_kind kind, rank_id peer, slice from, slice to, std::uint32_t first_chunk, std::uint32_t stride = 1) {
    if (broken_) return;
    find_waits(kind, from, to);
    const auto open = static_cast<std::uint32_t>(steps_.size());
    if (seq::find(waits_, open) != waits_.end()) {  // needs what an operation of the open step does
      end_step();
      find_waits(kind, from, to);
    }
    const auto now = static_cast<std::uint32_t>(steps_.size());
    for (const std::uint32_t w : waits_)
      if (seq::find(after_, w) == after_.end()) after_.push_back(w);
    for (std::uint32_t i = 0; i < from.count; ++i) {
      readers_.push_back({now, first_reader_[cell(from, i)], from.where == buffer::input});
      first_reader_[cell(from, i)] = static_cast<std::uint32_t>(readers_.size() - 1);
    }
    for (std::uint32_t i = 0; i < to.count; ++i) {
      last_write_[cell(to, i)] = now;
      if (!no_op_in_place(kind, from, to)) first_reader_[cell(to, i)] = none;
    }
    ops_.push_back({kind, peer, from, to, first_chunk, stride});
  }

  [[nodiscard]] static bool no_op_in_place(op_kind kind, const slice& from, const slice& to) {
    return kind == op_kind::copy && from.where == buffer::input && to.where == buffer::output && from.first == to.first;
  }

  /// Steps that an operation must wait for. Input is read before anything is written at its place, so reading it waits for
  /// nobody; writing output waits for who reads the input there, as both may be one.
  void find_waits(op_kind kind, const slice& from, const slice& to) {
    waits_.clear();
    const auto wait = [&](std::uint32_t s) {
      if (s != none && seq::find(waits_, s) == waits_.end()) waits_.push_back(s);
    };
    if (from.where != buffer::input)
      for (std::uint32_t i = 0; i < from.count; ++i) wait(last_write_[cell(from, i)]);
    const bool harmless = no_op_in_place(kind, from, to);
    for (std::uint32_t i = 0; i < to.count; ++i) {
      wait(last_write_[cell(to, i)]);
      for (std::uint32_t r = first_reader_[cell(to, i)]; r != none; r = readers_[r].next)
        if (!(harmless && readers_[r].of_input)) wait(readers_[r].step);
    }
  }

  void end_step() {
    const std::uint32_t first = steps_.empty() ? 0 : steps_.back().first_op + steps_.back().op_count;
    const auto count = static_cast<std::uint32_t>(ops_.size()) - first;
    if (count == 0) return;
    // A wait that another wait implies need not be named.
    std::vector<std::uint32_t> after;
    std::uint32_t before = ended_before_.empty() ? 0 : ended_before_.back();
    for (const std::uint32_t w : after_) {
      bool implied = false;
      for (const std::uint32_t v : after_)
        implied =
            implied || (v > w && (w < ended_before_[v] || seq::find(steps_[v].after, w) != steps_[v].after.end()));
      if (!implied) after.push_back(w);
      before = std::max(before, ended_before_[w] == w ? w + 1 : ended_before_[w]);
    }
    ended_before_.push_back(before);
    seq::sort(after);
    steps_.push_back({stage_, first, count, std::move(after)});
    after_.clear();
  }

  void lacks(std::uint32_t u) {
    if (broken_) return;
    broken_ =
        fail(errc::invalid_argument,
             "schedule '" + plan_.name + "': rank " + std::to_string(rank_.value) + " has no value of unit " +
                 std::to_string(u) + " when " +
                 (stage_ < plan_.stages.size() ? stage_name(plan_, stage_) : std::string("the end")) + " needs it");
  }
  [[nodiscard]] result<void> verdict() const {
    if (broken_) return *broken_;
    return {};
  }

  const schedule& plan_;
  rank_id rank_;
  std::uint32_t slice_;
  std::uint32_t units_;
  std::uint32_t stage_ = 0;
  std::vector<place> at_;
  std::vector<std::uint32_t> temp_at_;
  std::vector<std::uint8_t> copied_;  ///< value is in input and, by a copy, in output too
  mutable std::vector<std::uint32_t> position_;

  struct reader {
    std::uint32_t step, next;
    bool of_input;
  };
  std::vector<std::uint32_t> last_write_;    ///< per cell, the step
  std::vector<std::uint32_t> first_reader_;  ///< per cell, list in readers_ of those since the last write
  std::vector<reader> readers_;
  std::vector<std::uint32_t> waits_, after_;
  std::vector<std::uint32_t> ended_before_;  ///< per step: so many first steps have surely ended when it starts
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sent_;
  std::vector<std::uint32_t> packed_;  ///< per temporary cell: unit whose input was copied there last
  std::vector<task> arrived_;          ///< bundles of this round that are to be added
  std::vector<local_step> steps_;
  std::vector<op> ops_;
  std::optional<failure> broken_;
};

}}}}  // namespace topocoll::v0::plan::detail
