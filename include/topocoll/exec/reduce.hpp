// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise reductions on host memory: one kernel per element type and operation, found in a table.
#include <cstddef>
#include <cstdint>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/reduce_kernels.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// into[i] := a[i] ⊕ b[i] for i < count. `into` may be `a` or `b`; any other overlap is not allowed. No alignment is
/// needed.
using reduce_kernel = void (*)(std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) noexcept;

/// The kernel of an element type and an operation; `avg` has that of `sum`, the division is `divide_elements`, once, at
/// the end.
///
/// What is computed:
/// - integers: sum and prod wrap modulo 2^bits, signed ones too;
/// - half and bfloat16: each ⊕ is done in float and rounded once, to nearest even;
/// - min and max of floating-point types are the commutative ones of IEEE 754-2019 (`minimum`, `maximum`): a NaN on
///   either side gives the quiet NaN without sign and payload, and -0 is smaller than +0. So every rank gets the same
///   bits, whatever the order of its operands;
/// - sum and prod of floating-point types: as the hardware does it; which of two NaN payloads survives is not said.
///   Cost: one pass; vector instructions of whatever set the compiler was told to use, also at -O2.
[[nodiscard]] constexpr reduce_kernel reduce_kernel_of(dtype type, reduce_op op) {
  return detail::reduce_kernels[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
}

/// `reduce_kernel_of(type, op)`, applied.
template <class = void>
void reduce_elements(dtype type, reduce_op op, std::byte* into, const std::byte* a, const std::byte* b,
                     std::size_t count) noexcept {
  reduce_kernel_of(type, op)(into, a, b, count);
}

/// data[i] := data[i] / by for i < count: the second half of `avg`. Integers truncate toward zero, as NCCL does; half
/// and bfloat16 divide in float. Precondition: by > 0.
template <class = void>
void divide_elements(dtype type, std::byte* data, std::size_t count, std::uint32_t by) noexcept {
  detail::divide_kernels[static_cast<std::size_t>(type)](data, count, by);
}

}}  // namespace topocoll::v0
