// SPDX-License-Identifier: Apache-2.0
// Random machines, all collectives, all planners: every plan passes the independent checker, none is simulated below the
// bound or above its ceiling, and none hangs the simulator.
//
// TOPOCOLL_PROPERTY_COUNT sets the number of machines, TOPOCOLL_PROPERTY_SEED the first seed.
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/certify.hpp>
#include <topocoll/plan/check.hpp>
#include <topocoll/plan/flow_simulate.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Equal numbers on every platform, unlike the distributions of the standard library.
class dice {
 public:
  explicit dice(std::uint32_t seed) : engine_(seed) {}
  /// 0 to sides-1.
  std::uint32_t operator()(std::size_t sides) { return static_cast<std::uint32_t>(engine_() % sides); }
  bool one_in(std::uint32_t n) { return (*this)(n) == 0; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[(*this)(from.size())];
  }

 private:
  std::mt19937 engine_;
};

/// A machine of any shape on which every device reaches every other.
class machine {
 public:
  explicit machine(dice& random) : random_(random) {
    if (random_.one_in(6))
      web();
    else
      cluster();
    fragment_.source = "random";
    graph = topo::graph::from(std::move(fragment_)).value();
  }

  topo::graph graph;
  std::vector<node_id> devices;  ///< on which ranks can sit

 private:
  node_id add(topo::node_kind kind, const std::string& key, const std::string& host, std::uint32_t index) {
    topo::node n;
    n.kind = kind;
    n.key = key;
    n.host = host;
    n.index = index;
    return fragment_.add(n);
  }
  /// Both directions, mostly alike; `spare` ones are sometimes dead.
  void join(node_id a, node_id b, topo::link_kind kind, double gigabytes, bool spare = false) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.capacity = bytes_per_second{gigabytes * 1e9};
    if (random_.one_in(12)) l.capacity = l.capacity * 0.5;
    if (random_.one_in(4)) l.nominal = l.capacity;
    fragment_.join(l);
    topo::link& back = fragment_.links.back();
    if (random_.one_in(15)) back.capacity = back.capacity * random_.pick(std::vector<double>{0.25, 0.5, 2.0 / 3});
    if (spare && random_.one_in(12)) {
      back.capacity = {};
      fragment_.links[fragment_.links.size() - 2].capacity = {};
    }
  }

  /// Hosts of unequal insides on leaves and spines.
  void cluster() {
    const std::uint32_t hosts = 1 + random_(5);
    std::vector<node_id> leaves, spines;
    if (hosts > 1 || random_.one_in(3)) {
      for (std::uint32_t i = 0, n = 1 + random_(3); i < n; ++i)
        spines.push_back(add(topo::node_kind::spine, "spine:" + std::to_string(i), "", i));
      for (std::uint32_t i = 0, n = 1 + random_(4); i < n; ++i) {
        leaves.push_back(add(topo::node_kind::leaf, "leaf:" + std::to_string(i), "", i));
        for (std::uint32_t s = 0; s < spines.size(); ++s)
          if (s == 0 || !random_.one_in(4))
            join(leaves.back(), spines[s], topo::link_kind::infiniband, random_.pick(speeds_), s != 0);
      }
    }
    for (std::uint32_t h = 0; h < hosts; ++h) host(h, leaves);
  }

  void host(std::uint32_t number, const std::vector<node_id>& leaves) {
    const std::string name = "node" + std::to_string(number);
    const std::uint32_t domains = 1 + random_(2), gpus = random_.one_in(8) ? 0 : 1 + random_(6);
    std::vector<node_id> cpus, roots, own;
    for (std::uint32_t d = 0; d < domains; ++d) {
      const std::string n = std::to_string(d);
      cpus.push_back(add(topo::node_kind::cpu, name + "/numa:" + n, name, d));
      roots.push_back(cpus.back());
      if (!random_.one_in(4))
        join(cpus.back(), add(topo::node_kind::host_memory, name + "/memory:" + n, name, d), topo::link_kind::memory,
             200);
      for (std::uint32_t s = 0, m = random_(3); s < m; ++s) {
        const node_id sw = add(topo::node_kind::pcie_switch, name + "/switch:" + n + "." + std::to_string(s), name, s);
        join(random_.pick(roots), sw, topo::link_kind::pcie, random_.pick(speeds_));
        roots.push_back(sw);
      }
    }
    for (std::uint32_t d = 1; d < domains; ++d)
      join(cpus[0], cpus[d], topo::link_kind::cpu, random_.pick(std::vector<double>{12, 20, 40}));
    for (std::uint32_t i = 0; i < gpus; ++i) {
      own.push_back(add(topo::node_kind::gpu, name + "/gpu:" + std::to_string(i), name, i));
      join(own.back(), random_.pick(roots), topo::link_kind::pcie, random_.pick(speeds_));
    }
    wires(name, own);
    if (!leaves.empty())
      for (std::uint32_t i = 0, n = 1 + random_(gpus + 1); i < n; ++i) {
        const std::string k = std::to_string(i);
        const node_id nic = add(topo::node_kind::nic, name + "/nic:" + k, name, i);
        const node_id port = add(topo::node_kind::nic_port, name + "/net:" + k, name, i);
        join(random_.pick(roots), nic, topo::link_kind::pcie, random_.pick(speeds_));
        join(nic, port, topo::link_kind::internal, random_.pick(speeds_));
        join(port, random_.pick(leaves), topo::link_kind::infiniband, random_.pick(speeds_), i != 0);
      }
    if (own.empty())
      devices.insert(devices.end(), cpus.begin(), cpus.end());
    else
      devices.insert(devices.end(), own.begin(), own.end());
  }

  /// What joins the GPUs of a host: nothing, a plane, a mesh with holes, a circle, or islands.
  void wires(const std::string& name, const std::vector<node_id>& own) {
    if (own.size() < 2) return;
    const std::uint32_t how = random_(5);
    const double speed = random_.pick(std::vector<double>{25, 50, 100, 300, 450});
    if (how == 1) {
      const node_id plane = add(topo::node_kind::nvswitch, name + "/nvswitch", name, 0);
      const std::uint32_t generation = random_.pick(std::vector<std::uint32_t>{0, 3, 4, 5});
      for (const node_id v : own) {
        join(v, plane, topo::link_kind::nvlink, speed);
        for (std::size_t k = 1; k <= 2; ++k) fragment_.links[fragment_.links.size() - k].generation = generation;
      }
    }
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t j = i + 1; j < own.size(); ++j)
        if ((how == 2 && !random_.one_in(3)) || (how == 3 && (j == i + 1 || (i == 0 && j + 1 == own.size()))) ||
            (how == 4 && i / 2 == j / 2))
          join(own[i], own[j], random_.one_in(5) ? topo::link_kind::xgmi : topo::link_kind::nvlink, speed, true);
  }

  /// Devices and switches wired at random, without any host.
  void web() {
    const std::uint32_t n = 2 + random_(9), switches = random_(4);
    std::vector<node_id> all;
    for (std::uint32_t i = 0; i < n + switches; ++i) {
      const bool device = i < n;
      all.push_back(add(device ? topo::node_kind::gpu : topo::node_kind::leaf,
                        (device ? "gpu:" : "leaf:") + std::to_string(i), "", i));
      if (device) devices.push_back(all.back());
      if (i > 0) join(all[i], all[random_(i)], topo::link_kind::nvlink, random_.pick(speeds_));
    }
    for (std::uint32_t k = random_(2 * n); k > 0; --k) {
      const node_id a = random_.pick(all), b = random_.pick(all);
      if (a != b) join(a, b, topo::link_kind::ethernet, random_.pick(speeds_), true);
    }
  }

  dice& random_;
  topo::fragment fragment_;
  const std::vector<double> speeds_{12.5, 16, 24, 25, 32, 50, 64, 100};
};

struct tally {
  std::uint64_t machines = 0, problems = 0, plans = 0, certificates = 0, unsupported = 0, by_switch = 0;
  double widest_gap = 0, nearest_gap = 1e9;
};

/// Everything that holds for one plan.
void expect_sound(const plan::problem& p, const plan::schedule& made, const plan::bound& limit,
                  const plan::bound& nominal, plan::flow_simulator<plan::alpha_beta>& flows, dice& random, tally& sum) {
  std::vector<plan::program> programs;
  for (std::uint32_t r = 0; r < made.ranks; ++r) {
    auto mine = plan::lower(made, {r});
    ASSERT_TRUE(mine) << mine.error().message();
    programs.push_back(*std::move(mine));
  }
  const std::span<const plan::program> all(programs);
  ++sum.plans;
  for (const plan::stage& st : made.stages)
    if (st.how == plan::algorithm::in_switch) {
      ++sum.by_switch;
      break;
    }
  if (random.one_in(3)) {
    const auto claims = plan::certify(p, made, nominal, plan::alpha_beta::ideal());
    ASSERT_TRUE(claims) << claims.error().message();
    const auto report = plan::check(all, *p.graph, std::span<const node_id>(p.ranks), *claims);
    ASSERT_TRUE(report.holds()) << report.summary();
    sum.certificates += report.gap_checked ? 1 : 0;
    if (claims->gap) {
      sum.nearest_gap = std::min(sum.nearest_gap, claims->gap->to_double());
      sum.widest_gap = std::max(sum.widest_gap, claims->gap->to_double());
    }
  } else {
    const auto report = plan::check(all);
    ASSERT_TRUE(report.holds()) << report.summary();
    ASSERT_EQ(report.credits_needed, 0U);
  }
  plan::flow_options options;
  options.paths = random.one_in(3) ? plan::path_choice::hashed : plan::path_choice::ideal;
  options.seed = random(1000);
  options.in_place = random.one_in(2);
  options.element = bytes{std::uint64_t{1} << random(4)};
  const auto s = random.one_in(2) ? flows.run(p, made, options) : flows.run(p, all, options);
  ASSERT_TRUE(s) << s.error().message();
  ASSERT_GE(s->time.value, limit.time.value * (1 - 1e-9)) << limit.cut;
  ASSERT_LE(s->time.value, s->ceiling.value * (1 + 1e-9));
}

plan::problem draw_problem(const machine& m, collective_kind kind, dice& random) {
  plan::problem p;
  p.graph = &m.graph;
  p.collective = kind;
  p.size = random.pick(std::vector<bytes>{bytes{1}, bytes{1001}, 64_KiB, bytes{1'000'003}, 16_MiB, 1_GiB});
  p.ranks = m.devices;
  for (std::size_t i = p.ranks.size(); i > 1; --i)
    if (random.one_in(2)) std::swap(p.ranks[i - 1], p.ranks[random(i)]);
  if (random.one_in(2)) p.ranks.resize(1 + random(p.ranks.size()));
  // Ranks that share a device, and the odd one more.
  if (random.one_in(6)) p.ranks.push_back(p.ranks[random(p.ranks.size())]);
  p.root = rank_id{random(p.ranks.size())};
  if (random.one_in(2)) p.reduces = plan::in_network::nvswitches;
  return p;
}

TEST(random_machines, have_plans_that_hold_what_they_promise) {
  const std::uint32_t machines = from_environment("TOPOCOLL_PROPERTY_COUNT", 30);
  const std::uint32_t first = from_environment("TOPOCOLL_PROPERTY_SEED", 1);
  tally sum;
  for (std::uint32_t seed = first; seed < first + machines; ++seed) {
    dice random(seed);
    const machine m(random);
    ++sum.machines;
    plan::flow_simulator<plan::alpha_beta> flows(m.graph,
                                                 random.one_in(4) ? plan::alpha_beta::ideal() : plan::alpha_beta{});
    for (std::size_t k = 0; k < collective_count; ++k) {
      const plan::problem p = draw_problem(m, static_cast<collective_kind>(k), random);
      ++sum.problems;
      const std::string what = "seed " + std::to_string(seed) + ", " + std::string(to_string(p.collective)) + " of " +
                               std::to_string(p.size.value) + " bytes among " + std::to_string(p.ranks.size()) +
                               " ranks";
      const auto limit = plan::lower_bound(p, flows.cost()), nominal = plan::lower_bound(p);
      ASSERT_TRUE(limit && nominal) << what << ": " << (limit ? nominal : limit).error().message();
      plan::with_default_planners([&](const auto&... planners) {
        const auto judge = [&](const auto& planner) {
          if (::testing::Test::HasFatalFailure()) return;
          const auto made = planner.synthesize(p);
          if (!made) {
            EXPECT_EQ(made.error().code, errc::unsupported) << what << ": " << made.error().message();
            ++sum.unsupported;
            return;
          }
          SCOPED_TRACE(what + ", " + made->name);
          expect_sound(p, *made, *limit, *nominal, flows, random, sum);
        };
        (judge(planners), ...);
      });
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(sum.plans, 30 * sum.machines);
  EXPECT_GT(sum.certificates * 8, sum.plans);
  EXPECT_LT(sum.nearest_gap, 0.1);
  EXPECT_GT(sum.by_switch, sum.machines / 10);
  RecordProperty("machines", std::to_string(sum.machines));
  RecordProperty("problems", std::to_string(sum.problems));
  RecordProperty("plans", std::to_string(sum.plans));
  RecordProperty("by_switch", std::to_string(sum.by_switch));
  RecordProperty("certificates", std::to_string(sum.certificates));
  RecordProperty("nearest_gap", std::to_string(sum.nearest_gap));
  RecordProperty("widest_gap", std::to_string(sum.widest_gap));
}

}  // namespace
