// SPDX-License-Identifier: Apache-2.0
// Capacity graphs: whatever is read is a graph without loops whose rates are above 0.
#include <cstddef>
#include <cstdint>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/discover/capacity_json.hpp>
#include <topocoll/topo/graph.hpp>

static int try_input(const std::uint8_t* data, std::size_t size) {
  const std::string file = "fuzz";
  const auto read = topocoll::fragment_of_capacity_graph({reinterpret_cast<const char*>(data), size}, file);
  if (!read) return 0;
  const auto g = topocoll::topo::graph::from(*read);
  if (!g) __builtin_trap();
  for (const topocoll::topo::link& l : g->links())
    if (!(l.capacity.value > 0) || l.from == l.to) __builtin_trap();
  return 0;
}

static const fuzz::target known("capacity_graph", try_input);
