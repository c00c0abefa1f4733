// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/symmetry.hpp>
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

/// An oracle's network with its capacities as fractions, and what may be done to it without changing the answer.
struct oracle_network {
  std::vector<std::string> names;
  std::vector<bool> computes;
  struct link {
    std::uint32_t from, to;
    rational GBps;
  };
  std::vector<link> links;

  explicit oracle_network(const nlohmann::json& t) {
    std::map<std::string, std::uint32_t> id;
    for (const auto& v : t.at("nodes")) {
      id[v.at(0)] = static_cast<std::uint32_t>(names.size());
      names.push_back(v.at(0));
      computes.push_back(v.at(1) == "compute");
    }
    for (const auto& l : t.at("links")) links.push_back({id.at(l.at(0)), id.at(l.at(1)), parse_rational(l.at(2))});
  }
  [[nodiscard]] oracle_network scaled(rational factor) const {
    oracle_network o = *this;
    for (link& l : o.links) l.GBps = l.GBps * factor;
    return o;
  }
  /// Node v becomes node n - 1 - v after a shift; links in another order.
  [[nodiscard]] oracle_network relabelled() const {
    oracle_network o = *this;
    const auto n = static_cast<std::uint32_t>(names.size());
    const auto moved = [&](std::uint32_t v) { return (2 * n - 1 - v - n / 3) % n; };
    for (std::uint32_t v = 0; v < n; ++v) {
      o.names[moved(v)] = names[v];
      o.computes[moved(v)] = computes[v];
    }
    for (link& l : o.links) l = {moved(l.from), moved(l.to), l.GBps};
    std::reverse(o.links.begin(), o.links.end());
    return o;
  }
  /// A switch in the middle of some connection, in both directions if there are two.
  [[nodiscard]] oracle_network interrupted(std::uint32_t which) const {
    oracle_network o = *this;
    const link cut = links[which % links.size()];
    const auto s = static_cast<std::uint32_t>(names.size());
    o.names.push_back("between");
    o.computes.push_back(false);
    o.links.clear();
    for (const link& l : links) {
      if ((l.from == cut.from && l.to == cut.to) || (l.from == cut.to && l.to == cut.from)) {
        o.links.push_back({l.from, s, l.GBps});
        o.links.push_back({s, l.to, l.GBps});
      } else {
        o.links.push_back(l);
      }
    }
    return o;
  }

  /// Capacities as the doubles nearest to the fractions.
  [[nodiscard]] topo::graph graph() const {
    topo::fragment f;
    for (std::uint32_t v = 0; v < names.size(); ++v) {
      topo::node n;
      n.key = names[v];
      n.kind = computes[v] ? topo::node_kind::gpu : topo::node_kind::leaf;
      f.add(n);
    }
    for (const link& l : links) {
      topo::link e;
      e.from = {l.from};
      e.to = {l.to};
      e.kind = topo::link_kind::nvlink;
      const rational c = l.GBps * rational{1'000'000'000};
      e.capacity = {static_cast<double>(c.numerator()) / static_cast<double>(c.denominator())};
      f.links.push_back(e);
    }
    return topo::graph::from(f).value();
  }
  [[nodiscard]] plan::detail::exact_network exact(std::vector<std::int64_t>& weight) const {
    std::int64_t common = 1;
    for (const link& l : links) common = std::lcm(common, l.GBps.denominator());
    plan::detail::exact_network net;
    net.nodes = static_cast<std::uint32_t>(names.size());
    for (const link& l : links)
      net.arcs.push_back({l.from, l.to, l.GBps.numerator() * (common / l.GBps.denominator())});
    net.unit = rational{1, common};
    weight.clear();
    for (const bool c : computes) weight.push_back(c ? 1 : 0);
    return net;
  }
  [[nodiscard]] std::int64_t ranks() const { return std::count(computes.begin(), computes.end(), true); }
  [[nodiscard]] bool balanced_switches() const {
    std::vector<rational> surplus(names.size());
    for (const link& l : links) {
      surplus[l.from] = surplus[l.from] + l.GBps;
      surplus[l.to] = surplus[l.to] - l.GBps;
    }
    for (std::uint32_t v = 0; v < names.size(); ++v)
      if (!computes[v] && !(surplus[v] == rational{0})) return false;
    return true;
  }

  /// What leaves a set of nodes, and how many ranks are in it.
  [[nodiscard]] rational out_of(const std::vector<bool>& set) const {
    rational sum{0};
    for (const link& l : links)
      if (set[l.from] && !set[l.to]) sum = sum + l.GBps;
    return sum;
  }
  [[nodiscard]] rational into(const std::vector<bool>& set) const {
    rational sum{0};
    for (const link& l : links)
      if (!set[l.from] && set[l.to]) sum = sum + l.GBps;
    return sum;
  }
  [[nodiscard]] std::int64_t ranks_in(const std::vector<bool>& set) const {
    std::int64_t n = 0;
    for (std::uint32_t v = 0; v < set.size(); ++v) n += set[v] && computes[v] ? 1 : 0;
    return n;
  }
  [[nodiscard]] std::vector<bool> set_of(const nlohmann::json& members) const {
    std::vector<bool> set(names.size(), false);
    for (const auto& name : members)
      set[static_cast<std::size_t>(std::find(names.begin(), names.end(), name.get<std::string>()) - names.begin())] =
          true;
    return set;
  }
  /// Shards that must cross the side of a cut per unit of capacity, in the direction that asks for more.
  [[nodiscard]] rational asked_around(const std::vector<node_id>& side, bool scatter) const {
    std::vector<bool> set(names.size(), false);
    for (const node_id v : side) set[v.value] = true;
    const std::int64_t inside = ranks_in(set);
    const rational born{inside}, missing{ranks() - inside};
    const rational a = born / (scatter ? into(set) : out_of(set)), b = missing / (scatter ? out_of(set) : into(set));
    return a > b ? a : b;
  }
  /// 2 (p - 1) / min(sum out, sum in) of the family in a bound; invalid when it is none.
  [[nodiscard]] rational asked_by_family(const plan::bound& b) const {
    std::vector<std::vector<bool>> sets(b.parts, std::vector<bool>(names.size(), false));
    for (std::uint32_t v = 0; v < names.size(); ++v) {
      if (b.set_of.at(v) != plan::bound::no_set) sets.at(b.set_of[v]).at(v) = true;
      if (computes[v] && b.set_of[v] == plan::bound::no_set) return {1, 0};  // a rank is missing
    }
    for (const auto& [v, set] : b.also_in) {
      if (computes[v.value]) return {1, 0};
      sets.at(set).at(v.value) = true;
    }
    rational out{0}, in{0};
    for (const auto& set : sets) {
      if (ranks_in(set) == 0) return {1, 0};
      out = out + out_of(set);
      in = in + into(set);
    }
    return rational{2 * (std::int64_t{b.parts} - 1)} / (out < in ? out : in);
  }
};

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

/// Every field of an oracle against the bounds on a network that differs from it by `factor` in all capacities.
void expect_oracle(const nlohmann::json& t, const oracle_network& o, rational factor, const std::string& how) {
  const std::string where = t.at("name").get<std::string>() + how;
  const nlohmann::json& e = t.at("expected");
  const topo::graph g = o.graph();
  const rational n{o.ranks()};
  ASSERT_EQ(o.ranks(), t.at("n_compute").get<std::int64_t>()) << where;
  EXPECT_EQ(o.balanced_switches(), e.at("balanced_switches").get<bool>()) << where;
  rational phases{0};
  for (const bool scatter : {false, true}) {
    const std::string name = scatter ? "reducescatter" : "allgather";
    const auto b =
        plan::lower_bound(problem_of(g, scatter ? collective_kind::reduce_scatter : collective_kind::all_gather));
    ASSERT_TRUE(b && b->seconds_per_byte) << where << ' ' << name;
    const rational inverse = *b->seconds_per_byte * giga * n * factor;  // per shard, in the oracle's capacities
    EXPECT_TRUE(inverse == parse_rational(e.at("inv_rate_" + name))) << where << ' ' << name;
    EXPECT_TRUE(n / inverse == parse_rational(e.at("algbw_" + name + "_GBps"))) << where << ' ' << name;
    EXPECT_EQ(b->method, plan::bound_method::best_cut) << where << ' ' << name;
    EXPECT_TRUE(o.asked_around(b->side, scatter) * factor == inverse) << where << ' ' << name << ": " << b->cut;
    phases = phases + inverse / n;
    if (!e.contains("cut_" + name)) continue;  // the cut of the oracle itself
    const auto& cut = e.at("cut_" + name);
    const std::vector<bool> outside = o.set_of(cut.at("outside"));
    const rational exit = (scatter ? o.out_of(outside) : o.into(outside)) / factor;
    EXPECT_TRUE(exit == parse_rational(cut.at("exit_GBps"))) << where << ' ' << name;
    EXPECT_EQ(o.ranks() - o.ranks_in(outside), cut.at("compute_in_S").get<std::int64_t>()) << where << ' ' << name;
  }
  EXPECT_TRUE(phases == parse_rational(e.at("allreduce_rs_then_ag_seconds_per_GB"))) << where;

  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_reduce));
  ASSERT_TRUE(b && b->seconds_per_byte) << where;
  const rational reduce = *b->seconds_per_byte * giga * factor;
  // Two phases are a plan; where a switch is not balanced, only with multicast, which the family bound excludes.
  EXPECT_TRUE(!o.balanced_switches() || reduce <= phases) << where << ": above what two phases take";
  EXPECT_TRUE(b->method == plan::bound_method::best_partition || b->method == plan::bound_method::best_cut) << where;
  if (b->parts > 1) {
    EXPECT_TRUE(o.asked_by_family(*b) * factor == reduce) << where << ": " << b->cut;
  } else {
    std::vector<bool> side(o.names.size(), false);
    for (const node_id v : b->side) side[v.value] = true;
    const rational out = o.out_of(side), in = o.into(side);
    EXPECT_TRUE(rational{1} / (out < in ? out : in) * factor == reduce) << where << ": " << b->cut;
  }
  if (!e.contains("allreduce_rate_GBps")) return;
  EXPECT_TRUE(rational{1} / reduce == parse_rational(e.at("allreduce_rate_GBps"))) << where << ": " << b->cut;
  EXPECT_TRUE(reduce == parse_rational(e.at("allreduce_seconds_per_GB"))) << where;
  rational sum{0};  // the sets of the oracle itself
  for (const auto& set : e.at("allreduce_parts")) sum = sum + o.out_of(o.set_of(set)) / factor;
  EXPECT_TRUE(rational{2 * (static_cast<std::int64_t>(e.at("allreduce_parts").size()) - 1)} / sum == reduce) << where;
}

}  // namespace

TEST_F(oracle, is_met_in_every_field_and_the_certificates_prove_it) {
  std::size_t reduced = 0;
  for (const auto& t : topologies) {
    expect_oracle(t, oracle_network(t), rational{1}, "");
    reduced += t.at("expected").contains("allreduce_rate_GBps") ? 1 : 0;
  }
  EXPECT_EQ(reduced, 28U);
  EXPECT_EQ(topologies.size(), 31U);
}

TEST_F(oracle, is_met_when_capacities_are_scaled_nodes_renamed_and_links_interrupted) {
  for (const auto& t : topologies) {
    const oracle_network o(t);
    expect_oracle(t, o.scaled(rational{7, 3}), rational{7, 3}, " scaled");
    expect_oracle(t, o.scaled(rational{1, 32}), rational{1, 32}, " scaled");
    expect_oracle(t, o.relabelled(), rational{1}, " relabelled");
    for (const std::uint32_t which : {0U, 5U, 1000U}) {
      auto changed = t;
      if (changed.at("expected").contains("allreduce_parts"))  // the switch may be in a set of the oracle or in none
        for (auto& set : changed.at("expected").at("allreduce_parts")) {
          const auto& cut = o.links[which % o.links.size()];
          const auto members = o.set_of(set);
          if (members[cut.from] && members[cut.to]) set.push_back("between");
        }
      const auto between_in = [&](const char* name) {
        if (!changed.at("expected").contains(name)) return;
        const auto& cut = o.links[which % o.links.size()];
        auto& outside = changed.at("expected").at(name).at("outside");
        const auto members = o.set_of(outside);
        if (members[cut.from] && members[cut.to]) outside.push_back("between");
      };
      between_in("cut_allgather");
      between_in("cut_reducescatter");
      const oracle_network between = o.interrupted(which);
      if (between.balanced_switches() != o.balanced_switches()) continue;  // a switch that would not be balanced
      expect_oracle(changed, between, rational{1}, " interrupted");
    }
  }
}

TEST_F(oracle, is_met_through_quotients_and_with_128_bits) {
  for (const auto& t : topologies) {
    std::vector<std::int64_t> weight;
    const oracle_network o(t);
    const auto net = o.exact(weight);
    for (const bool scatter : {false, true}) {
      const auto turned = scatter ? plan::detail::reversed(net) : net;
      const rational expected =
          parse_rational(t.at("expected").at(scatter ? "inv_rate_reducescatter" : "inv_rate_allgather"));
      plan::detail::class_search how;
      const auto by_classes = plan::detail::worst_gather_cut_by_classes(turned, weight, {}, &how);
      ASSERT_TRUE(by_classes) << t.at("name");
      EXPECT_TRUE((rational{by_classes->weight} / (rational{by_classes->exit} * net.unit)) == expected) << t.at("name");
      EXPECT_EQ(plan::detail::crossing_of(turned, by_classes->inside).out, by_classes->exit) << t.at("name");
      EXPECT_LE(how.asked, how.classes) << t.at("name");
      const auto wide = plan::detail::worst_gather_cut_in<plan::detail::int128>(turned, weight, {});
      ASSERT_TRUE(wide) << t.at("name");
      EXPECT_TRUE((rational{wide->weight} / (rational{wide->exit} * net.unit)) == expected) << t.at("name");
    }
    const auto wide = plan::detail::family_search<plan::detail::int128>(net, weight, {}).run();
    ASSERT_TRUE(wide) << t.at("name");
    if (!t.at("expected").contains("allreduce_rate_GBps")) continue;
    EXPECT_TRUE(rational{wide->out} * net.unit / rational{2 * (std::int64_t{wide->parts} - 1)} ==
                parse_rational(t.at("expected").at("allreduce_rate_GBps")))
        << t.at("name");
  }
}

TEST_F(oracle, is_not_passed_by_the_cuts_around_the_levels) {
  std::size_t equal = 0, known = 0;
  for (const auto& t : topologies) {
    const topo::graph g = oracle_network(t).graph();
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

TEST(lower_bound, of_uneven_shards_counts_what_each_rank_brings) {
  drawing d;
  const node_id s = d.add(topo::node_kind::nvswitch);
  for (int k = 0; k < 4; ++k) d.join(d.add(topo::node_kind::gpu), s, 10);
  const topo::graph g = d.graph();
  const std::vector<std::uint64_t> shares{600, 100, 100, 200};
  const auto with = [&](collective_kind kind, std::span<const std::uint64_t> of) {
    return plan::lower_bound(problem_of(g, kind), plan::alpha_beta::ideal(), {.shares = of});
  };
  // The second rank brings the least, so it must take in the most: 9/10 of the array; equal shards would be 3/4.
  const auto gather = with(collective_kind::all_gather, shares).value();
  EXPECT_TRUE(*gather.seconds_per_byte * giga == (rational{9, 100})) << gather.cut;
  EXPECT_EQ(gather.cut, "90.0 % of all shards must reach 2 through 1 nvlink link of 10.0 GB/s");
  const auto scatter = with(collective_kind::reduce_scatter, shares).value();
  EXPECT_TRUE(*scatter.seconds_per_byte * giga == (rational{9, 100})) << scatter.cut;
  const std::vector<std::uint64_t> equal{7, 7, 7, 7};
  EXPECT_TRUE(*with(collective_kind::all_gather, equal)->seconds_per_byte * giga == (rational{3, 40}));
  // A rank that brings nothing must still get everything.
  const std::vector<std::uint64_t> one{0, 0, 5, 0};
  EXPECT_TRUE(*with(collective_kind::all_gather, one)->seconds_per_byte * giga == (rational{1, 10}));
  EXPECT_EQ(with(collective_kind::all_gather, std::vector<std::uint64_t>{1, 2}).error().code, errc::invalid_argument);
  EXPECT_EQ(with(collective_kind::all_gather, std::vector<std::uint64_t>(4, 0)).error().code, errc::invalid_argument);
  EXPECT_EQ(with(collective_kind::all_gather, std::vector<std::uint64_t>(4, UINT64_MAX)).error().code,
            errc::unsupported);
}

TEST(lower_bound, of_uneven_shards_is_the_worst_of_all_cuts) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const topo::graph g = random_graph(seed, 3);
    const auto p = problem_of(g, collective_kind::all_gather);
    generator random{seed};
    std::vector<std::uint64_t> shares;
    std::int64_t all = 0;
    for (std::size_t k = 0; k < p.ranks.size(); ++k) {
      shares.push_back(random.below(5) + (k == 0 ? 1 : 0));
      all += static_cast<std::int64_t>(shares.back());
    }
    rational worst{0};
    const auto n = static_cast<std::uint32_t>(g.node_count());
    for (std::uint32_t side = 0; side < 1U << n; ++side) {
      std::vector<std::uint32_t> in(n);
      for (std::uint32_t v = 0; v < n; ++v) in[v] = side >> v & 1U;
      std::int64_t born = 0, outside = 0;
      for (std::size_t k = 0; k < p.ranks.size(); ++k) {
        born += in[p.ranks[k].value] == 1 ? static_cast<std::int64_t>(shares[k]) : 0;
        outside += in[p.ranks[k].value] == 1 ? 0 : 1;
      }
      if (born == 0 || outside == 0) continue;
      const rational ratio{born, GBps_out(g, in, 1) * all};
      if (ratio > worst) worst = ratio;
    }
    const auto b = plan::lower_bound(p, plan::alpha_beta::ideal(), {.shares = shares});
    ASSERT_TRUE(b && b->seconds_per_byte) << "seed " << seed;
    EXPECT_TRUE(*b->seconds_per_byte * giga == worst) << "seed " << seed;
  }
}

TEST(lower_bound, of_all_reduce_in_switches_is_a_single_cut) {
  // One H100 box: 450 GB/s in and out of every GPU; without NVLS each byte crosses 14 times between 8 GPUs.
  const topo::graph box = topo::graph::from(topocoll::describe("dgx-h100:nodes=1").value()).value();
  const auto of = [](const topo::graph& g, plan::in_network where) {
    return plan::lower_bound(problem_of(g, collective_kind::all_reduce), plan::alpha_beta::ideal(), {.reduces = where})
        .value();
  };
  const auto plain = of(box, plan::in_network::nothing), nvls = of(box, plan::in_network::nvswitches);
  EXPECT_GT(nvls.parts, 0U);
  EXPECT_LT(*nvls.seconds_per_byte, *plain.seconds_per_byte);
  EXPECT_EQ(nvls.parts, 1U);

  // 16 boxes on 50 GB/s NICs: NVSwitches do not change what crosses between boxes, all switches do.
  const topo::graph many = topo::graph::from(topocoll::describe("dgx-h100:nodes=16").value()).value();
  EXPECT_TRUE(*of(many, plan::in_network::nothing).seconds_per_byte * giga == (rational{2 * 15, 16 * 400}));
  const auto boxes = of(many, plan::in_network::nvswitches);
  EXPECT_TRUE(*boxes.seconds_per_byte * giga == (rational{2 * 15, 16 * 400})) << boxes.cut;
  EXPECT_EQ(boxes.parts, 16U);
  const auto sharp = of(many, plan::in_network::switches);
  EXPECT_TRUE(*sharp.seconds_per_byte * giga == (rational{1, 400})) << sharp.cut;
  EXPECT_EQ(sharp.parts, 1U);
  EXPECT_EQ(sharp.method, plan::bound_method::best_cut);
}

TEST(lower_bound, of_one_way_cuts_counts_the_narrow_direction) {
  // Sums leave the third rank at 2 GB/s, whatever enters it: half the array per GB/s would be too little.
  drawing d;
  const node_id a = d.add(topo::node_kind::gpu), b = d.add(topo::node_kind::gpu), c = d.add(topo::node_kind::gpu);
  d.join(a, b, 50);
  d.one_way(b, c, 40);
  d.one_way(c, b, 2);
  const topo::graph g = d.graph();
  const auto bound = plan::lower_bound(problem_of(g, collective_kind::all_reduce)).value();
  EXPECT_TRUE(*bound.seconds_per_byte * giga == (rational{1, 2})) << bound.cut;
  EXPECT_EQ(bound.method, plan::bound_method::best_cut);
}

TEST(lower_bound, is_proved_at_a_thousand_gpus_with_one_bad_nic) {
  auto f = topocoll::describe("dgx-h100:nodes=128,leaves=64,oversubscription=2").value();
  std::size_t hurt = 0;
  for (topo::link& l : f.links) {
    const auto from = f.nodes[l.from.value].kind, to = f.nodes[l.to.value].kind;
    const bool cable = (from == topo::node_kind::nic_port && to == topo::node_kind::leaf) ||
                       (from == topo::node_kind::leaf && to == topo::node_kind::nic_port);
    if (!cable || hurt == 2) continue;
    l.capacity = l.capacity * 0.5;
    ++hurt;
  }
  const topo::graph g = topo::graph::from(std::move(f)).value();
  const auto gather = plan::lower_bound(problem_of(g, collective_kind::all_gather)).value();
  EXPECT_EQ(gather.method, plan::bound_method::best_cut);
  EXPECT_TRUE(*gather.seconds_per_byte * giga == (rational{1016, 1024 * 375})) << gather.cut;
  const auto reduce = plan::lower_bound(problem_of(g, collective_kind::all_reduce)).value();
  EXPECT_EQ(reduce.method, plan::bound_method::best_partition);
  EXPECT_TRUE(*reduce.seconds_per_byte * giga == (rational{2 * 127, 127 * 400 + 375})) << reduce.cut;
}

TEST(lower_bound, that_runs_out_of_effort_says_so_and_still_holds) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=16,pods=4").value()).value();
  for (const auto kind : {collective_kind::all_gather, collective_kind::all_reduce}) {
    const auto whole = plan::lower_bound(problem_of(g, kind)).value();
    const auto some = plan::lower_bound(problem_of(g, kind), plan::alpha_beta::ideal(), {.effort = 50}).value();
    EXPECT_TRUE(*some.seconds_per_byte <= *whole.seconds_per_byte);
    EXPECT_TRUE(some.method == plan::bound_method::level_cuts || some.method == plan::bound_method::level_partitions);
  }
}

TEST(lower_bound, grows_with_the_way_to_the_cut_and_on) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=4").value()).value();
  const plan::alpha_beta cost;
  const auto b = plan::lower_bound(problem_of(g, collective_kind::all_gather), cost).value();
  // Whatever limits, a message on its way over the cut passes a NIC on each side.
  EXPECT_GE(b.over.value, 2 * cost.price(topo::link_kind::nvlink).latency.value);
  EXPECT_LE(b.over.value, b.latency_time.value + 1e-12);
  EXPECT_NEAR(b.time.value, (cost.launch() + b.bandwidth_time + b.over).value, 1e-15);
}

TEST(lower_bound, of_gather_is_the_way_to_the_root) {
  drawing d;
  const node_id s = d.add(topo::node_kind::nvswitch);
  for (const double GBps : {30.0, 20.0, 5.0, 10.0}) {
    const node_id gpu = d.add(topo::node_kind::gpu);
    d.one_way(gpu, s, GBps);
    d.one_way(s, gpu, 2 * GBps);
  }
  const topo::graph g = d.graph();
  auto p = problem_of(g, collective_kind::gather);
  // Into the root at 60: three shards. The third rank sends its shard at 5.
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{1, 20}));
  p.root = {3};  // into it at 20
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{1, 20}));
  const std::vector<std::uint64_t> shares{1, 1, 6, 2};
  const auto uneven = plan::lower_bound(p, plan::alpha_beta::ideal(), {.shares = shares}).value();
  EXPECT_TRUE(*uneven.seconds_per_byte * giga == (rational{6, 50})) << uneven.cut;
  p.collective = collective_kind::scatter;
  EXPECT_TRUE(*plan::lower_bound(p)->seconds_per_byte * giga == (rational{3, 40}));  // out of the root at 10
}
