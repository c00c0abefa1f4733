// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which NIC each GPU should use, as a table for people and as JSON.
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// What people call a node: its name, else its key; behind the host's name when there are several.
template <class = void>
[[nodiscard]] std::string affinity_label(const topo::graph& g, node_id v, bool several) {
  const topo::node& n = g.at(v);
  const std::string name = n.name.empty() ? n.key : n.name;
  return several && !n.host.empty() ? n.host + " " + name : name;
}

/// One line for each GPU, then the NICs that several GPUs share and those that none is near to.
template <class = void>
[[nodiscard]] std::string affinity_text(const topo::graph& g, const topo::affinity& a) {
  if (a.gpus.empty()) return "no GPUs\n";
  bool several = false;
  for (const topo::gpu_affinity& x : a.gpus) several = several || g.at(x.gpu).host != g.at(a.gpus[0].gpu).host;
  const auto label = [&](node_id v) { return affinity_label(g, v, several); };
  std::vector<std::vector<std::string>> rows = {{"GPU", "class", "NIC", "equally near"}};
  for (const topo::gpu_affinity& x : a.gpus) {
    std::string others;
    for (const node_id v : x.nearest)
      if (x.chosen != v) others += (others.empty() ? "" : ", ") + label(v);
    rows.push_back(
        {label(x.gpu), x.chosen ? to_string(x.distance) : "-", x.chosen ? label(*x.chosen) : "none", others});
  }
  std::vector<std::size_t> width(4, 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = row[c].size() > width[c] ? row[c].size() : width[c];
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += row[c] + std::string(width[c] + 2 - row[c].size(), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  text += '\n' + std::to_string(a.rails) + (a.rails == 1 ? " rail" : " rails") + ", at most " +
          std::to_string(a.gpus_per_nic) + (a.gpus_per_nic == 1 ? " GPU" : " GPUs") + " on one NIC\n";
  if (!a.unaffiliated.empty()) {
    text += "no GPU is nearer than SYS, so not for their traffic:";
    for (std::size_t i = 0; i < a.unaffiliated.size(); ++i) text += (i == 0 ? " " : ", ") + label(a.unaffiliated[i]);
    text += '\n';
  }
  return text;
}

/// The same for programs; nodes by their keys.
template <class = void>
[[nodiscard]] io::json to_json(const topo::graph& g, const topo::affinity& a) {
  const auto keys = [&](const std::vector<node_id>& nodes) {
    io::json list = io::json::array();
    for (const node_id v : nodes) list.push_back(g.at(v).key);
    return list;
  };
  io::json gpus = io::json::array();
  for (const topo::gpu_affinity& x : a.gpus) {
    io::json one = {{"gpu", g.at(x.gpu).key}};
    if (g.at(x.gpu).index) one["index"] = *g.at(x.gpu).index;
    one["class"] = to_string(x.distance);
    if (x.chosen) {
      one["nic"] = g.at(*x.chosen).key;
      if (g.at(*x.chosen).index) one["nic_index"] = *g.at(*x.chosen).index;
    }
    if (x.chosen) one["rate_bytes_per_second"] = x.rate.value;
    one["nearest"] = keys(x.nearest);
    gpus.push_back(std::move(one));
  }
  return {{"gpus", std::move(gpus)},
          {"unaffiliated_nics", keys(a.unaffiliated)},
          {"rails", a.rails},
          {"gpus_per_nic", a.gpus_per_nic}};
}

}}}}  // namespace topocoll::v0::app::detail
