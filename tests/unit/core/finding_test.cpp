// SPDX-License-Identifier: Apache-2.0
#include <topocoll/core/finding.hpp>
#include <gtest/gtest.h>

using topocoll::trust;

TEST(trust, is_ordered_from_best_to_worst) {
  EXPECT_LT(trust::measured, trust::reported);
  EXPECT_LT(trust::reported, trust::derived);
  EXPECT_LT(trust::derived, trust::assumed);
}
