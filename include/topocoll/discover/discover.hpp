// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asks several sources about one machine or fabric and joins what they tell into one graph.
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/merge.hpp>

namespace topocoll { inline namespace v0 {

/// A graph, and everything that was noticed on the way to it.
struct discovery {
  topo::graph graph;
  std::vector<finding> findings;  ///< those of the graph, and a warning for each source that could tell nothing
};

/// Joins what was read. For programs that choose their sources while they run.
/// @param refusals  why other sources told nothing; kept as findings
/// @return the first refusal when there are no fragments; else as `merge` and `graph::from`
template <class = void>
[[nodiscard]] result<discovery> join_fragments(std::vector<topo::fragment> fragments,
                                               const std::vector<std::pair<std::string, failure>>& refusals = {}) {
  if (fragments.empty()) {
    if (refusals.empty()) return fail(errc::invalid_argument, "no source was named, so there is nothing to discover");
    failure first = refusals.front().second;
    for (std::size_t i = 1; i < refusals.size(); ++i)
      first.what += "; " + refusals[i].first + ": " + refusals[i].second.what;
    return first;
  }
  auto joined = topo::merge(fragments);
  if (!joined) return joined.error();
  auto graph = topo::graph::from(std::move(*joined));
  if (!graph) return graph.error();
  discovery d;
  d.findings.assign(graph->findings().begin(), graph->findings().end());
  d.graph = std::move(*graph);
  for (const auto& [name, why] : refusals)
    d.findings.push_back({severity::warning, name, "the source could tell nothing: " + why.what, {}, why.next, 1});
  return d;
}

/// Reads every source in turn and joins the answers: `discover({}, sysfs{}, nccl_xml{"topo.xml"})`.
///
/// Devices are joined by their keys, so sources of one machine must agree on `options.host`. A source that fails becomes a
/// finding as long as another one answers. Obeys `options.until`.
/// @return the failure of the first source when none answers
template <TopologySource... Sources>
requires(sizeof...(Sources) > 0)
    [[nodiscard]] result<discovery> discover(const discover_options& options, Sources... sources) {
  std::vector<topo::fragment> fragments;
  std::vector<std::pair<std::string, failure>> refusals;
  const auto ask = [&](auto& source) {
    auto told = source.read(options);
    if (told)
      fragments.push_back(std::move(*told));
    else
      refusals.emplace_back(std::string(source.name()), std::move(told).error());
  };
  (ask(sources), ...);
  return join_fragments(std::move(fragments), refusals);
}

}}  // namespace topocoll::v0
