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
#include <topocoll/plan/detail/gather_paths.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/schedule_flat.hpp>
#include <topocoll/plan/pack.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Three significant digits, rounded down: rates are no better known, and trees need few whole units. Whole twelfths of GB/s,
/// as descriptions and data sheets have them, stay as they are.
template <class = void>
[[nodiscard]] double three_digits(double rate) {
  if (!(rate >= 1)) return 0;
  const double twelfths = rate * 12 / 1e9;
  if (twelfths < 1e6) {
    const auto whole = static_cast<double>(static_cast<std::int64_t>(twelfths + 0.5));
    const double off = twelfths - whole;
    if (whole >= 1 && off < 1e-9 && off > -1e-9) return rate;
  }
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
    if (auto fits = check_shares(q_); !fits) return fits.error();
    if (q_.collective == collective_kind::all_to_all) return fail(errc::unsupported, "all_to_all is not made of trees");
    const std::uint32_t n = q_.rank_count();
    plan_.collective = q_.collective;
    plan_.ranks = n;
    plan_.root = rooted(q_.collective) ? q_.root : rank_id{0};
    if (n == 1) return one_rank();
    if (auto fits = count_rates(); !fits) return fits.error();
    if (rooted(q_.collective) && q_.root.value >= n)
      return fail(errc::invalid_argument, "the root is not one of the ranks");
    if (rooted(q_.collective) && sharded(q_.collective)) return along_paths();
    const bool spanning = q_.collective == collective_kind::all_reduce;
    const bool upwards = q_.collective == collective_kind::reduce_scatter || q_.collective == collective_kind::reduce;
    auto weight = weights();
    if (!weight) return weight.error();
    if (rooted(q_.collective)) {
      weight->assign(n, 0);
      (*weight)[q_.root.value] = 1;
    }
    if (spanning) weight->clear();  // roots are free
    pack_options options;
    options.most_depth = how_.most_depth;
    options.effort = how_.effort;
    options.most_pieces = spanning || rooted(q_.collective) ? 8192 : std::clamp<std::int64_t>(65536 / n, 64, 4096);
    const auto trees = pack(upwards ? reversed(net_) : net_, node_of_, *weight,
                            spanning ? pack_kind::spanning : pack_kind::gather, options);
    if (!trees) return trees.error();
    plan_.units = static_cast<std::uint32_t>(trees->weight_per_rank);
    if (spanning)
      add_both_ways(*trees);
    else if (sharded(q_.collective))
      add_shards(*trees, upwards);
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

  /// Number of the way along some arcs, counted from 1, which are in the other order when they were found against the links.
  [[nodiscard]] std::uint32_t way_of_arcs(std::span<const std::uint32_t> arcs, bool against) {
    way w;
    for (const std::uint32_t a : arcs) w.links.push_back(link_of_[a]);
    if (against) std::reverse(w.links.begin(), w.links.end());
    std::size_t at = slot_of(w);
    if (way_at_[at] != 0) return way_at_[at];
    plan_.ways.push_back(std::move(w));
    const auto number = static_cast<std::uint32_t>(plan_.ways.size());
    way_at_[at] = number;
    if (2 * plan_.ways.size() >= way_at_.size()) {
      way_at_.assign(4 * way_at_.size(), 0);
      for (std::uint32_t k = 1; k <= number; ++k) way_at_[slot_of(plan_.ways[k - 1])] = k;
    }
    return number;
  }
  /// Where the number of a way stands in `way_at_`, or belongs. Open addressing, at most half full: O(links of the way).
  [[nodiscard]] std::size_t slot_of(const way& w) const {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, over whole numbers of links
    for (const link_id e : w.links) hash = (hash ^ e.value) * 0x100000001b3U;
    hash ^= hash >> 32U;  // a product's low bits know nothing of its high ones
    const std::size_t last = way_at_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash) & last;
    while (way_at_[at] != 0 && !(plan_.ways[way_at_[at] - 1] == w)) at = (at + 1) & last;
    return at;
  }

  /// Shares without their common divisor; all 1 where shards are equal.
  [[nodiscard]] result<std::vector<std::int64_t>> weights() const {
    std::vector<std::int64_t> weight(plan_.ranks, 1);
    std::uint64_t common = 0;
    for (std::uint64_t s : q_.shares)
      while (s != 0) common = std::exchange(s, common % s);
    for (std::size_t r = 0; r < q_.shares.size(); ++r) {
      if (q_.shares[r] / common > (std::uint64_t{1} << 40U))
        return fail(errc::unsupported, "shares that differ by a factor of a million million are not planned for");
      weight[r] = static_cast<std::int64_t>(q_.shares[r] / common);
    }
    return weight;
  }

  /// Adds a tree to a stage as the carrier of units `lo` to `hi - 1`.
  void add(stage& st, const packing& all, const packed_tree& t, std::uint32_t lo, std::uint32_t hi, bool up,
           bool against) {
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
    st.add_tree(members, parents, lo, hi);
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
    std::uint32_t next = 0;  // first unit that no tree has taken
    for (const packed_tree& t : all.trees) {
      add(st, all, t, next, next + static_cast<std::uint32_t>(t.weight), up, up);
      next += static_cast<std::uint32_t>(t.weight);
    }
    plan_.stages.push_back(std::move(st));
  }

  /// The same for trees from, or to, every rank, each with its part of that rank's shard.
  void add_shards(const packing& all, bool up) {
    stage st = empty_stage(up ? stage_kind::reduce : stage_kind::broadcast, all.trees.size());
    shard_cutter cut(plan_.ranks);
    for (const packed_tree& t : all.trees) cut.expect(t.root, t.weight);
    cut.choose(plan_);
    for (const packed_tree& t : all.trees)
      if (const auto [lo, hi] = cut.next(t.root, t.weight); lo < hi) add(st, all, t, lo, hi, up, up);
    // A rank whose shard is empty has no trees, but programs are right whatever the shares turn out to be.
    for (std::uint32_t r = 0; r < plan_.ranks; ++r)
      if (cut.has_nothing(r)) add_star(st, r, cut.first(r), cut.first(r + 1), up);
    plan_.stages.push_back(std::move(st));
  }

  /// A tree of one level that leaves the way to the network.
  void add_star(stage& st, std::uint32_t root, std::uint32_t lo, std::uint32_t hi, bool up) const {
    std::vector<rank_id> members{{root}};
    for (std::uint32_t r = 0; r < plan_.ranks; ++r)
      if (r != root) members.push_back({r});
    st.add_tree(members, std::vector<std::uint32_t>(members.size(), 0), lo, hi);
    (up ? st.ways_up : st.ways_down).insert((up ? st.ways_up : st.ways_down).end(), members.size(), 0);
  }

  /// Cuts shards into units such that every tree or path has its part of one: exactly where all shards have as many parts
  /// of equal weight and these are not too many, to within one unit otherwise.
  class shard_cutter {
   public:
    explicit shard_cutter(std::uint32_t ranks) : total_(ranks, 0), before_(ranks, 0) {}

    void expect(std::uint32_t rank, std::int64_t weight) { total_[rank] += weight; }
    void choose(schedule& plan) {
      const auto ranks = static_cast<std::uint32_t>(total_.size());
      const std::int64_t most = std::clamp<std::int64_t>(65536 / ranks, 64, 4096);
      units_ = 1;  // least common multiple
      for (const std::int64_t t : total_)
        if (t != 0) units_ = std::min(most + 1, units_ / common_divisor(units_, t) * std::min(t, most + 1));
      if (units_ > most) units_ = most;
      plan.units = static_cast<std::uint32_t>(units_) * ranks;
    }
    [[nodiscard]] std::uint32_t first(std::uint32_t rank) const { return rank * static_cast<std::uint32_t>(units_); }
    [[nodiscard]] bool has_nothing(std::uint32_t rank) const { return total_[rank] == 0; }
    /// Units of the next tree or path of a rank, `lo` to `hi - 1`.
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> next(std::uint32_t rank, std::int64_t weight) {
      const auto at = [&](std::int64_t sum) {
        return first(rank) + static_cast<std::uint32_t>(int128{units_} * sum / total_[rank]);
      };
      const std::uint32_t lo = at(before_[rank]);
      before_[rank] += weight;
      return {lo, at(before_[rank])};
    }

   private:
    std::vector<std::int64_t> total_, before_;
    std::int64_t units_ = 1;
  };

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
          add(up, all, t, up_at[t.root], up_at[t.root] + static_cast<std::uint32_t>(t.weight), true, false);
          up_at[t.root] += static_cast<std::uint32_t>(t.weight);
        }
        if (t.use != tree_use::up) {
          add(down, all, t, down_at[t.root], down_at[t.root] + static_cast<std::uint32_t>(t.weight), false, false);
          down_at[t.root] += static_cast<std::uint32_t>(t.weight);
        }
      }
    plan_.stages.push_back(std::move(up));
    plan_.stages.push_back(std::move(down));
  }

  // ---- gather and scatter: nothing is copied or summed on the way, so trees are paths

  [[nodiscard]] result<schedule> along_paths() {
    const std::uint32_t n = plan_.ranks;
    const bool outward = q_.collective == collective_kind::scatter;
    if (how_.most_depth != 0)
      return fail(errc::unsupported, "paths of gather and scatter are as long as the flow makes them");
    const auto weight = weights();
    if (!weight) return weight.error();
    const exact_network net = outward ? reversed(net_) : net_;
    const auto paths = gather_flow(net, node_of_, *weight, q_.root.value).run();
    if (!paths) return paths.error();
    shard_cutter cut(n);
    for (const gather_path& p : *paths) cut.expect(p.rank, p.weight);
    cut.choose(plan_);
    stage st = empty_stage(stage_kind::broadcast, paths->size());
    st.label = std::string(to_string(q_.collective)) + " along " + std::to_string(paths->size()) +
               (paths->size() == 1 ? " path" : " paths");
    for (const gather_path& p : *paths)
      if (const auto [lo, hi] = cut.next(p.rank, p.weight); lo < hi) add_path(st, net, p, lo, hi, outward);
    for (std::uint32_t r = 0; r < n; ++r)
      if (r != q_.root.value && cut.has_nothing(r)) {  // an empty shard: whoever has one takes the way of the network
        st.add_tree(std::vector<rank_id>{outward ? q_.root : rank_id{r}, outward ? rank_id{r} : q_.root},
                    std::vector<std::uint32_t>{0, 0}, cut.first(r), cut.first(r + 1));
        st.ways_down.insert(st.ways_down.end(), 2, 0);
      }
    plan_.stages.push_back(std::move(st));
    if (auto fits = validate(plan_); !fits) return fits.error();
    return std::move(plan_);
  }

  /// A path as a tree: its rank, the ranks on the way, which pass on, and the root; the other way round in a scatter.
  void add_path(stage& st, const exact_network& net, const gather_path& p, std::uint32_t lo, std::uint32_t hi,
                bool outward) {
    std::vector<rank_id> members{{p.rank}};
    std::vector<std::uint32_t> ways;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < p.arcs.size(); ++i) {
      const auto at = seq::find(node_of_, net.arcs[p.arcs[i]].to);
      if (at == node_of_.end()) continue;
      members.push_back({static_cast<std::uint32_t>(at - node_of_.begin())});
      ways.push_back(way_of_arcs(std::span(p.arcs).subspan(begin, i + 1 - begin), outward));
      begin = i + 1;
    }
    if (outward) {
      std::reverse(members.begin(), members.end());
      std::reverse(ways.begin(), ways.end());
    }
    std::vector<std::uint32_t> parents{0};
    for (std::uint32_t j = 1; j < members.size(); ++j) parents.push_back(j - 1);
    st.add_tree(members, parents, lo, hi);
    st.ways_down.push_back(0);
    st.ways_down.insert(st.ways_down.end(), ways.begin(), ways.end());
  }

  const problem& q_;
  const alpha_beta& cost_;
  limits how_;
  exact_network net_;
  std::vector<link_id> link_of_;  ///< per arc
  std::vector<std::uint32_t> node_of_;
  schedule plan_;
  std::vector<std::uint32_t> way_at_ = std::vector<std::uint32_t>(64, 0);  ///< numbers of ways by hash; 0: free
};

}}}}  // namespace topocoll::v0::plan::detail
