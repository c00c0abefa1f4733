// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rates that NCCL's planner books for links, and graphs that have the rates of a cost model as capacities.
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Bandwidth alone, with the constants of NCCL 2.28: what its channel search subtracts from. For comparing plans with it.
///
/// PCIe: lanes times 15, 30, 60, 120, 240, 480 hundred Mbit/s by generation 1 to 6, over 80 (x16: 3, 6, 12, 24, 48, 96
/// GB/s); it knows no generation 7 and takes what it does not know for generation 3, and a width that is not told for x16.
/// It believes what a file says of a bridge, also of an emulated one. NVLink by generation 1 to 5: 18, 20, 20, 20.6, 40.1
/// GB/s a link. Network ports: the speed that they run at. Everything else has the capacity that the graph gives it: readers
/// take NCCL's figures for links between NUMA domains, C2C as the driver tells it, and links of which nothing is told have
/// what the source assumed (NCCL: PCIe Gen3 x16, ports 10 Gbit/s). A rate is never above the capacity.
/// Source: NCCL 2.28.9, graph/topo.h, topo.cc and xml.cc.
struct nccl_rates {
  [[nodiscard]] bytes_per_second rate(const topo::link& l) const {
    const auto most = [&](double gigabytes) {
      const bytes_per_second r{gigabytes * 1e9};
      return r < l.capacity ? r : l.capacity;
    };
    switch (l.kind) {
      case topo::link_kind::pcie: {
        if (l.generation == 0 && l.lanes == 0) break;
        constexpr double tenths[] = {60, 15, 30, 60, 120, 240, 480};  // Gbit/s times ten, a lane
        const double lane = tenths[l.generation < 7 ? l.generation : 0];
        return most(lane * (l.lanes == 0 ? 16 : l.lanes) / 80);
      }
      case topo::link_kind::nvlink: {
        constexpr double link[] = {0, 18, 20, 20, 20.6, 40.1};
        if (l.generation == 0 || l.generation > 5 || l.lanes == 0) break;
        return most(link[l.generation] * l.lanes);
      }
      case topo::link_kind::internal:
      case topo::link_kind::infiniband:
      case topo::link_kind::ethernet:
        if (l.current && *l.current < l.capacity) return *l.current;
        break;
      default: break;
    }
    return l.capacity;
  }
  [[nodiscard]] seconds transfer(const topo::link& l, bytes b) const { return b.value == 0 ? seconds{} : b / rate(l); }
  [[nodiscard]] seconds latency(const topo::link&) const { return {}; }
  [[nodiscard]] seconds post() const { return {}; }
  [[nodiscard]] seconds launch() const { return {}; }
  [[nodiscard]] seconds reduce(bytes) const { return {}; }
};
static_assert(CostModel<nccl_rates>);

/// The same graph, every link with the capacity that `cost` says it carries: for planners that look at capacities.
///
/// Nodes and links keep their numbers. Links whose rate differs say so in `reason`.
/// Cost: a copy of the graph.
template <CostModel M>
[[nodiscard]] result<topo::graph> with_rates_of(const topo::graph& g, const M& cost, const char* reason) {
  topo::fragment f;
  f.source = g.source();
  f.nodes.assign(g.nodes().begin(), g.nodes().end());
  f.findings.assign(g.findings().begin(), g.findings().end());
  f.links.assign(g.links().begin(), g.links().end());
  for (topo::link& l : f.links) {
    const bytes_per_second r = cost.rate(l);
    if (r == l.capacity) continue;
    l.capacity = r;
    l.how = trust::derived;
    l.reason = reason;
  }
  return topo::graph::from(std::move(f));
}

}}}  // namespace topocoll::v0::plan
