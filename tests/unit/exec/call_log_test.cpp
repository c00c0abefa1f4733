// SPDX-License-Identifier: Apache-2.0
// The log of a rank: what it says of a rank that lives, waits, computes, fails.
#include <chrono>
#include <contract/groups.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/exec/call_log.hpp>
#include <topocoll/exec/call_queue.hpp>
#include <topocoll/exec/communicator.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

class scratch_folder {
 public:
  scratch_folder() {
    char name[] = "/tmp/topocoll-log-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~scratch_folder() {
    for (const std::string& f : files_) ::unlink(f.c_str());
    ::rmdir(path_.c_str());
  }
  std::string file(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
int count_with(const std::vector<std::string>& lines, std::string_view text) {
  int n = 0;
  for (const std::string& l : lines) n += l.find(text) != std::string::npos ? 1 : 0;
  return n;
}
void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(call_log, says_who_waits_in_which_call_and_who_is_in_none) {
  scratch_folder folder;
  for (const char* r : {"0", "1"}) (void)folder.file(std::string("rank") + r + ".log");
  const auto told = groups::on_all(groups::inproc::make(2), [&](inproc_transport& t) -> std::string {
    const rank_id me = t.rank();
    auto log = call_log::open(me, 2, {.path = folder.path() + "/rank%r.log", .period = 0.05_s});
    if (!log) return log.error().message();
    logged comm(communicator<inproc_transport>::create(std::move(t)).value(), *std::move(log));
    std::vector<float> x(1000, 1);
    if (auto done = comm.barrier(); !done) return done.error().message();
    if (me.value == 1) pause(400);  // it computes
    auto done = comm.all_reduce(x);
    if (!done) return done.error().message();
    return x[0] == 2 ? "" : "a wrong sum";
  });
  for (const std::string& t : told) EXPECT_EQ(t, "");
  const auto zero = lines_of(folder.path() + "/rank0.log"), one = lines_of(folder.path() + "/rank1.log");
  EXPECT_GE(count_with(zero, "rank 0 of 2, host "), 4);
  EXPECT_GE(count_with(zero, "alive, in call 2 (all_reduce of 1000 float) for "), 2);
  EXPECT_GE(count_with(one, "alive, no call for "), 2);
  EXPECT_GE(count_with(one, ", last was 1 (barrier)"), 2);
  EXPECT_LT(count_with(one, "in call 2"), count_with(zero, "in call 2"));
  EXPECT_NE(zero.front().find("log begins"), std::string::npos);
  EXPECT_NE(zero.back().find("log ends after 2 calls"), std::string::npos);
  EXPECT_NE(zero.front().find(", pid " + std::to_string(::getpid()) + ":"), std::string::npos);
}

TEST(call_log, stops_without_an_end_when_its_process_is_gone) {
  scratch_folder folder;
  const std::string path = folder.file("dead.log");
  const pid_t child = ::fork();
  if (child == 0) {
    auto log = call_log::open(rank_id{3}, 4, {.path = path, .period = 0.02_s});
    pause(300);
    ::_exit(0);  // as if killed: nothing is tidied up
  }
  ASSERT_GT(child, 0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  const auto lines = lines_of(path);
  EXPECT_GE(count_with(lines, "alive, no call yet for "), 1);
  EXPECT_EQ(count_with(lines, "log ends"), 0);
}

TEST(call_log, tells_failures_and_every_call_only_when_asked) {
  scratch_folder folder;
  for (const bool every : {false, true}) {
    const std::string path = folder.file(every ? "all.log" : "few.log");
    auto group = groups::inproc::make(1);
    logged comm(communicator<inproc_transport>::create(std::move(group[0])).value(),
                call_log::open(rank_id{0}, 1, {.path = path, .period = 100_s, .every_call = every}).value());
    std::vector<double> x(3, 1), y(2);
    EXPECT_TRUE(comm.all_reduce(x));
    EXPECT_FALSE(comm.all_reduce(x, y));
    const auto lines = lines_of(path);
    EXPECT_EQ(count_with(lines, "call 2 (all_reduce of 3 double) failed after "), 1);
    EXPECT_EQ(count_with(lines, "which do not belong together"), 1);
    EXPECT_EQ(count_with(lines, "call 1 (all_reduce of 3 double) begins"), every ? 1 : 0);
    EXPECT_EQ(count_with(lines, "call 1 (all_reduce of 3 double) took "), every ? 1 : 0);
  }
}

TEST(call_log, hears_of_groups_queues_and_messages) {
  scratch_folder folder;
  for (const char* r : {"0", "1"}) (void)folder.file(std::string("rank") + r + ".log");
  const auto told = groups::on_all(groups::inproc::make(2), [&](inproc_transport& t) -> std::string {
    const rank_id me = t.rank();
    logged comm(communicator<inproc_transport>::create(std::move(t)).value(),
                call_log::open(me, 2, {.path = folder.path() + "/rank%r.log", .every_call = true}).value());
    std::vector<int> x(4, 1), z(4, 1), y(200, 1);
    auto sent = me.value == 0 ? comm.send(x, rank_id{1}) : comm.receive(x, rank_id{0});
    if (!sent) return sent.error().message();
    call_group group;
    group.all_reduce(x);
    group.all_reduce(z);
    group.all_reduce(y);
    auto queue = call_queue<decltype(comm)>::create(std::move(comm)).value();
    if (auto done = queue.start(std::move(group)).wait(20_s); !done) return done.error().message();
    return y[0] == 2 ? "" : "a wrong sum";
  });
  for (const std::string& t : told) EXPECT_EQ(t, "");
  const auto lines = lines_of(folder.path() + "/rank0.log");
  EXPECT_EQ(count_with(lines, "call 1 (send to rank 1 of 4 int32) took"), 1);
  EXPECT_EQ(count_with(lines, "call 2 (all_reduce of 8 int32) took"), 1);  // two short ones together
  EXPECT_EQ(count_with(lines, "call 3 (all_reduce of 200 int32) took"), 1);
}

TEST(call_log, does_not_disturb_calls_when_the_disk_is_full) {
  auto group = groups::inproc::make(1);
  auto log = call_log::open(rank_id{0}, 1, {.path = "/dev/full", .every_call = true});
  ASSERT_TRUE(log) << log.error().message();
  logged comm(communicator<inproc_transport>::create(std::move(group[0])).value(), *std::move(log));
  std::vector<int> x(4, 1);
  EXPECT_TRUE(comm.all_reduce(x));
}

TEST(call_log, that_cannot_be_is_refused_in_a_sentence) {
  const auto nowhere = call_log::open(rank_id{0}, 1, {.path = "/no/such/folder/%r.log"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, errc::not_found);
  EXPECT_NE(nowhere.error().what.find("/no/such/folder/0.log"), std::string::npos);
  const auto letter = call_log::open(rank_id{0}, 1, {.path = "a%x"});
  ASSERT_FALSE(letter);
  EXPECT_EQ(letter.error().code, errc::invalid_argument);
  EXPECT_FALSE(call_log::open(rank_id{0}, 1, {.path = "a%"}));
  EXPECT_FALSE(call_log::open(rank_id{0}, 1, {.path = "/dev/null", .period = 0_s}));
}

TEST(call_log_wish, is_read_from_variables_and_wrong_ones_are_named) {
  using variables = std::map<std::string, std::string, std::less<>>;
  const auto wish = [](const variables& v) {
    return call_log_wish([&](std::string_view name) -> std::optional<std::string> {
      const auto at = v.find(name);
      return at == v.end() ? std::nullopt : std::optional(at->second);
    });
  };
  for (const char* off : {"", "off", "0"}) {
    const auto none = wish({{"TOPOCOLL_DEBUG", off}, {"TOPOCOLL_DEBUG_PERIOD", "nonsense"}});
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->has_value()) << off;
  }
  EXPECT_FALSE(wish({}).value().has_value());
  const auto info = wish({{"TOPOCOLL_DEBUG", "info"}}).value();
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->every_call);
  EXPECT_EQ(info->path, call_log_options().path);
  const auto trace =
      wish({{"TOPOCOLL_DEBUG", "trace"}, {"TOPOCOLL_DEBUG_FILE", "/x/%p"}, {"TOPOCOLL_DEBUG_PERIOD", "0.5"}}).value();
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->every_call);
  EXPECT_EQ(trace->path, "/x/%p");
  EXPECT_EQ(trace->period, 0.5_s);
  for (const variables& bad :
       {variables{{"TOPOCOLL_DEBUG", "loud"}}, variables{{"TOPOCOLL_DEBUG", "info"}, {"TOPOCOLL_DEBUG_PERIOD", "1s"}},
        variables{{"TOPOCOLL_DEBUG", "info"}, {"TOPOCOLL_DEBUG_PERIOD", "0"}}}) {
    const auto refused = wish(bad);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::malformed_input);
    EXPECT_NE(refused.error().what.find("TOPOCOLL_DEBUG"), std::string::npos);
  }
}

}  // namespace
