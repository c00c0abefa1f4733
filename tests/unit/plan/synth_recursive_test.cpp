// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

problem of(std::uint32_t n, collective_kind c = collective_kind::all_reduce) {
  problem q;
  q.collective = c;
  q.ranks.resize(n);
  return q;
}

TEST(recursive, takes_twice_log_steps_and_the_bytes_of_a_ring) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U, 64U}) {
    const schedule s = recursive{}.synthesize(of(n)).value();
    ASSERT_TRUE(verify(s)) << n;
    const auto rounds = traffic(s);
    EXPECT_EQ(rounds.size(), 2U * static_cast<std::uint32_t>(std::bit_width(n - 1)));
    std::uint64_t sent = 0;
    for (const traffic_round& r : rounds)
      for (const transfer& t : r.moves) sent += t.chunks * r.repeat;
    // Reduce-scatter: every contribution to every part but the own leaves its rank or is summed on the way: n-1 per part
    // when halves are equal; one more per uneven cut.
    if (std::has_single_bit(n))
      EXPECT_EQ(sent, 2ULL * n * (n - 1));
    else
      EXPECT_LE(sent, 2ULL * n * n);
  }
}

TEST(recursive_doubling, takes_log_steps_of_whole_vectors) {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 17U, 64U}) {
    const schedule s = recursive_doubling{}.synthesize(of(n)).value();
    ASSERT_TRUE(verify(s)) << n;
    EXPECT_EQ(s.units, 1U);
    EXPECT_EQ(traffic(s).size(), static_cast<std::uint32_t>(std::bit_width(n)) - 1 + (std::has_single_bit(n) ? 0 : 2));
  }
  EXPECT_EQ(recursive_doubling{}.synthesize(of(4, collective_kind::all_gather)).error().code, errc::unsupported);
}

}  // namespace
