// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a Pareto list is made of the search for winners, and how it is written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/explain_sizes.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/pareto.hpp>
#include <topocoll/plan/verify.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Why plans that won could not be proved, by number of the plan; empty for one that was, or was not tried.
template <class = void>
class proofs_of_winners {
 public:
  /// Proves those that won and were not tried before. False when one of them is wrong: it is refuted then.
  [[nodiscard]] bool all_right(size_search<>& search, const verify_options& how) {
    bool right = true;
    for (std::uint32_t k = 0; k < search.known().size(); ++k) {
      const known_plan& plan = search.known()[k];
      if (tried_.size() <= k) tried_.resize(k + 1, false);
      if (why_not_.size() <= k) why_not_.resize(k + 1);
      if (!plan.won || tried_[k] || !plan.plan) continue;
      tried_[k] = true;
      const auto proved = verify(*plan.plan, how);
      if (proved) continue;
      why_not_[k] = proved.error().what;
      if (proved.error().code == errc::unsupported) continue;  // too large to prove is not the same as wrong
      search.refute(k, proved.error());
      right = false;
      break;  // who won meanwhile is forgotten
    }
    return right;
  }
  [[nodiscard]] bool tried(std::uint32_t k) const { return k < tried_.size() && tried_[k]; }
  [[nodiscard]] const std::string& why_not(std::uint32_t k) const { return why_not_[k]; }

 private:
  std::vector<bool> tried_;
  std::vector<std::string> why_not_;
};

/// True when `curve` takes no longer than `other` at any size of a range, but for rounding.
///
/// Both are made of straight lines, so between the sizes at which two lines of one meet nothing can happen that does not show
/// at one of these sizes or at an end of the range. Cost: O(slopes^3), of a few dozen.
template <class = void>
[[nodiscard]] bool never_slower(const plan_curve& curve, const plan_curve& other, const size_range& range) {
  const auto first = static_cast<double>(range.first.value), last = static_cast<double>(range.last.value);
  const auto fits = [&](double size) {
    return curve.line_at(size).at(size) <= other.line_at(size).at(size) * (1 + 1e-9);
  };
  if (!fits(first) || !fits(last)) return false;
  for (const plan_curve* c : {&curve, &other}) {
    std::vector<plan_curve::slope> lines;
    for (const plan_curve::cut& one : c->cuts) lines.insert(lines.end(), one.slopes.begin(), one.slopes.end());
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const double steeper = lines[i].per_byte - lines[j].per_byte;
        if (steeper > -1e-300 && steeper < 1e-300) continue;
        const double meet = (lines[j].fixed - lines[i].fixed).value / steeper;
        if (meet > first && meet < last && !fits(meet)) return false;
      }
  }
  return true;
}

/// Gives ranges in which a plan only does as well as a neighbour to that neighbour. Planners that decide by the size, and
/// algorithms that are the same thing between two ranks, make many of these.
template <class = void>
void merge_ties(size_map& map) {
  const auto curve_of = [&](const size_range& r) -> const plan_curve& {
    return *seq::find_by(map.curves, r.name, &plan_curve::name);
  };
  const auto give = [&](size_range& r, const size_range& to) {
    const plan_curve& curve = curve_of(to);
    r.name = curve.name;
    r.first_time = curve.at(r.first);
    r.last_time = curve.at(r.last);
  };
  std::vector<size_range>& all = map.ranges;
  for (std::size_t k = 1; k < all.size(); ++k)
    if (never_slower(curve_of(all[k - 1]), curve_of(all[k]), all[k])) give(all[k], all[k - 1]);
  for (std::size_t k = all.size(); k-- > 1;)
    if (never_slower(curve_of(all[k]), curve_of(all[k - 1]), all[k - 1])) give(all[k - 1], all[k]);
  std::vector<size_range> merged;
  for (size_range& r : all) {
    if (merged.empty() || merged.back().name != r.name) {
      merged.push_back(std::move(r));
      continue;
    }
    merged.back().last = r.last;
    merged.back().last_time = r.last_time;
    merged.back().last_bound = r.last_bound;
  }
  all = std::move(merged);
  std::vector<plan_curve> used;
  for (plan_curve& c : map.curves)
    if (seq::find_by(all, c.name, &size_range::name) != all.end()) used.push_back(std::move(c));
  map.curves = std::move(used);
}

/// The list without what is known of the problem.
template <class = void>
[[nodiscard]] pareto_list list_of(const size_search<>& search, const proofs_of_winners<>& proofs, size_map map,
                                  bool prove) {
  pareto_list list;
  list.first = map.ranges.front().first;
  list.last = map.ranges.back().last;
  for (const plan_curve& curve : map.curves) {
    pareto_line line;
    line.name = curve.name;
    line.latency = curve.at(bytes{});
    line.seconds_per_byte = curve.line_at(static_cast<double>(list.last.value)).per_byte;
    std::vector<std::uint32_t> forms;
    for (std::uint32_t k = 0; k < search.known().size(); ++k)
      if (search.known()[k].curve.name == line.name && !search.known()[k].curve.cuts.empty()) forms.push_back(k);
    for (const size_range& r : map.ranges) {
      if (r.name != line.name) continue;
      line.wins.push_back(r);
      for (const bytes size : {r.first, r.last}) {
        const std::uint32_t rounds = search.known()[search.best_of(forms, size)].rounds;
        const bool fresh = line.wins.size() == 1 && size == r.first;
        if (fresh || rounds < line.fewest_rounds) line.fewest_rounds = rounds;
        if (fresh || rounds > line.most_rounds) line.most_rounds = rounds;
      }
    }
    line.proved = prove;
    for (const std::uint32_t k : forms) {
      if (!search.known()[k].won || !prove || (proofs.tried(k) && proofs.why_not(k).empty())) continue;
      line.proved = false;
      line.unproved = proofs.why_not(k);
    }
    list.lines.push_back(std::move(line));
  }
  for (const known_plan& plan : search.known()) {
    if (plan.curve.cuts.empty() || seq::find_by(list.lines, plan.curve.name, &pareto_line::name) != list.lines.end())
      continue;
    auto it = seq::find_by(list.others, plan.curve.name, &pareto_other::name);
    if (it == list.others.end()) {
      list.others.push_back({plan.curve.name, plan.nearest, plan.nearest_size, {}});
    } else if (plan.nearest > 0 && plan.nearest < it->factor) {
      it->factor = plan.nearest;
      it->size = plan.nearest_size;
    }
  }
  seq::sort_by(list.others, [](const pareto_other& o) { return o.factor; });
  for (const refusal& r : search.refusals()) list.others.push_back({r.name, 0, {}, r.why});
  list.map = std::move(map);
  return list;
}

}  // namespace detail

template <CostModel M, Synthesizer... Planners>
result<pareto_list> pareto(simulator<M>& prices, const problem& p, const bound& limit, bytes first, bytes last,
                           const choose_options& options, const Planners&... planners) {
  detail::size_search<> search(true);
  detail::proofs_of_winners<> proofs;
  for (;;) {
    const auto changes = detail::changes_of(search, prices, p, first, last, options, planners...);
    if (!changes) return changes.error();
    if (options.prove && !proofs.all_right(search, options.proof)) continue;  // each time one plan fewer
    size_map map = search.map_of(*changes, last, limit);
    detail::merge_ties(map);
    pareto_list list = detail::list_of(search, proofs, std::move(map), options.prove);
    list.collective = p.collective;
    list.ranks = p.rank_count();
    list.machine = p.graph->source();
    list.bound_latency = limit.launch + limit.latency_time;
    if (limit.size.value > 0)
      list.bound_seconds_per_byte = limit.bandwidth_time.value / static_cast<double>(limit.size.value);
    return list;
  }
}

template <class>
std::string to_text(const pareto_list& list) {
  using detail::about;
  std::string text = std::string(to_string(list.collective)) + " among " + detail::plural(list.ranks, "rank") +
                     (list.machine.empty() ? "" : "; " + list.machine) +
                     "\nplans that are the cheapest for some size from " + to_string(list.first) + " to " +
                     to_string(list.last) + "\n\n";
  const auto rate = [&](double seconds_per_byte) {
    const bytes_per_second busbw = list.busbw(seconds_per_byte);
    return busbw.value > 0 ? to_string(busbw) : std::string("-");
  };
  detail::columns<> t("lrrrrr");
  t.add({"plan", "latency", "busbw of large arrays", "from size", "to size", "rounds"});
  for (const pareto_line& line : list.lines) {
    std::string rounds = std::to_string(line.fewest_rounds);
    if (line.most_rounds > line.fewest_rounds) rounds += " to " + std::to_string(line.most_rounds);
    for (std::size_t k = 0; k < line.wins.size(); ++k) {
      const size_range& r = line.wins[k];
      // Where one plan takes over from another, to three digits; the exact byte is in the JSON.
      const std::string from = r.first == list.first ? to_string(r.first) : about(r.first),
                        to = r.last == list.last ? to_string(r.last) : about(r.last);
      if (k == 0)
        t.add({line.name, to_string(line.latency), rate(line.seconds_per_byte), from, to, rounds});
      else
        t.add({"  and again", "", "", from, to, ""});
    }
  }
  t.add({"bound: no plan can do better", to_string(list.bound_latency), rate(list.bound_seconds_per_byte)});
  t.write(text);
  text += "\nlatency: of an array of no bytes; busbw of large arrays: by what each further byte adds at " +
          to_string(list.last) + "; times are predicted\n";
  for (const pareto_line& line : list.lines)
    if (!line.unproved.empty()) text += "note:    " + line.name + " is not proved: " + line.unproved + '\n';
  std::string without;
  detail::columns<> left("lrl");
  bool any = false;
  for (const pareto_other& o : list.others) {
    if (o.factor <= 0) {
      if (without.find(o.name) == std::string::npos) without += (without.empty() ? "" : ", ") + o.name;
      continue;
    }
    if (!any) left.add({"left out", "at best", ""});
    any = true;
    left.add(
        {o.name, o.factor < 1.005 ? "equal" : topocoll::detail::three_digits(o.factor) + " x", "at " + about(o.size)});
  }
  if (any) text += '\n';
  left.write(text);
  if (!without.empty()) text += "no plan or no price: " + without + '\n';
  return text;
}

}}}  // namespace topocoll::v0::plan
