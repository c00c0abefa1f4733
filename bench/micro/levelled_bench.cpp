// SPDX-License-Identifier: Apache-2.0
// Bound and plan of clusters that are described by levels, and one rank's part of the plan.
#include <cstdint>
#include <topocoll/plan/levelled_plan.hpp>
#include <topocoll/plan/lower.hpp>
#include <benchmark/benchmark.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

/// Boxes of 8 GPUs with NVLink of 450 GB/s and a NIC of 50 GB/s each, 16 boxes to a pod, leaves oversubscribed 2:1.
levelled_cluster cluster_of(std::int64_t gpus) {
  const auto boxes = static_cast<std::uint32_t>(gpus / 8);
  return rail_cluster(boxes / 16, 16, 8, {450e9}, {50e9}, 2);
}

void bound_and_plan(benchmark::State& state) {
  const levelled_cluster cluster = cluster_of(state.range(0));
  double gap = 1;
  for (auto _ : state) {
    const auto made = plan_on(cluster, collective_kind::all_reduce);
    gap = made->gap;
    benchmark::DoNotOptimize(made);
  }
  state.counters["gap"] = gap;
}
BENCHMARK(bound_and_plan)
    ->Name("levelled/bound_and_plan")
    ->Arg(1024)
    ->Arg(16384)
    ->Arg(131072)
    ->Unit(benchmark::kMicrosecond);

void part_of_one_rank(benchmark::State& state) {
  const auto made = plan_on(cluster_of(state.range(0)), collective_kind::all_gather);
  double sends = 0;
  for (auto _ : state) {
    const auto program = lower(made->plan, {static_cast<std::uint32_t>(state.range(0) / 3)});
    sends = 0;
    for (const op& o : program->ops) sends += o.kind == op_kind::send ? 1 : 0;
    benchmark::DoNotOptimize(program);
  }
  state.counters["sends"] = sends;
  state.counters["per_send"] =
      benchmark::Counter(sends, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(part_of_one_rank)
    ->Name("levelled/part_of_one_rank")
    ->Arg(1024)
    ->Arg(16384)
    ->Arg(131072)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
