// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <topocoll/io/sha256.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

std::string hex(const io::sha256_digest& d) {
  std::string text;
  for (const std::byte b : d)
    for (const unsigned half : {std::to_integer<unsigned>(b) >> 4U, std::to_integer<unsigned>(b) & 15U})
      text += "0123456789abcdef"[half];
  return text;
}

// The vectors of NIST's examples to FIPS 180-4.
TEST(sha256, of_nothing_is_the_published_one) {
  EXPECT_EQ(hex(io::sha256_of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
TEST(sha256, of_abc_is_the_published_one) {
  EXPECT_EQ(hex(io::sha256_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
TEST(sha256, of_two_blocks_is_the_published_one) {
  EXPECT_EQ(hex(io::sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
TEST(sha256, of_a_million_a_is_the_published_one) {
  EXPECT_EQ(hex(io::sha256_of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
TEST(sha256, does_not_depend_on_how_the_message_is_cut) {
  std::string message;
  for (int i = 0; i < 200; ++i) message += static_cast<char>(i);
  for (std::size_t length = 0; length <= message.size(); ++length) {
    const std::string_view whole = std::string_view(message).substr(0, length);
    const auto at_once = io::sha256_of(whole);
    for (const std::size_t step : {1U, 7U, 63U, 64U, 65U}) {
      io::sha256 pieces;
      for (std::size_t at = 0; at < length; at += step) pieces.update(whole.substr(at, step));
      ASSERT_EQ(hex(pieces.finish()), hex(at_once)) << length << " bytes in pieces of " << step;
    }
  }
}
TEST(same_digest, sees_a_difference_in_every_byte) {
  const io::sha256_digest d = io::sha256_of("abc");
  EXPECT_TRUE(io::same_digest(d, d));
  for (std::size_t i = 0; i < d.size(); ++i) {
    io::sha256_digest other = d;
    other[i] ^= std::byte{0x80};
    EXPECT_FALSE(io::same_digest(d, other)) << i;
  }
}

}  // namespace
