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
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/lay_ranks.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// All GPUs of a graph in the order of their ranks: rank r sits on the r-th.
///
/// Hosts count in the order in which the graph lists them, GPUs of a host by index. `scattered` takes hosts in turn from
/// each group of hosts that share their first leaf, which is a pod of a rail-optimised network. Works on any graph.
/// Cost: O(nodes + links) plus O(hosts log hosts) comparisons of names.
template <class = void>
[[nodiscard]] std::vector<node_id> ranks_in_order(const topo::graph& graph, rank_order order);

/// All GPUs in the order of the ranks that the graph's source wrote; packed unless every GPU has a rank of its own.
template <class = void>
[[nodiscard]] std::vector<node_id> ranks_in_order(const topo::graph& graph);

namespace detail {

/// Hosts of a graph with their GPUs and the first leaf they plug into.
template <class = void>
gpus_by_host hosts_of(const topo::graph& graph) {
  struct entry {
    std::string_view host;
    std::uint32_t number;  // in the order of the graph
  };
  const auto nodes = graph.nodes();
  std::vector<entry> known;  // sorted by name once all are found
  for (const topo::node& n : nodes)
    if (n.kind == topo::node_kind::gpu && (known.empty() || known.back().host != n.host))
      known.push_back({n.host, static_cast<std::uint32_t>(known.size())});
  seq::sort(known, [](const entry& a, const entry& b) { return a.host < b.host; });
  known.erase(std::unique(known.begin(), known.end(), [](const entry& a, const entry& b) { return a.host == b.host; }),
              known.end());
  std::vector<std::uint32_t> numbers;  // those left, in order, become 0, 1, 2, …
  for (const entry& e : known) numbers.push_back(e.number);
  seq::sort(numbers);
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
  seq::sort(gpus, [&](const auto& a, const auto& b) {
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

template <class>
std::vector<node_id> ranks_in_order(const topo::graph& graph, rank_order order) {
  std::vector<node_id> ranks;
  for (const std::uint32_t gpu : detail::laid_out(detail::hosts_of(graph), order)) ranks.push_back({gpu});
  return ranks;
}

template <class>
std::vector<node_id> ranks_in_order(const topo::graph& graph) {
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
