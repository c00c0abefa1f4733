// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Slurm's topology.yaml says, as the same structs as topology.conf; each broken rule is refused with its line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/io/value_tree.hpp>
#include <topocoll/read/slurm_topology.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// True for a text whose first lines are a list entry or a map that begins with the key `topology`, or with one of the kinds
/// of topologies (a mistake that deserves its own words).
template <class = void>
[[nodiscard]] bool looks_like_slurm_yaml(std::string_view text);

/// Understands the document of a topology.yaml: a list of topologies, or a single one.
///
/// Each has `topology` (first), may have `cluster_default`, and has exactly one of block, flat, ring, torus3d and tree;
/// `flat: false` is none. Lists of one entry may be written as that entry.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line for every rule that is broken: of the shape, of names, of numbers (block
///         sizes, at most 16 nodes in a ring, as many nodes as a torus has places), and those of `parse_slurm_topology`
template <class = void>
[[nodiscard]] result<std::vector<slurm_topology>> slurm_yaml_of(const io::value& root, std::string_view file);

namespace detail {

/// One pass over the document.
template <class = void>
class slurm_yaml_reader {
 public:
  explicit slurm_yaml_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<std::vector<slurm_topology>> run(const io::value& root) {
    if (root.kind != io::value_kind::list && root.kind != io::value_kind::map)
      return refuse(root, "the file is " + std::string(to_string(root.kind)) + ", not a list of topologies");
    std::vector<slurm_topology> all;
    for (const io::value* entry : entries(root)) {
      auto t = topology(*entry);
      if (!t) return std::move(t).error();
      for (const slurm_topology& other : all)
        if (other.name == t->name) return refuse(*entry, "the topology '" + t->name + "' is defined twice");
      if (all.size() == 256) return fail(errc::unsupported, file_ + " has more than 256 topologies");
      all.push_back(std::move(*t));
    }
    if (all.empty()) return refuse(root, "the list of topologies is empty");
    return all;
  }

 private:
  [[nodiscard]] std::string place(const io::value& at) const { return file_ + " line " + std::to_string(at.line); }
  [[nodiscard]] failure refuse(const io::value& at, const std::string& why, std::string next = {}) const {
    return fail(errc::malformed_input, place(at) + ": " + why, std::move(next));
  }
  /// The items of a list; a map where a list of maps is meant stands for itself.
  [[nodiscard]] static std::vector<const io::value*> entries(const io::value& v) {
    std::vector<const io::value*> all;
    if (v.kind == io::value_kind::list)
      for (const io::value& item : v.items) all.push_back(&item);
    else
      all.push_back(&v);
    return all;
  }

  /// The entries of `v`, each a map with no keys but `known`.
  [[nodiscard]] result<std::vector<const io::value*>> maps(const io::value& v, const char* what,
                                                           const std::vector<std::string_view>& known) const {
    if (v.kind != io::value_kind::list && v.kind != io::value_kind::map)
      return refuse(v, "'" + v.key + "' is " + to_string(v.kind) + ", not a list of " + what);
    auto all = entries(v);
    for (const io::value* entry : all)
      if (auto ok = keys(*entry, what, known); !ok) return std::move(ok).error();
    return all;
  }
  [[nodiscard]] result<void> keys(const io::value& v, const char* what,
                                  const std::vector<std::string_view>& known) const {
    if (v.kind != io::value_kind::map)
      return refuse(v, std::string("an entry of the ") + what + " is " + to_string(v.kind) + ", not a map");
    for (const io::value& item : v.items) {
      if (seq::contains(known, item.key)) continue;
      std::string next = "keys are";
      for (const std::string_view k : known) next += (k == known.front() ? " " : ", ") + std::string(k);
      const std::string_view near = topocoll::detail::nearest(item.key, known);
      if (!near.empty()) next = "did you mean '" + std::string(near) + "'? " + next;
      return refuse(item, "'" + item.key + "' is no key of " + what, next);
    }
    return {};
  }
  [[nodiscard]] result<std::string> name_in(const io::value& v, std::string_view key, const char* what) const {
    const io::value* name = v.find(key);
    if (name == nullptr || name->text.empty())
      return refuse(v, std::string("an entry of the ") + what + " has no '" + std::string(key) + "'");
    if (name->kind != io::value_kind::text)
      return refuse(*name, "'" + name->key + "' is " + to_string(name->kind) + ", not a name");
    return name->text;
  }
  [[nodiscard]] result<std::vector<std::string>> names_in(const io::value& v, std::string_view key,
                                                          std::vector<finding>& findings) {
    std::vector<std::string> names;
    const io::value* list = v.find(key);
    if (list == nullptr || list->kind == io::value_kind::none) return names;
    if (list->kind != io::value_kind::text)
      return refuse(*list, "'" + list->key + "' is " + to_string(list->kind) + ", not a host list");
    if (auto ok = slurm_names(list->text, file_, list->line, left_, names, findings); !ok) return std::move(ok).error();
    return names;
  }
  [[nodiscard]] result<bool> truth(const io::value& v) const {
    std::string lower;
    for (const char c : v.text.substr(0, 8)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    if (v.kind == io::value_kind::text && (lower == "true" || lower == "yes" || lower == "on")) return true;
    if (v.kind == io::value_kind::text && (lower == "false" || lower == "no" || lower == "off")) return false;
    return refuse(v, "'" + v.key + "' is neither true nor false");
  }
  [[nodiscard]] result<std::uint32_t> count(const io::value& v, const char* what) const {
    const auto number = v.kind == io::value_kind::text ? digits_of(v.text, 10) : std::nullopt;
    if (!number || *number == 0 || *number > most_hosts)
      return refuse(v, std::string(what) + " is not a number from 1 to " + std::to_string(most_hosts));
    return static_cast<std::uint32_t>(*number);
  }

  [[nodiscard]] result<slurm_topology> topology(const io::value& v) {
    if (v.kind != io::value_kind::map)
      return refuse(v, std::string("an entry of the list of topologies is ") + to_string(v.kind) + ", not a map");
    if (auto ok = keys(v, "a topology", {"topology", "cluster_default", "block", "flat", "ring", "torus3d", "tree"});
        !ok)
      return std::move(ok).error();
    slurm_topology t;
    auto name = name_in(v, "topology", "topologies");
    if (!name) return std::move(name).error();
    if (v.items.front().key != "topology")
      return refuse(v.items.front(), "'topology' is not the first key of its entry");
    t.name = std::move(*name);
    if (const io::value* is_default = v.find("cluster_default")) {
      auto yes = truth(*is_default);
      if (!yes) return std::move(yes).error();
      t.is_default = *yes;
    }
    const io::value* chosen = nullptr;
    for (const std::string_view kind : {"block", "flat", "ring", "torus3d", "tree"}) {
      const io::value* found = v.find(kind);
      if (found == nullptr || found->kind == io::value_kind::none) continue;
      if (kind == "flat" && found->kind != io::value_kind::map) {
        auto yes = truth(*found);
        if (!yes) return std::move(yes).error();
        if (!*yes) continue;
      }
      if (chosen != nullptr)
        return refuse(*found, "the topology '" + t.name + "' is of two kinds, '" + chosen->key + "' and '" +
                                  found->key + "', which exclude each other");
      chosen = found;
    }
    if (chosen == nullptr)
      return refuse(v, "the topology '" + t.name + "' is of no kind",
                    "give it one of block, flat, ring, torus3d, tree");
    result<void> ok;
    if (chosen->key == "block") ok = block(*chosen, t);
    if (chosen->key == "flat") t.flat = true;
    if (chosen->key == "ring") ok = ring(*chosen, t);
    if (chosen->key == "torus3d") ok = torus(*chosen, t);
    if (chosen->key == "tree") ok = tree(*chosen, t);
    if (!ok) return std::move(ok).error();
    if (ok = check_slurm_topology(t, file_); !ok) return std::move(ok).error();
    return t;
  }

  [[nodiscard]] result<std::vector<const io::value*>> list_in(const io::value& v, std::string_view key,
                                                              const char* what,
                                                              const std::vector<std::string_view>& known) const {
    const io::value* list = v.find(key);
    if (list == nullptr || list->kind == io::value_kind::none)
      return refuse(v, "'" + v.key + "' has no '" + std::string(key) + "'");
    return maps(*list, what, known);
  }

  [[nodiscard]] result<void> block(const io::value& v, slurm_topology& t) {
    if (auto ok = keys(v, "block", {"block_sizes", "blocks"}); !ok) return ok;
    if (const io::value* sizes = v.find("block_sizes"); sizes != nullptr && sizes->kind != io::value_kind::none) {
      if (sizes->kind == io::value_kind::map) return refuse(*sizes, "'block_sizes' is a map, not a list of numbers");
      for (const io::value* size : entries(*sizes)) {
        auto n = count(*size, "a block size");
        if (!n) return std::move(n).error();
        t.block_sizes.push_back(*n);
      }
      if (auto ok = check_block_sizes(t.block_sizes, place(*sizes)); !ok) return ok;
    }
    return groups(v, "blocks", "block", t.blocks, t.findings);
  }
  [[nodiscard]] result<void> ring(const io::value& v, slurm_topology& t) {
    if (auto ok = keys(v, "ring", {"rings"}); !ok) return ok;
    return groups(v, "rings", "ring", t.rings, t.findings);
  }
  /// [{word: name, nodes: list}]
  [[nodiscard]] result<void> groups(const io::value& v, const char* list, const char* word,
                                    std::vector<slurm_group>& to, std::vector<finding>& findings) {
    auto all = list_in(v, list, list, {word, "nodes"});
    if (!all) return std::move(all).error();
    for (const io::value* entry : *all) {
      auto name = name_in(*entry, word, list);
      if (!name) return std::move(name).error();
      auto nodes = names_in(*entry, "nodes", findings);
      if (!nodes) return std::move(nodes).error();
      to.push_back({std::move(*name), std::move(*nodes), entry->line});
    }
    return {};
  }

  [[nodiscard]] result<void> tree(const io::value& v, slurm_topology& t) {
    if (auto ok = keys(v, "tree", {"switches"}); !ok) return ok;
    auto all = list_in(v, "switches", "switches", {"switch", "children", "nodes", "link_speed"});
    if (!all) return std::move(all).error();
    for (const io::value* entry : *all) {
      slurm_switch s;
      s.line = entry->line;
      auto name = name_in(*entry, "switch", "switches");
      if (!name) return std::move(name).error();
      s.name = std::move(*name);
      auto nodes = names_in(*entry, "nodes", t.findings);
      if (!nodes) return std::move(nodes).error();
      auto children = names_in(*entry, "children", t.findings);
      if (!children) return std::move(children).error();
      if (!nodes->empty() && !children->empty())
        return refuse(*entry, "the switch '" + s.name + "' has both 'nodes' and 'children', which exclude each other");
      s.nodes = std::move(*nodes);
      s.children = std::move(*children);
      if (const io::value* speed = entry->find("link_speed")) s.link_speed = speed->text;
      t.switches.push_back(std::move(s));
    }
    return {};
  }

  /// {x: 4, y: 4, z: 2}
  [[nodiscard]] result<void> sides(const io::value& v, std::uint32_t (&side)[3]) const {
    const io::value* dims = v.find("dims");
    if (dims == nullptr) return refuse(v, "the entry has no 'dims'");
    if (auto ok = keys(*dims, "dims", {"x", "y", "z"}); !ok) return ok;
    const char* names[] = {"x", "y", "z"};
    for (std::size_t i = 0; i < 3; ++i) {
      const io::value* length = dims->find(names[i]);
      if (length == nullptr) return refuse(*dims, std::string("'dims' has no '") + names[i] + "'");
      auto n = count(*length, "a side of a torus");
      if (!n) return std::move(n).error();
      side[i] = *n;
    }
    return {};
  }
  [[nodiscard]] result<void> torus(const io::value& v, slurm_topology& t) {
    if (auto ok = keys(v, "torus3d", {"toruses"}); !ok) return ok;
    auto all = list_in(v, "toruses", "toruses", {"name", "dims", "nodes", "regions", "placements"});
    if (!all) return std::move(all).error();
    for (const io::value* entry : *all) {
      slurm_torus o;
      o.line = entry->line;
      auto name = name_in(*entry, "name", "toruses");
      if (!name) return std::move(name).error();
      o.name = std::move(*name);
      for (const slurm_torus& other : t.toruses)
        if (other.name == o.name) return refuse(*entry, "the torus '" + o.name + "' is defined twice");
      if (t.toruses.size() == 4096) return fail(errc::unsupported, file_ + " has more than 4096 toruses");
      std::uint32_t side[3] = {};
      if (auto ok = sides(*entry, side); !ok) return ok;
      o.x = side[0];
      o.y = side[1];
      o.z = side[2];
      auto nodes = names_in(*entry, "nodes", t.findings);
      if (!nodes) return std::move(nodes).error();
      o.nodes = std::move(*nodes);
      if (const io::value* regions = entry->find("regions");
          regions != nullptr && regions->kind != io::value_kind::none)
        if (auto ok = add_regions(*regions, o, t.findings); !ok) return ok;
      const std::uint64_t places = std::uint64_t{o.x} * o.y;  // of one layer, at most 2^40
      if (places > most_hosts || places * o.z != o.nodes.size())
        return refuse(*entry, "the torus '" + o.name + "' has " + std::to_string(o.x) + " x " + std::to_string(o.y) +
                                  " x " + std::to_string(o.z) + " places, but " + std::to_string(o.nodes.size()) +
                                  " nodes: every place is filled");
      if (const io::value* placements = entry->find("placements");
          placements != nullptr && placements->kind != io::value_kind::none) {
        auto boxes = maps(*placements, "placements", {"dims"});
        if (!boxes) return std::move(boxes).error();
        for (const io::value* box : *boxes) {
          std::uint32_t b[3] = {};
          if (auto ok = sides(*box, b); !ok) return ok;
          if (b[0] > o.x || b[1] > o.y || b[2] > o.z)
            return refuse(*box, "a placement is larger than the torus '" + o.name + "'");
        }
      }
      t.toruses.push_back(std::move(o));
    }
    return {};
  }
  /// Parts of a torus with nodes of their own. What else Slurm says about a region is not needed for a graph.
  [[nodiscard]] result<void> add_regions(const io::value& regions, slurm_torus& o, std::vector<finding>& findings) {
    if (!o.nodes.empty())
      return refuse(regions, "'regions' and 'nodes' of the torus '" + o.name + "' exclude each other");
    if (regions.kind != io::value_kind::list && regions.kind != io::value_kind::map)
      return refuse(regions, std::string("'regions' is ") + to_string(regions.kind) + ", not a list of regions");
    for (const io::value* region : entries(regions)) {
      if (region->kind != io::value_kind::map)
        return refuse(*region, std::string("an entry of the regions is ") + to_string(region->kind) + ", not a map");
      auto nodes = names_in(*region, "nodes", findings);
      if (!nodes) return std::move(nodes).error();
      if (nodes->empty()) return refuse(*region, "a region has no 'nodes'");
      o.nodes.insert(o.nodes.end(), nodes->begin(), nodes->end());
    }
    return {};
  }

  std::string file_;
  std::size_t left_ = most_hosts;
};

}  // namespace detail

template <class>
bool looks_like_slurm_yaml(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.empty() || row.front() == '#' || row == "---" || row.front() == '%') continue;
    // What Slurm's own tests give it: a document that is only the name of a plugin.
    if (row.substr(0, 9) == "topology/") return true;
    while (!row.empty() && (row.front() == '-' || row.front() == ' ' || row.front() == '{' || row.front() == '['))
      row.remove_prefix(1);
    if (row.empty()) continue;
    for (const std::string_view key : {"topology", "cluster_default", "torus3d"})
      if (row.substr(0, key.size()) == key && trimmed(row.substr(key.size())).substr(0, 1) == ":") return true;
    return false;
  }
  return false;
}

template <class>
result<std::vector<slurm_topology>> slurm_yaml_of(const io::value& root, std::string_view file) {
  return detail::slurm_yaml_reader<>(file).run(root);
}

}}}  // namespace topocoll::v0::read
