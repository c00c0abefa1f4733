// SPDX-License-Identifier: Apache-2.0
#include <type_traits>
#include <topocoll/core/ids.hpp>
#include <gtest/gtest.h>

using topocoll::link_id;
using topocoll::node_id;
using topocoll::rank_id;

TEST(ids, of_different_things_do_not_mix) {
  EXPECT_FALSE((std::is_convertible_v<rank_id, node_id>));
  EXPECT_FALSE((std::is_convertible_v<node_id, link_id>));
  EXPECT_FALSE((std::is_assignable_v<node_id&, rank_id>));
  EXPECT_FALSE((std::is_convertible_v<unsigned, rank_id>));
}

TEST(ids, compare_by_number_and_start_at_zero) {
  EXPECT_EQ(rank_id{}.value, 0U);
  EXPECT_LT(rank_id{2}, rank_id{7});
  EXPECT_EQ(node_id{5}, node_id{5});
}

TEST(ids, cost_no_more_than_a_number) {
  EXPECT_EQ(sizeof(link_id), 4U);
  EXPECT_TRUE(std::is_trivially_copyable_v<link_id>);
}
