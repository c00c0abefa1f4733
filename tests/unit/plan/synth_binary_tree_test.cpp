// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <unit/plan/plan_cluster.hpp>
#include <vector>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

problem of(std::uint32_t n, collective_kind c, bytes size = {}) {
  problem q;
  q.collective = c;
  q.size = size;
  q.ranks.resize(n);
  return q;
}

TEST(binary_tree, gives_inner_ranks_of_one_tree_no_children_in_the_other) {
  for (const std::uint32_t n : {4U, 5U, 8U, 9U, 16U, 31U}) {
    const schedule s = binary_tree{.slices = 2}.synthesize(of(n, collective_kind::all_reduce)).value();
    std::uint32_t both = 0;
    for (std::uint32_t r = 0; r < n; ++r) {
      const program p = lower(s, {r}).value();
      std::uint32_t children[2] = {0, 0};
      for (const step& st : p.steps)
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o)
          children[st.channel] += p.ops[o].kind == op_kind::receive_reduce ? 1 : 0;
      EXPECT_LE(children[0], 2U);
      EXPECT_LE(children[1], 2U);
      both += children[0] != 0 && children[1] != 0 ? 1 : 0;
    }
    EXPECT_LE(both, 2U) << n;  // the two roots
  }
}

TEST(binary_tree, is_logarithmically_deep) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 17U, 64U, 100U})
    EXPECT_LE(traffic(binary_tree{.slices = 2}.synthesize(of(n, collective_kind::broadcast)).value()).size(),
              static_cast<std::uint32_t>(std::bit_width(n - 1)) + 1);
}

TEST(binary_tree, takes_more_slices_for_more_bytes) {
  EXPECT_EQ(binary_tree{}.synthesize(of(4, collective_kind::all_reduce, bytes{8})).value().slices, 2U);
  EXPECT_EQ(binary_tree{}.synthesize(of(4, collective_kind::all_reduce, bytes{1U << 30U})).value().slices, max_slices);
}

TEST(binomial_tree, follows_the_hardware_from_the_root) {
  auto c = plan_test::build(plan_test::even(2, 2, 4));
  std::vector<node_id> scattered;
  for (std::uint32_t r = 0; r < 16; ++r) scattered.push_back(c.gpus[(r * 5) % 16]);
  c.gpus = scattered;
  const problem q = plan_test::on(c, collective_kind::broadcast, bytes{8}, {0});
  const schedule s = binomial_tree{}.synthesize(q).value();
  ASSERT_TRUE(verify(s));
  const levels at = levels_of(q).value();
  std::uint32_t boxes = 0, pods = 0;
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves) {
      boxes += at.box[t.from.value] != at.box[t.to.value] ? 1 : 0;
      pods += at.pod[t.from.value] != at.pod[t.to.value] ? 1 : 0;
    }
  EXPECT_EQ(boxes, 3U);  // every other box is entered once
  EXPECT_EQ(pods, 1U);
}

TEST(binary_tree, refuses_sharded_collectives) {
  EXPECT_EQ(binary_tree{}.synthesize(of(4, collective_kind::all_gather)).error().code, errc::unsupported);
  EXPECT_EQ(binomial_tree{}.synthesize(of(4, collective_kind::reduce_scatter)).error().code, errc::unsupported);
}

}  // namespace
