// SPDX-License-Identifier: Apache-2.0
#pragma once
// How executor.hpp runs a program: starting steps, finishing them, and saying where it stood when something failed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/exec/executor.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {

/// The part of a run that depends neither on the transport nor on the memory: addresses, order, messages to people.
class program_run {
 public:
  /// @param place  which of the runs under way this is: gives it its state and its channels
  program_run(prepared_program& prepared, std::uint32_t place, const call& what, std::byte* scratch,
              std::uint64_t window_begin, std::uint64_t window_count)
      : p_(prepared),
        state_(prepared.states_[place]),
        place_(place),
        call_(what),
        grid_(what.counts.empty()
                  ? plan::grid_of(p_.program_.collective, p_.program_.ranks, p_.program_.chunks, window_count)
                  : plan::grid_of(p_.program_.chunks, cut(state_, what.counts, window_begin, window_count))),
        size_(size_of(what.type).value),
        scratch_(scratch),
        window_begin_(window_begin),
        window_count_(window_count),
        tag_(make_tag({what.number, call_identity::step::data, p_.program_.collective, what.type, what.op,
                       p_.program_.root.value, what.counts.empty() ? what.count : mark_of(what.counts), what.digest})) {
    state_.open = p_.waits_for_;
    state_.next_in_channel.assign(p_.first_of_channel_.begin(), p_.first_of_channel_.end() - 1);
    left_ = p_.program_.steps.size();
  }

  [[nodiscard]] bool finished() const { return left_ == 0; }
  [[nodiscard]] std::uint32_t channels() const { return p_.program_.channels; }
  [[nodiscard]] std::uint64_t window_begin() const { return window_begin_; }
  [[nodiscard]] std::uint64_t window_count() const { return window_count_; }
  [[nodiscard]] std::span<const plan::op> ops_of(std::uint32_t step) const {
    const plan::step& s = p_.program_.steps[step];
    return std::span(p_.program_.ops).subspan(s.first_op, s.op_count);
  }

  /// The next step of a channel, if it can start now.
  [[nodiscard]] bool next(std::uint32_t channel, std::uint32_t& step) {
    std::uint32_t& at = state_.next_in_channel[channel];
    if (at == p_.first_of_channel_[channel + 1] || state_.open[p_.by_channel_[at]] != 0) return false;
    step = p_.by_channel_[at++];
    return true;
  }
  /// Collects the messages of a step.
  void messages_of(std::uint32_t step) {
    p_.out_.clear();
    p_.in_.clear();
    const std::uint32_t channel = place_ * p_.program_.channels + p_.program_.steps[step].channel;
    each_piece(step, [&](const plan::op& o) {
      if (o.kind == plan::op_kind::send) {
        const std::uint64_t n = elements(o, o.from);
        if (n != 0)
          p_.out_.push_back({o.peer, channel, tag_, {source(o, o.from), static_cast<std::size_t>(n * size_)}});
      } else if (o.kind == plan::op_kind::receive || o.kind == plan::op_kind::receive_reduce) {
        const std::uint64_t n = elements(o, o.to);
        if (n == 0) return;  // the sender leaves it out too
        p_.in_.push_back({o.peer, channel, tag_, {target(o, o.to), static_cast<std::size_t>(n * size_)}, {}});
        if (o.kind == plan::op_kind::receive_reduce)
          p_.in_.back().with = combine{call_.type, call_.op, source(o, o.from)};
      }
    });
  }
  /// The operations of a step, in the pieces in which they are carried out.
  template <class Visit>
  void each_piece(std::uint32_t step, Visit&& visit) const {
    for (const plan::op& o : ops_of(step)) {
      if (grid_.even()) {
        visit(o);
        continue;
      }
      for (std::uint32_t i = 0; i < plan::pieces_of(grid_, o); ++i) visit(plan::piece_of(grid_, o, i));
    }
  }
  [[nodiscard]] std::span<const outgoing> out() const { return p_.out_; }
  [[nodiscard]] std::span<const incoming> in() const { return p_.in_; }

  void started(std::uint32_t step, ticket t) {
    p_.tickets_.push_back(t);
    p_.under_way_.push_back({place_, step});
  }
  /// Lets those go that waited for this step.
  void finish(std::uint32_t step) {
    --left_;
    for (std::uint32_t i = p_.first_follower_[step]; i != p_.first_follower_[step + 1]; ++i)
      --state_.open[p_.followers_[i]];
  }

  [[nodiscard]] std::uint64_t elements(const plan::op& o, const plan::slice& s) const {
    return plan::extent_of(grid_, o, s).count;
  }
  [[nodiscard]] const std::byte* source(const plan::op& o, const plan::slice& s) const {
    switch (s.where) {
      case plan::buffer::input:
        return call_.input + offset(o, s, input_of(p_.program_.collective, is_root()) == region::own_shard);
      case plan::buffer::output: return target(o, s);
      case plan::buffer::scratch: break;
    }
    return scratch_ + plan::extent_of(grid_, o, s).first * size_;
  }
  [[nodiscard]] std::byte* target(const plan::op& o, const plan::slice& s) const {
    if (s.where == plan::buffer::scratch) return scratch_ + plan::extent_of(grid_, o, s).first * size_;
    return call_.output + offset(o, s, output_of(p_.program_.collective, is_root()) == region::own_shard);
  }

  /// Adds to a failure of the transport where this rank stood.
  [[nodiscard]] failure located(failure why) const {
    std::uint32_t step = UINT32_MAX;
    for (const auto& s : p_.under_way_)
      if (s.run == place_) step = std::min(step, s.step);
    why.what += " [rank " + std::to_string(p_.program_.rank.value) + ", ";
    if (step != UINT32_MAX) {
      const std::uint32_t stage = p_.program_.steps[step].stage;
      why.what += "step " + std::to_string(step + 1) + " of " + std::to_string(p_.program_.steps.size());
      if (stage < p_.program_.stages.size()) why.what += " '" + p_.program_.stages[stage] + "'";
      why.what += ", ";
    }
    why.what += std::string(to_string(p_.program_.collective)) + " call " + std::to_string(call_.number) + "]";
    return why;
  }

 private:
  [[nodiscard]] bool is_root() const { return p_.program_.rank == p_.program_.root; }
  // Bytes from the start of the caller's buffer. A rank that has only its shard has it at the start.
  [[nodiscard]] std::uint64_t offset(const plan::op& o, const plan::slice& s, bool only_own_shard) const {
    const std::uint64_t first = plan::extent_of(grid_, o, s).first;
    if (!plan::sharded(p_.program_.collective)) return (window_begin_ + first) * size_;
    const std::uint64_t unit = s.first / grid_.chunks_per_unit;
    if (!grid_.even()) {
      const std::uint64_t in_unit = first - grid_.starts[unit];
      return ((only_own_shard ? 0 : state_.starts[unit]) + window_begin_ + in_unit) * size_;
    }
    const std::uint64_t in_unit = first - unit * grid_.elements_per_unit;
    const std::uint64_t place = only_own_shard ? 0 : unit;
    return (place * call_.count + window_begin_ + in_unit) * size_;
  }
  /// Starts of the parts of unequal shards that lie in a window; those of whole shards are kept beside them.
  [[nodiscard]] static std::span<const std::uint64_t> cut(prepared_program::run_state& state,
                                                          std::span<const std::uint64_t> counts,
                                                          std::uint64_t window_begin, std::uint64_t window_count) {
    state.starts.assign(1, 0);
    state.window_starts.assign(1, 0);
    for (const std::uint64_t c : counts) {
      state.starts.push_back(state.starts.back() + c);
      state.window_starts.push_back(state.window_starts.back() +
                                    (c <= window_begin ? 0 : std::min(c - window_begin, window_count)));
    }
    return state.window_starts;
  }

  prepared_program& p_;
  prepared_program::run_state& state_;
  std::uint32_t place_;
  const call& call_;
  plan::chunk_grid grid_;
  std::uint64_t size_;
  std::byte* scratch_;
  std::uint64_t window_begin_;
  std::uint64_t window_count_;
  std::uint64_t tag_;
  std::size_t left_ = 0;
};

}  // namespace detail

[[nodiscard]] inline result<prepared_program> prepared_program::of(plan::program given) {
  prepared_program r(std::move(given));
  const plan::program& p = r.program_;
  const auto bad = [&](std::size_t step, const std::string& what) {
    return fail(errc::invalid_argument, "step " + std::to_string(step + 1) + " of the program of rank " +
                                            std::to_string(p.rank.value) + " " + what);
  };
  if (p.ranks == 0 || p.rank.value >= p.ranks || p.root.value >= p.ranks)
    return fail(errc::invalid_argument, "a program for rank " + std::to_string(p.rank.value) + " of " +
                                            std::to_string(p.ranks) + " with root " + std::to_string(p.root.value) +
                                            " makes no sense");
  if (p.chunks == 0 || (plan::sharded(p.collective) && p.chunks % p.ranks != 0))
    return fail(errc::invalid_argument,
                std::to_string(p.chunks) + " chunks cannot be shared by " + std::to_string(p.ranks) + " ranks");
  const std::uint32_t chunks_per_unit = plan::grid_of(p.collective, p.ranks, p.chunks, 0).chunks_per_unit;
  const std::size_t n = p.steps.size();
  r.waits_for_.resize(n);
  r.first_follower_.assign(n + 1, 0);
  r.first_of_channel_.assign(std::size_t{p.channels} + 1, 0);
  // A rank holds all chunks of its buffers, but for the one of which it has only its own shard.
  const auto exists = [&](const plan::slice& s) {
    if (s.where == plan::buffer::scratch) return s.first <= p.scratch_cells && s.count <= p.scratch_cells - s.first;
    if (s.first > p.chunks || s.count > p.chunks - s.first) return false;
    const bool is_root = p.rank == p.root;
    const region here =
        s.where == plan::buffer::input ? input_of(p.collective, is_root) : output_of(p.collective, is_root);
    if (here != region::own_shard) return here == region::whole;
    return (s.first >= p.rank.value * chunks_per_unit && s.first + s.count <= (p.rank.value + 1) * chunks_per_unit);
  };
  const auto one_unit = [&](const plan::slice& s) {
    return s.where == plan::buffer::scratch || s.count == 0 ||
           s.first / chunks_per_unit == (s.first + s.count - 1) / chunks_per_unit;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const plan::step& s = p.steps[i];
    if (s.channel >= p.channels)
      return bad(i, "is on channel " + std::to_string(s.channel) + " of " + std::to_string(p.channels));
    if (s.first_op > p.ops.size() || s.op_count > p.ops.size() - s.first_op)
      return bad(i, "has operations that do not exist");
    for (const std::uint32_t a : s.after) {
      if (a >= i)
        return bad(i, "waits for step " + std::to_string(std::uint64_t{a} + 1) + ", which does not come before it");
      ++r.first_follower_[a + 1];
    }
    r.waits_for_[i] = static_cast<std::uint32_t>(s.after.size());
    ++r.first_of_channel_[s.channel + 1];
    for (std::uint32_t k = s.first_op; k < s.first_op + s.op_count; ++k) {
      const plan::op& o = p.ops[k];
      const bool has_peer =
          o.kind == plan::op_kind::send || o.kind == plan::op_kind::receive || o.kind == plan::op_kind::receive_reduce;
      const bool reads = o.kind != plan::op_kind::receive;
      const bool writes = o.kind != plan::op_kind::send;
      if (has_peer && (o.peer.value >= p.ranks || o.peer == p.rank))
        return bad(i, "exchanges with rank " + std::to_string(o.peer.value));
      if (reads && !exists(o.from)) return bad(i, "reads chunks that this rank does not have");
      if (writes && !exists(o.to)) return bad(i, "writes chunks that this rank does not have");
      if (writes && o.to.where == plan::buffer::input) return bad(i, "writes into its input");
      const std::uint32_t count = reads ? o.from.count : o.to.count;
      if (reads && writes && o.from.count != o.to.count)
        return bad(i, "moves " + std::to_string(o.from.count) + " chunks into " + std::to_string(o.to.count));
      if (!plan::names_chunks(p, o, count)) return bad(i, "moves chunks that the array does not have");
      if ((reads && !one_unit(o.from)) || (writes && !one_unit(o.to))) r.windowable_ = false;
    }
  }
  for (std::size_t i = 0; i < n; ++i) r.first_follower_[i + 1] += r.first_follower_[i];
  r.followers_.resize(r.first_follower_[n]);
  for (std::size_t c = 0; c < p.channels; ++c) r.first_of_channel_[c + 1] += r.first_of_channel_[c];
  r.by_channel_.resize(n);
  std::vector<std::uint32_t> follower = r.first_follower_;
  std::vector<std::uint32_t> place = r.first_of_channel_;
  for (std::size_t i = 0; i < n; ++i) {
    for (const std::uint32_t a : p.steps[i].after) r.followers_[follower[a]++] = static_cast<std::uint32_t>(i);
    r.by_channel_[place[p.steps[i].channel]++] = static_cast<std::uint32_t>(i);
  }
  return r;
}

namespace detail {

/// Starts everything that can start, on all channels, until nothing more can.
template <MemorySpace M, Transport T>
[[nodiscard]] result<void> start_steps(M& memory, T& transport, program_run& run, dtype type, reduce_op op) {
  const std::uint64_t size = size_of(type).value;
  bool again = true;
  while (again) {
    again = false;  // a step without messages finishes at once, and may let steps of other channels go
    for (std::uint32_t channel = 0; channel < run.channels(); ++channel) {
      std::uint32_t step = 0;
      while (run.next(channel, step)) {
        run.messages_of(step);
        const bool alone = run.out().empty() && run.in().empty();
        if (!alone) {
          auto posted = transport.post(run.out(), run.in());
          if (!posted) return std::move(posted).error();
          run.started(step, *posted);
        }
        result<void> done;
        run.each_piece(step, [&](const plan::op& o) {
          const std::uint64_t n = run.elements(o, o.to);
          if (!done || n == 0) return;  // of an empty shard there may be no buffer to point into
          if (o.kind == plan::op_kind::copy) {
            done = memory.copy(run.target(o, o.to), run.source(o, o.from), {n * size});
          } else if (o.kind == plan::op_kind::reduce) {
            done = memory.reduce(type, op, run.target(o, o.to), run.target(o, o.to), run.source(o, o.from), n);
          }
        });
        if (!done) {
          transport.abort(done.error().what);
          return done;
        }
        if (alone) {
          run.finish(step);
          again = true;
        }
      }
    }
  }
  return {};
}

/// How a call is cut.
struct window_shape {
  std::uint64_t count;         ///< elements of a window
  std::uint64_t windows;       ///< of them
  std::uint32_t places;        ///< most of them under way
  std::uint64_t scratch_each;  ///< bytes of scratch of each
};

/// avg := the sum, divided; of what a window wrote.
template <MemorySpace M>
[[nodiscard]] result<void> finish_window(M& memory, const plan::program& p, const call& what, std::uint64_t at,
                                         std::uint64_t count) {
  const bool has_result = output_of(p.collective, p.rank == p.root) != region::nothing;
  if (what.op != reduce_op::avg || !reduces(p.collective) || !has_result) return {};
  const std::uint64_t own = what.counts.empty() ? what.count : what.counts[p.rank.value];
  const std::uint64_t mine = own <= at ? 0 : std::min(count, own - at);
  if (mine == 0) return {};  // of an empty shard there may be no buffer to point into
  return memory.divide(what.type, what.output + at * size_of(what.type).value, mine, p.ranks);
}

/// Runs all windows, several at a time. Place p has the windows p, p + places, …, one after the other: so on every channel
/// all ranks post messages in the same order.
template <MemorySpace M, Transport T>
[[nodiscard]] result<void> run_windows(M& memory, T& transport, prepared_program& prepared, const call& what,
                                       std::byte* scratch, const window_shape& shape, deadline until) {
  prepared.begin(shape.places);
  std::vector<std::optional<program_run>> runs(shape.places);
  std::uint64_t ended = 0;
  const auto begin = [&](std::uint32_t place, std::uint64_t window) {
    const std::uint64_t at = window * shape.count;
    runs[place].emplace(prepared, place, what, scratch == nullptr ? nullptr : scratch + place * shape.scratch_each, at,
                        std::min(shape.count, what.count - at));
  };
  // Starts what can start in a place; goes on to its later windows as long as they finish at once.
  const auto go_on = [&](std::uint32_t place) -> result<void> {
    for (;;) {
      program_run& run = *runs[place];
      if (auto ok = start_steps(memory, transport, run, what.type, what.op); !ok)
        return run.located(std::move(ok).error());
      if (!run.finished()) return {};
      if (auto ok = finish_window(memory, prepared.program(), what, run.window_begin(), run.window_count()); !ok) {
        transport.abort(ok.error().what);
        return ok;
      }
      ++ended;
      const std::uint64_t next = run.window_begin() / shape.count + shape.places;
      if (next >= shape.windows) return {};
      begin(place, next);
    }
  };
  for (std::uint32_t place = 0; place < shape.places && place < shape.windows; ++place) {
    begin(place, place);
    if (auto ok = go_on(place); !ok) return ok;
  }
  while (ended != shape.windows) {
    if (prepared.tickets().empty()) {
      transport.abort("a program ran into a step that nothing can start");
      return fail(errc::bug, "the steps of the program of rank " + std::to_string(prepared.program().rank.value) +
                                 " wait for each other");
    }
    auto done = transport.wait_any(prepared.tickets(), until);
    if (!done) {
      const std::uint32_t place = prepared.first_under_way();
      return runs[place]->located(std::move(done).error());
    }
    const auto [place, step] = prepared.take(*done);
    runs[place]->finish(step);
    if (auto ok = go_on(place); !ok) return ok;
  }
  return {};
}

}  // namespace detail

template <MemorySpace M>
template <Transport T>
result<void> executor<M>::run(T& transport, prepared_program& prepared, const call& what, deadline until) {
  const plan::program& p = prepared.program();
  if (p.ranks != transport.size() || p.rank != transport.rank())
    return fail(errc::invalid_argument, "a program for rank " + std::to_string(p.rank.value) + " of " +
                                            std::to_string(p.ranks) + " cannot run on rank " +
                                            std::to_string(transport.rank().value) + " of " +
                                            std::to_string(transport.size()));
  if (p.channels > transport.channels() && p.ranks > 1)
    return fail(errc::unsupported,
                "the plan has " + std::to_string(p.channels) + " slices, the transport only " +
                    std::to_string(transport.channels()) + " channels",
                "ask for more channels when the group is made, or for fewer slices");
  if (!what.counts.empty() &&
      (what.counts.size() != p.ranks || !plan::sharded(p.collective) || p.collective == collective_kind::all_to_all ||
       *std::max_element(what.counts.begin(), what.counts.end()) != what.count))
    return fail(errc::invalid_argument, "counts for " + std::to_string(what.counts.size()) + " ranks do not fit " +
                                            std::string(to_string(p.collective)) + " among " + std::to_string(p.ranks) +
                                            ", or the largest of them is not " + std::to_string(what.count));
  const std::uint64_t window = what.window == 0 ? what.count : std::min(what.window, what.count);
  if (window < what.count && !prepared.windowable())
    return fail(errc::invalid_argument, "a program that moves several shards at once cannot work in windows");
  const std::uint64_t size = size_of(what.type).value;
  const std::uint64_t cell = plan::grid_of(p.collective, p.ranks, p.chunks, window).largest();
  const std::uint64_t windows = what.count == 0 ? 0 : (what.count - 1) / window + 1;
  const std::uint64_t room = p.ranks == 1 ? 1 : transport.channels() / std::max(1U, p.channels);
  const auto places = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, std::min<std::uint64_t>({std::max(1U, what.in_flight), room, windows})));
  const std::uint64_t scratch_each = p.scratch_cells * cell * size;
  std::byte* scratch = nullptr;
  if (scratch_each != 0) {
    auto given = scratch_of(scratch_each * places);
    if (!given) {
      transport.abort(given.error().what);
      return std::move(given).error();
    }
    scratch = *given;
  }
  return detail::run_windows(memory_, transport, prepared, what, scratch, {window, windows, places, scratch_each},
                             until);
}

}}  // namespace topocoll::v0
