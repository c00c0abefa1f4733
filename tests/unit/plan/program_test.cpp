// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <topocoll/plan/program.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

TEST(chunk_grid, covers_every_element_once_in_order) {
  for (const std::uint64_t elements : {0U, 1U, 2U, 7U, 8U, 9U, 1000U})
    for (const std::uint32_t chunks : {1U, 2U, 3U, 5U, 7U, 8U, 17U}) {
      const chunk_grid g = grid_of(collective_kind::all_reduce, 4, chunks, elements);
      EXPECT_EQ(g.begin(0), 0U);
      EXPECT_EQ(g.begin(chunks), elements);
      for (std::uint32_t c = 0; c < chunks; ++c) {
        EXPECT_LE(g.begin(c), g.begin(c + 1));
        EXPECT_LE(g.begin(c + 1) - g.begin(c), g.largest());
      }
    }
}

TEST(chunk_grid, of_shards_starts_every_shard_at_its_place) {
  for (const std::uint64_t elements : {0U, 1U, 5U, 64U})
    for (const std::uint32_t per_shard : {1U, 2U, 3U, 8U}) {
      const chunk_grid g = grid_of(collective_kind::all_gather, 5, 5 * per_shard, elements);
      for (std::uint32_t shard = 0; shard <= 5; ++shard) EXPECT_EQ(g.begin(shard * per_shard), shard * elements);
    }
}

TEST(chunk_grid, makes_all_chunks_of_a_unit_full_but_those_at_its_end) {
  const chunk_grid g{10, 8};  // 2 2 2 2 2 0 0 0
  for (std::uint32_t c = 0; c < 5; ++c) EXPECT_EQ(g.begin(c + 1) - g.begin(c), 2U);
  for (std::uint32_t c = 5; c < 8; ++c) EXPECT_EQ(g.begin(c + 1), g.begin(c));
}

TEST(extent_of, makes_neighbours_in_scratch_contiguous) {
  const chunk_grid g{11, 4};  // 3 3 3 2
  const op both{op_kind::send, {}, {buffer::scratch, 7, 2}, {}, 2};
  const op first{op_kind::send, {}, {buffer::scratch, 7, 1}, {}, 2};
  const op second{op_kind::send, {}, {buffer::scratch, 8, 1}, {}, 3};
  EXPECT_EQ(extent_of(g, both, both.from), (extent{21, 5}));
  EXPECT_EQ(extent_of(g, first, first.from), (extent{21, 3}));
  EXPECT_EQ(extent_of(g, second, second.from), (extent{24, 2}));
}

TEST(extent_of, is_as_long_at_both_ends_of_a_message) {
  const chunk_grid g = grid_of(collective_kind::reduce_scatter, 3, 6, 5);  // shards of 3 2
  const op send{op_kind::send, {1}, {buffer::input, 3, 1}, {}, 3};
  const op receive{op_kind::receive, {0}, {}, {buffer::scratch, 0, 1}, 3};
  EXPECT_EQ(extent_of(g, send, send.from), (extent{8, 2}));
  EXPECT_EQ(extent_of(g, receive, receive.to), (extent{0, 2}));
}

}  // namespace
