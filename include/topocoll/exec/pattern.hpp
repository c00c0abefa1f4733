// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test data for collectives: inputs that depend on rank and position, and how many elements of an output are wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/float8.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 {

/// The data of one checked collective.
///
/// Element i of rank r's input is a small whole number drawn from (seed, r, p(i)), where p maps positions to a period of 4093
/// elements that is shifted by 37 after each turn: data that lands at a wrong place, comes from a wrong rank, is missing or
/// counted twice differs from what is expected, except where two drawn numbers agree by chance (1 in 2 to 1 in 100).
/// Numbers are small enough that sums of up to 127 ranks are exact in every element type, so any order of additions gives the
/// same bits; beyond that, and for `avg`, floating-point types are compared with a tolerance of `ranks` rounding errors. The
/// 8-bit floats hold no more than the whole numbers up to 8 or 16: with more ranks, that many of them, others at each
/// position, add 0 or 1 and the rest 0, so that every sum is exact, and an `avg` differs by one rounding error.
///
/// Cost: filling and checking are one pass over the data; making the tables is 4093 * ranks draws.
class pattern {
 public:
  static constexpr std::uint64_t period = 4093;  // prime: no chunk of a power of two has this length
  static constexpr std::uint64_t shift = 37;

  pattern(collective_kind what, dtype type, reduce_op op, std::uint32_t ranks, rank_id root = {},
          std::uint64_t seed = 1)
      : what_(what), type_(type), op_(op), ranks_(ranks), root_(root), seed_(seed) {}

  /// Writes rank `r`'s input, `data.size() / size_of(type)` elements, the first of which is element `first` of that input.
  void fill(rank_id r, std::span<std::byte> data, std::uint64_t first = 0) const { lay(table_of(r), data, first); }

  /// Counts the wrong elements of rank `r`'s output.
  ///
  /// @param output  what the collective gave to `r` (`output_of`): the whole array, or its shard for reduce-scatter and
  ///                scatter; not looked at for a reduce or gather on another rank than the root (0 is returned)
  /// Precondition: for all-gather, gather and all-to-all the elements divide evenly among the ranks.
  [[nodiscard]] std::uint64_t wrong(rank_id r, std::span<const std::byte> output) const {
    switch (what_) {
      case collective_kind::all_reduce: return differing(reduced(), output, 0, tolerance());
      case collective_kind::reduce: return r == root_ ? differing(reduced(), output, 0, tolerance()) : 0;
      case collective_kind::reduce_scatter: {
        const std::uint64_t per_rank = output.size() / width();
        return differing(reduced(), output, r.value * per_rank, tolerance());
      }
      case collective_kind::broadcast: return differing(table_of(root_), output, 0, 0);
      case collective_kind::scatter: return differing(table_of(root_), output, r.value * (output.size() / width()), 0);
      case collective_kind::gather:
      case collective_kind::all_gather:
      case collective_kind::all_to_all: {
        if (what_ == collective_kind::gather && r != root_) return 0;
        const std::size_t shard = output.size() / ranks_;
        std::uint64_t bad = 0;
        for (std::uint32_t from = 0; from < ranks_; ++from)
          bad += differing(table_of({from}), output.subspan(from * shard, shard),
                           what_ == collective_kind::all_to_all ? r.value * (shard / width()) : 0, 0);
        return bad;
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(size_of(type_).value); }

  /// Numbers of `r` over one period, not yet encoded.
  [[nodiscard]] std::int64_t drawn(std::uint32_t r, std::uint64_t at) const {
    // SplitMix64 (Steele, Lea and Flood, 2014): every seed gives an unrelated number.
    std::uint64_t x = seed_ * 0x9e3779b97f4a7c15U + (r * period + at + 1) * 0xd1342543de82ef95U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    x ^= x >> 31U;
    const bool combines = reduces(what_);
    if (combines && op_ == reduce_op::prod) return r == at % ranks_ ? 2 + static_cast<std::int64_t>(x & 1U) : 1;
    if (combines && (op_ == reduce_op::sum || op_ == reduce_op::avg)) {
      const std::uint32_t whole = type_ == dtype::float8_e4m3 ? 16 : type_ == dtype::float8_e5m2 ? 8 : 127;
      if (whole < 127 && ranks_ > whole && (r + at) % ranks_ >= whole) return 0;
      const std::uint64_t most = std::max<std::uint64_t>(1, whole / std::max(ranks_, 1U));
      return static_cast<std::int64_t>(x % (std::min<std::uint64_t>(most, 100) + 1));
    }
    return static_cast<std::int64_t>(x % 101);
  }

  [[nodiscard]] std::vector<std::byte> table_of(rank_id r) const {
    std::vector<double> values(period);
    for (std::uint64_t i = 0; i < period; ++i) values[i] = static_cast<double>(drawn(r.value, i));
    return encoded(values);
  }

  [[nodiscard]] std::vector<std::byte> reduced() const {
    std::vector<double> values(period);
    for (std::uint64_t i = 0; i < period; ++i) {
      std::int64_t all = drawn(0, i);
      for (std::uint32_t r = 1; r < ranks_; ++r) {
        const std::int64_t one = drawn(r, i);
        switch (op_) {
          case reduce_op::sum:
          case reduce_op::avg: all += one; break;
          case reduce_op::prod: all *= one; break;
          case reduce_op::min: all = std::min(all, one); break;
          case reduce_op::max: all = std::max(all, one); break;
        }
      }
      values[i] = static_cast<double>(all);
      if (op_ == reduce_op::avg) {
        // Narrow sums have wrapped before they are divided.
        if (type_ == dtype::int8) all = (all & 0xff) - ((all & 0x80) << 1U);
        if (type_ == dtype::uint8) all = static_cast<std::uint8_t>(all);
        const std::int64_t whole = all / static_cast<std::int64_t>(ranks_);
        values[i] = is_integer(type_) ? static_cast<double>(whole) : values[i] / ranks_;
      }
    }
    return encoded(values);
  }

  /// Largest relative difference that rounding explains.
  [[nodiscard]] double tolerance() const {
    const bool inexact = op_ == reduce_op::avg || (op_ == reduce_op::sum && ranks_ > 127);
    if (!inexact) return 0;
    switch (type_) {
      case dtype::bfloat16: return ranks_ * 0x1p-8;
      case dtype::float16: return ranks_ * 0x1p-11;
      case dtype::float32: return ranks_ * 0x1p-24;
      case dtype::float64: return ranks_ * 0x1p-53;
      case dtype::float8_e4m3: return 0x1p-3;
      case dtype::float8_e5m2: return 0x1p-2;
      default: return 0;
    }
  }

  template <class Visit>
  void with_type(Visit&& visit) const {
    switch (type_) {
      case dtype::int8: visit(std::int8_t{}); break;
      case dtype::uint8: visit(std::uint8_t{}); break;
      case dtype::int32: visit(std::int32_t{}); break;
      case dtype::uint32: visit(std::uint32_t{}); break;
      case dtype::int64: visit(std::int64_t{}); break;
      case dtype::uint64: visit(std::uint64_t{}); break;
      case dtype::float16: visit(half{}); break;
      case dtype::float32: visit(float{}); break;
      case dtype::float64: visit(double{}); break;
      case dtype::bfloat16: visit(bfloat16{}); break;
      case dtype::float8_e4m3: visit(float8_e4m3{}); break;
      case dtype::float8_e5m2: visit(float8_e5m2{}); break;
    }
  }

  /// Integers wrap, as the reductions do.
  [[nodiscard]] std::vector<std::byte> encoded(const std::vector<double>& values) const {
    std::vector<std::byte> bytes_of(values.size() * width());
    with_type([&](auto like) {
      using T = decltype(like);
      for (std::size_t i = 0; i < values.size(); ++i) {
        T element{};
        if constexpr (std::is_same_v<T, half>)
          element = to_half(static_cast<float>(values[i]));
        else if constexpr (std::is_same_v<T, bfloat16>)
          element = to_bfloat16(static_cast<float>(values[i]));
        else if constexpr (std::is_same_v<T, float8_e4m3>)
          element = to_float8_e4m3(static_cast<float>(values[i]));
        else if constexpr (std::is_same_v<T, float8_e5m2>)
          element = to_float8_e5m2(static_cast<float>(values[i]));
        else if constexpr (std::is_integral_v<T>)
          element = static_cast<T>(static_cast<std::int64_t>(values[i]));
        else
          element = static_cast<T>(values[i]);
        std::memcpy(bytes_of.data() + i * sizeof(T), &element, sizeof(T));
      }
    });
    return bytes_of;
  }

  [[nodiscard]] double decoded(const std::byte* element) const {
    double value = 0;
    with_type([&](auto like) {
      using T = decltype(like);
      T got{};
      std::memcpy(&got, element, sizeof(T));
      if constexpr (std::is_arithmetic_v<T>)
        value = static_cast<double>(got);
      else
        value = static_cast<double>(to_float(got));
    });
    return value;
  }

  /// Calls visit(position in the table, elements, position in the data) for runs that are contiguous in both.
  template <class Visit>
  static void runs(std::uint64_t first, std::uint64_t count, Visit&& visit) {
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t at = first + done;
      const std::uint64_t in_table = (at % period + at / period % period * shift) % period;
      const std::uint64_t run = std::min({count - done, period - at % period, period - in_table});
      visit(in_table, run, done);
      done += run;
    }
  }

  void lay(const std::vector<std::byte>& table, std::span<std::byte> data, std::uint64_t first) const {
    const std::size_t w = width();
    runs(first, data.size() / w, [&](std::uint64_t from, std::uint64_t run, std::uint64_t to) {
      std::memcpy(data.data() + to * w, table.data() + from * w, run * w);
    });
  }

  [[nodiscard]] std::uint64_t differing(const std::vector<std::byte>& table, std::span<const std::byte> data,
                                        std::uint64_t first, double allowed) const {
    const std::size_t w = width();
    std::uint64_t bad = 0;
    runs(first, data.size() / w, [&](std::uint64_t from, std::uint64_t run, std::uint64_t to) {
      const std::byte* want = table.data() + from * w;
      const std::byte* have = data.data() + to * w;
      if (std::memcmp(want, have, run * w) == 0) return;
      for (std::uint64_t i = 0; i < run; ++i) {
        if (std::memcmp(want + i * w, have + i * w, w) == 0) continue;
        const double right = decoded(want + i * w);
        const double got = decoded(have + i * w);
        if (!(std::abs(got - right) <= allowed * std::abs(right))) ++bad;
      }
    });
    return bad;
  }

  collective_kind what_;
  dtype type_;
  reduce_op op_;
  std::uint32_t ranks_;
  rank_id root_;
  std::uint64_t seed_;
};

}}  // namespace topocoll::v0
