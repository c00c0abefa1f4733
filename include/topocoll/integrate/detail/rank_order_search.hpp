// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/rank_order.hpp finds what switches join, and orders hosts by it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/shell_word.hpp>
#include <topocoll/integrate/detail/slurm_parts.hpp>
#include <topocoll/integrate/rank_order.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// The hosts of a graph with the group that each belongs to, tier by tier.
struct host_tiers {
  std::vector<std::string> hosts;                 ///< in graph order
  std::vector<std::vector<std::uint32_t>> group;  ///< [tier][host]
  std::vector<std::string> names;                 ///< of the tiers
};

/// Groups numbered in the order of their first member, so that equal partitions are equal lists.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> partition_of(const std::vector<std::uint32_t>& group) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_group;  // group, first member
  for (std::uint32_t i = 0; i < group.size(); ++i) by_group.emplace_back(group[i], i);
  seq::sort(by_group);
  std::vector<std::uint32_t> first(group.size());
  for (std::size_t i = 0, from = 0; i < by_group.size(); ++i) {
    if (by_group[i].first != by_group[from].first) from = i;
    first[by_group[i].second] = by_group[from].second;
  }
  return first;
}

template <class = void>
[[nodiscard]] host_tiers host_tiers_of(const topo::graph& g) {
  host_tiers found;
  const auto hosts = topo::hosts(g);
  const auto n = static_cast<std::uint32_t>(g.node_count());
  constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> host_of(n, none), tier(n, none);
  std::vector<std::uint32_t> frontier;
  for (std::uint32_t h = 0; h < hosts.size(); ++h) {
    found.hosts.push_back(hosts[h].name);
    for (const node_id v : hosts[h].nodes) {
      host_of[v.value] = h;
      tier[v.value] = 0;
      frontier.push_back(v.value);
    }
  }
  const auto network = [](const topo::link& l) {
    return l.capacity.value > 0 && (l.kind == topo::link_kind::infiniband || l.kind == topo::link_kind::ethernet);
  };
  // How far a switch is from the hosts: the first that are plugged into directly, then those above.
  std::uint32_t highest = 0;
  for (std::uint32_t t = 1; !frontier.empty(); ++t) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t v : frontier)
      for (const link_id e : g.out_links({v})) {
        const std::uint32_t w = g.head(e).value;
        if (tier[w] != none || !network(g.at(e))) continue;
        tier[w] = t;
        highest = t;
        next.push_back(w);
      }
    frontier = std::move(next);
  }
  const auto add_tier = [&](joined_sets& sets, const std::string& name) {
    std::vector<std::uint32_t> group(hosts.size());
    for (std::uint32_t h = 0; h < hosts.size(); ++h) group[h] = sets.of(n + h);
    if (!found.group.empty() && partition_of(found.group.back()) == partition_of(group)) return;
    found.group.push_back(std::move(group));
    found.names.push_back(name);
  };
  joined_sets sets(n + hosts.size());
  for (std::uint32_t v = 0; v < n; ++v)
    if (host_of[v] != none) sets.join(v, n + host_of[v]);
  bool wired = false;  // GPUs of several hosts
  for (const topo::link& l : g.links())
    if ((l.kind == topo::link_kind::nvlink || l.kind == topo::link_kind::xgmi) && l.capacity.value > 0) {
      const std::uint32_t a = host_of[l.from.value], b = host_of[l.to.value];
      wired = wired || (a != none && b != none ? a != b : true);
      sets.join(l.from.value, l.to.value);
    }
  if (wired) add_tier(sets, "NVLink domain");
  for (std::uint32_t t = 1; t <= highest; ++t) {
    for (const topo::link& l : g.links())
      if (network(l) && tier[l.from.value] <= t && tier[l.to.value] <= t) sets.join(l.from.value, l.to.value);
    add_tier(sets, t == 1 ? "leaf" : "tier " + std::to_string(t));
  }
  return found;
}

/// Parent of node `r` in NCCL's binary tree over n nodes; r for the root. Source: NCCL 2.28, src/graph/trees.cc: the bit of
/// r that is set lowest tells the height.
[[nodiscard]] constexpr std::uint32_t tree_parent(std::uint32_t n, std::uint32_t r) {
  if (r == 0) return 0;
  const std::uint32_t bit = r & (~r + 1);
  const std::uint32_t up = (r ^ bit) | (bit << 1U);
  return up < n ? up : r ^ bit;
}

/// Counts the hops and edges between groups, when hosts are in this order.
template <class = void>
[[nodiscard]] order_score score_of(const std::vector<std::uint32_t>& group, const std::string& tier) {
  order_score s;
  s.tier = tier;
  const auto n = static_cast<std::uint32_t>(group.size());
  std::vector<std::uint32_t> distinct = group;
  seq::sort_unique(distinct);
  s.groups = static_cast<std::uint32_t>(distinct.size());
  for (std::uint32_t i = 0; i < n; ++i) s.ring += group[i] != group[(i + 1) % n] ? 1 : 0;
  for (std::uint32_t i = 1; i < n; ++i) {
    s.tree += group[i] != group[tree_parent(n, i)] ? 1 : 0;
    // The second tree is mirrored for even n and shifted by one for odd n.
    const auto second = [&](std::uint32_t r) { return n % 2 == 0 ? n - 1 - r : (r + 1) % n; };
    s.tree += group[second(i)] != group[second(tree_parent(n, i))] ? 1 : 0;
  }
  return s;
}

}  // namespace detail

template <class>
result<std::vector<job_host>> read_job_hosts(std::string_view text, std::string_view file) {
  const auto entries = read::parse_hostfile(text, file);
  if (!entries) return entries.error();
  std::vector<job_host> hosts;
  for (const read::hostfile_entry& e : entries->entries) hosts.push_back({e.host, e.slot_count.value_or(0)});
  return hosts;
}

template <class>
std::vector<job_host> job_hosts_of(const topo::graph& g) {
  std::vector<job_host> with, all;
  for (const topo::group& h : topo::hosts(g)) {
    job_host host{h.name, 0};
    for (const node_id v : h.nodes) host.slot_count += g.at(v).kind == topo::node_kind::gpu ? 1 : 0;
    if (host.slot_count != 0) with.push_back(host);
    all.push_back(std::move(host));
  }
  return with.empty() ? all : with;
}

template <class>
result<ordered_hosts> order_hosts(const topo::graph& g, std::span<const job_host> hosts) {
  if (hosts.empty()) return fail(errc::invalid_argument, "there are no hosts to order");
  for (const job_host& h : hosts)
    if (h.name.empty() ||
        !seq::all_of(h.name, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; }))
      return fail(errc::invalid_argument,
                  "'" + detail::one_line(h.name) + "' is not a name that a launcher's file can hold");
  const detail::host_tiers tiers = detail::host_tiers_of(g);
  constexpr std::uint32_t none = UINT32_MAX;
  // Names of the fabric, whole and up to the first dot.
  struct name {
    std::string_view text;
    std::uint32_t host;
  };
  std::vector<name> whole, shortened;
  const auto before_dot = [](std::string_view s) { return s.substr(0, s.find('.')); };
  for (std::uint32_t h = 0; h < tiers.hosts.size(); ++h) {
    whole.push_back({tiers.hosts[h], h});
    shortened.push_back({before_dot(tiers.hosts[h]), h});
  }
  seq::sort_by(whole, &name::text);
  seq::sort_by(shortened, &name::text);
  const auto find = [](const std::vector<name>& names, std::string_view wanted) {
    const auto at = seq::lower_bound_by(names, wanted, &name::text);
    if (at == names.end() || at->text != wanted) return UINT32_MAX;
    return at + 1 != names.end() && (at + 1)->text == wanted ? UINT32_MAX : at->host;
  };

  ordered_hosts out;
  struct entry {
    job_host host;
    std::uint32_t known;
  };
  std::vector<entry> entries;
  std::vector<std::pair<std::string, std::uint32_t>> seen;  // name and place in `entries`, sorted
  std::vector<std::string> unknown, again;
  for (const job_host& h : hosts) {
    const auto at = seq::lower_bound_by(seen, h.name, &std::pair<std::string, std::uint32_t>::first);
    if (at != seen.end() && at->first == h.name) {
      std::uint32_t& slot_count = entries[at->second].host.slot_count;
      slot_count = (slot_count == 0 ? 1 : slot_count) + (h.slot_count == 0 ? 1 : h.slot_count);
      if (!seq::contains(again, h.name)) again.push_back(h.name);
      continue;
    }
    std::uint32_t known = find(whole, h.name);
    if (known == none) known = find(shortened, before_dot(h.name));
    if (known == none) unknown.push_back(h.name);
    seen.insert(at, {h.name, static_cast<std::uint32_t>(entries.size())});
    entries.push_back({h, known});
  }
  if (unknown.size() == entries.size())
    return fail(errc::not_found,
                "the topology knows none of the " + std::to_string(entries.size()) + " hosts, the first is '" +
                    unknown.front() + "'" +
                    (tiers.hosts.empty() ? "" : "; it has hosts such as '" + tiers.hosts.front() + "'"),
                "give the hosts the names that the fabric has for them");
  if (!again.empty())
    out.findings.push_back({severity::note,
                            "hosts",
                            "hosts are named several times; each counts once, with all its slots",
                            read::compress_hostlist(again),
                            {},
                            1});
  if (!unknown.empty())
    out.findings.push_back({severity::warning, "hosts", "hosts are not in the topology; they stay together at the end",
                            read::compress_hostlist(unknown), "add them to the topology, or correct their names", 1});
  const std::size_t levels = tiers.group.size();
  if (levels == 0)
    out.findings.push_back(
        {severity::warning,
         g.source(),
         "the topology has no switches above the hosts, so that every order is as good",
         {},
         "give a source that tells the network: ibnetdiscover, Slurm's topology.conf, a cluster file",
         1});
  std::vector<std::string> unplugged;
  if (levels != 0) {
    std::vector<std::uint32_t> size(g.node_count() + tiers.hosts.size(), 0);
    for (const std::uint32_t group : tiers.group.back()) ++size[group];
    for (const entry& e : entries)
      if (e.known != none && size[tiers.group.back()[e.known]] == 1) unplugged.push_back(e.host.name);
  }
  if (!unplugged.empty() && unplugged.size() < entries.size())
    out.findings.push_back({severity::warning, "hosts", "hosts have no way to any other host in the topology",
                            read::compress_hostlist(unplugged), "look for their cables and ports", 1});

  const auto groups_at = [&](const std::vector<entry>& list, std::size_t t) {
    std::vector<std::uint32_t> group;
    for (const entry& e : list)
      if (e.known != none) group.push_back(tiers.group[t][e.known]);
    return group;
  };
  for (std::size_t t = 0; t < levels; ++t)
    out.before.push_back(detail::score_of(groups_at(entries, t), tiers.names[t]));
  // Groups in the order in which the list meets them, from the outermost tier in.
  std::vector<std::vector<std::uint32_t>> first(levels,
                                                std::vector<std::uint32_t>(g.node_count() + tiers.hosts.size(), none));
  for (std::uint32_t i = 0; i < entries.size(); ++i)
    for (std::size_t t = 0; t < levels && entries[i].known != none; ++t) {
      std::uint32_t& met = first[t][tiers.group[t][entries[i].known]];
      met = std::min(met, i);
    }
  std::vector<entry> sorted = entries;
  seq::sort(sorted, [&](const entry& a, const entry& b) {
    if ((a.known == none) != (b.known == none)) return b.known == none;
    if (a.known == none) return false;
    for (std::size_t t = levels; t-- > 0;) {
      const std::uint32_t x = first[t][tiers.group[t][a.known]], y = first[t][tiers.group[t][b.known]];
      if (x != y) return x < y;
    }
    return false;
  });
  for (std::size_t t = 0; t < levels; ++t) out.after.push_back(detail::score_of(groups_at(sorted, t), tiers.names[t]));
  for (entry& e : sorted) {
    out.known += e.known != none ? 1 : 0;
    out.hosts.push_back(std::move(e.host));
  }
  return out;
}

}}  // namespace topocoll::v0
