// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws the switches, hosts and NVLink domains of a network and the cables between them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/detail/svg_fabric.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class Deferred>
void svg_fabric<Deferred>::draw_box(const box& b) {
  static constexpr const char* fills[] = {"#EEF3FA", "#F1ECF7", "#E6DEF0", "#D9CCE8", "#DCE6F2"};
  const svg_unit& first = u_.units[b.members.front()];
  std::string title;
  if (b.members.size() == 1) {
    title = b.tier == tier_hosts ? first.name : facts_of(g_.at(first.node));
  } else {
    title = b.words.front() + ", alike:";
    for (std::size_t i = 0; i < b.members.size() && i < 12; ++i)
      title += (i == 0 ? " " : ", ") + u_.units[b.members[i]].name;
    if (b.members.size() > 12) title += ", …";
  }
  if (b.bad_links > 0) title += "\n" + counted(b.bad_links, "link") + " inside below their best or dead";
  // A stack of cards says that the box stands for several.
  if (b.members.size() > 1) c_.box(b.x + 4, b.y + 4, b.w, b.h, fills[b.tier], "#777777", 5);
  c_.box(b.x, b.y, b.w, b.h, fills[b.tier], b.bad_links > 0 ? "#D55E00" : "#555555", 5, title, "",
         b.bad_links > 0 ? 2.5 : 1);
  double y = b.y + (b.h - line_height * static_cast<double>(b.words.size())) / 2 - 3;
  for (std::size_t k = 0; k < b.words.size(); ++k) {
    const bool last_and_bad = b.bad_links > 0 && k + 1 == b.words.size();
    c_.text(b.x + b.w / 2, y += line_height, k == 0 ? 11 : compact, anchor::middle, b.words[k],
            last_and_bad ? bad_ink
            : k == 0     ? ink
                         : faint_ink,
            k == 0);
  }
}

template <class Deferred>
double svg_fabric<Deferred>::draw_planes(double y) {
  struct bar {
    std::uint32_t box;
    double left, right, y;
    std::uint64_t hosts, gpus;
  };
  std::vector<bar> bars;
  std::vector<double> filled;  // of each row
  double foot = y + 6;
  for (std::uint32_t p = 0; p < boxes_.size(); ++p) {
    if (boxes_[p].tier != tier_planes) continue;
    bar b{p, 1e9, 0, 0, 0, 0};
    for (const line& l : lines_) {
      if (l.high != p) continue;
      const box& h = boxes_[l.low];
      // All the room that is the host's, so that bars of neighbours do not meet.
      b.left = std::min(b.left, h.x + h.w / 2 - step_ / 2 + 4);
      b.right = std::max(b.right, h.x + h.w / 2 + step_ / 2 - 4);
      b.hosts += l.pairs;
      for (const std::uint32_t u : h.members) b.gpus += u_.units[u].gpus;
    }
    if (b.right <= b.left) continue;
    std::size_t r = 0;
    while (r < filled.size() && filled[r] > b.left) ++r;
    if (r == filled.size()) filled.push_back(0);
    filled[r] = b.right;
    b.y = y + 18 + 30 * static_cast<double>(r);
    foot = std::max(foot, b.y + 22);
    bars.push_back(b);
  }
  for (const bar& b : bars)
    for (const line& l : lines_) {
      if (l.high != b.box) continue;
      const box& h = boxes_[l.low];
      c_.line(h.x + h.w / 2, h.y + h.h + (h.members.size() > 1 ? 4 : 0), h.x + h.w / 2, b.y, l.state,
              line_width({l.rate.value / static_cast<double>(l.pairs)}), title_of(l));
    }
  for (const bar& b : bars) {
    const std::size_t n = boxes_[b.box].members.size();
    const std::string gpus = b.gpus > 0 ? counted(b.gpus / n, "GPU") : counted(b.hosts / n, "host");
    const std::string texts[] = {
        (n > 1 ? std::to_string(n) + " NVLink domains, each " : std::string("NVLink domain: ")) +
            counted(b.hosts / n, "host") + (b.gpus > 0 ? ", " + gpus : std::string()),
        (n > 1 ? std::to_string(n) + " x NVLink: " : std::string("NVLink: ")) + gpus, gpus};
    std::size_t k = 0;
    while (k < 2 && text_width(texts[k], 11, true) > b.right - b.left - 8) ++k;
    c_.box(b.left, b.y, b.right - b.left, 22, "#DCE6F2", "#0072B2", 6,
           n == 1 ? facts_of(g_.at(u_.units[boxes_[b.box].members.front()].node)) + "\n" + texts[0] : texts[0]);
    c_.text((b.left + b.right) / 2, b.y + 15, 11, anchor::middle, fitted(texts[k], b.right - b.left - 8, 11, true), ink,
            true);
  }
  return foot;
}

template <class Deferred>
void svg_fabric<Deferred>::draw_line(const line& l) {
  const box& a = boxes_[l.low];
  const box& b = boxes_[l.high];
  if (b.tier == tier_planes) return;
  const double per_pair = l.rate.value / static_cast<double>(l.pairs == 0 ? 1 : l.pairs);
  // Hundreds of lines are read by their colour, not by their width.
  const double many = lines_.size() > 150 ? 0.35 : lines_.size() > 60 ? 0.5 : 1;
  const double width = std::max(1.0, line_width({per_pair}) * many);
  if (a.tier == b.tier) {
    if (l.low != l.high)
      c_.arc(std::min(a.x, b.x) + a.w / 2, std::max(a.x, b.x) + a.w / 2, a.y + a.h,
             20 + 0.04 * topocoll::detail::magnitude(a.x - b.x), l.state, width, title_of(l));
    return;
  }
  const bool wrong = l.state >= line_state::below_best;
  c_.line(l.x1, a.y, l.x2, b.y + b.h, l.state, wrong ? std::max(2.0, width) : width, title_of(l),
          lines_.size() > 60 && !wrong ? 0.6 : 1);
}

template <class Deferred>
std::string svg_fabric<Deferred>::title_of(const line& l) const {
  const box& a = boxes_[l.low];
  const box& b = boxes_[l.high];
  const auto name = [&](const box& x) {
    return x.members.size() == 1 ? u_.units[x.members.front()].name : x.words.front();
  };
  std::string text = name(a) + " - " + name(b) + "\n" + counted(l.cables, "cable");
  if (l.bad > 0) text += ", " + std::to_string(l.bad) + " below their best or dead";
  return text + "\n" + (l.cables > 1 ? (l.bad > 0 ? "one of those:\n" : "each: \n") : "") + figures_of(g_.at(l.worst));
}

}}}}  // namespace topocoll::v0::topo::detail
