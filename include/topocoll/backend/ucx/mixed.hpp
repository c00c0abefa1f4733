// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport for groups of any ranks on any hosts: shared memory inside a host, UCX between hosts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/options.hpp>
#include <topocoll/backend/ucx/transport.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/detail/member_gather.hpp>
#include <topocoll/exec/mixed.hpp>
#include <topocoll/exec/shm.hpp>

namespace topocoll { inline namespace v0 {

/// Shared memory inside a host, UCX between hosts: made by `connect_mixed`.
using mixed_ucx_transport = mixed_transport<shm_transport, ucx_transport>;

/// Options of `connect_mixed`; the same on all ranks, but for `host`.
struct mixed_options {
  group_options within_host;  ///< as for `join_shm`
  ucx_options between_hosts;
  /// Ranks that give different names here count as ranks of different hosts, whatever they run on: for tests that play
  /// several hosts on one. Hosts are told apart without it.
  std::string host;
};

namespace backend::detail {

/// What a rank tells of where it is. The token names the memory of a host; that of rank 0 counts.
struct mixed_place {
  static constexpr std::uint64_t this_version = 0x746f'7063'6d69'7801ULL;
  static constexpr std::size_t token_bytes = 16;
  std::string token;
  std::string host;  ///< the same for ranks that can share memory; empty if that is not known
};

/// Ranks can share memory if they run on one system, see the same /dev/shm (two containers may not), and have one user.
template <class = void>
[[nodiscard]] mixed_place mixed_place_here(std::string_view host) {
  mixed_place here;
  here.token.resize(mixed_place::token_bytes);
  if (::getrandom(here.token.data(), here.token.size(), GRND_NONBLOCK) != static_cast<ssize_t>(here.token.size())) {
    const std::uint64_t unique[] = {static_cast<std::uint64_t>(::getpid()),
                                    static_cast<std::uint64_t>(steady_clock::now().value * 1e9)};
    std::memcpy(here.token.data(), unique, sizeof unique);
  }
  struct stat memory {};
  const std::string boot = boot_mark();
  if (!boot.empty() && ::stat("/dev/shm", &memory) == 0)
    here.host = boot + ' ' + std::to_string(memory.st_dev) + ' ' + std::to_string(memory.st_ino) + ' ' +
                std::to_string(::getuid()) + ' ' + std::string(host);
  return here;
}

template <class = void>
[[nodiscard]] std::vector<std::byte> pack(const mixed_place& place) {
  std::vector<std::byte> out(sizeof mixed_place::this_version + place.token.size() + place.host.size());
  std::byte* at = out.data();
  std::memcpy(at, &mixed_place::this_version, sizeof mixed_place::this_version);
  at += sizeof mixed_place::this_version;
  std::memcpy(at, place.token.data(), place.token.size());
  at += place.token.size();
  if (!place.host.empty()) std::memcpy(at, place.host.data(), place.host.size());
  return out;
}

/// Reads what rank `r` packed. @return `mismatch` naming the rank for another version of this
template <class = void>
[[nodiscard]] result<mixed_place> unpack_mixed(std::span<const std::byte> in, std::uint32_t r) {
  constexpr std::size_t head = sizeof mixed_place::this_version;
  std::uint64_t version = 0;
  if (in.size() >= head) std::memcpy(&version, in.data(), head);
  if (in.size() < head + mixed_place::token_bytes || version != mixed_place::this_version)
    return fail(errc::mismatch,
                "rank " + std::to_string(r) + " has another version of the mixed transport, or another byte order",
                "use one build on all ranks, and connect_mixed on all");
  const std::string_view text(reinterpret_cast<const char*>(in.data()), in.size());
  return mixed_place{std::string(text.substr(head, mixed_place::token_bytes)),
                     std::string(text.substr(head + mixed_place::token_bytes))};
}

/// The ranks that share memory with rank `me`, in order, `me` among them.
template <class = void>
[[nodiscard]] std::vector<rank_id> ranks_of_host(const std::vector<mixed_place>& places, std::uint32_t me) {
  std::vector<rank_id> ranks;
  for (std::uint32_t r = 0; r < places.size(); ++r)
    if (r == me || (!places[me].host.empty() && places[r].host == places[me].host)) ranks.push_back({r});
  return ranks;
}

/// This rank's part in the memory of its host.
template <class = void>
[[nodiscard]] result<shm_transport> join_host(const std::vector<rank_id>& ranks, std::string_view token, rank_id me,
                                              const group_options& options, deadline until) {
  if (ranks.size() == 1) {  // memory without a name: nobody has to find it
    auto alone = shm_group::create(1, options);
    if (!alone) return std::move(alone).error();
    return alone->attach({0});
  }
  std::string name = "mixed-";
  for (const char c : token) {
    constexpr std::string_view digits = "0123456789abcdef";
    name += digits[static_cast<unsigned char>(c) >> 4U];
    name += digits[static_cast<unsigned char>(c) & 15U];
  }
  name += '-' + std::to_string(ranks.front().value);
  // They have all just met, so whoever is late now will not come.
  constexpr seconds longest_joining{10};
  const auto place = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), me) - ranks.begin());
  auto joined = join_shm(name, {place}, static_cast<std::uint32_t>(ranks.size()),
                         sooner(until, deadline::in(longest_joining)), options);
  if (joined) return joined;
  constexpr std::size_t most_named = 8;
  std::string list;
  for (std::size_t i = 0; i < ranks.size() && i < most_named; ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(ranks[i].value);
  if (ranks.size() > most_named) list += " and " + std::to_string(ranks.size() - most_named) + " more";
  return fail(joined.error().code,
              "rank " + std::to_string(me.value) + " does not share memory with all ranks of its host (" + list +
                  "; the following counts them from 0): " + joined.error().what,
              joined.error().next);
}

}  // namespace backend::detail

/// Makes the transport of this rank: ranks tell each other by way of the bootstrap what system, /dev/shm and user they
/// run on; those with the same share memory, all connect by UCX. Nothing is configured, and a rank that is alone on its
/// host has no shared memory but its own. The bootstrap is free for other things afterwards, and may go.
/// @return what `join_shm` and `connect_ucx` give. A rank that fails ends the bootstrap, so that all ranks do; those of
///         its host may wait 10 s for it before
template <Bootstrap B>
[[nodiscard]] result<mixed_ucx_transport> connect_mixed(B& bootstrap, const mixed_options& options, deadline until) {
  auto told = bootstrap.all_gather(pack(backend::detail::mixed_place_here(options.host)), until);
  if (!told) return std::move(told).error();
  const auto refuse = [&](failure why) {
    bootstrap.abort(why.what);
    return why;
  };
  std::vector<backend::detail::mixed_place> places;
  for (std::uint32_t r = 0; r < told->size(); ++r) {
    auto place = backend::detail::unpack_mixed((*told)[r], r);
    if (!place) return refuse(std::move(place).error());
    places.push_back(*std::move(place));
  }
  std::vector<rank_id> ranks = backend::detail::ranks_of_host(places, bootstrap.rank().value);
  auto within = backend::detail::join_host(ranks, places[0].token, bootstrap.rank(), options.within_host, until);
  if (!within) return refuse(std::move(within).error());
  auto between = connect_ucx(bootstrap, options.between_hosts, until);
  if (!between) return std::move(between).error();
  return mixed_ucx_transport::make(*std::move(within), *std::move(between), std::move(ranks));
}

/// For `split`, see `ReconnectingTransport`. Ranks of one host share memory again, with 8 MiB for messages.
template <class = void>
[[nodiscard]] result<mixed_ucx_transport> connect_again(mixed_ucx_transport& from,
                                                        const std::vector<std::uint32_t>& members, std::uint32_t place,
                                                        std::uint32_t number, deadline until) {
  auto met = topocoll::detail::meeting_of(from, members, place, number);
  if (!met) return std::move(met).error();
  mixed_options options;
  options.within_host = {from.within_host().channels(), {8U << 20U}, from.within_host().buffers()};
  options.between_hosts = from.between_hosts().options();
  options.host = "of rank " + std::to_string(from.host_ranks().front().value);  // what tests called it is not known
  return connect_mixed(*met, options, until);
}

}}  // namespace topocoll::v0
