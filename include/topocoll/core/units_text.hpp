// SPDX-License-Identifier: Apache-2.0
#pragma once
// Amounts, rates and times as text, both ways: "64 MiB", "400 Gb/s", "12.5 us".
#include <cfloat>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 {

/// "64 MiB", "1000 B", "1.21 GiB": binary units, KiB = 1024 B.
///
/// A number without decimals is exact (and below 100,000), one with decimals is rounded to three digits.
[[nodiscard]] std::string to_string(bytes amount);

/// "63.0 GB/s", "450 GB/s", "12.5 MB/s", "0 B/s": decimal units, GB/s = 1e9 bytes per second, three digits.
/// Never above GB/s, so that columns of rates compare at a glance. "inf GB/s" for what nothing limits.
[[nodiscard]] std::string to_string(bytes_per_second rate);

/// "8.00 us", "125 ms", "3.20 s", "0 s": three digits, ns to s.
[[nodiscard]] std::string to_string(seconds time);

/// Reads "8", "8B", "64KiB", "64K", "1.5 GiB", "10MB".
///
/// A bare number is bytes. K, M, G, T and KiB … TiB are binary, as NCCL's tests read them; kB (or KB), MB, GB, TB are
/// decimal. Case of the prefix does not matter, blanks between number and unit are fine.
/// @return `malformed_input` for anything else, for a negative number, for an amount that is not a whole number of bytes
///         and for one of 2^64 bytes or more. Exact: no floating point is involved.
[[nodiscard]] result<bytes> parse_bytes(std::string_view text);

/// Reads "400Gb/s", "400 Gbps", "400 Gbit/s", "50 GB/s", "50GBps", "0.5 TB/s", "12 GiB/s".
///
/// The unit is required, because a bare 400 means bits to network people and bytes to everyone else; b is bits, B is
/// bytes. @return `malformed_input` for anything else, and for a rate that is negative or not finite.
[[nodiscard]] result<bytes_per_second> parse_rate(std::string_view text);

/// Reads "30s", "1.5 ms", "200us", "10ns", "2 min". The unit is required. @return as `parse_rate`
[[nodiscard]] result<seconds> parse_seconds(std::string_view text);

namespace detail {

[[nodiscard]] constexpr double magnitude(double value) { return value < 0 ? -value : value; }
[[nodiscard]] constexpr bool is_finite(double value) {
  return magnitude(value) <= DBL_MAX;  // false for a NaN
}

/// A finite number with three significant digits, all digits before the point kept: 0.123, 1.23, 12.3, 123, 1234.
[[nodiscard]] inline std::string three_digits(double value) {
  const double size = magnitude(value);
  // Borders are where rounding would add a digit: 9.995 prints as 10.0.
  const int decimals = size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  char room[400];  // 309 digits before the point at most
  const auto end = std::to_chars(room, room + sizeof room, value, std::chars_format::fixed, decimals);
  return {room, end.ptr};
}

struct unit_step {
  const char* name;
  double size;
};

/// `value` in the largest of `steps` (descending) that leaves at least 1, as printed.
[[nodiscard]] inline std::string in_units(double value, const unit_step* steps, std::size_t count) {
  if (value != value) return std::string("nan ") + steps[0].name;
  if (!is_finite(value)) return std::string(value < 0 ? "-inf " : "inf ") + steps[0].name;
  if (value == 0) return std::string("0 ") + steps[count - 1].name;
  std::size_t at = 0;
  while (at + 1 < count && magnitude(value) < steps[at].size * 0.9995) ++at;
  return three_digits(value / steps[at].size) + ' ' + steps[at].name;
}

/// "1.5GiB" -> "1.5", "GiB"; outer and middle blanks dropped. The number is digits with at most one point.
struct number_and_unit {
  std::string_view number, unit;
  bool good = false;
};
[[nodiscard]] constexpr number_and_unit split_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t end = 0;
  std::size_t digits = 0;
  bool point = false;
  for (; end < text.size(); ++end) {
    if (text[end] >= '0' && text[end] <= '9')
      ++digits;
    else if (text[end] == '.' && !point)
      point = true;
    else
      break;
  }
  number_and_unit parts{text.substr(0, end), text.substr(end), digits > 0};
  while (!parts.unit.empty() && parts.unit.front() == ' ') parts.unit.remove_prefix(1);
  return parts;
}

/// 'K' -> 1 … 'T' -> 4, either case; 0 for anything else.
[[nodiscard]] constexpr unsigned prefix_power(char c) {
  switch (c) {
    case 'k':
    case 'K': return 1;
    case 'm':
    case 'M': return 2;
    case 'g':
    case 'G': return 3;
    case 't':
    case 'T': return 4;
    default: return 0;
  }
}

[[nodiscard]] constexpr double power(double base, unsigned exponent) {
  double product = 1;
  for (; exponent > 0; --exponent) product *= base;
  return product;
}

/// Number of `text`, which holds digits and at most one point; negative when it does not fit.
[[nodiscard]] inline double number_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() ? value : -1;
}

/// Bytes per second of one "Gb/s", "GiB/s", "Mbps", …; 0 for an unknown unit.
[[nodiscard]] constexpr double rate_unit(std::string_view unit) {
  for (const std::string_view tail : {std::string_view("ps"), std::string_view("/s")})
    if (unit.size() > tail.size() && unit.substr(unit.size() - tail.size()) == tail) {
      unit.remove_suffix(tail.size());
      const unsigned exponent = prefix_power(unit.front());
      if (exponent > 0) unit.remove_prefix(1);
      const bool binary = exponent > 0 && !unit.empty() && unit.front() == 'i';
      if (binary) unit.remove_prefix(1);
      const double size = power(binary ? 1024 : 1000, exponent);
      if (unit == "B") return size;
      if (unit == "b" || unit == "bit") return size / 8;
      return 0;
    }
  return 0;
}

[[nodiscard]] constexpr double time_unit(std::string_view unit) {
  return unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : unit == "ns" ? 1e-9 : unit == "min" ? 60 : 0;
}

}  // namespace detail

inline std::string to_string(bytes amount) {
  constexpr const char* names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  constexpr std::size_t last = 6;
  constexpr std::uint64_t most = 100000;  // longer exact numbers are hard to read
  std::size_t exact = 0;
  std::uint64_t whole = amount.value;
  while (exact < last && whole >= 1024 && whole % 1024 == 0) {
    whole /= 1024;
    ++exact;
  }
  if (whole < most) return std::to_string(whole) + names[exact];
  std::size_t rounded = 0;
  auto value = static_cast<double>(amount.value);
  while (rounded < last && value >= 1024 * 0.9995) {
    value /= 1024;
    ++rounded;
  }
  // 100 KiB and more would show no decimals and pass for exact.
  std::string text = detail::three_digits(value);
  if (text.find('.') == std::string::npos) text += ".0";
  return text + names[rounded];
}

inline std::string to_string(bytes_per_second rate) {
  constexpr detail::unit_step steps[] = {{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}};
  return detail::in_units(rate.value, steps, 4);
}

inline std::string to_string(seconds time) {
  constexpr detail::unit_step steps[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  if (time.value == 0) return "0 s";
  return detail::in_units(time.value, steps, 4);
}

inline result<bytes> parse_bytes(std::string_view text) {
  const auto refuse = [&](const char* why) {
    return fail(errc::malformed_input, "'" + std::string(text) + "' " + why,
                "write for example 8, 64KiB, 1.5GiB or 10MB");
  };
  const detail::number_and_unit parts = detail::split_number(text);
  if (!parts.good) return refuse("is not an amount of bytes");
  std::string_view unit = parts.unit;
  const unsigned exponent = unit.empty() ? 0 : detail::prefix_power(unit.front());
  if (exponent > 0) unit.remove_prefix(1);
  if (!(unit.empty() || unit == "B" || (exponent > 0 && unit == "iB")))
    return refuse("has a unit that is not one of B, K, M, G, T, KiB to TiB, kB to TB");
  std::uint64_t scale = 1;
  for (unsigned i = 0; i < exponent; ++i) scale *= unit == "B" ? 1000 : 1024;

  // number = digits / 10^places, so the amount is digits * scale / 10^places, and must be whole.
  __extension__ using wide = unsigned __int128;
  wide digits = 0;
  wide places = 1;
  bool after_point = false;
  std::string_view number = parts.number;
  if (number.find('.') != std::string_view::npos)
    while (number.back() == '0') number.remove_suffix(1);
  for (const char c : number) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    digits = digits * 10 + static_cast<unsigned>(c - '0');
    if (after_point) places *= 10;
    if (digits / places >= wide{1} << 64U) return refuse("does not fit into 64 bits");
    // Then digits * 2^40 and places * 10 fit into 128 bits.
    if (digits >= wide{1} << 86U || places > wide{1000000000000000000U} * 1000000000000000000U)
      return refuse("has too many digits");
  }
  const wide scaled = digits * scale;
  if (scaled % places != 0) return refuse("is not a whole number of bytes");
  if (scaled / places >= wide{1} << 64U) return refuse("does not fit into 64 bits");
  return bytes{static_cast<std::uint64_t>(scaled / places)};
}

inline result<bytes_per_second> parse_rate(std::string_view text) {
  const detail::number_and_unit parts = detail::split_number(text);
  const double unit = detail::rate_unit(parts.unit);
  const double rate = parts.good ? detail::number_of(parts.number) * unit : -1;
  if (unit == 0 || rate < 0 || !detail::is_finite(rate))
    return fail(errc::malformed_input, "'" + std::string(text) + "' is not a rate",
                "write for example 400Gb/s (bits) or 50GB/s (bytes)");
  return bytes_per_second{rate};
}

inline result<seconds> parse_seconds(std::string_view text) {
  const detail::number_and_unit parts = detail::split_number(text);
  const double unit = detail::time_unit(parts.unit);
  const double time = parts.good ? detail::number_of(parts.number) * unit : -1;
  if (unit == 0 || time < 0 || !detail::is_finite(time))
    return fail(errc::malformed_input, "'" + std::string(text) + "' is not a time",
                "write for example 30s, 1.5ms or 200us");
  return seconds{time};
}

}}  // namespace topocoll::v0
