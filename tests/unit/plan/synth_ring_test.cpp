// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/synth/ring.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

std::uint64_t crossings(const schedule& s, const std::vector<std::uint32_t>& unit_of) {
  std::uint64_t sum = 0;
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves) sum += unit_of[t.from.value] != unit_of[t.to.value] ? t.chunks * r.repeat : 0;
  return sum;
}

TEST(ring, in_rank_order_needs_no_graph) {
  problem q;
  q.ranks.resize(5);
  q.size = bytes{1U << 20U};
  const schedule s = ring{}.synthesize(q).value();
  EXPECT_EQ(s.name, "ring");
  EXPECT_TRUE(verify(s));
  EXPECT_EQ((ring{.order = ring_order::hardware}.synthesize(q).error().code), errc::invalid_argument);
}

TEST(ring, in_hardware_order_leaves_every_box_once) {
  auto c = plan_test::build(plan_test::even(2, 2, 4));
  std::vector<node_id> scattered;
  for (std::uint32_t r = 0; r < 16; ++r) scattered.push_back(c.gpus[(r * 5) % 16]);
  c.gpus = scattered;
  const problem q = plan_test::on(c, collective_kind::all_gather, bytes{1U << 20U});
  const levels at = levels_of(q).value();
  const schedule by_rank = ring{.slices = 1}.synthesize(q).value();
  const schedule by_wires = ring{.order = ring_order::hardware, .rings = 0, .slices = 1}.synthesize(q).value();
  EXPECT_EQ(crossings(by_wires, at.box), 4U * 15U);  // four links of the ring leave a box, each carries 15 shards
  EXPECT_EQ(crossings(by_wires, at.pod), 2U * 15U);
  EXPECT_EQ(crossings(by_rank, at.box), 16U * 15U);
  EXPECT_TRUE(verify(by_wires));
}

TEST(ring, enters_boxes_at_every_gpu_when_there_are_several) {
  const auto c = plan_test::build(plan_test::even(1, 3, 4));
  const problem q = plan_test::on(c, collective_kind::all_reduce, bytes{64U << 20U});
  const levels at = levels_of(q).value();
  const schedule s = ring{.order = ring_order::hardware}.synthesize(q).value();
  EXPECT_EQ(s.stages[0].group_count(), 4U);
  std::vector<std::uint64_t> leaving(12, 0), entering(12, 0);
  for (const traffic_round& r : traffic(s))
    for (const transfer& t : r.moves)
      if (at.box[t.from.value] != at.box[t.to.value]) {
        leaving[t.from.value] += t.chunks * r.repeat;
        entering[t.to.value] += t.chunks * r.repeat;
      }
  for (std::uint32_t r = 1; r < 12; ++r) {
    EXPECT_EQ(leaving[r], leaving[0]);
    EXPECT_EQ(entering[r], entering[0]);
  }
  EXPECT_GT(leaving[0], 0U);
  EXPECT_TRUE(verify(s));
  EXPECT_EQ((ring{.order = ring_order::hardware, .rings = 5}.synthesize(q).error().code), errc::invalid_argument);
}

TEST(ring, cuts_large_arrays_into_slices_and_chains_into_pieces) {
  problem q;
  q.ranks.resize(4);
  q.size = bytes{1U << 10U};
  EXPECT_EQ(ring{}.synthesize(q).value().slices, 1U);
  q.size = bytes{1U << 30U};
  EXPECT_EQ(ring{}.synthesize(q).value().slices, 4U);
  q.collective = collective_kind::broadcast;
  EXPECT_GT(ring{}.synthesize(q).value().units, 8U);
  q.size = bytes{1};
  EXPECT_EQ(ring{}.synthesize(q).value().units, 1U);
}

}  // namespace
