// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hosts that differ from their siblings, and devices that differ from those beside them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/check_siblings.hpp>
#include <topocoll/topo/detail/compare.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/match.hpp>
#include <topocoll/topo/detail/shape.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Compares the hosts of a graph with each other and the devices in each.
template <class = void>
class host_checker {
 public:
  explicit host_checker(check_context& c)
      : c_(c),
        left_(c.g),
        right_(c.g),
        how_(c.g.node_count(), 0),
        compare_(left_, right_, c.o.tolerance),
        siblings_(c, left_.model) {}

  void run() {
    left_.paint();
    right_.exact = left_.exact;
    right_.structure = left_.structure;
    right_.near = left_.near;
    right_.model = left_.model;
    // Links below their best are named by themselves; beside that, hosts look as they should.
    const std::vector<std::uint64_t> meant = colours_of(c_.g, c_.hosts, {3, true, seen_figures::best});
    for (std::uint32_t h = 0; h < c_.hosts.hosts.size(); ++h) all_.push_back(looks_of(h, meant));
    seq::sort(all_, [](const looks& x, const looks& y) {
      if (x.family != y.family) return x.family < y.family;
      return x.shape != y.shape ? x.shape < y.shape : x.host < y.host;
    });
    join_lone_hosts();
    for (std::size_t i = 0; i < all_.size();) {
      std::size_t end = i;
      while (end < all_.size() && all_[end].family == all_[i].family) ++end;
      check_family({all_.begin() + static_cast<std::ptrdiff_t>(i), all_.begin() + static_cast<std::ptrdiff_t>(end)});
      i = end;
    }
  }

 private:
  struct looks {
    std::uint64_t family, shape;
    std::uint32_t host, gpus, nics;
  };
  using group_of_looks = std::vector<looks>;

  [[nodiscard]] const group& host(std::uint32_t h) const { return c_.hosts.hosts[h]; }

  /// Siblings have GPUs and NICs of the same models, in whatever number.
  [[nodiscard]] looks looks_of(std::uint32_t h, const std::vector<std::uint64_t>& colours) const {
    looks l{0, sameness::shape_of(host(h), colours), h, 0, 0};
    std::vector<std::uint64_t> models;
    for (const node_id v : host(h).nodes) {
      const node_kind kind = c_.g.at(v).kind;
      if (kind != node_kind::gpu && kind != node_kind::nic) continue;
      ++(kind == node_kind::gpu ? l.gpus : l.nics);
      models.push_back(left_.model[v.value]);
    }
    std::sort(models.begin(), models.end());
    for (std::size_t i = 0; i < models.size(); ++i)
      if (i == 0 || models[i] != models[i - 1]) l.family = mixed(l.family, models[i]);
    return l;
  }

  /// A host that is alone of its kind is compared with the largest family that has GPUs as it has, or has none as it.
  void join_lone_hosts() {
    struct span {
      std::size_t first, count;
    };
    std::vector<span> families;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (i == 0 || all_[i].family != all_[i - 1].family) families.push_back({i, 0});
      ++families.back().count;
    }
    const span* largest[2] = {nullptr, nullptr};
    for (const span& f : families) {
      const span*& best = largest[all_[f.first].gpus > 0 ? 1 : 0];
      if (best == nullptr || f.count > best->count) best = &f;
    }
    bool joined = false;
    for (const span& f : families) {
      const span* to = largest[all_[f.first].gpus > 0 ? 1 : 0];
      if (f.count != 1 || to->count < 3) continue;
      all_[f.first].family = all_[to->first].family;
      joined = true;
    }
    if (joined)
      seq::sort(all_, [](const looks& x, const looks& y) {
        if (x.family != y.family) return x.family < y.family;
        return x.shape != y.shape ? x.shape < y.shape : x.host < y.host;
      });
  }

  void check_family(const group_of_looks& family) {
    ++kinds_;
    for (const looks& l : family) c_.kinds[l.host] = kinds_;
    std::vector<std::uint64_t> shapes;
    for (const looks& l : family) shapes.push_back(l.shape);
    majority most = majority_of(shapes);
    const std::size_t second = second_of(shapes, most.value);
    most.found = most.found || (most.count >= 3 &&
                                (most.count >= 3 * second || (2 * most.count == family.size() && most.count > second)));
    if (most.count == family.size()) {
      siblings_.within(family[0].host, family.size());
      return;
    }
    if (family.size() == 2) {
      compare(std::min(family[0].host, family[1].host), std::max(family[0].host, family[1].host), "");
      for (const looks& l : family) siblings_.within(l.host, 1);
      return;
    }
    if (!most.found) {
      std::vector<std::string> kinds;
      for (std::size_t i = 0; i < family.size(); ++i)
        if (i == 0 || family[i].shape != family[i - 1].shape) {
          std::size_t n = 0;
          for (const looks& l : family) n += l.shape == family[i].shape ? 1 : 0;
          kinds.push_back(std::to_string(n) + " as " + host(family[i].host).name);
          if (kinds.size() <= 64) siblings_.within(family[i].host, n);
        }
      c_.say("shapes", severity::note, host(family[0].host).name,
             std::to_string(family.size()) + " hosts of one kind look " + std::to_string(kinds.size()) +
                 " ways, none of them usual: nobody can tell which is right",
             listed(kinds), "compare two of them with topocoll topo diff");
      return;
    }
    const looks* reference = nullptr;
    std::size_t fewest = 0;
    for (const looks& l : family) {
      if (l.shape != most.value) continue;
      const std::size_t named = named_links_of(l.host);
      if (reference == nullptr || named < fewest) {
        reference = &l;
        fewest = named;
      }
      if (fewest == 0) break;
    }
    siblings_.within(reference->host, most.count);
    const std::string others = std::to_string(most.count) + " of " + std::to_string(family.size()) + " hosts";
    for (std::size_t i = 0; i < family.size();) {
      std::size_t end = i;
      while (end < family.size() && family[end].shape == family[i].shape) ++end;
      if (family[i].shape != most.value) odd(family, i, end, *reference, others);
      i = end;
    }
  }

  [[nodiscard]] std::size_t named_links_of(std::uint32_t h) const {
    std::size_t n = 0;
    for (const node_id v : host(h).nodes)
      for (const link_id e : c_.g.out_links(v)) n += c_.named_links[e.value];
    return n;
  }
  /// How many hosts look the most usual way but one.
  [[nodiscard]] static std::size_t second_of(std::vector<std::uint64_t> shapes, std::uint64_t most) {
    std::erase(shapes, most);
    return majority_of(std::move(shapes)).count;
  }

  void odd(const group_of_looks& family, std::size_t first, std::size_t end, const looks& reference,
           const std::string& others) {
    // Several alike hosts with less than half of the devices are no broken siblings but another kind of host, and so are
    // many alike with other numbers of devices: the same part does not break in a tenth of a cluster.
    const looks& one = family[first];
    const std::size_t alike = end - first;
    const bool fewer = alike > 1 && (2 * one.gpus < reference.gpus || 2 * one.nics < reference.nics);
    const bool many =
        alike >= 4 && 10 * alike >= family.size() && (one.gpus != reference.gpus || one.nics != reference.nics);
    if (fewer || many) {
      std::vector<std::string> names;
      ++kinds_;
      for (std::size_t i = first; i < end; ++i) {
        names.push_back(host(family[i].host).name);
        c_.kinds[family[i].host] = kinds_;
      }
      c_.say("other kinds", severity::note, host(one.host).name,
             std::to_string(end - first) + " hosts with " + counted_devices(one.gpus, node_kind::gpu) + " and " +
                 counted_devices(one.nics, node_kind::nic) + " are taken for another kind than " + others + " with " +
                 counted_devices(reference.gpus, node_kind::gpu) + " and " +
                 counted_devices(reference.nics, node_kind::nic),
             listed(names));
      return;
    }
    for (std::size_t i = first; i < end; ++i) compare(reference.host, family[i].host, others);
  }

  [[nodiscard]] bool plugged(std::uint32_t v) const { return has_cables(c_.g, {v}); }

  /// Says what `h` has that the reference has not, and the other way round. No `others`: nobody knows which is right.
  void compare(std::uint32_t reference, std::uint32_t h, const std::string& others) {
    const group& x = host(reference);
    const group& y = host(h);
    matcher<>(left_, right_, how_).run(x.nodes, y.nodes, false);
    const comparison d = compare_.run(x.nodes, y.nodes);
    words_.clear();
    open_ = others.empty();
    usual_ = open_ ? x.name : others;
    missing(d.missing, x.nodes, y);
    added(d.added, y);
    for (const device_change& change : d.devices) device(change, y);
    for (const link_change& change : d.links) connection(change, y);
    cables(x, y);
    if (open_) {
      c_.say("two hosts", severity::warning, x.name + " - " + y.name,
             x.name + " and " + y.name + " differ, and of two hosts nobody can tell which is right",
             words_.empty() ? "they are joined in another way" : listed(words_), "compare both with a third");
    } else if (words_.empty()) {
      c_.say("odd host", severity::note, y.name, y.name + " is joined in another way than " + others,
             "the same devices and rates", "topocoll topo diff shows two hosts in detail");
    }
    for (const node_id u : x.nodes) left_.match[u.value] = no_place;
    for (const node_id v : y.nodes) right_.match[v.value] = no_place;
  }
  /// One difference: a finding where the others are right, a part of one where nobody knows.
  void differs(std::string where, std::string what, std::string evidence, std::string next) {
    words_.push_back(what);
    if (open_) return;
    c_.say("odd host", severity::warning, std::move(where), std::move(what), std::move(evidence), std::move(next));
  }

  void missing(const std::vector<std::uint32_t>& list, const std::vector<node_id>& all, const group& y) {
    for (std::size_t k = 0; k < 12; ++k) {
      const auto kind = static_cast<node_kind>(k);
      std::vector<std::string> names;
      for (const std::uint32_t u : list) {
        if (c_.g.at(node_id{u}).kind != kind) continue;
        if (kind == node_kind::nic_port && adapter_is_missing(u)) continue;
        names.push_back(label_of(c_.g.at(node_id{u})));
      }
      if (names.empty()) continue;
      std::size_t before = 0, now = 0;
      for (const node_id u : all) before += c_.g.at(u).kind == kind ? 1 : 0;
      for (const node_id v : y.nodes) now += c_.g.at(v).kind == kind ? 1 : 0;
      if (kind == node_kind::nic && !open_)
        c_.lost_nics[c_.hosts.host_of[y.nodes[0].value]] += static_cast<std::uint32_t>(names.size());
      differs(y.name,
              y.name + " lacks " + listed(names) + ": it has " + counted_devices(now, kind) + ", " + usual_ + " have " +
                  std::to_string(before),
              "missing: " + listed(names), "look whether the system lists it; reseat it");
    }
  }
  [[nodiscard]] bool adapter_is_missing(std::uint32_t port) const {
    for (const link_id e : c_.g.out_links({port}))
      if (c_.g.at(e).kind == link_kind::internal && left_.match[c_.g.head(e).value] == no_place) return true;
    return false;
  }
  void added(const std::vector<std::uint32_t>& list, const group& y) {
    for (const std::uint32_t v : list) {
      const node& n = c_.g.at(node_id{v});
      bool with_adapter = false;
      for (const link_id e : c_.g.out_links({v}))
        with_adapter = with_adapter || (n.kind == node_kind::nic_port && c_.g.at(e).kind == link_kind::internal &&
                                        right_.match[c_.g.head(e).value] == no_place);
      if (with_adapter) continue;
      differs(n.key, y.name + " has " + label_of(n) + ", which " + usual_ + " have not", to_string(n.kind), "");
    }
  }
  void device(const device_change& x, const group& y) {
    const node& n = c_.g.at(node_id{x.b});
    if (!x.facts.empty()) {
      std::vector<std::string> facts;
      for (const auto& [name, values] : x.facts)
        facts.push_back(name + " " + values.second + ", others " + values.first);
      differs(n.key, label_of(n) + " of " + y.name + " is another model than in " + usual_, listed(facts), "");
    }
    if (x.numa)
      differs(n.key,
              label_of(n) + " of " + y.name + " belongs to NUMA domain " + std::to_string(x.numa->second) + ", in " +
                  usual_ + " to " + std::to_string(x.numa->first),
              "", "look at the slot that it is in");
    if (x.down_in_b)
      differs(n.key, "port " + label_of(n) + " of " + y.name + " is down, in " + usual_ + " it is up",
              "state: " + *fact_of(n, "state"), "look at the cable and at the switch port");
    if (x.down_in_a)
      differs(n.key, "port " + label_of(n) + " of " + y.name + " is up, in " + usual_ + " it is down",
              "state: " + *fact_of(n, "state"), "");
  }
  void connection(const link_change& x, const group& y) {
    const bundle& l = x.b ? *x.b : *x.a;
    const node_id from = x.b ? l.from : node_id{left_.match[l.from.value]};
    const node_id to = x.b ? l.to : node_id{left_.match[l.to.value]};
    const std::string what =
        std::string("the ") + link_word(l.kind) + " of " + label_of(c_.g.at(from)) + " of " + y.name +
        (c_.hosts.host_of[to.value] == no_place ? " to " + c_.name(to) : " to " + label_of(c_.g.at(to)));
    const std::string where = c_.ends(from, to);
    if (!x.a || !x.b) {
      differs(where, what + (x.b ? " is there, in " : " is not there, in ") + usual_ + (x.b ? " not" : " it is"),
              figures_text(l), "");
      return;
    }
    const relation r = relate(*x.a, *x.b, c_.o.tolerance);
    if (c_.named(from, to) || c_.named(x.a->from, x.a->to)) {  // the link itself was named
      words_.push_back(what);
      return;
    }
    const std::string figures = figures_text(*x.b) + ", in " + usual_ + " " + figures_text(*x.a);
    if (r == relation::slower) {
      c_.name_links(from, to);
      differs(where, what + " is slower than its siblings': " + figures,
              "capacity " + to_string(x.b->capacity) + " against " + to_string(x.a->capacity),
              "reseat it; look at both ends' settings");
    } else {
      differs(
          where,
          what + (r == relation::faster ? " is faster than its siblings': " : " is not as its siblings': ") + figures,
          "", "");
    }
  }
  /// Ports that have a cable in one host and none in the other.
  void cables(const group& x, const group& y) {
    for (const node_id u : x.nodes) {
      const std::uint32_t v = left_.match[u.value];
      if (v == no_place || plugged(u.value) == plugged(v)) continue;
      const node& n = c_.g.at(node_id{v});
      if (plugged(v)) {
        differs(n.key, label_of(n) + " of " + y.name + " has a cable, in " + usual_ + " it has none", "", "");
        continue;
      }
      if (!open_) ++c_.lost_nics[c_.hosts.host_of[v]];
      differs(n.key, label_of(n) + " of " + y.name + " has no cable into the network, in " + usual_ + " it has one", "",
              "look at the cable and whether the link is up");
    }
  }

  check_context& c_;
  side left_, right_;
  std::vector<std::uint8_t> how_;
  comparer<> compare_;
  sibling_checker<> siblings_;
  group_of_looks all_;
  std::uint32_t kinds_ = 0;  ///< kinds of hosts found so far
  std::vector<std::string> words_;
  std::string usual_;  ///< whom the odd host is compared with, in words
  bool open_ = false;  ///< nobody knows which of the two is right
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
