// SPDX-License-Identifier: Apache-2.0
#pragma once
// How digests are written in the JSON of plans and explanations.
#include <cstddef>
#include <cstdint>
#include <string>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Sixteen hexadecimal digits.
template <class = void>
[[nodiscard]] std::string hex_of(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4U) text[i] = "0123456789abcdef"[value & 15U];
  return text;
}

}}}}  // namespace topocoll::v0::plan::detail
