// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives between ranks of one host, without messages: every rank announces its call, and what it brings, on its board;
// then each does its share of the work in memory that all see.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/board.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/host_call.hpp>
#include <topocoll/exec/detail/remote_reads.hpp>
#include <topocoll/exec/detail/shown_copy.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Runs the calls of one rank.
///
/// A call goes in one of four ways. Which one is the same on all ranks, because it depends on what they have in common:
/// - brief: inputs travel with the announcement, and every rank makes its own output: one hand-over;
/// - direct: all inputs and outputs lie where all ranks see them. Each rank combines its part of all inputs and writes it
///   into every output that needs it: two hand-overs, and every byte is read and written once;
/// - by reading: some memory is private, but the system lets ranks read it. Each rank reads what its output copies;
/// - staged: some memory is private, and outputs are sums, or copies are better made by two: inputs are copied, window by
///   window, into memory that all see.
/// Combinations are in the order of the ranks, whoever does them: the same bits in every way.
template <class = void>  // so that only who makes calls compiles them
class host_calls {
 public:
  host_calls(group_memory& memory, std::uint32_t rank, patience& how_to_wait)
      : memory_(memory),
        rank_(rank),
        ranks_(memory.shape().ranks),
        board_(memory, rank, how_to_wait),
        job_(rank, memory.shape().ranks),
        half_stage_(memory.shape().stage_bytes / 2),
        habits_(collective_count * size_classes) {}

  /// Runs a call whose buffers were checked.
  /// @return `mismatch` if ranks differ, found before data are used; otherwise the cause for which the group is broken
  [[nodiscard]] result<void> run(const host_call& c, seconds timeout) {
    job_.begin(c);
    if (ranks_ == 1) return alone();
    wait_state w = wait_state::for_span(timeout);
    const bool listed = !c.counts.empty();
    const std::uint64_t longest = job_.longest_input();
    const std::uint64_t size = job_.size_in(job_.input_of(rank_), rank_);
    const bool brief = longest <= brief_up_to(c.kind);
    const bool fits = longest <= in_cells_up_to(c.kind);
    const places p{place_in(job_.input_of(rank_), c.in), place_in(job_.output_of(rank_), c.out)};
    const bool shows = brief || (fits && is_hidden(p.in));
    board_cell* mine = board_.next_cell(
        w, call_mark(listed ? call_form::with_counts : call_form::collective, c.kind, c.type, c.op, c.root),
        listed ? mark_of(c.counts) : c.count);
    if (mine == nullptr) return board_.failed(w);
    if (shows) show_input(brief ? board_.input_of(rank_, size) : board_.body_of(rank_), size);
    if (!brief) std::memcpy(mine->head, &p, sizeof p);
    board_.announce(*mine, order_of(shows ? size : 0));
    const bool done = brief ? run_brief(w) : run_long(w, fits);
    return done ? board_.end(w) : board_.failed(w);
  }

  /// Returns when all ranks have announced it.
  [[nodiscard]] result<void> barrier(seconds timeout) {
    if (ranks_ == 1) return {};
    wait_state w = wait_state::for_span(timeout);
    if (!board_.announce_only(w, call_mark(call_form::barrier, {}, {}, {}, 0), 0) || !board_.all_announced(w))
      return board_.failed(w);
    board_.everybody_was_here();
    return board_.end(w);
  }

  /// Tells the others of a call that moves its data in another way, so that they notice if theirs is a different one. Does
  /// not wait for them. The call is over, as far as this board is concerned.
  [[nodiscard]] result<void> note(std::uint64_t what, std::uint64_t count, seconds timeout) {
    if (ranks_ == 1) return {};
    wait_state w = wait_state::for_span(timeout);
    if (!board_.announce_only(w, what, count)) return board_.failed(w);
    return board_.end(w);
  }

 private:
  // Where a rank has its buffers: in memory that all see, or the address in memory that only it sees.
  struct places {
    std::uint64_t in, out;
  };
  static constexpr std::uint64_t hidden = 1ULL << 63U;  // no address of a program has this bit
  static_assert(sizeof(places) <= board_cell::short_bytes);

  [[nodiscard]] static constexpr bool is_hidden(std::uint64_t place) { return (place & hidden) != 0; }
  // Inputs up to here are copied once more, and read by those that need them, in less time than a second hand-over takes:
  // measured with 2 ranks on a server core of Intel (2 MiB of L2). Where ranks need not wait for all others, a copy saves that
  // too. With more ranks than cores a hand-over costs every rank its turn: measured with 4 and 8 ranks on 2 such cores.
  [[nodiscard]] std::uint64_t brief_up_to(collective_kind k) const {
    if (ranks_ == 2) return reduces(k) ? 512 : 1024;
    const std::uint64_t cell = memory_.shape().cell_bytes;
    switch (k) {
      case collective_kind::all_reduce:
      case collective_kind::reduce: return std::clamp<std::uint64_t>((16U << 10U) / (ranks_ - 1), 512, cell);
      case collective_kind::all_gather:
      case collective_kind::gather: return 1024;
      default: return std::min<std::uint64_t>(8U << 10U, cell);
    }
  }

  // The same for private memory, where the other ways cost more.
  [[nodiscard]] std::uint64_t in_cells_up_to(collective_kind k) const {
    const std::uint64_t cell = memory_.shape().cell_bytes;
    if (reduces(k)) return std::max<std::uint64_t>(cell / (ranks_ - 1), brief_up_to(k));
    if (k == collective_kind::broadcast || k == collective_kind::scatter) return cell;
    return std::max<std::uint64_t>(cell / 4, brief_up_to(k));
  }
  [[nodiscard]] std::uint64_t place_in(region part, const std::byte* at) const {
    const std::uint64_t size = job_.size_in(part, rank_);
    return size == 0 ? 0 : memory_.place_of(at, size).value_or(hidden | reinterpret_cast<std::uintptr_t>(at));
  }

  /// Copies this rank's input to where others read it, but for the part that only this rank uses.
  void show_input(std::byte* to, std::uint64_t size) const {
    const host_call& c = job_.call();
    if (size == 0 || (c.kind != collective_kind::reduce_scatter && c.kind != collective_kind::all_to_all))
      return copy_to_show(to, c.in, size, fast_string_moves_);
    const std::uint64_t own = job_.start_of(rank_) * job_.width, after = own + job_.count_of(rank_) * job_.width;
    copy_to_show(to, c.in, own, fast_string_moves_);
    copy_to_show(to + after, c.in + after, size - after, fast_string_moves_);
  }
  // Who goes on to look at other boards does so only when its own announcement has left the core: looking too early takes
  // lines from ranks that are about to write them. With more than some lines of input, or without such a look, waiting costs
  // more than that: measured as above.
  [[nodiscard]] announcing order_of(std::uint64_t shown) const {
    const bool looks_on = job_.has_output(rank_) && !one_source(job_.call().kind);
    return looks_on && shown < 512 ? announcing::at_once : announcing::in_passing;
  }
  [[nodiscard]] static constexpr bool one_source(collective_kind k) {
    return k == collective_kind::broadcast || k == collective_kind::scatter;
  }

  // Brief calls.
  [[nodiscard]] bool run_brief(wait_state& w) {
    const host_call& c = job_.call();
    if (!job_.has_output(rank_)) return true;  // all that is to be done here was to announce
    if (one_source(c.kind)) {
      if (rank_ != c.root && !board_.announced(w, c.root)) return false;
    } else {
      if (!board_.all_announced(w)) return false;
      board_.everybody_was_here();
    }
    for (std::uint32_t r = 0; r < ranks_; ++r)
      job_.ins[r] = r == rank_ ? c.in : board_.input_of(r, job_.size_in(job_.input_of(r), r));
    make_own_output();
    return true;
  }
  /// From all inputs, where `ins` says that they are.
  void make_own_output() {
    const host_call& c = job_.call();
    const std::uint64_t width = job_.width;
    switch (c.kind) {
      case collective_kind::all_reduce:
      case collective_kind::reduce:
      case collective_kind::reduce_scatter: {
        const bool part = c.kind == collective_kind::reduce_scatter;
        job_.sources.clear();
        for (std::uint32_t r = 0; r < ranks_; ++r)
          job_.sources.push_back(job_.ins[r] + (part ? job_.start_of(rank_) * width : 0));
        job_.targets.assign(1, c.out);
        return job_.combine(part ? job_.count_of(rank_) : c.count, false);
      }
      case collective_kind::broadcast: return host_job<>::copy(c.out, job_.ins[c.root], job_.total() * width);
      case collective_kind::scatter:
        return host_job<>::copy(c.out, job_.ins[c.root] + job_.start_of(rank_) * width, job_.count_of(rank_) * width);
      case collective_kind::all_gather:
      case collective_kind::gather:
      case collective_kind::all_to_all:
        for (std::uint32_t r = 0; r < ranks_; ++r) {
          const std::uint64_t from = c.kind == collective_kind::all_to_all ? job_.start_of(rank_) * width : 0;
          host_job<>::copy(c.out + job_.start_of(r) * width, job_.ins[r] + from, job_.count_of(r) * width);
        }
        return;
    }
  }

  // Long calls. `in_cells`: inputs that are hidden also lie in the cells of their ranks.
  [[nodiscard]] bool run_long(wait_state& w, bool in_cells) {
    const host_call& c = job_.call();
    // A root that shows no more than fits into its cell needs nobody else, and nobody needs more than that.
    if (in_cells && one_source(c.kind)) {
      if (rank_ != c.root && !board_.announced(w, c.root)) return false;
      if (is_hidden(places_of(c.root).in)) {
        job_.ins[c.root] = rank_ == c.root ? c.in : board_.body_of(c.root);
        make_own_output();
        return true;
      }
    }
    if (!board_.all_announced(w)) return false;
    board_.everybody_was_here();
    bool all_see = true, none_sees = true, overwrites = false;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const places p = places_of(r);
      const bool hides_in = is_hidden(p.in), hides_out = is_hidden(p.out);
      all_see = all_see && !hides_in && !hides_out;
      overwrites = overwrites || (c.kind == collective_kind::all_reduce && !hides_in && p.in == p.out);
      none_sees = none_sees && (hides_in || job_.size_in(job_.input_of(r), r) == 0);
      job_.ins[r] = r == rank_ ? c.in : !hides_in ? memory_.at_place(p.in) : in_cells ? board_.body_of(r) : nullptr;
      job_.outs[r] = r == rank_ ? c.out : !hides_out ? memory_.at_place(p.out) : nullptr;
    }
    if (all_see) return begin_work() && work() && board_.meet(w);
    if (in_cells && !overwrites) {  // a sum in place would replace an input that others still read
      if (job_.has_output(rank_)) make_own_output();
      return none_sees || board_.meet(w);  // before an input that others see changes
    }
    bool reads = better_by_reading();
    if (reads && !know_who_reads(w)) return false;
    reads = reads && everybody_reads_;
    return by_habit(
        [&](bool past_caches) { return reads ? run_by_reading(w, past_caches) : run_staged(w, past_caches); });
  }
  [[nodiscard]] places places_of(std::uint32_t r) const {
    places p;
    std::memcpy(&p, board_.cell_of(r).head, sizeof p);
    return p;
  }
  [[nodiscard]] bool work() {
    const bool done = by_habit([this](bool past_caches) {
      job_.work(past_caches);
      return true;
    });
    memory_.counters(rank_).working.store(0, std::memory_order_seq_cst);
    return done;
  }
  template <class Part>
  [[nodiscard]] bool by_habit(const Part& part) {
    const std::uint64_t size = job_.longest_input();
    if (size < least_to_time) return part(false);
    habit& h = habits_[habit_of(job_.call().kind, size)];
    const bool past_caches = h.choose();
    const seconds start = steady_clock::now();
    if (!part(past_caches)) return false;
    h.learn(past_caches, steady_clock::now() - start);
    return true;
  }

  // Whether stores past the caches pay depends on caches that no system describes well, least of all a virtual machine: so
  // each size class of a collective tries both ways a few times, and from time to time again. The bits are the same.
  struct habit {
    static constexpr std::uint32_t tries = 6;
    static constexpr std::uint32_t again_after = 256;
    std::uint32_t calls = 0;
    seconds best[2] = {{1e9}, {1e9}};  // plain, past the caches

    [[nodiscard]] bool choose() {
      if (calls == again_after) *this = {};
      ++calls;
      return calls <= tries ? calls % 2 == 0 : best[1] < best[0];
    }
    void learn(bool past_caches, seconds took) {
      best[past_caches ? 1 : 0] = std::min(best[past_caches ? 1 : 0], took);
    }
  };
  static constexpr std::uint64_t least_to_time = 256U << 10U;  // below, everything stays in the caches
  static constexpr std::size_t size_classes = 48;
  [[nodiscard]] static std::size_t habit_of(collective_kind k, std::uint64_t size) {
    const auto cls = static_cast<std::size_t>(64 - __builtin_clzll(size / least_to_time));
    return static_cast<std::size_t>(k) * size_classes + std::min(cls, size_classes - 1);
  }

  // Threads read and write what belongs to the callers of other ranks: who fails must not return before they have ended.
  [[nodiscard]] bool begin_work() {
    memory_.counters(rank_).working.store(1, std::memory_order_seq_cst);
    if (!memory_.broken()) return true;
    memory_.counters(rank_).working.store(0, std::memory_order_seq_cst);
    return false;
  }

  // Calls by reading.
  [[nodiscard]] bool know_who_reads(wait_state& w) {
    if (asked_who_reads_) return true;
    auto& answer = memory_.counters(rank_).reads_all;
    answer.store(can_read_all(memory_, rank_) ? 1 : 0, std::memory_order_release);
    if (!board_.meet(w)) return false;
    everybody_reads_ = true;
    for (std::uint32_t r = 0; r < ranks_; ++r)
      everybody_reads_ = everybody_reads_ && memory_.counters(r).reads_all.load(std::memory_order_acquire) == 1;
    asked_who_reads_ = true;
    return true;
  }
  /// Copies what rank r has at `at` elements of its input; the system reads private memory in its own way.
  [[nodiscard]] bool fetch(std::uint32_t r, std::uint64_t at, std::byte* into, std::uint64_t count, bool past_caches) {
    const std::uint64_t size = count * job_.width, offset = at * job_.width;
    if (size == 0) return true;
    if (job_.ins[r] != nullptr) return deliver(into, job_.ins[r] + offset, size, past_caches), true;
    if (read_from(memory_, r, into, (places_of(r).in & ~hidden) + offset, size)) return true;
    const int why = errno;
    memory_.break_group(why == ESRCH ? errc::peer_lost : errc::system,
                        "rank " + std::to_string(rank_) + " could not read " + std::to_string(size) + " bytes of " +
                            memory_.name_of(r) + ": " + std::strerror(why),
                        why == ESRCH ? "look at that rank's own output"
                                     : "use memory from communicator::allocate, which needs no such reads");
    return false;
  }
  /// Into an output.
  void deliver(std::byte* to, const std::byte* from, std::uint64_t size, bool past_caches) {
    if (to == from) return;
    job_.targets.assign(1, to);
    job_.spread(from, size, past_caches);
  }
  [[nodiscard]] bool run_by_reading(wait_state& w, bool past_caches) {
    return read_from_others(past_caches) && board_.meet(w);
  }
  [[nodiscard]] bool read_from_others(bool past_caches) {
    const host_call& c = job_.call();
    const std::uint64_t width = job_.width;
    switch (c.kind) {
      case collective_kind::broadcast: return fetch(c.root, 0, c.out, c.count, past_caches);
      case collective_kind::scatter:
        return fetch(c.root, job_.start_of(rank_), c.out, job_.count_of(rank_), past_caches);
      default:  // all_gather, gather, all_to_all
        for (std::uint32_t d = 0; d < ranks_ && job_.has_output(rank_); ++d) {
          const std::uint32_t r = (rank_ + d) % ranks_;
          const std::uint64_t from = c.kind == collective_kind::all_to_all ? job_.start_of(rank_) : 0;
          if (!fetch(r, from, c.out + job_.start_of(r) * width, job_.count_of(r), past_caches)) return false;
        }
        return true;
    }
  }
  /// Whether one copy by the system takes less time than two by the ranks. What one rank shows to several, it copies once
  /// into the stage, from where they take it faster than the system reads for each of them; a message of the system costs
  /// some us, however short. Measured with 2, 3, 4 and 8 ranks as above.
  [[nodiscard]] bool better_by_reading() const {
    constexpr std::uint64_t least_part = 128U << 10U, most_broadcast = 1U << 20U;
    switch (job_.call().kind) {
      case collective_kind::all_gather:
      case collective_kind::gather: return ranks_ == 2;
      case collective_kind::all_to_all:
      case collective_kind::scatter: return ranks_ == 2 || job_.call().count * job_.width >= least_part;
      case collective_kind::broadcast: return ranks_ == 2 && job_.longest_input() <= most_broadcast;
      default: return false;
    }
  }

  // Staged calls. Each rank has two halves of a stage. Copies into one half go on while others still read the other; a rank
  // comes to a meeting only after it has read what was shown at the one before it.
  [[nodiscard]] std::byte* half(std::uint32_t r, std::uint64_t number) const {
    return memory_.stage(r) + (number % 2) * half_stage_;
  }
  // Measured as above: less is slower for calls of any size, 512 KiB mostly too.
  static constexpr std::uint64_t best_window = 128U << 10U;
  [[nodiscard]] std::uint64_t elements_in(std::uint64_t size, std::uint64_t parts) const {
    return std::max<std::uint64_t>(size / job_.width / parts / 64 * 64, 1);
  }
  [[nodiscard]] bool run_staged(wait_state& w, bool past_caches) {
    const bool summed = job_.call().kind == collective_kind::all_reduce || job_.call().kind == collective_kind::reduce;
    const bool one_part = summed || job_.call().kind == collective_kind::broadcast ||
                          job_.call().kind == collective_kind::all_gather ||
                          job_.call().kind == collective_kind::gather;
    const std::uint64_t window = elements_in(std::min(half_stage_, best_window), one_part ? 1 : ranks_);
    std::uint64_t number = 0;
    for (std::uint64_t at = 0; at < job_.call().count; at += window, ++number) {
      if (summed ? !sum_window(w, clipped(job_.call().count, at, window), past_caches)
                 : !pass_window(w, at, window, number, past_caches))
        return false;
    }
    return true;
  }
  /// One window of an all-reduce or reduce: parts for others into the stage, the sum of one's own part into the other half
  /// of it, and from there to whom it concerns.
  [[nodiscard]] bool sum_window(wait_state& w, stretch piece, bool past_caches) {
    const std::uint64_t width = job_.width;
    const host_call& c = job_.call();
    const auto part = [&](std::uint32_t r) { return part_of(piece.count, r, ranks_, width); };
    for (std::uint32_t d = 1; d < ranks_; ++d) {
      const stretch s = part((rank_ + d) % ranks_);
      host_job<>::copy(half(rank_, 0) + s.from * width, c.in + (piece.from + s.from) * width, s.count * width);
    }
    if (!board_.meet(w)) return false;
    const stretch own = part(rank_);
    job_.sources.clear();
    for (std::uint32_t r = 0; r < ranks_; ++r)
      job_.sources.push_back(r == rank_ ? c.in + (piece.from + own.from) * width : half(r, 0) + own.from * width);
    job_.targets.clear();
    if (job_.has_output(rank_)) job_.targets.push_back(c.out + (piece.from + own.from) * width);
    if (c.kind == collective_kind::all_reduce || rank_ != c.root) job_.targets.push_back(half(rank_, 1));
    job_.combine(own.count, false);
    if (!board_.meet(w)) return false;
    if (!job_.has_output(rank_)) return true;
    for (std::uint32_t d = 1; d < ranks_; ++d) {
      const std::uint32_t r = (rank_ + d) % ranks_;
      const stretch s = part(r);
      deliver(c.out + (piece.from + s.from) * width, half(r, 1), s.count * width, past_caches);
    }
    return true;
  }
  /// One window of the others: what others need into the stage, then out of theirs.
  [[nodiscard]] bool pass_window(wait_state& w, std::uint64_t at, std::uint64_t window, std::uint64_t number,
                                 bool past_caches) {
    const std::uint64_t width = job_.width;
    const host_call& c = job_.call();
    std::byte* const mine = half(rank_, number);
    const auto piece = [&](std::uint32_t r) { return clipped(job_.count_of(r), at, window); };
    // Of an empty shard there may be no buffer to point into.
    const auto here = [&](auto* buffer) { return buffer == nullptr ? buffer : buffer + at * width; };
    const auto in_array = [&](std::uint32_t r) { return (job_.start_of(r) + at) * width; };
    switch (c.kind) {
      case collective_kind::broadcast:
        if (rank_ == c.root) host_job<>::copy(mine, here(c.in), piece(0).count * width);
        break;
      case collective_kind::all_gather:
      case collective_kind::gather: host_job<>::copy(mine, here(c.in), piece(rank_).count * width); break;
      default:  // a part for every rank
        if (c.kind == collective_kind::scatter && rank_ != c.root) break;
        for (std::uint32_t d = 1; d < ranks_; ++d) {
          const std::uint32_t r = (rank_ + d) % ranks_;
          host_job<>::copy(mine + r * window * width, c.in + in_array(r), piece(r).count * width);
        }
        break;
    }
    if (!board_.meet(w)) return false;
    if (!job_.has_output(rank_)) return true;
    const std::uint64_t own = rank_ * window * width;
    switch (c.kind) {
      case collective_kind::broadcast:
        deliver(here(c.out), rank_ == c.root ? here(c.in) : half(c.root, number), piece(0).count * width, past_caches);
        break;
      case collective_kind::scatter:
        deliver(here(c.out), rank_ == c.root ? c.in + in_array(rank_) : half(c.root, number) + own,
                piece(rank_).count * width, past_caches);
        break;
      case collective_kind::reduce_scatter:
        job_.sources.clear();
        for (std::uint32_t r = 0; r < ranks_; ++r)
          job_.sources.push_back(r == rank_ ? c.in + in_array(rank_) : half(r, number) + own);
        job_.targets.assign(1, here(c.out));
        job_.combine(piece(rank_).count, past_caches);
        break;
      case collective_kind::all_to_all:
        for (std::uint32_t d = 0; d < ranks_; ++d) {
          const std::uint32_t r = (rank_ + d) % ranks_;
          deliver(c.out + in_array(r), r == rank_ ? c.in + in_array(r) : half(r, number) + own, piece(r).count * width,
                  past_caches);
        }
        break;
      default:  // all_gather, gather
        for (std::uint32_t d = 0; d < ranks_; ++d) {
          const std::uint32_t r = (rank_ + d) % ranks_;
          deliver(c.out + in_array(r), r == rank_ ? here(c.in) : half(r, number), piece(r).count * width, past_caches);
        }
        break;
    }
    return true;
  }

  [[nodiscard]] result<void> alone() {
    const host_call& c = job_.call();
    if (job_.has_output(0)) host_job<>::copy(c.out, c.in, job_.total() * job_.width);
    return {};
  }

  group_memory& memory_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  board<> board_;
  host_job<> job_;
  std::uint64_t half_stage_;
  std::vector<habit> habits_;  // by collective and size class
  bool fast_string_moves_ = has_fast_string_moves();
  bool asked_who_reads_ = false;
  bool everybody_reads_ = false;
};

}}}  // namespace topocoll::v0::detail
