// SPDX-License-Identifier: Apache-2.0
#pragma once
// The NUMA domains of one host as nodes, their memories, and the links that nobody reports.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What decides NCCL's figure for the link between sockets.
struct processor {
  std::string arch, vendor;
  std::optional<std::uint32_t> family, model;
};

/// Adds the memory of a NUMA domain and its link.
template <class = void>
void add_memory(topo::fragment& fragment, node_id cpu, const std::string& key, std::string name) {
  topo::node m;
  m.kind = topo::node_kind::host_memory;
  m.key = key;
  m.name = std::move(name);
  m.host = fragment.nodes[cpu.value].host;
  m.numa = fragment.nodes[cpu.value].numa;
  m.how = fragment.nodes[cpu.value].how;
  m.reason = fragment.nodes[cpu.value].reason;
  topo::link l;
  l.from = cpu;
  l.to = fragment.add(std::move(m));
  l.kind = topo::link_kind::memory;
  const assumed_rate rate = to_host_memory();
  l.capacity = rate.rate;
  l.how = trust::assumed;
  l.reason = rate.reason;
  fragment.join(l);
}

/// Joins two NUMA domains of one host; the slower processor's figure counts.
template <class = void>
void join_domains(topo::fragment& fragment, node_id a, const processor& pa, node_id b, const processor& pb) {
  const assumed_rate ra = between_numa_domains(pa.arch, pa.vendor, pa.family, pa.model);
  const assumed_rate rb = between_numa_domains(pb.arch, pb.vendor, pb.family, pb.model);
  const assumed_rate& rate = rb.rate < ra.rate ? rb : ra;
  topo::link l;
  l.from = a;
  l.to = b;
  l.kind = topo::link_kind::cpu;
  l.capacity = rate.rate;
  l.how = trust::assumed;
  l.reason = rate.reason;
  fragment.join(l);
}

/// True for names that hosts give to interfaces without hardware: veth1a2b, virbr0, docker0, lo, …
template <class = void>
[[nodiscard]] bool is_virtual_interface(const std::string& name) {
  if (name == "lo") return true;
  for (const char* start : {"veth", "virbr", "docker", "br-", "vnet", "tun", "tap", "dummy", "ifb", "cali", "cni",
                            "flannel", "vxlan", "wg"})
    if (name.rfind(start, 0) == 0) return true;
  return false;
}

}}}  // namespace topocoll::v0::detail
