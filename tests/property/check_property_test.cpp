// SPDX-License-Identifier: Apache-2.0
// Healthy clusters of many shapes are not blamed; of planted faults every one is named, and nothing else.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/generate.hpp>
#include <topocoll/topo/check.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

topo::graph built(const fabric_options& o) {
  auto f = generate(o);
  EXPECT_TRUE(f) << (f ? "" : f.error().what);
  if (!f) return {};
  f->findings.clear();  // which name the planted faults
  for (topo::link& l : f->links) l.reason.clear();
  auto g = topo::graph::from(*std::move(f));
  EXPECT_TRUE(g);
  return g ? *std::move(g) : topo::graph{};
}

std::string all_of(const std::vector<finding>& findings) {
  std::string text;
  for (const finding& f : findings)
    text += std::string(to_string(f.level)) + " | " + f.where + " | " + f.what + " | " + f.evidence + '\n';
  return text;
}

/// True when `text` holds `word` not as the beginning of a longer number.
bool names(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || text[at - 1] == ' ';
    if (begins && (end == text.size() || text[end] < '0' || text[end] > '9')) return true;
  }
  return false;
}

/// Key of GPU or NIC `i` of a host, as generated: looked up in the healthy cluster.
std::string key_of(const topo::graph& healthy, std::uint32_t host, topo::node_kind kind, std::uint32_t i) {
  const std::string name = "node" + std::to_string(host);
  for (const topo::node& n : healthy.nodes())
    if (n.kind == kind && n.host == name && n.index == i) return n.key;
  return "no such device";
}

/// Whether a finding is about a planted fault: the host (and the device in the sentence), or both ends of the uplink.
bool is_about(const finding& f, const planted_fault& fault, const topo::graph& healthy) {
  const fabric_part& p = fault.part;
  const std::string host = "node" + std::to_string(p.first);
  switch (p.kind) {
    case fabric_part::kind_t::nic: {
      const std::string nic = "mlx5_" + std::to_string(p.second);
      if (f.where == host) return names(f.what, nic);
      return names(f.where, host + "/net:" + nic) ||
             names(f.where, key_of(healthy, p.first, topo::node_kind::nic, p.second));
    }
    case fabric_part::kind_t::gpu:
      if (f.where == host) return names(f.what, "GPU " + std::to_string(p.second));
      return names(f.where, key_of(healthy, p.first, topo::node_kind::gpu, p.second));
    case fabric_part::kind_t::leaf_uplink:
      return f.where == "leaf:" + std::to_string(p.first) + " - spine:" + std::to_string(p.second);
    case fabric_part::kind_t::spine_uplink:
      return f.where == "spine:" + std::to_string(p.first) + " - core:" + std::to_string(p.second);
    case fabric_part::kind_t::host:
    case fabric_part::kind_t::leaf:
    case fabric_part::kind_t::spine:
    case fabric_part::kind_t::core: break;
  }
  return false;
}

const char* const shapes[] = {
    "dgx-h100:nodes=16,leaves=8",
    "dgx-h100:nodes=16,leaves=16,oversubscription=2",
    "dgx-h100:nodes=17,leaves=16,spines=4,oversubscription=3",
    "dgx-h100:nodes=24,rails=no,leaves=6",
    "dgx-h100:nodes=25,rails=no,leaves=4,spines=8,oversubscription=3:2",
    "dgx-a100:nodes=32,pods=4,spines=16,cores=4",
    "dgx-a100:nodes=32,pods=4,spines=16,cores=4,core_oversubscription=2,oversubscription=2",
    "dgx-a100:nodes=20,rails=no,leaves=8,pods=4,spines=8,cores=3",
    "dgx-b200:nodes=12,leaves=8,spines=0",
    "dgx-h100:nodes=12,leaves=1",
    "dgx-1v:nodes=16,leaves=8,spines=4",
    "dgx-1v:nodes=11,leaves=4,network=ethernet",
    "gb200-nvl72:nodes=36",
    "gb200-nvl72:nodes=54,leaves=12,oversubscription=2",
    "pcie:nodes=12,leaves=2,spines=3",
    "pcie:nodes=16,rails=no,leaves=4,nics=4",
    "dgx-h100:nodes=11,leaves=8,detail=full",
};

}  // namespace

TEST(check, blames_nothing_healthy) {
  for (const char* shape : shapes) {
    const auto o = parse_spec(shape);
    ASSERT_TRUE(o) << shape << ": " << (o ? "" : o.error().what);
    for (const finding& f : topo::check(built(*o)))
      EXPECT_EQ(f.level, severity::note) << shape << '\n' << f.where << ": " << f.what << " | " << f.evidence;
  }
  for (const char* model : {"dgx-1v", "dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72", "pcie"})
    for (const std::uint32_t nodes : {1U, 2U, 3U, 5U, 7U, 8U, 17U})
      for (const char* more : {"", ",rails=no", ",oversubscription=4", ",detail=full"}) {
        const std::string spec = std::string(model) + ":nodes=" + std::to_string(nodes) + more;
        const auto o = parse_spec(spec);
        ASSERT_TRUE(o) << spec;
        for (const finding& f : topo::check(built(*o)))
          EXPECT_EQ(f.level, severity::note) << spec << '\n' << f.where << ": " << f.what << " | " << f.evidence;
      }
}

TEST(check, names_every_planted_fault_and_nothing_else) {
  std::size_t planted = 0, blamed = 0;
  for (const char* shape : shapes) {
    const auto healthy = parse_spec(shape);
    ASSERT_TRUE(healthy);
    const topo::graph before = built(*healthy);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const auto o = with_faults(*healthy, 1 + static_cast<std::uint32_t>(seed % 5), seed);
      ASSERT_TRUE(o);
      const std::vector<finding> found = topo::check(built(*o));
      std::string spec = to_spec(*o).value();
      for (const planted_fault& fault : o->faults) {
        ++planted;
        bool told = false;
        for (const finding& f : found) told = told || (f.level != severity::note && is_about(f, fault, before));
        EXPECT_TRUE(told) << to_string(fault.part) << " is not named in " << spec << '\n' << all_of(found);
      }
      for (const finding& f : found) {
        if (f.level == severity::note) continue;
        ++blamed;
        bool right = false;
        for (const planted_fault& fault : o->faults) right = right || is_about(f, fault, before);
        EXPECT_TRUE(right) << spec << '\n' << f.where << ": " << f.what << " | " << f.evidence;
      }
      if (HasFailure()) return;
    }
  }
  RecordProperty("planted", std::to_string(planted));
  RecordProperty("blamed", std::to_string(blamed));
}

TEST(check, names_faults_of_every_kind_that_can_be_seen) {
  // One fault at a time: GPUs missing or slow, uplinks of both tiers missing or slow.
  for (const char* shape :
       {"dgx-a100:nodes=12,pods=4,spines=16,cores=4", "dgx-h100:nodes=9,leaves=8,spines=4,detail=full",
        "dgx-1v:nodes=8,pods=2,spines=8,cores=3,oversubscription=2"}) {
    const auto healthy = parse_spec(shape);
    ASSERT_TRUE(healthy);
    const topo::graph before = built(*healthy);
    const auto s = shape_of(*healthy);
    ASSERT_TRUE(s);
    std::vector<planted_fault> faults;
    using kind = planted_fault::kind_t;
    for (std::uint32_t i = 0; i < 8; ++i) {
      faults.push_back({kind::missing, {fabric_part::kind_t::gpu, i % s->nodes, i}, {}, 0});
      faults.push_back({kind::slow, {fabric_part::kind_t::gpu, (i + 3) % s->nodes, i}, rational(1, 2), 0});
      const std::uint32_t leaf = i % s->leaves;
      const std::uint32_t spine =
          (s->cores == 0 ? 0 : leaf / s->leaves_per_pod() * s->spines_per_leaf()) + i % s->spines_per_leaf();
      faults.push_back({kind::missing, {fabric_part::kind_t::leaf_uplink, leaf, spine}, {}, 0});
      faults.push_back({kind::slow, {fabric_part::kind_t::leaf_uplink, leaf, spine}, rational(3, 4), 0});
      if (s->cores == 0) continue;
      faults.push_back({kind::missing, {fabric_part::kind_t::spine_uplink, i % s->spines, i % s->cores}, {}, 0});
      faults.push_back(
          {kind::slow, {fabric_part::kind_t::spine_uplink, i % s->spines, i % s->cores}, rational(1, 4), 0});
    }
    for (const planted_fault& fault : faults) {
      fabric_options o = *healthy;
      o.faults = {fault};
      std::size_t bad = 0;
      const std::vector<finding> found = topo::check(built(o));
      for (const finding& f : found) {
        if (f.level == severity::note) continue;
        ++bad;
        EXPECT_TRUE(is_about(f, fault, before)) << to_spec(o).value() << '\n' << f.where << ": " << f.what;
      }
      EXPECT_GE(bad, 1U) << to_spec(o).value() << '\n' << all_of(found);
    }
  }
}
