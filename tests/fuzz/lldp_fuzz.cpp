// SPDX-License-Identifier: Apache-2.0
// LLDP tables: whatever is read becomes a graph with reasons, and whatever is refused is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/lldp_json.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(tc::read::looks_like_lldp(text));
  auto fragment = tc::fragment_of_lldp_json(text, "l.json");
  if (!fragment) {
    demand(fragment.error().what.rfind("l.json", 0) == 0);
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("lldp", try_input);
