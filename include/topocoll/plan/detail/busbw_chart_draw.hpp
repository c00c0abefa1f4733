// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a chart of busbw is filled and drawn.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/busbw_chart.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/picture.hpp>
#include <topocoll/plan/library_model.hpp>
#include <topocoll/plan/nccl_model.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Logarithm to base 2, by squaring, to a millionth: <cmath> costs 8,000 lines. Precondition: value >= 1.
[[nodiscard]] constexpr double log2_of(double value) {
  double whole = 0;
  for (; value >= 2; value /= 2) whole += 1;
  double part = 0, bit = 0.5;
  for (int k = 0; k < 20; ++k, bit /= 2) {
    value *= value;
    if (value >= 2) {
      value /= 2;
      part += bit;
    }
  }
  return whole + part;
}

/// Sizes in even steps of the logarithm, eight for each doubling, both ends included.
template <class = void>
[[nodiscard]] std::vector<bytes> chart_sizes(bytes first, bytes last) {
  constexpr double step = 1.0905077326652577;  // 2 ^ (1/8)
  std::vector<bytes> sizes;
  double at = static_cast<double>(first.value);
  for (; at < static_cast<double>(last.value); at *= step) {
    const bytes size{static_cast<std::uint64_t>(at + 0.5)};
    if (sizes.empty() || sizes.back() < size) sizes.push_back(size);
  }
  if (sizes.empty() || sizes.back() < last) sizes.push_back(last);
  return sizes;
}

/// Least of 1, 2, 2.5, 5 times a power of ten that is at least `value`. Precondition: value > 0.
[[nodiscard]] constexpr double round_step(double value) {
  double power = 1;
  while (power * 10 <= value) power *= 10;
  while (power > value) power /= 10;
  for (const double f : {1.0, 2.0, 2.5, 5.0})
    if (f * power >= value) return f * power;
  return 10 * power;
}

/// "64 KiB" as "64K": axes have little room.
template <class = void>
[[nodiscard]] std::string short_size(bytes size) {
  constexpr const char* names[] = {"", "K", "M", "G", "T", "P", "E"};
  std::uint64_t value = size.value;
  std::size_t unit = 0;
  while (unit < 6 && value >= 1024) {
    value /= 1024;
    ++unit;
  }
  return std::to_string(value) + names[unit];
}

/// Heights of labels that want to be at `wished` (descending order of position on the page is kept), at least `room` apart
/// and within [top, bottom].
template <class = void>
[[nodiscard]] std::vector<double> spread_labels(const std::vector<double>& wished, double room, double top,
                                                double bottom) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t k = 0; k < wished.size(); ++k) order.push_back(k);
  seq::sort_by(order, [&](std::uint32_t k) { return wished[k]; });
  std::vector<double> at(wished.size());
  double free = top;
  for (const std::uint32_t k : order) {
    at[k] = std::max(wished[k], free);
    free = at[k] + room;
  }
  double least = bottom;
  for (std::size_t i = order.size(); i-- > 0;) {
    at[order[i]] = std::min(at[order[i]], least);
    least = at[order[i]] - room;
  }
  return at;
}

template <class = void>
class chart_drawing {
 public:
  explicit chart_drawing(const busbw_chart& chart) : chart_(chart) {
    first_ = log2_of(static_cast<double>(chart.sizes.front().value));
    last_ = log2_of(static_cast<double>(chart.sizes.back().value));
    double most = 0;
    for (const chart_line& l : chart.lines)
      for (std::size_t k = 0; k < l.busbw.size(); ++k) most = std::max(most, l.busbw[k].value);
    step_ = round_step(most / 1e9 / 6);
    while (top_ < most / 1e9 * 1.02) top_ += step_;
    for (const chart_line& l : chart.lines)
      label_room_ =
          std::max(label_room_, topo::detail::text_width(topo::detail::fitted(l.name, 250, 11, true), 11, true));
  }

  [[nodiscard]] std::string draw() && {
    c_.text(16, 28, 16, hold::start, topo::detail::fitted(chart_.title, right + 200, 16, true), tone::ink, true);
    c_.text(16, 46, 11, hold::start, topo::detail::fitted(chart_.subtitle, right + 200, 11), tone::faint);
    axes();
    changes();
    std::size_t plans = 0;
    for (const chart_line& l : chart_.lines) {
      styles_.push_back(l.what == chart_line::role::plan    ? style_of(plans++)
                        : l.what == chart_line::role::model ? line_style{"#8A8A8A", l.spread > 0 ? "7 3" : "2 3"}
                                                            : line_style{"", ""});
      if (l.spread > 0) band(l);
    }
    strip();
    for (std::size_t k = chart_.lines.size(); k-- > 0;) curve(k);
    labels();
    c_.reach(right + 56 + label_room_, bottom + 46);
    return c_.finished(chart_.title, summary());
  }

 private:
  static constexpr double left = 70, right = 760, top = 92, bottom = 440, label_height = 30;

  [[nodiscard]] double x_of(bytes size) const {
    return left + (right - left) * (log2_of(static_cast<double>(size.value)) - first_) / (last_ - first_);
  }
  [[nodiscard]] double y_of(bytes_per_second rate) const {
    return bottom - (bottom - top) * std::min(1.0, rate.value / 1e9 / top_);
  }

  void axes() {
    for (std::int64_t k = 0; step_ * static_cast<double>(k) <= top_ * 1.0001; ++k) {
      const double value = step_ * static_cast<double>(k), y = y_of({value * 1e9});
      c_.rule(left, y, right, y, tone::grid, 1);
      c_.text(left - 8, y + 4, 11, hold::end, k == 0 ? "0" : number(value), tone::faint);
    }
    c_.text(left - 8, top - 14, 11, hold::end, "GB/s", tone::faint);
    const double doublings = last_ - first_;
    const unsigned stride = doublings > 24 ? 4 : doublings > 12 ? 2 : 1;
    std::uint64_t tick = 1;
    while (tick < chart_.sizes.front().value) tick *= 2;
    for (; tick <= chart_.sizes.back().value; tick <<= stride) {
      const double x = x_of({tick});
      c_.rule(x, bottom, x, bottom + 5, tone::faint, 1);
      c_.text(x, bottom + 19, 11, hold::middle, short_size({tick}), tone::faint);
      if (tick > (UINT64_MAX >> stride)) break;
    }
    c_.rule(left, bottom, right, bottom, tone::faint, 1.5);
    c_.text((left + right) / 2, bottom + 40, 11, hold::middle, "bytes of the whole array (K, M, G: powers of 1024)",
            tone::faint);
  }
  [[nodiscard]] static std::string number(double value) {
    std::string text = topocoll::detail::three_digits(value);
    if (const auto dot = text.find('.'); dot != std::string::npos) {
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
    }
    return text;
  }
  /// Where one plan takes over from another. Texts that would meet are left out: the summary has them.
  void changes() {
    double free = left - 100;
    for (std::size_t k = 1; k < chart_.winners.size(); ++k) {
      const double x = x_of(chart_.winners[k].first);
      c_.rule(x, top - 13, x, bottom, tone::faint, 1, "2 3");
      const std::string text = about(chart_.winners[k].first);
      const double w = topo::detail::text_width(text, 10);
      if (x - w / 2 < free) continue;
      c_.text(x, top - 17, 10, hold::middle, text, tone::faint);
      free = x + w / 2 + 6;
    }
  }
  /// Who wins, as a bar above the lines: at small sizes these lie on the axis.
  void strip() {
    for (const size_range& r : chart_.winners)
      for (std::size_t k = 0; k < chart_.lines.size(); ++k)
        if (chart_.lines[k].what == chart_line::role::plan && chart_.lines[k].name == r.name)
          c_.box(x_of(r.first), top - 11, std::max(1.0, x_of(r.last) - x_of(r.first)), 7, styles_[k].colour, "none", 0,
                 r.name + ", cheapest from " + to_string(r.first) + " to " + to_string(r.last));
  }
  void band(const chart_line& l) {
    std::string there, back;
    for (std::size_t k = 0; k < l.busbw.size(); ++k) {
      there += c_.point(x_of(chart_.sizes[k]), y_of(l.busbw[k] * (1 + l.spread)));
      const std::size_t b = l.busbw.size() - 1 - k;
      back += c_.point(x_of(chart_.sizes[b]), y_of(l.busbw[b] / (1 + l.spread)));
    }
    c_.area(there + back, "#8A8A8A", 0.2, l.name + ": half of healthy runs are predicted in this band");
  }
  void curve(std::size_t k) {
    const chart_line& l = chart_.lines[k];
    std::string all;
    for (std::size_t i = 0; i < l.busbw.size(); ++i) all += c_.point(x_of(chart_.sizes[i]), y_of(l.busbw[i]));
    if (l.what == chart_line::role::bound) {
      c_.ink_polyline(all, 1.5, "", l.name);
      return;
    }
    const bool plan = l.what == chart_line::role::plan;
    c_.polyline(all, styles_[k].colour, plan ? 1.6 : 1.8, styles_[k].dashes, l.name);
    if (!plan) return;
    for (const size_range& r : chart_.winners) {
      if (r.name != l.name) continue;
      std::string part;
      for (std::size_t i = 0; i < l.busbw.size(); ++i)
        if (chart_.sizes[i] >= r.first && chart_.sizes[i] <= r.last)
          part += c_.point(x_of(chart_.sizes[i]), y_of(l.busbw[i]));
      c_.polyline(part, styles_[k].colour, 4.5, "",
                  l.name + ", cheapest from " + to_string(r.first) + " to " + to_string(r.last));
    }
  }
  /// Names and last values at the right, in the order in which the lines end.
  void labels() {
    std::vector<double> wished;
    for (const chart_line& l : chart_.lines) wished.push_back(y_of(l.busbw.back()));
    const std::vector<double> at = spread_labels(wished, label_height, top + 4, bottom - 12);
    for (std::size_t k = 0; k < chart_.lines.size(); ++k) {
      const chart_line& l = chart_.lines[k];
      const double x = right + 12;
      c_.rule(right + 2, wished[k], x + 6, at[k], tone::grid, 1);
      if (l.what == chart_line::role::bound)
        c_.ink_polyline(c_.point(x + 8, at[k]) + c_.point(x + 36, at[k]), 1.5, "", l.name);
      else
        c_.line(x + 8, at[k], x + 36, at[k], styles_[k].colour, l.what == chart_line::role::plan ? 4.5 : 1.8,
                l.what == chart_line::role::plan ? "" : styles_[k].dashes);
      c_.text(x + 42, at[k] + 1, 11, hold::start, topo::detail::fitted(l.name, 250, 11, true), tone::ink, true);
      c_.text(x + 42, at[k] + 13, 10, hold::start, to_string(l.busbw.back()) + " at " + to_string(chart_.sizes.back()),
              tone::faint);
    }
  }
  [[nodiscard]] std::string summary() const {
    std::string text = chart_.subtitle + ".";
    for (const size_range& r : chart_.winners)
      text += " From " + to_string(r.first) + " to " + to_string(r.last) + ": " + r.name + ", " +
              to_string(r.first_time) + " to " + to_string(r.last_time) + ".";
    for (const chart_line& l : chart_.lines)
      text += " " + l.name + ": " + to_string(l.busbw.back()) + " at " + to_string(chart_.sizes.back()) + ".";
    return text;
  }

  const busbw_chart& chart_;
  picture<> c_;
  std::vector<line_style> styles_;
  double first_ = 0, last_ = 1, step_ = 1, top_ = 0, label_room_ = 130;
};

}  // namespace detail

template <class>
result<busbw_chart> busbw_chart_of(const problem& p, const explanation& e, const model_constants& constants) {
  if (e.ranks < 2) return fail(errc::invalid_argument, "one rank moves nothing, so that there is no busbw to draw");
  if (e.curves.empty() || e.sizes.empty() || e.sizes.front().first >= e.sizes.back().last)
    return fail(errc::invalid_argument, "a chart needs the winners of a range of sizes",
                "name two sizes, the smaller first: 1K:1G");
  busbw_chart c;
  c.title = "busbw of " + std::string(to_string(e.collective)) + " among " + std::to_string(e.ranks) + " ranks";
  c.subtitle = "predicted, not measured" + (e.machine.empty() ? std::string() : "; " + e.machine);
  c.sizes = detail::chart_sizes(e.sizes.front().first, e.sizes.back().last);
  c.winners = e.sizes;
  const double factor = busbw_factor(e.collective, e.ranks);
  const auto add = [&](chart_line::role what, std::string name, double spread, const auto& time_of) {
    chart_line l{what, std::move(name), {}, spread};
    for (const bytes size : c.sizes) {
      const std::optional<seconds> t = time_of(size);
      if (!t || !(t->value > 0)) return;
      l.busbw.push_back(size / *t * factor);
    }
    c.lines.push_back(std::move(l));
  };
  using role = chart_line::role;
  add(role::bound, "bound", 0, [&](bytes size) { return std::optional<seconds>{e.limit.at(size)}; });
  for (const plan_curve& curve : e.curves)
    add(role::plan, curve.name, 0, [&](bytes size) { return std::optional<seconds>{curve.at(size)}; });
  if (e.libraries.empty() || p.graph == nullptr) return c;
  const auto machine = machine_summary_of(*p.graph, p.ranks);
  if (!machine) return c;
  double spread = 0;  // one band: that of the largest size
  if (const auto t = predict(*machine, e.collective, c.sizes.back(), {}, constants)) spread = t->spread;
  add(role::model, "library model", spread, [&](bytes size) {
    const auto t = predict(*machine, e.collective, size, {}, constants);
    return t ? std::optional<seconds>{t->time} : std::nullopt;
  });
  const auto known = nccl_machine_of(*machine);
  if (known)
    add(role::model, "NCCL 2.28.9's own model", 0, [&](bytes size) {
      const auto t = nccl_predict(*known, e.collective, size);
      return t ? std::optional<seconds>{t->time} : std::nullopt;
    });
  return c;
}

template <class>
std::string to_svg(const busbw_chart& chart) {
  return detail::chart_drawing<>(chart).draw();
}

}}}  // namespace topocoll::v0::plan
