// SPDX-License-Identifier: Apache-2.0
#pragma once
// How two plans are laid side by side.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/replan.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Everything that a group does, in numbers that compare: kind, algorithm, part of the array in 2^-32ths, members, tree.
struct group_print {
  std::uint64_t hash = 0;
  std::size_t stage = 0, group = 0;
};

template <class = void>
[[nodiscard]] std::vector<group_print> prints_of(const schedule& plan) {
  std::vector<group_print> all;
  const auto share = [&](std::uint32_t unit) {
    return static_cast<std::uint32_t>((std::uint64_t{unit} << 31U) / plan.units);
  };
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const stage& st = plan.stages[s];
    for (std::size_t g = 0; g < st.group_count(); ++g) {
      const group_view group = st.group(g);
      fnv1a hash;
      hash.add(static_cast<std::uint32_t>(st.kind));
      hash.add(static_cast<std::uint32_t>(st.how));
      hash.add(group.members);
      hash.add(group.parents);
      for (const std::uint32_t b : group.bounds) hash.add(share(b));
      all.push_back({hash.value(), s, g});
    }
  }
  seq::sort_by(all, [](const group_print& p) { return p.hash; });
  return all;
}

/// Why links do not follow one another from one node to the other; empty when they do.
template <class = void>
[[nodiscard]] std::string why_not_there(const topo::graph& g, const way& w, node_id from, node_id to) {
  for (const link_id e : w.links) {
    if (e.value >= g.link_count()) return "a link of it is not in the graph";
    if (g.tail(e) != from) return "link " + std::to_string(e.value) + " does not start at " + name_of(g, from);
    if (!(g.capacity(e).value > 0)) return "the link from " + link_in_words(g, e) + " carries nothing";
    from = g.head(e);
  }
  return from == to ? std::string() : "its links end at " + name_of(g, from) + ", not at " + name_of(g, to);
}

/// "4 groups stay, 1 is new, 2 are gone".
template <class = void>
[[nodiscard]] std::string groups_in_words(const plan_change& c) {
  const auto are = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " is " : " are "); };
  return plural(c.groups_kept, "group") + (c.groups_kept == 1 ? " stays, " : " stay, ") + are(c.groups_new) + "new, " +
         are(c.groups_dropped) + "gone";
}

/// Links that are busy under the old plan for longer than any under the new one, by more than what rounding makes.
template <CostModel M>
void add_busier_links(const M& cost, const topo::graph& g, const simulation& then, const simulation& now,
                      plan_change& to) {
  const seconds longest = now.busiest * 1.001;
  for (std::uint32_t e = 0; e < then.loads.size(); ++e) {
    if (then.loads[e].value == 0) continue;
    const topo::link& l = g.at(link_id{e});
    const bytes_per_second rate = cost.rate(l);
    const seconds busy = then.loads[e] / rate;
    if (busy <= longest) continue;
    busier_link b{{e}, {}, then.loads[e], now.loads[e], busy, now.loads[e] / rate, rate, {}, {}};
    if (l.nominal && l.current && l.current->value < l.nominal->value * 0.99) {
      b.current = l.current;
      b.nominal = l.nominal;
    }
    to.busier.push_back(std::move(b));
  }
  to.links_busier = to.busier.size();
  seq::sort_by(to.busier, [](const busier_link& b) { return -b.busy_before.value; });
  if (to.busier.size() > plan_change::most_named) to.busier.resize(plan_change::most_named);
  for (busier_link& b : to.busier) b.name = link_in_words(g, b.link);
}

}  // namespace detail

template <class>
schedule with_ways_that_exist(const schedule& plan, const problem& p, std::size_t& lost, std::vector<lost_way>* first) {
  schedule fitted = plan;
  std::vector<bool> wrong(plan.ways.size(), false);
  for (stage& st : fitted.stages) {
    if (st.parents.empty()) continue;
    for (std::size_t g = 0; g < st.group_count(); ++g)
      for (std::size_t j = st.offsets[g] + 1; j < st.offsets[g + 1]; ++j) {
        const rank_id child = st.members[j], parent = st.members[st.offsets[g] + st.parents[j]];
        const auto check = [&](std::vector<std::uint32_t>& ways, rank_id from, rank_id to) {
          if (ways.empty() || ways[j] == 0) return;
          std::string why =
              detail::why_not_there(*p.graph, plan.ways[ways[j] - 1], p.ranks[from.value], p.ranks[to.value]);
          if (why.empty()) return;
          if (first != nullptr && !wrong[ways[j] - 1] && first->size() < plan_change::most_named)
            first->push_back({from, to, std::move(why)});
          wrong[ways[j] - 1] = true;
          ways[j] = 0;
        };
        check(st.ways_down, parent, child);
        check(st.ways_up, child, parent);
      }
  }
  lost = static_cast<std::size_t>(std::count(wrong.begin(), wrong.end(), true));
  // Ways that nobody takes any more must not be looked at either.
  for (std::size_t k = 0; k < wrong.size(); ++k)
    if (wrong[k]) fitted.ways[k].links.clear();
  return fitted;
}

template <CostModel M>
result<plan_change> compare_plans(simulator<M>& prices, const problem& p, const schedule& before,
                                  const schedule& after) {
  if (before.collective != after.collective || before.ranks != after.ranks || before.root != after.root)
    return fail(errc::invalid_argument,
                "a plan of " + std::string(to_string(before.collective)) + " among " + std::to_string(before.ranks) +
                    " ranks cannot be compared with one of " + std::string(to_string(after.collective)) + " among " +
                    std::to_string(after.ranks),
                "compare plans of the same collective, ranks and root");
  for (const schedule* plan : {&before, &after})
    if (auto fits = validate(*plan); !fits) return fits.error();
  const auto now = prices.run(p, after);
  if (!now) return now.error();
  plan_change c;
  c.after = now->time;
  c.same = digest(before) == digest(after);
  const schedule old = with_ways_that_exist(expanded(before), p, c.ways_lost, &c.lost), fresh = expanded(after);
  if (const auto then = prices.run(p, old)) {
    c.before = then->time;
    if (then->time > now->time) {
      c.reason = detail::why_slower(*p.graph, *then, *now, "with the new plan");
      detail::add_busier_links(prices.cost(), *p.graph, *then, *now, c);
    }
  } else {
    c.why_not = then.error().what;
  }

  const auto had = detail::prints_of(old), has = detail::prints_of(fresh);
  std::vector<bool> touched(after.ranks, false);
  const auto touch = [&](const schedule& plan, const detail::group_print& g) {
    for (const rank_id r : plan.stages[g.stage].group(g.group).members) touched[r.value] = true;
  };
  std::size_t i = 0, j = 0;
  while (i < had.size() || j < has.size()) {
    if (j == has.size() || (i < had.size() && had[i].hash < has[j].hash)) {
      touch(old, had[i++]);
      ++c.groups_dropped;
    } else if (i == had.size() || has[j].hash < had[i].hash) {
      touch(fresh, has[j++]);
      ++c.groups_new;
    } else {
      ++c.groups_kept;
      ++i;
      ++j;
    }
  }
  for (std::uint32_t r = 0; r < after.ranks; ++r)
    if (touched[r]) c.ranks.push_back({r});
  if (c.same) {
    c.words = "nothing changes: the plan is the same, and takes " + to_string(c.after);
    return c;
  }
  c.words =
      c.before
          ? "the plan from before would take " + to_string(*c.before) + " here, the new one takes " + to_string(c.after)
          : "the plan from before cannot run here (" + c.why_not + "), the new one takes " + to_string(c.after);
  c.words += "; " + detail::groups_in_words(c) + ", and " +
             (c.ranks.size() == after.ranks ? std::string("all ranks") : detail::plural(c.ranks.size(), "rank")) +
             " must load the new plan";
  return c;
}

}}}  // namespace topocoll::v0::plan
