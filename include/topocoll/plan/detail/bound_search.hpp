// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the worst cut or family of a problem is found and told.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/words.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// The families of node sets by level: what stays together without core switches, without spines, without leaves (hosts
/// or NVLink domains), without links between sockets and GPUs (NUMA domains), and each rank alone. Cost: O(links).
template <class = void>
[[nodiscard]] std::vector<partition> level_partitions(const topo::graph& g, const rank_network& r) {
  std::vector<partition> found;
  const auto is = [&](std::uint32_t v, topo::node_kind k) { return g.at(r.origin[v]).kind == k; };
  const auto keep = [&](partition p) {
    if (p.parts > 1 && (found.empty() || found.back().parts != p.parts) && add_up(r.net, p))
      found.push_back(std::move(p));
  };
  const auto every_arc = [](std::uint32_t) { return true; };
  const auto no_core = [&](std::uint32_t v) { return !is(v, topo::node_kind::core_switch); };
  const auto no_spine = [&](std::uint32_t v) { return no_core(v) && !is(v, topo::node_kind::spine); };
  const auto no_leaf = [&](std::uint32_t v) { return no_spine(v) && !is(v, topo::node_kind::leaf); };
  keep(components(r.net, r.weight, no_core, every_arc));
  keep(components(r.net, r.weight, no_spine, every_arc));
  keep(components(r.net, r.weight, no_leaf, every_arc));
  // Inside a host: what hangs together under one host bridge, and what under one PCIe switch.
  bool bridges = false;
  for (const topo::node& x : g.nodes()) bridges = bridges || x.kind == topo::node_kind::cpu;
  if (!bridges) {
    keep(components(
        r.net, r.weight, [&](std::uint32_t) { return false; }, every_arc));
    return found;
  }
  const auto no_plane = [&](std::uint32_t v) { return no_leaf(v) && !is(v, topo::node_kind::nvswitch); };
  keep(components(r.net, r.weight, no_plane, [&](std::uint32_t k) {
    const exact_network::arc& a = r.net.arcs[k];
    const bool sockets =
        is(a.from, topo::node_kind::cpu) && is(a.to, topo::node_kind::cpu) && r.origin[a.from] != r.origin[a.to];
    const bool gpus = is(a.from, topo::node_kind::gpu) && is(a.to, topo::node_kind::gpu);
    return !sockets && !gpus;
  }));
  const auto no_cpu = [&](std::uint32_t v) { return no_plane(v) && !is(v, topo::node_kind::cpu); };
  keep(components(r.net, r.weight, no_cpu, [&](std::uint32_t k) {
    return !(is(r.net.arcs[k].from, topo::node_kind::gpu) && is(r.net.arcs[k].to, topo::node_kind::gpu));
  }));
  keep(components(
      r.net, r.weight, [&](std::uint32_t) { return false; }, every_arc));
  return found;
}

/// Sums per part of a family.
struct part_sums {
  std::vector<std::int64_t> weight, out, in;
};
template <class = void>
[[nodiscard]] part_sums sums_of(const rank_network& r, const partition& p) {
  part_sums s;
  s.weight.assign(p.parts, 0);
  s.out.assign(p.parts, 0);
  s.in.assign(p.parts, 0);
  for (std::uint32_t v = 0; v < r.net.nodes; ++v)
    if (p.part_of[v] != no_part) s.weight[p.part_of[v]] += r.weight[v];
  for (const exact_network::arc& a : r.net.arcs) {
    if (p.part_of[a.from] == p.part_of[a.to]) continue;
    if (p.part_of[a.from] != no_part) s.out[p.part_of[a.from]] += a.units;
    if (p.part_of[a.to] != no_part) s.in[p.part_of[a.to]] += a.units;
  }
  return s;
}

/// A cut or a family with the ratio that it proves: bandwidth_time = size * amount / (per * units * unit).
struct certificate {
  bound_method method = bound_method::nothing;
  std::vector<std::uint32_t> side{};  ///< nodes of the network: one side of a cut, or the first part
  std::uint32_t parts = 0;
  std::int64_t amount = 0, per = 1, units = 1;
  bool inward = false;  ///< what is counted flows into the side

  [[nodiscard]] bool tighter_than(const certificate& o) const {
    if (o.parts == 0) return true;
    const double mine = static_cast<double>(amount) / static_cast<double>(per) / static_cast<double>(units);
    const double theirs = static_cast<double>(o.amount) / static_cast<double>(o.per) / static_cast<double>(o.units);
    return mine > theirs;
  }
};

template <class = void>
[[nodiscard]] std::vector<std::uint32_t> nodes_where(const std::vector<bool>& in, bool value) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t v = 0; v < in.size(); ++v)
    if (in[v] == value) found.push_back(v);
  return found;
}
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> nodes_of_part(const partition& p, std::uint32_t part) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t v = 0; v < p.part_of.size(); ++v)
    if (p.part_of[v] == part) found.push_back(v);
  return found;
}

/// The worst cut around one part of one level, in either direction.
template <class = void>
[[nodiscard]] result<certificate> level_certificate(const topo::graph& g, const rank_network& r, const problem& q) {
  const auto n = static_cast<std::int64_t>(q.ranks.size());
  const std::uint32_t root = r.node_of[q.root.value];
  certificate worst;
  for (const partition& p : level_partitions(g, r)) {
    const part_sums s = sums_of(r, p);
    std::uint32_t part = no_part;
    for (std::uint32_t k = 0; k < p.parts; ++k)
      for (const bool inward : {false, true}) {
        const std::int64_t w = s.weight[k];
        certificate c{bound_method::level_cuts, {}, 1, 0, 1, inward ? s.in[k] : s.out[k], inward};
        switch (q.collective) {
          case collective_kind::all_gather:
            c.amount = inward ? n - w : w;
            c.per = n;
            break;
          case collective_kind::reduce_scatter:
            c.amount = inward ? w : n - w;
            c.per = n;
            break;
          case collective_kind::all_to_all:
            c.amount = w * (n - w);
            c.per = n;
            break;
          case collective_kind::broadcast: c.amount = inward != (p.part_of[root] == k) ? 1 : 0; break;
          case collective_kind::reduce: c.amount = inward == (p.part_of[root] == k) ? 1 : 0; break;
          case collective_kind::all_reduce: c.amount = 1; break;  // a sum must come out, its result go in
        }
        if (c.amount == 0) continue;
        if (c.units == 0) return fail(errc::unavailable, "the graph has no path from some rank to another");
        if (c.tighter_than(worst)) {
          worst = std::move(c);
          part = k;
        }
      }
    if (part != no_part) worst.side = nodes_of_part(p, part);
  }
  return worst;
}

template <class = void>
[[nodiscard]] result<certificate> find_certificate(const problem& q, const rank_network& r,
                                                   const bound_options& options) {
  const topo::graph& g = *q.graph;
  const auto n = static_cast<std::int64_t>(q.ranks.size());
  const std::uint64_t work = static_cast<std::uint64_t>(n) * r.net.arcs.size();
  const bool search = work <= options.effort;

  if (seq::all_of(q.ranks, [&](node_id v) { return v == q.ranks[0]; })) {
    if (r.memory_unknown) return certificate{};
    const std::int64_t phases = q.collective == collective_kind::all_reduce ? 2 : 1;
    for (const exact_network::arc& a : r.net.arcs)
      if (a.from == r.memory_in && a.to == r.memory_in + 1)
        return certificate{bound_method::shared_memory, {a.from}, 1, phases * (n - 1), 1, a.units, false};
  }
  if (q.collective == collective_kind::all_reduce) {
    partition best;
    bound_method method = bound_method::level_partitions;
    for (partition& p : level_partitions(g, r)) {
      if (p.narrow() == 0) return fail(errc::unavailable, "the graph has no path from some rank to another");
      if (p.tighter_than(best)) best = std::move(p);
    }
    if (search) {
      auto forward = best_partition(r.net, r.weight);
      if (!forward) return forward.error();
      auto backward = best_partition(reversed(r.net), r.weight);
      if (!backward) return backward.error();
      std::swap(backward->out, backward->in);
      method = bound_method::best_partition;
      // The families by level win ties: they are easier to understand.
      if (forward->tighter_than(best)) best = std::move(*forward);
      if (backward->tighter_than(best)) best = std::move(*backward);
    }
    if (best.parts < 2) return certificate{};
    if (best.narrow() == 0) return fail(errc::unavailable, "the graph has no path from some rank to another");
    return certificate{method, nodes_of_part(best, 0), best.parts,        2 * (std::int64_t{best.parts} - 1),
                       1,      best.narrow(),          best.in < best.out};
  }

  auto by_level = level_certificate(g, r, q);
  if (!by_level || !search || q.collective == collective_kind::all_to_all) return by_level;
  const bool turned = q.collective == collective_kind::reduce_scatter || q.collective == collective_kind::reduce;
  const bool rooted = q.collective == collective_kind::broadcast || q.collective == collective_kind::reduce;
  const exact_network& net = r.net;
  auto cut = rooted ? worst_root_cut(turned ? reversed(net) : net, r.weight, r.node_of[q.root.value])
                    : worst_gather_cut(turned ? reversed(net) : net, r.weight);
  if (!cut) return cut.error();
  std::int64_t inside = 0;
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    if (cut->inside[v]) inside += r.weight[v];
  const bool tell_inside = 2 * inside < n;  // the smaller side is told
  certificate c{
      bound_method::best_cut, nodes_where(cut->inside, tell_inside), 1, cut->weight, rooted ? 1 : n, cut->exit,
      tell_inside == turned};
  if (by_level->parts == 0 || c.tighter_than(*by_level)) return c;
  by_level->method = bound_method::best_cut;  // as narrow as the best, and easier to understand
  return by_level;
}

/// Least latency from `from` to the rank that is farthest, and that rank's node. Cost: O(links log links).
///
/// Stops after 50,000 nodes: then some rank is at least as far as the last of them, which is what is returned.
template <CostModel M>
[[nodiscard]] std::pair<double, node_id> farthest(const problem& q, const M& cost, node_id from) {
  const topo::graph& g = *q.graph;
  std::vector<double> away(g.node_count(), 1e300);
  std::vector<std::pair<double, std::uint32_t>> heap{{0.0, from.value}};
  const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
  away[from.value] = 0;
  std::size_t settled = 0;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [distance, v] = heap.back();
    heap.pop_back();
    if (distance > away[v]) continue;
    if (++settled > 50'000) {
      for (const node_id r : q.ranks)
        if (away[r.value] >= distance) return {distance, r};
    }
    for (const link_id e : g.out_links({v})) {
      if (g.capacity(e).value <= 0) continue;
      const double next = distance + cost.latency(g.at(e)).value;
      const std::uint32_t u = g.head(e).value;
      if (next < away[u]) {
        away[u] = next;
        heap.push_back({next, u});
        std::push_heap(heap.begin(), heap.end(), later);
      }
    }
  }
  std::pair<double, node_id> far{0, from};
  for (const node_id v : q.ranks)
    if (away[v.value] < 1e300 && away[v.value] > far.first) far = {away[v.value], v};
  return far;
}

template <class = void>
[[nodiscard]] std::string tell(const problem& q, const rank_network& r, const certificate& c,
                               bytes_per_second crossing) {
  const topo::graph& g = *q.graph;
  if (c.method == bound_method::shared_memory)
    return plural(q.ranks.size(), "rank") + " on " + name_of(g, q.ranks[0]) + " take over " + std::to_string(c.amount) +
           " times the array from each other, through memory at " + to_string(crossing);
  std::vector<bool> inside(r.net.nodes, false);
  for (const std::uint32_t v : c.side) inside[v] = true;
  std::vector<std::uint32_t> members;
  for (std::uint32_t k = 0; k < q.ranks.size(); ++k)
    if (inside[r.node_of[k]]) members.push_back(k);
  const std::string side = ranks_in_words(g, q.ranks, members);
  if (c.parts > 1)
    return "each byte crosses " + std::to_string(2 * (c.parts - 1)) + " times between " + std::to_string(c.parts) +
           " sets (" + side + ", and so on); " + to_string(crossing) + (c.inward ? " lead into" : " leave") +
           " them together";
  std::size_t links = 0;
  const char* kind = nullptr;
  for (const topo::link& l : g.links())
    if (l.capacity.value > 0 && inside[l.from.value] != inside[l.to.value] && inside[l.to.value] == c.inward) {
      ++links;
      kind = kind == nullptr || kind == topo::to_string(l.kind) ? topo::to_string(l.kind) : "";
    }
  const std::string through =
      links == 0 ? std::string(" through memory at ")
                 : " through " + (kind[0] == 0 ? "" : std::string(kind) + ' ').insert(0, std::to_string(links) + ' ') +
                       (links == 1 ? "link of " : "links of ");
  const auto n = q.ranks.size();
  std::string what;
  switch (q.collective) {
    case collective_kind::all_gather:
      what = std::to_string(c.amount) + " of " + std::to_string(n) +
             (c.inward ? " shards must reach " : " shards must leave ");
      break;
    case collective_kind::reduce_scatter:
      what = "sums for " + std::to_string(c.amount) + " of " + std::to_string(n) +
             (c.inward ? " shards must reach " : " shards must leave ");
      break;
    case collective_kind::all_to_all:
      what = c.inward ? "what others send must reach " : "what goes to others must leave ";
      break;
    case collective_kind::broadcast:
    case collective_kind::reduce:
    case collective_kind::all_reduce: what = c.inward ? "everything must reach " : "everything must leave "; break;
  }
  return what + side + through + to_string(crossing) + (links > 1 ? " together" : "");
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
  auto found = detail::find_certificate(p, *net, options);
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
  for (const std::uint32_t v : found->side)
    if (v < p.graph->node_count()) b.side.push_back({v});
  b.cut = detail::tell(p, *net, *found, b.crossing);
  if (p.size.value == 0) return b;

  // Latency: a message between far ranks, and one over the cut.
  const node_id start = p.ranks[p.root.value];
  const auto [first, far] = detail::farthest(p, cost, start);
  b.latency_time = seconds{first};
  if (p.graph->link_count() <= options.effort / 10 && p.collective != collective_kind::broadcast &&
      p.collective != collective_kind::reduce)
    b.latency_time = std::max(b.latency_time, seconds{detail::farthest(p, cost, far).first});
  std::vector<bool> inside(p.graph->node_count(), false);
  for (const node_id v : b.side) inside[v.value] = true;
  double over = 1e300;
  for (const topo::link& l : p.graph->links())
    if (inside[l.from.value] != inside[l.to.value] && l.capacity.value > 0)
      over = std::min(over, cost.latency(l).value);
  if (over >= 1e300 || b.parts > 1) over = 0;
  b.over = seconds{over};
  b.time = b.at(p.size);
  return b;
}

}}}  // namespace topocoll::v0::plan
