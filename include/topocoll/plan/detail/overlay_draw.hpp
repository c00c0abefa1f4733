// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the parts of a picture of a plan come together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/overlay_host.hpp>
#include <topocoll/plan/detail/overlay_links.hpp>
#include <topocoll/plan/detail/overlay_network.hpp>
#include <topocoll/plan/overlay_svg.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/topo/detail/svg_units.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// One tree of a packed plan.
struct overlay_tree {
  group_view group;
  double share = 0;  ///< of the array
};
/// The heaviest trees, of the stage that hands results out where there is one.
template <class = void>
[[nodiscard]] std::vector<overlay_tree> heaviest_trees(const schedule& plan, std::size_t most) {
  std::vector<overlay_tree> trees;
  const stage* chosen = nullptr;
  for (const stage& s : plan.stages)
    if (!s.parents.empty()) chosen = &s;
  if (chosen == nullptr) return trees;
  for (std::size_t k = 0; k < chosen->group_count(); ++k) {
    const group_view group = chosen->group(k);
    trees.push_back({group, static_cast<double>(group.last() - group.first()) / plan.units});
  }
  seq::sort(trees, [](const overlay_tree& a, const overlay_tree& b) { return a.share > b.share; });
  if (trees.size() > most) trees.resize(most);
  return trees;
}

/// Trees side by side, roots on top; gives the foot.
template <class = void>
double draw_trees(picture<>& c, const std::vector<overlay_tree>& trees, std::size_t of_all, double room, double x,
                  double y) {
  if (trees.empty()) return y;
  y += 22;
  c.text(x, y, 12, hold::start,
         trees.size() == of_all
             ? "Trees"
             : "The " + std::to_string(trees.size()) + " heaviest of " + std::to_string(of_all) + " trees",
         tone::ink, true);
  y += 14;
  double at = x, foot = y, top = y;
  for (std::size_t k = 0; k < trees.size(); ++k) {
    const group_view& group = trees[k].group;
    std::vector<std::uint32_t> depth(group.size(), 0), wide(1, 1);
    std::vector<double> place(group.size(), 0);
    for (std::uint32_t j = 1; j < group.size(); ++j) {
      depth[j] = depth[group.parents[j]] + 1;
      if (depth[j] >= wide.size()) wide.resize(depth[j] + 1, 0);
      ++wide[depth[j]];
    }
    std::uint32_t widest = 1;
    for (const std::uint32_t w : wide) widest = std::max(widest, w);
    const double step = group.size() > 32 ? 19 : 27, radius = group.size() > 32 ? 8 : 10.5;
    const std::string name = "root " + std::to_string(group.members[0].value) + ", " + percent(trees[k].share);
    const double w = std::max(step * widest, topo::detail::text_width(name, 10) + 4) + 14;
    if (at > x && at + w > x + room) {
      at = x;
      top = foot + 18;
    }
    // Children stand in the order of their parents, so that few lines cross.
    std::vector<std::uint32_t> row{0};
    place[0] = at + w / 2;
    c.text(at + w / 2, top + 10, 10, hold::middle, name, tone::faint);
    for (std::uint32_t d = 1; d < wide.size(); ++d) {
      std::vector<std::uint32_t> next;
      for (const std::uint32_t parent : row)
        for (std::uint32_t j = 1; j < group.size(); ++j)
          if (depth[j] == d && group.parents[j] == parent) next.push_back(j);
      for (std::size_t i = 0; i < next.size(); ++i)
        place[next[i]] = at + w / 2 + step * (static_cast<double>(i) - static_cast<double>(next.size() - 1) / 2);
      row = std::move(next);
    }
    const line_style s = style_of(k);
    const auto height = [&](std::uint32_t j) { return top + 28 + 36 * static_cast<double>(depth[j]); };
    for (std::uint32_t j = 1; j < group.size(); ++j)
      c.line(place[group.parents[j]], height(group.parents[j]), place[j], height(j), s.colour, 2, s.dashes);
    for (std::uint32_t j = 0; j < group.size(); ++j) {
      c.disc(place[j], height(j), radius, "#CDE8DC", "#555555", "rank " + std::to_string(group.members[j].value));
      c.boxed_text(place[j], height(j) + 3.4, radius > 9 ? 9.5 : 7.5, hold::middle,
                   std::to_string(group.members[j].value), true);
      foot = std::max(foot, height(j) + radius + 4);
    }
    at += w;
  }
  return foot;
}

/// Who sends to whom, each pair once for each part; parts that move the same are one, under both names.
template <class = void>
void pairs_of(const schedule& plan, const std::vector<overlay_tree>& trees, bytes size,
              std::vector<overlay_pair>& pairs, std::vector<std::string>& parts) {
  const double chunk = static_cast<double>(size.value) / plan.chunks();
  if (!trees.empty()) {
    for (std::size_t k = 0; k < trees.size(); ++k) {
      const group_view& group = trees[k].group;
      parts.push_back("tree with root " + std::to_string(group.members[0].value) + ", " + percent(trees[k].share) +
                      " of the array");
      for (std::uint32_t j = 1; j < group.size(); ++j)
        pairs.push_back({group.members[group.parents[j]].value, group.members[j].value, static_cast<std::uint32_t>(k),
                         whole_bytes(trees[k].share * static_cast<double>(size.value))});
    }
    return;
  }
  std::vector<std::vector<overlay_pair>> by_stage(plan.stages.size());
  for (const traffic_round& r : traffic(plan)) {
    if (r.switched != 0) continue;  // to the switch, as the loads of links show
    for (const transfer& t : r.moves)
      by_stage[r.stage].push_back({std::min(t.from.value, t.to.value), std::max(t.from.value, t.to.value), r.stage,
                                   whole_bytes(static_cast<double>(t.chunks) * r.repeat * chunk)});
  }
  std::vector<std::uint64_t> prints;
  for (std::size_t k = 0; k < by_stage.size(); ++k) {
    seq::sort_by(by_stage[k], [](const overlay_pair& q) { return std::uint64_t{q.from} << 32U | q.to; });
    std::vector<overlay_pair> once;
    std::uint64_t print = 0xcbf29ce484222325U;
    for (const overlay_pair& q : by_stage[k]) {
      if (!once.empty() && once.back().from == q.from && once.back().to == q.to) {
        once.back().amount += q.amount;
        continue;
      }
      print = (print ^ (std::uint64_t{q.from} << 32U | q.to)) * 0x100000001b3U;
      once.push_back(q);
    }
    const stage& s = plan.stages[k];
    const std::string name = s.label.empty() ? std::string(to_string(s.kind)) : s.label;
    const auto known = seq::find(prints, print);
    const auto part = static_cast<std::uint32_t>(known - prints.begin());
    if (known != prints.end()) {
      parts[part] += ", " + name;
      continue;
    }
    prints.push_back(print);
    parts.push_back(name);
    for (overlay_pair& q : once) {
      q.part = part;
      pairs.push_back(q);
    }
  }
}

/// Everything but the cost model.
template <class = void>
[[nodiscard]] std::string draw_overlay(const problem& p, const schedule& made, const simulation& price,
                                       const link_loads<>& loads, const overlay_options& o) {
  const topo::graph& g = *p.graph;
  picture<> c;
  constexpr double x = 16, headline = 900;
  const std::string title = std::string(to_string(p.collective)) + " of " + to_string(p.size) + " among " +
                            plural(p.ranks.size(), "rank") + ": " + label_of(made, made.name);
  std::string figures = "predicted " + to_string(price.time);
  if (price.time.value > 0 && p.size.value > 0 && p.ranks.size() > 1)
    figures += ", busbw " + to_string(p.size / price.time * busbw_factor(p.collective, p.rank_count()));
  if (loads.limit != UINT32_MAX)
    figures += "; busiest: " + link_in_words(g, {loads.limit}) + ", " + about(loads.carried[loads.limit]) + " in " +
               to_string(loads.busiest);
  c.text(x, 28, 16, hold::start, topo::detail::fitted(title, headline, 16, true), tone::ink, true);
  c.text(x, 46, 11, hold::start, topo::detail::fitted(figures, headline, 11), tone::faint);
  double y = overlay_legend(c, x, 68) + 18;

  const topo::detail::svg_units<> units(g);
  std::vector<std::vector<std::uint32_t>> ranks_on(g.node_count());
  for (std::uint32_t r = 0; r < p.ranks.size(); ++r) ranks_on[p.ranks[r].value].push_back(r);
  const std::vector<topo::group>& hosts = units.all_hosts();
  if (hosts.size() > 1 || units.count(1) > 0)
    y = overlay_network<>(loads, units, c).draw(std::max<std::size_t>(o.boxes, 2), o.cables, x, y) + 34;

  // The host with the busiest link, then the first one with ranks that is not like it.
  std::vector<std::size_t> drawn;
  const auto holds = [&](const topo::group& h, node_id v) { return seq::contains(h.nodes, v); };
  const auto has_ranks = [&](const topo::group& h) {
    return seq::any_of(h.nodes, [&](node_id v) { return !ranks_on[v.value].empty(); });
  };
  for (std::size_t h = 0; h < hosts.size() && loads.limit != UINT32_MAX && drawn.empty(); ++h)
    if (has_ranks(hosts[h]) && (holds(hosts[h], g.tail({loads.limit})) || holds(hosts[h], g.head({loads.limit}))))
      drawn.push_back(h);
  for (std::size_t h = 0; h < hosts.size() && drawn.size() < o.hosts; ++h)
    if (has_ranks(hosts[h]) &&
        !seq::any_of(drawn, [&](std::size_t d) { return units.units[d].shape == units.units[h].shape; }))
      drawn.push_back(h);
  const std::vector<overlay_tree> trees = heaviest_trees(made, std::min<std::size_t>(o.trees, line_style_count));
  std::vector<overlay_pair> pairs;
  std::vector<std::string> parts;
  pairs_of(made, trees, p.size, pairs, parts);
  for (const std::size_t h : drawn) {
    const std::string name = (hosts.size() == 1 ? std::string("Host ") : "Inside ") + units.units[h].name;
    y = overlay_host<>(loads, c).draw(hosts[h].nodes, name, ranks_on, pairs, parts, x, y) + 18;
  }
  std::size_t all_trees = 0;
  for (const stage& s : made.stages)
    if (!s.parents.empty()) all_trees = s.group_count();
  y = draw_trees(c, trees, all_trees, std::max(c.width() - x, 640.0), x, y);
  c.reach(0, y);
  std::string told;
  for (const std::string& part : parts) told += (told.empty() ? "Parts: " : "; ") + part;
  return c.finished(title, figures + ". " + told);
}

}  // namespace detail

template <CostModel M>
std::string overlay_svg(const problem& p, const schedule& made, const simulation& price, const M& cost,
                        const overlay_options& options) {
  detail::link_loads<> loads;
  loads.graph = p.graph;
  loads.carried = price.loads;
  loads.carried.resize(p.graph->link_count());
  loads.share.assign(p.graph->link_count(), 0);
  for (std::uint32_t e = 0; e < loads.carried.size(); ++e) {
    const double rate = cost.rate(p.graph->at(link_id{e})).value;
    if (rate <= 0 || loads.carried[e].value == 0) continue;
    loads.share[e] = static_cast<double>(loads.carried[e].value) / rate;
    if (loads.limit == UINT32_MAX || loads.share[e] > loads.share[loads.limit]) loads.limit = e;
  }
  if (loads.limit != UINT32_MAX) {
    loads.busiest = seconds{loads.share[loads.limit]};
    for (double& s : loads.share) s /= loads.busiest.value;
  }
  return detail::draw_overlay(p, made, price, loads, options);
}

}}}  // namespace topocoll::v0::plan
