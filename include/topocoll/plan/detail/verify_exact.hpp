// SPDX-License-Identifier: Apache-2.0
#pragma once
// All programs together: messages, deadlock, and execution on sets of contributions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/verify_programs.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
class exact_check {
 public:
  explicit exact_check(std::span<const program> programs)
      : all_(programs), sets_(static_cast<std::uint32_t>(programs.size())) {}

  [[nodiscard]] result<proof> run() {
    if (auto fits = check_headers(); !fits) return fits.error();
    if (auto fits = match(); !fits) return fits.error();
    if (auto fits = order(); !fits) return fits.error();
    proof done;
    for (const bool in_place : {false, true}) {
      if (auto fits = races(in_place); !fits) return fits.error();
      if (auto fits = execute(in_place, done.operations); !fits) return fits.error();
    }
    done.method = proof_method::exact;
    done.ranks = static_cast<std::uint32_t>(all_.size());
    done.steps = first_step_.back();
    done.messages = messages_;
    done.one_step_at_a_time = sorted(true).size() == 2 * std::size_t{first_step_.back()};
    done.summary =
        "every operation of " + std::to_string(done.ranks) +
        " ranks was executed on sets of contributions, apart and in place: " + std::to_string(done.messages) +
        " messages in " + std::to_string(done.steps) + " steps, no race, no deadlock without buffering" +
        (done.one_step_at_a_time ? ", also one step at a time" : "");
    return done;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  [[nodiscard]] result<void> check_headers() {
    if (all_.empty()) return fail(errc::invalid_argument, "there are no programs to verify");
    if (all_.size() >= (1U << 20U))
      return fail(errc::unsupported, "more than a million programs are not verified exactly");
    first_step_.assign(1, 0);
    first_op_.assign(1, 0);
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      const program& p = all_[r];
      if (p.collective != all_[0].collective || p.ranks != all_.size() || p.chunks != all_[0].chunks ||
          p.root != all_[0].root || p.rank.value != r)
        return fail(errc::invalid_argument,
                    "program " + std::to_string(r) + " is for rank " + std::to_string(p.rank.value) + " of " +
                        std::to_string(p.ranks) +
                        " in a collective that differs from that of program 0, or is out of order");
      if (auto fits = program_view(p).check_shape(); !fits) return fits;
      first_step_.push_back(first_step_.back() + static_cast<std::uint32_t>(p.steps.size()));
      first_op_.push_back(first_op_.back() + static_cast<std::uint32_t>(p.ops.size()));
      if (p.channels >= (1U << 16U)) return fail(errc::invalid_argument, "more than 65,535 channels");
    }
    return {};
  }

  // Steps and operations of all ranks are numbered through.
  [[nodiscard]] std::uint32_t rank_of_step(std::uint32_t s) const {
    return static_cast<std::uint32_t>(std::upper_bound(first_step_.begin(), first_step_.end(), s) -
                                      first_step_.begin() - 1);
  }
  [[nodiscard]] std::string name_step(std::uint32_t s) const {
    const std::uint32_t r = rank_of_step(s);
    return program_view(all_[r]).name(s - first_step_[r]);
  }

  struct message_end {
    std::uint64_t lane;  // from, to, channel
    std::uint32_t rank, op, step;
    [[nodiscard]] std::uint64_t from() const { return lane >> 36U; }
    [[nodiscard]] std::uint64_t to() const { return (lane >> 16U) & 0xfffffU; }
    [[nodiscard]] std::uint64_t channel() const { return lane & 0xffffU; }
  };

  /// The k-th send of a lane meets the k-th receive. Steps of a channel start in order, so their order in the list counts.
  [[nodiscard]] result<void> match() {
    std::vector<message_end> sends, receives;
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        const step& st = all_[r].steps[s];
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
          const op& x = all_[r].ops[o];
          if (x.kind == op_kind::copy || x.kind == op_kind::reduce) continue;
          const bool send = x.kind == op_kind::send;
          const std::uint64_t from = send ? r : x.peer.value, to = send ? x.peer.value : r;
          (send ? sends : receives).push_back({(from << 36U) | (to << 16U) | st.channel, r, o, first_step_[r] + s});
        }
      }
    const auto by_lane = [](const message_end& a, const message_end& b) { return a.lane < b.lane; };
    seq::sort(sends, by_lane);
    seq::sort(receives, by_lane);
    partner_.assign(first_op_.back(), none);
    partner_step_.assign(first_op_.back(), none);
    messages_ = sends.size();
    for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      const bool lonely_send = i >= receives.size() || (i < sends.size() && sends[i].lane < receives[i].lane);
      const bool lonely_receive = i >= sends.size() || (i < receives.size() && receives[i].lane < sends[i].lane);
      if (lonely_send || lonely_receive) {
        const message_end& e = lonely_send ? sends[i] : receives[i];
        return fail(errc::bug, program_view(all_[e.rank]).name_op(e.op) + ": rank " +
                                   std::to_string(lonely_send ? e.to() : e.from()) + " has no " +
                                   (lonely_send ? "receive" : "send") + " for it on channel " +
                                   std::to_string(e.channel()));
      }
      const op& a = all_[sends[i].rank].ops[sends[i].op];
      const op& b = all_[receives[i].rank].ops[receives[i].op];
      if (a.from.count != b.to.count || a.chunk != b.chunk || a.stride != b.stride)
        return fail(errc::bug, program_view(all_[sends[i].rank]).name_op(sends[i].op) + " sends " +
                                   std::to_string(a.from.count) + " chunks from " + first_chunk(a) + ", but " +
                                   program_view(all_[receives[i].rank]).name_op(receives[i].op) + " expects " +
                                   std::to_string(b.to.count) + " from " + first_chunk(b));
      const std::uint32_t s = first_op_[sends[i].rank] + sends[i].op, t = first_op_[receives[i].rank] + receives[i].op;
      partner_[s] = t;
      partner_[t] = s;
      partner_step_[s] = receives[i].step;
      partner_step_[t] = sends[i].step;
    }
    return {};
  }

  // Events: start of step s is 2s, its end 2s+1. A start waits for the ends in `after` and for the start of the step before
  // on its channel; an end waits for its start and for the starts of the steps at the other ends of its messages: that is
  // what a transport without any buffer does.

  template <class Visit>
  void each_message(std::uint32_t rank, std::uint32_t s, Visit&& visit) const {
    const step& st = all_[rank].steps[s];
    for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o)
      if (partner_[first_op_[rank] + o] != none) visit(o, partner_step_[first_op_[rank] + o]);
  }

  /// Events in an order that obeys all waits; fewer than all when some wait for each other. `one_at_a_time`: a step starts
  /// only when the one before it on its channel has ended.
  [[nodiscard]] std::vector<std::uint32_t> sorted(bool one_at_a_time) {
    const std::uint32_t steps = first_step_.back();
    std::vector<std::uint32_t> open(2 * std::size_t{steps}, 0), next(steps, none);
    std::vector<std::uint32_t> first_waiter(steps + 1, 0);
    rank_of_.resize(steps);
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      std::vector<std::uint32_t> last(all_[r].channels, none);
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        const std::uint32_t g = first_step_[r] + s;
        const step& st = all_[r].steps[s];
        rank_of_[g] = r;
        open[std::size_t{2} * g] = static_cast<std::uint32_t>(st.after.size());
        open[2 * g + 1] = 1;
        each_message(r, s, [&](std::uint32_t, std::uint32_t) { ++open[2 * g + 1]; });
        if (last[st.channel] != none) {
          next[last[st.channel]] = g;
          ++open[std::size_t{2} * g];
        }
        last[st.channel] = g;
        for (const std::uint32_t a : st.after) ++first_waiter[first_step_[r] + a + 1];
      }
    }
    for (std::uint32_t s = 0; s < steps; ++s) first_waiter[s + 1] += first_waiter[s];
    std::vector<std::uint32_t> waiters(first_waiter.back()), fill(first_waiter.begin(), first_waiter.end() - 1);
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s)
        for (const std::uint32_t a : all_[r].steps[s].after) waiters[fill[first_step_[r] + a]++] = first_step_[r] + s;

    std::vector<std::uint32_t> sequence;
    sequence.reserve(open.size());
    for (std::uint32_t e = 0; e < open.size(); ++e)
      if (open[e] == 0) sequence.push_back(e);
    const auto release = [&](std::uint32_t e) {
      if (--open[e] == 0) sequence.push_back(e);
    };
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const std::uint32_t g = sequence[i] / 2;
      if (sequence[i] % 2 == 0) {
        release(2 * g + 1);
        each_message(rank_of_[g], g - first_step_[rank_of_[g]],
                     [&](std::uint32_t, std::uint32_t other) { release(2 * other + 1); });
        if (next[g] != none && !one_at_a_time) release(2 * next[g]);
      } else {
        for (std::uint32_t w = first_waiter[g]; w < first_waiter[g + 1]; ++w) release(2 * waiters[w]);
        if (next[g] != none && one_at_a_time) release(2 * next[g]);
      }
    }
    open_ = std::move(open);
    return sequence;
  }

  [[nodiscard]] result<void> order() {
    sequence_ = sorted(false);
    if (sequence_.size() == open_.size()) return {};
    return fail(errc::bug, describe_cycle());
  }

  /// An event that `e` waits for and that never happens either.
  [[nodiscard]] std::uint32_t blocker(std::uint32_t e) const {
    const std::uint32_t g = e / 2, r = rank_of_[g], s = g - first_step_[r];
    if (e % 2 == 1) {
      if (open_[std::size_t{2} * g] != 0) return 2 * g;
      std::uint32_t found = none;
      each_message(r, s, [&](std::uint32_t, std::uint32_t other) {
        if (open_[std::size_t{2} * other] != 0) found = 2 * other;
      });
      return found;
    }
    for (const std::uint32_t a : all_[r].steps[s].after)
      if (open_[2 * (first_step_[r] + a) + 1] != 0) return 2 * (first_step_[r] + a) + 1;
    for (std::uint32_t t = s; t-- > 0;)
      if (all_[r].steps[t].channel == all_[r].steps[s].channel) return 2 * (first_step_[r] + t);
    return none;
  }

  [[nodiscard]] std::string describe_cycle() const {
    std::uint32_t e = 0;
    while (open_[e] == 0) ++e;
    std::vector<std::uint32_t> path;
    while (e != none && seq::find(path, e) == path.end()) {
      path.push_back(e);
      e = blocker(e);
    }
    path.erase(path.begin(), seq::find(path, e));
    std::string text = "the ranks wait for each other: ";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < std::min(path.size(), shown); ++i)
      text += name_step(path[i] / 2) + (path[i] % 2 == 0 ? " cannot start until " : " cannot end until ");
    if (path.size() > shown) text += "… (" + std::to_string(path.size() - shown) + " more waits) … ";
    return text + name_step(e / 2) + (e % 2 == 0 ? " has started" : " has ended") + ": a circle of " +
           std::to_string(path.size()) + " waits";
  }

  [[nodiscard]] result<void> races(bool in_place) {
    std::vector<std::vector<std::uint32_t>> starts(all_.size());
    for (const std::uint32_t e : sequence_)
      if (e % 2 == 0) starts[rank_of_[e / 2]].push_back(e / 2 - first_step_[rank_of_[e / 2]]);
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      local_order local(all_[r]);
      const auto ordered = [&](std::uint32_t a, std::uint32_t b) {
        return a != b && (local.before(a, b) || before(first_step_[r] + a, first_step_[r] + b));
      };
      if (auto fits = find_race(all_[r], starts[r], in_place, ordered); !fits) return fits;
    }
    return {};
  }

  /// The same with what messages imply: a receive ends after the step of its send has started. That a send ends after its
  /// receive has started is not used: a buffering transport does not wait.
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const {
    std::vector<std::uint32_t> todo{2 * b};
    std::vector<std::uint8_t> seen(2 * std::size_t{first_step_.back()}, 0);
    const auto visit = [&](std::uint32_t e) {
      if (seen[e] == 0) todo.push_back(e);
      seen[e] = 1;
    };
    while (!todo.empty()) {
      const std::uint32_t e = todo.back(), g = e / 2, r = rank_of_[g], s = g - first_step_[r];
      todo.pop_back();
      if (e % 2 == 1) {
        if (g == a) return true;
        visit(2 * g);
        each_message(r, s, [&](std::uint32_t o, std::uint32_t other) {
          if (all_[r].ops[o].kind != op_kind::send) visit(2 * other);
        });
        continue;
      }
      for (const std::uint32_t w : all_[r].steps[s].after) visit(2 * (first_step_[r] + w) + 1);
      for (std::uint32_t t = s; t-- > 0;)
        if (all_[r].steps[t].channel == all_[r].steps[s].channel) {
          visit(2 * (first_step_[r] + t));
          break;
        }
    }
    return false;
  }

  // ---- execution

  /// Which ranks' contributions a cell holds, and of which chunk. Set 0: nothing was written yet.
  struct content {
    std::uint32_t set = 0, chunk = 0;
  };

  [[nodiscard]] std::size_t cell(std::uint32_t r, buffer where, std::uint32_t c) const {
    const std::size_t at = first_cell_[r] + c;
    return where == buffer::input ? at : where == buffer::output ? at + output_at_ : at + output_at_ + all_[0].chunks;
  }

  [[nodiscard]] result<void> execute(bool in_place, std::uint64_t& operations) {
    in_place_ = in_place;
    output_at_ = in_place ? 0 : all_[0].chunks;
    first_cell_.assign(1, 0);
    for (const program& p : all_) first_cell_.push_back(first_cell_.back() + output_at_ + p.chunks + p.scratch_cells);
    memory_.assign(first_cell_.back(), {});
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t c = 0; c < all_[r].chunks; ++c)
        if (program_view(all_[r]).exists(buffer::input, c)) memory_[cell(r, buffer::input, c)] = {sets_.of(r), c};
    std::vector<std::uint8_t> done(first_op_.back(), 0);
    for (const std::uint32_t e : sequence_) {
      if (e % 2 == 0) continue;
      const std::uint32_t g = e / 2, r = rank_of_[g];
      const step& st = all_[r].steps[g - first_step_[r]];
      for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
        const std::uint32_t id = first_op_[r] + o, other = partner_[id];
        if (done[id] != 0) continue;
        done[id] = 1;
        if (other != none) done[other] = 1;
        operations += other != none ? 2 : 1;
        const std::uint32_t peer = all_[r].ops[o].peer.value;
        const bool sends = all_[r].ops[o].kind == op_kind::send;
        auto fits = other == none ? compute(r, o, r, o)
                    : sends       ? compute(r, o, peer, other - first_op_[peer])
                                  : compute(peer, other - first_op_[peer], r, o);
        if (!fits) return fits;
      }
    }
    return check_end();
  }

  /// Name of the first chunk of an operation.
  [[nodiscard]] static std::string first_chunk(const op& o) {
    return std::to_string(o.chunk) + (o.stride == 1 ? "" : ", every " + std::to_string(o.stride) + "th");
  }
  [[nodiscard]] std::uint32_t per_shard() const {
    return sharded(all_[0].collective) ? all_[0].chunks / all_[0].ranks : 1;
  }
  [[nodiscard]] std::string mode() const { return in_place_ ? " (in place)" : ""; }

  [[nodiscard]] result<content> read(std::uint32_t r, std::uint32_t o, const slice& s, std::uint32_t c) const {
    const op& x = all_[r].ops[o];
    const content found = memory_[cell(r, s.where, s.first + c)];
    if (found.set == 0)
      return fail(errc::bug, program_view(all_[r]).name_op(o) + mode() + " reads " +
                                 program_view::name(s.where, s.first + c) + " before anything is written there");
    // In an all_to_all chunks go to other shards: there the names of operations tell sizes only.
    const std::uint32_t named = x.chunk_at(c, all_[r].chunks);
    const bool fits = all_[r].collective == collective_kind::all_to_all
                          ? found.chunk % per_shard() == named % per_shard()
                          : found.chunk == named;
    if (!fits)
      return fail(errc::bug, program_view(all_[r]).name_op(o) + mode() + ": " +
                                 program_view::name(s.where, s.first + c) + " holds data of chunk " +
                                 std::to_string(found.chunk) + " where those of chunk " + std::to_string(named) +
                                 " are meant");
    return found;
  }

  /// Carries out one operation: a message (source and target differ) or a local one.
  [[nodiscard]] result<void> compute(std::uint32_t source, std::uint32_t source_op, std::uint32_t r, std::uint32_t o) {
    const op& out = all_[source].ops[source_op];
    const op& x = all_[r].ops[o];
    for (std::uint32_t c = 0; c < out.from.count; ++c) {
      auto value = read(source, source_op, out.from, c);
      if (!value) return value.error();
      if (x.kind == op_kind::receive_reduce || x.kind == op_kind::reduce) {
        const slice& own = x.kind == op_kind::reduce ? x.to : x.from;
        auto other = read(r, o, own, c);
        if (!other) return other.error();
        const std::uint32_t sum = sets_.join(value->set, other->set);
        if (sum == contribution_sets::overlap)
          return fail(errc::bug, program_view(all_[r]).name_op(o) + mode() + " counts the contribution of rank " +
                                     std::to_string(sets_.common(value->set, other->set)) + " to chunk " +
                                     std::to_string(x.chunk_at(c, all_[r].chunks)) + " twice");
        value->set = sum;
      }
      memory_[cell(r, x.to.where, x.to.first + c)] = *value;
    }
    return {};
  }

  [[nodiscard]] result<void> check_end() {
    const collective_kind kind = all_[0].collective;
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t c = 0; c < all_[r].chunks; ++c) {
        if (!program_view(all_[r]).exists(buffer::output, c)) continue;
        const content found = memory_[cell(r, buffer::output, c)];
        content wanted{0, c};
        switch (kind) {
          case collective_kind::all_gather:
          case collective_kind::gather: wanted.set = sets_.of(c / per_shard()); break;
          case collective_kind::scatter:
          case collective_kind::broadcast: wanted.set = sets_.of(all_[0].root.value); break;
          case collective_kind::all_to_all:
            wanted = {sets_.of(c / per_shard()), r * per_shard() + c % per_shard()};
            break;
          case collective_kind::all_reduce:
          case collective_kind::reduce_scatter:
          case collective_kind::reduce: wanted.set = sets_.is_full(found.set) ? found.set : 0; break;
        }
        if (found.set == wanted.set && found.chunk == wanted.chunk && found.set != 0) continue;
        std::string text =
            "rank " + std::to_string(r) + mode() + ": at the end " + program_view::name(buffer::output, c);
        if (found.set == 0)
          text += " was never written";
        else if (found.chunk != wanted.chunk)
          text += " holds data of chunk " + std::to_string(found.chunk);
        else if (reduces(kind))
          text += " lacks the contribution of rank " + std::to_string(missing(found.set)) + " (" +
                  std::to_string(sets_.size(found.set)) + " of " + std::to_string(all_.size()) + " are in)";
        else
          text += " holds what comes from rank " + std::to_string(member(found.set));
        return fail(errc::bug, text);
      }
    return {};
  }
  [[nodiscard]] std::uint32_t missing(std::uint32_t set) const {
    std::uint32_t r = 0;
    while (sets_.holds(set, r)) ++r;
    return r;
  }
  [[nodiscard]] std::uint32_t member(std::uint32_t set) const {
    std::uint32_t r = 0;
    while (!sets_.holds(set, r)) ++r;
    return r;
  }

  std::span<const program> all_;
  contribution_sets sets_;
  std::vector<std::uint32_t> first_step_, first_op_, partner_, partner_step_, rank_of_, open_, sequence_;
  std::vector<std::size_t> first_cell_;
  std::vector<content> memory_;
  std::uint64_t messages_ = 0;
  std::uint32_t output_at_ = 0;
  bool in_place_ = false;
};

}  // namespace detail

template <class>
result<proof> verify(std::span<const program> programs) {
  return detail::exact_check(programs).run();
}

}}}  // namespace topocoll::v0::plan
