// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds each device of one graph in another: by key, by identity, by place.
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
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// One graph with what matching needs to know of it.
struct side {
  const graph* g = nullptr;
  host_table hosts;
  std::vector<std::uint64_t> exact, structure, near, model;  ///< colours, from the finest to the coarsest
  std::vector<std::uint32_t> match;                          ///< node of the other graph; `no_place` while unknown

  template <class = void>
  explicit side(const graph& of) : g(&of), hosts(host_table::of(of)), match(of.node_count(), no_place) {}
  /// Colours, needed only where keys do not settle everything.
  template <class = void>
  void paint() {
    if (!exact.empty() || g->node_count() == 0) return;
    exact = colours_of(*g, hosts, {3, true, seen_figures::actual});
    structure = colours_of(*g, hosts, {3, true, seen_figures::none});
    near = colours_of(*g, hosts, {1, true, seen_figures::none});
    model = colours_of(*g, hosts, {0, true, seen_figures::none});
  }
  [[nodiscard]] const node& at(std::uint32_t v) const { return g->at(node_id{v}); }
};

/// A fact that no two devices share, and who has it.
struct identity {
  std::string_view name, value;
  std::uint32_t node;

  [[nodiscard]] bool before(const identity& o) const { return name != o.name ? name < o.name : value < o.value; }
};

/// Recognises devices. All members take lists of nodes that may stand for each other: those of two hosts, or switches.
template <class = void>
class matcher {
 public:
  matcher(side& a, side& b, std::vector<std::uint8_t>& how) : a_(a), b_(b), how_(how) {}

  static constexpr std::uint8_t key = 0, fact = 1, place = 2;

  /// Everything about two lists. `same_name`: the hosts are called the same, so that keys mean something from the start.
  void run(const std::vector<node_id>& left, const std::vector<node_id>& right, bool same_name) {
    by_key(left, right, same_name);
    std::vector<std::uint32_t> l = open(a_, left);
    std::vector<std::uint32_t> r = open(b_, right);
    if (l.empty() || r.empty()) return;
    by_identity(l, r);
    a_.paint();
    b_.paint();
    // Ports and memories follow the adapter or the domain that they belong to.
    std::vector<std::uint32_t> followers_l = take_followers(a_, l);
    std::vector<std::uint32_t> followers_r = take_followers(b_, r);
    by_colour(l, r, &side::structure);
    by_colour(l, r, &side::near);
    by_colour(l, r, &side::model);
    by_votes(l, r);
    by_number(l, r);
    by_votes(followers_l, followers_r);
  }

 private:
  void pair(std::uint32_t u, std::uint32_t v, std::uint8_t how) {
    a_.match[u] = v;
    b_.match[v] = u;
    how_[u] = how;
  }
  [[nodiscard]] static std::vector<std::uint32_t> open(const side& s, const std::vector<node_id>& all) {
    std::vector<std::uint32_t> left;
    for (const node_id v : all)
      if (s.match[v.value] == no_place) left.push_back(v.value);
    return left;
  }
  /// Takes nodes out of a list that have a link inside their adapter or to their NUMA domain.
  [[nodiscard]] static std::vector<std::uint32_t> take_followers(const side& s, std::vector<std::uint32_t>& list) {
    std::vector<std::uint32_t> taken, kept;
    for (const std::uint32_t v : list) {
      bool follows = false;
      for (const link_id e : s.g->out_links({v})) {
        const link_kind kind = s.g->at(e).kind;
        follows = follows || (s.at(v).kind == node_kind::nic_port && kind == link_kind::internal) ||
                  (s.at(v).kind == node_kind::host_memory && kind == link_kind::memory);
      }
      (follows ? taken : kept).push_back(v);
    }
    list = std::move(kept);
    return taken;
  }
  static void drop_matched(const side& s, std::vector<std::uint32_t>& list) {
    std::erase_if(list, [&](std::uint32_t v) { return s.match[v] != no_place; });
  }

  /// Two devices that say themselves that they are not the same one.
  [[nodiscard]] bool deny(std::uint32_t u, std::uint32_t v) const {
    for (const auto& [name, value] : a_.at(u).facts)
      if (is_identity_fact(name))
        if (const std::string* other = fact_of(b_.at(v), name); other != nullptr && *other != value) return true;
    return false;
  }

  /// Equal keys mean equal devices where two thirds of the smaller side's PCI addresses are found on the other side: a
  /// guest's own numbering meets the host's only here and there.
  void by_key(const std::vector<node_id>& left, const std::vector<node_id>& right, bool same_name) {
    std::vector<std::uint32_t> sorted;
    for (const node_id v : right) sorted.push_back(v.value);
    const auto local = [&](std::uint32_t v) { return local_key(b_.at(v)); };
    seq::sort_by(sorted, local);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> same;
    std::size_t pci_left = 0, pci_right = 0, pci_same = 0;
    const auto is_pci = [](const node& n) { return local_key(n).substr(0, 4) == "pci:"; };
    for (const node_id v : right) pci_right += is_pci(b_.at(v.value)) ? 1 : 0;
    for (const node_id u : left) {
      const node& n = a_.at(u.value);
      pci_left += is_pci(n) ? 1 : 0;
      const auto at = seq::lower_bound_by(sorted, local_key(n), local);
      if (at == sorted.end() || local(*at) != local_key(n) || b_.at(*at).kind != n.kind) continue;
      pci_same += is_pci(n) ? 1 : 0;
      same.emplace_back(u.value, *at);
    }
    const std::size_t fewer = std::min(pci_left, pci_right);
    const bool trusted = 3 * pci_same >= 2 * fewer;
    if (!trusted) return;
    if (!same_name && (pci_same == 0 || same.size() * 4 < 3 * std::min(left.size(), right.size()))) return;
    for (const auto& [u, v] : same)
      if (!same_name || !deny(u, v)) pair(u, v, key);
  }

  void by_identity(std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
    const auto facts_of = [](const side& s, const std::vector<std::uint32_t>& list) {
      std::vector<identity> all;
      for (const std::uint32_t v : list)
        for (const auto& [name, value] : s.at(v).facts)
          if (is_identity_fact(name) && !value.empty()) all.push_back({name, value, v});
      seq::sort(all, [](const identity& x, const identity& y) { return x.before(y); });
      return all;
    };
    const auto l = facts_of(a_, left);
    const auto r = facts_of(b_, right);
    const auto alone = [](const std::vector<identity>& all, std::size_t i) {
      return (i == 0 || all[i - 1].before(all[i])) && (i + 1 == all.size() || all[i].before(all[i + 1]));
    };
    for (std::size_t i = 0, j = 0; i < l.size() && j < r.size();) {
      if (l[i].before(r[j])) {
        ++i;
      } else if (r[j].before(l[i])) {
        ++j;
      } else {
        const std::uint32_t u = l[i].node;
        const std::uint32_t v = r[j].node;
        if (alone(l, i) && alone(r, j) && a_.at(u).kind == b_.at(v).kind && a_.match[u] == no_place &&
            b_.match[v] == no_place)
          pair(u, v, fact);
        ++i;
        ++j;
      }
    }
    drop_matched(a_, left);
    drop_matched(b_, right);
  }

  struct painted {
    std::uint64_t colour;
    std::uint32_t node;
  };

  /// Colours joined with the neighbours that are recognised already, in the numbers of the left graph.
  [[nodiscard]] std::vector<painted> anchored(const side& s, const std::vector<std::uint32_t>& list,
                                              std::vector<std::uint64_t> side::*colours, bool left) const {
    std::vector<painted> all;
    std::vector<std::uint64_t> around;
    for (const std::uint32_t v : list) {
      around.clear();
      for (const link_id e : s.g->out_links({v})) {
        const std::uint32_t w = s.g->head(e).value;
        if (s.match[w] == no_place) continue;
        around.push_back(mixed(static_cast<std::uint64_t>(s.g->at(e).kind), left ? w : s.match[w]));
      }
      std::sort(around.begin(), around.end());
      std::uint64_t h = (s.*colours)[v];
      for (const std::uint64_t x : around) h = mixed(h, x);
      all.push_back({h, v});
    }
    seq::sort(all, [](const painted& x, const painted& y) {
      return x.colour != y.colour ? x.colour < y.colour : x.node < y.node;
    });
    return all;
  }

  /// How well `v` suits `u` among nodes that look the same: equal number, then equal address, then equal figures.
  [[nodiscard]] unsigned likeness(std::uint32_t u, std::uint32_t v) const {
    const node& x = a_.at(u);
    const node& y = b_.at(v);
    return (x.index && y.index && *x.index == *y.index ? 8U : 0U) + (local_key(x) == local_key(y) ? 4U : 0U) +
           (!x.name.empty() && x.name == y.name ? 2U : 0U) + (a_.exact[u] == b_.exact[v] ? 1U : 0U);
  }
  [[nodiscard]] bool has_namesake(std::uint32_t u, const std::vector<painted>& r, std::size_t first,
                                  std::size_t end) const {
    for (std::size_t k = first; k < end; ++k)
      if (likeness(u, r[k].node) >= 4) return true;
    return false;
  }
  /// Who is asked first when nodes look the same: devices that users number, in that order.
  [[nodiscard]] bool first_of(std::uint32_t u, std::uint32_t v) const {
    const node& x = a_.at(u);
    const node& y = a_.at(v);
    if (x.kind != y.kind) return x.kind < y.kind;
    const std::uint32_t i = x.index.value_or(no_place);
    const std::uint32_t j = y.index.value_or(no_place);
    return i != j ? i < j : u < v;
  }

  /// Pairs nodes of equal colour and equal known neighbours; where several look the same, one pair is decided and the
  /// others follow from it.
  void by_colour(std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right,
                 std::vector<std::uint64_t> side::*colours) {
    while (!left.empty() && !right.empty()) {
      const auto l = anchored(a_, left, colours, true);
      const auto r = anchored(b_, right, colours, false);
      bool any = false;
      std::uint32_t undecided = no_place;
      std::size_t candidates = 0, candidates_end = 0;
      for (std::size_t i = 0, j = 0; i < l.size() && j < r.size();) {
        if (l[i].colour != r[j].colour) {
          ++(l[i].colour < r[j].colour ? i : j);
          continue;
        }
        std::size_t i_end = i, j_end = j;
        while (i_end < l.size() && l[i_end].colour == l[i].colour) ++i_end;
        while (j_end < r.size() && r[j_end].colour == r[j].colour) ++j_end;
        if (i_end - i == 1 && j_end - j == 1) {
          pair(l[i].node, r[j].node, place);
          any = true;
        } else {
          // More on one side: something is missing here or looks different, and only a number tells who is who.
          const bool even = i_end - i == j_end - j || colours == &side::model;
          for (std::size_t k = i; k < i_end; ++k)
            if ((undecided == no_place || first_of(l[k].node, undecided)) &&
                (even || has_namesake(l[k].node, r, j, j_end))) {
              undecided = l[k].node;
              candidates = j;
              candidates_end = j_end;
            }
        }
        i = i_end;
        j = j_end;
      }
      if (!any) {
        if (undecided == no_place) return;
        std::size_t best = candidates;
        for (std::size_t k = candidates; k < candidates_end; ++k)
          if (likeness(undecided, r[k].node) > likeness(undecided, r[best].node)) best = k;
        pair(undecided, r[best].node, place);
      }
      drop_matched(a_, left);
      drop_matched(b_, right);
    }
  }

  /// Pairs what is left with the node of its kind that most of its known neighbours have on the other side.
  void by_votes(std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
    std::vector<std::uint32_t> votes(b_.g->node_count(), 0);
    std::vector<std::uint8_t> wanted(b_.g->node_count(), 0);
    for (const std::uint32_t v : right) wanted[v] = 1;
    seq::sort(left, [&](std::uint32_t x, std::uint32_t y) { return first_of(x, y); });
    for (bool any = true; any && !left.empty() && !right.empty();) {
      any = false;
      for (const std::uint32_t u : left) {
        std::vector<std::uint32_t> met;
        for (const link_id e : a_.g->out_links({u})) {
          const std::uint32_t y = a_.match[a_.g->head(e).value];
          if (y == no_place) continue;
          for (const link_id back : b_.g->out_links({y})) {
            const std::uint32_t v = b_.g->head(back).value;
            if (wanted[v] == 0 || b_.match[v] != no_place || b_.g->at(back).kind != a_.g->at(e).kind ||
                b_.at(v).kind != a_.at(u).kind)
              continue;
            if (votes[v]++ == 0) met.push_back(v);
          }
        }
        std::uint32_t best = no_place;
        for (const std::uint32_t v : met)
          if (best == no_place || votes[v] > votes[best] ||
              (votes[v] == votes[best] && likeness(u, v) > likeness(u, best)))
            best = v;
        for (const std::uint32_t v : met) votes[v] = 0;
        if (best == no_place) continue;
        pair(u, best, place);
        any = true;
      }
      drop_matched(a_, left);
      drop_matched(b_, right);
    }
  }

  /// Last, devices of one kind with one number or one name.
  void by_number(std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
    for (const std::uint32_t u : left)
      for (const std::uint32_t v : right) {
        const node& x = a_.at(u);
        const node& y = b_.at(v);
        if (b_.match[v] != no_place || x.kind != y.kind) continue;
        if (!(x.index && y.index ? *x.index == *y.index : !x.name.empty() && x.name == y.name)) continue;
        pair(u, v, place);
        break;
      }
  }

  side& a_;
  side& b_;
  std::vector<std::uint8_t>& how_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
