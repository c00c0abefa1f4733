// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stages, loads and gap of a plan on a levelled cluster.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/levelled_plan.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// One plan in the making.
template <class = void>
class levelled_build {
 public:
  levelled_build(const levelled_cluster& c, collective_kind collective, const levelled_options& options)
      : c_(c), options_(options) {
    made_.plan.collective = collective;
  }

  [[nodiscard]] result<levelled_plan> run() && {
    const collective_kind collective = made_.plan.collective;
    if (collective != collective_kind::all_reduce && collective != collective_kind::all_gather &&
        collective != collective_kind::reduce_scatter)
      return fail(errc::unsupported, "a levelled plan of " + std::string(to_string(collective)) + " does not exist",
                  "plan on a graph, or take all_reduce, all_gather or reduce_scatter");
    if (!c_.exceptions.empty())
      return fail(errc::unsupported,
                  "a levelled plan knows no exceptions, but the cluster has " + std::to_string(c_.exceptions.size()),
                  "plan on a graph, with the planner hierarchical");
    auto limit = lower_bound(c_, collective);
    if (!limit) return limit.error();
    made_.limit = std::move(*limit);
    if (auto fits = lay_out(); !fits) return fits.error();
    add_stages();
    add_up();
    return std::move(made_);
  }

 private:
  struct axis {
    std::uint32_t size = 1;
    bool inside = false;  ///< among the GPUs of a box
    bool pairs = false;   ///< every two have a connection of their own: only all of them at once use it fully
    std::string where;
    std::string label;
  };

  [[nodiscard]] result<void> lay_out() {
    // From the inside out; levels of one unit are none.
    const auto put = [&](std::uint32_t size, bool inside, bool pairs, std::string where) {
      if (size > 1) axes_.push_back({size, inside, pairs, std::move(where), {}});
    };
    put(c_.gpus, true, c_.inside == joint::in_pairs, "in the box");
    put(c_.boxes, false, false, "between the boxes of a pod");
    for (std::size_t t = c_.tiers.size(); t-- > 0;)
      put(c_.tiers[t].units, false, c_.tiers[t].how == joint::in_pairs, "in tier " + std::to_string(t));
    std::uint64_t ranks = 1;
    for (const axis& a : axes_) ranks = std::min<std::uint64_t>(ranks * a.size, UINT32_MAX);
    schedule& p = made_.plan;
    p.slices = std::clamp(options_.slices, 1U, max_slices);
    if (ranks * p.slices > 0x7fffffffU)
      return fail(errc::unsupported, "a cluster of " + std::to_string(ranks) + " GPUs in " + std::to_string(p.slices) +
                                         " slices has more chunks than a plan can count");
    p.ranks = p.units = static_cast<std::uint32_t>(ranks);
    p.name = "levelled";
    for (const axis& a : axes_) p.shape.push_back(a.size);
    if (axes_.size() < 2) return {};
    // Ranks count GPUs fastest, then boxes, then tiers; positions count the outermost fastest.
    p.order.resize(ranks);
    std::vector<std::uint32_t> at(axes_.size(), 0), stride(axes_.size(), 1);
    for (std::size_t a = 1; a < axes_.size(); ++a) stride[a] = stride[a - 1] * axes_[a - 1].size;
    std::uint32_t rank = 0;
    for (std::uint32_t v = 0; v < ranks; ++v) {
      p.order[v] = rank_id{rank};
      for (std::size_t a = axes_.size(); a-- > 0;) {
        rank += stride[a];
        if (++at[a] < axes_[a].size) break;
        rank -= stride[a] * axes_[a].size;
        at[a] = 0;
      }
    }
    return {};
  }

  /// Part of the array that a rank sends in one pass along an axis.
  [[nodiscard]] rational sent_along(std::size_t a) const {
    std::int64_t parts = 1;
    for (std::size_t i = 0; i <= a; ++i) parts *= axes_[i].size;
    return {std::int64_t{axes_[a].size} - 1, parts};
  }

  /// Equal loads: a ring at any size, halving and doubling among powers of two, all at once with full memory for what
  /// arrives. The one with the least latency is taken.
  [[nodiscard]] algorithm algorithm_for(std::size_t a) const {
    const axis& x = axes_[a];
    if (x.pairs) return algorithm::direct;
    const double hop = (x.inside ? options_.inside : options_.outside).value;
    const double part = static_cast<double>(options_.size.value) * sent_along(a).to_double() / (x.size - 1);
    const double ring = hop * (x.size - 1), direct = hop + options_.post.value * (x.size - 2);
    const double halving = std::has_single_bit(x.size) ? hop * std::bit_width(x.size - 1) : 1e300;
    // All at once needs a place for every message; and switches see bursts from all sides when messages are large.
    constexpr double one_mebibyte = 1 << 20U;
    if (direct <= halving && direct < ring && part <= one_mebibyte) return algorithm::direct;
    return halving < ring ? algorithm::recursive : algorithm::ring;
  }

  void add(stage_kind kind, std::size_t a) {
    const algorithm how = algorithm_for(a);
    stage st;
    st.kind = kind;
    st.how = how;
    st.axis = static_cast<std::uint32_t>(a);
    st.label = std::string(to_string(kind)) + ' ' + axes_[a].where;
    made_.plan.stages.push_back(std::move(st));
    const axis& x = axes_[a];
    const std::uint32_t passes = kind == stage_kind::all_reduce ? 2 : 1;
    const std::uint32_t rounds =
        passes * (how == algorithm::ring        ? x.size - 1
                  : how == algorithm::recursive ? static_cast<std::uint32_t>(std::bit_width(x.size - 1))
                                                : 1);
    made_.rounds += rounds;
    made_.latency += rounds * (x.inside ? options_.inside : options_.outside);
    if (how == algorithm::direct) made_.latency += (passes * (x.size - 2)) * options_.post;
  }

  void add_stages() {
    const collective_kind c = made_.plan.collective;
    const std::size_t n = axes_.size(), top = n == 0 ? 0 : n - 1;
    const bool both = c == collective_kind::all_reduce;
    if (c != collective_kind::all_gather)
      for (std::size_t a = 0; a < (both ? top : n); ++a) add(stage_kind::reduce_scatter, a);
    if (both && n > 0) add(stage_kind::all_reduce, top);
    if (c != collective_kind::reduce_scatter)
      for (std::size_t a = both ? top : n; a-- > 0;) add(stage_kind::all_gather, a);
  }

  void put_load(std::string what, rational share, const two_way& rate) {
    level_load l;
    l.what = std::move(what);
    l.share = made_.plan.collective == collective_kind::all_reduce ? share * rational{2} : share;
    l.rate = std::min(rate.up, rate.down);
    const rational exact = as_fraction(l.rate.value);
    l.seconds_per_byte = l.share / exact;
    made_.loads.push_back(std::move(l));
  }

  void add_up() {
    // What a rank sends along each axis, from the outside in; a sum of those from some axis outwards passes its uplinks.
    rational beyond{0};  // along the axes of the tiers so far
    std::size_t a = axes_.size();
    std::uint64_t ranks = made_.plan.ranks;
    for (std::size_t t = 0; t < c_.tiers.size(); ++t) {
      const fabric_tier& tier = c_.tiers[t];
      // The unit below this tier has a switch for each rail if neither it nor anything below has joined them.
      bool unit_apart = c_.rails;
      for (std::size_t below = t + 1; below < c_.tiers.size(); ++below)
        unit_apart = unit_apart && !c_.tiers[below].joins_rails;
      if (tier.units > 1) {
        beyond = beyond + sent_along(--a);
        ranks /= tier.units;
        const auto sharers = static_cast<std::int64_t>(unit_apart ? ranks / c_.gpus : ranks);
        const bool pairs = tier.how == joint::in_pairs;
        put_load("uplink of tier " + std::to_string(t),
                 beyond * (pairs ? rational{sharers, std::int64_t{tier.units} - 1} : rational{sharers}), tier.uplink);
      }
    }
    if (c_.boxes > 1) beyond = beyond + sent_along(--a);
    if (beyond > rational{0}) put_load("NIC", beyond, c_.nic);
    if (c_.gpus > 1) {
      const bool pairs = c_.inside == joint::in_pairs;
      const rational sent = sent_along(0);
      put_load(pairs ? "NVLink between two GPUs" : "NVLink of a GPU",
               pairs ? sent / rational{std::int64_t{c_.gpus} - 1} : sent,
               pairs ? two_way::both(c_.nvlink.up) : c_.nvlink);
    }
    std::reverse(made_.loads.begin(), made_.loads.end());
    double worst = 0;
    for (std::size_t i = 0; i < made_.loads.size(); ++i) {
      const level_load& l = made_.loads[i];
      const double time = l.share.to_double() / l.rate.value;
      if (time > worst) {
        worst = time;
        made_.busiest = i;
      }
    }
    if (made_.limit.parts == 0) return;
    const double least = made_.limit.share / made_.limit.crossing.value;
    made_.gap = worst / least - 1;
    made_.exact_gap = made_.loads[made_.busiest].seconds_per_byte / made_.limit.seconds_per_byte - rational{1};
    if (made_.exact_gap.valid()) made_.gap = made_.exact_gap.to_double();
  }

  const levelled_cluster& c_;
  levelled_options options_;
  std::vector<axis> axes_;
  levelled_plan made_;
};

}  // namespace detail

template <class>
result<levelled_plan> plan_on(const levelled_cluster& cluster, collective_kind collective,
                              const levelled_options& options) {
  return detail::levelled_build(cluster, collective, options).run();
}

}}}  // namespace topocoll::v0::plan
