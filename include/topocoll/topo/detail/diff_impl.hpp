// SPDX-License-Identifier: Apache-2.0
#pragma once
// How topo/diff.hpp goes about it: hosts, devices, links, paths, and the sentences.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/compare.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/host_pairs.hpp>
#include <topocoll/topo/detail/match.hpp>
#include <topocoll/topo/detail/path_changes.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/diff.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo {
namespace detail { namespace sameness {

template <class = void>
class differ {
 public:
  differ(const graph& a, const graph& b, const diff_options& o)
      : o_(o),
        a_(a),
        b_(b),
        several_(has_several_hosts(a) || has_several_hosts(b)),
        how_(a.node_count(), 0),
        compare_(a_, b_, o.tolerance),
        paths_(a_, b_, compare_.told_by_a(), compare_.told_by_b()) {}

  [[nodiscard]] difference run() {
    const host_pairing<> hosts(a_, b_, o_);
    matcher<> match(a_, b_, how_);
    for (std::size_t h = 0; h < hosts.of_a().size(); ++h) {
      const group& x = a_.hosts.hosts[h];
      const std::uint32_t k = hosts.of_a()[h];
      if (k == no_place) {
        lone_host(a_, x, o_.a, o_.b, d_.missing);
        continue;
      }
      const group& y = b_.hosts.hosts[k];
      d_.hosts.emplace_back(x.name, y.name);
      match.run(x.nodes, y.nodes, x.name == y.name || is_mapped(x.name, y.name));
    }
    match.run(a_.hosts.fabric, b_.hosts.fabric, true);
    std::vector<link_change> cables;  // told with the hosts that they end at
    for (std::size_t h = 0; h < hosts.of_a().size(); ++h)
      if (const std::uint32_t k = hosts.of_a()[h]; k != no_place) {
        const group& x = a_.hosts.hosts[h];
        const group& y = b_.hosts.hosts[k];
        const comparison c = compare_.run(x.nodes, y.nodes);
        tell(c, x.name == y.name ? x.name : x.name + " | " + y.name);
        for (const link_change& change : c.links)
          if (is_cable((change.a ? *change.a : *change.b).kind)) cables.push_back(change);
        if (!o_.paths || !c.other_ways) continue;
        std::vector<path_change> changes = paths_.run(x, y);
        for (path_change& p : changes) {
          p.from = same(p.from.a.value);
          p.to = same(p.to.a.value);
        }
        tell_paths(changes, x.name == y.name ? x.name : x.name + " | " + y.name);
        d_.paths.insert(d_.paths.end(), changes.begin(), changes.end());
      }
    for (std::uint32_t k = 0; k < b_.hosts.hosts.size(); ++k)
      if (!hosts.taken(k)) lone_host(b_, b_.hosts.hosts[k], o_.b, o_.a, d_.added);
    comparison network = compare_.run(a_.hosts.fabric, b_.hosts.fabric);
    compare_.drop_told(network.links, std::move(cables));
    tell(network, "network");
    untold_kinds();
    for (std::uint32_t u = 0; u < a_.match.size(); ++u)
      if (a_.match[u] != no_place) d_.same.push_back(same(u));
    seq::sort(d_.missing);
    seq::sort(d_.added);
    return std::move(d_);
  }

 private:
  [[nodiscard]] bool is_mapped(const std::string& from, const std::string& to) const {
    for (const auto& [x, y] : o_.hosts)
      if (x == from && y == to) return true;
    return false;
  }
  [[nodiscard]] same_device same(std::uint32_t u) const {
    return {{u}, {a_.match[u]}, static_cast<topo::recognised>(how_[u])};
  }
  void say(severity level, std::string where, std::string what, std::string evidence = {}, std::string next = {}) {
    d_.findings.push_back({level, std::move(where), std::move(what), std::move(evidence), std::move(next), 1});
  }
  [[nodiscard]] std::string in_a(std::uint32_t u) const { return label_of(*a_.g, {u}, several_); }
  [[nodiscard]] std::string in_b(std::uint32_t v) const { return label_of(*b_.g, {v}, several_); }
  /// "GPU 3 of node7", or with what B calls it: "GPU 3 (GPU 2 in guest.xml)".
  [[nodiscard]] std::string both(std::uint32_t u) const {
    const std::string x = in_a(u);
    const std::string y = in_b(a_.match[u]);
    return x == y ? x : x + " (" + y + " in " + o_.b + ")";
  }

  void lone_host(const side& s, const group& host, const std::string& here, const std::string& there,
                 std::vector<node_id>& list) {
    list.insert(list.end(), host.nodes.begin(), host.nodes.end());
    std::size_t gpus = 0, nics = 0;
    for (const node_id v : host.nodes) {
      gpus += s.at(v.value).kind == node_kind::gpu ? 1 : 0;
      nics += s.at(v.value).kind == node_kind::nic ? 1 : 0;
    }
    say(severity::warning, host.name, "host " + host.name + " is in " + here + " and not in " + there,
        counted_devices(gpus, node_kind::gpu) + ", " + counted_devices(nics, node_kind::nic),
        "name the pair if it is there under another name");
  }

  /// Bridges come and go with virtual machines without anything being lost; devices do not.
  [[nodiscard]] static severity weight(node_kind k) {
    return k == node_kind::pcie_root || k == node_kind::pcie_switch ? severity::note : severity::warning;
  }

  void tell(const comparison& c, const std::string& where) {
    for (const std::uint32_t u : c.missing) {
      d_.missing.push_back({u});
      const node& n = a_.at(u);
      if (compare_.told_by_b().of(n.kind) && !goes_with_adapter(a_, u))
        say(weight(n.kind), n.key, in_a(u) + " is in " + o_.a + " and not in " + o_.b, to_string(n.kind));
    }
    for (const std::uint32_t v : c.added) {
      d_.added.push_back({v});
      const node& n = b_.at(v);
      if (compare_.told_by_a().of(n.kind) && !goes_with_adapter(b_, v))
        say(weight(n.kind), n.key, in_b(v) + " is in " + o_.b + " and not in " + o_.a, to_string(n.kind));
    }
    std::vector<remark> remarks;
    for (const device_change& x : c.devices) tell_device(x, remarks);
    for (const link_change& x : c.links) tell_link(x, remarks);
    tell_remarks(std::move(remarks), where);
    d_.links.insert(d_.links.end(), c.links.begin(), c.links.end());
    tell_numbers(c, where);
    tell_untold(c, where);
  }

  /// A port whose adapter is not there either.
  [[nodiscard]] static bool goes_with_adapter(const side& s, std::uint32_t v) {
    if (s.at(v).kind != node_kind::nic_port) return false;
    for (const link_id e : s.g->out_links({v}))
      if (s.g->at(e).kind == link_kind::internal && s.match[s.g->head(e).value] == no_place) return true;
    return false;
  }

  /// One difference, and how many of its sort are told together.
  struct remark {
    std::string sort;  ///< those with the same are one finding when there are more than `most_alone`
    finding alone;
    std::string together;  ///< what follows the number: "PCIe links are slower in B: …"
    std::string item;      ///< which one, in the list of them
  };
  static constexpr std::size_t most_alone = 3;

  void tell_remarks(std::vector<remark> all, const std::string& where) {
    seq::sort_by(all, [](const remark& r) -> const std::string& { return r.sort; });
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i;
      std::vector<std::string> items;
      for (; end < all.size() && all[end].sort == all[i].sort; ++end) items.push_back(std::move(all[end].item));
      if (items.size() > most_alone) {
        finding& f = all[i].alone;
        say(f.level, where, std::to_string(items.size()) + ' ' + all[i].together,
            listed(items, 64) + (f.evidence.empty() ? "" : "; " + f.evidence), std::move(f.next_step));
      } else {
        for (std::size_t k = i; k < end; ++k) d_.findings.push_back(std::move(all[k].alone));
      }
      i = end;
    }
  }

  void tell_device(const device_change& x, std::vector<remark>& remarks) {
    d_.changed.push_back(same(x.a));
    const node& n = a_.at(x.a);
    const bool hardware = n.kind != node_kind::cpu && n.kind != node_kind::host_memory && !is_bridge(n.kind);
    if (!x.facts.empty()) {
      std::vector<std::string> facts;
      for (const auto& [name, values] : x.facts)
        facts.push_back(name + " " + values.first + " in " + o_.a + ", " + values.second + " in " + o_.b);
      const severity level = hardware ? severity::warning : severity::note;
      remarks.push_back({std::string("model ") + to_string(n.kind) + listed(facts),
                         {level, n.key, both(x.a) + " is another model in " + o_.b, listed(facts), "", 1},
                         counted_devices(2, n.kind).substr(2) + " are other models in " + o_.b,
                         label_of(n)});
    }
    // What is inside an adapter or above a device goes with it.
    if (x.numa && (n.kind == node_kind::gpu || n.kind == node_kind::nic || n.kind == node_kind::pcie_device)) {
      const std::string domains =
          std::to_string(x.numa->first) + " in " + o_.a + " and to " + std::to_string(x.numa->second) + " in " + o_.b;
      remarks.push_back({"numa",
                         {severity::warning, n.key, both(x.a) + " belongs to NUMA domain " + domains,
                          "NUMA domains are told by the numbers of " + o_.a, "", 1},
                         "devices belong to other NUMA domains in " + o_.b + " than in " + o_.a,
                         label_of(n) + ": " + std::to_string(x.numa->first) + ", " + std::to_string(x.numa->second)});
    }
    if (x.down_in_a || x.down_in_b)
      remarks.push_back(
          {x.down_in_a ? "up" : "down",
           {severity::warning, n.key,
            "port " + both(x.a) + " is up in " + (x.down_in_a ? o_.b : o_.a) + " and down in " +
                (x.down_in_a ? o_.a : o_.b),
            "state: " + *fact_of(n, "state") + " in " + o_.a + ", " + *fact_of(b_.at(x.b), "state") + " in " + o_.b,
            "look at the cable and at the switch port", 1},
           "ports are up in " + (x.down_in_a ? o_.b : o_.a) + " and down in " + (x.down_in_a ? o_.a : o_.b),
           label_of(n)});
  }
  [[nodiscard]] static bool is_bridge(node_kind k) { return k == node_kind::pcie_root || k == node_kind::pcie_switch; }

  void tell_link(const link_change& x, std::vector<remark>& remarks) {
    const bundle& l = x.a ? *x.a : *x.b;
    const side& s = x.a ? a_ : b_;
    const std::string word = link_word(l.kind);
    const auto far = [&](const bundle& end, bool left) { return left ? in_a(end.to.value) : in_b(end.to.value); };
    const std::string item = label_of(s.at(l.from.value)) + " - " + label_of(s.at(l.to.value));
    remark r;
    r.item = item;
    r.alone.where = s.at(l.from.value).key + " - " + s.at(l.to.value).key;
    r.alone.level = severity::warning;
    if (!x.a || !x.b) {
      const std::string only = std::string(" in ") + (x.a ? o_.a : o_.b) + " and not in " + (x.a ? o_.b : o_.a);
      r.sort = "one side " + word + only;
      r.alone.what = "the " + word + " between " + (x.a ? both(l.from.value) : in_b(l.from.value)) + " and " +
                     far(l, x.a.has_value()) + " is" + only;
      r.alone.evidence = figures_text(l);
      r.together = word + "s are" + only;
      remarks.push_back(std::move(r));
      return;
    }
    const std::string figures = figures_text(*x.a) + " in " + o_.a + ", " + figures_text(*x.b) + " in " + o_.b;
    const bool elsewhere = a_.match[x.a->to.value] != x.b->to.value;
    const relation is = relate(*x.a, *x.b, o_.tolerance);
    const bool rate = is == relation::slower || is == relation::faster;
    const std::string how = is == relation::slower ? "slower" : "faster";
    std::string& what = r.alone.what;
    what = "the " + word + " of " + both(l.from.value);
    if (elsewhere)
      what += " leads to " + far(*x.a, true) + " in " + o_.a + " and to " + far(*x.b, false) + " in " + o_.b;
    else
      what += " to " + far(*x.a, true);
    if (rate && elsewhere)
      what += ", " + how + ": " + figures;
    else if (rate)
      what += " is " + how + " in " + o_.b + ": " + figures;
    else if (!elsewhere)
      what += " carries as much in both, by other means: " + figures;
    // Another bridge above a device costs what its paths say; another switch at the end of a cable is another place.
    if (!rate && (!elsewhere || l.kind == link_kind::pcie)) r.alone.level = severity::note;
    r.alone.evidence = best_text(x);
    if (is == relation::slower) r.alone.next_step = "find out why " + o_.b + " has less";
    r.sort = (elsewhere ? "elsewhere " : "rate ") + word + (elsewhere && !rate ? "" : (rate ? how : "") + figures);
    r.together = word + "s " +
                 (elsewhere ? "lead elsewhere in " + o_.b + (rate ? ", " + how : "")
                  : rate    ? "are " + how + " in " + o_.b
                            : "carry as much by other means") +
                 (rate || !elsewhere ? ": " + figures : "");
    remarks.push_back(std::move(r));
  }
  [[nodiscard]] std::string best_text(const link_change& x) const {
    const auto best = [](const bundle& l) { return l.nominal ? to_string(*l.nominal) : std::string("not told"); };
    return "best of both ends: " + best(*x.a) + " in " + o_.a + ", " + best(*x.b) + " in " + o_.b +
           "; used by models: " + to_string(x.a->capacity) + ", " + to_string(x.b->capacity);
  }

  void tell_numbers(const comparison& c, const std::string& where) {
    const auto list = [&](const std::vector<std::uint32_t>& all, const auto& text) {
      std::vector<std::string> words;
      for (const std::uint32_t u : all) words.push_back(text(u));
      return listed(words);
    };
    if (!c.other_address.empty())
      say(severity::note, where,
          std::to_string(c.other_address.size()) + " devices have other addresses in " + o_.b + " than in " + o_.a,
          list(c.other_address, [&](std::uint32_t u) {
            return std::string(local_key(a_.at(u))) + " is " + std::string(local_key(b_.at(a_.match[u])));
          }));
    if (!c.other_number.empty())
      say(severity::note, where,
          std::to_string(c.other_number.size()) + " devices have other numbers in " + o_.b + " than in " + o_.a,
          list(c.other_number,
               [&](std::uint32_t u) { return label_of(a_.at(u)) + " is " + label_of(b_.at(a_.match[u])); }),
          "programs that choose devices by number choose others");
  }

  void tell_untold(const comparison& c, const std::string& where) {
    if (c.untold_numa != 0)
      say(severity::note, where,
          "the NUMA domain of " + std::to_string(c.untold_numa) + " devices cannot be compared: one side of " + o_.a +
              " and " + o_.b + " does not tell it");
    std::vector<std::string> links;
    for (const link_change& x : c.untold)
      links.push_back(in_a(x.a->from.value) + " - " + in_a(x.a->to.value) + ": " + figures_text(*x.a) +
                      (x.a->how == trust::assumed ? " (assumed) in " : " in ") + o_.a + ", " + figures_text(*x.b) +
                      (x.b->how == trust::assumed ? " (assumed) in " : " in ") + o_.b);
    if (!links.empty())
      say(severity::note, where,
          "the rates of " + std::to_string(links.size()) + " links cannot be compared: " + o_.a + " or " + o_.b +
              " does not tell them",
          listed(links));
  }

  void untold_kinds() {
    for (std::size_t k = 0; k < 12; ++k) {
      const auto kind = static_cast<node_kind>(k);
      for (const bool left : {true, false}) {
        const auto& told = left ? compare_.told_by_b() : compare_.told_by_a();
        if (told.of(kind)) continue;
        std::size_t n = 0;
        for (const node_id v : left ? d_.missing : d_.added) n += (left ? a_ : b_).at(v.value).kind == kind ? 1 : 0;
        if (n != 0)
          say(severity::note, left ? o_.b : o_.a,
              counted_devices(n, kind) + " of " + (left ? o_.a : o_.b) +
                  " cannot be compared: " + (left ? o_.b : o_.a) + " tells of none");
      }
    }
    for (const link_kind kind : {link_kind::pcie, link_kind::nvlink, link_kind::xgmi, link_kind::c2c,
                                 link_kind::infiniband, link_kind::ethernet})
      for (const bool left : {true, false}) {
        const graph& has = left ? *a_.g : *b_.g;
        if ((left ? compare_.told_by_b() : compare_.told_by_a()).of(kind)) continue;
        std::size_t n = 0;
        for (const link& l : has.links()) n += l.kind == kind ? 1 : 0;
        if (n != 0)
          say(severity::note, left ? o_.b : o_.a,
              std::string("links of kind ") + to_string(kind) + " cannot be compared: " + (left ? o_.b : o_.a) +
                  " tells of none");
      }
  }

  void tell_paths(std::vector<path_change> all, const std::string& where) {
    const auto sort_key = [&](const path_change& p) {
      const bool peer = a_.at(p.to.a.value).kind == node_kind::gpu;
      return (static_cast<std::uint32_t>(p.a) << 8U | static_cast<std::uint32_t>(p.b)) << 1U | (peer ? 0U : 1U);
    };
    seq::sort_by(all, sort_key);
    for (std::size_t i = 0; i < all.size();) {
      std::vector<std::string> pairs;
      const path_change& first = all[i];
      const bool peer = a_.at(first.to.a.value).kind == node_kind::gpu;
      for (const std::uint32_t key = sort_key(first); i < all.size() && sort_key(all[i]) == key; ++i)
        pairs.push_back(label_of(a_.at(all[i].from.a.value)) + " - " + label_of(a_.at(all[i].to.a.value)));
      say(severity::warning, where,
          "paths between " + std::string(peer ? "GPUs" : "GPUs and NICs") + " are " + to_string(first.a) + " in " +
              o_.a + " and " + to_string(first.b) + " in " + o_.b + " (" + std::to_string(pairs.size()) +
              (pairs.size() == 1 ? " pair)" : " pairs)"),
          listed(pairs, 64));
    }
  }

  const diff_options& o_;
  side a_, b_;
  bool several_;
  std::vector<std::uint8_t> how_;
  comparer<> compare_;
  path_comparer<> paths_;
  difference d_;
};

}}  // namespace detail::sameness

template <class>
difference diff(const graph& a, const graph& b, const diff_options& options) {
  return detail::sameness::differ<>(a, b, options).run();
}

}}}  // namespace topocoll::v0::topo
