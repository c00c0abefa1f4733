// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes, seconds and bytes per second as types that cannot be mixed up.
#include <compare>
#include <cstdint>

namespace topocoll { inline namespace v0 {

/// An amount of data. 64-bit, so 16 EiB; arithmetic is the unsigned arithmetic of std::uint64_t.
struct bytes {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(bytes, bytes) = default;
  friend constexpr bool operator==(bytes, bytes) = default;
  constexpr bytes& operator+=(bytes o) {
    value += o.value;
    return *this;
  }
  constexpr bytes& operator-=(bytes o) {
    value -= o.value;
    return *this;
  }
};

/// A span of time. Negative values are differences that went the other way.
struct seconds {
  double value = 0;

  friend constexpr auto operator<=>(seconds, seconds) = default;
  friend constexpr bool operator==(seconds, seconds) = default;
  constexpr seconds& operator+=(seconds o) {
    value += o.value;
    return *this;
  }
  constexpr seconds& operator-=(seconds o) {
    value -= o.value;
    return *this;
  }
};

/// A rate of data in one direction. GB/s means 1e9 bytes per second, Gb/s means 1.25e8 bytes per second.
struct bytes_per_second {
  double value = 0;

  friend constexpr auto operator<=>(bytes_per_second, bytes_per_second) = default;
  friend constexpr bool operator==(bytes_per_second, bytes_per_second) = default;
  constexpr bytes_per_second& operator+=(bytes_per_second o) {
    value += o.value;
    return *this;
  }
};

constexpr bytes operator+(bytes a, bytes b) { return {a.value + b.value}; }
constexpr bytes operator-(bytes a, bytes b) { return {a.value - b.value}; }
constexpr bytes operator*(bytes a, std::uint64_t n) { return {a.value * n}; }
constexpr bytes operator*(std::uint64_t n, bytes a) { return {a.value * n}; }
constexpr bytes operator/(bytes a, std::uint64_t n) { return {a.value / n}; }

constexpr seconds operator+(seconds a, seconds b) { return {a.value + b.value}; }
constexpr seconds operator-(seconds a, seconds b) { return {a.value - b.value}; }
constexpr seconds operator*(seconds a, double factor) { return {a.value * factor}; }
constexpr seconds operator*(double factor, seconds a) { return {a.value * factor}; }
constexpr seconds operator/(seconds a, double factor) { return {a.value / factor}; }

constexpr bytes_per_second operator+(bytes_per_second a, bytes_per_second b) { return {a.value + b.value}; }
constexpr bytes_per_second operator-(bytes_per_second a, bytes_per_second b) { return {a.value - b.value}; }
constexpr bytes_per_second operator*(bytes_per_second a, double factor) { return {a.value * factor}; }
constexpr bytes_per_second operator*(double factor, bytes_per_second a) { return {a.value * factor}; }
constexpr bytes_per_second operator/(bytes_per_second a, double factor) { return {a.value / factor}; }

/// Rate of `amount` moved in `time`; infinite for no time, as IEEE division gives it.
constexpr bytes_per_second operator/(bytes amount, seconds time) {
  return {static_cast<double>(amount.value) / time.value};
}
/// Time that `amount` takes at `rate`; infinite for a dead link, as IEEE division gives it.
constexpr seconds operator/(bytes amount, bytes_per_second rate) {
  return {static_cast<double>(amount.value) / rate.value};
}

/// Same by same is a ratio.
constexpr double operator/(bytes a, bytes b) { return static_cast<double>(a.value) / static_cast<double>(b.value); }
constexpr double operator/(seconds a, seconds b) { return a.value / b.value; }
constexpr double operator/(bytes_per_second a, bytes_per_second b) { return a.value / b.value; }

inline namespace literals {

constexpr bytes operator""_B(unsigned long long n) { return {n}; }
constexpr bytes operator""_KiB(unsigned long long n) { return {n << 10U}; }
constexpr bytes operator""_MiB(unsigned long long n) { return {n << 20U}; }
constexpr bytes operator""_GiB(unsigned long long n) { return {n << 30U}; }

constexpr seconds operator""_s(unsigned long long n) { return {static_cast<double>(n)}; }
constexpr seconds operator""_s(long double n) { return {static_cast<double>(n)}; }
constexpr seconds operator""_ms(unsigned long long n) { return {static_cast<double>(n) * 1e-3}; }
constexpr seconds operator""_ms(long double n) { return {static_cast<double>(n) * 1e-3}; }
constexpr seconds operator""_us(unsigned long long n) { return {static_cast<double>(n) * 1e-6}; }
constexpr seconds operator""_us(long double n) { return {static_cast<double>(n) * 1e-6}; }
constexpr seconds operator""_ns(unsigned long long n) { return {static_cast<double>(n) * 1e-9}; }

/// 1 GB/s = 1e9 bytes per second.
constexpr bytes_per_second operator""_GBps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr bytes_per_second operator""_GBps(long double n) { return {static_cast<double>(n) * 1e9}; }
/// 1 Gb/s = 1e9 bits per second = 1.25e8 bytes per second, as network speeds are written.
constexpr bytes_per_second operator""_Gbps(unsigned long long n) { return {static_cast<double>(n) * 1.25e8}; }
constexpr bytes_per_second operator""_Gbps(long double n) { return {static_cast<double>(n) * 1.25e8}; }

}  // namespace literals

}}  // namespace topocoll::v0
