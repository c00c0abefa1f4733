// SPDX-License-Identifier: Apache-2.0
#pragma once
// Probes one machine and judges it: links as reported, memory, plans, and collectives between local processes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/host_planners.hpp>
#include <topocoll/probe/collective_probe.hpp>
#include <topocoll/probe/cores.hpp>
#include <topocoll/probe/expectation.hpp>
#include <topocoll/probe/link_checks.hpp>
#include <topocoll/probe/memory.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/probe/verdict.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/summary.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What is probed, and what it is held against.
struct preflight_options {
  std::uint32_t ranks = 4;  ///< local processes; at least 2
  seconds budget{15};       ///< for everything; what does not fit is not measured
  std::vector<bytes> sizes = {64_KiB, 1_MiB, 16_MiB};
  std::optional<bytes_per_second> min_bandwidth{};  ///< busbw that all_reduce must reach at the largest size
  bool live = true;                                 ///< the graph is this machine; false: nothing is run

  /// Shares of the model's expectation for the largest size. Under `fail_below` on a quiet machine is a failure, under
  /// `suspect_below` is looked at twice. Low on purpose: processes that share cores wait for the scheduler, which the model
  /// does not know. Chosen from runs on a busy two-core virtual machine, where 4 ranks reached 15 to 28 % at 16 MiB.
  double fail_below = 0.05;
  double suspect_below = 0.10;
  double sibling_allowed = 0.25;  ///< a core or NUMA domain this much under its siblings is odd
};

/// Parts of a preflight, in the order in which they are finished.
enum class section : std::uint8_t { machine, paths, memory, plans, collectives, verdicts };

/// Runs everything. `tell(section, report)` is called when a part is finished, for output and progress.
///
/// Never fails: what could not be done is a verdict `not_measured` with the reason. Fills everything of the report but host,
/// start, version and duration, which the caller knows. Preconditions: options.ranks >= 2, at least one size; when live, this
/// process has one thread.
template <class Tell>
[[nodiscard]] report preflight(const topo::graph& machine, const preflight_options& options, Tell&& tell);

namespace detail {

template <class = void>
[[nodiscard]] std::string fixed_2(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}
template <class = void>
[[nodiscard]] std::string percent_of(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
  return text;
}

/// What the memory probe leaves for the model.
struct memory_model {
  std::vector<std::pair<bytes, bytes_per_second>>
      copy;  ///< by size of the collective, cores that the ranks use together
  bytes_per_second reduce_one_core{};
  std::size_t cores = 0;
  bool busy = false;  ///< other programs took the cores away while we measured
  std::string evidence;
};

template <class = void>
[[nodiscard]] memory_figure figure_of(const memory_sample& s, std::string where) {
  return {
      std::move(where), std::string(to_string(s.kernel)), s.cores.size(), s.buffer, s.together, s.passes, s.disturbed,
      s.core_share};
}

template <class = void>
[[nodiscard]] verdict not_measured(std::string check, std::string where, std::string headline, std::string sentence,
                                   std::string next = {}) {
  verdict v;
  v.check = std::move(check);
  v.where = std::move(where);
  v.why = cause::limit;
  v.headline = std::move(headline);
  v.sentence = std::move(sentence);
  v.next_step = std::move(next);
  return v;
}

template <class = void>
[[nodiscard]] verdict measured(std::string check, std::string where, state is, double confidence) {
  verdict v = reported(std::move(check), std::move(where), is, confidence);
  v.how = trust::measured;
  return v;
}

/// Cores or NUMA domains against each other.
template <class = void>
void compare_siblings(std::vector<verdict>& said, const std::string& check, const std::string& kind,
                      const std::vector<std::string>& names, const std::vector<summary<bytes_per_second>>& rates,
                      double allowed, bool busy) {
  const auto odd = odd_ones(std::span<const summary<bytes_per_second>>(rates), allowed);
  double low = rates.front().median.value;
  double high = low;
  for (const auto& r : rates) {
    low = std::min(low, r.median.value);
    high = std::max(high, r.median.value);
  }
  bool alike = true;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (odd[i] == sibling::alike) continue;
    alike = false;
    const bool sure = odd[i] == sibling::odd && !busy;
    verdict v = measured(check, names[i], sure ? state::degraded : state::suspect, sure ? 0.85 : 0.4);
    v.measured = rates[i].median;
    v.expected = bytes_per_second{high};
    v.headline = names[i] + " slower than its siblings";
    v.sentence = names[i] + " copies memory at " + to_string(rates[i].median) + " while the fastest of its " +
                 std::to_string(rates.size()) + " siblings reaches " + to_string(bytes_per_second{high});
    if (rates.size() == 2)
      v.sentence += "; of two, neither can be called wrong";
    else if (busy)
      v.sentence += "; other programs were running, so this proves nothing";
    v.evidence = "median of " + std::to_string(rates[i].count) + " passes" +
                 (rates[i].range ? ", 95 % interval up to " + to_string(rates[i].range->high) : "");
    v.why = sure ? cause::fault : cause::unknown;
    v.next_step =
        sure ? "check memory channels, frequency limits and thermal state of this part" : "repeat on an idle machine";
    said.push_back(std::move(v));
  }
  if (!alike) return;
  verdict v = measured(check, counted(rates.size(), kind), state::healthy, busy ? 0.6 : 0.9);
  v.measured = bytes_per_second{low};
  v.expected = bytes_per_second{high};
  v.sentence = "memory: " + counted(rates.size(), kind) + " alike, copying at " + to_string(bytes_per_second{low}) +
               " to " + to_string(bytes_per_second{high}) + " each";
  said.push_back(std::move(v));
}

template <class = void>
memory_model probe_memory(report& r, const core_layout& layout, const preflight_options& options, deadline until) {
  memory_model model;
  std::size_t passes = 0;
  std::size_t disturbed = 0;
  std::vector<std::uint32_t> all;
  std::vector<std::uint32_t> singles;  // one core at a time: all on small machines, else the first of each NUMA domain
  for (const usable_core& c : layout.cores) {
    all.push_back(c.number);
    const bool first =
        seq::none_of(layout.cores, [&](const usable_core& o) { return o.numa == c.numa && o.number < c.number; });
    if (layout.cores.size() <= 4 || first) singles.push_back(c.number);
  }
  const auto domains = layout.numa_domains();
  // Every measurement gets its share of the time that is left: a busy machine makes them long.
  std::size_t open =
      options.sizes.size() + singles.size() + (all.size() > 1 ? 1 : 0) + (domains.size() > 1 ? domains.size() : 0);
  const auto share = [&] {
    return sooner(until, deadline::in(until.left() / static_cast<double>(std::max<std::size_t>(open--, 1))));
  };
  const auto run = [&](const std::vector<std::uint32_t>& cores,
                       const std::string& where) -> std::optional<std::vector<memory_sample>> {
    const auto buffer = streaming_buffer(layout, cores.size());
    if (!buffer) {
      r.verdicts.push_back(
          not_measured("memory/bandwidth", where, "memory too small to measure",
                       "memory of " + where +
                           ": not measured, buffers beyond the caches would need more than a quarter of what is free"));
      return std::nullopt;
    }
    auto got = measure_memory(cores, {.buffer = *buffer}, share());
    if (!got) {
      r.verdicts.push_back(not_measured("memory/bandwidth", where, "memory of " + where,
                                        "memory of " + where + ": " + got.error().message()));
      return std::nullopt;
    }
    for (const memory_sample& s : *got) {
      r.memory.push_back(figure_of(s, where));
      passes += s.passes;
      disturbed += s.disturbed;
    }
    return std::move(*got);
  };
  const auto core_name = [](std::uint32_t core) { return "core " + std::to_string(core); };

  // Working sets of the collectives first, on the cores that the ranks will use: the model needs them.
  const std::vector<std::uint32_t> used(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), options.ranks)));
  model.cores = used.size();
  for (const bytes size : options.sizes) {
    const bytes buffer{
        std::max<std::uint64_t>(4096, size.value * options.ranks / std::max<std::size_t>(used.size(), 1))};
    const deadline part = share();
    if (layout.memory_available && 2 * buffer.value * used.size() > layout.memory_available->value / 4) continue;
    if (const auto got = measure_memory(used, {.buffer = buffer, .repeats = 7, .most = 21}, part)) {
      model.copy.emplace_back(size, got->front().together.median);
      model.reduce_one_core =
          got->back().together.median / static_cast<double>(used.size());  // of the largest size in the end
      passes += got->front().passes;
      disturbed += got->front().disturbed;
    }
  }

  std::optional<summary<bytes_per_second>> one_copy;
  std::vector<std::string> names;
  std::vector<summary<bytes_per_second>> each;
  for (const std::uint32_t core : singles) {
    const auto got = run({core}, core_name(core));
    if (!got) continue;
    if (!one_copy || (*got)[0].together.median > one_copy->median) one_copy = (*got)[0].together;
    names.push_back(core_name(core));
    each.push_back((*got)[0].together);
  }
  std::optional<memory_sample> together;
  if (all.size() > 1)
    if (const auto got = run(all, std::to_string(all.size()) + " cores")) {
      together = (*got)[0];
      if (layout.cores.size() > 4) {
        names.clear();
        for (const std::uint32_t core : all) names.push_back(core_name(core));
        each = together->alone;
      }
    }
  std::vector<std::string> domain_names;
  std::vector<summary<bytes_per_second>> domain_rates;
  if (domains.size() > 1)
    for (const auto& domain : domains) {
      const std::string where = domain ? "NUMA " + std::to_string(*domain) : "cores of unknown NUMA domain";
      if (const auto got = run(layout.in_numa(domain), where)) {
        domain_names.push_back(where);
        domain_rates.push_back((*got)[0].together);
      }
    }

  const double loaded = layout.load.value_or(0) / static_cast<double>(std::max<std::size_t>(all.size(), 1));
  model.busy = (passes > 0 && 5 * disturbed > passes) || loaded > 0.5;
  model.evidence =
      std::to_string(disturbed) + " of " + std::to_string(passes) + " memory passes were disturbed by other programs";
  if (layout.load)
    model.evidence += ", load " + fixed_2(*layout.load) + " on " + counted(all.size(), "core") + " before the run";

  if (each.size() > 1)
    compare_siblings(r.verdicts, "memory/cores", "core", names, each, options.sibling_allowed, model.busy);
  else
    r.verdicts.push_back(all.size() > 1 ? not_measured("memory/cores", "cores", "cores not compared",
                                                       "cores: not compared, their memory was not measured in time",
                                                       "allow more time (--time-budget)")
                                        : not_measured("memory/cores", "cores", "one core",
                                                       "cores: not compared, this process may use only one"));
  if (domain_rates.size() > 1)
    compare_siblings(r.verdicts, "memory/numa", "NUMA domain", domain_names, domain_rates, options.sibling_allowed,
                     model.busy);
  else
    r.verdicts.push_back(domains.size() > 1
                             ? not_measured("memory/numa", "NUMA domains", "NUMA domains not compared",
                                            "NUMA domains: not compared, their memory was not measured in time",
                                            "allow more time (--time-budget)")
                             : not_measured("memory/numa", "NUMA domains", "one NUMA domain",
                                            "NUMA domains: not compared, there is only one"));

  if (one_copy && together) {
    const double gain = together->together.median / one_copy->median;
    const bool collapsed = gain < 0.9;
    verdict v = measured("memory/together", together ? std::to_string(all.size()) + " cores" : "",
                         collapsed ? state::suspect : state::healthy, collapsed ? 0.4 : 0.9);
    v.measured = together->together.median;
    v.expected = one_copy->median;
    v.sentence = "memory: " + counted(all.size(), "core") + " together copy at " +
                 to_string(together->together.median) + ", " + fixed_2(gain) + " times one core";
    if (model.busy) v.sentence += " (other programs were running)";
    if (collapsed) {
      v.headline = "memory slower with all cores";
      v.evidence = model.evidence;
      v.next_step = "repeat on an idle machine; if it stays, look at NUMA placement and at what else uses memory";
    }
    r.verdicts.push_back(std::move(v));
  }
  return model;
}

/// The machine's graph with what was measured on its memory links: what two processes hand over is copied in and copied out, so
/// a byte takes two copies.
template <class = void>
[[nodiscard]] result<topo::graph> with_memory(const topo::graph& g, bytes_per_second copy, std::size_t cores) {
  topo::fragment f;
  f.source = g.source();
  f.nodes.assign(g.nodes().begin(), g.nodes().end());
  f.links.assign(g.links().begin(), g.links().end());
  const std::size_t domains = std::max<std::size_t>(g.all(topo::node_kind::host_memory).size(), 1);
  for (topo::link& l : f.links) {
    if (l.kind != topo::link_kind::memory) continue;
    l.capacity = copy / (2.0 * static_cast<double>(domains));
    l.how = trust::measured;
    l.reason = "half of " + to_string(copy) + ", measured copying on " + counted(cores, "core") +
               ": every byte is copied in and out";
  }
  return topo::graph::from(std::move(f));
}

}  // namespace detail
}}}  // namespace topocoll::v0::probe

#include <topocoll/probe/detail/preflight_run.hpp>
