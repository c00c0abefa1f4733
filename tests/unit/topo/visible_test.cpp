// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/visible.hpp>
#include <gtest/gtest.h>

namespace {

namespace tc = topocoll;
namespace topo = topocoll::topo;

// Four GPUs in two pairs, each pair beside a NIC below a switch.
topo::graph box() {
  topo::fragment f;
  const auto add = [&](topo::node_kind kind, const std::string& key, std::optional<std::uint32_t> index = {}) {
    topo::node n;
    n.kind = kind;
    n.key = "h/" + key;
    n.name = key;
    n.host = "h";
    n.index = index;
    if (kind == topo::node_kind::gpu) n.facts = {{"uuid", "GPU-a" + std::to_string(*index) + "00"}};
    return f.add(n);
  };
  const auto join = [&](tc::node_id a, tc::node_id b, topo::link_kind kind) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.capacity = {24e9};
    f.join(l);
  };
  const auto cpu = add(topo::node_kind::cpu, "numa:0");
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    const auto bridge = add(topo::node_kind::pcie_switch, "pci:switch" + std::to_string(pair));
    join(cpu, bridge, topo::link_kind::pcie);
    for (std::uint32_t i = 0; i < 2; ++i)
      join(bridge, add(topo::node_kind::gpu, "gpu" + std::to_string(2 * pair + i), 2 * pair + i),
           topo::link_kind::pcie);
    const auto nic = add(topo::node_kind::nic, "nic" + std::to_string(pair), pair);
    join(bridge, nic, topo::link_kind::pcie);
    join(nic, add(topo::node_kind::nic_port, "net:nic" + std::to_string(pair) + "/1"), topo::link_kind::internal);
  }
  return topo::graph::from(std::move(f)).value();
}

std::string numbers(const topo::fragment& f) {
  std::string text;
  for (const topo::node& n : f.nodes)
    for (const auto& fact : n.facts)
      if (fact.first == "visible_index") text += std::to_string(*n.index) + ">" + fact.second + " ";
  return text;
}

}  // namespace

TEST(visible_gpus, are_those_listed_numbered_in_the_order_of_the_list) {
  const auto f = topo::with_visible_gpus(box(), "2, GPU-a0");
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_EQ(numbers(*f), "0>1 2>0 ");
  const auto g = topo::graph::from(*f);
  ASSERT_TRUE(g);
  EXPECT_EQ(g->all(topo::node_kind::gpu).size(), 2U);
  EXPECT_EQ(g->all(topo::node_kind::nic).size(), 2U);
  EXPECT_TRUE(f->findings.empty());
}

TEST(visible_gpus, decide_how_many_nics_a_job_can_use) {
  const auto rails = [](const char* list) {
    return topo::affinity_of(topo::graph::from(topo::with_visible_gpus(box(), list).value()).value()).rails;
  };
  EXPECT_EQ(rails("0,1"), 1U);
  EXPECT_EQ(rails("0,2"), 2U);
}

TEST(visible_gpus, end_at_the_first_entry_that_names_none) {
  EXPECT_EQ(numbers(*topo::with_visible_gpus(box(), "1,7,0")), "1>0 ");
  EXPECT_EQ(topo::with_visible_gpus(box(), "1,7,0")->findings.size(), 1U);
  EXPECT_EQ(numbers(*topo::with_visible_gpus(box(), "3,-1,0")), "3>0 ");
  EXPECT_TRUE(topo::with_visible_gpus(box(), "3,-1,0")->findings.empty());
  EXPECT_EQ(numbers(*topo::with_visible_gpus(box(), "")), "");
}

TEST(visible_gpus, refuse_what_cannot_be_told) {
  for (const char* list : {"first", "0,,1", "GPU-a", "MIG-a000", "0,GPU-a0", "1,1", "-2", "12345678901"}) {
    const auto f = topo::with_visible_gpus(box(), list);
    ASSERT_FALSE(f) << list;
    EXPECT_EQ(f.error().code, tc::errc::invalid_argument) << list;
  }
}
