// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/cluster_graph.hpp plugs hosts in and cables switches.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/cluster_graph.hpp>
#include <topocoll/discover/detail/cluster_correct.hpp>
#include <topocoll/discover/detail/cluster_hosts.hpp>
#include <topocoll/discover/detail/fabric_build.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/nearest.hpp>
#include <topocoll/discover/detail/tally.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Builds the fragment of one cluster file, step by step.
template <class = void>
class cluster_builder : cluster_host_builder<> {
 public:
  cluster_builder(const read::cluster_file& c, const discover_options& options, const std::string& file,
                  host_text_reader read_host)
      : cluster_host_builder<>(c, options, file, read_host) {
    out_.source = "cluster-file " + file;
    if (!c.name.empty()) out_.source += " (" + c.name + ")";
    kind_ = c.ethernet ? topo::link_kind::ethernet : topo::link_kind::infiniband;
  }

  [[nodiscard]] result<topo::fragment> run() {
    for (const read::cluster_hosts& h : c_.hosts)
      if (auto ok = add_hosts(h); !ok) return std::move(ok).error();
    if (auto ok = add_switches(); !ok) return std::move(ok).error();
    if (auto ok = resolve_exceptions(); !ok) return std::move(ok).error();
    if (auto ok = plug_hosts(); !ok) return std::move(ok).error();
    if (auto ok = cable_switches(); !ok) return std::move(ok).error();
    for (const exception& e : exceptions_)
      if (!e.used)
        return refuse(e.from->line, "'" + e.from->a + "' and '" + e.from->b +
                                        "' are not joined by a cable, so the exception is about nothing");
    told_.report(file_, out_.findings);
    tally repeated;
    make_keys_unique(out_, {}, repeated);
    repeated.report(file_, out_.findings);
    if (auto ok = correct(out_, c_, file_); !ok) return std::move(ok).error();
    return std::move(out_);
  }

 private:
  /// An exception whose ends are known: a port and a switch, or two switches, the lower first.
  struct exception {
    const read::cluster_exception* from;
    std::optional<node_id> port;
    std::uint32_t low = 0, high = 0;
    bool used = false;
  };

  [[nodiscard]] std::optional<std::uint32_t> switch_at(const std::string& name) const {
    const auto at =
        seq::lower_bound_by(by_name_, name, [&](std::uint32_t i) -> const std::string& { return *names_[i]; });
    if (at == by_name_.end() || *names_[*at] != name) return std::nullopt;
    return *at;
  }
  [[nodiscard]] failure no_switch(std::uint32_t line, const std::string& name, const char* what) const {
    std::vector<std::string_view> all;
    for (std::size_t i = 0; i < names_.size() && i < 4096; ++i) all.push_back(*names_[i]);
    const std::string_view near = nearest(name, all);
    return refuse(line, std::string("the ") + what + " '" + name + "' is not named in [[switches]]",
                  near.empty() ? std::string() : "did you mean '" + std::string(near) + "'?");
  }

  [[nodiscard]] result<void> add_switches() {
    for (const read::cluster_switches& s : c_.switches)
      for (const std::string& name : s.names) {
        names_.push_back(&name);
        entry_.push_back(&s);
      }
    if (out_.nodes.size() + names_.size() > read::most_cluster_parts)
      return too_large(c_.switches.front().line, "nodes");
    const auto n = static_cast<std::uint32_t>(names_.size());
    for (std::uint32_t i = 0; i < n; ++i) by_name_.push_back(i);
    seq::sort_by(by_name_, [&](std::uint32_t i) -> const std::string& { return *names_[i]; });

    // Each entry's `up` once; every switch of the entry shares it.
    for (const read::cluster_switches& s : c_.switches) {
      std::vector<std::uint32_t>& up = up_.emplace_back();
      for (const std::string& name : s.up) {
        const auto at = switch_at(name);
        if (!at) return no_switch(s.line, name, "switch");
        up.push_back(*at);
      }
      std::vector<std::uint32_t> sorted = up;
      seq::sort_unique(sorted);
      if (sorted.size() != up.size()) return refuse(s.line, "'up' names a switch twice");
      const std::size_t pairs = s.names.size() * up.size();
      if (s.names.size() > read::most_cluster_parts / (up.empty() ? 1 : up.size()) ||
          (links_ += pairs * s.cables.value_or(1)) > read::most_cluster_parts)
        return too_large(s.line, "links");
    }
    // Tiers from below: a switch is done when all that have cables up to it are.
    std::vector<std::uint32_t> left(n, 0), tier(n, 0), done;
    const auto up_of = [&](std::uint32_t i) -> const std::vector<std::uint32_t>& {
      return up_[static_cast<std::size_t>(entry_[i] - c_.switches.data())];
    };
    for (std::uint32_t i = 0; i < n; ++i)
      for (const std::uint32_t above : up_of(i)) ++left[above];
    below_switches_ = left;
    for (std::uint32_t i = 0; i < n; ++i)
      if (left[i] == 0) done.push_back(i);
    for (std::size_t k = 0; k < done.size(); ++k)
      for (const std::uint32_t above : up_of(done[k])) {
        if (tier[above] <= tier[done[k]]) tier[above] = tier[done[k]] + 1;
        if (--left[above] == 0) done.push_back(above);
      }
    if (done.size() < n)
      for (std::uint32_t i = 0; i < n; ++i)
        if (left[i] > 0) return refuse(entry_[i]->line, "cables upwards lead from '" + *names_[i] + "' back to itself");
    order_ = std::move(done);
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto stated = entry_[i]->tier;
      std::uint32_t is = tier[i];
      if (stated && *stated != (is > 2 ? 2 : is)) {
        if (below_switches_[i] == 0)
          is = *stated;  // nothing below says otherwise; hosts will
        else
          told_.add(severity::warning,
                    "the stated tier of a switch is not the one that its cables give it; the cables count",
                    *names_[i] + " (line " + std::to_string(entry_[i]->line) + ": " + to_string(switch_kind(*stated)) +
                        ", not " + to_string(switch_kind(is)) + ")");
      }
      tier_.push_back(is);
      switch_.push_back(out_.add(named_switch(*names_[i], is)));
    }
    nominal_below_.assign(n, 0);
    now_below_.assign(n, 0);
    fastest_below_.assign(n, 0);
    return {};
  }

  [[nodiscard]] result<void> resolve_exceptions() {
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) hosts_by_name_.push_back(i);
    seq::sort_by(hosts_by_name_, [&](std::uint32_t i) -> const std::string& { return *hosts_[i].name; });
    for (const read::cluster_exception& e : c_.links) {
      exception x{&e, std::nullopt, 0, 0, false};
      std::uint32_t ends[2] = {};
      std::size_t switches = 0;
      for (const std::string* end : {&e.a, &e.b}) {
        auto p = port_named(e, *end);
        if (!p) return std::move(p).error();
        if (*p) {
          x.port = **p;
          continue;
        }
        const auto at = switch_at(*end);
        if (!at) return no_switch(e.line, *end, "switch");
        ends[switches++] = *at;
      }
      if (switches == 0)
        return refuse(e.line, "a link joins an adapter and a switch, or two switches, not two adapters");
      x.low = switches == 2 && tier_[ends[1]] < tier_[ends[0]] ? ends[1] : ends[0];
      x.high = switches == 2 && tier_[ends[1]] < tier_[ends[0]] ? ends[0] : ends[1];
      if (x.port && e.cables) return refuse(e.line, "an adapter's port has one cable; give 'missing' or 'rate'");
      exceptions_.push_back(x);
    }
    seq::sort(exceptions_, [](const exception& a, const exception& b) { return key_of(a) < key_of(b); });
    for (std::size_t i = 1; i < exceptions_.size(); ++i)
      if (key_of(exceptions_[i]) == key_of(exceptions_[i - 1]))
        return refuse(exceptions_[i].from->line, "the link between '" + exceptions_[i].from->a + "' and '" +
                                                     exceptions_[i].from->b + "' has two exceptions, first on line " +
                                                     std::to_string(exceptions_[i - 1].from->line));
    return {};
  }
  /// Ports first, then pairs of switches.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> key_of(const exception& e) {
    if (e.port) return {e.port->value, e.low};
    return {(std::uint64_t{1} << 32U) + e.low, e.high};
  }
  [[nodiscard]] exception* find_exception(const std::pair<std::uint64_t, std::uint64_t>& key) {
    const auto at = seq::lower_bound_by(exceptions_, key, [](const exception& e) { return key_of(e); });
    if (at == exceptions_.end() || key_of(*at) != key) return nullptr;
    at->used = true;
    return &*at;
  }
  /// Tells an exception, with both ends.
  void tell(const exception& e, severity level, const std::string& what) {
    out_.findings.push_back({level,
                             e.from->a + " - " + e.from->b,
                             "the link between " + e.from->a + " and " + e.from->b + " " + what,
                             file_ + " line " + std::to_string(e.from->line) + ": " + e.from->reason,
                             {},
                             1});
  }

  // ---- cables ----

  [[nodiscard]] result<void> plug_hosts() {
    std::vector<std::uint32_t> position(names_.size(), UINT32_MAX);  // of the adapters in a leaf, while they agree
    constexpr std::uint32_t several = UINT32_MAX - 1;
    for (const placed_host& h : hosts_) {
      const read::cluster_hosts& g = *h.group;
      std::vector<std::optional<std::uint32_t>> leaf(h.ports);
      const auto leaf_named = [&](const std::string& name) -> result<std::uint32_t> {
        const auto at = switch_at(name);
        if (!at) return no_switch(g.line, name, "leaf");
        return *at;
      };
      if (!g.leaves.empty()) {
        if (g.leaves.size() != 1 && g.leaves.size() != h.ports)
          return refuse(g.line,
                        "the host '" + *h.name + "' has " + std::to_string(h.ports) +
                            (h.ports == 1 ? " adapter" : " adapters") + ", but 'leaves' names " +
                            std::to_string(g.leaves.size()),
                        "name one leaf for all adapters, or one for each, or use 'plug'");
        for (std::size_t i = 0; i < h.ports; ++i) {
          auto at = leaf_named(g.leaves[g.leaves.size() == 1 ? 0 : i]);
          if (!at) return std::move(at).error();
          leaf[i] = *at;
        }
      }
      for (const auto& [adapter, name] : g.plugs) {
        auto at = leaf_named(name);
        if (!at) return std::move(at).error();
        const auto number = read::digits_of(adapter, 10);
        std::size_t i = 0;
        while (i < h.ports && ports_[h.first_port + i].name != adapter && !(number && *number == i)) ++i;
        if (i == h.ports)
          return refuse(g.line, "the host '" + *h.name + "' has no adapter '" + adapter + "'",
                        "it has " + std::to_string(h.ports) + ", named or counted from 0");
        leaf[i] = *at;
      }
      for (std::size_t i = 0; i < h.ports; ++i) {
        const port& p = ports_[h.first_port + i];
        if (!leaf[i]) {
          told_.add(severity::note, "an adapter has no cable", *h.name + "/" + p.name);
          continue;
        }
        const std::uint32_t l = *leaf[i];
        plug(p, l);
        if (position[l] == UINT32_MAX) position[l] = static_cast<std::uint32_t>(i);
        if (position[l] != i) position[l] = several;
      }
    }
    for (std::size_t l = 0; l < position.size(); ++l) {
      topo::node& n = out_.nodes[switch_[l].value];
      if (position[l] == UINT32_MAX) {
        if (below_switches_[l] == 0)
          told_.add(severity::warning, "a switch has nothing plugged in from below", *names_[l]);
        continue;
      }
      if (below_switches_[l] == 0 && tier_[l] != 0) {
        told_.add(severity::warning,
                  "the stated tier of a switch is not the one that its cables give it; the cables count",
                  *names_[l] + " (line " + std::to_string(entry_[l]->line) + ": " + to_string(n.kind) + ", not leaf)");
        tier_[l] = 0;
        n.kind = topo::node_kind::leaf;
      }
      if (position[l] != several) n.facts.emplace_back("rail", std::to_string(position[l]));
    }
    return {};
  }

  void plug(const port& p, std::uint32_t l) {
    const bool slower = c_.rate && *c_.rate < p.rate;
    topo::link c = cable(p.at, switch_[l], kind_, slower ? *c_.rate : p.rate, slower ? trust::reported : p.how,
                         slower ? std::string() : p.reason);
    nominal_below_[l] += c.capacity.value;
    if (c.capacity.value > fastest_below_[l]) fastest_below_[l] = c.capacity.value;
    if (exception* e = find_exception({p.at.value, l})) {
      if (e->from->missing) {
        tell(*e, severity::fault, "is missing");
        return;
      }
      slow_down(c, *e);
    }
    now_below_[l] += c.capacity.value;
    out_.join(c);
  }
  void slow_down(topo::link& c, const exception& e) {
    if (!e.from->rate) return;
    const bytes_per_second was = c.capacity;
    c.nominal = was;
    c.current = *e.from->rate;
    c.capacity = *e.from->rate;
    c.how = trust::reported;
    c.reason = e.from->reason;
    tell(e, severity::warning, "runs at " + to_string(*e.from->rate) + ", others like it at " + to_string(was));
  }

  [[nodiscard]] result<void> cable_switches() {
    for (const std::uint32_t i : order_) {
      const read::cluster_switches& s = *entry_[i];
      const auto& up = up_[static_cast<std::size_t>(&s - c_.switches.data())];
      if (up.empty()) continue;
      const double below = nominal_below_[i];
      const std::optional<bytes_per_second> told = s.rate ? s.rate : c_.rate;
      topo::link c = cable(switch_[i], {}, kind_, {}, trust::reported, {});
      std::uint32_t cables = 1;
      if (s.cables) {
        cables = *s.cables;
        c.capacity = told ? *told : bytes_per_second{fastest_below_[i]};
        if (!told) {
          c.how = trust::assumed;
          c.reason = file_ + " tells no rate; taken as that of the fastest cable below";
        }
      } else {
        c.capacity = {below / (s.oversubscription.value_or(1) * static_cast<double>(up.size()))};
        c.how = s.oversubscription ? trust::derived : trust::assumed;
        c.reason = s.oversubscription ? "from the stated oversubscription, spread over the switches above"
                                      : file_ +
                                            " tells neither cables nor oversubscription; taken as all that hangs "
                                            "below, spread over the switches above";
      }
      if (c.capacity.value <= 0) {
        c.capacity = told ? *told : unknown_port_rate;
        c.how = trust::assumed;
        c.reason = "nothing hangs below; taken as one cable";
      }
      if (c.how < trust::assumed) c.nominal = c.capacity;
      const double planned = c.capacity.value * cables * static_cast<double>(up.size());
      if (s.cables && s.oversubscription && below > 0) {
        // Hand-written factors are rounded: two digits are enough to write.
        constexpr double rounding = 0.01;
        const double derived = below / planned;
        if (derived > *s.oversubscription * (1 + rounding) || derived < *s.oversubscription * (1 - rounding))
          told_.add(severity::warning,
                    "the stated oversubscription is not the one that the cables give; the cables count",
                    *names_[i] + " (line " + std::to_string(s.line) + ": " + three_digits(*s.oversubscription) +
                        " stated, " + three_digits(derived) + " cabled)");
      }
      double upwards = 0;
      for (const std::uint32_t above : up) {
        topo::link one = c;
        one.to = switch_[above];
        std::uint32_t count = cables;
        nominal_below_[above] += c.capacity.value * cables;
        if (c.capacity.value > fastest_below_[above]) fastest_below_[above] = c.capacity.value;
        const bool lower = tier_[above] < tier_[i];  // a stated tier without cables below
        if (exception* e = find_exception({(std::uint64_t{1} << 32U) + (lower ? above : i), lower ? i : above})) {
          if (e->from->cables && !s.cables)
            return refuse(e->from->line, "the exception tells cables, but the entry of '" + *names_[i] + "' does not");
          if (e->from->missing || (e->from->cables && *e->from->cables == 0)) {
            tell(*e, severity::fault, "is missing");
            continue;
          }
          if (e->from->cables) {
            count = *e->from->cables;
            tell(*e, severity::warning,
                 "has " + std::to_string(count) + (count == 1 ? " cable" : " cables") + ", others like it have " +
                     std::to_string(cables));
          }
          slow_down(one, *e);
        }
        for (std::uint32_t k = 0; k < count; ++k) out_.join(one);
        upwards += one.capacity.value * count;
        now_below_[above] += one.capacity.value * count;
      }
      auto& facts = out_.nodes[switch_[i].value].facts;
      if (upwards > 0 && now_below_[i] > 0)
        facts.insert(facts.begin(), {"oversubscription", three_digits(now_below_[i] / upwards)});
      if (c.how == trust::assumed)
        told_.add(severity::note, "the rate of links upwards is assumed: " + c.reason, *names_[i]);
    }
    return {};
  }

  topo::link_kind kind_ = topo::link_kind::infiniband;
  tally told_;
  std::vector<const std::string*> names_;             ///< of switches
  std::vector<const read::cluster_switches*> entry_;  ///< that names each switch
  std::vector<std::vector<std::uint32_t>> up_;        ///< of each entry
  std::vector<std::uint32_t> by_name_, order_, tier_, below_switches_;
  std::vector<node_id> switch_;
  std::vector<exception> exceptions_;
  std::vector<double> nominal_below_, now_below_, fastest_below_;  ///< bytes per second
  std::size_t links_ = 0;
};

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::cluster_file& cluster, const discover_options& options,
                                   const std::string& file, host_text_reader read_host) {
  return detail::cluster_builder<>(cluster, options, file, read_host).run();
}

}}  // namespace topocoll::v0
