// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a cluster model of topograph (its YAML test inputs and simulations) says: switches, and blocks of hosts below them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/value_tree.hpp>
#include <topocoll/read/slurm_topology.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Hosts under one leaf.
struct topograph_block {
  std::string leaf;
  std::string domain;      ///< NVLink domain, by the annotation ".../domain"; empty when not told
  std::string sub_domain;  ///< by the annotation ".../sub-domain", such as a rack
  std::vector<std::string> nodes;
  std::uint32_t line = 0;
};
struct topograph_model {
  slurm_topology tree;  ///< the switches, with the nodes of the blocks below their leaves
  std::vector<topograph_block> blocks;
};

/// True for a text with the top-level keys `switches` (followed by an indented map) and `blocks`.
template <class = void>
[[nodiscard]] bool looks_like_topograph_model(std::string_view text);

/// Understands the document of a model.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line for another shape, a bad host list, or what `parse_slurm_topology` refuses
template <class = void>
[[nodiscard]] result<topograph_model> topograph_model_of(const io::value& root, std::string_view file);

namespace detail {

/// One pass over the document.
template <class = void>
class topograph_reader {
 public:
  explicit topograph_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<topograph_model> run(const io::value& root) {
    if (root.kind != io::value_kind::map)
      return refuse(root, std::string("the file is ") + to_string(root.kind) + ", not a map");
    for (const io::value& item : root.items)
      if (item.key != "switches" && item.key != "blocks") unknown(item, "the model");
    const io::value* switches = root.find("switches");
    const io::value* blocks = root.find("blocks");
    if (switches == nullptr || blocks == nullptr)
      return refuse(root, std::string("the model has no '") + (switches == nullptr ? "switches" : "blocks") + "'");
    if (switches->kind != io::value_kind::map && switches->kind != io::value_kind::none)
      return refuse(*switches, std::string("'switches' is ") + to_string(switches->kind) + ", not a map of names");
    for (const io::value& s : switches->items)
      if (auto ok = one_switch(s); !ok) return std::move(ok).error();
    if (blocks->kind != io::value_kind::list)
      return refuse(*blocks, std::string("'blocks' is ") + to_string(blocks->kind) + ", not a list");
    for (const io::value& b : blocks->items)
      if (auto ok = block(b); !ok) return std::move(ok).error();
    if (auto ok = place_blocks(); !ok) return std::move(ok).error();
    if (auto ok = check_slurm_topology(m_.tree, file_); !ok) return std::move(ok).error();
    return std::move(m_);
  }

 private:
  [[nodiscard]] std::string place(const io::value& at) const { return file_ + " line " + std::to_string(at.line); }
  [[nodiscard]] failure refuse(const io::value& at, const std::string& why) const {
    return fail(errc::malformed_input, place(at) + ": " + why);
  }
  void unknown(const io::value& at, const char* where) {
    if (unknown_++ < 32)
      m_.tree.findings.push_back({severity::note,
                                  place(at),
                                  "the key '" + at.key + "' of " + where + " is unknown and was passed over",
                                  {},
                                  {},
                                  1});
  }

  /// A text or a list of texts, each a host list.
  [[nodiscard]] result<void> names(const io::value& v, std::vector<std::string>& to) {
    if (v.kind == io::value_kind::text) return slurm_names(v.text, file_, v.line, left_, to, m_.tree.findings);
    if (v.kind != io::value_kind::list)
      return refuse(v, "'" + v.key + "' is " + to_string(v.kind) + ", not a list of names");
    for (const io::value& item : v.items) {
      if (item.kind != io::value_kind::text)
        return refuse(item, "an entry of '" + v.key + "' is " + to_string(item.kind) + ", not a name");
      if (auto ok = slurm_names(item.text, file_, item.line, left_, to, m_.tree.findings); !ok) return ok;
    }
    return {};
  }

  [[nodiscard]] result<void> one_switch(const io::value& v) {
    slurm_switch s;
    s.name = v.key;
    s.line = v.line;
    if (v.kind != io::value_kind::map && v.kind != io::value_kind::none)
      return refuse(v, "the switch '" + v.key + "' is " + to_string(v.kind) + ", not a map");
    for (const io::value& item : v.items) {
      if (item.key == "switches" && item.kind != io::value_kind::none) {
        if (auto ok = names(item, s.children); !ok) return ok;
      } else if (item.key == "nodes" && item.kind != io::value_kind::none) {
        if (auto ok = names(item, s.nodes); !ok) return ok;
      } else if (item.key != "labels" && item.key != "switches" && item.key != "nodes") {
        unknown(item, "a switch");
      }
    }
    m_.tree.switches.push_back(std::move(s));
    return {};
  }

  [[nodiscard]] result<void> block(const io::value& v) {
    if (v.kind != io::value_kind::map) return refuse(v, std::string("a block is ") + to_string(v.kind) + ", not a map");
    topograph_block b;
    b.line = v.line;
    for (const io::value& item : v.items) {
      if (item.key == "switch") {
        if (item.kind != io::value_kind::text) return refuse(item, "the switch of a block is not a name");
        b.leaf = item.text;
      } else if (item.key == "nodes") {
        if (auto ok = names(item, b.nodes); !ok) return ok;
      } else if (item.key == "annotations") {
        // The part before the slash is the maker's own name space.
        for (const io::value& a : item.items) {
          const std::size_t slash = a.key.rfind('/');
          const std::string word = a.key.substr(slash == std::string::npos ? 0 : slash + 1);
          if (word == "domain") b.domain = a.text;
          if (word == "sub-domain") b.sub_domain = a.text;
        }
      } else if (item.key != "labels") {
        unknown(item, "a block");
      }
    }
    if (b.leaf.empty()) return refuse(v, "a block has no 'switch'");
    if (b.nodes.empty()) return refuse(v, "the block below '" + b.leaf + "' has no 'nodes'");
    m_.blocks.push_back(std::move(b));
    return {};
  }

  /// Puts the nodes of blocks below their leaves, which are switches of their own when nothing else defines them.
  [[nodiscard]] result<void> place_blocks() {
    std::vector<slurm_switch>& all = m_.tree.switches;
    std::vector<std::uint32_t> by_name;
    const auto name = [&](std::uint32_t i) -> const std::string& { return all[i].name; };
    for (std::uint32_t i = 0; i < all.size(); ++i) by_name.push_back(i);
    seq::sort_by(by_name, name);
    const std::size_t defined = all.size();
    std::vector<std::uint32_t> order(m_.blocks.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort_by(order, [&](std::uint32_t i) -> const std::string& { return m_.blocks[i].leaf; });
    for (std::size_t k = 0; k < order.size(); ++k) {
      const topograph_block& b = m_.blocks[order[k]];
      std::size_t at = all.size();
      if (const auto it = seq::lower_bound_by(by_name, b.leaf, name); it != by_name.end() && name(*it) == b.leaf) {
        at = *it;
      } else if (all.size() > defined && all.back().name == b.leaf) {
        at = all.size() - 1;
      } else {
        all.emplace_back();
        all.back().name = b.leaf;
        all.back().line = b.line;
      }
      all[at].nodes.insert(all[at].nodes.end(), b.nodes.begin(), b.nodes.end());
    }
    return {};
  }

  std::string file_;
  std::size_t left_ = most_hosts / 2;  // the nodes of blocks are kept twice
  std::size_t unknown_ = 0;
  topograph_model m_;
};

}  // namespace detail

template <class>
bool looks_like_topograph_model(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  bool switches = false;
  bool blocks = false;
  bool first = true;
  while (!text.empty() && !(switches && blocks)) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view words = trimmed(row.substr(0, row.find('#')));
    if (words.empty() || words == "---" || row.front() == ' ' || row.front() == '-' || row.front() == '\t') continue;
    if (words == "switches:") {
      switches = true;
    } else if (words == "blocks:") {
      blocks = true;
    } else if (first) {
      return false;
    }
    first = false;
  }
  return switches && blocks;
}

template <class>
result<topograph_model> topograph_model_of(const io::value& root, std::string_view file) {
  return detail::topograph_reader<>(file).run(root);
}

}}}  // namespace topocoll::v0::read
