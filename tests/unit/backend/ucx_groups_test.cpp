// SPDX-License-Identifier: Apache-2.0
// Parts and copies of groups between hosts.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/mixed.hpp>
#include <topocoll/backend/ucx/transport.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/groups.hpp>
#include <gtest/gtest.h>
#include "rank_process.hpp"

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using rank_processes::told;

deadline far_off() { return deadline::in(60_s); }

ucx_options over_tcp() {
  ucx_options o;
  o.transports = "tcp,self";
  return o;
}

/// Every rank on a host of its own.
struct over_ucx {
  static result<ucx_transport> connect(thread_bootstrap& met) { return connect_ucx(met, over_tcp(), far_off()); }
};
/// Two ranks on each host.
struct over_both {
  static result<mixed_ucx_transport> connect(thread_bootstrap& met) {
    mixed_options o;
    o.between_hosts = over_tcp();
    o.host = "host " + std::to_string(met.rank().value / 2);
    return connect_mixed(met, o, far_off());
  }
};

/// Runs `body(communicator)` for each rank on a thread of its own, and expects no complaint of any.
template <class Way, class Body>
void on_all(std::uint32_t ranks, Body body) {
  std::vector<thread_bootstrap> boots = thread_bootstrap::make_group(ranks).value();
  std::vector<std::string> answers(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto t = Way::connect(boots[r]);
      if (!t) {
        answers[r] = told(t.error());
        return;
      }
      auto comm = communicator<std::remove_reference_t<decltype(*t)>>::create(*std::move(t));
      answers[r] = comm ? body(*comm) : told(comm.error());
    });
  for (std::thread& t : threads) t.join();
  for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(answers[r], "") << "rank " << r << " of " << ranks;
}

template <class C>
std::int64_t sum(C& comm, std::int64_t mine) {
  std::vector<std::int64_t> x(3000, mine);
  const auto done = comm.all_reduce(x, {.timeout = 20_s});
  return done && x[0] == x[2999] ? x[0] : -1;
}

template <class Way>
class groups_between_hosts : public testing::Test {};
using ways = testing::Types<over_ucx, over_both>;
TYPED_TEST_SUITE(groups_between_hosts, ways);

TYPED_TEST(groups_between_hosts, have_a_part_for_each_color_with_its_ranks_in_the_order_of_their_keys) {
  on_all<TypeParam>(6, [](auto& comm) -> std::string {
    const std::uint32_t me = comm.rank().value;
    // Ranks 0, 2 and 4 in reverse order, 1 and 3 as they are, 5 in none.
    const std::optional<std::uint32_t> color = me == 5 ? std::nullopt : std::optional(me % 2);
    auto part = split(comm, color, me % 2 == 0 ? -static_cast<std::int64_t>(me) : 0);
    if (!part) return told(part.error());
    if (me == 5) return *part ? "it has a part" : "";
    if (!*part) return "it has no part";
    auto& mine = **part;
    const std::uint32_t place = me % 2 == 0 ? 2 - me / 2 : me / 2;
    if (mine.size() != (me % 2 == 0 ? 3U : 2U)) return "the part has " + std::to_string(mine.size());
    if (mine.rank().value != place) return "it is rank " + std::to_string(mine.rank().value);
    if (sum(mine, me) != (me % 2 == 0 ? 6 : 4)) return "a wrong sum";
    return sum(mine, 1) == (me % 2 == 0 ? 3 : 2) ? "" : "a wrong sum later";
  });
}

TYPED_TEST(groups_between_hosts, have_copies_that_fail_on_their_own) {
  on_all<TypeParam>(4, [](auto& comm) -> std::string {
    const std::uint32_t me = comm.rank().value;
    auto copy = duplicate(comm);
    if (!copy) return told(copy.error());
    auto other = duplicate(*copy);
    if (!other) return told(other.error());
    if (copy->rank() != comm.rank() || copy->size() != 4) return "the copy is not the same";
    if (!comm.barrier()) return "no barrier";  // the others may still meet by messages of the copy
    if (me == 0) copy->abort("only this one");
    if (sum(*copy, me) != -1) return "an aborted copy works";
    if (sum(*other, me) != 6) return "the copy of a copy does not work";
    return sum(comm, me) == 6 ? "" : "the first does not work any more";
  });
}

TYPED_TEST(groups_between_hosts, have_parts_of_one_rank) {
  on_all<TypeParam>(3, [](auto& comm) -> std::string {
    const std::uint32_t me = comm.rank().value;
    auto part = split(comm, me, 0);
    if (!part) return told(part.error());
    return *part && (*part)->size() == 1 && sum(**part, me) == me && sum(comm, 1) == 3 ? "" : "a wrong part";
  });
}

TEST(parts_between_hosts, share_memory_within_a_host_again) {
  on_all<over_both>(6, [](auto& comm) -> std::string {
    const std::uint32_t me = comm.rank().value;
    auto part = split(comm, me < 4 ? 0U : 1U, 0);  // hosts 0 and 1, and host 2
    if (!part) return told(part.error());
    return (*part)->transport().host_ranks().size() == 2 ? "" : "it shares memory with others";
  });
}

TEST(parts_between_hosts, name_a_rank_that_does_not_come) {
  on_all<over_ucx>(3, [](auto& comm) -> std::string {
    if (comm.rank().value == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      return "";
    }
    auto part = split(comm, 0U, 0, {}, 0.2_s);
    if (part) return "it has a part";
    return part.error().what.find("rank 2") != std::string::npos ? ""
                                                                 : "it does not name rank 2: " + told(part.error());
  });
}

}  // namespace
