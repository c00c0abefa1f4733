// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a preflight goes: the parts one after the other, and what each says.
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <topocoll/probe/preflight.hpp>

namespace topocoll { inline namespace v0 { namespace probe {
namespace detail {

struct planned {
  collective_point point;
  std::optional<seconds> predicted;
};

/// Share of the whole array that the busiest rank sends and receives. The planner's model knows the memory that ranks share,
/// not that each of them is one process: of plans with equal prices, the one that spreads its work is faster.
template <class = void>
[[nodiscard]] double busiest_rank(const plan::schedule& s) {
  std::vector<double> moved(s.ranks, 0);
  for (const plan::traffic_round& round : plan::traffic(s))
    for (const plan::transfer& t : round.moves) {
      moved[t.from.value] += static_cast<double>(t.chunks) * round.repeat;
      moved[t.to.value] += static_cast<double>(t.chunks) * round.repeat;
    }
  return *std::max_element(moved.begin(), moved.end()) / s.chunks();
}

/// Of the candidates within 5 % of the cheapest, the one whose busiest rank has least to do.
template <class = void>
[[nodiscard]] std::size_t spread_best(const plan::choice& c) {
  std::size_t best = 0;
  double least = busiest_rank(c.best());
  for (std::size_t i = 1; i < c.candidates.size(); ++i) {
    const plan::candidate& k = c.candidates[i];
    if (!k.plan || !k.price || k.price->time.value > 1.05 * c.price().time.value) continue;
    const double most = busiest_rank(*k.plan);
    if (most >= 0.99 * least) continue;
    best = i;
    least = most;
  }
  return best;
}

/// Chooses, proves and prices a plan for every collective and size.
template <class = void>
std::vector<planned> plan_collectives(report& r, const topo::graph& g, const preflight_options& options,
                                      const memory_model& memory) {
  std::vector<planned> points;
  const std::vector<node_id> places = g.all(topo::node_kind::cpu);
  std::string refused;
  std::size_t proved = 0;
  for (const collective_kind kind : {collective_kind::all_reduce, collective_kind::all_gather}) {
    for (const bytes size : options.sizes) {
      planned p;
      p.point.collective = kind;
      p.point.size = size;
      const auto copy = seq::find_by(memory.copy, size, &std::pair<bytes, bytes_per_second>::first);
      if (copy == memory.copy.end() || places.empty()) {
        if (refused.empty())
          refused = places.empty() ? "the machine shows no NUMA domain to put ranks on" : "the memory was not measured";
        points.push_back(std::move(p));
        continue;
      }
      auto machine = with_memory(g, copy->second, memory.cores);
      if (!machine) {
        refused = machine.error().message();
        points.push_back(std::move(p));
        continue;
      }
      plan::problem problem{.graph = &*machine, .collective = kind, .size = size, .ranks = {}, .root = {}};
      for (std::uint32_t rank = 0; rank < options.ranks; ++rank)
        problem.ranks.push_back(places[rank * places.size() / options.ranks]);
      plan::alpha_beta cost = plan::alpha_beta::host();
      if (memory.reduce_one_core.value > 0)
        cost.reduce_rate = memory.reduce_one_core * std::min(1.0, static_cast<double>(memory.cores) / options.ranks);
      plan::simulator<plan::alpha_beta> prices(*machine, cost);
      auto chosen = plan::with_host_planners(
          [&](const auto&... planners) { return plan::choose(prices, problem, {}, planners...); });
      if (!chosen) {
        refused = chosen.error().message();
        points.push_back(std::move(p));
        continue;
      }
      const std::size_t taken = spread_best(*chosen);
      plan::candidate& best = chosen->candidates[taken];
      if (!best.proved) {
        auto proof = plan::verify(*best.plan);
        if (proof)
          best.proved = std::move(*proof);
        else
          refused = proof.error().message();
      }
      plan_figure f;
      f.collective = kind;
      f.size = size;
      f.chosen = best.name;
      f.predicted = best.price->time;
      f.share_of_bound = chosen->limit.time / best.price->time;
      if (best.proved) f.proof = to_string(best.proved->method);
      if (best.proved) ++proved;
      f.copy = copy->second;
      std::string why = taken == 0 ? best.reason : "within 5 % of the cheapest, and its busiest rank has least to do";
      for (std::size_t i = 0, named = 0; i < chosen->candidates.size() && named < 2; ++i)
        if (const plan::candidate& next = chosen->candidates[i]; next.price && next.name != best.name) {
          why += (named++ == 0 ? "; beside it " : ", ") + next.name + " " + to_string(next.price->time);
        }
      f.reasons.push_back(std::move(why));
      r.plans.push_back(std::move(f));
      p.predicted = best.price->time;
      p.point.plan = *best.plan;
      p.point.plan->name = best.name;
      points.push_back(std::move(p));
    }
  }
  if (proved > 0 && refused.empty()) {
    verdict v = reported("plan/proof", std::to_string(options.ranks) + " ranks", state::healthy, 1);
    v.how = trust::derived;
    v.sentence = "plans: all " + std::to_string(proved) + " were proved to compute their collective before they ran";
    r.verdicts.push_back(std::move(v));
  } else {
    r.verdicts.push_back(not_measured("plan/proof", std::to_string(options.ranks) + " ranks", "no plan",
                                      "plans: not all were made: " + refused));
  }
  return points;
}

template <class = void>
[[nodiscard]] bytes_per_second busbw_of(const collective_sample& s, std::uint32_t ranks) {
  return s.size / s.time.median * busbw_factor(s.collective, ranks);
}

/// The better of two runs of a point: noise only ever slows down.
template <class = void>
void keep_better(collective_sample& kept, collective_sample&& other) {
  const std::uint64_t checked = kept.checked + other.checked;
  const std::uint64_t wrong = kept.wrong + other.wrong;
  if (other.time.median < kept.time.median) kept = std::move(other);
  kept.checked = checked;
  kept.wrong = wrong;
}

template <class = void>
[[nodiscard]] comparison compared(const collective_sample& s, std::uint32_t ranks, bytes_per_second expected,
                                  const preflight_options& options) {
  comparison c;
  c.measured = busbw_of(s, ranks);
  const double per_second = static_cast<double>(s.size.value) * busbw_factor(s.collective, ranks);
  // The fastest plausible rate belongs to the lower end of the time's interval.
  c.upper = {s.time.range ? per_second / s.time.range->low.value : std::numeric_limits<double>::infinity()};
  c.expected = expected;
  c.fail_below = options.fail_below;
  c.suspect_below = options.suspect_below;
  c.noise = s.time.noise().value_or(1);
  return c;
}

template <class = void>
void judge_bandwidth(report& r, const collective_sample& s, std::optional<bytes_per_second> expected,
                     const preflight_options& options, const memory_model& memory, bool repeated) {
  const std::string name(to_string(s.collective));
  const std::string where = std::to_string(options.ranks) + " ranks";
  const std::string what = name + " of " + to_string(s.size) + " between " + where;
  if (!expected) {
    r.verdicts.push_back(not_measured(
        "collective/" + name + "/bandwidth", where, "no expectation for " + name,
        what + ": " + to_string(busbw_of(s, options.ranks)) + " busbw, not judged, since memory was not measured"));
    return;
  }
  const comparison c = compared(s, options.ranks, *expected, options);
  state is = judge(c);
  if (is == state::degraded && memory.busy) is = state::suspect;
  verdict v = measured("collective/" + name + "/bandwidth", where, is,
                       is == state::healthy ? 0.8 : (is == state::degraded ? 0.7 : 0.3));
  v.measured = c.measured;
  v.expected = *expected;
  v.sentence = what + " reaches " + to_string(c.measured) + " busbw, " + percent_of(c.measured / *expected) +
               " of the " + to_string(*expected) + " that the model expects of the measured copy rate";
  v.evidence = std::to_string(s.time.count) + " samples, spread " + percent_of(c.noise) +
               (repeated ? ", better of two runs" : "") + "; " + memory.evidence;
  if (is != state::healthy) {
    v.headline = name + " at " + percent_of(c.measured / *expected) + " of expectation";
    v.why = is == state::degraded ? cause::unknown : cause::limit;
    v.next_step =
        memory.busy
            ? "cannot tell on a busy machine: stop other programs and run again"
            : "run again; look for frequency limits, memory pressure and cgroup CPU quotas (cpu.stat nr_throttled)";
  }
  r.verdicts.push_back(std::move(v));
}

template <class = void>
void run_collectives(report& r, std::vector<planned>& points, const preflight_options& options,
                     const memory_model& memory, deadline until) {
  const std::string where = std::to_string(options.ranks) + " ranks";
  std::vector<collective_point> todo;
  for (const planned& p : points) todo.push_back(p.point);
  const seconds each{std::clamp(until.left().value / (4.0 * static_cast<double>(todo.size())), 0.05, 0.3)};
  auto got = measure_collectives(todo, {options.ranks, each}, until);
  if (!got) {
    const errc code = got.error().code;
    // When the time is up ranks are stopped, and what they say then is about the stopping.
    const bool could_not = until.left().value <= 0 || code == errc::timed_out || code == errc::system ||
                           code == errc::unavailable || code == errc::invalid_argument || code == errc::unsupported ||
                           code == errc::permission;
    verdict v = could_not ? not_measured("collective/run", where, "collectives did not finish",
                                         "collectives: " + got.error().message())
                          : measured("collective/run", where, state::dead, 0.9);
    if (!could_not) {
      v.headline = "collective between local ranks failed";
      v.sentence = "collectives between " + where + " failed: " + got.error().what;
      v.next_step = got.error().next;
    }
    r.verdicts.push_back(std::move(v));
    return;
  }

  if (got->size() < points.size())
    r.verdicts.push_back(not_measured("collective/run", where, "not all collectives in time",
                                      "collectives: " + std::to_string(got->size()) + " of " +
                                          std::to_string(points.size()) + " were run before the time was up",
                                      "allow more time (--time-budget)"));
  const auto expected_of_point = [&](std::size_t i, const collective_sample& s) -> std::optional<bytes_per_second> {
    if (!points[i].predicted) return std::nullopt;
    return s.size / *points[i].predicted * busbw_factor(s.collective, options.ranks);
  };
  // Suspicious points get a second chance, with more time.
  std::vector<bool> repeated(points.size(), false);
  for (std::size_t i = 0; i < got->size(); ++i) {
    const bool largest = points[i].point.size == options.sizes.back();
    const auto expected = expected_of_point(i, (*got)[i]);
    const bool low = expected && judge(compared((*got)[i], options.ranks, *expected, options)) != state::healthy;
    const bool under = options.min_bandwidth && points[i].point.collective == collective_kind::all_reduce &&
                       busbw_of((*got)[i], options.ranks) < *options.min_bandwidth;
    if (!largest || (!low && !under) || until.left() < 4 * each) continue;
    if (auto again = measure_collectives({&todo[i], 1}, {options.ranks, 3 * each}, until)) {
      keep_better((*got)[i], std::move(again->front()));
      repeated[i] = true;
    }
  }

  for (const collective_kind kind : {collective_kind::all_reduce, collective_kind::all_gather}) {
    std::uint64_t checked = 0;
    std::uint64_t wrong = 0;
    std::string first_wrong;
    if (seq::none_of(*got, [&](const collective_sample& s) { return s.collective == kind; })) continue;
    for (const collective_sample& s : *got) {
      if (s.collective != kind) continue;
      checked += s.checked;
      wrong += s.wrong;
      if (s.wrong > 0 && first_wrong.empty()) first_wrong = to_string(s.size);
    }
    const std::string name(to_string(kind));
    verdict v = measured("collective/" + name + "/data", where, wrong == 0 ? state::healthy : state::dead, 1);
    v.sentence = name + " between " + where + ": " +
                 (wrong == 0 ? "all " + std::to_string(checked) + " elements right"
                             : std::to_string(wrong) + " of " + std::to_string(checked) + " elements wrong, first at " +
                                   first_wrong);
    if (wrong > 0) {
      v.headline = "wrong data from " + name;
      v.why = cause::fault;
      v.evidence = "inputs by rank and position, results recomputed";
      v.next_step = "do not use this machine; test its memory (memtester, EDAC counters)";
    }
    r.verdicts.push_back(std::move(v));
  }

  for (std::size_t i = 0; i < got->size(); ++i) {
    const collective_sample& s = (*got)[i];
    collective_figure f;
    f.collective = s.collective;
    f.size = s.size;
    f.ranks = options.ranks;
    f.plan = s.plan;
    f.time = s.time;
    f.algbw = s.size / s.time.median;
    f.busbw = busbw_of(s, options.ranks);
    f.expected = points[i].predicted;
    if (f.expected)
      f.formula = std::string(to_string(s.collective)) + " hands over " +
                  (s.collective == collective_kind::all_reduce ? "2(n-1)" : "(n-1)") +
                  " x size in all, n = " + std::to_string(options.ranks) +
                  "; every byte is copied into and out of shared memory, at the copy rate of " +
                  counted(memory.cores, "core") +
                  " measured for this working set; reductions at their measured rate, latencies of the plan added; "
                  "caches that keep "
                  "what is handed over can save up to half, so more than 100 % is possible";
    f.checked = s.checked;
    f.wrong = s.wrong;
    r.collectives.push_back(std::move(f));
    if (points[i].point.size == options.sizes.back())
      judge_bandwidth(r, s, expected_of_point(i, s), options, memory, repeated[i]);
    if (options.min_bandwidth && points[i].point.size == options.sizes.back() &&
        s.collective == collective_kind::all_reduce) {
      const bool low = busbw_of(s, options.ranks) < *options.min_bandwidth;
      verdict v = measured("collective/all_reduce/min-bandwidth", where, low ? state::degraded : state::healthy, 0.9);
      v.measured = busbw_of(s, options.ranks);
      v.expected = options.min_bandwidth;
      v.sentence = "all_reduce of " + to_string(s.size) + " between " + where + " reaches " + to_string(*v.measured) +
                   " busbw; " + to_string(*v.expected) + " were asked for";
      v.evidence = std::to_string(s.time.count) + " samples" + (repeated[i] ? ", better of two runs" : "");
      if (low) v.headline = "all_reduce " + to_string(*v.measured) + " of " + to_string(*v.expected);
      if (low) v.next_step = "run again on an idle machine, or ask for less (--min-bandwidth)";
      r.verdicts.push_back(std::move(v));
    }
  }
}

}  // namespace detail

template <class Tell>
report preflight(const topo::graph& machine, const preflight_options& options, Tell&& tell) {
  const deadline until = deadline::in(options.budget);
  report r;
  r.source = machine.source();
  r.live = options.live;
  r.ranks = options.live ? options.ranks : 0;
  const topo::summary counts = topo::summarize(machine);
  r.machine = {counts.gpus, machine.all(topo::node_kind::nic).size(), machine.all(topo::node_kind::nic_port).size(),
               counts.numa_domains, 0};
  r.findings.assign(machine.findings().begin(), machine.findings().end());
  const core_layout layout = options.live ? read_core_layout() : core_layout{};
  r.machine.cores = layout.cores.size();
  r.last_level_cache = layout.last_level_cache;
  r.load = layout.load;
  tell(section::machine, std::as_const(r));

  r.paths = expected_paths(machine);
  r.verdicts = check_links(machine);
  if (counts.gpus == 0)
    r.verdicts.push_back(detail::not_measured("gpu/bandwidth", r.source, "no GPU", "GPUs: none is seen"));
  else
    r.verdicts.push_back(detail::not_measured(
        "gpu/bandwidth", r.source, "GPU transfers",
        "GPUs: " + detail::counted(counts.gpus, "GPU") + " seen, transfers between them are not run by this program",
        "run nvbandwidth and nccl-tests, and compare with the expected bandwidths"));
  tell(section::paths, std::as_const(r));

  if (!options.live) {
    r.verdicts.push_back(detail::not_measured("memory/bandwidth", r.source, "recorded machine",
                                              "memory and collectives: not run, the machine is a recording"));
    tell(section::verdicts, std::as_const(r));
    return r;
  }
  // Half of the time at most for memory: the collectives are what people came for.
  const detail::memory_model memory =
      detail::probe_memory(r, layout, options, sooner(until, deadline::in(0.5 * options.budget)));
  tell(section::memory, std::as_const(r));
  std::vector<detail::planned> points = detail::plan_collectives(r, machine, options, memory);
  tell(section::plans, std::as_const(r));
  detail::run_collectives(r, points, options, memory, until);
  tell(section::collectives, std::as_const(r));
  tell(section::verdicts, std::as_const(r));
  return r;
}

}}}  // namespace topocoll::v0::probe
