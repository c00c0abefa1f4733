// SPDX-License-Identifier: Apache-2.0
// tcp_bootstrap: ranks are processes that find one another by a port or a file, and some of them die.
#include <cstddef>
#include <cstdint>
#include <signal.h>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/exec/bootstrap.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using testing::HasSubstr;

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

bootstrap_options options_of(std::uint32_t rank, std::uint32_t size, std::uint16_t port) {
  bootstrap_options o;
  o.rank = {rank};
  o.size = size;
  o.address = "127.0.0.1";
  o.port = port;
  o.job = "process test";
  o.token = "0123456789abcdef0123456789abcdef";
  return o;
}

std::string told(const failure& f) { return std::to_string(static_cast<int>(f.code)) + ' ' + f.message(); }
std::string code_word(errc c) { return std::to_string(static_cast<int>(c)) + ' '; }

/// Starts `size` processes of which rank 0 has the listener; each runs `body(bootstrap)` once all have met.
template <class Body>
std::vector<rank_process> start_ranks(std::uint32_t size, Body body) {
  io::tcp_listener listener = open_bootstrap_listener(options_of(0, size, 0)).value();
  const std::uint16_t port = listener.local().port();
  std::vector<rank_process> all;
  for (std::uint32_t r = 0; r < size; ++r)
    all.emplace_back([&, r] {
      const bootstrap_options o = options_of(r, size, port);
      if (r > 0) listener.close();
      auto b = r == 0 ? tcp_bootstrap::form(std::move(listener), o, deadline::in(30_s))
                      : tcp_bootstrap::form(o, deadline::in(30_s));
      return b ? body(*b) : told(b.error());
    });
  return all;
}

std::string gather_words(tcp_bootstrap& b) {
  const std::string mine = "r" + std::to_string(b.rank().value);
  const auto parts = b.all_gather(std::as_bytes(std::span(mine.data(), mine.size())), deadline::in(30_s));
  if (!parts) return told(parts.error());
  std::string all;
  for (const auto& p : *parts) all.append(reinterpret_cast<const char*>(p.data()), p.size());
  if (auto met = b.barrier(deadline::in(30_s)); !met) return told(met.error());
  return all;
}
std::string words_of(std::uint32_t size) {
  std::string all;
  for (std::uint32_t r = 0; r < size; ++r) all += "r" + std::to_string(r);
  return all;
}

TEST(tcp_bootstrap_processes, meet_from_1_to_16_and_once_64_ranks) {
  for (const std::uint32_t size : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U, 16U, 64U}) {
    auto ranks = start_ranks(size, gather_words);
    for (rank_process& p : ranks) ASSERT_EQ(p.answer(), words_of(size)) << size << " ranks";
  }
}

TEST(tcp_bootstrap_processes, meet_by_a_file) {
  const std::string file = testing::TempDir() + "topocoll-port-" + std::to_string(::getpid());
  std::vector<rank_process> all;
  for (std::uint32_t r = 0; r < 5; ++r)
    all.emplace_back([&, r] {
      bootstrap_options o = options_of(r, 5, 0);
      o.port_file = file;
      if (r == 0) ::usleep(50'000);
      auto b = tcp_bootstrap::form(o, deadline::in(30_s));
      return b ? gather_words(*b) : told(b.error());
    });
  for (rank_process& p : all) EXPECT_EQ(p.answer(), words_of(5));
  ::unlink(file.c_str());
}

/// Barriers until one fails. The failure, and how long ago the victim was told to die: "<seconds> <code> <sentence>".
std::string barriers_until(tcp_bootstrap& b) {
  for (;;) {
    const auto met = b.barrier(deadline::in(30_s));
    if (met) continue;
    return std::to_string(steady_clock::now().value) + ' ' + told(met.error());
  }
}
void expect_to_name(std::uint32_t victim, std::uint32_t size) {
  auto ranks = start_ranks(size, barriers_until);
  ::usleep(300'000);  // they have met and are in the middle
  const seconds killed = steady_clock::now();
  const pid_t pid = ranks[victim].pid();
  ::kill(pid, SIGKILL);
  for (std::uint32_t r = 0; r < size; ++r) {
    const std::string answer = ranks[r].answer();
    if (r == victim) continue;
    std::istringstream words(answer);
    double at = 0;
    words >> at;
    EXPECT_LT(at - killed.value, 2.0) << answer;
    EXPECT_THAT(answer, HasSubstr(' ' + code_word(errc::peer_lost) + "rank " + std::to_string(victim) + " (process " +
                                  std::to_string(pid) + " on "))
        << "rank " << r;
  }
}
TEST(tcp_bootstrap_processes, name_a_member_that_was_killed) { expect_to_name(3, 6); }
TEST(tcp_bootstrap_processes, name_a_root_that_was_killed) { expect_to_name(0, 6); }

TEST(tcp_bootstrap_processes, name_a_rank_that_is_killed_while_others_join) {
  io::tcp_listener listener = open_bootstrap_listener(options_of(0, 3, 0)).value();
  const std::uint16_t port = listener.local().port();
  rank_process zero([&] {
    auto b = tcp_bootstrap::form(std::move(listener), options_of(0, 3, port), deadline::in(30_s));
    return b ? std::string("formed") : told(b.error());
  });
  listener.close();
  rank_process one([&] {
    auto b = tcp_bootstrap::form(options_of(1, 3, port), deadline::in(30_s));
    return b ? std::string("formed") : told(b.error());
  });
  ::usleep(300'000);
  ::kill(one.pid(), SIGKILL);
  const std::string answer = zero.answer();
  EXPECT_EQ(answer.find(code_word(errc::peer_lost) + "rank 1 (process " + std::to_string(one.pid())), 0U) << answer;
  (void)one.answer();
}

TEST(tcp_bootstrap_processes, name_a_rank_that_is_stopped) {
  auto ranks = start_ranks(4, [](tcp_bootstrap& b) {
    if (b.rank().value == 2) ::raise(SIGSTOP);
    const auto met = b.barrier(deadline::in(1_s));
    return met ? std::string("met") : told(met.error());
  });
  const pid_t stopped = ranks[2].pid();
  for (const std::uint32_t r : {0U, 1U, 3U})
    EXPECT_THAT(ranks[r].answer(), HasSubstr(code_word(errc::timed_out) + "rank 2 of 4 did not come to barrier"));
  ::kill(stopped, SIGCONT);
  EXPECT_THAT(ranks[2].answer(), HasSubstr("rank 2 of 4 did not come to barrier")) << "it hears why when it wakes up";
}

}  // namespace
