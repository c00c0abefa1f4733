// SPDX-License-Identifier: Apache-2.0
// ucx_transport: ranks are threads, each with a worker of its own, or processes that met over TCP; some of them die,
// stop, leave or differ. All over TCP on loopback, which every machine has.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <signal.h>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <unit/backend/rank_process.hpp>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/transport.hpp>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/communicator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using rank_processes::code_word;
using rank_processes::rank_process;
using rank_processes::told;
using testing::HasSubstr;

ucx_options over_tcp() {
  ucx_options o;
  o.transports = "tcp,self";
  return o;
}
deadline far() { return deadline::in(60_s); }

/// Runs `body(transport)` on threads that are the ranks of a group; what they give back, by rank.
template <class Body>
std::vector<std::string> on_threads(std::uint32_t ranks, const ucx_options& options, Body body) {
  std::vector<thread_bootstrap> boots = thread_bootstrap::make_group(ranks).value();
  std::vector<std::string> answers(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto t = connect_ucx(boots[r], options, far());
      answers[r] = t ? body(*t) : told(t.error());
    });
  for (std::thread& t : threads) t.join();
  return answers;
}
void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r)
    EXPECT_EQ(answers[r], "") << "rank " << r << " of " << answers.size();
}

template <class Body>
std::vector<rank_process> on_processes(std::uint32_t ranks, Body body) {
  return rank_processes::on_processes(ranks, [&](tcp_bootstrap& met) {
    auto t = connect_ucx(met, over_tcp(), far());
    return t ? body(*t) : told(t.error());
  });
}

std::string wait_for(ucx_transport& t, const result<ticket>& k, deadline until = far()) {
  if (!k) return told(k.error());
  const ticket mine = *k;
  const auto done = t.wait_any({&mine, 1}, until);
  return done ? "" : told(done.error());
}
template <class T>
std::span<const std::byte> raw(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}
template <class T>
std::span<std::byte> raw(std::vector<T>& v) {
  return std::as_writable_bytes(std::span(v));
}

constexpr collective_kind all_kinds[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::broadcast,
                                         collective_kind::reduce,         collective_kind::all_to_all,
                                         collective_kind::gather,         collective_kind::scatter};

/// What rank `r` has as element `i`: whole numbers, so that every order of additions gives the same sum.
template <class E>
E own(std::uint32_t r, std::uint64_t i) {
  return static_cast<E>((r * 5 + i * 3 + i / 97) % 16) - 7;
}

/// Runs a collective and compares with what a loop over all ranks computes. A complaint, or nothing.
template <class E>
std::string check(communicator<ucx_transport>& comm, collective_kind kind, std::uint64_t count) {
  const std::uint32_t n = comm.size(), me = comm.rank().value, root = n - 1;
  const bool many_in = kind == collective_kind::reduce_scatter || kind == collective_kind::all_to_all ||
                       (kind == collective_kind::scatter && me == root);
  const bool many_out = kind == collective_kind::all_gather || kind == collective_kind::all_to_all ||
                        (kind == collective_kind::gather && me == root);
  std::vector<E> in((many_in ? n : 1) * count), out((many_out ? n : 1) * count, E{99}), want = out;
  for (std::uint64_t i = 0; i < in.size(); ++i) in[i] = own<E>(me, i);
  const auto sum = [&](std::uint64_t i) {
    E s{};
    for (std::uint32_t r = 0; r < n; ++r) s += own<E>(r, i);
    return s;
  };
  const bool has_output = me == root || (kind != collective_kind::reduce && kind != collective_kind::gather);
  for (std::uint64_t i = 0; i < want.size() && has_output; ++i) {
    const auto from = static_cast<std::uint32_t>(count == 0 ? 0 : i / count);
    switch (kind) {
      case collective_kind::all_gather:
      case collective_kind::gather: want[i] = own<E>(from, i % count); break;
      case collective_kind::all_to_all: want[i] = own<E>(from, me * count + i % count); break;
      case collective_kind::reduce_scatter: want[i] = sum(me * count + i); break;
      case collective_kind::broadcast: want[i] = own<E>(root, i); break;
      case collective_kind::scatter: want[i] = own<E>(root, me * count + i); break;
      default: want[i] = sum(i); break;
    }
  }
  const auto done = comm.run(kind, {root}, in.data(), out.data(), count, dtype_of<E>(), {.op = reduce_op::sum});
  if (!done) return told(done.error());
  if (out == want) return "";
  return std::string(to_string(kind)) + " of " + std::to_string(count) + " elements of " + std::to_string(sizeof(E)) +
         " bytes is wrong";
}
std::string check_all(ucx_transport& t, std::initializer_list<std::uint64_t> counts) {
  auto comm = communicator<ucx_transport>::create(std::move(t)).value();
  for (const collective_kind kind : all_kinds)
    for (const std::uint64_t count : counts) {
      if (const std::string bad = check<float>(comm, kind, count); !bad.empty()) return bad;
      if (const std::string bad = check<double>(comm, kind, count); !bad.empty()) return bad;
    }
  for (const std::uint32_t slices : {2U, 5U}) {
    for (const auto algorithm : {plan::algorithm::ring, plan::algorithm::direct}) {
      const auto plan =
          plan::flat_schedule(collective_kind::all_reduce, comm.size(), {}, algorithm, {.slices = slices});
      if (!plan) return told(plan.error());
      if (const auto taken = comm.adopt(*plan); !taken) return told(taken.error());
      for (const std::uint64_t count : counts)
        if (const std::string bad = check<float>(comm, collective_kind::all_reduce, count); !bad.empty())
          return "adopted: " + bad;
    }
  }
  return "";
}

TEST(ucx_transport_processes, compute_every_collective) {
  for (const std::uint32_t ranks : {2U, 5U}) {
    auto all = on_processes(ranks, [](ucx_transport& t) { return check_all(t, {0, 7, 20'011}); });
    for (rank_process& p : all) EXPECT_EQ(p.answer(), "") << ranks << " ranks";
  }
}

/// All-reduces until one fails. "<time> <code> <sentence>".
std::string reduce_until_it_fails(ucx_transport& t, std::size_t elements, seconds timeout) {
  auto comm = communicator<ucx_transport>::create(std::move(t)).value();
  std::vector<float> x(elements, 1.0F);
  for (;;) {
    const auto done = comm.all_reduce(x, {.op = reduce_op::max, .timeout = timeout});
    if (!done) return std::to_string(steady_clock::now().value) + ' ' + told(done.error());
  }
}

TEST(ucx_transport_processes, name_a_rank_that_was_killed) {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{3'000'000}}) {
    constexpr std::uint32_t ranks = 4, victim = 2;
    auto all = on_processes(ranks, [&](ucx_transport& t) { return reduce_until_it_fails(t, elements, 30_s); });
    ::usleep(400'000);  // they have met and are in the middle
    const seconds killed = steady_clock::now();
    ::kill(all[victim].pid(), SIGKILL);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::string answer = all[r].answer();
      if (r == victim) continue;
      std::istringstream words(answer);
      double at = 0;
      words >> at;
      EXPECT_LT(at - killed.value, 2.0) << answer;
      EXPECT_THAT(answer, HasSubstr(' ' + code_word(errc::peer_lost))) << "rank " << r;
      EXPECT_THAT(answer, HasSubstr("rank 2 (pid " + std::to_string(all[victim].pid()) + " on host ")) << "rank " << r;
    }
  }
}

TEST(ucx_transport_processes, name_a_rank_that_is_stopped_and_get_back_what_was_sent_to_it) {
  auto all = on_processes(3, [](ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    if (me == 1) ::raise(SIGSTOP);
    std::vector<std::byte> much(6U << 20U), back(8);  // within the window, beyond what sockets hold
    const outgoing o{{1}, 0, 1, much};
    const incoming i{{1}, 0, 2, back, {}};
    const seconds start = steady_clock::now();
    const std::string why = wait_for(t, t.post({&o, 1}, {&i, 1}), deadline::in(0.5_s));
    const double took = (steady_clock::now() - start).value;
    return took < 3 ? why : "it took " + std::to_string(took) + " s: " + why;
  });
  for (const std::uint32_t r : {0U, 2U}) {
    const std::string answer = all[r].answer();
    EXPECT_THAT(answer, HasSubstr(code_word(errc::timed_out))) << "rank " << r;
    EXPECT_THAT(answer, HasSubstr("rank 1 (pid " + std::to_string(all[1].pid()))) << "rank " << r;
    EXPECT_THAT(answer, HasSubstr("stopped by a signal")) << "rank " << r;
  }
  ::kill(all[1].pid(), SIGKILL);
  (void)all[1].answer();
}

TEST(ucx_transport_processes, get_what_a_rank_sent_before_it_left) {
  auto all = on_processes(2, [](ucx_transport& t) -> std::string {
    std::vector<std::uint32_t> much(1'000'000);
    if (t.rank().value == 0) {
      for (std::uint32_t i = 0; i < much.size(); ++i) much[i] = i;
      const outgoing o{{1}, 3, 1, raw(std::as_const(much))};
      return wait_for(t, t.post({&o, 1}, {}));
    }
    ::usleep(300'000);  // rank 0 wants to leave by now
    const incoming in{{0}, 3, 1, raw(much), {}};
    if (std::string bad = wait_for(t, t.post({}, {&in, 1})); !bad.empty()) return bad;
    for (std::uint32_t i = 0; i < much.size(); ++i)
      if (much[i] != i) return "wrong at " + std::to_string(i);
    return "";
  });
  for (rank_process& p : all) EXPECT_EQ(p.answer(), "");
}

TEST(ucx_inbox, puts_pieces_in_order_whatever_order_they_come_in) {
  // Not over a network: TCP keeps the order.
  namespace ucx = backend::detail;
  ucx::ucx_group group;
  group.terms.window = 8U << 20U;
  group.places.resize(2);
  ucx::ucx_worker unused;
  for (const bool posted_first : {true, false}) {
    ucx::open_steps steps;
    ucx::ucx_inbox inbox(group, unused, steps);
    std::vector<std::int32_t> sum(4, 100);
    std::vector<std::int32_t> word(1);
    const std::uint32_t step = steps.take(2);
    const auto post = [&] {
      inbox.receive(
          step, {{1}, 6, 1, raw(sum), combine{dtype::int32, reduce_op::sum, reinterpret_cast<std::byte*>(sum.data())}});
      inbox.receive(step, {{1}, 6, 2, raw(word), {}});
    };
    if (posted_first) post();
    std::vector<std::int32_t> sent{1, 2, 3, 4, 5};
    const auto piece = [&](std::uint64_t sequence, std::uint64_t tag, std::uint64_t first, std::uint64_t elements) {
      const ucx::ucx_head head{ucx::ucx_word::piece,    1, 6, 0, sequence, tag, tag == 1 ? 16U : 4U,
                               tag == 1 ? first * 4 : 0};
      EXPECT_FALSE(inbox.arrived(head, raw(sent).data() + first * 4, elements * 4, false));
    };
    piece(3, 2, 4, 1);
    piece(1, 1, 1, 2);
    piece(2, 1, 3, 1);
    EXPECT_EQ(sum[0], 100) << "nothing may be taken before its turn";
    piece(0, 1, 0, 1);
    if (!posted_first) post();
    EXPECT_FALSE(inbox.trouble());
    EXPECT_EQ(sum, (std::vector<std::int32_t>{101, 102, 103, 104}));
    EXPECT_EQ(word[0], 5);
    EXPECT_FALSE(inbox.waits_for(1));
    const ticket done = steps.name_of(step);
    EXPECT_TRUE(steps.finished({&done, 1}));
  }
}

TEST(ucx_transport, computes_every_collective) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U})
    expect_no_complaints(on_threads(ranks, over_tcp(), [](ucx_transport& t) {
      return check_all(t, {0, 1, 7, 1000, 300'001});
    }));
}

TEST(ucx_transport, computes_every_collective_over_whatever_ucx_chooses) {
  expect_no_complaints(on_threads(3, {}, [](ucx_transport& t) { return check_all(t, {0, 1000, 50'001}); }));
}

TEST(ucx_transport, computes_with_the_least_pieces_and_window) {
  ucx_options o = over_tcp();
  o.piece = {100};  // 64, so that no element is split
  o.window = {4096};
  o.channels = 5;
  expect_no_complaints(on_threads(3, o, [](ucx_transport& t) { return check_all(t, {0, 1, 1000}); }));
}

TEST(ucx_transport, connects_as_it_goes_in_groups_that_do_not_connect_at_once) {
  ucx_options o = over_tcp();
  o.connect_at_once = 0;
  expect_no_complaints(on_threads(5, o, [](ucx_transport& t) { return check_all(t, {7, 1000}); }));
}

TEST(ucx_transport, keeps_messages_that_come_before_their_receives) {
  // More than the window holds, on two channels; the receiver takes the second first.
  constexpr std::uint64_t count = 4000;
  ucx_options o = over_tcp();
  o.piece = {4096};
  o.window = {64U << 10U};
  expect_no_complaints(on_threads(2, o, [](ucx_transport& t) -> std::string {
    std::vector<std::uint64_t> values(2 * count);
    std::vector<ticket> open;
    const bool sends = t.rank().value == 0;
    if (!sends) ::usleep(100'000);
    for (const std::uint32_t channel : {sends ? 0U : 1U, sends ? 1U : 0U})
      for (std::uint64_t k = 0; k < count; ++k) {
        const std::uint64_t at = channel * count + k;
        if (sends) values[at] = at * at;
        const outgoing out{{1}, channel, k, std::as_bytes(std::span(&values[at], k % 100 == 7 ? 0 : 1))};
        const incoming in{{0}, channel, k, std::as_writable_bytes(std::span(&values[at], k % 100 == 7 ? 0 : 1)), {}};
        const auto posted = sends ? t.post({&out, 1}, {}) : t.post({}, {&in, 1});
        if (!posted) return told(posted.error());
        open.push_back(*posted);
      }
    while (!open.empty()) {
      const auto done = t.wait_any(open, far());
      if (!done) return told(done.error());
      open[*done] = open.back();
      open.pop_back();
    }
    for (std::uint64_t at = 0; at < values.size(); ++at)
      if (at % count % 100 != 7 && values[at] != at * at) return "message " + std::to_string(at) + " is wrong";
    return "";
  }));
}

TEST(ucx_transport, names_on_all_ranks_the_one_whose_count_differs) {
  const auto answers = on_threads(3, over_tcp(), [](ucx_transport& t) -> std::string {
    auto comm = communicator<ucx_transport>::create(std::move(t)).value();
    std::vector<float> x(comm.rank().value == 1 ? 101 : 100, 1.0F);
    const auto done = comm.all_reduce(x);
    return done ? "it succeeded" : told(done.error());
  });
  for (const std::string& answer : answers) {
    EXPECT_EQ(answer.find(code_word(errc::mismatch)), 0U) << answer;
    EXPECT_THAT(answer, HasSubstr("rank 1"));
  }
}

TEST(ucx_transport, is_aborted_for_all_from_any_thread_even_while_its_own_computes) {
  for (const bool in_a_call : {true, false}) {
    const seconds start = steady_clock::now();
    std::atomic<int> told_of{0};
    const auto answers = on_threads(4, over_tcp(), [&](ucx_transport& t) -> std::string {
      std::uint32_t word = 0;
      const incoming never{{t.rank().value == 0 ? 1U : 0U}, 1, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
      if (t.rank().value != 0) {
        const std::string why = wait_for(t, t.post({}, {&never, 1}), deadline::in(20_s));
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
      EXPECT_EQ(answer, code_word(errc::aborted) + "rank 0 aborted the group: the disk is full");
  }
}

TEST(ucx_transport, names_a_rank_that_is_silent_and_who_waits_for_whom) {
  std::atomic<bool> over{false};
  const auto answers = on_threads(3, over_tcp(), [&](ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    if (me == 0) {
      const deadline until = deadline::in(20_s);
      while (!over.load() && !until.passed()) std::this_thread::yield();
      return "";
    }
    std::uint32_t word = 0;
    const incoming i{{me - 1}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
    const std::string why = wait_for(t, t.post({}, {&i, 1}), deadline::in(me == 2 ? 0.4_s : 20_s));
    over = true;
    return why;
  });
  for (const std::uint32_t r : {1U, 2U}) {
    EXPECT_EQ(answers[r].find(code_word(errc::timed_out) + "rank 2 waited "), 0U) << answers[r];
    EXPECT_THAT(answers[r], HasSubstr("for rank 1, which waits for rank 0: rank 0 (pid " + std::to_string(::getpid())));
  }
}

TEST(ucx_transport, names_whom_each_of_those_waits_for_that_it_waits_for_itself) {
  std::atomic<bool> over{false};
  const auto answers = on_threads(4, over_tcp(), [&](ucx_transport& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    if (me == 1 || me == 3) {
      const deadline until = deadline::in(20_s);
      while (!over.load() && !until.passed()) std::this_thread::yield();
      return "";
    }
    std::uint32_t a = 0, b = 0;
    const incoming in[] = {{{me == 2 ? 3U : 1U}, 0, 1, std::as_writable_bytes(std::span(&a, 1)), {}},
                           {{2}, 0, 1, std::as_writable_bytes(std::span(&b, 1)), {}}};
    const std::string why =
        wait_for(t, t.post({}, std::span(in).first(me == 2 ? 1 : 2)), deadline::in(me == 0 ? 0.3_s : 20_s));
    over = true;
    return why;
  });
  EXPECT_THAT(answers[0], HasSubstr(" for rank 1: rank 1 (pid "));  // silent, which takes a while to find out
  EXPECT_THAT(answers[0], HasSubstr("; rank 2, which waits for rank 3: rank 3 (pid "));
  EXPECT_EQ(answers[2], answers[0]);
}

TEST(ucx_transport, says_who_left) {
  for (const std::uint32_t at_once : {64U, 0U}) {
    ucx_options o = over_tcp();
    o.connect_at_once = at_once;
    const auto answers = on_threads(3, o, [](ucx_transport& t) -> std::string {
      std::uint32_t word = 0;
      const std::uint32_t peer = t.rank().value == 0 ? 1 : 0;
      const outgoing out{{peer}, 0, 1, std::as_bytes(std::span(&word, 1))};
      const incoming in{{peer}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
      if (t.rank().value == 0) {
        const incoming from[] = {in, {{2}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}}};
        return wait_for(t, t.post({}, from));
      }
      return wait_for(t, t.post({&out, 1}, {&in, 1}), deadline::in(20_s));
    });
    EXPECT_EQ(answers[0], "");
    for (const std::uint32_t r : {1U, 2U}) {
      EXPECT_EQ(answers[r].find(code_word(errc::peer_lost) + "rank 0 (pid "), 0U) << answers[r];
      EXPECT_THAT(answers[r], HasSubstr(" left the group while rank "));
    }
  }
}

TEST(ucx_transport, gives_back_the_memory_of_a_send_that_failed) {
  // The sender gives up on a message that fills window and sockets, and overwrites it.
  for (const std::size_t size : {std::size_t{4} << 20U, std::size_t{40} << 20U}) {
    const auto answers = on_threads(2, over_tcp(), [&](ucx_transport& t) -> std::string {
      if (t.rank().value == 1) {
        ::usleep(200'000);  // reads nothing until the other has given up
        std::uint32_t word = 0;
        const incoming i{{0}, 1, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
        return wait_for(t, t.post({}, {&i, 1}));
      }
      std::vector<std::byte> data(size, std::byte{1});
      const outgoing o{{1}, 0, 1, data};
      const incoming never{{1}, 0, 1, std::span(data).first(8), {}};
      const auto k = t.post({&o, 1}, {&never, 1});
      const seconds start = steady_clock::now();
      t.abort("changed my mind");
      const std::string why = wait_for(t, k);
      data.assign(data.size(), std::byte{2});
      return (steady_clock::now() - start).value < 2 ? why : "it took too long: " + why;
    });
    EXPECT_THAT(answers[0], HasSubstr("rank 0 aborted the group: changed my mind"));
    EXPECT_THAT(answers[1], HasSubstr("rank 0"));  // why, or that its connection is gone
  }
}

TEST(ucx_transport, refuses_options_that_no_group_can_have) {
  auto boot = thread_bootstrap::make_group(1).value();
  const auto refused = [&](auto change) {
    ucx_options o;
    change(o);
    const auto t = check_options(o);
    return t ? "taken" : told(t.error());
  };
  const std::string invalid = code_word(errc::invalid_argument);
  EXPECT_EQ(refused([](ucx_options&) {}), "taken");
  EXPECT_THAT(refused([](ucx_options& o) { o.channels = 1; }), HasSubstr(invalid));
  EXPECT_THAT(refused([](ucx_options& o) { o.piece = {63}; }), HasSubstr(invalid));
  EXPECT_THAT(refused([](ucx_options& o) { o.window = {1U << 19U}; }), HasSubstr(invalid));
  EXPECT_THAT(refused([](ucx_options& o) { o.linger = {-1}; }), HasSubstr(invalid));
  ucx_options o;
  o.transports = "pigeon";
  const auto t = connect_ucx(boot[0], o, far());
  ASSERT_FALSE(t);
  EXPECT_THAT(t.error().what, HasSubstr("UCX"));
}

TEST(ucx_transport, names_a_rank_with_other_options) {
  auto boots = thread_bootstrap::make_group(2).value();
  std::string answers[2];
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      ucx_options o = over_tcp();
      o.channels = 8 + r;
      auto t = connect_ucx(boots[r], o, far());
      answers[r] = t ? "connected" : told(t.error());
    });
  for (std::thread& t : threads) t.join();
  for (std::uint32_t r = 0; r < 2; ++r) EXPECT_THAT(answers[r], HasSubstr("has channels")) << "rank " << r;
  EXPECT_EQ(answers[0].find(code_word(errc::mismatch) + "rank 1 has channels 9, this rank has 8"), 0U) << answers[0];
}

}  // namespace
