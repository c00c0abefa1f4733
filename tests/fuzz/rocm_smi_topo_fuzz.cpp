// SPDX-License-Identifier: Apache-2.0
// Matrices of rocm-smi: whatever is read becomes a graph with reasons, and whatever is refused is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/rocm_graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const auto listing = tc::read::parse_rocm_smi_topo({reinterpret_cast<const char*>(data), size}, "f.txt");
  if (!listing) {
    demand(listing.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  for (const tc::read::rocm_gpu& g : listing->gpus) demand(g.to.size() == listing->gpus.size());
  if (listing->gpus.size() > 64) return 0;
  auto fragment = tc::fragment_of(*listing, tc::discover_options{}, "f.txt");
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) demand(l.capacity.value > 0 && !l.reason.empty());
  const auto graph = tc::topo::graph::from(*std::move(fragment));
  demand(graph && graph->all(tc::topo::node_kind::gpu).size() == listing->gpus.size());
  return 0;
}

static const fuzz::target known("rocm_smi_topo", try_input);
