// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions by messages whose operands are combined in the order of the ranks: what `communicator_options::deterministic`
// asks for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/detail/host_call.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Stands for the digest of a plan where ranks compare how they run a reduction. Ranks that cut it differently differ.
[[nodiscard]] constexpr std::uint64_t order_mark(const communicator_options& o) {
  return mixed(mixed(o.window.value + 0x6f72646572ULL) + o.in_flight) | 1U;  // never that of no plan, 0
}

/// Which elements of the arrays a rank combines in which window. The same on all ranks.
///
/// Arrays that are sent whole have one window, and every rank with an output combines all of it. Of longer ones each rank
/// combines a part of each window, or its own shard.
template <class = void>
class ordered_cut {
 public:
  /// @param job     a reduction among two ranks at least, of one element at least; borrowed
  /// @param window  as `communicator_options::window`
  ordered_cut(const host_job<>& job, bytes window) : job_(job), shards_(plan::sharded(job.call().kind)) {
    const std::uint64_t count = job.call().count, room = window.value / job.width;
    whole_ = !shards_ && count <= most_bytes_at_once / job.width / job.n;
    window_ = count;
    // Not more than a window even for the rank that has the longest shard, of which it gets a piece from everybody.
    if (!whole_ && window.value != 0) window_ = std::max<std::uint64_t>(1, shards_ ? room / job.n : room);
    window_ = std::min(window_, count);
  }

  [[nodiscard]] std::uint64_t windows() const { return (job_.call().count - 1) / window_ + 1; }
  /// Whether the results of a window are still to be passed on.
  [[nodiscard]] bool passes_on() const { return !shards_ && !whole_; }
  /// What a rank combines, in elements of the input.
  [[nodiscard]] stretch part(std::uint32_t r, std::uint64_t window) const {
    if (whole_) return {0, job_.has_output(r) ? job_.call().count : 0};
    const std::uint64_t at = window * window_;
    const stretch piece = clipped(shards_ ? job_.count_of(r) : job_.call().count, at, window_);
    if (shards_) return {job_.start_of(r) + piece.from, piece.count};
    const stretch own = part_of(piece.count, r, job_.n, job_.width);
    return {piece.from + own.from, own.count};
  }
  /// Bytes of the longest part, up to the end of a cache line.
  [[nodiscard]] std::uint64_t longest_part() const {
    const std::uint64_t most = passes_on() ? part_of(window_, 0, job_.n, job_.width).count : window_;
    return (most * job_.width + 63) / 64 * 64;
  }

 private:
  // What a rank gets of arrays that are sent whole: as much as by the one-shot plans that `choose_flat` takes, 4 KiB from
  // each of 8 ranks.
  static constexpr std::uint64_t most_bytes_at_once = 32U << 10U;

  const host_job<>& job_;
  bool shards_;
  bool whole_ = false;
  std::uint64_t window_ = 1;
};

/// Runs such reductions of one rank. What it needs besides the scratch memory of the executor is made once and kept.
///
/// In each window every rank gets from every other the part that it is to combine, combines all parts at once, and passes
/// the result on to whom it concerns: two hand-overs, the traffic of a direct all-reduce. Windows under way at the same
/// time have channels of their own. Scratch: as much as the windows under way, all together.
template <class = void>
class ordered_calls {
 public:
  /// Whether `M` can combine many operands of this kind with one rounding, as the ranks of one host do.
  template <MemorySpace M>
  [[nodiscard]] static result<void> check(dtype type, reduce_op op) {
    const bool rounds = !is_integer(type) && size_of(type).value < 4 && op != reduce_op::min && op != reduce_op::max;
    if (!rounds || std::is_same_v<M, host_memory>) return {};
    return fail(errc::unsupported,
                std::string(to_string(op)) + " of " + std::string(to_string(type)) +
                    " cannot be deterministic in a memory space that rounds after each operand",
                "use host_memory, elements of 32 bits or more, or no communicator_options::deterministic");
  }

  /// @param what  a reduction of one element at least, whose buffers, operation and type were checked
  /// @return what the transport or the memory reports, with the call added; the group is broken then
  template <MemorySpace M, Transport T>
  [[nodiscard]] result<void> run(executor<M>& owner, T& transport, const host_call& what, std::uint32_t number,
                                 const communicator_options& options, deadline until) {
    if (!job_) job_.emplace(transport.rank().value, transport.size());
    host_job<>& job = *job_;
    job.begin(what);
    M& memory = owner.memory();
    if (job.n == 1) return memory.copy(what.out, what.in, bytes{job.total() * job.width});
    const ordered_cut<> cut(job, options.window);
    const auto places = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({std::max(1U, options.in_flight), transport.channels(), cut.windows()}));
    const std::uint64_t slot = cut.longest_part();
    auto scratch = owner.scratch_of(std::uint64_t{places} * job.n * slot);
    if (!scratch) {
      transport.abort(scratch.error().what);
      return std::move(scratch).error();
    }
    tag_ = make_tag({number, call_identity::step::data, what.kind, what.type, what.op, what.root,
                     what.counts.empty() ? what.count : mark_of(what.counts), order_mark(options)});
    places_.clear();
    tickets_.clear();
    waiting_.clear();
    for (std::uint32_t p = 0; p < places; ++p)
      places_.push_back({*scratch + std::uint64_t{p} * job.n * slot, slot, p, p, phase::send});
    for (std::uint32_t p = 0; p < places; ++p)
      if (auto ok = go_on(memory, transport, cut, places_[p]); !ok) return located(std::move(ok).error(), p, number);
    while (!tickets_.empty()) {
      auto done = transport.wait_any(tickets_, until);
      if (!done) return located(std::move(done).error(), waiting_.front(), number);
      const std::uint32_t p = waiting_[*done];
      tickets_[*done] = tickets_.back();
      waiting_[*done] = waiting_.back();
      tickets_.pop_back();
      waiting_.pop_back();
      if (auto ok = go_on(memory, transport, cut, places_[p]); !ok) return located(std::move(ok).error(), p, number);
    }
    return {};
  }

 private:
  enum class phase : std::uint8_t { send, combine, end };
  /// Windows place, place + places, … one after the other, on one channel: so all ranks post in the same order there.
  struct place {
    std::byte* scratch;  // one slot for each rank
    std::uint64_t slot;  // bytes
    std::uint64_t window;
    std::uint32_t channel;
    phase next;

    [[nodiscard]] std::byte* of(std::uint32_t r) const { return scratch + r * slot; }
  };

  /// Does what comes next in a place until it has to wait, or has had its last window.
  template <MemorySpace M, Transport T>
  [[nodiscard]] result<void> go_on(M& memory, T& transport, const ordered_cut<>& cut, place& at) {
    for (;;) {
      out_.clear();
      in_.clear();
      if (at.next == phase::send) {
        send_parts(cut, at);
        at.next = phase::combine;
      } else if (at.next == phase::combine) {
        std::byte* const into = target(cut, at);
        if (auto ok = combine_parts(memory, cut, at, into); !ok) {
          transport.abort(ok.error().what);
          return ok;
        }
        if (cut.passes_on()) pass_on(cut, at, into);
        at.next = phase::end;
      } else {
        at.window += places_.size();
        if (at.window >= cut.windows()) return {};
        at.next = phase::send;
        continue;
      }
      if (out_.empty() && in_.empty()) continue;
      auto posted = transport.post(out_, in_);
      if (!posted) return std::move(posted).error();
      tickets_.push_back(*posted);
      waiting_.push_back(at.channel);
      return {};
    }
  }
  void send_parts(const ordered_cut<>& cut, const place& at) {
    const host_job<>& job = *job_;
    const std::uint64_t own = cut.part(job.me, at.window).count * job.width;
    for (std::uint32_t d = 1; d < job.n; ++d) {  // everybody begins with another peer
      const std::uint32_t there = (job.me + d) % job.n, here = (job.me + job.n - d) % job.n;
      const stretch s = cut.part(there, at.window);
      if (s.count != 0) add_outgoing(at, there, job.call().in + s.from * job.width, s.count * job.width);
      if (own != 0) add_incoming(at, here, at.of(here), own);
    }
  }
  /// Results go into the output; where there is none, into scratch, on their way to the root.
  [[nodiscard]] std::byte* target(const ordered_cut<>& cut, const place& at) const {
    const host_job<>& job = *job_;
    const stretch own = cut.part(job.me, at.window);
    if (own.count == 0) return nullptr;  // of an empty shard there may be no buffer to point into
    if (!job.has_output(job.me)) return at.of(job.me);
    return job.call().out + (own.from - (plan::sharded(job.call().kind) ? job.start_of(job.me) : 0)) * job.width;
  }
  template <MemorySpace M>
  [[nodiscard]] result<void> combine_parts(M& memory, const ordered_cut<>& cut, const place& at, std::byte* into) {
    host_job<>& job = *job_;
    const stretch own = cut.part(job.me, at.window);
    if (own.count == 0) return {};
    job.sources.clear();
    for (std::uint32_t r = 0; r < job.n; ++r)
      job.sources.push_back(r == job.me ? job.call().in + own.from * job.width : at.of(r));
    if constexpr (std::is_same_v<M, host_memory>) {
      (void)memory;
      job.targets.assign(1, into);
      job.combine(own.count, false);
      return {};
    } else {
      // Until the last operand, sums stay where no operand is overwritten that is still to come.
      std::byte* const sum = job.me == 0 ? into : at.of(0);
      for (std::uint32_t r = 1; r < job.n; ++r) {
        auto ok = memory.reduce(job.call().type, job.call().op, r + 1 == job.n ? into : sum,
                                r == 1 ? job.sources[0] : sum, job.sources[r], own.count);
        if (!ok) return ok;
      }
      return job.call().op == reduce_op::avg ? memory.divide(job.call().type, into, own.count, job.n) : result<void>{};
    }
  }
  void pass_on(const ordered_cut<>& cut, const place& at, const std::byte* from) {
    const host_job<>& job = *job_;
    const std::uint64_t own = cut.part(job.me, at.window).count * job.width;
    for (std::uint32_t d = 1; d < job.n; ++d) {
      const std::uint32_t there = (job.me + d) % job.n, here = (job.me + job.n - d) % job.n;
      if (own != 0 && job.has_output(there)) add_outgoing(at, there, from, own);
      const stretch s = cut.part(here, at.window);
      if (s.count != 0 && job.has_output(job.me))
        add_incoming(at, here, job.call().out + s.from * job.width, s.count * job.width);
    }
  }
  void add_outgoing(const place& at, std::uint32_t to, const std::byte* data, std::uint64_t size) {
    out_.push_back({{to}, at.channel, tag_, {data, static_cast<std::size_t>(size)}});
  }
  void add_incoming(const place& at, std::uint32_t from, std::byte* into, std::uint64_t size) {
    in_.push_back({{from}, at.channel, tag_, {into, static_cast<std::size_t>(size)}, {}});
  }
  [[nodiscard]] failure located(failure why, std::uint32_t at, std::uint32_t number) const {
    add_context(why, job_->me,
                "window " + std::to_string(places_[at].window + 1) + " of " +
                    std::string(to_string(job_->call().kind)) + " call " + std::to_string(number) +
                    " in the order of the ranks");
    return why;
  }

  std::optional<host_job<>> job_;
  std::uint64_t tag_ = 0;
  std::vector<place> places_;
  std::vector<ticket> tickets_;
  std::vector<std::uint32_t> waiting_;  // the place of each ticket
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
};

}}}  // namespace topocoll::v0::detail
