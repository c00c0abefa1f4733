// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels behind reduce.hpp, one per element type, operation and instruction set, written on short vectors so that no
// optimiser has to find them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <topocoll/exec/detail/reduce_steps.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

// What a kernel is told: into every output goes ((s0 + s1) + s2) ..., with any other operation for +.
struct reduce_job {
  const std::byte* const* sources = nullptr;
  std::size_t source_count = 1;
  std::byte* const* outputs = nullptr;
  std::size_t output_count = 1;
  std::uint32_t divide_by = 1;  ///< the result, before it is rounded; integers are not divided here
  bool round_each_step = false;
  bool streaming = false;  ///< every output is aligned to the vectors of the kernel at byte `at`
};

// From byte `at` to byte `end` of sources and outputs.
using reduce_function = void (*)(const reduce_job& job, std::size_t at, std::size_t end) noexcept;
using divide_function = void (*)(std::byte*, std::size_t, std::uint32_t) noexcept;

inline const std::byte* copied_rest(std::byte* rest, const std::byte* from, std::size_t size) noexcept {
  std::memcpy(rest, from, size);
  return rest;
}

// All of a kernel that has instructions of one set. A macro, because the attribute cannot depend on a template parameter,
// and g++ takes the width of vectors from the function in which their operations stand.
// NOLINTBEGIN(bugprone-macro-parentheses): names of functions and types, which cannot be in parentheses
#define TOPOCOLL_REDUCE_LEVEL(level, bytes, attribute)                                                                 \
  template <class T, class Op>                                                                                         \
  attribute void level(const reduce_job& job, std::size_t at, std::size_t end) noexcept {                              \
    using block = block_of<T, bytes>;                                                                                  \
    using number = typename block::number;                                                                             \
    using vector = typename block::vector;                                                                             \
    using numbers = typename block::numbers;                                                                           \
    using elements = typename block::elements;                                                                         \
    using again = typename block::again;                                                                               \
    using step = typename Op::template of<number, sizeof(vector)>;                                                     \
    alignas(64) std::byte rest[block::size];                                                                           \
    const std::byte* const* const sources = job.sources;                                                               \
    const std::size_t source_count = job.source_count;                                                                 \
    for (; at < end; at += block::size) {                                                                              \
      const std::size_t left = end - at;                                                                               \
      const bool whole = left >= block::size;                                                                          \
      if (!whole) std::memset(rest, 0, block::size);                                                                   \
      const typename block::input first{whole ? sources[0] + at : copied_rest(rest, sources[0] + at, left)};           \
      vector a = numbers{first.a}.value, b = numbers{first.b}.value;                                                   \
      vector c = numbers{first.c}.value, d = numbers{first.d}.value;                                                   \
      for (std::size_t k = 1; k < source_count; ++k) {                                                                 \
        const typename block::input next{whole ? sources[k] + at : copied_rest(rest, sources[k] + at, left)};          \
        const vector na = numbers{next.a}.value, nb = numbers{next.b}.value;                                           \
        const vector nc = numbers{next.c}.value, nd = numbers{next.d}.value;                                           \
        a = step{a, na}.value, b = step{b, nb}.value, c = step{c, nc}.value, d = step{d, nd}.value;                    \
        if constexpr (block::rounds) {                                                                                 \
          if (job.round_each_step) {                                                                                   \
            const auto ea = elements{a}.value, eb = elements{b}.value, ec = elements{c}.value, ed = elements{d}.value; \
            a = again{ea}.value, b = again{eb}.value, c = again{ec}.value, d = again{ed}.value;                        \
          }                                                                                                            \
        }                                                                                                              \
      }                                                                                                                \
      if constexpr (std::is_floating_point_v<number>) {                                                                \
        if (job.divide_by != 1) {                                                                                      \
          const number by = static_cast<number>(job.divide_by);                                                        \
          a = a / by, b = b / by, c = c / by, d = d / by;                                                              \
        }                                                                                                              \
      }                                                                                                                \
      const auto ea = elements{a}.value, eb = elements{b}.value, ec = elements{c}.value, ed = elements{d}.value;       \
      const typename block::output out{ea, eb, ec, ed};                                                                \
      using stored = typename block::stored;                                                                           \
      using floats = pack_t<float, sizeof(out.r0)>;                                                                    \
      for (std::size_t k = 0; k < job.output_count; ++k) {                                                             \
        std::byte* const to = whole ? job.outputs[k] + at : rest;                                                      \
        if (whole && job.streaming) {                                                                                  \
          stream(to, __builtin_bit_cast(floats, out.r0));                                                              \
          if constexpr (block::pieces > 1) stream(to + sizeof(floats), __builtin_bit_cast(floats, out.r1));            \
          if constexpr (block::pieces > 2) stream(to + 2 * sizeof(floats), __builtin_bit_cast(floats, out.r2));        \
          if constexpr (block::pieces > 2) stream(to + 3 * sizeof(floats), __builtin_bit_cast(floats, out.r3));        \
        } else {                                                                                                       \
          stored::at(to).vector = out.r0;                                                                              \
          if constexpr (block::pieces > 1) stored::at(to + sizeof(floats)).vector = out.r1;                            \
          if constexpr (block::pieces > 2) stored::at(to + 2 * sizeof(floats)).vector = out.r2;                        \
          if constexpr (block::pieces > 2) stored::at(to + 3 * sizeof(floats)).vector = out.r3;                        \
        }                                                                                                              \
        if (!whole) std::memcpy(job.outputs[k] + at, rest, left);                                                      \
      }                                                                                                                \
    }                                                                                                                  \
  }

TOPOCOLL_REDUCE_LEVEL(reduce_baseline, 16, )
#ifdef TOPOCOLL_X86_LEVELS
TOPOCOLL_REDUCE_LEVEL(reduce_avx2, 32, TOPOCOLL_AVX2)
TOPOCOLL_REDUCE_LEVEL(reduce_avx512, 64, TOPOCOLL_AVX512)
#endif
#undef TOPOCOLL_REDUCE_LEVEL
#undef TOPOCOLL_AVX2
#undef TOPOCOLL_AVX512

// One row per dtype, one column per operation: sum, prod, min, max. Sums and products of integers are unsigned: they wrap
// without undefined behaviour. Templates, so that only who reduces compiles them.
#define TOPOCOLL_ROW(kernel, type, arithmetic)                                                  \
  {                                                                                             \
    kernel<arithmetic, sum_of>, kernel<arithmetic, product_of>, kernel<type, extreme_of<true>>, \
        kernel<type, extreme_of<false>>                                                         \
  }
#define TOPOCOLL_TABLE(kernel)                                                                                      \
  {                                                                                                                 \
    TOPOCOLL_ROW(kernel, std::int8_t, std::uint8_t), TOPOCOLL_ROW(kernel, std::uint8_t, std::uint8_t),              \
        TOPOCOLL_ROW(kernel, std::int32_t, std::uint32_t), TOPOCOLL_ROW(kernel, std::uint32_t, std::uint32_t),      \
        TOPOCOLL_ROW(kernel, std::int64_t, std::uint64_t), TOPOCOLL_ROW(kernel, std::uint64_t, std::uint64_t),      \
        TOPOCOLL_ROW(kernel, half, half), TOPOCOLL_ROW(kernel, float, float), TOPOCOLL_ROW(kernel, double, double), \
        TOPOCOLL_ROW(kernel, bfloat16, bfloat16), TOPOCOLL_ROW(kernel, float8_e4m3, float8_e4m3),                   \
        TOPOCOLL_ROW(kernel, float8_e5m2, float8_e5m2)                                                              \
  }
template <class = void>
inline constexpr reduce_function baseline_kernels[][4] = TOPOCOLL_TABLE(reduce_baseline);
#ifdef TOPOCOLL_X86_LEVELS
template <class = void>
inline constexpr reduce_function avx2_kernels[][4] = TOPOCOLL_TABLE(reduce_avx2);
// Sums only: the others gain less than they cost to compile, and g++ 12 has no comparison of 64-byte vectors.
template <class = void>
inline constexpr reduce_function avx512_sums[] = {
    reduce_avx512<std::uint8_t, sum_of>,  reduce_avx512<std::uint8_t, sum_of>,  reduce_avx512<std::uint32_t, sum_of>,
    reduce_avx512<std::uint32_t, sum_of>, reduce_avx512<std::uint64_t, sum_of>, reduce_avx512<std::uint64_t, sum_of>,
    reduce_avx512<half, sum_of>,          reduce_avx512<float, sum_of>,         reduce_avx512<double, sum_of>,
    reduce_avx512<bfloat16, sum_of>,      reduce_avx512<float8_e4m3, sum_of>,   reduce_avx512<float8_e5m2, sum_of>};
#endif
#undef TOPOCOLL_TABLE
#undef TOPOCOLL_ROW
// NOLINTEND(bugprone-macro-parentheses)

// Vectors have no division of integers.
template <class T>
void divide_integers(std::byte* data, std::size_t count, std::uint32_t by) noexcept {
  using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, data + i * sizeof(T), sizeof(T));
    x = static_cast<T>(wide{x} / wide{by});
    std::memcpy(data + i * sizeof(T), &x, sizeof(T));
  }
}
template <class = void>
inline constexpr divide_function divide_kernels[] = {divide_integers<std::int8_t>,  divide_integers<std::uint8_t>,
                                                     divide_integers<std::int32_t>, divide_integers<std::uint32_t>,
                                                     divide_integers<std::int64_t>, divide_integers<std::uint64_t>};

// What of an array is worked on before the next operand or output is taken: fits into the first cache beside others.
inline constexpr std::size_t piece_bytes = 8192;

// A job over `count` elements: streaming from the first aligned vector on, and integers divided.
template <class Deferred = void>
void run_many(reduce_function run, dtype type, std::size_t vector_bytes, reduce_job job, std::size_t count) noexcept {
  const auto width = static_cast<std::size_t>(size_of(type).value);
  const std::size_t total = count * width;
  if (job.source_count == 0 || job.output_count == 0 || total == 0) return;
  if (is_integer(type) && job.divide_by != 1) {
    job.streaming = false;
    const std::size_t outputs = job.output_count;
    job.output_count = 1;
    for (std::size_t at = 0; at < total; at += piece_bytes) {
      const std::size_t size = total - at < piece_bytes ? total - at : piece_bytes;
      run(job, at, at + size);
      divide_kernels<Deferred>[static_cast<std::size_t>(type)](job.outputs[0] + at, size / width, job.divide_by);
      for (std::size_t k = 1; k < outputs; ++k) std::memcpy(job.outputs[k] + at, job.outputs[0] + at, size);
    }
    return;
  }
  if (!job.streaming) return run(job, 0, total);
  const auto beyond = [&](std::size_t k) { return reinterpret_cast<std::uintptr_t>(job.outputs[k]) % vector_bytes; };
  std::size_t head = (vector_bytes - beyond(0)) % vector_bytes;
  if (head > total) head = total;
  job.streaming = head % width == 0;
  for (std::size_t k = 1; k < job.output_count; ++k) job.streaming = job.streaming && beyond(k) == beyond(0);
  if (!job.streaming) return run(job, 0, total);
  job.streaming = false;
  run(job, 0, head);
  job.streaming = true;
  run(job, head, total);
  end_of_streaming();
}

}}}  // namespace topocoll::v0::detail
