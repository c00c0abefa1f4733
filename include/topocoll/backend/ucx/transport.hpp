// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport between ranks on any hosts, over UCX.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/detail/endpoint.hpp>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/options.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/detail/member_gather.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

class ucx_transport;
template <Bootstrap B>
[[nodiscard]] result<ucx_transport> connect_ucx(B& bootstrap, const ucx_options& options, deadline until);

/// One rank of a group over UCX, made by `connect_ucx`.
///
/// Messages go in pieces, as eager active messages; what arrives is copied or combined straight out of UCX's memory if
/// its receive is posted, and else kept, up to `ucx_options.window` for each peer and channel. Then the sender waits. A
/// message that fits into the window counts as sent once UCX has it. UCX chooses the networks, by its own rules and
/// UCX_* variables, which it reads when the group is made, and writes its own warnings to standard output
/// (UCX_LOG_LEVEL).
///
/// How fast a fault is noticed, by whoever waits for the peer; it tells all others, which then fail with the same
/// cause:
/// - a process that dies: its sockets close, at once; on the same host its pid is looked at as well, every 0.1 s;
/// - a rank that is destroyed says goodbye to those that it is connected to: `peer_lost`, "left the group";
/// - a rank that is silent, and a link that is cut: at the deadline. Ranks that wait themselves answer when they are
///   asked whom for, so that the rank at the root of a chain of waits is named. TCP's own keepalive may be sooner;
/// - telling is by best effort: who cannot be told within 0.25 s sees a lost connection in its next call.
///
/// A call that fails takes the sends that UCX still has back, if need be by closing their connections: up to 1.3 s.
/// Destroying a rank waits up to `ucx_options.linger` for peers that have not yet received what it sent; a rank that
/// has nothing under way leaves within 50 ms. A moved-from object may only be destroyed or assigned to.
///
/// Needs transports that notice when a peer is gone. In UCX 1.13 those of shared memory do not: it uses TCP within a
/// host, too, where `shm_transport` is faster: `connect_mixed` takes each where it belongs. Run with UCX 1.13 over TCP of
/// one host. Never run: InfiniBand and RoCE, and hosts that differ.
class ucx_transport {
 public:
  [[nodiscard]] rank_id rank() const { return {end_->group().rank}; }
  [[nodiscard]] std::uint32_t size() const { return end_->group().ranks(); }
  [[nodiscard]] std::uint32_t channels() const { return static_cast<std::uint32_t>(end_->group().terms.channels); }
  /// "rank 2 (pid 4711 on host node17)".
  [[nodiscard]] std::string name_of(rank_id r) const { return end_->group().name_of(r.value); }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    return end_->post(out, in);
  }
  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    return end_->wait_any(pending, until);
  }
  /// Tells the others at once, from this thread if no other is in a call; that takes up to 1.3 s where peers do not
  /// read.
  void abort(const std::string& why) noexcept { end_->abort(why); }

  // See `PollableTransport`.
  [[nodiscard]] result<polled> poll_any(std::span<const ticket> pending) { return end_->poll_any(pending); }
  [[nodiscard]] std::vector<rank_id> missing() const {
    std::vector<rank_id> ranks;
    for (const std::uint32_t r : end_->awaited_ranks()) ranks.push_back({r});
    return ranks;
  }
  void also_waits_for(std::span<const rank_id> others) { end_->also_waits_for(others); }
  [[nodiscard]] failure give_up(seconds waited) { return end_->give_up(waited); }
  [[nodiscard]] failure end(const failure& cause) { return end_->end(cause); }
  /// What it was made with.
  [[nodiscard]] const ucx_options& options() const { return end_->options(); }

 private:
  explicit ucx_transport(std::unique_ptr<backend::detail::ucx_endpoint> end) : end_(std::move(end)) {}
  template <Bootstrap B>
  friend result<ucx_transport> connect_ucx(B& bootstrap, const ucx_options& options, deadline until);
  std::unique_ptr<backend::detail::ucx_endpoint> end_;
};
static_assert(PollableTransport<ucx_transport>);

namespace backend::detail {

/// Opens UCX. The endpoint does not know its group yet.
template <class = void>
[[nodiscard]] result<std::unique_ptr<ucx_endpoint>> open_ucx(const ucx_options& options, std::uint32_t rank,
                                                             std::uint32_t ranks) {
  if (auto ok = check_options(options); !ok) return std::move(ok).error();
  ucx_group group;
  group.rank = rank;
  group.terms.channels = options.channels;
  group.terms.piece = options.piece.value / 64 * 64;  // no element is longer, so none is split
  group.terms.window = options.window.value;
  group.places.resize(ranks);
  auto end = std::make_unique<ucx_endpoint>(options, std::move(group));
  if (auto ok = end->worker().open(options, ranks); !ok) return std::move(ok).error();
  if (auto ok = end->worker().handle_messages(0, ucx_core::on_message, static_cast<ucx_core*>(end.get())); !ok)
    return std::move(ok).error();
  auto address = end->worker().address();
  if (!address) return std::move(address).error();
  end->group().places[rank] = {topocoll::detail::this_process(), topocoll::detail::host_name(), boot_mark(),
                               *std::move(address)};
  return result<std::unique_ptr<ucx_endpoint>>(std::move(end));  // nvcc 13 would copy a plain name
}

/// Makes it know its group. @return also `mismatch` for a rank with other options or another version
template <class = void>
[[nodiscard]] result<void> join_ucx(ucx_endpoint& end, const std::vector<std::vector<std::byte>>& told) {
  ucx_group& group = end.group();
  for (std::uint32_t r = 0; r < group.ranks(); ++r) {
    auto place = unpack(told[r], r, group.terms);
    if (!place) return std::move(place).error();
    group.places[r] = *std::move(place);
  }
  return end.connect();
}

}  // namespace backend::detail

/// Makes the transport of this rank: ranks exchange the addresses of their UCX workers by way of the bootstrap, which
/// is free for other things afterwards, and may go.
/// @return `invalid_argument` for options that make no sense or that UCX refuses; `unavailable` if UCX has no network,
///         or two ranks have none in common; `mismatch` naming a rank with other options; `timed_out`, `peer_lost`,
///         `aborted` from the bootstrap. A rank that fails ends the bootstrap, so that all ranks do
template <Bootstrap B>
[[nodiscard]] result<ucx_transport> connect_ucx(B& bootstrap, const ucx_options& options, deadline until) {
  auto end = backend::detail::open_ucx(options, bootstrap.rank().value, bootstrap.size());
  if (!end) {
    bootstrap.abort(end.error().what);
    return std::move(end).error();
  }
  const backend::detail::ucx_group& group = (*end)->group();
  auto told = bootstrap.all_gather(pack(group.terms, group.places[group.rank]), until);
  if (!told) return std::move(told).error();
  if (auto ok = join_ucx(**end, *told); !ok) {
    bootstrap.abort(ok.error().what);
    return std::move(ok).error();
  }
  // Nobody sends to a rank that does not know who it is yet.
  if (auto ok = bootstrap.barrier(until); !ok) return std::move(ok).error();
  return ucx_transport(*std::move(end));
}

/// For `split`, see `ReconnectingTransport`.
template <class = void>
[[nodiscard]] result<ucx_transport> connect_again(ucx_transport& from, const std::vector<std::uint32_t>& members,
                                                  std::uint32_t place, std::uint32_t number, deadline until) {
  auto met = topocoll::detail::meeting_of(from, members, place, number);
  if (!met) return std::move(met).error();
  return connect_ucx(*met, from.options(), until);
}

}}  // namespace topocoll::v0
