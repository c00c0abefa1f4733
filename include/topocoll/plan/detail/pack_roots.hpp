// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the roots of spanning trees go, and which share of each link broadcasts, so that nothing of a network is wasted.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <topocoll/plan/detail/pack_bound.hpp>
#include <topocoll/plan/detail/pack_flow.hpp>
#include <topocoll/plan/detail/pack_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Chooses root weights of the sum `all`, and the shares of the arcs that broadcast (`down`) and that reduce (`up`).
///
/// What is needed are out-trees in the shares `down` and in-trees in the shares `up`, with the same weights at the roots.
/// By Edmonds' theorem they exist, for shares that are equal in and out at switches, when x(S) + down-in(S) >= all and
/// x(S) + up-out(S) >= all for every set S with a rank. Both arrays come in as half of the capacities. The set function
/// all - down-in(S) is supermodular on sets that meet, so lowering one weight after the other as far as flows allow ends
/// at the sum `all` whenever the partition bound allows it, if there is only one of the two conditions: where arcs have
/// the same capacity both ways (`symmetric`) they are the same. Weights may come out negative. Shifting shares along a
/// path from rank u to rank v, broadcast forwards and reduce backwards, moves weight from v to u; that a flow removes every
/// negative weight follows from x(S) >= -down-out(S). So on every network of equal capacity both ways, with switches or
/// not, the partition bound is attained. Elsewhere the search may end above `all`.
/// @return weights per rank, or nothing when they do not come down to `all`. Cost: up to 6 flows per rank.
template <class = void>
[[nodiscard]] std::vector<std::int64_t> spread_roots(const pack_network& net, bool symmetric,
                                                     std::vector<std::int64_t>& down, std::vector<std::int64_t>& up,
                                                     std::int64_t all) {
  const std::uint32_t n = net.ranks, source = net.nodes;
  std::vector<std::int64_t> x(n, all);
  matrix_flow<std::int64_t> forth(net.nodes + 1), back(symmetric ? 1 : net.nodes + 1);
  fill(forth, net, down, x);
  if (!symmetric) {
    std::vector<std::uint32_t> from;
    const pack_network turned = turned_round(net, from);
    std::vector<std::int64_t> count(from.size());
    for (std::size_t a = 0; a < from.size(); ++a) count[a] = up[from[a]];
    fill(back, turned, count, x);
  }
  /// How far x(v) can fall, at most `wish`: least x(S) + in(S) over the sets S with v, less `all`. Negative weights are
  /// paid for by the sets that leave them out.
  const auto slack = [&](matrix_flow<std::int64_t>& flow, std::uint32_t v, std::int64_t wish) {
    std::int64_t paid = x[v] < 0 ? -x[v] : 0;
    for (std::uint32_t u = 0; u < n; ++u)
      if (x[u] < 0 && u != v) {
        flow.add(u, v, -x[u]);
        paid -= x[u];
      }
    const std::int64_t value = flow.run(source, v, all + paid + wish);
    flow.undo();
    for (std::uint32_t u = 0; u < n; ++u)
      if (x[u] < 0 && u != v) flow.add(u, v, x[u]);
    return value - paid - all;
  };
  int128 sum = int128{all} * n;
  // First down to an even share, then to nothing, then below.
  for (int pass = 0; pass < 3 && sum > all; ++pass)
    for (std::uint32_t v = 0; v < n && sum > all; ++v) {
      std::int64_t fall = pass == 0 ? x[v] - all / n : (pass == 1 ? x[v] : 2 * all);
      if (fall > 0) fall = slack(forth, v, fall);
      if (fall > 0 && !symmetric) fall = slack(back, v, fall);
      if (fall <= 0) continue;
      x[v] -= fall;
      sum -= fall;
      forth.set(source, v, x[v] > 0 ? x[v] : 0);
      if (!symmetric) back.set(source, v, x[v] > 0 ? x[v] : 0);
    }
  if (sum != all) return {};

  std::int64_t owed = 0;
  for (const std::int64_t w : x) owed += w < 0 ? -w : 0;
  if (owed == 0) return x;
  matrix_flow<std::int64_t> shift(net.nodes + 2);
  const std::uint32_t from = net.nodes, to = net.nodes + 1;
  const auto pairs = [&](const auto& look) {  // each pair of nodes with arcs: first arc, one past the last
    for (std::uint32_t a = 0, end = 0; a < net.arcs.size(); a = end) {
      while (end < net.arcs.size() && net.arcs[end].from == net.arcs[a].from && net.arcs[end].to == net.arcs[a].to)
        ++end;
      look(net.arcs[a].from, net.arcs[a].to, a, end);
    }
  };
  const auto total = [](const std::vector<std::int64_t>& count, std::uint32_t a, std::uint32_t end) {
    std::int64_t s = 0;
    for (; a < end; ++a) s += count[a];
    return s;
  };
  std::vector<std::int64_t> broadcast(std::size_t{net.nodes} * net.nodes, 0), width(broadcast);
  pairs([&](std::uint32_t u, std::uint32_t v, std::uint32_t a, std::uint32_t end) {
    broadcast[std::size_t{u} * net.nodes + v] = total(down, a, end);
  });
  pairs([&](std::uint32_t u, std::uint32_t v, std::uint32_t a, std::uint32_t end) {
    const std::int64_t there = total(up, a, end), other = broadcast[std::size_t{v} * net.nodes + u];
    width[std::size_t{u} * net.nodes + v] = there < other ? there : other;
    shift.set(u, v, there < other ? there : other);
  });
  for (std::uint32_t r = 0; r < n; ++r) {
    if (x[r] < 0)
      shift.set(from, r, -x[r]);
    else
      shift.set(r, to, x[r]);
  }
  if (shift.run(from, to, owed) != owed) return {};
  shift.keep();
  for (std::uint32_t r = 0; r < n; ++r) x[r] = x[r] < 0 ? 0 : shift.capacity(r, to);
  // `moved` along u to v: broadcast takes it from reduce on the arcs u to v, and gives it up on the arcs v to u.
  pairs([&](std::uint32_t u, std::uint32_t v, std::uint32_t a, std::uint32_t end) {
    const std::int64_t moved = width[std::size_t{u} * net.nodes + v] - shift.capacity(u, v);
    for (std::int64_t left = moved; left > 0 && a < end; ++a) {
      const std::int64_t part = up[a] < left ? up[a] : left;
      up[a] -= part;
      down[a] += part;
      left -= part;
    }
    std::uint32_t b = net.arc_between(v, u);
    for (std::int64_t left = moved; left > 0; ++b) {
      const std::int64_t part = down[b] < left ? down[b] : left;
      down[b] -= part;
      up[b] += part;
      left -= part;
    }
  });
  return x;
}

}}}}  // namespace topocoll::v0::plan::detail
