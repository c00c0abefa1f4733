// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>
#include <unit/plan/svg_reading.hpp>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/busbw_chart.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>
#include <pugixml.hpp>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
namespace seq = topocoll::seq;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::collective_kind;
using role = plan::chart_line::role;

namespace {

plan::busbw_chart chart_of(const std::string& spec, collective_kind kind, bytes first, bytes last) {
  const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = 16_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto ask = [&](const auto&... all) {
    const auto made = plan::choose(prices, p, {}, all...).value();
    auto map = plan::winners(prices, p, made.limit, first, last, {}, all...).value();
    const auto e = plan::explain(prices, p, made, std::move(map)).value();
    return plan::busbw_chart_of(p, e).value();
  };
  return ask(plan::hierarchical{}, plan::recursive{}, plan::recursive_doubling{}, plan::ring{}, plan::direct{});
}

}  // namespace

TEST(busbw_chart, has_no_line_above_the_bound_and_the_winner_on_top_of_the_plans) {
  const auto c = chart_of("dgx-h100:nodes=4,pods=2,oversubscription=3", collective_kind::all_reduce, 1_KiB, 1_GiB);
  ASSERT_GE(c.lines.size(), 3U);
  EXPECT_EQ(c.lines[0].what, role::bound);
  EXPECT_EQ(c.sizes.front(), 1_KiB);
  EXPECT_EQ(c.sizes.back(), 1_GiB);
  EXPECT_EQ(c.sizes.size(), 161U);
  for (std::size_t i = 0; i < c.sizes.size(); ++i) {
    const auto range = seq::find_if(
        c.winners, [&](const plan::size_range& r) { return r.first <= c.sizes[i] && c.sizes[i] <= r.last; });
    ASSERT_NE(range, c.winners.end());
    const auto winner = seq::find_by(c.lines, range->name, &plan::chart_line::name);
    for (const plan::chart_line& l : c.lines) {
      ASSERT_EQ(l.busbw.size(), c.sizes.size());
      if (l.what != role::plan) continue;
      EXPECT_LE(l.busbw[i].value, c.lines[0].busbw[i].value * (1 + 1e-9)) << l.name;
      // Hierarchical plans depend on the size: where they do not win, they need not be offered.
      if (l.name.starts_with("hierarchical")) continue;
      EXPECT_LE(l.busbw[i].value, winner->busbw[i].value * (1 + 1e-9)) << l.name << " at " << c.sizes[i].value;
    }
  }
}

TEST(busbw_chart, shows_models_only_where_they_apply) {
  const auto models = [](const plan::busbw_chart& c) {
    std::size_t n = 0;
    for (const plan::chart_line& l : c.lines) n += l.what == role::model ? 1 : 0;
    return n;
  };
  EXPECT_EQ(models(chart_of("dgx-h100:nodes=2,leaves=1", collective_kind::all_gather, 1_KiB, 1_MiB)), 2U);
  EXPECT_EQ(models(chart_of("dgx-h100:nodes=2,leaves=1", collective_kind::broadcast, 1_KiB, 1_MiB)), 0U);
}

TEST(busbw_chart, is_xml_whose_texts_do_not_meet) {
  struct wish {
    const char* spec;
    collective_kind kind;
    bytes first, last;
  };
  for (const wish& w : {wish{"dgx-h100:nodes=4,pods=2,oversubscription=3", collective_kind::all_reduce, 1_KiB, 1_GiB},
                        wish{"dgx-1v", collective_kind::all_reduce, bytes{1}, bytes{std::uint64_t{1} << 45U}},
                        wish{"pcie", collective_kind::all_gather, bytes{1000}, bytes{1001}},
                        wish{"dgx-a100", collective_kind::broadcast, bytes{3}, bytes{5'000'000}}}) {
    const auto c = chart_of(w.spec, w.kind, w.first, w.last);
    const std::string text = to_svg(c);
    pugi::xml_document d;
    ASSERT_TRUE(d.load_string(text.c_str())) << text;
    const auto texts = svg_reading::texts_of(d);
    EXPECT_EQ(svg_reading::overlap(texts), "") << w.spec;
    EXPECT_EQ(svg_reading::outside(d, texts), "") << w.spec;
    const std::string told = d.child("svg").child_value("desc");
    for (const plan::size_range& r : c.winners) EXPECT_NE(told.find(r.name), std::string::npos) << told;
    EXPECT_NE(std::string(d.child("svg").child_value("title")).find("busbw of "), std::string::npos);
    for (const char* bad : {"<script", "href", "url(", "nan", "inf"})
      EXPECT_EQ(text.find(bad), std::string::npos) << bad;
  }
}

TEST(busbw_chart, refuses_what_it_cannot_draw) {
  plan::problem p;
  plan::explanation e;
  e.ranks = 8;
  EXPECT_FALSE(plan::busbw_chart_of(p, e));
  e.sizes.push_back({1_KiB, 1_KiB, "ring", {1}, {1}, {1}, {1}});
  e.curves.push_back({"ring", {{1, {{{1}, 0}}}}});
  EXPECT_FALSE(plan::busbw_chart_of(p, e));
  e.sizes[0].last = 2_KiB;
  EXPECT_TRUE(plan::busbw_chart_of(p, e));
  e.ranks = 1;
  EXPECT_FALSE(plan::busbw_chart_of(p, e));
}

TEST(log2_of, is_the_logarithm) {
  for (double x = 1; x < 1e19; x *= 1.37) EXPECT_NEAR(plan::detail::log2_of(x), std::log2(x), 2e-6) << x;
}

TEST(round_step, is_the_next_round_number) {
  const std::pair<double, double> cases[] = {{0.3, 0.5}, {1, 1},  {1.1, 2}, {2.2, 2.5},
                                             {2.6, 5},   {6, 10}, {47, 50}, {0.02, 0.02}};
  for (const auto& [value, step] : cases) EXPECT_NEAR(plan::detail::round_step(value), step, 1e-12) << value;
}

TEST(spread_labels, keeps_order_and_distance) {
  const std::vector<double> wished{100, 101, 99, 400, 398, 20, 100};
  const auto at = plan::detail::spread_labels(wished, 30, 10, 410);
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t k = 0; k < at.size(); ++k) {
      if (i == k) continue;
      EXPECT_GE(std::abs(at[i] - at[k]), 30 - 1e-9);
      if (wished[i] < wished[k]) {
        EXPECT_LT(at[i], at[k]);
      }
    }
}
