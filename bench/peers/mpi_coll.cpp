// SPDX-License-Identifier: Apache-2.0
// Collectives of an MPI library, timed by measure.hpp. Built by compare.py with the compiler wrapper of each MPI:
//
//   mpicxx.openmpi -std=c++20 -O2 mpi_coll.cpp -o openmpi_coll && mpirun.openmpi -np 2 openmpi_coll --op all_reduce
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <array>
#include <cstdint>
#include <cstdio>
#include <mpi.h>
#include <string>
#include <unistd.h>
#include "measure.hpp"

namespace {

using bench::give_up;

void must(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  give_up(std::string(what) + " failed: " + text.data());
}

class mpi_library {
 public:
  explicit mpi_library(bool own_buffers) : own_buffers_(own_buffers) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  static std::string name() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string line(text.data());
    line = line.substr(0, line.find('\n'));
    std::replace(line.begin(), line.end(), '\t', ' ');
    return line;
  }
  static bool has(bench::operation /*op*/) { return true; }
  [[nodiscard]] float* allocate(std::uint64_t count) const {
    if (!own_buffers_) return bench::private_buffer(count);
    void* memory = nullptr;
    must(MPI_Alloc_mem(static_cast<MPI_Aint>(count * sizeof(float)), MPI_INFO_NULL, &memory), "MPI_Alloc_mem");
    return static_cast<float*>(memory);
  }
  static void barrier() { must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }
  static void run(const bench::shape& s, const float* in, float* out) {
    using bench::operation;
    const int count = static_cast<int>(s.count);
    const int shard = static_cast<int>(s.shard);
    const auto all = MPI_COMM_WORLD;
    switch (s.op) {
      case operation::all_reduce: return must(MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, all), "MPI_Allreduce");
      case operation::reduce_scatter:
        return must(MPI_Reduce_scatter_block(in, out, shard, MPI_FLOAT, MPI_SUM, all), "MPI_Reduce_scatter_block");
      case operation::all_gather:
        return must(MPI_Allgather(in, shard, MPI_FLOAT, out, shard, MPI_FLOAT, all), "MPI_Allgather");
      case operation::broadcast: return must(MPI_Bcast(out, count, MPI_FLOAT, 0, all), "MPI_Bcast");
      case operation::all_to_all:
        return must(MPI_Alltoall(in, shard, MPI_FLOAT, out, shard, MPI_FLOAT, all), "MPI_Alltoall");
    }
  }

 private:
  bool own_buffers_;
};

/// Rank 0 names the file, all map it, then the name is gone.
bench::meeting meet(int rank, int ranks) {
  std::array<char, 64> name{};
  if (rank == 0)
    std::snprintf(name.data(), name.size(), "/dev/shm/bench-peers-%d-%ld", static_cast<int>(geteuid()),
                  static_cast<long>(getpid()));
  if (rank == 0) unlink(name.data());
  must(MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  bench::meeting all =
      bench::meeting::at(name.data(), static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks));
  mpi_library::barrier();
  if (rank == 0) unlink(name.data());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  must(MPI_Init(&argc, &argv), "MPI_Init");
  bench::options o = bench::parse(argc, argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (static_cast<std::uint32_t>(ranks) != o.ranks)
    give_up("the launcher started " + std::to_string(ranks) + " ranks, but --ranks says " + std::to_string(o.ranks));
  bench::pin(static_cast<std::uint32_t>(rank), o.ranks);
  bench::meeting all = meet(rank, ranks);
  mpi_library library(o.library_buffers);
  bench::measure(library, all, o);
  MPI_Finalize();
  return 0;
}
