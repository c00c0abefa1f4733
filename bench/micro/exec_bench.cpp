// SPDX-License-Identifier: Apache-2.0
// What reducing bytes and a round trip between two threads cost.
#include <cstddef>
#include <cstdint>
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
