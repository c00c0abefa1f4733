// SPDX-License-Identifier: Apache-2.0
#pragma once
// How candidates are collected, ordered and given their reasons.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/detail/switch_groups.hpp>
#include <topocoll/plan/detail/words.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// "NIC cable mlx5_0/1 of node2 to leaf 0": a link by its ends.
template <class = void>
[[nodiscard]] std::string link_in_words(const topo::graph& g, link_id e) {
  return name_of(g, g.tail(e)) + " to " + name_of(g, g.head(e));
}

/// Why `loser` takes longer than `winner`, one clause in which `here` stands for the winner.
template <class = void>
[[nodiscard]] std::string why_slower(const topo::graph& g, const simulation& loser, const simulation& winner,
                                     std::string_view here = "here") {
  const double factor = loser.time / winner.time;
  if (factor < 1 / 1.005) return "faster, but another planner was asked for";
  if (factor < 1.005) return "as fast to within 0.5 %";
  const seconds latency = loser.latency + loser.posting - winner.latency - winner.posting;
  if (latency.value * 2 > (loser.time - winner.time).value)
    return plural(loser.rounds, "round") + " cost " + to_string(loser.latency) + " of latency, " + std::string(here) +
           ' ' + plural(winner.rounds, "round") + " cost " + to_string(winner.latency);
  if ((loser.busiest - winner.busiest).value * 2 > (loser.time - winner.time).value) {
    const std::string where =
        loser.limit ? link_in_words(g, *loser.limit) + " is busy for " : std::string("one rank reduces for ");
    return where + to_string(loser.busiest) + ", " + std::string(here) + " nothing is busy for more than " +
           to_string(winner.busiest);
  }
  return "its rounds overlap less: " + to_string(loser.unhidden) + " beyond the busiest link, " + std::string(here) +
         ' ' + to_string(winner.unhidden);
}

/// "hierarchical (direct, ring)": the planner and, unless its name says so, the algorithms in the order in which they
/// first appear. Slices are told apart: see `schedule::slices`.
template <class = void>
[[nodiscard]] std::string label_of(const schedule& plan, std::string_view planner) {
  std::string text = plan.name.empty() ? std::string(planner) : plan.name;
  std::vector<algorithm> seen;
  for (const stage& s : plan.stages)
    if (seq::find(seen, s.how) == seen.end()) seen.push_back(s.how);
  const std::string_view only = seen.size() == 1 ? to_string(seen[0]) : std::string_view();
  // "ring", "tree": the name says it.
  if (seen.empty() || (!only.empty() && text == only) ||
      (plan.stages.size() == 1 && (text.find(only) != std::string::npos || only.find(text) != std::string_view::npos)))
    return text;
  for (std::size_t i = 0; i < seen.size(); ++i)
    text += std::string(i == 0 ? " (" : ", ") + std::string(to_string(seen[i]));
  return text + ')';
}

/// Sorts by price (and, where that is the same to half a percent, by incast), proves the first, gives reasons, compares with
/// the bound.
template <class = void>
[[nodiscard]] result<choice> settle(const problem& p, const choose_options& options, std::vector<candidate> all,
                                    bound limit) {
  seq::sort(all, [](const candidate& a, const candidate& b) {
    if (a.price.has_value() != b.price.has_value()) return a.price.has_value();
    return a.price && a.price->time < b.price->time;
  });
  // Prices are not good to half a percent. Where the cheapest are that near, the one whose senders meet least at a port that
  // is busy is the better one: on an emulated fabric it was faster by a tenth (docs/results/fabric.md). Behind a busy uplink
  // nobody meets: what comes through it fits through the port.
  constexpr double near = 1.005;
  const auto meeting = [&](const candidate& c) {
    if (!c.price->limit) return std::uint32_t{0};
    const link_class busiest = class_of(*p.graph, *c.price->limit);
    return busiest == link_class::nic_in || busiest == link_class::nic_out ? c.price->incast : 0;
  };
  auto end_of_near = all.begin();
  while (end_of_near != all.end() && end_of_near->price &&
         end_of_near->price->time.value <= near * all[0].price->time.value)
    ++end_of_near;
  std::stable_sort(all.begin(), end_of_near,
                   [&](const candidate& a, const candidate& b) { return meeting(a) < meeting(b); });
  if (!options.only.empty() && seq::find_by(all, options.only, &candidate::planner) == all.end()) {
    std::vector<std::string> known;
    for (const candidate& c : all)
      if (seq::find(known, c.planner) == known.end()) known.push_back(c.planner);
    std::string names;
    for (const std::string& k : known) names += (names.empty() ? "" : ", ") + k;
    return fail(errc::invalid_argument, "no planner is called '" + options.only + "'", "take one of " + names);
  }
  std::size_t winner = all.size();
  for (std::size_t i = 0; i < all.size() && all[i].price && winner == all.size(); ++i) {
    if (!options.only.empty() && all[i].planner != options.only) continue;
    if (options.prove) {
      auto proved = verify(*all[i].plan, options.proof);
      if (proved) {
        all[i].proved = std::move(*proved);
      } else if (proved.error().code == errc::unsupported) {  // too large to prove is not the same as wrong
        all[i].unproved = proved.error().what;
      } else {
        all[i].why_not = proved.error();
        continue;
      }
    }
    winner = i;
  }
  if (winner == all.size()) {
    std::string reasons;
    for (const candidate& c : all)
      if (c.why_not && (options.only.empty() || c.planner == options.only))
        reasons += (reasons.empty() ? "" : "; ") + c.name + ": " + c.why_not->what;
    return fail(errc::unsupported, "no planner has a plan for " + std::string(to_string(p.collective)) + " among " +
                                       plural(p.ranks.size(), "rank") + (reasons.empty() ? "" : " (" + reasons + ")"));
  }
  std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(winner),
              all.begin() + static_cast<std::ptrdiff_t>(winner) + 1);
  const simulation& best = *all.front().price;
  for (candidate& c : all) {
    if (c.why_not)
      c.reason = c.why_not->what;
    else if (&c != &all.front())
      c.reason = why_slower(*p.graph, *c.price, best);
  }
  // The bound and the price are computed independently; a price below the bound would make both worthless.
  if (best.time.value < limit.time.value * (1 - 1e-9))
    return fail(errc::bug, "the plan '" + all.front().name + "' is priced at " + to_string(best.time) +
                               ", below the bound of " + to_string(limit.time) + " (" + limit.cut + ")");
  choice made{std::move(all), std::move(limit), 0};
  made.gap = made.price().time / made.limit.time - 1;
  bool cheapest = true;
  for (const candidate& c : made.candidates) cheapest = cheapest && (!c.price || made.price().time <= c.price->time);
  made.candidates.front().reason =
      !options.only.empty()
          ? "asked for"
          : (cheapest ? "cheapest of " : "as cheap as any to within 0.5 %, and the gentlest to Ethernet, of ") +
                plural(made.candidates.size(), "plan");
  return made;
}

/// Slices of `bruck` and `pat` could not travel in bundles.
template <class = void>
[[nodiscard]] bool can_be_cut(const schedule& plan) {
  return seq::none_of(plan.stages, [](const stage& s) { return s.how == algorithm::bruck || s.how == algorithm::pat; });
}

/// Gives plan and price the number of slices with the best price. Fewer slices win ties.
template <class = void>
void cut_well(schedule& plan, simulation& price) {
  simulation best = price;
  best.cut_into(price.together);
  for (const std::uint32_t slices : slice_counts) {
    simulation other = best;
    other.cut_into(slices);
    if (other.time < best.time) best.cut_into(slices);
  }
  plan.slices = best.slices;
  price = std::move(best);
}

/// Prices what a planner made and puts it on the list. Not a template of the planner: that would compile it once for each.
template <CostModel M>
void consider(simulator<M>& prices, const problem& p, const choose_options& options, std::vector<candidate>& all,
              std::vector<std::uint64_t>& known, std::string_view planner, result<schedule> made) {
  candidate c;
  c.planner = c.name = std::string(planner);
  if (!made) {
    c.why_not = made.error();
    all.push_back(std::move(c));
    return;
  }
  if (p.reduces == in_network::nothing &&
      seq::any_of(made->stages, [](const stage& s) { return s.how == algorithm::in_switch; })) {
    c.why_not = fail(errc::unsupported, "it leaves sums to switches, which the problem does not allow");
    all.push_back(std::move(c));
    return;
  }
  const bool cut = options.cut && can_be_cut(*made);
  if (cut) made->slices = slice_kinds(*made);
  const std::uint64_t print = digest(*made);
  if (seq::find(known, print) != known.end()) return;  // two planners, one plan
  known.push_back(print);
  c.name = label_of(*made, planner);
  auto priced = prices.run(p, *made);
  if (priced && cut) cut_well(*made, *priced);
  c.plan = std::move(*made);
  if (priced)
    c.price = std::move(*priced);
  else
    c.why_not = priced.error();
  all.push_back(std::move(c));
}

/// What of a simulation does not depend on the size.
struct price_line {
  std::uint64_t digest;
  simulation price;  // loads dropped
};

template <CostModel M>
void consider_size(simulator<M>& prices, const problem& p, const choose_options& options,
                   std::vector<price_line>& known, selection& best, std::string_view planner, result<schedule> made) {
  if (!made) return;
  const bool cut = options.cut && can_be_cut(*made);
  if (cut) made->slices = slice_kinds(*made);
  const std::uint64_t print = digest(*made);
  auto it = seq::find_by(known, print, &price_line::digest);
  if (it == known.end()) {
    auto priced = prices.run(p, *made);
    if (!priced) return;
    priced->loads.clear();
    priced->loads.shrink_to_fit();
    known.push_back({print, std::move(*priced)});
    it = known.end() - 1;
  }
  seconds time = it->price.at(p.size);
  for (const std::uint32_t slices : slice_counts) {
    if (!cut) break;
    simulation other = it->price;
    other.cut_into(slices);
    time = std::min(time, other.at(p.size));
  }
  std::string name = label_of(*made, planner);
  if (best.name == name) {
    best.time = std::min(best.time, time);
  } else if (best.name.empty() || time < best.time) {
    best.second = std::exchange(best.name, std::move(name));
    best.second_time = std::exchange(best.time, time);
  } else if (best.second.empty() || time < best.second_time) {
    best.second = std::move(name);
    best.second_time = time;
  }
}

/// True for planners that say, with a member `any_size`, that their plans do not depend on the size.
template <class Planner>
[[nodiscard]] constexpr bool same_at_any_size(const Planner&) {
  return requires { Planner::any_size; };
}

}  // namespace detail

template <CostModel M, Synthesizer... Planners>
result<choice> choose(simulator<M>& prices, const problem& p, const choose_options& options,
                      const Planners&... planners) {
  auto limit = lower_bound(p, prices.cost(), options.effort);
  if (!limit) return limit.error();
  std::vector<candidate> all;
  std::vector<std::uint64_t> known;
  const auto try_one = [&](const auto& planner) {
    if (detail::is_asked(planner, p))
      detail::consider(prices, p, options, all, known, std::string_view(planner.name()), planner.synthesize(p));
  };
  (try_one(planners), ...);
  return detail::settle(p, options, std::move(all), std::move(*limit));
}

template <CostModel M, Synthesizer... Planners>
result<std::vector<selection>> crossovers(simulator<M>& prices, const problem& p, const bound& limit,
                                          std::span<const bytes> sizes, const choose_options& options,
                                          const Planners&... planners) {
  std::vector<selection> map(sizes.size());
  std::vector<detail::price_line> known;
  problem at = p;
  const auto sweep = [&](const auto& planner) {
    if (!detail::is_asked(planner, p)) return;
    std::optional<result<schedule>> once;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      at.size = sizes[i];
      if (!once || !detail::same_at_any_size(planner)) once = planner.synthesize(at);
      detail::consider_size(prices, at, options, known, map[i], std::string_view(planner.name()), *once);
    }
  };
  (sweep(planners), ...);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (map[i].name.empty())
      return fail(errc::unsupported,
                  "no planner has a plan for " + std::string(to_string(p.collective)) + " of " + to_string(sizes[i]));
    map[i].size = sizes[i];
    map[i].bound_time = limit.at(sizes[i]);
  }
  return map;
}

}}}  // namespace topocoll::v0::plan
