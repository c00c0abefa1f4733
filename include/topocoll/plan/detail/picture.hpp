// SPDX-License-Identifier: Apache-2.0
#pragma once
// A drawing in SVG that is legible on white and on black, and says in words what it shows.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/topo/detail/svg_canvas.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// What follows the reader's colour scheme; everything else keeps its colour in both.
enum class tone : std::uint8_t { ink, faint, grid };
[[nodiscard]] constexpr const char* tone_class(tone t) {
  constexpr const char* names[] = {"t", "f", "g"};
  return names[static_cast<std::size_t>(t)];
}
[[nodiscard]] constexpr const char* light_colour(tone t) {
  constexpr const char* colours[] = {"#222222", "#5A5A5A", "#D4D4D4"};
  return colours[static_cast<std::size_t>(t)];
}

/// Colours that the colour-blind tell apart (Okabe and Ito, "Color Universal Design", 2008), those first that differ most;
/// each is legible on white and on black (contrast of 2 at least, for lines of two points and more).
struct line_style {
  const char* colour;
  const char* dashes;
};
inline constexpr std::size_t line_style_count = 6;
[[nodiscard]] constexpr line_style style_of(std::size_t k) {
  constexpr line_style styles[line_style_count] = {{"#1F83C4", ""},         {"#D55E00", "9 3"}, {"#009E73", "3 3"},
                                                   {"#CC79A7", "12 3 3 3"}, {"#E69F00", "6 2"}, {"#56B4E9", "2 2"}};
  return styles[k % line_style_count];
}

/// Where a text is fixed.
enum class hold : std::uint8_t { start, middle, end };

/// A drawing that grows as things are drawn on it.
template <class = void>
class picture {
 public:
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  void reach(double x, double y) {
    width_ = x > width_ ? x : width_;
    height_ = y > height_ ? y : height_;
  }
  /// Boxes keep their fill, so texts in them keep their ink.
  void box(double x, double y, double w, double h, const char* fill, const char* stroke, double corner,
           std::string_view title = {}, double stroke_width = 1) {
    reach(x + w, y + h);
    body_ += "<rect" + pair("x", x) + pair("y", y) + pair("width", w) + pair("height", h) + pair("rx", corner) +
             pair("fill", fill) + pair("stroke", stroke) + pair("stroke-width", stroke_width);
    finish("rect", title);
  }
  void disc(double x, double y, double radius, const char* fill, const char* stroke, std::string_view title = {}) {
    reach(x + radius, y + radius);
    body_ +=
        "<circle" + pair("cx", x) + pair("cy", y) + pair("r", radius) + pair("fill", fill) + pair("stroke", stroke);
    finish("circle", title);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width, const char* dashes = "",
            std::string_view title = {}, double opacity = 1) {
    reach(x1 > x2 ? x1 : x2, y1 > y2 ? y1 : y2);
    body_ += "<line" + pair("x1", x1) + pair("y1", y1) + pair("x2", x2) + pair("y2", y2);
    stroke(colour, width, dashes, opacity);
    finish("line", title);
  }
  /// A line of the page: axes, grids.
  void rule(double x1, double y1, double x2, double y2, tone t, double width, const char* dashes = "") {
    reach(x1 > x2 ? x1 : x2, y1 > y2 ? y1 : y2);
    body_ += "<line" + pair("x1", x1) + pair("y1", y1) + pair("x2", x2) + pair("y2", y2) +
             pair("class", tone_class(t)) + pair("stroke", light_colour(t)) + pair("stroke-width", width);
    if (*dashes != 0) body_ += pair("stroke-dasharray", dashes);
    body_ += "/>\n";
  }
  /// A curve below (above, for a negative depth) the points (x1, y) and (x2, y).
  void arc(double x1, double x2, double y, double depth, const char* colour, double width, const char* dashes = "",
           std::string_view title = {}, double opacity = 1) {
    reach(x1 > x2 ? x1 : x2, depth > 0 ? y + depth : y);
    const double low = y + depth * 4 / 3;
    body_ += "<path d=\"M" + number(x1) + ' ' + number(y) + " C" + number(x1) + ' ' + number(low) + ' ' + number(x2) +
             ' ' + number(low) + ' ' + number(x2) + ' ' + number(y) + '"' + pair("fill", "none");
    stroke(colour, width, dashes, opacity);
    finish("path", title);
  }
  /// A line through points, written "x y x y …"; made by `point`. With `tone`, in its colour.
  void polyline(const std::string& points, const char* colour, double width, const char* dashes,
                std::string_view title = {}, double opacity = 1) {
    body_ += "<polyline points=\"" + points + '"' + pair("fill", "none") + pair("stroke-linejoin", "round");
    stroke(colour, width, dashes, opacity);
    finish("polyline", title);
  }
  void ink_polyline(const std::string& points, double width, const char* dashes, std::string_view title) {
    body_ += "<polyline points=\"" + points + '"' + pair("fill", "none") + pair("class", "g2") +
             pair("stroke", "#222222") + pair("stroke-width", width);
    if (*dashes != 0) body_ += pair("stroke-dasharray", dashes);
    finish("polyline", title);
  }
  void area(const std::string& points, const char* fill, double opacity, std::string_view title = {}) {
    body_ +=
        "<polygon points=\"" + points + '"' + pair("fill", fill) + pair("stroke", "none") + pair("opacity", opacity);
    finish("polygon", title);
  }
  [[nodiscard]] static std::string point(double x, double y) { return number(x) + ' ' + number(y) + ' '; }

  /// Text on the page. @param y  of the base line
  void text(double x, double y, double size, hold where, std::string_view what, tone t = tone::ink, bool bold = false) {
    write(x, y, size, where, what, pair("class", tone_class(t)) + pair("fill", light_colour(t)), bold);
  }
  /// Text in a box, whose fill does not change.
  void boxed_text(double x, double y, double size, hold where, std::string_view what, bool bold = false,
                  const char* colour = "#222222") {
    write(x, y, size, where, what, pair("fill", colour), bold);
  }
  /// The whole text. `summary` is what a reader who cannot see the picture is told.
  [[nodiscard]] std::string finished(std::string_view title, std::string_view summary) const {
    constexpr double margin = 16;
    const std::string w = number(width_ + margin), h = number(height_ + margin);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"" + w + "\" height=\"" + h +
           "\" viewBox=\"0 0 " + w + ' ' + h +
           "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<title>" +
           topo::detail::xml_escaped(title) + "</title>\n<desc>" + topo::detail::xml_escaped(summary) +
           "</desc>\n<style>@media (prefers-color-scheme: dark) { .p { fill: #16191D } .t { fill: #ECECEC } "
           ".f { fill: #B4B4B4 } .g { stroke: #454B52 } .g2 { stroke: #ECECEC } }</style>\n<rect class=\"p\" width=\"" +
           w + "\" height=\"" + h + "\" fill=\"#FFFFFF\"/>\n" + body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] static std::string number(double value) {
    const bool below = value < 0;
    const auto tenths = static_cast<std::int64_t>((below ? -value : value) * 10 + 0.5);
    std::string text = (below && tenths > 0 ? "-" : "") + std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += '.' + std::to_string(tenths % 10);
    return text;
  }
  [[nodiscard]] static std::string pair(const char* name, double value) { return pair(name, number(value).c_str()); }
  [[nodiscard]] static std::string pair(const char* name, const char* value) {
    return ' ' + std::string(name) + "=\"" + value + '"';
  }
  void stroke(const char* colour, double width, const char* dashes, double opacity) {
    body_ += pair("stroke", colour) + pair("stroke-width", width);
    if (*dashes != 0) body_ += pair("stroke-dasharray", dashes);
    if (opacity < 1) body_ += pair("opacity", opacity);
  }
  void write(double x, double y, double size, hold where, std::string_view what, const std::string& colour, bool bold) {
    if (what.empty()) return;
    const double w = topo::detail::text_width(what, size, bold);
    reach(where == hold::start ? x + w : where == hold::middle ? x + w / 2 : x, y + size * 0.3);
    body_ += "<text" + pair("x", x) + pair("y", y) + pair("font-size", size) + colour;
    if (where != hold::start) body_ += pair("text-anchor", where == hold::middle ? "middle" : "end");
    if (bold) body_ += pair("font-weight", "bold");
    body_ += '>' + topo::detail::xml_escaped(what) + "</text>\n";
  }
  void finish(const char* tag, std::string_view title) {
    if (title.empty())
      body_ += "/>\n";
    else
      body_ += "><title>" + topo::detail::xml_escaped(title) + "</title></" + tag + ">\n";
  }

  std::string body_;
  double width_ = 0, height_ = 0;
};

}}}}  // namespace topocoll::v0::plan::detail
