// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hosts, switches and NVLink domains as units of a drawing, and which of them are alike enough to be one box.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/svg_canvas.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// A number for a sequence of numbers; equal sequences have equal numbers, others almost surely not.
class mixer {
 public:
  void add(std::uint64_t value) {
    // Finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) over a running sum.
    state_ += value + 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    state_ = z ^ (z >> 31U);
  }
  void add(double value) { add(static_cast<std::uint64_t>(value)); }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

inline constexpr std::size_t tier_hosts = 0;
inline constexpr std::size_t tier_planes = 4;
inline constexpr std::size_t tiers = 5;

/// A host, a switch, or an NVLink domain of several hosts.
struct svg_unit {
  std::size_t tier = 0;
  std::string name;
  node_id node;             ///< of a switch; the first one of a host
  std::uint64_t shape = 0;  ///< equal for units that look alike on their own
  std::size_t gpus = 0;
  std::size_t bad_links = 0;  ///< inside a host: below their best or dead
};
/// All cables between two units, the lower one first.
struct svg_edge {
  std::uint32_t low = 0, high = 0;
  std::uint32_t cables = 0;
  std::uint32_t bad = 0;  ///< of `cables`, below their best or dead
  line_state state = line_state::fastest;
  bytes_per_second rate{};  ///< of all, both directions alike
  link_id worst;            ///< one that shows `state`
  std::uint64_t shape = 0;
};

template <class = void>
class svg_units {
 public:
  explicit svg_units(const graph& g) : g_(g), unit_of_(g.node_count(), none) {
    hosts_ = hosts(g);
    for (const group& h : hosts_) add_host(h);
    for (std::uint32_t v = 0; v < g.node_count(); ++v) {
      const node_kind k = g.at(node_id{v}).kind;
      if (is_network_switch(k)) add(k == node_kind::leaf ? 1 : k == node_kind::spine ? 2 : 3, {v});
      if (k == node_kind::nvswitch && spans_hosts({v})) add(tier_planes, {v});
    }
    find_edges();
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
      of_unit_[edges[e].low].push_back(e);
      of_unit_[edges[e].high].push_back(e);
    }
  }

  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<svg_unit> units;
  std::vector<svg_edge> edges;

  [[nodiscard]] const std::vector<group>& all_hosts() const { return hosts_; }  // unit i is host i
  [[nodiscard]] std::size_t count(std::size_t tier) const {
    std::size_t n = 0;
    for (const svg_unit& u : units) n += u.tier == tier ? 1 : 0;
    return n;
  }

  /// The group of each unit, numbered in the order of the first member: as many groups as are at most `boxes` in each tier
  /// and have at most `cables` connections between them, as far as likeness goes; the rest of a tier is one group.
  [[nodiscard]] std::vector<std::uint32_t> groups(std::size_t boxes, std::size_t cables) const {
    const std::vector<std::uint64_t> twins = twin_classes();
    std::vector<std::vector<std::uint64_t>> rounds{own_classes()};
    for (std::size_t r = 0; r < most_rounds; ++r) {
      rounds.push_back(refined(rounds.back()));
      if (distinct(rounds.back()) == distinct(rounds[rounds.size() - 2])) break;
    }
    // 0 each by itself, 1 those with the very same neighbours, 2 those with like neighbours
    std::size_t mode[tiers] = {0, 0, 0, 0, 0};
    std::size_t depth = rounds.size() - 1;
    const auto class_of = [&](std::uint32_t u) {
      mixer m;
      m.add(std::uint64_t{units[u].tier});
      m.add(mode[units[u].tier] == 0 ? std::uint64_t{u} : mode[units[u].tier] == 1 ? twins[u] : rounds[depth][u]);
      return m.value();
    };
    for (;;) {
      std::vector<std::uint64_t> classes(units.size());
      for (std::uint32_t u = 0; u < units.size(); ++u) classes[u] = class_of(u);
      std::vector<std::uint32_t> number = numbered(classes);
      std::size_t in_tier[tiers] = {0, 0, 0, 0, 0};
      std::uint32_t next = 0;
      for (std::uint32_t u = 0; u < units.size(); ++u)
        if (number[u] == next) ++in_tier[units[u].tier], ++next;
      bool changed = false;
      bool stuck = false;
      for (std::size_t t = 0; t < tiers; ++t)
        if (in_tier[t] > boxes) {
          if (mode[t] < 2)
            ++mode[t], changed = true;
          else
            stuck = true;
        }
      if (!changed && !stuck && connections(number) > cables) {
        for (std::size_t level = 0; level < 2 && !changed; ++level)
          for (const std::size_t t : {tier_hosts, std::size_t{1}, std::size_t{2}, std::size_t{3}, tier_planes})
            if (!changed && mode[t] == level && in_tier[t] > 1) ++mode[t], changed = true;
        stuck = !changed;
      }
      if (changed) continue;
      if (!stuck) return number;
      if (depth > 0) {
        --depth;
        continue;
      }
      return cut(number, boxes);
    }
  }

 private:
  static constexpr std::size_t most_rounds = 8;

  void add(std::size_t tier, node_id v) {
    svg_unit u;
    u.tier = tier;
    u.name = g_.at(v).name.empty() ? g_.at(v).key : g_.at(v).name;
    u.node = v;
    u.shape = tier;
    unit_of_[v.value] = static_cast<std::uint32_t>(units.size());
    units.push_back(std::move(u));
    of_unit_.emplace_back();
  }
  void add_host(const group& h) {
    svg_unit u;
    u.name = h.name;
    u.node = h.nodes.front();
    std::vector<std::uint64_t> parts;
    for (const node_id v : h.nodes) {
      const node& n = g_.at(v);
      unit_of_[v.value] = static_cast<std::uint32_t>(units.size());
      u.gpus += n.kind == node_kind::gpu ? 1 : 0;
      mixer m;
      m.add(static_cast<std::uint64_t>(n.kind));
      m.add(static_cast<std::uint64_t>(n.how));
      parts.push_back(m.value());
      for (const link_id e : g_.out_links(v)) {
        const link& l = g_.at(e);
        if (l.kind == link_kind::infiniband || l.kind == link_kind::ethernet) continue;
        if (n.host == g_.at(l.to).host ? l.from < l.to : true)
          u.bad_links += state_of(l, class_rate(l)) >= line_state::below_best ? 1 : 0;
        parts.push_back(shape_of(l));
      }
    }
    seq::sort(parts);
    mixer m;
    for (const std::uint64_t p : parts) m.add(p);
    u.shape = m.value();
    units.push_back(std::move(u));
    of_unit_.emplace_back();
  }
  [[nodiscard]] std::uint64_t shape_of(const link& l) const {
    mixer m;
    m.add(static_cast<std::uint64_t>(l.kind));
    m.add(static_cast<std::uint64_t>(g_.at(l.from).kind));
    m.add(static_cast<std::uint64_t>(g_.at(l.to).kind));
    m.add(std::uint64_t{l.generation});
    m.add(std::uint64_t{l.lanes});
    m.add(l.nominal ? l.nominal->value : 0.5);
    m.add(l.current ? l.current->value : 0.5);
    m.add(l.capacity.value);
    m.add(std::uint64_t{l.how == trust::assumed});
    return m.value();
  }
  [[nodiscard]] bool spans_hosts(node_id plane) const {
    const std::string* first = nullptr;
    for (const link_id e : g_.out_links(plane)) {
      const std::string& host = g_.at(g_.head(e)).host;
      if (host.empty()) continue;
      if (first == nullptr) first = &host;
      if (*first != host) return true;
    }
    return false;
  }

  /// Pairs of units and the cables between them, those of both directions together.
  void find_edges() {
    struct wire {
      std::uint32_t low, high;
      bool up;
      link_id e;
    };
    std::vector<wire> wires;
    for (std::uint32_t e = 0; e < g_.link_count(); ++e) {
      const link& l = g_.at(link_id{e});
      const std::uint32_t a = unit_of_[l.from.value];
      const std::uint32_t b = unit_of_[l.to.value];
      if (a == none || b == none || a == b) continue;
      wires.push_back({std::min(a, b), std::max(a, b), a < b, {e}});
    }
    seq::sort(wires, [](const wire& x, const wire& y) { return x.low != y.low ? x.low < y.low : x.high < y.high; });
    bytes_per_second best[tiers][tiers] = {};
    for (const wire& w : wires) {
      bytes_per_second& b =
          best[std::min(units[w.low].tier, units[w.high].tier)][std::max(units[w.low].tier, units[w.high].tier)];
      b = std::max(b, class_rate(g_.at(w.e)));
    }
    std::vector<std::uint64_t> shapes;
    for (std::size_t i = 0; i < wires.size();) {
      svg_edge edge;
      edge.low = wires[i].low;
      edge.high = wires[i].high;
      edge.worst = wires[i].e;
      shapes.clear();
      std::uint32_t there = 0;
      std::uint32_t back = 0;
      std::uint32_t bad_there = 0;
      std::uint32_t bad_back = 0;
      bytes_per_second rate_there{};
      bytes_per_second rate_back{};
      for (; i < wires.size() && wires[i].low == edge.low && wires[i].high == edge.high; ++i) {
        const link& l = g_.at(wires[i].e);
        const line_state s = state_of(l, best[std::min(units[edge.low].tier, units[edge.high].tier)]
                                             [std::max(units[edge.low].tier, units[edge.high].tier)]);
        if (s > edge.state) {
          edge.state = s;
          edge.worst = wires[i].e;
        }
        const std::uint32_t bad = s >= line_state::below_best ? 1 : 0;
        (wires[i].up ? there : back) += 1;
        (wires[i].up ? bad_there : bad_back) += bad;
        (wires[i].up ? rate_there : rate_back) += class_rate(l);
        shapes.push_back(shape_of(l));
      }
      edge.cables = std::max(there, back);
      edge.bad = std::max(bad_there, bad_back);
      edge.rate = std::max(rate_there, rate_back);
      seq::sort(shapes);
      mixer m;
      for (const std::uint64_t s : shapes) m.add(s);
      edge.shape = m.value();
      edges.push_back(edge);
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> own_classes() const {
    std::vector<std::uint64_t> c;
    for (const svg_unit& u : units) c.push_back(u.shape);
    return c;
  }
  /// One class for units of one shape that the same edges lead to the same units.
  [[nodiscard]] std::vector<std::uint64_t> twin_classes() const {
    std::vector<std::uint64_t> self(units.size());
    for (std::uint32_t u = 0; u < units.size(); ++u) self[u] = u;
    return combined(self);
  }
  [[nodiscard]] std::vector<std::uint64_t> refined(const std::vector<std::uint64_t>& now) const {
    std::vector<std::uint64_t> next = combined(now);
    for (std::size_t u = 0; u < next.size(); ++u) {
      mixer m;
      m.add(now[u]);
      m.add(next[u]);
      next[u] = m.value();
    }
    return next;
  }
  [[nodiscard]] std::vector<std::uint64_t> combined(const std::vector<std::uint64_t>& of_neighbour) const {
    std::vector<std::uint64_t> all(units.size());
    std::vector<std::uint64_t> around;
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      around.clear();
      for (const std::uint32_t e : of_unit_[u]) {
        mixer m;
        m.add(of_neighbour[edges[e].low == u ? edges[e].high : edges[e].low]);
        m.add(edges[e].shape);
        around.push_back(m.value());
      }
      seq::sort(around);
      mixer m;
      m.add(units[u].shape);
      for (const std::uint64_t a : around) m.add(a);
      all[u] = m.value();
    }
    return all;
  }
  [[nodiscard]] static std::size_t distinct(std::vector<std::uint64_t> classes) {
    seq::sort_unique(classes);
    return classes.size();
  }
  /// Classes as 0, 1, 2, … in the order in which they first occur.
  [[nodiscard]] static std::vector<std::uint32_t> numbered(const std::vector<std::uint64_t>& classes) {
    std::vector<std::uint64_t> sorted = classes;
    seq::sort_unique(sorted);
    std::vector<std::uint32_t> number(sorted.size(), none);
    std::vector<std::uint32_t> out;
    std::uint32_t next = 0;
    for (const std::uint64_t c : classes) {
      const auto at =
          static_cast<std::size_t>(seq::lower_bound_by(sorted, c, [](std::uint64_t x) { return x; }) - sorted.begin());
      if (number[at] == none) number[at] = next++;
      out.push_back(number[at]);
    }
    return out;
  }
  [[nodiscard]] std::size_t connections(const std::vector<std::uint32_t>& number) const {
    std::vector<std::uint64_t> pairs;
    for (const svg_edge& e : edges) pairs.push_back(std::uint64_t{number[e.low]} << 32U | number[e.high]);
    seq::sort_unique(pairs);
    return pairs.size();
  }
  /// Groups beyond `boxes` of a tier become its last group.
  [[nodiscard]] std::vector<std::uint32_t> cut(const std::vector<std::uint32_t>& number, std::size_t boxes) const {
    std::vector<std::uint64_t> classes;
    std::vector<std::uint64_t> seen[tiers];
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      auto& known = seen[units[u].tier];
      const bool is_new = seq::find(known, std::uint64_t{number[u]}) == known.end();
      if (is_new && known.size() + 1 < boxes) known.push_back(number[u]);
      const bool kept = seq::find(known, std::uint64_t{number[u]}) != known.end();
      classes.push_back(kept ? std::uint64_t{number[u]} : (std::uint64_t{1} << 40U) + units[u].tier);
    }
    return numbered(classes);
  }

  const graph& g_;
  std::vector<group> hosts_;
  std::vector<std::uint32_t> unit_of_;               // of each node
  std::vector<std::vector<std::uint32_t>> of_unit_;  // edges
};

}}}}  // namespace topocoll::v0::topo::detail
