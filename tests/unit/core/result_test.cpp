// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <topocoll/core/result.hpp>
#include <gtest/gtest.h>

using topocoll::errc;
using topocoll::fail;
using topocoll::failed;
using topocoll::failure;
using topocoll::result;

namespace {

result<int> half(int n) {
  if (n % 2 != 0) return fail(errc::invalid_argument, std::to_string(n) + " is odd", "ask for an even number");
  return n / 2;
}

}  // namespace

TEST(result, holds_a_value_or_a_failure) {
  const result<int> good = half(8);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 4);
  const result<int> bad = half(7);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, errc::invalid_argument);
  EXPECT_EQ(bad.error().what, "7 is odd");
}

TEST(result, passes_a_failure_on_to_another_type) {
  const auto outer = [](int n) -> result<std::string> {
    auto inner = half(n);
    if (!inner) return std::move(inner).error();
    return std::to_string(*inner);
  };
  EXPECT_EQ(*outer(4), "2");
  EXPECT_EQ(outer(5).error().next, "ask for an even number");
}

TEST(result, throws_the_whole_failure_when_asked_for_a_value_it_lacks) {
  EXPECT_EQ(half(6).value(), 3);
  try {
    static_cast<void>(half(5).value());
    FAIL() << "no exception";
  } catch (const failed& e) {
    EXPECT_EQ(e.why().code, errc::invalid_argument);
    EXPECT_STREQ(e.what(), "5 is odd; ask for an even number");
  }
}

TEST(result, carries_what_can_only_be_moved) {
  result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  ASSERT_TRUE(made);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 5);
}

TEST(result, lets_its_value_be_changed_in_place) {
  result<std::string> text = std::string("a");
  *text += 'b';
  EXPECT_EQ(text->size(), 2U);
  EXPECT_EQ(text.value(), "ab");
}

TEST(result, of_nothing_is_success_until_it_holds_a_failure) {
  const result<void> good;
  EXPECT_TRUE(good);
  EXPECT_NO_THROW(good.value());
  const result<void> bad = fail(errc::timed_out, "rank 3 did not join within 20 s");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what, "rank 3 did not join within 20 s");
  EXPECT_THROW(bad.value(), failed);
}

TEST(failure, is_one_line_for_people) {
  EXPECT_EQ(fail(errc::not_found, "a is missing").message(), "a is missing");
  EXPECT_EQ(fail(errc::not_found, "a is missing", "look again").message(), "a is missing; look again");
}
