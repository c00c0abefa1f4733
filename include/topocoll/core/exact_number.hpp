// SPDX-License-Identifier: Apache-2.0
#pragma once
// A number that is a whole text and fits its type; for readers of files, options and variables.
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace topocoll { inline namespace v0 { namespace detail {

/// Empty for blanks, a plus sign, other letters, or a number that does not fit.
template <class Number>
[[nodiscard]] std::optional<Number> exact_number(std::string_view text, int base = 10) {
  Number n{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

}}}  // namespace topocoll::v0::detail
