// SPDX-License-Identifier: Apache-2.0
// Programs written by hand, and what the executor makes of them.
#include <contract/groups.hpp>
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <vector>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/inproc.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using plan::buffer;
using plan::op_kind;

/// All-reduce of two ranks in one step: send all, add what comes.
plan::program one_step(std::uint32_t me) {
  plan::program p;
  p.ranks = 2;
  p.rank = {me};
  p.stages = {"exchange"};
  p.ops = {{op_kind::send, {1 - me}, {buffer::input, 0, 1}, {}, 0},
           {op_kind::receive_reduce, {1 - me}, {buffer::input, 0, 1}, {buffer::output, 0, 1}, 0}};
  p.steps = {{0, 0, 0, 2, {}}};
  return p;
}

/// Runs program(rank) on all ranks of a group of threads, with `input(rank)`; outputs or failures.
template <class Program>
std::vector<std::pair<failure, std::vector<float>>> run_everywhere(std::uint32_t n, std::uint64_t count,
                                                                   Program program, std::uint64_t window = 0) {
  return groups::on_all(make_inproc_group(n).value(), [&](inproc_transport& t) {
    const std::uint32_t me = t.rank().value;
    std::vector<float> in(count), out(count, -1.0F);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(me * 100 + i % 50);
    auto prepared = prepared_program::of(program(me));
    std::pair<failure, std::vector<float>> answer;
    if (!prepared) {
      answer.first = prepared.error();
      return answer;
    }
    executor<host_memory> e;
    call c;
    c.input = reinterpret_cast<const std::byte*>(in.data());
    c.output = reinterpret_cast<std::byte*>(out.data());
    c.count = count;
    c.number = 7;
    c.window = window;
    auto done = e.run(t, *prepared, c, deadline::in(10_s));
    if (!done)
      answer.first = done.error();
    else
      answer.first.what = "fine";
    answer.second = out;
    return answer;
  });
}

TEST(executor, runs_one_step_for_any_count_and_window) {
  for (const std::uint64_t count : {1, 2, 3, 17, 1000, 100'000}) {
    for (const std::uint64_t window : {0, 1, 7, 1'000'000}) {
      if (window == 1 && count > 1000) continue;
      for (const auto& [why, out] : run_everywhere(2, count, one_step, window)) {
        ASSERT_EQ(why.what, "fine");
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], static_cast<float>(100 + 2 * (i % 50))) << i << " of " << count;
      }
    }
  }
}

TEST(executor, goes_on_with_one_channel_while_another_waits) {
  // Channel 0 of rank 1 waits for rank 0, which first wants to hear on channel 1: one order for both would be a
  // deadlock.
  const auto program = [](std::uint32_t me) {
    plan::program p;
    p.ranks = 2;
    p.rank = {me};
    p.chunks = 2;
    p.channels = 2;
    p.scratch_cells = 2;
    if (me == 0) {
      p.ops = {{op_kind::receive, {1}, {}, {buffer::output, 1, 1}, 1},
               {op_kind::send, {1}, {buffer::input, 0, 1}, {}, 0},
               {op_kind::copy, {}, {buffer::input, 0, 1}, {buffer::output, 0, 1}, 0}};
      p.steps = {{1, 0, 0, 1, {}}, {0, 0, 1, 1, {0}}, {0, 0, 2, 1, {}}};
    } else {
      p.ops = {{op_kind::receive, {0}, {}, {buffer::scratch, 1, 1}, 0},
               {op_kind::copy, {}, {buffer::scratch, 1, 1}, {buffer::output, 0, 1}, 0},
               {op_kind::send, {0}, {buffer::input, 1, 1}, {}, 1},
               {op_kind::copy, {}, {buffer::input, 1, 1}, {buffer::output, 1, 1}, 1}};
      p.steps = {{0, 0, 0, 1, {}}, {0, 0, 1, 1, {0}}, {1, 0, 2, 2, {}}};
    }
    return p;
  };
  for (const std::uint64_t count : {1, 2, 5, 1001}) {
    for (const auto& [why, out] : run_everywhere(2, count, program)) {
      ASSERT_EQ(why.what, "fine");
      const std::uint64_t half = (count + 1) / 2;  // first chunk from rank 0, second from rank 1
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], static_cast<float>((i < half ? 0 : 100) + i % 50)) << i << " of " << count;
    }
  }
}

TEST(executor, reduces_locally_and_starts_steps_only_after_those_they_wait_for) {
  const auto program = [](std::uint32_t) {
    plan::program p;  // one rank: output := input; output += input; output += output copy in scratch
    p.scratch_cells = 1;
    p.channels = 3;
    p.ops = {{op_kind::copy, {}, {buffer::input, 0, 1}, {buffer::output, 0, 1}, 0},
             {op_kind::reduce, {}, {buffer::input, 0, 1}, {buffer::output, 0, 1}, 0},
             {op_kind::copy, {}, {buffer::output, 0, 1}, {buffer::scratch, 0, 1}, 0},
             {op_kind::reduce, {}, {buffer::scratch, 0, 1}, {buffer::output, 0, 1}, 0}};
    // Channels in an order that would be wrong without `after`.
    p.steps = {{2, 0, 0, 1, {}}, {1, 0, 1, 1, {0}}, {0, 0, 2, 1, {1}}, {1, 0, 3, 1, {2, 0}}};
    return p;
  };
  const auto answers = run_everywhere(1, 10, program);
  ASSERT_EQ(answers[0].first.what, "fine");
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(answers[0].second[i], static_cast<float>(4 * i));
}

TEST(executor, says_where_it_stood_when_a_peer_was_lost) {
  const auto answers = groups::on_all(make_inproc_group(2).value(), [](inproc_transport& t) -> std::string {
    if (t.rank().value == 1) return "";
    auto prepared = prepared_program::of(one_step(0)).value();
    executor<host_memory> e;
    std::vector<float> x(10);
    call c;
    c.input = c.output = reinterpret_cast<std::byte*>(x.data());
    c.count = 10;
    c.number = 5123;
    return e.run(t, prepared, c, deadline::in(10_s)).error().what;
  });
  EXPECT_NE(answers[0].find("rank 1 "), std::string::npos) << answers[0];
  EXPECT_NE(answers[0].find("step 1 of 1 'exchange', all_reduce call 5123"), std::string::npos) << answers[0];
}

TEST(executor, refuses_a_program_for_another_rank_or_too_many_channels) {
  auto group = make_inproc_group(2, {.channels = 2}).value();
  executor<host_memory> e;
  auto other = prepared_program::of(one_step(1)).value();
  EXPECT_EQ(e.run(group[0], other, {}, deadline::in(1_s)).error().code, errc::invalid_argument);
  auto p = one_step(0);
  p.channels = 3;
  auto many = prepared_program::of(p).value();
  EXPECT_EQ(e.run(group[0], many, {}, deadline::in(1_s)).error().code, errc::unsupported);
}

TEST(prepared_program, refuses_what_would_touch_memory_that_is_not_there) {
  const auto refused = [](auto change, const char* words) {
    plan::program p = one_step(0);
    change(p);
    const auto r = prepared_program::of(p);
    ASSERT_FALSE(r) << words;
    EXPECT_EQ(r.error().code, errc::invalid_argument);
    EXPECT_NE(r.error().what.find(words), std::string::npos) << r.error().what;
  };
  refused([](auto& p) { p.rank = {2}; }, "makes no sense");
  refused([](auto& p) { p.chunks = 0; }, "0 chunks");
  refused([](auto& p) { p.steps[0].channel = 1; }, "channel 1 of 1");
  refused([](auto& p) { p.steps[0].op_count = 3; }, "operations that do not exist");
  refused([](auto& p) { p.steps[0].first_op = 0xffffffffU; }, "operations that do not exist");
  refused([](auto& p) { p.steps[0].after = {0}; }, "waits for step 1");
  refused([](auto& p) { p.ops[0].peer = {0}; }, "exchanges with rank 0");
  refused([](auto& p) { p.ops[0].peer = {2}; }, "exchanges with rank 2");
  refused([](auto& p) { p.ops[0].from.first = 1; }, "reads chunks");
  refused([](auto& p) { p.ops[0].from = {buffer::scratch, 0, 1}; }, "reads chunks");
  refused([](auto& p) { p.ops[1].to.first = 0xffffffffU; }, "writes chunks");
  refused([](auto& p) { p.ops[1].to.where = buffer::input; }, "writes into its input");
  refused([](auto& p) { p.ops[1].to.count = 0; }, "moves 1 chunks into 0");
  refused([](auto& p) { p.ops[0].chunk = 1; }, "chunks that the array does not have");
  refused([](auto& p) { p.ops[0].stride = 0; }, "chunks that the array does not have");
  refused(
      [](auto& p) {
        p.collective = collective_kind::all_gather;
        p.chunks = 2;
        p.ops[0].from = {buffer::input, 1, 1};  // rank 0 has only shard 0
      },
      "reads chunks");
}

/// Notes what is posted and finishes it at once, without touching any memory.
struct noting_transport {
  std::uint32_t ranks;
  std::vector<outgoing>* sent;
  std::vector<incoming>* asked;
  [[nodiscard]] rank_id rank() const { return {0}; }
  [[nodiscard]] std::uint32_t size() const { return ranks; }
  [[nodiscard]] std::uint32_t channels() const { return 8; }
  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    sent->insert(sent->end(), out.begin(), out.end());
    asked->insert(asked->end(), in.begin(), in.end());
    return ticket{};
  }
  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket>, deadline) { return std::size_t{0}; }
  void abort(const std::string&) noexcept {}
};
static_assert(Transport<noting_transport>);

TEST(executor, counts_in_64_bits) {
  // 5 billion floats: address space alone is enough, nothing is touched.
  constexpr std::uint64_t count = 5'000'000'000;
  constexpr std::size_t size = count * 4;
  void* in = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* out = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (in == MAP_FAILED || out == MAP_FAILED) GTEST_SKIP() << "no 40 GB of address space here";
  plan::program p;
  p.ranks = 2;
  p.chunks = 3;
  p.ops = {{op_kind::send, {1}, {buffer::input, 2, 1}, {}, 2},
           {op_kind::receive_reduce, {1}, {buffer::input, 1, 1}, {buffer::output, 1, 1}, 1}};
  p.steps = {{0, 0, 0, 2, {}}};
  auto prepared = prepared_program::of(p).value();
  std::vector<outgoing> sent;
  std::vector<incoming> asked;
  noting_transport t{2, &sent, &asked};
  executor<host_memory> e;
  call c;
  c.input = static_cast<const std::byte*>(in);
  c.output = static_cast<std::byte*>(out);
  c.count = count;
  ASSERT_TRUE(e.run(t, prepared, c, deadline::in(1_s)));
  const std::uint64_t chunk = (count + 2) / 3;
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].data.data() - static_cast<const std::byte*>(in), static_cast<std::ptrdiff_t>(2 * chunk * 4));
  EXPECT_EQ(sent[0].data.size(), (count - 2 * chunk) * 4);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].into.data() - static_cast<const std::byte*>(out), static_cast<std::ptrdiff_t>(chunk * 4));
  EXPECT_EQ(asked[0].into.size(), chunk * 4);
  // In windows of 2^31 elements the last one starts beyond 2^32.
  sent.clear();
  c.window = 1ULL << 31U;
  ASSERT_TRUE(e.run(t, prepared, c, deadline::in(1_s)));
  ASSERT_EQ(sent.size(), 3U);
  const std::uint64_t last = count - 2 * c.window, part = (last + 2) / 3;
  EXPECT_EQ(sent[2].data.data() - static_cast<const std::byte*>(in),
            static_cast<std::ptrdiff_t>((2 * c.window + 2 * part) * 4));
  ::munmap(in, size);
  ::munmap(out, size);
}

TEST(executor, keeps_its_scratch_and_can_be_moved) {
  auto run = [](executor<host_memory>& e, std::uint64_t count) {
    plan::program p;
    p.scratch_cells = 1;
    p.ops = {{op_kind::copy, {}, {buffer::input, 0, 1}, {buffer::scratch, 0, 1}, 0},
             {op_kind::copy, {}, {buffer::scratch, 0, 1}, {buffer::output, 0, 1}, 0}};
    p.steps = {{0, 0, 0, 1, {}}, {0, 0, 1, 1, {0}}};
    auto prepared = prepared_program::of(p).value();
    auto group = make_inproc_group(1).value();
    std::vector<float> in(count, 3.0F), out(count);
    call c;
    c.input = reinterpret_cast<const std::byte*>(in.data());
    c.output = reinterpret_cast<std::byte*>(out.data());
    c.count = count;
    return e.run(group[0], prepared, c, deadline::in(1_s)) && out == in;
  };
  executor<host_memory> a;
  EXPECT_TRUE(run(a, 10));
  EXPECT_TRUE(run(a, 1000));
  executor<host_memory> b = std::move(a);
  EXPECT_TRUE(run(b, 100));
  a = std::move(b);
  EXPECT_TRUE(run(a, 5000));
}

}  // namespace
