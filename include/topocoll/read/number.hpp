// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers as devices and files write them: whole, decimal or hexadecimal, with nothing left over.
#include <cstdint>
#include <optional>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace read {

/// `text` without blanks, tabs and line ends at either end.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank(" \t\r\n\0", 5);
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The number that `text` spells in base 10 or 16, without sign, prefix or blanks. Empty for anything else and above 2^63 - 1.
[[nodiscard]] constexpr std::optional<std::uint64_t> digits_of(std::string_view text, unsigned base) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    unsigned digit = 16;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
    if (digit >= base || value > (static_cast<std::uint64_t>(INT64_MAX) - digit) / base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

/// A whole number, decimal or with 0x; blanks around it are fine. Empty for anything else.
[[nodiscard]] constexpr std::optional<std::int64_t> whole_number(std::string_view text) {
  text = trimmed(text);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (hex) text.remove_prefix(2);
  const auto value = digits_of(text, hex ? 16 : 10);
  if (!value) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(*value) : static_cast<std::int64_t>(*value);
}

/// A whole number from 0 to `most`. Empty for anything else.
[[nodiscard]] constexpr std::optional<std::uint32_t> small_number(std::string_view text,
                                                                  std::uint32_t most = UINT32_MAX) {
  const auto value = whole_number(text);
  if (!value || *value < 0 || *value > std::int64_t{most}) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

/// The number that `text` begins with, after blanks: "8.0 GT/s PCIe" is 8. Empty when there is none; never negative. Exact
/// for numbers of up to 15 digits.
[[nodiscard]] constexpr std::optional<double> leading_number(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  double scale = 1;
  bool any = false;
  bool point = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    value = value * 10 + (c - '0');
    if (point) scale *= 10;
    if (value > 1e15 || scale > 1e15) return std::nullopt;
  }
  if (!any) return std::nullopt;
  return value / scale;
}

}}}  // namespace topocoll::v0::read
