// SPDX-License-Identifier: Apache-2.0
// hwloc XML: whatever is read becomes a graph with reasons, and whatever is refused is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/hwloc_xml.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool looks = tc::read::looks_like_hwloc_topology(text);
  auto fragment = tc::fragment_of_hwloc_xml(text, "f.xml");
  if (!fragment) {
    demand(fragment.error().what.rfind("f.xml", 0) == 0);
    return 0;
  }
  demand(looks || text.find("<!") != std::string_view::npos);  // a broken document type may hide the root
  std::size_t domains = 0;
  for (const tc::topo::node& n : fragment->nodes) {
    domains += n.kind == tc::topo::node_kind::cpu ? 1U : 0U;
    demand(n.how < tc::trust::derived || !n.reason.empty());
    demand(n.key.rfind(n.host + "/", 0) == 0);
  }
  demand(domains > 0);
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0 || (l.kind == tc::topo::link_kind::internal && l.how == tc::trust::reported));
    demand(!l.reason.empty());
    demand((l.generation == 0) == (l.lanes == 0));
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("hwloc_xml", try_input);
