// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares devices that were recognised, their links and their paths, without words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/match.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// A device of both graphs that is not the same in both.
struct device_change {
  std::uint32_t a = 0, b = 0;
  std::vector<std::pair<std::string, std::pair<std::string, std::string>>> facts;  ///< name, value in A, value in B
  std::optional<std::pair<std::uint32_t, std::uint32_t>> numa;  ///< domain in A, domain in B, told by A's numbers
  bool down_in_a = false, down_in_b = false;                    ///< one of both: a port that is down there only
};

/// What differs between two hosts, or between the switches of two networks.
struct comparison {
  std::vector<std::uint32_t> missing, added;
  std::vector<device_change> devices;
  std::vector<link_change> links;
  std::vector<link_change> untold;                         ///< figures that one side only assumes
  std::vector<std::uint32_t> other_address, other_number;  ///< nodes of A
  std::size_t untold_numa = 0;
  bool other_ways = false;  ///< devices or links came or went, so that paths may differ
};

/// What a graph tells of at all.
struct told_kinds {
  bool nodes[12] = {};
  bool links[9] = {};

  template <class = void>
  explicit told_kinds(const graph& g) {
    bool driver = false;  // somebody asked the GPUs' driver, which knows their NVLinks
    for (const node& n : g.nodes()) {
      nodes[static_cast<std::size_t>(n.kind)] = true;
      driver = driver || (n.kind == node_kind::gpu && (fact_of(n, "sm") || fact_of(n, "gcn") || fact_of(n, "arch")));
    }
    for (const link& l : g.links()) links[static_cast<std::size_t>(l.kind)] = true;
    if (of(link_kind::pcie))
      nodes[static_cast<std::size_t>(node_kind::gpu)] = nodes[static_cast<std::size_t>(node_kind::nic)] =
          nodes[static_cast<std::size_t>(node_kind::pcie_switch)] = true;
    const bool peer = driver || of(link_kind::nvlink) || of(link_kind::xgmi);
    links[static_cast<std::size_t>(link_kind::nvlink)] = links[static_cast<std::size_t>(link_kind::xgmi)] = peer;
    nodes[static_cast<std::size_t>(node_kind::nvswitch)] = peer;
    const bool cables = of(link_kind::infiniband) || of(link_kind::ethernet);
    links[static_cast<std::size_t>(link_kind::infiniband)] = links[static_cast<std::size_t>(link_kind::ethernet)] =
        cables;
  }
  [[nodiscard]] bool of(node_kind k) const { return nodes[static_cast<std::size_t>(k)]; }
  [[nodiscard]] bool of(link_kind k) const { return links[static_cast<std::size_t>(k)]; }
};

/// Compares lists of nodes whose partners are known. Precondition: the sides outlive the object.
template <class = void>
class comparer {
 public:
  comparer(const side& a, const side& b, double tolerance)
      : a_(a), b_(b), told_a_(*a.g), told_b_(*b.g), tolerance_(tolerance) {}

  [[nodiscard]] const told_kinds& told_by_a() const { return told_a_; }
  [[nodiscard]] const told_kinds& told_by_b() const { return told_b_; }

  /// Cost: O(links of the nodes, sorted for each node).
  [[nodiscard]] comparison run(const std::vector<node_id>& left, const std::vector<node_id>& right) const {
    comparison c;
    for (const node_id u : left)
      if (a_.match[u.value] == no_place) {
        c.missing.push_back(u.value);
        c.other_ways = true;
      }
    for (const node_id v : right)
      if (b_.match[v.value] == no_place) {
        c.added.push_back(v.value);
        c.other_ways = true;
      }
    const auto domains = domains_of(left);
    for (const node_id u : left)
      if (a_.match[u.value] != no_place) {
        devices(c, u.value, a_.match[u.value], domains);
        links(c, u, {a_.match[u.value]});
      }
    tidy(c.links);
    tidy(c.untold);
    return c;
  }

  /// Drops changes that `told` holds already, whichever end they are told from. Cost: O(n log n).
  void drop_told(std::vector<link_change>& all, std::vector<link_change> told) const {
    seq::sort(told, [](const link_change& x, const link_change& y) { return ends(x) < ends(y); });
    std::vector<std::uint8_t> gone(all.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (auto at = seq::lower_bound_by(told, ends(all[i]), [](const link_change& c) { return ends(c); });
           at != told.end() && ends(*at) == ends(all[i]); ++at)
        if (equal(*at, all[i])) gone[i] = 1;
    drop(all, gone);
  }

 private:
  using domain_map = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  /// NUMA domains of A by their numbers in B.
  [[nodiscard]] domain_map domains_of(const std::vector<node_id>& left) const {
    domain_map map;
    for (const node_id u : left) {
      const node& x = a_.at(u.value);
      if (x.kind != node_kind::cpu || a_.match[u.value] == no_place) continue;
      const node& y = b_.at(a_.match[u.value]);
      const auto i = x.numa ? x.numa : x.index;
      const auto j = y.numa ? y.numa : y.index;
      if (i && j) map.emplace_back(*i, *j);
    }
    return map;
  }

  void devices(comparison& c, std::uint32_t u, std::uint32_t v, const domain_map& domains) const {
    const node& x = a_.at(u);
    const node& y = b_.at(v);
    if (x.host == y.host && x.key != y.key) c.other_address.push_back(u);
    if (x.index && y.index && *x.index != *y.index && x.kind != node_kind::pcie_switch) c.other_number.push_back(u);
    device_change change;
    change.a = u;
    change.b = v;
    for (const auto& [name, value] : x.facts)
      if (is_model_fact(name))
        if (const std::string* other = fact_of(y, name); other != nullptr && *other != value)
          change.facts.emplace_back(name, std::pair(value, *other));
    if (x.kind != node_kind::cpu && x.kind != node_kind::host_memory) {
      if (x.numa && y.numa) {
        std::optional<std::uint32_t> in_a = *y.numa;  // B's domain by A's numbers
        for (const auto& [from, to] : domains)
          if (to == *y.numa) in_a = from;
        if (*in_a != *x.numa) change.numa = std::pair(*x.numa, *in_a);
      } else if (x.numa || y.numa) {
        ++c.untold_numa;
      }
    }
    if (fact_of(x, "state") != nullptr && fact_of(y, "state") != nullptr) {
      change.down_in_a = says_down(x);
      change.down_in_b = says_down(y);
      if (change.down_in_a == change.down_in_b) change.down_in_a = change.down_in_b = false;
    }
    if (change.numa) c.other_ways = true;
    if (!change.facts.empty() || change.numa || change.down_in_a || change.down_in_b)
      c.devices.push_back(std::move(change));
  }

  /// Who speaks for a link: the device, not what it hangs on.
  [[nodiscard]] static unsigned rank_of(node_kind k) {
    constexpr unsigned ranks[] = {11, 2, 1, 3, 4, 8, 5, 9, 10, 7, 6, 5};
    return ranks[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] static bool speaks_for(const side& s, node_id u, node_id other) {
    const unsigned mine = rank_of(s.at(u.value).kind);
    const unsigned theirs = rank_of(s.at(other.value).kind);
    return mine != theirs ? mine > theirs : u < other;
  }

  void links(comparison& c, node_id u, node_id v) const {
    const std::vector<bundle> l = bundles_from(*a_.g, u);
    const std::vector<bundle> r = bundles_from(*b_.g, v);
    std::vector<std::uint8_t> met(r.size(), 0);
    std::vector<const bundle*> only_a, only_b;
    for (const bundle& x : l) {
      const std::uint32_t there = a_.match[x.to.value];
      const bundle* found = nullptr;
      for (std::size_t i = 0; i < r.size() && there != no_place; ++i)
        if (met[i] == 0 && r[i].to.value == there && r[i].kind == x.kind) {
          found = &r[i];
          met[i] = 1;
          break;
        }
      if (found != nullptr)
        weigh(c, x, *found);
      else if (speaks_for(a_, u, x.to))
        only_a.push_back(&x);
    }
    for (std::size_t i = 0; i < r.size(); ++i)
      if (met[i] == 0 && speaks_for(b_, v, r[i].to)) only_b.push_back(&r[i]);
    if (only_a.empty() && only_b.empty()) return;
    // A device that hangs elsewhere: one link of the kind left on either side.
    for (std::size_t k = 0; k < 9; ++k) {
      const auto of_kind = [&](const std::vector<const bundle*>& all) {
        std::vector<const bundle*> some;
        for (const bundle* x : all)
          if (static_cast<std::size_t>(x->kind) == k) some.push_back(x);
        return some;
      };
      const auto x = of_kind(only_a);
      const auto y = of_kind(only_b);
      if (x.size() == 1 && y.size() == 1) {
        moved(c, *x[0], *y[0]);
        continue;
      }
      // A link to a device that is not there goes without saying, and so does a kind that the other side never tells.
      for (const bundle* gone : x)
        if (a_.match[gone->to.value] != no_place && told_b_.of(gone->kind)) {
          c.links.push_back({*gone, std::nullopt});
          c.other_ways = true;
        }
      for (const bundle* come : y)
        if (b_.match[come->to.value] != no_place && told_a_.of(come->kind)) {
          c.links.push_back({std::nullopt, *come});
          c.other_ways = true;
        }
    }
  }

  void weigh(comparison& c, const bundle& x, const bundle& y) const {
    const relation r = relate(x, y, tolerance_);
    if (r == relation::unknown) c.untold.push_back({x, y});
    if (r != relation::same && r != relation::unknown) c.links.push_back({x, y});
  }

  void moved(comparison& c, const bundle& x, const bundle& y) const {
    c.other_ways = true;
    const relation r = relate(x, y, tolerance_);
    const bool both_known = a_.match[x.to.value] != no_place && b_.match[y.to.value] != no_place;
    // Below another bridge, or straight at the CPU, is where a guest puts things; the bridge itself is listed, and paths
    // tell what comes of it.
    if (both_known || r == relation::slower || r == relation::faster)
      c.links.push_back({x, y});
    else if (r == relation::unknown)
      c.untold.push_back({x, y});
  }

  [[nodiscard]] static std::pair<node_id, node_id> ends(const link_change& c) {
    const bundle& x = c.a ? *c.a : *c.b;
    return {std::min(x.from, x.to), std::max(x.from, x.to)};
  }
  /// True when one is the other's way back, or the same way, with the same figures.
  [[nodiscard]] static bool equal(const link_change& x, const link_change& y) {
    if (x.a.has_value() != y.a.has_value() || x.b.has_value() != y.b.has_value() || ends(x) != ends(y)) return false;
    const auto same = [](const std::optional<bundle>& p, const std::optional<bundle>& q) {
      return !p || (p->kind == q->kind && p->links == q->links && p->generation == q->generation &&
                    p->lanes == q->lanes && p->capacity == q->capacity && p->current == q->current);
    };
    return same(x.a, y.a) && same(x.b, y.b);
  }
  static void drop(std::vector<link_change>& all, const std::vector<std::uint8_t>& drop) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (drop[i] == 0) {
        if (kept != i) all[kept] = std::move(all[i]);
        ++kept;
      }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
  }

  /// Drops the way back where it says the same as the way there, and an adapter's link to its port where the port's cable
  /// changed with it.
  void tidy(std::vector<link_change>& all) const {
    std::vector<std::uint32_t> order(all.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort(order, [&](std::uint32_t x, std::uint32_t y) {
      const auto p = ends(all[x]);
      const auto q = ends(all[y]);
      return p != q ? p < q : x < y;
    });
    std::vector<std::uint8_t> gone(all.size(), 0);
    std::vector<node_id> cabled;
    for (const link_change& c : all)
      if (c.a && c.b && is_cable(c.a->kind)) cabled.push_back(c.a->from);
    std::sort(cabled.begin(), cabled.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const link_change& first = all[order[i]];
      for (std::size_t j = i + 1; j < order.size() && ends(all[order[j]]) == ends(first); ++j)
        if (gone[order[i]] == 0 && equal(first, all[order[j]])) {
          const bundle& kept = first.a ? *first.a : *first.b;
          gone[speaks_for(first.a ? a_ : b_, kept.from, kept.to) ? order[j] : order[i]] = 1;  // the device speaks first
        }
      if (first.a && first.a->kind == link_kind::internal &&
          (std::binary_search(cabled.begin(), cabled.end(), first.a->from) ||
           std::binary_search(cabled.begin(), cabled.end(), first.a->to)))
        gone[order[i]] = 1;
    }
    drop(all, gone);
  }

  const side& a_;
  const side& b_;
  told_kinds told_a_, told_b_;
  double tolerance_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
