// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which hosts of several fragments are one: by the devices in them, else by their names with and without a domain.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/identify.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// "node7" of "node7.example.com"; empty for what is no name of a host: the default, GUIDs, addresses.
template <class = void>
[[nodiscard]] std::string_view short_name(std::string_view host) {
  const std::string_view name = host.substr(0, host.find('.'));
  const bool none = name == "localhost" || name.substr(0, 2) == "0x" || all_digits(name);
  return none ? std::string_view() : name;
}

template <class = void>
class host_matcher {
 public:
  explicit host_matcher(copied_parts& c) : c_(c) {}

  /// Gives a host one name in all parts.
  void run() {
    find_hosts();
    find_evidence();
    follow_names();
    join_short_names();
    rename();
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  using pair = std::pair<std::uint32_t, std::uint32_t>;

  struct host {
    std::uint32_t part = 0;
    std::string name, called;  ///< in its part; in the result
    bool local = false;        ///< its part knows PCI addresses in it
    bool known = false;        ///< a device in it is in other parts too
    bool torn = false;         ///< its devices are in several hosts elsewhere
    std::uint32_t up = 0;      ///< towards the one that stands for all that are the same
    std::uint32_t next = 0;    ///< round through all that are the same
  };

  [[nodiscard]] std::uint32_t top(std::uint32_t h) {
    while (hosts_[h].up != h) h = hosts_[h].up = hosts_[hosts_[h].up].up;
    return h;
  }
  [[nodiscard]] const std::string& source_of(std::uint32_t h) const { return c_.parts[hosts_[h].part].source; }
  /// Names that are none come last, then those that others give it.
  [[nodiscard]] bool better(std::uint32_t a, std::uint32_t b) const {
    const host& x = hosts_[a];
    const host& y = hosts_[b];
    const bool nameless_x = short_name(x.name).empty();
    const bool nameless_y = short_name(y.name).empty();
    if (nameless_x != nameless_y) return nameless_y;
    if (x.local != y.local) return x.local;
    return x.name < y.name;
  }
  [[nodiscard]] const std::string& name_of(std::uint32_t h) {
    const std::uint32_t t = top(h);
    std::uint32_t best = t;
    for (std::uint32_t m = hosts_[t].next; m != t; m = hosts_[m].next)
      if (better(m, best)) best = m;
    return hosts_[best].name;
  }

  void find_hosts() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (!c_.at(g).host.empty()) order.push_back(g);
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      if (c_.part_of[a] != c_.part_of[b]) return c_.part_of[a] < c_.part_of[b];
      return c_.at(a).host < c_.at(b).host;
    });
    host_of_.assign(c_.size(), none);
    for (const std::uint32_t g : order) {
      const bool first = hosts_.empty() || hosts_.back().part != c_.part_of[g] || hosts_.back().name != c_.at(g).host;
      const auto h = static_cast<std::uint32_t>(hosts_.size());
      if (first) hosts_.push_back({c_.part_of[g], c_.at(g).host, {}, false, false, false, h, h});
      host_of_[g] = static_cast<std::uint32_t>(hosts_.size() - 1);
      if (place_of(c_.at(g)).substr(0, 4) == "pci:") hosts_.back().local = true;
    }
    for (const std::uint32_t g : order) c_.local[g] = hosts_[host_of_[g]].local ? 1U : 0U;
  }

  /// Makes two hosts one, unless sources that saw both from the inside call them two. With `sure`, their names do not matter,
  /// only that no part has both.
  bool unite(std::uint32_t a, std::uint32_t b, bool sure) {
    a = top(a);
    b = top(b);
    if (a == b) return true;
    for (std::uint32_t x = a;;) {
      for (std::uint32_t y = b; hosts_[x].local;) {
        if (hosts_[y].local && (hosts_[x].part == hosts_[y].part || (!sure && !same_name(x, y)))) return false;
        if ((y = hosts_[y].next) == b) break;
      }
      if ((x = hosts_[x].next) == a) break;
    }
    if (b < a) std::swap(a, b);
    hosts_[b].up = a;
    std::swap(hosts_[a].next, hosts_[b].next);
    return true;
  }
  [[nodiscard]] bool same_name(std::uint32_t a, std::uint32_t b) const {
    return hosts_[a].name == hosts_[b].name && !short_name(hosts_[a].name).empty();
  }

  /// Hosts that hold the same devices are one, as long as all their devices say so.
  void find_evidence() {
    std::vector<pair> edges;
    const auto& ids = c_.identities;
    for (std::size_t first = 0, last = 0; first < ids.size(); first = last) {
      std::uint32_t centre = none;
      for (last = first;
           last < ids.size() && ids[last].fact == ids[first].fact && *ids[last].value == *ids[first].value; ++last) {
        const std::uint32_t h = host_of_[ids[last].node];
        if (h != none && (centre == none || (hosts_[h].local && !hosts_[centre].local))) centre = h;
      }
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t h = host_of_[ids[i].node];
        if (h == none || h == centre) continue;
        edges.emplace_back(h, centre);
        edges.emplace_back(centre, h);
      }
    }
    seq::sort_unique(edges);
    for (const pair& e : edges) hosts_[e.first].known = true;
    // First those that were seen from the inside; then those that are the same as one of these; then the rest.
    join_neighbours(
        edges, [&](std::uint32_t a, std::uint32_t b) { return hosts_[a].local && hosts_[b].local; }, true);
    for (std::size_t i = 0, last = 0; i < edges.size(); i = last) {
      const std::uint32_t h = edges[i].first;
      std::uint32_t home = none, other = none;
      for (last = i; last < edges.size() && edges[last].first == h; ++last) {
        const std::uint32_t n = edges[last].second;
        if (hosts_[h].local || !hosts_[n].local) continue;
        if (home == none) home = n;
        if (top(n) != top(home) && !same_name(n, home) && other == none) other = n;
      }
      if (other != none)
        tell_torn(h, home, other);
      else if (home != none && !unite(h, home, false))
        tell_apart(h, home);
    }
    join_neighbours(
        edges,
        [&](std::uint32_t a, std::uint32_t b) {
          return !hosts_[a].local && !hosts_[b].local && !hosts_[a].torn && !hosts_[b].torn;
        },
        false);
  }
  /// Joins hosts of two parts whose devices agree: each is in one host there, or the many are in one host back.
  template <class Wanted>
  void join_neighbours(const std::vector<pair>& all, const Wanted& wanted, bool local) {
    std::vector<pair> edges;
    for (const pair& e : all)
      if (wanted(e.first, e.second)) edges.push_back(e);
    // Hosts of one part have consecutive numbers.
    const auto group_end = [&](std::size_t i) {
      std::size_t last = i;
      while (last < edges.size() && edges[last].first == edges[i].first &&
             hosts_[edges[last].second].part == hosts_[edges[i].second].part)
        ++last;
      return last;
    };
    std::vector<pair> several;  // a host, and a part in which its devices are in several hosts
    for (std::size_t i = 0, last = 0; i < edges.size(); i = last) {
      last = group_end(i);
      if (last - i > 1) several.emplace_back(edges[i].first, hosts_[edges[i].second].part);
    }
    const auto splits = [&](std::uint32_t h, std::uint32_t part) {
      const auto at = std::lower_bound(several.begin(), several.end(), pair(h, part));
      return at != several.end() && *at == pair(h, part);
    };
    for (std::size_t i = 0, last = 0; i < edges.size(); i = last) {
      last = group_end(i);
      const std::uint32_t h = edges[i].first;
      bool agree = last - i == 1 || !local;
      for (std::size_t k = i; k < last; ++k) agree = agree && !splits(edges[k].second, hosts_[h].part);
      for (std::size_t k = i; agree && k < last; ++k)
        if (!unite(h, edges[k].second, local)) tell_apart(h, edges[k].second);
      if (!agree && last - i > 1) tell_torn(h, edges[i].second, edges[i + 1].second);
    }
  }
  void tell_torn(std::uint32_t h, std::uint32_t a, std::uint32_t b) {
    hosts_[h].torn = true;
    c_.tell(severity::warning, hosts_[h].name,
            "the devices of host '" + hosts_[h].name + "' are in several hosts of other sources, so it is not renamed",
            source_of(h) + " has them in '" + hosts_[h].name + "'; " + source_of(a) + ": in '" + hosts_[a].name +
                "'; " + source_of(b) + ": in '" + hosts_[b].name + "'",
            "look for adapters that moved, or for descriptions of adapters that are those of another host");
  }
  void tell_apart(std::uint32_t a, std::uint32_t b) {
    c_.tell(severity::warning, hosts_[a].name,
            "devices say that two hosts are one, but a source that saw both says that they are two; neither is renamed",
            source_of(a) + ": '" + hosts_[a].name + "'; " + source_of(b) + ": '" + hosts_[b].name + "'",
            "find out which source is right");
  }

  /// Hosts of which nothing else is known go with those of their name.
  void follow_names() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t h = 0; h < hosts_.size(); ++h) order.push_back(h);
    seq::sort_by(order, [&](std::uint32_t h) -> const std::string& { return hosts_[h].name; });
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
      const std::string& name = hosts_[order[first]].name;
      std::uint32_t same = none, other = none;  // that are called so in the end; that are called otherwise
      bool many = false;
      for (last = first; last < order.size() && hosts_[order[last]].name == name; ++last) {
        const std::uint32_t h = order[last];
        if (!hosts_[h].known) continue;
        if (name_of(h) == name) {
          if (same == none) same = h;
        } else if (other == none) {
          other = h;
        } else {
          many = many || top(other) != top(h);
        }
      }
      if (last - first == 1) continue;
      const std::uint32_t leader = same != none ? same : many ? none : other;
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t h = order[i];
        if (hosts_[h].known && !(leader == same && name_of(h) == name)) continue;
        if (leader != none) static_cast<void>(unite(leader, h, true));
        if (leader == none && other == none && i > first) static_cast<void>(unite(order[first], h, true));
        if (leader == none && many)
          c_.tell(severity::warning, name,
                  "several hosts are called '" + name + "', and this source does not tell which one it saw",
                  source_of(h), "name the host of the source");
      }
    }
  }

  /// "node7" is "node7.example.com", where each part has only one of that short name.
  void join_short_names() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t h = 0; h < hosts_.size(); ++h) {
      hosts_[h].called = name_of(h);
      if (!short_name(hosts_[h].called).empty()) order.push_back(h);
    }
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const std::string_view x = short_name(hosts_[a].called), y = short_name(hosts_[b].called);
      if (x != y) return x < y;
      return hosts_[a].called != hosts_[b].called ? hosts_[a].called < hosts_[b].called : a < b;
    });
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
      const std::string_view name = short_name(hosts_[order[first]].called);
      for (last = first; last < order.size() && short_name(hosts_[order[last]].called) == name;) ++last;
      std::vector<std::uint32_t> group(order.begin() + static_cast<std::ptrdiff_t>(first),
                                       order.begin() + static_cast<std::ptrdiff_t>(last));
      if (hosts_[group.front()].called == hosts_[group.back()].called) continue;
      bool chain = true;
      for (std::size_t i = 1; i < group.size(); ++i) {
        const std::string& shorter = hosts_[group[i - 1]].called;
        const std::string& longer = hosts_[group[i]].called;
        chain = chain && longer.compare(0, shorter.size(), shorter) == 0 &&
                (longer.size() == shorter.size() || longer[shorter.size()] == '.');
      }
      std::string contradiction;
      if (!chain || !unique_in_parts(group) || differ_inside(group, contradiction)) {
        c_.tell(contradiction.empty() ? severity::note : severity::warning, std::string(name),
                contradiction.empty()
                    ? "host names that begin alike are not taken for one host, because more than one is meant"
                    : "host names that begin alike are not one host: they hold different devices",
                contradiction.empty()
                    ? "'" + hosts_[group.front()].called + "' and '" + hosts_[group.back()].called + "'"
                    : contradiction,
                "give hosts the same name in all sources");
        continue;
      }
      for (std::size_t i = 1; i < group.size(); ++i)
        if (!unite(group[0], group[i], true)) tell_apart(group[0], group[i]);
      const std::string& best = name_of(group[0]);
      for (const std::uint32_t h : group)
        if (top(h) == top(group[0])) hosts_[h].called = best;
    }
  }
  [[nodiscard]] bool unique_in_parts(const std::vector<std::uint32_t>& group) {
    std::vector<pair> seen;
    for (const std::uint32_t h : group) seen.emplace_back(hosts_[h].part, h);
    seq::sort(seen);
    for (std::size_t i = 1; i < seen.size(); ++i)
      if (seen[i].first == seen[i - 1].first && hosts_[seen[i].second].called != hosts_[seen[i - 1].second].called)
        return false;
    return true;
  }
  /// Whether devices in the same place have different identities.
  [[nodiscard]] bool differ_inside(const std::vector<std::uint32_t>& group, std::string& evidence) {
    if (identities_of_.empty()) {
      for (std::uint32_t i = 0; i < c_.identities.size(); ++i)
        if (host_of_[c_.identities[i].node] != none) identities_of_.emplace_back(host_of_[c_.identities[i].node], i);
      seq::sort(identities_of_);
    }
    std::vector<std::uint32_t> inside;
    for (const std::uint32_t h : group) {
      auto at = std::lower_bound(identities_of_.begin(), identities_of_.end(), pair(h, 0));
      for (; at != identities_of_.end() && at->first == h; ++at) inside.push_back(at->second);
    }
    const auto place = [&](std::uint32_t i) { return place_of(c_.at(c_.identities[i].node)); };
    seq::sort(inside, [&](std::uint32_t a, std::uint32_t b) {
      if (c_.identities[a].fact != c_.identities[b].fact) return c_.identities[a].fact < c_.identities[b].fact;
      return place(a) != place(b) ? place(a) < place(b) : a < b;
    });
    for (std::size_t i = 1; i < inside.size(); ++i) {
      const identity& a = c_.identities[inside[i - 1]];
      const identity& b = c_.identities[inside[i]];
      if (a.fact != b.fact || place(inside[i - 1]) != place(inside[i]) || *a.value == *b.value) continue;
      evidence = "'" + c_.at(a.node).key + "' has " + identity_facts[a.fact] + " " + *a.value + ", '" +
                 c_.at(b.node).key + "' " + *b.value;
      return true;
    }
    return false;
  }

  /// Two hosts of one part that would be called alike although they are not known to be one keep their names.
  void keep_apart() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t h = 0; h < hosts_.size(); ++h) order.push_back(h);
    for (bool again = true; again;) {
      again = false;
      seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
        if (hosts_[a].part != hosts_[b].part) return hosts_[a].part < hosts_[b].part;
        return hosts_[a].called != hosts_[b].called ? hosts_[a].called < hosts_[b].called : a < b;
      });
      for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
        bool one = true;
        for (last = first; last < order.size() && hosts_[order[last]].part == hosts_[order[first]].part &&
                           hosts_[order[last]].called == hosts_[order[first]].called;
             ++last)
          one = one && top(order[last]) == top(order[first]);
        if (one) continue;
        const std::string called = hosts_[order[first]].called;
        for (std::size_t i = first; i < last; ++i) {
          host& h = hosts_[order[i]];
          if (h.name == called) continue;
          h.called = h.name;
          again = true;
          c_.tell(severity::warning, h.name,
                  "the host '" + h.name + "' is called '" + called +
                      "' elsewhere, but its source knows another host of "
                      "that name; it is not renamed",
                  source_of(order[i]), "find out which source is right");
        }
      }
    }
  }

  void rename() {
    keep_apart();
    struct renamed {
      std::uint32_t count = 0, host = 0;
    };
    std::vector<renamed> told(c_.parts.size());
    for (std::uint32_t h = 0; h < hosts_.size(); ++h)
      if (hosts_[h].called != hosts_[h].name && told[hosts_[h].part].count++ == 0) told[hosts_[h].part].host = h;
    for (const renamed& t : told)
      if (t.count > 0)
        c_.tell(
            severity::note, source_of(t.host),
            t.count == 1 ? "a host has another name in other sources, and gets that"
                         : std::to_string(t.count) + " hosts have other names in other sources, and get those",
            (t.count == 1 ? "'" : "such as '") + hosts_[t.host].name + "', which is '" + hosts_[t.host].called + "'");
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      if (host_of_[g] == none) continue;
      const host& h = hosts_[host_of_[g]];
      if (h.called == h.name) continue;
      node& n = c_.at(g);
      const std::string_view place = place_of(n);
      if (place.size() < n.key.size()) n.key = h.called + "/" + std::string(place);
      n.host = h.called;
    }
  }

  copied_parts& c_;
  std::vector<host> hosts_;             ///< by part, then name
  std::vector<std::uint32_t> host_of_;  ///< of each node
  std::vector<pair> identities_of_;     ///< host and position in `identities`
};

}}}}  // namespace topocoll::v0::topo::detail
