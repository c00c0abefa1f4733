// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inside of one host as nested boxes: NUMA domains, PCIe switches, GPUs and adapters, and what joins the GPUs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/detail/tree_layout.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class svg_host {
 public:
  /// @param scratch  one word for each node of the graph, all 0; they are 0 again afterwards
  svg_host(const graph& g, svg_canvas<>& canvas, std::vector<std::uint32_t>& scratch)
      : g_(g), c_(canvas), known_(scratch) {}

  /// Draws the host with its upper left corner at (x, y); gives its height.
  double draw(const group& host, const std::string& headline, double x, double y) {
    nodes_ = host.nodes;
    lay_tree();
    find_best();
    fit_tiles();
    for (item& root : roots_) measure(root);
    double width = 0;
    double depth = 0;
    for (const item& root : roots_) {
      width += (width > 0 ? gap_between_domains : 0) + root.w;
      depth = std::max(depth, root.h);
    }
    width = std::max({width, std::min(text_width(headline, 13, true), 400.0), 160.0});
    const bool sockets = domains() > 1;
    const double top = y + 30 + (sockets ? 34 : 0);
    const double bottom = top + depth;
    double at = x + edge;
    for (item& root : roots_) {
      place(root, at, top, depth);
      at += root.w + gap_between_domains;
    }
    const double below = space_below();
    c_.box(x, y, width + 2 * edge, bottom - y + below + edge, "#FAFAFA", "#444444", 8, host_title(host));
    c_.text(x + edge, y + 19, 13, anchor::start, fitted(headline, width, 13, true), ink, true);
    if (sockets) draw_sockets(x + edge, y + 38, width);
    for (const item& root : roots_) draw_item(root, top);
    draw_gpu_links(x + edge, bottom, width);
    for (const node_id v : nodes_) known_[v.value] = 0;
    return bottom - y + below + edge;
  }

 private:
  static constexpr double edge = 14;
  static constexpr double gap_between_domains = 16;
  static constexpr double pad = 8;
  static constexpr double compact = 10;  // of most texts
  static constexpr double row = 13;      // from line to line
  static constexpr std::size_t most_children = 18;

  /// A node in the tree, with its place on the page once that is known.
  struct item {
    node_id v;
    link_id up;
    bool has_up = false;
    std::size_t hidden = 0;  ///< siblings that this tile stands for beside itself
    std::vector<item> below{};
    double x = 0, y = 0, w = 0, h = 0;
  };
  struct rates {
    bytes_per_second gpu{}, nic{}, switches{}, port{}, pair{}, plane{}, socket{}, memory{}, c2c{};
  };

  [[nodiscard]] bool is_here(node_id v) const { return known_[v.value] != 0; }
  [[nodiscard]] static bool is_box(node_kind k) {
    return k == node_kind::cpu || k == node_kind::pcie_switch || k == node_kind::pcie_root;
  }
  [[nodiscard]] std::size_t domains() const {
    std::size_t n = 0;
    for (const item& r : roots_) n += g_.at(r.v).kind == node_kind::cpu ? 1 : 0;
    return n;
  }

  /// Each device below what leads to a NUMA domain by the fewest links; without NUMA domains, below each other.
  void lay_tree() {
    std::vector<node_id> queue;
    std::vector<std::pair<node_id, link_id>> ups;  // of each in `queue`, if it has one
    std::vector<std::size_t> parent;
    constexpr std::size_t no_parent = static_cast<std::size_t>(-1);
    for (const node_id v : nodes_) known_[v.value] = 1;
    const auto grow = [&](std::size_t first, bool c2c) {
      for (std::size_t i = first; i < queue.size(); ++i)
        for (const link_id e : g_.out_links(queue[i])) {
          const link& l = g_.at(e);
          const node_kind kind = g_.at(l.to).kind;
          const bool fits = l.kind == link_kind::pcie || (l.kind == link_kind::internal && kind == node_kind::gpu) ||
                            (c2c && l.kind == link_kind::c2c);
          if (!fits || known_[l.to.value] != 1 || kind == node_kind::cpu) continue;
          known_[l.to.value] = 2;
          queue.push_back(l.to);
          ups.emplace_back(l.to, e);
          parent.push_back(i);
        }
    };
    const auto start = [&](node_kind kind) {
      for (const node_id v : nodes_) {
        if (g_.at(v).kind != kind || known_[v.value] != 1) continue;
        known_[v.value] = 2;
        queue.push_back(v);
        ups.emplace_back(v, link_id{});
        parent.push_back(no_parent);
        if (kind != node_kind::cpu) grow(queue.size() - 1, true);
      }
    };
    start(node_kind::cpu);
    grow(0, false);
    grow(0, true);
    for (const node_kind kind : {node_kind::pcie_root, node_kind::pcie_switch, node_kind::gpu, node_kind::nic})
      start(kind);
    // Only what is, or leads to, a GPU or an adapter is drawn; the rest of a domain is one number.
    std::vector<bool> busy(queue.size(), false);
    for (std::size_t i = queue.size(); i-- > 0;) {
      const node_kind kind = g_.at(queue[i]).kind;
      busy[i] = busy[i] || kind == node_kind::gpu || kind == node_kind::nic;
      if (busy[i] && parent[i] != no_parent) busy[parent[i]] = true;
    }
    std::vector<item> made(queue.size());
    for (std::size_t i = 0; i < queue.size(); ++i) {
      made[i].v = queue[i];
      made[i].up = ups[i].second;
      made[i].has_up = parent[i] != no_parent;
    }
    for (std::size_t i = queue.size(); i-- > 0;) {  // children come after their parents
      seq::sort(made[i].below, [](const item& a, const item& b) { return a.v < b.v; });
      sum_up(made[i]);
      if (!busy[i] && g_.at(queue[i]).kind != node_kind::cpu) continue;
      if (parent[i] == no_parent)
        roots_.insert(roots_.begin(), std::move(made[i]));
      else
        made[parent[i]].below.push_back(std::move(made[i]));
    }
    // A GPU or adapter in the place of a switch stands beside what hangs on it.
    std::vector<item> flat;
    for (item& r : roots_) flatten(r);
    gather_loose();
  }
  void flatten(item& i) {
    std::vector<item> children;
    for (item& c : i.below) {
      flatten(c);
      std::vector<item> beside;
      if (!is_box(g_.at(c.v).kind)) beside = std::move(c.below);
      children.push_back(std::move(c));
      for (item& b : beside) children.push_back(std::move(b));
    }
    i.below = std::move(children);
  }
  /// Roots that are no boxes, of hosts whose PCIe is not told: put side by side into one frame.
  void gather_loose() {
    std::vector<item> kept;
    std::vector<item> loose;
    for (item& r : roots_) {
      if (is_box(g_.at(r.v).kind)) {
        kept.push_back(std::move(r));
        continue;
      }
      std::vector<item> beside = std::move(r.below);
      loose.push_back(std::move(r));
      for (item& b : beside) loose.push_back(std::move(b));
    }
    roots_ = std::move(kept);
    loose_ = !loose.empty();
    if (!loose_) return;
    item frame;
    frame.v = loose.front().v;
    frame.below = std::move(loose);
    roots_.push_back(std::move(frame));
  }
  [[nodiscard]] bool is_frame(const item& i) const { return !i.below.empty() && !is_box(g_.at(i.v).kind); }
  void sum_up(item& i) {
    if (i.below.size() <= most_children) return;
    std::size_t nics = 0;
    for (const item& c : i.below) nics += g_.at(c.v).kind == node_kind::nic ? 1 : 0;
    // GPUs are never summed up; virtual functions of adapters are many and equal.
    std::size_t drop = std::min(nics > 1 ? nics - 1 : 0, i.below.size() - most_children);
    std::size_t last = i.below.size();
    for (std::size_t k = i.below.size(); k-- > 0 && drop > 0;) {
      if (g_.at(i.below[k].v).kind != node_kind::nic) continue;
      if (last == i.below.size()) {
        last = k;
        continue;
      }
      i.below.erase(i.below.begin() + static_cast<std::ptrdiff_t>(k));
      --last;
      --drop;
      ++i.below[last].hidden;
    }
  }

  void find_best() {
    const auto raise = [](bytes_per_second& best, const link& l) { best = std::max(best, class_rate(l)); };
    for (const node_id v : nodes_)
      for (const link_id e : g_.out_links(v)) {
        const link& l = g_.at(e);
        const node_kind from = g_.at(l.from).kind;
        const node_kind to = g_.at(l.to).kind;
        if (l.kind == link_kind::pcie)
          raise(to == node_kind::gpu ? best_.gpu : to == node_kind::nic ? best_.nic : best_.switches, l);
        if (l.kind == link_kind::internal && from == node_kind::nic) raise(best_.port, l);
        if (l.kind == link_kind::nvlink || l.kind == link_kind::xgmi)
          raise(to == node_kind::gpu ? best_.pair : best_.plane, l);
        if (l.kind == link_kind::cpu) raise(best_.socket, l);
        if (l.kind == link_kind::c2c) raise(best_.c2c, l);
      }
  }
  [[nodiscard]] bytes_per_second best_of(const link& l) const {
    const node_kind from = g_.at(l.from).kind;
    const node_kind to = g_.at(l.to).kind;
    if (l.kind == link_kind::c2c) return best_.c2c;
    if (l.kind != link_kind::pcie) return class_rate(l);
    if (to == node_kind::gpu || from == node_kind::gpu) return best_.gpu;
    return to == node_kind::nic ? best_.nic : best_.switches;
  }

  /// A line of text in a tile or in the head of a box.
  struct word {
    std::string text;
    bool bad = false;  ///< tells of a link below its best
  };
  /// The first is the name.
  [[nodiscard]] std::vector<word> words_of(const item& i) const;
  void fit_tiles() {
    tile_w_ = 46;
    tile_lines_ = 1;
    for (const item& r : roots_) fit_tiles(r);
  }
  void fit_tiles(const item& i) {
    if (!is_box(g_.at(i.v).kind) && !is_frame(i)) {
      const std::vector<word> words = words_of(i);
      for (std::size_t k = 0; k < words.size(); ++k)
        tile_w_ = std::max(tile_w_, text_width(words[k].text, compact, k == 0) + 10);
      tile_lines_ = std::max(tile_lines_, words.size());
    }
    for (const item& c : i.below) fit_tiles(c);
  }
  [[nodiscard]] double head_of(const item& i) const {
    if (is_frame(i)) return 4;
    return 6 + row * (g_.at(i.v).kind == node_kind::cpu ? 2 : static_cast<double>(words_of(i).size()));
  }
  [[nodiscard]] double head_width(const item& i) const {
    if (is_frame(i)) return 0;
    double w = 0;
    const std::vector<word> words = words_of(i);
    for (std::size_t k = 0; k < words.size(); ++k) w = std::max(w, text_width(words[k].text, compact, k == 0));
    if (g_.at(i.v).kind == node_kind::cpu) w = std::max(w, text_width(memory_of(i.v).first, compact) + 4);
    return w;
  }
  void measure(item& i) {
    if (!is_box(g_.at(i.v).kind) && !is_frame(i)) {
      i.w = tile_w_;
      i.h = 8 + row * static_cast<double>(tile_lines_);
      return;
    }
    double inner = 0;
    double highest = 0;
    for (item& c : i.below) {
      measure(c);
      inner += (inner > 0 ? pad : 0) + c.w;
      highest = std::max(highest, c.h);
    }
    i.w = std::max(inner, head_width(i)) + 2 * pad;
    i.h = head_of(i) + (highest > 0 ? 16 + highest : 0) + pad;
  }
  /// Gives the item the space from `top`, `depth` high: boxes fill it, tiles stand at its foot.
  void place(item& i, double x, double top, double depth) {
    const bool boxed = is_box(g_.at(i.v).kind) || is_frame(i);
    i.x = x;
    i.y = boxed ? top : top + depth - i.h;
    if (boxed) i.h = depth;
    double inner = 0;
    for (const item& c : i.below) inner += (inner > 0 ? pad : 0) + c.w;
    double at = x + (i.w - inner) / 2;
    const double first = top + head_of(i) + 16;
    for (item& c : i.below) {
      place(c, at, first, i.y + i.h - pad - first);
      at += c.w + pad;
    }
  }

  [[nodiscard]] std::pair<std::string, const link*> memory_of(node_id cpu) const {
    for (const link_id e : g_.out_links(cpu)) {
      const link& l = g_.at(e);
      if (l.kind != link_kind::memory) continue;
      return {l.how == trust::assumed ? std::string("memory") : "memory " + to_string(class_rate(l)), &l};
    }
    return {{}, nullptr};
  }

  void draw_item(const item& i, double bus, bool in_frame = false);
  void draw_ports(const item& i);
  [[nodiscard]] static const char* fill_of(node_kind k) {
    switch (k) {
      case node_kind::gpu: return "#CDE8DC";
      case node_kind::nic: return "#FBE7C6";
      case node_kind::cpu: return "#EEF3FA";
      default: return "#FFFFFF";
    }
  }
  [[nodiscard]] std::string link_title(link_id e) const {
    const link& l = g_.at(e);
    return label_of(g_.at(l.from)) + " - " + label_of(g_.at(l.to)) + "\n" + figures_of(l);
  }
  [[nodiscard]] std::string host_title(const group& host) const {
    std::size_t others = 0;
    for (const node_id v : host.nodes) others += g_.at(v).kind == node_kind::pcie_device ? 1 : 0;
    return host.name + (others > 0 ? "\n" + counted(others, "other PCIe device") + " not drawn" : "");
  }

  /// One rail above the NUMA domains: each is joined to each.
  void draw_sockets(double x, double y, double width);

  [[nodiscard]] bool has_pairs() const {
    for (const node_id v : nodes_)
      for (const link_id e : g_.out_links(v))
        if (is_pair(g_.at(e))) return true;
    return false;
  }
  [[nodiscard]] bool is_pair(const link& l) const {
    return (l.kind == link_kind::nvlink || l.kind == link_kind::xgmi) && g_.at(l.from).kind == node_kind::gpu &&
           g_.at(l.to).kind == node_kind::gpu && is_here(l.to);
  }
  [[nodiscard]] std::vector<node_id> planes() const {
    std::vector<node_id> found;
    for (const node_id v : nodes_)
      for (const link_id e : g_.out_links(v))
        if (g_.at(g_.head(e)).kind == node_kind::nvswitch) found.push_back(g_.head(e));
    seq::sort_unique(found);
    return found;
  }
  static constexpr double deepest_arc = 96;
  [[nodiscard]] double space_below() const {
    double space = 6;
    if (has_pairs()) space += deepest_arc + 22;
    return space + 56 * static_cast<double>(planes().size());
  }
  /// Arcs between pairs of GPUs, and a bar for each NVSwitch plane with a line from each GPU.
  void draw_gpu_links(double x, double bottom, double width);

  const graph& g_;
  svg_canvas<>& c_;
  std::vector<std::uint32_t>& known_;
  std::vector<node_id> nodes_;
  std::vector<item> roots_;
  std::vector<std::pair<node_id, double>> gpus_;  // with the middles of their tiles
  rates best_;
  double tile_w_ = 0;
  std::size_t tile_lines_ = 0;
  double gpu_foot_ = 0;
  bool loose_ = false;
};

}}}}  // namespace topocoll::v0::topo::detail

#include <topocoll/topo/detail/svg_host_draw.hpp>
