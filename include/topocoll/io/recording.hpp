// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file tree out of one text that recorded it, and the lines of such a text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/tree.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// A file tree out of a text (see docs/formats/recording.md), one entry a line:
/// `path<TAB>value` for a file, `path<TAB>-> target` for a symbolic link, `path/<TAB>` for a directory.
///
/// In values `\n`, `\t`, `\\` and `\xHH` stand for the characters that cannot be written. Lines that begin with `#` are
/// comments, but for `# host NAME` before the first entry. Directories above an entry exist without being written.
class recorded_tree {
 public:
  /// @param origin  name of the recording, for failures
  /// @return `malformed_input` with the line for a line without a tab, a path that is not absolute, a path given twice
  ///         or used both as file and as directory. Cost: O(n log n).
  [[nodiscard]] static result<recorded_tree> parse(std::string_view text, std::string_view origin);

  /// Host that the recording names, or nothing.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  [[nodiscard]] result<std::string> read(const std::string& path) const;
  [[nodiscard]] result<std::string> head(const std::string& path, bytes most) const {
    auto whole = read(path);
    if (whole && whole->size() > most.value) whole->resize(static_cast<std::size_t>(most.value));
    return whole;
  }
  [[nodiscard]] result<std::vector<std::string>> list(const std::string& path) const;
  [[nodiscard]] result<std::string> link(const std::string& path) const;

 private:
  enum class kind : std::uint8_t { file, link, directory };
  struct entry {
    std::string path;
    kind what = kind::file;
    std::string value;
    std::uint32_t line = 0;
  };

  [[nodiscard]] const entry* find(std::string_view path) const;
  [[nodiscard]] bool is_directory(const std::string& path) const;
  /// Path without symbolic links, but for the last component if `keep_last`; empty when links run in a circle.
  [[nodiscard]] std::string resolve(const std::string& path, bool keep_last) const;

  std::string host_;
  std::vector<entry> entries_;  // sorted by path, compared component by component
};
static_assert(FileTree<recorded_tree>);

/// Joins a symbolic link's target to the directory that holds the link, and removes "." and "..": text only.
template <class = void>
[[nodiscard]] std::string resolve_link(std::string_view directory, std::string_view target);

/// One line of a recording. The inverse of `recorded_tree::parse`, whatever bytes the value has.
template <class = void>
[[nodiscard]] std::string recorded_file(std::string_view path, std::string_view value);
template <class = void>
[[nodiscard]] std::string recorded_link(std::string_view path, std::string_view target);
template <class = void>
[[nodiscard]] std::string recorded_directory(std::string_view path);

}}}  // namespace topocoll::v0::io

#include <topocoll/io/detail/recorded_tree.hpp>
