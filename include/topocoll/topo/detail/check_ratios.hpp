// SPDX-License-Identifier: Apache-2.0
#pragma once
// Leaves with another ratio of capacity to hosts and capacity up than the others, or other numbers of hosts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/bundles.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/counted.hpp>
#include <topocoll/topo/detail/switch_load.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Compares the leaves of a network by what they carry.
template <class = void>
class ratio_checker {
 public:
  /// @param load  one entry for each node; must outlive the object
  ratio_checker(check_context& c, std::vector<switch_load>& load) : c_(c), load_(load) {}

  /// Ratios and numbers of hosts, for each network by itself.
  void run() {
    joined_sets sets(c_.g.node_count());
    for (const link& l : c_.g.links())
      if (is_network_switch(c_.g.at(l.from).kind) && is_network_switch(c_.g.at(l.to).kind))
        sets.join(l.from.value, l.to.value);
    std::vector<node_id> leaves = c_.g.all(node_kind::leaf);
    for (const node_id v : leaves) load_[v.value].part = sets.of(v.value);
    seq::sort_by(leaves, [&](node_id v) { return load_[v.value].part; });
    for (std::size_t i = 0; i < leaves.size();) {
      std::size_t end = i;
      while (end < leaves.size() && load_[leaves[end].value].part == load_[leaves[i].value].part) ++end;
      const std::vector<node_id> part(leaves.begin() + static_cast<std::ptrdiff_t>(i),
                                      leaves.begin() + static_cast<std::ptrdiff_t>(end));
      oversubscription(part);
      host_counts(part);
      i = end;
    }
  }

 private:
  /// "1.33:1".
  [[nodiscard]] static std::string ratio_text(double ratio) {
    const auto hundredths = static_cast<std::uint64_t>(ratio * 100 + 0.5);
    const std::string rest = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + '.' + (rest.size() == 1 ? "0" : "") + rest + ":1";
  }

  void oversubscription(const std::vector<node_id>& leaves) {
    std::vector<node_id> both;
    std::vector<std::uint64_t> ratios;  // in hundredths
    for (const node_id v : leaves) {
      const switch_load& load = load_[v.value];
      if (!(load.meant_down > 0) || !(load.meant_up > 0)) continue;
      both.push_back(v);
      ratios.push_back(static_cast<std::uint64_t>(load.meant_down / load.meant_up * 100 + 0.500001));
    }
    if (both.empty()) return;
    const majority usual = majority_of(ratios);
    if (!usual.found || both.size() < 3) {
      std::vector<std::string> words;
      bool differ = false, above = false;
      for (std::size_t i = 0; i < both.size(); ++i) {
        words.push_back(c_.name(both[i]) + ' ' + ratio_text(static_cast<double>(ratios[i]) / 100));
        differ = differ || !close(static_cast<double>(ratios[i]), static_cast<double>(ratios[0]), 0.02);
        above = above || ratios[i] > 102;
      }
      if (differ || above)
        c_.say("ratio", severity::note, "network",
               differ ? "leaves have different ratios of capacity to hosts and capacity up, none of them usual"
                      : "leaves carry " + ratio_text(static_cast<double>(ratios[0]) / 100) + " to hosts and up",
               listed(words));
      return;
    }
    const double ratio = static_cast<double>(usual.value) / 100;
    if (usual.value > 102)
      c_.say("ratio", severity::note, "network",
             "leaves are oversubscribed: " + ratio_text(ratio) + " of capacity to hosts by capacity up",
             std::to_string(usual.count) + " of " + std::to_string(both.size()) + " leaves; " + c_.name(both[0]) +
                 ": " + to_string(bytes_per_second{load_[both[0].value].down}) + " to hosts, " +
                 to_string(bytes_per_second{load_[both[0].value].up}) + " up");
    std::vector<std::string> mild;
    for (std::size_t i = 0; i < both.size(); ++i) {
      const switch_load& load = load_[both[i].value];
      const double own = load.meant_down / load.meant_up;
      const std::string words = c_.name(both[i]) + ' ' + ratio_text(own);
      if (own > ratio * c_.o.oversubscription)
        c_.say("leaf ratio", severity::warning, c_.g.at(both[i]).key,
               c_.name(both[i]) + " is oversubscribed " + ratio_text(own) + ", " + std::to_string(usual.count) +
                   " of " + std::to_string(both.size()) + " leaves " + ratio_text(ratio),
               to_string(bytes_per_second{load.down}) + " to hosts, " + to_string(bytes_per_second{load.up}) +
                   " up by " + std::to_string(load.uplinks) + " cables",
               "give it more uplinks or fewer hosts");
      else if (!close(own, ratio, 0.02))
        mild.push_back(words);
    }
    if (!mild.empty())
      c_.say("ratio", severity::note, "network",
             std::to_string(mild.size()) +
                 " leaves have another ratio of capacity to hosts and capacity up than the usual " + ratio_text(ratio),
             listed(mild));
  }

  void host_counts(const std::vector<node_id>& leaves) {
    std::vector<std::uint64_t> counts;
    for (const node_id v : leaves) counts.push_back(load_[v.value].hosts);
    std::sort(counts.begin(), counts.end());
    if (counts.empty() || counts.front() == counts.back()) return;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < counts.size();) {
      std::size_t end = i;
      while (end < counts.size() && counts[end] == counts[i]) ++end;
      std::vector<std::string> names;
      for (const node_id v : leaves)
        if (load_[v.value].hosts == counts[i]) names.push_back(c_.name(v));
      words.push_back(std::to_string(counts[i]) + " at " + listed(names, 8));
      i = end;
    }
    c_.say("hosts of leaves", severity::note, "network", "leaves serve unequal numbers of hosts", listed(words));
  }

  check_context& c_;
  std::vector<switch_load>& load_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
