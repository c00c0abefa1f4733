// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who carries what of a plan: NICs, rails, leaves, links that are full, and ranks that trees spare.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/levels_walk.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/explanation.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Equal but for half a percent, which is rounding to whole elements.
[[nodiscard]] constexpr bool alike(double a, double b) { return (a < b ? b - a : a - b) <= 0.005 * (a < b ? b : a); }

/// What one NIC, leaf or rail carries.
struct carried {
  node_id v;
  double rate = 0;
  std::uint64_t out = 0, in = 0, up = 0, down = 0, up_largest = 0, down_largest = 0;
  std::size_t uplinks = 0;
};

/// Sums of link loads at NICs with a cable and at leaves, each in graph order. Cost: O(nodes + links).
template <class = void>
struct load_sums {
  std::vector<carried> nics, leaves;

  load_sums(const topo::graph& g, const std::vector<bytes>& loads) {
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> place(g.node_count(), none);  // of the NIC that a node is, or is a port of; of a leaf
    std::vector<double> host_side;
    for (std::uint32_t v = 0; v < g.node_count(); ++v) {
      const topo::node_kind kind = g.at(node_id{v}).kind;
      if (kind == topo::node_kind::leaf) {
        place[v] = static_cast<std::uint32_t>(leaves.size());
        leaves.push_back({{v}});
      }
      if (kind != topo::node_kind::nic) continue;
      place[v] = static_cast<std::uint32_t>(nics.size());
      nics.push_back({{v}});
      host_side.push_back(0);
      for (const link_id e : g.out_links({v})) {
        const topo::link& l = g.at(e);
        if (l.kind == topo::link_kind::pcie || l.kind == topo::link_kind::c2c) host_side.back() += l.capacity.value;
        if (l.kind == topo::link_kind::internal && g.at(l.to).kind == topo::node_kind::nic_port)
          place[l.to.value] = place[v];
      }
    }
    const auto is_nic = [&](node_id v) {
      const topo::node_kind kind = g.at(v).kind;
      return (kind == topo::node_kind::nic || kind == topo::node_kind::nic_port) && place[v.value] != none;
    };
    for (std::uint32_t k = 0; k < g.link_count(); ++k) {
      const topo::link& l = g.at(link_id{k});
      if (l.kind != topo::link_kind::infiniband && l.kind != topo::link_kind::ethernet) continue;
      const std::uint64_t load = loads[k].value;
      if (is_nic(l.from)) {
        carried& c = nics[place[l.from.value]];
        c.out += load;
        c.rate += l.capacity.value;
        ++c.uplinks;
      }
      if (is_nic(l.to)) nics[place[l.to.value]].in += load;
      if (g.at(l.from).kind == topo::node_kind::leaf) {
        carried& c = leaves[place[l.from.value]];
        const bool up = g.at(l.to).kind == topo::node_kind::spine;
        (up ? c.up : c.in) += load;
        c.uplinks += up ? 1 : 0;
        if (up) c.up_largest = std::max(c.up_largest, load);
      }
      if (g.at(l.to).kind == topo::node_kind::leaf) {
        carried& c = leaves[place[l.to.value]];
        const bool down = g.at(l.from).kind == topo::node_kind::spine;
        (down ? c.down : c.out) += load;
        if (down) c.down_largest = std::max(c.down_largest, load);
      }
    }
    // A NIC carries what the narrowest of its host side, its inside and its cables does.
    for (std::size_t n = 0; n < nics.size(); ++n) {
      double inside = 0;
      for (const link_id e : g.out_links(nics[n].v))
        if (g.at(e).kind == topo::link_kind::internal) inside += g.capacity(e).value;
      if (host_side[n] > 0) nics[n].rate = std::min(nics[n].rate, host_side[n]);
      if (inside > 0) nics[n].rate = std::min(nics[n].rate, inside);
    }
    std::erase_if(nics, [](const carried& c) { return c.uplinks == 0; });
  }
};

/// Those that carry the same become one, the largest set first; at most `most` sets are kept apart.
template <class = void>
[[nodiscard]] std::vector<std::vector<carried>> sets_alike(const std::vector<carried>& all, std::size_t most) {
  std::vector<std::vector<carried>> sets;
  const auto same = [](const carried& a, const carried& b) {
    const auto near = [](std::uint64_t x, std::uint64_t y) {
      return alike(static_cast<double>(x), static_cast<double>(y));
    };
    return alike(a.rate, b.rate) && near(a.out, b.out) && near(a.in, b.in) && near(a.up, b.up) &&
           near(a.down, b.down) && near(a.up_largest, b.up_largest) && a.uplinks == b.uplinks;
  };
  for (const carried& c : all) {
    const auto at = seq::find_if(sets, [&](const std::vector<carried>& s) { return same(s.front(), c); });
    if (at != sets.end())
      at->push_back(c);
    else if (sets.size() < most)
      sets.push_back({c});
    else
      sets.back().push_back(c);
  }
  seq::sort(sets, [](const std::vector<carried>& a, const std::vector<carried>& b) { return a.size() > b.size(); });
  return sets;
}
/// "4 NICs (mlx5_0 of node0, …)", "mlx5_3 of node7".
template <class = void>
[[nodiscard]] std::string set_in_words(const topo::graph& g, const std::vector<carried>& set, std::size_t of_all,
                                       const char* many) {
  if (set.size() == 1) return name_of(g, set[0].v);
  std::string text = (set.size() == of_all ? "all " : "") + std::to_string(set.size()) + ' ' + many;
  if (set.size() == of_all) return text;
  if (set.size() > 3 && set.size() * 2 > of_all)  // the others have names
    return std::to_string(set.size()) + " of " + std::to_string(of_all) + ' ' + many;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < set.size(); ++k)
    if (k < 2 || k + 1 == set.size() || set.size() <= 3) names.push_back(name_of(g, set[k].v));
  if (set.size() > 3) return text + " (" + names[0] + ", " + names[1] + ", ... and " + names.back() + ")";
  return text + " (" + listed(names) + ")";
}

/// What a plan does with one slow NIC, beside the NICs at full rate of its host (of all hosts where its own has none).
struct slow_nic {
  carried nic;
  bool own_host = false;  ///< the others are of its host
  double others_rate = 0;
  double share = 0;  ///< of what one of the others carries, both ways together; below 0 where they carry nothing
  double busy = 0;   ///< times as long as one of the others, by the direction that carries more
  double mean = 0;   ///< bytes that one of the others carries

  [[nodiscard]] double carries() const { return static_cast<double>(nic.out) + static_cast<double>(nic.in); }
};

/// Every NIC more than 1 % below the fastest. Cost: O(NICs log NICs) comparisons of host names.
template <class = void>
[[nodiscard]] std::vector<slow_nic> slow_nics(const topo::graph& g, const std::vector<carried>& nics, double fastest) {
  struct sum {
    double carries = 0, busy = 0, rate = 0, count = 0;
    void add(const carried& c) {
      carries += static_cast<double>(c.out) + static_cast<double>(c.in);
      busy += static_cast<double>(std::max(c.out, c.in)) / c.rate;
      rate = std::max(rate, c.rate);
      ++count;
    }
  };
  const auto host = [&](std::uint32_t n) -> const std::string& { return g.at(nics[n].v).host; };
  std::vector<std::uint32_t> by_host(nics.size());
  sum everywhere;
  for (std::uint32_t n = 0; n < nics.size(); ++n) {
    by_host[n] = n;
    if (nics[n].rate >= 0.99 * fastest) everywhere.add(nics[n]);
  }
  seq::sort(by_host, [&](std::uint32_t a, std::uint32_t b) { return host(a) < host(b); });
  std::vector<slow_nic> found;
  for (std::size_t first = 0, last = 0; first < by_host.size(); first = last) {
    sum here;
    for (last = first; last < by_host.size() && host(by_host[last]) == host(by_host[first]); ++last)
      if (nics[by_host[last]].rate >= 0.99 * fastest) here.add(nics[by_host[last]]);
    const sum& others = here.count > 0 ? here : everywhere;
    for (std::size_t k = first; k < last; ++k) {
      const carried& c = nics[by_host[k]];
      if (c.rate >= 0.99 * fastest) continue;
      slow_nic s{c, here.count > 0, others.rate};
      s.mean = others.carries / others.count;
      s.share = s.mean > 0 ? s.carries() / s.mean : -1;
      if (others.busy > 0 && c.rate > 0)
        s.busy = static_cast<double>(std::max(c.out, c.in)) / c.rate / (others.busy / others.count);
      found.push_back(s);
    }
  }
  return found;
}

/// "mlx5_3 of node0 runs at 12.5 GB/s, the others of its host at 25.0 GB/s; not spared: …" for NICs that fare alike.
template <class = void>
[[nodiscard]] std::string slow_nics_in_words(const topo::graph& g, const std::vector<slow_nic>& set,
                                             std::size_t of_all) {
  std::vector<carried> nics;
  for (const slow_nic& s : set) nics.push_back(s.nic);
  seq::sort(nics, [](const carried& a, const carried& b) { return a.v < b.v; });
  const slow_nic& s = set.front();
  const bool one = set.size() == 1;
  std::string text = set_in_words(g, nics, of_all, "NICs") + (one ? " runs at " : " run at ") +
                     to_string(bytes_per_second{s.nic.rate}) +
                     (!s.own_host ? ", the fastest"
                      : one       ? ", the others of its host"
                                  : ", the others of their hosts") +
                     " at " + to_string(bytes_per_second{s.others_rate});
  const std::string subject = one ? "it carries " : "each carries ";
  const auto amount = [](double x) { return about(bytes{static_cast<std::uint64_t>(x + 0.5)}); };
  if (s.share < 0)  // the others carry nothing
    return s.carries() > 0 ? text + "; not spared: " + subject + amount(s.carries()) + ", they carry nothing" : text;
  if (s.carries() <= 0)
    return text + "; spared: " + subject + "nothing, each of them " + amount(s.mean) + " on average";
  const bool no_longer = s.busy <= 1.02;
  text += s.share >= 0.98 ? "; not spared: " : no_longer ? "; spared: " : "; spared in part: ";
  text += subject + percent(s.share) + " of what one of them carries on average, and is busy ";
  return text + (no_longer ? "no longer than they" : topocoll::detail::three_digits(s.busy) + " times as long");
}

/// A remark for each set of slow NICs that fare alike, those that cost most first.
template <class = void>
void remark_slow_nics(const topo::graph& g, const std::vector<carried>& nics, double fastest, explanation& e) {
  constexpr std::size_t told = 6;
  std::vector<std::vector<slow_nic>> sets;
  std::vector<slow_nic> all = slow_nics(g, nics, fastest);
  if (all.size() == nics.size()) return;
  seq::sort(
      all, [](const slow_nic& a, const slow_nic& b) { return a.busy != b.busy ? a.busy > b.busy : a.nic.v < b.nic.v; });
  std::size_t left = 0;
  for (const slow_nic& s : all) {
    const auto fares_alike = [&](const std::vector<slow_nic>& set) {
      const slow_nic& t = set.front();
      return alike(s.nic.rate, t.nic.rate) && s.own_host == t.own_host && alike(s.others_rate, t.others_rate) &&
             alike(s.share, t.share) && alike(s.busy, t.busy);
    };
    const auto at = seq::find_if(sets, fares_alike);
    if (at != sets.end())
      at->push_back(s);
    else if (sets.size() < told)
      sets.push_back({s});
    else
      ++left;
  }
  for (const auto& set : sets) e.remarks.push_back(slow_nics_in_words(g, set, nics.size()));
  if (left > 0)
    e.remarks.push_back(std::to_string(left) + " more NICs are slow; each costs less than those named here");
}

/// Lines of NICs, and remarks on slow ones.
template <class = void>
void explain_nics(const topo::graph& g, const std::vector<carried>& nics, explanation& e) {
  constexpr std::size_t kept = 256, shown = 64;
  const auto sets = sets_alike(nics, kept);
  e.nic_kinds = sets.size();
  double fastest = 0;
  for (const carried& c : nics) fastest = std::max(fastest, c.rate);
  bool any_slow = false;
  for (const std::vector<carried>& set : sets) {
    nic_line l;
    l.which = set_in_words(g, set, nics.size(), "NICs");
    l.nics = set.size();
    l.rate = {set.front().rate};
    l.slow = l.rate.value < 0.99 * fastest;
    for (const carried& c : set) {
      l.out = std::max(l.out, bytes{c.out});
      l.in = std::max(l.in, bytes{c.in});
      any_slow = any_slow || c.rate < 0.99 * fastest;
    }
    if (e.nics.size() < shown) e.nics.push_back(std::move(l));
  }
  if (any_slow) remark_slow_nics(g, nics, fastest, e);
}

template <class = void>
void explain_leaves(const topo::graph& g, const std::vector<carried>& leaves, explanation& e) {
  constexpr std::size_t shown = 8;
  for (const std::vector<carried>& set : sets_alike(leaves, shown)) {
    leaf_line l;
    l.which = set_in_words(g, set, leaves.size(), "leaves");
    l.leaves = set.size();
    l.uplinks = set.front().uplinks;
    for (const carried& c : set) {
      l.from_hosts = std::max(l.from_hosts, bytes{c.out});
      l.to_hosts = std::max(l.to_hosts, bytes{c.in});
      l.up = std::max(l.up, bytes{c.up});
      l.down = std::max(l.down, bytes{c.down});
      l.up_largest = std::max(l.up_largest, bytes{c.up_largest});
      l.down_largest = std::max(l.down_largest, bytes{c.down_largest});
    }
    e.leaves.push_back(std::move(l));
  }
}

/// A NIC belongs to the rail of the lowest rank that it is nearest to.
template <class = void>
void explain_rails(const problem& p, const levels& at, const std::vector<carried>& nics, explanation& e) {
  if (at.rails < 2 || nics.empty()) return;
  constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> rail(p.graph->node_count(), none);
  leaf_search search(*p.graph);
  for (std::uint32_t r = 0; r < p.ranks.size(); ++r)
    for (const auto& near : search.from(p.ranks[r]).nics)
      rail[near.nic.value] = std::min(rail[near.nic.value], at.rail[r]);
  e.rails.resize(at.rails);
  for (std::uint32_t k = 0; k < at.rails; ++k) e.rails[k].rail = k;
  for (const carried& c : nics) {
    if (rail[c.v.value] == none) continue;
    rail_line& l = e.rails[rail[c.v.value]];
    ++l.nics;
    l.out += bytes{c.out};
    l.in += bytes{c.in};
    l.out_largest = std::max(l.out_largest, bytes{c.out});
    l.in_largest = std::max(l.in_largest, bytes{c.in});
  }
  std::erase_if(e.rails, [](const rail_line& l) { return l.nics == 0; });
  if (e.rails.size() < 2) e.rails.clear();
}

/// Links that are busy for at least 99 % of what the busiest is.
template <class Rate>
void count_full(const topo::graph& g, const simulation& s, const Rate& rate, explanation& e) {
  for (std::uint32_t k = 0; k < s.loads.size(); ++k) {
    if (s.loads[k].value == 0) continue;
    const double r = rate(g.at(link_id{k})).value;
    if (r > 0 && static_cast<double>(s.loads[k].value) / r >= 0.99 * s.busiest.value)
      ++e.full[static_cast<std::size_t>(class_of(g, link_id{k}))];
  }
}

/// Depth and number of trees, and the ranks that are leaves in all of them: they send or receive each byte but once.
template <class = void>
void explain_trees(const problem& p, const schedule& plan, explanation& e) {
  tree_summary t;
  std::vector<bool> inner(plan.ranks, false), there(plan.ranks, false);
  double weights = 0;
  std::vector<std::uint32_t> depth;
  for (const stage& s : plan.stages) {
    if (s.parents.empty()) continue;
    t.trees = std::max(t.trees, s.group_count());
    for (std::size_t k = 0; k < s.group_count(); ++k) {
      const group_view group = s.group(k);
      depth.assign(group.size(), 0);
      std::uint32_t deepest = 0;
      for (std::uint32_t j = 0; j < group.size(); ++j) {
        there[group.members[j].value] = true;
        if (j == 0) continue;
        depth[j] = depth[group.parents[j]] + 1;
        deepest = std::max(deepest, depth[j]);
        inner[group.members[group.parents[j]].value] = true;
      }
      t.depth = std::max(t.depth, deepest);
      const double weight = group.last() - group.first();
      t.mean_depth += weight * deepest;
      weights += weight;
    }
  }
  if (weights <= 0) return;
  t.mean_depth /= weights;
  std::vector<std::uint32_t> spared;
  for (std::uint32_t r = 0; r < plan.ranks; ++r)
    if (there[r] && !inner[r]) spared.push_back(r);
  t.spared_ranks = spared.size();
  constexpr std::size_t named = 6;
  if (spared.size() > 1 && spared.size() <= named) {
    t.spared = "ranks ";
    for (std::size_t k = 0; k < spared.size(); ++k)
      t.spared += (k == 0 ? "" : k + 1 == spared.size() ? " and " : ", ") + std::to_string(spared[k]);
  } else if (!spared.empty()) {
    t.spared = ranks_in_words(*p.graph, p.ranks, spared);
  }
  e.trees = std::move(t);
}

/// All of the above. Without `all`, what costs a search from every rank is left out.
template <class Rate>
void explain_carriers(const problem& p, const levels& at, const choice& made, bool all, const Rate& rate,
                      explanation& e) {
  const std::vector<bytes>& loads = made.price().loads;
  if (loads.size() != p.graph->link_count()) return;
  count_full(*p.graph, made.price(), rate, e);
  explain_trees(p, made.best(), e);
  const load_sums<> sums(*p.graph, loads);
  if (sums.nics.empty()) return;
  explain_nics(*p.graph, sums.nics, e);
  explain_leaves(*p.graph, sums.leaves, e);
  if (all) explain_rails(p, at, sums.nics, e);
}

}}}}  // namespace topocoll::v0::plan::detail
