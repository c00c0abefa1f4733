// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/levelled_bound.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using plan::two_way;
using topocoll::bytes_per_second;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::node_id;
using topocoll::rational;

namespace {

constexpr collective_kind kinds[] = {collective_kind::all_gather, collective_kind::reduce_scatter,
                                     collective_kind::all_reduce, collective_kind::broadcast,
                                     collective_kind::reduce,     collective_kind::gather,
                                     collective_kind::scatter};

/// Every GPU, switch and cable of a cluster, written out the long way: each unit looks up what holds for it.
class long_form {
 public:
  explicit long_form(const plan::levelled_cluster& c) : c_(c) {
    std::vector<std::uint32_t> here;
    (void)build(here);
  }
  [[nodiscard]] topo::graph graph() const { return topo::graph::from(f_).value(); }
  std::vector<node_id> gpus;

 private:
  [[nodiscard]] bool around(const plan::level_exception& e, const std::vector<std::uint32_t>& unit) const {
    return e.unit.size() <= unit.size() && std::equal(e.unit.begin(), e.unit.end(), unit.begin());
  }
  [[nodiscard]] two_way rate_of(const std::vector<std::uint32_t>& gpu, bool nic) const {
    two_way rate = nic ? c_.nic : c_.nvlink;
    for (std::size_t deep = 0; deep <= gpu.size(); ++deep)
      for (const auto& e : c_.exceptions)
        if (e.unit.size() == deep && around(e, gpu)) {
          if (nic && e.nic) rate = *e.nic;
          if (!nic && e.nvlink) rate = *e.nvlink;
        }
    return rate;
  }
  [[nodiscard]] std::uint32_t units_of(const std::vector<std::uint32_t>& unit) const {
    const std::size_t level = unit.size(), pod = c_.tiers.size();
    std::uint32_t n = level < pod ? c_.tiers[level].units : (level == pod ? c_.boxes : c_.gpus);
    for (const auto& e : c_.exceptions)
      if (e.units && e.unit == unit) n = *e.units;
    return n;
  }
  node_id add(topo::node_kind kind) {
    topo::node n;
    n.kind = kind;
    n.key = std::to_string(f_.nodes.size());
    return f_.add(n);
  }
  void one_way(node_id a, node_id b, bytes_per_second rate) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = topo::link_kind::infiniband;
    l.capacity = rate;
    f_.links.push_back(l);
  }
  void join(node_id lower, node_id upper, two_way rate) {
    one_way(lower, upper, rate.up);
    one_way(upper, lower, rate.down);
  }

  /// The switches at the top of a unit: one per rail, or one; for a box its GPUs.
  std::vector<node_id> build(const std::vector<std::uint32_t>& unit) {
    const std::size_t level = unit.size(), pod = c_.tiers.size();
    const std::uint32_t units = units_of(unit);
    std::vector<std::vector<node_id>> below;
    std::vector<node_id> mine;
    if (level == pod + 1) {
      const bool paired = c_.inside == plan::joint::in_pairs;
      const node_id plane = paired ? node_id{} : add(topo::node_kind::nvswitch);
      for (std::uint32_t i = 0; i < units; ++i) {
        auto gpu = unit;
        gpu.push_back(i);
        mine.push_back(add(topo::node_kind::gpu));
        gpus.push_back(mine.back());
        if (!paired) join(mine[i], plane, rate_of(gpu, false));
        for (std::uint32_t k = 0; k < i && paired; ++k) join(mine[i], mine[k], two_way::both(rate_of(unit, false).up));
      }
      return mine;
    }
    for (std::uint32_t i = 0; i < units; ++i) {
      auto child = unit;
      child.push_back(i);
      below.push_back(build(child));
    }
    if (level == pod) {
      for (std::uint32_t k = 0; k < (c_.rails ? c_.gpus : 1); ++k) mine.push_back(add(topo::node_kind::leaf));
      for (std::uint32_t i = 0; i < units; ++i)
        for (std::uint32_t k = 0; k < below[i].size(); ++k) {
          auto gpu = unit;
          gpu.push_back(i);
          gpu.push_back(k);
          join(below[i][k], mine[c_.rails ? k : 0], rate_of(gpu, true));
        }
      return mine;
    }
    const plan::fabric_tier& tier = c_.tiers[level];
    const std::size_t rails = below[0].size();
    if (tier.how == plan::joint::in_pairs) {
      for (std::uint32_t i = 0; i < units; ++i)
        for (std::uint32_t k = 0; k < i; ++k)
          for (std::size_t r = 0; r < rails; ++r) join(below[i][r], below[k][r], two_way::both(tier.uplink.up));
      return mine;
    }
    // Two switches side by side where the model has one: each has half of every uplink.
    std::vector<node_id> twins;
    const std::size_t wide = tier.joins_rails ? 1 : rails;
    for (std::size_t r = 0; r < wide; ++r) {
      mine.push_back(add(topo::node_kind::spine));
      twins.push_back(level == 0 ? add(topo::node_kind::spine) : mine.back());
    }
    for (std::uint32_t i = 0; i < units; ++i)
      for (std::size_t r = 0; r < rails; ++r) {
        auto child = unit;
        child.push_back(i);
        two_way rate = tier.uplink;
        for (const auto& e : c_.exceptions)
          if (e.uplink && e.unit == child && (!e.rail || *e.rail == r)) rate = *e.uplink;
        const two_way half{rate.up * 0.5, rate.down * 0.5};
        join(below[i][r], mine[wide > 1 ? r : 0], half);
        join(below[i][r], twins[wide > 1 ? r : 0], half);
      }
    return mine;
  }

  const plan::levelled_cluster& c_;
  topo::fragment f_;
};

struct generator {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  }
};

two_way random_rate(generator& random, bool alike) {
  const bytes_per_second up = 2_GBps * (1.0 + random.below(24)), down = 2_GBps * (1.0 + random.below(24));
  return {up, alike ? up : down};
}

plan::levelled_cluster random_cluster(std::uint64_t seed, std::uint32_t exceptions) {
  generator random{seed * 77 + 5};
  plan::levelled_cluster c;
  const bool alike = random.below(3) != 0;
  const std::uint32_t tiers = random.below(3);
  for (std::uint32_t k = 0; k < tiers; ++k) {
    plan::fabric_tier t;
    t.units = 1 + random.below(3);
    t.uplink = random_rate(random, alike);
    t.joins_rails = random.below(3) != 0;
    if (k == 0 && random.below(4) == 0) t.how = plan::joint::in_pairs;
    c.tiers.push_back(t);
  }
  c.boxes = 1 + random.below(3);
  c.gpus = 1 + random.below(4);
  c.rails = random.below(4) != 0;
  c.nic = random_rate(random, alike);
  c.nvlink = random_rate(random, alike);
  c.nvlink.up = c.nvlink.up * (1.0 + random.below(6));
  c.nvlink.down = alike ? c.nvlink.up : c.nvlink.down * 3;
  if (random.below(5) == 0) c.inside = plan::joint::in_pairs;
  for (std::uint32_t k = 0; k < exceptions; ++k) {
    plan::level_exception e;
    const std::uint32_t deep = 1 + random.below(tiers + 2);
    for (std::uint32_t l = 0; l < deep; ++l)
      e.unit.push_back(random.below(l < tiers ? c.tiers[l].units : (l == tiers ? c.boxes : c.gpus)));
    switch (random.below(4)) {
      case 0: e.nic = random_rate(random, alike); break;
      case 1:
        if (c.inside == plan::joint::through_switch) e.nvlink = random_rate(random, alike);
        break;
      case 2:
        if (deep <= tiers && c.tiers[deep - 1].how == plan::joint::through_switch) {
          e.uplink = random_rate(random, alike);
          bool apart = c.rails;
          for (std::uint32_t l = deep; l < tiers; ++l) apart = apart && !c.tiers[l].joins_rails;
          if (apart && random.below(2) == 0) e.rail = random.below(c.gpus);
        }
        break;
      default:
        if (deep < tiers + 2)
          e.units = 1 + random.below(deep < tiers ? c.tiers[deep].units : (deep == tiers ? c.boxes : c.gpus));
    }
    c.exceptions.push_back(e);
  }
  return c;
}

std::string drawn(const plan::levelled_cluster& c) {
  std::string text;
  for (const auto& t : c.tiers)
    text += "tier of " + std::to_string(t.units) + " up " + std::to_string(t.uplink.up.value / 1e9) + " down " +
            std::to_string(t.uplink.down.value / 1e9) + (t.joins_rails ? "" : " rails") +
            (t.how == plan::joint::in_pairs ? " pairs" : "") + "; ";
  text += std::to_string(c.boxes) + " boxes of " + std::to_string(c.gpus) + (c.rails ? " rails" : " one leaf") +
          (c.inside == plan::joint::in_pairs ? " pairs" : "") + " nic " + std::to_string(c.nic.up.value / 1e9) +
          " nvlink " + std::to_string(c.nvlink.up.value / 1e9);
  for (const auto& e : c.exceptions) {
    text += "; at";
    for (const auto i : e.unit) text += ' ' + std::to_string(i);
    if (e.nic) text += " nic " + std::to_string(e.nic->up.value / 1e9);
    if (e.nvlink) text += " nvlink " + std::to_string(e.nvlink->up.value / 1e9);
    if (e.uplink) text += " uplink " + std::to_string(e.uplink->up.value / 1e9);
    if (e.rail) text += " rail " + std::to_string(*e.rail);
    if (e.units) text += " units " + std::to_string(*e.units);
  }
  return text;
}

/// Compares with the bound on the long form; returns how many families were shown to be the best.
void expect_agreement(const plan::levelled_cluster& c, const std::string& what, std::uint32_t* shown = nullptr) {
  const long_form all(c);
  const topo::graph g = all.graph();
  for (const auto kind : kinds) {
    plan::problem p;
    p.graph = &g;
    p.collective = kind;
    p.size = 1_GiB;
    p.ranks = all.gpus;
    const auto given = plan::lower_bound(p);
    const auto found = plan::lower_bound(c, kind);
    const std::string where = what + ' ' + std::string(to_string(kind)) + ": " + drawn(c);
    if (all.gpus.size() == 1) {
      ASSERT_TRUE(found) << where;
      EXPECT_EQ(found->parts, 0U) << where;
      continue;
    }
    ASSERT_EQ(bool(given), bool(found)) << where << ' ' << (found ? given.error().what : found.error().what);
    if (!found) continue;
    ASSERT_TRUE(found->seconds_per_byte.valid() && given->seconds_per_byte) << where;
    EXPECT_EQ(found->ranks, all.gpus.size()) << where;
    if (kind != collective_kind::all_reduce) {
      EXPECT_TRUE(found->seconds_per_byte == *given->seconds_per_byte) << where << "\n"
                                                                       << found->cut << "\n"
                                                                       << given->cut;
      EXPECT_EQ(found->method, plan::bound_method::best_cut) << where;
      continue;
    }
    // All-reduce: never above, and equal where the levels say that no other family is better and directions are alike.
    EXPECT_TRUE(found->seconds_per_byte <= *given->seconds_per_byte) << where << "\n"
                                                                     << found->cut << "\n"
                                                                     << given->cut;
    const auto best = [](plan::bound_method m) {
      return m == plan::bound_method::best_cut || m == plan::bound_method::best_partition;
    };
    EXPECT_TRUE(best(given->method)) << where;
    if (!best(found->method)) continue;
    EXPECT_TRUE(found->seconds_per_byte == *given->seconds_per_byte) << where << "\n"
                                                                     << found->cut << "\n"
                                                                     << given->cut;
    if (shown != nullptr) ++*shown;
  }
}

const rational giga{1'000'000'000};

}  // namespace

TEST(levelled_bound, of_random_clusters_is_that_of_every_gpu_and_cable) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed)
    expect_agreement(random_cluster(seed, 0), "seed " + std::to_string(seed));
}

TEST(levelled_bound, of_random_clusters_with_exceptions_is_that_of_every_gpu_and_cable) {
  std::uint32_t shown = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    expect_agreement(random_cluster(seed, 1 + static_cast<std::uint32_t>(seed % 4)), "seed " + std::to_string(seed),
                     &shown);
  EXPECT_GT(shown, 100U);  // families that the classes alone show to be the best
}

TEST(levelled_bound, of_uniform_clusters_is_the_closed_form) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    generator random{seed};
    const std::uint32_t pods = 1 + random.below(9), boxes = 2 + random.below(30), gpus = 1 + random.below(9);
    const std::int64_t nic = 1 + random.below(9), nvlink = nic * (1 + random.below(9)), over = 1 + random.below(4);
    const auto c = plan::rail_cluster(pods, boxes, gpus, 1_GBps * static_cast<double>(nvlink),
                                      1_GBps * static_cast<double>(nic), static_cast<double>(over));
    const std::int64_t hosts = std::int64_t{pods} * boxes, n = hosts * gpus;
    // One GPU against all others, a box against the others, a pod against the others.
    rational per_shard{n - 1, gpus > 1 ? nvlink + nic : nic};
    per_shard = std::max(per_shard, rational{hosts - 1, nic}, [](rational x, rational y) { return x < y; });
    per_shard = std::max(per_shard, rational{over * (pods - 1), nic}, [](rational x, rational y) { return x < y; });
    const auto gather = plan::lower_bound(c, collective_kind::all_gather);
    ASSERT_TRUE(gather) << seed << gather.error().what;
    EXPECT_TRUE(gather->seconds_per_byte * giga * rational{n} == per_shard) << seed << ' ' << gather->cut;
    const auto reduce = plan::lower_bound(c, collective_kind::all_reduce);
    ASSERT_TRUE(reduce) << seed;
    EXPECT_TRUE(reduce->seconds_per_byte == gather->seconds_per_byte * rational{2}) << seed << ' ' << reduce->cut;
    EXPECT_EQ(reduce->method, plan::bound_method::best_partition) << seed;
  }
}

TEST(levelled_bound, of_a_leaf_for_each_box_puts_uplink_and_nic_in_series) {
  // 16 boxes with eight leaves each, 2:1: 25 GB/s of each NIC get through.
  const auto c = plan::rail_cluster(16, 1, 8, 450_GBps, 50_GBps, 2);
  const auto b = plan::lower_bound(c, collective_kind::all_gather).value();
  EXPECT_TRUE(rational{1} / (b.seconds_per_byte * giga) == (rational{640, 3})) << b.cut;
}

TEST(levelled_bound, of_a_million_gpus_names_the_box_that_limits) {
  auto c = plan::rail_cluster(1024, 128, 8, 450_GBps, 50_GBps, 2);
  const auto whole = plan::lower_bound(c, collective_kind::all_gather).value();
  EXPECT_EQ(whole.ranks, 1U << 20U);
  EXPECT_EQ(whole.cut, "1048568 of 1048576 shards must reach box 0 of pod 0 (8 GPUs) through 400 GB/s");
  // One NIC at half rate.
  plan::level_exception e;
  e.unit = {700, 3, 5};
  e.nic = two_way::both(25_GBps);
  c.exceptions.push_back(e);
  const auto hurt = plan::lower_bound(c, collective_kind::all_gather).value();
  EXPECT_EQ(hurt.cut, "1048568 of 1048576 shards must reach box 3 of pod 700 (8 GPUs) through 375 GB/s");
  EXPECT_TRUE(hurt.seconds_per_byte == whole.seconds_per_byte * (rational{400, 375}));
  const auto reduce = plan::lower_bound(c, collective_kind::all_reduce).value();
  EXPECT_EQ(reduce.method, plan::bound_method::best_partition);
  EXPECT_EQ(reduce.parts, 1U << 17U);
  EXPECT_EQ(reduce.cut,
            "each byte crosses 262142 times between 131072 sets (box 3 of pod 700, and so on); "
            "52428775 GB/s leave them together");
}

TEST(levelled_bound, tells_all_to_all_by_the_pod_with_few_uplinks) {
  const auto c = plan::rail_cluster(8, 16, 8, 450_GBps, 50_GBps, 4);
  const auto b = plan::lower_bound(c, collective_kind::all_to_all).value();
  EXPECT_EQ(b.method, plan::bound_method::level_cuts);
  EXPECT_EQ(b.cut, "what goes to others must leave pod 0 through 1600 GB/s");
  // 128 GPUs of a pod send 7/8 of their arrays each.
  EXPECT_TRUE(b.seconds_per_byte * giga == (rational{128 * 7, 8 * 1600}));
}

TEST(levelled_bound, refuses_what_is_not_there) {
  const auto code = [](const plan::levelled_cluster& c) {
    const auto b = plan::lower_bound(c, collective_kind::all_gather);
    return b ? errc{} : b.error().code;
  };
  auto c = plan::rail_cluster(2, 2, 2, 100_GBps, 10_GBps);
  const auto with = [&](std::vector<std::uint32_t> unit, auto set) {
    auto d = c;
    plan::level_exception e;
    e.unit = std::move(unit);
    set(e);
    d.exceptions.push_back(e);
    return d;
  };
  const auto nothing = [](plan::level_exception&) {};
  EXPECT_TRUE(plan::lower_bound(with({1, 1, 1}, nothing), collective_kind::all_gather));
  EXPECT_EQ(code(with({2}, nothing)), errc::invalid_argument);
  EXPECT_EQ(code(with({0, 0, 0, 0}, nothing)), errc::invalid_argument);
  EXPECT_EQ(code(with({0}, [](auto& e) { e.units = 3; })), errc::invalid_argument);
  EXPECT_EQ(code(with({0, 0, 0}, [](auto& e) { e.units = 1; })), errc::invalid_argument);
  EXPECT_EQ(code(with({0, 0}, [](auto& e) { e.uplink = two_way::both(1_GBps); })), errc::invalid_argument);
  EXPECT_EQ(code(with({0}, [](auto& e) { e.nic = two_way::both({-1}); })), errc::invalid_argument);
  c.boxes = 0;
  EXPECT_EQ(code(c), errc::invalid_argument);
  c = plan::rail_cluster(2, 2, 2, 100_GBps, 10_GBps);
  c.tiers[0].uplink = {};
  EXPECT_EQ(code(c), errc::unavailable);
  c = plan::rail_cluster(1, 1, 1, 100_GBps, 10_GBps);
  EXPECT_EQ(plan::lower_bound(c, collective_kind::all_reduce)->parts, 0U);
}
