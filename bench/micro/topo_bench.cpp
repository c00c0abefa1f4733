// SPDX-License-Identifier: Apache-2.0
// What reading and walking a topology costs.
#include <cstdint>
#include <string>
#include <utility>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/routes.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;

// A host of so many GPUs, each beside a NIC behind a PCIe switch, as NCCL writes it.
std::string nccl_host(int gpus) {
  std::string text = "<system version=\"1\">\n";
  for (int socket = 0; socket < 2; ++socket) {
    text += "<cpu numaid=\"" + std::to_string(socket) +
            "\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n";
    for (int i = 0; i < gpus / 2; ++i) {
      const int g = socket * (gpus / 2) + i;
      const std::string number = std::to_string(g);
      const std::string bus = {'0', "0123456789abcdef"[g]};
      const std::string link = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
      text += "<pci busid=\"0000:" + bus + ":00.0\" class=\"0x060400\" " + link + ">\n";
      text += "<pci busid=\"0000:" + bus + ":01.0\" class=\"0x030200\" " + link + "><gpu dev=\"" + number +
              "\" sm=\"90\" rank=\"" + number +
              "\" gdr=\"1\"><nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n";
      text += "<pci busid=\"0000:" + bus + ":02.0\" class=\"0x020700\" " + link + "><nic><net name=\"mlx5_" + number +
              "\" dev=\"" + number + "\" speed=\"400000\" port=\"1\" guid=\"0x" + number +
              "\" maxconn=\"131072\" gdr=\"1\"/></nic></pci>\n</pci>\n";
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

std::string fabric(std::int64_t nodes) {
  return "dgx-h100:nodes=" + std::to_string(nodes) + ",leaves=" + std::to_string(nodes / 16 * 8) +
         ",oversubscription=2";
}

void parse_nccl_xml(benchmark::State& state) {
  const std::string text = nccl_host(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    auto told = tc::fragment_of_nccl_xml(text, "host.xml", {});
    if (!told) state.SkipWithError(told.error().what.c_str());
    benchmark::DoNotOptimize(told);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse_nccl_xml)->Name("discover/nccl_xml/gpus")->Arg(8)->Arg(16)->Unit(benchmark::kMicrosecond);

void describe_fabric(benchmark::State& state) {
  const std::string spec = fabric(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tc::describe(spec));
}
BENCHMARK(describe_fabric)->Name("discover/describe/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMicrosecond);

void json_round_trip(benchmark::State& state) {
  const auto graph = tc::topo::graph::from(tc::describe(fabric(16)).value()).value();
  for (auto _ : state) {
    const std::string text = tc::topo::to_json(graph);
    benchmark::DoNotOptimize(tc::topo::from_json(text, "bench"));
  }
}
BENCHMARK(json_round_trip)->Name("topo/json_round_trip/16_nodes")->Unit(benchmark::kMillisecond);

void routes_from_one_gpu(benchmark::State& state) {
  const auto graph = tc::topo::graph::from(tc::describe(fabric(state.range(0))).value()).value();
  const tc::node_id from = graph.all(tc::topo::node_kind::gpu).front();
  for (auto _ : state) {
    const tc::topo::routes ways(graph, from);
    benchmark::DoNotOptimize(ways.kind(from));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.link_count()));
}
BENCHMARK(routes_from_one_gpu)->Name("topo/routes/nodes")->Arg(16)->Arg(128)->Unit(benchmark::kMicrosecond);

}  // namespace
