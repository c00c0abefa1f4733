// SPDX-License-Identifier: Apache-2.0
#pragma once
// From packed trees to a schedule with its ways.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/schedule_flat.hpp>
#include <topocoll/plan/pack.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Three significant digits, rounded down: rates are no better known, and trees need few whole units.
template <class = void>
[[nodiscard]] double three_digits(double rate) {
  if (!(rate >= 1)) return 0;
  double scale = 1;
  while (rate / scale >= 1000) scale *= 10;
  return static_cast<double>(static_cast<std::int64_t>(rate / scale * (1 + 1e-12))) * scale;
}

/// One plan in the making.
template <class = void>
class packed_build {
 public:
  struct limits {
    std::uint32_t most_depth;
    std::uint64_t effort;
  };
  packed_build(const problem& q, const alpha_beta& cost, limits how) : q_(q), cost_(cost), how_(how) {}

  [[nodiscard]] result<schedule> run() && {
    if (q_.graph == nullptr) return fail(errc::invalid_argument, "trees cannot be packed without a graph");
    if (q_.collective == collective_kind::all_to_all) return fail(errc::unsupported, "all_to_all is not made of trees");
    if (q_.collective == collective_kind::gather || q_.collective == collective_kind::scatter)
      return fail(errc::unsupported, "gather and scatter are not made of trees");
    const std::uint32_t n = q_.rank_count();
    plan_.collective = q_.collective;
    plan_.ranks = n;
    plan_.root = rooted(q_.collective) ? q_.root : rank_id{0};
    if (n == 1) return one_rank();
    if (auto fits = count_rates(); !fits) return fits.error();
    const bool spanning = q_.collective == collective_kind::all_reduce;
    const bool upwards = q_.collective == collective_kind::reduce_scatter || q_.collective == collective_kind::reduce;
    std::vector<std::int64_t> weight;
    if (rooted(q_.collective)) {
      weight.assign(n, 0);
      if (q_.root.value >= n) return fail(errc::invalid_argument, "the root is not one of the ranks");
      weight[q_.root.value] = 1;
    }
    pack_options options;
    options.most_depth = how_.most_depth;
    options.effort = how_.effort;
    options.most_pieces = spanning || rooted(q_.collective) ? 8192 : std::clamp<std::int64_t>(65536 / n, 64, 4096);
    const auto trees = pack(upwards ? reversed(net_) : net_, node_of_, weight,
                            spanning ? pack_kind::spanning : pack_kind::gather, options);
    if (!trees) return trees.error();
    plan_.units = static_cast<std::uint32_t>(trees->weight_per_rank) * (sharded(q_.collective) ? n : 1);
    if (spanning)
      add_both_ways(*trees);
    else
      add_one_way(*trees, upwards);
    if (auto fits = validate(plan_); !fits) return fits.error();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] result<schedule> one_rank() {
    plan_.units = 1;
    return std::move(plan_);
  }

  /// The links as arcs with whole capacities, and which link each arc is.
  [[nodiscard]] result<void> count_rates() {
    const topo::graph& g = *q_.graph;
    const auto rate = [&](link_id e) { return bytes_per_second{three_digits(cost_.rate(g.at(e)).value)}; };
    auto counted = count_capacities(g, rate);
    if (!counted) return counted.error();
    net_ = std::move(*counted);
    for (std::uint32_t v = 0; v < g.node_count(); ++v)
      for (const link_id e : g.out_links({v}))
        if (rate(e).value > 0) link_of_.push_back(e);
    if (link_of_.size() != net_.arcs.size()) return fail(errc::bug, "links and arcs of a graph do not correspond");
    std::vector<bool> taken(g.node_count(), false);
    for (const node_id v : q_.ranks) {
      if (v.value >= g.node_count()) return fail(errc::invalid_argument, "a rank is not on a node of the graph");
      if (taken[v.value]) return fail(errc::unsupported, "ranks that share a device cannot be told apart by trees");
      taken[v.value] = true;
      node_of_.push_back(v.value);
    }
    return {};
  }

  /// Number of the way along some arcs, which are in the other order when they were found against the links.
  [[nodiscard]] std::uint32_t way_of_arcs(std::span<const std::uint32_t> arcs, bool against) {
    way w;
    for (const std::uint32_t a : arcs) w.links.push_back(link_of_[a]);
    if (against) std::reverse(w.links.begin(), w.links.end());
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const link_id e : w.links) hash = (hash ^ e.value) * 0x100000001b3U;
    for (const auto& [key, number] : known_ways_)
      if (key == hash && plan_.ways[number - 1] == w) return number;
    plan_.ways.push_back(std::move(w));
    known_ways_.push_back({hash, static_cast<std::uint32_t>(plan_.ways.size())});
    return known_ways_.back().second;
  }

  /// Adds a tree to a stage as the carrier of units `lo` to `hi - 1`.
  void add(stage& st, const packing& all, const packed_tree& t, std::uint32_t lo, bool up, bool against) {
    const std::uint32_t n = plan_.ranks;
    std::vector<std::uint32_t> place(n, 0);
    std::vector<rank_id> members{{t.root}};
    std::vector<std::uint32_t> parents{0}, ways{0};
    for (const packed_edge& e : std::span(all.edges).subspan(t.first_edge, t.edge_count)) {
      place[e.to] = static_cast<std::uint32_t>(members.size());
      members.push_back({e.to});
      parents.push_back(place[e.from]);
      // Trees against the links were found from the root down, but are used from the leaves up.
      const auto arcs = std::span(all.arcs);
      ways.push_back(up && !against ? way_of_arcs(arcs.subspan(e.first_back, e.back_count), false)
                                    : way_of_arcs(arcs.subspan(e.first_arc, e.arc_count), against));
    }
    st.add_tree(members, parents, lo, lo + static_cast<std::uint32_t>(t.weight));
    std::vector<std::uint32_t>& list = up ? st.ways_up : st.ways_down;
    list.insert(list.end(), ways.begin(), ways.end());
  }

  [[nodiscard]] stage empty_stage(stage_kind kind, std::size_t trees) const {
    stage st;
    st.kind = kind;
    st.how = algorithm::packed;
    st.label = std::string(to_string(kind)) + " along " + std::to_string(trees) + (trees == 1 ? " tree" : " trees");
    return st;
  }

  void add_one_way(const packing& all, bool up) {
    stage st = empty_stage(up ? stage_kind::reduce : stage_kind::broadcast, all.trees.size());
    const auto per_root = static_cast<std::uint32_t>(all.weight_per_rank);
    std::vector<std::uint32_t> next(plan_.ranks, 0);  // first unit of a root that no tree has taken
    if (sharded(q_.collective))
      for (std::uint32_t r = 0; r < plan_.ranks; ++r) next[r] = r * per_root;
    for (const packed_tree& t : all.trees) {
      add(st, all, t, next[t.root], up, up);
      next[t.root] += static_cast<std::uint32_t>(t.weight);
    }
    plan_.stages.push_back(std::move(st));
  }

  /// Every root has an interval; trees that are used both ways come first in it, so that up and down agree.
  void add_both_ways(const packing& all) {
    std::vector<std::int64_t> width(plan_.ranks, 0);
    std::size_t both = 0, up_only = 0, down_only = 0;
    for (const packed_tree& t : all.trees) {
      if (t.use != tree_use::down) width[t.root] += t.weight;
      both += t.use == tree_use::both ? 1 : 0;
      up_only += t.use == tree_use::up ? 1 : 0;
      down_only += t.use == tree_use::down ? 1 : 0;
    }
    std::vector<std::uint32_t> up_at(plan_.ranks, 0);
    std::uint32_t at = 0;
    for (std::uint32_t r = 0; r < plan_.ranks; ++r) {
      up_at[r] = at;
      at += static_cast<std::uint32_t>(width[r]);
    }
    std::vector<std::uint32_t> down_at = up_at;
    stage up = empty_stage(stage_kind::reduce, both + up_only),
          down = empty_stage(stage_kind::broadcast, both + down_only);
    for (const bool shared : {true, false})
      for (const packed_tree& t : all.trees) {
        if ((t.use == tree_use::both) != shared) continue;
        if (t.use != tree_use::down) {
          add(up, all, t, up_at[t.root], true, false);
          up_at[t.root] += static_cast<std::uint32_t>(t.weight);
        }
        if (t.use != tree_use::up) {
          add(down, all, t, down_at[t.root], false, false);
          down_at[t.root] += static_cast<std::uint32_t>(t.weight);
        }
      }
    plan_.stages.push_back(std::move(up));
    plan_.stages.push_back(std::move(down));
  }

  const problem& q_;
  const alpha_beta& cost_;
  limits how_;
  exact_network net_;
  std::vector<link_id> link_of_;  ///< per arc
  std::vector<std::uint32_t> node_of_;
  schedule plan_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> known_ways_;
};

}}}}  // namespace topocoll::v0::plan::detail
