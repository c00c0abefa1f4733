// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices that differ from those of the same model in the same host.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/shape.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Compares devices of one model in one host.
template <class = void>
class sibling_checker {
 public:
  /// @param models  a colour for each node, equal for devices of one model; must outlive the object
  sibling_checker(check_context& c, const std::vector<std::uint64_t>& models) : c_(c), model_(models) {}

  /// @param alike  hosts that look as this one does
  void within(std::uint32_t h, std::size_t alike) {
    const severity level = alike >= 3 ? severity::note : severity::warning;
    const std::string so = alike > 1 ? " in " + std::to_string(alike) + " hosts alike" : "";
    std::vector<sibling> gpus, nics;
    for (const node_id v : c_.hosts.hosts[h].nodes) {
      const node& n = c_.g.at(v);
      if (n.kind == node_kind::gpu) gpus.push_back(sibling_of(v, false));
      if (n.kind == node_kind::nic_port || n.kind == node_kind::nic)
        if (const sibling s = sibling_of(v, true); s.have) nics.push_back(s);
    }
    slower_links(gpus, level, so, "PCIe or chip-to-chip link");
    slower_links(nics, level, so, "cable");
    fewer_nvlinks(gpus, level, so);
    ports_down(h, level, so);
    balance(h, so);
  }

 private:
  struct sibling {
    std::uint64_t model;
    std::uint32_t node;
    bundle best;          ///< its PCIe or chip-to-chip link, or its cable
    std::uint32_t peers;  ///< NVLinks; 0 where the number is not told
    bool have;
  };

  [[nodiscard]] sibling sibling_of(node_id v, bool network) const {
    sibling s{model_[v.value], v.value, {}, 0, false};
    bool untold = false;
    for (const bundle& b : bundles_from(c_.g, v)) {
      const bool wanted = network ? is_cable(b.kind) : b.kind == link_kind::pcie || b.kind == link_kind::c2c;
      if (wanted && (!s.have || rate_of(s.best) < rate_of(b))) {
        s.best = b;
        s.have = true;
      }
      if (b.kind != link_kind::nvlink && b.kind != link_kind::xgmi) continue;
      untold = untold || b.lanes == 0;
      s.peers += b.lanes;
    }
    if (untold) s.peers = 0;
    return s;
  }

  /// Calls `each` with the siblings of every model, if there are two or more.
  template <class Each>
  static void by_model(std::vector<sibling> all, const Each& each) {
    seq::sort_by(all, [](const sibling& s) { return s.model; });
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i;
      while (end < all.size() && all[end].model == all[i].model) ++end;
      if (end - i > 1)
        each(std::vector<sibling>(all.begin() + static_cast<std::ptrdiff_t>(i),
                                  all.begin() + static_cast<std::ptrdiff_t>(end)));
      i = end;
    }
  }

  void slower_links(const std::vector<sibling>& list, severity level, const std::string& so, const char* word) {
    by_model(list, [&](const std::vector<sibling>& all) {
      const sibling* usual = nullptr;
      std::size_t like_usual = 0;
      for (const sibling& s : all) {
        std::size_t n = 0;
        for (const sibling& t : all)
          n += s.have && t.have && relate(s.best, t.best, c_.o.tolerance) == relation::same ? 1 : 0;
        if (s.have &&
            (usual == nullptr || n > like_usual || (n == like_usual && rate_of(usual->best) < rate_of(s.best)))) {
          usual = &s;
          like_usual = n;
        }
      }
      if (usual == nullptr || 2 * like_usual < all.size()) return;
      std::size_t odd = 0;
      for (const sibling& s : all)
        odd += s.have && relate(usual->best, s.best, c_.o.tolerance) == relation::slower ? 1 : 0;
      // Without a word about models, several slow ones among fast ones may be cards for another purpose.
      const bool model_told = has_model(usual->node);
      for (const sibling& s : all) {
        if (!s.have || relate(usual->best, s.best, c_.o.tolerance) != relation::slower ||
            c_.named(s.best.from, s.best.to))
          continue;
        const node_id v{s.node};
        c_.say("sibling", odd == 1 || model_told ? level : severity::note, c_.ends(v, s.best.to),
               "the " + std::string(word) + " of " + c_.name(v) + " is slower than its siblings'" + so + ": " +
                   figures_text(s.best) + " against " + figures_text(usual->best),
               std::to_string(like_usual) + " of " + std::to_string(all.size()) + " have " + figures_text(usual->best),
               "reseat it; look at both ends' settings");
      }
    });
  }
  [[nodiscard]] bool has_model(std::uint32_t v) const {
    for (const auto& fact : c_.g.at(node_id{v}).facts)
      if (is_model_fact(fact.first)) return true;
    return false;
  }

  void fewer_nvlinks(const std::vector<sibling>& list, severity level, const std::string& so) {
    by_model(list, [&](const std::vector<sibling>& all) {
      std::uint32_t most = 0;
      std::vector<std::uint64_t> counts;
      for (const sibling& s : all) {
        most = std::max(most, s.peers);
        counts.push_back(s.peers);
      }
      const majority usual = majority_of(counts);
      if (!usual.found && list.size() > 2) return;
      const std::uint64_t expected = usual.found ? usual.value : most;
      for (const sibling& s : all) {
        bool known = false, plane = false, xgmi = false;
        for (const bundle& b : bundles_from(c_.g, {s.node})) {
          if (b.kind != link_kind::nvlink && b.kind != link_kind::xgmi) continue;
          known = known || c_.named(b.from, b.to);
          plane = plane || c_.g.at(b.to).kind == node_kind::nvswitch;
          xgmi = xgmi || b.kind == link_kind::xgmi;
        }
        if (s.peers >= expected || known) continue;
        // A mesh may give its GPUs different numbers by design.
        const bool clear = plane || 4 * usual.count >= 3 * all.size();
        const char* word = xgmi ? " XGMI links" : " NVLinks";
        c_.say("sibling", clear ? level : severity::note, c_.g.at(node_id{s.node}).key,
               c_.name({s.node}) + " has " + std::to_string(s.peers) + word + " up, its siblings have " +
                   std::to_string(expected) + so,
               std::to_string(usual.count) + " of " + std::to_string(all.size()) + " GPUs have " +
                   std::to_string(expected),
               xgmi ? "look at rocm-smi --showtopo and at the system log"
                    : "look at nvidia-smi nvlink -s and at the system log");
      }
    });
  }

  /// A port that says so, or whose adapter reaches nothing through it.
  [[nodiscard]] bool is_down(node_id port) const {
    if (says_down(c_.g.at(port))) return true;
    for (const link_id e : c_.g.out_links(port))
      if (c_.g.at(e).kind == link_kind::internal && c_.g.at(e).capacity.value <= 0) return true;
    return false;
  }

  void ports_down(std::uint32_t h, severity level, const std::string& so) {
    for (const node_id v : c_.hosts.hosts[h].nodes) {
      const node& n = c_.g.at(v);
      if (n.kind != node_kind::nic_port || !is_down(v)) continue;
      std::size_t up = 0, all = 0;  // ports of the same model
      for (const node_id w : c_.hosts.hosts[h].nodes) {
        if (c_.g.at(w).kind != node_kind::nic_port || model_[w.value] != model_[v.value]) continue;
        ++all;
        up += is_down(w) ? 0 : 1;
      }
      // Every other port of a card is often unused; one that is plugged in, or down beside most of its like, is not.
      const bool wanted = up > 0 && (plugged(v.value) || 2 * up > all);
      const std::string* state = fact_of(n, "state");
      c_.say("port down", wanted ? level : severity::note, n.key, "port " + c_.name(v) + " is down" + so,
             (state != nullptr ? "state: " + *state + "; " : std::string()) + std::to_string(up) + " of " +
                 std::to_string(all) + " such ports of the host are up",
             wanted ? "look at the cable and at the switch port" : "");
    }
  }

  void balance(std::uint32_t h, const std::string& so) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> domains;  // number, GPUs
    for (const node_id v : c_.hosts.hosts[h].nodes) {
      const node& n = c_.g.at(v);
      if (n.kind != node_kind::gpu) continue;
      if (!n.numa) return;
      std::size_t i = 0;
      while (i < domains.size() && domains[i].first != *n.numa) ++i;
      if (i == domains.size()) domains.emplace_back(*n.numa, 0);
      ++domains[i].second;
    }
    bool even = true;
    for (const auto& d : domains) even = even && d.second == domains[0].second;
    if (domains.size() < 2 || even) return;
    std::vector<std::string> words;
    for (const auto& [number, gpus] : domains)
      words.push_back(counted_devices(gpus, node_kind::gpu) + " in domain " + std::to_string(number));
    c_.say("balance", severity::note, c_.hosts.hosts[h].name,
           "the GPUs of " + c_.hosts.hosts[h].name + " are spread unevenly over NUMA domains" + so, listed(words));
  }

  [[nodiscard]] bool plugged(std::uint32_t v) const { return has_cables(c_.g, {v}); }

  check_context& c_;
  const std::vector<std::uint64_t>& model_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
