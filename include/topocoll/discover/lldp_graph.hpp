// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns LLDP tables into the switches and cables of an Ethernet fabric.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/fabric_build.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/lldp.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Hosts' ports ("<host>/net:<interface>/0", with a stand-in for their adapter), switches and cables.
///
/// A neighbour is a switch when it bridges or routes, or tells no capabilities; others are passed over. Switches are told
/// apart by chassis id, and called "switch:<name>", or "switch:<id>" when they tell no name or share it. A table of a
/// switch adds its cables to other switches. Switches with hosts are leaves; the others spines and core switches by their
/// distance from the nearest leaf. Leaves whose ports all have one position in their hosts carry the fact "rail". A cable
/// that two tables show counts once.
/// @param options  `host` is the name of the machine whose table says none
/// @param file     name for findings. Cost: O(n log n)
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const std::vector<read::lldp_table>& tables,
                                                 const discover_options& options, const std::string& file);

namespace detail {

/// Builds the fragment of some LLDP tables.
template <class = void>
class lldp_builder {
 public:
  lldp_builder(const std::vector<read::lldp_table>& tables, const discover_options& options, const std::string& file)
      : tables_(tables), options_(options), file_(file), stands_(out_) {
    out_.source = "lldp " + file;
  }

  [[nodiscard]] topo::fragment run() {
    find_switches();
    add_switches();
    join_switches();
    for (const read::lldp_table& t : tables_)
      if (!switch_called(host_of(t))) add_host(t);
    finish();
    return std::move(out_);
  }

 private:
  struct chassis {
    std::string id, name;
  };
  struct trunk {
    std::uint32_t low, high, table;
    std::optional<bytes_per_second> rate;
  };

  [[nodiscard]] const std::string& host_of(const read::lldp_table& t) const {
    return t.host.empty() ? options_.host : t.host;
  }
  [[nodiscard]] static const std::string& id_of(const read::lldp_neighbor& n) { return n.id.empty() ? n.name : n.id; }

  void find_switches() {
    for (const read::lldp_table& t : tables_)
      for (const read::lldp_neighbor& n : t.neighbors) {
        if (n.is_switch.value_or(true))
          switches_.push_back({id_of(n), n.name});
        else
          told_.add(severity::note, "a neighbour is no switch; it is passed over",
                    (n.name.empty() ? n.id : n.name) + " at " + host_of(t) + "/" + n.net_interface);
      }
    seq::sort(switches_,
              [](const chassis& a, const chassis& b) { return a.id != b.id ? a.id < b.id : a.name < b.name; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      if (kept > 0 && switches_[i].id == switches_[kept - 1].id) {
        std::string& name = switches_[kept - 1].name;
        if (name.empty()) name = switches_[i].name;
        if (name != switches_[i].name && !switches_[i].name.empty())
          told_.add(severity::warning, "a switch tells two names; the first is used",
                    switches_[i].id + ": " + name + ", " + switches_[i].name);
        continue;
      }
      if (kept != i) switches_[kept] = std::move(switches_[i]);
      ++kept;
    }
    switches_.resize(kept);
    for (std::uint32_t i = 0; i < switches_.size(); ++i) by_name_.push_back(i);
    seq::sort_by(by_name_, [&](std::uint32_t i) -> const std::string& { return switches_[i].name; });
  }
  [[nodiscard]] std::uint32_t switch_with(const std::string& id) const {
    return static_cast<std::uint32_t>(
        seq::lower_bound_by(switches_, id, [](const chassis& c) -> const std::string& { return c.id; }) -
        switches_.begin());
  }
  /// The switch of this name, when there is just one.
  [[nodiscard]] std::optional<std::uint32_t> switch_called(const std::string& name) const {
    const auto of = [&](std::uint32_t i) -> const std::string& { return switches_[i].name; };
    const auto at = seq::lower_bound_by(by_name_, name, of);
    if (name.empty() || at == by_name_.end() || of(*at) != name) return std::nullopt;
    if (at + 1 != by_name_.end() && of(at[1]) == name) return std::nullopt;
    return *at;
  }

  void add_switches() {
    for (const chassis& c : switches_) {
      const bool by_name = switch_called(c.name).has_value();
      if (!by_name && !c.name.empty())
        told_.add(severity::warning, "switches share a name; they are told apart by their chassis",
                  c.name + " (" + c.id + ")");
      topo::node n = named_switch(by_name ? c.name : c.id, 0);
      if (!c.name.empty()) n.name = c.name;
      if (!by_name || c.id != c.name) n.facts.emplace_back("chassis_id", c.id);
      switch_.push_back(out_.add(std::move(n)));
    }
  }

  /// Cables between switches, from the table of either side: the side that shows more of them counts.
  void join_switches() {
    for (std::uint32_t t = 0; t < tables_.size(); ++t) {
      const auto from = switch_called(host_of(tables_[t]));
      if (!from) continue;
      for (const read::lldp_neighbor& n : tables_[t].neighbors) {
        if (!n.is_switch.value_or(true)) continue;
        const std::uint32_t to = switch_with(id_of(n));
        if (to == *from) continue;
        trunks_.push_back({*from < to ? *from : to, *from < to ? to : *from, t, n.rate});
      }
    }
    seq::sort(trunks_, [](const trunk& a, const trunk& b) {
      if (a.low != b.low) return a.low < b.low;
      return a.high != b.high ? a.high < b.high : a.table < b.table;
    });
    std::vector<trunk> kept;
    for (std::size_t first = 0, last = 0; first < trunks_.size(); first = last) {
      std::size_t best = first;
      std::size_t most = 0;
      for (last = first; last < trunks_.size() && trunks_[last].low == trunks_[first].low &&
                         trunks_[last].high == trunks_[first].high;) {
        const std::size_t begin = last;
        while (last < trunks_.size() && trunks_[last].low == trunks_[first].low &&
               trunks_[last].high == trunks_[first].high && trunks_[last].table == trunks_[begin].table)
          ++last;
        if (last - begin > most) {
          most = last - begin;
          best = begin;
        }
      }
      for (std::size_t i = best; i < best + most; ++i) kept.push_back(trunks_[i]);
    }
    trunks_ = std::move(kept);
    for (const trunk& t : trunks_) out_.join(wire(switch_[t.low], switch_[t.high], t.rate));
  }
  [[nodiscard]] topo::link wire(node_id a, node_id b, const std::optional<bytes_per_second>& rate) {
    if (rate) return cable(a, b, topo::link_kind::ethernet, *rate, trust::reported, {});
    ++assumed_;
    return cable(a, b, topo::link_kind::ethernet, unknown_port_rate, trust::assumed,
                 file_ + " tells no rate; taken as 10 Gbit/s, as NCCL does for a port that tells none");
  }

  void add_host(const read::lldp_table& t) {
    const std::string& host = host_of(t);
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < t.neighbors.size(); ++i)
      if (t.neighbors[i].is_switch.value_or(true)) order.push_back(i);
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return read::host_order(t.neighbors[a].net_interface, t.neighbors[b].net_interface);
    });
    if (order.empty()) told_.add(severity::warning, "a host sees no switch", host);
    std::uint32_t number = 0;
    std::optional<node_id> port;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const read::lldp_neighbor& n = t.neighbors[order[k]];
      const bool same = k > 0 && n.net_interface == t.neighbors[order[k - 1]].net_interface;
      if (same && switch_with(id_of(n)) == switch_with(id_of(t.neighbors[order[k - 1]]))) continue;
      if (same)
        told_.add(severity::note, "an interface sees several switches: something between them passes LLDP on",
                  host + "/" + n.net_interface);
      if (!same) port = add_port(host, n.net_interface, number++);
      const std::uint32_t s = switch_with(id_of(n));
      const topo::link l = wire(*port, switch_[s], n.rate);
      if (!same) stands_.set_rate(l);
      out_.join(l);
      if (!n.port.empty()) {
        auto& facts = out_.nodes[port->value].facts;
        if (facts.size() == 1) facts.emplace_back("switch_port", n.port);
      }
      leaf_.push_back({s, number - 1});
    }
  }
  [[nodiscard]] node_id add_port(const std::string& host, const std::string& net_interface, std::uint32_t number) {
    const node_id port = stands_.add_port(host, number + 1, {}, file_);
    topo::node& p = out_.nodes[port.value];
    p.key = host + "/net:" + net_interface + "/0";
    p.name = net_interface;
    p.how = trust::reported;
    p.reason.clear();
    p.facts = {{"interface", net_interface}};
    topo::node& nic = out_.nodes[port.value - 1];
    nic.key = host + "/nic:" + net_interface;
    nic.name = net_interface;
    return port;
  }

  /// Tiers by the distance from hosts, rails, and what is to be told.
  void finish() {
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> tier(switches_.size(), none), rail(switches_.size(), none), done;
    for (const auto& [s, position] : leaf_) {
      if (tier[s] == none) done.push_back(s);
      if (tier[s] == none) rail[s] = position;
      if (rail[s] != position) rail[s] = none - 1;
      tier[s] = 0;
    }
    std::vector<std::vector<std::uint32_t>> next(switches_.size());
    for (const trunk& t : trunks_) {
      next[t.low].push_back(t.high);
      next[t.high].push_back(t.low);
    }
    for (std::size_t k = 0; k < done.size(); ++k)
      for (const std::uint32_t s : next[done[k]])
        if (tier[s] == none) {
          tier[s] = tier[done[k]] + 1;
          done.push_back(s);
        }
    for (std::size_t s = 0; s < switches_.size(); ++s) {
      topo::node& n = out_.nodes[switch_[s].value];
      n.kind = switch_kind(tier[s] == none ? 0 : tier[s]);
      if (rail[s] < none - 1) n.facts.emplace_back("rail", std::to_string(rail[s]));
    }
    if (assumed_ > 0)
      out_.findings.push_back({severity::note,
                               file_,
                               "no rate is told for " + std::to_string(assumed_) +
                                   (assumed_ == 1 ? " cable; it is" : " cables; each is") + " taken as 10 Gbit/s",
                               {},
                               {},
                               1});
    make_keys_unique(out_, {}, told_);
    told_.report(file_, out_.findings);
  }

  const std::vector<read::lldp_table>& tables_;
  const discover_options& options_;
  std::string file_;
  topo::fragment out_;
  host_stands stands_;
  tally told_;
  std::vector<chassis> switches_;
  std::vector<std::uint32_t> by_name_;
  std::vector<node_id> switch_;
  std::vector<trunk> trunks_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> leaf_;  ///< switch and position of each host port
  std::size_t assumed_ = 0;
};

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const std::vector<read::lldp_table>& tables, const discover_options& options,
                                   const std::string& file) {
  return detail::lldp_builder<>(tables, options, file).run();
}

}}  // namespace topocoll::v0
