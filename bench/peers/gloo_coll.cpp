// SPDX-License-Identifier: Apache-2.0
// Collectives of Gloo between processes of one host (TCP on the loopback interface, all that it offers there), timed by
// measure.hpp. Built by compare.py.
//
// Left out: reduce_scatter, which Gloo has in place only, and there without waiting for its sends.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>
#include "measure.hpp"

namespace {

class gloo_library {
 public:
  explicit gloo_library(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}
  static std::string name() { return "Gloo over TCP"; }
  static bool has(bench::operation op) { return op != bench::operation::reduce_scatter; }
  static float* allocate(std::uint64_t count) { return bench::private_buffer(count); }  // it has no allocator
  void barrier() {
    gloo::BarrierOptions o(context_);
    gloo::barrier(o);
  }
  void run(const bench::shape& s, const float* input, float* out) {
    using bench::operation;
    auto* in = const_cast<float*>(input);  // Gloo does not write inputs; its interface does not say so
    switch (s.op) {
      case operation::all_reduce: {
        gloo::AllreduceOptions o(context_);
        o.setInput(in, s.count);
        o.setOutput(out, s.count);
        void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
        o.setReduceFunction(sum);
        gloo::allreduce(o);
        break;
      }
      case operation::all_gather: {
        gloo::AllgatherOptions o(context_);
        o.setInput(in, s.shard);
        o.setOutput(out, s.count);
        gloo::allgather(o);
        break;
      }
      case operation::broadcast: {
        gloo::BroadcastOptions o(context_);
        o.setOutput(out, s.count);
        o.setRoot(0);
        gloo::broadcast(o);
        break;
      }
      case operation::all_to_all: {
        gloo::AlltoallOptions o(context_);
        o.setInput(in, s.count);
        o.setOutput(out, s.count);
        gloo::alltoall(o);
        break;
      }
      case operation::reduce_scatter: break;
    }
  }

 private:
  std::shared_ptr<gloo::Context> context_;
};

void be_rank(std::uint32_t rank, const std::string& folder, bench::meeting& all, const bench::options& o) {
  try {
    bench::pin(rank, o.ranks);  // first: Gloo's own thread inherits it, as ranks that a launcher pins do
    all.take(rank);
    gloo::transport::tcp::attr where("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(o.ranks));
    context->setTimeout(std::chrono::seconds(60));
    context->connectFullMesh(store, device);
    gloo_library library(context);
    bench::measure(library, all, o);
    library.barrier();
  } catch (const std::exception& e) {
    bench::give_up("Gloo, rank " + std::to_string(rank) + ": " + e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options o = bench::parse(argc, argv);
  std::string folder = "/tmp/bench-gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) bench::give_up("no folder " + folder + " can be made for the rendezvous");
  bench::meeting all = bench::meeting::before_fork(o.ranks);
  std::vector<pid_t> ranks(o.ranks);
  for (std::uint32_t r = 0; r < o.ranks; ++r) {
    ranks[r] = fork();
    if (ranks[r] < 0) bench::give_up("a process for rank " + std::to_string(r) + " cannot be made");
    if (ranks[r] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_rank(r, folder, all, o);
    std::fflush(stdout);
    std::_Exit(0);  // its threads need no farewell
  }
  int code = 0;
  for (std::uint32_t left = o.ranks; left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    code = 1;
    for (const pid_t p : ranks)
      if (p != ended) kill(p, SIGKILL);  // they would wait for the one that failed
  }
  std::error_code ignored;  // a folder left behind is no reason to lose the figures
  std::filesystem::remove_all(folder, ignored);
  return code;
}
