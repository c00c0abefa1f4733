// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the GPUs of each host are joined by NVLink or XGMI, as JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// "pass", "warn" or "fail": by the worst of the findings.
template <class = void>
[[nodiscard]] const char* verdict_of(std::span<const finding> all) {
  severity worst = severity::note;
  for (const finding& f : all) worst = std::max(worst, f.level);
  constexpr const char* words[] = {"pass", "warn", "fail"};
  return words[static_cast<std::size_t>(worst)];
}

/// The links of one GPU to others, taken together.
struct gpu_links {
  std::map<std::uint32_t, std::uint32_t> to;  ///< lanes to each GPU or plane of switches, by node
  std::uint32_t lanes = 0;
  std::optional<bytes_per_second> now, best;  ///< what they run at and what they could; empty unless all of them tell
};

template <class = void>
[[nodiscard]] gpu_links links_of_gpu(const topo::graph& g, node_id gpu) {
  gpu_links all;
  bool first = true;
  for (const link_id e : g.out_links(gpu)) {
    const topo::link& l = g.at(e);
    const topo::node_kind end = g.at(l.to).kind;
    if (l.kind != topo::link_kind::nvlink && l.kind != topo::link_kind::xgmi) continue;
    if (end != topo::node_kind::gpu && end != topo::node_kind::nvswitch) continue;
    all.to[l.to.value] += l.lanes;
    all.lanes += l.lanes;
    const auto add = [&](std::optional<bytes_per_second>& sum, const std::optional<bytes_per_second>& one) {
      sum = first ? one : sum && one ? std::optional(*sum + *one) : std::nullopt;
    };
    add(all.now, l.current);
    add(all.best, l.nominal);
    first = false;
  }
  return all;
}

/// Links between `a` and `b`: direct ones, else what both have to one plane; empty when nothing joins them.
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> links_between(node_id b, const gpu_links& of_a, const gpu_links& of_b,
                                                         const topo::graph& g) {
  if (const auto direct = of_a.to.find(b.value); direct != of_a.to.end()) return direct->second;
  for (const auto& [end, lanes] : of_a.to)
    if (const auto same = of_b.to.find(end);
        same != of_b.to.end() && g.at(node_id{end}).kind == topo::node_kind::nvswitch)
      return std::min(lanes, same->second);
  return std::nullopt;
}

/// Whether a GPU without links is of a model of which another GPU has some.
template <class = void>
[[nodiscard]] bool lost_all(const topo::graph& g, const std::vector<node_id>& gpus, const std::vector<gpu_links>& links,
                            std::size_t i) {
  const auto model = [&](std::size_t k) {
    for (const auto& [name, value] : g.at(gpus[k]).facts)
      if (name == "model") return value;
    return std::string();
  };
  if (!links[i].to.empty() || model(i).empty()) return false;
  for (std::size_t k = 0; k < gpus.size(); ++k)
    if (!links[k].to.empty() && model(k) == model(i)) return true;
  return false;
}

/// One entry for each host with such links (docs/formats/topology.md). Cost: O(GPUs^2 of a host) for each.
template <class = void>
[[nodiscard]] io::json gpu_links_json(const topo::graph& g) {
  io::json hosts = io::json::array();
  for (const topo::group& host : topo::hosts(g)) {
    std::vector<node_id> gpus;
    std::vector<gpu_links> links;
    bool any = false, told = true;
    for (const node_id v : host.nodes) {
      if (g.at(v).kind != topo::node_kind::gpu) continue;
      gpus.push_back(v);
      links.push_back(links_of_gpu(g, v));
      any = any || !links.back().to.empty();
      for (const auto& [end, lanes] : links.back().to)
        for (const auto& [name, value] : g.at(node_id{end}).facts) told = told && name != "stand_in";
    }
    if (!any) continue;
    bool all_to_all = true, alike = true;
    std::optional<std::uint32_t> each;
    for (std::size_t a = 0; a < gpus.size(); ++a)
      for (std::size_t b = a + 1; b < gpus.size(); ++b) {
        const auto n = links_between(gpus[b], links[a], links[b], g);
        all_to_all = all_to_all && n;
        alike = alike && n && *n != 0 && (!each || each == n);
        if (!each) each = n;
      }
    io::json rows = io::json::array(), degraded = io::json::array();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      io::json one = {{"gpu", g.at(gpus[i]).key}};
      if (g.at(gpus[i]).index) one["index"] = *g.at(gpus[i]).index;
      one["links"] = links[i].lanes;
      if (links[i].now) one["current_bytes_per_second"] = links[i].now->value;
      if (links[i].best) one["nominal_bytes_per_second"] = links[i].best->value;
      std::optional<double> share;
      if (links[i].now && links[i].best && links[i].best->value > 0) share = *links[i].now / *links[i].best;
      if (lost_all(g, gpus, links, i)) share = 0;
      if (share) one["share"] = *share;
      constexpr double rounded = 0.99;  // drivers print rates in steps of up to a hundredth
      if (share && *share < rounded) degraded.push_back(g.at(gpus[i]).key);
      rows.push_back(std::move(one));
    }
    io::json one = {{"host", g.at(gpus[0]).host}, {"all_to_all", nullptr}, {"links_per_pair", nullptr}};
    if (told) one["all_to_all"] = all_to_all;
    if (told && all_to_all && alike && each) one["links_per_pair"] = *each;
    one["gpus"] = std::move(rows);
    one["degraded"] = std::move(degraded);
    hosts.push_back(std::move(one));
  }
  return hosts;
}

}}}}  // namespace topocoll::v0::app::detail
