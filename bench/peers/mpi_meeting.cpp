// SPDX-License-Identifier: Apache-2.0
// Ranks of mpirun meet by MPI, and add up their arrays by topocoll: shared memory inside a host, UCX between hosts.
//
//   mpicxx.openmpi -std=c++20 -O2 -I include bench/peers/mpi_meeting.cpp -lucp -lucs -o meeting && mpirun.openmpi -np 4 meeting
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mpi.h>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/mixed.hpp>
#include <topocoll/exec/bootstrap_lent.hpp>
#include <topocoll/exec/communicator.hpp>

namespace tc = topocoll;

// [gather]
tc::result<void> gather_by_mpi(std::span<const std::byte> mine, std::span<std::byte> all, tc::deadline until) {
  const int size = static_cast<int>(mine.size());
  MPI_Request request;
  int status = MPI_Iallgather(mine.data(), size, MPI_BYTE, all.data(), size, MPI_BYTE, MPI_COMM_WORLD, &request);
  for (int done = 0; status == MPI_SUCCESS && !done; status = MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    if (until.passed()) {  // MPI cannot cancel a collective, which goes on using this memory: the job has to end
      std::fprintf(stderr, "not all ranks of MPI_COMM_WORLD came in time\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  if (status == MPI_SUCCESS) return {};
  return tc::fail(tc::errc::system, "MPI_Iallgather failed", "look at what MPI says on the standard error");
}
// [/gather]

tc::result<std::string> add_up() {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // [meet]
  auto meeting = tc::lent_bootstrap<decltype(&gather_by_mpi)>::make({static_cast<std::uint32_t>(rank)},
                                                                    static_cast<std::uint32_t>(size), &gather_by_mpi);
  if (!meeting) return meeting.error();
  auto transport = tc::connect_mixed(*meeting, {}, tc::deadline::in({20}));
  if (!transport) return transport.error();
  auto comm = tc::communicator<tc::mixed_ucx_transport>::create(*std::move(transport));
  // [/meet]
  if (!comm) return comm.error();
  std::vector<float> x(1000, static_cast<float>(rank + 1));
  if (auto done = comm->all_reduce(x, {.timeout = {10}}); !done) return done.error();
  if (auto done = comm->barrier(); !done) return done.error();
  return "the sum is " + std::to_string(x.back());
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto said = add_up();
  std::printf("%s\n", said ? said->c_str() : said.error().message().c_str());
  MPI_Finalize();
  return said ? 0 : 1;
}
