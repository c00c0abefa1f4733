// SPDX-License-Identifier: Apache-2.0
#pragma once
// A graph with only some of its GPUs: what a process sees behind CUDA_VISIBLE_DEVICES or in a container.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// The graph without the GPUs that `visible` does not name; everything else stays, for other processes use it.
///
/// @param visible  as in CUDA_VISIBLE_DEVICES: numbers ("0,3"), UUIDs or their beginnings ("GPU-8f1c"), mixed. A GPU that is
///                 listed gets the fact "visible_index", its number inside the process. As CUDA has it, the list ends at the
///                 first entry that names no GPU or "-1"; a finding tells. Applies to each host on its own. Source: CUDA
///                 Programming Guide, section CUDA Environment Variables.
/// @return `invalid_argument` when an entry is no number and no UUID, when a beginning fits several GPUs, for a MIG device
///         (the graph knows whole GPUs), and for a GPU that is listed twice. An empty list leaves no GPU.
/// Cost: O(n + m).
template <class = void>
[[nodiscard]] result<fragment> with_visible_gpus(const graph& g, std::string_view visible);

namespace detail {

/// The GPU of `gpus` that an entry names; none when there is no such GPU.
template <class = void>
[[nodiscard]] result<std::vector<node_id>> gpus_named(const graph& g, const std::vector<node_id>& gpus,
                                                      std::string_view entry) {
  const auto refuse = [&](const std::string& why) {
    return fail(errc::invalid_argument, "'" + std::string(entry) + "' " + why,
                "list numbers or UUIDs of GPUs, as CUDA_VISIBLE_DEVICES does");
  };
  if (entry.substr(0, 4) == "MIG-") return refuse("is a part of a GPU; the graph knows whole ones");
  std::vector<node_id> found;
  if (entry.substr(0, 4) == "GPU-") {
    for (const node_id v : gpus) {
      const auto& facts = g.at(v).facts;
      const auto uuid = seq::find_by(facts, "uuid", &std::pair<std::string, std::string>::first);
      if (uuid != facts.end() && uuid->second.compare(0, entry.size(), entry) == 0) found.push_back(v);
    }
    if (found.size() > 1) return refuse("begins the UUIDs of several GPUs");
    return found;
  }
  if (entry.empty() || entry.size() > 9 || entry.find_first_not_of("0123456789") != std::string_view::npos)
    return refuse("is neither a number nor a UUID");
  std::uint32_t number = 0;
  for (const char c : entry) number = number * 10 + static_cast<std::uint32_t>(c - '0');
  for (const node_id v : gpus)
    if (g.at(v).index == number) found.push_back(v);
  return found;
}

}  // namespace detail

template <class>
result<fragment> with_visible_gpus(const graph& g, std::string_view visible) {
  std::vector<std::string_view> entries;
  for (std::string_view rest = visible; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    std::string_view entry = rest.substr(0, comma);
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    entries.push_back(entry);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  fragment f;
  f.source = g.source();
  f.findings.assign(g.findings().begin(), g.findings().end());

  std::vector<node_id> gpus = g.all(node_kind::gpu);
  seq::sort_by(gpus, [&](node_id v) { return std::string_view(g.at(v).host); });
  constexpr std::uint32_t hidden = UINT32_MAX;
  std::vector<std::uint32_t> place(g.node_count(), 0);  // of GPUs: their number inside, or hidden
  for (const node_id v : gpus) place[v.value] = hidden;
  for (std::size_t first = 0, last = 0; first < gpus.size(); first = last) {
    const std::string& host = g.at(gpus[first]).host;
    while (last < gpus.size() && g.at(gpus[last]).host == host) ++last;
    const std::vector<node_id> own(gpus.begin() + static_cast<std::ptrdiff_t>(first),
                                   gpus.begin() + static_cast<std::ptrdiff_t>(last));
    std::uint32_t next = 0;
    for (const std::string_view entry : entries) {
      if (entry == "-1") break;
      const auto named = detail::gpus_named(g, own, entry);
      if (!named) return named.error();
      if (named->empty()) {
        f.findings.push_back({severity::warning, host,
                              "no GPU is called '" + std::string(entry) + "'; CUDA ends the list of visible GPUs there",
                              "visible GPUs: " + std::string(visible), "list the GPUs that 'topocoll topo' shows", 1});
        break;
      }
      std::uint32_t& at = place[named->front().value];
      if (at != hidden)
        return fail(errc::invalid_argument, "'" + std::string(visible) + "' lists a GPU twice",
                    "list each GPU once; CUDA gives no GPUs at all for such a list");
      at = next++;
    }
  }

  std::vector<std::uint32_t> moved(g.node_count(), hidden);
  for (std::uint32_t v = 0; v < g.node_count(); ++v) {
    const node& n = g.at(node_id{v});
    if (n.kind == node_kind::gpu && place[v] == hidden) continue;
    moved[v] = f.add(n).value;
    if (n.kind != node_kind::gpu) continue;
    auto& facts = f.nodes.back().facts;
    std::erase_if(facts, [](const auto& fact) { return fact.first == "visible_index"; });
    facts.emplace_back("visible_index", std::to_string(place[v]));
    seq::sort(facts);
  }
  for (const link& l : g.links()) {
    if (moved[l.from.value] == hidden || moved[l.to.value] == hidden) continue;
    f.links.push_back(l);
    f.links.back().from = {moved[l.from.value]};
    f.links.back().to = {moved[l.to.value]};
  }
  return f;
}

}}}  // namespace topocoll::v0::topo
