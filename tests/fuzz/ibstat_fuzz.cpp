// SPDX-License-Identifier: Apache-2.0
// Listings of ibstat and ibv_devinfo: whatever is read becomes a graph with reasons; refusals name the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/ibstat_graph.hpp>
#include <topocoll/read/ibstat.hpp>
#include <topocoll/topo/graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tc::read::looks_like_ibstat(text);
  const auto adapters = tc::read::parse_ibstat(text, "f.txt");
  if (!adapters) {
    demand(adapters.error().code == tc::errc::malformed_input);
    demand(adapters.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  demand(!adapters->adapters.empty());
  auto fragment = tc::fragment_of(*adapters, {}, "f.txt");
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0 || !l.reason.empty());
    demand(l.how < tc::trust::derived || !l.reason.empty());
    demand(!l.current || l.capacity <= *l.current);
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("ibstat", try_input);
