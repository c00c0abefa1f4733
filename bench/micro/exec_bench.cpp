// SPDX-License-Identifier: Apache-2.0
// What reducing bytes and a round trip between two threads cost.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/reduce.hpp>
#include <benchmark/benchmark.h>

namespace {

namespace tc = topocoll;

// Limit: what memory or the cache that holds three arrays of this size can carry.
template <tc::dtype type>
void reduce_sum(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> a(bytes), b(bytes);
  std::vector<std::byte> into(bytes);
  const std::size_t count = bytes / tc::size_of(type).value;
  for (auto _ : state) {
    tc::reduce_elements(type, tc::reduce_op::sum, into.data(), a.data(), b.data(), count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(reduce_sum<tc::dtype::float32>)->Name("exec/reduce_float/bytes")->Arg(1 << 14)->Arg(1 << 20)->Arg(1 << 26);
BENCHMARK(reduce_sum<tc::dtype::float16>)->Name("exec/reduce_half/bytes")->Arg(1 << 14)->Arg(1 << 20);
BENCHMARK(reduce_sum<tc::dtype::bfloat16>)->Name("exec/reduce_bfloat16/bytes")->Arg(1 << 14)->Arg(1 << 20);
BENCHMARK(reduce_sum<tc::dtype::float8_e4m3>)->Name("exec/reduce_f8e4m3/bytes")->Arg(1 << 14)->Arg(1 << 20);
BENCHMARK(reduce_sum<tc::dtype::float8_e5m2>)->Name("exec/reduce_f8e5m2/bytes")->Arg(1 << 14)->Arg(1 << 20);

// What the limits above and below are to be held against.
void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> a(bytes);
  std::vector<std::byte> into(bytes);
  for (auto _ : state) {
    std::memcpy(into.data(), a.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(copy)->Name("exec/copy/bytes")->Arg(1 << 14)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 26);

// Sources are read once and two outputs are written: bytes per second of one operand. Limit: `copy`, times 2 over the number
// of arrays.
template <tc::dtype type>
void reduce_many(benchmark::State& state) {
  const auto sources = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<std::vector<std::byte>> arrays(sources + 2, std::vector<std::byte>(bytes));
  std::vector<const std::byte*> from;
  for (std::size_t k = 0; k < sources; ++k) from.push_back(arrays[k].data());
  std::byte* const into[] = {arrays[sources].data(), arrays[sources + 1].data()};
  const std::size_t count = bytes / tc::size_of(type).value;
  for (auto _ : state) {
    tc::reduce_many(type, tc::reduce_op::sum, into, from, count, {.streaming_stores = state.range(2) != 0});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}
BENCHMARK(reduce_many<tc::dtype::float32>)
    ->Name("exec/reduce_many_float/sources/bytes/streaming")
    ->ArgsProduct({{2, 8, 64}, {1 << 16, 1 << 22}, {0, 1}})
    ->Args({2, 1 << 26, 0})
    ->Args({2, 1 << 26, 1});
BENCHMARK(reduce_many<tc::dtype::bfloat16>)
    ->Name("exec/reduce_many_bfloat16/sources/bytes/streaming")
    ->ArgsProduct({{2, 8, 64}, {1 << 16}, {0}});

// One all-reduce of two ranks per iteration; the other rank follows in a thread of this benchmark.
void all_reduce_two_threads(benchmark::State& state) {
  using communicator = tc::communicator<tc::inproc_transport>;
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  auto group = tc::make_inproc_group(2).value();
  const std::int64_t stop = -1;
  std::int64_t word = 0;
  std::thread other([&, mine = std::move(group[1])]() mutable {
    auto comm = communicator::create(std::move(mine)).value();
    std::vector<float> buffer(count, 1);
    std::int64_t said = 0;
    while (comm.broadcast(std::span<std::int64_t>(&said, 1), tc::rank_id{0}, {.timeout = {60}}) && said != stop)
      if (!comm.all_reduce(std::span<float>(buffer), {.op = tc::reduce_op::max, .timeout = {60}})) return;
  });
  auto comm = communicator::create(std::move(group[0])).value();
  std::vector<float> buffer(count, 1);
  for (auto _ : state) {
    word = 1;
    if (!comm.broadcast(std::span<std::int64_t>(&word, 1), tc::rank_id{0}, {.timeout = {60}}) ||
        !comm.all_reduce(std::span<float>(buffer), {.op = tc::reduce_op::max, .timeout = {60}})) {
      state.SkipWithError("the other rank is gone");
      break;
    }
  }
  word = stop;
  (void)comm.broadcast(std::span<std::int64_t>(&word, 1), tc::rank_id{0}, {.timeout = {60}});
  other.join();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(all_reduce_two_threads)
    ->Name("exec/broadcast_and_all_reduce_two_threads/bytes")
    ->Arg(8)
    ->Arg(1 << 16)
    ->Arg(1 << 20)
    ->UseRealTime();

}  // namespace
