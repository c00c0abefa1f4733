// SPDX-License-Identifier: Apache-2.0
// Lists of plans against single sizes: `crossovers` and `choose` know nothing of ranges, curves or bisection.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/pareto.hpp>
#include <topocoll/plan/pareto_codec.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::rank_id;
using topocoll::seconds;

/// n GPUs in a full mesh: every pair has a link of its own.
topo::graph mesh(std::uint32_t n) {
  topo::fragment f;
  f.source = "mesh";
  for (std::uint32_t v = 0; v < n; ++v) {
    topo::node x;
    x.kind = topo::node_kind::gpu;
    x.key = std::to_string(v);
    x.host = "box";
    f.add(x);
  }
  for (std::uint32_t a = 0; a < n; ++a)
    for (std::uint32_t b = a + 1; b < n; ++b) {
      topo::link l;
      l.kind = topo::link_kind::nvlink;
      l.from = {a};
      l.to = {b};
      l.capacity = {25e9};
      f.join(l);
    }
  return topo::graph::from(std::move(f)).value();
}

plan::problem pareto_problem(const topo::graph& g, collective_kind kind = collective_kind::all_reduce) {
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = 1_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}

template <class Use>
auto with_few_planners(const Use& use) {
  using a = plan::algorithm;
  return use(plan::hierarchical{}, plan::hierarchical{.in_box = a::direct, .on_rail = a::direct, .across = a::direct},
             plan::recursive{}, plan::recursive_doubling{}, plan::binary_tree{}, plan::binomial_tree{}, plan::direct{},
             plan::one_shot{}, plan::ring{});
}

topocoll::result<plan::pareto_list> list_with_few(const plan::problem& p, bytes first, bytes last,
                                                  const plan::choose_options& options = {}) {
  plan::simulator<plan::alpha_beta> prices(*p.graph, {});
  const auto limit = plan::lower_bound(p, plan::alpha_beta{});
  if (!limit) return limit.error();
  return with_few_planners(
      [&](const auto&... all) { return plan::pareto(prices, p, *limit, first, last, options, all...); });
}

const char* const clusters[] = {"dgx-h100:nodes=4,pods=2,oversubscription=3", "dgx-1v", "dgx-a100:nodes=3,leaves=1"};

TEST(pareto, takes_at_every_size_a_plan_that_none_is_cheaper_than) {
  std::size_t asked = 0;
  for (const char* spec : clusters)
    for (const auto kind : {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::broadcast}) {
      const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
      const plan::problem p = pareto_problem(g, kind);
      const auto list = list_with_few(p, bytes{8}, 1_GiB).value();
      plan::simulator<plan::alpha_beta> prices(g, {});
      const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
      const std::vector<bytes> sizes = plan::doubling_sizes(bytes{8}, 1_GiB);
      const auto single = with_few_planners([&](const auto&... all) {
                            return plan::crossovers(prices, p, limit, sizes, {}, all...);
                          }).value();
      for (const plan::selection& s : single) {
        const auto curve = std::find_if(list.map.curves.begin(), list.map.curves.end(),
                                        [&](const plan::plan_curve& c) { return c.name == list.at(s.size).name; });
        ASSERT_NE(curve, list.map.curves.end());
        EXPECT_LE(curve->at(s.size).value, s.time.value * (1 + 1e-8)) << spec << ' ' << to_string(kind) << s.size.value;
        ++asked;
      }
    }
  EXPECT_GT(asked, 200U);
}

TEST(pareto, has_ranges_without_gaps_and_each_line_wins_in_its_own) {
  for (const char* spec : clusters) {
    const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
    const auto list = list_with_few(pareto_problem(g), bytes{777}, bytes{900'000'001}).value();
    EXPECT_EQ(list.map.ranges.front().first, bytes{777});
    EXPECT_EQ(list.map.ranges.back().last, bytes{900'000'001});
    for (std::size_t k = 1; k < list.map.ranges.size(); ++k)
      EXPECT_EQ(list.map.ranges[k].first, list.map.ranges[k - 1].last + bytes{1});
    std::size_t ranges = 0;
    for (const plan::pareto_line& line : list.lines) {
      EXPECT_FALSE(line.wins.empty()) << line.name;
      EXPECT_TRUE(line.proved) << line.name << ": " << line.unproved;
      ranges += line.wins.size();
      for (const plan::size_range& r : line.wins) EXPECT_EQ(list.at(r.first).name, line.name);
      // Somewhere it is cheaper than every other line: a plan that is only as good as another is not on the list.
      for (const plan::plan_curve& other : list.map.curves) {
        if (other.name == line.name) continue;
        bool cheaper = false;
        for (const plan::size_range& r : line.wins) {
          const auto mine = std::find_if(list.map.curves.begin(), list.map.curves.end(),
                                         [&](const plan::plan_curve& c) { return c.name == line.name; });
          const std::uint64_t step = std::max<std::uint64_t>(1, (r.last - r.first).value / 64);
          for (std::uint64_t s = r.first.value; s <= r.last.value; s += step)
            cheaper = cheaper || mine->at(bytes{s}).value < other.at(bytes{s}).value * (1 - 1e-10);
        }
        EXPECT_TRUE(cheaper) << spec << ": " << line.name << " is nowhere cheaper than " << other.name;
      }
    }
    EXPECT_EQ(ranges, list.map.ranges.size());
  }
}

TEST(pareto, has_a_line_for_small_messages_and_one_for_large) {
  const topo::graph g = topo::graph::from(topocoll::describe(clusters[0]).value()).value();
  const auto list = list_with_few(pareto_problem(g), bytes{8}, 4_GiB).value();
  ASSERT_GE(list.lines.size(), 3U);
  const plan::pareto_line &small = list.lines.front(), &large = list.lines.back();
  EXPECT_LT(small.latency, large.latency);
  EXPECT_GT(small.seconds_per_byte, large.seconds_per_byte * 3);
  EXPECT_EQ(list.lines.front().most_rounds, 1U);
  for (const plan::pareto_line& line : list.lines) {
    EXPECT_GE(line.latency, list.bound_latency) << line.name;
    EXPECT_GE(line.seconds_per_byte, list.bound_seconds_per_byte * (1 - 1e-9)) << line.name;
  }
  EXPECT_GT(list.busbw(large.seconds_per_byte).value, 300e9);
  // Rings lose everywhere; by how much at best is what a choice at that size says.
  const auto ring = std::find_if(list.others.begin(), list.others.end(),
                                 [](const plan::pareto_other& o) { return o.name == "ring"; });
  ASSERT_NE(ring, list.others.end());
  plan::problem at = pareto_problem(g);
  plan::simulator<plan::alpha_beta> prices(g, {});
  for (const bytes size : {ring->size, bytes{8}, 1_MiB, 64_MiB, 4_GiB}) {
    at.size = size;
    const auto made =
        with_few_planners([&](const auto&... all) { return plan::choose(prices, at, {}, all...); }).value();
    const auto priced = std::find_if(made.candidates.begin(), made.candidates.end(),
                                     [](const plan::candidate& c) { return c.name == "ring"; });
    ASSERT_NE(priced, made.candidates.end());
    const double factor = priced->price->time / made.price().time;
    EXPECT_LE(ring->factor, factor * (1 + 1e-6)) << size.value;
    if (size == ring->size) {
      EXPECT_NEAR(ring->factor, factor, 1e-6);
    }
  }
}

/// In a full mesh of n ranks latency and rate have closed forms.
TEST(pareto, of_a_full_mesh_has_the_latency_and_rate_of_closed_forms) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 17U}) {
    const topo::graph g = mesh(n);
    plan::problem p = pareto_problem(g, collective_kind::all_gather);
    const plan::alpha_beta cost;
    plan::simulator<plan::alpha_beta> prices(g, cost);
    const auto limit = plan::lower_bound(p, cost).value();
    const auto list = plan::pareto(prices, p, limit, bytes{8}, 1_GiB, {}, plan::direct{}).value();
    ASSERT_EQ(list.lines.size(), 1U);
    const plan::pareto_line& line = list.lines[0];
    const topo::link& wire = g.links()[0];
    // One round: launch, the wire once, and n - 2 further messages to post; each wire carries one shard of size / n.
    EXPECT_NEAR(line.latency.value,
                (cost.launch() + cost.latency(wire) + cost.post() * static_cast<double>(n - 2)).value, 1e-12);
    EXPECT_NEAR(line.seconds_per_byte, 1 / cost.rate(wire).value / n, 1e-17);
    EXPECT_EQ(line.most_rounds, 1U);
    ASSERT_EQ(line.wins.size(), 1U);
    EXPECT_EQ(line.wins[0].last, 1_GiB);
  }
}

TEST(pareto, of_one_rank_is_one_line_without_a_rate) {
  const topo::graph g = mesh(2);
  plan::problem p = pareto_problem(g);
  p.ranks.resize(1);
  const auto list = list_with_few(p, bytes{8}, 1_MiB).value();
  ASSERT_EQ(list.lines.size(), 1U);
  EXPECT_EQ(list.lines[0].most_rounds, 0U);
  EXPECT_EQ(list.busbw(list.lines[0].seconds_per_byte).value, 0);
}

/// Looks faster than all others and is wrong: one stage is missing.
struct forgetful {
  [[nodiscard]] std::string_view name() const { return "forgetful"; }
  [[nodiscard]] topocoll::result<plan::schedule> synthesize(const plan::problem& q) const {
    auto made = plan::hierarchical{}.synthesize(q);
    if (made) {
      made->stages.pop_back();
      made->name = "forgetful";
    }
    return made;
  }
};

TEST(pareto, leaves_out_what_wins_and_is_wrong) {
  const topo::graph g = topo::graph::from(topocoll::describe(clusters[0]).value()).value();
  const plan::problem p = pareto_problem(g);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
  const auto list = [&](bool prove, const auto&... planners) {
    plan::choose_options options;
    options.prove = prove;
    return plan::pareto(prices, p, limit, 1_KiB, 1_GiB, options, planners...).value();
  };
  const auto trusting = list(false, forgetful{}, plan::hierarchical{}, plan::recursive_doubling{});
  const auto honest = list(true, plan::hierarchical{}, plan::recursive_doubling{});
  const auto careful = list(true, forgetful{}, plan::hierarchical{}, plan::recursive_doubling{});
  EXPECT_TRUE(trusting.at(1_GiB).name.starts_with("forgetful"));
  EXPECT_FALSE(trusting.lines.back().proved);
  ASSERT_EQ(careful.lines.size(), honest.lines.size());
  for (std::size_t k = 0; k < honest.lines.size(); ++k) {
    EXPECT_EQ(careful.lines[k].name, honest.lines[k].name);
    EXPECT_EQ(careful.lines[k].wins.front().first, honest.lines[k].wins.front().first);
    EXPECT_TRUE(careful.lines[k].proved);
  }
  EXPECT_TRUE(std::any_of(careful.others.begin(), careful.others.end(), [](const plan::pareto_other& o) {
    return o.name.starts_with("forgetful") && o.factor == 0 && !o.why_not.empty();
  }));
}

/// Costs exactly what `direct` costs, under another name and with another plan at every size.
struct twin {
  [[nodiscard]] std::string_view name() const { return "twin"; }
  [[nodiscard]] topocoll::result<plan::schedule> synthesize(const plan::problem& q) const {
    std::vector<rank_id> order;  // turned by one: the same in a full mesh
    for (std::uint32_t r = 0; r < q.rank_count(); ++r) order.push_back({(r + 1) % q.rank_count()});
    auto made = plan::flat_schedule(q.collective, order, q.root, plan::algorithm::direct);
    if (made) made->name = "twin";
    return made;
  }
};

TEST(pareto, has_one_of_two_plans_that_cost_the_same) {
  const topo::graph g = mesh(5);
  const plan::problem p = pareto_problem(g);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
  const auto list = plan::pareto(prices, p, limit, 1_MiB, 1_GiB, {}, plan::direct{}, twin{}).value();
  ASSERT_EQ(list.lines.size(), 1U);
  ASSERT_EQ(list.others.size(), 1U);
  EXPECT_NEAR(list.others[0].factor, 1, 1e-9);
}

TEST(never_slower, sees_what_happens_between_the_ends_of_a_range) {
  // At both ends a is as good, from 47.5 to 310 it is not: there b has a cut that is best.
  const auto straight = [](double fixed, double per_byte) {
    return plan::plan_curve::cut{1, {{seconds{fixed}, per_byte}}};
  };
  const plan::plan_curve a{"a", {straight(1, 1), straight(51, 0.5)}};
  const plan::plan_curve b{"b", {straight(1, 1), straight(20, 0.6), straight(51, 0.5)}};
  plan::size_range range;
  range.first = bytes{0};
  range.last = bytes{1000};
  EXPECT_FALSE(plan::detail::never_slower(a, b, range));
  EXPECT_TRUE(plan::detail::never_slower(b, a, range));
  EXPECT_TRUE(plan::detail::never_slower(a, a, range));
  range.last = bytes{40};
  EXPECT_TRUE(plan::detail::never_slower(a, b, range));
}

TEST(never_slower, sees_where_the_slopes_of_one_cut_meet) {
  // At both ends c is as fast as d or faster, and where its two slopes meet too; d bends at 100, and only there is faster.
  const plan::plan_curve c{"c", {{2, {{seconds{110}, 0.1}}}}};
  const plan::plan_curve d{"d", {{2, {{seconds{115}, 0}, {seconds{15}, 1}}}}};
  EXPECT_NEAR(d.at(bytes{40}).value, 115, 1e-12);
  EXPECT_NEAR(d.at(bytes{400}).value, 415, 1e-12);
  plan::size_range range;
  range.first = bytes{0};
  range.last = bytes{1000};
  EXPECT_FALSE(plan::detail::never_slower(c, d, range));  // 120 against 115 at 100
  range.last = bytes{40};
  EXPECT_TRUE(plan::detail::never_slower(c, d, range));
}

TEST(pareto, refuses_no_sizes_and_no_plans) {
  const topo::graph g = mesh(3);
  const plan::problem p = pareto_problem(g);
  EXPECT_EQ(list_with_few(p, bytes{0}, 1_KiB).error().code, errc::invalid_argument);
  EXPECT_EQ(list_with_few(p, 2_KiB, 1_KiB).error().code, errc::invalid_argument);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto limit = plan::lower_bound(p, plan::alpha_beta{}).value();
  plan::problem other = p;
  other.collective = collective_kind::all_to_all;
  EXPECT_EQ(plan::pareto(prices, other, limit, 1_KiB, 2_KiB, {}, plan::one_shot{}).error().code, errc::unsupported);
}

TEST(pareto, of_unequal_shards_prices_them) {
  const topo::graph g = mesh(5);
  plan::problem p = pareto_problem(g, collective_kind::all_gather);
  p.shares = {0, 0, 7, 0, 0};
  const plan::alpha_beta cost;
  plan::simulator<plan::alpha_beta> prices(g, cost);
  const auto limit = plan::lower_bound(p, cost).value();
  const auto list = plan::pareto(prices, p, limit, 1_KiB, 1_GiB, {}, plan::direct{}).value();
  // All of the array is at rank 2, which sends it whole over each of its wires.
  EXPECT_NEAR(list.lines[0].seconds_per_byte, 1 / cost.rate(g.links()[0]).value, 1e-16);
}

TEST(pareto, is_the_same_in_text_and_json) {
  const topo::graph g = topo::graph::from(topocoll::describe(clusters[0]).value()).value();
  const auto list = list_with_few(pareto_problem(g), bytes{8}, 4_GiB).value();
  const std::string text = plan::to_text(list);
  const auto j = plan::to_json_value(list);
  ASSERT_EQ(j.at("plans").size(), list.lines.size());
  for (std::size_t k = 0; k < list.lines.size(); ++k) {
    const auto& line = j.at("plans").at(k);
    EXPECT_EQ(line.at("name"), list.lines[k].name);
    EXPECT_DOUBLE_EQ(line.at("latency").get<double>(), list.lines[k].latency.value);
    EXPECT_DOUBLE_EQ(line.at("busbw").get<double>(), list.busbw(list.lines[k].seconds_per_byte).value);
    EXPECT_EQ(line.at("ranges").at(0).at("first"), list.lines[k].wins[0].first.value);
    EXPECT_NE(text.find('\n' + list.lines[k].name + ' '), std::string::npos) << text;
  }
  EXPECT_EQ(j.at("others").size(), list.others.size());
  EXPECT_NE(text.find("\nbound: no plan can do better"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
