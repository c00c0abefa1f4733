// SPDX-License-Identifier: Apache-2.0
// What making, proving and pricing a plan costs.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/verify.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;
using namespace tc::literals;

// An all-reduce among all GPUs of so many hosts, two in a pod at 3:1.
struct cluster {
  tc::topo::graph graph;
  tc::plan::problem wish;

  explicit cluster(std::int64_t nodes)
      : graph(tc::topo::graph::from(tc::describe("dgx-h100:nodes=" + std::to_string(nodes) +
                                                 ",pods=" + std::to_string(nodes / 2) + ",oversubscription=3")
                                        .value())
                  .value()),
        wish{&graph, tc::collective_kind::all_reduce, 64_MiB, tc::ranks_in_order(graph), {}} {}
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
};

void synthesize(benchmark::State& state) {
  const cluster c(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tc::plan::hierarchical{}.synthesize(c.wish));
}
BENCHMARK(synthesize)->Name("plan/hierarchical/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMicrosecond);

void lower(benchmark::State& state) {
  const cluster c(state.range(0));
  const auto plan = tc::plan::hierarchical{}.synthesize(c.wish).value();
  for (auto _ : state) benchmark::DoNotOptimize(tc::plan::lower(plan, tc::rank_id{0}));
}
BENCHMARK(lower)->Name("plan/lower/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMicrosecond);

void verify(benchmark::State& state) {
  const auto plan = tc::plan::flat_schedule(tc::collective_kind::all_reduce, static_cast<std::uint32_t>(state.range(0)),
                                            {}, tc::plan::algorithm::ring)
                        .value();
  for (auto _ : state) {
    auto proof = tc::plan::verify(plan);
    if (!proof) state.SkipWithError(proof.error().what.c_str());
  }
}
BENCHMARK(verify)->Name("plan/verify_ring/ranks")->Arg(8)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);

void simulate(benchmark::State& state) {
  const cluster c(state.range(0));
  const auto plan = tc::plan::hierarchical{}.synthesize(c.wish).value();
  for (auto _ : state) benchmark::DoNotOptimize(tc::plan::simulate(c.wish, plan, tc::plan::alpha_beta{}));
}
BENCHMARK(simulate)->Name("plan/simulate/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

void bound(benchmark::State& state) {
  const cluster c(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tc::plan::lower_bound(c.wish));
}
BENCHMARK(bound)->Name("plan/lower_bound/nodes")->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
