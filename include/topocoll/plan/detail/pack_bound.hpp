// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cut that limits out-trees with given weights at the roots, and how far capacities can be coarsened without harm.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/pack_flow.hpp>
#include <topocoll/plan/detail/pack_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A cut: `weight` shards are born inside and have `exit` units to leave; some rank is outside.
struct pack_cut {
  std::vector<std::uint64_t> inside;  ///< bit per node
  std::int64_t weight = 0, exit = 0;

  /// Least rate exit / weight in lowest terms. Precondition: weight > 0.
  [[nodiscard]] std::int64_t rate_over() const { return exit / common_divisor(exit, weight); }
  [[nodiscard]] std::int64_t rate_under() const { return weight / common_divisor(exit, weight); }
};

/// What leaves a node set, and the shards in it.
template <class = void>
[[nodiscard]] pack_cut cut_around(const pack_network& net, std::span<const std::int64_t> weight,
                                  std::vector<std::uint64_t> inside) {
  pack_cut c{std::move(inside)};
  for (std::uint32_t r = 0; r < net.ranks; ++r)
    if (has_bit(c.inside, r)) c.weight += weight[r];
  for (const pack_network::arc& a : net.arcs)
    if (has_bit(c.inside, a.from) && !has_bit(c.inside, a.to)) c.exit += a.units;
  return c;
}

/// The narrowest cut for out-trees with `weight[r]` at rank r, over all node sets without some rank.
///
/// Newton steps on the rate as in `worst_gather_cut`, which knows only ranks that have a weight; here every rank must be
/// reached, also those with weight 0. `towards` are the ranks that are tried as the one outside: all, or one of each orbit
/// of a group that leaves the network and the weights as they are.
/// @return `unavailable` when some rank cannot be reached, `unsupported` when the figures do not fit into `Int`
template <class Int>
[[nodiscard]] result<pack_cut> narrowest_cut_in(const pack_network& net, std::span<const std::int64_t> weight,
                                                std::span<const std::uint32_t> towards) {
  const Int most = (Int(1) << (sizeof(Int) * 8 - 2));
  const std::uint32_t source = net.nodes;
  int128 all = 0, capacity = 0;
  for (std::uint32_t r = 0; r < net.ranks; ++r) all += weight[r];
  for (const pack_network::arc& a : net.arcs) capacity += a.units;
  if (all > INT64_MAX / 2 || capacity > INT64_MAX / 2)
    return fail(errc::unsupported, "the capacities of the network add up to more than 62 bits hold");

  // Start with the narrowest way into one rank.
  pack_cut worst;
  std::vector<std::int64_t> into(net.nodes, 0);
  for (const pack_network::arc& a : net.arcs) into[a.to] += a.units;
  for (const std::uint32_t v : towards) {
    const std::int64_t others = static_cast<std::int64_t>(all) - weight[v];
    if (others == 0) continue;
    if (worst.weight == 0 || int128{into[v]} * worst.weight < int128{worst.exit} * others) {
      std::vector<std::uint64_t> inside((net.nodes + 64) / 64, 0);
      for (std::uint32_t u = 0; u < net.nodes; ++u)
        if (u != v) inside[u / 64] |= std::uint64_t{1} << (u % 64);
      worst = {std::move(inside), others, into[v]};
    }
  }
  if (worst.weight == 0) return fail(errc::invalid_argument, "out-trees need a weight and another rank");

  matrix_flow<Int> flow(net.nodes + 1);
  Int wanted = 0;
  const auto scale = [&]() -> bool {
    const std::int64_t p = worst.rate_over(), q = worst.rate_under();
    if (capacity > static_cast<int128>(most / 4) / q || (p != 0 && all > static_cast<int128>(most / 4) / p))
      return false;
    for (std::uint32_t a = 0; a < net.arcs.size();) {  // arcs of one pair stand together
      const pack_network::arc& x = net.arcs[a];
      Int sum = 0;
      for (; a < net.arcs.size() && net.arcs[a].from == x.from && net.arcs[a].to == x.to; ++a) sum += net.arcs[a].units;
      flow.set(x.from, x.to, sum * q);
    }
    for (std::uint32_t r = 0; r < net.ranks; ++r) flow.set(source, r, static_cast<Int>(weight[r]) * p);
    wanted = static_cast<Int>(all) * p;
    return true;
  };
  const failure too_long = fail(errc::unsupported, "the scaled capacities do not fit");
  if (!scale()) return too_long;
  for (const std::uint32_t v : towards)
    while (worst.exit > 0) {
      const Int value = flow.run(source, v, wanted);
      std::vector<std::uint64_t> side = flow.source_side();
      flow.undo();
      if (value >= wanted) break;
      pack_cut next = cut_around(net, weight, std::move(side));
      if (int128{next.exit} * worst.weight >= int128{worst.exit} * next.weight)
        return fail(errc::bug, "a Newton step of the cut bound did not find a narrower cut");
      worst = std::move(next);
      if (!scale()) return too_long;
    }
  if (worst.exit == 0) return fail(errc::unavailable, "the network has no path from some rank to another");
  return worst;
}
template <class = void>
[[nodiscard]] result<pack_cut> narrowest_cut(const pack_network& net, std::span<const std::int64_t> weight,
                                             std::span<const std::uint32_t> towards) {
  auto found = narrowest_cut_in<std::int64_t>(net, weight, towards);
  if (!found && found.error().code == errc::unsupported) return narrowest_cut_in<int128>(net, weight, towards);
  return found;
}

/// Capacities as whole numbers of trees: floor(units * up / down) per arc, but not more than `most`.
struct tree_grid {
  std::int64_t pieces = 0;  ///< trees per root of weight 1, or in all
  int128 up = 0, down = 1;
  std::int64_t most = 0;

  [[nodiscard]] std::int64_t count(std::int64_t units) const {
    const int128 whole = int128{units} / down * up + int128{units} % down * up / down;
    return whole > most ? most : static_cast<std::int64_t>(whole);
  }
};
template <class = void>
[[nodiscard]] std::vector<std::int64_t> counts(const pack_network& net, const tree_grid& grid) {
  std::vector<std::int64_t> count(net.arcs.size());
  for (std::size_t a = 0; a < count.size(); ++a) count[a] = grid.count(net.arcs[a].units);
  return count;
}

/// Fills a matrix with counted capacities; a source, the last node, feeds `feed[r]` into rank r.
template <class = void>
void fill(matrix_flow<std::int64_t>& flow, const pack_network& net, std::span<const std::int64_t> count,
          std::span<const std::int64_t> feed) {
  for (std::uint32_t a = 0; a < net.arcs.size();) {
    const pack_network::arc& x = net.arcs[a];
    std::int64_t sum = 0;
    for (; a < net.arcs.size() && net.arcs[a].from == x.from && net.arcs[a].to == x.to; ++a) sum += count[a];
    flow.set(x.from, x.to, sum);
  }
  for (std::uint32_t r = 0; r < net.ranks; ++r) flow.set(flow.nodes() - 1, r, feed[r]);
}

/// True when every rank can get everything from the source; otherwise the cut is the flow's source side.
template <class = void>
[[nodiscard]] bool reaches_all(matrix_flow<std::int64_t>& flow, std::uint32_t ranks, std::int64_t all,
                               std::vector<std::uint64_t>* cut = nullptr) {
  for (std::uint32_t v = 0; v < ranks; ++v) {
    const std::int64_t value = flow.run(flow.nodes() - 1, v, all);
    if (value < all && cut != nullptr) *cut = flow.source_side();
    flow.undo();
    if (value < all) return false;
  }
  return true;
}

/// Common divisor of a number and the capacities of the arcs that leave a set.
template <class = void>
[[nodiscard]] std::int64_t divisor_at(const pack_network& net, const std::vector<std::uint64_t>& inside,
                                      std::int64_t g) {
  for (const pack_network::arc& a : net.arcs)
    if (has_bit(inside, a.from) && !has_bit(inside, a.to)) g = common_divisor(g, a.units);
  return g;
}

/// The coarsest grid on which trees of the full rate fit: exact when `most_pieces` allows, else as near as it does.
///
/// At the narrowest cut no capacity may be lost, so its arcs must be whole: that fixes what the pieces are a multiple of.
/// Elsewhere rounding down is allowed as long as flows prove that every rank still gets all.
/// @return a grid without pieces when nothing fits. Cost: a few times `ranks` flows.
template <class = void>
[[nodiscard]] tree_grid coarsest_grid(const pack_network& net, std::span<const std::int64_t> weight,
                                      const pack_cut& cut, double wanted, std::int64_t most_pieces) {
  const std::int64_t p = cut.rate_over(), q = cut.rate_under();
  std::int64_t all = 0;
  for (std::uint32_t r = 0; r < net.ranks; ++r) all += weight[r];
  matrix_flow<std::int64_t> flow(net.nodes + 1);
  std::vector<std::uint64_t> side;
  // up / down = pieces * q / p, times (1 + extra / grain).
  constexpr std::int64_t grain = 1 << 20;
  const auto grid_of = [&](std::int64_t pieces, std::int64_t extra) {
    return tree_grid{pieces, int128{pieces} * q * (grain + extra), int128{p} * grain, pieces * all * (net.ranks + 1)};
  };
  std::vector<std::int64_t> feed(net.ranks);
  const auto fits = [&](const tree_grid& grid) {
    for (std::uint32_t r = 0; r < net.ranks; ++r) feed[r] = weight[r] * grid.pieces;
    const std::vector<std::int64_t> count = counts(net, grid);
    fill(flow, net, count, feed);
    return reaches_all(flow, net.ranks, all * grid.pieces, &side);
  };
  const int128 room =
      (int128{1} << 60) / (int128{all} * (net.ranks + 1) * static_cast<std::int64_t>(net.arcs.size() + 1));
  if (most_pieces > room) most_pieces = static_cast<std::int64_t>(room);
  if (most_pieces < 1 || int128{q} * most_pieces > INT64_MAX / (32 * grain)) return {};

  // Exact: multiples of `first`, at `last` all capacities are whole.
  const std::int64_t first = p / divisor_at(net, cut.inside, p);
  std::int64_t last = p;
  for (const pack_network::arc& a : net.arcs) last = common_divisor(last, a.units);
  last = p / last;
  if (wanted >= 1) {
    int tries = 0;
    for (std::int64_t k = first; k <= last && k <= most_pieces && tries < 24; k += first, ++tries)
      if (fits(grid_of(k, 0))) return grid_of(k, 0);
    if (last <= most_pieces) return grid_of(last, 0);
  }
  // Near: for growing numbers of pieces the least stretch of the capacities with which they fit.
  tree_grid best;
  int128 best_extra = 0;
  for (std::int64_t k = 1;; k = k < 8 ? k + 1 : k + k / 4) {
    if (k > most_pieces) {
      if (best.pieces == most_pieces) break;
      k = most_pieces;
    }
    std::int64_t extra = 0;
    tree_grid grid = grid_of(k, 0);
    while (extra < grain && !fits(grid)) {
      // The least stretch that repairs the cut that was found.
      std::int64_t need = all * k;
      for (std::uint32_t r = 0; r < net.ranks; ++r)
        if (!has_bit(side, r)) need -= weight[r] * k;
      std::int64_t low = extra, high = grain;
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        const tree_grid tried = grid_of(k, middle);
        std::int64_t across = 0;
        for (const pack_network::arc& a : net.arcs)
          if (has_bit(side, a.from) && !has_bit(side, a.to)) across += tried.count(a.units);
        (across >= need ? high : low) = middle;
      }
      extra = high;
      grid = grid_of(k, extra);
    }
    if (extra < grain && (best.pieces == 0 || extra < best_extra)) {
      best = grid;
      best_extra = extra;
    }
    const double share = 1.0 / (1.0 + static_cast<double>(extra) / grain);
    if (best.pieces == k && share >= (wanted < 1 ? wanted : 0.9999)) break;
    if (k >= most_pieces) break;
  }
  return best;
}

}}}}  // namespace topocoll::v0::plan::detail
