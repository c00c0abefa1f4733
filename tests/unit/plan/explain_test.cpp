// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::node_id;
using topocoll::rank_order;

namespace {

struct explained {
  topo::graph g;
  plan::problem p;
  plan::explanation e;
};

explained explain(const std::string& spec, bytes size, rank_order::kind_t order = rank_order::kind_t::packed,
                  collective_kind kind = collective_kind::all_reduce) {
  explained x;
  x.g = topo::graph::from(topocoll::describe(spec).value()).value();
  x.p.graph = &x.g;
  x.p.collective = kind;
  x.p.size = size;
  x.p.ranks = topocoll::ranks_in_order(x.g, {order, 0});
  plan::simulator<plan::alpha_beta> prices(x.g, {});
  x.e = plan::with_default_planners([&](const auto&... all) {
          const auto made = plan::choose(prices, x.p, {}, all...).value();
          const auto sizes = plan::doubling_sizes(1_KiB, 1_GiB);
          const auto map = plan::crossovers(prices, x.p, made.limit, sizes, {}, all...).value();
          return plan::explain(prices, x.p, made, map);
        }).value();
  x.p.graph = nullptr;  // x.g moves when x is returned
  return x;
}

const plan::spine_line& line(const plan::explanation& e, const std::string& start) {
  for (const plan::spine_line& s : e.spine)
    if (s.name.starts_with(start)) return s;
  ADD_FAILURE() << "no line " << start;
  return e.spine.front();
}

}  // namespace

TEST(explain, shows_that_the_plan_crosses_the_spine_less_than_rings) {
  const auto x = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  const auto& mine = line(x.e, "this plan");
  const std::uint64_t share = (std::uint64_t{64} << 20U) / 64;  // of one rank
  // Every byte leaves three of four pods once on its way to the sum and the last one three times on its way back.
  EXPECT_EQ(mine.up, 64_MiB * 6);
  EXPECT_EQ(mine.down, mine.up);
  // Rings that visit pod after pod cross four times in each of 126 rounds, with the share of one rank each time.
  EXPECT_EQ(line(x.e, "rings in rank order (pod by pod)").up.value, 4 * 126 * share);
  // In scattered order each of eight hosts is left for another pod.
  EXPECT_EQ(line(x.e, "rings in scattered order").up.value, 8 * 126 * share);
  EXPECT_GT(line(x.e, "one ring in scattered rank order").up, line(x.e, "rings in scattered order").up);
  for (const plan::spine_line& s : x.e.spine) EXPECT_GE(s.time, x.e.limit.time) << s.name;
}

TEST(explain, of_scattered_ranks_gives_the_same_plan_and_a_worse_ring) {
  const auto packed = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  const auto scattered = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB, rank_order::kind_t::scattered);
  EXPECT_EQ(packed.e.price.time, scattered.e.price.time);
  EXPECT_EQ(line(packed.e, "this plan").up, line(scattered.e, "this plan").up);
  EXPECT_EQ(line(scattered.e, "rings in rank order").up, line(packed.e, "rings in scattered order").up);
  EXPECT_EQ(line(scattered.e, "rings pod by pod").up, line(packed.e, "rings in rank order (pod by pod)").up);
}

TEST(explain, keeps_rails_off_the_spine_in_one_pod) {
  const auto x = explain("dgx-h100:nodes=4,leaves=8,oversubscription=3", 64_MiB);
  EXPECT_EQ(line(x.e, "this plan").up, bytes{0});
  EXPECT_EQ(line(x.e, "rings in rank order").up, bytes{0});
  EXPECT_GT(line(x.e, "one ring in rank order").up,
            bytes{0});  // leaves every host by its last rail, enters the next by its first
}

TEST(explain, has_no_spine_where_there_is_none) { EXPECT_TRUE(explain("dgx-a100", 1_MiB).e.spine.empty()); }

TEST(explain, tells_parts_of_the_time_that_add_up) {
  const auto x = explain("dgx-h100:nodes=4,pods=2", 64_MiB, rank_order::kind_t::packed, collective_kind::all_gather);
  const plan::simulation& s = x.e.price;
  EXPECT_NEAR(s.time.value, (s.launch + s.latency + s.posting + s.busiest + s.unhidden).value, 1e-12);
  double stages = 0;
  for (const plan::stage_line& l : x.e.stages) stages += l.latency.value;
  EXPECT_NEAR(stages, s.latency.value, 1e-12);
}

TEST(explain, covers_all_sizes_in_ranges) {
  const auto x = explain("dgx-h100:nodes=4,pods=2,oversubscription=3", 64_MiB);
  ASSERT_GE(x.e.sizes.size(), 2U);
  EXPECT_EQ(x.e.sizes.front().first, 1_KiB);
  EXPECT_EQ(x.e.sizes.back().last, 1_GiB);
  for (std::size_t k = 1; k < x.e.sizes.size(); ++k) {
    EXPECT_EQ(x.e.sizes[k].first.value, x.e.sizes[k - 1].last.value * 2);
    EXPECT_NE(x.e.sizes[k].name, x.e.sizes[k - 1].name);
  }
}

TEST(to_text, of_an_explanation_says_what_people_ask) {
  const auto x = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  const std::string text = to_text(x.e);
  for (const char* part :
       {"all_reduce of 64 MiB among 64 ranks in 8 boxes in 4 pods", "\nplan ", "\nbound ", "busbw ",
        "\ncut:     each byte crosses 6 times between 4 sets", "\nbusiest: leaf", "\nproof:   ", "\nstage ",
        "reduce_scatter in the box", "\nleaf to spine", "\nbytes over the spine", "\nthis plan ",
        "\nrings in scattered order (hosts in turn from each pod)", "\nother plans ", "\nsizes ", "hierarchical"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.find(" \n"), std::string::npos);  // no blanks at line ends
  const std::string brief = to_text(x.e, true);
  EXPECT_EQ(text.substr(0, brief.size()), brief);
  EXPECT_EQ(brief.find("other plans"), std::string::npos);
}

TEST(ring_workload, passes_boxes_up_and_down_so_that_rings_keep_their_rail) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=4,leaves=8").value()).value();
  plan::problem p;
  p.graph = &g;
  p.size = 1_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  const auto at = plan::levels_of(p).value();
  const auto w = plan::ring_workload(p, at, std::vector<std::uint32_t>{0, 1, 2, 3});
  ASSERT_EQ(w.rounds.size(), 1U);
  EXPECT_EQ(w.rounds[0].repeat, 62U);
  EXPECT_EQ(w.rounds[0].moves.size(), 32U * 8U);
  std::vector<int> sends(32, 0), receives(32, 0);
  for (const plan::transfer& t : w.rounds[0].moves) {
    ++sends[t.from.value];
    ++receives[t.to.value];
    if (at.box[t.from.value] != at.box[t.to.value]) {
      EXPECT_EQ(at.rail[t.from.value], at.rail[t.to.value]);
    }
  }
  EXPECT_EQ(sends, std::vector<int>(32, 8));
  EXPECT_EQ(receives, std::vector<int>(32, 8));
}
