// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives on the buffers of a group of ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/buffer.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/exchange.hpp>
#include <topocoll/exec/detail/host_calls.hpp>
#include <topocoll/exec/detail/message_calls.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/flat_choice.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 {

/// The collectives of one group, for one rank.
///
/// Every rank makes the same calls in the same order; a rank that differs is named in a `mismatch` before any of its
/// data are used. Plans are made when a collective, root and size first need them, verified, compared with those of all
/// ranks, and kept. A failure while data move breaks the group: every rank's call fails with the first cause, and so
/// does every later call. `invalid_argument` is found before anything moves, on the rank that made the mistake; the
/// others wait for it. One thread at a time uses a communicator, but for `abort`. Counts are 64-bit; for the sharded
/// collectives (all_gather, reduce_scatter, gather, scatter, all_to_all) they are per rank. A count of zero is fine and
/// moves nothing.
///
/// In place: `in` and `out` are the same memory; for all_gather, and for gather on the root, `in` is the rank's own shard
/// of `out`; for reduce_scatter, and for scatter on the root, `out` is the rank's own shard of `in`. The other ranks of a
/// gather or scatter have one buffer anyway. Other overlaps are refused. all_to_all has no form in place.
template <Transport T, MemorySpace M = host_memory>
class communicator {
 public:
  /// Does not communicate.
  [[nodiscard]] static result<communicator> create(T transport, const communicator_options& options = {},
                                                   M memory = M()) {
    return communicator(std::move(transport), options, std::move(memory));
  }

  [[nodiscard]] rank_id rank() const { return transport_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return transport_.size(); }
  [[nodiscard]] T& transport() { return transport_; }
  [[nodiscard]] M& memory() { return calls_.memory(); }
  /// Memory for `count` elements, best made once and kept. Between processes of one host, calls whose buffers all come from
  /// here, on all ranks, are two to four times as fast as those on private memory.
  /// @return `unavailable` if there is no such memory
  template <Element E>
  [[nodiscard]] result<buffer<E>> allocate(std::uint64_t count) {
    if (count > UINT64_MAX / 2 / sizeof(E))
      return fail(errc::unavailable, std::to_string(count) + " elements are more than there are addresses");
    const bytes wanted{count * sizeof(E)};
    if constexpr (has_direct_calls) {
      auto shared = transport_.allocate(wanted);
      if (!shared) return std::move(shared).error();
      return buffer<E>(*std::move(shared), static_cast<std::size_t>(count));
    } else {
      auto given = memory().allocate(wanted);
      if (!given) return std::move(given).error();
      const auto give_back = [m = memory(), it = *given](std::byte*) mutable { m.release(it); };
      return buffer<E>(std::shared_ptr<std::byte>(given->data(), give_back), static_cast<std::size_t>(count));
    }
  }

  /// What a call of `count` elements would run: the name of the adopted plan, or of the built-in algorithm;
  /// `shared` for ranks of one host without messages, `ordered` for reductions by messages in the order of the ranks.
  [[nodiscard]] std::string plan_for(collective_kind kind, rank_id root, std::uint64_t count, dtype type) const {
    if constexpr (has_direct_calls)
      if (!calls_.by_adopted_plan(kind, root.value)) return "shared";
    if (calls_.in_rank_order(kind)) return "ordered";
    return calls_.plans().name_of(kind, root.value, size(), array_size(kind, count, type));
  }
  /// Number of the next call; equal on all ranks that made the same calls.
  [[nodiscard]] std::uint32_t calls() const { return number_; }

  /// Runs this plan from now on for all calls of its collective (and root), whatever their size, in place of the
  /// built-in choice. All ranks adopt at the same place in their order of calls.
  /// @return what `plan::verify` has against it, `unsupported` for more slices than channels, `invalid_argument` for
  ///          another number of ranks; on the other ranks, and for plans that differ, `mismatch` naming the rank. The
  ///          group stays whole, the plans stay what they were.
  [[nodiscard]] result<void> adopt(const plan::schedule& plan, seconds timeout = {30}) {
    if (auto noted =
            note(detail::call_mark(detail::call_form::agreement, plan.collective, {}, {}, plan.root.value), 0, timeout);
        !noted)
      return noted;
    return calls_.plans().adopt(transport_, plan, number_++, deadline::in(timeout));
  }

  /// out[i] := in[i] of rank 0 ⊕ in[i] of rank 1 ⊕ …, the same bits on all ranks.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> all_reduce(const In& in, Out&& out, const call_options& options = {}) {
    if (std::size(in) != std::size(out)) return sizes_differ("all_reduce", std::size(in), std::size(out));
    return run(collective_kind::all_reduce, {}, read(in), write(out), std::size(out), type<In, Out>(), options);
  }
  template <ElementRange Out>
  [[nodiscard]] result<void> all_reduce(Out&& buffer, const call_options& options = {}) {
    return run(collective_kind::all_reduce, {}, read(buffer), write(buffer), std::size(buffer), type<Out, Out>(),
               options);
  }
  [[nodiscard]] result<void> all_reduce(const void* in, void* out, std::uint64_t count, dtype type,
                                        const call_options& options = {}) {
    return run(collective_kind::all_reduce, {}, in, out, count, type, options);
  }

  /// out := in of rank 0, in of rank 1, …; `out` has size() times as many elements as `in`.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> all_gather(const In& in, Out&& out, const call_options& options = {}) {
    if (std::size(out) != std::size(in) * size()) return sizes_differ("all_gather", std::size(in), std::size(out));
    return run(collective_kind::all_gather, {}, read(in), write(out), std::size(in), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> all_gather(const void* in, void* out, std::uint64_t count, dtype type,
                                        const call_options& options = {}) {
    return run(collective_kind::all_gather, {}, in, out, count, type, options);
  }

  /// out := the sum's shard of this rank; `in` has size() times as many elements as `out`.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> reduce_scatter(const In& in, Out&& out, const call_options& options = {}) {
    if (std::size(in) != std::size(out) * size()) return sizes_differ("reduce_scatter", std::size(in), std::size(out));
    return run(collective_kind::reduce_scatter, {}, read(in), write(out), std::size(out), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> reduce_scatter(const void* in, void* out, std::uint64_t count, dtype type,
                                            const call_options& options = {}) {
    return run(collective_kind::reduce_scatter, {}, in, out, count, type, options);
  }

  /// Every rank's buffer := the buffer of `root`.
  template <ElementRange Out>
  [[nodiscard]] result<void> broadcast(Out&& buffer, rank_id root, const call_options& options = {}) {
    return run(collective_kind::broadcast, root, read(buffer), write(buffer), std::size(buffer), type<Out, Out>(),
               options);
  }
  /// `in` is read on the root only, `out` written on all.
  [[nodiscard]] result<void> broadcast(const void* in, void* out, std::uint64_t count, dtype type, rank_id root,
                                       const call_options& options = {}) {
    return run(collective_kind::broadcast, root, in, out, count, type, options);
  }

  /// On the root: out[i] := in[i] of rank 0 ⊕ in[i] of rank 1 ⊕ …; `out` is not used elsewhere, and may be empty there.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> reduce(const In& in, Out&& out, rank_id root, const call_options& options = {}) {
    if (rank() == root && std::size(in) != std::size(out)) return sizes_differ("reduce", std::size(in), std::size(out));
    return run(collective_kind::reduce, root, read(in), write(out), std::size(in), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> reduce(const void* in, void* out, std::uint64_t count, dtype type, rank_id root,
                                    const call_options& options = {}) {
    return run(collective_kind::reduce, root, in, out, count, type, options);
  }

  /// On the root: out := in of rank 0, in of rank 1, …, size() times as many elements as `in`; `out` is not used
  /// elsewhere, and may be empty there.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> gather(const In& in, Out&& out, rank_id root, const call_options& options = {}) {
    if (rank() == root && std::size(out) != std::size(in) * size())
      return sizes_differ("gather", std::size(in), std::size(out));
    return run(collective_kind::gather, root, read(in), write(out), std::size(in), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> gather(const void* in, void* out, std::uint64_t count, dtype type, rank_id root,
                                    const call_options& options = {}) {
    return run(collective_kind::gather, root, in, out, count, type, options);
  }

  /// out := this rank's shard of `in` of the root, which has size() times as many elements; `in` is not used elsewhere, and
  /// may be empty there.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> scatter(const In& in, Out&& out, rank_id root, const call_options& options = {}) {
    if (rank() == root && std::size(in) != std::size(out) * size())
      return sizes_differ("scatter", std::size(in), std::size(out));
    return run(collective_kind::scatter, root, read(in), write(out), std::size(out), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> scatter(const void* in, void* out, std::uint64_t count, dtype type, rank_id root,
                                     const call_options& options = {}) {
    return run(collective_kind::scatter, root, in, out, count, type, options);
  }

  /// Shard j of `in` goes to rank j, which puts it at shard rank() of its `out`.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> all_to_all(const In& in, Out&& out, const call_options& options = {}) {
    if (std::size(in) != std::size(out) || std::size(in) % size() != 0)
      return sizes_differ("all_to_all", std::size(in), std::size(out));
    return run(collective_kind::all_to_all, {}, read(in), write(out), std::size(in) / size(), type<In, Out>(), options);
  }
  [[nodiscard]] result<void> all_to_all(const void* in, void* out, std::uint64_t count, dtype type,
                                        const call_options& options = {}) {
    return run(collective_kind::all_to_all, {}, in, out, count, type, options);
  }

  // Shards of unequal size: `counts` has the elements of every rank's shard, 0 or more, and is the same on all ranks. A list
  // that differs on some rank is found before data move, and costs one exchange of 8 bytes between all pairs whenever it is
  // not that of the last such call of the collective. In place as above.

  /// out := the shards of all ranks, one after the other; `in` has counts[rank()] elements.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> all_gather_v(const In& in, Out&& out, std::span<const std::uint64_t> counts,
                                          const call_options& options = {}) {
    return run_v(collective_kind::all_gather, {}, in, out, counts, options);
  }
  /// out := the sum's shard of this rank, counts[rank()] elements; `in` has the elements of all shards.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> reduce_scatter_v(const In& in, Out&& out, std::span<const std::uint64_t> counts,
                                              const call_options& options = {}) {
    return run_v(collective_kind::reduce_scatter, {}, in, out, counts, options);
  }
  /// On the root: out := the shards of all ranks, one after the other; `out` is not used elsewhere.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> gather_v(const In& in, Out&& out, std::span<const std::uint64_t> counts, rank_id root,
                                      const call_options& options = {}) {
    return run_v(collective_kind::gather, root, in, out, counts, options);
  }
  /// out := this rank's shard of `in` of the root; `in` is not used elsewhere.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> scatter_v(const In& in, Out&& out, std::span<const std::uint64_t> counts, rank_id root,
                                       const call_options& options = {}) {
    return run_v(collective_kind::scatter, root, in, out, counts, options);
  }
  /// Any of them, for programs that choose at run time.
  /// @return `invalid_argument` also for a collective that is none of the four, or as many counts as there are no ranks
  [[nodiscard]] result<void> run_v(collective_kind kind, rank_id root, const void* in, void* out,
                                   std::span<const std::uint64_t> counts, dtype type,
                                   const call_options& options = {}) {
    if (!plan::sharded(kind) || kind == collective_kind::all_to_all)
      return fail(errc::invalid_argument, std::string(to_string(kind)) + " has no shards whose counts could differ");
    if (auto ok = detail::check_buffers(kind, rank().value, size(), root.value, in, out, counts, type); !ok) return ok;
    const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    std::uint64_t all = 0;
    for (const std::uint64_t c : counts) all += c;
    if (auto ok = calls_.check(kind, type, options.op); !ok) return ok;
    detail::host_call c = detail::host_call_of(kind, root.value, in, out, most, type, options.op);
    c.counts = counts;
    if constexpr (has_direct_calls) {
      if (!calls_.by_adopted_plan(kind, root.value)) {
        if (all == most * size()) return run(kind, root, in, out, most, type, options);
        ++number_;
        return transport_.direct().run(c, options.timeout);
      }
    }
    const deadline until = deadline::in(options.timeout);
    if (auto same = calls_.plans().agree_on_counts(transport_, kind, root.value, counts,
                                                   {type, options.op, detail::mark_of(counts), number_}, until);
        !same) {
      ++number_;
      return same;
    }
    if (all == most * size()) return run(kind, root, in, out, most, type, options);
    if (auto noted = note(message_mark(kind, type, options.op, root), detail::mark_of(counts), options.timeout); !noted)
      return noted;
    return calls_.run(transport_, c, number_++, until);
  }

  /// Part j of `in`, send_counts[j] elements, goes to rank j; `out` gets receive_counts[j] elements from each rank j. Parts
  /// lie one after the other in the order of the ranks. What a rank expects and what its peer sends must agree: where they do
  /// not, the receiver says so in a `mismatch` before it uses the data, and the group is broken. One message per pair.
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> all_to_all_v(const In& in, Out&& out, std::span<const std::uint64_t> send_counts,
                                          std::span<const std::uint64_t> receive_counts,
                                          const call_options& options = {}) {
    const auto sum = [](std::span<const std::uint64_t> counts) {
      std::uint64_t all = 0;
      for (const std::uint64_t c : counts) all += c;
      return all;
    };
    if (std::size(in) != sum(send_counts) || std::size(out) != sum(receive_counts))
      return sizes_differ("all_to_all_v", std::size(in), std::size(out));
    return all_to_all_v(read(in), write(out), send_counts, receive_counts, type<In, Out>(), options);
  }
  [[nodiscard]] result<void> all_to_all_v(const void* in, void* out, std::span<const std::uint64_t> send_counts,
                                          std::span<const std::uint64_t> receive_counts, dtype type,
                                          const call_options& options = {}) {
    if (auto ok = detail::check_exchange(rank().value, size(), in, out, send_counts, receive_counts, type); !ok)
      return ok;
    if (auto noted = note(detail::call_mark(detail::call_form::exchange, {}, {}, {}, 0), 0, options.timeout); !noted)
      return noted;
    const detail::exchange what{
        static_cast<const std::byte*>(in), static_cast<std::byte*>(out), send_counts, receive_counts, type, number_++};
    return detail::run_exchange(memory(), transport_, what, deadline::in(options.timeout));
  }

  /// Returns when every rank has called it. ceil(log2 n) messages per rank, or one announcement where all see them.
  [[nodiscard]] result<void> barrier(const call_options& options = {}) {
    if constexpr (has_direct_calls) {
      ++number_;
      return transport_.direct().barrier(options.timeout);
    }
    return detail::barrier(transport_, number_++, deadline::in(options.timeout));
  }

  /// Any of them, for programs that choose at run time. `root` only matters for the rooted ones.
  [[nodiscard]] result<void> run(collective_kind kind, rank_id root, const void* in, void* out, std::uint64_t count,
                                 dtype type, const call_options& options = {}) {
    if (auto ok = detail::check_buffers(kind, rank().value, size(), root.value, in, out, count, type); !ok) return ok;
    if (auto ok = calls_.check(kind, type, options.op); !ok) return ok;
    const std::uint32_t number = number_++;
    const detail::host_call c = detail::host_call_of(kind, root.value, in, out, count, type, options.op);
    if constexpr (has_direct_calls) {
      if (count != 0 && !calls_.by_adopted_plan(kind, root.value)) return transport_.direct().run(c, options.timeout);
      if (auto noted = note(message_mark(kind, type, options.op, root), count, options.timeout); !noted) return noted;
    }
    if (count == 0) return {};
    return calls_.run(transport_, c, number, deadline::in(options.timeout));
  }

  /// From any thread: every wait of every rank fails soon with `aborted` and this reason.
  void abort(const std::string& why) noexcept { transport_.abort(why); }

 private:
  // Ranks of one host that see memory of one another need no messages.
  static constexpr bool has_direct_calls = std::is_same_v<M, host_memory> && requires(T & t) {
    { t.direct() } -> std::same_as<detail::host_calls<>&>;
  };

  communicator(T transport, const communicator_options& options, M memory)
      : transport_(std::move(transport)), calls_(std::move(memory), options) {}

  [[nodiscard]] static std::uint64_t message_mark(collective_kind kind, dtype type, reduce_op op, rank_id root) {
    return detail::call_mark(detail::call_form::by_messages, kind, type, op, root.value);
  }
  [[nodiscard]] result<void> note(std::uint64_t mark, std::uint64_t count, seconds timeout) {
    if constexpr (has_direct_calls) return transport_.direct().note(mark, count, timeout);
    return {};
  }
  template <ElementRange In, ElementRange Out>
  [[nodiscard]] result<void> run_v(collective_kind kind, rank_id root, const In& in, Out& out,
                                   std::span<const std::uint64_t> counts, const call_options& options) {
    if (!detail::sizes_fit(kind, rank().value, size(), root.value, std::size(in), std::size(out), counts))
      return sizes_differ(std::string(to_string(kind)) + "_v", std::size(in), std::size(out));
    return run_v(kind, root, read(in), write(out), counts, type<In, Out>(), options);
  }
  [[nodiscard]] bytes array_size(collective_kind kind, std::uint64_t count, dtype type) const {
    return size_of(type) * count * (plan::sharded(kind) ? size() : 1);
  }
  template <class In, class Out>
  [[nodiscard]] static constexpr dtype type() {
    using in = std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<In&>()))>>;
    using out = std::remove_pointer_t<decltype(std::data(std::declval<Out&>()))>;
    static_assert(std::is_same_v<in, std::remove_cv_t<out>>, "input and output have elements of one type");
    static_assert(!std::is_const_v<out>, "the output of a collective can be written");
    return dtype_of<in>();
  }
  template <class R>
  [[nodiscard]] static const void* read(const R& r) {
    return std::data(r);
  }
  template <class R>
  [[nodiscard]] static void* write(R& r) {
    return std::data(r);
  }
  [[nodiscard]] failure sizes_differ(std::string_view call, std::size_t in, std::size_t out) const {
    return detail::sizes_differ(call, rank().value, size(), in, out);
  }

  T transport_;
  detail::message_calls<M> calls_;
  std::uint32_t number_ = 0;
};

}}  // namespace topocoll::v0
