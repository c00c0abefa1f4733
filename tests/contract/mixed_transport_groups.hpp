// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of threads whose ranks are spread over hosts that there are not: two groups in memory, one inside the other.
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/mixed.hpp>

namespace groups {

using namespace topocoll;

/// A mixed group of `between.size()` ranks; rank r is on host `host_of[r]`.
template <class Near, class Far, class MakeNear>
std::vector<mixed_transport<Near, Far>> mix(std::vector<Far> between, const std::vector<std::uint32_t>& host_of,
                                            MakeNear make_near) {
  std::vector<std::vector<rank_id>> hosts;
  for (std::uint32_t r = 0; r < host_of.size(); ++r) {
    if (host_of[r] >= hosts.size()) hosts.resize(host_of[r] + 1);
    hosts[host_of[r]].push_back({r});
  }
  std::vector<std::vector<Near>> within;
  for (const auto& ranks : hosts) within.push_back(make_near(static_cast<std::uint32_t>(ranks.size())));
  std::vector<std::uint32_t> next(hosts.size(), 0);
  std::vector<mixed_transport<Near, Far>> all;
  for (std::uint32_t r = 0; r < host_of.size(); ++r) {
    const std::uint32_t h = host_of[r];
    all.push_back(
        mixed_transport<Near, Far>::make(std::move(within[h][next[h]++]), std::move(between[r]), hosts[h]).value());
  }
  return all;
}

inline std::vector<mixed_transport<inproc_transport, inproc_transport>> mix_inproc(
    const std::vector<std::uint32_t>& host_of, const group_options& options = {}) {
  return mix<inproc_transport>(make_inproc_group(static_cast<std::uint32_t>(host_of.size()), options).value(), host_of,
                               [&](std::uint32_t n) { return make_inproc_group(n, options).value(); });
}

/// The first half on one host, the others on another.
struct mixed_halves {
  using transport = mixed_transport<inproc_transport, inproc_transport>;
  static std::vector<transport> make(std::uint32_t ranks, const group_options& options = {}) {
    std::vector<std::uint32_t> host_of;
    for (std::uint32_t r = 0; r < ranks; ++r) host_of.push_back(ranks > 1 && r >= (ranks + 1) / 2 ? 1 : 0);
    return mix_inproc(host_of, options);
  }
};

/// Rank by rank in turn: no rank has its number on its host, but for the first.
struct mixed_turns {
  using transport = mixed_transport<inproc_transport, inproc_transport>;
  static std::vector<transport> make(std::uint32_t ranks, const group_options& options = {}) {
    std::vector<std::uint32_t> host_of;
    for (std::uint32_t r = 0; r < ranks; ++r) host_of.push_back(r % 2);
    return mix_inproc(host_of, options);
  }
};

}  // namespace groups
