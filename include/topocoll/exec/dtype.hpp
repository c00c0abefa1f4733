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

/// Element types; names as in nccl-tests (-d).
enum class dtype : std::uint8_t { int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, bfloat16 };

/// Reductions; names as in nccl-tests (-o). `avg` is the sum divided by the number of ranks; integers round toward zero.
enum class reduce_op : std::uint8_t { sum, prod, min, max, avg };

[[nodiscard]] constexpr std::string_view to_string(dtype d) {
  constexpr std::string_view words[] = {"int8",   "uint8", "int32", "uint32", "int64",
                                        "uint64", "half",  "float", "double", "bfloat16"};
  return words[static_cast<std::size_t>(d)];
}
[[nodiscard]] constexpr std::string_view to_string(reduce_op o) {
  constexpr std::string_view words[] = {"sum", "prod", "min", "max", "avg"};
  return words[static_cast<std::size_t>(o)];
}
[[nodiscard]] constexpr std::optional<dtype> parse_dtype(std::string_view word) {
  for (int d = 0; d <= static_cast<int>(dtype::bfloat16); ++d)
    if (to_string(static_cast<dtype>(d)) == word) return static_cast<dtype>(d);
  return std::nullopt;
}
[[nodiscard]] constexpr std::optional<reduce_op> parse_reduce_op(std::string_view word) {
  for (int o = 0; o <= static_cast<int>(reduce_op::avg); ++o)
    if (to_string(static_cast<reduce_op>(o)) == word) return static_cast<reduce_op>(o);
  return std::nullopt;
}
/// Size of one element.
[[nodiscard]] constexpr bytes size_of(dtype d) {
  constexpr std::uint64_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return {sizes[static_cast<std::size_t>(d)]};
}

/// Types that may be elements of a collective.
template <class T>
concept Element =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t> ||
    std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bfloat16>;

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
  else
    return dtype::bfloat16;
}

}}  // namespace topocoll::v0
