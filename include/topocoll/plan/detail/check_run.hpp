// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checker of programs: shape, messages, deadlock with bounded credits, races, and the result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/check.hpp>
#include <topocoll/plan/detail/check_order.hpp>
#include <topocoll/plan/detail/check_parts.hpp>
#include <topocoll/plan/detail/check_shape.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
class program_check {
 public:
  program_check(std::span<const program> programs, const check_options& options, check_log& log)
      : all_(programs), options_(options), log_(log) {}

  /// False when the programs are not even of one shape, so that nothing else can be looked at.
  bool run() {
    if (!check_shapes<>(all_, log_).run()) return false;
    check_report& r = log_.report;
    r.ranks = static_cast<std::uint32_t>(all_.size());
    for (const program& p : all_) r.steps += p.steps.size();
    check_order<> order(all_, log_);
    if (!order.match()) return true;
    r.messages = order.messages();
    if (!deadlock(order)) return true;
    for (const bool in_place : {false, true}) {
      const std::size_t before = r.failures.size();
      races(order, in_place);
      if (r.failures.size() == before) execute(order, in_place);
    }
    return true;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  // ---- deadlock

  bool deadlock(check_order<>& order) {
    check_report& r = log_.report;
    const std::uint32_t enough = std::max(order.longest_lane(), 1U);
    if (order.sort(options_.credits)) {
      r.credits_needed = options_.credits;
      // More credits never hurt, so the least number is found by halving.
      std::uint32_t low = 0, high = options_.credits;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (order.sort(middle))
          high = middle;
        else
          low = middle + 1;
      }
      r.credits_needed = low;
      return order.sort(options_.credits);
    }
    std::string circle = order.circle();
    if (order.sort(enough)) {
      std::uint32_t low = options_.credits + 1, high = enough;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (order.sort(middle))
          high = middle;
        else
          low = middle + 1;
      }
      r.credits_needed = low;
      circle += "; with " + std::to_string(low) + " credits per channel it would end";
    } else {
      circle += "; no number of credits helps";
    }
    log_.add(check_kind::deadlock, "with " + std::to_string(options_.credits) + " credits " + circle);
    return false;
  }

  // ---- places

  /// Cells of a rank: input, output, scratch. In place, input is a part of output.
  struct places {
    std::uint32_t output, scratch, count;
    places(const program& p, bool in_place)
        : output(in_place ? 0 : p.chunks), scratch(output + p.chunks), count(scratch + p.scratch_cells) {}
    [[nodiscard]] std::uint32_t at(buffer where, std::uint32_t cell) const {
      return cell + (where == buffer::input ? 0 : where == buffer::output ? output : scratch);
    }
  };
  [[nodiscard]] static bool nothing_to_do(const places& at, const op& o) {
    return o.kind == op_kind::copy && at.at(o.from.where, o.from.first) == at.at(o.to.where, o.to.first);
  }
  [[nodiscard]] static std::string mode(bool in_place) { return in_place ? " (in place)" : ""; }

  // ---- races

  /// For every cell the last write and the reads since: what comes later must be ordered after them.
  void races(check_order<>& order, bool in_place) {
    struct access {
      std::uint32_t step, op, older;
    };
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      const program& p = all_[r];
      const places at(p, in_place);
      std::vector<access> log;
      std::vector<std::uint32_t> write(at.count, none), reads(at.count, none);
      bool told = false;
      const auto meet = [&](std::uint32_t earlier, std::uint32_t s, std::uint32_t o, buffer where, std::uint32_t cell) {
        if (told || earlier == none || log[earlier].op == o) return;
        const access& a = log[earlier];
        if (a.step != s && order.ended_before(r, a.step, s)) return;
        told = true;
        log_.add(check_kind::race, check_reader{p}.op_name(s, o) + ", and operation " + std::to_string(a.op) +
                                       " of step " + std::to_string(a.step) + " may use " +
                                       check_reader::cell_name(where, cell) + mode(in_place) +
                                       " at the same time, and one of them writes there");
      };
      for (const std::uint32_t s : order.starts(r)) {
        const step& st = p.steps[s];
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
          const op& x = p.ops[o];
          if (nothing_to_do(at, x)) continue;
          if (check_reader::reads(x))
            for (std::uint32_t c = 0; c < x.from.count; ++c) {
              const std::uint32_t cell = at.at(x.from.where, x.from.first + c);
              meet(write[cell], s, o, x.from.where, x.from.first + c);
              log.push_back({s, o, reads[cell]});
              reads[cell] = static_cast<std::uint32_t>(log.size() - 1);
            }
          if (check_reader::writes(x))
            for (std::uint32_t c = 0; c < x.to.count; ++c) {
              const std::uint32_t cell = at.at(x.to.where, x.to.first + c);
              meet(write[cell], s, o, x.to.where, x.to.first + c);
              for (std::uint32_t i = reads[cell]; i != none; i = log[i].older)
                meet(i, s, o, x.to.where, x.to.first + c);
              reads[cell] = none;
              log.push_back({s, o, none});
              write[cell] = static_cast<std::uint32_t>(log.size() - 1);
            }
          if (told) break;
        }
        if (told) break;
      }
    }
  }

  // ---- values

  /// Contributions of these ranks to this chunk. No rank at all: nothing was written.
  struct value {
    std::uint32_t set = rank_sets::empty, chunk = 0;
  };

  void execute(check_order<>& order, bool in_place) {
    memory_.assign(all_.size(), {});
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      const program& p = all_[r];
      memory_[r].assign(places(p, in_place).count, {});
      for (std::uint32_t c = 0; c < p.chunks; ++c)
        if (check_reader{p}.has_input(c)) memory_[r][c] = {sets_.single(r), c};
    }
    in_flight_.assign(order.messages(), {});
    wrong_ = false;
    for (const auto& e : order.events()) {
      const program& p = all_[e.rank];
      switch (e.what) {
        case check_event::start: {
          const step& st = p.steps[e.step];
          for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count && !wrong_; ++o)
            if (p.ops[o].kind == op_kind::copy || p.ops[o].kind == op_kind::reduce) local(e.rank, e.step, o, in_place);
          break;
        }
        case check_event::sent:
          in_flight_[e.message] = load(e.rank, e.step, e.op, p.ops[e.op].from, in_place);
          ++log_.report.operations;
          break;
        case check_event::received:
          store(e.rank, e.step, e.op, in_flight_[e.message], in_place);
          in_flight_[e.message] = {};
          ++log_.report.operations;
          break;
        case check_event::end: break;
      }
      if (wrong_) return;
    }
    finish(in_place);
  }
  void local(std::uint32_t r, std::uint32_t s, std::uint32_t o, bool in_place) {
    const op& x = all_[r].ops[o];
    ++log_.report.operations;
    if (nothing_to_do(places(all_[r], in_place), x)) return;
    std::vector<value> data = load(r, s, o, x.from, in_place);
    if (!wrong_) store(r, s, o, std::move(data), in_place);
  }
  void say(std::uint32_t r, std::uint32_t s, std::uint32_t o, bool in_place, const std::string& what) {
    wrong_ = true;
    log_.add(check_kind::value, check_reader{all_[r]}.op_name(s, o) + mode(in_place) + ": " + what);
  }
  /// Whether data of a chunk can be what an operation is about. In an all_to_all chunks go to other shards: what counts
  /// is that they are as large, and `finish` sees where they end up.
  [[nodiscard]] static bool fits(const program& p, std::uint32_t found, std::uint32_t named) {
    if (p.collective != collective_kind::all_to_all) return found == named;
    const std::uint32_t shard = check_reader{p}.shard();
    return found % shard == named % shard;
  }
  [[nodiscard]] std::vector<value> load(std::uint32_t r, std::uint32_t s, std::uint32_t o, const slice& from,
                                        bool in_place) {
    const places at(all_[r], in_place);
    std::vector<value> data(from.count);
    for (std::uint32_t c = 0; c < from.count && !wrong_; ++c) {
      data[c] = memory_[r][at.at(from.where, from.first + c)];
      const std::string cell = check_reader::cell_name(from.where, from.first + c);
      if (data[c].set == rank_sets::empty)
        say(r, s, o, in_place, "nobody has written " + cell + ", which it reads");
      else if (!fits(all_[r], data[c].chunk, check_reader{all_[r]}.chunk_of(all_[r].ops[o], c)))
        say(r, s, o, in_place,
            "it takes " + cell + " for chunk " + std::to_string(check_reader{all_[r]}.chunk_of(all_[r].ops[o], c)) +
                ", but there lies chunk " + std::to_string(data[c].chunk));
    }
    return data;
  }
  void store(std::uint32_t r, std::uint32_t s, std::uint32_t o, std::vector<value> data, bool in_place) {
    const op& x = all_[r].ops[o];
    const places at(all_[r], in_place);
    const bool adds = x.kind == op_kind::receive_reduce || x.kind == op_kind::reduce;
    if (adds) {
      const slice& with = x.kind == op_kind::reduce ? x.to : x.from;
      const std::vector<value> own = load(r, s, o, with, in_place);
      for (std::uint32_t c = 0; c < x.to.count && !wrong_; ++c) {
        if (own[c].chunk != data[c].chunk)
          say(r, s, o, in_place,
              "it adds chunk " + std::to_string(data[c].chunk) + " to chunk " + std::to_string(own[c].chunk));
        const rank_sets::sum both = sets_.unite(own[c].set, data[c].set);
        if (both.twice != rank_sets::nobody)
          say(r, s, o, in_place,
              "what rank " + std::to_string(both.twice) + " contributes to chunk " +
                  std::to_string(check_reader{all_[r]}.chunk_of(x, c)) + " is counted twice");
        data[c].set = both.set;
      }
    }
    for (std::uint32_t c = 0; c < x.to.count && !wrong_; ++c) memory_[r][at.at(x.to.where, x.to.first + c)] = data[c];
  }

  void finish(bool in_place) {
    const std::uint32_t everyone = sets_.range(0, static_cast<std::uint32_t>(all_.size()));
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      const program& p = all_[r];
      const check_reader me{p};
      const places at(p, in_place);
      for (std::uint32_t c = 0; c < p.chunks; ++c) {
        if (!me.has_output(c)) continue;
        const value found = memory_[r][at.at(buffer::output, c)];
        value wanted{everyone, c};
        if (p.collective == collective_kind::all_gather || p.collective == collective_kind::gather)
          wanted.set = sets_.single(c / me.shard());
        if (p.collective == collective_kind::broadcast || p.collective == collective_kind::scatter)
          wanted.set = sets_.single(p.root.value);
        if (p.collective == collective_kind::all_to_all)
          wanted = {sets_.single(c / me.shard()), r * me.shard() + c % me.shard()};
        if (found.set == wanted.set && found.chunk == wanted.chunk) continue;
        std::string text = "at the end rank " + std::to_string(r) + mode(in_place);
        if (found.set == rank_sets::empty)
          text += " has nothing in " + check_reader::cell_name(buffer::output, c);
        else if (found.chunk != wanted.chunk)
          text += " has chunk " + std::to_string(found.chunk) + " where chunk " + std::to_string(wanted.chunk) +
                  " of rank " + std::to_string(sets_.first(wanted.set)) + " should be";
        else if (wanted.set == everyone)
          text += " lacks what rank " + std::to_string(sets_.first_missing(found.set)) + " contributes to chunk " +
                  std::to_string(c) + ": " + std::to_string(sets_.size(found.set)) + " of " +
                  std::to_string(all_.size()) + " are in";
        else
          text += " has in chunk " + std::to_string(c) + " what comes from rank " +
                  std::to_string(sets_.first(found.set)) + ", not rank " + std::to_string(sets_.first(wanted.set));
        log_.add(check_kind::value, text);
        return;
      }
    }
  }

  std::span<const program> all_;
  const check_options& options_;
  check_log& log_;
  rank_sets sets_;
  std::vector<std::vector<value>> memory_, in_flight_;
  bool wrong_ = false;
};

}  // namespace detail

template <class>
check_report check(std::span<const program> programs, const check_options& options) {
  check_report report;
  detail::check_log log{report, options.most_failures};
  detail::program_check<>(programs, options, log).run();
  return report;
}

template <class>
check_report check(std::span<const program> programs, const topo::graph& graph, std::span<const node_id> ranks,
                   const certificate& claims, std::span<const bytes_per_second> rates, const check_options& options) {
  check_report report;
  detail::check_log log{report, options.most_failures};
  if (detail::program_check<>(programs, options, log).run())
    detail::claim_check<>(programs, graph, ranks, claims, rates, log).run();
  return report;
}

}}}  // namespace topocoll::v0::plan
