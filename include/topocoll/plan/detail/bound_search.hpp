// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the worst cut or family of a problem is found.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/detail/bound_demand.hpp>
#include <topocoll/plan/detail/bound_latency.hpp>
#include <topocoll/plan/detail/bound_levels.hpp>
#include <topocoll/plan/detail/bound_words.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/detail/rank_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// True when as much capacity leaves every node as enters it; then that holds for every set of nodes.
template <class = void>
[[nodiscard]] bool is_balanced(const exact_network& net) {
  std::vector<std::uint64_t> surplus(net.nodes, 0);  // modulo 2^64
  for (const exact_network::arc& a : net.arcs) {
    surplus[a.from] += static_cast<std::uint64_t>(a.units);
    surplus[a.to] -= static_cast<std::uint64_t>(a.units);
  }
  return seq::all_of(surplus, [](std::uint64_t s) { return s == 0; });
}

/// The network with NVSwitches and the ranks that are linked to them made one node each.
struct joined_network {
  exact_network net{};
  std::vector<std::int64_t> weight{};
  std::vector<std::uint32_t> node_of{};  ///< per node of the original
};
template <class = void>
[[nodiscard]] joined_network join_nvlink_domains(const topo::graph& g, const rank_network& r) {
  std::vector<std::uint32_t> leader(r.net.nodes);
  count_up(leader);
  const auto find = [&](std::uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  const auto reduces = [&](std::uint32_t v) { return g.at(r.origin[v]).kind == topo::node_kind::nvswitch; };
  for (const exact_network::arc& a : r.net.arcs)
    if ((reduces(a.from) && (reduces(a.to) || r.weight[a.to] > 0)) || (reduces(a.to) && r.weight[a.from] > 0))
      leader[find(a.from)] = find(a.to);
  joined_network j;
  j.node_of.assign(r.net.nodes, no_part);
  std::vector<std::uint32_t> number(r.net.nodes, no_part);
  for (std::uint32_t v = 0; v < r.net.nodes; ++v) {
    std::uint32_t& n = number[find(v)];
    if (n == no_part) {
      n = j.net.nodes++;
      j.weight.push_back(0);
    }
    j.node_of[v] = n;
    if (r.weight[v] > 0) j.weight[n] = 1;
  }
  for (const exact_network::arc& a : r.net.arcs)
    if (j.node_of[a.from] != j.node_of[a.to]) j.net.arcs.push_back({j.node_of[a.from], j.node_of[a.to], a.units});
  return j;
}

template <class = void>
[[nodiscard]] certificate certificate_of(const partition& p, bool proved) {
  certificate c;
  c.method = proved ? bound_method::best_partition : bound_method::level_partitions;
  c.side = nodes_of_part(p, 0);
  for (const auto& [v, set] : p.also)
    if (set == 0) c.side.push_back(v);
  c.part_of = p.part_of;
  c.also = p.also;
  c.parts = p.parts;
  c.amount = 2 * (std::int64_t{p.parts} - 1);
  c.units = p.narrow();
  c.inward = p.in < p.out;
  return c;
}

/// The worst family of a network with ranks at its weights.
template <class = void>
[[nodiscard]] result<certificate> family_certificate(const std::vector<partition>& levels, const exact_network& net,
                                                     std::span<const std::int64_t> weight,
                                                     const bound_options& options) {
  partition best;
  for (const partition& p : levels) {
    if (p.narrow() == 0) return no_path();
    if (p.tighter_than(best)) best = p;
  }
  bool proved = options.effort > 0;
  if (proved)
    for (const bool inward : {false, true}) {
      // The families by level win ties: they are easier to understand.
      auto found = best_partition(net, weight, {.start = &best, .effort = options.effort, .inward = inward});
      if (!found) return found.error();
      proved = proved && found->proved;
      if (found->tighter_than(best)) best = std::move(*found);
      if (is_balanced(net)) break;
    }
  if (best.parts < 2) return certificate{};
  if (best.narrow() == 0) return no_path();
  return certificate_of(best, proved);
}

/// The one that asks for more time; the best of its kind only if the other is as well.
[[nodiscard]] inline certificate worse_of(certificate family, certificate cut) {
  const bool proved = cut.method == bound_method::best_cut && family.method != bound_method::level_partitions;
  certificate c = cut.tighter_than(family) ? std::move(cut) : std::move(family);
  if (!proved) c.method = c.parts > 1 ? bound_method::level_partitions : bound_method::level_cuts;
  return c;
}

template <class = void>
[[nodiscard]] result<certificate> reduce_certificate(const topo::graph& g, const std::vector<partition>& levels,
                                                     const rank_network& r, const bound_options& options) {
  if (options.reduces == in_network::switches) return narrowest_certificate(levels, r, options.effort);
  if (options.reduces == in_network::nothing) {
    auto family = family_certificate(levels, r.net, r.weight, options);
    if (!family || is_balanced(r.net)) return family;
    // Where more enters than leaves, or less, a single cut can ask for more than the two sets that it makes.
    auto cut = narrowest_certificate(levels, r, options.effort);
    if (!cut) return cut;
    return worse_of(std::move(*family), std::move(*cut));
  }
  auto cut = narrowest_certificate(levels, r, options.effort);
  if (!cut) return cut;
  const joined_network j = join_nvlink_domains(g, r);
  std::vector<partition> whole;  // families that leave every domain whole
  for (const partition& p : levels) {
    partition q{std::vector<std::uint32_t>(j.net.nodes, no_part), p.parts};
    bool split = false;
    for (std::uint32_t v = 0; v < r.net.nodes; ++v) {
      std::uint32_t& part = q.part_of[j.node_of[v]];
      split = split || (part != no_part && part != p.part_of[v]);
      part = p.part_of[v];
    }
    if (!split && add_up(j.net, q)) whole.push_back(std::move(q));
  }
  std::int64_t ranks = 0;
  for (const std::int64_t w : j.weight) ranks += w;
  if (ranks < 2) return cut;
  auto family = family_certificate(whole, j.net, j.weight, options);
  if (!family) return family;
  certificate c = worse_of(std::move(*family), std::move(*cut));
  if (c.parts < 2) return c;
  partition p{std::vector<std::uint32_t>(r.net.nodes)};
  for (std::uint32_t v = 0; v < r.net.nodes; ++v) {
    p.part_of[v] = c.part_of[j.node_of[v]];
    for (const auto& [u, set] : c.also)
      if (u == j.node_of[v]) p.also.push_back({v, set});
  }
  certificate lifted = certificate_of(p, true);
  c.side = std::move(lifted.side);
  c.part_of = std::move(lifted.part_of);
  c.also = std::move(lifted.also);
  return c;
}

/// Cuts around the levels and those that limit all-gather either way, with w (n - w) of n^2 pairs across a cut.
template <class = void>
[[nodiscard]] result<certificate> exchange_certificate(const problem& q, const std::vector<partition>& levels,
                                                       const rank_network& r, const bound_options& options) {
  const auto n = static_cast<std::int64_t>(q.ranks.size());
  auto worst = worst_level_cut(levels, r.net, r.weight, n,
                               [&](const partition&, std::uint32_t, std::int64_t w, bool) { return w * (n - w); });
  if (!worst || options.effort == 0) return worst;
  for (const bool turned : {false, true}) {
    auto d = shares_of(q, r, {});
    if (!d) return d.error();
    d->turned = turned;
    auto cut = gather_certificate(*d, levels, r, options.effort);
    if (!cut) return cut;
    std::vector<bool> inside(r.net.nodes, false);
    std::int64_t w = 0;
    for (const std::uint32_t v : cut->side) {
      inside[v] = true;
      w += r.weight[v];
    }
    cut->amount = w * (n - w);
    cut->per = n;
    cut->method = bound_method::level_cuts;
    const crossing around = crossing_of(r.net, inside);
    cut->inward = around.in < around.out;
    cut->units = cut->inward ? around.in : around.out;
    if (cut->units > 0 && cut->tighter_than(*worst)) *worst = std::move(*cut);
    if (is_balanced(r.net)) break;
  }
  return worst;
}

template <class = void>
[[nodiscard]] result<certificate> find_certificate(const problem& q, const rank_network& r,
                                                   const bound_options& options) {
  const collective_kind kind = q.collective;
  const std::span<const std::uint64_t> shares = options.shares.empty() ? q.shares : options.shares;
  if (seq::all_of(q.ranks, [&](node_id v) { return v == q.ranks[0]; })) {
    if (r.memory_unknown) return certificate{};
    const std::int64_t phases = kind == collective_kind::all_reduce ? 2 : 1;
    for (const exact_network::arc& a : r.net.arcs)
      if (a.from == r.memory_in && a.to == r.memory_in + 1) {
        certificate c;
        c.method = bound_method::shared_memory;
        c.side = {a.from};
        c.parts = 1;
        c.amount = phases * (static_cast<std::int64_t>(q.ranks.size()) - 1);
        if (rooted(kind) && sharded(kind)) {  // only the root takes over from the others, or they from it
          std::vector<std::uint64_t> whole(shares.begin(), shares.end());
          if (whole.empty()) whole.assign(q.ranks.size(), 1);
          auto d = shares_of(q, r, whole);  // only to check them
          if (!d) return d.error();
          std::int64_t common = 0, all = 0;
          for (const std::uint64_t s : whole) {
            common = common_divisor(common, static_cast<std::int64_t>(s));
            all += static_cast<std::int64_t>(s);
          }
          c.per = all / common;
          c.amount = c.per - static_cast<std::int64_t>(whole[q.root.value]) / common;
          if (c.amount == 0) return certificate{};
        }
        c.units = a.units;
        return c;
      }
  }
  const std::vector<partition> levels = level_partitions(*q.graph, r);
  if (kind == collective_kind::all_reduce) return reduce_certificate(*q.graph, levels, r, options);
  if (kind == collective_kind::all_to_all) return exchange_certificate(q, levels, r, options);
  if (kind == collective_kind::broadcast || kind == collective_kind::reduce)
    return gather_certificate(spread_from(r, r.node_of[q.root.value], kind == collective_kind::reduce), levels, r,
                              options.effort);
  auto d = shares_of(q, r, shares);
  if (!d) return d.error();
  d->turned = kind == collective_kind::reduce_scatter || kind == collective_kind::scatter;
  if (kind == collective_kind::gather || kind == collective_kind::scatter) {
    d->receivers.assign(1, r.node_of[q.root.value]);
    if (d->born[d->receivers[0]] == d->all) return certificate{};  // the root has all that anybody wants of it
  }
  return gather_certificate(*d, levels, r, options.effort);
}

}  // namespace detail

template <CostModel M>
result<bound> lower_bound(const problem& p, const M& cost, const bound_options& options) {
  if (p.graph == nullptr || p.ranks.empty())
    return fail(errc::invalid_argument, "a bound needs a graph and at least one rank");
  if (p.root.value >= p.ranks.size())
    return fail(errc::invalid_argument, "the root is rank " + std::to_string(p.root.value) + ", but there are only " +
                                            std::to_string(p.ranks.size()) + " ranks");
  auto net = detail::network_of(*p.graph, p.ranks, cost);
  if (!net) return net.error();
  bound b;
  b.time = b.launch = cost.launch();
  b.size = p.size;
  if (p.ranks.size() == 1) {
    b.cut = "one rank has nobody to talk to";
    return b;
  }
  bound_options allowed = options;
  allowed.reduces = std::max(options.reduces, p.reduces);
  auto found = detail::find_certificate(p, *net, allowed);
  if (!found) return found.error();
  if (found->parts == 0) {
    b.cut = "nothing is known that limits the ranks";
    return b;
  }
  b.method = found->method;
  b.parts = found->parts;
  b.crossing = bytes_per_second{static_cast<double>(found->units) * net->net.unit.to_double()};
  const double share = static_cast<double>(found->amount) / static_cast<double>(found->per);
  b.bandwidth_time = seconds{static_cast<double>(p.size.value) * share / b.crossing.value};
  const rational exact = rational{found->amount, found->per} / (rational{found->units} * net->net.unit);
  if (net->net.exact && exact.valid()) b.seconds_per_byte = exact;
  const std::size_t nodes = p.graph->node_count();
  for (const std::uint32_t v : found->side)
    if (v < nodes) b.side.push_back({v});
  b.cut = detail::tell(p, *net, *found, b.crossing, options.shares.empty() && p.shares.empty());
  if (found->parts > 1) {
    b.set_of = std::move(found->part_of);
    b.set_of.resize(nodes);
    for (const auto& [v, set] : found->also)
      if (v < nodes) b.also_in.push_back({node_id{v}, set});
  }
  if (p.size.value == 0) return b;

  const detail::latency_network ways(*p.graph, cost);
  if (ways.timeless()) {
    b.time = b.at(p.size);
    return b;
  }
  // Latency: a message between far ranks, and one over the cut.
  const auto [first, far] = detail::farthest(p, ways, p.ranks[p.root.value]);
  b.latency_time = seconds{first};
  if (p.graph->link_count() <= 400'000 && !rooted(p.collective))
    b.latency_time = std::max(b.latency_time, seconds{detail::farthest(p, ways, far).first});
  std::vector<std::uint32_t> set_of = b.set_of;
  if (set_of.empty()) {
    set_of.assign(nodes, 1);
    for (const node_id v : b.side) set_of[v.value] = 0;
  }
  const bool inward = found->inward, family = found->parts > 1;
  if (!b.also_in.empty()) {  // a link can leave one set of a switch and stay in another: nothing is claimed
    b.time = b.at(p.size);
    return b;
  }
  b.over = seconds{detail::crossing_latency(p, cost, ways, [&](const topo::link& l) {
    const std::uint32_t from = set_of[l.from.value], to = set_of[l.to.value];
    if (from == to) return false;
    return family ? (inward ? to : from) != bound::no_set : (inward ? to : from) == 0;
  })};
  b.time = b.at(p.size);
  return b;
}

}}}  // namespace topocoll::v0::plan
