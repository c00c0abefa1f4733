// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file per rank in which the rank says every second that it lives and in which call it is: slow, stuck and dead look
// different in it.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <pthread.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/exec/call_group.hpp>
#include <topocoll/exec/detail/call_record.hpp>
#include <topocoll/exec/detail/process.hpp>
#include <topocoll/exec/detail/waiting_room.hpp>
#include <topocoll/exec/launch.hpp>

namespace topocoll { inline namespace v0 {

/// What a log has and where.
struct call_log_options {
  std::string path = "topocoll-%h-%r.log";  ///< %r: rank, %h: host, %p: process id, %%: a percent sign
  seconds period{1};                        ///< between two signs of life
  bool every_call = false;                  ///< also a line when a call begins and one when it ends
};

/// The wish of whoever starts the ranks: TOPOCOLL_DEBUG is `info` (signs of life and failures) or `trace` (every call);
/// unset, empty, `off` or `0`: nothing. TOPOCOLL_DEBUG_FILE is the path, TOPOCOLL_DEBUG_PERIOD the seconds between signs of life.
/// @return `malformed_input` naming the variable
template <VariableLookup L>
[[nodiscard]] result<std::optional<call_log_options>> call_log_wish(const L& variables);

/// `call_log_wish` of the environment of this process. Not while another thread changes it.
template <class = void>
[[nodiscard]] result<std::optional<call_log_options>> call_log_wish_from_environment() {
  return call_log_wish([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  });
}

namespace detail {
struct log_state;
}  // namespace detail

/// The log of one rank, with a thread of its own that writes signs of life.
///
/// One line each, appended in one piece: time (UTC), rank, host, process, and one of
/// - `alive, in call 17 (all_reduce of 262144 float) for 3.2 s`: if its peers are in call 16, they are late, or stuck;
/// - `alive, no call for 4.1 s, last was 16 (barrier)`: it computes, or does something else that has no end;
/// - `call 17 (…) failed after 30.0 s: …`, and `log begins`, `log ends after 17 calls`.
/// A rank whose lines have stopped without an end is dead or stopped (SIGSTOP, a debugger, swapping). What cannot be written, as
/// the disk is full, is counted and told later; calls never wait for it and never fail of it.
class call_log {
 public:
  /// @return `permission`, `not_found` or `system` with the path; `system` when there can be no thread
  template <class = void>
  [[nodiscard]] static result<call_log> open(rank_id rank, std::uint32_t size, const call_log_options& options = {});
  call_log(call_log&&) noexcept = default;
  call_log& operator=(call_log&&) noexcept = default;

  /// Name of the file.
  template <class = void>
  [[nodiscard]] const std::string& path() const;
  /// Calls so far. Any thread; calls of several threads are told as if the last were the only one.
  template <class = void>
  void begin(std::string_view what);
  template <class = void>
  void end(const result<void>& outcome);

 private:
  explicit call_log(std::shared_ptr<detail::log_state> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::log_state> state_;
};

/// A communicator whose calls are in a log. All forms of the collectives, and everything that `call_group` and `call_queue` need.
template <class C>
class logged : public detail::call_forms<logged<C>> {
 public:
  logged(C comm, call_log log) : comm_(std::move(comm)), log_(std::move(log)) {}

  [[nodiscard]] rank_id rank() const { return comm_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return comm_.size(); }
  [[nodiscard]] auto& transport() { return comm_.transport(); }
  [[nodiscard]] auto& memory() { return comm_.memory(); }
  /// For what is not to be in the log.
  [[nodiscard]] C& unlogged() { return comm_; }
  [[nodiscard]] const std::string& log_path() const { return log_.path(); }
  template <Element E>
  [[nodiscard]] auto allocate(std::uint64_t count) {
    return comm_.template allocate<E>(count);
  }
  void abort(const std::string& why) noexcept { comm_.abort(why); }

  [[nodiscard]] result<void> run(collective_kind kind, rank_id root, const void* in, void* out, std::uint64_t count,
                                 dtype type, const call_options& options = {}) {
    return told(words(to_string(kind), count, type),
                [&] { return comm_.run(kind, root, in, out, count, type, options); });
  }
  [[nodiscard]] result<void> run_v(collective_kind kind, rank_id root, const void* in, void* out,
                                   std::span<const std::uint64_t> counts, dtype type,
                                   const call_options& options = {}) {
    return told(std::string(to_string(kind)) + "_v",
                [&] { return comm_.run_v(kind, root, in, out, counts, type, options); });
  }
  using detail::call_forms<logged>::all_to_all_v;
  [[nodiscard]] result<void> all_to_all_v(const void* in, void* out, std::span<const std::uint64_t> send_counts,
                                          std::span<const std::uint64_t> receive_counts, dtype type,
                                          const call_options& options = {}) {
    return told("all_to_all_v",
                [&] { return comm_.all_to_all_v(in, out, send_counts, receive_counts, type, options); });
  }

 private:
  friend class detail::call_forms<logged>;
  [[nodiscard]] static std::string words(std::string_view name, std::uint64_t count, dtype type) {
    return std::string(name) + " of " + std::to_string(count) + ' ' + std::string(to_string(type));
  }
  template <class Call>
  [[nodiscard]] result<void> told(std::string_view what, const Call& call) {
    log_.begin(what);
    result<void> done = call();
    log_.end(done);
    return done;
  }
  [[nodiscard]] result<void> take(detail::call_record c) {
    const std::string what = words(detail::name_of(c), c.in_size > c.out_size ? c.in_size : c.out_size, c.type);
    return told(c.what == detail::call_record::form::barrier ? std::string("barrier") : what, [&]() -> result<void> {
      if (c.what != detail::call_record::form::send && c.what != detail::call_record::form::receive)
        return detail::make_call(comm_, c);
      call_group one;
      one.add(std::move(c));
      return one.run(comm_);
    });
  }

  C comm_;
  call_log log_;
};

namespace detail {

struct log_state {
  std::string path, head;  // head: what every line has after its time
  seconds period{};
  bool every_call = false;
  int fd = -1;
  waiting_room room;  // for all that follows
  std::string what;
  std::uint64_t calls = 0, lost = 0;
  seconds since{};  // when the state below began
  bool inside = false, stopping = false;
  pthread_t thread{};
  bool has_thread = false;

  log_state() = default;
  log_state(const log_state&) = delete;
  log_state& operator=(const log_state&) = delete;
  ~log_state() {
    if (has_thread) {
      {
        const waiting_room::visit alone(room);
        stopping = true;
        room.tell_news();
      }
      ::pthread_join(thread, nullptr);
      write("log ends after " + std::to_string(calls) + (calls == 1 ? " call" : " calls"));
    }
    if (fd >= 0) ::close(fd);
  }

  template <class = void>
  void beat() {
    waiting_room::visit alone(room);
    while (!stopping) {
      const deadline next = deadline::in(period);
      while (!stopping && !next.passed()) alone.wait(next);
      if (stopping) return;
      const std::string span = to_string(steady_clock::now() - since);
      write(inside       ? "alive, in call " + call_in_words() + " for " + span
            : calls == 0 ? "alive, no call yet for " + span
                         : "alive, no call for " + span + ", last was " + call_in_words());
    }
  }
  template <class = void>
  [[nodiscard]] std::string call_in_words() const {
    return std::to_string(calls) + " (" + what + ")";
  }
  /// One line. Precondition: alone in the room, or the only user.
  template <class = void>
  void write(const std::string& text) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    ::gmtime_r(&now.tv_sec, &parts);
    char time[40];
    const std::size_t length = std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
    std::string millis = std::to_string(now.tv_nsec / 1000000);
    millis.insert(0, 3 - millis.size(), '0');
    std::string line = std::string(time, length) + '.' + millis + "Z " + head + text;
    if (lost != 0)
      line += " (" + std::to_string(lost) + (lost == 1 ? " line" : " lines") + " before could not be written)";
    for (char& c : line)
      if (c == '\n' || c == '\r') c = ' ';
    line += '\n';
    const ssize_t put = ::write(fd, line.data(), line.size());
    lost = put == static_cast<ssize_t>(line.size()) ? 0 : lost + 1;
  }
};

/// The path with its letters replaced. @return `invalid_argument` for a letter that stands for nothing
template <class = void>
[[nodiscard]] result<std::string> log_path(std::string_view pattern, rank_id rank) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : '\0';
    if (letter == 'r')
      path += std::to_string(rank.value);
    else if (letter == 'h')
      path += host_name();
    else if (letter == 'p')
      path += std::to_string(::getpid());
    else if (letter == '%')
      path += '%';
    else
      return fail(errc::invalid_argument, "the log file '" + std::string(pattern) + "' has a % that stands for nothing",
                  "write %r for the rank, %h for the host, %p for the process, %% for a percent sign");
  }
  return path;
}

}  // namespace detail

template <class>
result<call_log> call_log::open(rank_id rank, std::uint32_t size, const call_log_options& options) {
  auto path = detail::log_path(options.path, rank);
  if (!path) return std::move(path).error();
  if (!(options.period.value > 0))
    return fail(errc::invalid_argument, "a log with a period of " + to_string(options.period) + " would never rest");
  auto s = std::make_shared<detail::log_state>();
  s->path = *std::move(path);
  s->head = "rank " + std::to_string(rank.value) + " of " + std::to_string(size) + ", host " + detail::host_name() +
            ", pid " + std::to_string(::getpid()) + ": ";
  s->period = options.period;
  s->every_call = options.every_call;
  s->since = steady_clock::now();
  s->fd = ::open(s->path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (s->fd < 0) {
    const int why = errno;
    return fail(why == EACCES || why == EPERM || why == EROFS ? errc::permission
                : why == ENOENT                               ? errc::not_found
                                                              : errc::system,
                "the log " + s->path + " cannot be written: " + std::strerror(why),
                "name another file, as TOPOCOLL_DEBUG_FILE does");
  }
  s->write("log begins");
  const int refused = ::pthread_create(
      &s->thread, nullptr,
      [](void* state) -> void* {
        static_cast<detail::log_state*>(state)->beat();
        return nullptr;
      },
      s.get());
  if (refused != 0)
    return fail(errc::system, std::string("a log got no thread: ") + std::strerror(refused),
                "see 'ulimit -u' and the pids limit of the container");
  s->has_thread = true;
  return call_log(std::move(s));
}

template <class>
const std::string& call_log::path() const {
  return state_->path;
}

template <class>
void call_log::begin(std::string_view what) {
  const detail::waiting_room::visit alone(state_->room);
  state_->what = what;
  ++state_->calls;
  state_->inside = true;
  state_->since = steady_clock::now();
  if (state_->every_call) state_->write("call " + state_->call_in_words() + " begins");
}

template <class>
void call_log::end(const result<void>& outcome) {
  const detail::waiting_room::visit alone(state_->room);
  const seconds now = steady_clock::now(), took = now - state_->since;
  state_->inside = false;
  state_->since = now;
  if (!outcome)
    state_->write("call " + state_->call_in_words() + " failed after " + to_string(took) + ": " +
                  outcome.error().message());
  else if (state_->every_call)
    state_->write("call " + state_->call_in_words() + " took " + to_string(took));
}

template <VariableLookup L>
result<std::optional<call_log_options>> call_log_wish(const L& variables) {
  const std::optional<std::string> level = variables(std::string_view("TOPOCOLL_DEBUG"));
  if (!level || level->empty() || *level == "off" || *level == "0") return std::optional<call_log_options>();
  if (*level != "info" && *level != "trace")
    return fail(errc::malformed_input, "TOPOCOLL_DEBUG is '" + *level + "'", "set it to info, trace or off");
  call_log_options wish;
  wish.every_call = *level == "trace";
  const std::optional<std::string> file = variables(std::string_view("TOPOCOLL_DEBUG_FILE"));
  if (file && !file->empty()) wish.path = *file;
  const std::optional<std::string> period = variables(std::string_view("TOPOCOLL_DEBUG_PERIOD"));
  if (period && !period->empty()) {
    char* end = nullptr;
    wish.period = {std::strtod(period->c_str(), &end)};
    if (*end != '\0' || !(wish.period.value >= 0.01 && wish.period.value <= 3600))
      return fail(errc::malformed_input, "TOPOCOLL_DEBUG_PERIOD is '" + *period + "'",
                  "write seconds between 0.01 and 3600, as 1 or 0.5");
  }
  return std::optional(std::move(wish));
}

}}  // namespace topocoll::v0
