// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types and reductions as values.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 {

/// IEEE binary16 as raw bits; arithmetic is done in float.
struct half {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(half, half) = default;
};
/// The upper half of a binary32 as raw bits; arithmetic is done in float.
struct bfloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(bfloat16, bfloat16) = default;
};

/// OCP E4M3 as raw bits: 4 exponent bits (bias 7), 3 fraction bits. No infinities, one NaN per sign (S.1111.111), largest
/// 448, smallest 2^-9; arithmetic is done in float. Source: OCP 8-bit Floating Point Specification (OFP8), 1.0, 2023.
struct float8_e4m3 {
  std::uint8_t bits = 0;
  friend constexpr bool operator==(float8_e4m3, float8_e4m3) = default;
};
/// OCP E5M2 as raw bits: the upper byte of a binary16, with infinities; largest 57344, smallest 2^-16; arithmetic is done
/// in float. Source: as `float8_e4m3`.
struct float8_e5m2 {
  std::uint8_t bits = 0;
  friend constexpr bool operator==(float8_e5m2, float8_e5m2) = default;
};

/// Element types; names as in nccl-tests (-d).
enum class dtype : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8_e4m3,
  float8_e5m2
};
/// Every element type, in the order of their values.
inline constexpr dtype all_dtypes[] = {dtype::int8,    dtype::uint8,    dtype::int32,       dtype::uint32,
                                       dtype::int64,   dtype::uint64,   dtype::float16,     dtype::float32,
                                       dtype::float64, dtype::bfloat16, dtype::float8_e4m3, dtype::float8_e5m2};

/// Reductions; names as in nccl-tests (-o). `avg` is the sum divided by the number of ranks; integers round toward zero.
enum class reduce_op : std::uint8_t { sum, prod, min, max, avg };
/// Every reduction, in the order of their values.
inline constexpr reduce_op all_reduce_ops[] = {reduce_op::sum, reduce_op::prod, reduce_op::min, reduce_op::max,
                                               reduce_op::avg};

[[nodiscard]] constexpr std::string_view to_string(dtype d) {
  constexpr std::string_view words[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
  return words[static_cast<std::size_t>(d)];
}
[[nodiscard]] constexpr std::string_view to_string(reduce_op o) {
  constexpr std::string_view words[] = {"sum", "prod", "min", "max", "avg"};
  return words[static_cast<std::size_t>(o)];
}
[[nodiscard]] constexpr std::optional<dtype> parse_dtype(std::string_view word) {
  for (const dtype d : all_dtypes)
    if (to_string(d) == word) return d;
  return std::nullopt;
}
[[nodiscard]] constexpr std::optional<reduce_op> parse_reduce_op(std::string_view word) {
  for (const reduce_op o : all_reduce_ops)
    if (to_string(o) == word) return o;
  return std::nullopt;
}
/// Size of one element.
[[nodiscard]] constexpr bytes size_of(dtype d) {
  constexpr std::uint64_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return {sizes[static_cast<std::size_t>(d)]};
}
/// Whether the elements are whole numbers.
[[nodiscard]] constexpr bool is_integer(dtype d) { return d <= dtype::uint64; }

/// Types that may be elements of a collective.
template <class T>
concept Element =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t> ||
    std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bfloat16> ||
    std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>;

/// The value that stands for an element type.
template <Element T>
[[nodiscard]] constexpr dtype dtype_of() {
  if constexpr (std::is_same_v<T, std::int8_t>)
    return dtype::int8;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return dtype::uint8;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return dtype::int32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return dtype::uint32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return dtype::int64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return dtype::uint64;
  else if constexpr (std::is_same_v<T, half>)
    return dtype::float16;
  else if constexpr (std::is_same_v<T, float>)
    return dtype::float32;
  else if constexpr (std::is_same_v<T, double>)
    return dtype::float64;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return dtype::bfloat16;
  else if constexpr (std::is_same_v<T, float8_e4m3>)
    return dtype::float8_e4m3;
  else
    return dtype::float8_e5m2;
}

}}  // namespace topocoll::v0
