// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which network interface each GPU should use: the nearest, and, among several, one that others use least.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/detail/one_host.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/routes.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// The network interfaces near one GPU. Interfaces are nodes of kind nic_port, or nic where an adapter shows no port.
struct gpu_affinity {
  node_id gpu;
  path_class distance = path_class::DIS;  ///< to the nearest; DIS when there is none
  std::vector<node_id> nearest;           ///< all that are equally near and equally fast, in the order of the graph
  std::optional<node_id> chosen;          ///< one of `nearest`
  bytes_per_second rate{};                ///< expected between the GPU and each of `nearest`; 0 when there is none
};

/// The GPUs that chose one interface.
struct nic_load {
  node_id nic;
  std::vector<node_id> gpus;
};

struct affinity {
  std::vector<gpu_affinity> gpus;     ///< in the order of the graph
  std::vector<nic_load> used;         ///< interfaces that a GPU chose, in the order of the graph
  std::vector<node_id> unaffiliated;  ///< interfaces to which no GPU is nearer than SYS: not for GPU traffic
  std::size_t rails = 0;              ///< interfaces in use on the host that uses most
  std::size_t gpus_per_nic = 0;       ///< 1 when nobody shares
};

/// Finds the interfaces of the own host that each GPU is nearest to.
///
/// Nearest is the smallest path class; within PHB those of the same host bridge come first where it is known (NODE in the
/// words of nvidia-smi is farther than PHB), then the larger rate. GPUs with the fewest choices choose first, each the
/// interface with the fewest GPUs, the first of equals. So GPUs with the same choices take turns, as NCCL 2.28 has it
/// (ncclTopoGetLocalNet in graph/topo.cc turns by device number). Interfaces that cannot be reached, or that the host made
/// up, are left out.
/// Cost: O(n log n) for the graph, and O(nodes and links of its host) for each GPU.
template <class = void>
[[nodiscard]] affinity affinity_of(const graph& g);

namespace detail {

/// How near an interface is; smaller is nearer.
struct nearness {
  path_class distance = path_class::DIS;
  bool other_bridge = false;
  double rate = 0;

  [[nodiscard]] bool before(const nearness& o) const {
    if (distance != o.distance) return distance < o.distance;
    if (other_bridge != o.other_bridge) return !other_bridge;
    return rate > o.rate;
  }
};

template <class = void>
void add_host_affinity(const one_host& h, affinity& all) {
  const graph& g = h.local;
  const std::vector<node_id> nics = interfaces(g);
  std::vector<std::string> bridges;
  for (const node_id nic : nics) bridges.push_back(host_bridge_of(g, nic));
  std::vector<bool> affiliated(nics.size(), false);
  std::vector<std::vector<std::size_t>> choices;
  const std::size_t first = all.gpus.size();
  for (const node_id gpu : g.all(node_kind::gpu)) {
    const std::string bridge = host_bridge_of(g, gpu);
    const routes ways(g, gpu);
    nearness best;
    std::vector<std::size_t> nearest;
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const auto way = ways.to(nics[i]);
      if (!way) continue;
      nearness n{class_of(g, *way, gpu), false, way->rate.value};
      n.other_bridge = n.distance == path_class::PHB && !bridge.empty() && !bridges[i].empty() && bridge != bridges[i];
      if (n.distance < path_class::SYS) affiliated[i] = true;
      if (nearest.empty() || n.before(best)) {
        best = n;
        nearest.clear();
      }
      if (!best.before(n)) nearest.push_back(i);
    }
    gpu_affinity a;
    a.gpu = h.original[gpu.value];
    a.distance = best.distance;
    a.rate = {best.rate};
    for (const std::size_t i : nearest) a.nearest.push_back(h.original[nics[i].value]);
    all.gpus.push_back(std::move(a));
    choices.push_back(std::move(nearest));
  }
  std::vector<std::size_t> order(choices.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  seq::sort(order, [&](std::size_t a, std::size_t b) {
    return choices[a].size() != choices[b].size() ? choices[a].size() < choices[b].size() : a < b;
  });
  std::vector<std::vector<std::size_t>> users(nics.size());
  for (const std::size_t k : order) {
    if (choices[k].empty()) continue;
    std::size_t least = choices[k].front();
    for (const std::size_t i : choices[k])
      if (users[i].size() < users[least].size()) least = i;
    users[least].push_back(k);
    all.gpus[first + k].chosen = h.original[nics[least].value];
  }
  std::size_t rails = 0;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (!affiliated[i]) all.unaffiliated.push_back(h.original[nics[i].value]);
    if (users[i].empty()) continue;
    ++rails;
    nic_load load;
    load.nic = h.original[nics[i].value];
    seq::sort(users[i]);
    for (const std::size_t k : users[i]) load.gpus.push_back(all.gpus[first + k].gpu);
    all.gpus_per_nic = std::max(all.gpus_per_nic, load.gpus.size());
    all.used.push_back(std::move(load));
  }
  all.rails = std::max(all.rails, rails);
}

}  // namespace detail

template <class>
affinity affinity_of(const graph& g) {
  affinity all;
  detail::host_cutter<> cutter(g);
  for (const group& host : hosts(g)) detail::add_host_affinity(cutter.cut(host.nodes), all);
  return all;
}

}}}  // namespace topocoll::v0::topo
