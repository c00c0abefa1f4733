// SPDX-License-Identifier: Apache-2.0
// NCCL topologies: whatever is read becomes a graph with reasons, and whatever is refused is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/nccl_xml.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  auto fragment = tc::fragment_of_nccl_xml({reinterpret_cast<const char*>(data), size}, "f.xml");
  if (!fragment) {
    demand(fragment.error().what.rfind("f.xml", 0) == 0);
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("nccl_xml", try_input);
