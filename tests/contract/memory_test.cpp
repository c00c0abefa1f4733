// SPDX-License-Identifier: Apache-2.0
// The laws of the MemorySpace concept, for every memory space whose memory this test can read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>
#include <topocoll/exec/memory.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

// The allocators of the sanitizers end the program where the system's gives nothing back.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

template <class M>
class memory_contract : public ::testing::Test {};
using kinds = ::testing::Types<host_memory>;
TYPED_TEST_SUITE(memory_contract, kinds);

TYPED_TEST(memory_contract, gives_memory_of_the_size_asked_for_aligned_for_every_element) {
  TypeParam m;
  for (const std::uint64_t size : {1, 2, 3, 5, 7, 8, 17, 4096, 100'001}) {
    auto given = m.allocate({size});
    ASSERT_TRUE(given) << given.error().message();
    EXPECT_EQ(given->size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(given->data()) % alignof(std::max_align_t), 0U);
    std::memset(given->data(), 0xa5, given->size());  // all of it can be written
    m.release(*given);
  }
}

TYPED_TEST(memory_contract, gives_nothing_for_zero_bytes_and_takes_it_back) {
  TypeParam m;
  auto given = m.allocate({0});
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->empty());
  m.release(*given);
}

TYPED_TEST(memory_contract, says_so_when_there_is_not_enough) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's allocator ends the program instead of giving nothing";
  TypeParam m;
  auto given = m.allocate({1ULL << 60U});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, errc::unavailable);
  EXPECT_NE(given.error().what.find(std::to_string(1ULL << 60U)), std::string::npos) << given.error().what;
}

TYPED_TEST(memory_contract, keeps_allocations_apart) {
  TypeParam m;
  auto a = m.allocate({100}).value();
  auto b = m.allocate({100}).value();
  std::memset(a.data(), 1, a.size());
  std::memset(b.data(), 2, b.size());
  for (const std::byte x : a) ASSERT_EQ(x, std::byte{1});
  m.release(a);
  for (const std::byte x : b) ASSERT_EQ(x, std::byte{2});
  m.release(b);
}

TYPED_TEST(memory_contract, copies_exactly_and_onto_itself) {
  TypeParam m;
  for (const std::uint64_t n : {0, 1, 2, 3, 5, 7, 8, 17, 1000}) {
    std::vector<std::byte> from(n + 1), into(n + 1, std::byte{9});
    for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    ASSERT_TRUE(m.copy(into.data(), from.data(), {n}));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(into[i], from[i]);
    EXPECT_EQ(into[n], std::byte{9}) << "the byte behind was written";
    const auto before = into;
    ASSERT_TRUE(m.copy(into.data(), into.data(), {n}));
    EXPECT_EQ(into, before);
  }
  EXPECT_TRUE(m.copy(nullptr, nullptr, {0}));
}

TYPED_TEST(memory_contract, reduces_into_a_third_place_and_into_either_operand) {
  TypeParam m;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{8}, std::size_t{17}}) {
    std::vector<std::int32_t> a(n), b(n), r(n, -1);
    std::iota(a.begin(), a.end(), 1);
    std::iota(b.begin(), b.end(), 100);
    const auto at = [](std::vector<std::int32_t>& v) { return reinterpret_cast<std::byte*>(v.data()); };
    ASSERT_TRUE(m.reduce(dtype::int32, reduce_op::sum, at(r), at(a), at(b), n));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(r[i], static_cast<std::int32_t>(101 + 2 * i));
    ASSERT_TRUE(m.reduce(dtype::int32, reduce_op::max, at(a), at(a), at(b), n));
    EXPECT_EQ(a, b);
    ASSERT_TRUE(m.reduce(dtype::int32, reduce_op::sum, at(b), at(a), at(b), n));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(b[i], static_cast<std::int32_t>(200 + 2 * i));
  }
}

TYPED_TEST(memory_contract, reduces_and_divides_every_element_type) {
  TypeParam m;
  constexpr std::size_t n = 37;
  for (const dtype type : all_dtypes) {
    const std::size_t size = n * size_of(type).value;
    std::vector<std::byte> a(size), b(size), want(size), r(size);
    for (std::size_t i = 0; i < size; ++i) {
      a[i] = static_cast<std::byte>(i * 5 % 64);  // no NaN in any type
      b[i] = static_cast<std::byte>(i * 3 % 64);
    }
    for (const reduce_op op : all_reduce_ops) {
      reduce_elements(type, op, want.data(), a.data(), b.data(), n);
      ASSERT_TRUE(m.reduce(type, op, r.data(), a.data(), b.data(), n));
      EXPECT_EQ(r, want) << to_string(type) << ' ' << to_string(op);
      divide_elements(type, want.data(), n, 3);
      ASSERT_TRUE(m.divide(type, r.data(), n, 3));
      EXPECT_EQ(r, want) << to_string(type) << ' ' << to_string(op);
    }
  }
}

TYPED_TEST(memory_contract, divides_and_refuses_to_divide_by_nothing) {
  TypeParam m;
  std::vector<std::int64_t> x{7, -7, 0};
  auto* at = reinterpret_cast<std::byte*>(x.data());
  ASSERT_TRUE(m.divide(dtype::int64, at, 3, 2));
  EXPECT_EQ(x, (std::vector<std::int64_t>{3, -3, 0}));
  auto none = m.divide(dtype::int64, at, 3, 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::invalid_argument);
  EXPECT_EQ(x, (std::vector<std::int64_t>{3, -3, 0})) << "outputs are untouched on failure";
}

TYPED_TEST(memory_contract, can_be_moved_with_its_allocations) {
  TypeParam m;
  auto given = m.allocate({64}).value();
  TypeParam other = std::move(m);
  std::memset(given.data(), 3, given.size());
  other.release(given);
}

TEST(require_memory_space, accepts_host_memory) { require_memory_space<host_memory>(); }

}  // namespace
