// SPDX-License-Identifier: Apache-2.0
// What reading an InfiniBand fabric costs: the parser alone, and with the graph built.
#include <cstddef>
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

// As many adapters as the largest clusters have, one port each, and as much capacity up as down.
constexpr fabrics::shape ten_thousand_adapters{.leaves = 250, .hosts = 40, .spines = 40, .cables = 1};

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

void parse_and_build(benchmark::State& state, const std::string& text, const fabrics::shape& shape) {
  std::size_t links = 0;
  for (auto _ : state) {
    auto fabric = tc::read::parse_ibnetdiscover(text, "fabric.txt");
    auto fragment = fabric ? tc::fragment_of(*fabric, {}, "fabric.txt") : fabric.error();
    if (!fragment) {
      state.SkipWithError(fragment.error().what.c_str());
      break;
    }
    auto graph = tc::topo::graph::from(std::move(*fragment));
    if (!graph) {
      state.SkipWithError(graph.error().what.c_str());
      break;
    }
    links = graph->link_count();
    benchmark::DoNotOptimize(graph);
  }
  // Both directions of each cable, and of each adapter to its port.
  if (links != fabrics::ports(shape) + std::size_t{2} * shape.leaves * shape.hosts)
    state.SkipWithError("the graph lacks links");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(fabrics::ports(shape)));
}
void listing(benchmark::State& state, const fabrics::shape& shape) {
  parse_and_build(state, fabrics::ibnetdiscover_text(shape), shape);
}
void net_file(benchmark::State& state, const fabrics::shape& shape) {
  parse_and_build(state, fabrics::ibsim_text(shape), shape);
}
BENCHMARK_CAPTURE(listing, 10000_ports, with_ports(10'000))
    ->Name("discover/ib_fabric/10000_ports")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(listing, 20000_ports, with_ports(20'000))
    ->Name("discover/ib_fabric/20000_ports")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(net_file, 10000_ports, with_ports(10'000))
    ->Name("discover/ibsim_net/10000_ports")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(listing, 10000_adapters, ten_thousand_adapters)
    ->Name("discover/ib_fabric/10000_adapters")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(net_file, 10000_adapters, ten_thousand_adapters)
    ->Name("discover/ibsim_net/10000_adapters")
    ->Unit(benchmark::kMillisecond);

}  // namespace
