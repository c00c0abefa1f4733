// SPDX-License-Identifier: Apache-2.0
// Groups made from groups: parts in any order, copies, and what is left when ranks are gone.
#include <contract/groups.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/groups.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

template <class G>
class regrouping : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads>;
TYPED_TEST_SUITE(regrouping, kinds);

template <class C>
std::int32_t sum_of_ranks(C& comm, std::uint32_t mine) {
  std::vector<std::int32_t> x{static_cast<std::int32_t>(mine)};
  auto done = comm.all_reduce(x, {.timeout = 10_s});
  return done ? x[0] : -1;
}

TYPED_TEST(regrouping, makes_a_part_for_each_color_with_its_ranks_in_the_order_of_their_keys) {
  const auto told = groups::on_all(TypeParam::make(5), [](auto& t) -> std::string {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    const std::uint32_t me = comm.rank().value;
    // Even ranks in reverse order, odd ones in that of their ranks, the last in none.
    std::optional<std::uint32_t> color;
    if (me != 4) color = me % 2;
    auto part = split(comm, color, me % 2 == 0 ? -static_cast<std::int64_t>(me) : 0);
    if (!part) return part.error().message();
    if (me == 4) return *part ? "it has a part" : "";
    if (!*part) return "it has no part";
    auto& mine = **part;
    if (mine.size() != 2) return "the part has " + std::to_string(mine.size());
    const std::uint32_t place = me % 2 == 0 ? (me == 2 ? 0 : 1) : (me == 1 ? 0 : 1);
    if (mine.rank().value != place) return "it is rank " + std::to_string(mine.rank().value);
    if (sum_of_ranks(mine, me) != (me % 2 == 0 ? 2 : 4)) return "a wrong sum";
    return sum_of_ranks(mine, 1) == 2 ? "" : "a wrong sum later";
  });
  for (std::size_t r = 0; r < told.size(); ++r) EXPECT_EQ(told[r], "") << r;
}

TYPED_TEST(regrouping, gives_copies_that_do_not_disturb_each_other) {
  const auto told = groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    const std::uint32_t me = comm.rank().value;
    auto copy = duplicate(comm);
    if (!copy) return copy.error().message();
    auto other = duplicate(*copy);
    if (!other) return other.error().message();
    if (copy->rank() != comm.rank() || copy->size() != 3) return "the copy is not the same";
    if (me == 0) copy->abort("only this one");
    if (sum_of_ranks(*copy, me) != -1) return "an aborted copy works";
    if (sum_of_ranks(*other, me) != 3) return "the copy of a copy does not work";
    return sum_of_ranks(comm, me) == 3 ? "" : "the first does not work any more";
  });
  for (std::size_t r = 0; r < told.size(); ++r) EXPECT_EQ(told[r], "") << r;
}

TYPED_TEST(regrouping, goes_on_without_ranks_that_left) {
  const auto told = groups::on_all(TypeParam::make(4), [](auto& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    if (sum_of_ranks(comm, 1) != 4) return "a wrong sum before";
    if (me == 1) return "";
    if (sum_of_ranks(comm, 1) != -1) return "it works without rank 1";
    auto left = shrink(comm);
    if (!left) return left.error().message();
    if (left->size() != 3 || left->rank().value != (me == 0 ? 0 : me - 1)) return "another place than expected";
    if (sum_of_ranks(*left, me) != 5) return "a wrong sum after";
    // And once more.
    if (me == 3) return "";
    if (sum_of_ranks(*left, 1) != -1) return "it works without rank 3";
    auto two = shrink(*left);
    if (!two) return two.error().message();
    return sum_of_ranks(*two, 1) == 2 ? "" : "a wrong sum at last";
  });
  for (std::size_t r = 0; r < told.size(); ++r) EXPECT_EQ(told[r], "") << r;
}

TYPED_TEST(regrouping, leaves_out_ranks_that_do_not_come_and_tells_them) {
  const auto told = groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    if (me == 2) std::this_thread::sleep_for(std::chrono::milliseconds(800));
    auto left = shrink(comm, 0.2_s);
    if (me == 2) return !left && left.error().code == errc::peer_lost ? "" : "it came along";
    if (!left) return left.error().message();
    return left->size() == 2 && sum_of_ranks(*left, 1) == 2 ? "" : "a wrong group";
  });
  for (std::size_t r = 0; r < told.size(); ++r) EXPECT_EQ(told[r], "") << r;
}

}  // namespace
