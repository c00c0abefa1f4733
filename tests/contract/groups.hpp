// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ways to make a group of ranks as threads of a test, and to run something on all of them.
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/faulty.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/shm.hpp>

namespace groups {

using namespace topocoll;

struct inproc {
  using transport = inproc_transport;
  static std::vector<transport> make(std::uint32_t ranks, const group_options& options = {}) {
    return make_inproc_group(ranks, options).value();
  }
};

struct shm_in_threads {
  using transport = shm_transport;
  static std::vector<transport> make(std::uint32_t ranks, const group_options& options = {}) {
    const shm_group group = shm_group::create(ranks, options).value();
    std::vector<transport> all;
    for (std::uint32_t r = 0; r < ranks; ++r) all.push_back(group.attach({r}).value());
    return all;
  }
};

struct faulty_inproc {
  using transport = faulty<inproc_transport>;
  static std::vector<transport> make(std::uint32_t ranks, const group_options& options = {}) {
    std::vector<transport> all;
    for (inproc_transport& t : make_inproc_group(ranks, options).value()) {
      // Every other link is slow by up to 20 us, so that messages of different links overtake each other.
      fault_plan plan{.seed = 17, .links = {}};
      const std::uint32_t me = t.rank().value;
      for (std::uint32_t peer = 0; peer < ranks; ++peer)
        if ((me + peer) % 2 == 1) plan.links.push_back({.from = {me}, .to = {peer}, .longest_delay = {20e-6}});
      all.emplace_back(std::move(t), std::move(plan));
    }
    return all;
  }
};

/// Runs `body(transport)` for every rank on a thread of its own; what they give back, by rank. A transport lives as
/// long as its thread, as in a program.
template <class T, class Body>
auto on_all(std::vector<T> group, Body body) {
  using answer = decltype(body(group[0]));
  std::vector<answer> answers(group.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < group.size(); ++r) {
    threads.emplace_back([&answers, &body, r, mine = std::move(group[r])]() mutable {
      T transport = std::move(mine);
      answers[r] = body(transport);
    });
  }
  for (std::thread& t : threads) t.join();
  return answers;
}

}  // namespace groups
