// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network of a picture of a plan: hosts, leaves, spines and core switches with what their cables carry.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/overlay_links.hpp>
#include <topocoll/topo/detail/svg_units.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

template <class = void>
class overlay_network {
 public:
  overlay_network(const link_loads<>& loads, const topo::detail::svg_units<>& units, picture<>& canvas)
      : l_(loads), u_(units), c_(canvas) {}

  /// Draws with the upper left corner at (x, y); gives the foot.
  double draw(std::size_t most_boxes, std::size_t most_cables, double x, double y) {
    group_of_ = u_.groups(most_boxes, most_cables);
    make_boxes();
    make_lines();
    return place(x, y);
  }

 private:
  static constexpr std::size_t hosts = topo::detail::tier_hosts, planes = topo::detail::tier_planes,
                               tiers = topo::detail::tiers;
  static constexpr double box_height = 34, between = 104, caption_room = 190;

  struct box {
    std::size_t tier = 0;
    std::vector<std::uint32_t> members{};
    std::string name{}, under{};
    double x = 0, y = 0, w = 0;
    std::vector<std::uint32_t> up{}, down{};  // lines that end here
  };
  /// All cables between two boxes, the lower one first.
  struct line {
    std::uint32_t low = 0, high = 0;
    std::size_t cables = 0;
    bytes up{}, down{};    // all together
    bytes most{};          // on one cable
    double share = 0;      // of the busiest of them
    bool busiest = false;  // holds the busiest link of all
    double x1 = 0, x2 = 0;
  };

  void make_boxes() {
    for (std::uint32_t u = 0; u < group_of_.size(); ++u) {
      if (group_of_[u] >= boxes_.size()) boxes_.resize(group_of_[u] + 1);
      box& b = boxes_[group_of_[u]];
      b.tier = u_.units[u].tier;
      b.members.push_back(u);
    }
    static constexpr const char* many[] = {"hosts", "leaves", "spines", "switches", "NVLink domains"};
    std::size_t in_tier[tiers] = {};
    for (const box& b : boxes_) ++in_tier[b.tier];
    for (box& b : boxes_) {
      const auto& first = u_.units[b.members.front()];
      const double room = in_tier[b.tier] > 20 ? 60 : in_tier[b.tier] > 12 ? 80 : 130;
      b.name = b.members.size() == 1 ? topo::detail::shortened(first.name, room, 11, true)
                                     : std::to_string(b.members.size()) + ' ' + many[b.tier];
      if (b.tier == hosts && first.gpus > 0)
        b.under = plural(first.gpus, "GPU") + (b.members.size() > 1 ? " each" : "");
      else if (b.members.size() > 1)
        b.under = topo::detail::shortened(first.name, room, 10) + ", …";
    }
  }

  void make_lines() {
    const topo::graph& g = *l_.graph;
    std::vector<std::uint32_t> box_of(g.node_count(), UINT32_MAX);
    for (std::uint32_t h = 0; h < u_.all_hosts().size(); ++h)
      for (const node_id v : u_.all_hosts()[h].nodes) box_of[v.value] = group_of_[h];
    for (std::uint32_t u = 0; u < u_.units.size(); ++u)
      if (u_.units[u].tier != hosts) box_of[u_.units[u].node.value] = group_of_[u];
    struct wire {
      std::uint64_t ends;
      link_id e;
    };
    std::vector<wire> wires;
    for (std::uint32_t e = 0; e < g.link_count(); ++e) {
      std::uint32_t a = box_of[g.tail({e}).value], b = box_of[g.head({e}).value];
      if (a == UINT32_MAX || b == UINT32_MAX) continue;
      const bool within = a == b;
      // Hosts of one box that are joined to each other are told by the box; the inside of a host is not the network.
      if (within) continue;
      if (boxes_[a].tier > boxes_[b].tier || (boxes_[a].tier == boxes_[b].tier && a > b)) std::swap(a, b);
      wires.push_back({std::uint64_t{a} << 32U | b, {e}});
    }
    seq::sort_by(wires, [](const wire& w) { return w.ends; });
    for (const wire& w : wires) {
      const auto low = static_cast<std::uint32_t>(w.ends >> 32U), high = static_cast<std::uint32_t>(w.ends);
      if (lines_.empty() || lines_.back().low != low || lines_.back().high != high) {
        lines_.emplace_back();
        lines_.back().low = low;
        lines_.back().high = high;
      }
      line& l = lines_.back();
      const bool up = box_of[g.tail(w.e).value] == low;
      l.cables += up ? 1 : 0;
      (up ? l.up : l.down) += l_.carried[w.e.value];
      l.most = std::max(l.most, l_.carried[w.e.value]);
      l.share = std::max(l.share, l_.share[w.e.value]);
      l.busiest = l.busiest || w.e.value == l_.limit;
    }
    for (std::uint32_t i = 0; i < lines_.size(); ++i) {
      if (boxes_[lines_[i].low].tier == boxes_[lines_[i].high].tier) continue;
      boxes_[lines_[i].low].up.push_back(i);
      boxes_[lines_[i].high].down.push_back(i);
    }
  }

  double place(double x, double y) {
    const double left = x + caption_room;
    double width = 320;
    std::vector<std::uint32_t> of_tier[tiers];
    double box_width[tiers] = {};
    for (std::uint32_t b = 0; b < boxes_.size(); ++b) {
      of_tier[boxes_[b].tier].push_back(b);
      box_width[boxes_[b].tier] =
          std::max({box_width[boxes_[b].tier], 44.0, topo::detail::text_width(boxes_[b].name, 11, true) + 14,
                    topo::detail::text_width(boxes_[b].under, 10) + 14});
    }
    for (std::size_t t = 0; t < tiers; ++t)
      width = std::max(width, static_cast<double>(of_tier[t].size()) * (box_width[t] + 10));
    static constexpr const char* captions[] = {"hosts", "leaves", "spines", "core switches", "NVLink domains"};
    static constexpr const char* lone[] = {"host", "leaf", "spine", "core switch", "NVLink domain"};
    constexpr std::size_t rows[] = {3, 2, 1, hosts, planes};  // from the top
    double at = y, foot = y;
    double top_of[tiers] = {};
    for (const std::size_t t : rows) {
      if (of_tier[t].empty()) continue;
      const double step = width / static_cast<double>(of_tier[t].size());
      for (std::size_t i = 0; i < of_tier[t].size(); ++i) {
        box& b = boxes_[of_tier[t][i]];
        b.w = box_width[t];
        b.x = left + step * (static_cast<double>(i) + 0.5) - b.w / 2;
        b.y = at;
      }
      top_of[t] = at;
      foot = at + box_height;
      at += box_height + between;
    }
    for (box& b : boxes_) spread(b);
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < lines_.size(); ++i) order.push_back(i);
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return lines_[a].share < lines_[b].share; });
    for (const std::uint32_t i : order) draw_line(lines_[i]);
    for (const std::size_t t : rows) {
      if (of_tier[t].empty()) continue;
      std::size_t units = 0;
      for (const std::uint32_t b : of_tier[t]) units += boxes_[b].members.size();
      c_.text(x, top_of[t] + box_height / 2 + 4, 12, hold::start,
              std::to_string(units) + ' ' + (units == 1 ? lone : captions)[t], tone::ink, true);
      for (const std::uint32_t b : of_tier[t]) draw_box(boxes_[b]);
    }
    words(x, top_of);
    for (const line& l : lines_)
      if (l.busiest) {
        const box &a = boxes_[l.low], &b = boxes_[l.high];
        const bool below = b.y > a.y;
        const double y1 = below ? a.y + box_height : a.y, y2 = below ? b.y : b.y + box_height;
        overlay_badge(c_, (l.x1 + l.x2) / 2, (y1 + y2) / 2, about(l.most));
      }
    return foot;
  }
  /// Lines leave a box in the order of their other ends.
  void spread(box& b) {
    const auto middle = [&](std::uint32_t k) { return boxes_[k].x + boxes_[k].w / 2; };
    seq::sort(b.up, [&](std::uint32_t i, std::uint32_t k) { return middle(lines_[i].high) < middle(lines_[k].high); });
    seq::sort(b.down, [&](std::uint32_t i, std::uint32_t k) { return middle(lines_[i].low) < middle(lines_[k].low); });
    for (std::size_t k = 0; k < b.up.size(); ++k)
      lines_[b.up[k]].x1 = b.x + b.w * static_cast<double>(k + 1) / static_cast<double>(b.up.size() + 1);
    for (std::size_t k = 0; k < b.down.size(); ++k)
      lines_[b.down[k]].x2 = b.x + b.w * static_cast<double>(k + 1) / static_cast<double>(b.down.size() + 1);
  }
  void draw_line(const line& l) {
    const box &a = boxes_[l.low], &b = boxes_[l.high];
    const load_style s = style_of_share(l.share);
    // Hundreds of lines are read by their colour, not by their width.
    const double width = std::max(1.0, s.width * (lines_.size() > 150 ? 0.4 : lines_.size() > 60 ? 0.6 : 1));
    const std::string title = a.name + " - " + b.name + "\n" + plural(l.cables, "cable") + "\nup " + about(l.up) +
                              ", down " + about(l.down) + "\nmost on one " + about(l.most) + ", " + percent(l.share) +
                              " of the time of the busiest link";
    if (a.tier == b.tier) {
      c_.arc(std::min(a.x, b.x) + a.w / 2, std::max(a.x, b.x) + a.w / 2, a.y + box_height,
             18 + 0.04 * topocoll::detail::magnitude(a.x - b.x), s.colour, width, s.dashes, title);
      return;
    }
    const bool below = b.y > a.y;  // NVLink domains
    c_.line(l.x1, below ? a.y + box_height : a.y, l.x2, below ? b.y : b.y + box_height, s.colour, width, s.dashes,
            title);
  }
  void draw_box(const box& b) {
    static constexpr const char* fills[] = {"#E6EEF8", "#ECE4F4", "#DFD4EC", "#D0C0E2", "#DCE6F2"};
    std::string title;
    for (std::size_t k = 0; k < b.members.size() && k < 12; ++k)
      title += (k == 0 ? "" : ", ") + u_.units[b.members[k]].name;
    if (b.members.size() > 12) title += ", …";
    if (b.members.size() > 1) c_.box(b.x + 4, b.y + 4, b.w, box_height, fills[b.tier], "#777777", 5);
    c_.box(b.x, b.y, b.w, box_height, fills[b.tier], "#555555", 5, title);
    c_.boxed_text(b.x + b.w / 2, b.y + (b.under.empty() ? 21 : 15), 11, hold::middle, b.name, true);
    c_.boxed_text(b.x + b.w / 2, b.y + 28, 10, hold::middle, b.under, false, "#4A4A4A");
  }
  /// What crosses between two tiers, beside it.
  void words(double x, const double* top_of) {
    double used[tiers][2] = {};
    for (std::size_t low = 0; low < tiers; ++low)
      for (std::size_t high = low; high < tiers; ++high) {
        bytes up{}, down{}, most{};
        double share = 0;
        std::size_t cables = 0;
        for (const line& l : lines_)
          if (boxes_[l.low].tier == low && boxes_[l.high].tier == high) {
            up += l.up;
            down += l.down;
            most = std::max(most, l.most);
            share = std::max(share, l.share);
            cables += l.cables;
          }
        if (cables == 0) continue;
        const bool below = high == planes;
        double& here = used[low][below ? 1 : 0];
        const double y = (below ? top_of[low] + box_height : top_of[low] - between) + 28 + here;
        const std::string lines[] = {
            plural(cables, "cable"),
            up.value + down.value == 0 ? std::string("nothing crosses") : "up " + about(up) + ", down " + about(down),
            up.value + down.value == 0 ? std::string() : "one: " + about(most) + ", " + percent(share)};
        for (std::size_t k = 0; k < 3; ++k)
          c_.text(x, y + 14 * static_cast<double>(k), 10, hold::start, lines[k], tone::faint);
        here += 46;
      }
  }

  const link_loads<>& l_;
  const topo::detail::svg_units<>& u_;
  picture<>& c_;
  std::vector<std::uint32_t> group_of_;
  std::vector<box> boxes_;
  std::vector<line> lines_;
};

}}}}  // namespace topocoll::v0::plan::detail
