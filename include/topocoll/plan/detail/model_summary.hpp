// SPDX-License-Identifier: Apache-2.0
#pragma once
// A topology graph reduced to what the library model asks for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/library_model.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Walks a graph for the ranks of a problem.
class machine_reader {
 public:
  machine_reader(const topo::graph& g, std::span<const node_id> ranks) : g_(&g), ranks_(ranks) {}

  [[nodiscard]] result<machine_summary> read() {
    if (ranks_.empty()) return fail(errc::invalid_argument, "a machine without ranks has no summary");
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].value >= g_->node_count() || g_->at(ranks_[r]).kind != topo::node_kind::gpu)
        return fail(errc::invalid_argument, "rank " + std::to_string(r) + " does not sit on a GPU of the graph");
    s_.ranks = static_cast<std::uint32_t>(ranks_.size());
    find_domains();
    read_links();
    if (s_.domains > 1) read_network();
    return std::move(s_);
  }

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  void note(std::string what) {
    finding f;
    f.level = severity::note;
    f.what = std::move(what);
    s_.findings.push_back(std::move(f));
  }
  [[nodiscard]] static bool joins_gpus(topo::link_kind k) {
    return k == topo::link_kind::nvlink || k == topo::link_kind::xgmi;
  }
  /// Line rate where it is told, else what the graph has.
  [[nodiscard]] static double line_of(const topo::link& l) {
    const double best = l.nominal ? l.nominal->value : l.capacity.value;
    return l.current ? std::min(best, l.current->value) : best;
  }

  /// NVLink islands, and hosts for GPUs without such links.
  void find_domains() {
    domain_.assign(g_->node_count(), nowhere);
    std::vector<std::string> lone_hosts;
    std::uint32_t n = 0;
    std::vector<std::uint32_t> gpus;  // of each domain
    std::vector<std::uint32_t> number_of_host;
    for (const topo::group& island : topo::nvlink_islands(*g_)) {
      std::uint32_t d = n;
      if (island.nodes.size() == 1) {
        const std::string& host = g_->at(island.nodes[0]).host;
        const auto it = seq::find(lone_hosts, host);
        if (it != lone_hosts.end() && !host.empty()) {
          d = number_of_host[static_cast<std::size_t>(it - lone_hosts.begin())];
        } else {
          lone_hosts.push_back(host);
          number_of_host.push_back(n);
        }
      }
      if (d == n) {
        ++n;
        gpus.push_back(0);
      }
      gpus[d] += static_cast<std::uint32_t>(island.nodes.size());
      for (const node_id v : island.nodes) domain_[v.value] = d;
    }
    std::vector<std::uint32_t> ranks_in(n, 0);
    std::vector<std::string> names;
    for (const node_id v : ranks_) {
      ++ranks_in[domain_[v.value]];
      names.push_back(g_->at(v).host);
    }
    seq::sort_unique(names);
    s_.hosts = static_cast<std::uint32_t>(names.size());
    s_.domains = 0;
    std::uint32_t least = UINT32_MAX, most = 0;
    for (std::uint32_t d = 0; d < n; ++d) {
      if (ranks_in[d] == 0) continue;
      ++s_.domains;
      used_.push_back(d);
      least = std::min(least, ranks_in[d]);
      most = std::max(most, ranks_in[d]);
      s_.gpus_in_mesh = std::max(s_.gpus_in_mesh, gpus[d]);
    }
    if (least != most)
      note("domains hold " + std::to_string(least) + " to " + std::to_string(most) +
           " ranks; the model takes them as evenly filled");
  }

  void read_links() {
    if (s_.domains == s_.ranks) return;
    bool first = true, switched = true, any_nvlink = false;
    double weakest = 0, widest = 0;
    for (const node_id v : ranks_) {
      double rate = 0;
      bool to_switch = false;
      for (const link_id e : g_->out_links(v)) {
        const topo::link& l = g_->at(e);
        if (!joins_gpus(l.kind) || !(l.capacity.value > 0)) continue;
        rate += line_of(l);
        any_nvlink = true;
        s_.xgmi = s_.xgmi || l.kind == topo::link_kind::xgmi;
        to_switch = to_switch || g_->at(g_->head(e)).kind == topo::node_kind::nvswitch;
        if (l.generation != 0 && (s_.generation == 0 || l.generation < s_.generation)) s_.generation = l.generation;
      }
      switched = switched && to_switch;
      weakest = first ? rate : std::min(weakest, rate);
      widest = std::max(widest, rate);
      first = false;
    }
    if (any_nvlink && weakest > 0) {
      s_.gpu_links = {weakest};
      s_.fabric = switched ? gpu_fabric::nvswitch : s_.gpus_in_mesh == 2 ? gpu_fabric::bridge : gpu_fabric::mesh;
      if (s_.xgmi && s_.fabric == gpu_fabric::bridge) s_.fabric = gpu_fabric::mesh;
      s_.multicast = switched && s_.generation >= 4;
      if (widest > weakest * 1.01) note("GPUs differ in their links; the weakest sets the pace of a ring");
      return;
    }
    if (any_nvlink) note("some ranks have no NVLink; the ring runs at the pace of PCIe");
    read_pcie();
  }

  /// The slowest PCIe link next to a rank, and whether one switch lies between all of them.
  void read_pcie() {
    double slowest = 0;
    std::optional<node_id> parent;
    bool shared = true;
    s_.generation = 0;
    for (const node_id v : ranks_)
      for (const link_id e : g_->out_links(v)) {
        const topo::link& l = g_->at(e);
        if (l.kind != topo::link_kind::pcie || !(l.capacity.value > 0)) continue;
        const double rate = line_of(l);
        if (slowest == 0 || rate < slowest) {
          slowest = rate;
          s_.generation = l.generation;
        }
        const node_id up = g_->head(e);
        if (g_->at(up).kind != topo::node_kind::pcie_switch || (parent && *parent != up)) shared = false;
        parent = up;
      }
    s_.gpu_links = {slowest};
    s_.fabric = shared && s_.domains == 1 ? gpu_fabric::pcie_switch : gpu_fabric::pcie_host;
  }

  void read_network() {
    std::vector<bool> of_ranks(g_->node_count(), false);
    std::vector<std::string> hosts;
    for (const node_id v : ranks_) {
      of_ranks[v.value] = true;
      hosts.push_back(g_->at(v).host);
    }
    seq::sort_unique(hosts);
    const auto host_of = [&](node_id v) {
      const auto it =
          seq::lower_bound_by(hosts, g_->at(v).host, [](const std::string& h) -> const std::string& { return h; });
      return it != hosts.end() && *it == g_->at(v).host ? static_cast<std::size_t>(it - hosts.begin()) : hosts.size();
    };
    std::vector<double> rates(hosts.size(), 0);
    std::vector<std::uint32_t> nics(hosts.size(), 0), gpus(hosts.size(), 0), ranks(hosts.size(), 0);
    bool any_cable = false;
    for (const node_id v : g_->all(topo::node_kind::nic)) any_cable = any_cable || topo::detail::has_cable(*g_, v);
    for (const node_id v : g_->all(topo::node_kind::gpu)) {
      const std::size_t h = host_of(v);
      if (h == hosts.size()) continue;
      ++gpus[h];
      ranks[h] += of_ranks[v.value] ? 1 : 0;
    }
    bool infiniband = false, ethernet = false, efa = false, no_rdma = false;
    for (const node_id v : g_->all(topo::node_kind::nic)) {
      const std::size_t h = host_of(v);
      if (h == hosts.size() || (any_cable && !topo::detail::has_cable(*g_, v))) continue;
      double port = 0, bus = 0;
      const auto look = [&](node_id at) {
        for (const link_id e : g_->out_links(at)) {
          const topo::link& l = g_->at(e);
          infiniband = infiniband || l.kind == topo::link_kind::infiniband;
          ethernet = ethernet || l.kind == topo::link_kind::ethernet;
          if (l.kind == topo::link_kind::infiniband || l.kind == topo::link_kind::ethernet ||
              l.kind == topo::link_kind::internal)
            if (g_->head(e) != v) port = std::max(port, line_of(l));
          if (l.kind == topo::link_kind::pcie) bus = std::max(bus, line_of(l));
        }
        for (const auto& [name, value] : g_->at(at).facts) {
          efa = efa || (name == "vendor" && value == "0x1d0f");
          no_rdma = no_rdma || (name == "gdr" && value == "0");
        }
      };
      look(v);
      for (const link_id e : g_->out_links(v))
        if (g_->at(e).kind == topo::link_kind::internal) look(g_->head(e));
      if (!(port > 0)) continue;
      ++nics[h];
      rates[h] += bus > 0 ? std::min(port, bus) : port;
    }
    // What the ranks of a host may use of it; the host with the least sets the pace.
    double least = 0;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (nics[h] == 0) {
        s_.nics = 0;
        return;
      }
      const double share = static_cast<double>(ranks[h]) / std::max<std::uint32_t>(gpus[h], 1);
      const auto mine = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(nics[h] * share + 0.5));
      const double rate = rates[h] / nics[h] * mine;
      if (h != 0 && rate >= least) continue;
      least = rate;
      s_.nics = mine;
      s_.nic_rate = {rates[h] / nics[h]};
    }
    s_.nics *= std::max<std::uint32_t>(1, s_.hosts / s_.domains);
    s_.network = no_rdma      ? network_kind::host_copies
                 : efa        ? network_kind::efa
                 : infiniband ? network_kind::infiniband
                              : network_kind::roce;
    if (!infiniband && !efa && !no_rdma)
      note(ethernet ? "the Ethernet between hosts is taken for one with RDMA into GPU memory"
                    : "the network between hosts is not told; taken for Ethernet with RDMA into GPU memory");
  }

  const topo::graph* g_;
  std::span<const node_id> ranks_;
  machine_summary s_;
  std::vector<std::uint32_t> domain_, used_;
};

}  // namespace detail

template <class>
result<machine_summary> machine_summary_of(const topo::graph& graph, std::span<const node_id> ranks) {
  return detail::machine_reader(graph, ranks).read();
}

}}}  // namespace topocoll::v0::plan
