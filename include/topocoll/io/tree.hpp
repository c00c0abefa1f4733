// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file tree such as /sys: the seam, and the running machine's own.
#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// Small text files, directories and symbolic links under one root. Paths are absolute ("/sys/class/net").
///
/// Laws that the compiler cannot check: nothing is written; `head` gives at most that many bytes from the beginning, also of
/// longer files; `list` is sorted and without "." and ".."; `link` gives the
/// text of the last component's link and does not follow it; components before it are followed; the same path gives the
/// same answer while the object lives, or belongs to a machine that changed.
template <class T>
concept FileTree = requires(const T& t, const std::string& path) {
  { t.read(path) } -> std::same_as<result<std::string>>;
  { t.head(path, bytes{}) } -> std::same_as<result<std::string>>;
  { t.list(path) } -> std::same_as<result<std::vector<std::string>>>;
  { t.link(path) } -> std::same_as<result<std::string>>;
};

/// Says in words what keeps `T` from being a `FileTree`.
template <class T>
constexpr void require_file_tree() {
  static_assert(
      requires(const T& t, const std::string& p) {
        { t.read(p) } -> std::same_as<result<std::string>>;
      },
      "a FileTree has read(path) const returning result<std::string>");
  static_assert(
      requires(const T& t, const std::string& p) {
        { t.head(p, bytes{}) } -> std::same_as<result<std::string>>;
      },
      "a FileTree has head(path, bytes) const returning result<std::string>");
  static_assert(
      requires(const T& t, const std::string& p) {
        { t.list(p) } -> std::same_as<result<std::vector<std::string>>>;
      },
      "a FileTree has list(path) const returning result<std::vector<std::string>>");
  static_assert(
      requires(const T& t, const std::string& p) {
        { t.link(p) } -> std::same_as<result<std::string>>;
      },
      "a FileTree has link(path) const returning result<std::string>");
  static_assert(FileTree<T>);
}

namespace detail {

/// The sentence for what the system reported about a path of a tree.
template <class = void>
[[nodiscard]] failure tree_failure(const std::string& path, int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR: return fail(errc::not_found, "there is no '" + path + "'");
    case EISDIR: return fail(errc::invalid_argument, "'" + path + "' is a directory, not a file");
    case EACCES:
    case EPERM: return fail(errc::permission, "no permission to read '" + path + "'");
    // What drivers answer where they have nothing to tell, such as the speed of an interface that is down.
    case EINVAL:
    case EOPNOTSUPP: return fail(errc::unavailable, "the driver tells nothing in '" + path + "'");
    default: return fail(errc::system, "cannot read '" + path + "': system error " + std::to_string(reason));
  }
}

}  // namespace detail

/// The machine's own files, under a prefix: "" for the whole machine, "/host" in a container that mounts it there.
class live_tree {
 public:
  /// Longest file that `read` gives; none that describes a machine is longer.
  static constexpr bytes longest{4U << 20U};

  explicit live_tree(std::string root = {}) : root_(std::move(root)) {
    while (!root_.empty() && root_.back() == '/') root_.pop_back();
  }
  [[nodiscard]] const std::string& root() const { return root_; }

  [[nodiscard]] result<std::string> read(const std::string& path) const {
    auto content = head(path, longest + bytes{1});
    if (content && content->size() > longest.value)
      return fail(errc::unsupported, "'" + root_ + path + "' is longer than 4 MiB, so it describes no machine");
    return content;
  }

  [[nodiscard]] result<std::string> head(const std::string& path, bytes most) const {
    const std::string full = root_ + path;
    // O_NONBLOCK: opening a pipe that nobody writes to would wait forever.
    const int fd = ::open(full.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return detail::tree_failure(full, errno);
    std::string content;
    int reason = 0;
    while (content.size() < most.value) {
      // Most files hold a few bytes: one page first, then twice as much each time.
      const std::size_t filled = content.size();
      const std::size_t room =
          std::min<std::size_t>(static_cast<std::size_t>(most.value) - filled, std::max<std::size_t>(4096, filled));
      content.resize(filled + room);
      const auto got = ::read(fd, content.data() + filled, room);
      content.resize(filled + static_cast<std::size_t>(std::max<long>(got, 0)));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) reason = errno;
      if (got <= 0) break;
    }
    ::close(fd);
    if (reason != 0) return detail::tree_failure(full, reason);
    return content;
  }

  [[nodiscard]] result<std::vector<std::string>> list(const std::string& path) const {
    const std::string full = root_ + path;
    DIR* directory = ::opendir(full.c_str());
    if (directory == nullptr) return detail::tree_failure(full, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(directory);
    seq::sort(names);
    return names;
  }

  [[nodiscard]] result<std::string> link(const std::string& path) const {
    const std::string full = root_ + path;
    std::string target(4096, '\0');
    const auto length = ::readlink(full.c_str(), target.data(), target.size());
    if (length < 0) {
      if (errno == EINVAL) return fail(errc::invalid_argument, "'" + full + "' is not a symbolic link");
      return detail::tree_failure(full, errno);
    }
    target.resize(static_cast<std::size_t>(length));
    return target;
  }

 private:
  std::string root_;
};
static_assert(FileTree<live_tree>);

}}}  // namespace topocoll::v0::io
