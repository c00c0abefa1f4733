// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Slurm's topology.conf says (tree, block, ring), as plain structs; contradictions are refused, oddities become findings.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/nearest.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// A switch of the tree, with what hangs below it.
struct slurm_switch {
  std::string name;
  std::string link_speed;             ///< as written; Slurm itself gives it neither unit nor meaning
  std::vector<std::string> nodes;     ///< hosts, or port GUIDs
  std::vector<std::string> children;  ///< names of switches
  std::uint32_t line = 0;
};
/// A block or a ring: nodes under one name, in order.
struct slurm_group {
  std::string name;
  std::vector<std::string> nodes;
  std::uint32_t line = 0;
};
/// A three-dimensional torus; `nodes` fill its x * y * z places.
struct slurm_torus {
  std::string name;
  std::uint32_t x = 0, y = 0, z = 0;
  std::vector<std::string> nodes;
  std::uint32_t line = 0;
};
/// One topology: a topology.conf, or one entry of a topology.yaml.
struct slurm_topology {
  std::string name;               ///< of an entry of topology.yaml
  bool is_default = false;        ///< `cluster_default`
  bool flat = false;              ///< topology/flat: nothing is told but that it is flat
  bool nodes_are_ports = false;   ///< `nodes` are GUIDs of InfiniBand ports, as generators write before they know hosts
  bool lists_neighbours = false;  ///< with port GUIDs only: switches list all neighbours, not only what is below
  std::vector<slurm_switch> switches;
  std::vector<slurm_group> blocks, rings;
  std::vector<std::uint32_t> block_sizes;
  std::vector<slurm_torus> toruses;
  std::vector<finding> findings;
};

/// Most nodes of a ring. Source: Slurm's topology.conf(5), topology/ring.
inline constexpr std::size_t most_ring_nodes = 16;
/// Longest name of a switch. Source: Slurm's topology.conf(5), SwitchName.
inline constexpr std::size_t longest_switch_name = 64;

/// True when the first line that says anything has one of the keys SwitchName, BlockName, BlockSizes or RingName.
template <class = void>
[[nodiscard]] bool looks_like_slurm_topology(std::string_view text);

/// Reads a topology.conf: `Key=value` pairs, keys in any case, `#` comments, `\` at the end of a line continues it.
///
/// Several roots, switches that stand alone and nodes under several leaves (rails) are fine; the latter are told.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line for unknown or missing keys, bad host lists, two switches or blocks of one
///         name, a child that is not defined, a switch that is its own ancestor, block sizes that do not double;
///         `unsupported` for Include and for more than `most_hosts` names in all. Cost: O(n log n).
template <class = void>
[[nodiscard]] result<slurm_topology> parse_slurm_topology(std::string_view text, std::string_view file);

/// The tier of each switch: 0 for those without switches below, else one more than the highest child; where switches list
/// neighbours, the distance from the nearest switch with nodes.
/// Precondition: the topology was checked, as by `parse_slurm_topology`. Cost: O(n log n).
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> slurm_tiers(const slurm_topology& topology);

/// The switches below each switch, as positions, in the order written. Precondition as `slurm_tiers`.
template <class = void>
[[nodiscard]] std::vector<std::vector<std::uint32_t>> slurm_children(const slurm_topology& topology);

namespace detail {

// What every syntax shares; see slurm_checks.hpp.
template <class = void>
[[nodiscard]] result<void> slurm_names(std::string_view list, const std::string& file, std::uint32_t line,
                                       std::size_t& left, std::vector<std::string>& out,
                                       std::vector<finding>& findings);
template <class = void>
[[nodiscard]] result<void> check_block_sizes(const std::vector<std::uint32_t>& sizes, const std::string& where);
template <class = void>
[[nodiscard]] result<void> check_slurm_topology(slurm_topology& t, const std::string& file);

}  // namespace detail

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/slurm_checks.hpp>

namespace topocoll { inline namespace v0 { namespace read {
namespace detail {

/// Reads topology.conf line by line.
template <class = void>
class slurm_conf_reader {
 public:
  slurm_conf_reader(std::string_view text, std::string_view file) : rest_(text), file_(file) {
    if (rest_.substr(0, 3) == "\xef\xbb\xbf") rest_.remove_prefix(3);
  }

  [[nodiscard]] result<slurm_topology> run() {
    while (next_line()) {
      std::string_view at = line_;
      std::vector<pair> pairs;
      for (;;) {
        at = trimmed(at);
        if (at.empty()) break;
        auto p = next_pair(at);
        if (!p) return std::move(p).error();
        pairs.push_back(std::move(*p));
      }
      if (pairs.empty()) continue;
      if (auto ok = statement(pairs); !ok) return std::move(ok).error();
    }
    if (t_.switches.empty() && t_.blocks.empty() && t_.rings.empty())
      return fail(errc::malformed_input, file_ + " names no switch, block or ring",
                  "give a topology.conf with lines such as SwitchName=s1 Nodes=node[1-16]");
    if (auto ok = check_slurm_topology(t_, file_); !ok) return std::move(ok).error();
    return std::move(t_);
  }

 private:
  enum class word : std::uint8_t { switch_name, switches, nodes, link_speed, block_name, block_sizes, ring_name };
  static constexpr std::string_view words[] = {"switchname", "switches",   "nodes",   "linkspeed",
                                               "blockname",  "blocksizes", "ringname"};
  static constexpr std::string_view shown[] = {"SwitchName", "Switches",   "Nodes",   "LinkSpeed",
                                               "BlockName",  "BlockSizes", "RingName"};
  struct pair {
    word key = word::nodes;
    std::string value;
  };

  [[nodiscard]] std::string place() const { return file_ + " line " + std::to_string(line_number_); }
  [[nodiscard]] failure refuse(const std::string& why, std::string next = {}) const {
    return fail(errc::malformed_input, place() + ": " + why, std::move(next));
  }

  /// The next line that holds more than blanks, without its comment, joined with those that continue it.
  [[nodiscard]] bool next_line() {
    line_.clear();
    line_number_ = lines_read_ + 1;
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view row = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++lines_read_;
      row = row.substr(0, row.find('#'));
      row = trimmed(row);
      const bool goes_on = !row.empty() && row.back() == '\\';
      if (goes_on) row.remove_suffix(1);
      line_ += row;
      if (goes_on) continue;
      if (!trimmed(line_).empty()) return true;
      line_.clear();
      line_number_ = lines_read_ + 1;
    }
    return !trimmed(line_).empty();
  }

  /// Takes `Key=value` off the front.
  [[nodiscard]] result<pair> next_pair(std::string_view& at) const {
    std::size_t end = 0;
    while (end < at.size() && at[end] != '=' && at[end] != ' ' && at[end] != '\t') ++end;
    const std::string_view name = at.substr(0, end);
    std::string_view after = at.substr(end);
    if (const std::size_t i = after.find_first_not_of(" \t"); i != std::string_view::npos) after.remove_prefix(i);
    std::string lower;
    for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    if (lower == "include")
      return fail(errc::unsupported, place() + ": Include lines are not followed", "give the included file as well");
    if (after.empty() || after.front() != '=')
      return refuse("'" + std::string(name.substr(0, 80)) + "' is followed by no '='",
                    "lines look like SwitchName=s1 Nodes=node[1-16]");
    pair p;
    std::size_t known = 0;
    while (known < std::size(words) && words[known] != lower) ++known;
    if (known == std::size(words)) {
      const std::string_view near = topocoll::detail::nearest(lower, words);
      std::string next = "keys are SwitchName, Switches, Nodes, LinkSpeed, BlockName, BlockSizes, RingName";
      for (std::size_t i = 0; i < std::size(words); ++i)
        if (words[i] == near) next = "did you mean '" + std::string(shown[i]) + "'? " + next;
      return refuse("'" + std::string(name.substr(0, 80)) + "' is no key of topology.conf", next);
    }
    p.key = static_cast<word>(known);
    after.remove_prefix(1);
    if (const std::size_t i = after.find_first_not_of(" \t"); i != std::string_view::npos) after.remove_prefix(i);
    if (!after.empty() && after.front() == '"') {
      const std::size_t close = after.find('"', 1);
      if (close == std::string_view::npos) return refuse("a quote is not closed");
      p.value = std::string(after.substr(1, close - 1));
      at = after.substr(close + 1);
      return p;
    }
    // Blanks inside brackets and after commas belong to the list, for files written by hand.
    std::size_t stop = 0;
    for (bool inside = false; stop < after.size(); ++stop) {
      const char c = after[stop];
      if (c == '[') inside = true;
      if (c == ']') inside = false;
      if ((c == ' ' || c == '\t') && !inside && (stop == 0 || after[stop - 1] != ',')) break;
    }
    p.value = std::string(trimmed(after.substr(0, stop)));
    at = after.substr(stop);
    return p;
  }

  /// One line: what it defines, and its values.
  [[nodiscard]] result<void> statement(const std::vector<pair>& pairs) {
    const pair* found[std::size(words)] = {};
    for (const pair& p : pairs) {
      const pair*& slot = found[static_cast<std::size_t>(p.key)];
      if (slot != nullptr)
        return refuse("'" + std::string(shown[static_cast<std::size_t>(p.key)]) + "' is given twice in one line");
      slot = &p;
    }
    const auto value = [&](word w) { return found[static_cast<std::size_t>(w)]; };
    const pair* names[] = {value(word::switch_name), value(word::block_name), value(word::ring_name)};
    std::size_t definitions = 0;
    for (const pair* name : names) definitions += name != nullptr ? 1 : 0;
    if (value(word::block_sizes) != nullptr) {
      if (pairs.size() > 1) return refuse("BlockSizes stands on a line of its own");
      return sizes(value(word::block_sizes)->value);
    }
    if (definitions != 1)
      return refuse(definitions == 0 ? "the line names no switch, block or ring"
                                     : "the line names more than one of switch, block and ring");
    for (const pair* name : names)
      if (name != nullptr && name->value.empty()) return refuse("a name is empty");
    if (names[0] == nullptr && (value(word::switches) != nullptr || value(word::link_speed) != nullptr))
      return refuse("Switches and LinkSpeed belong to a SwitchName line");

    std::vector<std::string> nodes;
    std::vector<std::string> children;
    if (const pair* list = value(word::nodes))
      if (auto ok = names_of(list->value, nodes); !ok) return ok;
    if (const pair* list = value(word::switches))
      if (auto ok = names_of(list->value, children); !ok) return ok;
    if (names[0] != nullptr) {
      slurm_switch s;
      s.name = names[0]->value;
      if (const pair* speed = value(word::link_speed)) s.link_speed = speed->value;
      s.nodes = std::move(nodes);
      s.children = std::move(children);
      s.line = line_number_;
      t_.switches.push_back(std::move(s));
    } else {
      slurm_group g;
      g.name = (names[1] != nullptr ? names[1] : names[2])->value;
      g.nodes = std::move(nodes);
      g.line = line_number_;
      (names[1] != nullptr ? t_.blocks : t_.rings).push_back(std::move(g));
    }
    return {};
  }

  [[nodiscard]] result<void> names_of(const std::string& list, std::vector<std::string>& out) {
    return slurm_names(list, file_, line_number_, left_, out, t_.findings);
  }

  [[nodiscard]] result<void> sizes(std::string_view list) {
    if (!t_.block_sizes.empty()) return refuse("BlockSizes is given twice");
    for (bool more = true; more;) {
      const std::size_t comma = list.find(',');
      more = comma != std::string_view::npos;
      const auto size = small_number(list.substr(0, comma));
      if (!size)
        return refuse("BlockSizes holds '" + std::string(list.substr(0, comma).substr(0, 40)) + "', not a number");
      t_.block_sizes.push_back(*size);
      if (more) list.remove_prefix(comma + 1);
    }
    if (auto ok = check_block_sizes(t_.block_sizes, place()); !ok) return ok;
    return {};
  }

  std::string_view rest_;
  std::string file_, line_;
  std::uint32_t line_number_ = 0, lines_read_ = 0;
  std::size_t left_ = most_hosts;
  slurm_topology t_;
};

}  // namespace detail

template <class>
bool looks_like_slurm_topology(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.empty() || row.front() == '#' || row == "\\") continue;
    // Any of the pairs of the line may come first.
    for (const std::string_view word : {"switchname", "blockname", "blocksizes", "ringname"})
      for (std::size_t at = 0; at + word.size() < row.size() && at < 4096; ++at) {
        if (at > 0 && row[at - 1] != ' ' && row[at - 1] != '\t') continue;
        std::size_t same = 0;
        while (same < word.size() && (row[at + same] | 0x20) == word[same]) ++same;
        if (same < word.size()) continue;
        const std::string_view after = trimmed(row.substr(at + same));
        if (!after.empty() && after.front() == '=') return true;
      }
    return false;
  }
  return false;
}

template <class>
result<slurm_topology> parse_slurm_topology(std::string_view text, std::string_view file) {
  return detail::slurm_conf_reader<>(text, file).run();
}

}}}  // namespace topocoll::v0::read
