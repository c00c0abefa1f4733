// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks of a test as processes that meet over TCP on loopback.
#include <cstdint>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap.hpp>

namespace rank_processes {

using namespace topocoll;

/// "<code> <sentences>".
inline std::string told(const failure& f) { return std::to_string(static_cast<int>(f.code)) + ' ' + f.message(); }
inline std::string code_word(errc c) { return std::to_string(static_cast<int>(c)) + ' '; }

/// A process; its answer, read when asked for.
class rank_process {
 public:
  template <class Body>
  explicit rank_process(Body body) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      const std::string text = body();
      (void)!::write(ends[1], text.data(), text.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    from_ = ends[0];
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  std::string answer() {
    std::string text;
    char buffer[512];
    for (ssize_t n; (n = ::read(from_, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    ::close(from_);
    ::waitpid(pid_, nullptr, 0);
    return text;
  }

 private:
  pid_t pid_ = 0;
  int from_ = -1;
};

/// Runs `body(bootstrap)` in processes that have met.
template <class Body>
std::vector<rank_process> on_processes(std::uint32_t ranks, Body body) {
  bootstrap_options o;
  o.size = ranks;
  o.address = "127.0.0.1";
  o.job = "processes of a test";
  o.token = "0123456789abcdef0123456789abcdef";
  io::tcp_listener listener = open_bootstrap_listener(o).value();
  o.port = listener.local().port();
  std::vector<rank_process> all;
  for (std::uint32_t r = 0; r < ranks; ++r)
    all.emplace_back([&, r] {
      o.rank = {r};
      if (r > 0) listener.close();
      const deadline until = deadline::in({60});
      auto met = r == 0 ? tcp_bootstrap::form(std::move(listener), o, until) : tcp_bootstrap::form(o, until);
      return met ? body(*met) : told(met.error());
    });
  return all;
}

}  // namespace rank_processes
