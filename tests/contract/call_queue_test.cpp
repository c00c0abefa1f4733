// SPDX-License-Identifier: Apache-2.0
// Calls that do not wait, calls that belong together, messages between two ranks.
#include <atomic>
#include <chrono>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/call_group.hpp>
#include <topocoll/exec/call_queue.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/groups.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

template <class G>
class queued_calls : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc, groups::mixed_halves>;
TYPED_TEST_SUITE(queued_calls, kinds);

template <class T>
auto communicator_of(T& t) {
  return communicator<T>::create(std::move(t)).value();
}
template <class T>
auto queue_of(T& t) {
  return call_queue<communicator<T>>::create(communicator_of(t)).value();
}
void expect_none(const std::vector<std::string>& told) {
  for (std::size_t r = 0; r < told.size(); ++r) EXPECT_EQ(told[r], "") << "rank " << r;
}

TYPED_TEST(queued_calls, give_what_calls_that_wait_give) {
  expect_none(groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    const std::uint32_t me = queue.rank().value, n = queue.size();
    constexpr std::size_t count = 1000;
    std::vector<std::int32_t> x(count, static_cast<std::int32_t>(me + 1)), sum(count),
        part(count, static_cast<int>(me)), all(count * n), wide(count * n, static_cast<int>(me + 1)), own(count),
        note(7, me == 1 ? 42 : 0), to(count * n), from(count * n), rooted(count), spread(count);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<int>(me * 100 + i / count);
    std::vector<request> made;
    made.push_back(queue.all_reduce(x, sum));
    made.push_back(queue.all_gather(part, all));
    made.push_back(queue.reduce_scatter(wide, own));
    made.push_back(queue.broadcast(note, rank_id{1}));
    made.push_back(queue.all_to_all(to, from));
    made.push_back(queue.reduce(x, rooted, rank_id{2}));
    made.push_back(queue.barrier());
    made.push_back(queue.scatter(wide, spread, rank_id{0}));
    if (auto done = wait_all(made, 20_s); !done) return done.error().message();
    for (const request& r : made)
      if (!r.done()) return "a request that was waited for is not done";
    if (sum != std::vector<std::int32_t>(count, 6)) return "all_reduce is wrong";
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != static_cast<int>(i / count)) return "all_gather is wrong";
    if (own != std::vector<std::int32_t>(count, 6)) return "reduce_scatter is wrong";
    if (note != std::vector<std::int32_t>(7, 42)) return "broadcast is wrong";
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != static_cast<int>(i / count * 100 + me)) return "all_to_all is wrong";
    if (me == 2 && rooted != std::vector<std::int32_t>(count, 6)) return "reduce is wrong";
    if (spread != std::vector<std::int32_t>(count, 1)) return "scatter is wrong";
    return "";
  }));
}

TYPED_TEST(queued_calls, are_made_in_order_however_many_wait) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    std::vector<std::uint64_t> x{1};
    std::vector<request> made;
    for (int i = 0; i < 50; ++i) made.push_back(queue.all_reduce(x));  // doubles it
    if (auto done = made.back().wait(20_s); !done) return done.error().message();
    if (x[0] != std::uint64_t{1} << 50U) return "it is " + std::to_string(x[0]);
    for (const request& r : made)
      if (!r.done()) return "an earlier call is not done";
    return "";
  }));
}

TYPED_TEST(queued_calls, with_unequal_shards_keep_their_counts) {
  expect_none(groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    const std::uint32_t me = queue.rank().value;
    const std::vector<std::int32_t> mine(me + 1, static_cast<int>(me));
    std::vector<std::int32_t> all(6), sums(me + 1), got(3 * (me + 1));
    const std::vector<std::int32_t> ones(6, 1);
    std::vector<std::int32_t> out(1 + 2 + 3, static_cast<int>(me));
    request gathered, scattered, exchanged;
    {
      std::vector<std::uint64_t> counts{1, 2, 3};
      gathered = queue.all_gather_v(mine, all, counts);
      scattered = queue.reduce_scatter_v(ones, sums, counts);
      const std::vector<std::uint64_t> receives(3, me + 1);
      exchanged = queue.all_to_all_v(out, got, counts, receives);
      counts.assign(3, 77);
    }
    for (const request& r : {gathered, scattered, exchanged})
      if (auto done = r.wait(20_s); !done) return done.error().message();
    if (all != std::vector<std::int32_t>{0, 1, 1, 2, 2, 2}) return "all_gather_v is wrong";
    if (sums != std::vector<std::int32_t>(me + 1, 3)) return "reduce_scatter_v is wrong";
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<int>(i / (me + 1))) return "all_to_all_v is wrong";
    return "";
  }));
}

TYPED_TEST(queued_calls, call_back_once_with_the_outcome_before_or_after_it_is_there) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    std::vector<float> x(64, 1), odd(3);
    std::atomic<int> good{0}, bad{0};
    const auto count = [&](const result<void>& outcome) { ++(outcome ? good : bad); };
    const request first = queue.all_reduce(x);
    first.then(count);
    if (auto done = first.wait(20_s); !done) return done.error().message();
    first.then(count);
    std::vector<float> wrong(2);
    const request second = queue.all_reduce(x, wrong);  // sizes differ: told by this rank alone
    second.then(count);
    auto refused = second.wait(20_s);
    if (refused || refused.error().code != errc::invalid_argument) return "sizes that differ were accepted";
    (void)queue.barrier().wait(20_s);  // callbacks of earlier calls have run
    if (good != 2 || bad != 1) return std::to_string(good) + " good, " + std::to_string(bad) + " bad";
    request().then(count);
    return good == 3 ? "" : "an empty request does not call back";
  }));
}

TYPED_TEST(queued_calls, go_on_when_a_wait_for_them_gives_up) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    const bool late = queue.rank().value == 1;
    std::vector<float> x(8, 1);
    if (late) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const request r = queue.all_reduce(x, {.timeout = 20_s});
    if (!late) {
      auto early = r.wait(0.02_s);
      if (early || early.error().code != errc::timed_out) return "a wait of 20 ms did not give up";
    }
    if (auto done = r.wait(20_s); !done) return done.error().message();
    return x[7] == 2 ? "" : "a wrong sum";
  }));
}

TYPED_TEST(queued_calls, end_soon_when_they_are_aborted_with_all_that_wait_behind) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    if (queue.rank().value == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      queue.abort("enough");
      return "";
    }
    std::vector<float> x(8, 1);
    const std::vector<request> made{queue.all_reduce(x), queue.barrier(), queue.all_reduce(x)};
    const auto began = steady_clock::now();
    for (const request& r : made) {
      auto done = r.wait(20_s);
      if (done) return "a call without the other rank succeeded";
      if (done.error().code != errc::aborted || done.error().what.find("enough") == std::string::npos)
        return done.error().message();
    }
    return (steady_clock::now() - began).value < 5 ? "" : "it took too long";
  }));
}

TYPED_TEST(queued_calls, give_the_communicator_back_when_all_are_made) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto queue = queue_of(t);
    std::vector<int> x(4, 1);
    (void)queue.all_reduce(x);
    auto comm = std::move(queue).take_back();
    if (x != std::vector<int>(4, 2)) return "a call was not made";
    auto done = comm.all_reduce(x, {.timeout = 20_s});
    if (!done) return done.error().message();
    return x == std::vector<int>(4, 4) ? "" : "a wrong sum";
  }));
}

TYPED_TEST(queued_calls, of_a_group_give_what_single_calls_give_small_ones_fused_or_not) {
  expect_none(groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    auto comm = communicator_of(t);
    const std::uint32_t me = comm.rank().value;
    // Lengths around and beyond what is fused, none at all, two types and two operations between them.
    const std::vector<std::size_t> lengths{1, 7, 0, 128, 129, 3, 100000, 4096, 4097, 5, 5};
    std::vector<std::vector<float>> in, out, expected;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      in.emplace_back(lengths[k]);
      for (std::size_t i = 0; i < lengths[k]; ++i)
        in[k][i] = 1.0F / static_cast<float>(1 + (i * 7 + k * 13 + me * 31) % 97);
      out.emplace_back(lengths[k]);
      expected.emplace_back(lengths[k]);
    }
    std::vector<std::int64_t> whole(9, me), middle(2, me + 1);
    call_group group;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      const reduce_op op = k == 9 ? reduce_op::avg : k == 10 ? reduce_op::max : reduce_op::sum;
      group.all_reduce(in[k], out[k], {.op = op, .timeout = 20_s});
      if (k == 4) group.broadcast(middle, rank_id{2});
      if (k == 5) group.all_reduce(whole);
    }
    if (auto done = group.run(comm); !done) return done.error().message();
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      const reduce_op op = k == 9 ? reduce_op::avg : k == 10 ? reduce_op::max : reduce_op::sum;
      auto done = comm.all_reduce(in[k], expected[k], {.op = op, .timeout = 20_s});
      if (!done) return done.error().message();
      for (std::size_t i = 0; i < lengths[k]; ++i)
        if (std::abs(out[k][i] - expected[k][i]) > 1e-6F * std::abs(expected[k][i]))
          return "element " + std::to_string(i) + " of array " + std::to_string(k) + " is wrong";
    }
    if (whole != std::vector<std::int64_t>(9, 3)) return "the sum of another type is wrong";
    if (middle != std::vector<std::int64_t>(2, 3)) return "the broadcast between is wrong";
    // Again, through a queue, as one request.
    call_queue<decltype(comm)> queue = call_queue<decltype(comm)>::create(std::move(comm)).value();
    for (auto& o : out) std::fill(o.begin(), o.end(), 0.0F);
    whole.assign(9, me);
    if (auto done = queue.start(group).wait(20_s); !done) return done.error().message();
    if (out[0][0] != expected[0][0] && std::abs(out[0][0] - expected[0][0]) > 1e-6F) return "wrong the second time";
    return whole == std::vector<std::int64_t>(9, 3) ? "" : "a wrong sum the second time";
  }));
}

TYPED_TEST(queued_calls, that_are_messages_arrive_in_order_and_do_not_wait_for_each_other) {
  expect_none(groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    auto comm = communicator_of(t);
    const std::uint32_t me = comm.rank().value, next = (me + 1) % 3, before = (me + 2) % 3;
    // All send to the next first: with more than any transport keeps, each must wait for its receiver.
    constexpr std::size_t many = 1U << 20U;
    std::vector<std::int32_t> x(many, static_cast<int>(me)), y(many), small_out(3, static_cast<int>(me + 10)),
        small_in(3), sum(5, 1);
    call_group ring;
    ring.send(x, rank_id{next}, 1);
    ring.send(small_out, rank_id{next}, 2);
    ring.all_reduce(sum);
    ring.receive(y, rank_id{before}, 1);
    ring.receive(small_in, rank_id{before}, 2);
    if (auto done = ring.run(comm); !done) return done.error().message();
    if (y != std::vector<std::int32_t>(many, static_cast<int>(before))) return "the long message is wrong";
    if (small_in != std::vector<std::int32_t>(3, static_cast<int>(before + 10))) return "the second message is wrong";
    if (sum != std::vector<std::int32_t>(5, 3)) return "the sum between is wrong";
    // One by one.
    if (me == 0) {
      if (auto sent = send(comm, x, rank_id{2}, 5, {.timeout = 20_s}); !sent) return sent.error().message();
    } else if (me == 2) {
      if (auto got = receive(comm, y, rank_id{0}, 5, {.timeout = 20_s}); !got) return got.error().message();
      if (y != std::vector<std::int32_t>(many, 0)) return "the single message is wrong";
    }
    auto end = comm.barrier({.timeout = 20_s});
    return end ? "" : end.error().message();
  }));
}

TYPED_TEST(queued_calls, that_are_messages_of_another_tag_count_or_type_are_refused_by_the_receiver) {
  for (const int wrong : {0, 1, 2})
    expect_none(groups::on_all(TypeParam::make(2), [wrong](auto& t) -> std::string {
      auto comm = communicator_of(t);
      std::vector<std::int32_t> x(8, 1);
      std::vector<float> f(8, 1);
      if (comm.rank().value == 0) {
        (void)send(comm, x, rank_id{1}, 1, {.timeout = 5_s});
        return "";
      }
      std::vector<std::int32_t> y(wrong == 1 ? 9 : 8);
      auto got = wrong == 2 ? receive(comm, f, rank_id{0}, 1, {.timeout = 5_s})
                            : receive(comm, y, rank_id{0}, wrong == 0 ? 2 : 1, {.timeout = 5_s});
      if (got) return "it was accepted";
      if (got.error().code != errc::mismatch) return "not a mismatch: " + got.error().message();
      if (wrong == 0 && got.error().what.find("tag 1") == std::string::npos) return got.error().what;
      return "";
    }));
}

TYPED_TEST(queued_calls, that_are_messages_nobody_can_get_are_refused_before_anything_moves) {
  expect_none(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto comm = communicator_of(t);
    std::vector<int> x(4, 1);
    for (const std::uint32_t peer : {comm.rank().value, 2U}) {
      auto sent = send(comm, x, rank_id{peer});
      if (sent || sent.error().code != errc::invalid_argument) return "a message to rank " + std::to_string(peer);
    }
    auto done = comm.all_reduce(x, {.timeout = 20_s});
    return done && x[0] == 2 ? "" : "the group is broken afterwards";
  }));
}

TEST(queues, of_duplicates_have_several_calls_under_way_at_a_time) {
  expect_none(groups::on_all(groups::inproc::make(2), [](inproc_transport& t) -> std::string {
    auto comm = communicator<inproc_transport>::create(std::move(t)).value();
    auto copy = duplicate(comm);
    if (!copy) return copy.error().message();
    using queue_type = call_queue<communicator<inproc_transport>>;
    auto one = queue_type::create(std::move(comm)).value(), two = queue_type::create(std::move(*copy)).value();
    std::vector<int> x(8, 1), y(8, 1);
    const bool first = one.rank().value == 0;
    // Each rank begins with another queue: with one call at a time neither would end.
    const request a = first ? one.all_reduce(x) : two.all_reduce(y);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const request b = first ? two.all_reduce(y) : one.all_reduce(x);
    if (auto done = wait_all(std::vector{a, b}, 20_s); !done) return done.error().message();
    return x[0] == 2 && y[0] == 2 ? "" : "a wrong sum";
  }));
}

}  // namespace
