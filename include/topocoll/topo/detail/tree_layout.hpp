// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of a tree with two columns, and the short forms of lists that stand in them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// One line of the tree. `shape` is what it has in common with lines that are equal but for names and addresses.
struct tree_line {
  std::string left, right, shape, name;
  std::vector<tree_line> below;
};

/// "1 NIC", "3 NICs", "2 PCIe switches".
template <class = void>
[[nodiscard]] std::string counted(std::size_t n, std::string_view what) {
  std::string text = std::to_string(n) + ' ' + std::string(what);
  if (n != 1) text += what.ends_with("ch") ? "es" : "s";
  return text;
}

/// "GPU 0-3, GPU 5": runs of numbers behind the same word are joined; more than `most` pieces are cut short.
template <class = void>
[[nodiscard]] std::string joined_names(const std::vector<std::string>& names, std::size_t most = 6) {
  struct run {
    std::string word;
    std::uint64_t first, last;
    bool numbered;
  };
  std::vector<run> runs;
  for (const std::string& name : names) {
    const auto digits = name.size() - (name.find_last_not_of("0123456789") + 1);
    const bool numbered = digits > 0 && digits < 10;
    const std::string word = name.substr(0, name.size() - (numbered ? digits : 0));
    const std::uint64_t number = numbered ? std::stoull(name.substr(word.size())) : 0;
    if (numbered && !runs.empty() && runs.back().numbered && runs.back().word == word && runs.back().last + 1 == number)
      runs.back().last = number;
    else
      runs.push_back({word, number, number, numbered});
  }
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += ", ";
    if (i + 1 == most && runs.size() > most) return text + "... (" + std::to_string(names.size()) + " in all)";
    text += runs[i].word + (runs[i].numbered ? std::to_string(runs[i].first) : "");
    if (runs[i].last > runs[i].first) text += '-' + std::to_string(runs[i].last);
  }
  return text;
}

/// Appends a tree, its second column aligned. Lines end in newlines; an empty line comes before the first.
class tree_layout {
 public:
  explicit tree_layout(bool unicode) : unicode_(unicode) {}
  void append(std::string& text, const tree_line& tree) const {
    std::vector<flat_line> lines;
    flatten(tree, "", 0, true, true, lines);
    std::size_t column = 0;
    for (std::size_t i = 1; i < lines.size(); ++i)
      if (!lines[i].right.empty()) column = std::max(column, std::min<std::size_t>(lines[i].width, widest_left));
    text += '\n';
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += lines[i].left;
      if (!lines[i].right.empty()) {
        const std::size_t gap = i == 0 || lines[i].width >= column ? 2 : column - lines[i].width + 2;
        text += std::string(gap, ' ') + lines[i].right;
      }
      text += '\n';
    }
  }

 private:
  static constexpr std::size_t widest_left = 60;  // one long name does not push all figures off the screen

  struct flat_line {
    std::string left, right;
    std::size_t width = 0;  ///< of `left` on the screen, where a box character is one column but three bytes
  };
  void flatten(const tree_line& line, const std::string& prefix, std::size_t indent, bool top, bool last,
               std::vector<flat_line>& to) const {
    const char* const branch = top ? "" : unicode_ ? (last ? "└─ " : "├─ ") : (last ? "`- " : "+- ");
    const char* const trunk = top ? "" : last ? "   " : (unicode_ ? "│  " : "|  ");
    const std::size_t inner = indent + (top ? 0 : 3);
    to.push_back({prefix + branch + line.left, line.right, inner + line.left.size()});
    for (std::size_t i = 0; i < line.below.size(); ++i)
      flatten(line.below[i], prefix + trunk, inner, false, i + 1 == line.below.size(), to);
  }

  bool unicode_;
};

}}}}  // namespace topocoll::v0::topo::detail
