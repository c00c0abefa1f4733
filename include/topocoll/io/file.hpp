// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole files: read with a limit, written so that a reader never sees half of one.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// Largest file that is read unless the caller says otherwise; the largest known topology inputs have a few MiB.
inline constexpr bytes default_file_limit{64U << 20U};

/// Content of a regular file.
///
/// Files of /proc and /sys, which tell no size, are read until they end. A pipe or a device is refused, never waited for.
/// @return `not_found`, `permission`, `invalid_argument` (a directory, a pipe, a device), `unsupported` (longer than
///         `limit`) or `system`, each with the path. Memory: the file's length.
template <class = void>
[[nodiscard]] result<std::string> read_file(const std::string& path, bytes limit = default_file_limit);

/// Makes `content` the content of the file `path`, created if need be.
///
/// The text goes to a new file in the same directory, reaches the disk, and is then renamed: whoever opens `path` sees
/// all of the old content or all of the new, also after a crash, and a failure leaves the old content and no other trace.
/// A symbolic link is followed and stays; an existing file keeps its permission bits, but not its other hard links. What
/// is not a regular file (/dev/null, a pipe) is written to directly. @return as `read_file`
template <class = void>
[[nodiscard]] result<void> write_file(const std::string& path, std::string_view content);

namespace detail {

/// A file descriptor that closes itself.
class open_file {
 public:
  explicit open_file(int fd) : fd_(fd) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() { close_now(); }
  [[nodiscard]] int fd() const { return fd_; }
  /// 0 or the reason why what was written may be lost.
  int close_now() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int fd_;
};

/// The sentence for what the system reported about a file.
template <class = void>
[[nodiscard]] failure file_failure(const std::string& path, int reason, const char* doing) {
  const std::string quoted = "'" + path + "'";
  switch (reason) {
    case ENOENT: return fail(errc::not_found, "there is no file " + quoted, "check the path");
    case ENOTDIR:
      return fail(errc::not_found, "a part of the path " + quoted + " is not a directory", "check the path");
    case EACCES:
    case EPERM:
      return fail(errc::permission, std::string("no permission to ") + doing + ' ' + quoted,
                  "check the rights of the file and of the directories above it");
    case EROFS: return fail(errc::permission, quoted + " is on a read-only file system", "choose another place");
    case EISDIR: return fail(errc::invalid_argument, quoted + " is a directory, not a file", "name a file");
    case ENOSPC:
      return fail(errc::system, "the disk is full: cannot write " + quoted, "free space or choose another place");
    case EDQUOT:
      return fail(errc::system, "the disk quota is used up: cannot write " + quoted,
                  "free space or choose another place");
    case EFBIG:
      return fail(errc::system, quoted + " would be larger than this process may write",
                  "raise the file size limit (ulimit -f)");
    case EMFILE:
    case ENFILE: return fail(errc::system, "too many files are open: cannot " + std::string(doing) + ' ' + quoted);
    default:
      return fail(errc::system,
                  "cannot " + std::string(doing) + ' ' + quoted + ": " + std::generic_category().message(reason));
  }
}

/// 0 or the reason why not all of `content` was taken.
template <class = void>
[[nodiscard]] int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const auto took = ::write(fd, content.data(), content.size());
    if (took < 0 && errno == EINTR) continue;
    if (took < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(took));
  }
  return 0;
}

/// Opens a new file beside `path`; its name ends up in `name`. Existing files are never touched.
template <class = void>
[[nodiscard]] int open_beside(const std::string& path, std::string& name) {
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    name = path + ".tmp-" + std::to_string(::getpid()) + '-' + std::to_string(attempt);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Where a chain of symbolic links ends; `path` itself when it leads nowhere.
template <class = void>
[[nodiscard]] std::string follow(const std::string& path) {
  if (char* real = ::realpath(path.c_str(), nullptr)) {
    std::string found = real;
    std::free(real);
    return found;
  }
  return path;
}

}  // namespace detail

template <class>
result<std::string> read_file(const std::string& path, bytes limit) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait forever.
  detail::open_file file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) return detail::file_failure(path, errno, "read");
  struct stat about {};
  if (::fstat(file.fd(), &about) != 0) return detail::file_failure(path, errno, "read");
  if (S_ISDIR(about.st_mode)) return detail::file_failure(path, EISDIR, "read");
  if (!S_ISREG(about.st_mode))
    return fail(errc::invalid_argument, "'" + path + "' is a pipe or a device, not a regular file",
                "name a regular file");
  const auto told = static_cast<std::uint64_t>(about.st_size);
  const auto too_large = [&](std::uint64_t size, const char* at_least) {
    return fail(
        errc::unsupported,
        "'" + path + "' has " + at_least + to_string(bytes{size}) + ", more than the limit of " + to_string(limit),
        "check that this is the right file");
  };
  if (told > limit.value) return too_large(told, "");

  std::string content;
  std::size_t filled = 0;
  for (;;) {
    // One byte more than told: then the end of the file shows without growing. Files of /sys tell 0 or one page.
    if (filled == content.size()) content.resize(filled == 0 ? static_cast<std::size_t>(told) + 1 : filled * 2 + 4096);
    const auto got = ::read(file.fd(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return detail::file_failure(path, errno, "read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled > limit.value) return too_large(filled, "at least ");
  }
  content.resize(filled);
  return content;
}

template <class>
result<void> write_file(const std::string& path, std::string_view content) {
  const std::string target = detail::follow(path);
  struct stat about {};
  const bool exists = ::stat(target.c_str(), &about) == 0;
  if (exists && S_ISDIR(about.st_mode)) return detail::file_failure(path, EISDIR, "write");
  if (exists && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return detail::file_failure(path, errno, "write");
  if (exists && !S_ISREG(about.st_mode)) {
    detail::open_file device(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    int reason = device.fd() < 0 ? errno : detail::write_all(device.fd(), content);
    if (reason == 0) reason = device.close_now();
    if (reason != 0) return detail::file_failure(path, reason, "write");
    return {};
  }

  std::string temporary;
  detail::open_file file(detail::open_beside(target, temporary));
  if (file.fd() < 0) return detail::file_failure(path, errno, "write");
  int reason = detail::write_all(file.fd(), content);
  if (reason == 0 && exists && ::fchmod(file.fd(), about.st_mode & 07777U) != 0) reason = errno;
  if (reason == 0 && ::fsync(file.fd()) != 0) reason = errno;
  if (const int closing = file.close_now(); reason == 0) reason = closing;
  if (reason == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) reason = errno;
  if (reason != 0) {
    ::unlink(temporary.c_str());
    return detail::file_failure(path, reason, "write");
  }
  // The new name itself reaches the disk with the directory; file systems that cannot do that have nothing to sync.
  const auto slash = target.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  if (detail::open_file folder(::open(directory.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY)); folder.fd() >= 0)
    static_cast<void>(::fsync(folder.fd()));
  return {};
}

}}}  // namespace topocoll::v0::io
