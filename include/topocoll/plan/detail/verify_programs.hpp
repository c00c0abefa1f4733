// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exact checker: matches messages, orders steps, looks for races, and executes on sets of contributions.
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
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/detail/contribution_sets.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/proof.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// What `program.hpp` says about one rank's program, and the sentences about it.
class program_view {
 public:
  explicit program_view(const program& p)
      : p_(p), per_shard_(sharded(p.collective) && p.ranks != 0 ? p.chunks / p.ranks : 0) {}

  [[nodiscard]] bool owns(std::uint32_t chunk) const { return per_shard_ != 0 && chunk / per_shard_ == p_.rank.value; }
  [[nodiscard]] bool exists(buffer where, std::uint32_t chunk) const {
    if (where == buffer::scratch) return chunk < p_.scratch_cells;
    if (chunk >= p_.chunks) return false;
    const bool in = where == buffer::input;
    switch (p_.collective) {
      case collective_kind::all_gather: return !in || owns(chunk);
      case collective_kind::reduce_scatter: return in || owns(chunk);
      case collective_kind::broadcast: return !in || p_.rank == p_.root;
      case collective_kind::reduce: return in || p_.rank == p_.root;
      case collective_kind::gather: return in ? owns(chunk) : p_.rank == p_.root;
      case collective_kind::scatter: return in ? p_.rank == p_.root : owns(chunk);
      case collective_kind::all_reduce:
      case collective_kind::all_to_all: return true;
    }
    return false;
  }
  [[nodiscard]] std::uint32_t step_of(std::uint32_t op_index) const {
    std::uint32_t s = 0;
    while (s + 1 < p_.steps.size() && p_.steps[s].first_op + p_.steps[s].op_count <= op_index) ++s;
    return s;
  }
  [[nodiscard]] std::string name(std::uint32_t step_index) const {
    std::string text = "rank " + std::to_string(p_.rank.value) + ", step " + std::to_string(step_index);
    if (step_index < p_.steps.size() && p_.steps[step_index].stage < p_.stages.size())
      text += " (" + p_.stages[p_.steps[step_index].stage] + ")";
    return text;
  }
  [[nodiscard]] std::string name_op(std::uint32_t op_index) const {
    constexpr const char* kinds[] = {"send", "receive", "receive and reduce", "copy", "reduce"};
    const op& o = p_.ops[op_index];
    std::string text = name(step_of(op_index)) + ", operation " + std::to_string(op_index) + " (" +
                       kinds[static_cast<std::size_t>(o.kind)];
    if (o.kind == op_kind::send) text += " to rank " + std::to_string(o.peer.value);
    if (o.kind == op_kind::receive || o.kind == op_kind::receive_reduce)
      text += " from rank " + std::to_string(o.peer.value);
    return text + ")";
  }
  [[nodiscard]] static std::string name(buffer where, std::uint32_t chunk) {
    if (where == buffer::scratch) return "scratch cell " + std::to_string(chunk);
    return "chunk " + std::to_string(chunk) + (where == buffer::input ? " of input" : " of output");
  }

  /// Numbers in range, slices that exist, `after` that looks back.
  [[nodiscard]] result<void> check_shape() const {
    if (p_.ranks == 0 || p_.chunks == 0 || p_.rank.value >= p_.ranks || p_.root.value >= p_.ranks || p_.channels == 0)
      return fail(errc::invalid_argument, "a program says rank " + std::to_string(p_.rank.value) + ", root " +
                                              std::to_string(p_.root.value) + ", " + std::to_string(p_.ranks) +
                                              " ranks, " + std::to_string(p_.chunks) + " chunks and " +
                                              std::to_string(p_.channels) + " channels, which cannot be");
    if (sharded(p_.collective) && p_.chunks % p_.ranks != 0)
      return fail(errc::invalid_argument, "the program of rank " + std::to_string(p_.rank.value) + " has " +
                                              std::to_string(p_.chunks) + " chunks, which " + std::to_string(p_.ranks) +
                                              " shards cannot share");
    std::uint32_t next_op = 0;
    for (std::uint32_t s = 0; s < p_.steps.size(); ++s) {
      const step& st = p_.steps[s];
      if (st.first_op != next_op || st.op_count > p_.ops.size() - next_op)
        return fail(errc::bug, name(s) + ": its operations do not follow those of the step before");
      next_op += st.op_count;
      if (st.channel >= p_.channels)
        return fail(errc::bug, name(s) + ": there is no channel " + std::to_string(st.channel));
      for (const std::uint32_t a : st.after)
        if (a >= s)
          return fail(errc::bug, name(s) + " waits for step " + std::to_string(a) + ", which does not come before it");
    }
    if (next_op != p_.ops.size())
      return fail(errc::bug, "rank " + std::to_string(p_.rank.value) + ": " + std::to_string(p_.ops.size() - next_op) +
                                 " operations belong to no step");
    for (std::uint32_t i = 0; i < p_.ops.size(); ++i)
      if (auto fits = check_op(i); !fits) return fits;
    return {};
  }

 private:
  [[nodiscard]] result<void> check_op(std::uint32_t i) const {
    const op& o = p_.ops[i];
    const auto bad = [&](std::string what) { return fail(errc::bug, name_op(i) + ": " + std::move(what)); };
    const bool message = o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::receive_reduce;
    const bool reads = o.kind != op_kind::receive, writes = o.kind != op_kind::send;
    if (message && (o.peer.value >= p_.ranks || o.peer == p_.rank))
      return bad("rank " + std::to_string(o.peer.value) + " is not another rank");
    const std::uint32_t count = reads ? o.from.count : o.to.count;
    if (count == 0) return bad("it moves no chunk");
    if (reads && writes && o.from.count != o.to.count)
      return bad("it reads " + std::to_string(o.from.count) + " chunks and writes " + std::to_string(o.to.count));
    if (!names_chunks(p_, o, count))
      return bad("its data would be chunks beyond the last, " + std::to_string(p_.chunks - 1) +
                 (o.stride == 1 ? "" : ", or not be whole shards in scratch"));
    if (per_shard_ > 1 && o.chunk / per_shard_ != (o.chunk + count - 1) / per_shard_)
      return bad("its chunks lie in two shards, so they are not contiguous in scratch");
    if (writes && o.to.where == buffer::input) return bad("it writes to the input");
    for (const slice* s : {reads ? &o.from : nullptr, writes ? &o.to : nullptr}) {
      if (s == nullptr) continue;
      for (std::uint32_t c = 0; c < count; ++c)
        if (s->first > 0xffffffffU - c || !exists(s->where, s->first + c))
          return bad("there is no " + name(s->where, s->first + c) + " at this rank");
      if (s->where == buffer::scratch) continue;
      // Equal place in the shard means equal size.
      const bool fits = p_.collective == collective_kind::all_to_all ? s->first % per_shard_ == o.chunk % per_shard_
                                                                     : s->first == o.chunk;
      if (!fits)
        return bad("its data are chunk " + std::to_string(o.chunk) + ", but its slice is " + name(s->where, s->first));
    }
    return {};
  }

  const program& p_;
  std::uint32_t per_shard_;
};

/// Whether two steps of one rank are ordered by `after` and the order of the channel alone.
class local_order {
 public:
  explicit local_order(const program& p)
      : p_(p),
        previous_(p.steps.size(), none),
        place_(p.steps.size()),
        done_(p.steps.size(), 0),
        seen_(p.steps.size(), 0),
        shown_(p.steps.size(), none) {
    std::vector<std::uint32_t> last(p.channels, none), count(p.channels, 0);
    for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
      const std::uint32_t c = p.steps[s].channel;
      previous_[s] = last[c];
      last[c] = s;
      place_[s] = count[c]++;
      // done_[s]: so many first steps of the channel have surely ended when s starts.
      if (previous_[s] != none) done_[s] = done_[previous_[s]];
      for (const std::uint32_t a : p.steps[s].after) {
        if (p.steps[a].channel != c) continue;
        done_[s] = std::max(done_[s], done_[a]);
        if (done_[a] == place_[a]) done_[s] = std::max(done_[s], place_[a] + 1);
      }
    }
  }
  /// Step before `s` on its channel, or `none`.
  [[nodiscard]] std::uint32_t previous(std::uint32_t s) const { return previous_[s]; }
  /// True when `a` has surely ended before `b` starts.
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) {
    if (a >= b) return false;
    if (p_.steps[a].channel == p_.steps[b].channel && place_[a] < done_[b]) return true;
    if (shown_[a] == b) return true;  // steps meet in many cells
    ++stamp_;
    todo_.assign(1, b);
    while (!todo_.empty()) {
      const std::uint32_t s = todo_.back();
      todo_.pop_back();
      for (const std::uint32_t w : p_.steps[s].after) {
        if (w == a) {
          shown_[a] = b;
          return true;
        }
        visit(w, a);
      }
      if (previous_[s] != none) visit(previous_[s], a);
    }
    return false;
  }
  static constexpr std::uint32_t none = 0xffffffffU;

 private:
  void visit(std::uint32_t s, std::uint32_t floor) {
    if (s <= floor || seen_[s] == stamp_) return;
    seen_[s] = stamp_;
    todo_.push_back(s);
  }
  const program& p_;
  std::vector<std::uint32_t> previous_, place_, done_, seen_, todo_;
  std::vector<std::uint32_t> shown_;  // per step: one that was found to come after it
  std::uint32_t stamp_ = 0;
};

/// Looks for two unordered accesses of one rank to one cell, one of them a write.
/// `sequence` lists the steps so that whatever is ordered appears in order; `ordered(a, b)` says whether a ends before b.
template <class Ordered>
[[nodiscard]] result<void> find_race(const program& p, std::span<const std::uint32_t> sequence, bool in_place,
                                     Ordered&& ordered) {
  const program_view view(p);
  const std::uint32_t output_at = in_place ? 0 : p.chunks, scratch_at = output_at + p.chunks;
  struct access {
    std::uint32_t op, step, next;
  };
  constexpr std::uint32_t none = 0xffffffffU;
  std::vector<access> log;
  std::vector<std::uint32_t> writer(scratch_at + p.scratch_cells, none), readers(writer.size(), none);
  const auto cell = [&](const slice& s, std::uint32_t c) {
    return s.first + c + (s.where == buffer::input ? 0 : s.where == buffer::output ? output_at : scratch_at);
  };
  const auto clash = [&](std::uint32_t earlier, std::uint32_t o, const slice& s, std::uint32_t c) {
    return fail(errc::bug, view.name_op(o) + " and operation " + std::to_string(log[earlier].op) + " of step " +
                               std::to_string(log[earlier].step) + " both use " +
                               program_view::name(s.where, s.first + c) + (in_place ? " (in place)" : "") +
                               ", one of them writes, and neither waits for the other");
  };
  for (const std::uint32_t s : sequence) {
    const step& st = p.steps[s];
    for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
      const op& x = p.ops[o];
      const bool reads = x.kind != op_kind::receive, writes = x.kind != op_kind::send;
      if (x.kind == op_kind::copy && cell(x.from, 0) == cell(x.to, 0)) continue;  // input and output are one
      for (std::uint32_t c = 0; reads && c < x.from.count; ++c) {
        const std::uint32_t at = cell(x.from, c);
        if (writer[at] != none && !ordered(log[writer[at]].step, s)) return clash(writer[at], o, x.from, c);
        log.push_back({o, s, readers[at]});
        readers[at] = static_cast<std::uint32_t>(log.size() - 1);
      }
      for (std::uint32_t c = 0; writes && c < x.to.count; ++c) {
        const std::uint32_t at = cell(x.to, c);
        if (writer[at] != none && !ordered(log[writer[at]].step, s)) return clash(writer[at], o, x.to, c);
        for (std::uint32_t r = readers[at]; r != none; r = log[r].next)
          if (log[r].op != o && !ordered(log[r].step, s)) return clash(r, o, x.to, c);
        readers[at] = none;
        log.push_back({o, s, none});
        writer[at] = static_cast<std::uint32_t>(log.size() - 1);
      }
    }
  }
  return {};
}

}}}}  // namespace topocoll::v0::plan::detail

#include <topocoll/plan/detail/verify_exact.hpp>
