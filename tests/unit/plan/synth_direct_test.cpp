// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

problem of(std::uint32_t n, collective_kind c) {
  problem q;
  q.collective = c;
  q.ranks.resize(n);
  return q;
}

TEST(direct, takes_one_step_or_two) {
  for (const std::uint32_t n : {2U, 3U, 8U})
    for (const collective_kind c :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter,
          collective_kind::broadcast, collective_kind::reduce, collective_kind::all_to_all}) {
      const schedule s = direct{}.synthesize(of(n, c)).value();
      ASSERT_TRUE(verify(s)) << to_string(c);
      EXPECT_EQ(traffic(s).size(), c == collective_kind::all_reduce ? 2U : 1U) << to_string(c);
    }
}

TEST(one_shot, sends_whole_vectors_at_once) {
  const schedule s = one_shot{}.synthesize(of(8, collective_kind::all_reduce)).value();
  ASSERT_TRUE(verify(s));
  const auto rounds = traffic(s);
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_EQ(rounds[0].moves.size(), 56U);
  EXPECT_EQ(rounds[0].moves[0].chunks, s.chunks());
  EXPECT_EQ(one_shot{}.synthesize(of(8, collective_kind::broadcast)).error().code, errc::unsupported);
}

}  // namespace
