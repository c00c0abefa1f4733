// SPDX-License-Identifier: Apache-2.0
#pragma once
// Latencies that no plan can avoid: between far ranks, and over a cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// The living links of a graph with their latencies, packed for searches.
class latency_network {
 public:
  /// Cost: O(links).
  template <CostModel M>
  latency_network(const topo::graph& g, const M& cost) : first_(g.node_count() + 1, 0) {
    ways_.reserve(g.link_count());
    for (std::uint32_t v = 0; v < g.node_count(); ++v) {
      for (const link_id e : g.out_links({v}))
        if (g.capacity(e).value > 0) ways_.push_back({g.head(e).value, kind_of(cost.latency(g.at(e)).value)});
      first_[v + 1] = static_cast<std::uint32_t>(ways_.size());
    }
  }

  /// True when nothing takes any time.
  [[nodiscard]] bool timeless() const {
    return seq::all_of(values_, [](double latency) { return latency <= 0; });
  }

  /// Nodes in the order of their latency from given ones (Dijkstra); a seed is a latency and a node. `settle(latency,
  /// node)` is called once for each and returns false to end the search.
  ///
  /// Where a graph has few different latencies, as kinds of links make, one queue for each of them takes the place of the
  /// heap: what is put into it comes in order. Cost: O(links) then, O(links log links) at worst.
  template <class Settle>
  void search(const std::vector<std::pair<double, std::uint32_t>>& seeds, Settle settle) const {
    struct queue {
      std::vector<std::pair<double, std::uint32_t>> all{};
      std::size_t head = 0;
    };
    const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
    std::vector<double> away(first_.size() - 1, 1e300);
    auto heap = seeds;  // for the seeds, and for all where queues would be too many
    for (const auto& [distance, v] : heap) away[v] = std::min(away[v], distance);
    std::make_heap(heap.begin(), heap.end(), later);
    std::vector<queue> queues(values_.size() <= few ? values_.size() : 0);
    while (true) {
      std::size_t next = queues.size();
      double least = heap.empty() ? 2e300 : heap.front().first;
      for (std::size_t k = 0; k < queues.size(); ++k)
        if (queues[k].head < queues[k].all.size() && queues[k].all[queues[k].head].first < least) {
          next = k;
          least = queues[k].all[queues[k].head].first;
        }
      if (least > 1e300) return;
      std::uint32_t v = 0;
      if (next < queues.size()) {
        v = queues[next].all[queues[next].head++].second;
      } else {
        std::pop_heap(heap.begin(), heap.end(), later);
        v = heap.back().second;
        heap.pop_back();
      }
      if (least > away[v]) continue;
      if (!settle(least, v)) return;
      away[v] = -1;  // not again, should it wait twice
      for (std::uint32_t k = first_[v]; k < first_[v + 1]; ++k) {
        const way& w = ways_[k];
        const double distance = least + values_[w.kind];
        if (distance >= away[w.to]) continue;
        away[w.to] = distance;
        if (!queues.empty()) {
          queues[w.kind].all.push_back({distance, w.to});
        } else {
          heap.push_back({distance, w.to});
          std::push_heap(heap.begin(), heap.end(), later);
        }
      }
    }
  }

 private:
  struct way {
    std::uint32_t to, kind;
  };
  static constexpr std::size_t few = 16;

  std::uint32_t kind_of(double latency) {
    for (std::size_t k = values_.size(); k-- > 0 && values_.size() - k <= few;)
      if (values_[k] == latency) return static_cast<std::uint32_t>(k);
    values_.push_back(latency);
    return static_cast<std::uint32_t>(values_.size() - 1);
  }

  std::vector<std::uint32_t> first_;
  std::vector<way> ways_{};
  std::vector<double> values_{};  // different latencies; among many, some more than once
};

/// Least latency from `from` to the rank that is farthest, and that rank's node.
///
/// Stops after 50,000 nodes: a rank that was not met by then is at least as far as the last of them.
template <class = void>
[[nodiscard]] std::pair<double, node_id> farthest(const problem& q, const latency_network& net, node_id from) {
  std::vector<bool> waiting(q.graph->node_count(), false);
  std::size_t left = 0, settled = 0;
  for (const node_id v : q.ranks) {
    left += waiting[v.value] ? 0 : 1;
    waiting[v.value] = true;
  }
  std::pair<double, node_id> far{0, from};
  net.search({{0.0, from.value}}, [&](double distance, std::uint32_t v) {
    if (waiting[v]) {
      far = {distance, {v}};
      waiting[v] = false;
      --left;
    }
    if (++settled < 50'000) return left > 0;
    for (const node_id r : q.ranks)
      if (waiting[r.value]) {
        far = {distance, r};
        break;
      }
    return false;
  });
  return far;
}

/// Least latency that something which crosses given links pays: to the first of them from the nearest rank, over it and on
/// to the nearest rank. `crosses(link)` says which links; 0 when there is none.
///
/// Before the first part of that, none of the links carries anything; and what crosses last still pays the second.
template <CostModel M, class Crosses>
[[nodiscard]] double crossing_latency(const problem& q, const M& cost, const latency_network& net, Crosses crosses) {
  const topo::graph& g = *q.graph;
  std::vector<bool> tail(g.node_count(), false), rank(g.node_count(), false);
  std::vector<std::pair<double, std::uint32_t>> after, before;
  for (const topo::link& l : g.links())
    if (l.capacity.value > 0 && crosses(l)) {
      tail[l.from.value] = true;
      after.push_back({cost.latency(l).value, l.to.value});
    }
  if (after.empty()) return 0;
  for (const node_id v : q.ranks) {
    if (!rank[v.value]) before.push_back({0.0, v.value});
    rank[v.value] = true;
  }
  double to = 0, on = 0;
  net.search(before, [&](double distance, std::uint32_t v) {
    to = distance;
    return !tail[v];
  });
  net.search(after, [&](double distance, std::uint32_t v) {
    on = distance;
    return !rank[v];
  });
  return to + on;
}

}}}}  // namespace topocoll::v0::plan::detail
