// SPDX-License-Identifier: Apache-2.0
// Four processes of this host add up their arrays in shared memory; then one of them dies, and the others know which.
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>

namespace tc = topocoll;

// What each process does; what it gives back reaches the parent.
tc::result<std::string> add_up(tc::shm_transport& transport, bool one_dies) {
  auto comm = tc::communicator<tc::shm_transport>::create(std::move(transport));
  if (!comm) return comm.error();
  // [allocate]
  auto numbers = comm->allocate<double>(100'000);  // memory that all ranks see; any other works too, but is slower
  if (!numbers) return numbers.error();
  for (double& x : *numbers) x = comm->rank().value + 1.0;
  // [/allocate]
  if (one_dies && comm->rank().value == 2) ::kill(::getpid(), SIGKILL);
  if (auto done = comm->all_reduce(*numbers, {.timeout = {10}}); !done) return done.error();
  return "every element is " + std::to_string((*numbers)[0]);
}

int main() {
  for (const bool one_dies : {false, true}) {
    const auto ends = tc::run_local_ranks(
        4, {}, [&](tc::shm_transport& t) { return add_up(t, one_dies); }, tc::deadline::in({20}));
    if (!ends) {
      std::printf("%s\n", ends.error().message().c_str());
      return 1;
    }
    for (const tc::rank_exit& end : *ends)
      std::printf("rank %u: %s\n", end.rank.value,
                  end.outcome ? end.outcome->c_str() : end.outcome.error().what.c_str());
  }
}

// Prints, with other process numbers:
// rank 0: every element is 10.000000
// rank 1: every element is 10.000000
// rank 2: every element is 10.000000
// rank 3: every element is 10.000000
// rank 0: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 1 waited for it [rank 0, all_reduce call 1, step 0 (announcements)]
// rank 1: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 1 waited for it [rank 1, all_reduce call 1, step 0 (announcements)]
// rank 2: rank 2 (pid 4711) was killed by signal 9 (Killed)
// rank 3: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 1 waited for it [rank 3, all_reduce call 1, step 0 (announcements)]
