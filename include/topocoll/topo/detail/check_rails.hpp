// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hosts whose cables do not go where those of their neighbours go: rails that are missing, or on another leaf.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/check_fabric.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/shape.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Compares the plugs of hosts that share leaves.
template <class = void>
class rail_checker {
 public:
  rail_checker(check_context& c, fabric_checker<>& fabric) : c_(c), fabric_(fabric) {}

  /// Hosts of another kind may well have fewer rails: each kind is compared by itself.
  void run() {
    std::vector<plugged_host> all;
    for (std::uint32_t h = 0; h < c_.hosts.hosts.size(); ++h) {
      plugged_host p = plugs_of_host(h);
      if (!p.rails.empty()) all.push_back(std::move(p));
    }
    seq::sort_by(all, [&](const plugged_host& p) { return c_.kinds[p.host]; });
    for (std::size_t i = 0; i < all.size();) {
      const std::uint32_t kind = c_.kinds[all[i].host];
      hosts_.clear();
      for (; i < all.size() && c_.kinds[all[i].host] == kind; ++i) hosts_.push_back(std::move(all[i]));
      check_kind();
    }
  }

 private:
  /// One cable of a host, by the number of its adapter.
  struct rail_end {
    std::uint32_t number;  ///< index of the adapter; `no_place` if not told
    node_id nic, port, leaf;
    double rate;
  };
  struct plugged_host {
    std::uint32_t host = 0, pod = no_place;
    std::vector<rail_end> rails;        ///< by number, then key
    std::vector<std::uint32_t> leaves;  ///< sorted, each once
  };

  [[nodiscard]] plugged_host plugs_of_host(std::uint32_t h) const {
    plugged_host p;
    p.host = h;
    for (const node_id v : c_.hosts.hosts[h].nodes) {
      const node& n = c_.g.at(v);
      if (n.kind != node_kind::nic && n.kind != node_kind::nic_port) continue;
      for (const plug& cable : plugs_of(c_.g, v)) {
        node_id nic = v;
        for (const link_id e : c_.g.out_links(v))
          if (c_.g.at(e).kind == link_kind::internal && c_.g.at(c_.g.head(e)).kind == node_kind::nic)
            nic = c_.g.head(e);
        const link& l = c_.g.at(cable.cable);
        p.rails.push_back({c_.g.at(nic).index.value_or(n.index.value_or(no_place)), nic, v, cable.far,
                           l.nominal ? std::max(l.nominal->value, l.capacity.value) : l.capacity.value});
      }
    }
    seq::sort(p.rails, [&](const rail_end& x, const rail_end& y) {
      return x.number != y.number ? x.number < y.number : c_.g.at(x.port).key < c_.g.at(y.port).key;
    });
    for (const rail_end& r : p.rails) p.leaves.push_back(r.leaf.value);
    std::sort(p.leaves.begin(), p.leaves.end());
    p.leaves.erase(std::unique(p.leaves.begin(), p.leaves.end()), p.leaves.end());
    return p;
  }

  void check_kind() {
    gather_pods();
    std::vector<std::uint64_t> totals;
    for (const plugged_host& p : hosts_) totals.push_back(p.rails.size());
    usual_total_ = majority_of(totals);
    std::vector<std::uint32_t> order(hosts_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort_by(order, [&](std::uint32_t i) { return hosts_[i].pod; });
    for (std::size_t i = 0; i < order.size();) {
      std::size_t end = i;
      while (end < order.size() && hosts_[order[end]].pod == hosts_[order[i]].pod) ++end;
      const std::vector<std::uint32_t> pod(order.begin() + static_cast<std::ptrdiff_t>(i),
                                           order.begin() + static_cast<std::ptrdiff_t>(end));
      if (pod.size() > 1) check_pod(pod);
      i = end;
    }
  }

  /// Hosts with the same leaves are a pod. Those whose leaves are nobody else's join the pod that most of their cables
  /// lead to, the largest pods first.
  void gather_pods() {
    struct alike {
      std::size_t hosts;
      std::vector<std::uint32_t> members;
    };
    std::vector<std::uint32_t> order(hosts_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort(order, [&](std::uint32_t x, std::uint32_t y) { return hosts_[x].leaves < hosts_[y].leaves; });
    std::vector<alike> groups;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || hosts_[order[i]].leaves != hosts_[order[i - 1]].leaves) groups.push_back({0, {}});
      ++groups.back().hosts;
      groups.back().members.push_back(order[i]);
    }
    seq::sort(groups, [&](const alike& x, const alike& y) {
      if (x.hosts != y.hosts) return x.hosts > y.hosts;
      return hosts_[x.members[0]].leaves.size() > hosts_[y.members[0]].leaves.size();
    });
    std::vector<std::uint32_t> owner(c_.g.node_count(), no_place);
    std::uint32_t pods = 0;
    for (const alike& g : groups) {
      const plugged_host& first = hosts_[g.members[0]];
      std::vector<std::pair<std::uint32_t, std::size_t>> votes;  // pod, cables
      for (const rail_end& r : first.rails) {
        const std::uint32_t pod = owner[r.leaf.value];
        if (pod == no_place) continue;
        const auto at = seq::find_by(votes, pod, [](const auto& v) { return v.first; });
        if (at == votes.end())
          votes.emplace_back(pod, 1);
        else
          ++at->second;
      }
      std::uint32_t pod = no_place;
      for (const auto& [candidate, cables] : votes)
        if (2 * cables > first.rails.size()) pod = candidate;
      if (pod == no_place) pod = pods++;
      for (const std::uint32_t leaf : first.leaves)
        if (owner[leaf] == no_place) owner[leaf] = pod;
      for (const std::uint32_t m : g.members) hosts_[m].pod = pod;
    }
  }

  [[nodiscard]] static std::size_t cables_to(const plugged_host& h, std::uint32_t leaf) {
    std::size_t n = 0;
    for (const rail_end& r : h.rails) n += r.leaf.value == leaf ? 1 : 0;
    return n;
  }
  /// Number of the adapter that most hosts of the pod have on a leaf; empty when it has several or no number is usual.
  [[nodiscard]] std::optional<std::uint32_t> rail_on(const std::vector<std::uint32_t>& pod, std::uint32_t leaf) const {
    std::vector<std::uint64_t> numbers;
    for (const std::uint32_t i : pod)
      for (const rail_end& r : hosts_[i].rails)
        if (r.leaf.value == leaf && r.number != no_place) numbers.push_back(r.number);
    const majority m = majority_of(std::move(numbers));
    if (!m.found) return std::nullopt;
    return static_cast<std::uint32_t>(m.value);
  }

  /// What hosts of the pod call the adapter of a rail.
  [[nodiscard]] std::string adapter_on(const std::vector<std::uint32_t>& pod, std::uint32_t leaf,
                                       std::uint32_t rail) const {
    for (const std::uint32_t i : pod)
      for (const rail_end& r : hosts_[i].rails)
        if (r.leaf.value == leaf && r.number == rail) return label_of(c_.g.at(r.nic));
    return {};
  }

  /// Cost: O(hosts of the pod * cables of a host * log).
  void check_pod(const std::vector<std::uint32_t>& pod) {
    std::vector<std::uint32_t> leaves;
    for (const std::uint32_t i : pod) leaves.insert(leaves.end(), hosts_[i].leaves.begin(), hosts_[i].leaves.end());
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());

    // How many cables a host has to each leaf, by most of the pod; two hosts have no majority, but a usual total.
    std::vector<std::size_t> usual(leaves.size(), 0);
    std::vector<double> rate(leaves.size(), 0);
    std::vector<std::uint64_t> counts;
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      counts.clear();
      for (const std::uint32_t i : pod) {
        counts.push_back(cables_to(hosts_[i], leaves[k]));
        for (const rail_end& r : hosts_[i].rails)
          if (r.leaf.value == leaves[k]) rate[k] = std::max(rate[k], r.rate);
      }
      const majority m = majority_of(counts);
      usual[k] = m.found ? m.value : *std::max_element(counts.begin(), counts.end());
    }
    if (pod.size() == 2) two_ways(hosts_[pod[0]], hosts_[pod[1]], leaves);
    std::vector<std::uint32_t> whole;  // hosts with the usual numbers everywhere
    for (const std::uint32_t i : pod) {
      const plugged_host& h = hosts_[i];
      std::vector<std::size_t> few, many;
      for (std::size_t k = 0; k < leaves.size(); ++k) {
        const std::size_t n = cables_to(h, leaves[k]);
        if (n < usual[k]) few.push_back(k);
        if (n > usual[k]) many.push_back(k);
      }
      if (few.empty() && many.empty()) whole.push_back(i);
      // In a pod where every host has its own number, the number that hosts have elsewhere decides.
      if (few.empty() || (usual_total_.found && h.rails.size() >= usual_total_.value && many.empty())) continue;
      if (!many.empty())
        elsewhere(pod, h, leaves, few, many);
      else
        short_of(pod, h, leaves, usual, rate, few);
    }
    order_of_rails(whole);
  }

  /// Two hosts with as many cables, but not to the same leaves.
  void two_ways(const plugged_host& x, const plugged_host& y, const std::vector<std::uint32_t>& leaves) {
    if (x.rails.size() != y.rails.size()) return;
    std::vector<std::string> words;
    for (const std::uint32_t leaf : leaves)
      if (cables_to(x, leaf) != cables_to(y, leaf))
        words.push_back(c_.name({leaf}) + ": " + std::to_string(cables_to(x, leaf)) + " and " +
                        std::to_string(cables_to(y, leaf)));
    if (words.empty()) return;
    const std::string& a = c_.hosts.hosts[x.host].name;
    const std::string& b = c_.hosts.hosts[y.host].name;
    c_.say(
        "rails", severity::warning, a + " - " + b,
        "the cables of " + a + " and " + b + " go to different leaves, and of two hosts nobody can tell which is right",
        "cables to " + listed(words), "compare both with the plan of the cabling");
  }

  void short_of(const std::vector<std::uint32_t>& pod, const plugged_host& h, const std::vector<std::uint32_t>& leaves,
                const std::vector<std::size_t>& usual, const std::vector<double>& rate,
                const std::vector<std::size_t>& few) {
    std::size_t lost = 0;
    std::vector<std::string> words;
    for (const std::size_t k : few) {
      const std::size_t n = usual[k] - cables_to(h, leaves[k]);
      lost += n;
      fabric_.would_carry({leaves[k]}, rate[k] * static_cast<double>(n));
      const auto rail = rail_on(pod, leaves[k]);
      const bool one = rail && usual[k] == 1;
      words.push_back(
          c_.name({leaves[k]}) +
          (one ? " (rail " + std::to_string(*rail) + ", elsewhere " + adapter_on(pod, leaves[k], *rail) + ")" : ""));
    }
    if (c_.lost_nics[h.host] >= lost) return;  // said with the adapter that is missing or unplugged
    const std::string& name = c_.hosts.hosts[h.host].name;
    const bool clear = pod.size() > 2 || usual_total_.found;  // of two hosts nobody can tell which is right
    c_.say("rails", clear ? severity::warning : severity::note, name,
           name + " has " + std::to_string(h.rails.size()) + (h.rails.size() == 1 ? " cable" : " cables") +
               ", its neighbours have " + std::to_string(h.rails.size() + lost) + ": none to " + listed(words),
           std::to_string(pod.size()) + " hosts share these leaves", "look at the adapter and its cable");
  }

  void elsewhere(const std::vector<std::uint32_t>& pod, const plugged_host& h, const std::vector<std::uint32_t>& leaves,
                 const std::vector<std::size_t>& few, const std::vector<std::size_t>& many) {
    const std::string& name = c_.hosts.hosts[h.host].name;
    std::vector<std::string> wanted;
    for (const std::size_t k : few) wanted.push_back(c_.name({leaves[k]}));
    for (const std::size_t k : many) {
      // Of several cables to one leaf, the one whose rail is another leaf's is wrong.
      const rail_end* wrong = nullptr;
      for (const rail_end& r : h.rails) {
        if (r.leaf.value != leaves[k]) continue;
        const auto rail = rail_on(pod, leaves[k]);
        if (wrong == nullptr || !rail || r.number != *rail) wrong = &r;
      }
      if (wrong == nullptr) continue;
      c_.say("rails", severity::warning, c_.ends(wrong->port, wrong->leaf),
             label_of(c_.g.at(wrong->port)) + " of " + name + " goes to " + c_.name(wrong->leaf) +
                 ", that of its neighbours to " + listed(wanted),
             std::to_string(pod.size()) + " hosts share these leaves", "plug it where the others are");
    }
  }

  /// Hosts that reach the same leaves, but by other adapters.
  void order_of_rails(const std::vector<std::uint32_t>& pod) {
    if (pod.size() < 3) return;
    const std::size_t rails = hosts_[pod[0]].rails.size();
    std::vector<std::uint64_t> leaves;
    for (std::size_t k = 0; k < rails; ++k) {
      leaves.clear();
      for (const std::uint32_t i : pod) leaves.push_back(hosts_[i].rails[k].leaf.value);
      const majority m = majority_of(leaves);
      if (!m.found) {
        c_.say("rail order", severity::note, c_.hosts.hosts[hosts_[pod[0]].host].name,
               "hosts of one pod plug their adapters number " + std::to_string(k) + " into different leaves",
               std::to_string(pod.size()) + " hosts");
        continue;
      }
      for (const std::uint32_t i : pod) {
        const rail_end& r = hosts_[i].rails[k];
        if (r.leaf.value == m.value) continue;
        const std::string& name = c_.hosts.hosts[hosts_[i].host].name;
        c_.say("rails", severity::warning, c_.ends(r.port, r.leaf),
               label_of(c_.g.at(r.port)) + " of " + name + " (rail " + std::to_string(k) + ") goes to " +
                   c_.name(r.leaf) + ", rail " + std::to_string(k) + " of its neighbours to " +
                   c_.name(node_id{static_cast<std::uint32_t>(m.value)}),
               std::to_string(m.count) + " of " + std::to_string(pod.size()) + " hosts with these leaves",
               "swap the cables, or number the adapters as on the other hosts");
      }
    }
  }

  check_context& c_;
  fabric_checker<>& fabric_;
  std::vector<plugged_host> hosts_;  ///< of the kind that is looked at
  majority usual_total_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
