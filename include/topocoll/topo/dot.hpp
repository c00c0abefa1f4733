// SPDX-License-Identifier: Apache-2.0
#pragma once
// A topology graph as a drawing for Graphviz: one edge a cable, one box a host.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// The graph in Graphviz's language, for `dot -Tsvg`.
///
/// Nodes are named by their keys. The two directions of a connection are one edge if their figures are equal and two
/// arrows otherwise; parallel cables are parallel edges. Assumed links are dashed, dead ones red.
/// Cost: O(n log n + m log m).
template <class = void>
[[nodiscard]] std::string to_dot(const graph& g);

namespace detail {

/// A text in Graphviz's quotes. Line breaks become "\n"; other control characters become blanks.
template <class = void>
[[nodiscard]] std::string dot_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (c == '\n')
      quoted += "\\n";
    else
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

[[nodiscard]] constexpr const char* dot_style(node_kind k) {
  switch (k) {
    case node_kind::gpu: return "shape=box style=filled fillcolor=\"#d5e8d4\"";
    case node_kind::cpu: return "shape=box style=filled fillcolor=\"#dae8fc\"";
    case node_kind::host_memory: return "shape=cylinder";
    case node_kind::nic:
    case node_kind::nic_port: return "shape=box style=filled fillcolor=\"#ffe6cc\"";
    case node_kind::nvswitch: return "shape=hexagon style=filled fillcolor=\"#e1d5e7\"";
    case node_kind::leaf:
    case node_kind::spine:
    case node_kind::core_switch: return "shape=box style=\"filled,rounded\" fillcolor=\"#fff2cc\"";
    case node_kind::pcie_root:
    case node_kind::pcie_switch: return "shape=ellipse";
    case node_kind::pcie_device: return "shape=box style=dashed";
  }
  return "shape=box";
}

/// How far down a node is drawn.
[[nodiscard]] constexpr int drawn_level(node_kind k) {
  switch (k) {
    case node_kind::cpu: return 0;
    case node_kind::pcie_root: return 1;
    case node_kind::pcie_switch: return 2;
    case node_kind::host_memory:
    case node_kind::gpu:
    case node_kind::nic:
    case node_kind::pcie_device: return 3;
    case node_kind::nvswitch:
    case node_kind::nic_port: return 4;
    case node_kind::leaf: return 5;
    case node_kind::spine: return 6;
    case node_kind::core_switch: return 7;
  }
  return 3;
}

/// Whether two links that run in opposite directions can be drawn as one.
template <class = void>
[[nodiscard]] bool drawn_alike(const link& a, const link& b) {
  return a.from == b.to && a.to == b.from && a.kind == b.kind && a.generation == b.generation && a.lanes == b.lanes &&
         a.nominal == b.nominal && a.current == b.current && a.capacity == b.capacity &&
         (a.how == trust::assumed) == (b.how == trust::assumed);
}

/// What a link is in the drawing.
enum class drawn : std::uint8_t { arrow, line, nothing };

/// A link that has a way back is a line, its way back is nothing, what has none is an arrow.
template <class = void>
[[nodiscard]] std::vector<drawn> drawn_links(const graph& g) {
  std::vector<std::uint32_t> order(g.link_count());
  for (std::uint32_t e = 0; e < order.size(); ++e) order[e] = e;
  const auto low = [&](std::uint32_t e) { return std::min(g.at(link_id{e}).from, g.at(link_id{e}).to); };
  const auto high = [&](std::uint32_t e) { return std::max(g.at(link_id{e}).from, g.at(link_id{e}).to); };
  seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    if (low(a) != low(b)) return low(a) < low(b);
    if (high(a) != high(b)) return high(a) < high(b);
    return a < b;
  });
  std::vector<drawn> as(g.link_count(), drawn::arrow);
  std::vector<std::uint32_t> open;  // links between the current two nodes that have no partner yet
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && (low(order[i]) != low(order[i - 1]) || high(order[i]) != high(order[i - 1]))) open.clear();
    const auto partner =
        seq::find_if(open, [&](std::uint32_t e) { return drawn_alike(g.at(link_id{e}), g.at(link_id{order[i]})); });
    if (partner == open.end()) {
      open.push_back(order[i]);
      continue;
    }
    as[*partner] = drawn::line;
    as[order[i]] = drawn::nothing;
    open.erase(partner);
  }
  return as;
}

}  // namespace detail

template <class>
std::string to_dot(const graph& g) {
  std::string text = "digraph topology {\n  graph [rankdir=TB label=" + detail::dot_quoted(g.source()) +
                     "]\n  node [fontname=\"sans-serif\"]\n"
                     "  edge [fontname=\"sans-serif\" fontsize=9]\n";
  const auto add_node = [&](node_id v, const char* indent) {
    const node& n = g.at(v);
    std::string label = label_of(n);
    if (const auto address = pci_part(n.key); !address.empty() && label.find(address) == std::string::npos)
      label += '\n' + std::string(address);
    text += indent + detail::dot_quoted(n.key) + " [label=" + detail::dot_quoted(label) + ' ' +
            detail::dot_style(n.kind) + "]\n";
  };
  std::size_t number = 0;
  for (const group& h : hosts(g)) {
    text += "  subgraph cluster_" + std::to_string(number++) + " {\n    label=" + detail::dot_quoted(h.name) + "\n";
    for (const node_id v : h.nodes) add_node(v, "    ");
    text += "  }\n";
  }
  for (std::uint32_t v = 0; v < g.node_count(); ++v)
    if (g.at(node_id{v}).host.empty()) add_node({v}, "  ");

  const std::vector<detail::drawn> as = detail::drawn_links(g);
  for (std::uint32_t e = 0; e < g.link_count(); ++e) {
    if (as[e] == detail::drawn::nothing) continue;
    const link& l = g.at(link_id{e});
    std::string label =
        l.kind == link_kind::internal || l.kind == link_kind::memory || l.kind == link_kind::cpu ? "" : make_of(l);
    if (l.kind != link_kind::infiniband && l.kind != link_kind::ethernet)
      label += (label.empty() ? "" : "\n") + to_string(l.nominal.value_or(l.capacity));
    // A line has no direction, so it can be written downwards: CPUs end up on top, the network at the bottom.
    const bool line = as[e] == detail::drawn::line;
    const bool turned = line && detail::drawn_level(g.at(l.to).kind) < detail::drawn_level(g.at(l.from).kind);
    text += "  " + detail::dot_quoted(g.at(turned ? l.to : l.from).key) + " -> " +
            detail::dot_quoted(g.at(turned ? l.from : l.to).key) + " [label=" + detail::dot_quoted(label);
    if (line) text += " dir=none";
    if (l.kind == link_kind::cpu) text += " constraint=false";
    if (l.how == trust::assumed) text += " style=dashed";
    if (l.capacity.value <= 0) text += " color=red";
    text += "]\n";
  }
  return text + "}\n";
}

}}}  // namespace topocoll::v0::topo
