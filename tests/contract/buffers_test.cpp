// SPDX-License-Identifier: Apache-2.0
// Collectives on memory that the library gave, on ordinary memory, and on both at once: the same results, bit for bit.
#include <algorithm>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <sanitized.hpp>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

template <class G>
class buffers_contract : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc, groups::mixed_halves>;
TYPED_TEST_SUITE(buffers_contract, kinds);

constexpr collective_kind all_kinds[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::broadcast,
                                         collective_kind::reduce,         collective_kind::all_to_all,
                                         collective_kind::gather,         collective_kind::scatter};

/// Which ranks have their input, and which their output, in memory of the library.
enum class where { library, ordinary, mixed, only_outputs };

template <class C>
struct memory_of {
  /// At least one element, so that there is an address.
  float* operator()(C& comm, std::uint64_t count, bool library) {
    count = std::max<std::uint64_t>(count, 1);
    if (library) {
      given.push_back(comm.template allocate<float>(count).value());
      return given.back().data();
    }
    ordinary.emplace_back(count);
    return ordinary.back().data();
  }
  std::vector<buffer<float>> given;
  std::vector<std::vector<float>> ordinary;
};

/// What a rank gets from one call on numbers whose sums depend on the order of the additions.
template <class C>
std::vector<float> outcome(C& comm, collective_kind kind, std::uint32_t root, std::uint64_t count, where at,
                           bool in_place) {
  const std::uint32_t n = comm.size(), me = comm.rank().value;
  const auto elements = [&](region part) {
    return part == region::nothing ? 0
           : part == region::whole && kind != collective_kind::all_reduce && kind != collective_kind::broadcast &&
                   kind != collective_kind::reduce
               ? count * n
               : count;
  };
  const std::uint64_t ins = elements(input_of(kind, me == root)), outs = elements(output_of(kind, me == root));
  const bool even = me % 2 == 0;
  memory_of<C> memory;
  float* in = memory(comm, std::max(ins, outs), at == where::library || (at == where::mixed && even));
  float* out = memory(comm, outs, at == where::library || at == where::only_outputs || (at == where::mixed && !even));
  std::mt19937 random(me * 7919 + static_cast<unsigned>(count));
  std::vector<float> values(ins);
  for (float& x : values) x = static_cast<float>(random() % 2000003) * 1.1F - 1e6F;
  float* from = in;
  float* to = out;
  if (in_place) {
    to = in;
    if (kind == collective_kind::all_gather || (kind == collective_kind::gather && me == root)) from = in + me * count;
    if (kind == collective_kind::reduce_scatter || (kind == collective_kind::scatter && me == root))
      to = in + me * count;
    if ((kind == collective_kind::gather || kind == collective_kind::scatter) && me != root) to = out;
  }
  std::copy(values.begin(), values.end(), from);
  const auto done = comm.run(kind, {root}, from, to, count, dtype::float32);
  if (!done) {
    ADD_FAILURE() << done.error().message();
    return {};
  }
  EXPECT_TRUE(in_place || std::equal(values.begin(), values.end(), from)) << to_string(kind) << " changed its input";
  return {to, to + outs};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TYPED_TEST(buffers_contract, give_the_same_bits_wherever_memory_lies) {
  // Around every change of the way: with the announcement, in its cell, by reading or in a stage, in several windows of it.
  const std::vector<std::uint64_t> counts = topocoll_test::sanitized
                                                ? std::vector<std::uint64_t>{1, 300, 5000, 70'001}
                                                : std::vector<std::uint64_t>{1, 11, 300, 5000, 16'385, 70'001};
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U}) {
    const auto told = groups::on_all(TypeParam::make(ranks), [&](auto& t) -> std::string {
      auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
      for (const collective_kind kind : all_kinds) {
        for (const std::uint64_t count : counts) {
          const std::uint32_t root = (static_cast<std::uint32_t>(count) + 1) % ranks;
          const auto first = outcome(comm, kind, root, count, where::ordinary, false);
          for (const where at : {where::library, where::mixed, where::only_outputs}) {
            if (!same_bits(first, outcome(comm, kind, root, count, at, false)))
              return std::string(to_string(kind)) + " of " + std::to_string(count) + " differs, memory " +
                     std::to_string(static_cast<int>(at));
          }
          if (kind == collective_kind::all_to_all) continue;
          for (const where at : {where::library, where::ordinary, where::mixed}) {
            if (!same_bits(first, outcome(comm, kind, root, count, at, true)))
              return std::string(to_string(kind)) + " of " + std::to_string(count) + " differs in place, memory " +
                     std::to_string(static_cast<int>(at));
          }
        }
      }
      return {};
    });
    for (const std::string& answer : told) EXPECT_EQ(answer, "") << ranks << " ranks";
  }
}

TYPED_TEST(buffers_contract, are_apart_and_can_be_given_back_in_any_order) {
  const auto told = groups::on_all(TypeParam::make(2), [&](auto& t) -> std::string {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    std::mt19937 random(comm.rank().value);
    std::vector<buffer<std::uint32_t>> held;
    for (std::uint32_t k = 0; k < 200; ++k) {
      if (held.size() == 20) {
        const std::size_t which = random() % held.size();
        const std::uint32_t mark = held[which][0];
        for (const std::uint32_t x : held[which])
          if (x != mark) return "somebody else wrote into a buffer";
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
      auto next = comm.template allocate<std::uint32_t>(1 + random() % 20'000);
      if (!next) return next.error().message();
      for (std::uint32_t& x : *next) x = k;
      held.push_back(*std::move(next));
    }
    return {};
  });
  for (const std::string& answer : told) EXPECT_EQ(answer, "");
}

TYPED_TEST(buffers_contract, outlive_their_communicator) {
  const auto told = groups::on_all(TypeParam::make(2), [&](auto& t) -> float {
    buffer<float> kept;
    {
      auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
      kept = comm.template allocate<float>(1000).value();
      for (float& x : kept) x = 1;
      auto done = comm.all_reduce(kept, kept);
      if (!done) return -1;
    }
    float sum = 0;
    for (const float x : kept) sum += x;
    return sum;
  });
  EXPECT_EQ(told[0], 2000);
  EXPECT_EQ(told[1], 2000);
}

TEST(library_buffers, end_with_a_sentence_where_the_group_has_no_more_room) {
  const shm_group group = shm_group::create(1, {.buffers = 64_KiB}).value();
  auto comm = communicator<shm_transport>::create(group.attach({0}).value()).value();
  auto all = comm.allocate<std::uint8_t>(64U << 10U);
  ASSERT_TRUE(all) << all.error().message();
  const auto more = comm.allocate<std::uint8_t>(1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, errc::unavailable);
  EXPECT_NE(more.error().message().find("group_options::buffers"), std::string::npos) << more.error().message();
  *all = {};
  EXPECT_TRUE(comm.allocate<std::uint8_t>(64U << 10U)) << "what was given back is not there again";
  EXPECT_FALSE(comm.allocate<double>(UINT64_MAX / 4)) << "more elements than addresses";
}

}  // namespace
