// SPDX-License-Identifier: Apache-2.0
// Copies for other cores to read.
#include <cstddef>
#include <cstdint>
#include <vector>
#include <topocoll/exec/detail/shown_copy.hpp>
#include <gtest/gtest.h>

namespace {

namespace tc = topocoll;

TEST(copies_to_show, have_every_byte_and_touch_none_beside_them) {
  constexpr std::size_t room = 3 * 1024, margin = 64;
  std::vector<std::byte> from(room + margin), to(room + 2 * margin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
  const std::byte untouched{0};
  for (const bool fast : {false, tc::detail::has_fast_string_moves()})
    for (const std::size_t size : {0U, 1U, 63U, 1023U, 1024U, 1025U, 2048U, 3000U, 3072U})
      for (const std::size_t shift : {0U, 1U, 17U, 63U}) {
        to.assign(to.size(), untouched);
        tc::detail::copy_to_show(to.data() + margin, from.data() + shift, size, fast);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= margin && i < margin + size;
          ASSERT_EQ(to[i], inside ? from[i - margin + shift] : untouched) << size << " bytes, byte " << i;
        }
      }
}

TEST(copies_to_show, of_nothing_need_no_memory) { tc::detail::copy_to_show(nullptr, nullptr, 0, true); }

}  // namespace
