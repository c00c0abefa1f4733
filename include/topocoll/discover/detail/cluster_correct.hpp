// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/cluster_graph.hpp replaces single facts by what the cluster file says about them.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Applies `[[corrections]]` to a finished fragment; each is told. @return `malformed_input` for a node that is not there
template <class = void>
[[nodiscard]] result<void> correct(topo::fragment& f, const read::cluster_file& cluster, const std::string& file) {
  if (cluster.corrections.empty()) return {};
  const auto refuse = [&](std::uint32_t line, const std::string& why, const char* next = "") {
    return fail(errc::malformed_input, file + " line " + std::to_string(line) + ": " + why, next);
  };
  std::vector<std::uint32_t> by_key(f.nodes.size());
  for (std::uint32_t v = 0; v < by_key.size(); ++v) by_key[v] = v;
  const auto key = [&](std::uint32_t v) -> const std::string& { return f.nodes[v].key; };
  seq::sort_by(by_key, key);
  for (const read::cluster_correction& c : cluster.corrections) {
    const auto at = seq::lower_bound_by(by_key, c.node, key);
    if (at == by_key.end() || key(*at) != c.node)
      return refuse(c.line, "the cluster has no node '" + c.node + "'",
                    "keys are those that topocoll topo --json shows");
    topo::node& n = f.nodes[*at];
    std::string before;
    if (c.fact == "name") {
      before = n.name;
      n.name = c.value;
    } else if (c.fact == "index" || c.fact == "numa" || c.fact == "global_rank") {
      std::optional<std::uint32_t>& number = c.fact == "index" ? n.index : c.fact == "numa" ? n.numa : n.global_rank;
      if (number) before = std::to_string(*number);
      const auto value = read::small_number(c.value);
      if (!value) return refuse(c.line, "'" + c.value.substr(0, 40) + "' is not a number for '" + c.fact + "'");
      number = value;
    } else if (c.fact == "key" || c.fact == "kind" || c.fact == "host") {
      return refuse(c.line, "'" + c.fact + "' cannot be corrected: it says which node this is");
    } else {
      const auto fact =
          seq::lower_bound_by(n.facts, c.fact, [](const auto& each) -> const std::string& { return each.first; });
      if (fact != n.facts.end() && fact->first == c.fact) {
        before = fact->second;
        fact->second = c.value;
      } else {
        n.facts.insert(fact, {c.fact, c.value});
      }
    }
    n.how = trust::reported;
    f.findings.push_back({severity::note,
                          c.node,
                          "'" + c.fact + "' of " + c.node + " is corrected to '" + c.value + "'" +
                              (before.empty() ? std::string() : ", was '" + before + "'"),
                          file + " line " + std::to_string(c.line) + ": " + c.reason,
                          {},
                          1});
  }
  return {};
}

}}}  // namespace topocoll::v0::detail
