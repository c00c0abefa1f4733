// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which switches are leaves, spines and core switches, told by nothing but the wiring.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Switches by position, what they join and how many hosts' ports plug into each.
struct switch_wiring {
  std::vector<std::vector<std::uint32_t>> neighbours;  ///< switches; parallel cables may repeat one
  std::vector<std::uint32_t> host_ports;
};
struct switch_tier {
  topo::node_kind kind = topo::node_kind::leaf;
  trust how = trust::reported;
  std::string reason;
  bool holds_hosts_above_leaves = false;
};

/// Looks for switches with the same neighbours.
class switch_twins {
 public:
  explicit switch_twins(const std::vector<std::vector<std::uint32_t>>& neighbours)
      : neighbours_(neighbours), common_(neighbours.size()) {}

  /// True when some switch that `counts` says yes to shares three quarters of the neighbours of the two with `s`.
  /// Cost: O(neighbours of the neighbours of s).
  template <class Counts>
  [[nodiscard]] bool has_twin(std::uint32_t s, const Counts& counts) {
    std::vector<std::uint32_t> met;
    for (const std::uint32_t n : neighbours_[s])
      for (const std::uint32_t other : neighbours_[n])
        if (other != s && counts(other) && common_[other]++ == 0) met.push_back(other);
    bool found = false;
    for (const std::uint32_t other : met) {
      const std::size_t both = common_[other];
      const std::size_t either = neighbours_[s].size() + neighbours_[other].size() - both;
      found = found || 4 * both >= 3 * either;
      common_[other] = 0;
    }
    return found;
  }

 private:
  const std::vector<std::vector<std::uint32_t>>& neighbours_;
  std::vector<std::size_t> common_;
};

/// Steps from the nearest switch of `first`, which are at 1; 0 where none can be reached.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> steps_from(const std::vector<std::vector<std::uint32_t>>& neighbours,
                                                    const std::vector<bool>& first) {
  std::vector<std::uint32_t> steps(neighbours.size());
  std::vector<std::uint32_t> queue;
  for (std::uint32_t s = 0; s < neighbours.size(); ++s)
    if (first[s]) {
      steps[s] = 1;
      queue.push_back(s);
    }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const std::uint32_t n : neighbours[queue[i]])
      if (steps[n] == 0) {
        steps[n] = steps[queue[i]] + 1;
        queue.push_back(n);
      }
  return steps;
}

/// Tiers by distance from hosts: a leaf has hosts, a spine joins leaves, a core switch joins spines.
///
/// Two cases where that alone misleads: a leaf that has no hosts yet is known by its neighbours, the same spines as those of
/// a leaf with hosts; and a spine into which some management host plugs is known by the other spines, which join the same
/// leaves and have no hosts. Where no host can be reached, nothing tells the tier: taken as leaves, and said so.
/// Cost: O(sum over switches of their neighbours' neighbours).
template <class = void>
[[nodiscard]] std::vector<switch_tier> tiers_of(switch_wiring wiring) {
  std::vector<std::vector<std::uint32_t>>& joins = wiring.neighbours;
  const std::size_t n = joins.size();
  for (std::vector<std::uint32_t>& j : joins) seq::sort_unique(j);
  std::vector<bool> leaf(n);
  for (std::size_t s = 0; s < n; ++s) leaf[s] = wiring.host_ports[s] > 0;
  std::vector<std::uint32_t> steps = steps_from(joins, leaf);
  std::vector<switch_tier> tiers(n);
  switch_twins twins(joins);

  std::vector<std::uint32_t> lifted;
  for (std::uint32_t s = 0; s < n; ++s) {
    if (!leaf[s] || joins[s].size() < 2 || wiring.host_ports[s] >= joins[s].size()) continue;
    std::size_t with_hosts = 0;
    for (const std::uint32_t j : joins[s]) with_hosts += leaf[j] ? 1 : 0;
    if (4 * with_hosts < 3 * joins[s].size()) continue;
    if (twins.has_twin(s, [&](std::uint32_t other) { return steps[other] == 2; })) lifted.push_back(s);
  }
  for (const std::uint32_t s : lifted) {
    leaf[s] = false;
    tiers[s].holds_hosts_above_leaves = true;
  }
  if (!lifted.empty()) steps = steps_from(joins, leaf);

  std::vector<std::uint32_t> empty_leaves;
  for (std::uint32_t s = 0; s < n; ++s)
    if (steps[s] == 3 && twins.has_twin(s, [&](std::uint32_t other) { return steps[other] == 1; }))
      empty_leaves.push_back(s);
  for (const std::uint32_t s : empty_leaves) leaf[s] = true;
  if (!empty_leaves.empty()) steps = steps_from(joins, leaf);

  for (std::uint32_t s = 0; s < n; ++s) {
    switch_tier& t = tiers[s];
    if (steps[s] == 0) {
      t.how = trust::assumed;
      t.reason = "no host can be reached from it, so its tier cannot be told; taken as a leaf";
    } else if (steps[s] == 1) {
      if (wiring.host_ports[s] > 0) continue;
      t.how = trust::derived;
      t.reason = "it has no hosts, but joins the same spines as leaves that have some";
    } else {
      t.kind = steps[s] == 2 ? topo::node_kind::spine : topo::node_kind::core_switch;
      t.how = trust::derived;
      t.reason = t.holds_hosts_above_leaves
                     ? "hosts plug into it, but it joins the same leaves as spines that have none"
                     : "its tier is told by the wiring: " + std::to_string(steps[s]) + " cables from the nearest host";
    }
  }
  return tiers;
}

}}}  // namespace topocoll::v0::detail
