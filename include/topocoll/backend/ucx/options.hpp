// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a group over UCX may use, and how patient it is.
#include <cstdint>
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 {

/// Options of `connect_ucx`. Channels, piece and window must be the same on all ranks.
struct ucx_options {
  std::uint32_t channels = 64;  ///< most channels; one that is not used costs nothing
  /// Longest part of a message that goes to UCX at once; 64 bytes to 64 MiB, rounded down to a multiple of 64.
  bytes piece{256U << 10U};
  /// Most that a rank sends on one channel ahead of what the receiver has taken, and so the most memory that the
  /// receiver may need for it; at least four pieces. Each piece counts 128 bytes more than it has.
  bytes window{8U << 20U};
  /// Up to this many ranks, each connects to all others at once; in larger groups, to whom it exchanges messages with.
  std::uint32_t connect_at_once = 64;
  std::string transports;  ///< as UCX_TLS: "tcp,self", "rc,self"; empty leaves it to UCX and its environment
  std::string devices;     ///< as UCX_NET_DEVICES: "mlx5_0:1", "eth0"; empty likewise
  /// How often UCX looks whether its connections still live (UCX_KEEPALIVE_INTERVAL); 0 leaves it to UCX, which takes
  /// 20 s.
  seconds keepalive{1};
  seconds spin{20e-6};  ///< how long a wait polls before it sleeps; more costs ranks that share a core their turn
  seconds linger{10};   ///< how long a rank that leaves in order waits for those that have not yet taken what it sent
};

/// `invalid_argument` for options that no group can have.
template <class = void>
[[nodiscard]] result<void> check_options(const ucx_options& o) {
  if (o.channels < 2 || o.channels > 65536)
    return fail(errc::invalid_argument, "a UCX transport has 2 to 65536 channels, not " + std::to_string(o.channels) +
                                            " (ucx_options.channels)");
  if (o.piece.value < 64 || o.piece.value > (std::uint64_t{64} << 20U))
    return fail(errc::invalid_argument,
                "a piece has 64 bytes to 64 MiB, not " + std::to_string(o.piece.value) + " bytes (ucx_options.piece)");
  if (o.window.value / 4 < o.piece.value || o.window.value < 4096)
    return fail(errc::invalid_argument, "a window of " + std::to_string(o.window.value) +
                                            " bytes has no room for four pieces of " + std::to_string(o.piece.value) +
                                            " bytes, or is less than 4 KiB (ucx_options.window)");
  if (o.keepalive.value < 0 || o.spin.value < 0 || o.linger.value < 0)
    return fail(errc::invalid_argument, "a span of time in ucx_options is negative");
  return {};
}

}}  // namespace topocoll::v0
