// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws the boxes of one host and the links between them, once each has its place.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/detail/svg_host.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class Deferred>
std::vector<typename svg_host<Deferred>::word> svg_host<Deferred>::words_of(const item& i) const {
  const node& n = g_.at(i.v);
  const std::string address(pci_part(n.key).substr(0, pci_part(n.key).find_first_of("#/")));
  std::vector<word> words;
  const std::string label = n.name.empty() ? label_of(n) : n.name;
  const auto split = !address.empty() ? label.find(' ' + address) : std::string::npos;
  const auto say = [&](std::string text, bool bad = false) { words.push_back({std::move(text), bad}); };
  if (n.kind == node_kind::cpu) {
    say(label);
  } else if (is_box(n.kind)) {
    say(n.kind == node_kind::pcie_root ? "root port" : label.rfind("GPU", 0) == 0 ? "GPU package" : "PCIe switch");
    say(address.empty() ? label : address);
  } else if (split != std::string::npos) {
    say(label.substr(0, split));
    say(address);
  } else {
    say(shortened(label, 110, compact, true));
  }
  if (i.hidden > 0) words.front().text += " +" + std::to_string(i.hidden);
  if (n.kind == node_kind::gpu && n.global_rank) say("rank " + std::to_string(*n.global_rank));
  if (i.has_up) {
    const link& l = g_.at(i.up);
    const line_state s = state_of(l, best_of(l));
    if (l.kind == link_kind::c2c)
      say("C2C " + to_string(class_rate(l)), s >= line_state::below_best);
    else if (l.kind == link_kind::pcie && (l.generation > 0 || l.lanes > 0))
      say(make_of(l) + (is_idle(l) ? " idle" : ""), s >= line_state::below_best);
  }
  if (n.kind == node_kind::gpu)
    for (const link_id e : g_.out_links(i.v))
      if (g_.at(e).kind == link_kind::c2c && (!i.has_up || g_.at(i.up).kind != link_kind::c2c))
        say("C2C " + to_string(class_rate(g_.at(e))));
  if (n.kind == node_kind::nic) {
    std::vector<word> speeds;
    for (const link_id e : g_.out_links(i.v)) {
      const link& l = g_.at(e);
      if (l.kind != link_kind::internal) continue;
      const bool bad = state_of(l, best_.port) >= line_state::below_best;
      speeds.push_back(
          {l.capacity.value > 0 ? bits_text(bad && l.current ? *l.current : class_rate(l)) : std::string("down"), bad});
    }
    for (std::size_t k = 0; k < speeds.size();) {
      std::size_t same = k;
      while (same < speeds.size() && speeds[same].text == speeds[k].text) ++same;
      say((same - k > 1 ? std::to_string(same - k) + " x " : "") + speeds[k].text, speeds[k].bad);
      k = same;
    }
  }
  return words;
}

template <class Deferred>
void svg_host<Deferred>::draw_item(const item& i, double bus, bool in_frame) {
  const node& n = g_.at(i.v);
  const bool frame = is_frame(i);
  const std::vector<word> words = words_of(i);
  if (i.has_up && !frame && !in_frame) {
    const link& l = g_.at(i.up);
    c_.line(i.x + i.w / 2, bus, i.x + i.w / 2, i.y, state_of(l, best_of(l)), width_of(l), link_title(i.up));
    if (n.kind == node_kind::gpu && l.kind != link_kind::c2c)
      for (const link_id e : g_.out_links(i.v))
        if (g_.at(e).kind == link_kind::c2c)
          c_.line(i.x + i.w / 2 + 10, bus, i.x + i.w / 2 + 10, i.y, state_of(g_.at(e), best_.c2c), width_of(g_.at(e)),
                  link_title(e));
  }
  if (!frame) {
    const bool doubtful = n.how == trust::assumed;
    c_.box(i.x, i.y, i.w, i.h, fill_of(n.kind), doubtful ? "#7F7F7F" : "#555555", n.kind == node_kind::nic ? 2 : 4,
           facts_of(n), doubtful ? "4 2" : "");
  }
  if (n.kind == node_kind::cpu || (is_box(n.kind) && !i.below.empty())) {
    double y = i.y + 4;
    for (std::size_t k = 0; k < words.size(); ++k)
      c_.text(i.x + i.w / 2, y += row, compact, anchor::middle, words[k].text,
              words[k].bad ? bad_ink
              : k == 0     ? ink
                           : faint_ink,
              k == 0);
    if (n.kind == node_kind::cpu) {
      const auto [text, l] = memory_of(i.v);
      c_.text(i.x + i.w / 2, y + row, compact, anchor::middle, text, faint_ink);
    }
  } else if (!frame) {
    double y = i.y + (i.h - row * static_cast<double>(words.size())) / 2 - 3;
    for (std::size_t k = 0; k < words.size(); ++k)
      c_.text(i.x + i.w / 2, y += row, compact, anchor::middle, words[k].text,
              words[k].bad ? bad_ink
              : k == 0     ? ink
                           : faint_ink,
              k == 0);
    if (n.kind == node_kind::nic) draw_ports(i);
    if (n.kind == node_kind::gpu) gpus_.emplace_back(i.v, i.x + i.w / 2);
    if (n.kind == node_kind::gpu) gpu_foot_ = i.y + i.h;
  }
  if (i.below.empty()) return;
  const double inner = i.y + head_of(i) + 6;
  if (!frame && i.below.size() > 1)
    c_.rule(i.below.front().x + i.below.front().w / 2, inner, i.below.back().x + i.below.back().w / 2, inner, "#B0B0B0",
            2);
  for (std::size_t k = 0; k < i.below.size(); ++k) {
    const item& c = i.below[k];
    draw_item(c, inner, frame);
    // In a frame, devices are joined to the neighbour that they hang on.
    if (!frame || k == 0 || !c.has_up) continue;
    for (std::size_t p = k; p-- > 0;)
      if (i.below[p].v == g_.tail(c.up)) {
        const double y = c.y + c.h / 2 - 4 * static_cast<double>(k - p - 1);
        if (p + 1 == k)
          c_.line(i.below[p].x + i.below[p].w, y, c.x, y, state_of(g_.at(c.up), best_of(g_.at(c.up))),
                  width_of(g_.at(c.up)), link_title(c.up));
        break;
      }
  }
}

template <class Deferred>
void svg_host<Deferred>::draw_ports(const item& i) {
  std::vector<link_id> ports;
  for (const link_id e : g_.out_links(i.v))
    if (g_.at(e).kind == link_kind::internal) ports.push_back(e);
  const double step = i.w / static_cast<double>(ports.size() + 1);
  for (std::size_t k = 0; k < ports.size(); ++k) {
    const link& l = g_.at(ports[k]);
    const line_state s = state_of(l, best_.port);
    c_.line(i.x + step * static_cast<double>(k + 1), i.y + i.h, i.x + step * static_cast<double>(k + 1), i.y + i.h + 7,
            s, s == line_state::dead ? 5 : std::max(3.0, width_of(l)),
            "port " + label_of(g_.at(l.to)) + "\n" + facts_of(g_.at(l.to)) + "\n" + figures_of(l));
  }
}

template <class Deferred>
void svg_host<Deferred>::draw_sockets(double x, double y, double width) {
  std::vector<const link*> links;
  for (const node_id v : nodes_)
    for (const link_id e : g_.out_links(v))
      if (g_.at(e).kind == link_kind::cpu && g_.at(e).from < g_.at(e).to) links.push_back(&g_.at(e));
  if (links.empty()) return;
  const link* least = links.front();
  const link* most = links.front();
  for (const link* l : links) {
    if (class_rate(*l) < class_rate(*least)) least = l;
    if (class_rate(*l) > class_rate(*most)) most = l;
  }
  std::string text = "between NUMA domains " + to_string(class_rate(*least));
  if (class_rate(*most) > class_rate(*least)) text += " to " + to_string(class_rate(*most));
  if (least->how == trust::assumed) text += ", assumed";
  double first = x + width;
  double last = x;
  for (const item& r : roots_) {
    if (g_.at(r.v).kind != node_kind::cpu) continue;
    first = std::min(first, r.x + r.w / 2);
    last = std::max(last, r.x + r.w / 2);
    std::string title = label_of(g_.at(r.v)) + " to the other NUMA domains";
    const link* own = least;
    for (const link_id e : g_.out_links(r.v))
      if (g_.at(e).kind == link_kind::cpu) {
        own = &g_.at(e);
        title += "\n" + label_of(g_.at(g_.head(e))) + ": " + to_string(g_.at(e).capacity);
      }
    title += "\n" + figures_of(*own);
    c_.line(r.x + r.w / 2, y + 6, r.x + r.w / 2, r.y, state_of(*own, best_.socket), width_of(*own), title);
  }
  c_.line(first, y + 6, last, y + 6, state_of(*least, best_.socket), width_of(*least),
          text + "\n" + figures_of(*least));
  const double middle = (first + last) / 2;
  const double room = text_width(text, compact);
  if (room < last - first)
    c_.text(middle, y + 1, compact, anchor::middle, text, faint_ink);
  else
    c_.text(x + width, y - 2, compact, anchor::end, fitted(text, width, compact), faint_ink);
}

template <class Deferred>
void svg_host<Deferred>::draw_gpu_links(double x, double bottom, double width) {
  const auto at = [&](node_id v) {
    for (const auto& [gpu, middle] : gpus_)
      if (gpu == v) return middle;
    return -1.0;
  };
  double y = bottom + 6;
  if (has_pairs()) {
    double longest = 1;
    std::vector<link_id> arcs;
    for (const node_id v : nodes_)
      for (const link_id e : g_.out_links(v))
        if (is_pair(g_.at(e)) && g_.at(e).from < g_.at(e).to) {
          arcs.push_back(e);
          longest = std::max(longest, topocoll::detail::magnitude(at(g_.at(e).from) - at(g_.at(e).to)));
        }
    seq::sort(arcs, [&](link_id a, link_id b) { return g_.at(a).capacity < g_.at(b).capacity; });
    std::vector<std::string> makes;
    for (const link_id e : arcs) {
      const link& l = g_.at(e);
      const double a = at(l.from);
      const double b = at(l.to);
      if (a < 0 || b < 0) continue;
      const double depth = 16 + (deepest_arc - 16) * topocoll::detail::magnitude(a - b) / longest + bottom - gpu_foot_;
      c_.arc(std::min(a, b), std::max(a, b), gpu_foot_, depth, state_of(l, best_.pair), width_of(l) * 0.7,
             link_title(e));
      const std::string make = make_of(l) + " " + to_string(class_rate(l));
      if (seq::find(makes, make) == makes.end()) makes.push_back(make);
    }
    std::string text = "GPU to GPU: ";
    for (std::size_t k = 0; k < makes.size() && k < 4; ++k) text += (k == 0 ? "" : ", ") + makes[k];
    if (makes.size() > 4) text += ", …";
    y += deepest_arc + 22;
    c_.text(x + width / 2, y - 4, compact, anchor::middle, fitted(text, width, compact), faint_ink);
  }
  for (const node_id plane : planes()) {
    std::vector<link_id> links;
    for (const node_id v : nodes_)
      for (const link_id e : g_.out_links(v))
        if (g_.at(e).to == plane) links.push_back(e);
    if (links.empty()) continue;
    double first = x + width;
    double last = x;
    const link* usual = &g_.at(links.front());
    bool alike = true;
    for (const link_id e : links) {
      const link& l = g_.at(e);
      const double middle = at(l.from);
      if (middle < 0) continue;
      first = std::min(first, middle);
      last = std::max(last, middle);
      alike = alike && l.lanes == usual->lanes && l.capacity == usual->capacity;
      if (l.capacity > usual->capacity) usual = &l;
    }
    const double bar = y + 26;
    for (const link_id e : links) {
      const link& l = g_.at(e);
      const double middle = at(l.from);
      if (middle < 0) continue;
      c_.line(middle, gpu_foot_, middle, bar, state_of(l, best_.plane), width_of(l), link_title(e));
      const std::string count = l.lanes > 0 ? std::to_string(l.lanes) + " x" : std::string();
      c_.text(middle + 7, bar - 7, compact, anchor::start, count,
              state_of(l, best_.plane) >= line_state::below_best ? bad_ink : faint_ink);
    }
    const node& n = g_.at(plane);
    std::string text = n.name.empty() ? std::string("NVSwitch") : n.name;
    text += ": " + make_of(*usual) + (alike ? " for each GPU, " : " for most GPUs, ") + to_string(class_rate(*usual)) +
            " each way";
    const double w = std::max(last - first + tile_w_, text_width(text, 11, true) + 24);
    const double left = std::max(x, (first + last) / 2 - w / 2);
    c_.box(left, bar, std::min(w, x + width - left), 24, "#DCE6F2", "#0072B2", 6, facts_of(n));
    c_.text(left + std::min(w, x + width - left) / 2, bar + 16, 11, anchor::middle,
            fitted(text, std::min(w, x + width - left) - 8, 11, true), ink, true);
    y += 56;
  }
}

}}}}  // namespace topocoll::v0::topo::detail
