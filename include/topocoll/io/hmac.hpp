// SPDX-License-Identifier: Apache-2.0
#pragma once
// HMAC-SHA-256 (RFC 2104, FIPS 198-1): shows that whoever made a message knows a key, without showing the key.
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <topocoll/io/sha256.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// The authentication code of a message that comes in pieces, as `sha256`. Compare codes with `same_digest` only.
class hmac_sha256 {
 public:
  /// A key of any length; one of more than 64 bytes is replaced by its digest, as the standard says.
  explicit hmac_sha256(std::string_view key) {
    std::array<std::byte, 64> padded{};
    if (key.size() > padded.size()) {
      const sha256_digest shorter = sha256_of(key);
      for (std::size_t i = 0; i < shorter.size(); ++i) padded[i] = shorter[i];
    } else {
      for (std::size_t i = 0; i < key.size(); ++i) padded[i] = static_cast<std::byte>(key[i]);
    }
    std::array<std::byte, 64> inner{};
    std::array<std::byte, 64> outer{};
    for (std::size_t i = 0; i < padded.size(); ++i) {
      inner[i] = padded[i] ^ std::byte{0x36};
      outer[i] = padded[i] ^ std::byte{0x5c};
    }
    inner_.update(inner);
    outer_.update(outer);
  }

  hmac_sha256& update(std::span<const std::byte> piece) {
    inner_.update(piece);
    return *this;
  }
  hmac_sha256& update(std::string_view piece) {
    inner_.update(piece);
    return *this;
  }
  /// The code of all pieces so far. The object is used up.
  [[nodiscard]] sha256_digest finish() {
    const sha256_digest inside = inner_.finish();
    return outer_.update(inside).finish();
  }

 private:
  sha256 inner_;
  sha256 outer_;
};

}}}  // namespace topocoll::v0::io
