// SPDX-License-Identifier: Apache-2.0
#pragma once
// A call that is written down to be made later.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What a call on a communicator needs. Memory is named, not owned.
struct call_record {
  enum class form : std::uint8_t { even, uneven, exchange, barrier, send, receive };

  form what = form::even;
  collective_kind kind = collective_kind::all_reduce;
  dtype type = dtype::float32;
  rank_id root{};  ///< or the peer of a message
  const void* in = nullptr;
  void* out = nullptr;
  std::uint64_t in_size = 0, out_size = 0;  ///< elements
  call_options options{};
  std::uint32_t tag = 0;                        ///< of a message
  std::vector<std::uint64_t> counts, receives;  ///< of an uneven call; what an exchange sends and receives
};

/// Elements per rank of an even call with ranges of these sizes on this rank, or nothing if they do not belong together.
template <class = void>
[[nodiscard]] std::optional<std::uint64_t> even_count(const call_record& c, std::uint32_t rank, std::uint32_t ranks) {
  const bool root = rank == c.root.value, sharded = plan::sharded(c.kind);
  std::optional<std::uint64_t> count;
  bool fits = true;
  const auto look = [&](region part, std::uint64_t given) {
    if (part == region::nothing) return;
    const bool whole = part == region::whole && sharded;
    const std::uint64_t per_rank = whole ? given / ranks : given;
    fits = fits && (!whole || given % ranks == 0) && (!count || *count == per_rank);
    count = per_rank;
  };
  look(input_of(c.kind, root), c.in_size);
  look(output_of(c.kind, root), c.out_size);
  return fits ? count : std::nullopt;
}

/// Tag of a message outside the collectives: what its sender and its receiver must agree on.
[[nodiscard]] constexpr std::uint64_t message_tag(const call_record& c, std::uint64_t count) {
  return message_tag_mark | std::uint64_t{c.tag} << 28U | static_cast<std::uint64_t>(c.type) << 24U |
         (mixed(count) & 0xffffffU);
}

template <class = void>
[[nodiscard]] std::string name_of(const call_record& c) {
  switch (c.what) {
    case call_record::form::even: break;
    case call_record::form::uneven: return std::string(to_string(c.kind)) + "_v";
    case call_record::form::exchange: return "all_to_all_v";
    case call_record::form::barrier: return "barrier";
    case call_record::form::send: return "send to rank " + std::to_string(c.root.value);
    case call_record::form::receive: return "receive from rank " + std::to_string(c.root.value);
  }
  return std::string(to_string(c.kind));
}

/// Makes a call that is no message. What does not belong together is told as the communicator tells it.
template <class C>
[[nodiscard]] result<void> make_call(C& comm, const call_record& c) {
  const std::uint32_t me = comm.rank().value, n = comm.size();
  switch (c.what) {
    case call_record::form::even: {
      const auto count = even_count(c, me, n);
      if (!count) return sizes_differ(to_string(c.kind), me, n, c.in_size, c.out_size);
      return comm.run(c.kind, c.root, c.in, c.out, *count, c.type, c.options);
    }
    case call_record::form::uneven:
      if (!sizes_fit(c.kind, me, n, c.root.value, c.in_size, c.out_size, c.counts))
        return sizes_differ(name_of(c), me, n, c.in_size, c.out_size);
      return comm.run_v(c.kind, c.root, c.in, c.out, c.counts, c.type, c.options);
    case call_record::form::exchange: {
      std::uint64_t sent = 0, received = 0;
      for (const std::uint64_t x : c.counts) sent += x;
      for (const std::uint64_t x : c.receives) received += x;
      if (sent != c.in_size || received != c.out_size) return sizes_differ(name_of(c), me, n, c.in_size, c.out_size);
      return comm.all_to_all_v(c.in, c.out, c.counts, c.receives, c.type, c.options);
    }
    default: return comm.barrier(c.options);
  }
}

/// What is wrong with a message as this rank can see it.
template <class = void>
[[nodiscard]] result<void> check_message(const call_record& c, std::uint32_t rank, std::uint32_t ranks) {
  const std::string name = name_of(c) + " on rank " + std::to_string(rank);
  if (c.root.value >= ranks)
    return fail(errc::invalid_argument, name + ": the group has ranks 0 to " + std::to_string(ranks - 1));
  if (c.root.value == rank)
    return fail(errc::invalid_argument, name + ": a rank sends itself nothing", "copy the elements");
  if (c.in_size + c.out_size > 0 && c.in == nullptr && c.out == nullptr)
    return fail(errc::invalid_argument, name + " has no memory");
  return {};
}

/// Elements of a vector, array, buffer or span, by reference or not.
template <class R>
concept CallRange = ElementRange<std::remove_reference_t<R>>;
/// Elements that are still there when a call is made later: what holds them has a name, or is a span.
template <class R>
inline constexpr bool lasts = std::is_lvalue_reference_v<R> || requires {
  typename R::element_type;
};

/// Ways to write calls down. `Taker` has `take(call_record)`, whose answer every one of these gives back.
///
/// Arguments and meaning as in `communicator`. Memory is used when the call is made: it must stay where it is, and not be
/// touched, until then. Only its addresses and the counts are kept, not vectors, arrays or spans themselves.
template <class Taker>
class call_forms {
 public:
  template <CallRange In, CallRange Out>
  auto all_reduce(In&& in, Out&& out, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::all_reduce, {}, in, out, options);
  }
  template <CallRange Out>
  auto all_reduce(Out&& both, const call_options& options = {}) {
    return collective<Out&, Out>(collective_kind::all_reduce, {}, both, both, options);
  }
  template <CallRange In, CallRange Out>
  auto all_gather(In&& in, Out&& out, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::all_gather, {}, in, out, options);
  }
  template <CallRange In, CallRange Out>
  auto reduce_scatter(In&& in, Out&& out, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::reduce_scatter, {}, in, out, options);
  }
  template <CallRange Out>
  auto broadcast(Out&& both, rank_id root, const call_options& options = {}) {
    return collective<Out&, Out>(collective_kind::broadcast, root, both, both, options);
  }
  template <CallRange In, CallRange Out>
  auto reduce(In&& in, Out&& out, rank_id root, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::reduce, root, in, out, options);
  }
  template <CallRange In, CallRange Out>
  auto gather(In&& in, Out&& out, rank_id root, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::gather, root, in, out, options);
  }
  template <CallRange In, CallRange Out>
  auto scatter(In&& in, Out&& out, rank_id root, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::scatter, root, in, out, options);
  }
  template <CallRange In, CallRange Out>
  auto all_to_all(In&& in, Out&& out, const call_options& options = {}) {
    return collective<In, Out>(collective_kind::all_to_all, {}, in, out, options);
  }
  template <CallRange In, CallRange Out>
  auto all_gather_v(In&& in, Out&& out, std::span<const std::uint64_t> counts, const call_options& options = {}) {
    return uneven<In, Out>(collective_kind::all_gather, {}, in, out, counts, options);
  }
  template <CallRange In, CallRange Out>
  auto reduce_scatter_v(In&& in, Out&& out, std::span<const std::uint64_t> counts, const call_options& options = {}) {
    return uneven<In, Out>(collective_kind::reduce_scatter, {}, in, out, counts, options);
  }
  template <CallRange In, CallRange Out>
  auto gather_v(In&& in, Out&& out, std::span<const std::uint64_t> counts, rank_id root,
                const call_options& options = {}) {
    return uneven<In, Out>(collective_kind::gather, root, in, out, counts, options);
  }
  template <CallRange In, CallRange Out>
  auto scatter_v(In&& in, Out&& out, std::span<const std::uint64_t> counts, rank_id root,
                 const call_options& options = {}) {
    return uneven<In, Out>(collective_kind::scatter, root, in, out, counts, options);
  }
  template <CallRange In, CallRange Out>
  auto all_to_all_v(In&& in, Out&& out, std::span<const std::uint64_t> send_counts,
                    std::span<const std::uint64_t> receive_counts, const call_options& options = {}) {
    call_record c = record<In, Out>(collective_kind::all_to_all, {}, in, out, options);
    c.what = call_record::form::exchange;
    c.counts.assign(send_counts.begin(), send_counts.end());
    c.receives.assign(receive_counts.begin(), receive_counts.end());
    return taker().take(std::move(c));
  }
  auto barrier(const call_options& options = {}) {
    call_record c;
    c.what = call_record::form::barrier;
    c.options = options;
    return taker().take(std::move(c));
  }
  /// Elements for one other rank, which receives as many of the same type with the same tag. Messages between two ranks
  /// arrive in the order in which they are sent; both ranks have them at the same place among their collectives.
  template <CallRange In>
  auto send(In&& in, rank_id to, std::uint32_t tag = 0, const call_options& options = {}) {
    return message<In>(call_record::form::send, std::data(in), nullptr, std::size(in), element<In&>(), to, tag,
                       options);
  }
  template <CallRange Out>
  auto receive(Out&& out, rank_id from, std::uint32_t tag = 0, const call_options& options = {}) {
    return message<Out>(call_record::form::receive, nullptr, std::data(out), std::size(out), element<Out&>(), from, tag,
                        options);
  }

 private:
  template <class R>
  [[nodiscard]] static constexpr dtype element() {
    return dtype_of<std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<R&>()))>>>();
  }
  template <class In, class Out>
  [[nodiscard]] static call_record record(collective_kind kind, rank_id root, const std::remove_reference_t<In>& in,
                                          std::remove_reference_t<Out>& out, const call_options& options) {
    static_assert(lasts<In> && lasts<Out>,
                  "what a later call uses has a name or is a span: a temporary is gone by then");
    static_assert(element<In>() == element<Out>(), "input and output have elements of one type");
    static_assert(!std::is_const_v<std::remove_pointer_t<decltype(std::data(out))>>,
                  "the output of a collective can be written");
    return {call_record::form::even,
            kind,
            element<Out>(),
            root,
            std::data(in),
            std::data(out),
            std::size(in),
            std::size(out),
            options,
            0,
            {},
            {}};
  }
  [[nodiscard]] Taker& taker() { return static_cast<Taker&>(*this); }
  template <class In, class Out>
  auto collective(collective_kind kind, rank_id root, const std::remove_reference_t<In>& in,
                  std::remove_reference_t<Out>& out, const call_options& options) {
    return taker().take(record<In, Out>(kind, root, in, out, options));
  }
  template <class In, class Out>
  auto uneven(collective_kind kind, rank_id root, const std::remove_reference_t<In>& in,
              std::remove_reference_t<Out>& out, std::span<const std::uint64_t> counts, const call_options& options) {
    call_record c = record<In, Out>(kind, root, in, out, options);
    c.what = call_record::form::uneven;
    c.counts.assign(counts.begin(), counts.end());
    return taker().take(std::move(c));
  }
  template <class R>
  auto message(call_record::form what, const void* in, void* out, std::uint64_t count, dtype type, rank_id peer,
               std::uint32_t tag, const call_options& options) {
    static_assert(lasts<R>, "what a later call uses has a name or is a span: a temporary is gone by then");
    call_record c;
    c.what = what;
    c.type = type;
    c.root = peer;
    c.in = in;
    c.out = out;
    (what == call_record::form::send ? c.in_size : c.out_size) = count;
    c.options = options;
    c.tag = tag;
    return taker().take(std::move(c));
  }
};

}}}  // namespace topocoll::v0::detail
