// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/levelled_plan.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

constexpr collective_kind three[] = {collective_kind::all_reduce, collective_kind::all_gather,
                                     collective_kind::reduce_scatter};
constexpr bytes_per_second GB{1e9};

levelled_cluster h100(std::uint32_t pods, std::uint32_t boxes, double oversubscription) {
  return rail_cluster(pods, boxes, 8, 450 * GB, 50 * GB, oversubscription);
}

TEST(levelled_plan, is_on_the_bound_for_every_cluster_in_which_boxes_or_pods_bind) {
  for (const auto& [pods, boxes, over] :
       {std::tuple{8U, 16U, 2.0}, {8U, 16U, 1.0}, {2U, 8U, 3.0}, {1U, 16U, 1.0}, {8U, 2U, 3.0}, {16U, 16U, 4.0}})
    for (const collective_kind c : three) {
      const auto made = plan_on(h100(pods, boxes, over), c);
      ASSERT_TRUE(made) << made.error().what;
      EXPECT_EQ(made->exact_gap, rational{0})
          << pods << " " << boxes << " " << over << " " << to_string(c) << ": " << made->gap;
    }
}

TEST(levelled_plan, says_how_far_it_is_from_the_bound_where_nvlink_binds) {
  // Two boxes: 14 of 16 shards arrive over NVLink at 450 GB/s, 1 over a NIC; the bound spreads 15 over 500 GB/s.
  const auto made = plan_on(h100(1, 2, 1), collective_kind::all_gather);
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->exact_gap, (rational{14, 450} / rational{15, 500} - rational{1}));
}

TEST(levelled_plan, has_the_loads_that_its_messages_make) {
  // Added up from every message of every rank, sorted by what they cross.
  for (const levelled_cluster& c :
       {h100(3, 2, 2), rail_cluster(2, 3, 4, 300 * GB, 25 * GB, 1), rail_cluster(1, 5, 3, 300 * GB, 25 * GB)})
    for (const collective_kind kind : three) {
      const auto made = plan_on(c, kind);
      ASSERT_TRUE(made) << made.error().what;
      const schedule& plan = made->plan;
      std::vector<std::uint64_t> nvlink(plan.ranks, 0), nic(plan.ranks, 0);
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> uplink;  // pod, rail
      const auto box = [&](rank_id r) { return r.value / c.gpus; };
      const auto pod = [&](rank_id r) { return box(r) / c.boxes; };
      for (std::uint32_t r = 0; r < plan.ranks; ++r) {
        const program mine = lower(plan, {r}).value();
        for (const op& o : mine.ops) {
          if (o.kind != op_kind::send) continue;
          const rank_id me{r};
          const bool same_box = box(me) == box(o.peer);
          (same_box ? nvlink : nic)[r] += o.from.count;
          if (pod(me) != pod(o.peer)) uplink[{pod(me), r % c.gpus}] += o.from.count;
          EXPECT_TRUE(same_box || r % c.gpus == o.peer.value % c.gpus);
        }
      }
      for (const level_load& l : made->loads) {
        const auto chunks = [&](std::uint64_t n) { return rational{static_cast<std::int64_t>(n), plan.chunks()}; };
        if (l.what == "NIC") {
          for (const auto n : nic) EXPECT_EQ(chunks(n), l.share) << to_string(kind);
        } else if (l.what == "NVLink of a GPU") {
          for (const auto n : nvlink) EXPECT_EQ(chunks(n), l.share) << to_string(kind);
        } else {
          for (const auto& [where, n] : uplink) EXPECT_EQ(chunks(n), l.share) << to_string(kind);
        }
      }
    }
}

TEST(levelled_plan, is_proved_exactly_when_small_and_by_stage_at_any_size) {
  for (const collective_kind c : three) {
    EXPECT_TRUE(verify(plan_on(h100(2, 3, 1), c)->plan)) << to_string(c);
    const auto large = plan_on(h100(64, 16, 2), c);
    ASSERT_TRUE(large);
    EXPECT_EQ(large->plan.ranks, 8192U);
    const auto proved = verify(large->plan);
    EXPECT_TRUE(proved) << proved.error().what;
  }
}

TEST(levelled_plan, spans_several_tiers_and_networks_that_are_rail_only) {
  levelled_cluster c = h100(1, 4, 1);
  c.tiers = {{2, two_way::both(3200 * GB), joint::through_switch, true},
             {4, two_way::both(200 * GB), joint::through_switch, true}};
  for (const collective_kind k : three) {
    const auto made = plan_on(c, k);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(made->plan.ranks, 256U);
    EXPECT_TRUE(verify(made->plan)) << verify(made->plan).error().what;
    EXPECT_GE(made->exact_gap, rational{0});
  }
  c.tiers = {{4, two_way::both(100 * GB), joint::through_switch, false}};
  EXPECT_TRUE(verify(plan_on(c, collective_kind::all_gather)->plan));
}

TEST(levelled_plan, takes_shapes_that_are_no_powers_of_two_and_levels_of_one) {
  for (const auto& [pods, boxes, gpus] :
       {std::tuple{1U, 1U, 1U}, {1U, 1U, 8U}, {5U, 1U, 3U}, {1U, 7U, 1U}, {3U, 5U, 7U}})
    for (const collective_kind c : three) {
      const auto made = plan_on(rail_cluster(pods, boxes, gpus, 450 * GB, 50 * GB), c);
      ASSERT_TRUE(made) << made.error().what;
      const auto proved = verify(made->plan);
      EXPECT_TRUE(proved) << proved.error().what;
      EXPECT_GE(made->gap, -1e-12);
    }
}

TEST(levelled_plan, refuses_what_it_does_not_know) {
  EXPECT_EQ(plan_on(h100(1, 2, 1), collective_kind::broadcast).error().code, errc::unsupported);
  levelled_cluster odd = h100(2, 2, 1);
  odd.exceptions.push_back({{0, 1, 3}, two_way::both(25 * GB), {}, {}, {}, {}});
  EXPECT_EQ(plan_on(odd, collective_kind::all_reduce).error().code, errc::unsupported);
}

}  // namespace
