// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise reductions on host memory, of two operands or of many at once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/reduce_kernels.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// Instruction sets that kernels are compiled for, whatever the compiler was told to use; each has wider vectors than the
/// one before it.
enum class vector_level : std::uint8_t {
  baseline,  ///< 16-byte vectors of whatever the compiler was told to use
  avx2,      ///< x86-64 with AVX2 and F16C
  avx512     ///< and with AVX-512 F, BW, DQ and VL; used for sums
};

[[nodiscard]] constexpr std::string_view to_string(vector_level l) {
  constexpr std::string_view words[] = {"baseline", "avx2", "avx512"};
  return words[static_cast<std::size_t>(l)];
}

/// The widest level that this processor and its system have. Cost: a few loads.
template <class = void>
[[nodiscard]] vector_level best_vector_level() noexcept {
#ifdef TOPOCOLL_X86_LEVELS
  if (!__builtin_cpu_supports("avx2")) return vector_level::baseline;
#ifndef __clang__  // which has no word for it; processors with AVX2 have F16C, but a virtual one may hide it
  if (!__builtin_cpu_supports("f16c")) return vector_level::baseline;
#endif
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return vector_level::avx512;
  return vector_level::avx2;
#else
  return vector_level::baseline;
#endif
}

/// How `reduce_many` computes and stores.
struct reduce_many_options {
  /// Of half, bfloat16 and the 8-bit floats. False: the operands are combined in float and the result is rounded once. True:
  /// it is rounded after each operand, so that the bits are those of `reduce_elements`, operand after operand.
  bool round_each_step = false;
  /// Store past the caches, for outputs that nobody on this core reads soon. It needs outputs whose addresses differ by
  /// multiples of 64 and begin at an element's boundary from there; else, and for divided integers, stores are ordinary.
  /// Other threads see the results once they see anything that this thread does afterwards, as with ordinary stores.
  bool streaming_stores = false;
  /// Divides the result, for `avg`: in the type that is computed in, before the last rounding; integers truncate toward
  /// zero. At least 1.
  std::uint32_t divide_by = 1;
};

/// The kernel of an element type and an operation, found once and called often.
class reduce_kernel {
 public:
  constexpr reduce_kernel(dtype type, vector_level level, detail::reduce_function run)
      : run_(run), width_(static_cast<std::size_t>(size_of(type).value)), type_(type), level_(level) {}

  /// into[i] := a[i] ⊕ b[i] for i < count. `into` may be `a` or `b`; any other overlap is not allowed. No alignment is
  /// needed.
  void operator()(std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) const noexcept {
    const std::byte* const sources[] = {a, b};
    run_({.sources = sources, .source_count = 2, .outputs = &into}, 0, count * width_);
  }
  /// As `reduce_many` of an element type and an operation.
  void operator()(std::span<std::byte* const> outputs, std::span<const std::byte* const> sources, std::size_t count,
                  reduce_many_options options = {}) const noexcept {
    detail::run_many(run_, type_, std::size_t{16} << static_cast<std::size_t>(level_),
                     {.sources = sources.data(),
                      .source_count = sources.size(),
                      .outputs = outputs.data(),
                      .output_count = outputs.size(),
                      .divide_by = options.divide_by,
                      .round_each_step = options.round_each_step,
                      .streaming = options.streaming_stores},
                     count);
  }
  [[nodiscard]] constexpr vector_level level() const noexcept { return level_; }

 private:
  detail::reduce_function run_;
  std::size_t width_;
  dtype type_;
  vector_level level_;
};

/// The kernel of an element type and an operation; `avg` has that of `sum`, the division is `divide_elements`, once, at
/// the end. With a level: that of this level or of the nearest below it that has one; the processor must have it.
///
/// What is computed:
/// - integers: sum and prod wrap modulo 2^bits, signed ones too;
/// - half, bfloat16 and the 8-bit floats: each ⊕ is done in float and rounded once, to nearest even; what is too large
///   becomes an infinity in half and bfloat16, the largest number in the 8-bit floats (float8.hpp);
/// - min and max of floating-point types are the commutative ones of IEEE 754-2019 (`minimum`, `maximum`): a NaN on
///   either side gives the quiet NaN without sign and payload (0x7f in the 8-bit floats), and -0 is smaller than +0. So
///   every rank gets the same bits, whatever the order of its operands;
/// - sum and prod of floating-point types: as the hardware does it; which of two NaN payloads survives is not said, not
///   even between levels. All other bits are the same at every level.
/// Cost: one pass.
template <class Deferred = void>
[[nodiscard]] reduce_kernel reduce_kernel_of(dtype type, reduce_op op, vector_level level) noexcept {
  const auto row = static_cast<std::size_t>(type);
  const std::size_t column = op == reduce_op::avg ? 0 : static_cast<std::size_t>(op);
#ifdef TOPOCOLL_X86_LEVELS
  if (level == vector_level::avx512 && column == 0) return {type, level, detail::avx512_sums<Deferred>[row]};
  if (level != vector_level::baseline) return {type, vector_level::avx2, detail::avx2_kernels<Deferred>[row][column]};
#endif
  (void)level;
  return {type, vector_level::baseline, detail::baseline_kernels<Deferred>[row][column]};
}
template <class = void>
[[nodiscard]] reduce_kernel reduce_kernel_of(dtype type, reduce_op op) noexcept {
  return reduce_kernel_of(type, op, best_vector_level());
}

/// `reduce_kernel_of(type, op)`, applied.
template <class = void>
void reduce_elements(dtype type, reduce_op op, std::byte* into, const std::byte* a, const std::byte* b,
                     std::size_t count) noexcept {
  // Up to 64 bytes, a block of the baseline, wider vectors would only be filled with zeros. The narrow floats gain from
  // the conversions of the other levels even so.
  const bool converts = !is_integer(type) && type != dtype::float32 && type != dtype::float64;
  const bool one_block = !converts && count <= 64 / size_of(type).value;
  reduce_kernel_of(type, op, one_block ? vector_level::baseline : best_vector_level())(into, a, b, count);
}

/// out[i] := ((s0[i] ⊕ s1[i]) ⊕ s2[i]) ⊕ ... for every output and i < count, always in this order.
///
/// @param outputs  each may be one of the sources; any other overlap, of outputs too, is not allowed
/// @param sources  with none, nothing is written; one is copied
/// @param options  what rounding, stores and division there are; `avg` is a sum with `divide_by` the number of operands
/// What ⊕ is: see `reduce_kernel_of`. The 16-bit and 8-bit floats are rounded once, at the end, unless told otherwise: an
/// intermediate sum may then be larger than the type holds.
/// Cost: reads each source and writes each output once (divided integers: outputs are read again, from the cache).
template <class = void>
void reduce_many(dtype type, reduce_op op, std::span<std::byte* const> outputs,
                 std::span<const std::byte* const> sources, std::size_t count,
                 reduce_many_options options = {}) noexcept {
  reduce_kernel_of(type, op)(outputs, sources, count, options);
}
/// The same with one output.
template <class = void>
void reduce_many(dtype type, reduce_op op, std::byte* into, std::span<const std::byte* const> sources,
                 std::size_t count, reduce_many_options options = {}) noexcept {
  reduce_kernel_of(type, op)({&into, 1}, sources, count, options);
}

/// data[i] := data[i] / by for i < count: the second half of `avg`. Integers truncate toward zero, as NCCL does; 16-bit
/// and 8-bit floats divide in float. Precondition: by > 0.
template <class = void>
void divide_elements(dtype type, std::byte* data, std::size_t count, std::uint32_t by) noexcept {
  const std::byte* const source = data;
  reduce_kernel_of(type, reduce_op::sum)({&data, 1}, {&source, 1}, count, {.divide_by = by});
}

/// A reduction of the caller: elements of any size, any operation.
struct custom_reduction {
  /// into[i] := a[i] ⊕ b[i] for i < count, elements being `element_size` bytes; `into` may be `a` or `b`. Must not throw.
  /// Ranks that reduce in different orders agree only when ⊕ is associative and commutative.
  void (*function)(void* context, std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) = nullptr;
  void* context = nullptr;  ///< given to `function` as it is; lives as long as the reduction is used
  std::size_t element_size = 1;
};

/// `reduction.function`, applied.
inline void reduce_elements(const custom_reduction& reduction, std::byte* into, const std::byte* a, const std::byte* b,
                            std::size_t count) {
  reduction.function(reduction.context, into, a, b, count);
}

/// As the other `reduce_many`, piece by piece so that intermediate results stay in the cache.
///
/// @param outputs  the first may be `sources[0]` or `sources[1]`, the others any of the sources
template <class = void>
void reduce_many(const custom_reduction& reduction, std::span<std::byte* const> outputs,
                 std::span<const std::byte* const> sources, std::size_t count) {
  if (sources.empty() || outputs.empty() || reduction.element_size == 0) return;
  const std::size_t size = reduction.element_size;
  const std::size_t per_piece = size < detail::piece_bytes ? detail::piece_bytes / size : 1;
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = count - done < per_piece ? count - done : per_piece;
    const std::size_t at = done * size;
    std::byte* const into = outputs[0] + at;
    if (sources.size() == 1 && outputs[0] != sources[0]) std::memcpy(into, sources[0] + at, n * size);
    if (sources.size() > 1) reduction.function(reduction.context, into, sources[0] + at, sources[1] + at, n);
    for (std::size_t k = 2; k < sources.size(); ++k)
      reduction.function(reduction.context, into, into, sources[k] + at, n);
    for (std::size_t k = 1; k < outputs.size(); ++k) std::memcpy(outputs[k] + at, into, n * size);
    done += n;
  }
}
template <class = void>
void reduce_many(const custom_reduction& reduction, std::byte* into, std::span<const std::byte* const> sources,
                 std::size_t count) {
  reduce_many(reduction, std::span<std::byte* const>(&into, 1), sources, count);
}

#undef TOPOCOLL_X86_LEVELS

}}  // namespace topocoll::v0
