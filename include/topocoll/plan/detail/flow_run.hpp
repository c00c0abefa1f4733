// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts a simulation of flows together: model, events, and what they tell.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/flow_build.hpp>
#include <topocoll/plan/detail/flow_ceiling.hpp>
#include <topocoll/plan/detail/flow_events.hpp>
#include <topocoll/plan/flow_simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
[[nodiscard]] std::string link_name(const topo::graph& g, link_id e) {
  return g.at(g.tail(e)).key + " to " + g.at(g.head(e)).key;
}

/// The critical path in words: legs of one stage together, with what they spent their time on.
template <class = void>
[[nodiscard]] std::string path_words(const topo::graph& g, const flow_simulation& s) {
  std::string text = to_string(s.launch) + " to launch";
  for (std::size_t i = 0; i < s.critical.size();) {
    std::size_t j = i;
    flow_leg sum;
    seconds most{};
    std::size_t messages = 0;
    while (j < s.critical.size() && s.critical[j].stage == s.critical[i].stage) {
      const flow_leg& x = s.critical[j++];
      sum.posting += x.posting;
      sum.latency += x.latency;
      sum.transfer += x.transfer;
      messages += x.from == x.to ? 0 : 1;
      if (x.transfer > most) {
        most = x.transfer;
        sum.limit = x.limit;
      }
    }
    const flow_leg &first = s.critical[i], &last = s.critical[j - 1];
    text += "; " + s.stages[first.stage].label + ": " + std::to_string(messages) +
            (messages == 1 ? " message" : " messages");
    if (j - i > messages) text += " and " + std::to_string(j - i - messages) + " operations on a rank";
    text += " from rank " + std::to_string(first.from.value) + " to rank " + std::to_string(last.to.value) + ", " +
            to_string(sum.posting + sum.latency + sum.transfer) + " (" + to_string(sum.latency) + " of latency";
    if (sum.posting.value > 0) text += ", " + to_string(sum.posting) + " of posting";
    if (most.value > 0)
      text += sum.limit ? ", bytes limited by " + link_name(g, *sum.limit) : ", limited by what a rank reduces";
    text += ")";
    i = j;
  }
  return text;
}

template <class = void>
[[nodiscard]] flow_simulation told(const topo::graph& g, const flow_model& m, const flow_loop<>& run,
                                   const flow_prices& prices) {
  flow_simulation s;
  s.launch = seconds{prices.launch};
  s.time = seconds{prices.launch + run.end()};
  s.links.resize(g.link_count());
  std::vector<double> carried(m.link_of.size(), 0);
  for (const flow_message& x : m.messages)
    for (const fair_use& u : m.shares.uses(x.way))
      if (u.place < carried.size())
        carried[u.place] += u.share * x.amount / m.routes[m.connections[m.connection_of[x.connection]].route].drag;
  for (std::size_t e = 0; e < s.links.size(); ++e) {
    const std::uint32_t l = m.link_class[e];
    if (l == flow_none) continue;
    s.links[e].carried = {static_cast<std::uint64_t>(carried[l] * (1 - 1e-12) + 0.999999)};
    s.links[e].busy = seconds{run.busy(l)};
  }
  for (std::uint32_t c = 0; c < m.programs.size(); ++c) {
    const program& p = *m.programs[c];
    for (std::uint32_t k = 0; k < p.steps.size(); ++k) {
      const std::uint32_t stage = p.steps[k].stage;
      while (s.stages.size() <= stage) s.stages.push_back({"stage " + std::to_string(s.stages.size()), {}});
      if (stage < p.stages.size()) s.stages[stage].label = p.stages[stage];
      s.stages[stage].time = std::max(s.stages[stage].time, seconds{prices.launch + run.ended(m.first_step[c] + k)});
    }
  }
  const std::vector<std::uint32_t> path = run.critical();
  for (std::size_t i = path.size(); i-- > 0;) {
    const std::uint32_t x = path[i];
    const auto& t = run.of(x);
    flow_leg leg;
    std::uint32_t at = 0;
    if (x < m.messages.size()) {
      const flow_message& message = m.messages[x];
      at = message.send_step;
      leg.from = message.from;
      leg.to = message.to;
      leg.amount = {static_cast<std::uint64_t>(message.amount)};
    } else {
      const flow_local& local = m.locals[x - m.messages.size()];
      at = local.step;
      leg.from = leg.to = rank_id{m.rank_at(at)};
      leg.amount = {static_cast<std::uint64_t>(local.amount)};
    }
    leg.step = m.local_number(at);
    leg.stage = m.step_at(at).stage;
    leg.start = seconds{prices.launch + t.ready};
    leg.posting = seconds{t.posted - t.ready};
    leg.latency = seconds{t.begun - t.posted};
    leg.transfer = seconds{t.ended - t.begun};
    if (t.limit != flow_none && t.limit < m.link_of.size()) leg.limit = link_id{m.link_of[t.limit]};
    s.critical.push_back(leg);
  }
  s.critical_path = path_words(g, s);
  s.messages = m.all_messages;
  s.flows = m.messages.size() + m.locals.size();
  s.events = run.events();
  s.filled = m.shares.filled();
  s.rank_classes = static_cast<std::uint32_t>(m.rank_of.size());
  if (m.unpriced)
    s.notes.push_back("some ranks share a device whose memory rate nobody states: what they hand over is not priced");
  return s;
}

}  // namespace detail

template <CostModel M>
flow_simulator<M>::flow_simulator(const topo::graph& g, M cost) : g_(&g), cost_(std::move(cost)), router_(g) {
  for (const topo::link& l : g.links()) {
    prices_.rate.push_back(cost_.rate(l).value);
    prices_.latency.push_back(cost_.latency(l).value);
    if constexpr (SwitchPrices<M>) {
      const auto drag = [&](bool sums) {
        const double slowed = cost_.rate_in_switch(l, sums).value;
        return slowed > 0 ? prices_.rate.back() / slowed : 1;
      };
      prices_.drag_copies.push_back(drag(false));
      prices_.drag_sums.push_back(drag(true));
    }
  }
  if constexpr (SwitchPrices<M>) {
    prices_.switch_start = cost_.switch_start(0).value;
    prices_.switch_member = cost_.switch_start(1).value - prices_.switch_start;
  }
  prices_.post = cost_.post().value;
  prices_.launch = cost_.launch().value;
  // Linear by the laws of a cost model; above 1e24 bytes per second no rate of a link compares.
  constexpr std::uint64_t large = std::uint64_t{1} << 40U;
  const double spent = cost_.reduce(bytes{large}).value;
  prices_.reduce_rate = spent * 1e24 > static_cast<double>(large) ? static_cast<double>(large) / spent : 0;
}

template <CostModel M>
template <class Programs>
result<flow_simulation> flow_simulator<M>::run_all(const problem& p, Programs& programs, const flow_options& options,
                                                   bool only_ceiling) {
  if (p.graph != g_) return fail(errc::invalid_argument, "the problem is about another graph than the simulator");
  auto model = detail::flow_builder<Programs>(*g_, prices_, router_, p, programs, options).run();
  if (!model) return model.error();
  const auto most = detail::flow_ceiling<>(*model, prices_).run();
  detail::flow_loop<> loop(*model, prices_);
  if (!only_ceiling || !most)
    if (auto ended = loop.run(); !ended) {
      if (!options.group) return ended.error();
      flow_options alone = options;  // who waits for whom is told of real ranks, not of examples
      alone.group = false;
      programs.forget();
      return run_all(p, programs, alone, false);
    }
  flow_simulation s;
  if (!only_ceiling) s = detail::told(*g_, *model, loop, prices_);
  s.ceiling = seconds{prices_.launch + most.value_or(0)};
  return s;
}

template <CostModel M>
result<flow_simulation> flow_simulator<M>::run(const problem& p, std::span<const program> programs,
                                               const flow_options& options) {
  detail::given_programs given(programs);
  return run_all(p, given, options, false);
}

template <CostModel M>
result<flow_simulation> flow_simulator<M>::run(const problem& p, const schedule& plan, const flow_options& options) {
  if (auto valid = validate(plan); !valid) return valid.error();
  detail::lowered_programs<> lowered(plan);
  return run_all(p, lowered, options, false);
}

template <CostModel M>
result<seconds> flow_simulator<M>::ceiling(const problem& p, const schedule& plan, const flow_options& options) {
  if (auto valid = validate(plan); !valid) return valid.error();
  detail::lowered_programs<> lowered(plan);
  const auto found = run_all(p, lowered, options, true);
  if (!found) return found.error();
  return found->ceiling;
}

template <CostModel M>
result<path_spread> flow_simulator<M>::spread(const problem& p, const schedule& plan, std::uint32_t seeds,
                                              flow_options options) {
  options.paths = path_choice::ideal;
  const auto split = run(p, plan, options);
  if (!split) return split.error();
  path_spread s;
  s.ideal = s.best = s.median = s.worst = split->time;
  if (seeds == 0) return s;
  options.paths = path_choice::hashed;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    options.seed = seed;
    const auto one = run(p, plan, options);
    if (!one) return one.error();
    s.times.push_back(one->time);
  }
  std::vector<seconds> sorted = s.times;
  seq::sort(sorted);
  s.best = sorted.front();
  s.worst = sorted.back();
  s.median = sorted.size() % 2 != 0 ? sorted[sorted.size() / 2]
                                    : (sorted[sorted.size() / 2 - 1] + sorted[sorted.size() / 2]) * 0.5;
  return s;
}

}}}  // namespace topocoll::v0::plan
