// SPDX-License-Identifier: Apache-2.0
// What the exact bounds cost, from an explicit network, from a described graph and from levels.
#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/levelled_bound.hpp>
#include <topocoll/plan/symmetry.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;
namespace plan = topocoll::plan;
namespace detail = topocoll::plan::detail;
using namespace tc::literals;

enum damage : std::int64_t { none, one_nic, every_nic };

// Pods of 16 boxes of 8 GPUs on 8 rails, 450 and 50 GB/s, 2:1, under 8 spines. `every_nic`: each has 25 to 50 GB/s.
struct rail_network {
  detail::exact_network net;
  std::vector<std::int64_t> weight;

  rail_network(std::uint32_t gpus, std::int64_t hurt) {
    constexpr std::uint32_t rails = 8, in_pod = 16 * rails, spines = 8;
    const std::uint32_t boxes = gpus / rails, leaves = gpus / in_pod * rails;
    net.nodes = gpus + boxes + leaves + spines;
    weight.assign(net.nodes, 0);
    std::uint64_t random = 1;
    const auto join = [&](std::uint32_t a, std::uint32_t b, std::int64_t units) {
      net.arcs.push_back({a, b, units});
      net.arcs.push_back({b, a, units});
    };
    for (std::uint32_t v = 0; v < gpus; ++v) {
      weight[v] = 1;
      random = random * 6364136223846793005U + 1442695040888963407U;
      std::int64_t nic = 50;
      if (hurt == every_nic) nic = 25 + static_cast<std::int64_t>((random >> 33U) % 26);
      if (hurt == one_nic && v == gpus / 2 + 3) nic = 25;
      join(v, gpus + v / rails, 450);
      join(v, gpus + boxes + v / in_pod * rails + v % rails, nic);
    }
    for (std::uint32_t k = 0; k < leaves; ++k)
      for (std::uint32_t s = 0; s < spines; ++s) join(gpus + boxes + k, gpus + boxes + leaves + s, 50);
  }
};

std::int64_t resident_kib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

void cut(benchmark::State& state) {
  const rail_network c(static_cast<std::uint32_t>(state.range(0)), state.range(1));
  const std::int64_t before = resident_kib();
  for (auto _ : state) benchmark::DoNotOptimize(detail::worst_gather_cut(c.net, c.weight));
  state.counters["added_peak_KiB"] = static_cast<double>(resident_kib() - before);
}
BENCHMARK(cut)
    ->Name("plan/bound/all_gather/network/gpus")
    ->ArgsProduct({{128, 1024, 16384, 131072}, {none, one_nic, every_nic}})
    ->Unit(benchmark::kMillisecond);

void classes(benchmark::State& state) {
  const rail_network c(static_cast<std::uint32_t>(state.range(0)), none);
  for (auto _ : state) {
    std::vector<std::uint64_t> colours(c.weight.begin(), c.weight.end());
    const auto found = detail::refine(c.net, colours);
    if (!detail::is_equitable(c.net, c.weight, found)) state.SkipWithError("hashes collided");
  }
}
BENCHMARK(classes)
    ->Name("plan/symmetry/network/gpus")
    ->Arg(1024)
    ->Arg(16384)
    ->Arg(131072)
    ->Unit(benchmark::kMillisecond);

// From each GPU alone, without the levels that a graph offers as a start.
void family(benchmark::State& state) {
  const rail_network c(static_cast<std::uint32_t>(state.range(0)), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(detail::best_partition(c.net, c.weight));
}
BENCHMARK(family)
    ->Name("plan/bound/all_reduce/network/gpus")
    ->ArgsProduct({{128, 1024, 16384}, {none, one_nic, every_nic}})
    ->Args({131072, none})
    ->Args({131072, one_nic})
    ->Unit(benchmark::kMillisecond);

// Hosts with NICs and ports under 2:1 leaves, 16 hosts to a pod.
tc::topo::graph described(std::int64_t nodes, bool hurt) {
  auto f = tc::describe("dgx-h100:nodes=" + std::to_string(nodes) + ",leaves=" + std::to_string(nodes / 2) +
                        ",oversubscription=2")
               .value();
  int left = hurt ? 2 : 0;
  for (tc::topo::link& l : f.links) {
    const auto from = f.nodes[l.from.value].kind, to = f.nodes[l.to.value].kind;
    const bool cable = (from == tc::topo::node_kind::nic_port && to == tc::topo::node_kind::leaf) ||
                       (from == tc::topo::node_kind::leaf && to == tc::topo::node_kind::nic_port);
    if (!cable || left == 0) continue;
    l.capacity = l.capacity * 0.5;
    --left;
  }
  return tc::topo::graph::from(std::move(f)).value();
}

void graph_bound(benchmark::State& state, tc::collective_kind kind) {
  const tc::topo::graph g = described(state.range(0), state.range(1) != 0);
  const plan::problem p{&g, kind, 64_MiB, tc::ranks_in_order(g), {}};
  const plan::alpha_beta cost;
  for (auto _ : state) {
    const auto b = plan::lower_bound(p, cost);
    if (!b || (b->method != plan::bound_method::best_cut && b->method != plan::bound_method::best_partition))
      state.SkipWithError("not proved");
  }
}
BENCHMARK_CAPTURE(graph_bound, gather, tc::collective_kind::all_gather)
    ->Name("plan/bound/all_gather/described/hosts")
    ->ArgsProduct({{1, 128, 2048}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(graph_bound, reduce, tc::collective_kind::all_reduce)
    ->Name("plan/bound/all_reduce/described/hosts")
    ->ArgsProduct({{1, 128, 2048}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void levels(benchmark::State& state, tc::collective_kind kind) {
  auto c = plan::rail_cluster(static_cast<std::uint32_t>(state.range(0) / 128), 16, 8, 450_GBps, 50_GBps, 2);
  for (std::int64_t k = 0; k < state.range(1); ++k) {
    plan::level_exception e;
    e.unit = {static_cast<std::uint32_t>(k), 3, 5};
    e.nic = plan::two_way::both(25_GBps);
    c.exceptions.push_back(e);
  }
  for (auto _ : state) benchmark::DoNotOptimize(plan::lower_bound(c, kind));
}
BENCHMARK_CAPTURE(levels, gather, tc::collective_kind::all_gather)
    ->Name("plan/bound/all_gather/levels/gpus")
    ->ArgsProduct({{1024, 131072, 1048576}, {0, 1, 8}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(levels, reduce, tc::collective_kind::all_reduce)
    ->Name("plan/bound/all_reduce/levels/gpus")
    ->ArgsProduct({{1024, 131072, 1048576}, {0, 1, 8}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
