// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inside of one host in a picture of a plan: devices in rows, links by what they carry, arcs between its ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/overlay_links.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Ranks that send to each other in some part of a plan.
struct overlay_pair {
  std::uint32_t from = 0, to = 0;  ///< ranks
  std::uint32_t part = 0;          ///< stage or tree; decides the colour
  bytes amount{};
};

template <class = void>
class overlay_host {
 public:
  overlay_host(const link_loads<>& loads, picture<>& canvas) : l_(loads), g_(*loads.graph), c_(canvas) {}

  /// Draws the nodes of a host with the upper left corner at (x, y); gives the foot.
  /// @param ranks_on  per node of the graph the ranks that sit there
  /// @param parts     names of the parts that `pairs` refer to
  double draw(const std::vector<node_id>& nodes, const std::string& headline,
              const std::vector<std::vector<std::uint32_t>>& ranks_on, const std::vector<overlay_pair>& pairs,
              const std::vector<std::string>& parts, double x, double y) {
    ranks_on_ = &ranks_on;
    lay(nodes);
    c_.text(x, y + 14, 13, hold::start, headline, tone::ink, true);
    place(x, y + 54);
    draw_links();
    for (const item& i : items_)
      if (i.drawn) draw_node(i);
    double foot = gpu_row_ + tile_h + 14;
    foot = draw_gpu_wires(foot);
    if (l_.limit != UINT32_MAX) badge();
    return draw_pairs(pairs, parts, x, foot + 8);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr double column = 78, tile_w = 68, tile_h = 34, row = 74;
  static constexpr std::size_t most_devices = 40;

  struct item {
    node_id v{};
    std::uint32_t parent = none;  // position in items_
    std::uint32_t depth = 0;
    bool device = false, drawn = false;
    double x = 0, y = 0, w = 0;  // x: of the middle
    std::vector<std::uint32_t> below{};
  };

  [[nodiscard]] const topo::node& node_of(const item& i) const { return g_.at(i.v); }
  [[nodiscard]] bool loaded(node_id v) const {
    for (const link_id e : g_.out_links(v))
      if (l_.carried[e.value].value > 0) return true;
    return false;
  }
  [[nodiscard]] bool has_cable(node_id nic) const {
    for (const link_id e : g_.out_links(nic)) {
      const topo::link& l = g_.at(e);
      if (l.kind == topo::link_kind::infiniband || l.kind == topo::link_kind::ethernet) return true;
      if (l.kind == topo::link_kind::internal)
        for (const link_id cable : g_.out_links(l.to))
          if (g_.at(cable).kind == topo::link_kind::infiniband || g_.at(cable).kind == topo::link_kind::ethernet)
            return true;
    }
    return false;
  }

  /// Every device below what leads to a NUMA domain by the fewest links.
  void lay(const std::vector<node_id>& nodes) {
    items_.clear();
    place_of_.assign(g_.node_count(), none);
    here_.assign(g_.node_count(), false);
    for (const node_id v : nodes) here_[v.value] = true;
    const auto add = [&](node_id v, std::uint32_t parent) {
      place_of_[v.value] = static_cast<std::uint32_t>(items_.size());
      item i;
      i.v = v;
      i.parent = parent;
      const topo::node_kind k = g_.at(v).kind;
      i.device = k == topo::node_kind::gpu || k == topo::node_kind::nic;
      // Devices share a row; only boxes above one another need rows of their own.
      i.depth = parent == none ? 0 : items_[parent].depth + 1;
      items_.push_back(std::move(i));
      if (parent != none) items_[parent].below.push_back(place_of_[v.value]);
    };
    const auto grow = [&](std::size_t first, bool c2c) {
      for (std::size_t i = first; i < items_.size(); ++i)
        for (const link_id e : g_.out_links(items_[i].v)) {
          const topo::link& l = g_.at(e);
          const topo::node_kind k = g_.at(l.to).kind;
          if (!here_[l.to.value] || place_of_[l.to.value] != none || k == topo::node_kind::cpu ||
              k == topo::node_kind::pcie_device || k == topo::node_kind::nic_port)
            continue;
          if (l.kind == topo::link_kind::pcie || (c2c && l.kind == topo::link_kind::c2c))
            add(l.to, static_cast<std::uint32_t>(i));
        }
    };
    for (const node_id v : nodes)
      if (g_.at(v).kind == topo::node_kind::cpu) add(v, none);
    grow(0, false);
    grow(0, true);
    using kind = topo::node_kind;
    for (const kind k : {kind::pcie_root, kind::pcie_switch, kind::gpu, kind::nic})
      for (const node_id v : nodes)
        if (g_.at(v).kind == k && place_of_[v.value] == none) {
          add(v, none);
          grow(items_.size() - 1, true);
        }
    // Drawn is what is a GPU, a rank, or a NIC that may carry something, and what leads there.
    std::size_t devices = 0;
    for (std::size_t i = items_.size(); i-- > 0;) {
      item& it = items_[i];
      const kind k = node_of(it).kind;
      const bool wanted = k == kind::gpu || k == kind::cpu || !(*ranks_on_)[it.v.value].empty() ||
                          (k == kind::nic && has_cable(it.v) && (devices < most_devices || loaded(it.v)));
      it.drawn = it.drawn || wanted;
      devices += wanted && it.device ? 1 : 0;
      if (it.drawn && it.parent != none) items_[it.parent].drawn = true;
    }
  }

  /// Columns for devices in the order of the tree, boxes above the middle of theirs.
  void place(double x, double y) {
    double next = x + column / 2;
    std::uint32_t deepest = 0;
    for (const item& i : items_)
      if (i.drawn && !i.device) deepest = std::max(deepest, i.depth);
    bool boxes = false;
    for (const item& i : items_) boxes = boxes || (i.drawn && !i.device);
    gpu_row_ = boxes ? y + row * static_cast<double>(deepest + 1) : y;
    for (std::uint32_t i = 0; i < items_.size(); ++i)
      if (items_[i].parent == none && items_[i].drawn) place_below(i, next, y);
    c_.reach(next, gpu_row_ + tile_h);
  }
  void place_below(std::uint32_t at, double& next, double y) {
    item& i = items_[at];
    i.w = i.device ? tile_w : std::max(tile_w, topo::detail::text_width(word_of(i), 10, true) + 12);
    if (i.device) {
      i.x = next;
      i.y = gpu_row_;
      next += column;
      // What hangs on a device stands beside it.
      for (const std::uint32_t b : i.below)
        if (items_[b].drawn) place_below(b, next, y);
      return;
    }
    i.y = y + row * static_cast<double>(i.depth);
    const double before = next;
    double first = 0, last = 0;
    bool any = false;
    for (const std::uint32_t b : i.below) {
      if (!items_[b].drawn) continue;
      place_below(b, next, y);
      first = any ? first : items_[b].x;
      last = items_[b].x;
      any = true;
    }
    if (next - before < i.w + 10) {  // wider than what it holds
      const double shift = any ? (i.w + 10 - (next - before)) / 2 : 0;
      next = before + i.w + 10;
      first += shift;
      last += shift;
      for (const std::uint32_t b : i.below) move(b, shift);
    }
    i.x = any ? (first + last) / 2 : before - column / 2 + (i.w + 10) / 2;
  }
  void move(std::uint32_t at, double by) {
    items_[at].x += by;
    for (const std::uint32_t b : items_[at].below) move(b, by);
  }

  [[nodiscard]] std::string word_of(const item& i) const {
    const topo::node& n = node_of(i);
    if (n.kind == topo::node_kind::pcie_root) return "root port";
    if (n.kind == topo::node_kind::pcie_switch) return "PCIe switch";
    std::string label = topo::label_of(n);
    // Of an address only domain and bus: devices of a host differ in them.
    if (const std::string address(topo::pci_part(n.key)); i.device && !address.empty() && label.ends_with(address)) {
      const bool usual = address.starts_with("0000:");
      label.resize(label.size() - address.size());
      label += address.substr(usual ? 5 : 0,
                              address.ends_with(":00.0") ? address.size() - (usual ? 10 : 5) : address.size());
    }
    return topo::detail::shortened(label, 66, 10, true);
  }
  [[nodiscard]] std::string ranks_text(node_id v) const {
    const std::vector<std::uint32_t>& on = (*ranks_on_)[v.value];
    if (on.empty()) return {};
    return on.size() == 1 ? "rank " + std::to_string(on[0]) : std::to_string(on.size()) + " ranks";
  }
  void draw_node(const item& i) {
    const topo::node& n = node_of(i);
    const char* fill = n.kind == topo::node_kind::gpu   ? "#CDE8DC"
                       : n.kind == topo::node_kind::nic ? "#FBE7C6"
                       : n.kind == topo::node_kind::cpu ? "#E6EEF8"
                                                        : "#F4F4F4";
    std::string under = ranks_text(i.v);
    if (n.kind == topo::node_kind::nic) under = nic_text(i);
    if (n.kind == topo::node_kind::cpu && !(*ranks_on_)[i.v.value].empty()) draw_memory(i);
    c_.box(i.x - i.w / 2, i.y, i.w, tile_h, fill, "#555555", 4, n.key + (under.empty() ? "" : "\n" + under));
    c_.boxed_text(i.x, i.y + (under.empty() ? 21 : 15), 10, hold::middle, word_of(i), true);
    c_.boxed_text(i.x, i.y + 28, 9.5, hold::middle, under, false, "#4A4A4A");
  }
  /// The memory of a NUMA domain with ranks, below it: what they hand over passes there.
  void draw_memory(const item& i) {
    for (const link_id e : g_.out_links(i.v)) {
      const topo::link& l = g_.at(e);
      if (l.kind != topo::link_kind::memory) continue;
      const auto line = [&](link_id which, double side) {
        const load_style s = style_of_share(l_.share[which.value]);
        c_.line(i.x + side, i.y + tile_h, i.x + side, memory_at(i), s.colour, s.width, s.dashes, l_.title(which));
      };
      line(e, -3.2);
      for (const link_id back : g_.out_links(l.to))
        if (g_.head(back) == i.v) line(back, 3.2);
      c_.box(i.x - i.w / 2, memory_at(i), i.w, 22, "#F4F4F4", "#555555", 4, g_.at(l.to).key);
      c_.boxed_text(i.x, memory_at(i) + 15, 10, hold::middle, "memory", true);
    }
  }
  [[nodiscard]] static double memory_at(const item& i) { return i.y + tile_h + 34; }

  /// What leaves through the cables of a NIC; draws the cable as well.
  [[nodiscard]] std::string nic_text(const item& i) {
    bytes out{};
    double share = 0;
    std::string title;
    const auto cables = [&](node_id v, const auto& self, int hops) -> void {
      for (const link_id e : g_.out_links(v)) {
        const topo::link& l = g_.at(e);
        if (l.kind == topo::link_kind::infiniband || l.kind == topo::link_kind::ethernet) {
          out += l_.carried[e.value];
          share = std::max(share, l_.share[e.value]);
          title += (title.empty() ? "" : "\n") + l_.title(e);
          for (const link_id back : g_.out_links(l.to))
            if (g_.head(back) == v) share = std::max(share, l_.share[back.value]);
        } else if (l.kind == topo::link_kind::internal && hops == 0) {
          self(l.to, self, 1);
        }
      }
    };
    cables(i.v, cables, 0);
    const load_style s = style_of_share(share);
    c_.line(i.x, i.y + tile_h, i.x, i.y + tile_h + 14, s.colour, s.width, s.dashes, title);
    return about(out) + " out";
  }

  /// One line for each direction, side by side.
  void draw_links() {
    for (std::uint32_t a = 0; a < items_.size(); ++a)
      for (const link_id e : g_.out_links(items_[a].v)) {
        const topo::link& l = g_.at(e);
        const std::uint32_t b = place_of_[l.to.value];
        if (b == none || !items_[a].drawn || !items_[b].drawn || !here_[l.to.value]) continue;
        const item &from = items_[a], &to = items_[b];
        const load_style s = style_of_share(l_.share[e.value]);
        const double side = l.from < l.to ? 3.2 : -3.2;
        if (l.kind == topo::link_kind::cpu) {
          const double high = std::max(10.0, std::min(30.0, 0.05 * topocoll::detail::magnitude(from.x - to.x))) + side;
          c_.arc(std::min(from.x, to.x), std::max(from.x, to.x), from.y, -high, s.colour, s.width, s.dashes,
                 l_.title(e));
        } else if ((l.kind == topo::link_kind::pcie || l.kind == topo::link_kind::c2c) && from.device && to.device) {
          c_.line(from.x, from.y + tile_h / 2 + side, to.x, to.y + tile_h / 2 + side, s.colour, s.width, s.dashes,
                  l_.title(e));
        } else if (l.kind == topo::link_kind::pcie || l.kind == topo::link_kind::c2c) {
          const item &upper = from.y < to.y ? from : to, &lower = from.y < to.y ? to : from;
          // The lines of a box fan out from its foot.
          const double reach_x = std::min(upper.w / 2 - 8, topocoll::detail::magnitude(lower.x - upper.x));
          const double at = upper.x + (lower.x < upper.x ? -reach_x : reach_x) * 0.8;
          c_.line(at + side, upper.y + tile_h, lower.x + side, lower.y, s.colour, s.width, s.dashes, l_.title(e));
        }
      }
  }

  /// Links between GPUs as arcs, NVSwitches as bars; gives the foot.
  double draw_gpu_wires(double y);
  /// The bytes of the busiest link, where it is drawn.
  void badge();
  /// Ranks in a row below their devices and arcs between those that talk to each other; gives the foot.
  double draw_pairs(const std::vector<overlay_pair>& pairs, const std::vector<std::string>& parts, double x, double y);

  const link_loads<>& l_;
  const topo::graph& g_;
  picture<>& c_;
  const std::vector<std::vector<std::uint32_t>>* ranks_on_ = nullptr;
  std::vector<item> items_;
  std::vector<std::uint32_t> place_of_;  // per node of the graph
  std::vector<bool> here_;
  double gpu_row_ = 0;
};

}}}}  // namespace topocoll::v0::plan::detail

#include <topocoll/plan/detail/overlay_host_draw.hpp>
