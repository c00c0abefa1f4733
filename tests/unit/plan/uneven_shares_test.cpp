// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, and shards of unequal size: bounds against brute force, plans against bounds, prices against programs.
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/planners.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>
#include "plan_oracle.hpp"

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::node_id;
using topocoll::rank_id;
using topocoll::rational;
using shares_list = std::vector<std::uint64_t>;

constexpr collective_kind with_shards[] = {collective_kind::all_gather, collective_kind::reduce_scatter,
                                           collective_kind::gather, collective_kind::scatter};

/// Equal numbers on every platform.
class dice {
 public:
  explicit dice(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

bool is_rooted(collective_kind c) { return c == collective_kind::gather || c == collective_kind::scatter; }

/// A connected graph of GPUs and a few switches with links of 1 to 8 GB/s, some faster one way.
topo::graph random_graph(dice& random, std::uint32_t gpus, std::uint32_t switches) {
  topo::fragment f;
  const std::uint32_t n = gpus + switches;
  for (std::uint32_t v = 0; v < n; ++v) {
    topo::node x;
    x.kind = v < gpus ? topo::node_kind::gpu : topo::node_kind::pcie_switch;
    x.key = std::to_string(v);
    f.add(x);
  }
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = {a};
    l.to = {b};
    l.capacity = {static_cast<double>(1 + random() % 8) * 1e9};
    f.links.push_back(l);
    std::swap(l.from, l.to);
    if (random() % 3 == 0) l.capacity = {static_cast<double>(1 + random() % 8) * 1e9};
    f.links.push_back(l);
  };
  for (std::uint32_t v = 1; v < n; ++v) join(v, random() % v);
  for (std::uint32_t k = random() % n; k > 0; --k) {
    const std::uint32_t a = random() % n, b = random() % n;
    if (a != b) join(a, b);
  }
  return topo::graph::from(std::move(f)).value();
}

plan::problem draw(dice& random, const topo::graph& g, collective_kind c) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 26U};
  p.ranks = g.all(topo::node_kind::gpu);
  p.root = {random() % p.rank_count()};
  if (random() % 4 == 0) return p;
  for (std::size_t r = 0; r < p.ranks.size(); ++r) p.shares.push_back(random() % 3 == 0 ? 0 : random() % 12);
  p.shares[random() % p.rank_count()] = 5;  // not all 0
  return p;
}

/// Seconds per byte that the worst of all cuts asks for, by looking at every cut.
rational brute_force(const plan::problem& p) {
  const topo::graph& g = *p.graph;
  const std::uint32_t n = static_cast<std::uint32_t>(g.node_count());
  const bool turned = p.collective == collective_kind::reduce_scatter || p.collective == collective_kind::scatter;
  std::int64_t all = 0;
  std::vector<std::int64_t> born(n, 0);
  std::uint32_t receivers = 0;
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    born[p.ranks[r].value] = p.shares.empty() ? 1 : static_cast<std::int64_t>(p.shares[r]);
    all += born[p.ranks[r].value];
    if (!is_rooted(p.collective) || r == p.root.value) receivers |= 1U << p.ranks[r].value;
  }
  rational worst{0};
  for (std::uint32_t inside = 1; inside + 1 < 1U << n; ++inside) {
    if ((receivers & ~inside) == 0) continue;
    std::int64_t weight = 0, out = 0;
    for (std::uint32_t v = 0; v < n; ++v) weight += (inside >> v & 1U) != 0 ? born[v] : 0;
    for (const topo::link& l : g.links()) {
      const std::uint32_t from = turned ? l.to.value : l.from.value, to = turned ? l.from.value : l.to.value;
      if ((inside >> from & 1U) != 0 && (inside >> to & 1U) == 0)
        out += static_cast<std::int64_t>(l.capacity.value / 1e9);
    }
    if (weight == 0) continue;
    const rational asked = rational{weight, all} / (rational{out} * rational{1'000'000'000});
    if (worst < asked) worst = asked;
  }
  return worst;
}

std::string title(const plan::problem& p, std::uint32_t seed) {
  return "seed " + std::to_string(seed) + ", " + std::string(to_string(p.collective)) + ", root " +
         std::to_string(p.root.value) + ", shares " + testing::PrintToString(p.shares);
}

TEST(bound_of_shards, is_what_the_worst_of_all_cuts_asks_for) {
  std::uint32_t nothing = 0;
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    dice random(seed);
    const topo::graph g = random_graph(random, 2 + random() % 6, random() % 3);
    for (const collective_kind c : with_shards) {
      const plan::problem p = draw(random, g, c);
      SCOPED_TRACE(title(p, seed));
      const auto limit = plan::lower_bound(p);
      ASSERT_TRUE(limit) << limit.error().what;
      const rational wanted = brute_force(p);
      if (wanted == rational{0}) {  // the root has everything
        ++nothing;
        EXPECT_EQ(limit->method, plan::bound_method::nothing);
        EXPECT_EQ(limit->bandwidth_time.value, 0);
        continue;
      }
      EXPECT_EQ(limit->method, plan::bound_method::best_cut);
      ASSERT_TRUE(limit->seconds_per_byte);
      EXPECT_TRUE(*limit->seconds_per_byte == wanted);
    }
  }
  EXPECT_GT(nothing, 0U);
}

/// Bytes of 1 MiB per share unit that programs send between each pair.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sent(const std::vector<plan::program>& all,
                                                                      const shares_list& shares) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sum;
  for (const plan::program& p : all)
    for (const plan::op& o : p.ops)
      if (o.kind == plan::op_kind::send)
        for (std::uint32_t c = o.chunk; c < o.chunk + o.from.count; ++c)
          sum[{p.rank.value, o.peer.value}] += shares[c / (p.chunks / p.ranks)];
  std::erase_if(sum, [](const auto& entry) { return entry.second == 0; });
  return sum;
}

/// Proved, right on numbers for shards of these sizes and others, priced by what its programs send, not below the bound.
/// @return how much above the bound its busiest link is
double excess(const plan::problem& p, const plan::schedule& made, std::uint32_t seed) {
  const auto proved = plan::verify(made);
  EXPECT_TRUE(proved) << proved.error().what;
  std::vector<plan::program> all;
  for (std::uint32_t r = 0; r < made.ranks; ++r) all.push_back(plan::lower(made, rank_id{r}).value());
  shares_list counts = p.shares.empty() ? shares_list(made.ranks, 1) : p.shares;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> told;
  std::uint64_t common = 0;
  for (std::uint64_t s : counts)
    while (s != 0) common = std::exchange(s, common % s);
  for (const plan::traffic_round& r : plan::traffic(made, p.shares))
    for (const plan::transfer& t : r.moves) told[{t.from.value, t.to.value}] += t.chunks * r.repeat * common;
  EXPECT_EQ(told, sent(all, counts));
  EXPECT_EQ(plan_test::second_opinion(all, 0, seed, counts), "");
  for (std::uint64_t& c : counts) c = (c * 37 + seed) % 11;
  EXPECT_EQ(plan_test::second_opinion(all, 0, seed, counts), "");
  const plan::alpha_beta nominal = plan::alpha_beta::ideal();
  const auto price = plan::simulate(p, made, nominal);
  const auto limit = plan::lower_bound(p, nominal);
  EXPECT_TRUE(price) << price.error().what;
  EXPECT_TRUE(limit) << limit.error().what;
  if (!price || !limit) return 1e9;
  EXPECT_GE(price->busiest.value, limit->bandwidth_time.value * (1 - 1e-9));
  return limit->bandwidth_time.value > 0 ? price->busiest / limit->bandwidth_time - 1 : 0;
}

TEST(packed_shards, are_proved_right_and_on_the_bound) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    dice random(seed);
    const topo::graph g = random_graph(random, 2 + random() % 5, 0);
    for (const collective_kind c : with_shards) {
      const plan::problem p = draw(random, g, c);
      SCOPED_TRACE(title(p, seed));
      plan::packed planner;
      planner.cost = plan::alpha_beta::ideal();
      const auto made = planner.synthesize(p);
      ASSERT_TRUE(made) << made.error().what;
      // Flows are whole; trees are where as much enters a rank as leaves it, and these graphs promise nothing.
      const double over = excess(p, *made, seed);
      if (is_rooted(c)) {
        EXPECT_LE(over, p.shares.empty() ? 1e-3 : 0.01);
      }
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST(gathers, use_all_nics_of_the_root_box) {
  const plan::alpha_beta nominal = plan::alpha_beta::ideal();
  for (const char* what : {"dgx-h100:nodes=8", "dgx-a100:nodes=9,leaves=8"}) {
    const topo::graph g = topo::graph::from(topocoll::describe(what).value()).value();
    for (const collective_kind c : {collective_kind::gather, collective_kind::scatter})
      for (const std::uint32_t root : {0U, 13U, 63U}) {
        plan::problem p{&g, c, {std::uint64_t{1} << 30U}, g.all(topo::node_kind::gpu), {root}, {}};
        SCOPED_TRACE(std::string(what) + " " + std::string(to_string(c)));
        const auto made = plan::hierarchical{}.synthesize(p);
        ASSERT_TRUE(made) << made.error().what;
        EXPECT_TRUE(plan::verify(*made));
        const auto price = plan::simulate(p, *made, nominal);
        const auto limit = plan::lower_bound(p, nominal);
        ASSERT_TRUE(price && limit);
        EXPECT_LE(price->busiest / limit->bandwidth_time, 1.01) << limit->cut;
        EXPECT_GE(price->busiest / limit->bandwidth_time, 1 - 1e-9) << limit->cut;
      }
  }
}

TEST(gathers, share_shards_where_ranks_do_not_divide_among_the_nics) {
  const plan::alpha_beta nominal = plan::alpha_beta::ideal();
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=8").value()).value();
  const auto gpus = g.all(topo::node_kind::gpu);
  // Three GPUs of the first box, all others of the rest: 56 shards come in through three NICs.
  std::vector<node_id> ranks(gpus.begin() + 5, gpus.end());
  for (const bool uneven : {false, true}) {
    plan::problem p{&g, collective_kind::gather, {std::uint64_t{1} << 30U}, ranks, {1}, {}};
    for (std::uint32_t r = 0; uneven && r < ranks.size(); ++r) p.shares.push_back(1 + r % 7);
    const auto made = plan::hierarchical{}.synthesize(p);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_TRUE(plan::verify(*made));
    const auto price = plan::simulate(p, *made, nominal);
    ASSERT_TRUE(price);
    double share = 0, all = 0;
    for (std::uint32_t r = 0; r < ranks.size(); ++r) {
      const double s = uneven ? static_cast<double>(p.shares[r]) : 1;
      all += s;
      if (r >= 3) share += s;
    }
    const double through_three_nics = 0x1p30 * share / all / (3 * 50e9);
    EXPECT_NEAR(price->busiest.value / through_three_nics, 1, 0.02);
  }
}

TEST(gathers, have_a_cheapest_plan_at_every_size_and_number_of_ranks) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=3").value()).value();
  const auto gpus = g.all(topo::node_kind::gpu);
  const plan::alpha_beta cost;
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 15U, 17U, 24U})
    for (const collective_kind c : {collective_kind::gather, collective_kind::scatter})
      for (const std::uint64_t size :
           {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{1} << 20U, std::uint64_t{1} << 30U}) {
        const plan::problem p{&g, c, {size}, {gpus.begin(), gpus.begin() + n}, {n - 1}, {}};
        plan::simulator<plan::alpha_beta> prices(g, cost);
        const auto made = plan::with_default_planners(
            [&](const auto&... planners) { return plan::choose(prices, p, plan::choose_options{}, planners...); });
        ASSERT_TRUE(made) << n << " ranks, " << size << ": " << made.error().what;
        EXPECT_TRUE(made->candidates.front().proved);
      }
}

TEST(problem_shares, that_cannot_be_meant_are_refused_in_a_sentence) {
  dice random(1);
  const topo::graph g = random_graph(random, 3, 0);
  plan::problem p{&g, collective_kind::all_gather, {64}, g.all(topo::node_kind::gpu), {}, {1, 2}};
  const auto says = [&](const std::string& part) {
    for (const auto& made : {plan::packed{}.synthesize(p), plan::hierarchical{}.synthesize(p)}) {
      ASSERT_FALSE(made);
      EXPECT_EQ(made.error().code, errc::invalid_argument);
      EXPECT_NE(made.error().what.find(part), std::string::npos) << made.error().what;
    }
    plan::problem even = p;
    even.shares.clear();
    const auto price = plan::simulate(p, plan::ring{}.synthesize(even).value(), plan::alpha_beta::ideal());
    ASSERT_FALSE(price);
    EXPECT_NE(price.error().what.find(part), std::string::npos) << price.error().what;
  };
  says("2 shares were given for 3 ranks");
  p.shares = {0, 0, 0};
  says("the shares of all ranks are 0");
  p.shares = {1, 1, 1};
  p.collective = collective_kind::all_reduce;
  says("all_reduce has no shards that could differ in size");
}

}  // namespace
