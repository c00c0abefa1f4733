// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPU each rank sits on: packed, scattered over leaves, round robin, shuffled, or as the source says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/discover/detail/random.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// All GPUs of a graph in the order of their ranks: rank r sits on the r-th.
///
/// Hosts count in the order in which the graph lists them, GPUs of a host by index. `scattered` takes hosts in turn from
/// each group of hosts that share their first leaf, which is a pod of a rail-optimised network. Works on any graph.
/// Cost: O(nodes + links) plus O(hosts log hosts) comparisons of names.
[[nodiscard]] inline std::vector<node_id> ranks_in_order(const topo::graph& graph, rank_order order);

/// All GPUs in the order of the ranks that the graph's source wrote; packed unless every GPU has a rank of its own.
[[nodiscard]] inline std::vector<node_id> ranks_in_order(const topo::graph& graph);

namespace detail {

/// GPUs by host: those of host h are `gpus[first[h]]` up to, without, `gpus[first[h + 1]]`; `group[h]` is the host's pod or leaf.
struct gpus_by_host {
  std::vector<std::uint32_t> gpus;
  std::vector<std::uint32_t> first{0};
  std::vector<std::uint32_t> group;

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(first.size() - 1); }
};

/// Hosts in turn from each group, groups by number, hosts of a group in order.
inline std::vector<std::uint32_t> interleaved(const std::vector<std::uint32_t>& group) {
  std::vector<std::uint32_t> hosts(group.size());
  for (std::uint32_t h = 0; h < hosts.size(); ++h) hosts[h] = h;
  std::stable_sort(hosts.begin(), hosts.end(), [&](std::uint32_t a, std::uint32_t b) { return group[a] < group[b]; });
  std::vector<std::uint32_t> turn(group.size());
  for (std::size_t i = 0; i < hosts.size(); ++i)
    turn[hosts[i]] = i > 0 && group[hosts[i]] == group[hosts[i - 1]] ? turn[hosts[i - 1]] + 1 : 0;
  std::stable_sort(hosts.begin(), hosts.end(), [&](std::uint32_t a, std::uint32_t b) { return turn[a] < turn[b]; });
  return hosts;
}

/// GPUs in rank order.
inline std::vector<std::uint32_t> laid_out(const gpus_by_host& by, rank_order order) {
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
inline void write_ranks(topo::fragment& f, const fabric_options& o, const fabric_shape& s, const host_layout& host) {
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
inline void close_gaps(topo::fragment& f) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranked;  // rank, node
  for (std::uint32_t v = 0; v < f.nodes.size(); ++v)
    if (f.nodes[v].global_rank) ranked.emplace_back(*f.nodes[v].global_rank, v);
  std::sort(ranked.begin(), ranked.end());
  for (std::uint32_t r = 0; r < ranked.size(); ++r) f.nodes[ranked[r].second].global_rank = r;
}

/// Hosts of a graph with their GPUs and the first leaf they plug into.
inline gpus_by_host hosts_of(const topo::graph& graph) {
  struct entry {
    std::string_view host;
    std::uint32_t number;  // in the order of the graph
  };
  const auto nodes = graph.nodes();
  std::vector<entry> known;  // sorted by name once all are found
  for (const topo::node& n : nodes)
    if (n.kind == topo::node_kind::gpu && (known.empty() || known.back().host != n.host))
      known.push_back({n.host, static_cast<std::uint32_t>(known.size())});
  std::stable_sort(known.begin(), known.end(), [](const entry& a, const entry& b) { return a.host < b.host; });
  known.erase(std::unique(known.begin(), known.end(), [](const entry& a, const entry& b) { return a.host == b.host; }),
              known.end());
  std::vector<std::uint32_t> numbers;  // those left, in order, become 0, 1, 2, …
  for (const entry& e : known) numbers.push_back(e.number);
  std::sort(numbers.begin(), numbers.end());
  for (entry& e : known)
    e.number = static_cast<std::uint32_t>(std::lower_bound(numbers.begin(), numbers.end(), e.number) - numbers.begin());

  entry last{{}, 0};
  bool have_last = false;
  const auto find = [&](std::string_view host) -> std::optional<std::uint32_t> {
    if (have_last && last.host == host) return last.number;
    const auto it = std::lower_bound(known.begin(), known.end(), host,
                                     [](const entry& e, std::string_view h) { return e.host < h; });
    if (it == known.end() || it->host != host) return std::nullopt;
    last = *it;
    have_last = true;
    return last.number;
  };

  std::vector<std::pair<std::uint32_t, std::uint32_t>> gpus;  // host, node
  gpus_by_host by;
  for (std::uint32_t v = 0; v < nodes.size(); ++v)
    if (nodes[v].kind == topo::node_kind::gpu) gpus.emplace_back(*find(nodes[v].host), v);
  std::stable_sort(gpus.begin(), gpus.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const auto& x = nodes[a.second].index;
    const auto& y = nodes[b.second].index;
    return x && (!y || *x < *y);  // those without an index come last
  });
  by.first.assign(known.size() + 1, 0);
  for (const auto& [host, gpu] : gpus) {
    by.gpus.push_back(gpu);
    ++by.first[host + 1];
  }
  for (std::size_t h = 0; h < known.size(); ++h) by.first[h + 1] += by.first[h];
  constexpr std::uint32_t none = 0xffffffffU;
  by.group.assign(known.size(), none);
  for (const topo::link& l : graph.links()) {
    const topo::node& from = graph.at(l.from);
    if (graph.at(l.to).kind != topo::node_kind::leaf || from.host.empty()) continue;
    if (const auto h = find(from.host)) by.group[*h] = std::min(by.group[*h], l.to.value);
  }
  return by;
}

}  // namespace detail

inline std::vector<node_id> ranks_in_order(const topo::graph& graph, rank_order order) {
  std::vector<node_id> ranks;
  for (const std::uint32_t gpu : detail::laid_out(detail::hosts_of(graph), order)) ranks.push_back({gpu});
  return ranks;
}

inline std::vector<node_id> ranks_in_order(const topo::graph& graph) {
  std::vector<node_id> ranks = graph.all(topo::node_kind::gpu);
  const std::vector<node_id> gpus = ranks;
  std::vector<bool> taken(gpus.size(), false);
  for (const node_id gpu : gpus) {
    const auto rank = graph.at(gpu).global_rank;
    if (!rank || *rank >= gpus.size() || taken[*rank]) return ranks_in_order(graph, rank_order{});
    taken[*rank] = true;
    ranks[*rank] = gpu;
  }
  return ranks;
}

}}  // namespace topocoll::v0
