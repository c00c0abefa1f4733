// SPDX-License-Identifier: Apache-2.0
// What reading an InfiniBand fabric costs: the parser alone, and with the graph built.
#include <cstdint>
#include <string>
#include <utility>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/topo/graph.hpp>
#include <benchmark/benchmark.h>
#include "../../tests/fabrics/fabric_text.hpp"

namespace {

namespace tc = topocoll;

// 100 ports a leaf, both ends of its cables counted.
fabrics::shape with_ports(std::int64_t ports) {
  return {.leaves = static_cast<std::uint32_t>(ports / 100), .hosts = 34, .spines = 16, .cables = 1};
}
static_assert(fabrics::ports({.leaves = 100, .hosts = 34, .spines = 16, .cables = 1}) == 10'000);

void parse(benchmark::State& state, std::int64_t ports) {
  const std::string text = fabrics::ibnetdiscover_text(with_ports(ports));
  for (auto _ : state) {
    auto fabric = tc::read::parse_ibnetdiscover(text, "fabric.txt");
    if (!fabric || !fabric->findings.empty()) state.SkipWithError("the fabric is not read as it was written");
    benchmark::DoNotOptimize(fabric);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetItemsProcessed(state.iterations() * ports);
}
BENCHMARK_CAPTURE(parse, 10000_ports, 10'000)->Name("read/ibnetdiscover/10000_ports")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(parse, 20000_ports, 20'000)->Name("read/ibnetdiscover/20000_ports")->Unit(benchmark::kMillisecond);

void parse_and_build(benchmark::State& state, std::int64_t ports) {
  const std::string text = fabrics::ibnetdiscover_text(with_ports(ports));
  for (auto _ : state) {
    auto fabric = tc::read::parse_ibnetdiscover(text, "fabric.txt");
    auto fragment = fabric ? tc::fragment_of(*fabric, {}, "fabric.txt") : fabric.error();
    if (!fragment) {
      state.SkipWithError(fragment.error().what.c_str());
      break;
    }
    auto graph = tc::topo::graph::from(std::move(*fragment));
    if (!graph) state.SkipWithError(graph.error().what.c_str());
    benchmark::DoNotOptimize(graph);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetItemsProcessed(state.iterations() * ports);
}
BENCHMARK_CAPTURE(parse_and_build, 10000_ports, 10'000)
    ->Name("discover/ib_fabric/10000_ports")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(parse_and_build, 20000_ports, 20'000)
    ->Name("discover/ib_fabric/20000_ports")
    ->Unit(benchmark::kMillisecond);

}  // namespace
