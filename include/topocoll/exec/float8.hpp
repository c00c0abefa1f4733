// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions between the 8-bit floating-point elements and float.
#include <cstdint>
#include <topocoll/exec/detail/float_formulas.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// The value of a float8_e4m3, exactly; NaN keeps its sign.
[[nodiscard]] constexpr float to_float(float8_e4m3 e) {
  return detail::float_of_e4m3<float, std::uint32_t>{e.bits}.value;
}
/// The value of a float8_e5m2, exactly; NaN keeps sign and payload and becomes quiet.
[[nodiscard]] constexpr float to_float(float8_e5m2 e) {
  return detail::float_of_e5m2<float, std::uint32_t>{e.bits}.value;
}
/// The nearest float8_e4m3, ties to even; subnormals are kept, a NaN keeps its sign. What is too large, infinities too,
/// becomes +-448: the saturation (`__NV_SATFINITE`) of CUDA's and so of NCCL's conversions.
[[nodiscard]] constexpr float8_e4m3 to_float8_e4m3(float f) {
  return {static_cast<std::uint8_t>(detail::e4m3_of_float<float, std::uint32_t>{f}.value)};
}
/// The nearest float8_e5m2, ties to even; subnormals are kept, a NaN keeps its sign alone. A finite number that is too large becomes
/// +-57344, as CUDA's and NCCL's saturation has it; an infinity stays one, so that it is not lost on its way through a
/// reduction (CUDA's saturation turns it into +-57344).
[[nodiscard]] constexpr float8_e5m2 to_float8_e5m2(float f) {
  return {static_cast<std::uint8_t>(detail::e5m2_of_float<float, std::uint32_t>{f}.value)};
}

}}  // namespace topocoll::v0
