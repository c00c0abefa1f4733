// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicators made from others: parts, copies, what is left after a failure.
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// Transports of which groups can be made anew: `inproc_transport` and `shm_transport`.
template <class T>
concept RegroupingTransport = Transport<T> && requires(const T& t, std::uint64_t number, std::uint32_t place,
                                                       std::uint32_t ranks, deadline until, seconds patience) {
  { t.part(number, place, ranks, until) } -> std::same_as<result<T>>;
  { t.survivors(patience) } -> std::same_as<result<T>>;
};

/// Transports that some ranks of a group make anew, meeting by its messages: `ucx_transport` and `mixed_ucx_transport`.
/// `connect_again(t, members, place, number, until)` is called by all members, each with its place in the list, at the same call
/// of their communicator, which has this number; it connects them as the ranks of `t` are.
template <class T>
concept ReconnectingTransport = Transport<T> &&
    requires(T& t, const std::vector<std::uint32_t>& members, std::uint32_t n, deadline until) {
  { connect_again(t, members, n, n, until) } -> std::same_as<result<T>>;
};

/// Cuts a group into parts: one for each color, its ranks in the order of `key`, and among equal keys in that of their ranks.
/// All ranks of the group call it at the same place in their order of calls. The old communicator stays as it is; each new one
/// has memory of its own (18 MiB and more in /dev/shm between processes), and connections of its own between hosts, and fails
/// on its own.
///
/// @param color  of this rank; nothing: it gets no communicator
/// @return `timed_out` naming ranks that did not come, what `all_gather` gives, or for processes what `join_shm` gives; between
///         hosts what `connect_ucx` and `connect_mixed` give. A part that cannot meet breaks the old group; an old
///         group that breaks meanwhile ends the meeting
/// Cost: one all_gather, and a meeting of each part; between hosts that is a few messages from each member to each.
template <class T>
requires RegroupingTransport<T> || ReconnectingTransport<T>
[[nodiscard]] result<std::optional<communicator<T>>> split(communicator<T>& of, std::optional<std::uint32_t> color,
                                                           std::int64_t key, const communicator_options& options = {},
                                                           seconds timeout = {30}) {
  const deadline until = deadline::in(timeout);
  const std::uint32_t n = of.size();
  std::vector<std::int64_t> mine{color ? std::int64_t{*color} : -1, key}, all(std::size_t{n} * 2);
  if (auto told = of.all_gather(mine, all, {.timeout = timeout}); !told) return std::move(told).error();
  if (!color) return std::optional<communicator<T>>();
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = 0; r < n; ++r)
    if (all[std::size_t{2} * r] == mine[0]) members.push_back(r);
  const std::uint32_t lowest = members.front();
  std::stable_sort(members.begin(), members.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return all[2 * a + 1] < all[2 * b + 1]; });
  const auto place =
      static_cast<std::uint32_t>(std::find(members.begin(), members.end(), of.rank().value) - members.begin());
  auto part = [&]() -> result<T> {
    if constexpr (RegroupingTransport<T>)  // no other part of this call has this lowest rank
      return of.transport().part((std::uint64_t{of.calls()} << 32U) | lowest, place,
                                 static_cast<std::uint32_t>(members.size()), until);
    else
      return connect_again(of.transport(), members, place, of.calls(), until);
  }();
  if (!part) return std::move(part).error();
  auto made = communicator<T>::create(*std::move(part), options);
  if (!made) return std::move(made).error();
  return std::optional<communicator<T>>(*std::move(made));
}

/// A second communicator of the same ranks: for another thread, or a library that should not disturb.
template <class T>
requires RegroupingTransport<T> || ReconnectingTransport<T>
[[nodiscard]] result<communicator<T>> duplicate(communicator<T>& of, const communicator_options& options = {},
                                                seconds timeout = {30}) {
  auto all = split(of, 0U, 0, options, timeout);
  if (!all) return std::move(all).error();
  return *std::move(*all);
}

/// A communicator of the ranks of one host that are left after a failure, in the order of their ranks. Every rank that wants
/// to go on calls it; a group that is still whole is broken by that. Buffers from the old communicator stay valid, but are
/// private memory to the new one. Between hosts nobody can know who else is left: there those that go on meet anew, by the
/// launcher or by `tcp_bootstrap`.
///
/// @param patience  how long a rank that is not known to be gone may take to call this; whoever does not is left out. It is a
///                  rank that hangs or is stopped, or one that has not heard of the failure: all hear of it within a second.
/// @return `peer_lost` for a rank that comes too late, `timed_out` if a rank dies while they agree
template <RegroupingTransport T>
[[nodiscard]] result<communicator<T>> shrink(communicator<T>& broken, seconds patience = {2},
                                             const communicator_options& options = {}) {
  auto left = broken.transport().survivors(patience);
  if (!left) return std::move(left).error();
  return communicator<T>::create(*std::move(left), options);
}

}}  // namespace topocoll::v0
