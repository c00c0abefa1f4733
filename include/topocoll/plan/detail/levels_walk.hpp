// SPDX-License-Identifier: Apache-2.0
#pragma once
// How boxes, rails and pods are found in a graph.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Sets that grow together; path halving.
class disjoint_sets {
 public:
  explicit disjoint_sets(std::size_t n) : parent_(n) {
    for (std::uint32_t i = 0; i < n; ++i) parent_[i] = i;
  }
  [[nodiscard]] std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

template <class = void>
[[nodiscard]] bool joins_gpus(topo::link_kind k) {
  return k == topo::link_kind::nvlink || k == topo::link_kind::xgmi;
}

/// Numbers the sets of 0..n-1 in the order in which they turn up.
template <class = void>
[[nodiscard]] std::uint32_t number_sets(disjoint_sets& sets, std::vector<std::uint32_t>& number) {
  std::vector<std::uint32_t> of_root(number.size(), 0xffffffffU);
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < number.size(); ++i) {
    std::uint32_t& n = of_root[sets.find(i)];
    if (n == 0xffffffffU) n = count++;
    number[i] = n;
  }
  return count;
}

/// What lies behind the NICs that are nearest to a node, in hops that do not use GPU wires or the network.
template <class = void>
class leaf_search {
 public:
  struct adapter {
    node_id nic;
    double rate = 0;  ///< narrowest link on the way from the start through the NIC and onto its cables
  };
  struct answer {
    std::vector<std::uint32_t> leaves;
    std::vector<adapter> nics;
  };

  explicit leaf_search(const topo::graph& g) : g_(g), seen_(g.node_count(), 0) {}

  [[nodiscard]] answer from(node_id start) {
    ++stamp_;
    struct reached {
      node_id at;
      double rate;
    };
    std::vector<reached> frontier{{start, 1e300}}, nics;
    seen_[start.value] = stamp_;
    while (!frontier.empty() && nics.empty()) {
      std::vector<reached> next;
      for (const reached& v : frontier)
        for (const link_id e : g_.out_links(v.at)) {
          const node_id w = g_.head(e);
          if (!inside_host(g_.at(e).kind) || seen_[w.value] == stamp_) continue;
          seen_[w.value] = stamp_;
          (g_.at(w).kind == topo::node_kind::nic ? nics : next).push_back({w, std::min(v.rate, g_.capacity(e).value)});
        }
      frontier = std::move(next);
    }
    answer found;
    for (const reached& nic : nics) {
      const double cables = behind(nic.at, 0, found.leaves);
      found.nics.push_back({nic.at, std::min(nic.rate, cables)});
    }
    return found;
  }

 private:
  [[nodiscard]] static bool inside_host(topo::link_kind k) {
    return k == topo::link_kind::pcie || k == topo::link_kind::c2c || k == topo::link_kind::cpu ||
           k == topo::link_kind::internal;
  }
  /// Adds the leaves; returns what the cables carry.
  double behind(node_id v, int hops, std::vector<std::uint32_t>& leaves) {
    double rate = 0;
    for (const link_id e : g_.out_links(v)) {
      const node_id w = g_.head(e);
      const topo::link_kind k = g_.at(e).kind;
      if (g_.at(w).kind == topo::node_kind::leaf) leaves.push_back(w.value);
      if (g_.at(w).kind == topo::node_kind::nic_port && hops == 0)
        rate += std::min(behind(w, 1, leaves), g_.capacity(e).value);
      else if (k == topo::link_kind::infiniband || k == topo::link_kind::ethernet)
        rate += g_.capacity(e).value;
    }
    return rate;
  }
  const topo::graph& g_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
};

/// True when every two of the nodes are joined by one GPU wire or by wires to one common NVSwitch plane.
template <class = void>
[[nodiscard]] bool all_pairs_wired(const topo::graph& g, const std::vector<node_id>& nodes) {
  std::vector<node_id> common;  // planes that all reach
  bool first = true, meshed = true;
  for (const node_id v : nodes) {
    std::vector<node_id> planes, peers;
    for (const link_id e : g.out_links(v)) {
      if (!joins_gpus(g.at(e).kind) || !(g.capacity(e).value > 0)) continue;
      (g.at(g.head(e)).kind == topo::node_kind::nvswitch ? planes : peers).push_back(g.head(e));
    }
    if (first)
      common = planes;
    else
      std::erase_if(common, [&](node_id p) { return seq::find(planes, p) == planes.end(); });
    first = false;
    for (const node_id w : nodes) meshed = meshed && (w == v || seq::find(peers, w) != peers.end());
  }
  return meshed || !common.empty();
}

}  // namespace detail

template <class>
result<levels> levels_of(const problem& q) {
  if (q.graph == nullptr)
    return fail(errc::invalid_argument, "the levels of the hardware cannot be told without a graph");
  const std::uint32_t n = q.rank_count();
  if (n == 0) return fail(errc::invalid_argument, "the levels of no ranks were asked for");
  const topo::graph& g = *q.graph;
  for (std::uint32_t r = 0; r < n; ++r)
    if (q.ranks[r].value >= g.node_count())
      return fail(errc::invalid_argument, "rank " + std::to_string(r) + " sits on node " +
                                              std::to_string(q.ranks[r].value) + ", but the graph has only " +
                                              std::to_string(g.node_count()) + " nodes");

  // Boxes: nodes that GPU wires join, and ranks of one host.
  detail::disjoint_sets wired(g.node_count());
  for (const topo::link& l : g.links())
    if (detail::joins_gpus(l.kind) && l.capacity.value > 0) wired.join(l.from.value, l.to.value);
  std::vector<std::uint32_t> by_host(n), by_island(n);
  for (std::uint32_t r = 0; r < n; ++r) by_host[r] = by_island[r] = r;
  const auto host = [&](std::uint32_t r) -> const std::string& { return g.at(q.ranks[r]).host; };
  // Hosts by number, in the order of their names: ranks are compared many times, and neighbours are mostly of one host.
  std::vector<std::uint32_t> host_number(n), firsts;
  for (std::uint32_t r = 0; r < n; ++r)
    if (r == 0 || host(r) != host(r - 1)) firsts.push_back(r);
  std::vector<std::uint32_t> by_name = firsts;
  seq::sort(by_name, [&](std::uint32_t a, std::uint32_t b) { return host(a) < host(b); });
  for (std::uint32_t i = 1; i < by_name.size(); ++i)
    host_number[by_name[i]] = host_number[by_name[i - 1]] + (host(by_name[i]) != host(by_name[i - 1]) ? 1 : 0);
  for (std::uint32_t r = 1; r < n; ++r)
    if (host(r) == host(r - 1)) host_number[r] = host_number[r - 1];
  const auto island = [&](std::uint32_t r) { return wired.find(q.ranks[r].value); };
  seq::sort_by(by_host, [&](std::uint32_t r) { return host_number[r]; });
  seq::sort(by_island, [&](std::uint32_t a, std::uint32_t b) { return island(a) < island(b); });
  detail::disjoint_sets together(n);
  for (std::uint32_t i = 1; i < n; ++i) {
    if (!host(by_host[i]).empty() && host_number[by_host[i]] == host_number[by_host[i - 1]])
      together.join(by_host[i], by_host[i - 1]);
    if (island(by_island[i]) == island(by_island[i - 1])) together.join(by_island[i], by_island[i - 1]);
  }
  levels found;
  found.box.resize(n);
  found.boxes = detail::number_sets(together, found.box);

  // Pods: boxes that meet at a leaf.
  constexpr std::uint32_t none = 0xffffffffU;
  detail::disjoint_sets meeting(found.boxes);
  std::vector<std::uint32_t> box_at_leaf(g.node_count(), none);
  std::vector<bool> has_leaf(found.boxes, false);
  std::vector<std::uint32_t> leaf_of(n, none);  // the first behind the nearest NICs
  detail::leaf_search search(g);
  std::vector<std::uint32_t> near(g.node_count(), 0);  // ranks that a NIC is nearest to
  std::vector<std::vector<detail::leaf_search<>::adapter>> nics(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    auto way = search.from(q.ranks[r]);
    for (const std::uint32_t leaf : way.leaves) {
      has_leaf[found.box[r]] = true;
      leaf_of[r] = std::min(leaf_of[r], leaf);
      if (box_at_leaf[leaf] != none) meeting.join(found.box[r], box_at_leaf[leaf]);
      box_at_leaf[leaf] = found.box[r];
    }
    for (const auto& a : way.nics) ++near[a.nic.value];
    nics[r] = std::move(way.nics);
  }
  found.entry.assign(n, 0);
  for (std::uint32_t r = 0; r < n; ++r)
    for (const auto& a : nics[r]) found.entry[r] += a.rate / near[a.nic.value];
  found.fabric_known = seq::find(has_leaf, false) == has_leaf.end();
  if (seq::find(has_leaf, true) == has_leaf.end())
    for (std::uint32_t b = 1; b < found.boxes; ++b) meeting.join(b, 0);
  std::vector<std::uint32_t> pod_of_box(found.boxes);
  found.pods = detail::number_sets(meeting, pod_of_box);
  found.pod.resize(n);
  for (std::uint32_t r = 0; r < n; ++r) found.pod[r] = pod_of_box[found.box[r]];

  // Rails: by device number, moved to the place that the leaf has in its pod where that is free.
  // Boxes of several hosts number their devices host by host.
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t r = 0; r < n; ++r) order[r] = r;
  const auto number = [&](node_id v) { return g.at(v).index.value_or(none); };
  seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    if (found.box[a] != found.box[b]) return found.box[a] < found.box[b];
    if (host_number[a] != host_number[b]) return host_number[a] < host_number[b];
    if (number(q.ranks[a]) != number(q.ranks[b])) return number(q.ranks[a]) < number(q.ranks[b]);
    return q.ranks[a] != q.ranks[b] ? q.ranks[a] < q.ranks[b] : a < b;
  });
  std::vector<std::vector<std::uint32_t>> leaves(found.pods);  // of each pod, in the order of their numbers
  for (std::uint32_t r = 0; r < n; ++r)
    if (leaf_of[r] != none) leaves[found.pod[r]].push_back(leaf_of[r]);
  for (auto& list : leaves) {
    seq::sort(list, [&](std::uint32_t a, std::uint32_t b) {
      return number({a}) != number({b}) ? number({a}) < number({b}) : a < b;
    });
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  found.rail.resize(n);
  for (std::uint32_t first = 0; first < n;) {
    std::uint32_t size = 1;
    while (first + size < n && found.box[order[first + size]] == found.box[order[first]]) ++size;
    std::vector<bool> taken(size, false);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t r = order[first + i];
      const auto& list = leaves[found.pod[r]];
      std::uint32_t at = i;
      if (leaf_of[r] != none) at = static_cast<std::uint32_t>(seq::find(list, leaf_of[r]) - list.begin()) % size;
      while (taken[at]) at = (at + 1) % size;
      taken[at] = true;
      found.rail[r] = at;
    }
    found.rails = std::max(found.rails, size);
    first += size;
  }

  std::vector<std::vector<node_id>> nodes(found.boxes);
  for (std::uint32_t r = 0; r < n; ++r) nodes[found.box[r]].push_back(q.ranks[r]);
  for (const auto& members : nodes) found.all_pairs.push_back(detail::all_pairs_wired(g, members));
  return found;
}

}}}  // namespace topocoll::v0::plan
