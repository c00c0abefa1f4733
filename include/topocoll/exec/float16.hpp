// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact conversions between the 16-bit floating-point elements and float.
#include <cstdint>
#include <topocoll/exec/detail/float_formulas.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// The value of a half, exactly; NaN keeps sign and payload and becomes quiet.
[[nodiscard]] constexpr float to_float(half h) { return detail::float_of_half<float, std::uint32_t>{h.bits}.value; }
/// The value of a bfloat16, exactly; NaN keeps sign and payload.
[[nodiscard]] constexpr float to_float(bfloat16 b) {
  return detail::float_of_bfloat16<float, std::uint32_t>{b.bits}.value;
}
/// The nearest half, ties to even: 65520 and above become infinity, subnormals are kept, NaN becomes quiet.
[[nodiscard]] constexpr half to_half(float f) {
  return {static_cast<std::uint16_t>(detail::half_of_float<float, std::uint32_t>{f}.value)};
}
/// The nearest bfloat16, ties to even; NaN becomes quiet.
[[nodiscard]] constexpr bfloat16 to_bfloat16(float f) {
  return {static_cast<std::uint16_t>(detail::bfloat16_of_float<float, std::uint32_t>{f}.value)};
}

}}  // namespace topocoll::v0
