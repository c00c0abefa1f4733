// SPDX-License-Identifier: Apache-2.0
// Listings of PCI functions: whatever is read becomes a graph, and access control that nobody saw is never called clean.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/lspci_graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const auto listing = tc::read::parse_lspci({reinterpret_cast<const char*>(data), size}, "f.txt");
  if (!listing) {
    demand(listing.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  const tc::acs_report acs = tc::acs_of(*listing);
  for (const tc::acs_bridge& b : acs.bridges) {
    demand(!b.below.empty());
    if (acs.verdict == tc::acs_verdict::clean && b.control) demand(b.redirects.has_value());
  }
  demand((acs.verdict == tc::acs_verdict::warn) == !acs.gpus_affected.empty());
  auto fragment = tc::fragment_of(*listing, tc::discover_options{}, "f.txt");
  if (!fragment) {
    demand(!fragment.error().what.empty());
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  demand(static_cast<bool>(tc::topo::graph::from(*std::move(fragment))));
  return 0;
}

static const fuzz::target known("lspci", try_input);
