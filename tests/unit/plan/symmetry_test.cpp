// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/symmetry.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
namespace detail = topocoll::plan::detail;
using topocoll::node_id;

namespace {

struct generator {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33U) % n;
  }
};

/// A network and who has a shard.
struct network {
  detail::exact_network net;
  std::vector<std::int64_t> weight;

  std::uint32_t add(std::int64_t shards) {
    weight.push_back(shards);
    return net.nodes++;
  }
  void join(std::uint32_t a, std::uint32_t b, std::int64_t units) {
    net.arcs.push_back({a, b, units});
    net.arcs.push_back({b, a, units});
  }
};

/// Pods x boxes x GPUs on rails. Nodes: GPUs, NVSwitches, leaves, two spines.
struct rail_cluster : network {
  std::uint32_t pods, boxes, gpus;

  rail_cluster(std::uint32_t p, std::uint32_t h, std::uint32_t g, std::int64_t nvlink, std::int64_t nic,
               std::int64_t up)
      : pods(p), boxes(h), gpus(g) {
    for (std::uint32_t k = 0; k < p * h * g; ++k) add(1);
    for (std::uint32_t k = 0; k < p * h + p * g + 2; ++k) add(0);
    for (std::uint32_t k = 0; k < p * h * g; ++k) {
      join(k, box(k / g), nvlink);
      join(k, leaf(k / g / h, k % g), nic);
    }
    for (std::uint32_t k = 0; k < p * g; ++k)
      for (const std::uint32_t s : {0U, 1U}) join(leaf(k / g, k % g), net.nodes - 2 + s, up);
  }
  [[nodiscard]] std::uint32_t box(std::uint32_t h) const { return pods * boxes * gpus + h; }
  [[nodiscard]] std::uint32_t leaf(std::uint32_t p, std::uint32_t rail) const {
    return pods * boxes * (gpus + 1) + p * gpus + rail;
  }
  /// Every unit steps on to the next of its kind: pods, boxes of each pod, or rails.
  [[nodiscard]] std::vector<std::uint32_t> step(std::uint32_t by_pod, std::uint32_t by_box,
                                                std::uint32_t by_rail) const {
    std::vector<std::uint32_t> image(net.nodes);
    for (std::uint32_t v = 0; v < net.nodes; ++v) image[v] = v;
    for (std::uint32_t p = 0; p < pods; ++p) {
      const std::uint32_t q = (p + by_pod) % pods;
      for (std::uint32_t i = 0; i < gpus; ++i) image[leaf(p, i)] = leaf(q, (i + by_rail) % gpus);
      for (std::uint32_t h = 0; h < boxes; ++h) {
        const std::uint32_t k = q * boxes + (h + by_box) % boxes;
        image[box(p * boxes + h)] = box(k);
        for (std::uint32_t i = 0; i < gpus; ++i) image[(p * boxes + h) * gpus + i] = k * gpus + (i + by_rail) % gpus;
      }
    }
    return image;
  }
};

network random_network(std::uint64_t seed) {
  generator random{seed * 31 + 7};
  network x;
  const std::uint32_t copies = 1 + random.below(3), ranks = 1 + random.below(4), switches = random.below(3);
  // Some copies of one random piece around a common switch: classes of more than one node.
  const std::uint32_t hub = x.add(0);
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>> inner;
  const std::uint32_t size = ranks + switches;
  for (std::uint32_t v = 1; v < size; ++v) inner.push_back({{v, random.below(v)}, 1 + random.below(9)});
  for (std::uint32_t k = random.below(size + 1); k > 0; --k) {
    const std::uint32_t a = random.below(size), b = random.below(size);
    if (a != b) inner.push_back({{a, b}, 1 + random.below(9)});
  }
  const std::uint32_t door = random.below(size);
  const std::int64_t way = 1 + random.below(20);
  for (std::uint32_t c = 0; c < copies; ++c) {
    const std::uint32_t first = x.net.nodes;
    for (std::uint32_t v = 0; v < size; ++v) x.add(v < ranks ? 1 : 0);
    for (const auto& [ends, units] : inner) x.join(first + ends.first, first + ends.second, units);
    x.join(first + door, hub, way);
  }
  if (random.below(3) == 0) x.net.arcs[random.below(static_cast<std::uint32_t>(x.net.arcs.size()))].units += 1;
  if (copies * ranks < 2) x.join(x.add(1), hub, 3);
  return x;
}

std::vector<std::uint64_t> colours_of(const network& x) { return {x.weight.begin(), x.weight.end()}; }

bool same_ratio(const detail::weighted_cut& a, const detail::weighted_cut& b) {
  return !a.tighter_than(b) && !b.tighter_than(a);
}

}  // namespace

TEST(refine, gives_a_uniform_cluster_as_many_classes_as_it_has_kinds_of_devices) {
  const rail_cluster c(4, 5, 3, 9, 2, 4);
  const auto classes = detail::refine(c.net, colours_of(c));
  EXPECT_EQ(classes.count, 4U);
  EXPECT_TRUE(detail::is_equitable(c.net, c.weight, classes));
}

TEST(refine, tells_everything_apart_that_a_lone_node_makes_different) {
  const rail_cluster c(4, 5, 3, 9, 2, 4);
  auto colours = colours_of(c);
  colours[0] = 99;
  const auto classes = detail::refine(c.net, colours);
  // GPUs: itself, those of its box, of its rail in the pod, others of the pod, all of other pods: 5. NVSwitches: its own,
  // those of the pod, others: 3. Leaves: its own, those of the pod, others, which the spines do not tell apart: 3. Spines.
  EXPECT_EQ(classes.count, 12U);
  EXPECT_TRUE(detail::is_equitable(c.net, c.weight, classes));
}

TEST(is_equitable, refuses_classes_that_are_too_coarse) {
  rail_cluster c(2, 2, 2, 9, 2, 4);
  auto classes = detail::refine(c.net, colours_of(c));
  ASSERT_TRUE(detail::is_equitable(c.net, c.weight, classes));
  c.net.arcs[1].units += 1;  // into one GPU, not out of it
  EXPECT_FALSE(detail::is_equitable(c.net, c.weight, classes));
  EXPECT_TRUE(detail::is_equitable(c.net, c.weight, detail::refine(c.net, colours_of(c))));
  rail_cluster heavy(2, 2, 2, 9, 2, 4);
  classes = detail::refine(heavy.net, colours_of(heavy));
  heavy.weight[0] = 2;
  EXPECT_FALSE(detail::is_equitable(heavy.net, heavy.weight, classes));
}

TEST(refine, is_equitable_on_random_networks) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const network x = random_network(seed);
    EXPECT_TRUE(detail::is_equitable(x.net, x.weight, detail::refine(x.net, colours_of(x)))) << "seed " << seed;
  }
}

TEST(is_automorphism, accepts_steps_of_units_and_nothing_else) {
  const rail_cluster c(3, 4, 2, 9, 2, 4);
  EXPECT_TRUE(detail::is_automorphism(c.net, c.weight, c.step(1, 0, 0)));
  EXPECT_TRUE(detail::is_automorphism(c.net, c.weight, c.step(0, 1, 0)));
  EXPECT_TRUE(detail::is_automorphism(c.net, c.weight, c.step(2, 3, 1)));
  auto image = c.step(0, 0, 0);
  std::swap(image[0], image[1]);  // two GPUs without their rails
  EXPECT_FALSE(detail::is_automorphism(c.net, c.weight, image));
  image = c.step(0, 0, 0);
  image[0] = image[1];  // no permutation
  EXPECT_FALSE(detail::is_automorphism(c.net, c.weight, image));
  image.pop_back();
  EXPECT_FALSE(detail::is_automorphism(c.net, c.weight, image));
}

TEST(worst_gather_cut_by_classes, asks_for_one_gpu_where_generators_show_that_all_are_alike) {
  const rail_cluster c(4, 5, 3, 9, 2, 4);
  const std::vector<std::vector<std::uint32_t>> steps{c.step(1, 0, 0), c.step(0, 1, 0), c.step(0, 0, 1)};
  detail::class_search how;
  const auto cut = detail::worst_gather_cut_by_classes(c.net, c.weight, steps, &how).value();
  EXPECT_TRUE(how.orbits);
  EXPECT_EQ(how.asked, 1U);
  EXPECT_TRUE(same_ratio(cut, detail::worst_gather_cut(c.net, c.weight).value()));
  EXPECT_EQ(detail::crossing_of(c.net, cut.inside).out, cut.exit);  // lifted to the nodes themselves
  std::int64_t inside = 0;
  for (std::uint32_t v = 0; v < c.net.nodes; ++v) inside += cut.inside[v] ? c.weight[v] : 0;
  EXPECT_EQ(inside, cut.weight);
}

TEST(worst_gather_cut_by_classes, believes_no_generator_that_is_wrong) {
  rail_cluster c(4, 5, 3, 9, 2, 4);
  const std::vector<std::vector<std::uint32_t>> steps{c.step(1, 0, 0), c.step(0, 1, 0), c.step(0, 0, 1)};
  for (auto& a : c.net.arcs)
    if (a.to == c.box(19) || a.from == c.box(19)) a.units = 1;  // a box whose NVLinks are nearly gone
  detail::class_search how;
  const auto cut = detail::worst_gather_cut_by_classes(c.net, c.weight, steps, &how).value();
  EXPECT_FALSE(how.orbits);
  EXPECT_TRUE(same_ratio(cut, detail::worst_gather_cut(c.net, c.weight).value()));
}

TEST(worst_gather_cut_by_classes, is_not_fooled_by_triangles_that_look_like_a_hexagon) {
  // Six ranks in a ring and six in two rings of three, all on one switch: every rank looks the same.
  network x;
  for (std::uint32_t k = 0; k < 12; ++k) x.add(1);
  const std::uint32_t hub = x.add(0);
  for (std::uint32_t k = 0; k < 6; ++k) x.join(k, (k + 1) % 6, 10);
  for (std::uint32_t k = 0; k < 3; ++k) {
    x.join(6 + k, 6 + (k + 1) % 3, 10);
    x.join(9 + k, 9 + (k + 1) % 3, 10);
  }
  for (std::uint32_t k = 0; k < 12; ++k) x.join(k, hub, 1);
  const auto classes = detail::refine(x.net, colours_of(x));
  EXPECT_EQ(classes.count, 2U);
  detail::class_search how;
  const auto cut = detail::worst_gather_cut_by_classes(x.net, x.weight, {}, &how).value();
  EXPECT_FALSE(how.orbits);
  EXPECT_EQ(cut.weight, 9);  // a triangle gets nine shards through three links of 1; the hexagon six through six
  EXPECT_EQ(cut.exit, 3);
}

TEST(worst_gather_cut_by_classes, is_the_worst_of_all_cuts_of_random_networks) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const network x = random_network(seed);
    const auto all = detail::worst_gather_cut(x.net, x.weight);
    const auto some = detail::worst_gather_cut_by_classes(x.net, x.weight);
    ASSERT_EQ(bool(all), bool(some)) << "seed " << seed;
    EXPECT_TRUE(!all || same_ratio(*all, *some)) << "seed " << seed;
  }
}

TEST(quotient_of, keeps_the_cut_between_nodes_that_are_alone) {
  const rail_cluster c(3, 4, 2, 9, 2, 1);
  auto colours = colours_of(c);
  colours[5] = 77;
  const auto classes = detail::refine(c.net, colours);
  const auto q = detail::quotient_of(c.net, c.weight, classes).value();
  std::int64_t shards = 0, capacity = 0, inside = 0, all = 0;
  for (const std::int64_t w : q.weight) shards += w;
  for (const auto& a : q.net.arcs) capacity += a.units;
  for (const auto& a : c.net.arcs) {
    all += a.units;
    inside += classes.class_of[a.from] == classes.class_of[a.to] ? a.units : 0;
  }
  EXPECT_EQ(shards, 24);
  EXPECT_EQ(capacity, all - inside);
  const std::uint32_t alone = classes.class_of[5], there = 5;
  const auto small = detail::worst_gather_cut(q.net, q.weight, {.receivers = {&alone, 1}}).value();
  const auto large = detail::worst_gather_cut(c.net, c.weight, {.receivers = {&there, 1}}).value();
  EXPECT_TRUE(same_ratio(small, large));
}

TEST(symmetry_of, counts_the_kinds_of_devices_of_a_described_cluster) {
  const auto of = [](const char* spec) {
    const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
    const auto s = plan::symmetry_of(g, g.all(topo::node_kind::gpu)).value();
    EXPECT_TRUE(s.checked);
    EXPECT_EQ(s.class_of.size(), g.node_count());
    return s.classes;
  };
  const std::uint32_t small = of("dgx-h100:nodes=8,leaves=16,oversubscription=2");
  EXPECT_EQ(of("dgx-h100:nodes=32,leaves=64,oversubscription=2"), small);
  EXPECT_LE(small, 8U);  // GPU, NIC, port, NVSwitch, leaf, spine, and host parts
}

TEST(symmetry_of, refuses_a_rank_that_is_not_there) {
  const topo::graph g = topo::graph::from(topocoll::describe("dgx-h100:nodes=1").value()).value();
  const std::vector<node_id> ranks{{4'000'000}};
  EXPECT_EQ(plan::symmetry_of(g, ranks).error().code, topocoll::errc::invalid_argument);
}
