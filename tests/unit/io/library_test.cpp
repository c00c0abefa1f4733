// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <topocoll/io/library.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

static_assert(!std::is_copy_constructible_v<tc::io::library>);
static_assert(std::is_nothrow_move_constructible_v<tc::io::library>);

TEST(library, gives_functions_with_their_types) {
  const auto m = tc::io::library::open("libm.so.6");
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->name(), "libm.so.6");
  const auto cbrt = m->function<double(double)>("cbrt");
  ASSERT_TRUE(cbrt);
  EXPECT_DOUBLE_EQ((*cbrt)(27), 3);
  EXPECT_EQ(m->find<double(double)>("a_function_that_nobody_wrote"), nullptr);
}

TEST(library, failures_name_the_file_and_the_symbol) {
  const auto none = tc::io::library::open("libtopocoll-that-is-not-there.so");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, tc::errc::unavailable);
  EXPECT_NE(none.error().what.find("libtopocoll-that-is-not-there.so"), std::string::npos);
  const auto m = tc::io::library::open("libm.so.6");
  ASSERT_TRUE(m);
  const auto missing = m->function<int()>("a_function_that_nobody_wrote");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, tc::errc::unavailable);
  EXPECT_NE(missing.error().what.find("libm.so.6"), std::string::npos);
  EXPECT_NE(missing.error().what.find("a_function_that_nobody_wrote"), std::string::npos);
  EXPECT_EQ(tc::io::library::open("").error().code, tc::errc::invalid_argument);
}

TEST(library, refuses_a_file_that_is_no_library) {
  const std::string path = testing::TempDir() + "topocoll-library-" + std::to_string(::getpid());
  std::ofstream(path) << "not an ELF file";
  const auto l = tc::io::library::open(path);
  std::remove(path.c_str());
  ASSERT_FALSE(l);
  EXPECT_NE(l.error().what.find(path), std::string::npos);
}

TEST(library, moves_without_closing) {
  auto first = tc::io::library::open("libm.so.6");
  ASSERT_TRUE(first);
  tc::io::library second = std::move(*first);
  auto third = tc::io::library::open("libm.so.6");
  ASSERT_TRUE(third);
  *third = std::move(second);
  EXPECT_NE(third->find<double(double)>("cbrt"), nullptr);
}
