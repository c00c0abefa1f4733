// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws what joins the GPUs of a host, and who sends to whom, once the devices have their places.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/overlay_host.hpp>
#include <topocoll/plan/detail/overlay_links.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

template <class Deferred>
double overlay_host<Deferred>::draw_gpu_wires(double y) {
  double longest = 1;
  std::vector<node_id> planes;
  bool pairs = false;
  const auto each = [&](const auto& use) {
    for (const item& i : items_)
      if (i.drawn)
        for (const link_id e : g_.out_links(i.v))
          if (g_.at(e).kind == topo::link_kind::nvlink || g_.at(e).kind == topo::link_kind::xgmi) use(i, e);
  };
  each([&](const item& i, link_id e) {
    const node_id to = g_.head(e);
    if (g_.at(to).kind == topo::node_kind::nvswitch) {
      if (!seq::contains(planes, to)) planes.push_back(to);
    } else if (place_of_[to.value] != none) {
      pairs = true;
      longest = std::max(longest, topocoll::detail::magnitude(i.x - items_[place_of_[to.value]].x));
    }
  });
  constexpr double deepest = 96;
  if (pairs) {
    each([&](const item& i, link_id e) {
      const std::uint32_t other = place_of_[g_.head(e).value];
      if (other == none || !(g_.tail(e) < g_.head(e))) return;
      double share = l_.share[e.value];  // of the busier direction
      std::string title = l_.title(e);
      for (const link_id back : g_.out_links(g_.head(e)))
        if (g_.head(back) == g_.tail(e)) {
          share = std::max(share, l_.share[back.value]);
          title += "\n" + l_.title(back);
        }
      const load_style s = style_of_share(share);
      const double a = i.x, b = items_[other].x;
      c_.arc(std::min(a, b), std::max(a, b), gpu_row_ + tile_h,
             18 + (deepest - 18) * topocoll::detail::magnitude(a - b) / longest, s.colour, s.width * 0.8, s.dashes,
             title);
    });
    y += deepest;
  }
  for (const node_id plane : planes) {
    const double bar = y + 22;
    double first = 1e9, last = 0;
    bytes most{};
    each([&](const item& i, link_id e) {
      if (g_.head(e) != plane) return;
      first = std::min(first, i.x);
      last = std::max(last, i.x);
      most = std::max(most, l_.carried[e.value]);
      const load_style s = style_of_share(l_.share[e.value]);
      c_.line(i.x - 3.2, gpu_row_ + tile_h, i.x - 3.2, bar, s.colour, s.width, s.dashes, l_.title(e));
      for (const link_id back : g_.out_links(plane))
        if (g_.head(back) == i.v) {
          const load_style d = style_of_share(l_.share[back.value]);
          c_.line(i.x + 3.2, gpu_row_ + tile_h, i.x + 3.2, bar, d.colour, d.width, d.dashes, l_.title(back));
          most = std::max(most, l_.carried[back.value]);
        }
    });
    const std::string text = topo::label_of(g_.at(plane)) + ": most from or to one GPU " + about(most);
    const double w = std::max(last - first + tile_w, topo::detail::text_width(text, 10, true) + 16);
    c_.box((first + last) / 2 - w / 2, bar, w, 22, "#DCE6F2", "#1F83C4", 6, g_.at(plane).key);
    c_.boxed_text((first + last) / 2, bar + 15, 10, hold::middle, text, true);
    y = bar + 26;
  }
  return y;
}

template <class Deferred>
void overlay_host<Deferred>::badge() {
  const topo::link& l = g_.at(link_id{l_.limit});
  const std::uint32_t a = place_of_[l.from.value], b = place_of_[l.to.value];
  const std::string text = about(l_.carried[l_.limit]);
  const auto shown = [&](std::uint32_t k) { return k != none && items_[k].drawn; };
  if (shown(a) && shown(b)) {
    const item &from = items_[a], &to = items_[b];
    if (l.kind == topo::link_kind::cpu)
      overlay_badge(c_, (from.x + to.x) / 2, from.y - 14, text);
    else if (from.device && to.device && from.y == to.y && l.kind != topo::link_kind::pcie)
      overlay_badge(c_, (from.x + to.x) / 2, gpu_row_ + tile_h + 30, text);
    else
      overlay_badge(c_, (from.x + to.x) / 2, (from.y + to.y + tile_h) / 2, text);
  } else if (shown(a) || shown(b)) {
    const item& i = items_[shown(a) ? a : b];
    if (i.device || l.kind == topo::link_kind::memory)
      overlay_badge(c_, i.x, i.y + tile_h + (i.device ? 12 : 17), text);
  }
}

template <class Deferred>
double overlay_host<Deferred>::draw_pairs(const std::vector<overlay_pair>& pairs, const std::vector<std::string>& parts,
                                          double x, double y) {
  std::vector<std::pair<std::uint32_t, double>> seats;  // rank and place
  for (const item& i : items_) {
    const auto& on = (*ranks_on_)[i.v.value];
    for (std::size_t k = 0; i.drawn && k < on.size() && k < 16; ++k)
      seats.push_back({on[k], i.x + 30 * (static_cast<double>(k) -
                                          static_cast<double>(std::min<std::size_t>(on.size(), 16) - 1) / 2)});
  }
  if (seats.size() < 2) return y;
  seq::sort(seats, [](const auto& a, const auto& b) { return a.second < b.second; });
  seats[0].second = std::max(seats[0].second, x + 14);
  for (std::size_t k = 1; k < seats.size(); ++k)  // ranks of neighbours do not meet
    seats[k].second = std::max(seats[k].second, seats[k - 1].second + 28);
  const auto seat = [&](std::uint32_t rank) {
    for (const auto& [r, at] : seats)
      if (r == rank) return at;
    return -1.0;
  };
  y += 22;
  c_.text(x, y, 11, hold::start, "Who sends to whom", tone::ink, true);
  std::vector<bytes> outside(parts.size(), bytes{});
  std::vector<std::size_t> outside_pairs(parts.size(), 0);
  y += 24;
  double longest = 1, foot = y;
  for (const overlay_pair& q : pairs)
    if (seat(q.from) >= 0 && seat(q.to) >= 0)
      longest = std::max(longest, topocoll::detail::magnitude(seat(q.from) - seat(q.to)));
  std::vector<bool> inside(parts.size(), false);
  for (const overlay_pair& q : pairs) {
    const double a = seat(q.from), b = seat(q.to);
    if (a < 0 || b < 0) {
      if (a < 0 && b < 0) continue;
      outside[q.part] += q.amount;
      ++outside_pairs[q.part];
      continue;
    }
    inside[q.part] = true;
    const line_style s = style_of(q.part);
    // Parts lie side by side: each a little deeper than the one before.
    const double depth = 14 + 92 * topocoll::detail::magnitude(a - b) / longest + 4 * static_cast<double>(q.part % 8);
    foot = std::max(foot, y + depth);
    c_.arc(std::min(a, b), std::max(a, b), y + 9, depth, s.colour, 1.6, s.dashes,
           "rank " + std::to_string(q.from) + " to rank " + std::to_string(q.to) + "\n" + parts[q.part] + "\n" +
               about(q.amount),
           0.9);
  }
  for (const auto& [rank, at] : seats) {
    c_.disc(at, y, 11, "#CDE8DC", "#555555", "rank " + std::to_string(rank));
    c_.boxed_text(at, y + 3.6, 10, hold::middle, std::to_string(rank), true);
  }
  y = foot + 26;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!inside[k] && outside_pairs[k] == 0) continue;
    const line_style s = style_of(k);
    c_.line(x, y, x + 26, y, s.colour, 2.5, s.dashes);
    std::string text = parts[k];
    if (outside_pairs[k] > 0)
      text += (inside[k] ? "; with ranks elsewhere " : ": with ranks elsewhere, ") + about(outside[k]) + " in " +
              plural(outside_pairs[k], "pair") + ", both directions together";
    c_.text(x + 32, y + 4, 10, hold::start, text, tone::faint);
    y += 16;
  }
  return y;
}

}}}}  // namespace topocoll::v0::plan::detail
