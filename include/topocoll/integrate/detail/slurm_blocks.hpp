// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/slurm_topology.hpp finds the blocks of a graph: NVLink domains, or what a scheduler called blocks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/slurm_parts.hpp>
#include <topocoll/integrate/slurm_topology.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 {

template <class>
result<read::slurm_topology> slurm_blocks_of(const topo::graph& g) {
  detail::joined_sets sets(g.node_count());
  for (const topo::link& l : g.links())
    if (l.kind == topo::link_kind::nvlink || l.kind == topo::link_kind::xgmi) sets.join(l.from.value, l.to.value);
  // Hosts of each domain, in the order of the graph.
  struct seat {
    std::uint32_t domain, order;
    const std::string* host;
  };
  std::vector<seat> seats;
  for (std::uint32_t v = 0; v < g.node_count(); ++v)
    if (const topo::node& n = g.at(node_id{v}); !n.host.empty()) seats.push_back({sets.of(v), v, &n.host});
  seq::sort(seats, [](const seat& a, const seat& b) {
    return a.domain != b.domain ? a.domain < b.domain : a.order < b.order;
  });
  read::slurm_topology t;
  std::vector<std::string> placed;
  std::string sizes;
  const auto add = [&](const std::string& name, std::vector<std::string> hosts) {
    for (const std::string& h : hosts) placed.push_back(h);
    seq::sort(hosts, [](const std::string& a, const std::string& b) { return read::host_order(a, b); });
    read::slurm_group b;
    b.name = slurm_name(name);
    for (const read::slurm_group& other : t.blocks)
      if (other.name == b.name) b.name = slurm_name(b.name.substr(0, 56)) + "-" + std::to_string(t.blocks.size() + 1);
    b.nodes = std::move(hosts);
    t.blocks.push_back(std::move(b));
  };
  const std::vector<node_id> planes = g.all(topo::node_kind::nvswitch);
  for (std::size_t first = 0, last = 0; first < seats.size(); first = last) {
    std::vector<std::string> hosts;
    for (; last < seats.size() && seats[last].domain == seats[first].domain; ++last) hosts.push_back(*seats[last].host);
    seq::sort_unique(hosts);
    if (hosts.size() < 2) continue;
    std::string name = "block" + std::to_string(t.blocks.size() + 1);
    for (const node_id v : planes)
      if (sets.of(v.value) == seats[first].domain && g.at(v).host.empty()) {
        const topo::node& plane = g.at(v);
        name = plane.name.empty() ? plane.key : plane.name;
        break;
      }
    add(name, std::move(hosts));
  }
  if (t.blocks.empty()) {
    std::vector<std::pair<std::string, std::string>> rows;  // block, host
    for (std::uint32_t v = 0; v < g.node_count(); ++v) {
      const topo::node& n = g.at(node_id{v});
      const std::string block = detail::fact_of(n, "block");
      if (block.empty()) continue;
      if (!n.host.empty()) rows.emplace_back(block, n.host);
      if (sizes.empty()) sizes = detail::fact_of(n, "block_sizes");
      if (n.host.empty())
        for (const link_id e : g.out_links(node_id{v}))
          if (!g.at(g.head(e)).host.empty()) rows.emplace_back(block, g.at(g.head(e)).host);
    }
    seq::sort_unique(rows);
    for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
      std::vector<std::string> hosts;
      for (; last < rows.size() && rows[last].first == rows[first].first; ++last) hosts.push_back(rows[last].second);
      add(rows[first].first, std::move(hosts));
    }
  }
  if (t.blocks.empty())
    return fail(errc::not_found, "no NVLink domain joins several hosts, so there are no blocks to write",
                "write the tree, or name the domains in a host map");
  for (const std::string& host : placed)
    if (auto ok = detail::takes_host(host); !ok) return std::move(ok).error();
  std::vector<std::string> outside;
  seq::sort_unique(placed);
  for (const topo::group& host : topo::hosts(g)) {
    const auto at =
        seq::lower_bound_by(placed, host.name, [](const std::string& s) -> const std::string& { return s; });
    if (at == placed.end() || *at != host.name) outside.push_back(host.name);
  }
  if (!outside.empty())
    t.findings.push_back({severity::warning,
                          g.source(),
                          "hosts are in no block; Slurm will not place jobs on them by blocks",
                          read::compress_hostlist(outside),
                          {},
                          1});
  while (!sizes.empty()) {
    const std::size_t comma = sizes.find(',');
    if (const auto size = read::small_number(sizes.substr(0, comma))) t.block_sizes.push_back(*size);
    sizes.erase(0, comma == std::string::npos ? sizes.size() : comma + 1);
  }
  if (t.block_sizes.empty()) {
    std::size_t least = placed.size();
    for (const read::slurm_group& b : t.blocks)
      if (b.nodes.size() < least) least = b.nodes.size();
    for (std::size_t times = 1; times <= t.blocks.size(); times *= 2)
      t.block_sizes.push_back(static_cast<std::uint32_t>(least * times));
  }
  return t;
}

}}  // namespace topocoll::v0
