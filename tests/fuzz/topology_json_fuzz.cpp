// SPDX-License-Identifier: Apache-2.0
// Topology documents: what is read is written and read back the same, and no graph upsets what is done with graphs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/dot.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/text.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace topo = topocoll::topo;
  auto fragment = topo::from_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!fragment) {
    demand(!fragment.error().what.empty());
    return 0;
  }
  const std::vector<topo::fragment> twice{*fragment, *fragment};
  demand(static_cast<bool>(topo::merge(twice)));
  const auto g = topo::graph::from(*std::move(fragment));
  demand(static_cast<bool>(g));  // the reader refuses whatever a graph would refuse

  const std::string text = topo::to_json(*g);
  const auto back = topo::from_json(text, "output");
  demand(static_cast<bool>(back));
  const auto again = topo::graph::from(*back);
  demand(again && topo::to_json(*again) == text);

  demand(!topo::to_text(*g).empty() && !topo::to_dot(*g).empty());
  static_cast<void>(topo::rails(*g));
  static_cast<void>(topo::nvlink_islands(*g));
  if (g->node_count() > 64) return 0;
  for (std::uint32_t a = 0; a < g->node_count(); ++a) {
    const topo::routes ways(*g, {a}, {.nvb = true, .pxn = true});
    for (std::uint32_t b = 0; b < g->node_count(); ++b) {
      const auto rate = ways.rate({b});
      demand(!rate.why.empty() && (rate.kind == topo::path_class::DIS) == !ways.to({b}).has_value());
    }
  }
  return 0;
}

static const fuzz::target known("topology_json", try_input);
