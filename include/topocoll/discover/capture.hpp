// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a machine tells, as one text that replays it elsewhere.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/recording.hpp>
#include <topocoll/io/tree.hpp>
#include <topocoll/read/sysfs.hpp>

namespace topocoll { inline namespace v0 {

struct capture_options {
  std::string root = "/";      ///< where /sys and /proc of the machine lie
  std::string host = {};       ///< written into the recording, which then names its host; empty for none
  bool mask_addresses = true;  ///< hardware addresses and GUIDs become numbers; equal ones stay equal
  deadline until = deadline::in({20.0});
};

/// Records exactly the files that the source `sysfs` looks at, so that `sysfs_recording` gives the same graph.
///
/// The format is that of docs/formats/recording.md. Contents that identify the machine beyond its shape are the addresses of
/// interfaces and adapters; they are masked unless told otherwise. Interface names stay.
/// @return `not_found` when the root holds no machine. Cost: as reading, and one readlink a path component.
template <class = void>
[[nodiscard]] result<std::string> capture(const capture_options& options = {});

namespace detail {

/// Passes everything on, and writes down what was answered.
template <io::FileTree Tree>
class traced_tree {
 public:
  /// Both outlive the tree.
  traced_tree(const Tree& tree, std::vector<std::string>& lines, bool mask)
      : tree_(&tree), lines_(&lines), mask_(mask) {}

  [[nodiscard]] result<std::string> read(const std::string& path) const { return file(path, tree_->read(path)); }
  [[nodiscard]] result<std::string> head(const std::string& path, bytes most) const {
    return file(path, tree_->head(path, most));
  }
  [[nodiscard]] result<std::vector<std::string>> list(const std::string& path) const {
    auto names = tree_->list(path);
    if (!names) return names;
    lines_->push_back(io::recorded_directory(real(path)));
    // That a directory is there may be all that is ever asked about it.
    for (const std::string& name : *names)
      if (const std::string inner = (path == "/" ? "" : path) + "/" + name; tree_->list(inner))
        lines_->push_back(io::recorded_directory(real(inner)));
    return names;
  }
  [[nodiscard]] result<std::string> link(const std::string& path) const {
    auto target = tree_->link(path);
    if (target) static_cast<void>(real(path));
    return target;
  }

 private:
  [[nodiscard]] result<std::string> file(const std::string& path, result<std::string> content) const {
    if (content) lines_->push_back(io::recorded_file(real(path), masked(path, *content)));
    return content;
  }

  /// The path without links; every link on the way is written down.
  [[nodiscard]] std::string real(const std::string& path) const {
    // Files of one directory are asked for one after the other.
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos && slash > 0) {
      std::string directory = path.substr(0, slash);
      if (directory != last_) {
        last_real_ = walk(directory);
        last_ = std::move(directory);
      }
      return walk_from(last_real_, path.substr(slash));
    }
    return walk(path);
  }
  [[nodiscard]] std::string walk(const std::string& path) const { return walk_from({}, io::resolve_link("", path)); }

  /// `todo` below the directory `done`, which holds no links.
  [[nodiscard]] std::string walk_from(std::string done, std::string todo) const {
    if (done == "/") done.clear();
    for (int links = 0; !todo.empty() && todo != "/" && links < 40;) {
      const std::size_t end = std::min(todo.find('/', 1), todo.size());
      const std::string next = done + todo.substr(0, end);
      todo.erase(0, end);
      const auto target = tree_->link(next);
      if (!target) {
        done = next;
        continue;
      }
      ++links;
      lines_->push_back(io::recorded_link(next, *target));
      todo = io::resolve_link(done, *target) + todo;
      done.clear();
    }
    return done.empty() ? "/" : done;
  }

  /// A GID of the same sort that names nobody: link-local, an IPv4 address written in IPv6, or any other.
  [[nodiscard]] std::string masked_gid(const std::string& content) const {
    const std::string gid(read::first_line(content));
    if (gid.find_first_not_of("0:") == std::string::npos) return content;
    const std::string digits = number_of(content);
    const std::string_view ipv4 = "0000:0000:0000:0000:0000:ffff:";
    if (gid.substr(0, ipv4.size()) == ipv4) return std::string(ipv4) + "c000:" + "02" + digits.substr(2) + "\n";
    if (gid.substr(0, 5) == "fe80:") return "fe80:0000:0000:0000:0000:0000:0000:" + digits + "\n";
    return "2001:0db8:0000:0000:0000:0000:0000:" + digits + "\n";
  }
  /// Four hexadecimal digits that stand for a text, the same for the same text.
  [[nodiscard]] std::string number_of(const std::string& content) const {
    const auto known = std::find(seen_.begin(), seen_.end(), content);
    const auto number = static_cast<std::size_t>(known - seen_.begin()) + 1;
    if (known == seen_.end()) seen_.push_back(content);
    constexpr char hex[] = "0123456789abcdef";
    std::string digits;
    for (int shift = 12; shift >= 0; shift -= 4) digits += hex[number >> static_cast<unsigned>(shift) & 15U];
    return digits;
  }

  [[nodiscard]] std::string masked(const std::string& path, const std::string& content) const {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (mask_ && name == "properties") {  // of a GPU: all but its serial number
      const std::size_t at = content.find("unique_id ");
      if (at == std::string::npos) return content;
      return content.substr(0, at) + "unique_id 0" + content.substr(std::min(content.find('\n', at), content.size()));
    }
    if (mask_ && path.find("/gids/") != std::string::npos) return masked_gid(content);
    const bool mac = name == "address";
    if (!mask_ || (!mac && name != "node_guid") || read::first_line(content).empty()) return content;
    const std::string digits = number_of(content);
    return mac ? "02:00:00:00:" + digits.substr(0, 2) + ":" + digits.substr(2) + "\n"
               : "0000:0000:0000:" + digits + "\n";
  }

  const Tree* tree_;
  std::vector<std::string>* lines_;
  bool mask_;
  mutable std::vector<std::string> seen_;
  mutable std::string last_, last_real_;  // the directory asked for last, and where it is
};

/// The text of a recording, made by reading `tree` once.
template <io::FileTree Tree>
[[nodiscard]] std::string record(const Tree& tree, const std::string& host, bool mask, deadline until) {
  std::vector<std::string> lines;
  for (const char* top : {"/sys", "/proc"})  // also when nothing below is looked at
    if (tree.list(top)) lines.push_back(io::recorded_directory(top));
  static_cast<void>(read::sysfs_machine_of(traced_tree<Tree>(tree, lines, mask), until));
  seq::sort_unique(lines);
  std::string text = "# topocoll recording 1\n";
  if (!host.empty()) text += "# host " + host + "\n";
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace detail

template <class>
result<std::string> capture(const capture_options& options) {
  const io::live_tree tree(options.root);
  if (!tree.list("/sys") && !tree.list("/proc"))
    return fail(errc::not_found, "'" + options.root + "' holds neither /sys nor /proc",
                "name the root of a machine's file system, '/' for this one");
  return detail::record(tree, options.host, options.mask_addresses, options.until);
}

}}  // namespace topocoll::v0
