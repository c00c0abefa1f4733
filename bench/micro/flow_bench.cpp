// SPDX-License-Identifier: Apache-2.0
// What simulating a plan flow by flow and checking it costs.
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/check.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/fair_share.hpp>
#include <topocoll/plan/flow_simulate.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/ring.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;
namespace plan = topocoll::plan;
using namespace tc::literals;

// All GPUs of so many hosts, eight in a pod at 2:1.
struct cluster {
  tc::topo::graph graph;
  plan::problem wish;

  cluster(std::int64_t nodes, tc::collective_kind kind)
      : graph(tc::topo::graph::from(tc::describe("dgx-h100:nodes=" + std::to_string(nodes) + ",pods=" +
                                                 std::to_string(nodes < 16 ? 2 : nodes / 8) + ",oversubscription=2")
                                        .value())
                  .value()),
        wish{&graph, kind, 1_GiB, tc::ranks_in_order(graph), {}} {}
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
};

void run(benchmark::State& state, const cluster& c, const plan::schedule& made, const plan::flow_options& options) {
  plan::flow_simulator<plan::alpha_beta> flows(c.graph, {});
  plan::flow_simulation s;
  for (auto _ : state) s = flows.run(c.wish, made, options).value();
  state.counters["messages"] = static_cast<double>(s.messages);
  state.counters["flows"] = static_cast<double>(s.flows);
  state.counters["events"] = static_cast<double>(s.events);
  state.counters["flows/s"] =
      benchmark::Counter(static_cast<double>(s.flows), benchmark::Counter::kIsIterationInvariantRate);
}

// Symmetric: one rank stands for all. Lowering every rank's program is most of it.
void grouped(benchmark::State& state) {
  const cluster c(state.range(0), tc::collective_kind::all_reduce);
  run(state, c, plan::hierarchical{}.synthesize(c.wish).value(), {});
}
BENCHMARK(grouped)->Name("flow/all_reduce_hierarchical/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

// The same without grouping: every message is a flow of its own.
void alone(benchmark::State& state) {
  const cluster c(state.range(0), tc::collective_kind::all_reduce);
  run(state, c, plan::hierarchical{}.synthesize(c.wish).value(), {.group = false});
}
BENCHMARK(alone)->Name("flow/all_reduce_hierarchical_alone/nodes")->Arg(16)->Unit(benchmark::kMillisecond);

// Hashed paths make all connections different, and every change of one moves others.
void hashed(benchmark::State& state) {
  const cluster c(state.range(0), tc::collective_kind::all_to_all);
  run(state, c, plan::direct{}.synthesize(c.wish).value(), {.paths = plan::path_choice::hashed});
}
BENCHMARK(hashed)->Name("flow/all_to_all_hashed/nodes")->Arg(4)->Arg(16)->Unit(benchmark::kMillisecond);

// Many rings through many rails.
void rings(benchmark::State& state) {
  const cluster c(state.range(0), tc::collective_kind::all_reduce);
  run(state, c, plan::ring{.order = plan::ring_order::hardware}.synthesize(c.wish).value(), {.group = false});
}
BENCHMARK(rings)->Name("flow/all_reduce_rings_alone/nodes")->Arg(4)->Unit(benchmark::kMillisecond);

void check(benchmark::State& state) {
  const cluster c(state.range(0), tc::collective_kind::all_reduce);
  const auto made = plan::hierarchical{}.synthesize(c.wish).value();
  std::vector<plan::program> all;
  for (std::uint32_t r = 0; r < made.ranks; ++r) all.push_back(plan::lower(made, {r}).value());
  plan::check_report report;
  for (auto _ : state) {
    report = plan::check(std::span<const plan::program>(all));
    if (!report.holds()) state.SkipWithError(report.summary().c_str());
  }
  state.counters["operations"] = static_cast<double>(report.operations);
}
BENCHMARK(check)->Name("flow/check/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

// One change among many flows on few links: what is filled again.
void refill(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  plan::fair_share<> shares;
  std::vector<std::uint32_t> ways;
  std::uint32_t mixed = 1;
  for (std::uint32_t p = 0; p < n; ++p) shares.add_place(1e9 * (1 + p % 7));
  for (std::uint32_t w = 0; w < 4 * n; ++w) {
    const plan::fair_use uses[] = {{w % n, 1},
                                   {(w % n + 1 + (mixed = mixed * 1664525U + 1013904223U) % (n - 1)) % n, 1}};
    ways.push_back(shares.add_way(uses));
    shares.start(ways.back());
  }
  shares.settle();
  std::uint32_t at = 0;
  for (auto _ : state) {
    shares.stop(ways[at]);
    benchmark::DoNotOptimize(shares.settle());
    shares.start(ways[at]);
    benchmark::DoNotOptimize(shares.settle());
    at = (at + 1) % (4 * n);
  }
}
BENCHMARK(refill)->Name("flow/refill/places")->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);

}  // namespace
