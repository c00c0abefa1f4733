// SPDX-License-Identifier: Apache-2.0
// A cluster that is not there yet: the best plan for an all-reduce at three sizes, and what no plan can beat.
#include <cstdio>
#include <utility>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/synth/ring.hpp>

namespace tc = topocoll;
using namespace tc::literals;

int main() {
  // [describe]
  auto told = tc::describe("dgx-h100:nodes=16,leaves=64,oversubscription=3");  // 8 pods of 2 hosts
  if (!told) {
    std::printf("%s\n", told.error().message().c_str());
    return 1;
  }
  const auto graph = tc::topo::graph::from(*std::move(told)).value();
  // [/describe]

  // [choose]
  for (const tc::bytes size : {64_KiB, 16_MiB, 1_GiB}) {
    const tc::plan::problem wish{&graph, tc::collective_kind::all_reduce, size, tc::ranks_in_order(graph), {}};
    const auto choice = tc::plan::choose(wish, tc::plan::alpha_beta{}, tc::plan::ring{}, tc::plan::recursive_doubling{},
                                         tc::plan::hierarchical{});
    if (!choice) {
      std::printf("%s\n", choice.error().message().c_str());
      return 1;
    }
    std::printf("%s: no plan can beat %s\n", to_string(size).c_str(), to_string(choice->limit.time).c_str());
    for (const tc::plan::candidate& c : choice->candidates)
      if (c.price) std::printf("  %-32s %s\n", c.name.c_str(), to_string(c.price->time).c_str());
    if (size == 1_GiB) std::printf("because %s\n", choice->limit.cut.c_str());
  }
  // [/choose]
}

// Printed by version 0.1.0:
// 64 KiB: no plan can beat 14.4 us
//   doubling                         44.1 us
//   hierarchical (direct, recursive) 51.1 us
//   ring                             1.21 ms
// 16 MiB: no plan can beat 127 us
//   hierarchical (ring)              256 us
//   doubling                         3.17 ms
//   ring                             3.24 ms
// 1 GiB: no plan can beat 7.22 ms
//   hierarchical (ring)              7.74 ms
//   ring                             132 ms
//   doubling                         198 ms
// because each byte crosses 14 times between 8 sets (2 hosts (node0 and node1), and so on); 2085 GB/s leave them together
