// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions between float and the narrow floating-point elements, as formulas on one number or on a short vector of them.
#include <cstdint>
#include <type_traits>

namespace topocoll { inline namespace v0 { namespace detail {

// A formula is an aggregate: given its first member, the others follow, and the last one, `value`, is the result. So the
// vector operations stand in the function that writes `formula<F, U>{x}.value`, and are compiled for the instruction set
// of that function. A helper function would not do: g++ splits vectors that are wider than the target of the helper
// before it inlines it. (__builtin_bit_cast and not std::bit_cast for the same reason.)
//
// F is float and U is std::uint32_t, or both are vectors of them. Every decision is a select, never a branch, and
// comparisons are signed because SSE2 has no others. Nothing depends on how the floating-point unit treats denormals.
//
// binary32 has an exponent bias of 127 and 23 fraction bits (IEEE 754-2019).

template <class U>
struct signed_lanes {
  using type = decltype(U{} < U{});  // comparing vectors gives a vector of signed integers
};
template <>
struct signed_lanes<std::uint32_t> {
  using type = std::int32_t;
};
template <class U>
using signed_lanes_t = typename signed_lanes<U>::type;

// Numbers of a format with e exponent bits and f fraction bits from the low e+f+1 bits of each lane. Its bias is 2^(e-1)-1.
template <class F, class U, std::uint32_t ExponentBits, std::uint32_t FractionBits>
struct float_of_narrow {
  static constexpr std::uint32_t narrower = 23U - FractionBits;
  static constexpr std::uint32_t rebias = 127U - ((1U << (ExponentBits - 1U)) - 1U);
  static constexpr std::uint32_t top = ((1U << ExponentBits) - 1U) << FractionBits;

  U w;
  U magnitude = w & ((1U << (ExponentBits + FractionBits)) - 1U);
  U exponent = magnitude & top;
  U none = w & 0U;
  U rebased = (magnitude << narrower) + (rebias << 23U);
  // The largest exponent (infinities, NaN) becomes 255.
  U special = (exponent == top) ? none + (rebias << 23U) : none;
  // A subnormal is a fraction without leading bit: put it under the exponent of the smallest normal number, then take that
  // number away, exactly.
  U tiny = (exponent == 0U) ? none + (1U << 23U) : none;
  U offset = (exponent == 0U) ? none + ((rebias + 1U) << 23U) : none;
  F number = __builtin_bit_cast(F, rebased + special + tiny) - __builtin_bit_cast(F, offset);
  F value = __builtin_bit_cast(F, __builtin_bit_cast(U, number) | ((w & (1U << (ExponentBits + FractionBits)))
                                                                   << (31U - ExponentBits - FractionBits)));
};

template <class F, class U>
using float_of_half = float_of_narrow<F, U, 5, 10>;
template <class F, class U>
using float_of_e5m2 = float_of_narrow<F, U, 5, 2>;
template <class F, class U>
struct float_of_bfloat16 {
  U w;
  F value = __builtin_bit_cast(F, w << 16U);
};
// As float_of_narrow, but the largest exponent holds numbers, and only the last of them is a NaN.
template <class F, class U>
struct float_of_e4m3 {
  U w;
  U magnitude = w & 0x7fU;
  U none = w & 0U;
  U rebased = (magnitude << 20U) + (120U << 23U);
  U tiny = (__builtin_bit_cast(signed_lanes_t<U>, magnitude) < 8) ? none + (1U << 23U) : none;
  U offset = (__builtin_bit_cast(signed_lanes_t<U>, magnitude) < 8) ? none + (121U << 23U) : none;
  F number = __builtin_bit_cast(F, rebased + tiny) - __builtin_bit_cast(F, offset);
  U nan = (magnitude == 0x7fU) ? none + 0x7fc00000U : none;
  F value = __builtin_bit_cast(F, __builtin_bit_cast(U, number) | nan | ((w & 0x80U) << 24U));
};

// The nearest number with e exponent bits and f fraction bits, ties to even, in the low e+f+1 bits of each lane; subnormals
// are kept. From Largest on (the bits of a float) it is that one, but for infinities where the format has them. A NaN is
// quiet; with Payload it keeps what there is room for, else all its bits are set.
template <class F, class U, std::uint32_t ExponentBits, std::uint32_t FractionBits, std::int32_t Largest, bool Infinity,
          bool Payload>
struct narrow_of_float {
  static constexpr std::uint32_t narrower = 23U - FractionBits;
  static constexpr std::uint32_t smallest = 129U - (1U << (ExponentBits - 1U));  // exponent of the smallest normal one
  static constexpr std::uint32_t all = (1U << (ExponentBits + FractionBits)) - 1U;
  static constexpr std::uint32_t payload = (1U << (FractionBits - 1U)) - 1U;
  static constexpr bool saturates = Infinity && Largest < (143 << 23);  // 2^16 is the infinity of 5 exponent bits
  using signed_u = signed_lanes_t<U>;

  F f;
  U u = __builtin_bit_cast(U, f);
  signed_u magnitude = __builtin_bit_cast(signed_u, u & 0x7fffffffU);
  signed_u none = magnitude & 0;
  signed_u most = none + Largest;
  signed_u capped = (magnitude < most) ? magnitude : most;
  signed_u least = none + static_cast<std::int32_t>(smallest << 23U);
  signed_u normal = (capped < least) ? least : capped;
  U exponent = __builtin_bit_cast(U, normal) & 0x7f800000U;
  // One unit in the last place of 2^(x + 23 - f) is 2^(x - f), the spacing of the format at exponent x. So the addition
  // itself rounds, and what it leaves in the fraction is the significand, with its leading bit.
  U magic = exponent + (narrower << 23U);
  F sum = __builtin_bit_cast(F, capped) + __builtin_bit_cast(F, magic);
  U number = (exponent >> narrower) - (smallest << FractionBits) + (__builtin_bit_cast(U, sum) - magic);
  // Infinity is one more than the largest number, and all bits of either are bits of a NaN.
  signed_u infinite = saturates ? ((magnitude < 0x7f800000) ? none : none + 1) : none;
  U nan = Payload ? (all - payload) | ((u >> narrower) & payload) : (u & 0U) + all;
  U special = (magnitude > 0x7f800000) ? nan : (u & 0U);
  U value =
      (number + __builtin_bit_cast(U, infinite)) | special | ((u >> (31U - ExponentBits - FractionBits)) & (all + 1U));
};

template <class F, class U>
using half_of_float = narrow_of_float<F, U, 5, 10, 143 << 23, true, true>;
template <class F, class U>
using e4m3_of_float = narrow_of_float<F, U, 4, 3, 0x43e00000, false, false>;  // 448
template <class F, class U>
using e5m2_of_float = narrow_of_float<F, U, 5, 2, 0x47600000, true, false>;  // 57344
template <class F, class U>
struct bfloat16_of_float {
  F f;
  U u = __builtin_bit_cast(U, f);
  U rounded = (u + 0x7fffU + ((u >> 16U) & 1U)) >> 16U;
  U nan = (u >> 16U) | 0x40U;
  U magnitude = u & 0x7fffffffU;
  U value = (__builtin_bit_cast(signed_lanes_t<U>, magnitude) > 0x7f800000) ? nan : rounded;
};

}}}  // namespace topocoll::v0::detail
