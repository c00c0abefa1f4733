// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the plan of before is still right, as `topocoll plan --previous` says it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/app/detail/plan_input.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/plan_origin.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/replan.hpp>
#include <topocoll/plan/replan_codec.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/verify.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// The plan of before beside the new one.
struct plan_change_report {
  /// A rank that sits on another node than when the plan was made; nodes by key.
  struct move {
    rank_id rank{};
    std::string then, now;
  };
  std::string file;
  plan::schedule before;
  std::optional<plan::plan_origin> origin;
  std::vector<move> moved;
  std::vector<plan::plan_origin::wire> gone;  ///< links of ways of the plan that the topology does not have
  plan::plan_change change;
  std::string wrong;      ///< why the plan of before does not compute its collective
  std::string unproved;   ///< why that could not be looked at
  double least_gain = 0;  ///< share

  [[nodiscard]] bool replaces() const { return !wrong.empty() || change.worth(least_gain); }
  [[nodiscard]] std::string name() const { return plan::detail::label_of(before, "plan"); }
};

/// @return as `plan::compare_plans`
template <plan::CostModel M>
[[nodiscard]] result<plan_change_report> report_change(plan::simulator<M>& prices, const plan::problem& p,
                                                       const plan::choice& made, std::string file, previous_plan before,
                                                       double least_gain, const plan::verify_options& proof) {
  plan_change_report r;
  r.file = std::move(file);
  r.before = std::move(before.schedule);
  r.origin = std::move(before.origin);
  r.least_gain = least_gain;
  if (r.origin) {
    r.before = plan::renumbered(std::move(r.before), *r.origin, *p.graph, r.gone);
    for (std::uint32_t k = 0; k < p.rank_count() && k < r.origin->seats.size(); ++k)
      if (const std::string& now = p.graph->at(p.ranks[k]).key; now != r.origin->seats[k])
        r.moved.push_back({{k}, r.origin->seats[k], now});
  }
  if (!rooted(p.collective)) r.before.root = made.best().root;  // has no meaning then
  if (const auto proved = plan::verify(r.before, proof); !proved)
    (proved.error().code == errc::unsupported ? r.unproved : r.wrong) = proved.error().what;
  auto change = plan::compare_plans(prices, p, r.before, made.best());
  if (!change) return std::move(change).error();
  r.change = std::move(*change);
  return r;
}

/// "keep the plan of old.json: …", one sentence.
template <class = void>
[[nodiscard]] std::string advice_of(const plan_change_report& r, const plan::problem& p) {
  using plan::detail::percent;
  const plan::plan_change& c = r.change;
  std::string text = std::string(r.replaces() ? "replace" : "keep") + " the plan of " + r.file + ": ";
  if (!r.wrong.empty()) return text + "it does not compute " + std::string(to_string(p.collective)) + ": " + r.wrong;
  if (c.same) return text + "planning anew gives the same plan";
  if (!c.before) return text + "it cannot run here: " + c.why_not;
  const double gain = c.gain();
  if (gain < -5e-4) return text + "it is faster than the new one, which takes " + percent(-gain) + " longer";
  if (gain < 5e-4) return text + "the new one takes as long";
  text += "the new one saves " + percent(gain) + " of the time";
  return r.replaces() ? text : text + ", which is less than " + percent(r.least_gain);
}

/// As text of a few lines.
template <class = void>
[[nodiscard]] std::string to_text(const plan_change_report& r, const plan::problem& p, const plan::choice& made) {
  using plan::detail::about;
  using plan::detail::plural;
  constexpr std::size_t shown = 8;  // ways and links; the JSON has twice as many
  const plan::plan_change& c = r.change;
  std::string text = advice_of(r, p) + "\n\n";
  plan::detail::columns<> head("lrrl");
  const auto line = [&](const char* what, const std::optional<seconds>& time, std::string name, std::uint32_t slices) {
    const bool rated = time && p.size.value > 0 && p.rank_count() > 1;
    if (slices > 1) name += ", " + plural(slices, "slice");
    head.add({what, time ? to_string(*time) : "-",
              rated ? "busbw " + to_string(p.size / *time * busbw_factor(p.collective, p.rank_count())) : "",
              std::move(name)});
  };
  head.add({std::string(to_string(p.collective)) + " of " + to_string(p.size), "", "", ""});
  line("before", c.before, r.name(), r.before.slices);
  line("new", c.after, made.candidates.front().name, made.best().slices);
  line("bound", made.limit.time, "", 1);
  head.write(text);
  std::string more;
  if (r.origin)
    more += "made:    for " + to_string(r.origin->size) + ", predicted to take " + to_string(r.origin->time) + " then" +
            (r.origin->machine.empty() ? "" : "; " + r.origin->machine) + '\n';
  const auto list = [&](const char* title, std::size_t count, const auto& words) {
    for (std::size_t k = 0; k < count && k < shown; ++k)
      more += (k == 0 ? std::string(title) : std::string(9, ' ')) + words(k) + '\n';
    if (count > shown) more += std::string(9, ' ') + "and " + std::to_string(count - shown) + " more\n";
  };
  list("moved:   ", r.moved.size(), [&](std::size_t k) {
    return "rank " + std::to_string(r.moved[k].rank.value) + " sat on " + r.moved[k].then + " then, sits on " +
           r.moved[k].now + " now";
  });
  list("gone:    ", r.gone.size(),
       [&](std::size_t k) { return "the link from " + r.gone[k].from + " to " + r.gone[k].to; });
  if (!c.before) more += "why:     " + c.why_not + '\n';
  if (!c.reason.empty()) more += "why:     before, " + c.reason + '\n';
  if (!c.same)
    more += "changes: " + plan::detail::groups_in_words(c) + "; " +
            (c.ranks.empty() ? "slices differ, and all ranks"
                             : (c.ranks.size() == p.ranks.size() ? "all ranks" : plural(c.ranks.size(), "rank"))) +
            " would load the new plan\n";
  if (c.ways_lost > 0) {
    more += "lost:    " + plural(c.ways_lost, "way") + " that the plan was made for; what took " +
            (c.ways_lost == 1 ? "it" : "them") + " is priced as routing takes it\n";
    list("         ", c.ways_lost, [&](std::size_t k) {
      return "rank " + std::to_string(c.lost[k].from.value) + " to rank " + std::to_string(c.lost[k].to.value) + ": " +
             c.lost[k].why;
    });
  }
  if (!r.unproved.empty()) more += "note:    the plan of before is not proved: " + r.unproved + '\n';
  if (!c.busier.empty()) {
    more += '\n';
    plan::detail::columns<> t("lrrrrl");
    t.add({"links busier than any under the new plan", "before", "busy", "new", "busy", "rate"});
    for (std::size_t k = 0; k < c.busier.size() && k < shown; ++k) {
      const plan::busier_link& b = c.busier[k];
      std::string rate = to_string(b.rate);
      if (b.current && b.nominal) rate += ", runs at " + to_string(*b.current) + " of " + to_string(*b.nominal);
      t.add({b.name, about(b.before), to_string(b.busy_before), about(b.after), to_string(b.busy_after), rate});
    }
    t.write(more);
    if (c.links_busier > shown) more += "and " + plural(c.links_busier - shown, "further link") + '\n';
  }
  return more.empty() ? text : text + '\n' + more;
}

/// The member `previous` of the answer.
template <class = void>
[[nodiscard]] io::json to_json_value(const plan_change_report& r, const plan::problem& p) {
  io::json o{{"file", r.file},
             {"name", r.name()},
             {"slices", r.before.slices},
             {"digest", plan::detail::hex_of(digest(r.before))},
             {"advice", r.replaces() ? "replace" : "keep"},
             {"why", advice_of(r, p)},
             {"least_gain", r.least_gain}};
  if (!r.wrong.empty()) o["wrong"] = r.wrong;
  if (!r.unproved.empty()) o["unproved"] = r.unproved;
  if (r.origin) {
    o["made_for"] = {{"size", r.origin->size.value}, {"time", r.origin->time.value}, {"machine", r.origin->machine}};
    o["moved"] = io::json::array();
    for (const plan_change_report::move& m : r.moved)
      o["moved"].push_back({{"rank", m.rank.value}, {"then", m.then}, {"now", m.now}});
    o["gone"] = io::json::array();
    for (const plan::plan_origin::wire& w : r.gone) o["gone"].push_back({{"from", w.from}, {"to", w.to}});
  }
  o.update(plan::to_json_value(r.change));
  return o;
}

}}}}  // namespace topocoll::v0::app::detail
