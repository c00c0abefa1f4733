// SPDX-License-Identifier: Apache-2.0
// A fault on one of four processes, at any moment of any call: the others know the cause within two seconds, make a new group
// and go on. TOPOCOLL_FAULTS says how often (default 4 of each kind).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <signal.h>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/groups.hpp>
#include <topocoll/exec/local.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

enum class fault { killed, stopped, other_count };

void after(std::uint32_t microseconds, int signal) {
  const pid_t victim = ::getpid();
  if (::fork() != 0) return;
  const timespec t{0, static_cast<long>(microseconds) * 1000};
  ::nanosleep(&t, nullptr);
  ::kill(victim, signal);
  ::_exit(0);
}

/// "" or what is wrong, on one rank of four; rank 2 has the fault.
std::string survive(shm_transport& t, fault what, std::uint32_t round) {
  constexpr std::uint32_t victim = 2;
  const std::uint64_t counts[] = {2, 3000, 200'000};
  const std::uint64_t count = counts[round % 3];
  auto comm = communicator<shm_transport>::create(std::move(t)).value();
  const std::uint32_t me = comm.rank().value;
  auto shared = comm.allocate<std::int32_t>(count).value();
  std::vector<std::int32_t> own(round % 2 == 0 ? count : 0);
  std::int32_t* const x = round % 2 == 0 ? own.data() : shared.data();
  if (auto ready = comm.barrier(); !ready) return ready.error().message();
  if (me == victim && what != fault::other_count)
    after(100 + round * 977 % 5000, what == fault::killed ? SIGKILL : SIGSTOP);
  result<void> done;
  seconds took{};
  for (int k = 0; done; ++k) {
    std::fill_n(x, count, 1);
    const seconds start = steady_clock::now();
    const std::uint64_t mine = what == fault::other_count && me == victim && k == 20 ? count - 1 : count;
    done = comm.all_reduce(x, x, mine, dtype::int32, {.timeout = 1_s});
    took = steady_clock::now() - start;
    if (done && x[count - 1] != 4) return "a wrong sum before";
  }
  if (took > 2_s) return "it took " + std::to_string(took.value) + " s: " + done.error().what;
  const errc want = what == fault::killed ? errc::peer_lost : what == fault::stopped ? errc::timed_out : errc::mismatch;
  if (done.error().code != want || done.error().what.find("rank 2 (pid ") == std::string::npos)
    return done.error().what;
  auto left = shrink(comm, 0.5_s);
  if (!left) return left.error().message();
  const std::uint32_t ranks = what == fault::other_count ? 4 : 3;
  if (left->size() != ranks) return std::to_string(left->size()) + " ranks are left";
  for (int k = 0; k < 20; ++k) {
    std::fill_n(x, count, 1);
    if (auto again = left->all_reduce(x, x, count, dtype::int32, {.timeout = 5_s}); !again)
      return again.error().message();
    if (x[count - 1] != static_cast<std::int32_t>(ranks)) return "a wrong sum after";
  }
  return {};
}

void expect_survivors(fault what) {
  const char* asked = std::getenv("TOPOCOLL_FAULTS");
  const int rounds = asked == nullptr ? 4 : std::atoi(asked);
  for (int round = 0; round < rounds; ++round) {
    const auto exits = run_local_ranks(
        4, {.grace = 0.1_s},
        [&](shm_transport& t) -> result<std::string> { return survive(t, what, static_cast<std::uint32_t>(round)); },
        deadline::in(what == fault::stopped ? 3_s : 20_s));
    ASSERT_TRUE(exits) << exits.error().message();
    for (const rank_exit& e : *exits) {
      if (e.rank.value == 2 && what != fault::other_count) continue;
      EXPECT_TRUE(e.outcome) << "round " << round << ": " << e.outcome.error().message();
      EXPECT_EQ(e.outcome ? *e.outcome : std::string("no outcome"), "")
          << "round " << round << ", rank " << e.rank.value;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(survivors, of_a_killed_rank_go_on) { expect_survivors(fault::killed); }
TEST(survivors, of_a_stopped_rank_go_on) { expect_survivors(fault::stopped); }
TEST(survivors, of_a_mismatch_go_on_all_of_them) { expect_survivors(fault::other_count); }

}  // namespace
