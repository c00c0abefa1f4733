// SPDX-License-Identifier: Apache-2.0
#pragma once
// The orders of ranks, and how a generated cluster gets them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/random.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// GPUs by host: those of host h are `gpus[first[h]]` up to, without, `gpus[first[h + 1]]`; `group[h]` is the host's pod or leaf.
struct gpus_by_host {
  std::vector<std::uint32_t> gpus;
  std::vector<std::uint32_t> first{0};
  std::vector<std::uint32_t> group;

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(first.size() - 1); }
};

/// Hosts in turn from each group, groups by number, hosts of a group in order.
template <class = void>
std::vector<std::uint32_t> interleaved(const std::vector<std::uint32_t>& group) {
  std::vector<std::uint32_t> hosts(group.size());
  for (std::uint32_t h = 0; h < hosts.size(); ++h) hosts[h] = h;
  seq::sort(hosts, [&](std::uint32_t a, std::uint32_t b) { return group[a] < group[b]; });
  std::vector<std::uint32_t> turn(group.size());
  for (std::size_t i = 0; i < hosts.size(); ++i)
    turn[hosts[i]] = i > 0 && group[hosts[i]] == group[hosts[i - 1]] ? turn[hosts[i - 1]] + 1 : 0;
  seq::sort(hosts, [&](std::uint32_t a, std::uint32_t b) { return turn[a] < turn[b]; });
  return hosts;
}

/// GPUs in rank order.
template <class = void>
std::vector<std::uint32_t> laid_out(const gpus_by_host& by, rank_order order) {
  std::vector<std::uint32_t> hosts(by.hosts());
  for (std::uint32_t h = 0; h < hosts.size(); ++h) hosts[h] = h;
  if (order.kind == rank_order::kind_t::scattered) hosts = interleaved(by.group);
  if (order.kind == rank_order::kind_t::shuffled) {
    random_stream draw(order.seed);
    for (std::size_t left = hosts.size(); left > 1; --left) std::swap(hosts[left - 1], hosts[draw.below(left)]);
  }
  std::vector<std::uint32_t> ranks;
  ranks.reserve(by.gpus.size());
  if (order.kind == rank_order::kind_t::round_robin) {
    for (std::uint32_t turn = 0; ranks.size() < by.gpus.size(); ++turn)
      for (const std::uint32_t h : hosts)
        if (turn < by.first[h + 1] - by.first[h]) ranks.push_back(by.gpus[by.first[h] + turn]);
    return ranks;
  }
  for (const std::uint32_t h : hosts)
    ranks.insert(ranks.end(), by.gpus.begin() + by.first[h], by.gpus.begin() + by.first[h + 1]);
  return ranks;
}

/// Writes `global_rank` into the GPUs of a generated cluster.
template <class = void>
void write_ranks(topo::fragment& f, const fabric_options& o, const fabric_shape& s, const host_layout& host) {
  gpus_by_host by;
  std::uint32_t group = 0;
  std::uint32_t left = s.split.empty() ? s.nodes : s.split[0];
  for (std::uint32_t h = 0; h < s.nodes; ++h) {
    if (left == 0) left = s.split[++group];
    --left;
    for (std::uint32_t g = 0; g < o.host.gpus; ++g) by.gpus.push_back(h * host.nodes + host.gpu + g);
    by.first.push_back(static_cast<std::uint32_t>(by.gpus.size()));
    by.group.push_back(group);
  }
  std::uint32_t rank = 0;
  for (const std::uint32_t gpu : laid_out(by, *o.order)) f.nodes[gpu].global_rank = rank++;
}

/// Numbers the ranks anew from 0 after GPUs were dropped; their order stays.
template <class = void>
void close_gaps(topo::fragment& f) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranked;  // rank, node
  for (std::uint32_t v = 0; v < f.nodes.size(); ++v)
    if (f.nodes[v].global_rank) ranked.emplace_back(*f.nodes[v].global_rank, v);
  seq::sort(ranked);
  for (std::uint32_t r = 0; r < ranked.size(); ++r) f.nodes[ranked[r].second].global_rank = r;
}

}}}  // namespace topocoll::v0::detail
