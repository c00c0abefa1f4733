// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a test asks of a picture: that it is XML, that texts lie on the page, and that no two of them meet.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <pugixml.hpp>

namespace svg_reading {

struct written {
  std::string what;
  double left = 0, right = 0, top = 0, bottom = 0;
};

/// All texts with the space that they take; empty when the picture is not XML.
inline std::vector<written> texts_of(const pugi::xml_document& picture) {
  std::vector<written> all;
  for (const pugi::xml_node t : picture.child("svg").children("text")) {
    written w;
    w.what = t.child_value();
    const double x = t.attribute("x").as_double(), y = t.attribute("y").as_double(),
                 size = t.attribute("font-size").as_double();
    const std::string hold = t.attribute("text-anchor").as_string("start");
    // `text_width` is what the widest of the usual fonts needs.
    const double width = topocoll::topo::detail::text_width(w.what, size, t.attribute("font-weight")) * 0.97;
    w.left = hold == "start" ? x : hold == "middle" ? x - width / 2 : x - width;
    w.right = w.left + width;
    w.top = y - 0.72 * size;
    w.bottom = y + 0.2 * size;
    all.push_back(std::move(w));
  }
  return all;
}

/// Two texts that share some place, as a sentence; empty when there are none.
inline std::string overlap(const std::vector<written>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (std::min(texts[i].right, texts[k].right) > std::max(texts[i].left, texts[k].left) &&
          std::min(texts[i].bottom, texts[k].bottom) > std::max(texts[i].top, texts[k].top))
        return "'" + texts[k].what + "' meets '" + texts[i].what + "'";
  return {};
}

/// A text that is not on the page; empty when all are.
inline std::string outside(const pugi::xml_document& picture, const std::vector<written>& texts) {
  const double w = picture.child("svg").attribute("width").as_double(),
               h = picture.child("svg").attribute("height").as_double();
  for (const written& t : texts)
    if (t.left < 0 || t.top < 0 || t.right > w || t.bottom > h) return "'" + t.what + "' leaves the page";
  return {};
}

}  // namespace svg_reading
