// SPDX-License-Identifier: Apache-2.0
// Meeting by a function that gathers equal blocks, here among threads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/bootstrap_lent.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

/// As MPI_Allgather has it, over threads.
struct gather_by_threads {
  thread_bootstrap meeting;
  int calls = 0;

  result<void> operator()(std::span<const std::byte> mine, std::span<std::byte> all, deadline until) {
    ++calls;
    auto parts = meeting.all_gather(mine, until);
    if (!parts) return std::move(parts).error();
    for (std::size_t r = 0; r < parts->size(); ++r) {
      if ((*parts)[r].size() != mine.size()) return fail(errc::bug, "blocks of different lengths");
      std::ranges::copy((*parts)[r], all.begin() + static_cast<std::ptrdiff_t>(r * mine.size()));
    }
    return {};
  }
};
using lent = lent_bootstrap<gather_by_threads>;
static_assert(Bootstrap<lent>);

template <class Body>
void on_all(std::uint32_t ranks, Body body) {
  auto group = thread_bootstrap::make_group(ranks).value();
  std::vector<std::string> told(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r, mine = std::move(group[r])]() mutable {
      auto b = lent::make({r}, ranks, gather_by_threads{std::move(mine)}).value();
      told[r] = body(b);
    });
  for (std::thread& t : threads) t.join();
  for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(told[r], "") << "rank " << r;
}
std::vector<std::byte> bytes_of(const std::string& text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

TEST(lent_bootstrap, gathers_parts_of_any_length_and_none) {
  for (const std::uint32_t n : {1U, 2U, 5U})
    on_all(n, [n](lent& b) -> std::string {
      for (int again = 0; again < 3; ++again) {
        const std::uint32_t me = b.rank().value;
        auto all = b.all_gather(bytes_of(std::string(me * 100, static_cast<char>('a' + me))), deadline::in(10_s));
        if (!all) return all.error().message();
        if (all->size() != n || b.size() != n) return "not all ranks";
        for (std::uint32_t r = 0; r < n; ++r)
          if ((*all)[r] != bytes_of(std::string(r * 100, static_cast<char>('a' + r)))) return "a wrong part";
        if (auto met = b.barrier(deadline::in(10_s)); !met) return met.error().message();
        if (auto none = b.all_gather({}, deadline::in(10_s)); !none || !(*none)[n - 1].empty()) return "not nothing";
      }
      return "";
    });
}

TEST(lent_bootstrap, names_a_rank_that_makes_another_call) {
  on_all(3, [](lent& b) -> std::string {
    result<void> done = b.rank().value == 2 ? b.barrier(deadline::in(10_s)) : [&]() -> result<void> {
      auto all = b.all_gather(bytes_of("x"), deadline::in(10_s));
      if (!all) return std::move(all).error();
      return {};
    }();
    if (done) return "a barrier met an all_gather";
    if (done.error().code != errc::mismatch) return done.error().message();
    if (done.error().what.find("rank 2 is in call 0, a barrier") == std::string::npos) return done.error().what;
    // The group is at an end, and stays so without asking anybody.
    auto later = b.barrier(deadline::in(10_s));
    return !later && later.error().what == done.error().what ? "" : "it goes on";
  });
}

TEST(lent_bootstrap, tells_all_ranks_why_one_aborted) {
  on_all(3, [](lent& b) -> std::string {
    if (b.rank().value == 1) b.abort("the disk is full");
    auto all = b.all_gather(bytes_of("x"), deadline::in(10_s));
    if (all) return "it succeeded";
    if (all.error().code != errc::aborted) return all.error().message();
    if (all.error().what != "rank 1 aborted: the disk is full") return all.error().what;
    auto later = b.barrier(deadline::in(10_s));
    return !later && later.error().what == all.error().what ? "" : "another cause later";
  });
}

TEST(lent_bootstrap, ends_when_the_function_fails) {
  struct broken {
    result<void> operator()(std::span<const std::byte>, std::span<std::byte>, deadline) {
      return fail(errc::timed_out, "nobody came");
    }
  };
  auto b = lent_bootstrap<broken>::make({0}, 2, {}).value();
  auto all = b.all_gather(bytes_of("x"), deadline::in(1_s));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().what, "nobody came");
  EXPECT_EQ(b.barrier(deadline::in(1_s)).error().what, "nobody came");
}

TEST(lent_bootstrap, refuses_a_rank_that_is_none_of_the_group) {
  auto group = thread_bootstrap::make_group(1).value();
  const auto none = lent::make({2}, 2, gather_by_threads{std::move(group[0])});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::invalid_argument);
}

TEST(lent_bootstrap, takes_two_gathers_and_a_barrier_one) {
  struct counting {
    int* calls;
    result<void> operator()(std::span<const std::byte> mine, std::span<std::byte> all, deadline) {
      ++*calls;
      std::ranges::copy(mine, all.begin());
      return {};
    }
  };
  int calls = 0;
  auto b = lent_bootstrap<counting>::make({0}, 1, {&calls}).value();
  ASSERT_TRUE(b.all_gather(bytes_of("abc"), deadline::in(1_s)));
  EXPECT_EQ(calls, 2);
  ASSERT_TRUE(b.barrier(deadline::in(1_s)));
  EXPECT_EQ(calls, 3);
}

}  // namespace
