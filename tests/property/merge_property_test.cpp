// SPDX-License-Identifier: Apache-2.0
// A cluster that is torn into what its hosts and its fabric see of it, under other names, comes back whole from merging.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/generate.hpp>
#include <topocoll/topo/merge.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using topo::fragment;
using topo::link_kind;
using topo::node;
using topo::node_kind;

/// Equal numbers on every platform, unlike the distributions of the standard library.
class dice {
 public:
  explicit dice(std::uint32_t seed) : engine_(seed) {}
  /// 0 to sides-1.
  std::uint32_t operator()(std::size_t sides) { return static_cast<std::uint32_t>(engine_() % sides); }
  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[(*this)(i)]);
  }

 private:
  std::mt19937 engine_;
};

std::string guid(std::uint64_t kind, std::uint64_t number) {
  const std::uint64_t value = 0xa0b0000000000000U + (kind << 32U) + number;
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 15U];
  return text;
}
const std::string* fact(const node& n, const std::string& name) {
  for (const auto& f : n.facts)
    if (f.first == name) return &f.second;
  return nullptr;
}
/// Everything about nodes and links that does not depend on their order.
std::vector<std::string> content(const fragment& f) {
  std::vector<std::string> all;
  const auto number = [](const auto& v) { return v ? std::to_string(*v) : std::string("-"); };
  for (const node& n : f.nodes) {
    std::string text = n.key + "|" + to_string(n.kind) + "|" + n.name + "|" + n.host + "|" + number(n.index) + "|" +
                       number(n.global_rank) + "|" + number(n.numa) + "|" + to_string(n.how) + "|" + n.reason;
    for (const auto& [name, value] : n.facts) text += "|" + name + "=" + value;
    all.push_back(text);
  }
  for (const topo::link& l : f.links)
    all.push_back(f.nodes[l.from.value].key + " > " + f.nodes[l.to.value].key + "|" + to_string(l.kind) + "|" +
                  std::to_string(l.generation) + "|" + std::to_string(l.lanes) + "|" +
                  std::to_string(l.capacity.value) + "|" + to_string(l.how) + "|" + l.reason);
  std::sort(all.begin(), all.end());
  return all;
}

/// The cluster with GUIDs and UUIDs, and with full names for its hosts.
fragment named(fragment f) {
  for (std::uint32_t v = 0; v < f.nodes.size(); ++v) {
    node& n = f.nodes[v];
    if (!n.host.empty()) {
      const std::string host = n.host + ".cluster.example";
      n.key = host + n.key.substr(n.host.size());
      n.host = host;
    }
    if (n.kind == node_kind::gpu) n.facts.emplace_back("uuid", "GPU-" + std::to_string(v));
    if (n.kind == node_kind::nic) n.facts.emplace_back("node_guid", guid(1, v));
    if (n.kind == node_kind::nic_port) n.facts.emplace_back("port_guid", guid(2, v));
    std::sort(n.facts.begin(), n.facts.end());
  }
  return f;
}

/// The part of a fragment whose nodes are wanted; links between them alone.
template <class Wanted>
fragment part_of(const fragment& f, const std::string& source, const Wanted& wanted) {
  fragment part;
  part.source = source;
  std::vector<std::uint32_t> place(f.nodes.size(), UINT32_MAX);
  for (std::uint32_t v = 0; v < f.nodes.size(); ++v)
    if (wanted(f.nodes[v])) place[v] = part.add(f.nodes[v]).value;
  for (topo::link l : f.links) {
    if (place[l.from.value] == UINT32_MAX || place[l.to.value] == UINT32_MAX) continue;
    l.from = {place[l.from.value]};
    l.to = {place[l.to.value]};
    part.links.push_back(l);
  }
  return part;
}

enum class naming { short_hosts, guid_hosts, strange_hosts };

/// What an InfiniBand fabric sees: adapters, ports, switches and cables, without PCI addresses.
fragment fabric_view(const fragment& f, naming how) {
  fragment view = part_of(f, "fabric", [](const node& n) {
    return n.kind == node_kind::nic || n.kind == node_kind::nic_port || n.kind == node_kind::leaf ||
           n.kind == node_kind::spine || n.kind == node_kind::core_switch;
  });
  const std::vector<node> before = view.nodes;
  std::vector<std::uint32_t> nic(before.size(), UINT32_MAX);
  for (const topo::link& l : view.links)
    if (l.kind == link_kind::internal && before[l.to.value].kind == node_kind::nic_port) nic[l.to.value] = l.from.value;
  for (std::uint32_t v = 0; v < before.size(); ++v) {
    node& n = view.nodes[v];
    if (n.host.empty()) continue;
    const bool port = n.kind == node_kind::nic_port;
    const std::string own = *fact(before[port ? nic[v] : v], "node_guid");
    const std::string name = n.host.substr(0, n.host.find('.'));
    n.host = how == naming::short_hosts ? name : how == naming::guid_hosts ? own : "slot-" + name.substr(4);
    n.key = n.host + "/net:" +
            (how == naming::strange_hosts ? "HCA-" + std::to_string(*before[port ? nic[v] : v].index + 1) : own) +
            (port ? "/1" : "");
    n.index.reset();
    n.numa.reset();
    n.name.clear();
    std::erase_if(n.facts, [](const auto& each) { return each.first != "node_guid" && each.first != "port_guid"; });
  }
  return view;
}

/// What a tool sees that numbers GPUs, in a host without its domain.
fragment numbered_view(const fragment& f, const std::string& host) {
  fragment view =
      part_of(f, "numbers of " + host, [&](const node& n) { return n.kind == node_kind::gpu && n.host == host; });
  for (node& n : view.nodes) {
    n.host = host.substr(0, host.find('.'));
    n.key = n.host + "/gpu:" + std::to_string(*n.index);
    n.facts.clear();
  }
  return view;
}

struct shape {
  const char* name;
  fabric_options options;
};
std::vector<shape> shapes() {
  std::vector<shape> all;
  const auto add = [&](const char* name, const host_model& host, std::uint32_t nodes, std::uint32_t leaves,
                       std::uint32_t cores, bool rails) {
    fabric_options o;
    o.host = host;
    o.nodes = nodes;
    o.leaves = leaves;
    o.cores = cores;
    o.rail_optimised = rails;
    if (cores > 0) o.pods = 2;
    o.detail = host_detail::full;
    all.push_back({name, o});
  };
  add("one host of eight rails", models::hgx_h100, 1, 8, 0, true);
  add("five hosts of eight rails", models::hgx_h100, 5, 8, 0, true);
  add("seven hosts of two leaves", models::dgx_a100, 7, 2, 0, false);
  add("eight hosts in two pods", models::dgx_a100, 8, 16, 2, true);
  add("three PCIe hosts of one leaf", models::pcie, 3, 1, 0, false);
  add("seventeen trays of one NVLink domain", models::gb200_nvl72, 17, 4, 0, true);
  return all;
}

}  // namespace

TEST(merge_property, a_torn_cluster_comes_back_whole) {
  for (const shape& s : shapes()) {
    auto made = generate(s.options);
    ASSERT_TRUE(made) << s.name << ": " << made.error().message();
    const fragment whole = named(std::move(*made));
    const std::vector<std::string> expected = content(whole);
    std::vector<std::string> hosts;
    for (const node& n : whole.nodes)
      if (!n.host.empty() && (hosts.empty() || hosts.back() != n.host)) hosts.push_back(n.host);
    for (const naming how : {naming::short_hosts, naming::guid_hosts, naming::strange_hosts})
      for (std::uint32_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(std::string(s.name) + ", naming " + std::to_string(static_cast<int>(how)) + ", seed " +
                     std::to_string(seed));
        dice roll(seed);
        std::vector<fragment> parts{fabric_view(whole, how)};
        for (const std::string& host : hosts) {
          parts.push_back(part_of(whole, "host " + host, [&](const node& n) {
            return n.host == host || (n.host.empty() && n.kind == node_kind::nvswitch);
          }));
          if (how == naming::short_hosts && roll(2) == 0) parts.push_back(numbered_view(whole, host));
        }
        for (fragment& f : parts) {
          // The order of nodes and links in a source means nothing.
          std::vector<std::uint32_t> order(f.nodes.size()), place(f.nodes.size());
          for (std::uint32_t v = 0; v < order.size(); ++v) order[v] = v;
          roll.shuffle(order);
          fragment mixed;
          mixed.source = f.source;
          for (const std::uint32_t v : order) place[v] = mixed.add(f.nodes[v]).value;
          for (topo::link l : f.links) {
            l.from = {place[l.from.value]};
            l.to = {place[l.to.value]};
            mixed.links.push_back(l);
          }
          roll.shuffle(mixed.links);
          f = std::move(mixed);
        }
        roll.shuffle(parts);
        const auto merged = topo::merge(parts);
        ASSERT_TRUE(merged) << merged.error().message();
        EXPECT_EQ(content(*merged), expected);
        for (const finding& f : merged->findings) EXPECT_EQ(f.level, severity::note) << f.what << ": " << f.evidence;
        std::vector<fragment> again = parts;
        roll.shuffle(again);
        const auto twice = topo::merge(again);
        ASSERT_TRUE(twice);
        EXPECT_EQ(content(*twice), expected);
        ASSERT_EQ(twice->findings.size(), merged->findings.size());
        for (std::size_t i = 0; i < merged->findings.size(); ++i)
          EXPECT_EQ(twice->findings[i].what, merged->findings[i].what);
        if (HasFailure()) return;
      }
  }
}
