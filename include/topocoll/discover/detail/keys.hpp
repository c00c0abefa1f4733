// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens when two devices claim one address: both are kept, under names that differ.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Appends "#2", "#3", … to keys that were given before, in the order of the nodes, and reports it.
/// @param lines  line of the input beside each node, 0 for none; may be shorter than the nodes. Cost: O(n log n)
template <class = void>
void make_keys_unique(topo::fragment& fragment, const std::vector<std::uint32_t>& lines, tally& tally) {
  std::vector<topo::node>& nodes = fragment.nodes;
  const auto told = [&](std::uint32_t v) {
    return v < lines.size() && lines[v] != 0 ? "line " + std::to_string(lines[v]) : std::string();
  };
  std::vector<std::uint32_t> order(nodes.size());
  for (std::uint32_t v = 0; v < order.size(); ++v) order[v] = v;
  // A new name may be taken as well, when names in the input look like ours.
  for (bool again = true; again;) {
    again = false;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const int difference = nodes[a].key.compare(nodes[b].key);
      return difference != 0 ? difference < 0 : a < b;
    });
    for (std::size_t first = 0; first < order.size();) {
      std::size_t end = first + 1;
      const std::string key = nodes[order[first]].key;
      for (; end < order.size() && nodes[order[end]].key == key; ++end) {
        topo::node& n = nodes[order[end]];
        n.key += "#" + std::to_string(end - first + 1);
        n.how = trust::assumed;
        n.reason = "its address is also that of another device";
        std::string who = key;
        if (!told(order[end]).empty()) who += " (" + told(order[first]) + " and " + told(order[end]) + ")";
        if (n.kind != topo::node_kind::host_memory)
          tally.add(severity::warning, "an address is given to two devices; both are kept", who,
                    "give every device its own address");
        again = true;
      }
      first = end;
    }
  }
}

}}}  // namespace topocoll::v0::detail
