// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network as tiers: hosts at the foot, leaves, spines and core switches above, NVLink domains of several hosts below.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/detail/svg_units.hpp>
#include <topocoll/topo/detail/tree_layout.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class svg_fabric {
 public:
  svg_fabric(const graph& g, const svg_units<>& units, svg_canvas<>& canvas) : g_(g), u_(units), c_(canvas) {}

  /// Draws the tiers with the upper left corner at (x, y); gives their height.
  double draw(std::size_t most_boxes, std::size_t most_cables, double x, double y) {
    make_boxes(u_.groups(most_boxes, most_cables));
    make_lines();
    order_tiers();
    double captions = 0;
    for (std::size_t t = 0; t < tiers; ++t) captions = std::max(captions, text_width(caption(t), 12, true));
    for (const gap_words& w : words_between()) captions = std::max(captions, text_width(w.text, compact));
    double width = 0;
    for (std::size_t t = 0; t < tier_planes; ++t) {
      double w = 0;
      for (const box& b : boxes_)
        if (b.tier == t) w += box_width(t) + gap;
      width = std::max(width, w - gap);
    }
    const double left = x + captions + 20;
    width = std::max(width, 260.0);
    double row = y;
    double top_of[tiers] = {};
    for (std::size_t t = tier_planes; t-- > 0;) {
      if (u_.count(t) == 0) continue;
      top_of[t] = row;
      place(t, left, row, width);
      row += box_height(t) + height_between;
    }
    const double bottom = row - height_between;
    spread_lines();
    for (const line& l : lines_) draw_line(l);
    for (std::size_t t = 0; t < tier_planes; ++t)
      if (u_.count(t) > 0) {
        c_.text(x, top_of[t] + box_height(t) / 2 + 4, 12, anchor::start, caption(t), ink, true);
        for (const box& b : boxes_)
          if (b.tier == t) draw_box(b);
      }
    // What runs between two tiers is told beside them, lower tier by lower tier.
    double used[tiers] = {};
    double used_within[tiers] = {};
    for (const gap_words& w : words_between()) {
      double& used_here = (w.within ? used_within : used)[w.low];
      const double at = w.within ? top_of[w.low] + box_height(w.low) / 2 + 19 : top_of[w.low] - height_between / 2 + 10;
      c_.text(x, at + used_here, compact, anchor::start, w.text, w.bad ? bad_ink : faint_ink);
      used_here += 13;
    }
    return draw_planes(bottom) - y;
  }

 private:
  static constexpr double gap = 10;
  static constexpr double compact = 10;
  static constexpr double line_height = 13;

  struct box {
    std::size_t tier = 0;
    std::vector<std::uint32_t> members{};
    std::vector<std::string> words{};
    std::size_t bad_links = 0;
    double x = 0, y = 0, w = 0, h = 0;
    std::size_t ups = 0, downs = 0;      // lines that end here
    std::size_t up_at = 0, down_at = 0;  // of which are placed
  };
  /// All cables between two boxes.
  struct line {
    std::uint32_t low = 0, high = 0;  // boxes
    std::uint64_t cables = 0, bad = 0;
    std::uint64_t pairs = 0;  // of units
    bytes_per_second rate{};
    line_state state = line_state::fastest;
    line_state best_state = line_state::dead;
    link_id worst;
    double x1 = 0, x2 = 0;
  };
  struct gap_words {
    std::size_t low;
    std::string text;
    bool bad;
    bool within;  // one tier, not above it
  };

  [[nodiscard]] std::string caption(std::size_t tier) const {
    static constexpr const char* words[] = {"host", "leaf", "spine", "core switch", ""};
    const std::size_t n = u_.count(tier);
    if (n == 0 || tier == tier_planes) return {};
    if (tier == 1 && n != 1) return std::to_string(n) + " leaves";
    return counted(n, words[tier]);
  }
  static constexpr double height_between = 110;

  void make_boxes(const std::vector<std::uint32_t>& group_of) {
    group_of_ = group_of;
    for (std::uint32_t u = 0; u < group_of.size(); ++u) {
      if (group_of[u] >= boxes_.size()) boxes_.resize(group_of[u] + 1);
      box& b = boxes_[group_of[u]];
      b.tier = u_.units[u].tier;
      b.members.push_back(u);
      b.bad_links += u_.units[u].bad_links;
    }
    static constexpr const char* many[] = {" hosts", " leaves", " spines", " switches", ""};
    std::size_t in_tier[tiers] = {};
    for (const box& b : boxes_) ++in_tier[b.tier];
    for (box& b : boxes_) {
      std::vector<std::string> names;
      for (const std::uint32_t u : b.members) names.push_back(u_.units[u].name);
      seq::sort(names, [](const std::string& x, const std::string& y) {  // node9 before node10
        return x.size() != y.size() ? x.size() < y.size() : x < y;
      });
      const std::size_t n = names.size();
      const double room = in_tier[b.tier] > 20 ? 66 : in_tier[b.tier] > 12 ? 84 : 130;
      b.words.push_back(n == 1 ? shortened(names.front(), room, 11, true) : std::to_string(n) + many[b.tier]);
      if (n > 1) b.words.push_back(fitted(joined_names(names, 2), room, compact));
      if (b.tier == tier_hosts) {
        const std::size_t gpus = u_.units[b.members.front()].gpus;
        if (gpus > 0) b.words.push_back(counted(gpus, "GPU") + (n > 1 ? " each" : ""));
      }
      if (b.bad_links > 0) b.words.push_back(counted(b.bad_links, "bad link"));
    }
  }
  void make_lines() {
    std::vector<std::uint32_t> order(u_.edges.size());
    for (std::uint32_t e = 0; e < order.size(); ++e) order[e] = e;
    const auto ends = [&](std::uint32_t e) {
      const std::uint32_t a = group_of_[u_.edges[e].low];
      const std::uint32_t b = group_of_[u_.edges[e].high];
      return std::uint64_t{std::min(a, b)} << 32U | std::max(a, b);
    };
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return ends(a) < ends(b); });
    std::uint64_t last = 0;
    for (const std::uint32_t i : order) {
      const svg_edge& e = u_.edges[i];
      if (lines_.empty() || ends(i) != last) {
        line l;
        l.low = group_of_[e.low];
        l.high = group_of_[e.high];
        if (boxes_[l.low].tier > boxes_[l.high].tier) std::swap(l.low, l.high);
        l.worst = e.worst;
        lines_.push_back(l);
        last = ends(i);
      }
      line& l = lines_.back();
      l.cables += e.cables;
      l.bad += e.bad;
      ++l.pairs;
      l.rate += e.rate;
      if (e.state > l.state) l.worst = e.worst;
      l.state = std::max(l.state, e.state);
    }
    for (const line& l : lines_)
      if (boxes_[l.low].tier != boxes_[l.high].tier && boxes_[l.high].tier != tier_planes) {
        ++boxes_[l.low].ups;
        ++boxes_[l.high].downs;
      }
  }
  [[nodiscard]] double box_width(std::size_t tier) const {
    double w = 44;
    for (const box& b : boxes_)
      if (b.tier == tier)
        for (std::size_t k = 0; k < b.words.size(); ++k)
          w = std::max(w, text_width(b.words[k], k == 0 ? 11 : compact, k == 0) + 12);
    return w;
  }
  [[nodiscard]] double box_height(std::size_t tier) const {
    std::size_t lines = 1;
    for (const box& b : boxes_)
      if (b.tier == tier) lines = std::max(lines, b.words.size());
    return 10 + line_height * static_cast<double>(lines);
  }
  void place(std::size_t tier, double x, double y, double width) {
    const std::vector<std::uint32_t>& order = order_[tier];
    const double w = box_width(tier);
    const double step = width / static_cast<double>(order.size());
    if (tier == tier_hosts) step_ = step;
    for (std::size_t i = 0; i < order.size(); ++i) {
      box& b = boxes_[order[i]];
      b.x = x + step * (static_cast<double>(i) + 0.5) - w / 2;
      b.y = y;
      b.w = w;
      b.h = box_height(tier);
    }
  }
  /// Boxes of a tier in the order of the graph, unless another one crosses clearly fewer lines with the tiers above.
  void order_tiers() {
    std::vector<double> at(boxes_.size(), 0);  // of each box: its share of the width
    for (std::size_t t = tier_planes; t-- > 0;) {
      std::vector<std::uint32_t>& order = order_[t];
      for (std::uint32_t b = 0; b < boxes_.size(); ++b)
        if (boxes_[b].tier == t) order.push_back(b);
      const auto spread = [&] {
        for (std::size_t i = 0; i < order.size(); ++i)
          at[order[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(order.size());
      };
      spread();
      std::vector<double> sum(boxes_.size(), 0);
      std::vector<double> count(boxes_.size(), 0);
      for (const line& l : lines_)
        if (boxes_[l.low].tier == t && boxes_[l.high].tier > t && boxes_[l.high].tier < tier_planes) {
          sum[l.low] += at[l.high];
          count[l.low] += 1;
        }
      const std::vector<std::uint32_t> before = order;
      const std::size_t crossings_before = crossings(t, at);
      if (crossings_before == 0) continue;
      seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
        return (count[a] > 0 ? sum[a] / count[a] : at[a]) < (count[b] > 0 ? sum[b] / count[b] : at[b]);
      });
      spread();
      // People look for node7 between node6 and node8.
      if (static_cast<double>(crossings(t, at)) < 0.7 * static_cast<double>(crossings_before)) continue;
      order = before;
      spread();
    }
  }
  [[nodiscard]] std::size_t crossings(std::size_t tier, const std::vector<double>& at) const {
    std::vector<const line*> up;
    for (const line& l : lines_)
      if (boxes_[l.low].tier == tier && boxes_[l.high].tier > tier && boxes_[l.high].tier < tier_planes)
        up.push_back(&l);
    constexpr std::size_t most = 2000;  // more are a carpet in any order
    if (up.size() > most) return 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < up.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        n += (at[up[i]->low] - at[up[k]->low]) * (at[up[i]->high] - at[up[k]->high]) < 0 ? 1 : 0;
    return n;
  }
  /// Where on the edges of their boxes lines end: in the order of the boxes at their other ends.
  void spread_lines() {
    const auto middle = [&](std::uint32_t b) { return boxes_[b].x + boxes_[b].w / 2; };
    std::vector<std::uint32_t> order(lines_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto crosses = [&](const line& l) {
      return boxes_[l.low].tier != boxes_[l.high].tier && boxes_[l.high].tier != tier_planes;
    };
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return middle(lines_[a].high) < middle(lines_[b].high); });
    for (const std::uint32_t i : order)
      if (line& l = lines_[i]; crosses(l)) {
        box& b = boxes_[l.low];
        l.x1 = b.x + b.w * static_cast<double>(++b.up_at) / static_cast<double>(b.ups + 1);
      }
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return middle(lines_[a].low) < middle(lines_[b].low); });
    for (const std::uint32_t i : order)
      if (line& l = lines_[i]; crosses(l)) {
        box& b = boxes_[l.high];
        l.x2 = b.x + b.w * static_cast<double>(++b.down_at) / static_cast<double>(b.downs + 1);
      }
    // What is wrong is drawn last, over the others.
    seq::sort(lines_, [](const line& a, const line& b) { return a.state < b.state; });
  }
  [[nodiscard]] std::string title_of(const line& l) const;
  void draw_line(const line& l);
  void draw_box(const box& b);
  /// "128 x 400 Gb/s InfiniBand", "2 below best": for each pair of tiers.
  [[nodiscard]] std::vector<gap_words> words_between() const {
    std::vector<gap_words> all;
    for (std::size_t low = 0; low < tier_planes; ++low)
      for (std::size_t high = low; high < tier_planes; ++high) {
        std::uint64_t cables = 0;
        std::uint64_t bad = 0;
        const link* one = nullptr;
        bool alike = true;
        bool assumed = true;
        for (const svg_edge& e : u_.edges) {
          const std::size_t a = std::min(u_.units[e.low].tier, u_.units[e.high].tier);
          const std::size_t b = std::max(u_.units[e.low].tier, u_.units[e.high].tier);
          if (a != low || b != high) continue;
          cables += e.cables;
          bad += e.bad;
          const link& l = g_.at(e.worst);
          assumed = assumed && l.how == trust::assumed;
          alike = alike && (one == nullptr || make_of(*one) == make_of(l));
          one = &l;
        }
        if (one == nullptr) continue;
        all.push_back({low,
                       std::to_string(cables) + (alike ? " x " + make_of(*one) : " cables, of several rates") +
                           (assumed ? ", assumed" : ""),
                       false, low == high});
        if (bad > 0) all.push_back({low, std::to_string(bad) + " below best or dead", true, low == high});
      }
    return all;
  }

  /// A bar below the hosts of each NVLink domain; gives the y of the foot.
  double draw_planes(double y);

  const graph& g_;
  const svg_units<>& u_;
  svg_canvas<>& c_;
  std::vector<std::uint32_t> group_of_;
  std::vector<box> boxes_;
  std::vector<line> lines_;
  std::vector<std::uint32_t> order_[tiers];  // of boxes, from left to right
  double step_ = 0;                          // from host to host
};

}}}}  // namespace topocoll::v0::topo::detail

#include <topocoll/topo/detail/svg_fabric_draw.hpp>
