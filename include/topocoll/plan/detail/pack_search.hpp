// SPDX-License-Identifier: Apache-2.0
#pragma once
// How `pack` finds its trees: which method is tried when, and what is said about the result.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/pack_bound.hpp>
#include <topocoll/plan/detail/pack_grow.hpp>
#include <topocoll/plan/detail/pack_network.hpp>
#include <topocoll/plan/detail/pack_orbit.hpp>
#include <topocoll/plan/detail/pack_priced.hpp>
#include <topocoll/plan/detail/pack_roots.hpp>
#include <topocoll/plan/detail/pack_split.hpp>
#include <topocoll/plan/detail/pack_symmetry.hpp>
#include <topocoll/plan/detail/pack_trees.hpp>
#include <topocoll/plan/detail/partition.hpp>
#include <topocoll/plan/pack.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// One call of `pack`.
template <class = void>
class tree_packer {
 public:
  tree_packer(const exact_network& original, pack_network net, std::vector<std::int64_t> weight, pack_kind kind,
              const pack_options& options)
      : original_(original),
        net_(std::move(net)),
        weight_(std::move(weight)),
        kind_(kind),
        options_(options),
        effort_(options.effort > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(options.effort)) {}

  [[nodiscard]] result<packing> run() {
    bool even = true;
    for (const std::int64_t w : weight_) even = even && w == weight_[0];
    if (even) group_ = group_search<>(net_, effort_ / 20).run();
    auto cut = narrowest_cut(net_, weight_, one_of_each_orbit());
    if (!cut) return cut.error();
    limit_ = {cut->exit, cut->weight};
    if (kind_ == pack_kind::spanning) {
      mirror_ = mirrors(net_);
      if (auto fine = bound_spanning(); !fine) return fine.error();
    }
    const bool equal = kind_ == pack_kind::gather || (!mirror_.empty() && limit_ == equal_limit(*cut));
    if (equal) {
      by_group();
      if (!enough()) by_growth(*cut);
    } else {
      by_free_roots();
    }
    if (!enough() && !near_enough()) by_prices();
    if (!any())
      return fail(
          errc::unsupported,
          "no trees were found for " + std::to_string(net_.ranks) + " ranks" +
              (options_.most_depth == 0 ? std::string()
                                        : " with at most " + std::to_string(options_.most_depth) + " steps each"));
    return std::move(best_);
  }

 private:
  static constexpr std::int64_t grain = 1 << 20;

  /// What equal shares at all ranks would allow of an array that is reduced and broadcast on links of equal capacity.
  [[nodiscard]] rational equal_limit(const pack_cut& cut) const {
    return rational{cut.exit, cut.weight} * rational{net_.ranks, 2};
  }
  [[nodiscard]] bool any() const { return !best_.trees.empty(); }
  [[nodiscard]] bool enough() const {
    if (!any()) return false;
    if (best_.rate == limit_) return true;
    const rational share = best_.rate / limit_;
    return proved_ || (options_.wanted < 1 && share.valid() && share.to_double() >= options_.wanted);
  }
  /// So near that trees of least price are not worth a try.
  [[nodiscard]] bool near_enough() const {
    if (!any()) return false;
    const rational share = best_.rate / limit_;
    return share.valid() && share.to_double() > 0.998;
  }
  /// False when the trees are too deep; otherwise the better of these and the best so far is kept.
  bool consider(tree_list& list, std::string method) {
    packing p = finished(list, net_, original_, kind_, mirror_);
    if (!p.rate.valid() || (options_.most_depth != 0 && p.depth > options_.most_depth)) return false;
    if (any() && !(p.rate > best_.rate)) {
      // Somewhat less with far fewer trees is better.
      const rational share = p.rate / best_.rate;
      if (!share.valid() || share.to_double() < 0.999 || p.trees.size() * 2 > best_.trees.size()) return true;
    }
    p.limit = limit_;
    p.method = std::move(method);
    best_ = std::move(p);
    return true;
  }
  [[nodiscard]] std::int64_t most_pieces() const {  // per rank
    const std::int64_t most = kind_ == pack_kind::spanning ? options_.most_pieces / net_.ranks : options_.most_pieces;
    return most < 1 ? 1 : most;
  }

  /// The narrowest family of node sets or, where directions differ, the narrowest cut between any two ranks.
  [[nodiscard]] result<void> bound_spanning() {
    std::vector<std::uint32_t> from;
    const pack_network turned = turned_round(net_, from);
    if (group_.found() && !mirror_.empty()) {
      limit_ = limit_ * rational{net_.ranks, 2};
      return {};
    }
    std::vector<std::int64_t> ones(net_.nodes, 0);
    for (std::uint32_t r = 0; r < net_.ranks; ++r) ones[r] = 1;
    limit_ = rational{1, 0};
    const pack_network* sides[] = {&net_, &turned};
    for (const pack_network* side : sides) {
      auto family = best_partition(as_exact(*side), std::span<const std::int64_t>(ones));
      if (!family) return family.error();
      const rational here{family->narrow(), 2 * std::int64_t{family->parts - 1}};
      if (!limit_.valid() || here < limit_) {
        limit_ = here;
        family_ = family->part_of;
      }
      if (!mirror_.empty()) return {};
    }
    // From rank 0 to every rank and back: every cut between ranks has one of these on the far side.
    for (const pack_network* side : sides) {
      std::vector<std::int64_t> first(net_.ranks, 0);
      first[0] = 1;
      auto cut = narrowest_cut(*side, first, everyone());
      if (!cut) return cut.error();
      if (rational{cut->exit, cut->weight} < limit_) {
        limit_ = {cut->exit, cut->weight};
        family_.clear();
      }
    }
    return {};
  }

  void by_group() {
    if (!group_.found()) return;
    orbit_packer<> orbits(net_, group_);
    if (orbits.orbits() > 128 || !orbits.run()) return;
    tree_list list = orbits.trees(options_.wanted, most_pieces());
    if (list.pieces == 0) return;
    const rational best =
        orbits.rate() * (kind_ == pack_kind::spanning ? rational{net_.ranks, 2} : rational{1, weight_[0]});
    if (kind_ == pack_kind::spanning) list.pieces *= net_.ranks;
    for (tree_list::tree& t : list.trees) t.weight *= weight_[0];
    std::string how = "trees of one rank, mixed by an exact linear program over " + std::to_string(orbits.orbits()) +
                      " orbits of links and moved to the others by a group of " + std::to_string(net_.ranks) +
                      " automorphisms";
    if (best < limit_) how += "; the cut allows more, but only to switches that copy: no unicast trees do better";
    consider(list, std::move(how));
    proved_ = any() && best_.rate == best;
  }

  void by_growth(const pack_cut& cut) {
    if (!can_grow()) return;
    tree_grid grid = coarsest_grid(net_, weight_, cut, options_.wanted, most_pieces());
    if (grid.pieces == 0) return;
    if (try_growth(grid, "")) return;
    // Some switch has more capacity on one side, and the cut may need it to copy. The least stretch that suffices:
    std::int64_t low = 0, high = grain / 16, finer = 64 < most_pieces() ? 64 : most_pieces();
    finer = finer > grid.pieces ? finer / grid.pieces : 1;
    grid.pieces *= finer;
    grid.most *= finer;
    grid.up *= finer;
    const auto stretched = [&](std::int64_t extra) {
      tree_grid wider = grid;
      wider.up = grid.up * (grain + extra) / grain;
      return wider;
    };
    const std::string why = "; the cut may need switches that copy, these only forward";
    while (!try_growth(stretched(high), why)) {
      low = high;
      high *= 2;
      if (high > 8 * grain || flows_ <= 0) return;
    }
    for (int i = 0; i < 6; ++i) {
      const std::int64_t middle = low + (high - low) / 2;
      (try_growth(stretched(middle), why) ? high : low) = middle;
    }
  }
  bool try_growth(const tree_grid& grid, const std::string& remark) {
    std::vector<std::int64_t> feed(net_.ranks);
    for (std::uint32_t r = 0; r < net_.ranks; ++r) feed[r] = weight_[r] * grid.pieces;
    for (const bool together : {false, true}) {
      tree_list list;
      if (!grown(net_, counts(net_, grid), feed, list, together)) return false;
      list.pieces = kind_ == pack_kind::spanning ? grid.pieces * net_.ranks : grid.pieces;
      merge_equal(list, net_.ranks);
      if (consider(list, "switches split off, trees grown edge by edge" + remark)) break;
    }
    return true;
  }

  void by_free_roots() {
    if (!can_grow()) return;
    const rational twice = limit_ * rational{2};
    if (!twice.valid()) return;
    const std::int64_t p = twice.numerator(), q = twice.denominator();
    std::int64_t first = p;
    for (const pack_network::arc& a : net_.arcs)
      if (family_.empty() || (family_[a.from] != family_[a.to] && family_[a.from] != no_part))
        first = common_divisor(first, a.units);
    first = p / first;
    const auto grid_of = [&](std::int64_t k, std::int64_t extra) {
      return tree_grid{k, int128{k} * q * (grain + extra), int128{p} * grain, INT64_MAX / 65536};
    };
    if (int128{q} * options_.most_pieces > INT64_MAX / (32 * grain)) return;
    if (options_.wanted >= 1)
      for (std::int64_t k = first, tries = 0; k <= options_.most_pieces && tries < 16; k += first, ++tries)
        if (try_roots(grid_of(k, 0)) && enough()) return;
    for (std::int64_t k = 8; flows_ > 0 && !enough(); k *= 4) {
      k = k < options_.most_pieces ? k : options_.most_pieces;
      // The least stretch of the capacities with which roots are found.
      std::int64_t low = -1, high = grain;
      for (int i = 0; i < 12 && high - low > 1; ++i) {
        const std::int64_t middle = i == 0 ? 0 : low + (high - low) / 2;
        std::vector<std::int64_t> down, up;
        shares(grid_of(k, middle), down, up);
        (spread_roots(net_, !mirror_.empty(), down, up, k).empty() ? low : high) = middle;
        if (high == 0) break;
      }
      for (int i = 0; i < 4 && high < grain; ++i, high += high / 4 + grain / 64)
        if (try_roots(grid_of(k, high))) break;
      if (any() && options_.wanted >= 1 && (best_.rate / limit_).valid() && (best_.rate / limit_).to_double() > 0.9999)
        return;
      if (k == options_.most_pieces) return;
    }
  }
  /// The shares of each arc that broadcast and reduce: half and half, or as trees found before used it.
  void shares(tree_grid grid, std::vector<std::int64_t>& down, std::vector<std::int64_t>& up) const {
    down = up = counts(net_, grid);
    if (used_down_.empty()) return;
    grid.up *= 2;
    const std::vector<std::int64_t> both = counts(net_, grid);
    for (std::size_t a = 0; a < both.size(); ++a) {
      const std::int64_t used = used_down_[a] + used_up_[a];
      if (used == 0) continue;
      down[a] = static_cast<std::int64_t>((int128{both[a]} * used_down_[a] + used / 2) / used);
      up[a] = both[a] - down[a];
    }
  }
  bool try_roots(const tree_grid& grid) {
    std::vector<std::int64_t> down, up;
    shares(grid, down, up);
    const std::vector<std::int64_t> feed = spread_roots(net_, !mirror_.empty(), down, up, grid.pieces);
    if (feed.empty()) return false;
    for (const bool together : {false, true}) {
      tree_list list;
      if (!grown(net_, down, feed, list, together)) return false;
      if (mirror_.empty()) {
        std::vector<std::uint32_t> from;
        const pack_network turned = turned_round(net_, from);
        std::vector<std::int64_t> count(from.size());
        for (std::size_t a = 0; a < from.size(); ++a) count[a] = up[from[a]];
        tree_list inward;
        if (!grown(turned, count, feed, inward, together)) return false;
        append_upwards(list, inward, from);
      }
      list.pieces = grid.pieces;
      merge_equal(list, net_.ranks);
      if (consider(list, "roots chosen by flows, switches split off, trees grown edge by edge")) break;
    }
    return true;
  }
  /// Out-trees of the network turned round are in-trees.
  static void append_upwards(tree_list& list, const tree_list& inward, const std::vector<std::uint32_t>& from) {
    for (const tree_list::tree& t : inward.trees) {
      list.trees.push_back({t.root, t.weight, static_cast<std::uint32_t>(list.edges.size()), t.count, true});
      for (std::uint32_t k = t.first; k < t.first + t.count; ++k) {
        const tree_list::edge& e = inward.edges[k];
        list.edges.push_back({e.from, e.to, static_cast<std::uint32_t>(list.arcs.size()), e.count});
        for (std::uint32_t i = e.count; i-- > 0;) list.arcs.push_back(from[inward.arcs[e.first + i]]);
      }
    }
  }

  void by_prices() {
    std::int64_t all = 0;
    for (const std::int64_t w : weight_) all += w;
    const bool both = kind_ == pack_kind::spanning, pairs = both && mirror_.empty();
    const std::int64_t per_round = both && !pairs ? all : 1;  // pieces
    std::int64_t most = options_.most_pieces / per_round;
    if (!pairs && most > 512) most = 512;
    for (const std::int64_t steepness : {16, 4, 64}) {
      std::int64_t effort = effort_ / 16;
      priced_packer<> packer(net_, weight_, mirror_, pairs, limit_);
      if (!packer.run(options_.wanted, most < 1 ? 1 : most, options_.most_depth, steepness, effort)) return;
      tree_list& list = packer.trees();
      list.pieces = packer.rounds() * per_round;
      merge_equal(list, net_.ranks);
      consider(list, "trees of least price in " + std::to_string(packer.rounds()) + " rounds");
      if (pairs && options_.most_depth == 0) {  // fewer trees in the same shares of the arcs
        used_down_.assign(net_.arcs.size(), 0);
        used_up_ = used_down_;
        for (const tree_list::tree& t : list.trees)
          for (std::uint32_t k = t.first; k < t.first + t.count; ++k)
            for (std::uint32_t i = 0; i < list.edges[k].count; ++i)
              (t.upwards ? used_up_ : used_down_)[list.arcs[list.edges[k].first + i]] += t.weight;
        by_free_roots();
      }
      if (enough() || near_enough()) return;
    }
  }

  /// A flow on the matrix costs about 8 steps per word of it.
  [[nodiscard]] bool can_grow() {
    const std::int64_t words = (net_.nodes + 64) / 64;
    if (flows_ < 0) flows_ = effort_ / (8 * net_.nodes * words);
    return flows_ > 2 * std::int64_t{net_.ranks} * net_.ranks;
  }
  [[nodiscard]] bool grown(const pack_network& net, std::span<const std::int64_t> count,
                           std::span<const std::int64_t> feed, tree_list& list, bool together = false) {
    switch_splitter<> splitter(net, count, feed);
    return splitter.run(flows_) && tree_grower<>(splitter.routes(), net.ranks, feed).run(list, flows_, together);
  }
  [[nodiscard]] std::vector<std::uint32_t> everyone() const {
    std::vector<std::uint32_t> all(net_.ranks);
    count_up(all);
    return all;
  }
  [[nodiscard]] std::vector<std::uint32_t> one_of_each_orbit() const {
    return group_.found() ? std::vector<std::uint32_t>{0} : everyone();
  }

  const exact_network& original_;
  pack_network net_;
  std::vector<std::int64_t> weight_;
  pack_kind kind_;
  pack_options options_;
  std::int64_t effort_, flows_ = -1;
  rank_group group_;
  std::vector<std::uint32_t> mirror_;
  std::vector<std::int64_t> used_down_, used_up_;  // loads of earlier trees
  std::vector<std::uint32_t> family_;              // part of each node, where a family of sets gives the limit
  rational limit_;
  packing best_;  // without trees: nothing yet
  bool proved_ = false;
};

/// Whether ranks, weights and options make sense.
template <class = void>
[[nodiscard]] result<void> packable(const exact_network& net, std::span<const std::uint32_t> node_of,
                                    std::span<const std::int64_t> weight, pack_kind kind, const pack_options& options) {
  if (node_of.size() < 2) return fail(errc::invalid_argument, "trees need two ranks at least");
  if (options.most_pieces < 1) return fail(errc::invalid_argument, "trees need a piece of data at least");
  std::vector<bool> taken(net.nodes, false);
  for (std::size_t r = 0; r < node_of.size(); ++r) {
    if (node_of[r] >= net.nodes || taken[node_of[r]])
      return fail(errc::invalid_argument, "rank " + std::to_string(r) + " sits on node " + std::to_string(node_of[r]) +
                                              ", which does not exist or is taken by another rank");
    taken[node_of[r]] = true;
  }
  if (weight.empty()) return {};
  if (kind == pack_kind::spanning) return fail(errc::invalid_argument, "trees with free roots take no weights");
  if (weight.size() != node_of.size())
    return fail(errc::invalid_argument,
                std::to_string(weight.size()) + " weights were given for " + std::to_string(node_of.size()) + " ranks");
  std::int64_t all = 0;
  for (const std::int64_t w : weight) {
    if (w < 0 || w > INT32_MAX)
      return fail(errc::invalid_argument, "a weight of " + std::to_string(w) + " is not one of 0 to 2147483647");
    all += w;
  }
  if (all == 0) return fail(errc::invalid_argument, "some rank needs a weight above 0");
  return {};
}

}  // namespace detail

template <class>
result<packing> pack(const detail::exact_network& net, std::span<const std::uint32_t> node_of,
                     std::span<const std::int64_t> weight, pack_kind kind, const pack_options& options) {
  if (auto fine = detail::packable(net, node_of, weight, kind, options); !fine) return fine.error();
  detail::pack_network reduced = detail::pack_reduction<>(net, node_of).run();
  if (reduced.nodes > 4096)
    return fail(errc::unsupported,
                "trees are packed for up to 4096 nodes that matter, but here are " + std::to_string(reduced.nodes));
  std::vector<std::int64_t> w(weight.begin(), weight.end());
  if (w.empty()) w.assign(node_of.size(), 1);
  return detail::tree_packer<>(net, std::move(reduced), std::move(w), kind, options).run();
}

}}}  // namespace topocoll::v0::plan
