// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small clusters of any shape for tests of plans, built node by node: no generator of the library is involved.
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/plan/problem.hpp>
#include <topocoll/topo/graph.hpp>

namespace plan_test {

namespace tc = topocoll;
using namespace tc::literals;

struct cluster_shape {
  /// pods[p][b] is the number of GPUs in box b of pod p.
  std::vector<std::vector<std::uint32_t>> pods;
  bool nvswitch = true;     ///< GPUs of a box hang on one NVSwitch plane
  bool rail_leaves = true;  ///< one leaf per rail and pod; otherwise one leaf per pod
  bool fabric = true;       ///< NICs lead to leaves at all
};

struct cluster {
  tc::topo::graph graph;
  std::vector<tc::node_id> gpus;  ///< pod by pod, box by box
};

inline cluster build(const cluster_shape& shape) {
  tc::topo::fragment f;
  f.source = "test";
  std::vector<tc::node_id> gpus;
  const auto add = [&](tc::topo::node_kind kind, const std::string& key, const std::string& host, std::uint32_t index) {
    tc::topo::node n;
    n.kind = kind;
    n.key = key;
    n.host = host;
    n.index = index;
    return f.add(n);
  };
  const auto join = [&](tc::node_id a, tc::node_id b, tc::topo::link_kind kind, tc::bytes_per_second rate) {
    tc::topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.capacity = rate;
    f.join(l);
  };
  const tc::node_id spine = add(tc::topo::node_kind::spine, "spine:0", "", 0);
  std::uint32_t host_number = 0;
  for (std::uint32_t p = 0; p < shape.pods.size(); ++p) {
    std::vector<tc::node_id> leaves;
    std::uint32_t most = 0;
    for (const std::uint32_t g : shape.pods[p]) most = g > most ? g : most;
    for (std::uint32_t i = 0; shape.fabric && i < (shape.rail_leaves ? most : 1); ++i) {
      leaves.push_back(add(tc::topo::node_kind::leaf, "leaf:" + std::to_string(p) + "." + std::to_string(i), "", i));
      join(leaves.back(), spine, tc::topo::link_kind::infiniband, 400_Gbps);
    }
    for (const std::uint32_t g : shape.pods[p]) {
      const std::string host = "node" + std::to_string(host_number++);
      const tc::node_id cpu = add(tc::topo::node_kind::cpu, host + "/numa:0", host, 0);
      tc::node_id plane{};
      if (shape.nvswitch) plane = add(tc::topo::node_kind::nvswitch, host + "/nvswitch", host, 0);
      for (std::uint32_t i = 0; i < g; ++i) {
        const std::string n = std::to_string(i);
        const tc::node_id gpu = add(tc::topo::node_kind::gpu, host + "/gpu:" + n, host, i);
        const tc::node_id sw = add(tc::topo::node_kind::pcie_switch, host + "/switch:" + n, host, i);
        const tc::node_id nic = add(tc::topo::node_kind::nic, host + "/nic:" + n, host, i);
        const tc::node_id port = add(tc::topo::node_kind::nic_port, host + "/net:" + n, host, i);
        join(gpu, sw, tc::topo::link_kind::pcie, 50.0_GBps);
        join(sw, nic, tc::topo::link_kind::pcie, 50.0_GBps);
        join(sw, cpu, tc::topo::link_kind::pcie, 50.0_GBps);
        join(nic, port, tc::topo::link_kind::internal, 50.0_GBps);
        if (shape.fabric) join(port, leaves[shape.rail_leaves ? i : 0], tc::topo::link_kind::infiniband, 400_Gbps);
        if (shape.nvswitch) join(gpu, plane, tc::topo::link_kind::nvlink, 450.0_GBps);
        gpus.push_back(gpu);
      }
    }
  }
  return {tc::topo::graph::from(std::move(f)).value(), std::move(gpus)};
}

/// `pods` pods of `boxes` boxes of `gpus` GPUs.
inline cluster_shape even(std::uint32_t pods, std::uint32_t boxes, std::uint32_t gpus) {
  return {.pods = std::vector(pods, std::vector(boxes, gpus))};
}

/// A problem on all GPUs; rank r sits on GPU `where(r)`.
inline tc::plan::problem on(const cluster& c, tc::collective_kind kind, tc::bytes size, tc::rank_id root = {}) {
  return {.graph = &c.graph, .collective = kind, .size = size, .ranks = c.gpus, .root = root};
}

}  // namespace plan_test
