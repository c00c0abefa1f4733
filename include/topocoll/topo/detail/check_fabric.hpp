// SPDX-License-Identifier: Apache-2.0
#pragma once
// Networks whose tiers are not joined evenly: missing cables, fewer parallel ones, slower uplinks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/detail/switch_load.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Compares the switches of a network with each other.
template <class = void>
class fabric_checker {
 public:
  explicit fabric_checker(check_context& c) : c_(c), load_(c.g.node_count()) {
    for (std::uint32_t v = 0; v < c.g.node_count(); ++v)
      if (is_network_switch(c.g.at(node_id{v}).kind)) switches_.push_back({v});
    measure();
  }

  [[nodiscard]] bool has_network() const { return !switches_.empty(); }
  /// For those who find out that a host lacks a cable to a leaf: what the leaf would carry with it.
  void would_carry(node_id leaf, double rate) { load_[leaf.value].meant_down += rate; }

  /// Missing and slow connections between tiers.
  void tiers() {
    name_lonely_tiers();
    tier(node_kind::leaf, node_kind::spine);
    tier(node_kind::spine, node_kind::core_switch);
    if (!has(node_kind::spine)) tier(node_kind::leaf, node_kind::core_switch);
  }

  /// What each node carries, if it is a switch; with what was named as missing or slow.
  [[nodiscard]] std::vector<switch_load>& loads() { return load_; }

 private:
  struct pair_of_tiers {
    node_id low, high;
    std::uint32_t cables = 0;
  };

  [[nodiscard]] bool has(node_kind k) const {
    return seq::any_of(switches_, [&](node_id v) { return c_.g.at(v).kind == k; });
  }
  [[nodiscard]] static unsigned tier_of(node_kind k) {
    return k == node_kind::leaf ? 1 : k == node_kind::spine ? 2 : k == node_kind::core_switch ? 3 : 0;
  }
  [[nodiscard]] static double now(const link& l) { return l.capacity.value; }
  [[nodiscard]] static double meant(const link& l) {
    return l.nominal ? std::max(l.nominal->value, l.capacity.value) : l.capacity.value;
  }

  void measure() {
    std::vector<std::uint32_t> hosts;
    for (const node_id v : switches_) {
      switch_load& load = load_[v.value];
      hosts.clear();
      for (const link_id e : c_.g.out_links(v)) {
        const link& l = c_.g.at(e);
        const node& far = c_.g.at(l.to);
        if (tier_of(far.kind) > tier_of(c_.g.at(v).kind)) {
          load.up += now(l);
          load.meant_up += meant(l);
          ++load.uplinks;
        } else if (!is_network_switch(far.kind)) {
          load.down += now(l);
          load.meant_down += meant(l);
          if (const std::uint32_t h = c_.hosts.host_of[l.to.value]; h != no_place) hosts.push_back(h);
        }
      }
      std::sort(hosts.begin(), hosts.end());
      load.hosts = static_cast<std::uint32_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
    }
  }

  void name_lonely_tiers() {
    const std::vector<node_id> leaves = c_.g.all(node_kind::leaf);
    bool sideways = false;
    for (const link& l : c_.g.links()) {
      const unsigned low = tier_of(c_.g.at(l.from).kind);
      sideways = sideways || (low != 0 && low == tier_of(c_.g.at(l.to).kind));
    }
    if (sideways)
      c_.say("tiers", severity::note, "network",
             "switches of one tier are joined to each other: their cabling is not checked as tiers");
    if (leaves.size() > 1 && !has(node_kind::spine) && !has(node_kind::core_switch))
      c_.say("tiers", severity::note, "network",
             sideways ? std::to_string(leaves.size()) + " leaves have no tier above"
                      : std::to_string(leaves.size()) + " leaves have no tier above and do not reach each other");
    if (leaves.empty())
      c_.say("tiers", severity::note, "network", "no switch serves hosts: nothing is known about the first tier");
    for (const node_id v : switches_)
      if (c_.g.out_links(v).empty() && c_.g.at(v).kind == node_kind::leaf)
        c_.say("tiers", severity::note, c_.g.at(v).key, c_.name(v) + " has no cable at all");
  }

  /// Everything between two tiers, for each set of switches that cables or a common pod join.
  void tier(node_kind low_kind, node_kind high_kind) {
    std::vector<node_id> lows = c_.g.all(low_kind);
    std::vector<node_id> highs = c_.g.all(high_kind);
    // A switch without any cable was heard of, not seen; one that is joined to its own tier has another way.
    const auto strange = [&](node_id v) {
      const auto out = c_.g.out_links(v);
      return out.empty() || seq::any_of(out, [&](link_id e) { return c_.g.at(c_.g.head(e)).kind == c_.g.at(v).kind; });
    };
    std::erase_if(lows, strange);
    std::erase_if(highs, [&](node_id v) { return c_.g.out_links(v).empty() ? false : strange(v); });
    if (lows.empty() || highs.empty()) return;
    std::vector<pair_of_tiers> pairs;
    std::vector<std::uint32_t> degree(c_.g.node_count(), 0);
    joined_sets sets(c_.g.node_count());
    for (const node_id v : lows) {
      std::vector<node_id> far;
      for (const link_id e : c_.g.out_links(v))
        if (c_.g.at(c_.g.head(e)).kind == high_kind) far.push_back(c_.g.head(e));
      std::sort(far.begin(), far.end());
      for (std::size_t i = 0; i < far.size(); ++i) {
        if (i == 0 || far[i] != far[i - 1]) {
          pairs.push_back({v, far[i], 0});
          ++degree[v.value];
          ++degree[far[i].value];
          sets.join(v.value, far[i].value);
        }
        ++pairs.back().cables;
      }
    }
    if (pairs.empty()) {
      c_.say("tiers", severity::warning, "network",
             "no " + std::string(word_of(low_kind)) + " reaches a " + word_of(high_kind),
             counted_devices(lows.size(), low_kind) + ", " + counted_devices(highs.size(), high_kind));
      return;
    }
    gather_strays(lows, highs, degree, sets);

    std::vector<node_id> all = lows;
    all.insert(all.end(), highs.begin(), highs.end());
    seq::sort_by(all, [&](node_id v) { return sets.of(v.value); });
    seq::sort_by(pairs, [&](const pair_of_tiers& p) { return sets.of(p.low.value); });
    std::size_t p = 0;
    for (std::size_t i = 0; i < all.size();) {
      const std::uint32_t set = sets.of(all[i].value);
      std::vector<node_id> l, h;
      for (; i < all.size() && sets.of(all[i].value) == set; ++i)
        (c_.g.at(all[i]).kind == low_kind ? l : h).push_back(all[i]);
      std::vector<pair_of_tiers> own;
      for (; p < pairs.size() && sets.of(pairs[p].low.value) == set; ++p) own.push_back(pairs[p]);
      if (l.empty() || h.empty()) {
        for (const node_id v : l)
          c_.say("stray switch", severity::warning, c_.g.at(v).key,
                 c_.name(v) + " reaches no " + word_of(high_kind) + ", others do", "", "look at its uplinks");
        for (const node_id v : h)
          c_.say("stray switch", severity::warning, c_.g.at(v).key,
                 "no " + std::string(word_of(low_kind)) + " reaches " + c_.name(v) + ", others are reached", "",
                 "look at its cables downwards");
        continue;
      }
      missing_pairs(l, h, own, degree);
      parallel_cables(own);
      for (const node_id v : l) uplink_rates(v);
    }
  }

  /// A switch without any cable to the other tier belongs to its pod, or to the only set there is.
  void gather_strays(const std::vector<node_id>& lows, const std::vector<node_id>& highs,
                     const std::vector<std::uint32_t>& degree, joined_sets& sets) {
    std::vector<std::uint32_t> roots;
    for (const node_id v : lows)
      if (degree[v.value] != 0) roots.push_back(sets.of(v.value));
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    if (roots.size() == 1) {
      for (const node_id v : lows) sets.join(v.value, roots[0]);
      for (const node_id v : highs) sets.join(v.value, roots[0]);
      return;
    }
    struct in_pod {
      std::string_view pod;
      node_id node;
    };
    const auto pods = [&](const std::vector<node_id>& all) {
      std::vector<in_pod> list;
      for (const node_id v : all)
        if (const std::string* pod = fact_of(c_.g.at(v), "pod"); pod != nullptr) list.push_back({*pod, v});
      seq::sort_by(list, [](const in_pod& x) { return x.pod; });
      return list;
    };
    const auto low_pods = pods(lows);
    for (const in_pod& high : pods(highs)) {
      const auto at = seq::lower_bound_by(low_pods, high.pod, [](const in_pod& x) { return x.pod; });
      for (auto it = at; it != low_pods.end() && it->pod == high.pod; ++it) sets.join(it->node.value, high.node.value);
    }
  }

  /// Mean rate of a switch's cables upwards, faults not counted.
  [[nodiscard]] double usual_uplink(node_id v) const {
    const switch_load& load = load_[v.value];
    return load.uplinks == 0 ? 0 : load.meant_up / load.uplinks;
  }

  void missing_pairs(const std::vector<node_id>& lows, const std::vector<node_id>& highs,
                     const std::vector<pair_of_tiers>& pairs, const std::vector<std::uint32_t>& degree) {
    const std::size_t full = lows.size() * highs.size();
    if (pairs.size() == full) return;
    bool even = true, whole = false;
    for (const node_id v : lows) {
      even = even && degree[v.value] == degree[lows[0].value];
      whole = whole || degree[v.value] == highs.size();
    }
    for (const node_id v : highs) {
      even = even && degree[v.value] == degree[highs[0].value];
      whole = whole || degree[v.value] == lows.size();
    }
    if (even) return;  // every switch as every other: that is how it was built
    std::vector<std::uint64_t> found;
    for (const pair_of_tiers& p : pairs) found.push_back(std::uint64_t{p.low.value} << 32U | p.high.value);
    std::sort(found.begin(), found.end());
    const bool dense = 2 * pairs.size() > full || whole;
    std::vector<std::uint64_t> degrees;
    for (const node_id v : lows) degrees.push_back(degree[v.value]);
    const majority usual = majority_of(degrees);
    for (const node_id l : lows) {
      if (!dense && degree[l.value] != 0 && !(usual.found && degree[l.value] < usual.value)) continue;
      for (const node_id h : highs) {
        if (std::binary_search(found.begin(), found.end(), std::uint64_t{l.value} << 32U | h.value)) continue;
        if (!dense && degree[l.value] != 0) continue;
        ++load_[l.value].missing_uplinks;
        c_.say("missing cable", severity::warning, c_.ends(l, h),
               c_.name(l) + " has no cable to " + c_.name(h) + ", " + std::to_string(degree[h.value]) + " of " +
                   std::to_string(lows.size()) + ' ' + plural(c_.g.at(l).kind) + " have",
               c_.name(l) + " reaches " + std::to_string(degree[l.value]) + " of " + std::to_string(highs.size()) +
                   ' ' + plural(c_.g.at(h).kind),
               "look at the ports of both switches");
      }
      if (!dense && degree[l.value] != 0)
        c_.say("missing cable", severity::warning, c_.g.at(l).key,
               c_.name(l) + " reaches " + std::to_string(degree[l.value]) + ' ' + plural(c_.g.at(highs[0]).kind) +
                   ", most reach " + std::to_string(usual.value));
      load_[l.value].meant_up += usual_uplink(l) * load_[l.value].missing_uplinks;
    }
    for (const node_id h : highs)
      if (!dense && degree[h.value] == 0)
        c_.say("stray switch", severity::warning, c_.g.at(h).key,
               "no " + std::string(word_of(c_.g.at(lows[0]).kind)) + " reaches " + c_.name(h), "",
               "look at its cables downwards");
  }
  [[nodiscard]] static std::string plural(node_kind k) { return counted_devices(2, k).substr(2); }

  void parallel_cables(const std::vector<pair_of_tiers>& pairs) {
    std::vector<std::uint64_t> counts;
    for (const pair_of_tiers& p : pairs) counts.push_back(p.cables);
    const majority usual = majority_of(counts);
    if (!usual.found) {
      c_.say("parallel", severity::note, "network", "pairs of switches are joined by different numbers of cables",
             "no number is that of more than half of the pairs");
      return;
    }
    for (const pair_of_tiers& p : pairs) {
      if (p.cables >= usual.value) continue;
      load_[p.low.value].meant_up += usual_uplink(p.low) * static_cast<double>(usual.value - p.cables);
      c_.say("parallel", severity::warning, c_.ends(p.low, p.high),
             c_.name(p.low) + " and " + c_.name(p.high) + " are joined by " + std::to_string(p.cables) +
                 (p.cables == 1 ? " cable, " : " cables, ") + std::to_string(usual.count) + " of " +
                 std::to_string(pairs.size()) + " pairs by " + std::to_string(usual.value),
             "", "look for a port that is down");
    }
  }

  /// Cables upwards that are slower than most of the same switch.
  void uplink_rates(node_id v) {
    std::vector<const link*> up;
    for (const link_id e : c_.g.out_links(v))
      if (tier_of(c_.g.at(c_.g.head(e)).kind) > tier_of(c_.g.at(v).kind)) up.push_back(&c_.g.at(e));
    const link* usual = nullptr;
    std::size_t like_usual = 0;
    for (const link* l : up) {
      std::size_t n = 0;
      for (const link* other : up) n += close(meant(*l), meant(*other), c_.o.tolerance) ? 1 : 0;
      if (n > like_usual || (n == like_usual && meant(*l) > meant(*usual))) {
        usual = l;
        like_usual = n;
      }
    }
    if (usual == nullptr || 2 * like_usual < up.size()) return;
    for (const link* l : up) {
      if (l->how == trust::assumed || meant(*l) >= meant(*usual) * (1 - c_.o.tolerance) || c_.named(l->from, l->to))
        continue;
      c_.say("slow uplink", severity::warning, c_.ends(l->from, l->to),
             "the cable between " + c_.name(l->from) + " and " + c_.name(l->to) + " has " + bits_text({meant(*l)}) +
                 ", others of " + c_.name(v) + " have " + bits_text({meant(*usual)}),
             std::to_string(like_usual) + " of " + std::to_string(up.size()) + " uplinks have " +
                 bits_text({meant(*usual)}),
             "look at the cable and at both ports");
    }
  }

  check_context& c_;
  std::vector<switch_load> load_;
  std::vector<node_id> switches_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
