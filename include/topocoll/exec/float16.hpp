// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact conversions between the 16-bit floating-point elements and float.
#include <bit>
#include <cstdint>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {

// The four functions below work on one number (U = std::uint32_t, F = float) and on short vectors of numbers alike:
// every decision is a select, never a branch, and comparisons are signed because SSE2 has no others. None of them
// depends on how the floating-point unit treats denormals. Formats (IEEE 754-2019): binary16 has an exponent bias of 15
// and 10 fraction bits, binary32 a bias of 127 and 23 bits; the biases differ by 112.

template <class U>
[[nodiscard]] constexpr auto as_signed(U u) {
  if constexpr (sizeof(U) == sizeof(std::int32_t))
    return static_cast<std::int32_t>(u);
  else
    return std::bit_cast<decltype(u < u)>(u);  // comparing vectors gives a vector of signed integers
}

template <class F, class U>
[[nodiscard]] constexpr F float_of_half(U w) {
  const U magnitude = w & 0x7fffU;
  const U exponent = magnitude & 0x7c00U;
  const U none = w & 0U;
  const U rebased = (magnitude << 13U) + (112U << 23U);
  // Exponent 31 (infinities, NaN) becomes 255.
  const U special = (exponent == 0x7c00U) ? none + (112U << 23U) : none;
  // A subnormal is fraction * 2^-24: put the fraction under the exponent of 2^-14, then take 2^-14 away, exactly.
  const U tiny = (exponent == 0U) ? none + (1U << 23U) : none;
  const U offset = (exponent == 0U) ? none + (113U << 23U) : none;
  const F value = std::bit_cast<F>(rebased + special + tiny) - std::bit_cast<F>(offset);
  return std::bit_cast<F>(std::bit_cast<U>(value) | ((w & 0x8000U) << 16U));
}

template <class F, class U>
[[nodiscard]] constexpr U half_of_float(F f) {
  const U u = std::bit_cast<U>(f);
  const U magnitude = u & 0x7fffffffU;
  const U none = u & 0U;
  // All from 65536 on is infinity; below 2^-14 the exponent stays that of the smallest normal half.
  const U capped = (as_signed(magnitude) < 0x47800000) ? magnitude : none + 0x47800000U;
  const U exponent = ((as_signed(capped) < 0x38800000) ? none + 0x38800000U : capped) & 0x7f800000U;
  // One unit in the last place of 2^(e+13) is 2^(e-10), the spacing of halves at exponent e, so the addition itself
  // rounds to nearest even, and what it leaves in the fraction is the significand of the half, with its leading bit.
  const U magic = exponent + (13U << 23U);
  const U significand = std::bit_cast<U>(std::bit_cast<F>(capped) + std::bit_cast<F>(magic)) - magic;
  const U number = (exponent >> 13U) - (113U << 10U) + significand;
  const U nan = 0x7e00U | ((magnitude >> 13U) & 0x1ffU);
  return ((as_signed(magnitude) > 0x7f800000) ? nan : number) | ((u >> 16U) & 0x8000U);
}

template <class F, class U>
[[nodiscard]] constexpr F float_of_bfloat16(U w) {
  return std::bit_cast<F>(w << 16U);
}

template <class F, class U>
[[nodiscard]] constexpr U bfloat16_of_float(F f) {
  const U u = std::bit_cast<U>(f);
  const U rounded = (u + 0x7fffU + ((u >> 16U) & 1U)) >> 16U;
  const U nan = (u >> 16U) | 0x40U;
  return (as_signed(u & 0x7fffffffU) > 0x7f800000) ? nan : rounded;
}

}  // namespace detail

/// The value of a half, exactly; NaN keeps sign and payload and becomes quiet.
[[nodiscard]] constexpr float to_float(half h) { return detail::float_of_half<float, std::uint32_t>(h.bits); }
/// The value of a bfloat16, exactly; NaN keeps sign and payload.
[[nodiscard]] constexpr float to_float(bfloat16 b) { return detail::float_of_bfloat16<float, std::uint32_t>(b.bits); }
/// The nearest half, ties to even: 65520 and above become infinity, subnormals are kept, NaN becomes quiet.
[[nodiscard]] constexpr half to_half(float f) {
  return {static_cast<std::uint16_t>(detail::half_of_float<float, std::uint32_t>(f))};
}
/// The nearest bfloat16, ties to even; NaN becomes quiet.
[[nodiscard]] constexpr bfloat16 to_bfloat16(float f) {
  return {static_cast<std::uint16_t>(detail::bfloat16_of_float<float, std::uint32_t>(f))};
}

}}  // namespace topocoll::v0
