// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernels of reduce_kernels.hpp are made of: short vectors, operations on them, and how elements lie in them.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <topocoll/exec/detail/float_formulas.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

// The vector extension of g++, clang and nvcc's host pass: g++ 12 at -O2 leaves plain loops of unknown length scalar,
// these are wide at every level. Formulas, not functions: see float_formulas.hpp.
template <class T, std::size_t Bytes>
struct pack {
  typedef T type __attribute__((vector_size(Bytes)));
  // As it lies in somebody's memory.
  struct [[gnu::packed, gnu::may_alias]] anywhere {
    type vector;
  };
  [[nodiscard]] static const anywhere& at(const std::byte* p) { return *reinterpret_cast<const anywhere*>(p); }
  [[nodiscard]] static anywhere& at(std::byte* p) { return *reinterpret_cast<anywhere*>(p); }
};
template <class T, std::size_t Bytes>
using pack_t = typename pack<T, Bytes>::type;

// Processors whose wider vectors are found out at run time. Functions with a target attribute are called in kernels of
// the same instruction set only.
#if defined(__x86_64__) && defined(__GNUC__)
#define TOPOCOLL_X86_LEVELS
#define TOPOCOLL_AVX2 __attribute__((target("avx2,f16c")))
#define TOPOCOLL_AVX512 __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#endif

// Stores an aligned vector of floats past the caches; an ordinary store where the compiler has no word for it.
template <class V>
[[gnu::always_inline]] inline void stream(std::byte* to, const V& v) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(v, reinterpret_cast<V*>(to));
#else
  pack<float, sizeof(V)>::at(to).vector = v;
#endif
}
#if defined(TOPOCOLL_X86_LEVELS) && !defined(__clang__)
[[gnu::always_inline]] inline void stream(std::byte* to, const pack_t<float, 16>& v) noexcept {
  __builtin_ia32_movntps(reinterpret_cast<float*>(to), v);
}
[[gnu::always_inline]] TOPOCOLL_AVX2 inline void stream(std::byte* to, const pack_t<float, 32>& v) noexcept {
  __builtin_ia32_movntps256(reinterpret_cast<float*>(to), v);
}
[[gnu::always_inline]] TOPOCOLL_AVX512 inline void stream(std::byte* to, const pack_t<float, 64>& v) noexcept {
  __builtin_ia32_movntps512(reinterpret_cast<float*>(to), v);
}
#endif
// Streaming stores become visible in no particular order; after this they are before all that follows.
inline void end_of_streaming() noexcept {
#ifdef TOPOCOLL_X86_LEVELS
  __builtin_ia32_sfence();
#endif
}

struct sum_of {
  template <class T, std::size_t Bytes>
  struct of {
    using vector = pack_t<T, Bytes>;
    vector a, b;
    vector value = a + b;
  };
};
struct product_of {
  template <class T, std::size_t Bytes>
  struct of {
    using vector = pack_t<T, Bytes>;
    vector a, b;
    vector value = a * b;
  };
};
template <bool Smaller, class T, std::size_t Bytes, bool = std::is_floating_point_v<T>>
struct extreme {
  using vector = pack_t<T, Bytes>;
  vector a, b;
  vector value = Smaller ? ((a < b) ? a : b) : ((a < b) ? b : a);
};
template <bool Smaller, class T, std::size_t Bytes>
struct extreme<Smaller, T, Bytes, true> {
  using vector = pack_t<T, Bytes>;
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using words = pack_t<word, Bytes>;
  static constexpr word quiet = sizeof(word) == 4 ? word{0x7fc00000U} : static_cast<word>(0x7ff8000000000000U);
  vector a, b;
  words x = __builtin_bit_cast(words, a), y = __builtin_bit_cast(words, b);
  // Equal numbers have equal bits, but for the two zeros: "or" keeps the minus sign, "and" drops it.
  words either = x | y, both = x & y;
  vector equal = __builtin_bit_cast(vector, Smaller ? either : both);
  vector nan = __builtin_bit_cast(vector, words{} + quiet);
  vector chosen = Smaller ? ((a < b) ? a : b) : ((a < b) ? b : a);
  vector ordered = (a == b) ? equal : chosen;
  vector a_is_number = (a == a) ? ordered : nan;
  vector value = (b == b) ? a_is_number : nan;
};
template <bool Smaller>
struct extreme_of {
  template <class T, std::size_t Bytes>
  using of = extreme<Smaller, T, Bytes>;
};

// How a block of elements becomes four vectors of numbers, on which a kernel works, and how these become elements again.
// Formulas do not contain formulas: g++ 12 loses its way in them. So a block tells its parts, and the kernel joins them.
//   number    what arithmetic is done in; vector: of those
//   size      bytes of memory in a block
//   input     {address}: the elements in four parts a, b, c, d
//   numbers   {part}: numbers of a part; elements {numbers}: what is stored of them; again {elements}: numbers of those
//   output    {a, b, c, d}: `pieces` (1, 2 or 4) vectors r0 .. r3 to store one behind the other

// Elements that arithmetic is done in as they are.
template <class T, std::size_t Bytes>
struct plain_block {
  using number = T;
  using vector = pack_t<T, Bytes>;
  using stored = pack<T, Bytes>;
  static constexpr std::size_t size = 4 * Bytes;
  static constexpr std::size_t pieces = 4;
  static constexpr bool rounds = false;
  struct input {
    const std::byte* from;
    vector a = stored::at(from).vector, b = stored::at(from + Bytes).vector;
    vector c = stored::at(from + 2 * Bytes).vector, d = stored::at(from + 3 * Bytes).vector;
  };
  struct numbers {
    vector value;
  };
  using elements = numbers;
  using again = numbers;
  struct output {
    vector r0, r1, r2, r3;
  };
};

// 2 elements of 16 bits in each 32-bit lane. They are taken out in place, so nothing is shuffled, and the order in which
// they lie does not matter.
template <template <class, class> class FloatOf, template <class, class> class OfFloat, std::size_t Bytes>
struct pair_block {
  using number = float;
  using vector = pack_t<float, Bytes>;
  using lanes = pack_t<std::uint32_t, Bytes>;
  using stored = pack<std::uint32_t, Bytes>;
  static constexpr std::size_t size = 2 * Bytes;
  static constexpr std::size_t pieces = 2;
  static constexpr bool rounds = true;
  struct input {
    const std::byte* from;
    lanes r = stored::at(from).vector, s = stored::at(from + Bytes).vector;
    lanes a = r & 0xffffU, b = r >> 16U, c = s & 0xffffU, d = s >> 16U;
  };
  using numbers = FloatOf<vector, lanes>;
  using elements = OfFloat<vector, lanes>;
  using again = numbers;
  struct output {
    lanes a, b, c, d;
    lanes r0 = a | (b << 16U), r1 = c | (d << 16U);
  };
};

// 4 elements of 8 bits in each 32-bit lane.
template <template <class, class> class FloatOf, template <class, class> class OfFloat, std::size_t Bytes>
struct quarter_block {
  using number = float;
  using vector = pack_t<float, Bytes>;
  using lanes = pack_t<std::uint32_t, Bytes>;
  using stored = pack<std::uint32_t, Bytes>;
  static constexpr std::size_t size = Bytes;
  static constexpr std::size_t pieces = 1;
  static constexpr bool rounds = true;
  struct input {
    const std::byte* from;
    lanes r = stored::at(from).vector;
    lanes a = r & 0xffU, b = (r >> 8U) & 0xffU, c = (r >> 16U) & 0xffU, d = r >> 24U;
  };
  using numbers = FloatOf<vector, lanes>;
  using elements = OfFloat<vector, lanes>;
  using again = numbers;
  struct output {
    lanes a, b, c, d;
    lanes r0 = (a | (b << 8U)) | ((c << 16U) | (d << 24U));
  };
};

#ifdef TOPOCOLL_X86_LEVELS
using eight_floats = pack_t<float, 32>;
using eight_shorts = pack_t<short, 16>;
[[nodiscard, gnu::always_inline]] TOPOCOLL_AVX2 inline eight_floats floats_of_halves(const eight_shorts& h) {
  return __builtin_ia32_vcvtph2ps256(h);
}
[[nodiscard, gnu::always_inline]] TOPOCOLL_AVX2 inline eight_shorts halves_of_floats(const eight_floats& f) {
  return __builtin_ia32_vcvtps2ph256(f, 0);  // 0: to nearest even, whatever the current mode is
}

// The conversions of F16C; they agree with the formulas in every bit, also for NaN and subnormals.
struct half_block {
  using number = float;
  using vector = eight_floats;
  using stored = pack<short, 16>;
  static constexpr std::size_t size = 64;
  static constexpr std::size_t pieces = 4;
  static constexpr bool rounds = true;
  struct input {
    const std::byte* from;
    eight_shorts a = stored::at(from).vector, b = stored::at(from + 16).vector, c = stored::at(from + 32).vector,
                 d = stored::at(from + 48).vector;
  };
  struct numbers {
    eight_shorts part;
    eight_floats value = floats_of_halves(part);
  };
  struct elements {
    eight_floats x;
    eight_shorts value = halves_of_floats(x);
  };
  using again = numbers;
  struct output {
    eight_shorts r0, r1, r2, r3;
  };
};

using eight_words = pack_t<std::uint32_t, 32>;
using eight_bits = pack_t<std::uint16_t, 16>;
// The low halves of all lanes of a, then of b.
[[nodiscard, gnu::always_inline]] TOPOCOLL_AVX2 inline pack_t<long long, 32> low_halves(const eight_words& a,
                                                                                        const eight_words& b) {
  using words = pack_t<int, 32>;
  const auto mixed = __builtin_ia32_packusdw256(__builtin_bit_cast(words, a), __builtin_bit_cast(words, b));
  return __builtin_ia32_permdi256(__builtin_bit_cast(pack_t<long long, 32>, mixed), 0xd8);  // quarters 0, 2, 1, 3
}

// 8-bit floats as the upper bytes of halves, for F16C to convert.
struct halves_of_e5m2 {
  eight_bits part;
  eight_floats value = floats_of_halves(__builtin_bit_cast(eight_shorts, part));
};
struct halves_of_e4m3 {
  eight_bits part;
  // One bit less of exponent: shifted by one the number is a half, 2^8 times smaller. The sign is copied on its way.
  eight_shorts shifted = (__builtin_bit_cast(eight_shorts, part) >> 1) & static_cast<short>(0xbf80);
  eight_bits magnitude = part & std::uint16_t{0x7f00};
  eight_shorts nan = (magnitude == std::uint16_t{0x7f00}) & std::int16_t{0x7e00};
  eight_floats value = floats_of_halves(shifted | nan) * 256.0F;
};
template <class Numbers, template <class, class> class FloatOf, template <class, class> class OfFloat>
struct byte_block {
  using number = float;
  using vector = eight_floats;
  using stored = pack<long long, 32>;
  static constexpr std::size_t size = 32;
  static constexpr std::size_t pieces = 1;
  static constexpr bool rounds = true;
  struct input {
    const std::byte* from;
    eight_bits r = pack<std::uint16_t, 16>::at(from).vector, s = pack<std::uint16_t, 16>::at(from + 16).vector;
    eight_bits a = r << 8, b = r & std::uint16_t{0xff00}, c = s << 8, d = s & std::uint16_t{0xff00};
  };
  using numbers = Numbers;
  using elements = OfFloat<eight_floats, eight_words>;
  using again = FloatOf<eight_floats, eight_words>;
  struct output {
    eight_words a, b, c, d;
    eight_words ab = a | (b << 8U), cd = c | (d << 8U);
    pack_t<long long, 32> r0 = low_halves(ab, cd);
  };
};
#endif

template <class T, std::size_t Bytes>
struct block_of : plain_block<T, Bytes> {};
template <std::size_t Bytes>
struct block_of<half, Bytes> : pair_block<float_of_half, half_of_float, Bytes> {};
template <std::size_t Bytes>
struct block_of<bfloat16, Bytes> : pair_block<float_of_bfloat16, bfloat16_of_float, Bytes> {};
template <std::size_t Bytes>
struct block_of<float8_e4m3, Bytes> : quarter_block<float_of_e4m3, e4m3_of_float, Bytes> {};
template <std::size_t Bytes>
struct block_of<float8_e5m2, Bytes> : quarter_block<float_of_e5m2, e5m2_of_float, Bytes> {};
#ifdef TOPOCOLL_X86_LEVELS
template <>
struct block_of<half, 32> : half_block {};
template <>
struct block_of<half, 64> : half_block {};
template <>
struct block_of<float8_e4m3, 32> : byte_block<halves_of_e4m3, float_of_e4m3, e4m3_of_float> {};
template <>
struct block_of<float8_e5m2, 32> : byte_block<halves_of_e5m2, float_of_e5m2, e5m2_of_float> {};
#endif

}}}  // namespace topocoll::v0::detail
