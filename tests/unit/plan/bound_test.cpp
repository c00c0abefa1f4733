// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::node_id;
using topocoll::rational;

namespace {

/// A graph from a few words: GPUs, switches and links whose capacities are in GB/s.
struct drawing {
  topo::fragment f;

  node_id add(topo::node_kind kind) {
    topo::node n;
    n.kind = kind;
    n.key = std::to_string(f.nodes.size());
    return f.add(n);
  }
  void one_way(node_id a, node_id b, double GBps, topo::link_kind kind = topo::link_kind::nvlink) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.capacity = {GBps * 1e9};
    f.links.push_back(l);
  }
  void join(node_id a, node_id b, double GBps, topo::link_kind kind = topo::link_kind::nvlink) {
    one_way(a, b, GBps, kind);
    one_way(b, a, GBps, kind);
  }
  [[nodiscard]] topo::graph graph() const { return topo::graph::from(f).value(); }
};

plan::problem problem_of(const topo::graph& g, collective_kind kind, bytes size = 1_GiB) {
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = size;
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}

struct generator {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  }
};

/// A connected graph of a few GPUs and switches with the same capacity both ways.
topo::graph random_graph(std::uint64_t seed, std::uint32_t most_switches) {
  generator random{seed};
  drawing d;
  const std::uint32_t gpus = 2 + random.below(3), switches = random.below(most_switches + 1);
  for (std::uint32_t k = 0; k < gpus; ++k) d.add(topo::node_kind::gpu);
  for (std::uint32_t k = 0; k < switches; ++k) d.add(topo::node_kind::leaf);
  const std::uint32_t n = gpus + switches;
  for (std::uint32_t v = 1; v < n; ++v) d.join({v}, {random.below(v)}, 1 + random.below(9));
  for (std::uint32_t k = random.below(n + 1); k > 0; --k) {
    const std::uint32_t a = random.below(n), b = random.below(n);
    if (a != b) d.join({a}, {b}, 1 + random.below(9));
  }
  return d.graph();
}

std::int64_t GBps_out(const topo::graph& g, const std::vector<std::uint32_t>& part_of, std::uint32_t part) {
  double out = 0;
  for (const topo::link& l : g.links())
    if (part_of[l.from.value] == part && part_of[l.to.value] != part) out += l.capacity.value / 1e9;
  return static_cast<std::int64_t>(out + 0.5);
}

/// Seconds per GB of an all-gather, by trying every cut.
rational gather_by_force(const topo::graph& g, std::int64_t ranks) {
  rational worst{0};
  const auto n = static_cast<std::uint32_t>(g.node_count());
  for (std::uint32_t side = 0; side < 1U << n; ++side) {
    std::vector<std::uint32_t> in(n);
    std::int64_t inside = 0;
    for (std::uint32_t v = 0; v < n; ++v) {
      in[v] = side >> v & 1U;
      inside += in[v] == 1 && g.at(node_id{v}).kind == topo::node_kind::gpu ? 1 : 0;
    }
    if (inside == 0 || inside == ranks) continue;
    const rational ratio{inside, GBps_out(g, in, 1) * ranks};
    if (ratio > worst) worst = ratio;
  }
  return worst;
}

/// Seconds per GB of an all-reduce, by trying every family of disjoint sets.
rational reduce_by_force(const topo::graph& g) {
  rational worst{0};
  const auto n = static_cast<std::uint32_t>(g.node_count());
  std::vector<std::uint32_t> part(n, 0);
  for (bool more = true; more;) {
    // Part 0 means none, which only switches may be in.
    std::uint32_t parts = 0;
    bool good = true;
    for (std::uint32_t v = 0; v < n; ++v) {
      parts = std::max(parts, part[v]);
      good = good && (part[v] > 0 || g.at(node_id{v}).kind != topo::node_kind::gpu);
    }
    for (std::uint32_t k = 1; k <= parts && good; ++k) {
      bool has_rank = false;
      for (std::uint32_t v = 0; v < n; ++v)
        has_rank = has_rank || (part[v] == k && g.at(node_id{v}).kind == topo::node_kind::gpu);
      good = has_rank;
    }
    if (good && parts >= 2) {
      std::int64_t out = 0;
      for (std::uint32_t k = 1; k <= parts; ++k) out += GBps_out(g, part, k);
      const rational ratio{2 * (std::int64_t{parts} - 1), out};
      if (ratio > worst) worst = ratio;
    }
    std::uint32_t v = 0;
    while (v < n && ++part[v] > 4) part[v++] = 0;
    more = v < n;
  }
  return worst;
}

std::string corpus_folder() {
  const char* folder = std::getenv("TOPOCOLL_CORPUS");
  return folder == nullptr ? std::string() : std::string(folder);
}

rational parse_rational(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {std::stoll(text)};
  return {std::stoll(text.substr(0, slash)), std::stoll(text.substr(slash + 1))};
}

/// Graph of an oracle: capacities as the doubles nearest to its fractions.
topo::graph oracle_graph(const nlohmann::json& t) {
  topo::fragment f;
  std::map<std::string, node_id> id;
  for (const auto& v : t.at("nodes")) {
    topo::node n;
    n.key = v.at(0).get<std::string>();
    n.kind = v.at(1) == "compute" ? topo::node_kind::gpu : topo::node_kind::leaf;
    id[n.key] = f.add(n);
  }
  for (const auto& l : t.at("links")) {
    topo::link e;
    e.from = id.at(l.at(0));
    e.to = id.at(l.at(1));
    e.kind = topo::link_kind::nvlink;
    const rational c = parse_rational(l.at(2)) * rational{1'000'000'000};
    e.capacity = {static_cast<double>(c.numerator()) / static_cast<double>(c.denominator())};
    f.links.push_back(e);
  }
  return topo::graph::from(f).value();
}

class oracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (corpus_folder().empty()) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
    std::ifstream in(corpus_folder() + "/oracles/cut-bounds.json");
    if (!in) GTEST_SKIP() << "no oracles/cut-bounds.json under " << corpus_folder();
    topologies = nlohmann::json::parse(in).at("topologies");
    ASSERT_GT(topologies.size(), 0U);
  }
  nlohmann::json topologies;
};

const rational giga{1'000'000'000};

}  // namespace

TEST_F(oracle, for_all_gather_is_met_exactly_and_the_cut_proves_it) {
  for (const auto& t : topologies) {
    const topo::graph g = oracle_graph(t);
    const auto p = problem_of(g, collective_kind::all_gather);
    const auto b = plan::lower_bound(p);
    ASSERT_TRUE(b) << t.at("name") << ": " << b.error().message();
    ASSERT_TRUE(b->seconds_per_byte) << t.at("name");
    const rational ranks{static_cast<std::int64_t>(p.ranks.size())};
    EXPECT_TRUE(*b->seconds_per_byte * giga * ranks == parse_rational(t.at("expected").at("inv_rate_allgather")))
        << t.at("name");
    EXPECT_EQ(b->method, plan::bound_method::best_cut);
    // Recompute the ratio from the side alone: one of the two directions must give it.
    std::vector<bool> inside(g.node_count(), false);
    for (const node_id v : b->side) inside[v.value] = true;
    double out = 0, in = 0, held = 0;
    for (const topo::link& l : g.links()) {
      if (inside[l.from.value] && !inside[l.to.value]) out += l.capacity.value;
      if (!inside[l.from.value] && inside[l.to.value]) in += l.capacity.value;
    }
    for (const node_id v : p.ranks) held += inside[v.value] ? 1 : 0;
    const double n = static_cast<double>(p.ranks.size());
    const double ratio = std::max(held / out, (n - held) / in) / n;
    EXPECT_NEAR(ratio, b->seconds_per_byte->to_double(), 1e-9 * ratio) << t.at("name");
  }
}

TEST_F(oracle, for_reduce_scatter_is_met_exactly) {
  for (const auto& t : topologies) {
    const topo::graph g = oracle_graph(t);
    const auto p = problem_of(g, collective_kind::reduce_scatter);
    const auto b = plan::lower_bound(p);
    ASSERT_TRUE(b && b->seconds_per_byte) << t.at("name");
    const rational ranks{static_cast<std::int64_t>(p.ranks.size())};
    EXPECT_TRUE(*b->seconds_per_byte * giga * ranks == parse_rational(t.at("expected").at("inv_rate_reducescatter")))
        << t.at("name");
  }
}

TEST_F(oracle, for_all_reduce_is_met_exactly_where_it_is_known) {
  std::size_t met = 0;
  for (const auto& t : topologies) {
    const topo::graph g = oracle_graph(t);
    const auto b = plan::lower_bound(problem_of(g, collective_kind::all_reduce));
    ASSERT_TRUE(b && b->seconds_per_byte) << t.at("name");
    if (!t.at("expected").contains("allreduce_rate_GBps")) continue;
    EXPECT_TRUE(rational{1} / (*b->seconds_per_byte * giga) ==
                parse_rational(t.at("expected").at("allreduce_rate_GBps")))
        << t.at("name");
    ++met;
  }
  EXPECT_EQ(met, 28U);
}

TEST_F(oracle, is_not_passed_by_the_cuts_around_the_levels) {
  std::size_t equal = 0, known = 0;
  for (const auto& t : topologies) {
    const topo::graph g = oracle_graph(t);
    const auto b =
        plan::lower_bound(problem_of(g, collective_kind::all_gather), plan::alpha_beta::ideal(), {.effort = 0});
    ASSERT_TRUE(b && b->seconds_per_byte) << t.at("name");
    EXPECT_EQ(b->method, plan::bound_method::level_cuts);
    const rational best = parse_rational(t.at("expected").at("inv_rate_allgather"));
    const rational found = *b->seconds_per_byte * giga * rational{t.at("n_compute").get<std::int64_t>()};
    EXPECT_TRUE(found <= best) << t.at("name");
    equal += found == best ? 1 : 0;
    ++known;
  }
  EXPECT_GE(equal, known / 2) << "of " << known;
}

TEST(lower_bound, of_all_gather_is_the_worst_of_all_cuts) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const topo::graph g = random_graph(seed, 3);
    const auto p = problem_of(g, collective_kind::all_gather);
    const auto b = plan::lower_bound(p);
    ASSERT_TRUE(b && b->seconds_per_byte) << "seed " << seed;
    EXPECT_TRUE(*b->seconds_per_byte * giga == gather_by_force(g, static_cast<std::int64_t>(p.ranks.size())))
        << "seed " << seed;
  }
}

TEST(lower_bound, of_all_reduce_is_the_worst_of_all_families) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const topo::graph g = random_graph(seed, 2);
    const auto b = plan::lower_bound(problem_of(g, collective_kind::all_reduce));
    ASSERT_TRUE(b && b->seconds_per_byte) << "seed " << seed;
    EXPECT_TRUE(*b->seconds_per_byte * giga == reduce_by_force(g))
        << "seed " << seed << " " << b->seconds_per_byte->to_double() * 1e9 << " and "
        << reduce_by_force(g).to_double();
  }
}

TEST(lower_bound, of_uniform_clusters_is_the_closed_form) {
  struct {
    const char* spec;
    std::int64_t boxes, pods, over;
  } cases[] = {{"dgx-h100:nodes=2", 2, 1, 1},
               {"dgx-h100:nodes=16,pods=2,oversubscription=3", 16, 2, 3},
               {"dgx-h100:nodes=16,pods=8,oversubscription=3", 16, 8, 3},
               {"dgx-h100:nodes=7", 7, 1, 1}};
  for (const auto& c : cases) {
    const topo::graph g = topo::graph::from(topocoll::describe(c.spec).value()).value();
    const auto b = plan::lower_bound(problem_of(g, collective_kind::all_gather));
    ASSERT_TRUE(b && b->seconds_per_byte) << c.spec;
    // max{(N-1)/(450+50), (H-1)/50, r(P-1)/50} per shard and GB: GPU, box and pod cuts.
    const std::int64_t n = 8 * c.boxes;
    const rational per_shard =
        std::max({rational{n - 1, 500}, rational{c.boxes - 1, 50}, rational{c.over * (c.pods - 1), 50}},
                 [](rational x, rational y) { return x < y; });
    EXPECT_TRUE(*b->seconds_per_byte * giga == per_shard / rational{n}) << c.spec << " " << b->cut;
    const auto reduce = plan::lower_bound(problem_of(g, collective_kind::all_reduce));
    ASSERT_TRUE(reduce && reduce->seconds_per_byte) << c.spec;
    EXPECT_TRUE(*reduce->seconds_per_byte == *b->seconds_per_byte * rational{2}) << c.spec << " " << reduce->cut;
  }
}

TEST(lower_bound, names_the_pod_whose_uplinks_are_too_few) {
  const topo::graph g =
      topo::graph::from(topocoll::describe("dgx-h100:nodes=16,pods=8,oversubscription=3").value()).value();
  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_gather)).value();
  EXPECT_EQ(b.cut,
            "112 of 128 shards must reach 2 hosts (node0 and node1) through 8 infiniband links of 267 GB/s together");
  EXPECT_EQ(b.method, plan::bound_method::best_cut);
}

TEST(lower_bound, scales_with_the_links_and_does_not_care_for_their_order) {
  const topo::graph g = random_graph(3, 3);
  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_reduce)).value();
  topo::fragment f;
  const auto n = static_cast<std::uint32_t>(g.node_count());
  for (std::uint32_t v = n; v-- > 0;) f.nodes.push_back(g.at(node_id{v}));
  for (topo::link l : g.links()) {
    l.from.value = n - 1 - l.from.value;
    l.to.value = n - 1 - l.to.value;
    l.capacity = l.capacity * 7;
    f.links.push_back(l);
  }
  std::reverse(f.links.begin(), f.links.end());
  const topo::graph turned = topo::graph::from(f).value();
  const auto c = plan::lower_bound(problem_of(turned, collective_kind::all_reduce)).value();
  EXPECT_TRUE(*b.seconds_per_byte == *c.seconds_per_byte * rational{7});
}

TEST(lower_bound, of_broadcast_is_the_narrowest_cut_from_the_root) {
  drawing d;
  const node_id a = d.add(topo::node_kind::gpu), s = d.add(topo::node_kind::nvswitch), b = d.add(topo::node_kind::gpu),
                c = d.add(topo::node_kind::gpu);
  d.join(a, s, 30);
  d.join(b, s, 20);
  d.one_way(s, c, 5);
  d.one_way(c, s, 10);
  d.join(b, c, 3);
  const topo::graph g = d.graph();
  auto p = problem_of(g, collective_kind::broadcast);
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{1, 8}));  // into c: 5 + 3
  p.collective = collective_kind::reduce;
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{1, 13}));  // out of c: 10 + 3
  p.root = {2};                                                                      // c itself
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{1, 8}));   // into c
}

TEST(lower_bound, of_all_to_all_counts_what_crosses_between_boxes) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=4").value()).value();
  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_to_all)).value();
  // 8 ranks send 24/32 of the array each over 8 NICs of 50 GB/s.
  EXPECT_TRUE(*b.seconds_per_byte * giga == (rational{8 * 24, 32 * 400})) << b.cut;
}

TEST(lower_bound, of_ranks_in_one_numa_domain_is_the_way_through_its_memory) {
  drawing d;
  const node_id cpu = d.add(topo::node_kind::cpu), memory = d.add(topo::node_kind::host_memory);
  d.join(cpu, memory, 20, topo::link_kind::memory);
  const topo::graph g = d.graph();
  plan::problem p;
  p.graph = &g;
  p.collective = collective_kind::all_gather;
  p.size = 1_GiB;
  p.ranks.assign(4, cpu);
  // Each of four ranks takes in three of four shards, all of them through 20 GB/s.
  const auto b = plan::lower_bound(p).value();
  EXPECT_TRUE(*b.seconds_per_byte * giga == (rational{3, 20})) << b.cut;
  EXPECT_EQ(b.method, plan::bound_method::shared_memory);
  p.collective = collective_kind::all_reduce;
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{6, 20}));
}

TEST(lower_bound, of_two_numa_domains_is_the_link_between_them) {
  drawing d;
  const node_id a = d.add(topo::node_kind::cpu), b = d.add(topo::node_kind::cpu);
  d.join(a, d.add(topo::node_kind::host_memory), 200, topo::link_kind::memory);
  d.join(b, d.add(topo::node_kind::host_memory), 200, topo::link_kind::memory);
  d.join(a, b, 10, topo::link_kind::cpu);
  const topo::graph g = d.graph();
  plan::problem p;
  p.graph = &g;
  p.size = 1_GiB;
  p.ranks = {a, a, a, b, b};
  p.collective = collective_kind::all_gather;
  const auto b1 = plan::lower_bound(p).value();
  EXPECT_TRUE(*b1.seconds_per_byte * giga == (rational{3, 5 * 10})) << b1.cut;
  p.collective = collective_kind::all_reduce;
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{2, 20}));
}

TEST(lower_bound, of_one_rank_or_no_bytes_is_the_launch) {
  drawing d;
  const node_id a = d.add(topo::node_kind::gpu), b = d.add(topo::node_kind::gpu);
  d.join(a, b, 10);
  const topo::graph g = d.graph();
  auto p = problem_of(g, collective_kind::all_reduce, bytes{0});
  EXPECT_EQ(plan::lower_bound(p, plan::alpha_beta{})->time, plan::alpha_beta{}.launch());
  p.size = 1_GiB;
  p.ranks.resize(1);
  const auto one = plan::lower_bound(p, plan::alpha_beta{}).value();
  EXPECT_EQ(one.time, plan::alpha_beta{}.launch());
  EXPECT_EQ(one.method, plan::bound_method::nothing);
}

TEST(lower_bound, of_a_small_message_is_the_latency_between_the_farthest_ranks) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=2").value()).value();
  const plan::alpha_beta cost;
  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_reduce, bytes{8}), cost).value();
  // GPU, NIC, port, leaf, port, NIC, GPU: two PCIe links, two adapters, two cables; another rail adds two NVLinks.
  const double way =
      2 * (cost.price(topo::link_kind::pcie).latency.value + cost.price(topo::link_kind::internal).latency.value +
           cost.price(topo::link_kind::infiniband).latency.value);
  EXPECT_GE(b.latency_time.value, way);
  EXPECT_LE(b.latency_time.value, way + 2 * cost.price(topo::link_kind::nvlink).latency.value + 1e-12);
  EXPECT_EQ(b.time, cost.launch() + b.latency_time);
}

TEST(lower_bound, refuses_what_cannot_be) {
  drawing d;
  const node_id a = d.add(topo::node_kind::gpu), b = d.add(topo::node_kind::gpu), c = d.add(topo::node_kind::gpu);
  d.join(a, b, 10);
  const topo::graph g = d.graph();
  for (const auto kind : {collective_kind::all_gather, collective_kind::all_reduce, collective_kind::broadcast,
                          collective_kind::all_to_all}) {
    auto p = problem_of(g, kind);
    EXPECT_EQ(plan::lower_bound(p).error().code, errc::unavailable) << to_string(kind);  // nothing leads to c
    p.ranks = {a, b};
    EXPECT_TRUE(plan::lower_bound(p)) << to_string(kind);
    p.root = {2};
    EXPECT_EQ(plan::lower_bound(p).error().code, errc::invalid_argument);
    p.root = {0};
    p.ranks = {a, node_id{99}};
    EXPECT_EQ(plan::lower_bound(p).error().code, errc::invalid_argument);
    p.ranks.clear();
    EXPECT_EQ(plan::lower_bound(p).error().code, errc::invalid_argument);
  }
  (void)c;
}

TEST(lower_bound, holds_for_capacities_that_are_no_fractions) {
  drawing d;
  const node_id a = d.add(topo::node_kind::gpu), b = d.add(topo::node_kind::gpu), c = d.add(topo::node_kind::gpu);
  d.join(a, b, 23.718281828459045);
  d.join(b, c, 17.123456789123457);
  const topo::graph g = d.graph();
  const auto bound = plan::lower_bound(problem_of(g, collective_kind::all_gather)).value();
  const double exact = 1073741824.0 * 2 / 3 / 17.123456789123457e9;
  EXPECT_LE(bound.bandwidth_time.value, exact * (1 + 1e-15));
  EXPECT_GE(bound.bandwidth_time.value, exact * (1 - 1e-9));
}
