// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 (FIPS 180-4) of bytes that come in pieces, and a comparison whose time says nothing about the digests.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace io {

/// 32 bytes, the first byte first as in the printed form.
using sha256_digest = std::array<std::byte, 32>;

namespace detail {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
inline constexpr std::array<std::uint32_t, 64> sha256_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace detail

/// A digest in the making. Pieces may be cut anywhere: the digest is that of their concatenation.
/// Cost: about 10 ns per byte without special instructions; no memory beyond the object.
class sha256 {
 public:
  template <class = void>
  sha256& update(std::span<const std::byte> piece) {
    for (const std::byte b : piece) {
      block_[filled_++] = b;
      if (filled_ == block_.size()) absorb();
    }
    length_ += piece.size();
    return *this;
  }
  sha256& update(std::string_view piece) {
    return update<>(std::span(reinterpret_cast<const std::byte*>(piece.data()), piece.size()));
  }

  /// The digest of all pieces so far. The object is used up: make a new one for another message.
  template <class = void>
  [[nodiscard]] sha256_digest finish() {
    const std::uint64_t bits = length_ * 8;
    block_[filled_++] = std::byte{0x80};
    if (filled_ > 56) {  // no room for the length, which takes the last eight bytes of a block
      while (filled_ < block_.size()) block_[filled_++] = std::byte{0};
      absorb();
    }
    while (filled_ < 56) block_[filled_++] = std::byte{0};
    for (int shift = 56; shift >= 0; shift -= 8) block_[filled_++] = static_cast<std::byte>(bits >> shift);
    absorb();
    sha256_digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  static constexpr std::uint32_t turned(std::uint32_t x, int by) { return x >> by | x << (32 - by); }

  template <class = void>
  void absorb() {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block_.size(); ++i)
      w[i / 4] = w[i / 4] << 8U | std::to_integer<std::uint32_t>(block_[i]);
    for (std::size_t t = 16; t < 64; ++t) {
      const std::uint32_t near = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10U;
      const std::uint32_t far = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3U;
      w[t] = near + w[t - 7] + far + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t choice = (e & f) ^ (~e & g);
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t first =
          h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + choice + detail::sha256_constants[t] + w[t];
      const std::uint32_t second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + majority;
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
    filled_ = 0;
  }

  // The first 32 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3).
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

/// The digest of one text.
[[nodiscard]] inline sha256_digest sha256_of(std::string_view message) { return sha256().update(message).finish(); }

/// Whether two digests are equal, in a time that does not depend on where they differ.
[[nodiscard]] inline bool same_digest(const sha256_digest& a, const sha256_digest& b) {
  unsigned differing = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differing |= std::to_integer<unsigned>(a[i] ^ b[i]);
  // volatile: a compiler that sees the loop's purpose might leave it at the first difference.
  const volatile unsigned all = differing;
  return all == 0;
}

}}}  // namespace topocoll::v0::io
