// SPDX-License-Identifier: Apache-2.0
// join_shm: processes that do not descend from one another meet under a name.
#include <cstdint>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/shm.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

std::string fresh_name() {
  static int count = 0;
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}
bool exists(const std::string& name) {
  const std::string path = "/topocoll-" + std::to_string(::getuid()) + "-" + name;
  const int fd = ::shm_open(path.c_str(), O_RDWR, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

/// A process; its answer, read when asked for.
struct process {
  pid_t pid = 0;
  int answer_from = -1;

  template <class Body>
  explicit process(Body body) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      const std::string text = body();
      (void)!::write(ends[1], text.data(), text.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    answer_from = ends[0];
  }
  std::string answer() {
    std::string text;
    char buffer[512];
    for (ssize_t n; (n = ::read(answer_from, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    ::close(answer_from);
    ::waitpid(pid, nullptr, 0);
    return text;
  }
};

std::string join_and_sum(const std::string& name, std::uint32_t rank, std::uint32_t ranks, deadline until) {
  auto t = join_shm(name, {rank}, ranks, until);
  if (!t) return std::to_string(static_cast<int>(t.error().code)) + " " + t.error().what;
  if (exists(name) && rank == 0) return "the name is still there";
  auto comm = communicator<shm_transport>::create(std::move(*t)).value();
  std::vector<std::int32_t> x(10'000, static_cast<std::int32_t>(rank + 1));
  if (auto ok = comm.all_reduce(x); !ok) return ok.error().message();
  return "sum " + std::to_string(x.back());
}

std::string code_word(errc c) { return std::to_string(static_cast<int>(c)) + " "; }

TEST(join_shm, brings_processes_together_in_any_order_and_leaves_no_name) {
  for (const std::uint32_t first : {0U, 2U}) {
    const std::string name = fresh_name();
    std::vector<process> all;
    for (std::uint32_t k = 0; k < 3; ++k) {
      const std::uint32_t rank = (first + k) % 3;
      all.emplace_back([=] { return join_and_sum(name, rank, 3, deadline::in(20_s)); });
      ::usleep(20'000);  // late ranks are waited for
    }
    for (process& p : all) EXPECT_EQ(p.answer(), "sum 6");
    EXPECT_FALSE(exists(name));
  }
}

TEST(join_shm, names_the_ranks_that_do_not_come) {
  const std::string name = fresh_name();
  process zero([&] { return join_and_sum(name, 0, 4, deadline::in(0.4_s)); });
  process two([&] { return join_and_sum(name, 2, 4, deadline::in(5_s)); });
  for (process* p : {&zero, &two}) {
    const std::string told = p->answer();
    EXPECT_EQ(told.find(code_word(errc::timed_out)), 0U) << told;
    EXPECT_NE(told.find("ranks 1, 3 of 4 did not join"), std::string::npos) << told;
  }
  EXPECT_FALSE(exists(name));
}

TEST(join_shm, says_that_rank_0_did_not_come) {
  const std::string told = join_and_sum(fresh_name(), 1, 2, deadline::in(0.1_s));
  EXPECT_EQ(told.find(code_word(errc::timed_out)), 0U) << told;
  EXPECT_NE(told.find("rank 0 did not make"), std::string::npos) << told;
}

TEST(join_shm, replaces_what_a_dead_rank_0_left_behind) {
  const std::string name = fresh_name();
  process dead([&] { return join_and_sum(name, 0, 2, deadline::in(60_s)); });
  for (const deadline until = deadline::in(10_s); !exists(name) && !until.passed();) ::usleep(1000);
  ASSERT_TRUE(exists(name));
  ::usleep(20'000);
  ::kill(dead.pid, SIGKILL);
  (void)dead.answer();
  ASSERT_TRUE(exists(name)) << "nobody was there to tidy up";
  process one([&] { return join_and_sum(name, 1, 2, deadline::in(20_s)); });
  ::usleep(20'000);  // it must not take the leftover for a living group
  process zero([&] { return join_and_sum(name, 0, 2, deadline::in(20_s)); });
  EXPECT_EQ(one.answer(), "sum 3");
  EXPECT_EQ(zero.answer(), "sum 3");
  EXPECT_FALSE(exists(name));
}

TEST(join_shm, notices_that_rank_0_dies_while_others_join) {
  const std::string name = fresh_name();
  process zero([&] { return join_and_sum(name, 0, 3, deadline::in(60_s)); });
  process one([&] { return join_and_sum(name, 1, 3, deadline::in(60_s)); });
  for (const deadline until = deadline::in(10_s); !exists(name) && !until.passed();) ::usleep(1000);
  ::usleep(50'000);
  ::kill(zero.pid, SIGKILL);
  (void)zero.answer();
  const std::string told = one.answer();
  EXPECT_EQ(told.find(code_word(errc::peer_lost)), 0U) << told;
  EXPECT_NE(told.find("rank 0 (pid " + std::to_string(zero.pid)), std::string::npos) << told;
  EXPECT_FALSE(exists(name)) << "the last to notice tidies up";
}

TEST(join_shm, refuses_a_name_in_use_a_place_taken_and_another_size) {
  const std::string name = fresh_name();
  process zero([&] { return join_and_sum(name, 0, 3, deadline::in(20_s)); });
  process one([&] { return join_and_sum(name, 1, 3, deadline::in(20_s)); });
  for (const deadline until = deadline::in(10_s); !exists(name) && !until.passed();) ::usleep(1000);
  ::usleep(100'000);  // both have their places
  const std::string other_zero = join_and_sum(name, 0, 3, deadline::in(0.1_s));
  EXPECT_EQ(other_zero.find(code_word(errc::unavailable)), 0U) << other_zero;
  const std::string other_size = join_and_sum(name, 2, 4, deadline::in(1_s));
  EXPECT_EQ(other_size.find(code_word(errc::mismatch)), 0U) << other_size;
  const std::string other_one = join_and_sum(name, 1, 3, deadline::in(1_s));
  EXPECT_EQ(other_one.find(code_word(errc::mismatch)), 0U) << other_one;
  EXPECT_NE(other_one.find(std::to_string(one.pid)), std::string::npos) << other_one;
  process two([&] { return join_and_sum(name, 2, 3, deadline::in(20_s)); });
  EXPECT_EQ(zero.answer(), "sum 6");
  EXPECT_EQ(one.answer(), "sum 6");
  EXPECT_EQ(two.answer(), "sum 6");
}

TEST(join_shm, says_in_a_sentence_that_dev_shm_is_full) {
  const std::string name = fresh_name();
  // More than any tmpfs has: 1 EiB of payload, for as many lanes as it takes to ask for that much.
  auto t = join_shm(name, {0}, 60'000, deadline::in(5_s), {.channels = 64, .memory = {1ULL << 60U}});
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, errc::unavailable) << t.error().what;
  EXPECT_NE(t.error().what.find("/dev/shm has no room for the "), std::string::npos) << t.error().what;
  EXPECT_NE(t.error().what.find("60000 ranks"), std::string::npos) << t.error().what;
  EXPECT_NE(t.error().what.find("are free"), std::string::npos) << t.error().what;
  EXPECT_FALSE(exists(name));
}

TEST(join_shm, refuses_names_that_are_paths) {
  for (const std::string_view name : {"", "a/b", "../x", "a b"}) {
    auto t = join_shm(name, {0}, 1, deadline::in(1_s));
    ASSERT_FALSE(t) << name;
    EXPECT_EQ(t.error().code, errc::invalid_argument);
  }
  EXPECT_EQ(join_shm("x", {3}, 2, deadline::in(1_s)).error().code, errc::invalid_argument);
}

}  // namespace
