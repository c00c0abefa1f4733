// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a command writes its text: a stream, a string in a test, nothing.
#include <string>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace app {

/// A place for text. Copies write to the same place.
struct sink {
  void (*put)(void* context, std::string_view text) = nullptr;  ///< null swallows everything
  void* context = nullptr;
  bool terminal = false;  ///< a person is watching: progress may be shown and overwritten
  bool forks = false;     ///< text put by a forked child arrives too: a descriptor without a buffer in between

  void operator()(std::string_view text) const {
    if (put != nullptr) put(context, text);
  }
};

/// A sink that appends to `text`, which must outlive it.
[[nodiscard]] inline sink into(std::string& text) {
  return {[](void* to, std::string_view more) { static_cast<std::string*>(to)->append(more); }, &text, false};
}

/// Exit codes of every command.
enum exit_code : int {
  exit_ok = 0,       ///< asked and answered; a preflight found nothing wrong
  exit_problem = 1,  ///< looked, and the answer is bad: a degraded part, a wrong result, a lost rank
  exit_unable = 2    ///< could not look: bad options, unreadable input, missing rights
};

}}}  // namespace topocoll::v0::app
