// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values in descriptions of fabrics: numbers, ratios and rates, as text that reads back unchanged.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class = void>
failure bad_value(std::string_view value, const char* wanted) {
  return fail(errc::malformed_input, "'" + std::string(value) + "' is not " + wanted);
}

template <class = void>
result<std::uint64_t> read_number(std::string_view text, std::uint64_t most = 0xffffffffU) {
  const auto n = exact_number<std::uint64_t>(text);
  if (!n || *n > most)
    return fail(errc::malformed_input,
                "'" + std::string(text) + "' is not a whole number from 0 to " + std::to_string(most));
  return *n;
}

template <class = void>
result<void> read_count(std::string_view text, std::uint32_t& into) {
  const auto n = read_number(text);
  if (!n) return n.error();
  into = static_cast<std::uint32_t>(*n);
  return {};
}

template <class = void>
result<void> read_count(std::string_view text, std::optional<std::uint32_t>& into) {
  std::uint32_t n = 0;
  if (auto ok = read_count(text, n); !ok) return ok.error();
  into = n;
  return {};
}

/// "2", "1.5", "3:2"; exact, at most nine digits on either side.
template <class = void>
result<rational> read_ratio(std::string_view text) {
  const auto part = [](std::string_view digits, std::int64_t& value, std::int64_t& scale) {
    std::size_t count = 0;
    bool point = false;
    for (const char c : digits) {
      if (c == '.' && !point) {
        point = true;
        continue;
      }
      if (c < '0' || c > '9' || ++count > 9) return false;
      value = value * 10 + (c - '0');
      if (point) scale *= 10;
    }
    return count > 0;
  };
  std::int64_t a = 0, a_scale = 1, b = 0, b_scale = 1;
  const std::size_t colon = text.find(':');
  const bool good = part(text.substr(0, colon), a, a_scale) &&
                    (colon == std::string_view::npos || part(text.substr(colon + 1), b, b_scale));
  const rational ratio =
      colon == std::string_view::npos ? rational{a, a_scale} : rational{a, a_scale} / rational{b, b_scale};
  if (!good || !ratio.valid()) return bad_value(text, "a ratio such as 2, 1.5 or 3:2");
  return ratio;
}

/// The shortest text that `read_ratio` takes back unchanged: "2", "1.5", "4:3".
template <class = void>
std::string ratio_text(rational r) {
  std::int64_t scale = 1;
  for (std::size_t places = 0; places < 6; ++places, scale *= 10) {
    if (scale % r.denominator() != 0) continue;
    const std::int64_t digits = r.numerator() * (scale / r.denominator());
    if (places == 0) return std::to_string(digits);
    std::string rest = std::to_string(digits % scale);
    return std::to_string(digits / scale) + '.' + std::string(places - rest.size(), '0') + rest;
  }
  return std::to_string(r.numerator()) + ':' + std::to_string(r.denominator());
}

/// Text that `parse_rate` takes back unchanged: in `unit` of `size` bytes per second when that is exact, else in B/s.
template <class = void>
std::string rate_spec(bytes_per_second rate, const char* unit, double size) {
  char room[400];
  const auto written = [&](double value, const char* name) {
    const auto end = std::to_chars(room, room + sizeof room, value, std::chars_format::fixed);
    return std::string(room, end.ptr) + name;
  };
  std::string text = written(rate.value / size, unit);
  const auto back = parse_rate(text);
  return back && *back == rate ? text : written(rate.value, "B/s");
}

template <class = void>
result<void> read_rate(std::string_view text, bytes_per_second& into) {
  const auto rate = parse_rate(text);
  if (!rate) return rate.error();
  into = *rate;
  return {};
}

}}}  // namespace topocoll::v0::detail
