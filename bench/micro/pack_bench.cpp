// SPDX-License-Identifier: Apache-2.0
// What packing trees costs, bound included: regular and irregular networks, all-gather and all-reduce.
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/plan/pack.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;
using tc::plan::pack_kind;

struct network {
  tc::plan::detail::exact_network net;
  std::vector<std::uint32_t> ranks;

  std::uint32_t rank() {
    ranks.push_back(net.nodes);
    return net.nodes++;
  }
  void link(std::uint32_t u, std::uint32_t v, std::int64_t c) {
    net.arcs.push_back({u, v, c});
    net.arcs.push_back({v, u, c});
  }
};

/// Eight V100 in a hybrid cube mesh: two fully linked quads, and each GPU with its twin; units of 25 GB/s.
network cube_mesh() {
  network n;
  for (int i = 0; i < 8; ++i) n.rank();
  const std::uint32_t quad[6][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 1}};
  for (const std::uint32_t base : {0U, 4U})
    for (const auto& q : quad) n.link(base + q[0], base + q[1], q[2]);
  for (std::uint32_t i = 0; i < 4; ++i) n.link(i, i + 4, 2);
  return n;
}

/// Dies in pairs of 4 links, the pairs in a ladder of single and double links, none alike; two such boxes on a switch.
network ladder(std::uint32_t boxes) {
  network n;
  const std::uint32_t fabric = boxes > 1 ? n.net.nodes++ : 0;
  for (std::uint32_t b = 0; b < boxes; ++b) {
    std::vector<std::uint32_t> die;
    for (int i = 0; i < 16; ++i) die.push_back(n.rank());
    for (std::uint32_t p = 0; p < 16; p += 2) n.link(die[p], die[p + 1], 100);
    const std::uint32_t across[][3] = {{0, 2, 50},   {1, 3, 25},   {4, 6, 50},  {5, 7, 25}, {8, 10, 50},  {9, 11, 25},
                                       {12, 14, 50}, {13, 15, 25}, {3, 4, 25},  {7, 8, 50}, {11, 12, 25}, {15, 0, 50},
                                       {1, 9, 25},   {5, 13, 25},  {2, 10, 25}, {6, 14, 25}};
    for (const auto& a : across) n.link(die[a[0]], die[a[1]], a[2]);
    for (std::uint32_t d = 0; d < 16 && boxes > 1; ++d) n.link(die[d], fabric, 8);
  }
  return n;
}

/// Boxes of eight GPUs, rails, four spines; with a bad NIC when wanted.
network rails(std::uint32_t pods, std::uint32_t per_pod, bool bad) {
  network n;
  std::uint32_t spine[4];
  for (std::uint32_t& s : spine) s = n.net.nodes++;
  for (std::uint32_t p = 0; p < pods; ++p) {
    std::uint32_t leaf[8];
    for (std::uint32_t& l : leaf) {
      l = n.net.nodes++;
      for (const std::uint32_t s : spine) n.link(l, s, 25 * std::int64_t{per_pod});
    }
    for (std::uint32_t h = 0; h < per_pod; ++h) {
      const std::uint32_t box = n.net.nodes++;
      for (const std::uint32_t l : leaf) {
        const std::uint32_t r = n.rank();
        n.link(r, box, 900);
        n.link(r, l, bad && n.ranks.size() == 11 ? 50 : 100);
      }
    }
  }
  return n;
}

void run(benchmark::State& state, const network& n, pack_kind kind) {
  double share = 0, trees = 0, depth = 0;
  for (auto _ : state) {
    const auto p = tc::plan::pack(n.net, n.ranks, {}, kind);
    if (!p) {
      state.SkipWithError(p.error().message().c_str());
      return;
    }
    share = (p->rate / p->limit).to_double();
    trees = static_cast<double>(p->trees.size());
    depth = p->depth;
  }
  state.counters["of_limit"] = share;
  state.counters["trees"] = trees;
  state.counters["depth"] = depth;
}

void gather_cube_mesh(benchmark::State& s) { run(s, cube_mesh(), pack_kind::gather); }
void gather_ladder(benchmark::State& s) { run(s, ladder(static_cast<std::uint32_t>(s.range(0))), pack_kind::gather); }
void spanning_ladder(benchmark::State& s) {
  run(s, ladder(static_cast<std::uint32_t>(s.range(0))), pack_kind::spanning);
}
void gather_rails(benchmark::State& s) {
  run(s, rails(2, static_cast<std::uint32_t>(s.range(0)), s.range(1) != 0), pack_kind::gather);
}
void spanning_rails(benchmark::State& s) {
  run(s, rails(2, static_cast<std::uint32_t>(s.range(0)), s.range(1) != 0), pack_kind::spanning);
}

BENCHMARK(gather_cube_mesh)->Name("plan/pack/gather/cube_mesh")->Unit(benchmark::kMillisecond);
BENCHMARK(gather_ladder)->Name("plan/pack/gather/ladder/boxes")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);
BENCHMARK(spanning_ladder)->Name("plan/pack/spanning/ladder/boxes")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);
BENCHMARK(gather_rails)
    ->Name("plan/pack/gather/rails/boxes_per_pod/bad_nics")
    ->Args({2, 0})
    ->Args({2, 1})
    ->Args({8, 0})
    ->Args({8, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(spanning_rails)
    ->Name("plan/pack/spanning/rails/boxes_per_pod/bad_nics")
    ->Args({2, 0})
    ->Args({2, 1})
    ->Args({8, 0})
    ->Args({8, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
