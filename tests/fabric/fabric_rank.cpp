// SPDX-License-Identifier: Apache-2.0
// One rank of fabric.py: meets the others over TCP, takes a plan, checks and times an all-reduce over UCX.
//
//   fabric_rank RANK SIZE ADDRESS PORT PLAN BYTES CALLS
//
// Rank 0 prints "<bytes> <seconds of one call>", median over the calls of the slowest rank's time.
// With CALLS "faults" every rank prints "ready" after its first call, makes calls with a limit of one second each until one
// fails, prints "<time of day in seconds> <the failure>" and ends with status 3.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/transport.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/plan/codec.hpp>

namespace tc = topocoll;
using namespace tc::literals;

namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "fabric_rank: %s\n", why.c_str());
  std::exit(1);
}
template <class T>
T must(tc::result<T> r) {
  if (!r) give_up(r.error().message());
  return *std::move(r);
}
void must(const tc::result<void>& r) {
  if (!r) give_up(r.error().message());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) give_up("usage: fabric_rank RANK SIZE ADDRESS PORT PLAN BYTES CALLS");
  tc::bootstrap_options o;
  o.rank = {static_cast<std::uint32_t>(std::atoi(argv[1]))};
  o.size = static_cast<std::uint32_t>(std::atoi(argv[2]));
  o.address = argv[3];
  o.port = static_cast<std::uint16_t>(std::atoi(argv[4]));
  o.token = "a token for a fabric that only this test has";
  o.spans_hosts = true;
  const std::uint64_t count = std::strtoull(argv[6], nullptr, 10) / sizeof(float);
  const bool faults = std::string(argv[7]) == "faults";
  const int calls = std::atoi(argv[7]);

  // [meet]
  auto meeting = must(tc::tcp_bootstrap::form(o, tc::deadline::in(20_s)));
  auto transport = must(tc::connect_ucx(meeting, {}, tc::deadline::in(20_s)));
  std::optional<tc::plan::schedule> plan;
  if (std::string(argv[5]) != "-") {
    std::ifstream file(argv[5]);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    plan = must(tc::plan::schedule_from_json(text, argv[5]));
  }
  // A plan with slices has pieces of its own: nothing is cut further.
  tc::communicator_options options;
  if (plan && plan->slices > 1) options.window = {0};
  auto comm = must(tc::communicator<tc::ucx_transport>::create(std::move(transport), options));
  if (plan) must(comm.adopt(*plan));
  // [/meet]

  std::vector<float> in(count), out(count);
  const float me = static_cast<float>(o.rank.value);
  for (std::uint64_t i = 0; i < count; ++i) in[i] = static_cast<float>(i % 1000) + me;
  for (std::uint64_t call = 0; faults; ++call) {
    if (auto done = comm.all_reduce(in, out, {.timeout = call == 0 ? 20_s : 1_s}); !done) {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      std::printf("%.3f %s\n", static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec),
                  done.error().message().c_str());
      std::fflush(stdout);
      std::_Exit(3);  // the others are not waited for
    }
    if (call == 0) {
      std::puts("ready");
      std::fflush(stdout);
    }
  }
  std::vector<double> times;
  for (int k = -1; k < calls; ++k) {
    must(comm.barrier());
    const tc::seconds start = tc::steady_clock::now();
    must(comm.all_reduce(in, out, {.timeout = 60_s}));
    double took = (tc::steady_clock::now() - start).value;
    std::vector<double> slowest{took};
    must(comm.all_reduce(slowest, slowest, {.op = tc::reduce_op::max}));
    if (k >= 0) times.push_back(slowest[0]);
  }
  const float n = static_cast<float>(o.size);
  for (std::uint64_t i = 0; i < count; ++i)
    if (out[i] != static_cast<float>(i % 1000) * n + n * (n - 1) / 2)
      give_up("rank " + std::to_string(o.rank.value) + " has a wrong sum at " + std::to_string(i));
  std::sort(times.begin(), times.end());
  if (o.rank.value == 0)
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(count * sizeof(float)), times[times.size() / 2]);
  must(comm.barrier());
}
