// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/traffic.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
namespace seq = topocoll::seq;
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

/// All but packed trees, which take most of the time.
template <class Use>
auto with_quick_planners(const Use& use) {
  using a = plan::algorithm;
  return use(plan::hierarchical{}, plan::hierarchical{.in_box = a::direct, .on_rail = a::direct, .across = a::direct},
             plan::hierarchical{.in_box = a::ring, .on_rail = a::recursive, .across = a::recursive}, plan::recursive{},
             plan::recursive_doubling{}, plan::binary_tree{}, plan::one_shot{}, plan::ring{});
}

explained explain(const std::string& spec, bytes size, rank_order::kind_t order = rank_order::kind_t::packed,
                  collective_kind kind = collective_kind::all_reduce) {
  explained x;
  x.g = topo::graph::from(topocoll::describe(spec).value()).value();
  x.p.graph = &x.g;
  x.p.collective = kind;
  x.p.size = size;
  x.p.ranks = topocoll::ranks_in_order(x.g, {order, 0});
  plan::simulator<plan::alpha_beta> prices(x.g, {});
  x.e = with_quick_planners([&](const auto&... all) {
          plan::choose_options quick;
          quick.effort.effort = 1'000'000;
          const auto made = plan::choose(prices, x.p, quick, all...).value();
          auto map = plan::winners(prices, x.p, made.limit, 1_KiB, 1_GiB, {}, all...).value();
          return plan::explain(prices, x.p, made, std::move(map));
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

TEST(explain, covers_all_sizes_in_ranges_without_gaps) {
  const auto x = explain("dgx-h100:nodes=4,pods=2,oversubscription=3", 64_MiB);
  ASSERT_GE(x.e.sizes.size(), 2U);
  EXPECT_EQ(x.e.sizes.front().first, 1_KiB);
  EXPECT_EQ(x.e.sizes.back().last, 1_GiB);
  for (std::size_t k = 1; k < x.e.sizes.size(); ++k) {
    EXPECT_EQ(x.e.sizes[k].first.value, x.e.sizes[k - 1].last.value + 1);
    EXPECT_NE(x.e.sizes[k].name, x.e.sizes[k - 1].name);
  }
  for (const plan::size_range& r : x.e.sizes) {
    EXPECT_GE(r.first_time, r.first_bound) << r.name;
    EXPECT_GE(r.last_time, r.last_bound) << r.name;
  }
}

TEST(winners, change_at_the_very_byte_at_which_the_planners_offer_another_plan) {
  std::size_t changes = 0;
  for (const char* spec : {"dgx-h100:nodes=4,pods=2,oversubscription=3", "dgx-1v", "dgx-a100:nodes=3,leaves=1"})
    for (const auto kind : {collective_kind::all_reduce, collective_kind::all_gather}) {
      const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
      plan::problem p;
      p.graph = &g;
      p.collective = kind;
      p.size = 1_MiB;
      p.ranks = g.all(topo::node_kind::gpu);
      plan::simulator<plan::alpha_beta> prices(g, {});
      const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
      const auto map = with_quick_planners([&](const auto&... all) {
                         return plan::winners(prices, p, limit, bytes{777}, bytes{900'000'001}, {}, all...);
                       }).value();
      EXPECT_EQ(map.ranges.front().first, bytes{777});
      EXPECT_EQ(map.ranges.back().last, bytes{900'000'001});
      for (const plan::size_range& r : map.ranges) {
        // `crossovers` asks all planners at single sizes and knows nothing of ranges.
        std::vector<bytes> sizes{r.first, r.last, bytes{r.first.value + (r.last.value - r.first.value) / 3}};
        const auto asked = with_quick_planners([&](const auto&... all) {
                             return plan::crossovers(prices, p, limit, sizes, {}, all...);
                           }).value();
        for (const plan::selection& s : asked) {
          EXPECT_EQ(s.name, r.name) << spec << " at " << s.size.value;
          const auto curve = seq::find_by(map.curves, r.name, &plan::plan_curve::name);
          ASSERT_NE(curve, map.curves.end());
          EXPECT_LE(curve->at(s.size).value, s.time.value * (1 + 1e-9));
        }
        changes += 1;
      }
      changes -= 1;
    }
  EXPECT_GE(changes, 6U);
}

TEST(winners, refuse_no_sizes_and_take_a_single_one) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-a100").value()).value();
  plan::problem p;
  p.graph = &g;
  p.size = 1_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
  EXPECT_FALSE(plan::winners(prices, p, limit, bytes{0}, 1_KiB, {}, plan::ring{}));
  EXPECT_FALSE(plan::winners(prices, p, limit, 2_KiB, 1_KiB, {}, plan::ring{}));
  const auto one = plan::winners(prices, p, limit, 5_KiB, 5_KiB, {}, plan::ring{}).value();
  ASSERT_EQ(one.ranges.size(), 1U);
  EXPECT_EQ(one.ranges[0].first, one.ranges[0].last);
  EXPECT_EQ(one.curves.size(), 1U);
}

TEST(explain, says_what_each_nic_carries) {
  const auto x = explain("dgx-h100:nodes=4,pods=2,oversubscription=3", 64_MiB);
  const auto out = static_cast<std::size_t>(plan::link_class::nic_out);
  ASSERT_EQ(x.e.nics.size(), 1U);
  EXPECT_EQ(x.e.nics[0].nics, 32U);
  EXPECT_EQ(x.e.nics[0].which, "all 32 NICs");
  EXPECT_EQ(x.e.nics[0].out, x.e.loads[out].largest);
  EXPECT_DOUBLE_EQ(x.e.nics[0].rate.value, 50e9);
  EXPECT_FALSE(x.e.nics[0].slow);
  ASSERT_EQ(x.e.rails.size(), 8U);
  bytes all{}, up{};
  for (const plan::rail_line& r : x.e.rails) {
    EXPECT_EQ(r.nics, 4U);
    all += r.out;
  }
  EXPECT_EQ(all, x.e.loads[out].total);
  for (const plan::leaf_line& l : x.e.leaves) up += l.up * l.leaves;
  EXPECT_EQ(up, x.e.loads[static_cast<std::size_t>(plan::link_class::leaf_up)].total);
}

TEST(explain, names_nics_that_are_slow) {
  const auto x = explain("dgx-h100:nodes=4,gpus=4,nics=4,leaves=4,slow=node2/nic1:0.5", 64_MiB);
  const auto slow = seq::find_if(x.e.nics, [](const plan::nic_line& l) { return l.slow; });
  ASSERT_NE(slow, x.e.nics.end());
  EXPECT_EQ(slow->nics, 1U);
  EXPECT_EQ(slow->which, "mlx5_1 of node2");
  EXPECT_DOUBLE_EQ(slow->rate.value, 25e9);
  ASSERT_FALSE(x.e.remarks.empty());
  EXPECT_EQ(x.e.remarks[0].rfind("mlx5_1 of node2 runs at 25.0 GB/s, the others of its host at 50.0 GB/s; ", 0), 0U)
      << x.e.remarks[0];
}

TEST(explain, counts_links_that_are_full) {
  const auto x = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  // The uplinks are the cut of an oversubscribed fabric, all alike: all of them are full, and nothing else.
  for (std::size_t c = 0; c < plan::link_class_count; ++c) {
    const bool spine = c == static_cast<std::size_t>(plan::link_class::leaf_up) ||
                       c == static_cast<std::size_t>(plan::link_class::leaf_down);
    EXPECT_EQ(x.e.full[c], spine ? x.e.loads[c].links : 0U) << to_string(static_cast<plan::link_class>(c));
  }
}

TEST(explain, says_the_gap_in_bandwidth_exactly) {
  const auto x = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  ASSERT_TRUE(x.e.bandwidth_ratio);
  EXPECT_TRUE(*x.e.bandwidth_ratio == topocoll::rational{1});
  EXPECT_NEAR(x.e.bandwidth_gap, 0, 1e-12);
  EXPECT_GT(x.e.gap, 0.01);  // latency is left
  EXPECT_FALSE(x.e.remedy.empty());
  for (const char* spec : {"dgx-1v", "dgx-h100:nodes=3,leaves=1", "pcie"}) {
    const auto y = explain(spec, 64_MiB);
    EXPECT_GE(y.e.bandwidth_gap, -1e-9) << spec;
    EXPECT_NEAR(y.e.price.busiest / y.e.limit.bandwidth_time - 1, y.e.bandwidth_gap, 1e-9) << spec;
    if (y.e.bandwidth_ratio) {
      EXPECT_NEAR(y.e.bandwidth_ratio->to_double() - 1, y.e.bandwidth_gap, 1e-9) << spec;
    }
  }
}

TEST(explain, says_which_ranks_packed_trees_spare) {
  topo::fragment f;
  for (int k = 0; k < 5; ++k) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = "here/gpu:" + std::to_string(k);
    n.name = "GPU " + std::to_string(k);
    n.host = "here";
    f.add(n);
  }
  const auto join = [&](std::uint32_t a, std::uint32_t b, double rate) {
    topo::link l;
    l.from = {a};
    l.to = {b};
    l.kind = topo::link_kind::nvlink;
    l.capacity = {rate};
    f.join(l);
  };
  for (std::uint32_t a = 0; a < 4; ++a)
    for (std::uint32_t b = 0; b < a; ++b) join(a, b, 100e9);
  join(4, 0, 60e9);  // hangs on one wire
  const topo::graph g = topo::graph::from(f).value();
  plan::problem p;
  p.graph = &g;
  p.size = 64_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto made = plan::choose(prices, p, {}, plan::packed{}).value();
  const auto e = plan::explain(prices, p, made).value();
  ASSERT_TRUE(e.trees);
  // Who is a leaf everywhere receives nothing while sums are made, and sends nothing while they are handed out.
  std::vector<bool> passes(5, false);
  for (const plan::traffic_round& r : plan::traffic(made.best()))
    for (const plan::transfer& t : r.moves) {
      const bool up = made.best().stages[r.stage].kind == plan::stage_kind::reduce;
      passes[up ? t.to.value : t.from.value] = true;
    }
  EXPECT_EQ(e.trees->spared_ranks, static_cast<std::size_t>(std::count(passes.begin(), passes.end(), false)));
  ASSERT_GE(e.trees->spared_ranks, 1U);
  for (std::size_t r = 0; r < 5; ++r)  // each number has one digit
    EXPECT_EQ(e.trees->spared.find(static_cast<char>('0' + r)) != std::string::npos, !passes[r]) << e.trees->spared;
  EXPECT_GE(e.trees->depth, 1U);
  EXPECT_LE(e.trees->mean_depth, e.trees->depth);
  EXPECT_NE(to_text(e).find("leaves in all of them, so that they pass nothing on: " + e.trees->spared),
            std::string::npos)
      << to_text(e);
  EXPECT_TRUE(e.sizes.empty());
  EXPECT_TRUE(e.nics.empty());
}

TEST(explain, sets_models_of_libraries_beside_the_plan) {
  const auto x = explain("dgx-h100:nodes=4,pods=2", 64_MiB);
  ASSERT_EQ(x.e.libraries.size(), 2U);
  for (const plan::library_line& l : x.e.libraries) {
    ASSERT_TRUE(l.time) << l.why_not;
    EXPECT_FALSE(l.algorithm.empty());
    EXPECT_FALSE(l.protocol.empty());
  }
  const auto machine = plan::machine_summary_of(x.g, topocoll::ranks_in_order(x.g)).value();
  EXPECT_EQ(*x.e.libraries[0].time, plan::predict(machine, collective_kind::all_reduce, 64_MiB).value().time);
  EXPECT_GT(x.e.libraries[0].spread, 0);
  const auto other =
      explain("dgx-h100:nodes=2,leaves=1", 1_MiB, rank_order::kind_t::packed, collective_kind::broadcast);
  for (const plan::library_line& l : other.e.libraries) {
    EXPECT_FALSE(l.time);
    EXPECT_FALSE(l.why_not.empty());
  }
}

TEST(to_text, of_an_explanation_says_what_people_ask) {
  const auto x = explain("dgx-h100:nodes=8,pods=4,oversubscription=3", 64_MiB);
  const std::string text = to_text(x.e);
  for (const char* part : {"all_reduce of 64 MiB among 64 ranks in 8 boxes in 4 pods",
                           "\nplan ",
                           "\nbound ",
                           "busbw ",
                           "\ncut:     each byte crosses 6 times between 4 sets",
                           "\nbusiest: leaf",
                           "\nproof:   ",
                           "\nstage ",
                           "reduce_scatter in the box",
                           "\nleaf to spine",
                           "\nbytes over the spine",
                           "\nthis plan ",
                           "\nmodel ",
                           "library model (not measured): ",
                           "NCCL 2.28.9's own model (not measured): ",
                           "\ngap:     ",
                           "in bandwidth alone exactly none",
                           "\nNICs ",
                           "all 64 NICs",
                           "\nleaves ",
                           "\nrings in scattered order (hosts in turn from each pod)",
                           "\nother plans ",
                           "\nsizes ",
                           "hierarchical"})
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
