// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Linux tells about a process: whether it is the one we knew, what it is doing, where it runs.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace topocoll { inline namespace v0 { namespace detail {

/// A process by more than its number, which is used again after its death.
struct process_identity {
  std::int32_t pid = 0;
  std::uint64_t started =
      0;  ///< clock ticks after boot, field 22 of /proc/<pid>/stat (proc(5)); 0 if it could not be read
  std::uint64_t namespace_id = 0;  ///< inode of its pid namespace; numbers of another namespace mean nothing here
};

/// One line of /proc/<pid>/stat: state letter and start time; state 0 if there is no such process or /proc is not
/// there.
struct process_stat {
  char state = 0;
  std::uint64_t started = 0;
};

template <class = void>
[[nodiscard]] process_stat read_process_stat(std::int32_t pid) noexcept {
  char name[32] = "/proc/";
  const auto end = std::to_chars(name + 6, name + 24, pid).ptr;
  std::memcpy(end, "/stat", 6);
  const int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[1024];
  const ssize_t got = ::read(file, text, sizeof text);
  ::close(file);
  if (got <= 0) return {};
  std::string_view line(text, static_cast<std::size_t>(got));
  const std::size_t paren = line.rfind(')');  // the name in parentheses may hold anything
  if (paren == std::string_view::npos || paren + 2 >= line.size()) return {};
  line.remove_prefix(paren + 2);
  process_stat s;
  s.state = line.front();  // field 3
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return s;
    line.remove_prefix(space + 1);
  }
  (void)std::from_chars(line.data(), line.data() + line.size(), s.started);
  return s;
}

template <class = void>
[[nodiscard]] process_identity this_process() noexcept {
  process_identity me;
  me.pid = static_cast<std::int32_t>(::getpid());
  me.started = read_process_stat(me.pid).started;
  struct stat s {};
  if (::stat("/proc/self/ns/pid", &s) == 0) me.namespace_id = s.st_ino;
  return me;
}

/// What can be said about a process that is silent.
enum class process_life : std::uint8_t { alive, dead, unknown };

struct process_state {
  process_life life = process_life::unknown;
  char letter = 0;  ///< state as in proc(5): R running, S sleeping, D waiting for a device, T stopped, Z not yet reaped
};

/// `seen_from` is the asking process: from another pid namespace, or without /proc, nothing can be said.
template <class = void>
[[nodiscard]] process_state state_of(const process_identity& who, const process_identity& seen_from) noexcept {
  if (who.pid == 0 || who.namespace_id != seen_from.namespace_id || who.started == 0) return {};
  const process_stat now = read_process_stat(who.pid);
  if (now.state == 0) {
    // Nothing under that number. If our own entry is unreadable too, /proc is not mounted or out of descriptors.
    return read_process_stat(seen_from.pid).state == 0 ? process_state{} : process_state{process_life::dead, 0};
  }
  if (now.started != who.started || now.state == 'Z' || now.state == 'X') return {process_life::dead, now.state};
  return {process_life::alive, now.state};
}

template <class = void>
[[nodiscard]] std::string_view state_in_words(char letter) {
  switch (letter) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for a device";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    default: return "in an unknown state";
  }
}

template <class = void>
[[nodiscard]] std::string host_name() {
  char name[65] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown host";
  return name;
}

}}}  // namespace topocoll::v0::detail
