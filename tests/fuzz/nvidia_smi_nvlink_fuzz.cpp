// SPDX-License-Identifier: Apache-2.0
// Listings of NVLinks: whatever is read becomes a graph in which no GPU has more than it should have.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/nvlink_graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const auto listing = tc::read::parse_nvidia_smi_nvlink({reinterpret_cast<const char*>(data), size}, "f.txt");
  if (!listing) {
    demand(listing.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  for (const tc::nvlink_health& h : tc::nvlink_health_of(*listing)) {
    demand(h.active + h.inactive.size() <= h.links);
    demand(h.active <= h.expected);
    demand(h.share >= 0 && h.share <= 1);
    demand(h.degraded() == (h.share < 1));
  }
  auto fragment = tc::fragment_of(*listing, tc::discover_options{}, "f.txt");
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0 && !l.reason.empty());
    demand(l.current && l.nominal && *l.current <= *l.nominal);
  }
  demand(static_cast<bool>(tc::topo::graph::from(*std::move(fragment))));
  return 0;
}

static const fuzz::target known("nvidia_smi_nvlink", try_input);
