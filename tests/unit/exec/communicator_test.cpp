// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <contract/groups.hpp>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

using communicator_here = communicator<inproc_transport>;

/// Alone in its group: enough for everything that is decided before anything moves.
communicator_here alone() { return communicator_here::create(std::move(make_inproc_group(1).value()[0])).value(); }

template <class F>
std::vector<std::string> on_ranks(std::uint32_t n, F f) {
  return groups::on_all(make_inproc_group(n).value(), [&](inproc_transport& t) -> std::string {
    auto comm = communicator_here::create(std::move(t)).value();
    return f(comm);
  });
}
void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r) EXPECT_EQ(answers[r], "") << "rank " << r;
}

TEST(communicator, takes_vectors_spans_and_arrays) {
  expect_no_complaints(on_ranks(2, [](communicator_here& comm) -> std::string {
    const float me = static_cast<float>(comm.rank().value);
    const std::vector<float> in{1 + me, 2 + me};
    std::array<float, 2> out{};
    if (auto ok = comm.all_reduce(in, out); !ok) return ok.error().message();
    if (out[0] != 3 || out[1] != 5) return "all_reduce";
    std::vector<float> all(4);
    if (auto ok = comm.all_gather(std::span<const float>(in), std::span(all)); !ok) return ok.error().message();
    if (all != std::vector<float>{1, 2, 2, 3}) return "all_gather";
    std::array<float, 1> shard{};
    if (auto ok = comm.reduce_scatter(in, shard, {.op = reduce_op::max}); !ok) return ok.error().message();
    if (shard[0] != (comm.rank().value == 0 ? 2.0F : 3.0F)) return "reduce_scatter";
    std::vector<double> word{me};
    if (auto ok = comm.broadcast(word, {1}); !ok) return ok.error().message();
    if (word[0] != 1) return "broadcast";
    std::vector<float> nothing, sum(2);
    if (auto ok = comm.reduce(in, comm.rank().value == 1 ? sum : nothing, {1}); !ok) return ok.error().message();
    if (comm.rank().value == 1 && sum != std::vector<float>{3, 5}) return "reduce";
    std::vector<float> swapped(2);
    if (auto ok = comm.all_to_all(in, swapped); !ok) return ok.error().message();
    if (swapped != (comm.rank().value == 0 ? std::vector<float>{1, 2} : std::vector<float>{2, 3})) return "all_to_all";
    std::vector<half> halves{half{0x3c00}};  // 1.0
    if (auto ok = comm.all_reduce(halves, {.op = reduce_op::avg}); !ok) return ok.error().message();
    return halves[0].bits == 0x3c00 ? "" : "avg of halves";
  }));
}

TEST(communicator, refuses_sizes_that_do_not_belong_together) {
  auto comm = alone();
  std::vector<float> three(3), four(4);
  EXPECT_EQ(comm.all_reduce(three, four).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.all_gather(three, four).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.reduce_scatter(four, three).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.reduce(four, three, {0}).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.all_to_all(four, three).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.broadcast(four, {1}).error().code, errc::invalid_argument);
  EXPECT_NE(comm.all_reduce(three, four).error().what.find("3 elements in and 4 out"), std::string::npos);
  EXPECT_EQ(comm.calls(), 0U) << "a refused call does not count: the rank can still make the right one";
  EXPECT_TRUE(comm.all_reduce(four));
  EXPECT_EQ(comm.calls(), 1U);
}

TEST(communicator, refuses_null_and_absurd_counts) {
  auto comm = alone();
  float x = 0;
  EXPECT_EQ(comm.all_reduce(nullptr, &x, 1, dtype::float32).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.all_reduce(&x, nullptr, 1, dtype::float32).error().code, errc::invalid_argument);
  EXPECT_EQ(comm.all_reduce(&x, &x, UINT64_MAX / 2, dtype::float32).error().code, errc::invalid_argument);
  EXPECT_TRUE(comm.all_reduce(nullptr, nullptr, 0, dtype::float32));
}

TEST(check_buffers, knows_what_in_place_means_for_each_collective) {
  using detail::check_buffers;
  std::vector<float> m(64);
  const auto at = [&](std::size_t i) { return static_cast<const void*>(m.data() + i); };
  const auto ok = [&](collective_kind k, std::uint32_t rank, std::size_t in, std::size_t out) {
    return static_cast<bool>(check_buffers(k, rank, 4, 0, at(in), at(out), 4, dtype::float32));
  };
  EXPECT_TRUE(ok(collective_kind::all_reduce, 1, 0, 0));
  EXPECT_TRUE(ok(collective_kind::all_reduce, 1, 0, 4));
  EXPECT_FALSE(ok(collective_kind::all_reduce, 1, 0, 3));
  EXPECT_FALSE(ok(collective_kind::all_reduce, 1, 3, 0));
  EXPECT_TRUE(ok(collective_kind::all_gather, 2, 8, 0));  // shard 2 of 16 elements from 0
  EXPECT_FALSE(ok(collective_kind::all_gather, 1, 8, 0));
  EXPECT_TRUE(ok(collective_kind::all_gather, 1, 16, 0));
  EXPECT_TRUE(ok(collective_kind::reduce_scatter, 3, 0, 12));
  EXPECT_FALSE(ok(collective_kind::reduce_scatter, 3, 0, 0));
  EXPECT_FALSE(ok(collective_kind::all_to_all, 0, 0, 0));
  EXPECT_TRUE(ok(collective_kind::reduce, 1, 0, 2)) << "not the root: its output is not used";
  EXPECT_FALSE(ok(collective_kind::reduce, 0, 0, 2));
  EXPECT_TRUE(ok(collective_kind::broadcast, 1, 0, 2)) << "not the root: its input is not used";
}

TEST(communicator, breaks_when_a_rank_does_not_come_and_says_who) {
  const auto answers = on_ranks(3, [](communicator_here& comm) -> std::string {
    std::vector<float> x(10);
    if (auto ok = comm.all_reduce(x); !ok) return ok.error().message();
    if (comm.rank().value == 2) {
      const deadline until = deadline::in(0.6_s);
      while (!until.passed()) std::this_thread::yield();
    } else {
      auto late = comm.all_reduce(x, {.timeout = 0.2_s});
      if (late || late.error().code != errc::timed_out) return "not timed out";
      if (late.error().what.find("rank 2") == std::string::npos) return late.error().what;
    }
    auto after = comm.all_reduce(x);
    return !after && after.error().code == errc::timed_out ? "" : "the group is not broken";
  });
  expect_no_complaints(answers);
}

TEST(communicator, stays_whole_when_a_plan_is_refused) {
  expect_no_complaints(on_ranks(3, [](communicator_here& comm) -> std::string {
    auto plan = plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value();
    if (comm.rank().value == 1) plan.ranks = 4;
    auto taken = comm.adopt(plan);
    if (taken) return "adopted";
    if (taken.error().code != (comm.rank().value == 1 ? errc::invalid_argument : errc::mismatch))
      return taken.error().message();
    if (comm.rank().value != 1 &&
        taken.error().what.find("rank 1 has another plan for all_reduce than ranks 0, 2") == std::string::npos)
      return taken.error().what;
    std::vector<std::int32_t> x(5, 1);
    if (auto ok = comm.all_reduce(x); !ok) return ok.error().message();
    return x[4] == 3 ? "" : "wrong sum";
  }));
}

TEST(communicator, refuses_a_plan_that_does_not_compute_its_collective) {
  expect_no_complaints(on_ranks(3, [](communicator_here& comm) -> std::string {
    auto plan = plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value();
    plan.stages[0].kind = plan::stage_kind::reduce_scatter;  // and nothing gathers
    auto taken = comm.adopt(plan);
    if (taken) return "adopted";
    return taken.error().what.find("rank 0 has no value") != std::string::npos ? "" : taken.error().message();
  }));
}

TEST(communicator, can_be_aborted_from_another_thread) {
  expect_no_complaints(on_ranks(2, [](communicator_here& comm) -> std::string {
    if (comm.rank().value == 1) {
      std::thread other([&] { comm.abort("enough"); });
      other.join();
      return "";
    }
    auto waited = comm.barrier();
    if (waited) return "it succeeded";
    return waited.error().code == errc::aborted && waited.error().what.find("enough") != std::string::npos
               ? ""
               : waited.error().message();
  }));
}

TEST(choose_flat, gives_a_plan_that_exists_for_every_collective_size_and_number_of_ranks) {
  for (int k = 0; k <= static_cast<int>(collective_kind::all_to_all); ++k)
    for (const std::uint32_t n : {1U, 2U, 3U, 8U, 17U, 64U})
      for (std::uint64_t size = 1; size < (1ULL << 40U); size *= 4) {
        const auto kind = static_cast<collective_kind>(k);
        const flat_choice c = choose_flat(kind, n, {size});
        EXPECT_TRUE(plan::flat_schedule(kind, n, {}, c.how, {.slices = c.slices}))
            << to_string(kind) << " " << n << " " << size;
      }
}

TEST(call_tag, tells_a_call_in_words) {
  const std::uint64_t tag = detail::make_tag(
      {.number = 12, .collective = collective_kind::reduce, .type = dtype::bfloat16, .op = reduce_op::avg, .root = 3});
  const std::string words = detail::describe_tag(tag);
  EXPECT_NE(words.find("call 12, reduce of bfloat16 (avg), root 3"), std::string::npos) << words;
  EXPECT_EQ(detail::describe_tag(0x1234), "tag 0x0000000000001234");
}

TEST(call_tag, differs_when_anything_about_the_call_differs) {
  const detail::call_identity base{.number = 5,
                                   .collective = collective_kind::broadcast,
                                   .type = dtype::float32,
                                   .op = reduce_op::sum,
                                   .root = 1,
                                   .count = 100,
                                   .digest = 77};
  const std::uint64_t tag = detail::make_tag(base);
  auto other = base;
  other.number = 6;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).part = detail::call_identity::step::agreement;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).collective = collective_kind::reduce;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).type = dtype::int32;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).op = reduce_op::max;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).root = 2;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).count = 101;
  EXPECT_NE(detail::make_tag(other), tag);
  (other = base).digest = 78;
  EXPECT_NE(detail::make_tag(other), tag);
}

}  // namespace
