// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boxes, lines and texts of a drawing in SVG, with text widths known well enough to lay out by.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// Width of a text in a sans-serif font, in units of its size; at least what DejaVu Sans, the widest of the usual, needs.
/// Other bytes of a UTF-8 character than its first count nothing.
[[nodiscard]] constexpr double text_width(std::string_view text, double size, bool bold = false) {
  double ems = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;
    if (c == 'i' || c == 'j' || c == 'l' || c == 'I' || c == '.' || c == ',' || c == ':' || c == ';' || c == '|' ||
        c == '\'' || c == ' ')
      ems += 0.34;
    else if (c == 'f' || c == 't' || c == 'r' || c == '(' || c == ')' || c == '/' || c == '-')
      ems += 0.42;
    else if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%' || c == '@')
      ems += 0.98;
    else if (c >= 'A' && c <= 'Z')
      ems += 0.75;
    else if (byte >= 0xc0 || c == '+' || c == '=' || c == '<' || c == '>' || c == '_' || c == '#')
      ems += 0.84;
    else
      ems += 0.64;
  }
  return ems * size * (bold ? 1.12 : 1);
}

/// The text, or its beginning and "…" when it is wider than `room`.
template <class = void>
[[nodiscard]] std::string fitted(std::string_view text, double room, double size, bool bold = false) {
  if (text_width(text, size, bold) <= room) return std::string(text);
  std::size_t end = text.size();
  while (end > 0 && text_width(text.substr(0, end), size, bold) + size > room) {
    --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  }
  return std::string(text.substr(0, end)) + "…";
}

/// A name, or both its ends around "…" when it is wider than `room`: names of a cluster differ at either end.
template <class = void>
[[nodiscard]] std::string shortened(std::string_view name, double room, double size, bool bold = false) {
  if (text_width(name, size, bold) <= room) return std::string(name);
  const auto within = [&](std::size_t i) {
    return i < name.size() && (static_cast<unsigned char>(name[i]) & 0xc0U) == 0x80;
  };
  std::size_t head = 0;
  std::size_t tail = name.size();
  for (bool front = true; head < tail; front = !front) {
    std::size_t h = head;
    std::size_t t = tail;
    if (front) do
        ++h;
      while (within(h));
    else
      do --t;
      while (within(t));
    const double w = text_width(name.substr(0, h), size, bold) + text_width(name.substr(t), size, bold);
    if (h > t || w + size * (bold ? 1.12 : 1) > room) break;
    head = h;
    tail = t;
  }
  return std::string(name.substr(0, head)) + "…" + std::string(name.substr(tail));
}

/// A text as XML content or attribute. Control characters, which XML has not, become blanks; bytes that are no UTF-8 '?'.
template <class = void>
[[nodiscard]] std::string xml_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x80) {
      const std::size_t length = byte >= 0xf0 && byte < 0xf5   ? 4
                                 : byte >= 0xe0 && byte < 0xf0 ? 3
                                 : byte >= 0xc2 && byte < 0xe0 ? 2
                                                               : 0;
      bool good = length > 0 && i + length <= text.size();
      for (std::size_t k = 1; good && k < length; ++k) good = (static_cast<unsigned char>(text[i + k]) & 0xc0U) == 0x80;
      // Three bytes may spell a surrogate, an overlong form or a non-character; XML has none of them.
      const auto second = good ? static_cast<unsigned char>(text[i + 1]) : 0U;
      if ((byte == 0xe0 && second < 0xa0) || (byte == 0xed && second >= 0xa0) || (byte == 0xf0 && second < 0x90) ||
          (byte == 0xf4 && second >= 0x90) || (byte == 0xef && second == 0xbf))
        good = false;
      if (!good) {
        out += '?';
        continue;
      }
      out.append(text.substr(i, length));
      i += length - 1;
      continue;
    }
    switch (text[i]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += '\n'; break;
      default: out += byte < 0x20 || byte == 0x7f ? ' ' : text[i];
    }
  }
  return out;
}

/// How a line looks, from best to worst. The palette is that of Okabe and Ito, "Color Universal Design", 2008.
enum class line_state : std::uint8_t { fastest, slower, assumed, below_best, dead };
[[nodiscard]] constexpr const char* colour_of(line_state s) {
  constexpr const char* colours[] = {"#0072B2", "#56B4E9", "#7F7F7F", "#D55E00", "#D55E00"};
  return colours[static_cast<std::size_t>(s)];
}
[[nodiscard]] constexpr const char* dashes_of(line_state s) {
  constexpr const char* dashes[] = {"", "", "5 3", "", "1.5 3.5"};
  return dashes[static_cast<std::size_t>(s)];
}
inline constexpr const char* ink = "#222222";
inline constexpr const char* faint_ink = "#5A5A5A";
inline constexpr const char* bad_ink = "#A84600";  // vermilion, dark enough to read

/// Whether a link runs below what the model uses, as that of an idle GPU does.
[[nodiscard]] constexpr bool is_idle(const link& l) {
  return l.how == trust::assumed && l.current && l.nominal && *l.current < *l.nominal &&
         l.capacity.value > 1.01 * l.current->value;
}

/// State of a link beside others of its kind, the fastest of which has the rate `best`.
[[nodiscard]] constexpr line_state state_of(const link& l, bytes_per_second best) {
  constexpr double almost = 0.99;
  if (l.capacity.value <= 0) return line_state::dead;
  const double nominal = l.nominal.value_or(l.current.value_or(l.capacity)).value;
  if (l.current && l.current->value < almost * nominal && !is_idle(l)) return line_state::below_best;
  if (l.nominal && !l.current && l.how != trust::assumed && l.capacity.value < 0.5 * nominal)
    return line_state::below_best;
  if (l.how == trust::assumed) return line_state::assumed;
  return nominal < almost * best.value ? line_state::slower : line_state::fastest;
}
/// What the colours compare: the best rate of a link, or what is taken for it.
[[nodiscard]] constexpr bytes_per_second class_rate(const link& l) {
  return l.nominal.value_or(l.current.value_or(l.capacity));
}

/// 1 to 8 points, by the logarithm: 1 GB/s 1.2, 25 GB/s 3.7, 63 GB/s 5.0, 450 GB/s 8.
[[nodiscard]] constexpr double line_width(bytes_per_second rate) {
  // Without std::log2: <cmath> is a third of what this header costs. Between powers of two a straight line will do.
  double size = 1 + (rate.value > 0 ? rate.value / 7e9 : 0);
  double logarithm = 0;
  for (; size >= 2 && logarithm < 8; size /= 2) logarithm += 1;
  const double width = 1 + 1.2 * (logarithm + (size - 1));
  return width > 8 ? 8 : width;
}

/// What models use decides; a dead link is as wide as it would be.
[[nodiscard]] inline double width_of(const link& l) {
  return line_width(l.capacity.value > 0 ? l.capacity : class_rate(l));
}

/// Figures, trust and reason of a link for its <title>.
template <class = void>
[[nodiscard]] std::string figures_of(const link& l) {
  const bool network =
      l.kind == link_kind::infiniband || l.kind == link_kind::ethernet || l.kind == link_kind::internal;
  const auto rate = [&](bytes_per_second r) {
    return network ? bits_text(r) + " (" + to_string(r) + ")" : to_string(r);
  };
  std::string text = make_of(l);
  if (l.nominal) text += "\nbest: " + rate(*l.nominal);
  if (l.current) text += "\nnow: " + rate(*l.current);
  text += l.capacity.value > 0 ? "\nmodels use: " + rate(l.capacity) : "\ncarries nothing";
  text += std::string("\n") + to_string(l.how);
  if (!l.reason.empty()) text += ": " + l.reason;
  return text;
}
template <class = void>
[[nodiscard]] std::string facts_of(const node& n) {
  std::string text = label_of(n) + "\n" + n.key;
  if (n.numa) text += "\nNUMA domain " + std::to_string(*n.numa);
  if (n.global_rank) text += "\nrank " + std::to_string(*n.global_rank);
  for (const auto& [name, value] : n.facts)
    for (const std::string_view told :
         {"model", "model_name", "arch", "sm", "gcn", "state", "physical_state", "firmware"})
      if (name == told && !value.empty()) text += "\n" + name + ": " + value;
  text += std::string("\n") + to_string(n.how);
  if (!n.reason.empty()) text += ": " + n.reason;
  return text;
}

enum class anchor : std::uint8_t { start, middle, end };

/// A drawing that grows as things are drawn on it.
template <class = void>
class svg_canvas {
 public:
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  [[nodiscard]] std::size_t size() const { return body_.size(); }
  void reach(double x, double y) {
    width_ = x > width_ ? x : width_;
    height_ = y > height_ ? y : height_;
  }

  void box(double x, double y, double w, double h, const char* fill, const char* stroke, double corner,
           std::string_view title = {}, const char* dashes = "", double stroke_width = 1) {
    reach(x + w, y + h);
    body_ += "<rect";
    add("x", x), add("y", y), add("width", w), add("height", h);
    if (corner > 0) add("rx", corner);
    add("fill", fill), add("stroke", stroke);
    if (stroke_width != 1) add("stroke-width", stroke_width);
    if (*dashes != 0) add("stroke-dasharray", dashes);
    finish("rect", title);
  }
  void line(double x1, double y1, double x2, double y2, line_state state, double width, std::string_view title = {},
            double opacity = 1) {
    reach(x1 > x2 ? x1 : x2, y1 > y2 ? y1 : y2);
    body_ += "<line";
    add("x1", x1), add("y1", y1), add("x2", x2), add("y2", y2);
    stroke(state, width, opacity);
    finish("line", title);
  }
  /// A curve below the line from (x1, y) to (x2, y), `depth` at its lowest.
  void arc(double x1, double x2, double y, double depth, line_state state, double width, std::string_view title) {
    reach(x1 > x2 ? x1 : x2, y + depth);
    body_ += "<path d=\"M" + number(x1) + ' ' + number(y) + " C" + number(x1) + ' ' + number(y + depth * 4 / 3) + ' ' +
             number(x2) + ' ' + number(y + depth * 4 / 3) + ' ' + number(x2) + ' ' + number(y) + '"';
    add("fill", "none");
    stroke(state, width, 0.85);
    finish("path", title);
  }
  /// A plain line that is no link: a bus inside a box.
  void rule(double x1, double y1, double x2, double y2, const char* colour, double width) {
    body_ += "<line";
    add("x1", x1), add("y1", y1), add("x2", x2), add("y2", y2), add("stroke", colour), add("stroke-width", width);
    body_ += "/>\n";
  }
  /// @param y  of the base line
  void text(double x, double y, double size, anchor where, std::string_view what, const char* colour = ink,
            bool bold = false) {
    if (what.empty()) return;
    const double w = text_width(what, size, bold);
    reach(where == anchor::start ? x + w : where == anchor::middle ? x + w / 2 : x, y + size * 0.3);
    body_ += "<text";
    add("x", x), add("y", y), add("font-size", size), add("fill", colour);
    if (where != anchor::start) add("text-anchor", where == anchor::middle ? "middle" : "end");
    if (bold) add("font-weight", "bold");
    body_ += '>' + xml_escaped(what) + "</text>\n";
  }
  /// The whole text: a white page with a margin around what was drawn.
  [[nodiscard]] std::string picture(std::string_view title) const {
    constexpr double margin = 16;
    const std::string w = number(width_ + margin);
    const std::string h = number(height_ + margin);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w +
           ' ' + h + "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<title>" + xml_escaped(title) +
           "</title>\n<rect width=\"" + w + "\" height=\"" + h + "\" fill=\"#FFFFFF\"/>\n" + body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] static std::string number(double value) {
    char room[64];
    const auto end = std::to_chars(room, room + sizeof room, value, std::chars_format::fixed, 1);
    std::string text(room, end.ptr);
    if (text.size() > 2 && text.substr(text.size() - 2) == ".0") text.resize(text.size() - 2);
    return text;
  }
  void add(const char* name, double value) {
    body_.append(1, ' ').append(name).append("=\"").append(number(value)).append(1, '"');
  }
  void add(const char* name, const char* value) {
    body_.append(1, ' ').append(name).append("=\"").append(value).append(1, '"');
  }
  void stroke(line_state state, double width, double opacity) {
    add("stroke", colour_of(state)), add("stroke-width", width);
    if (*dashes_of(state) != 0) add("stroke-dasharray", dashes_of(state));
    if (opacity < 1) add("opacity", opacity);
  }
  void finish(const char* tag, std::string_view title) {
    if (title.empty())
      body_ += "/>\n";
    else
      body_.append("><title>").append(xml_escaped(title)).append("</title></").append(tag).append(">\n");
  }

  std::string body_;
  double width_ = 0;
  double height_ = 0;
};

}}}}  // namespace topocoll::v0::topo::detail
