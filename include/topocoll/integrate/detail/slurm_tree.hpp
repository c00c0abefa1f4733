// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/slurm_topology.hpp folds a network into a tree.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/slurm_parts.hpp>
#include <topocoll/integrate/slurm_topology.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Folds a network into a tree.
template <class = void>
class slurm_tree_builder {
 public:
  explicit slurm_tree_builder(const topo::graph& g) : g_(g), place_(g.node_count(), none) {}

  [[nodiscard]] result<read::slurm_topology> run() {
    for (std::uint32_t v = 0; v < g_.node_count(); ++v)
      if (topo::detail::is_network_switch(g_.at(node_id{v}).kind)) {
        place_[v] = static_cast<std::uint32_t>(switches_.size());
        switches_.push_back({v});
      }
    if (auto ok = find_hosts(); !ok) return std::move(ok).error();
    find_tiers();
    group_leaves();
    for (std::uint32_t tier = 1; tier <= highest_; ++tier) add_tier(tier);
    add_roots();
    return std::move(t_);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct placed_host {
    std::string name;
    std::vector<std::uint32_t> leaves;  ///< positions of switches, sorted
  };

  [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t s) const {
    std::vector<std::uint32_t> found;
    for (const link_id e : g_.out_links(switches_[s]))
      if (const std::uint32_t other = place_[g_.head(e).value]; other != none) found.push_back(other);
    seq::sort_unique(found);
    return found;
  }

  [[nodiscard]] result<void> find_hosts() {
    std::vector<std::string> alone;
    for (const topo::group& group : topo::hosts(g_)) {
      placed_host h{group.name, {}};
      for (const node_id v : group.nodes)
        for (const link_id e : g_.out_links(v))
          if (const std::uint32_t s = place_[g_.head(e).value]; s != none) h.leaves.push_back(s);
      seq::sort_unique(h.leaves);
      if (h.leaves.empty()) {
        alone.push_back(h.name);
        continue;
      }
      if (auto ok = takes_host(h.name); !ok) return ok;
      hosts_.push_back(std::move(h));
    }
    if (hosts_.empty())
      return fail(errc::not_found, "no host of the topology hangs on a network switch, so there is no tree to write",
                  "add a source that knows the fabric: ibnetdiscover, LLDP, or a cluster file");
    if (!alone.empty())
      t_.findings.push_back({severity::warning,
                             g_.source(),
                             "hosts hang on no switch; Slurm will not see them in the tree",
                             read::compress_hostlist(alone),
                             {},
                             1});
    return {};
  }

  /// The tier that sources tell, else the distance from the nearest switch with hosts.
  void find_tiers() {
    const auto n = static_cast<std::uint32_t>(switches_.size());
    tier_.assign(n, none);
    std::vector<std::uint32_t> done;
    std::vector<bool> has_hosts(n, false);
    for (const placed_host& h : hosts_)
      for (const std::uint32_t s : h.leaves) {
        if (!has_hosts[s]) done.push_back(s);
        has_hosts[s] = true;
      }
    for (const std::uint32_t s : done) tier_[s] = 0;
    for (std::size_t k = 0; k < done.size(); ++k)
      for (const std::uint32_t next : neighbours(done[k]))
        if (tier_[next] == none) {
          tier_[next] = tier_[done[k]] + 1;
          done.push_back(next);
        }
    for (std::uint32_t s = 0; s < n; ++s) {
      if (tier_[s] == none || has_hosts[s]) continue;
      const auto told = read::small_number(fact_of(g_.at(switches_[s]), "tier"), n);
      const topo::node_kind kind = g_.at(switches_[s]).kind;
      const std::uint32_t by_kind = kind == topo::node_kind::core_switch ? 2 : kind == topo::node_kind::spine ? 1 : 0;
      if (told && *told > tier_[s])
        tier_[s] = *told;
      else if (!told && by_kind > tier_[s])
        tier_[s] = by_kind;
    }
    for (const std::uint32_t t : tier_)
      if (t != none && t > highest_) highest_ = t;
  }

  /// Leaves that hosts use together are one: sets of leaves with most hosts first; others join the one they share most with.
  void group_leaves() {
    std::vector<std::uint32_t> order(hosts_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return hosts_[a].leaves < hosts_[b].leaves; });
    struct set {
      std::uint32_t first, hosts;  // where it starts in `order`
    };
    std::vector<set> sets;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      if (i == 0 || hosts_[order[i]].leaves != hosts_[order[i - 1]].leaves) sets.push_back({i, 0});
      ++sets.back().hosts;
    }
    seq::sort(sets, [&](const set& a, const set& b) {
      if (a.hosts != b.hosts) return a.hosts > b.hosts;
      return hosts_[order[a.first]].leaves < hosts_[order[b.first]].leaves;
    });
    unit_.assign(switches_.size(), none);
    std::vector<std::vector<std::string>> nodes;
    std::vector<std::vector<std::uint32_t>> members;
    for (const set& s : sets) {
      const std::vector<std::uint32_t>& leaves = hosts_[order[s.first]].leaves;
      std::vector<std::uint32_t> claimed;
      for (const std::uint32_t l : leaves)
        if (unit_[l] != none) claimed.push_back(unit_[l]);
      seq::sort(claimed);
      std::uint32_t best = none;
      for (std::size_t i = 0, most = 0; i < claimed.size();) {
        std::size_t end = i;
        while (end < claimed.size() && claimed[end] == claimed[i]) ++end;
        if (end - i > most) {
          most = end - i;
          best = claimed[i];
        }
        i = end;
      }
      if (best == none) {
        best = static_cast<std::uint32_t>(nodes.size());
        nodes.emplace_back();
        members.emplace_back();
      }
      for (const std::uint32_t l : leaves)
        if (unit_[l] == none) {
          unit_[l] = best;
          members[best].push_back(l);
        }
      for (std::uint32_t i = s.first; i < s.first + s.hosts; ++i) nodes[best].push_back(hosts_[order[i]].name);
    }
    // In the order of the graph.
    std::vector<std::uint32_t> by_place(nodes.size());
    for (std::uint32_t i = 0; i < by_place.size(); ++i) by_place[i] = i;
    for (auto& m : members) seq::sort(m);
    seq::sort(by_place, [&](std::uint32_t a, std::uint32_t b) { return members[a].front() < members[b].front(); });
    for (const std::uint32_t i : by_place) {
      const std::uint32_t at = add_unit(members[i]);
      t_.switches[at].nodes = std::move(nodes[i]);
      seq::sort(t_.switches[at].nodes,
                [](const std::string& a, const std::string& b) { return read::host_order(a, b); });
    }
  }

  /// A Slurm switch that stands for some of the graph, which are sorted.
  std::uint32_t add_unit(const std::vector<std::uint32_t>& members) {
    const topo::node& first = g_.at(switches_[members.front()]);
    std::string name = first.name.empty() ? first.key : first.name;
    if (members.size() > 1) name += "-x" + std::to_string(members.size());
    const std::uint32_t at = add_switch(name);
    t_.switches[at].link_speed = fact_of(first, "link_speed");
    for (const std::uint32_t m : members) unit_[m] = at;
    return at;
  }
  std::uint32_t add_switch(const std::string& wanted) {
    const std::string base = slurm_name(wanted);
    std::string name = base;
    for (std::uint32_t again = 2;; ++again) {
      const auto at = seq::lower_bound_by(names_, name, [](const std::string& s) -> const std::string& { return s; });
      if (at == names_.end() || *at != name) {
        names_.insert(at, name);
        break;
      }
      const std::string tail = "-" + std::to_string(again);
      name = base.substr(0, read::longest_switch_name - tail.size()) + tail;
    }
    t_.switches.emplace_back();
    t_.switches.back().name = std::move(name);
    top_.push_back(static_cast<std::uint32_t>(top_.size()));
    return static_cast<std::uint32_t>(top_.size() - 1);
  }
  /// The switch that nothing stands above, over `unit`.
  [[nodiscard]] std::uint32_t root_of(std::uint32_t unit) const {
    while (top_[unit] != unit) unit = top_[unit];
    return unit;
  }

  /// Switches of a tier that join the same ones below become one.
  void add_tier(std::uint32_t tier) {
    std::vector<std::uint32_t> mine;
    std::vector<std::vector<std::uint32_t>> below;
    for (std::uint32_t s = 0; s < switches_.size(); ++s) {
      if (tier_[s] != tier || unit_[s] != none) continue;
      std::vector<std::uint32_t> units;
      for (const std::uint32_t other : neighbours(s))
        if (unit_[other] != none && tier_[other] < tier) units.push_back(root_of(unit_[other]));
      if (units.empty()) continue;
      seq::sort_unique(units);
      mine.push_back(s);
      below.push_back(std::move(units));
    }
    joined_sets sets(mine.size());
    std::vector<std::uint32_t> owner(t_.switches.size(), none);
    for (std::uint32_t i = 0; i < mine.size(); ++i)
      for (const std::uint32_t unit : below[i]) {
        if (owner[unit] != none) sets.join(owner[unit], i);
        owner[unit] = i;
      }
    std::vector<std::vector<std::uint32_t>> members(mine.size());
    std::vector<std::vector<std::uint32_t>> children(mine.size());
    for (std::uint32_t i = 0; i < mine.size(); ++i) members[sets.of(i)].push_back(mine[i]);
    for (std::uint32_t unit = 0; unit < owner.size(); ++unit)
      if (owner[unit] != none) children[sets.of(owner[unit])].push_back(unit);
    for (std::uint32_t i = 0; i < mine.size(); ++i) {
      if (members[i].empty()) continue;
      const std::uint32_t at = add_unit(members[i]);
      for (const std::uint32_t unit : children[i]) add_child(at, unit);
    }
  }
  void add_child(std::uint32_t parent, std::uint32_t child) {
    t_.switches[parent].children.push_back(t_.switches[child].name);
    top_[child] = parent;
  }

  /// Roots between which data can flow get one above them: one root says that jobs may span all below it.
  void add_roots() {
    joined_sets fabric(switches_.size());
    for (std::uint32_t s = 0; s < switches_.size(); ++s)
      for (const std::uint32_t other : neighbours(s)) fabric.join(s, other);
    std::vector<std::uint32_t> of(t_.switches.size(), none);
    for (std::uint32_t s = 0; s < switches_.size(); ++s)
      if (unit_[s] != none) of[root_of(unit_[s])] = fabric.of(s);
    const auto roots = static_cast<std::uint32_t>(of.size());
    std::vector<std::vector<std::uint32_t>> together(switches_.size());
    for (std::uint32_t unit = 0; unit < roots; ++unit)
      if (of[unit] != none) together[of[unit]].push_back(unit);
    for (const auto& several : together) {
      if (several.size() < 2) continue;
      const std::uint32_t at = add_switch("fabric");
      for (const std::uint32_t unit : several) add_child(at, unit);
    }
  }

  const topo::graph& g_;
  std::vector<std::uint32_t> place_;  ///< of each node: its position in switches_
  std::vector<node_id> switches_;
  std::vector<placed_host> hosts_;
  std::vector<std::uint32_t> tier_, unit_, top_;
  std::uint32_t highest_ = 0;
  std::vector<std::string> names_;  ///< given so far, sorted
  read::slurm_topology t_;
};

}  // namespace detail

template <class>
result<read::slurm_topology> slurm_tree_of(const topo::graph& g) {
  return detail::slurm_tree_builder<>(g).run();
}

}}  // namespace topocoll::v0
