// SPDX-License-Identifier: Apache-2.0
// Recordings of AMD's compute driver: whatever is read becomes a graph with a GPU for each node that is one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/kfd_graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const auto topology = tc::read::parse_kfd({reinterpret_cast<const char*>(data), size}, "f.txt");
  if (!topology) {
    demand(topology.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  std::size_t gpus = 0;
  for (const tc::read::kfd_node& n : topology->nodes) gpus += n.is_gpu() ? 1U : 0U;
  auto fragment = tc::fragment_of(*topology, tc::discover_options{}, "f.txt");
  if (!fragment) {
    demand(gpus == 0);
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) demand(l.capacity.value > 0 && !l.reason.empty());
  const auto graph = tc::topo::graph::from(*std::move(fragment));
  demand(graph && graph->all(tc::topo::node_kind::gpu).size() == gpus);
  return 0;
}

static const fuzz::target known("kfd", try_input);
