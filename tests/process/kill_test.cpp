// SPDX-License-Identifier: Apache-2.0
// Ranks are processes, and some of them die, stop, or leave in the middle of a collective.
#include <cstdint>
#include <cstdlib>
#include <dirent.h>
#include <set>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  if (DIR* d = ::opendir("/dev/shm")) {
    while (const dirent* e = ::readdir(d)) names.insert(e->d_name);
    ::closedir(d);
  }
  return names;
}

/// All-reduces until something fails; rank `victim` does `deed` after `calls` of them. Gives the time from that call's
/// start to the failure, and the failure, as "<ms> <code> <sentence>".
template <class Deed>
std::vector<rank_exit> reduce_until_it_fails(std::uint32_t ranks, std::uint32_t victim, std::size_t elements,
                                             seconds timeout, Deed deed, seconds allowed = 20_s) {
  auto exits = run_local_ranks(
      ranks, {.grace = 0.2_s},
      [&](shm_transport& t) -> result<std::string> {
        auto comm = communicator<shm_transport>::create(std::move(t)).value();
        std::vector<float> x(elements, 1.0F);
        for (int k = 0;; ++k) {
          const seconds start = steady_clock::now();
          if (comm.rank().value == victim && k == 20) deed();
          auto done = comm.all_reduce(x, {.op = reduce_op::max, .timeout = timeout});
          const auto ms = static_cast<int>((steady_clock::now() - start).value * 1e3);
          if (!done)
            return std::to_string(ms) + " " + std::to_string(static_cast<int>(done.error().code)) + " " +
                   done.error().what;
        }
      },
      deadline::in(allowed));
  EXPECT_TRUE(exits) << exits.error().message();
  return exits ? *exits : std::vector<rank_exit>{};
}

int first_number(const std::string& s) { return std::atoi(s.c_str()); }
std::string code_word(errc c) { return " " + std::to_string(static_cast<int>(c)) + " "; }

TEST(killed_rank, is_named_to_the_others_within_two_seconds) {
  const auto before = shared_memory();
  for (const std::size_t elements : {std::size_t{2}, std::size_t{1'000'000}}) {
    const auto exits = reduce_until_it_fails(4, 2, elements, 60_s, [] { ::kill(::getpid(), SIGKILL); });
    ASSERT_EQ(exits.size(), 4U);
    EXPECT_EQ(exits[2].signal, SIGKILL);
    EXPECT_FALSE(exits[2].outcome);
    EXPECT_EQ(exits[2].outcome.error().code, errc::peer_lost);
    for (const std::uint32_t r : {0U, 1U, 3U}) {
      ASSERT_TRUE(exits[r].outcome) << exits[r].outcome.error().message();
      const std::string& told = *exits[r].outcome;
      EXPECT_LT(first_number(told), 2000) << told;
      EXPECT_NE(told.find(code_word(errc::peer_lost)), std::string::npos) << told;
      EXPECT_NE(told.find("rank 2 (pid " + std::to_string(exits[2].pid)), std::string::npos) << told;
      EXPECT_NE(told.find("all_reduce call"), std::string::npos) << told;
      EXPECT_EQ(exits[r].exit_code, 0);
    }
  }
  for (const std::string& name : shared_memory()) EXPECT_TRUE(before.contains(name)) << name << " is left";
}

TEST(killed_rank, is_noticed_by_its_peers_without_a_launcher) {
  // The launcher is stopped from reaping: the ranks see a zombie, and must not take it for alive.
  auto group = shm_group::create(2).value();
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    auto t = group.attach({0}).value();
    std::uint32_t word = 0;
    const incoming i{{1}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
    const ticket k = t.post({}, {&i, 1}).value();
    const seconds start = steady_clock::now();
    auto done = t.wait_any({&k, 1}, deadline::in(10_s));
    std::string text =
        done ? "it succeeded"
             : std::to_string(static_cast<int>((steady_clock::now() - start).value * 1e3)) + " " + done.error().what;
    (void)!::write(pipe_ends[1], text.data(), text.size());
    ::_exit(0);
  }
  const pid_t victim = ::fork();
  if (victim == 0) {
    auto t = group.attach({1}).value();
    (void)!::write(pipe_ends[1], "!", 1);
    for (;;) ::pause();
  }
  char text[1024] = {};
  ASSERT_EQ(::read(pipe_ends[0], text, 1), 1);  // the victim has its place
  ::kill(victim, SIGKILL);
  ASSERT_GT(::read(pipe_ends[0], text, sizeof text - 1), 0);
  EXPECT_NE(std::string(text).find("rank 1 (pid " + std::to_string(victim)), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("died while rank 0 waited for it"), std::string::npos) << text;
  EXPECT_LT(first_number(text), 2000) << text;
  ::waitpid(victim, nullptr, 0);
  ::waitpid(watcher, nullptr, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST(stopped_rank, is_named_as_alive_but_silent_at_the_deadline) {
  const auto exits = reduce_until_it_fails(
      3, 1, 1000, 1_s, [] { ::kill(::getpid(), SIGSTOP); }, 3_s);
  ASSERT_EQ(exits.size(), 3U);
  for (const std::uint32_t r : {0U, 2U}) {
    ASSERT_TRUE(exits[r].outcome) << exits[r].outcome.error().message();
    const std::string& told = *exits[r].outcome;
    EXPECT_GE(first_number(told), 900) << told;
    EXPECT_LT(first_number(told), 2500) << told;
    EXPECT_NE(told.find(code_word(errc::timed_out)), std::string::npos) << told;
    EXPECT_NE(told.find("rank 1 (pid " + std::to_string(exits[1].pid)), std::string::npos) << told;
    EXPECT_NE(told.find("alive but silent, stopped by a signal"), std::string::npos) << told;
  }
  EXPECT_EQ(exits[1].signal, SIGKILL) << "the launcher kills whoever is left at its own deadline";
  ASSERT_FALSE(exits[1].outcome);
  EXPECT_EQ(exits[1].outcome.error().code, errc::timed_out) << exits[1].outcome.error().what;
}

TEST(leaving_rank, is_named_with_its_exit_code) {
  const auto exits = reduce_until_it_fails(3, 0, 1000, 20_s, [] { ::_exit(7); });
  ASSERT_EQ(exits.size(), 3U);
  EXPECT_EQ(exits[0].exit_code, 7);
  EXPECT_FALSE(exits[0].outcome);
  for (const std::uint32_t r : {1U, 2U}) {
    ASSERT_TRUE(exits[r].outcome);
    EXPECT_NE(exits[r].outcome->find("rank 0 (pid " + std::to_string(exits[0].pid)), std::string::npos)
        << *exits[r].outcome;
    EXPECT_LT(first_number(*exits[r].outcome), 2000) << *exits[r].outcome;
  }
}

TEST(failing_body, reaches_the_other_ranks_with_its_reason) {
  const auto exits = run_local_ranks(
      3, {},
      [](shm_transport& t) -> result<std::string> {
        if (t.rank().value == 1) return fail(errc::not_found, "the input file is not there");
        auto comm = communicator<shm_transport>::create(std::move(t)).value();
        auto done = comm.barrier();
        return done ? result<std::string>("it succeeded") : result<std::string>(done.error().what);
      },
      deadline::in(20_s));
  ASSERT_TRUE(exits);
  ASSERT_FALSE((*exits)[1].outcome);
  EXPECT_EQ((*exits)[1].outcome.error().code, errc::not_found);
  EXPECT_EQ((*exits)[1].exit_code, 1);
  for (const std::uint32_t r : {0U, 2U})
    EXPECT_NE((*exits)[r].outcome.value().find("the input file is not there"), std::string::npos)
        << *(*exits)[r].outcome;
}

}  // namespace
