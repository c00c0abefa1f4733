// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seam between programs and memory: allocate, copy, reduce. Host memory is the implementation that needs nothing
// else.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/reduce.hpp>

namespace topocoll { inline namespace v0 {

/// Where the buffers of a collective lie. Implemented by `host_memory`, later by device memory.
///
/// Laws that the compiler cannot check:
/// - `allocate` gives memory aligned for every element type, or `unavailable`; nothing for zero bytes; `release` takes
///   back exactly what `allocate` gave;
/// - `copy`, `reduce` and `divide` have finished when they return, and mean what `reduce.hpp` says: `copy` of a range
///   onto itself is allowed, other overlaps are not; `reduce` may write into one of its operands;
/// - one thread at a time uses a memory space.
template <class M>
concept MemorySpace = std::movable<M> &&
    requires(M& m, std::span<std::byte> given, std::byte* into, const std::byte* from, bytes size, std::uint64_t count,
             std::uint32_t by, dtype type, reduce_op op) {
  { m.allocate(size) } -> std::same_as<result<std::span<std::byte>>>;
  { m.release(given) }
  noexcept;
  { m.copy(into, from, size) } -> std::same_as<result<void>>;
  { m.reduce(type, op, into, from, from, count) } -> std::same_as<result<void>>;  ///< into[i] := a[i] ⊕ b[i]
  { m.divide(type, into, count, by) } -> std::same_as<result<void>>;              ///< into[i] := into[i] / by
};

/// Says in words what keeps `M` from being a `MemorySpace`.
template <class M>
constexpr void require_memory_space() {
  static_assert(std::movable<M>, "a MemorySpace can be moved");
  static_assert(
      requires(M & m, bytes n) {
        { m.allocate(n) } -> std::same_as<result<std::span<std::byte>>>;
      },
      "a MemorySpace has allocate(bytes) returning result<std::span<std::byte>>");
  static_assert(
      requires(M & m, std::span<std::byte> s) {
        { m.release(s) }
        noexcept;
      },
      "a MemorySpace has release(span) noexcept");
  static_assert(
      requires(M & m, std::byte * a, const std::byte* b, bytes n) {
        { m.copy(a, b, n) } -> std::same_as<result<void>>;
      },
      "a MemorySpace has copy(into, from, bytes) returning result<void>");
  static_assert(
      requires(M & m, std::byte * a, const std::byte* b, dtype d, reduce_op o, std::uint64_t n) {
        { m.reduce(d, o, a, b, b, n) } -> std::same_as<result<void>>;
      },
      "a MemorySpace has reduce(dtype, reduce_op, into, a, b, count) returning result<void>");
  static_assert(
      requires(M & m, std::byte * a, dtype d, std::uint64_t n, std::uint32_t by) {
        { m.divide(d, a, n, by) } -> std::same_as<result<void>>;
      },
      "a MemorySpace has divide(dtype, data, count, by) returning result<void>");
  static_assert(MemorySpace<M>);
}

/// Ordinary memory of this process. Has no state: every object stands for the same memory.
class host_memory {
 public:
  /// Aligned to a cache line, contents unspecified. Cost: the first write to each page is dear, so keep what you get.
  [[nodiscard]] result<std::span<std::byte>> allocate(bytes size) {
    if (size.value == 0) return std::span<std::byte>{};
    void* memory = ::operator new(size.value, alignment, std::nothrow);
    if (memory == nullptr)
      return fail(errc::unavailable, "the system has no " + std::to_string(size.value) + " bytes of memory to give");
    return std::span<std::byte>{static_cast<std::byte*>(memory), static_cast<std::size_t>(size.value)};
  }
  void release(std::span<std::byte> given) noexcept {
    if (!given.empty()) ::operator delete(given.data(), alignment);
  }
  [[nodiscard]] result<void> copy(std::byte* into, const std::byte* from, bytes size) {
    if (into != from && size.value != 0) std::memcpy(into, from, size.value);
    return {};
  }
  [[nodiscard]] result<void> reduce(dtype type, reduce_op op, std::byte* into, const std::byte* a, const std::byte* b,
                                    std::uint64_t count) {
    reduce_elements(type, op, into, a, b, count);
    return {};
  }
  [[nodiscard]] result<void> divide(dtype type, std::byte* data, std::uint64_t count, std::uint32_t by) {
    if (by == 0) return fail(errc::invalid_argument, "an average over no ranks is asked for");
    divide_elements(type, data, count, by);
    return {};
  }

 private:
  static constexpr std::align_val_t alignment{
      64};  // a cache line of every processor this runs on, and more than any element asks
};
static_assert(MemorySpace<host_memory>);

}}  // namespace topocoll::v0
