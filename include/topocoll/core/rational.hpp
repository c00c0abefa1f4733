// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact fractions for bounds: either right or visibly not a number, never rounded, never wrapped.
#include <compare>
#include <cstdint>

namespace topocoll { inline namespace v0 {

/// A fraction in lowest terms with a positive 64-bit denominator.
///
/// Intermediate results use 128 bits; a result that does not fit, and division by zero, give the invalid value, which is
/// contagious, unordered and unequal to everything. Cost of every operation: O(log) for the common divisor.
class rational {
 public:
  constexpr rational() = default;
  constexpr rational(std::int64_t whole) : rational(whole, 1) {}
  constexpr rational(std::int64_t num, std::int64_t den) { *this = reduced(num, den); }

  /// False after an overflow or a division by zero somewhere upstream.
  [[nodiscard]] constexpr bool valid() const { return den_ != 0; }
  [[nodiscard]] constexpr std::int64_t numerator() const { return num_; }
  [[nodiscard]] constexpr std::int64_t denominator() const { return den_; }
  [[nodiscard]] constexpr double to_double() const { return static_cast<double>(num_) / static_cast<double>(den_); }

  friend constexpr rational operator+(rational a, rational b) {
    if (!a.valid() || !b.valid()) return invalid();
    return reduced(wide{a.num_} * b.den_ + wide{b.num_} * a.den_, wide{a.den_} * b.den_);
  }
  friend constexpr rational operator-(rational a, rational b) {
    if (!a.valid() || !b.valid()) return invalid();
    return reduced(wide{a.num_} * b.den_ - wide{b.num_} * a.den_, wide{a.den_} * b.den_);
  }
  friend constexpr rational operator*(rational a, rational b) {
    if (!a.valid() || !b.valid()) return invalid();
    return reduced(wide{a.num_} * b.num_, wide{a.den_} * b.den_);
  }
  friend constexpr rational operator/(rational a, rational b) {
    if (!a.valid() || !b.valid()) return invalid();
    return reduced(wide{a.num_} * b.den_, wide{a.den_} * b.num_);
  }
  friend constexpr bool operator==(rational a, rational b) {
    return a.valid() && b.valid() && a.num_ == b.num_ && a.den_ == b.den_;
  }
  friend constexpr std::partial_ordering operator<=>(rational a, rational b) {
    if (!a.valid() || !b.valid()) return std::partial_ordering::unordered;
    const wide left = wide{a.num_} * b.den_;
    const wide right = wide{b.num_} * a.den_;
    return left < right ? std::partial_ordering::less
                        : (left > right ? std::partial_ordering::greater : std::partial_ordering::equivalent);
  }

 private:
  __extension__ typedef __int128 wide;  // nvcc takes this form, not `using`

  static constexpr rational invalid() {
    rational r;
    r.num_ = 0;
    r.den_ = 0;
    return r;
  }
  static constexpr rational reduced(wide num, wide den) {
    if (den == 0) return invalid();
    if (den < 0) {
      num = -num;
      den = -den;
    }
    wide a = num < 0 ? -num : num;
    wide b = den;
    while (b != 0) {
      const wide rest = a % b;
      a = b;
      b = rest;
    }
    if (a > 1) {
      num /= a;
      den /= a;
    }
    constexpr wide most = INT64_MAX;
    if (num > most || num < -most || den > most) return invalid();
    rational r;
    r.num_ = static_cast<std::int64_t>(num);
    r.den_ = static_cast<std::int64_t>(den);
    return r;
  }

  std::int64_t num_ = 0;
  std::int64_t den_ = 1;
};

}}  // namespace topocoll::v0
