// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the parts of a picture come together: headline, fabric, hosts, what is wrong, legend.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/detail/svg_fabric.hpp>
#include <topocoll/topo/detail/svg_host.hpp>
#include <topocoll/topo/detail/svg_units.hpp>
#include <topocoll/topo/summary.hpp>
#include <topocoll/topo/svg.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

namespace detail {

/// What the colours and widths mean, in rows of at most `width`; gives the y of the foot.
template <class = void>
double draw_legend(svg_canvas<>& c, double x, double y, double width) {
  struct entry {
    line_state state;
    const char* text;
  };
  constexpr entry entries[] = {{line_state::fastest, "fastest of its kind"},
                               {line_state::slower, "slower by make"},
                               {line_state::assumed, "rate assumed"},
                               {line_state::below_best, "runs below its best"},
                               {line_state::dead, "dead"}};
  constexpr double size = 10;
  double at = x;
  const auto next = [&](double w) {
    if (at > x && at + w > x + width) {
      at = x;
      y += 18;
    }
  };
  for (const entry& e : entries) {
    const double w = 34 + text_width(e.text, size) + 18;
    next(w);
    c.line(at, y, at + 28, y, e.state, 3.5);
    c.text(at + 34, y + 3.5, size, anchor::start, e.text, faint_ink);
    at += w;
  }
  const char* last = "wider lines carry more; point at anything for its figures";
  next(text_width(last, size));
  c.text(at, y + 3.5, size, anchor::start, last, faint_ink);
  return y + 8;
}

}  // namespace detail

template <class>
std::string to_svg(const graph& g, const svg_options& o) {
  detail::svg_canvas<> c;
  const detail::svg_units<> units(g);
  constexpr double x = 16;
  double y = 30;
  const std::string title = !o.title.empty() ? o.title : !g.source().empty() ? g.source() : std::string("topology");
  const std::size_t network = units.count(1) + units.count(2) + units.count(3);
  // The headline may be wider than the rest, but not by how long a path is.
  constexpr double headline = 900;
  c.text(x, y, 17, detail::anchor::start, detail::fitted(title, headline, 17, true), detail::ink, true);
  y += 20;
  c.text(x, y, 12, detail::anchor::start, detail::fitted(to_string(summarize(g)), headline, 12), detail::faint_ink);
  y += 22;
  const std::vector<group>& hosts = units.all_hosts();
  if (network > 0 || hosts.size() > 1) {
    detail::svg_fabric<> fabric(g, units, c);
    y += fabric.draw(std::max<std::size_t>(o.boxes, 2), o.cables, x, y) + 24;
  }

  // Hosts of each shape, the most frequent first.
  struct shape {
    std::uint64_t of;
    std::size_t first, count;
  };
  std::vector<shape> shapes;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const auto known = seq::find_by(shapes, units.units[h].shape, &shape::of);
    if (known != shapes.end())
      ++known->count;
    else
      shapes.push_back({units.units[h].shape, h, 1});
  }
  std::erase_if(shapes, [&](const shape& s) {  // nothing inside that is worth a picture
    return seq::none_of(hosts[s.first].nodes,
                        [&](node_id v) { return g.at(v).kind == node_kind::gpu || g.at(v).kind == node_kind::cpu; });
  });
  seq::sort(shapes, [](const shape& a, const shape& b) { return a.count > b.count; });
  std::vector<std::uint32_t> scratch(g.node_count(), 0);
  for (std::size_t i = 0; i < shapes.size() && i < o.shapes; ++i) {
    const shape& s = shapes[i];
    std::string name = hosts[s.first].name;
    if (s.count > 1) name += ", and " + detail::counted(s.count - 1, "host") + " like it";
    detail::svg_host<> host(g, c, scratch);
    y += host.draw(hosts[s.first], name, x, y) + 18;
  }
  if (shapes.size() > o.shapes) {
    c.text(x, y, 11, detail::anchor::start,
           "hosts of " + detail::counted(shapes.size() - o.shapes, "further shape") + " are not drawn",
           detail::faint_ink);
    y += 20;
  }

  const double width = std::max(c.width() - x, 640.0);
  std::size_t told = 0;
  std::size_t left = 0;
  for (const severity level : {severity::fault, severity::warning})
    for (const finding& f : g.findings()) {
      if (f.level != level) continue;
      if (told == o.findings) {
        ++left;
        continue;
      }
      ++told;
      y += 15;
      std::string text = f.what + (f.evidence.empty() ? "" : " (" + f.evidence + ")");
      if (!f.where.empty() && text.find(f.where) == std::string::npos && g.source().find(f.where) == std::string::npos)
        text = f.where + ": " + text;
      c.text(x, y, 11, detail::anchor::start, detail::fitted(std::string(to_string(level)) + ": " + text, width, 11),
             level == severity::fault ? detail::bad_ink : detail::ink);
    }
  if (left > 0) {
    y += 15;
    c.text(x, y, 11, detail::anchor::start, "and " + detail::counted(left, "further finding"), detail::faint_ink);
  }
  y += told > 0 ? 24 : 8;
  detail::draw_legend(c, x, y, width);
  c.reach(0, y + 8);
  return c.picture(title);
}

}}}  // namespace topocoll::v0::topo
