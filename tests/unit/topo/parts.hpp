// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small machines for tests, built part by part.
#include <cstdint>
#include <string>
#include <utility>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace topocoll_test {

using topocoll::bytes_per_second;
using topocoll::link_id;
using topocoll::node_id;
using topocoll::trust;
using topocoll::topo::link_kind;
using topocoll::topo::node_kind;

/// A fragment under construction; links are full duplex and told by their kind and GB/s.
struct parts {
  topocoll::topo::fragment f;

  node_id add(node_kind kind, const std::string& key, const std::string& name, const std::string& host = "h") {
    topocoll::topo::node n;
    n.kind = kind;
    n.key = host.empty() ? key : host + '/' + key;
    n.name = name;
    n.host = host;
    return f.add(std::move(n));
  }
  node_id gpu(std::uint32_t i, const std::string& host = "h") {
    const node_id v =
        add(node_kind::gpu,
            "pci:0000:" + std::string(1, static_cast<char>('a' + i / 16)) + "0123456789abcdef"[i % 16] + ":00.0",
            "GPU " + std::to_string(i), host);
    f.nodes[v.value].index = i;
    return v;
  }
  node_id cpu(std::uint32_t i, const std::string& host = "h") {
    const node_id v = add(node_kind::cpu, "numa:" + std::to_string(i), "NUMA " + std::to_string(i), host);
    f.nodes[v.value].index = i;
    return v;
  }
  node_id memory(std::uint32_t i, const std::string& host = "h") {
    return add(node_kind::host_memory, "memory:" + std::to_string(i), "memory " + std::to_string(i), host);
  }
  node_id nic(std::uint32_t i, const std::string& host = "h") {
    const node_id v =
        add(node_kind::nic, "pci:0000:0" + std::to_string(i) + ":00.0", "mlx5_" + std::to_string(i), host);
    f.nodes[v.value].index = i;
    return v;
  }
  node_id port(std::uint32_t i, std::uint32_t p = 1, const std::string& host = "h") {
    const std::string name = "mlx5_" + std::to_string(i) + '/' + std::to_string(p);
    return add(node_kind::nic_port, "net:" + name, name, host);
  }
  node_id bridge(const std::string& address, node_kind kind = node_kind::pcie_switch, const std::string& host = "h") {
    return add(kind, "pci:" + address, "", host);
  }
  node_id network(node_kind kind, std::uint32_t i) {
    const std::string word = kind == node_kind::leaf ? "leaf" : kind == node_kind::spine ? "spine" : "core";
    const node_id v = add(kind, word + ':' + std::to_string(i), word + ' ' + std::to_string(i), "");
    f.nodes[v.value].index = i;
    return v;
  }
  /// Joins and gives the id of the link from `a` to `b`; that from `b` to `a` has the next id.
  link_id join(node_id a, node_id b, link_kind kind, double gigabytes_per_second, trust how = trust::reported,
               const std::string& reason = {}) {
    topocoll::topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.nominal = bytes_per_second{gigabytes_per_second * 1e9};
    l.capacity = *l.nominal;
    l.how = how;
    l.reason = reason;
    f.join(l);
    return {static_cast<std::uint32_t>(f.links.size() - 2)};
  }
  link_id pcie(node_id a, node_id b, std::uint32_t generation = 5, std::uint32_t lanes = 16) {
    constexpr double per_lane[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938};
    const link_id e = join(a, b, link_kind::pcie, per_lane[generation] * lanes);
    for (const std::uint32_t i : {e.value, e.value + 1}) {
      f.links[i].generation = generation;
      f.links[i].lanes = lanes;
    }
    return e;
  }
  [[nodiscard]] topocoll::topo::graph graph() const {
    auto made = topocoll::topo::graph::from(f);
    EXPECT_TRUE(made) << (made ? "" : made.error().what);
    return made ? *std::move(made) : topocoll::topo::graph{};
  }
};

}  // namespace topocoll_test
