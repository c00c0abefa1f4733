// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seam between programs and wires: post a step's messages, wait for a step, abort.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// A message to send. `tag` travels with it; the receiver must expect the same tag.
struct outgoing {
  rank_id to{};
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  std::span<const std::byte> data;
};

/// How an arriving message is combined: into[i] := arriving[i] ⊕ other[i]; `other` may be `into`.
struct combine {
  dtype type = dtype::float32;
  reduce_op op = reduce_op::sum;  ///< avg combines like sum; the division happens at the end, once
  const std::byte* other = nullptr;
};

/// A message to receive; exactly `into.size()` bytes.
struct incoming {
  rank_id from{};
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  std::span<std::byte> into;
  std::optional<combine> with;
};

/// Names a posted step until a wait has given it back.
struct ticket {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(ticket, ticket) = default;
  friend constexpr bool operator==(ticket, ticket) = default;
};

/// Moves bytes between the ranks of one group. Implemented by `inproc_transport` (threads), `shm_transport` (processes),
/// `ucx_transport` (hosts), `mixed_transport` (two of these as one), and `faulty<T>` (a wrapper for tests).
///
/// Laws that the compiler cannot check:
/// - messages from one rank to another on one channel arrive in the order of posting; channels are independent;
/// - `post` does not wait for peers; memory named in it stays untouched by the caller until the ticket is given back;
/// - posting receives in any order on different channels never blocks another channel;
/// - `wait_any` gives back one finished ticket (its index in the span), or fails: `timed_out` names the ranks that did not
///   answer, `peer_lost` the rank that died, `aborted` that someone gave up and why, `mismatch` the rank whose tag or size
///   differs from what was expected;
/// - after any failure every later call on any rank fails soon: the group is broken as a whole; a call that fails gives back
///   all memory that was named in any `post` of its rank;
/// - `abort` may be called from any thread and makes every wait of every rank return within a second;
/// - one thread at a time uses a transport, but for `abort`.
template <class T>
concept Transport = std::movable<T> &&
    requires(T& t, const T& ct, std::span<const outgoing> out, std::span<const incoming> in,
             std::span<const ticket> pending, deadline d, const std::string& why) {
  { ct.rank() } -> std::same_as<rank_id>;
  { ct.size() } -> std::same_as<std::uint32_t>;
  { ct.channels() } -> std::same_as<std::uint32_t>;  ///< channel numbers are 0 to channels()-1; at least 2
  { t.post(out, in) } -> std::same_as<result<ticket>>;
  { t.wait_any(pending, d) } -> std::same_as<result<std::size_t>>;
  { t.abort(why) }
  noexcept;
};

/// Says in words what keeps `T` from being a `Transport`.
template <class T>
constexpr void require_transport() {
  static_assert(std::movable<T>, "a Transport can be moved");
  static_assert(
      requires(const T& t) {
        { t.rank() } -> std::same_as<rank_id>;
      },
      "a Transport has rank() const returning rank_id");
  static_assert(
      requires(const T& t) {
        { t.size() } -> std::same_as<std::uint32_t>;
      },
      "a Transport has size() const returning std::uint32_t");
  static_assert(
      requires(const T& t) {
        { t.channels() } -> std::same_as<std::uint32_t>;
      },
      "a Transport has channels() const returning std::uint32_t");
  static_assert(
      requires(T & t, std::span<const outgoing> o, std::span<const incoming> i) {
        { t.post(o, i) } -> std::same_as<result<ticket>>;
      },
      "a Transport has post(span<const outgoing>, span<const incoming>) returning result<ticket>");
  static_assert(
      requires(T & t, std::span<const ticket> p, deadline d) {
        { t.wait_any(p, d) } -> std::same_as<result<std::size_t>>;
      },
      "a Transport has wait_any(span<const ticket>, deadline) returning result<std::size_t>");
  static_assert(
      requires(T & t, const std::string& why) {
        { t.abort(why) }
        noexcept;
      },
      "a Transport has abort(const std::string&) noexcept");
  static_assert(Transport<T>);
}

/// What a look without waiting has found.
struct polled {
  std::optional<std::size_t> done;  ///< a ticket that is given back by this: its index
  bool moved = false;               ///< whether anything moved, for these tickets or others
};

/// A `Transport` that can be asked instead of waited for, so that one wait serves two of them: see `mixed_transport`.
/// Implemented by `inproc_transport`, `shm_transport`, `ucx_transport`, and `faulty<T>` around one of them.
///
/// Laws that the compiler cannot check:
/// - `poll_any` moves what can be moved, once, and never waits, so it never times out; else it is like `wait_any`. Called
///   again and again, it also finds, about as soon, that a rank which something is awaited from is gone. With no tickets
///   it only moves;
/// - `missing` names the ranks that something is awaited from, in order;
/// - `also_waits_for` says which ranks this one waits for by other means; it replaces what was said before. Those who ask
///   why this rank is silent are told of them, and `give_up` names them;
/// - `give_up` ends the group because time is up, and gives the sentence that names the ranks that did not answer;
/// - `end` ends the group with this cause, as it is, on all ranks. If the group has ended before, the earlier cause
///   stays, and is what `end` gives back. Both take at most as long as `abort`, and give back all memory that was named
///   in any `post`.
template <class T>
concept PollableTransport = Transport<T> &&
    requires(T& t, const T& ct, std::span<const ticket> pending, std::span<const rank_id> others, seconds waited,
             const failure& cause) {
  { t.poll_any(pending) } -> std::same_as<result<polled>>;
  { ct.missing() } -> std::same_as<std::vector<rank_id>>;
  { t.also_waits_for(others) } -> std::same_as<void>;
  { t.give_up(waited) } -> std::same_as<failure>;
  { t.end(cause) } -> std::same_as<failure>;
};

}}  // namespace topocoll::v0
