// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network as packing sees it: ranks first, without nodes that no tree needs and capacity that no tree can use.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/exact_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Nodes 0 to ranks-1 are the ranks, the others are switches with three neighbours at least.
struct pack_network {
  struct arc {
    std::uint32_t from, to;
    std::int64_t units;
    std::uint32_t first, count;  ///< arcs of the original network that it stands for, in `route`
  };
  std::uint32_t ranks = 0, nodes = 0;
  std::vector<arc> arcs;               ///< ordered by from, to, falling units
  std::vector<std::uint32_t> route;    ///< numbers of original arcs
  std::vector<std::uint32_t> leaving;  ///< arcs that leave node v are leaving[v] to leaving[v+1]-1

  /// First arc from u to v, or the first after where it would stand.
  [[nodiscard]] std::uint32_t arc_between(std::uint32_t u, std::uint32_t v) const {
    std::uint32_t low = leaving[u], n = leaving[u + 1] - leaving[u];
    while (n > 0) {
      const std::uint32_t half = n / 2;
      if (arcs[low + half].to < v) {
        low += half + 1;
        n -= half + 1;
      } else {
        n = half;
      }
    }
    return low;
  }
};

/// Takes a network apart: dead ends go, a switch between two neighbours becomes arcs between these.
template <class = void>
class pack_reduction {
 public:
  pack_reduction(const exact_network& net, std::span<const std::uint32_t> node_of)
      : ranks_(static_cast<std::uint32_t>(node_of.size())), name_(net.nodes, none) {
    for (std::uint32_t r = 0; r < ranks_; ++r) name_[node_of[r]] = r;
    std::uint32_t next = ranks_;
    for (std::uint32_t& v : name_)
      if (v == none) v = next++;
    nodes_ = next;
    for (std::uint32_t a = 0; a < net.arcs.size(); ++a) {
      const exact_network::arc& from = net.arcs[a];
      if (from.from == from.to || from.units <= 0) continue;
      arcs_.push_back({name_[from.from], name_[from.to], from.units, static_cast<std::uint32_t>(route_.size()), 1});
      route_.push_back(a);
    }
  }

  [[nodiscard]] pack_network run() {
    while (step()) {
    }
    trim();
    return renumbered();
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX, many = UINT32_MAX - 1;
  using arc = pack_network::arc;

  [[nodiscard]] bool is_switch(std::uint32_t v) const { return v >= ranks_; }
  static void meet(std::uint32_t& known, std::uint32_t v) { known = known == none || known == v ? v : many; }

  /// One pass; true when something changed.
  bool step() {
    std::vector<std::uint32_t> before(nodes_, none), after(nodes_, none);  // the only neighbour, none, or many
    for (const arc& a : arcs_) {
      meet(before[a.to], a.from);
      meet(after[a.from], a.to);
    }
    // An arc into a switch that only leads back, or out of one that only comes from there, carries nothing.
    std::size_t kept = 0;
    for (const arc& a : arcs_) {
      const bool into = is_switch(a.to) && (after[a.to] == none || after[a.to] == a.from);
      const bool out = is_switch(a.from) && (before[a.from] == none || before[a.from] == a.to);
      if (!into && !out) arcs_[kept++] = a;
    }
    if (kept != arcs_.size()) {
      arcs_.resize(kept);
      return true;
    }
    // A switch with two neighbours; not two that touch in one pass.
    std::vector<std::uint32_t> one(nodes_, none), two(nodes_, none);
    for (const arc& a : arcs_) {
      neighbour(one[a.from], two[a.from], a.to);
      neighbour(one[a.to], two[a.to], a.from);
    }
    std::vector<bool> busy(nodes_, false), gone(nodes_, false);
    bool any = false;
    for (std::uint32_t w = ranks_; w < nodes_; ++w) {
      if (two[w] == none || two[w] == many || busy[w] || busy[one[w]] || busy[two[w]]) continue;
      busy[w] = busy[one[w]] = busy[two[w]] = gone[w] = true;
      any = true;
    }
    if (!any) return false;
    std::vector<std::uint32_t> slot(nodes_, none);
    std::vector<std::vector<arc>> at;
    for (std::uint32_t w = ranks_; w < nodes_; ++w)
      if (gone[w]) {
        slot[w] = static_cast<std::uint32_t>(at.size());
        at.emplace_back();
      }
    kept = 0;
    for (const arc& a : arcs_) {
      if (gone[a.from])
        at[slot[a.from]].push_back(a);
      else if (gone[a.to])
        at[slot[a.to]].push_back(a);
      else
        arcs_[kept++] = a;
    }
    arcs_.resize(kept);
    for (std::uint32_t w = ranks_; w < nodes_; ++w)
      if (gone[w]) {
        join(at[slot[w]], one[w], w, two[w]);
        join(at[slot[w]], two[w], w, one[w]);
      }
    return true;
  }
  static void neighbour(std::uint32_t& one, std::uint32_t& two, std::uint32_t v) {
    if (one == none || one == v)
      one = v;
    else
      meet(two, v);
  }
  /// Arcs u to w and w to t, largest to largest, become arcs u to t.
  void join(std::vector<arc> near, std::uint32_t u, std::uint32_t w, std::uint32_t t) {
    std::vector<arc> in, out;
    for (const arc& a : near) {
      if (a.from == u && a.to == w) in.push_back(a);
      if (a.from == w && a.to == t) out.push_back(a);
    }
    const auto larger = [](const arc& a, const arc& b) { return a.units > b.units; };
    seq::sort(in, larger);
    seq::sort(out, larger);
    for (std::size_t i = 0, k = 0; i < in.size() && k < out.size();) {
      const std::int64_t both = in[i].units < out[k].units ? in[i].units : out[k].units;
      const auto first = static_cast<std::uint32_t>(route_.size());
      for (const arc* part : {&in[i], &out[k]})
        for (std::uint32_t r = 0; r < part->count; ++r) {
          const std::uint32_t original = route_[part->first + r];
          route_.push_back(original);
        }
      arcs_.push_back({u, t, both, first, in[i].count + out[k].count});
      in[i].units -= both;
      out[k].units -= both;
      if (in[i].units == 0) ++i;
      if (out[k].units == 0) ++k;
    }
  }

  /// What enters a switch from u leaves to others than u: no arc needs more than that. A few rounds suffice in practice;
  /// capacity left over does no harm.
  void trim() {
    for (int round = 0; round < 4; ++round) {
      std::vector<int128> in(nodes_, 0), out(nodes_, 0);
      for (const arc& a : arcs_) {
        in[a.to] += a.units;
        out[a.from] += a.units;
      }
      // Between one pair of nodes there may be several arcs; the sums of a pair are found by sorting.
      std::vector<arc> sorted = arcs_;
      order(sorted);
      const auto between = [&](std::uint32_t u, std::uint32_t v) {
        int128 sum = 0;
        auto it = seq::lower_bound_by(sorted, std::pair(u, v), [](const arc& a) { return std::pair(a.from, a.to); });
        for (; it != sorted.end() && it->from == u && it->to == v; ++it) sum += it->units;
        return sum;
      };
      bool changed = false;
      for (arc& a : arcs_) {
        int128 most = a.units;
        if (is_switch(a.to)) {
          const int128 beyond = out[a.to] - between(a.to, a.from);
          most = beyond < most ? beyond : most;
        }
        if (is_switch(a.from)) {
          const int128 beyond = in[a.from] - between(a.to, a.from);
          most = beyond < most ? beyond : most;
        }
        if (most < a.units) {
          a.units = static_cast<std::int64_t>(most);
          changed = true;
        }
      }
      if (!changed) break;
    }
    std::size_t kept = 0;
    for (const arc& a : arcs_)
      if (a.units > 0) arcs_[kept++] = a;
    arcs_.resize(kept);
  }
  static void order(std::vector<arc>& arcs) {
    seq::sort(arcs, [](const arc& a, const arc& b) {
      if (a.from != b.from) return a.from < b.from;
      if (a.to != b.to) return a.to < b.to;
      return a.units > b.units;
    });
  }
  [[nodiscard]] pack_network renumbered() {
    std::vector<std::uint32_t> number(nodes_, none);
    std::vector<bool> used(nodes_, false);
    for (const arc& a : arcs_) used[a.from] = used[a.to] = true;
    pack_network p;
    for (std::uint32_t v = 0; v < nodes_; ++v)
      if (v < ranks_ || used[v]) number[v] = p.nodes++;
    p.ranks = ranks_;
    for (arc& a : arcs_) {
      a.from = number[a.from];
      a.to = number[a.to];
    }
    order(arcs_);
    p.leaving.assign(p.nodes + 1, 0);
    for (const arc& a : arcs_) ++p.leaving[a.from + 1];
    for (std::uint32_t v = 0; v < p.nodes; ++v) p.leaving[v + 1] += p.leaving[v];
    p.arcs = std::move(arcs_);
    p.route = std::move(route_);
    return p;
  }

  std::uint32_t ranks_, nodes_ = 0;
  std::vector<std::uint32_t> name_;
  std::vector<arc> arcs_;
  std::vector<std::uint32_t> route_;
};

/// For every arc u to v the arc v to u of the same rank among those of its pair; empty unless all pairs have the same
/// capacities both ways. So a route has a way back that nothing else uses.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> mirrors(const pack_network& net) {
  std::vector<std::uint32_t> mirror(net.arcs.size());
  for (std::uint32_t a = 0; a < net.arcs.size(); ++a) {
    const pack_network::arc& x = net.arcs[a];
    const std::uint32_t back = net.arc_between(x.to, x.from) + (a - net.arc_between(x.from, x.to));
    if (back >= net.arcs.size() || net.arcs[back].from != x.to || net.arcs[back].to != x.from ||
        net.arcs[back].units != x.units)
      return {};
    mirror[a] = back;
  }
  return mirror;
}

/// The same arcs the other way round, sorted again; `from[k]` is the arc of `net` that arc k comes from.
template <class = void>
[[nodiscard]] pack_network turned_round(const pack_network& net, std::vector<std::uint32_t>& from) {
  pack_network back;
  back.ranks = net.ranks;
  back.nodes = net.nodes;
  from.resize(net.arcs.size());
  for (std::uint32_t a = 0; a < from.size(); ++a) from[a] = a;
  seq::sort(from, [&](std::uint32_t x, std::uint32_t y) {
    const pack_network::arc &a = net.arcs[x], &b = net.arcs[y];
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  });
  back.leaving.assign(net.nodes + 1, 0);
  for (const std::uint32_t a : from) {
    pack_network::arc arc = net.arcs[a];
    std::swap(arc.from, arc.to);
    ++back.leaving[arc.from + 1];
    back.arcs.push_back(arc);
  }
  for (std::uint32_t v = 0; v < net.nodes; ++v) back.leaving[v + 1] += back.leaving[v];
  return back;
}

/// The reduced network for those who work on an `exact_network`.
template <class = void>
[[nodiscard]] exact_network as_exact(const pack_network& net) {
  exact_network out;
  out.nodes = net.nodes;
  for (const pack_network::arc& a : net.arcs) out.arcs.push_back({a.from, a.to, a.units});
  return out;
}

}}}}  // namespace topocoll::v0::plan::detail
