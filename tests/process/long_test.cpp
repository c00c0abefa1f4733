// SPDX-License-Identifier: Apache-2.0
// What only shows after very many calls or on very long arrays.
#include <contract/groups.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sanitized.hpp>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}
std::uint64_t open_files() {
  std::uint64_t n = 0;
  for (int f = 0; f < 1024; ++f) n += ::access(("/proc/self/fd/" + std::to_string(f)).c_str(), F_OK) == 0 ? 1 : 0;
  return n;
}
std::uint64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word)
    if (word == "MemAvailable:") {
      std::uint64_t kib = 0;
      file >> kib;
      return kib << 10U;
    }
  return 0;
}
void expect_right(const result<std::vector<rank_exit>>& exits) {
  ASSERT_TRUE(exits) << exits.error().message();
  for (const rank_exit& e : *exits) {
    ASSERT_TRUE(e.outcome) << e.outcome.error().message();
    EXPECT_EQ(*e.outcome, "") << "rank " << e.rank.value;
  }
}

// A page of the C library's heap for its own ends, and what the kernel counts late.
constexpr std::uint64_t slack = 256U << 10U;

/// "" or what is wrong.
std::string make_calls(communicator<shm_transport>& comm, int count) {
  std::vector<std::int64_t> x(1);
  for (int i = 0; i < count; ++i) {
    x[0] = i;
    if (auto done = comm.all_reduce(x); !done) return done.error().message();
    if (x[0] != 2LL * i) return "the sum of call " + std::to_string(i) + " is wrong";
  }
  return "";
}

TEST(a_million_small_calls, leak_neither_memory_nor_files) {
  expect_right(run_local_ranks(
      2, {},
      [](shm_transport& t) -> result<std::string> {
        auto comm = communicator<shm_transport>::create(std::move(t)).value();
        if (std::string wrong = make_calls(comm, 10'000); !wrong.empty()) return wrong;
        const std::uint64_t memory = resident_bytes(), files = open_files();
        if (std::string wrong = make_calls(comm, topocoll_test::sanitized ? 20'000 : 1'000'000); !wrong.empty())
          return wrong;
        // What was freed stays in quarantine under a sanitizer, which looks for leaks by itself.
        if (!topocoll_test::sanitized && resident_bytes() > memory + slack)
          return std::to_string(resident_bytes() - memory) + " bytes are gone";
        return open_files() == files ? std::string() : "files are left open";
      },
      deadline::in(100_s)));
}

// Uniform but for marks beside 2^31 and at the ends: what went wrong anywhere is seen by comparing neighbours.
class long_array {
 public:
  explicit long_array(std::uint64_t count) : count_(count) {
    void* at = ::mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
  }
  long_array(const long_array&) = delete;
  long_array& operator=(const long_array&) = delete;
  ~long_array() {
    if (data_ != nullptr) ::munmap(data_, count_);
  }
  std::uint8_t* data() { return data_; }
  void fill(std::uint64_t from, std::uint64_t count, std::uint8_t all, std::uint8_t mark) {
    std::memset(data_ + from, all, count);
    for (const std::uint64_t i : marks(count)) data_[from + i] = mark;
  }
  bool is(std::uint64_t from, std::uint64_t count, std::uint8_t all, std::uint8_t mark) {
    for (const std::uint64_t i : marks(count))
      if (std::exchange(data_[from + i], all) != mark) return false;
    return data_[from] == all && std::memcmp(data_ + from, data_ + from + 1, count - 1) == 0;
  }

 private:
  static std::vector<std::uint64_t> marks(std::uint64_t count) {
    std::vector<std::uint64_t> at{0, count - 1};
    for (const std::uint64_t i : {0x3fffffffULL, 0x40000000ULL, 0x7fffffffULL, 0x80000000ULL})
      if (i < count - 1) at.push_back(i);
    return at;
  }
  std::uint8_t* data_;
  std::uint64_t count_;
};

constexpr std::uint64_t longer_than_int = (1ULL << 31U) + 5;

/// "" or what is wrong.
template <class C>
std::string check_long_calls(C& comm, bool gathers) {
  const auto me = static_cast<std::uint8_t>(comm.rank().value);
  long_array x(longer_than_int + 1);
  if (x.data() == nullptr) return "no memory";
  const call_options patient{.timeout = 120_s};
  x.fill(0, longer_than_int, static_cast<std::uint8_t>(me + 1), static_cast<std::uint8_t>(10 * (me + 1)));
  auto done = comm.all_reduce(x.data(), x.data(), longer_than_int, dtype::uint8, patient);
  if (!done) return done.error().message();
  if (!x.is(0, longer_than_int, 3, 30)) return "all_reduce is wrong";
  if (!gathers) return "";
  const std::uint64_t shard = longer_than_int / 2 + 1;  // all of them have more elements than an int can count
  x.fill(me * shard, shard, static_cast<std::uint8_t>(me + 5), static_cast<std::uint8_t>(me + 50));
  done = comm.all_gather(x.data() + me * shard, x.data(), shard, dtype::uint8, patient);
  if (!done) return done.error().message();
  for (std::uint8_t r = 0; r < 2; ++r)
    if (!x.is(r * shard, shard, static_cast<std::uint8_t>(r + 5), static_cast<std::uint8_t>(r + 50)))
      return "all_gather is wrong";
  if (me == 1) x.fill(0, longer_than_int, 77, 78);
  done = comm.broadcast(x.data(), x.data(), longer_than_int, dtype::uint8, rank_id{1}, patient);
  if (!done) return done.error().message();
  return x.is(0, longer_than_int, 77, 78) ? "" : "broadcast is wrong";
}

#define TOPOCOLL_NEEDS_ROOM()                                                      \
  if (topocoll_test::sanitized) GTEST_SKIP() << "shadow memory of so long arrays"; \
  if (available_bytes() < (8ULL << 30U)) GTEST_SKIP() << "needs 8 GiB of memory that nobody else uses"

TEST(arrays_of_more_than_2_to_the_31_elements, are_added_gathered_and_spread_between_processes) {
  TOPOCOLL_NEEDS_ROOM();
  expect_right(run_local_ranks(
      2, {},
      [](shm_transport& t) -> result<std::string> {
        auto comm = communicator<shm_transport>::create(std::move(t)).value();
        return check_long_calls(comm, true);
      },
      deadline::in(110_s)));
}

TEST(arrays_of_more_than_2_to_the_31_elements, are_added_by_messages) {
  TOPOCOLL_NEEDS_ROOM();
  const auto told = groups::on_all(groups::faulty_inproc::make(2), [](auto& t) {
    auto comm =
        communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t), {.window = bytes{64U << 20U}}).value();
    return check_long_calls(comm, false);
  });
  for (const std::string& wrong : told) EXPECT_EQ(wrong, "");
}

}  // namespace
