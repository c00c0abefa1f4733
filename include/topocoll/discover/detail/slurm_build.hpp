// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/slurm_graph.hpp turns lists of switches, blocks and hosts into nodes and links.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/fabric_build.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/slurm_graph.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Builds the fragment of one Slurm topology.
template <class = void>
class slurm_builder {
 public:
  slurm_builder(const read::slurm_topology& t, const std::string& file) : t_(t), file_(file), stands_(out_) {
    out_.source = "slurm-topology " + file;
    out_.findings = t.findings;
  }

  [[nodiscard]] topo::fragment run() {
    add_switches();
    join_switches();
    add_blocks();
    for (const read::slurm_group& ring : t_.rings)
      add_grid(ring.nodes, {static_cast<std::uint32_t>(ring.nodes.size()), 1, 1});
    for (const read::slurm_torus& torus : t_.toruses) add_grid(torus.nodes, {torus.x, torus.y, torus.z});
    if (t_.flat) note("the topology '" + t_.name + "' is flat: it names no hosts and no switches");
    if (!t_.toruses.empty())
      note("a torus tells its nodes without their places; taken in the order of the list, x counting fastest");
    if (assumed_ports_ > 0)
      note("no rate is told for " + std::to_string(assumed_ports_) + (assumed_ports_ == 1 ? " port" : " ports") +
           " of hosts; each is taken as 10 Gbit/s");
    if (assumed_uplinks_ > 0)
      note("no rate is told for " + std::to_string(assumed_uplinks_) + (assumed_uplinks_ == 1 ? " link" : " links") +
           " between switches; switches are taken to pass on all that hangs below them");
    settle(out_, file_);
    return std::move(out_);
  }

 private:
  struct sides {
    std::uint32_t length[3];
  };

  void note(std::string what) { out_.findings.push_back({severity::note, file_, std::move(what), {}, {}, 1}); }

  /// Rate below a switch that tells one.
  [[nodiscard]] std::optional<bytes_per_second> rate_of(const read::slurm_switch& s) {
    if (s.link_speed.empty()) return std::nullopt;
    const auto rate = written_rate(s.link_speed);
    if (!rate)
      out_.findings.push_back({severity::note,
                               file_ + " line " + std::to_string(s.line),
                               "LinkSpeed=" + s.link_speed.substr(0, 40) + " of the switch '" + s.name +
                                   "' has no unit that is known; it is kept as a fact",
                               {},
                               "write for example LinkSpeed=400Gb/s",
                               1});
    return rate;
  }

  /// A port of `host` with a cable to `to`.
  void plug(const std::string& host, std::uint32_t number, node_id to, const std::optional<bytes_per_second>& told,
            const std::string& by) {
    const bool guid = t_.nodes_are_ports;
    const node_id port = guid ? stands_.add_port({}, number, "0x" + read::guid_digits(host), file_)
                              : stands_.add_port(host, number, {}, file_);
    const std::string kind = guid ? "" : "; the kind of the cable is not told either";
    const topo::link l =
        told ? cable(port, to, topo::link_kind::infiniband, *told, trust::derived, by)
             : cable(port, to, topo::link_kind::infiniband, unknown_port_rate, trust::assumed,
                     file_ + " tells no rate; taken as 10 Gbit/s, as NCCL does for a port that tells none" + kind);
    assumed_ports_ += told ? 0 : 1;
    stands_.set_rate(l);
    out_.join(l);
  }

  void add_switches() {
    tier_ = read::slurm_tiers(t_);
    std::vector<const std::string*> hosts;
    for (const read::slurm_switch& s : t_.switches) {
      topo::node n = named_switch(s.name, tier_[switch_.size()]);
      if (!s.link_speed.empty()) n.facts.emplace_back("link_speed", s.link_speed);
      n.facts.emplace_back("tier", std::to_string(tier_[switch_.size()]));
      if (t_.lists_neighbours) {
        n.how = trust::derived;
        n.reason = "tier taken from the distance to the nearest switch with hosts";
      }
      switch_.push_back(out_.add(std::move(n)));
      rate_.push_back(rate_of(s));
      for (const std::string& host : s.nodes) hosts.push_back(&host);
    }
    below_.assign(t_.switches.size(), 0.0);
    const name_index index(std::move(hosts));
    std::vector<std::uint32_t> ports(index.size(), 0);
    std::vector<std::size_t> last(index.size(), t_.switches.size());
    for (std::size_t i = 0; i < t_.switches.size(); ++i) {
      const std::string by =
          rate_[i] ? "LinkSpeed=" + t_.switches[i].link_speed + " of " + t_.switches[i].name : std::string();
      for (const std::string& host : t_.switches[i].nodes) {
        const std::size_t h = index(host);
        if (last[h] == i) continue;  // listed twice, which was told
        last[h] = i;
        plug(host, ++ports[h], switch_[i], rate_[i], by);
        below_[i] += (rate_[i] ? *rate_[i] : unknown_port_rate).value;
      }
    }
  }

  void join_switches() {
    const auto below = read::slurm_children(t_);
    const auto n = static_cast<std::uint32_t>(t_.switches.size());
    // Each pair once, the lower tier first.
    struct edge {
      std::uint32_t low, high;
    };
    std::vector<edge> edges;
    std::vector<double> parents(n, 0);
    for (std::uint32_t i = 0; i < n; ++i)
      for (const std::uint32_t child : below[i]) {
        const bool up = tier_[child] < tier_[i] || (tier_[child] == tier_[i] && child < i);
        edges.push_back({up ? child : i, up ? i : child});
      }
    seq::sort(edges, [&](const edge& a, const edge& b) {
      if (tier_[a.low] != tier_[b.low]) return tier_[a.low] < tier_[b.low];
      return a.low != b.low ? a.low < b.low : a.high < b.high;
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < edges.size(); ++i)
      if (i == 0 || edges[i].low != edges[kept - 1].low || edges[i].high != edges[kept - 1].high)
        edges[kept++] = edges[i];
    edges.resize(kept);
    for (const edge& e : edges) parents[e.low] += 1;
    std::vector<std::uint32_t> part(n);
    for (std::uint32_t i = 0; i < n; ++i) part[i] = i;
    const auto part_of = [&](std::uint32_t i) {
      while (part[i] != i) i = part[i] = part[part[i]];
      return i;
    };
    for (const edge& e : edges) {
      const std::uint32_t low = part_of(e.low), high = part_of(e.high);
      // The topmost switch names the part, the first of equals.
      const bool high_first = tier_[high] > tier_[low] || (tier_[high] == tier_[low] && high < low);
      part[high_first ? low : high] = high_first ? high : low;
    }
    tell_parts(part_of);
    for (const edge& e : edges) {
      const std::optional<bytes_per_second>& told = rate_[e.high];
      bytes_per_second rate = told ? *told : bytes_per_second{below_[e.low] / parents[e.low]};
      if (rate.value <= 0) rate = unknown_port_rate;  // nothing hangs below
      assumed_uplinks_ += told ? 0 : 1;
      out_.join(cable(switch_[e.low], switch_[e.high], topo::link_kind::infiniband, rate,
                      told ? trust::derived : trust::assumed,
                      told ? "LinkSpeed=" + t_.switches[e.high].link_speed + " of " + t_.switches[e.high].name
                           : file_ + " tells no rate; taken as all that hangs below, spread over the switches above"));
      if (tier_[e.high] > tier_[e.low]) below_[e.high] += rate.value;
    }
  }

  /// Several trees are legal in Slurm; a job does not span them.
  template <class PartOf>
  void tell_parts(PartOf part_of) {
    std::vector<std::uint32_t> roots;  // of parts with hosts
    for (std::uint32_t i = 0; i < t_.switches.size(); ++i)
      if (!t_.switches[i].nodes.empty()) roots.push_back(part_of(i));
    seq::sort_unique(roots);
    if (roots.size() < 2) return;
    constexpr std::size_t spelt = 6;
    std::string names;
    for (std::size_t i = 0; i < roots.size() && i < spelt; ++i)
      names += (i == 0 ? "" : ", ") + t_.switches[roots[i]].name;
    out_.findings.push_back({severity::note, file_,
                             "the switches form " + std::to_string(roots.size()) +
                                 " parts that nothing joins, so no path between their hosts is known",
                             "at the top: " + names + (roots.size() > spelt ? ", …" : ""),
                             "add the switch that joins them, if there is one", 1});
  }

  /// Blocks become leaves of hosts without a switch; of others they are facts.
  void add_blocks() {
    if (t_.blocks.empty()) return;
    std::vector<node_id> nics;
    for (std::uint32_t v = 0; v < out_.nodes.size(); ++v)
      if (out_.nodes[v].kind == topo::node_kind::nic && !out_.nodes[v].host.empty()) nics.push_back({v});
    const auto host_of = [&](node_id v) -> const std::string& { return out_.nodes[v.value].host; };
    seq::sort_by(nics, host_of);
    std::string sizes;
    for (const std::uint32_t size : t_.block_sizes) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    std::size_t joined = 0;
    for (const read::slurm_group& b : t_.blocks) {
      std::optional<node_id> leaf;
      for (const std::string& host : b.nodes) {
        auto at = seq::lower_bound_by(nics, host, host_of);
        const bool known = at != nics.end() && host_of(*at) == host;
        for (; at != nics.end() && host_of(*at) == host; ++at) {
          auto& facts = out_.nodes[at->value].facts;
          if (facts[0].first != "block") facts.insert(facts.begin(), {"block", b.name});
        }
        if (known) continue;
        if (!leaf) {
          topo::node n = named_switch(b.name, 0);
          n.key = "block:" + b.name;
          n.how = trust::derived;
          n.reason = "a block of hosts, taken as one switch";
          n.facts.emplace_back("block", b.name);
          if (!sizes.empty()) n.facts.emplace_back("block_sizes", sizes);
          leaf = out_.add(std::move(n));
        }
        plug(host, ++in_blocks(host), *leaf, std::nullopt, {});
        ++joined;
      }
    }
    if (joined > 0 && t_.blocks.size() > 1)
      note("blocks say which hosts are near each other, not what joins the blocks");
  }

  /// How often a host was plugged into blocks.
  [[nodiscard]] std::uint32_t& in_blocks(const std::string& host) {
    if (block_hosts_.empty()) {
      for (const read::slurm_group& b : t_.blocks)
        for (const std::string& h : b.nodes) block_hosts_.emplace_back(&h, 0);
      seq::sort(block_hosts_, [](const auto& a, const auto& b) { return *a.first < *b.first; });
    }
    return seq::lower_bound_by(block_hosts_, host, [](const auto& p) -> const std::string& { return *p.first; })
        ->second;
  }

  /// Nodes in the order of their places, x counting fastest; each is joined to its neighbours, the last to the first.
  void add_grid(const std::vector<std::string>& nodes, const sides& s) {
    std::vector<node_id> port;
    for (const std::string& host : nodes) {
      port.push_back(stands_.add_port(host, ++grid_ports(host), {}, file_));
      ++assumed_ports_;
    }
    std::size_t step = 1;
    for (const std::uint32_t length : s.length) {
      for (std::size_t i = 0; length > 1 && i < port.size(); ++i) {
        const std::size_t at = i / step % length;
        if (at + 1 == length && length == 2) continue;  // two places have one link, not two
        const std::size_t next = at + 1 < length ? i + step : i - step * (length - 1);
        if (out_.nodes[port[i].value].host == out_.nodes[port[next].value].host) continue;
        out_.join(cable(port[i], port[next], topo::link_kind::infiniband, unknown_port_rate, trust::assumed,
                        file_ + " tells no rate; taken as 10 Gbit/s, as NCCL does for a port that tells none"));
      }
      step *= length;
    }
  }
  /// How many ports a node of rings and tori has so far.
  [[nodiscard]] std::uint32_t& grid_ports(const std::string& host) {
    if (grid_hosts_.empty()) {
      for (const read::slurm_group& r : t_.rings)
        for (const std::string& h : r.nodes) grid_hosts_.emplace_back(&h, 0);
      for (const read::slurm_torus& o : t_.toruses)
        for (const std::string& h : o.nodes) grid_hosts_.emplace_back(&h, 0);
      // Ports that switches or blocks gave a host come before.
      seq::sort(grid_hosts_, [](const auto& a, const auto& b) { return *a.first < *b.first; });
      for (const topo::node& n : out_.nodes)
        if (n.kind == topo::node_kind::nic_port && !n.host.empty())
          if (const auto at = seq::lower_bound_by(grid_hosts_, n.host,
                                                  [](const auto& p) -> const std::string& { return *p.first; });
              at != grid_hosts_.end() && *at->first == n.host)
            ++at->second;
    }
    return seq::lower_bound_by(grid_hosts_, host, [](const auto& p) -> const std::string& { return *p.first; })->second;
  }

  const read::slurm_topology& t_;
  std::string file_;
  topo::fragment out_;
  host_stands stands_;
  std::vector<node_id> switch_;
  std::vector<std::uint32_t> tier_;
  std::vector<std::optional<bytes_per_second>> rate_;
  std::vector<double> below_;  ///< what hangs below each switch, bytes per second
  std::vector<std::pair<const std::string*, std::uint32_t>> block_hosts_, grid_hosts_;
  std::size_t assumed_ports_ = 0, assumed_uplinks_ = 0;
};

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::slurm_topology& topology, const discover_options&,
                                   const std::string& file) {
  return detail::slurm_builder<>(topology, file).run();
}

template <class>
result<topo::fragment> fragment_of(const std::vector<read::slurm_topology>& topologies, const discover_options& options,
                                   const std::string& file) {
  if (topologies.empty()) return fail(errc::invalid_argument, file + " holds no topology");
  std::size_t best = 0;
  const auto rank = [](const read::slurm_topology& t) { return (t.flat ? 0 : 2) + (t.is_default ? 1 : 0); };
  for (std::size_t i = 1; i < topologies.size(); ++i)
    if (rank(topologies[i]) > rank(topologies[best])) best = i;
  auto f = fragment_of(topologies[best], options, file);
  if (!f) return f;
  std::string others;
  for (std::size_t i = 0; i < topologies.size(); ++i)
    if (i != best) others += (others.empty() ? "" : ", ") + topologies[i].name;
  if (!others.empty())
    f->findings.push_back(
        {severity::note,
         file,
         "the file holds " + std::to_string(topologies.size()) + " topologies; '" + topologies[best].name + "' is read",
         "passed over: " + others,
         {},
         1});
  return f;
}

}}  // namespace topocoll::v0
