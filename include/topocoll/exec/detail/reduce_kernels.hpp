// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels behind reduce.hpp, written on short vectors so that no optimiser has to find them.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/float16.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

// The vector extension of g++, clang and nvcc's host pass: g++ 12 at -O2 leaves plain loops of unknown length scalar,
// these are wide at every level. 16 bytes, because wider vectors change the calling convention with the instruction set
// chosen.
template <class T, std::size_t Lanes>
struct pack {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};
template <class T, std::size_t Lanes>
using pack_t = typename pack<T, Lanes>::type;

template <class V>
using lane_of = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;

inline constexpr std::size_t pack_bytes = 16;

struct sum_of {
  template <class V>
  [[nodiscard]] static V of(const V& a, const V& b) {
    return a + b;
  }
};
struct product_of {
  template <class V>
  [[nodiscard]] static V of(const V& a, const V& b) {
    return a * b;
  }
};

template <bool Smaller>
struct extreme_of {
  template <class V>
  [[nodiscard]] static V of(const V& a, const V& b) {
    const V chosen = Smaller ? ((a < b) ? a : b) : ((a < b) ? b : a);
    if constexpr (!std::is_floating_point_v<lane_of<V>>) {
      return chosen;
    } else {
      using word = std::conditional_t<sizeof(lane_of<V>) == 4, std::uint32_t, std::uint64_t>;
      using words = pack_t<word, sizeof(V) / sizeof(word)>;
      // Equal numbers have equal bits, but for the two zeros: "or" keeps the minus sign, "and" drops it.
      const words x = std::bit_cast<words>(a);
      const words y = std::bit_cast<words>(b);
      const V equal = std::bit_cast<V>(Smaller ? (x | y) : (x & y));
      constexpr word quiet = sizeof(word) == 4 ? word{0x7fc00000U} : static_cast<word>(0x7ff8000000000000U);
      const V nan = std::bit_cast<V>(words{} + quiet);
      const V ordered = (a == b) ? equal : chosen;
      const V a_is_number = (a == a) ? ordered : nan;
      return (b == b) ? a_is_number : nan;
    }
  }
};

// One step of a kernel on a pack of elements as they lie in memory.
template <class T, class Op>
struct step_of {
  using raw = pack_t<T, pack_bytes / sizeof(T)>;
  [[nodiscard]] static raw of(const raw& a, const raw& b) { return Op::of(a, b); }
};

// Two 16-bit elements lie in each 32-bit lane. They are worked on one after the other, so nothing is shuffled, and the
// order in which they lie does not matter.
template <class Op, class Format>
struct step_of_pairs {
  using raw = pack_t<std::uint32_t, pack_bytes / sizeof(std::uint32_t)>;
  using value = pack_t<float, pack_bytes / sizeof(float)>;
  [[nodiscard]] static raw one(const raw& a, const raw& b) {
    return Format::template bits<raw>(Op::of(Format::template number<value>(a), Format::template number<value>(b)));
  }
  [[nodiscard]] static raw of(const raw& a, const raw& b) {
    return one(a & 0xffffU, b & 0xffffU) | (one(a >> 16U, b >> 16U) << 16U);
  }
};

struct half_format {
  template <class F, class U>
  [[nodiscard]] static F number(const U& w) {
    return float_of_half<F, U>(w);
  }
  template <class U, class F>
  [[nodiscard]] static U bits(const F& f) {
    return half_of_float<F, U>(f);
  }
};
struct bfloat16_format {
  template <class F, class U>
  [[nodiscard]] static F number(const U& w) {
    return float_of_bfloat16<F, U>(w);
  }
  template <class U, class F>
  [[nodiscard]] static U bits(const F& f) {
    return bfloat16_of_float<F, U>(f);
  }
};
template <class Op>
struct step_of<half, Op> : step_of_pairs<Op, half_format> {};
template <class Op>
struct step_of<bfloat16, Op> : step_of_pairs<Op, bfloat16_format> {};

template <class T, class Op>
void reduce_kernel_for(std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) noexcept {
  using raw = typename step_of<T, Op>::raw;
  const auto step = [](std::byte* to, const std::byte* x, const std::byte* y, std::size_t size) {
    raw p{};
    raw q{};
    std::memcpy(&p, x, size);
    std::memcpy(&q, y, size);
    const raw r = step_of<T, Op>::of(p, q);
    std::memcpy(to, &r, size);
  };
  const std::size_t total = count * sizeof(T);
  std::size_t at = 0;
  for (; at + 4 * sizeof(raw) <= total; at += 4 * sizeof(raw))
    for (std::size_t k = 0; k < 4 * sizeof(raw); k += sizeof(raw))
      step(into + at + k, a + at + k, b + at + k, sizeof(raw));
  for (; at + sizeof(raw) <= total; at += sizeof(raw)) step(into + at, a + at, b + at, sizeof(raw));
  if (at != total) step(into + at, a + at, b + at, total - at);  // the idle lanes compute on zeros
}

template <class T>
void divide_kernel_for(std::byte* data, std::size_t count, std::uint32_t by) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(static_cast<void*>(&x), data + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, half>)
      x = to_half(to_float(x) / static_cast<float>(by));
    else if constexpr (std::is_same_v<T, bfloat16>)
      x = to_bfloat16(to_float(x) / static_cast<float>(by));
    else if constexpr (std::is_floating_point_v<T>)
      x = x / static_cast<T>(by);
    else if constexpr (std::is_signed_v<T>)
      x = static_cast<T>(std::int64_t{x} / std::int64_t{by});
    else
      x = static_cast<T>(std::uint64_t{x} / std::uint64_t{by});
    std::memcpy(data + i * sizeof(T), &x, sizeof(T));
  }
}

using reduce_function = void (*)(std::byte*, const std::byte*, const std::byte*, std::size_t) noexcept;
using divide_function = void (*)(std::byte*, std::size_t, std::uint32_t) noexcept;

// One row per dtype, one column per reduce_op. Sums and products of integers are unsigned: they wrap without undefined
// behaviour.
#define TOPOCOLL_KERNELS(type, arithmetic)                                                     \
  {                                                                                            \
    reduce_kernel_for<arithmetic, sum_of>, reduce_kernel_for<arithmetic, product_of>,          \
        reduce_kernel_for<type, extreme_of<true>>, reduce_kernel_for<type, extreme_of<false>>, \
        reduce_kernel_for<arithmetic, sum_of>                                                  \
  }
inline constexpr reduce_function reduce_kernels[10][5] = {TOPOCOLL_KERNELS(std::int8_t, std::uint8_t),
                                                          TOPOCOLL_KERNELS(std::uint8_t, std::uint8_t),
                                                          TOPOCOLL_KERNELS(std::int32_t, std::uint32_t),
                                                          TOPOCOLL_KERNELS(std::uint32_t, std::uint32_t),
                                                          TOPOCOLL_KERNELS(std::int64_t, std::uint64_t),
                                                          TOPOCOLL_KERNELS(std::uint64_t, std::uint64_t),
                                                          TOPOCOLL_KERNELS(half, half),
                                                          TOPOCOLL_KERNELS(float, float),
                                                          TOPOCOLL_KERNELS(double, double),
                                                          TOPOCOLL_KERNELS(bfloat16, bfloat16)};
#undef TOPOCOLL_KERNELS

inline constexpr divide_function divide_kernels[10] = {
    divide_kernel_for<std::int8_t>,   divide_kernel_for<std::uint8_t>, divide_kernel_for<std::int32_t>,
    divide_kernel_for<std::uint32_t>, divide_kernel_for<std::int64_t>, divide_kernel_for<std::uint64_t>,
    divide_kernel_for<half>,          divide_kernel_for<float>,        divide_kernel_for<double>,
    divide_kernel_for<bfloat16>};

}}}  // namespace topocoll::v0::detail
