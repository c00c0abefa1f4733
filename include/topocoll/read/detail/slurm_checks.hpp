// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every Slurm topology must obey, in whichever syntax it was written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/read/slurm_topology.hpp>

namespace topocoll { inline namespace v0 { namespace read {
namespace detail {

/// Expands a list of nodes or switches. `left` is how many names the file may still hold. A piece whose prefix is only the
/// end of the one before ("rack-n[1-2],n[3]") is told: its writer may have meant the same hosts.
template <class>
result<void> slurm_names(std::string_view list, const std::string& file, std::uint32_t line, std::size_t& left,
                         std::vector<std::string>& out, std::vector<finding>& findings) {
  const std::string where = file + " line " + std::to_string(line);
  auto names = expand_hostlist(list, left);
  if (!names) return fail(names.error().code, where + ": " + names.error().what, names.error().next);
  left -= names->size();
  if (const auto pieces = hostlist_pieces(list))
    for (std::size_t i = 1; i < pieces->size(); ++i) {
      const std::string_view before = (*pieces)[i - 1].prefix;
      const std::string_view now = (*pieces)[i].prefix;
      if (now.empty() || now.size() >= before.size() || (*pieces)[i].text == now ||
          before.substr(before.size() - now.size()) != now)
        continue;
      findings.push_back({severity::warning, where,
                          "'" + std::string((*pieces)[i].text) + "' stands for hosts that begin with '" +
                              std::string(now) + "', not with '" + std::string(before) + "' as those before it",
                          std::string((*pieces)[i - 1].text) + "," + std::string((*pieces)[i].text),
                          "put the numbers into one bracket if the same hosts are meant", 0.9});
    }
  out.insert(out.end(), std::make_move_iterator(names->begin()), std::make_move_iterator(names->end()));
  return {};
}

/// Sizes of blocks are the base times 1, 2, 4, … in growing order. Source: Slurm's topology.conf(5), BlockSizes.
template <class>
result<void> check_block_sizes(const std::vector<std::uint32_t>& sizes, const std::string& where) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint32_t times = sizes[0] == 0 ? 0 : sizes[i] / sizes[0];
    if (times == 0 || times * sizes[0] != sizes[i] || (times & (times - 1)) != 0)
      return fail(errc::malformed_input,
                  where + ": the block size " + std::to_string(sizes[i]) + " is not the base size " +
                      std::to_string(sizes[0]) + " times a power of two",
                  "write for example BlockSizes=4,8,16");
    if (i > 0 && sizes[i] <= sizes[i - 1])
      return fail(errc::malformed_input, where + ": the block size " + std::to_string(sizes[i]) + " comes after " +
                                             std::to_string(sizes[i - 1]) + ", but sizes grow");
  }
  return {};
}

/// Looks after one topology: names are unique and known, nothing is its own ancestor; tells what is odd.
template <class = void>
class slurm_checker {
 public:
  slurm_checker(slurm_topology& t, const std::string& file) : t_(t), file_(file) {}

  [[nodiscard]] result<void> run() {
    const std::vector<slurm_switch>& switches = t_.switches;
    for (const slurm_switch& s : switches) {
      if (s.name.size() > longest_switch_name)
        return refuse(s.line, "the name '" + s.name.substr(0, 40) + "…' has " + std::to_string(s.name.size()) +
                                  " letters; switches may have " + std::to_string(longest_switch_name));
      for (const char c : s.name)
        if (!is_name_letter(c))
          return refuse(s.line, "the name of a switch has a character that Slurm does not take: '" + s.name + "'");
    }
    by_name_.resize(switches.size());
    for (std::uint32_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    seq::sort(by_name_, [&](std::uint32_t a, std::uint32_t b) { return switches[a].name < switches[b].name; });
    for (std::size_t i = 1; i < by_name_.size(); ++i)
      if (switches[by_name_[i]].name == switches[by_name_[i - 1]].name)
        return twice("switch", switches[by_name_[i]].name, switches[by_name_[i - 1]].line, switches[by_name_[i]].line);
    if (auto ok = unique("block", t_.blocks); !ok) return ok;
    if (auto ok = unique("ring", t_.rings); !ok) return ok;
    for (const slurm_group& ring : t_.rings)
      if (ring.nodes.size() > most_ring_nodes)
        return refuse(ring.line, "the ring '" + ring.name + "' has " + std::to_string(ring.nodes.size()) +
                                     " nodes; a ring may have " + std::to_string(most_ring_nodes));
    find_ports();
    if (auto ok = children(); !ok) return ok;
    for (const slurm_switch& s : switches) {
      if (s.nodes.empty() && s.children.empty())
        note(severity::warning, s.line, "the switch '" + s.name + "' has neither nodes nor switches below it");
      if (!s.nodes.empty() && !s.children.empty() && !t_.nodes_are_ports)
        note(severity::note, s.line, "the switch '" + s.name + "' has nodes as well as switches below it");
    }
    places();
    if (!t_.block_sizes.empty())
      for (const slurm_group& b : t_.blocks)
        if (b.nodes.size() < t_.block_sizes[0])
          note(severity::warning, b.line,
               "the block '" + b.name + "' has " + std::to_string(b.nodes.size()) +
                   " nodes, fewer than the base size " + std::to_string(t_.block_sizes[0]));
    return {};
  }

 private:
  [[nodiscard]] std::string place(std::uint32_t line) const { return file_ + " line " + std::to_string(line); }
  [[nodiscard]] failure refuse(std::uint32_t line, const std::string& why, std::string next = {}) const {
    return fail(errc::malformed_input, place(line) + ": " + why, std::move(next));
  }
  [[nodiscard]] failure twice(const char* what, const std::string& name, std::uint32_t first,
                              std::uint32_t again) const {
    return refuse(again < first ? first : again, std::string("the ") + what + " '" + name +
                                                     "' is defined twice, first on line " +
                                                     std::to_string(again < first ? again : first));
  }
  void note(severity level, std::uint32_t line, std::string what, std::string evidence = {}) {
    t_.findings.push_back({level, place(line), std::move(what), std::move(evidence), {}, 1});
  }

  [[nodiscard]] result<void> unique(const char* what, const std::vector<slurm_group>& groups) const {
    std::vector<std::uint32_t> order(groups.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return groups[a].name < groups[b].name; });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (groups[order[i]].name == groups[order[i - 1]].name)
        return twice(what, groups[order[i]].name, groups[order[i - 1]].line, groups[order[i]].line);
    return {};
  }

  /// Nodes that are all 64-bit hexadecimal numbers are ports: no host is called 0x155dfffd33ff33.
  void find_ports() {
    std::size_t nodes = 0;
    for (const slurm_switch& s : t_.switches)
      for (const std::string& n : s.nodes) {
        const std::string_view text(n);
        if (text.size() < 3 || text.size() > 18 || text.substr(0, 2) != "0x" ||
            text.find_first_not_of("0123456789abcdefABCDEF", 2) != std::string_view::npos)
          return;
        ++nodes;
      }
    t_.nodes_are_ports = nodes > 0;
  }

  [[nodiscard]] std::uint32_t position(const std::string& name) const {
    const auto at =
        seq::lower_bound_by(by_name_, name, [&](std::uint32_t i) -> const std::string& { return t_.switches[i].name; });
    return at != by_name_.end() && t_.switches[*at].name == name ? *at : static_cast<std::uint32_t>(by_name_.size());
  }

  /// Children are known and are no ancestors.
  [[nodiscard]] result<void> children() {
    const auto n = static_cast<std::uint32_t>(t_.switches.size());
    std::vector<std::vector<std::uint32_t>> below(n);
    std::vector<std::uint32_t> last_parent(n, n);
    for (std::uint32_t i = 0; i < n; ++i) {
      slurm_switch& s = t_.switches[i];
      std::vector<std::string> kept;
      for (std::string& name : s.children) {
        const std::uint32_t child = position(name);
        if (child == n) {
          std::vector<std::string_view> names;
          for (std::uint32_t k = 0; k < n && k < 4096; ++k) names.push_back(t_.switches[k].name);
          const std::string_view near = topocoll::detail::nearest(name, names);
          return refuse(s.line, "the switch '" + name + "' below '" + s.name + "' is not defined",
                        near.empty() ? "define it, or take it out" : "did you mean '" + std::string(near) + "'?");
        }
        if (child == i) return refuse(s.line, "the switch '" + name + "' is listed below itself");
        if (last_parent[child] == i) {
          note(severity::warning, s.line, "the switch '" + name + "' is listed twice below '" + s.name + "'");
          continue;
        }
        last_parent[child] = i;
        below[i].push_back(child);
        kept.push_back(std::move(name));
      }
      s.children = std::move(kept);
    }
    if (t_.nodes_are_ports) find_neighbours(below);
    if (t_.lists_neighbours) return {};

    // Takes away what has nothing left below it; what stays is a circle, or leads into one.
    std::vector<std::uint32_t> left(n, 0);
    std::vector<std::vector<std::uint32_t>> above(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      left[i] = static_cast<std::uint32_t>(below[i].size());
      for (const std::uint32_t child : below[i]) above[child].push_back(i);
    }
    std::vector<std::uint32_t> done;
    for (std::uint32_t i = 0; i < n; ++i)
      if (left[i] == 0) done.push_back(i);
    for (std::size_t k = 0; k < done.size(); ++k)
      for (const std::uint32_t parent : above[done[k]])
        if (--left[parent] == 0) done.push_back(parent);
    if (done.size() == n) return {};
    std::uint32_t at = 0;
    while (left[at] == 0) ++at;
    std::vector<std::uint32_t> trail;
    std::vector<bool> seen(n, false);
    while (!seen[at]) {
      seen[at] = true;
      trail.push_back(at);
      for (const std::uint32_t child : below[at])
        if (left[child] > 0) {
          at = child;
          break;
        }
    }
    std::string circle;
    const auto begin = static_cast<std::size_t>(seq::find(trail, at) - trail.begin());
    for (std::size_t i = begin; i < trail.size() && i < begin + 16; ++i) circle += t_.switches[trail[i]].name + " -> ";
    if (trail.size() > begin + 16) circle += "… -> ";
    return refuse(t_.switches[at].line,
                  "the switch '" + t_.switches[at].name + "' is its own ancestor: " + circle + t_.switches[at].name);
  }

  /// Two switches that list each other show that the file lists neighbours, as dumps of a fabric do.
  void find_neighbours(const std::vector<std::vector<std::uint32_t>>& below) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t i = 0; i < below.size(); ++i)
      for (const std::uint32_t child : below[i]) pairs.emplace_back(i < child ? i : child, i < child ? child : i);
    seq::sort(pairs);
    for (std::size_t k = 1; k < pairs.size(); ++k)
      if (pairs[k] == pairs[k - 1]) {
        t_.lists_neighbours = true;
        note(severity::note, t_.switches[pairs[k].first].line,
             "the switches '" + t_.switches[pairs[k].first].name + "' and '" + t_.switches[pairs[k].second].name +
                 "' list each other: Switches holds neighbours here, not only what is below");
        return;
      }
  }

  /// Tells nodes that stand in one list twice, or under several leaves, blocks or rings.
  void places() {
    struct seat {
      const std::string* node;
      std::uint32_t group;
      std::uint32_t line;
    };
    const auto look = [&](const char* what, const std::vector<seat>& all, bool rails) {
      std::vector<seat> seats = all;
      seq::sort(seats, [](const seat& a, const seat& b) {
        const int order = a.node->compare(*b.node);
        return order != 0 ? order < 0 : a.group < b.group;
      });
      std::size_t nodes = 0;
      std::size_t several = 0;
      std::size_t most = 1;
      std::size_t least = seats.size();
      std::vector<std::string> named;
      for (std::size_t first = 0, last = 0; first < seats.size(); first = last) {
        std::size_t groups = 1;
        for (last = first + 1; last < seats.size() && *seats[last].node == *seats[first].node; ++last) {
          if (seats[last].group != seats[last - 1].group)
            ++groups;
          else
            note(severity::warning, seats[last].line, "the node '" + *seats[last].node + "' is listed twice");
        }
        ++nodes;
        if (groups > 1) {
          ++several;
          if (named.size() < 6) {
            std::string lines;
            for (std::size_t i = first; i < last; ++i)
              if (i == first || seats[i].group != seats[i - 1].group)
                lines += (lines.empty() ? "lines " : ", ") + std::to_string(seats[i].line);
            named.push_back(*seats[first].node + " (" + lines + ")");
          }
        }
        if (groups > most) most = groups;
        if (groups < least) least = groups;
      }
      if (several == 0) return;
      std::string evidence = std::to_string(several) + " of " + std::to_string(nodes) + " nodes: ";
      for (std::size_t i = 0; i < named.size(); ++i) evidence += (i > 0 ? ", " : "") + named[i];
      if (several > named.size()) evidence += ", …";
      const bool even = rails && least == most;
      t_.findings.push_back({even ? severity::note : severity::warning, file_,
                             even ? "every node stands under " + std::to_string(most) + " leaves: taken as " +
                                        std::to_string(most) + " rails"
                                  : std::string("nodes stand ") + what + ", others under one",
                             std::move(evidence),
                             even ? std::string() : "check whether the node is listed in the wrong place", 1});
    };
    std::vector<seat> seats;
    for (std::uint32_t i = 0; i < t_.switches.size(); ++i)
      for (const std::string& node : t_.switches[i].nodes) seats.push_back({&node, i, t_.switches[i].line});
    look("under several leaves", seats, true);
    seats.clear();
    for (std::uint32_t i = 0; i < t_.blocks.size(); ++i)
      for (const std::string& node : t_.blocks[i].nodes) seats.push_back({&node, i, t_.blocks[i].line});
    look("in several blocks", seats, false);
    seats.clear();
    for (std::uint32_t i = 0; i < t_.rings.size(); ++i)
      for (const std::string& node : t_.rings[i].nodes) seats.push_back({&node, i, t_.rings[i].line});
    look("in several rings", seats, false);
  }

  slurm_topology& t_;
  std::string file_;
  std::vector<std::uint32_t> by_name_;
};

template <class>
result<void> check_slurm_topology(slurm_topology& t, const std::string& file) {
  return slurm_checker<>(t, file).run();
}

}  // namespace detail

template <class>
std::vector<std::vector<std::uint32_t>> slurm_children(const slurm_topology& t) {
  std::vector<std::uint32_t> by_name(t.switches.size());
  for (std::uint32_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  const auto name = [&](std::uint32_t i) -> const std::string& { return t.switches[i].name; };
  seq::sort_by(by_name, name);
  std::vector<std::vector<std::uint32_t>> below(t.switches.size());
  for (std::uint32_t i = 0; i < t.switches.size(); ++i)
    for (const std::string& child : t.switches[i].children)
      if (const auto at = seq::lower_bound_by(by_name, child, name); at != by_name.end() && name(*at) == child)
        below[i].push_back(*at);
  return below;
}

template <class>
std::vector<std::uint32_t> slurm_tiers(const slurm_topology& t) {
  const auto below = slurm_children(t);
  const auto n = static_cast<std::uint32_t>(t.switches.size());
  std::vector<std::vector<std::uint32_t>> above(n);
  std::vector<std::uint32_t> left(n), tier(n, 0), done;
  for (std::uint32_t i = 0; i < n; ++i) {
    left[i] = static_cast<std::uint32_t>(below[i].size());
    for (const std::uint32_t child : below[i]) above[child].push_back(i);
  }
  if (t.lists_neighbours) {
    std::vector<bool> seen(n, false);
    for (std::uint32_t i = 0; i < n; ++i)
      if (!t.switches[i].nodes.empty()) {
        seen[i] = true;
        done.push_back(i);
      }
    for (std::size_t k = 0; k < done.size(); ++k)
      for (const bool up : {false, true})
        for (const std::uint32_t next : up ? above[done[k]] : below[done[k]])
          if (!seen[next]) {
            seen[next] = true;
            tier[next] = tier[done[k]] + 1;
            done.push_back(next);
          }
    return tier;
  }
  for (std::uint32_t i = 0; i < n; ++i)
    if (left[i] == 0) done.push_back(i);
  for (std::size_t k = 0; k < done.size(); ++k)
    for (const std::uint32_t parent : above[done[k]]) {
      if (tier[parent] < tier[done[k]] + 1) tier[parent] = tier[done[k]] + 1;
      if (--left[parent] == 0) done.push_back(parent);
    }
  return tier;
}

}}}  // namespace topocoll::v0::read
