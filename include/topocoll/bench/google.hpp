// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives between threads as benchmarks of Google Benchmark, one per size. Opt-in: needs Google Benchmark.
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/row.hpp>
#include <topocoll/bench/sweep.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>
#include <benchmark/benchmark.h>

namespace topocoll { inline namespace v0 { namespace bench {

/// Registers "exec/<collective>/<type>/<bytes>/<ranks>" for every size of the configuration.
///
/// Ranks are threads of this process. The time of an iteration is that of one call out of place, by the configuration's
/// average; counters: `busbw` in bytes per second, `wrong` elements. A failure becomes an error of the benchmark.
template <class = void>
void register_sweep(const sweep_config& config, std::uint32_t ranks) {
  for (const bytes size : sizes(config.range)) {
    const std::string name = "exec/" + std::string(topocoll::to_string(config.collective)) + '/' +
                             std::string(topocoll::to_string(config.type)) + '/' + std::to_string(size.value) + '/' +
                             std::to_string(ranks);
    benchmark::RegisterBenchmark(name.c_str(), [config, size, ranks](benchmark::State& state) {
      sweep_config one = config;
      one.range = {size, size, 2, {1}};
      row last;
      last.ranks = ranks;
      while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(one.iterations))) {
        auto group = make_inproc_group(ranks);
        if (!group) return state.SkipWithError(group.error().what.c_str());
        std::vector<result<row>> rows(ranks, fail(errc::bug, "this rank did not run"));
        std::vector<std::thread> threads;
        for (std::uint32_t r = 0; r < ranks; ++r)
          threads.emplace_back([&, r] {
            rows[r] = [&]() -> result<row> {
              auto comm = communicator<inproc_transport>::create(std::move((*group)[r]));
              if (!comm) return std::move(comm).error();
              sweep<inproc_transport> sweep(*comm, one);
              if (auto ready = sweep.prepare(); !ready) return std::move(ready).error();
              return sweep.measure(size);
            }();
          });
        for (std::thread& t : threads) t.join();
        if (!rows[0]) return state.SkipWithError(rows[0].error().what.c_str());
        last = *rows[0];
        state.SetIterationTime(last.out_of_place.time.value * static_cast<double>(one.iterations));
      }
      state.counters["busbw"] = benchmark::Counter(last.busbw(last.out_of_place).value);
      state.counters["wrong"] = benchmark::Counter(static_cast<double>(last.out_of_place.wrong.value_or(0)));
    })->UseManualTime();
  }
}

}}}  // namespace topocoll::v0::bench
