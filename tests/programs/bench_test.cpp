// SPDX-License-Identifier: Apache-2.0
// `topocoll bench` as a process: form of the table, lost ranks, interruption, launchers.
#include <algorithm>
#include <dirent.h>
#include <memory>
#include <programs/program.hpp>
#include <string>
#include <vector>
#include <topocoll/io/json.hpp>

namespace {

std::size_t shared_memory_files() {
  std::size_t n = 0;
  if (DIR* d = ::opendir("/dev/shm")) {
    while (const dirent* e = ::readdir(d))
      if (std::string(e->d_name).find("topocoll") != std::string::npos) ++n;
    ::closedir(d);
  }
  return n;
}

bool alive(pid_t pid) {
  const auto status = topocoll::io::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!status) return false;
  const auto close = status->rfind(')');
  return close != std::string::npos && close + 2 < status->size() && (*status)[close + 2] != 'Z';
}

/// Waits until a long run has its ranks and has printed the head of the table.
std::vector<pid_t> ranks_of(const programs::process& p, std::size_t wanted) {
  const auto until = topocoll::deadline::in({20});
  while (!until.passed()) {
    const auto found = p.children();
    if (found.size() == wanted && p.out().find("(us)") != std::string::npos) return found;
    ::usleep(5000);
  }
  return p.children();
}

const std::vector<std::string> long_run = {"bench", "all_reduce", "--ranks", "4",  "-b",
                                           "1M",    "-e",         "1M",      "-n", "100000000"};

TEST(bench_program, prints_a_table_of_this_form) {
  TOPOCOLL_NEEDS_PROGRAM();
  const auto a = programs::run({"bench", "all_gather", "--ranks", "2", "-b", "1K", "-e", "4K", "-f", "4", "-n", "2"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.err, "");
  std::string text = programs::masked(a.out);
  for (std::size_t at = text.find(" on "); at != std::string::npos; at = text.find(" on ", at + 1)) {
    const auto end = text.find(" device", at);
    text.replace(at, end - at, " on HOST");
  }
  EXPECT_EQ(text,
            "# nThread # nGpus # minBytes # maxBytes # step: #(factor) warmup iters: # iters: # agg iters: # "
            "validation: # graph: #\n"
            "#\n# Using devices\n"
            "#  Rank # Group # Pid # on HOST device  - [any core] host memory\n"
            "#  Rank # Group # Pid # on HOST device  - [any core] host memory\n"
            "#\n#\n"
            "#                                                              out-of-place                       "
            "in-place          \n"
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
            "busbw #wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
            "(GB/s)       \n"
            "# #     float    none      - # # # # # # # # #\n"
            "# #     float    none      - # # # # # # # # #\n"
            "# Out of bounds values : # OK\n"
            "# Avg bus bandwidth    : # \n#\n");
}

TEST(bench_program, ends_soon_and_names_the_rank_that_was_killed) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::size_t before = shared_memory_files();
  for (const std::size_t victim : {0U, 2U}) {
    // The head of the table is there before every rank has entered the first call; a rank that dies that early is said to
    // have died in its start. So the moment moves on until the kill lands inside a call.
    bool inside = false;
    for (const unsigned wait_ms : {20U, 100U, 500U, 2500U}) {
      programs::process p(long_run);
      const auto ranks = ranks_of(p, 4);
      ASSERT_EQ(ranks.size(), 4U) << p.err();
      ::usleep(wait_ms * 1000);
      const auto start = topocoll::steady_clock::now();
      ::kill(ranks[victim], SIGKILL);
      EXPECT_EQ(p.wait(20), 1);
      EXPECT_LT((topocoll::steady_clock::now() - start).value, 5);
      for (const pid_t r : ranks) EXPECT_FALSE(alive(r));
      const std::string err = p.err();
      EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
      EXPECT_NE(err.find("(pid " + std::to_string(ranks[victim]) + " on host "), std::string::npos) << err;
      EXPECT_NE(err.find("killed by signal 9"), std::string::npos) << err;
      inside = err.find("all_reduce of 1 MiB") != std::string::npos;
      if (inside) break;
      EXPECT_NE(err.find("during its start, before the first all_reduce"), std::string::npos) << err;
    }
    EXPECT_TRUE(inside);
  }
  EXPECT_EQ(shared_memory_files(), before);
}

TEST(bench_program, leaves_nothing_behind_when_it_is_interrupted_or_killed) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::size_t before = shared_memory_files();
  for (const int number : {SIGINT, SIGTERM, SIGKILL}) {
    programs::process p(long_run);
    const auto ranks = ranks_of(p, 4);
    ASSERT_EQ(ranks.size(), 4U) << p.err();
    p.signal(number);
    EXPECT_EQ(p.wait(20), 128 + number);
    const auto until = topocoll::deadline::in({5});
    while (!until.passed() && std::any_of(ranks.begin(), ranks.end(), alive)) ::usleep(5000);
    for (const pid_t r : ranks) EXPECT_FALSE(alive(r)) << number;
  }
  EXPECT_EQ(shared_memory_files(), before);
}

TEST(bench_program, joins_by_shared_memory_under_a_launcher) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::vector<std::string> args = {"bench", "all_reduce", "-b", "8", "-e", "8K", "-f", "32", "-n", "2"};
  std::vector<std::unique_ptr<programs::process>> ranks;
  for (int r = 0; r < 3; ++r)
    ranks.push_back(std::make_unique<programs::process>(
        args,
        std::vector<std::string>{"RANK=" + std::to_string(r), "WORLD_SIZE=3", "LOCAL_RANK=" + std::to_string(r),
                                 "LOCAL_WORLD_SIZE=3", "TORCHELASTIC_RUN_ID=test-" + std::to_string(::getpid())}));
  for (auto& p : ranks) EXPECT_EQ(p->wait(60), 0) << p->err();
  const std::string table = ranks[0]->out();
  for (const char* line : {"#  Rank  0 ", "#  Rank  1 ", "#  Rank  2 "})
    EXPECT_NE(table.find(line), std::string::npos) << table;
  EXPECT_NE(table.find("0 OK"), std::string::npos) << table;
  EXPECT_EQ(ranks[1]->out(), "");
  EXPECT_EQ(ranks[2]->out(), "");
}

TEST(bench_program, says_that_several_hosts_need_a_network) {
  TOPOCOLL_NEEDS_PROGRAM();
  const auto a = programs::run({"bench", "all_reduce", "-b", "8", "-e", "8"},
                               {"RANK=0", "WORLD_SIZE=16", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=8"});
  EXPECT_EQ(a.code, 2);
  EXPECT_NE(a.err.find("network transport"), std::string::npos) << a.err;
}

TEST(bench_program, refuses_launchers_that_contradict_each_other) {
  TOPOCOLL_NEEDS_PROGRAM();
  const auto a = programs::run({"bench", "all_reduce", "-b", "8", "-e", "8"},
                               {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
                                "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"});
  EXPECT_EQ(a.code, 2);
  EXPECT_NE(a.err.find("RANK"), std::string::npos) << a.err;
}

}  // namespace
