// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standard output and standard error as sinks that notice when nothing can be written any more.
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
#include <topocoll/app/sink.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Writes to a file descriptor at once, without a buffer of its own. After an error it stays silent.
///
/// The program must ignore SIGPIPE, so that a reader who has seen enough ("topocoll … | head") is an error like others.
class stream {
 public:
  explicit stream(int descriptor) : descriptor_(descriptor), terminal_(::isatty(descriptor) == 1) {}

  /// A sink on this stream, which must outlive it.
  [[nodiscard]] sink to() {
    return {[](void* self, std::string_view text) { static_cast<stream*>(self)->write(text); }, this, terminal_, true};
  }
  /// Number of the first error, 0 for none. A reader that went away (EPIPE) counts.
  [[nodiscard]] int error() const { return error_; }

 private:
  void write(std::string_view text) {
    while (error_ == 0 && !text.empty()) {
      const ssize_t wrote = ::write(descriptor_, text.data(), text.size());
      if (wrote >= 0)
        text.remove_prefix(static_cast<std::size_t>(wrote));
      else if (errno != EINTR)
        error_ = errno;
    }
  }

  int descriptor_;
  bool terminal_;
  int error_ = 0;
};

/// Exit code of a program whose command returned `code`: `exit_unable`, with a sentence on `err`, when its output got lost.
/// A reader that went away is no reason to complain.
[[nodiscard]] inline int finish(int code, const stream& out, sink err) {
  if (out.error() == 0 || out.error() == EPIPE) return code;
  err(std::string("topocoll: standard output cannot be written: ") + std::strerror(out.error()) + '\n');
  return exit_unable;
}

}}}  // namespace topocoll::v0::app
