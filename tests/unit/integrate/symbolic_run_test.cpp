// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>
#include <topocoll/integrate/detail/symbolic_run.hpp>
#include <gtest/gtest.h>

namespace {

using topocoll::detail::symbolic_fault;
using topocoll::detail::symbolic_run;

/// Whether two accesses to a cell, one of them a write, are joined by no path: by the closure of all orders.
struct closure {
  std::vector<std::vector<bool>> before;
  std::vector<std::vector<int>> access;  ///< per cell and event: 0 none, 1 reads, 2 writes

  [[nodiscard]] bool races() {
    const std::size_t n = before.size();
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n && before[i][k]; ++j) before[i][j] = before[i][j] || before[k][j];
    for (const auto& cell : access)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (cell[i] + cell[j] > 2 && cell[i] * cell[j] != 0 && !before[i][j] && !before[j][i]) return true;
    return false;
  }
};

TEST(symbolic_run, finds_races_just_where_no_path_orders_two_accesses) {
  std::size_t racing = 0, fine = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    std::mt19937 draw(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(draw()); };
    const std::uint32_t events = 1 + random() % 14, cells = 1 + random() % 4, messages = 2;
    symbolic_run<> run(1, cells + messages);
    closure oracle{std::vector<std::vector<bool>>(events, std::vector<bool>(events, false)),
                   std::vector<std::vector<int>>(cells, std::vector<int>(events, 0))};
    for (std::uint32_t e = 0; e < events; ++e) {
      run.event();
      for (std::uint32_t m = random() % 3; m > 0; --m) {
        const std::uint32_t to = random() % (cells + messages), from = random() % (cells + messages);
        run.move(to, from);  // messages have one writer each in plans, and are not looked at
        if (from < cells) oracle.access[from][e] = std::max(oracle.access[from][e], 1);
        if (to < cells) oracle.access[to][e] = 2;
      }
    }
    for (std::uint32_t a = 0; a < events; ++a)
      for (std::uint32_t b = a + 1; b < events; ++b)
        if (random() % 3 == 0) {
          const bool room = random() % 8 == 0;  // gives no order
          run.order(a, b, room);
          if (!room) oracle.before[a][b] = true;
        }
    ASSERT_FALSE(run.ends());
    const bool expected = oracle.races();
    for (const std::size_t together : {1U, 2U, 5U, 64U, 4096U})
      EXPECT_EQ(run.races(cells, together).has_value(), expected)
          << "seed " << seed << ", " << together << " at a time";
    (expected ? racing : fine) += 1;
  }
  EXPECT_GT(racing, 50U);
  EXPECT_GT(fine, 50U);
}

TEST(symbolic_run, looks_at_more_readers_than_fit_into_one_pass) {
  constexpr std::uint32_t readers = 9000;  // of one cell, then a writer that waits for all but one of them
  for (const std::uint32_t forgotten : {0U, 4095U, 4096U, 8999U, readers}) {
    symbolic_run<> run(1, 2);
    for (std::uint32_t e = 0; e < readers; ++e) {
      run.event();
      run.move(1, 0);
    }
    const std::uint32_t writer = run.event();
    run.move(0, 0);
    for (std::uint32_t e = 0; e < readers; ++e)
      if (e != forgotten) run.order(e, writer);
    ASSERT_FALSE(run.ends());
    const auto race = run.races(1);
    ASSERT_EQ(race.has_value(), forgotten != readers) << forgotten;
    if (race) {
      EXPECT_EQ(race->kind, symbolic_fault::kind_t::race);
      EXPECT_EQ(race->event + race->other, forgotten + writer);
    }
  }
}

}  // namespace
