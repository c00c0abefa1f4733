// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several calls as one: small all_reduces travel together, messages between ranks cannot wait for each other.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/buffer.hpp>
#include <topocoll/exec/detail/call_record.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// Calls that belong together. Filled by any thread, one at a time; `run` makes them, as often as wished.
///
/// All ranks run the same collectives in the same order; messages stand at the same place among them on both ranks. What
/// `run` does:
/// - messages (`send`, `receive`) are all under way from the beginning, so their order within the group does not matter but
///   for several between the same two ranks, and no rank waits for another that waits for it;
/// - neighbouring short all_reduces of one type and operation are made as one (`fused_call`): their elements are copied next
///   to each other and back;
/// - everything else is made in the order in which it was written down.
///
/// Calls of a group may be made at the same time: none may write what another reads or writes.
/// The first failure ends it, and breaks the group if messages are under way. The timeout of a fused call is the longest of
/// its parts.
class call_group : public detail::call_forms<call_group> {
  template <class C>
  static constexpr bool seen_by_all = requires(C& comm) {
    comm.transport().direct();
  };
  template <class C>
  static constexpr bool on_host = requires(C& comm) {
    { comm.memory() } -> std::same_as<host_memory&>;
  };

 public:
  /// Longest all_reduce that is made with others. By messages a hand-over costs tens of microseconds, as much as copying
  /// 16 KiB there and back many times over; where ranks see each other's memory it costs about one, and 64 calls of 1 KiB
  /// were hardly faster together (64 B: 3.9 times, 4 KiB: 0.6; two processes of one host, medians of 200 each).
  template <class C>
  static constexpr bytes fused_call{!on_host<C>      ? 0U
                                    : seen_by_all<C> ? 512U
                                                     : 16U << 10U};
  static constexpr bytes fused_calls{1ULL << 20U};  ///< together

  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] bool empty() const { return calls_.empty(); }
  template <class = void>
  void clear() {
    calls_.clear();
  }
  /// One that is written down already.
  template <class = void>
  void add(detail::call_record c) {
    calls_.push_back(std::move(c));
  }

  /// @return what the first call that fails returns; `invalid_argument` with nothing moved for a message that cannot be
  template <class C>
  [[nodiscard]] result<void> run(C& comm);

 private:
  friend class detail::call_forms<call_group>;
  template <class = void>
  void take(detail::call_record c) {
    add(std::move(c));
  }

  /// Calls from `first` on that are made as one, at least one.
  template <class = void>
  [[nodiscard]] std::size_t fused_from(std::size_t first, bytes longest) const {
    std::uint64_t all = 0;
    std::size_t end = first;
    for (; end < calls_.size(); ++end) {
      const detail::call_record &c = calls_[end], &like = calls_[first];
      if (c.what != detail::call_record::form::even || c.kind != collective_kind::all_reduce || c.type != like.type ||
          c.options.op != like.options.op || c.in_size != c.out_size)
        break;
      const bytes mine = size_of(c.type) * c.in_size;
      if (mine > longest || all + mine.value > fused_calls.value) break;
      all += mine.value;
    }
    return std::max<std::size_t>(end - first, 1);
  }
  template <class C>
  [[nodiscard]] result<void> run_fused(C& comm, std::span<const detail::call_record> parts);

  std::vector<detail::call_record> calls_;
};

namespace detail {

/// Messages of a group, under way.
template <class C>
class messages {
 public:
  /// Posts all of them as one step.
  [[nodiscard]] result<void> post(C& comm, std::span<const call_record> calls) {
    std::vector<outgoing> out;
    std::vector<incoming> in;
    seconds longest{};
    const std::uint32_t channel = comm.transport().channels() - 1;
    for (const call_record& c : calls) {
      const bool sends = c.what == call_record::form::send;
      if (!sends && c.what != call_record::form::receive) continue;
      if (auto ok = check_message(c, comm.rank().value, comm.size()); !ok) return ok;
      const std::size_t width = static_cast<std::size_t>(size_of(c.type).value);
      longest = std::max(longest, c.options.timeout);
      if (sends)
        out.push_back(
            {c.root, channel, message_tag(c, c.in_size), {static_cast<const std::byte*>(c.in), c.in_size * width}});
      else
        in.push_back(
            {c.root, channel, message_tag(c, c.out_size), {static_cast<std::byte*>(c.out), c.out_size * width}, {}});
    }
    if (out.empty() && in.empty()) return {};
    until_ = deadline::in(longest);
    auto posted = comm.transport().post(out, in);
    if (!posted) return std::move(posted).error();
    under_way_ = *posted;
    return {};
  }
  [[nodiscard]] result<void> finish(C& comm) {
    if (!under_way_) return {};
    auto done = comm.transport().wait_any({&*under_way_, 1}, until_);
    under_way_.reset();
    if (!done) return std::move(done).error();
    return {};
  }

  /// The memory of messages must not be in use any more when a call has failed.
  void give_up(C& comm, const failure& why) {
    if (!under_way_) return;
    comm.abort(why.what);
    (void)finish(comm);
  }

 private:
  std::optional<ticket> under_way_;
  deadline until_{};
};

}  // namespace detail

template <class C>
result<void> call_group::run(C& comm) {
  detail::messages<C> messages;
  if (auto posted = messages.post(comm, calls_); !posted) return posted;
  for (std::size_t i = 0; i < calls_.size();) {
    const detail::call_record& c = calls_[i];
    if (c.what == detail::call_record::form::send || c.what == detail::call_record::form::receive) {
      ++i;
      continue;
    }
    const std::size_t together = fused_from(i, fused_call<C>);
    auto done = together > 1 ? run_fused(comm, std::span(calls_).subspan(i, together)) : detail::make_call(comm, c);
    if (!done) {
      messages.give_up(comm, done.error());
      return done;
    }
    i += together;
  }
  return messages.finish(comm);
}

template <class C>
result<void> call_group::run_fused(C& comm, std::span<const detail::call_record> parts) {
  const std::size_t width = static_cast<std::size_t>(size_of(parts[0].type).value);
  std::uint64_t count = 0;
  call_options options = parts[0].options;
  for (const detail::call_record& c : parts) {
    count += c.in_size;
    options.timeout = std::max(options.timeout, c.options.timeout);
    if (c.in_size != 0 && (c.in == nullptr || c.out == nullptr))
      return detail::make_call(comm, c);  // it says what is wrong
  }
  auto together = comm.template allocate<std::uint8_t>(count * width);
  if (!together) return std::move(together).error();
  std::size_t at = 0;
  for (const detail::call_record& c : parts) {
    if (c.in_size != 0) std::memcpy(together->data() + at, c.in, c.in_size * width);
    at += c.in_size * width;
  }
  auto done =
      comm.run(collective_kind::all_reduce, {}, together->data(), together->data(), count, parts[0].type, options);
  if (!done) return done;
  at = 0;
  for (const detail::call_record& c : parts) {
    if (c.out_size != 0) std::memcpy(c.out, together->data() + at, c.out_size * width);
    at += c.out_size * width;
  }
  return {};
}

/// Elements for one other rank, which calls `receive` with as many of the same type and the same tag. Returns when the
/// memory may be used again: the receiver may not have got them yet, but may have to have asked for them.
/// @return `invalid_argument` for the rank itself or one that is not; `mismatch` on the receiver when type, count or tag
///          differ; what the transport reports
/// Two ranks that both send first and receive then may wait for each other: put both into one `call_group`.
template <class C, ElementRange In>
[[nodiscard]] result<void> send(C& comm, const In& in, rank_id to, std::uint32_t tag = 0,
                                const call_options& options = {}) {
  call_group one;
  one.send(in, to, tag, options);
  return one.run(comm);
}
template <class C, ElementRange Out>
[[nodiscard]] result<void> receive(C& comm, Out&& out, rank_id from, std::uint32_t tag = 0,
                                   const call_options& options = {}) {
  call_group one;
  one.receive(out, from, tag, options);
  return one.run(comm);
}

}}  // namespace topocoll::v0
