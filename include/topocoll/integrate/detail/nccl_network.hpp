// SPDX-License-Identifier: Apache-2.0
#pragma once
// One host as NCCL's planner sees it: GPUs and adapters by number, one path for every pair, NCCL's figures for the links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/one_host.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/routes.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What a path takes of a link: NCCL counts PCIe traffic through an Intel root complex 1.2 times.
struct nccl_use {
  std::uint32_t link = 0;
  double share = 1;
};
struct nccl_path {
  topo::path_class kind = topo::path_class::DIS;
  std::vector<nccl_use> uses;
};

/// True for switches of Broadcom that show themselves as two levels although they are one: NCCL takes the links between the
/// levels out. Source: NCCL 2.28, src/graph/topo.cc, ncclTopoFlattenBcmSwitches: 1000:c010 (generation 4), 1000:c030 (5).
template <class = void>
[[nodiscard]] bool is_half_of_a_switch(const topo::node& n) {
  if (n.kind != topo::node_kind::pcie_switch) return false;
  bool vendor = false, device = false, subsystem = false;
  for (const auto& [name, value] : n.facts) {
    vendor = vendor || (name == "vendor" && value == "0x1000");
    device = device || (name == "device" && (value == "0xc010" || value == "0xc030"));
    subsystem = subsystem || (name == "subsystem_vendor" && value == "0x1000");
  }
  return vendor && device && subsystem;
}

/// Rate that NCCL books for a link, bytes per second.
///
/// NVLink: 18, 20, 20, 12, 20.6, 40.1 GB/s per link for sm60, 70, 80, 86, 90, 100. PCIe: width times 15, 30, 60, 120, 240, 480
/// (generations 1 to 6) by 80, GB/s. Others as the graph has them. Source: NCCL 2.28, src/graph/topo.h and topo.cc.
template <class = void>
[[nodiscard]] double nccl_rate(const topo::graph& g, const topo::link& l) {
  if (!(l.capacity.value > 0)) return 0;
  if (l.kind == topo::link_kind::pcie && is_half_of_a_switch(g.at(l.from)) && is_half_of_a_switch(g.at(l.to)))
    return 5000e9;  // NCCL's rate within one device
  if (l.kind == topo::link_kind::pcie && l.generation >= 1 && l.generation <= 6 && l.lanes > 0) {
    constexpr double per_lane[] = {15, 30, 60, 120, 240, 480};
    return l.lanes * per_lane[l.generation - 1] / 80 * 1e9;
  }
  if (l.kind == topo::link_kind::nvlink && l.lanes > 0) {
    for (const node_id end : {l.from, l.to})
      for (const auto& [name, value] : g.at(end).facts) {
        if (name != "sm") continue;
        const int sm = value.size() > 4 ? 0 : std::atoi(value.c_str());
        const double per_link = sm >= 100 ? 40.1 : sm >= 90 ? 20.6 : sm == 86 ? 12 : sm >= 70 ? 20 : sm >= 60 ? 18 : 0;
        if (per_link > 0) return l.lanes * per_link * 1e9;
      }
  }
  return l.capacity.value;
}

struct nccl_network {
  std::string host;
  topo::detail::one_host cut;
  std::vector<double> capacity;     ///< of each link of `cut.local`
  std::vector<node_id> gpus, nets;  ///< in `cut.local`
  std::vector<std::uint32_t> gpu_dev, net_dev;
  std::vector<std::uint32_t> sm;   ///< of each GPU; 0 when not told
  std::vector<nccl_path> between;  ///< GPU a to GPU b at a * gpus + b
  std::vector<nccl_path> in, out;  ///< net n to GPU a, and back, at n * gpus + a
  std::vector<finding> findings;

  [[nodiscard]] const nccl_path& hop(std::size_t a, std::size_t b) const { return between[a * gpus.size() + b]; }
  [[nodiscard]] const nccl_path& enter(std::size_t net, std::size_t gpu) const { return in[net * gpus.size() + gpu]; }
  [[nodiscard]] const nccl_path& leave(std::size_t net, std::size_t gpu) const { return out[net * gpus.size() + gpu]; }
};

template <class = void>
[[nodiscard]] nccl_path nccl_path_of(const nccl_network& n, node_id from, node_id to) {
  const topo::graph& g = n.cut.local;
  nccl_path found;
  topo::route_options how;
  how.nvb = how.pxn = true;
  const auto way = topo::route(g, from, to, how);
  if (!way) return found;
  found.kind = topo::class_of(g, *way, from);
  bool intel = false;
  for (const link_id e : way->links)
    if (g.at(g.head(e)).kind == topo::node_kind::cpu)
      for (const auto& [name, value] : g.at(g.head(e)).facts)
        intel = intel || (name == "vendor" && value == "GenuineIntel");
  const bool peers = g.at(from).kind == topo::node_kind::gpu && g.at(to).kind == topo::node_kind::gpu;
  for (const link_id e : way->links)
    found.uses.push_back({e.value, intel && peers && g.at(e).kind == topo::link_kind::pcie ? 1.2 : 1.0});
  return found;
}

/// Cuts the host out and finds all paths.
template <class = void>
[[nodiscard]] result<nccl_network> nccl_network_of(const topo::graph& g, const std::string& host, bool with_nets) {
  const auto hosts = topo::hosts(g);
  const topo::group* chosen = nullptr;
  std::size_t with_gpus = 0;
  for (const topo::group& h : hosts) {
    const bool gpus = seq::any_of(h.nodes, [&](node_id v) { return g.at(v).kind == topo::node_kind::gpu; });
    with_gpus += gpus ? 1 : 0;
    if (host.empty() ? gpus && chosen == nullptr : h.name == host) chosen = &h;
  }
  if (chosen == nullptr)
    return host.empty() ? fail(errc::not_found, "no host has GPUs")
                        : fail(errc::invalid_argument, "there is no host '" + host + "'");
  if (host.empty() && with_gpus > 1)
    return fail(errc::invalid_argument, std::to_string(with_gpus) + " hosts have GPUs, and the file is for one",
                "name the host");
  nccl_network n;
  n.host = chosen->name;
  n.cut = topo::detail::host_cutter<>(g).cut(chosen->nodes);
  const topo::graph& local = n.cut.local;
  for (const topo::link& l : local.links()) n.capacity.push_back(nccl_rate(local, l));
  n.gpus = local.all(topo::node_kind::gpu);
  std::erase_if(n.gpus, [&](node_id v) { return local.at(v).host != n.host; });
  if (n.gpus.empty()) return fail(errc::not_found, "host '" + n.host + "' has no GPU");
  if (n.gpus.size() > 64)
    return fail(errc::unsupported,
                "host '" + n.host + "' has " + std::to_string(n.gpus.size()) + " GPUs; NCCL's search takes 64");
  // NVML's numbers; where the source does not tell them, NVML's order, which is that of the PCI addresses.
  std::vector<std::uint32_t> numbers;
  for (const node_id v : n.gpus)
    if (const auto index = local.at(v).index) numbers.push_back(*index);
  seq::sort_unique(numbers);
  const bool numbered_gpus = numbers.size() == n.gpus.size();
  seq::sort(n.gpus, [&](node_id a, node_id b) {
    return numbered_gpus ? *local.at(a).index < *local.at(b).index : local.at(a).key < local.at(b).key;
  });
  if (!numbered_gpus)
    n.findings.push_back(
        {severity::warning,
         n.host,
         "the numbers of the GPUs are not told; taken in the order of their PCI addresses, as NVML counts",
         {},
         "compare with nvidia-smi -L",
         0.9});
  for (std::size_t i = 0; i < n.gpus.size(); ++i) {
    const topo::node& gpu = local.at(n.gpus[i]);
    n.gpu_dev.push_back(numbered_gpus ? *gpu.index : static_cast<std::uint32_t>(i));
    std::uint32_t sm = 0;
    for (const auto& [name, value] : gpu.facts)
      if (name == "sm" && value.size() <= 4) sm = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    n.sm.push_back(sm);
  }
  if (with_nets) {
    for (const node_id v : topo::detail::interfaces(local)) {
      const bool alive = seq::any_of(local.out_links(v), [&](link_id e) { return n.capacity[e.value] > 0; });
      if (alive && local.at(v).host == n.host) n.nets.push_back(v);
    }
    bool numbered = true;
    for (const node_id v : n.nets) {
      const auto index = local.at(v).index;
      numbered = numbered && index && !seq::contains(n.net_dev, *index);
      n.net_dev.push_back(index.value_or(0));
    }
    if (!numbered) {
      for (std::uint32_t i = 0; i < n.nets.size(); ++i) n.net_dev[i] = i;
      n.findings.push_back(
          {severity::warning,
           n.host,
           "the numbers that NCCL gives to the adapters are not known; taken in the order of the topology",
           {},
           "compare with NCCL_TOPO_DUMP_FILE or the 'NET/IB : Using' line of NCCL_DEBUG=INFO",
           0.7});
    }
  }
  const std::size_t count = n.gpus.size();
  n.between.resize(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (a != b) n.between[a * count + b] = nccl_path_of(n, n.gpus[a], n.gpus[b]);
  n.in.resize(n.nets.size() * count);
  n.out.resize(n.nets.size() * count);
  for (std::size_t i = 0; i < n.nets.size(); ++i)
    for (std::size_t a = 0; a < count; ++a) {
      n.in[i * count + a] = nccl_path_of(n, n.nets[i], n.gpus[a]);
      n.out[i * count + a] = nccl_path_of(n, n.gpus[a], n.nets[i]);
    }
  return n;
}

/// What channels take of every link when each carries one unit; the uses of a tree go both ways at half the rate, because
/// a sum goes up and comes down.
template <class = void>
class nccl_loads {
 public:
  explicit nccl_loads(const nccl_network& n) : n_(n), load_(n.capacity.size(), 0) {}
  void add(const nccl_path& p, double part = 1) {
    for (const nccl_use& u : p.uses) load_[u.link] += u.share * part;
  }
  /// Largest rate of a channel at which no link is overloaded.
  [[nodiscard]] double rate() const {
    double least = 1e300;
    for (std::size_t e = 0; e < load_.size(); ++e)
      if (load_[e] > 0) least = std::min(least, n_.capacity[e] / load_[e]);
    return least;
  }

 private:
  const nccl_network& n_;
  std::vector<double> load_;
};

}}}  // namespace topocoll::v0::detail
