// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reproducible choices from a seed, the same on every platform.
#include <cstdint>

namespace topocoll { inline namespace v0 { namespace detail {

/// A stream of 64-bit numbers. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014 (SplitMix64).
class random_stream {
 public:
  constexpr explicit random_stream(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// A number below `n`, which must not be 0; every one equally likely, by refusing the uneven rest.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t rest = (0 - n) % n;  // 2^64 mod n
    std::uint64_t x = next();
    while (x < rest) x = next();
    return x % n;
  }

 private:
  std::uint64_t state_;
};

}}}  // namespace topocoll::v0::detail
