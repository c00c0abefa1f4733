// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an explanation is put together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/explain_gap.hpp>
#include <topocoll/plan/detail/explain_library.hpp>
#include <topocoll/plan/detail/explain_loads.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/explain.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
[[nodiscard]] std::vector<std::vector<std::uint32_t>> ranks_by_box(const levels& at) {
  std::vector<std::vector<std::uint32_t>> box(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) box[at.box[r]].push_back(r);
  for (auto& members : box) seq::sort_by(members, [&](std::uint32_t r) { return at.rail[r]; });
  return box;
}

/// Boxes in turn from each pod: neighbours of the order are in different pods wherever that is possible.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> scattered_boxes(const levels& at) {
  std::vector<std::uint32_t> pod(at.boxes, 0), turn(at.boxes, 0), next(at.pods, 0), order(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) pod[at.box[r]] = at.pod[r];
  for (std::uint32_t b = 0; b < at.boxes; ++b) {
    order[b] = b;
    turn[b] = next[pod[b]]++;
  }
  seq::sort(order,
            [&](std::uint32_t a, std::uint32_t b) { return turn[a] != turn[b] ? turn[a] < turn[b] : pod[a] < pod[b]; });
  return order;
}
/// Boxes pod after pod.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> packed_boxes(const levels& at) {
  std::vector<std::uint32_t> pod(at.boxes, 0), order(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) pod[at.box[r]] = at.pod[r];
  for (std::uint32_t b = 0; b < at.boxes; ++b) order[b] = b;
  seq::sort_by(order, [&](std::uint32_t b) { return pod[b]; });
  return order;
}

template <class = void>
[[nodiscard]] spine_line spine_line_of(std::string name, const simulation& s) {
  const class_load& up = s.by_class[static_cast<std::size_t>(link_class::leaf_up)];
  const class_load& down = s.by_class[static_cast<std::size_t>(link_class::leaf_down)];
  return {std::move(name), up.total,     up.largest,
          down.total,      down.largest, s.by_class[static_cast<std::size_t>(link_class::nic_out)].largest,
          s.time};
}

template <class = void>
[[nodiscard]] std::string limit_in_words(const topo::graph& g, const std::optional<link_id>& limit) {
  return limit ? link_in_words(g, *limit) : std::string("reduction");
}

/// What the choice alone tells.
template <class = void>
[[nodiscard]] explanation describe_choice(const problem& p, const levels& at, const choice& made) {
  const topo::graph& g = *p.graph;
  const schedule& plan = made.best();
  explanation e;
  e.collective = p.collective;
  e.size = p.size;
  e.machine = g.source();
  e.ranks = p.rank_count();
  e.boxes = at.boxes;
  e.pods = at.pods;
  e.shares = p.shares;
  e.chosen = made.candidates.front().name;
  e.slices = plan.slices;
  e.digest = digest(plan);
  e.limit = made.limit;
  e.gap = made.gap;
  e.price = made.price();
  std::copy(std::begin(e.price.by_class), std::end(e.price.by_class), e.loads.begin());
  e.proved = made.candidates.front().proved;
  e.unproved = made.candidates.front().unproved;
  if (e.price.limit) {
    const link_id busiest = *e.price.limit;
    e.bottleneck = link_in_words(g, busiest) + " carries " + about(e.price.loads[busiest.value]) + " and is busy for " +
                   to_string(e.price.busiest) + ", " + percent(e.price.share) + " of the time";
  } else if (e.price.busiest.value > 0) {
    e.bottleneck =
        "one rank reduces for " + to_string(e.price.busiest) + ", " + percent(e.price.share) + " of the time";
  }
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const stage& s = plan.stages[k];
    const stage_time& t = e.price.stages[k];
    std::size_t members = s.axis ? plan.shape[*s.axis] : 0;
    for (std::size_t group = 0; group < s.group_count(); ++group)
      members = std::max<std::size_t>(members, s.group(group).size());
    const std::size_t groups = s.axis ? plan.ranks / members : s.group_count();
    std::string what = s.label.empty() ? std::string(to_string(s.kind)) : s.label;
    const std::string how(to_string(s.how));
    if (what.find(how) == std::string::npos) what += ", " + how;
    e.stages.push_back({std::move(what), groups, members, t.rounds, t.transfer, t.latency, limit_in_words(g, t.limit)});
  }
  for (std::size_t k = 1; k < made.candidates.size(); ++k) {
    const candidate& c = made.candidates[k];
    e.others.push_back(
        {c.name, c.price && !c.why_not ? std::optional<seconds>{c.price->time} : std::nullopt, c.reason});
  }
  e.price.loads.clear();
  e.price.loads.shrink_to_fit();
  return e;
}

}  // namespace detail

namespace detail {

/// Rounds of `rings` rings among all ranks, each working on its share; still without moves. Empty for other collectives.
template <class = void>
[[nodiscard]] workload ring_rounds(const problem& p, std::size_t rings) {
  workload w;
  const bool both = p.collective == collective_kind::all_reduce;
  if ((!both && p.collective != collective_kind::all_gather && p.collective != collective_kind::reduce_scatter) ||
      p.ranks.size() < 2)
    return w;
  w.chunks = std::uint64_t{p.ranks.size()} * rings;
  w.reduced = {both ? 0.5 : (p.collective == collective_kind::reduce_scatter ? 1.0 : 0.0)};
  traffic_round r;
  r.repeat = (both ? 2 : 1) * (p.rank_count() - 1);
  w.rounds.push_back(std::move(r));
  return w;
}
/// Adds the moves of one ring. They are posted by threads of their own: no further message of a rank.
template <class = void>
void add_ring(workload& w, std::span<const std::uint32_t> order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    w.rounds[0].moves.push_back({{order[i]}, {order[(i + 1) % order.size()]}, 1, 0});
}
template <class = void>
[[nodiscard]] workload one_ring(const problem& p, std::span<const std::uint32_t> order) {
  workload w = ring_rounds(p, 1);
  if (!w.rounds.empty()) add_ring(w, order);
  return w;
}
/// A step through n ranks that visits all of them and keeps neighbours of the ring far apart: near n by the golden ratio.
template <class = void>
[[nodiscard]] std::uint32_t scattering_stride(std::uint32_t n) {
  auto stride = static_cast<std::uint32_t>(n * 0.618);
  while (stride > 1 && common_divisor(n, stride) != 1) --stride;
  return stride == 0 ? 1 : stride;
}

}  // namespace detail

template <class>
workload ring_workload(const problem& p, const levels& at, std::span<const std::uint32_t> boxes) {
  const auto members = detail::ranks_by_box(at);
  std::size_t rings = members.empty() ? 1 : members[0].size();
  for (const auto& m : members) rings = m.size() == members[0].size() ? rings : 1;
  workload w = detail::ring_rounds(p, rings);
  if (w.rounds.empty()) return w;
  for (std::size_t c = 0; c < rings; ++c) {
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const auto& m = members[boxes[i]];
      for (std::size_t j = 0; j < m.size(); ++j)
        order.push_back(i % 2 == 0 ? m[(c + j) % m.size()] : m[(c + 2 * m.size() - 1 - j) % m.size()]);
    }
    detail::add_ring(w, order);
  }
  return w;
}

template <CostModel M>
result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made, size_map map,
                            const explain_options& options) {
  const auto at = levels_of(p);
  if (!at) return at.error();
  explanation e = detail::describe_choice(p, *at, made);
  e.sizes = std::move(map.ranges);
  e.curves = std::move(map.curves);
  const bool compared = p.ranks.size() <= options.largest_compared;
  const auto rate = [&](const topo::link& l) { return prices.cost().rate(l); };
  detail::explain_gap(p, made, rate, e);
  detail::explain_libraries(p, options.constants, e);
  detail::explain_carriers(p, *at, made, compared, rate, e);
  if (compared)
    if (auto nominal = lower_bound(p, alpha_beta::ideal(), options.nominal); nominal) e.nominal = std::move(*nominal);
  if (!compared)
    e.remarks.push_back("nominal rates, rails and rings are compared for at most " +
                        std::to_string(options.largest_compared) + " ranks");
  const class_load& up = made.price().by_class[static_cast<std::size_t>(link_class::leaf_up)];
  if (up.links == 0 || !compared) return e;
  e.spine.push_back(detail::spine_line_of("this plan", made.price()));
  if (!p.shares.empty()) {
    e.remarks.push_back("rings are not compared: they are known for shards of equal size only");
    return e;
  }
  const auto compare = [&](const char* name, const workload& w) {
    if (w.rounds.empty()) return;
    if (const auto s = prices.run(p, w)) e.spine.push_back(detail::spine_line_of(name, *s));
  };
  std::vector<std::uint32_t> by_rank(at->boxes), in_order(p.ranks.size()), spread(p.ranks.size());
  for (std::uint32_t b = 0; b < at->boxes; ++b) by_rank[b] = b;
  const auto packed = detail::packed_boxes(*at), scattered = detail::scattered_boxes(*at);
  compare(by_rank == packed ? "rings in rank order (pod by pod)" : "rings in rank order",
          ring_workload(p, *at, by_rank));
  if (by_rank != packed) compare("rings pod by pod", ring_workload(p, *at, packed));
  if (by_rank != scattered && at->pods > 1)
    compare("rings in scattered order (hosts in turn from each pod)", ring_workload(p, *at, scattered));
  for (std::uint32_t r = 0; r < in_order.size(); ++r) in_order[r] = r;
  compare("one ring in rank order", detail::one_ring(p, in_order));
  const std::uint32_t stride = detail::scattering_stride(p.rank_count());
  for (std::uint32_t r = 0; r < spread.size(); ++r)
    spread[r] = static_cast<std::uint32_t>(std::uint64_t{r} * stride % p.ranks.size());
  compare("one ring in scattered rank order", detail::one_ring(p, spread));
  return e;
}

template <CostModel M>
result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made, std::span<const selection> map,
                            const explain_options& options) {
  size_map ranges;
  for (const selection& s : map) {
    if (ranges.ranges.empty() || ranges.ranges.back().name != s.name)
      ranges.ranges.push_back({s.size, s.size, s.name, s.time, s.time, s.bound_time, s.bound_time});
    ranges.ranges.back().last = s.size;
    ranges.ranges.back().last_time = s.time;
    ranges.ranges.back().last_bound = s.bound_time;
  }
  return explain(prices, p, made, std::move(ranges), options);
}

}}}  // namespace topocoll::v0::plan
