// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/slurm_graph.hpp turns host maps, topograph models and MPI host files into nodes and links.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/fabric_build.hpp>
#include <topocoll/discover/slurm_graph.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Adds NVLink domains: rows are hosts and the names of their domains, empty for none.
template <class = void>
void add_domains(topo::fragment& f, const std::vector<std::pair<const std::string*, const std::string*>>& rows,
                 const std::string& file) {
  host_stands stands(f);
  std::vector<const std::string*> domains;
  std::vector<const std::string*> hosts;
  for (const auto& [host, domain] : rows)
    if (!domain->empty()) {
      domains.push_back(domain);
      hosts.push_back(host);
    }
  if (domains.empty()) return;
  const name_index domain_at(domains);
  const name_index host_at(hosts);
  std::vector<std::optional<node_id>> plane(domain_at.size()), gpus(host_at.size());
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::optional<node_id>& p = plane[domain_at(*domains[i])];
    std::optional<node_id>& g = gpus[host_at(*hosts[i])];
    if (!p) p = stands.add_domain(*domains[i]);
    if (g) continue;  // a host is in one domain; the first counts
    g = stands.add_gpus(*hosts[i], file);
    stands.join_domain(*g, *p, file);
  }
  f.findings.push_back({severity::note,
                        file,
                        "GPUs and NVLinks are not told, only which hosts share an NVLink domain; " +
                            std::to_string(domain_at.size()) + (domain_at.size() == 1 ? " domain" : " domains") +
                            " of " + std::to_string(host_at.size()) + (host_at.size() == 1 ? " host" : " hosts"),
                        {},
                        {},
                        1});
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::host_map& map, const discover_options&, const std::string& file) {
  topo::fragment f;
  f.source = "host-map " + file;
  if (map.ports) {
    detail::host_stands stands(f);
    std::vector<const std::string*> hosts;
    for (const read::host_value& row : map.rows) hosts.push_back(&row.host);
    const detail::name_index index(std::move(hosts));
    std::vector<std::uint32_t> ports(index.size(), 0);
    for (const read::host_value& row : map.rows)
      static_cast<void>(stands.add_port(row.host, ++ports[index(row.host)], "0x" + row.value, file));
    detail::settle(f, file);
    return f;
  }
  std::vector<std::pair<const std::string*, const std::string*>> rows;
  for (const read::host_value& row : map.rows) rows.emplace_back(&row.host, &row.value);
  detail::add_domains(f, rows, file);
  detail::settle(f, file);
  return f;
}

template <class>
result<topo::fragment> fragment_of(const read::topograph_model& model, const discover_options& options,
                                   const std::string& file) {
  auto f = fragment_of(model.tree, options, file);
  if (!f) return f;
  f->source = "topograph-model " + file;
  std::vector<std::pair<const std::string*, const std::string*>> rows;
  for (const read::topograph_block& b : model.blocks)
    for (const std::string& host : b.nodes) rows.emplace_back(&host, &b.domain);
  detail::add_domains(*f, rows, file);
  detail::settle(*f, file);
  return f;
}

template <class>
result<topo::fragment> fragment_of(const read::hostfile& hosts, const discover_options&, const std::string& file) {
  topo::fragment f;
  f.source = "hostfile " + file;
  f.findings = hosts.findings;
  detail::host_stands stands(f);
  std::vector<const std::string*> names;
  for (const read::hostfile_entry& e : hosts.entries) names.push_back(&e.host);
  const detail::name_index index(std::move(names));
  std::vector<std::optional<node_id>> place(index.size());
  std::vector<std::uint64_t> slot_count(index.size(), 0);
  for (const read::hostfile_entry& e : hosts.entries) {
    std::optional<node_id>& at = place[index(e.host)];
    if (!at) at = stands.add_host(e.host, file);
    if (!e.slot_count) continue;
    std::uint64_t& sum = slot_count[index(e.host)];
    sum += *e.slot_count;
    auto& facts = f.nodes[at->value].facts;
    if (facts.size() == 1) facts.insert(facts.begin(), {"slots", ""});
    facts[0].second = std::to_string(sum);
  }
  detail::settle(f, file);
  return f;
}

template <class>
read::slurm_topology with_hosts(read::slurm_topology t, const read::host_map& map) {
  if (!t.nodes_are_ports || !map.ports) return t;
  std::vector<std::uint32_t> order(map.rows.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto guid = [&](std::uint32_t i) -> const std::string& { return map.rows[i].value; };
  seq::sort_by(order, guid);
  std::size_t lost = 0;
  for (read::slurm_switch& s : t.switches) {
    std::vector<std::string> hosts;
    for (const std::string& port : s.nodes) {
      const std::string digits = read::guid_digits(port);
      const auto at = seq::lower_bound_by(order, digits, guid);
      if (at != order.end() && guid(*at) == digits)
        hosts.push_back(map.rows[*at].host);
      else
        ++lost;
    }
    s.nodes = std::move(hosts);
  }
  t.nodes_are_ports = false;
  if (lost > 0)
    t.findings.push_back({severity::warning,
                          "",
                          std::to_string(lost) + " ports of the fabric belong to no host of the map",
                          {},
                          "write the map again",
                          1});
  return t;
}

}}  // namespace topocoll::v0
