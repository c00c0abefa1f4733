// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes behind run_local_ranks: starting, listening, reaping, killing.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/named_memory.hpp>
#include <topocoll/exec/local.hpp>
#include <topocoll/exec/shm.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

// An outcome on its way through a pipe: one byte that says which, one with the code, two lengths, two texts.
template <class = void>
[[nodiscard]] std::string packed(const result<std::string>& outcome) {
  const std::string& first = outcome ? *outcome : outcome.error().what;
  const std::string second = outcome ? std::string() : outcome.error().next;
  std::string text;
  text += outcome ? '\1' : '\0';
  text += static_cast<char>(outcome ? errc::bug : outcome.error().code);
  for (const std::uint64_t length : {first.size(), second.size()})
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
  return text + first + second;
}
/// Nothing if the text is not complete: the process ended while it wrote, or before.
template <class = void>
[[nodiscard]] std::optional<result<std::string>> unpacked(std::string_view text) {
  std::uint64_t lengths[2];
  constexpr std::size_t head = 2 + sizeof lengths;
  if (text.size() < head) return std::nullopt;
  std::memcpy(lengths, text.data() + 2, sizeof lengths);
  if (text.size() - head < lengths[0] || text.size() - head - lengths[0] != lengths[1]) return std::nullopt;
  std::string first(text.substr(head, lengths[0]));
  if (text[0] == '\1') return result<std::string>(std::move(first));
  return result<std::string>(
      fail(static_cast<errc>(text[1]), std::move(first), std::string(text.substr(head + lengths[0]))));
}

template <class = void>
[[nodiscard]] std::string signal_in_words(int number) {
  const char* text = ::strsignal(number);
  return "signal " + std::to_string(number) + (text != nullptr ? " (" + std::string(text) + ")" : "");
}

/// Signals that end a program politely, blocked while the ranks run. Those that the program ignores stay ignored.
class held_signals {
 public:
  held_signals() {
    ::sigemptyset(&set_);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      if (::sigaction(s, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&set_, s);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;
  ~held_signals() { release(); }

  /// A signal that came, or 0.
  [[nodiscard]] int take() const {
    const timespec at_once{0, 0};
    const int s = ::sigtimedwait(&set_, nullptr, &at_once);
    return s > 0 ? s : 0;
  }
  void release() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

/// One child.
struct rank_process {
  pid_t pid = 0;
  descriptor pipe;  // its outcome
  std::string text;
  bool reaped = false;
  bool killed = false;  // by us, because it was late
  int status = 0;
};

/// Runs the body and gives its outcome to the pipe. Never returns to the caller's code.
[[noreturn]] inline void be_rank(const shm_group& group, std::uint32_t rank, rank_body body, void* context, int pipe) {
  result<std::string> outcome = fail(errc::bug, "the body did not run");
  {
    auto transport = group.attach({rank});
    if (!transport) {
      outcome = std::move(transport).error();
    } else {
#if defined(__cpp_exceptions)
      try {
        outcome = body(context, *transport);
      } catch (const std::exception& e) {
        outcome = fail(errc::bug, "rank " + std::to_string(rank) + " threw an exception: " + e.what());
      } catch (...) {
        outcome = fail(errc::bug, "rank " + std::to_string(rank) + " threw something that is not a std::exception");
      }
#else
      outcome = body(context, *transport);
#endif
      // Not by the transport: the body may have moved it into a communicator.
      if (!outcome)
        group.abort("rank " + std::to_string(rank) + " (pid " + std::to_string(::getpid()) +
                    ") gave up: " + outcome.error().what);
    }
  }
  const std::string text = packed(outcome);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(pipe, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  std::fflush(nullptr);
  ::_exit(outcome ? 0 : 1);
}

/// Takes what is in the pipe. Closes it at its end.
template <class = void>
void listen_to(rank_process& p) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(p.pipe.get(), buffer, sizeof buffer);
    if (n > 0) {
      p.text.append(buffer, static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) p.pipe = descriptor();
    return;  // end, or nothing there now
  }
}

template <class = void>
void kill_all(std::vector<rank_process>& all, int signal) {
  for (rank_process& p : all)
    if (!p.reaped && p.pid > 0) ::kill(p.pid, signal);
}

template <class = void>
[[nodiscard]] rank_exit how_it_ended(const rank_process& p, std::uint32_t rank, seconds allowed) {
  rank_exit e;
  e.rank = {rank};
  e.pid = static_cast<std::int32_t>(p.pid);
  e.exit_code = WIFEXITED(p.status) ? WEXITSTATUS(p.status) : 0;
  e.signal = WIFSIGNALED(p.status) ? WTERMSIG(p.status) : 0;
  const std::string name = "rank " + std::to_string(rank) + " (pid " + std::to_string(p.pid) + ")";
  if (auto told = unpacked(p.text))
    e.outcome = *std::move(told);
  else if (p.killed)
    e.outcome = fail(errc::timed_out, name + " did not end within " + span_in_words(allowed) + " and was killed");
  else if (e.signal != 0)
    e.outcome = fail(errc::peer_lost, name + " was killed by " + signal_in_words(e.signal));
  else
    e.outcome =
        fail(errc::peer_lost, name + " exited with code " + std::to_string(e.exit_code) + " before its work was done");
  return e;
}

template <class>
result<std::vector<rank_exit>> run_rank_processes(std::uint32_t ranks, const local_options& options, rank_body body,
                                                  void* context, deadline until) {
  const seconds start = steady_clock::now();
  auto group = shm_group::create(ranks, options.group);
  if (!group) return std::move(group).error();
  const pid_t parent = ::getpid();
  const held_signals held;
  std::vector<rank_process> all(ranks);
  std::fflush(nullptr);  // what is buffered would be written once by every child
  for (std::uint32_t r = 0; r < ranks; ++r) {
    int ends[2];
    pid_t pid = -1;
    if (::pipe2(ends, O_CLOEXEC) == 0) {
      descriptor reading(ends[0]);
      descriptor writing(ends[1]);
      pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);  // it died before that call
        held.release();
        be_rank(*group, r, body, context, writing.get());
      }
      if (pid > 0) {
        ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
        all[r].pipe = std::move(reading);
      }
    }
    if (pid < 0) {
      const int why = errno;
      kill_all(all, SIGKILL);
      for (rank_process& p : all)
        if (p.pid > 0) ::waitpid(p.pid, &p.status, 0);
      return fail(errc::system,
                  "the process of rank " + std::to_string(r) + " could not be made: " + std::strerror(why));
    }
    all[r].pid = pid;
    group->expect({r}, static_cast<std::int32_t>(pid));
  }

  std::uint32_t left = ranks;
  bool told_to_end = false;
  int passed_on = 0;
  deadline kill_at{};
  std::vector<pollfd> watched;
  while (left != 0) {
    watched.clear();
    bool ending = false;  // somebody's pipe has closed, so it will be gone in a moment
    for (rank_process& p : all) {
      if (p.pipe)
        watched.push_back({p.pipe.get(), POLLIN, 0});
      else
        ending = ending || !p.reaped;
    }
    const double patience = std::min({ending ? 0.001 : 0.05, (told_to_end ? kill_at : until).left().value + 0.001});
    (void)::poll(watched.data(), watched.size(), static_cast<int>(patience * 1e3) + 1);
    for (rank_process& p : all)
      if (p.pipe) listen_to(p);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      rank_process& p = all[r];
      if (p.reaped || ::waitpid(p.pid, &p.status, WNOHANG) != p.pid) continue;
      p.reaped = true;
      --left;
      if (p.pipe) listen_to(p);
      p.pipe = descriptor();  // a grandchild may still hold its other end
      if (WIFSIGNALED(p.status))
        group->mark_dead({r}, "was killed by " + signal_in_words(WTERMSIG(p.status)));
      else if (!unpacked(p.text))
        group->mark_dead({r}, "exited with code " + std::to_string(WEXITSTATUS(p.status)));
    }
    if (const int s = held.take()) {
      passed_on = s;
      kill_all(all, s);
    }
    if (!told_to_end && (passed_on != 0 || until.passed())) {
      told_to_end = true;
      kill_at = deadline::in(options.grace);
      group->abort(passed_on != 0 ? "the process that started the ranks received " + signal_in_words(passed_on)
                                  : "the ranks did not end within " + span_in_words(until.at - start));
    }
    if (told_to_end && kill_at.passed()) {
      for (rank_process& p : all) p.killed = p.killed || !p.reaped;
      kill_all(all, SIGKILL);
      kill_at = deadline::in({1});
    }
  }

  std::vector<rank_exit> exits;
  exits.reserve(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) exits.push_back(how_it_ended(all[r], r, until.at - start));
  held.release();
  if (passed_on != 0) ::raise(passed_on);  // now it is the caller's, with the disposition that the caller chose
  return exits;
}

}}}  // namespace topocoll::v0::detail
