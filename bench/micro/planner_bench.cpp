// SPDX-License-Identifier: Apache-2.0
// Bound and plan together, from a topology graph: what a job waits for before its first collective.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/topo/graph.hpp>
#include <benchmark/benchmark.h>

namespace {

using namespace topocoll;

/// GPUs with direct links of `rate` GB/s each: pairs name both ends, as often as there are links.
topo::graph mesh(std::uint32_t gpus, double rate, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  topo::fragment f;
  for (std::uint32_t v = 0; v < gpus; ++v) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = std::to_string(v);
    f.add(n);
  }
  for (const auto& [a, b] : pairs) {
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = {a};
    l.to = {b};
    l.capacity = {rate * 1e9};
    f.join(l);
  }
  return topo::graph::from(std::move(f)).value();
}

/// The eight V100 of a DGX-1V, six links each. Source: what `nvidia-smi topo -m` prints on such machines.
topo::graph cube_mesh() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const std::uint32_t half : {0U, 4U}) {
    const auto join = [&](std::uint32_t a, std::uint32_t b) { pairs.push_back({half + a, half + b}); };
    join(0, 1);
    join(0, 2);
    join(1, 3);
    join(2, 3);
    for (int k = 0; k < 2; ++k) {
      join(0, 3);
      join(1, 2);
    }
  }
  for (std::uint32_t v = 0; v < 4; ++v)
    for (int k = 0; k < 2; ++k) pairs.push_back({v, v + 4});
  return mesh(8, 25, pairs);
}

/// The sixteen dies of an MI250 box as a ring of packages with cross links: 200 GB/s inside a package, 50 and 100 between.
topo::graph packages_of_two() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t p = 0; p < 8; ++p) {
    for (int k = 0; k < 4; ++k) pairs.push_back({2 * p, 2 * p + 1});
    pairs.push_back({2 * p, (2 * p + 2) % 16});
    pairs.push_back({2 * p + 1, (2 * p + 3) % 16});
    if (p < 4) pairs.push_back({2 * p, 2 * p + 8});
  }
  return mesh(16, 50, pairs);
}

topo::graph described(const std::string& what, double of_one_nic = 1) {
  topo::fragment f = describe(what).value();
  std::uint32_t first = UINT32_MAX;
  for (std::uint32_t v = 0; v < f.nodes.size() && first == UINT32_MAX; ++v)
    if (f.nodes[v].kind == topo::node_kind::nic_port) first = v;
  for (topo::link& l : f.links)
    if (l.kind != topo::link_kind::internal && (l.from.value == first || l.to.value == first))
      l.capacity = {l.capacity.value * of_one_nic};
  return topo::graph::from(std::move(f)).value();
}

template <class Planner>
void bound_and_plan(benchmark::State& state, const topo::graph& g, collective_kind c, const Planner& planner) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 30U};
  p.ranks = g.all(topo::node_kind::gpu);
  double gap = 1;
  for (auto _ : state) {
    const auto limit = plan::lower_bound(p);
    const auto made = planner.synthesize(p);
    benchmark::DoNotOptimize(made);
    if (!limit || !made) {
      state.SkipWithError("no plan");
      return;
    }
    state.PauseTiming();
    gap = plan::simulate(p, *made, plan::alpha_beta::ideal())->busiest / limit->bandwidth_time - 1;
    state.ResumeTiming();
  }
  state.counters["gap_percent"] = gap * 100;
}

plan::packed nominal() {
  plan::packed p;
  p.cost = plan::alpha_beta::ideal();
  return p;
}
constexpr plan::hierarchical rings{
    .in_box = plan::algorithm::ring, .on_rail = plan::algorithm::ring, .across = plan::algorithm::ring};

void packed_on(benchmark::State& s, topo::graph (*make)()) {
  bound_and_plan(s, make(), collective_kind::all_reduce, nominal());
}
void packed_gather_on(benchmark::State& s, topo::graph (*make)()) {
  bound_and_plan(s, make(), collective_kind::all_gather, nominal());
}
BENCHMARK_CAPTURE(packed_on, eight_gpus_eight_nics, [] {
  return described("dgx-h100:nodes=1");
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packed_on, cube_mesh_of_eight, cube_mesh)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packed_gather_on, cube_mesh_of_eight, cube_mesh)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packed_on, sixteen_dies, packages_of_two)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packed_gather_on, sixteen_dies, packages_of_two)->Unit(benchmark::kMillisecond);

void hierarchical_on(benchmark::State& s, const char* what, double of_one_nic, collective_kind c) {
  bound_and_plan(s, described(what, of_one_nic), c, rings);
}
constexpr const char* h100s = "dgx-h100:nodes=128,leaves=64,oversubscription=2";
BENCHMARK_CAPTURE(hierarchical_on, all_reduce_1024, h100s, 1.0, collective_kind::all_reduce)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(hierarchical_on, all_gather_1024, h100s, 1.0, collective_kind::all_gather)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(hierarchical_on, all_reduce_1024_one_nic_half, h100s, 0.5, collective_kind::all_reduce)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(hierarchical_on, all_gather_1024_one_nic_half, h100s, 0.5, collective_kind::all_gather)
    ->Unit(benchmark::kMillisecond);

}  // namespace
