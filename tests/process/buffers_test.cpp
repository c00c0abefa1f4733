// SPDX-License-Identifier: Apache-2.0
// Collectives between processes: on buffers of the library, on private memory, and where the system forbids reading that.
#include <cstddef>
#include <cstdint>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

enum class where { library, ordinary, mixed };

/// "" or what is wrong with one call on small whole numbers, whose sums are exact.
std::string check(communicator<shm_transport>& comm, collective_kind kind, std::uint64_t count, where at) {
  const std::uint32_t n = comm.size(), me = comm.rank().value, root = n - 1;
  const auto value = [&](std::uint32_t r, std::uint64_t i) {
    return static_cast<std::int32_t>((r * 31 + i * 7) % 1001);
  };
  const bool library = at == where::library || (at == where::mixed && me % 2 == 0);
  buffer<std::int32_t> shared_in, shared_out;
  std::vector<std::int32_t> own_in(library ? 0 : count * n), own_out(library ? 0 : count * n);
  if (library) {
    shared_in = comm.allocate<std::int32_t>(count * n).value();
    shared_out = comm.allocate<std::int32_t>(count * n).value();
  }
  std::int32_t* in = library ? shared_in.data() : own_in.data();
  std::int32_t* out = library ? shared_out.data() : own_out.data();
  for (std::uint64_t i = 0; i < count * n; ++i) {
    in[i] = value(me, i);
    out[i] = -1;
  }
  if (auto done = comm.run(kind, {root}, in, out, count, dtype::int32); !done) return done.error().message();
  const auto sum = [&](std::uint64_t i) {
    std::int32_t s = 0;
    for (std::uint32_t r = 0; r < n; ++r) s += value(r, i);
    return s;
  };
  const region part = output_of(kind, me == root);
  const std::uint64_t outs =
      part == region::nothing ? 0
      : kind == collective_kind::all_gather || kind == collective_kind::gather || kind == collective_kind::all_to_all
          ? count * n
          : count;
  for (std::uint64_t i = 0; i < outs; ++i) {
    const auto from = static_cast<std::uint32_t>(i / count);
    std::int32_t want = 0;
    switch (kind) {
      case collective_kind::all_reduce:
      case collective_kind::reduce: want = sum(i); break;
      case collective_kind::reduce_scatter: want = sum(me * count + i); break;
      case collective_kind::broadcast: want = value(root, i); break;
      case collective_kind::scatter: want = value(root, me * count + i); break;
      case collective_kind::all_gather:
      case collective_kind::gather: want = value(from, i % count); break;
      case collective_kind::all_to_all: want = value(from, me * count + i % count); break;
    }
    if (out[i] != want)
      return std::string(to_string(kind)) + " of " + std::to_string(count) + " is wrong at " + std::to_string(i);
  }
  return {};
}

std::string check_all(communicator<shm_transport>& comm) {
  for (std::size_t k = 0; k < collective_count; ++k)
    for (const std::uint64_t count : {3ULL, 500ULL, 9001ULL, 400'003ULL})
      for (const where at : {where::library, where::ordinary, where::mixed})
        if (std::string wrong = check(comm, static_cast<collective_kind>(k), count, at); !wrong.empty()) return wrong;
  return {};
}

void expect_right(const result<std::vector<rank_exit>>& exits) {
  ASSERT_TRUE(exits) << exits.error().message();
  for (const rank_exit& e : *exits) {
    ASSERT_TRUE(e.outcome) << e.outcome.error().message();
    EXPECT_EQ(*e.outcome, "") << "rank " << e.rank.value;
  }
}

TEST(collectives_of_processes, are_right_on_shared_and_on_private_memory) {
  for (const std::uint32_t ranks : {2U, 3U})
    expect_right(run_local_ranks(
        ranks, {},
        [](shm_transport& t) -> result<std::string> {
          auto comm = communicator<shm_transport>::create(std::move(t)).value();
          return check_all(comm);
        },
        deadline::in(60_s)));
}

/// Makes the system refuse process_vm_readv, as containers may.
bool forbid_reads() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1U),  // EPERM
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(collectives_of_processes, are_right_where_one_rank_may_not_read_memory_of_others) {
  const auto exits = run_local_ranks(
      3, {},
      [](shm_transport& t) -> result<std::string> {
        if (t.rank().value == 1 && !forbid_reads()) return std::string("no seccomp here");
        auto comm = communicator<shm_transport>::create(std::move(t)).value();
        return check_all(comm);
      },
      deadline::in(60_s));
  ASSERT_TRUE(exits);
  if ((*exits)[1].outcome && *(*exits)[1].outcome == "no seccomp here") GTEST_SKIP() << "this system has no seccomp";
  expect_right(exits);
}

TEST(collectives_of_processes, are_right_between_strangers_that_have_the_memory_at_different_places) {
  const std::string name = "buffers-" + std::to_string(::getpid());
  std::vector<pid_t> ranks;
  for (std::uint32_t r = 0; r < 3; ++r) {
    ranks.push_back(::fork());
    if (ranks.back() != 0) continue;
    // Moves what is mapped later to another place in each.
    std::vector<std::byte> ballast((std::size_t{r} + 1) << 22U, std::byte{1});
    auto t = join_shm(name, {r}, 3, deadline::in(20_s));
    if (!t) ::_exit(2);
    auto comm = communicator<shm_transport>::create(*std::move(t)).value();
    const std::string wrong = check_all(comm);
    if (!wrong.empty()) (void)!::write(2, wrong.data(), wrong.size());
    ::_exit(wrong.empty() ? 0 : 1);
  }
  for (const pid_t p : ranks) {
    int status = 0;
    ::waitpid(p, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

/// All-reduces on library buffers until something fails; the sentence, and how long that call took.
TEST(killed_rank, is_named_within_two_seconds_on_shared_buffers_of_every_size) {
  for (const std::uint64_t count : {2ULL, 5000ULL, 4'000'000ULL}) {
    const auto exits = run_local_ranks(
        3, {},
        [count](shm_transport& t) -> result<std::string> {
          auto comm = communicator<shm_transport>::create(std::move(t)).value();
          auto x = comm.allocate<float>(count).value();
          for (float& f : x) f = 1;
          for (int k = 0;; ++k) {
            const seconds start = steady_clock::now();
            if (comm.rank().value == 2 && k == 10) ::kill(::getpid(), SIGKILL);
            if (auto done = comm.all_reduce(x, {.op = reduce_op::max, .timeout = 60_s}); !done)
              return std::to_string(static_cast<int>((steady_clock::now() - start).value * 1e3)) + " ms, " +
                     done.error().what;
          }
        },
        deadline::in(30_s));
    ASSERT_TRUE(exits);
    for (const std::uint32_t r : {0U, 1U}) {
      ASSERT_TRUE((*exits)[r].outcome) << (*exits)[r].outcome.error().message();
      const std::string& told = *(*exits)[r].outcome;
      EXPECT_LT(std::stoi(told), 2000) << told;
      EXPECT_NE(told.find("rank 2 (pid " + std::to_string((*exits)[2].pid)), std::string::npos) << told;
      EXPECT_NE(told.find("all_reduce call 11"), std::string::npos) << told;
    }
  }
}

}  // namespace
