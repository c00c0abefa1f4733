// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <topocoll/io/hmac.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

std::string code(const std::string& key, const std::string& message, std::size_t shown = 32) {
  const io::sha256_digest d = io::hmac_sha256(key).update(message).finish();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    for (const unsigned half : {std::to_integer<unsigned>(d[i]) >> 4U, std::to_integer<unsigned>(d[i]) & 15U})
      text += "0123456789abcdef"[half];
  return text;
}

// The seven cases of RFC 4231, section 4.
TEST(hmac_sha256, gives_the_published_codes) {
  EXPECT_EQ(code(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(code("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(code(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  EXPECT_EQ(code(counting, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(code(std::string(20, '\x0c'), "Test With Truncation", 16), "a3b6167473100ee06e0c796c2955552b");
  EXPECT_EQ(code(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(code(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
                 "to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}
TEST(hmac_sha256, of_a_key_of_exactly_one_block_uses_the_key_itself) {
  EXPECT_NE(code(std::string(64, 'k'), "m"), code(std::string(65, 'k'), "m"));
  EXPECT_NE(code(std::string(64, 'k'), "m"), code(std::string(63, 'k'), "m"));
}

}  // namespace
