// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/probe/expectation.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace topo = topocoll::topo;
namespace probe = topocoll::probe;
using namespace topocoll::literals;

namespace {

topo::graph described(const char* spec) { return topo::graph::from(tc::describe(spec).value()).value(); }

const probe::path_expectation* find(const std::vector<probe::path_expectation>& all, const std::string& from,
                                    const std::string& to) {
  for (const auto& p : all)
    if (p.from.rfind(from, 0) == 0 && p.to.rfind(to, 0) == 0) return &p;
  return nullptr;
}

// Measured in public on 8 x H100 and H200: peer copies 376 to 396 GB/s, host to device 55 GB/s.
TEST(expected_paths, of_a_dgx_h100_are_near_what_is_measured_in_public) {
  const auto paths = probe::expected_paths(described("dgx-h100"));
  const auto* peer = find(paths, "GPU", "GPU");
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->pairs, 56U);
  EXPECT_EQ(peer->distance, topo::path_class::NVL);
  ASSERT_TRUE(peer->payload.has_value());
  EXPECT_NEAR(peer->payload->value / 1e9, 376, 0.1 * 376);
  const auto* host = find(paths, "GPU", "memory");
  ASSERT_NE(host, nullptr);
  ASSERT_TRUE(host->payload.has_value()) << host->reason;
  EXPECT_NEAR(host->payload->value / 1e9, 55, 0.1 * 55);
}

TEST(expected_paths, says_not_known_for_memory_that_nobody_describes) {
  topo::fragment f;
  topo::node cpu;
  cpu.kind = topo::node_kind::cpu;
  cpu.key = "h/numa:0";
  cpu.name = "NUMA 0";
  cpu.host = "h";
  const auto c = f.add(cpu);
  topo::node memory = cpu;
  memory.kind = topo::node_kind::host_memory;
  memory.key = "h/memory:0";
  memory.name = "memory 0";
  topo::link l;
  l.from = c;
  l.to = f.add(memory);
  l.kind = topo::link_kind::memory;
  l.capacity = 100_GBps;
  l.how = tc::trust::assumed;
  l.reason = "nobody reports it";
  f.join(l);
  const auto paths = probe::expected_paths(topo::graph::from(f).value());
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_FALSE(paths[0].payload.has_value());
  EXPECT_FALSE(paths[0].line_rate.has_value());
  EXPECT_NE(paths[0].reason.find("nobody reports it"), std::string::npos);

  // Measured memory is known.
  for (auto& link : f.links) link.how = tc::trust::measured;
  const auto known = probe::expected_paths(topo::graph::from(f).value());
  EXPECT_EQ(known[0].payload->value, 100e9);
}

TEST(expected_of, takes_the_narrowest_link_and_says_which) {
  topo::fragment f;
  const auto add = [&](topo::node_kind kind, const char* key, const char* name) {
    topo::node n;
    n.kind = kind;
    n.key = key;
    n.name = name;
    n.host = "h";
    return f.add(n);
  };
  const auto cpu = add(topo::node_kind::cpu, "h/numa:0", "NUMA 0");
  const auto sw = add(topo::node_kind::pcie_switch, "h/pci:0000:10:00.0", "PCIe switch");
  const auto a = add(topo::node_kind::gpu, "h/pci:0000:11:00.0", "GPU 0");
  const auto b = add(topo::node_kind::gpu, "h/pci:0000:12:00.0", "GPU 1");
  const auto join = [&](tc::node_id from, tc::node_id to, std::uint32_t generation, double line) {
    topo::link l;
    l.from = from;
    l.to = to;
    l.kind = topo::link_kind::pcie;
    l.generation = generation;
    l.lanes = 16;
    l.nominal = l.current = tc::bytes_per_second{line};
    l.capacity = {line * 0.76};
    l.how = tc::trust::derived;
    f.join(l);
  };
  join(cpu, sw, 3, 15.75e9);
  join(sw, a, 4, 31.5e9);
  join(sw, b, 4, 31.5e9);
  const topo::graph g = topo::graph::from(f).value();
  const auto peer = probe::expected_of(g, topo::routes(g, a), b);
  EXPECT_NEAR(peer.payload->value, 31.5e9 * 0.86, 1e9);
  EXPECT_EQ(peer.distance, topo::path_class::PIX);
  const auto up = probe::expected_of(g, topo::routes(g, a), cpu);
  EXPECT_NEAR(up.payload->value, 15.75e9 * 0.86, 1e9);
  EXPECT_EQ(up.sharers, 2U);
  EXPECT_NE(up.reason.find("Gen3 x16"), std::string::npos) << up.reason;
}

}  // namespace
