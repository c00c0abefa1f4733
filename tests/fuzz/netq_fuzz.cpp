// SPDX-License-Identifier: Apache-2.0
// NetQ's topology graphs: whatever is read becomes a graph whose figures are marked as assumed, for NetQ tells none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/netq_json.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(tc::looks_like_netq(text));
  auto fragment = tc::fragment_of_netq(text, "q.json");
  if (!fragment) {
    demand(fragment.error().what.rfind("q.json", 0) == 0);
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) demand(l.how == tc::trust::assumed && !l.reason.empty());
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("netq", try_input);
