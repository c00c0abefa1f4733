// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where one plan takes over from another: found in the closed form of prices, to the byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/explain.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// A priced plan at any size, as `plan_curve`, and which it is.
struct known_plan {
  std::uint64_t digest = 0;
  plan_curve curve{};  ///< without cuts when it has no price
  // The rest is for `pareto` alone.
  std::uint32_t rounds = 0;
  std::optional<schedule> plan{};  ///< in one slice where it can be cut
  bool won = false;                ///< at some size for which planners were asked
  double nearest = 0;              ///< least time over that of the winner, at these sizes; 0: never offered
  bytes nearest_size{};
};

/// A price at any size: the busiest link, or what holds the slices up.
template <class = void>
[[nodiscard]] plan_curve::cut cut_of(const simulation& s) {
  plan_curve::cut c{s.slices, {}};
  const double size = static_cast<double>(s.size.value), parts = std::max(s.slices / s.together, 1U),
               further = parts - 1;
  const seconds fixed = s.launch + s.latency, moving = s.busiest + s.unhidden;
  c.slopes.push_back({fixed, moving.value / size});
  if (parts < 2) return c;
  for (const slice_hold& h : s.holds)
    c.slopes.push_back({fixed + h.wait * further, (moving - (s.busiest - h.busy) * (further / parts)).value / size});
  if (const double channels = double{max_channels} / s.together; parts > channels)
    c.slopes.push_back(
        {fixed + s.span.wait * (parts / channels - 1),
         (s.busiest * (1 / parts) + s.unhidden + s.span.busy * ((parts / channels - 1) / parts)).value / size});
  return c;
}

/// A planner without a plan, or a plan without a price.
struct refusal {
  std::string name, why;

  friend bool operator==(const refusal&, const refusal&) = default;
};

/// Plans that were priced, and the search among them.
template <class = void>
class size_search {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  /// @param keep  whether plans, refusals and who came how near are remembered, for `pareto`
  explicit size_search(bool keep = false) : keep_(keep) {}

  /// Number of a plan; priced when it is new. `none` when there is none or it has no price.
  template <CostModel M>
  [[nodiscard]] std::uint32_t number_of(simulator<M>& prices, const problem& p, const choose_options& options,
                                        std::string_view planner, result<schedule> made) {
    if (!made) return refuse(std::string(planner), made.error().what);
    const bool cut = options.cut && can_be_cut(*made);
    if (cut) made->slices = slice_kinds(*made);
    const std::uint64_t print = digest(*made);
    for (std::uint32_t k = 0; k < known_.size(); ++k)
      if (known_[k].digest == print) return known_[k].curve.cuts.empty() ? none : k;
    known_.push_back({print, {label_of(*made, planner), {}}});
    auto priced = prices.run(p, *made);
    if (!priced) return refuse(known_.back().curve.name, priced.error().what);
    if (p.size.value == 0) return none;
    const auto add = [&](const simulation& s) { known_.back().curve.cuts.push_back(cut_of(s)); };
    add(*priced);
    for (const std::uint32_t slices : slice_counts) {
      if (!cut) break;
      priced->cut_into(slices);
      add(*priced);
    }
    known_.back().rounds = priced->rounds;
    if (keep_) known_.back().plan = std::move(*made);
    return static_cast<std::uint32_t>(known_.size() - 1);
  }

  /// The cheapest of some plans; of equal ones the first. `none` when there is none.
  [[nodiscard]] std::uint32_t best_of(const std::vector<std::uint32_t>& offered, bytes size) const {
    std::uint32_t best = none;
    for (const std::uint32_t k : offered)
      if (k != none && (best == none || time_of(k, size) < time_of(best, size))) best = k;
    return best;
  }
  /// Remembers who won at a size and how near the others came.
  void note(const std::vector<std::uint32_t>& offered, std::uint32_t best, bytes size) {
    if (!keep_ || best == none) return;
    known_[best].won = true;
    for (const std::uint32_t k : offered) {
      if (k == none) continue;
      const double factor = time_of(k, size) / time_of(best, size);
      if (known_[k].nearest > 0 && known_[k].nearest <= factor) continue;
      known_[k].nearest = factor;
      known_[k].nearest_size = size;
    }
  }
  /// Forgets the price of a plan that is wrong, and who won while it was in the way.
  void refute(std::uint32_t k, const failure& why) {
    known_[k].curve.cuts.clear();
    static_cast<void>(refuse(known_[k].curve.name, why.what));
    for (known_plan& plan : known_) {
      plan.won = false;
      plan.nearest = 0;
    }
  }
  [[nodiscard]] const std::vector<known_plan>& known() const { return known_; }
  [[nodiscard]] const std::vector<refusal>& refusals() const { return refusals_; }

  [[nodiscard]] seconds time_of(std::uint32_t k, bytes size) const { return known_[k].curve.at(size); }
  [[nodiscard]] const std::string& name_of(std::uint32_t k) const { return known_[k].curve.name; }
  [[nodiscard]] bool same(std::uint32_t a, std::uint32_t b) const { return name_of(a) == name_of(b); }

  /// Least size above `low`, at most `high`, at which plan b is cheaper than plan a. Precondition: at `high` it is.
  [[nodiscard]] bytes crossing(std::uint32_t a, std::uint32_t b, bytes low, bytes high) const {
    while (high.value - low.value > 1) {
      const bytes middle{low.value + (high.value - low.value) / 2};
      (time_of(b, middle) < time_of(a, middle) ? high : low) = middle;
    }
    return high;
  }

  /// A size and the plan that wins there and from there on.
  struct change {
    bytes size{};
    std::uint32_t plan = 0;
  };
  /// Adds the changes between two sizes with different winners, in order, the last one to the winner at `high`.
  template <class WinnerAt>
  void split(change low, change high, const WinnerAt& winner_at, std::size_t& questions,
             std::vector<change>& to) const {
    while (!same(low.plan, high.plan)) {
      if (high.size.value - low.size.value <= 1 || questions == 0) {
        to.push_back(high);
        return;
      }
      --questions;
      // The prices say where; the planners, who may offer something else there, are asked on both sides of it.
      const bytes guess = crossing(low.plan, high.plan, low.size, high.size);
      if (guess.value - low.size.value > 1) {
        const change before{guess - bytes{1}, winner_at(guess - bytes{1})},
            there{guess, guess == high.size ? high.plan : winner_at(guess)};
        if (same(before.plan, low.plan) && same(there.plan, high.plan)) {
          to.push_back(there);
          return;
        }
        if (same(before.plan, low.plan) && !same(there.plan, low.plan)) {  // a third plan, here to the byte
          to.push_back(there);
          low = there;
          continue;
        }
        if (same(before.plan, low.plan) && there.size < high.size) low = there;
      }
      // The plan that wins above is not offered below, or a third one lies between: halving finds both.
      if (high.size.value - low.size.value <= 1) continue;
      const bytes half{low.size.value + (high.size.value - low.size.value) / 2};
      const change middle{half, winner_at(half)};
      split(low, middle, winner_at, questions, to);
      low = middle;
    }
  }

  /// The ranges and curves that the changes make; the first change is at the first size.
  [[nodiscard]] size_map map_of(const std::vector<change>& changes, bytes last, const bound& limit) const {
    size_map m;
    for (std::size_t k = 0; k < changes.size(); ++k) {
      const change& c = changes[k];
      const bytes end = k + 1 < changes.size() ? changes[k + 1].size - bytes{1} : last;
      if (m.ranges.empty() || m.ranges.back().name != name_of(c.plan))
        m.ranges.push_back({c.size, end, name_of(c.plan), {}, {}, limit.at(c.size), {}});
      size_range& r = m.ranges.back();
      r.last = end;
      r.last_bound = limit.at(end);
    }
    for (const size_range& r : m.ranges)
      if (seq::find_by(m.curves, r.name, &plan_curve::name) == m.curves.end()) {
        plan_curve all{r.name, {}};  // plans of one name are one line of a table
        for (const known_plan& k : known_)
          if (k.curve.name == r.name) all.cuts.insert(all.cuts.end(), k.curve.cuts.begin(), k.curve.cuts.end());
        m.curves.push_back(std::move(all));
      }
    for (size_range& r : m.ranges) {
      const plan_curve& c = *seq::find_by(m.curves, r.name, &plan_curve::name);
      r.first_time = c.at(r.first);
      r.last_time = c.at(r.last);
    }
    return m;
  }

 private:
  std::uint32_t refuse(std::string name, const std::string& why) {
    if (keep_ && seq::find(refusals_, refusal{name, why}) == refusals_.end())
      refusals_.push_back({std::move(name), why});
    return none;
  }

  bool keep_ = false;
  std::vector<known_plan> known_{};
  std::vector<refusal> refusals_{};
};

/// Sizes from `first` to `last` at which the cheapest plan changes, the first size among them: what `winners` and `pareto`
/// have in common. `search` may know plans of the same problem already.
template <CostModel M, Synthesizer... Planners>
[[nodiscard]] result<std::vector<size_search<>::change>> changes_of(size_search<>& search, simulator<M>& prices,
                                                                    const problem& p, bytes first, bytes last,
                                                                    const choose_options& options,
                                                                    const Planners&... planners) {
  std::vector<bytes> grid = doubling_sizes(first, last);
  if (grid.empty()) return fail(errc::invalid_argument, "there are no sizes between the first and the last one");
  if (grid.back() != last) grid.push_back(last);
  problem at = p;
  at.size = grid.front();
  const auto plan_of = [&](const auto& planner) {
    if (!is_asked(planner, p)) return size_search<>::none;
    return search.number_of(prices, at, options, std::string_view(planner.name()), planner.synthesize(at));
  };
  std::vector<std::uint32_t> any_size;  // `none` for planners that must be asked again
  (any_size.push_back(same_at_any_size(planners) ? plan_of(planners) : size_search<>::none), ...);
  const auto winner_at = [&](bytes size) {
    at.size = size;
    std::vector<std::uint32_t> offered;
    const auto offer = [&](const auto& planner) {
      offered.push_back(same_at_any_size(planner) ? any_size[offered.size()] : plan_of(planner));
    };
    (offer(planners), ...);
    const std::uint32_t best = search.best_of(offered, size);
    search.note(offered, best, size);
    return best;
  };
  using change = size_search<>::change;
  std::vector<change> changes;
  std::size_t questions = 256;
  change before{};
  for (const bytes size : grid) {
    const change now{size, winner_at(size)};
    if (now.plan == size_search<>::none)
      return fail(errc::unsupported,
                  "no planner has a plan for " + std::string(to_string(p.collective)) + " of " + to_string(size));
    if (changes.empty())
      changes.push_back(now);
    else
      search.split(before, now, winner_at, questions, changes);
    before = now;
  }
  return changes;
}

}  // namespace detail

template <CostModel M, Synthesizer... Planners>
result<size_map> winners(simulator<M>& prices, const problem& p, const bound& limit, bytes first, bytes last,
                         const choose_options& options, const Planners&... planners) {
  detail::size_search<> search;
  const auto changes = detail::changes_of(search, prices, p, first, last, options, planners...);
  if (!changes) return changes.error();
  return search.map_of(*changes, last, limit);
}

}}}  // namespace topocoll::v0::plan
