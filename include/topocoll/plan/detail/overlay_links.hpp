// SPDX-License-Identifier: Apache-2.0
#pragma once
// How busy the links of a picture are, and how that looks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/picture.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Look of a link by its share of the busiest link's time: light to dark, then warm.
struct load_style {
  const char* colour;
  const char* dashes;
  double width;
};
[[nodiscard]] constexpr load_style style_of_share(double share) {
  if (share <= 0) return {"#9A9A9A", "2 3", 1};
  const double width = 1.4 + 4.6 * share;
  if (share < 0.5) return {"#56B4E9", "", width};
  if (share < 0.9) return {"#1F83C4", "", width};
  if (share < 0.99) return {"#E69F00", "", width};
  return {"#D55E00", "", width};
}

/// Bytes and busy time of every link.
template <class = void>
struct link_loads {
  const topo::graph* graph = nullptr;
  std::vector<bytes> carried;
  std::vector<double> share;  ///< of the busiest link's time
  seconds busiest{};
  std::uint32_t limit = UINT32_MAX;  ///< the busiest link

  [[nodiscard]] std::string title(link_id e) const {
    const topo::link& l = graph->at(e);
    return name_of(*graph, l.from) + " to " + name_of(*graph, l.to) + "\n" +
           (carried[e.value].value == 0
                ? std::string("carries nothing")
                : about(carried[e.value]) + ", " + percent(share[e.value]) + " of the time of the busiest link") +
           "\nrate " + to_string(l.capacity);
  }
};

/// What the colours mean; gives the foot.
template <class = void>
double overlay_legend(picture<>& c, double x, double y) {
  struct entry {
    double share;
    const char* text;
  };
  constexpr entry entries[] = {{0, "carries nothing"},
                               {0.3, "below 50 %"},
                               {0.7, "50 to 90 %"},
                               {0.95, "90 to 99 %"},
                               {1, "full: 99 % of the busiest link's time or more"}};
  double at = x;
  for (const entry& e : entries) {
    const load_style s = style_of_share(e.share);
    c.line(at, y, at + 26, y, s.colour, s.width, s.dashes);
    c.text(at + 32, y + 4, 10, hold::start, e.text, tone::faint);
    at += 32 + topo::detail::text_width(e.text, 10) + 18;
  }
  return y + 10;
}

/// A figure on a line: text on a plate, so that nothing shines through.
template <class = void>
void overlay_badge(picture<>& c, double x, double y, const std::string& text) {
  const double w = topo::detail::text_width(text, 11, true) + 10;
  c.box(x - w / 2, y - 9, w, 17, "#FFF3E8", "#D55E00", 4, text + " on the busiest link");
  c.boxed_text(x, y + 4, 11, hold::middle, text, true, "#A84600");
}

}}}}  // namespace topocoll::v0::plan::detail
