// SPDX-License-Identifier: Apache-2.0
// run_local_ranks: starting, carrying answers back, ending in every way.
#include <cstdint>
#include <numeric>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

bool lives(pid_t pid) {
  const auto s = detail::read_process_stat(static_cast<std::int32_t>(pid));
  return s.state != 0 && s.state != 'Z';
}
/// True when none of them lives any more, at the latest after `patience`.
bool all_gone(const std::vector<pid_t>& pids, seconds patience) {
  const deadline until = deadline::in(patience);
  for (;;) {
    bool any = false;
    for (const pid_t p : pids) any = any || lives(p);
    if (!any) return true;
    if (until.passed()) return false;
    ::usleep(2000);
  }
}

TEST(run_local_ranks, gives_every_rank_its_number_and_carries_its_answer_back) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U}) {
    const auto exits = run_local_ranks(
        n, {},
        [n](shm_transport& t) -> result<std::string> {
          auto comm = communicator<shm_transport>::create(std::move(t)).value();
          std::vector<std::int64_t> x(1001);
          std::iota(x.begin(), x.end(), std::int64_t{comm.rank().value});
          if (auto ok = comm.all_reduce(x); !ok) return ok.error();
          for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] != static_cast<std::int64_t>(i * n + n * (n - 1) / 2)) return fail(errc::bug, "wrong sum");
          return "rank " + std::to_string(comm.rank().value) +
                 std::string(comm.rank().value * 100'000, '.');  // more than a pipe holds
        },
        deadline::in(30_s));
    ASSERT_TRUE(exits) << exits.error().message();
    ASSERT_EQ(exits->size(), n);
    for (std::uint32_t r = 0; r < n; ++r) {
      const rank_exit& e = (*exits)[r];
      EXPECT_EQ(e.rank, rank_id{r});
      EXPECT_GT(e.pid, 0);
      ASSERT_TRUE(e.good()) << e.outcome.error().message();
      EXPECT_EQ(e.outcome->size(), ("rank " + std::to_string(r)).size() + r * 100'000);
    }
  }
}

TEST(run_local_ranks, refuses_no_ranks) {
  const auto exits = run_local_ranks(
      0, {}, [](shm_transport&) -> result<std::string> { return std::string(); }, deadline::in(1_s));
  ASSERT_FALSE(exits);
  EXPECT_EQ(exits.error().code, errc::invalid_argument);
}

TEST(run_local_ranks, turns_an_exception_into_a_failure) {
  const auto exits = run_local_ranks(
      2, {},
      [](shm_transport& t) -> result<std::string> {
        if (t.rank().value == 0) throw std::runtime_error("out of ideas");
        return std::string("fine");
      },
      deadline::in(10_s));
  ASSERT_TRUE(exits);
  EXPECT_EQ((*exits)[0].outcome.error().code, errc::bug);
  EXPECT_NE((*exits)[0].outcome.error().what.find("out of ideas"), std::string::npos);
  EXPECT_TRUE((*exits)[1].good());
}

TEST(run_local_ranks, kills_whoever_is_late) {
  const seconds start = steady_clock::now();
  const auto exits = run_local_ranks(
      3, {.grace = 0.1_s},
      [](shm_transport& t) -> result<std::string> {
        if (t.rank().value == 1) ::signal(SIGTERM, SIG_IGN);
        if (t.rank().value != 2) {
          for (;;) ::pause();
        }
        return std::string("done");
      },
      deadline::in(0.3_s));
  EXPECT_LT((steady_clock::now() - start).value, 2.0);
  ASSERT_TRUE(exits);
  for (const std::uint32_t r : {0U, 1U}) {
    EXPECT_EQ((*exits)[r].signal, SIGKILL);
    ASSERT_FALSE((*exits)[r].outcome);
    EXPECT_EQ((*exits)[r].outcome.error().code, errc::timed_out);
    EXPECT_NE((*exits)[r].outcome.error().what.find(" ms and was killed"), std::string::npos)
        << (*exits)[r].outcome.error().what;
  }
  EXPECT_TRUE((*exits)[2].good());
}

TEST(run_local_ranks, aborts_waits_at_the_deadline_before_it_kills) {
  const auto exits = run_local_ranks(
      2, {.grace = 5_s},
      [](shm_transport& t) -> result<std::string> {
        std::uint32_t word = 0;
        const incoming i{{1 - t.rank().value}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
        const ticket k = t.post({}, {&i, 1}).value();
        auto done = t.wait_any({&k, 1}, deadline::in(60_s));  // both wait for each other
        return done ? result<std::string>("it succeeded") : result<std::string>(done.error());
      },
      deadline::in(0.3_s));
  ASSERT_TRUE(exits);
  for (const rank_exit& e : *exits) {
    EXPECT_EQ(e.signal, 0);
    ASSERT_FALSE(e.outcome);
    EXPECT_EQ(e.outcome.error().code, errc::aborted) << e.outcome.error().what;
  }
}

/// A process that runs ranks which never end; gives their ids.
struct launcher_process {
  pid_t pid = 0;
  std::vector<pid_t> ranks;

  explicit launcher_process(std::uint32_t n) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid = ::fork();
    if (pid == 0) {
      ::signal(SIGTERM, SIG_DFL);
      (void)run_local_ranks(
          n, {.grace = 0.2_s},
          [&](shm_transport&) -> result<std::string> {
            const pid_t me = ::getpid();
            (void)!::write(ends[1], &me, sizeof me);
            for (;;) ::pause();
          },
          deadline::in(60_s));
      ::_exit(0);
    }
    for (std::uint32_t r = 0; r < n; ++r) {
      pid_t p = 0;
      if (::read(ends[0], &p, sizeof p) == sizeof p) ranks.push_back(p);
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
};

TEST(run_local_ranks, takes_its_ranks_along_when_it_is_killed) {
  const launcher_process launcher(3);
  ASSERT_EQ(launcher.ranks.size(), 3U);
  ::kill(launcher.pid, SIGKILL);
  ::waitpid(launcher.pid, nullptr, 0);
  EXPECT_TRUE(all_gone(launcher.ranks, 5_s));
}

TEST(run_local_ranks, passes_a_signal_on_and_then_takes_it_itself) {
  const launcher_process launcher(3);
  ASSERT_EQ(launcher.ranks.size(), 3U);
  ::kill(launcher.pid, SIGTERM);
  int status = 0;
  ::waitpid(launcher.pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_TRUE(all_gone(launcher.ranks, 1_s));
}

}  // namespace
