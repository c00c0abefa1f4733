// SPDX-License-Identifier: Apache-2.0
// Four processes of this host add up their arrays in shared memory; then one of them dies, and the others know which.
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>

namespace tc = topocoll;

// What each process does; what it gives back reaches the parent.
tc::result<std::string> add_up(tc::shm_transport& transport, bool one_dies) {
  auto comm = tc::communicator<tc::shm_transport>::create(std::move(transport));
  if (!comm) return comm.error();
  std::vector<double> buffer(100'000, comm->rank().value + 1.0);
  if (one_dies && comm->rank().value == 2) ::kill(::getpid(), SIGKILL);
  if (auto done = comm->all_reduce(buffer, {.timeout = {10}}); !done) return done.error();
  return "every element is " + std::to_string(buffer.back());
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
// rank 0: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 3 waited for it [rank 0, agreement on the plan for all_reduce, call 0]
// rank 1: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 3 waited for it [rank 1, agreement on the plan for all_reduce, call 0]
// rank 2: rank 2 (pid 4711) was killed by signal 9 (Killed)
// rank 3: rank 2 (pid 4711 on host h) was killed by signal 9 (Killed) while rank 3 waited for it [rank 3, agreement on the plan for all_reduce, call 0]
