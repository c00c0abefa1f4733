// SPDX-License-Identifier: Apache-2.0
// Four threads add up their arrays.
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>

namespace tc = topocoll;

// What rank r does: 1000 elements r, r+1, r+2, … in, their sums over all ranks out.
tc::result<float> last_sum(tc::inproc_transport transport) {
  auto comm = tc::communicator<tc::inproc_transport>::create(std::move(transport));
  if (!comm) return comm.error();
  std::vector<float> mine(1000), sums(1000);
  std::iota(mine.begin(), mine.end(), static_cast<float>(comm->rank().value));
  if (auto done = comm->all_reduce(mine, sums, {.timeout = {10}}); !done) return done.error();
  return sums.back();
}

int main() {
  auto group = tc::make_inproc_group(4);
  if (!group) {
    std::printf("%s\n", group.error().message().c_str());
    return 1;
  }
  std::vector<std::string> said(group->size());
  std::vector<std::thread> threads;
  for (tc::inproc_transport& transport : *group)
    threads.emplace_back([&said, mine = std::move(transport)]() mutable {
      const auto rank = mine.rank().value;
      const auto sum = last_sum(std::move(mine));
      said[rank] = "rank " + std::to_string(rank) + ": " + (sum ? std::to_string(*sum) : sum.error().message());
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& line : said) std::printf("%s\n", line.c_str());
}

// Prints:
// rank 0: 4002.000000
// rank 1: 4002.000000
// rank 2: 4002.000000
// rank 3: 4002.000000
