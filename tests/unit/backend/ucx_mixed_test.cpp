// SPDX-License-Identifier: Apache-2.0
// connect_mixed: ranks are processes or threads of this host that play several; shared memory inside each, UCX over TCP
// on loopback between them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <signal.h>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <unit/backend/rank_process.hpp>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/mixed.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/plan/schedule.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using rank_processes::code_word;
using rank_processes::rank_process;
using rank_processes::told;
using testing::HasSubstr;

const std::vector<std::uint32_t> two_by_two{0, 0, 1, 1};

deadline far_off() { return deadline::in(60_s); }

mixed_options on_host(std::uint32_t host) {
  mixed_options o;
  o.between_hosts.transports = "tcp,self";
  o.host = "host " + std::to_string(host);
  return o;
}

/// Runs `body(transport)` on threads, rank r on host `host_of[r]`; what they give back, by rank.
template <class Body>
std::vector<std::string> on_threads(const std::vector<std::uint32_t>& host_of, Body body) {
  const auto ranks = static_cast<std::uint32_t>(host_of.size());
  std::vector<thread_bootstrap> boots = thread_bootstrap::make_group(ranks).value();
  std::vector<std::string> answers(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto t = connect_mixed(boots[r], on_host(host_of[r]), far_off());
      answers[r] = t ? body(*t) : told(t.error());
    });
  for (std::thread& t : threads) t.join();
  return answers;
}
void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r)
    EXPECT_EQ(answers[r], "") << "rank " << r << " of " << answers.size();
}

/// `options(rank)` for each.
template <class Options, class Body>
std::vector<rank_process> on_processes(std::uint32_t ranks, Options options, Body body) {
  return rank_processes::on_processes(ranks, [&](tcp_bootstrap& met) {
    auto t = connect_mixed(met, options(met.rank().value), far_off());
    return t ? body(*t) : told(t.error());
  });
}
template <class Body>
std::vector<rank_process> on_hosts(const std::vector<std::uint32_t>& host_of, Body body) {
  return on_processes(
      static_cast<std::uint32_t>(host_of.size()), [&](std::uint32_t r) { return on_host(host_of[r]); }, body);
}

std::string wait_for(mixed_ucx_transport& t, const result<ticket>& k, deadline until = far_off()) {
  if (!k) return told(k.error());
  const ticket mine = *k;
  const auto done = t.wait_any({&mine, 1}, until);
  return done ? "" : told(done.error());
}
template <class E>
std::span<std::byte> raw(E& e) {
  return std::as_writable_bytes(std::span(&e, 1));
}

using mixed_communicator = communicator<mixed_ucx_transport>;

std::string check_sums(mixed_communicator& comm, std::initializer_list<std::size_t> counts) {
  const std::uint32_t n = comm.size(), me = comm.rank().value;
  for (const std::size_t count : counts) {
    std::vector<float> x(count), all(n * count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(me + i % 5);
    if (const auto ok = comm.all_gather(x, all); !ok) return told(ok.error());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != static_cast<float>(i / count + i % count % 5)) return "all_gather of " + std::to_string(count);
    if (const auto ok = comm.all_reduce(x); !ok) return told(ok.error());
    for (std::size_t i = 0; i < count; ++i)
      if (x[i] != static_cast<float>(n * (n - 1) / 2 + n * (i % 5))) return "all_reduce of " + std::to_string(count);
  }
  return "";
}

TEST(ucx_mixed_processes, send_over_ucx_only_what_goes_between_hosts) {
  // A ring through 0, 1 | 2, 3: ranks 1 and 3 send to the other host, 0 and 2 within theirs. Each sends 2 (n-1)/n of the
  // buffer; what ranks agree on beforehand is a few hundred bytes.
  auto all = on_hosts(two_by_two, [](mixed_ucx_transport& t) -> std::string {
    if (t.host_ranks().size() != 2) return "this host has " + std::to_string(t.host_ranks().size()) + " ranks";
    auto comm = mixed_communicator::create(std::move(t)).value();
    if (std::string bad = check_sums(comm, {0, 1, 7, 100'003}); !bad.empty()) return bad;
    const auto ring = plan::flat_schedule(collective_kind::all_reduce, 4, {}, plan::algorithm::ring);
    if (!ring) return told(ring.error());
    if (const auto taken = comm.adopt(*ring); !taken) return told(taken.error());
    std::vector<float> x(1U << 20U, 1.0F);
    if (const auto ok = comm.all_reduce(x); !ok) return told(ok.error());
    const mixed_traffic before = comm.transport().sent();
    if (const auto ok = comm.all_reduce(x); !ok) return told(ok.error());
    for (const float f : x)
      if (f != 16.0F) return "wrong sum";
    const mixed_traffic after = comm.transport().sent();
    const std::uint64_t within = after.within_host.value - before.within_host.value,
                        between = after.between_hosts.value - before.between_hosts.value;
    constexpr std::uint64_t share = (4ULL << 20U) / 2 * 3, agreed = 4096;
    const bool crosses = comm.rank().value % 2 == 1;
    if ((crosses ? between : within) >= share && (crosses ? within : between) < agreed) return "";
    return std::to_string(within) + " bytes within the host, " + std::to_string(between) + " between hosts";
  });
  for (rank_process& p : all) EXPECT_EQ(p.answer(), "");
}

TEST(ucx_mixed_processes, find_out_by_themselves_that_they_share_a_host) {
  const auto options = [](std::uint32_t) {
    mixed_options o;
    o.between_hosts.transports = "tcp,self";
    return o;
  };
  auto all = on_processes(3, options, [](mixed_ucx_transport& t) -> std::string {
    if (t.host_ranks() != std::vector<rank_id>{{0}, {1}, {2}}) return "not one host";
    auto comm = mixed_communicator::create(std::move(t)).value();
    if (std::string bad = check_sums(comm, {7, 10'000}); !bad.empty()) return bad;
    return comm.transport().sent().between_hosts.value == 0 ? "" : "something went over UCX";
  });
  for (rank_process& p : all) EXPECT_EQ(p.answer(), "");
}

TEST(ucx_mixed_processes, name_a_rank_that_was_killed_on_all_hosts) {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{3'000'000}}) {
    constexpr std::uint32_t victim = 3;
    auto all = on_hosts(two_by_two, [&](mixed_ucx_transport& t) -> std::string {
      auto comm = mixed_communicator::create(std::move(t)).value();
      std::vector<float> x(elements, 1.0F);
      for (;;) {
        const auto done = comm.all_reduce(x, {.op = reduce_op::max, .timeout = 30_s});
        if (!done) return std::to_string(steady_clock::now().value) + ' ' + told(done.error());
      }
    });
    ::usleep(400'000);  // they have met and are in the middle
    const seconds killed = steady_clock::now();
    ::kill(all[victim].pid(), SIGKILL);
    for (std::uint32_t r = 0; r < all.size(); ++r) {
      const std::string answer = all[r].answer();
      if (r == victim) continue;
      std::istringstream words(answer);
      double at = 0;
      words >> at;
      EXPECT_LT(at - killed.value, 2.0) << answer;
      EXPECT_THAT(answer, HasSubstr(' ' + code_word(errc::peer_lost))) << "rank " << r;
      EXPECT_THAT(answer, HasSubstr("rank 3 (pid " + std::to_string(all[victim].pid()) + " on host ")) << "rank " << r;
    }
  }
}

TEST(ucx_mixed_processes, name_a_killed_rank_that_only_its_own_host_waited_for) {
  // 2 waits for 3 through shared memory, 0 and 1 for 2 and 0: only 2 can notice.
  auto all = on_hosts(two_by_two, [](mixed_ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value, peers[] = {2, 0, 3, 0};
    std::uint32_t word = 0;
    const incoming i{{peers[me]}, 0, 1, raw(word), {}};
    return wait_for(t, t.post({}, {&i, 1}), deadline::in(20_s));
  });
  ::usleep(400'000);
  ::kill(all[3].pid(), SIGKILL);
  std::vector<std::string> answers;
  for (rank_process& p : all) answers.push_back(p.answer());
  for (std::uint32_t r = 0; r < 3; ++r)
    EXPECT_THAT(answers[r], HasSubstr(code_word(errc::peer_lost) + "rank 3 (pid " + std::to_string(all[3].pid())))
        << "rank " << r;
}

TEST(ucx_mixed_processes, name_a_rank_that_is_stopped_and_who_waits_for_whom) {
  auto all = on_hosts(two_by_two, [](mixed_ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value, peers[] = {3, 0, 0, 2};
    if (me == 2) ::raise(SIGSTOP);
    std::uint32_t word = 0;
    const incoming i{{peers[me]}, 0, 1, raw(word), {}};
    return wait_for(t, t.post({}, {&i, 1}), deadline::in(me == 0 ? 0.5_s : 20_s));
  });
  for (const std::uint32_t r : {0U, 1U, 3U}) {
    const std::string answer = all[r].answer();
    EXPECT_EQ(answer.find(code_word(errc::timed_out) + "rank 0 waited "), 0U) << answer;
    EXPECT_THAT(answer, HasSubstr("rank 3, which waits for rank 2: rank 2 (pid " + std::to_string(all[2].pid())));
    EXPECT_THAT(answer, HasSubstr("stopped by a signal"));
  }
  ::kill(all[2].pid(), SIGKILL);
  (void)all[2].answer();
}

TEST(ucx_mixed, computes_on_hosts_that_have_different_numbers_of_ranks) {
  for (const std::vector<std::uint32_t>& hosts : {std::vector<std::uint32_t>{0}, {0, 1}, {0, 0, 0, 1}, {0, 1, 0, 1, 2}})
    expect_no_complaints(on_threads(hosts, [](mixed_ucx_transport& t) {
      auto comm = mixed_communicator::create(std::move(t)).value();
      return check_sums(comm, {0, 1, 7, 1000, 300'001});
    }));
}

TEST(ucx_mixed, tells_ranks_of_all_hosts_what_failed_within_one) {
  const auto answers = on_threads(two_by_two, [](mixed_ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value, peers[] = {1, 2, 3, 2};
    std::uint32_t word = 0, never = 0;
    const outgoing wrong{{2}, 0, 8, raw(word)};
    const incoming expected{{peers[me]}, 0, 7, raw(never), {}};
    return wait_for(t, t.post({&wrong, me == 3 ? 1U : 0U}, {&expected, 1}), deadline::in(20_s));
  });
  for (const std::string& answer : answers) {
    EXPECT_EQ(answer.find(code_word(errc::mismatch) + "rank 3 (pid "), 0U) << answer;
    EXPECT_THAT(answer, HasSubstr(" where rank 2 expected 4 bytes"));
  }
}

TEST(ucx_mixed, is_aborted_for_all_from_any_thread_even_while_its_own_computes) {
  for (const bool in_a_call : {true, false}) {
    const seconds start = steady_clock::now();
    std::atomic<int> told_of{0};
    const auto answers = on_threads(two_by_two, [&](mixed_ucx_transport& t) -> std::string {
      const std::uint32_t me = t.rank().value;
      std::uint32_t word = 0;
      const incoming never{{me == 2 ? 3U : 2U}, 1, 1, raw(word), {}};
      if (me != 2) {
        std::string why = wait_for(t, t.post({}, {&never, 1}), deadline::in(20_s));
        ++told_of;
        return why;
      }
      std::thread watcher([&] {
        ::usleep(100'000);
        t.abort("the disk is full");
      });
      std::string why;
      if (in_a_call) {
        why = wait_for(t, t.post({}, {&never, 1}), deadline::in(20_s));
      } else {
        const deadline until = deadline::in(20_s);
        while (told_of.load() != 3 && !until.passed()) std::this_thread::yield();  // makes no call
        why = wait_for(t, t.post({}, {}));
      }
      watcher.join();
      return why;
    });
    EXPECT_LT((steady_clock::now() - start).value, 1.5);
    for (const std::string& answer : answers)
      EXPECT_EQ(answer, code_word(errc::aborted) + "rank 2 aborted the group: the disk is full");
  }
}

TEST(ucx_mixed, says_whose_memory_cannot_be_shared) {
  auto boots = thread_bootstrap::make_group(3).value();
  std::string answers[3];
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      mixed_options o = on_host(r == 0 ? 0 : 1);
      o.within_host.channels = 4 + r;
      auto t = connect_mixed(boots[r], o, deadline::in(1_s));
      answers[r] = t ? "connected" : told(t.error());
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(answers[2],
              HasSubstr(code_word(errc::mismatch) + "rank 2 does not share memory with all ranks of its host "
                                                    "(1, 2; the following counts them from 0): rank 1 joins "
                                                    "a group of 2 ranks with 6 channels"));
  for (const std::string& answer : answers) EXPECT_NE(answer, "connected");
  EXPECT_THAT(answers[0], HasSubstr("rank "));
}

TEST(ucx_mixed, refuses_what_another_version_tells) {
  const auto place = backend::detail::mixed_place_here("a");
  auto packed = pack(place);
  const auto read = backend::detail::unpack_mixed(packed, 1);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, place.token);
  EXPECT_EQ(read->host, place.host);
  EXPECT_NE(place.host, backend::detail::mixed_place_here("b").host);
  packed[0] ^= std::byte{1};
  for (const std::size_t size : {packed.size(), std::size_t{23}, std::size_t{3}, std::size_t{0}}) {
    const auto refused = backend::detail::unpack_mixed(std::span(packed).first(size), 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::mismatch);
    EXPECT_THAT(refused.error().what, HasSubstr("rank 1 "));
  }
}

}  // namespace
