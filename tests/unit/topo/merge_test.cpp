// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/topo/merge.hpp>
#include <gtest/gtest.h>
#include "parts.hpp"

namespace topo = topocoll::topo;
using namespace topocoll_test;
using topocoll::errc;
using topocoll::severity;

namespace {

/// Everything that a fragment says, as text: equal texts are equal fragments.
std::string all_of(const topo::fragment& f) {
  std::string text = f.source + "\n";
  const auto number = [](const auto& v) { return v ? std::to_string(*v) : std::string("-"); };
  const auto rate = [](const auto& v) { return v ? std::to_string(v->value) : std::string("-"); };
  for (const auto& n : f.nodes) {
    text += n.key + '|' + to_string(n.kind) + '|' + n.name + '|' + n.host + '|' + number(n.index) + '|' +
            number(n.global_rank) + '|' + number(n.numa) + '|' + to_string(n.how) + '|' + n.reason;
    for (const auto& [name, value] : n.facts) text += '|' + name + '=' + value;
    text += '\n';
  }
  for (const auto& l : f.links)
    text += std::to_string(l.from.value) + '>' + std::to_string(l.to.value) + '|' + to_string(l.kind) + '|' +
            std::to_string(l.generation) + '|' + std::to_string(l.lanes) + '|' + rate(l.nominal) + '|' +
            rate(l.current) + '|' + std::to_string(l.capacity.value) + '|' + to_string(l.how) + '|' + l.reason + '\n';
  for (const auto& f2 : f.findings) text += f2.where + ": " + f2.what + " (" + f2.evidence + ")\n";
  return text;
}

topo::fragment must_merge(const std::vector<topo::fragment>& parts) {
  auto merged = topo::merge(parts);
  EXPECT_TRUE(merged) << (merged ? "" : merged.error().what);
  return merged ? *std::move(merged) : topo::fragment{};
}

topo::node gpu_node(trust how, const std::string& name = "") {
  topo::node n;
  n.kind = node_kind::gpu;
  n.key = "h/pci:0000:1b:00.0";
  n.host = "h";
  n.name = name;
  n.how = how;
  return n;
}

topo::fragment one_node(const std::string& source, topo::node n) {
  topo::fragment f;
  f.source = source;
  f.add(std::move(n));
  return f;
}

/// A GPU and a CPU with `links` parallel PCIe links of that capacity between them.
topo::fragment one_link(const std::string& source, double gigabytes, trust how, int links = 1) {
  parts p;
  p.f.source = source;
  const node_id cpu = p.cpu(0), gpu = p.gpu(0);
  for (int i = 0; i < links; ++i)
    p.join(cpu, gpu, link_kind::pcie, gigabytes, how, how == trust::assumed ? "guessed" : "");
  return p.f;
}

}  // namespace

TEST(merge, of_nothing_is_refused) { EXPECT_EQ(topo::merge({}).error().code, errc::invalid_argument); }

TEST(merge, of_one_is_that_one) {
  parts p;
  p.f.source = "s";
  const node_id a = p.network(node_kind::leaf, 1), b = p.network(node_kind::leaf, 0);
  for (const double rate : {10.0, 50.0, 25.0}) p.join(a, b, link_kind::infiniband, rate);
  p.f.findings.push_back({severity::note, "w", "a", "", "", 1});
  const std::vector<topo::fragment> one{p.f};
  EXPECT_EQ(all_of(must_merge(one)), all_of(p.f));
}

TEST(merge, joins_nodes_by_key_and_fills_what_one_source_lacks) {
  auto a = gpu_node(trust::reported);
  a.index = 3;
  a.facts = {{"sm", "90"}};
  auto b = gpu_node(trust::derived, "GPU 3");
  b.numa = 1;
  b.facts = {{"arch", "hopper"}, {"sm", "80"}};
  const auto f = must_merge({one_node("x", a), one_node("y", b)});
  ASSERT_EQ(f.nodes.size(), 1U);
  EXPECT_EQ(f.nodes[0].name, "GPU 3");
  EXPECT_EQ(f.nodes[0].index, 3U);
  EXPECT_EQ(f.nodes[0].numa, 1U);
  EXPECT_EQ(f.nodes[0].how, trust::reported);
  EXPECT_EQ(f.nodes[0].facts, (std::vector<std::pair<std::string, std::string>>{{"arch", "hopper"}, {"sm", "90"}}));
  EXPECT_EQ(f.source, "x, y");
  EXPECT_TRUE(f.findings.empty());
}

TEST(merge, prefers_measured_to_reported_whatever_the_order) {
  for (const bool swapped : {false, true}) {
    std::vector<topo::fragment> parts{one_link("a", 50, trust::reported), one_link("b", 20, trust::measured)};
    if (swapped) std::swap(parts[0], parts[1]);
    const auto f = must_merge(parts);
    ASSERT_EQ(f.links.size(), 2U);
    EXPECT_EQ(f.links[0].capacity.value, 20e9);
    EXPECT_EQ(f.links[0].how, trust::measured);
    ASSERT_EQ(f.findings.size(), 4U) << "capacity and nominal rate, both ways";
    EXPECT_EQ(f.findings[0].what, "sources disagree on the capacity of the pcie link h/numa:0 -> h/pci:0000:a0:00.0");
    EXPECT_EQ(f.findings[0].evidence, "b (measured): 20.0 GB/s; a (reported): 50.0 GB/s");
    EXPECT_EQ(f.findings[0].level, severity::warning);
  }
}

TEST(merge, never_averages_and_says_nothing_up_to_ten_percent) {
  const auto close = must_merge({one_link("a", 50, trust::reported), one_link("b", 45.1, trust::reported)});
  EXPECT_EQ(close.links[0].capacity.value, 50e9) << "equal trust: the source that comes first in the alphabet";
  EXPECT_TRUE(close.findings.empty());
  const auto apart = must_merge({one_link("a", 50, trust::reported), one_link("b", 44.9, trust::reported)});
  EXPECT_EQ(apart.links[0].capacity.value, 50e9);
  EXPECT_FALSE(apart.findings.empty());
}

TEST(merge, replaces_an_assumption_in_silence) {
  const auto f = must_merge({one_link("a", 50, trust::assumed), one_link("b", 20, trust::derived)});
  EXPECT_EQ(f.links[0].capacity.value, 20e9);
  EXPECT_TRUE(f.links[0].reason.empty());
  EXPECT_TRUE(f.findings.empty());
}

TEST(merge, keeps_a_dead_link_dead_and_says_who_disagrees) {
  const auto f = must_merge({one_link("a", 50, trust::reported), one_link("b", 0, trust::measured)});
  EXPECT_EQ(f.links[0].capacity.value, 0);
  EXPECT_FALSE(f.findings.empty());
}

TEST(merge, takes_a_bare_pcie_function_for_what_another_source_knows_it_to_be) {
  auto bare = gpu_node(trust::measured);
  bare.kind = node_kind::pcie_device;
  bare.name = "0302";
  const auto f = must_merge({one_node("a", bare), one_node("b", gpu_node(trust::derived, "GPU 0"))});
  EXPECT_EQ(f.nodes[0].kind, node_kind::gpu);
  EXPECT_EQ(f.nodes[0].name, "GPU 0");
  EXPECT_TRUE(f.findings.empty());
}

TEST(merge, reports_a_contradiction_about_what_a_node_is) {
  auto nic = gpu_node(trust::derived);
  nic.kind = node_kind::nic;
  nic.index = 1;
  auto gpu = gpu_node(trust::reported);
  gpu.index = 2;
  const auto f = must_merge({one_node("a", nic), one_node("b", gpu)});
  EXPECT_EQ(f.nodes[0].kind, node_kind::gpu);
  EXPECT_EQ(f.nodes[0].index, 2U);
  ASSERT_EQ(f.findings.size(), 2U);
  EXPECT_EQ(f.findings[0].what, "sources disagree on the kind of 'h/pci:0000:1b:00.0'");
  EXPECT_EQ(f.findings[0].evidence, "b: gpu; a: nic");
  EXPECT_EQ(f.findings[1].evidence, "b: 2; a: 1");
}

TEST(merge, matches_parallel_links_one_to_one) {
  parts a, b;
  a.f.source = "a";
  b.f.source = "b";
  for (parts* p : {&a, &b}) {
    p->network(node_kind::leaf, 0);
    p->network(node_kind::spine, 0);
  }
  for (const double rate : {50.0, 25.0}) a.join({0}, {1}, link_kind::infiniband, rate);
  for (const double rate : {25.0, 50.0}) b.join({0}, {1}, link_kind::infiniband, rate);
  for (auto& l : b.f.links) l.lanes = 4;
  const auto f = must_merge({a.f, b.f});
  ASSERT_EQ(f.links.size(), 4U);
  EXPECT_EQ(f.links[0].capacity.value, 50e9) << "in the order of the first source";
  EXPECT_EQ(f.links[2].capacity.value, 25e9);
  for (const auto& l : f.links) EXPECT_EQ(l.lanes, 4U);
  EXPECT_TRUE(f.findings.empty());
}

TEST(merge, takes_the_links_of_one_source_where_their_numbers_differ) {
  const auto same = must_merge({one_link("a", 450, trust::reported), one_link("b", 25, trust::measured, 18)});
  EXPECT_EQ(same.links.size(), 36U);
  EXPECT_TRUE(same.findings.empty()) << "18 x 25 is 450";
  const auto fewer = must_merge({one_link("a", 450, trust::reported), one_link("b", 25, trust::measured, 12)});
  EXPECT_EQ(fewer.links.size(), 24U);
  ASSERT_EQ(fewer.findings.size(), 2U);
  EXPECT_EQ(fewer.findings[0].evidence, "b: 12 with 300 GB/s together; a: 1 with 450 GB/s");
}

TEST(merge, keeps_links_of_other_kinds_and_directions_apart) {
  auto a = one_link("a", 50, trust::reported);
  auto b = a;
  b.source = "b";
  for (auto& l : b.links) l.kind = link_kind::c2c;
  EXPECT_EQ(must_merge({a, b}).links.size(), 4U);
}

TEST(merge, says_once_what_two_sources_say_in_the_same_words) {
  topo::fragment a, b;
  a.source = "a";
  b.source = "b";
  a.findings.push_back({severity::note, "w", "same", "e", "", 1});
  a.findings.push_back({severity::note, "w", "only a", "e", "", 1});
  b.findings.push_back({severity::note, "w", "only b", "e", "", 1});
  b.findings.push_back({severity::note, "w", "same", "e", "", 1});
  const auto f = must_merge({a, b});
  ASSERT_EQ(f.findings.size(), 3U);
  EXPECT_EQ(f.findings[0].what, "same");
  EXPECT_EQ(f.findings[2].what, "only b");
}

TEST(merge, refuses_broken_fragments_by_name) {
  auto twin = one_node("twins", gpu_node(trust::reported));
  twin.add(gpu_node(trust::reported));
  const auto two = topo::merge(std::vector{one_node("a", gpu_node(trust::reported)), twin});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().what, "twins: two nodes share the key 'h/pci:0000:1b:00.0'");
  auto dangling = one_link("d", 50, trust::reported);
  dangling.links[0].to = {7};
  const auto lost = topo::merge(std::vector{one_node("a", gpu_node(trust::reported)), dangling});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().what, "d: a link joins node 0 to node 7, but there are only 2");
}

TEST(merge, of_twins_that_differ_in_one_field_does_not_depend_on_their_order) {
  parts p;
  p.f.source = "same";
  const node_id cpu = p.cpu(0), gpu = p.gpu(0);
  p.pcie(cpu, gpu);
  p.f.findings.push_back({severity::note, "w", "f", "", "", 1});
  std::vector<topo::fragment> twins;
  const auto twin = [&](auto change) {
    twins.push_back(p.f);
    change(twins.back());
  };
  twin([](topo::fragment&) {});
  twin([](topo::fragment& f) { f.nodes[1].kind = node_kind::nic; });
  twin([](topo::fragment& f) { f.nodes[1].name = "other"; });
  twin([](topo::fragment& f) { f.nodes[1].host = "other"; });
  twin([](topo::fragment& f) { f.nodes[1].index = 5; });
  twin([](topo::fragment& f) { f.nodes[1].index.reset(); });
  twin([](topo::fragment& f) { f.nodes[1].global_rank = 5; });
  twin([](topo::fragment& f) { f.nodes[1].numa = 5; });
  twin([](topo::fragment& f) { f.nodes[1].how = trust::derived; });
  twin([](topo::fragment& f) { f.nodes[1].reason = "other"; });
  twin([](topo::fragment& f) { f.nodes[1].facts = {{"a", "b"}}; });
  twin([](topo::fragment& f) { f.links[0].generation = 4; });
  twin([](topo::fragment& f) { f.links[0].lanes = 8; });
  twin([](topo::fragment& f) { f.links[0].nominal = bytes_per_second{1}; });
  twin([](topo::fragment& f) { f.links[0].current = bytes_per_second{1}; });
  twin([](topo::fragment& f) { f.links[0].capacity = {1}; });
  twin([](topo::fragment& f) { f.links[0].how = trust::assumed; });
  twin([](topo::fragment& f) { f.links[0].reason = "other"; });
  twin([](topo::fragment& f) { std::swap(f.links[0], f.links[1]); });
  twin([](topo::fragment& f) { f.findings[0].evidence = "other"; });
  for (std::size_t i = 0; i < twins.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_EQ(all_of(must_merge({twins[i], twins[j]})), all_of(must_merge({twins[j], twins[i]}))) << i << ' ' << j;
}

// Random fragments over a few keys, many of them with the same name and the same trust.
TEST(merge, does_not_depend_on_the_order_of_the_fragments) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::uint64_t state = seed * 2862933555777941757U + 3037000493U;
    const auto below = [&](std::uint32_t n) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::uint32_t>(state >> 33U) % n;
    };
    std::vector<topo::fragment> parts;
    for (std::uint32_t i = 0; i < 2 + below(3); ++i) {
      topo::fragment f;
      f.source = std::string(1, static_cast<char>('a' + below(3)));
      for (std::uint32_t k = 0; k < 4; ++k) {
        if (below(4) == 0) continue;
        topo::node n;
        n.key = "k" + std::to_string((k + i) % 4);
        n.kind = below(3) == 0 ? node_kind::pcie_device : below(2) == 0 ? node_kind::gpu : node_kind::nic;
        n.how = static_cast<trust>(below(4));
        if (below(2) == 0) n.name = "n" + std::to_string(below(3));
        if (below(2) == 0) n.index = below(2);
        if (below(2) == 0) n.numa = below(2);
        if (below(2) == 0) n.facts.emplace_back("f", std::to_string(below(3)));
        f.nodes.push_back(std::move(n));
      }
      const auto n = static_cast<std::uint32_t>(f.nodes.size());
      for (std::uint32_t k = 0; n > 1 && k < 5; ++k) {
        topo::link l;
        l.from = {below(n)};
        l.to = {(l.from.value + 1 + below(n - 1)) % n};
        l.kind = below(2) == 0 ? link_kind::pcie : link_kind::nvlink;
        l.capacity = {10.0 * (1 + below(3))};
        l.how = static_cast<trust>(below(4));
        l.generation = below(3);
        if (below(2) == 0) l.nominal = bytes_per_second{10.0 * (1 + below(3))};
        if (below(2) == 0) l.reason = "r" + std::to_string(below(2));
        f.links.push_back(std::move(l));
      }
      for (std::uint32_t k = 0; k < below(3); ++k)
        f.findings.push_back({severity::note, "w", "f" + std::to_string(below(3)), "", "", 1});
      parts.push_back(std::move(f));
    }
    std::vector<std::size_t> order(parts.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const std::string first = all_of(must_merge(parts));
    do {
      std::vector<topo::fragment> permuted;
      for (const std::size_t i : order) permuted.push_back(parts[i]);
      ASSERT_EQ(all_of(must_merge(permuted)), first);
    } while (std::ranges::next_permutation(order).found);
  }
}
