// SPDX-License-Identifier: Apache-2.0
// Operations of the caller through a communicator: any element, any associative operation, in the order of the ranks.
#include <array>
#include <contract/groups.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/custom_calls.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

/// Two by two, modulo a prime: products are associative, and differ with the order.
struct matrix {
  std::array<std::uint32_t, 4> x{};
  friend bool operator==(const matrix&, const matrix&) = default;
};
struct product {
  std::uint64_t calls = 0;
  matrix operator()(const matrix& a, const matrix& b) {
    ++calls;
    constexpr std::uint64_t prime = 65'521;
    matrix c;
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j)
        c.x[2 * i + j] = static_cast<std::uint32_t>(
            (std::uint64_t{a.x[2 * i]} * b.x[j] + std::uint64_t{a.x[2 * i + 1]} * b.x[2 + j]) % prime);
    return c;
  }
};
matrix element(std::uint32_t rank, std::size_t i) {
  const auto v = static_cast<std::uint32_t>(rank * 7919 + i * 31);
  return {{v % 1009 + 1, v % 97, v % 89 + rank, v % 503 + 2}};
}
matrix expected(std::uint32_t ranks, std::size_t i) {
  product f;
  matrix sum = element(0, i);
  for (std::uint32_t r = 1; r < ranks; ++r) sum = f(sum, element(r, i));
  return sum;
}
std::span<std::byte> bytes_of(std::vector<matrix>& v) { return std::as_writable_bytes(std::span(v)); }

template <class Groups>
class custom_calls_contract : public testing::Test {};
using all_groups = testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc>;
TYPED_TEST_SUITE(custom_calls_contract, all_groups);

template <class Groups, class Body>
void on_ranks(std::uint32_t n, Body body) {
  const auto told = groups::on_all(Groups::make(n), [&](auto& transport) -> std::string {
    auto comm = communicator<std::remove_reference_t<decltype(transport)>>::create(std::move(transport));
    return comm ? body(*comm) : comm.error().message();
  });
  for (std::uint32_t r = 0; r < n; ++r) EXPECT_EQ(told[r], "") << "rank " << r << " of " << n;
}

TYPED_TEST(custom_calls_contract, combine_in_the_order_of_the_ranks_for_any_count) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U})
    for (const bytes scratch : {4_MiB, bytes{200}})
      on_ranks<TypeParam>(n, [&](auto& comm) -> std::string {
        product f;
        custom_calls calls(comm, reduction_by<matrix>(f), scratch);
        const std::uint32_t me = comm.rank().value;
        for (const std::size_t count : {0U, 1U, 4U, 17U, 60U}) {
          const std::string where = std::to_string(count) + " elements";
          std::vector<matrix> in(count), out(count);
          for (std::size_t i = 0; i < count; ++i) in[i] = element(me, i);
          std::vector<matrix> same = in;
          if (auto done = calls.all_reduce(bytes_of(in), bytes_of(out)); !done) return where + done.error().message();
          if (auto done = calls.all_reduce(bytes_of(same)); !done) return where + done.error().message();
          for (std::size_t i = 0; i < count; ++i)
            if (out[i] != expected(n, i) || same[i] != out[i]) return where + ": all_reduce is wrong";
          const rank_id root{n - 1};
          std::vector<matrix> there(me == root.value ? count : 0);
          if (auto done = calls.reduce(bytes_of(in), bytes_of(there), root); !done)
            return where + done.error().message();
          for (std::size_t i = 0; i < there.size(); ++i)
            if (there[i] != expected(n, i)) return where + ": reduce is wrong";
          std::vector<matrix> whole(count * n), part(count);
          for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = element(me, i);
          if (auto done = calls.reduce_scatter(bytes_of(whole), bytes_of(part)); !done)
            return where + done.error().message();
          for (std::size_t i = 0; i < count; ++i)
            if (part[i] != expected(n, me * count + i)) return where + ": reduce_scatter is wrong";
        }
        return n == 1 || f.calls > 0 ? "" : "the function was not called";
      });
}

TYPED_TEST(custom_calls_contract, refuse_what_is_no_whole_number_of_elements) {
  on_ranks<TypeParam>(2, [](auto& comm) -> std::string {
    product f;
    custom_calls calls(comm, reduction_by<matrix>(f));
    std::vector<std::byte> odd(33), other(48);
    const auto bad = calls.all_reduce(odd);
    if (bad || bad.error().code != errc::invalid_argument) return "33 bytes are two elements and a byte";
    const auto differ = calls.all_reduce(std::span<const std::byte>(odd).first(32), std::span(other));
    if (differ || differ.error().code != errc::invalid_argument) return "lengths differ";
    const auto none = custom_calls(comm, custom_reduction{}).all_reduce(other);
    if (none || none.error().code != errc::invalid_argument) return "there is no function";
    return comm.barrier() ? "" : "the group is broken";  // nothing was sent
  });
}

TYPED_TEST(custom_calls_contract, end_with_the_failure_of_the_group) {
  on_ranks<TypeParam>(2, [](auto& comm) -> std::string {
    product f;
    custom_calls calls(comm, reduction_by<matrix>(f));
    if (comm.rank().value == 1) {
      comm.abort("enough");
      return "";
    }
    std::vector<matrix> data(5);
    const auto done = calls.all_reduce(bytes_of(data), {.timeout = 5_s});
    return !done && done.error().message().find("enough") != std::string::npos ? "" : "the abort went unnoticed";
  });
}

}  // namespace
