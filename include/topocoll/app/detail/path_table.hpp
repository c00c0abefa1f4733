// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expected rates between devices as a table for people and as JSON: every pair of one host, every distinct kind of a fabric.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// One pair of devices, or an example of `pairs` pairs that are alike.
struct path_row {
  node_id from, to;
  topo::path_rate expected;
  std::size_t pairs = 1;
};

struct path_table {
  std::vector<path_row> rows;
  bool grouped = false;  ///< rows stand for pairs that are alike
  std::string note;      ///< what was left out; empty when nothing was
};

/// Hosts with more devices than this get one row for each distinct kind of path.
inline constexpr std::size_t most_devices_in_full = 64;
/// Pairs that are looked at in large graphs; about a second of work.
inline constexpr std::size_t most_pairs = 1'000'000;

/// GPUs, then NICs, then memories; each by its host and index.
template <class = void>
[[nodiscard]] std::vector<node_id> devices_of(const topo::graph& g) {
  std::vector<node_id> all;
  for (const topo::node_kind kind : {topo::node_kind::gpu, topo::node_kind::nic, topo::node_kind::host_memory})
    for (const node_id v : g.all(kind)) all.push_back(v);
  const auto rank = [](topo::node_kind k) { return k == topo::node_kind::gpu ? 0 : k == topo::node_kind::nic ? 1 : 2; };
  seq::sort(all, [&](node_id a, node_id b) {
    const topo::node& x = g.at(a);
    const topo::node& y = g.at(b);
    if (rank(x.kind) != rank(y.kind)) return rank(x.kind) < rank(y.kind);
    if (x.host != y.host) return false;  // hosts keep their order in the graph
    return x.index.value_or(UINT32_MAX) < y.index.value_or(UINT32_MAX);
  });
  return all;
}

/// Every pair once; both ways only where they differ.
template <class = void>
[[nodiscard]] path_table all_pairs(const topo::graph& g, const std::vector<node_id>& devices,
                                   topo::route_options options) {
  path_table table;
  std::vector<topo::routes> from;
  for (const node_id v : devices) from.emplace_back(g, v, options);
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      path_row there{devices[i], devices[j], from[i].rate(devices[j]), 1};
      path_row back{devices[j], devices[i], from[j].rate(devices[i]), 1};
      const bool same = there.expected.kind == back.expected.kind && there.expected.rate == back.expected.rate;
      table.rows.push_back(std::move(there));
      if (!same) table.rows.push_back(std::move(back));
    }
  return table;
}

/// What pairs have in common that share a row.
struct row_kind {
  topo::node_kind from, to;
  bool one_host;
  topo::path_class kind;
  bytes_per_second rate;
  topo::link_kind limit;  ///< what the link that limits is made of
  std::uint32_t generation, lanes;

  friend bool operator==(const row_kind&, const row_kind&) = default;
};

/// One row for each kind of pair, from some devices to all.
template <class = void>
[[nodiscard]] path_table alike_pairs(const topo::graph& g, const std::vector<node_id>& devices,
                                     topo::route_options options) {
  path_table table;
  table.grouped = true;
  const std::size_t most_sources = std::max<std::size_t>(1, most_pairs / std::max<std::size_t>(1, devices.size()));
  std::vector<node_id> sources = devices;
  if (sources.size() > most_sources) {
    // Whole hosts, evenly spread, so that each kind of position in the fabric has a chance to be seen.
    const auto hosts = topo::hosts(g);
    const std::size_t devices_per_host =
        std::max<std::size_t>(1, devices.size() / std::max<std::size_t>(1, hosts.size()));
    const std::size_t chosen =
        std::clamp<std::size_t>(most_sources / devices_per_host, 1, std::max<std::size_t>(1, hosts.size()));
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < chosen && i < hosts.size(); ++i) names.push_back(hosts[i * hosts.size() / chosen].name);
    seq::sort(names);
    std::erase_if(sources, [&](node_id v) {
      return !std::binary_search(names.begin(), names.end(), std::string_view(g.at(v).host));
    });
    if (sources.empty()) sources.assign(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(most_sources));
    table.note = "pairs are counted from the devices of " + std::to_string(chosen) + " of " +
                 std::to_string(hosts.size()) + " hosts to all others";
  }
  std::vector<row_kind> kinds;
  for (const node_id from : sources) {
    const topo::routes ways(g, from, options);
    for (const node_id to : devices) {
      if (to == from) continue;
      const auto way = ways.to(to);
      row_kind k{g.at(from).kind,
                 g.at(to).kind,
                 !g.at(from).host.empty() && g.at(from).host == g.at(to).host,
                 topo::path_class::DIS,
                 {},
                 {},
                 0,
                 0};
      if (way) {
        k.kind = topo::class_of(g, *way, from);
        k.rate = way->rate;
        if (way->limit) {
          const topo::link& limit = g.at(*way->limit);
          k.limit = limit.kind;
          k.generation = limit.generation;
          k.lanes = limit.lanes;
        }
      }
      const auto it = seq::find(kinds, k);
      if (it != kinds.end()) {
        ++table.rows[static_cast<std::size_t>(it - kinds.begin())].pairs;
        continue;
      }
      kinds.push_back(std::move(k));
      table.rows.push_back({from, to, topo::rate_of(g, way, from, to), 1});
    }
  }
  std::vector<std::size_t> order(kinds.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  seq::sort(order, [&](std::size_t a, std::size_t b) {
    if (kinds[a].from != kinds[b].from) return kinds[a].from < kinds[b].from;
    if (kinds[a].to != kinds[b].to) return kinds[a].to < kinds[b].to;
    return kinds[a].kind < kinds[b].kind;
  });
  std::vector<path_row> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(table.rows[i]));
  table.rows = std::move(sorted);
  return table;
}

/// Expected rates of a graph: all pairs of a single host of ordinary size, kinds of pairs otherwise.
template <class = void>
[[nodiscard]] path_table paths_of(const topo::graph& g, topo::route_options options) {
  const std::vector<node_id> devices = devices_of(g);
  return devices.size() <= most_devices_in_full && !topo::has_several_hosts(g) ? all_pairs(g, devices, options)
                                                                               : alike_pairs(g, devices, options);
}

/// Columns aligned, the last one free.
template <class = void>
[[nodiscard]] std::string to_text(const topo::graph& g, const path_table& table) {
  const bool several = topo::has_several_hosts(g);
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> doubts;  // said once below the table
  if (table.grouped)
    cells.push_back({"pairs", "from", "to", "class", "rate", "example"});
  else
    cells.push_back({"from", "to", "class", "rate", "why"});
  for (const path_row& row : table.rows) {
    const topo::path_rate& e = row.expected;
    const std::string rate = e.kind == topo::path_class::DIS ? "-" : to_string(e.rate);
    std::string why = e.why;
    if (why.starts_with(rate + ", ")) why.erase(0, rate.size() + 2);
    if (!e.doubt.empty()) {
      why.resize(why.size() - e.doubt.size() - 2);  // "; " and the doubt
      auto it = seq::find(doubts, e.doubt);
      if (it == doubts.end()) it = doubts.insert(it, e.doubt);
      why += " ?" + std::to_string(it - doubts.begin() + 1);
    }
    const std::string from = topo::label_of(g, row.from, several);
    const std::string to = topo::label_of(g, row.to, several);
    if (table.grouped)
      cells.push_back({std::to_string(row.pairs), topo::word_of(g.at(row.from).kind), topo::word_of(g.at(row.to).kind),
                       topo::to_string(e.kind), rate, from + " to " + to + ": " + why});
    else
      cells.push_back({from, to, topo::to_string(e.kind), rate, why});
  }
  std::vector<std::size_t> width(cells[0].size(), 0);
  for (const auto& row : cells)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text += std::string(width[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  if (table.rows.empty()) text += "(fewer than two devices)\n";
  for (std::size_t i = 0; i < doubts.size(); ++i)
    text += (i == 0 ? "\n  ?" : "  ?") + std::to_string(i + 1) + "  " + doubts[i] + '\n';
  if (!table.note.empty()) text += table.note + '\n';
  return text;
}

/// The rows for the field "paths" of a topology document.
template <class = void>
[[nodiscard]] io::json to_json(const topo::graph& g, const path_table& table) {
  io::json rows = io::json::array();
  for (const path_row& row : table.rows) {
    const topo::path_rate& e = row.expected;
    io::json o{{"from", g.at(row.from).key},
               {"to", g.at(row.to).key},
               {"class", topo::to_string(e.kind)},
               {"pairs", row.pairs}};
    if (e.limit) {
      o["rate_bytes_per_second"] = e.rate.value;
      o["limit"] = {{"from", g.at(g.tail(*e.limit)).key}, {"to", g.at(g.head(*e.limit)).key}};
      o["trust"] = to_string(e.how);
    }
    o["why"] = e.why;
    rows.push_back(std::move(o));
  }
  return rows;
}

}}}}  // namespace topocoll::v0::app::detail
