// SPDX-License-Identifier: Apache-2.0
// Collectives of topocoll between processes of one host, timed by measure.hpp.
//
//   bench_ours_coll --op all_reduce,broadcast --min 8 --max 268435456 --ranks 2 --buffers private --rewrite 0
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <topocoll/exec/shm.hpp>
#include "measure.hpp"

namespace {

namespace tc = topocoll;
using communicator = tc::communicator<tc::shm_transport>;

/// Where the buffers of a rank come from; the one place to change.
float* buffer_of(communicator& comm, std::uint64_t count, bool library) {
  if (!library) return bench::private_buffer(count);
  static std::vector<tc::buffer<float>> kept;
  auto given = comm.allocate<float>(count);
  if (!given) bench::give_up(given.error().message());
  kept.push_back(*std::move(given));
  return kept.back().data();
}

class topocoll_library {
 public:
  topocoll_library(communicator comm, bool own_buffers) : comm_(std::move(comm)), own_buffers_(own_buffers) {}
  static std::string name() { return "topocoll"; }
  static bool has(bench::operation /*op*/) { return true; }
  float* allocate(std::uint64_t count) { return buffer_of(comm_, count, own_buffers_); }
  void barrier() { must(comm_.barrier()); }
  void run(const bench::shape& s, const float* in, float* out) {
    using bench::operation;
    constexpr auto type = tc::dtype::float32;
    switch (s.op) {
      case operation::all_reduce: return must(comm_.all_reduce(in, out, s.count, type));
      case operation::reduce_scatter: return must(comm_.reduce_scatter(in, out, s.shard, type));
      case operation::all_gather: return must(comm_.all_gather(in, out, s.shard, type));
      case operation::broadcast: return must(comm_.broadcast(out, out, s.count, type, tc::rank_id{0}));
      case operation::all_to_all: return must(comm_.all_to_all(in, out, s.shard, type));
    }
  }

 private:
  static void must(const tc::result<void>& done) {
    if (!done) bench::give_up(done.error().message());
  }
  communicator comm_;
  bool own_buffers_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::options o = bench::parse(argc, argv);
  bench::meeting all = bench::meeting::before_fork(o.ranks);
  const auto body = [&](tc::shm_transport& transport) -> tc::result<std::string> {
    const std::uint32_t rank = transport.rank().value;
    bench::pin(rank, o.ranks);
    all.take(rank);
    auto comm = communicator::create(std::move(transport));
    if (!comm) return comm.error();
    topocoll_library library(*std::move(comm), o.library_buffers);
    bench::measure(library, all, o);
    return std::string();
  };
  const auto ended = tc::run_local_ranks(o.ranks, {}, body, tc::deadline::in({3600}));
  if (!ended) bench::give_up(ended.error().message());
  for (const tc::rank_exit& e : *ended)
    if (!e.good()) bench::give_up("rank " + std::to_string(e.rank.value) + ": " + e.outcome.error().message());
  return 0;
}
