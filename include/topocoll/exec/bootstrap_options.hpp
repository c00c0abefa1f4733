// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a rank must know to meet the others over TCP, and how much of it the launcher says.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/launch.hpp>
#include <topocoll/io/socket_address.hpp>

namespace topocoll { inline namespace v0 {

/// Shortest token that is accepted: 16 bytes, so that 128 random bits have room even as raw bytes. A token that a person
/// made up can be guessed by whoever records one connection, however long it is; draw it at random.
inline constexpr std::size_t shortest_bootstrap_token = 16;

/// Equal on all ranks but for `rank`, `interface_name` and `host_name`.
struct bootstrap_options {
  rank_id rank{};
  std::uint32_t size = 1;
  rank_id root{};  ///< the rank that listens; the others connect to it

  /// Where the root is met, as a name or in numbers. The root listens there. Empty at the root: on all interfaces with
  /// a token, on 127.0.0.1 without one. Empty elsewhere: `port_file` says.
  std::string address;
  std::uint16_t port = 0;  ///< 0: a free one, which `port_file` or the root's caller tells the others
  /// File that all ranks see. The root writes into it where it listens; the others wait for it. Whoever may write it can
  /// put a relay between the ranks: keep it where only the job's user writes.
  std::string port_file;
  /// Interface by which the root is met and from which the others connect: "eth0". Empty: as the routes say.
  std::string interface_name;

  std::string job;    ///< ranks of another job are turned away; at most 255 bytes
  std::string token;  ///< the secret of the group; without one, only the own host is listened to and called
  /// Host to report; empty: as the system is called.
  std::string host_name;
  /// Known to have ranks on several hosts: a loopback address is then refused at once.
  bool spans_hosts = false;

  seconds handshake{2};             ///< how long a connection may take to show that it belongs here
  seconds silence{20};              ///< a host that is silent for so long is lost; noticed by ranks that wait
  bytes largest_piece{64U << 20U};  ///< of one rank in an `all_gather`
};

namespace detail {
template <class = void>
[[nodiscard]] result<bootstrap_options> bootstrap_options_from(const launch& l, bool agent_listens);
}  // namespace detail

/// Options for a process started by a launcher: rank, size, job with its restart count, and where rank 0 is met
/// (MASTER_ADDR and MASTER_PORT). No token: that is the caller's to add.
///
/// torchrun's own store listens at MASTER_PORT when TORCHELASTIC_USE_AGENT_STORE is "True"; the port after it is taken
/// then.
/// @return `not_found` when the launcher says no address or no port and there is more than one rank;
///         `invalid_argument` when the ranks are on several hosts and MASTER_ADDR is a loopback address in numbers or
///         "localhost"
template <VariableLookup L>
[[nodiscard]] result<bootstrap_options> from_launch(const launch& l, const L& variables) {
  const std::optional<std::string> agent = variables("TORCHELASTIC_USE_AGENT_STORE");
  return detail::bootstrap_options_from(l, agent && (*agent == "True" || *agent == "1"));
}

/// @return `invalid_argument` for options that contradict themselves, or that do not say where the root is met
template <class = void>
[[nodiscard]] result<void> check_options(const bootstrap_options& o);

namespace detail {

[[nodiscard]] inline std::string rank_text(rank_id r) { return "rank " + std::to_string(r.value); }

[[nodiscard]] inline failure loopback_failure(const std::string& address) {
  return fail(errc::invalid_argument,
              "ranks on other hosts cannot meet at " + address + ", which reaches no other host",
              "give an address of the root's host that the others reach (MASTER_ADDR)");
}

[[nodiscard]] inline failure no_token_failure(const std::string& address) {
  return fail(errc::invalid_argument,
              "without a token ranks meet only on one host, and " + address + " is no loopback address",
              "give all ranks the same random token of at least " + std::to_string(shortest_bootstrap_token) +
                  " bytes, or the address 127.0.0.1");
}

template <class>
result<bootstrap_options> bootstrap_options_from(const launch& l, bool agent_listens) {
  bootstrap_options o;
  o.rank = l.rank;
  o.size = l.size;
  if (l.job) o.job = *l.job + (l.restarts ? "." + std::to_string(*l.restarts) : "");
  o.spans_hosts = l.local_size && *l.local_size < l.size;
  if (l.size == 1) return o;
  if (!l.address)
    return fail(errc::not_found, l.launcher + " does not say where rank 0 can be met",
                "set MASTER_ADDR and MASTER_PORT, or give an address or a file for the port");
  if (!l.port)
    return fail(errc::not_found, l.launcher + " does not say at which port rank 0 can be met",
                "set MASTER_PORT, or give a port or a file for it");
  o.address = *l.address;
  if (agent_listens && *l.port == 65535)
    return fail(errc::invalid_argument, "torchrun listens at port 65535 itself, and there is none after it",
                "choose a lower MASTER_PORT");
  o.port = static_cast<std::uint16_t>(*l.port + (agent_listens ? 1 : 0));
  if (o.spans_hosts) {
    bool here = o.address == "localhost";
    if (o.address.find_first_not_of("0123456789abcdefABCDEF.:[]") == std::string::npos)
      if (const auto known = io::resolve(o.address, o.port)) here = known->front().is_loopback();
    if (here) return loopback_failure(o.address);
  }
  return o;
}

}  // namespace detail

template <class>
result<void> check_options(const bootstrap_options& o) {
  const auto wrong = [](std::string what, std::string next = {}) {
    return fail(errc::invalid_argument, std::move(what), std::move(next));
  };
  if (o.rank.value >= o.size)
    return wrong(detail::rank_text(o.rank) + " is not below the size " + std::to_string(o.size));
  if (o.root.value >= o.size)
    return wrong("the root, rank " + std::to_string(o.root.value) + ", is not below the size " +
                 std::to_string(o.size));
  if (!o.token.empty() && o.token.size() < shortest_bootstrap_token)
    return wrong("the token has " + std::to_string(o.token.size()) + " bytes, fewer than " +
                     std::to_string(shortest_bootstrap_token),
                 "draw a longer one at random");
  if (o.job.size() > 255) return wrong("the name of the job has more than 255 bytes", "shorten it");
  if (!(o.handshake.value > 0)) return wrong("no time is left to a connection to show that it belongs here");
  if (o.largest_piece.value > std::uint64_t{1} << 40U) return wrong("the largest piece is more than 1 TiB");
  if (o.rank == o.root || o.size == 1) return {};
  if (o.port_file.empty() && (o.address.empty() || o.port == 0))
    return wrong(detail::rank_text(o.rank) + " is not told where " + detail::rank_text(o.root) + " can be met",
                 "give address and port, or a file that the root writes them into");
  return {};
}

}}  // namespace topocoll::v0
