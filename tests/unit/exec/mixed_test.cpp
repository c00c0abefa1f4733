// SPDX-License-Identifier: Apache-2.0
// mixed_transport beyond the contract that it shares with all transports: ranks are threads, hosts are groups of them.
#include <atomic>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/faulty.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/mixed.hpp>
#include <topocoll/plan/schedule.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using testing::HasSubstr;

using mixed = mixed_transport<inproc_transport, inproc_transport>;
const std::vector<std::uint32_t> two_by_two{0, 0, 1, 1};
const std::vector<std::uint32_t> three_and_one{0, 0, 0, 1};
const std::vector<std::uint32_t> in_turns{0, 1, 0, 1, 2};

deadline far_off() { return deadline::in(60_s); }

template <class T>
std::string wait_for(T& t, const result<ticket>& k, deadline until = far_off()) {
  if (!k) return k.error().what;
  const ticket mine = *k;
  const auto done = t.wait_any({&mine, 1}, until);
  return done ? "" : done.error().what;
}
template <class T>
failure failure_of(T& t, const result<ticket>& k, deadline until = far_off()) {
  if (!k) return k.error();
  const ticket mine = *k;
  const auto done = t.wait_any({&mine, 1}, until);
  return done ? fail(errc::bug, "it succeeded") : done.error();
}
template <class E>
std::span<std::byte> raw(E& e) {
  return std::as_writable_bytes(std::span(&e, 1));
}
void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r) EXPECT_EQ(answers[r], "") << "rank " << r;
}

TEST(mixed, carries_messages_of_both_sides_in_one_step_and_counts_which_way_they_went) {
  for (const auto& hosts : {two_by_two, three_and_one, in_turns}) {
    expect_no_complaints(groups::on_all(groups::mix_inproc(hosts), [&](mixed& t) -> std::string {
      const std::uint32_t me = t.rank().value, n = t.size();
      std::vector<std::vector<std::uint32_t>> sent(n), got(n);
      std::vector<outgoing> out;
      std::vector<incoming> in;
      std::uint64_t within = 0, between = 0;
      for (std::uint32_t peer = 0; peer < n; ++peer) {
        if (peer == me) continue;
        sent[peer].assign(10'000 + me, me * 100 + peer);
        got[peer].assign(10'000 + peer, 0);
        out.push_back({{peer}, 1, me, std::as_bytes(std::span(sent[peer]))});
        in.push_back({{peer}, 1, peer, std::as_writable_bytes(std::span(got[peer])), {}});
        (hosts[peer] == hosts[me] ? within : between) += 4 * sent[peer].size();
      }
      if (std::string bad = wait_for(t, t.post(out, in)); !bad.empty()) return bad;
      for (std::uint32_t peer = 0; peer < n; ++peer)
        if (peer != me && got[peer] != std::vector<std::uint32_t>(10'000 + peer, peer * 100 + me))
          return "wrong from rank " + std::to_string(peer);
      if (t.sent().within_host.value != within) return "wrong count within the host";
      return t.sent().between_hosts.value == between ? "" : "wrong count between hosts";
    }));
  }
}

TEST(mixed, gives_a_ticket_back_when_both_of_its_sides_are_done) {
  for (const std::uint32_t late : {1U, 2U}) {  // who sends its part of the first step last: on either side of rank 0
    expect_no_complaints(groups::on_all(groups::mix_inproc(two_by_two), [&](mixed& t) -> std::string {
      const std::uint32_t me = t.rank().value, soon = 3 - late;
      std::uint32_t word = me + 10, a = 0, b = 0, c = 0;
      if (me == 0) {
        const incoming first[] = {{{1}, 0, 1, raw(a), {}}, {{2}, 0, 1, raw(b), {}}};
        const incoming second{{soon}, 0, 2, raw(c), {}};  // behind the part of the first on its channel
        const auto one = t.post({}, first), two = t.post({}, {&second, 1});
        if (!one || !two) return "not posted";
        const ticket both[] = {*one, *two};
        const auto done = t.wait_any(both, far_off());
        if (!done) return done.error().what;
        if (*done != 1 || c != soon + 10) return "half a step counted as one";
        const outgoing go{{late}, 1, 3, raw(word)};
        if (std::string bad = wait_for(t, t.post({&go, 1}, {})); !bad.empty()) return bad;
        if (std::string bad = wait_for(t, one); !bad.empty()) return bad;
        return a == 11 && b == 12 ? "" : "wrong words";
      }
      if (me == 3) return "";
      if (me == late) {
        const incoming go{{0}, 1, 3, raw(a), {}};
        if (std::string bad = wait_for(t, t.post({}, {&go, 1})); !bad.empty()) return bad;
      }
      const outgoing out[] = {{{0}, 0, 1, raw(word)}, {{0}, 0, 2, raw(word)}};
      return wait_for(t, t.post(std::span(out).first(me == late ? 1 : 2), {}));
    }));
  }
}

TEST(mixed, keeps_the_order_of_each_channel_on_both_sides) {
  // Rank 0 to rank 2 of its host and to rank 1 of another, 400 messages on two channels of each, all in flight at once.
  constexpr std::uint64_t count = 400;
  expect_no_complaints(groups::on_all(groups::mix_inproc({0, 1, 0}), [&](mixed& t) -> std::string {
    const std::uint32_t me = t.rank().value;
    std::vector<std::uint64_t> values(2 * count);
    std::vector<ticket> open;
    for (std::uint64_t k = 0; k < count; ++k) {
      values[2 * k] = values[2 * k + 1] = me == 0 ? k * k : 0;
      std::vector<outgoing> out;
      std::vector<incoming> in;
      for (const std::uint32_t channel : {0U, 1U}) {
        if (me == 0)
          for (const std::uint32_t to : {1U, 2U}) out.push_back({{to}, channel, k, raw(values[2 * k + channel])});
        else
          in.push_back({{0}, channel, k, raw(values[2 * k + channel]), {}});
      }
      const auto posted = t.post(out, in);
      if (!posted) return posted.error().what;
      open.push_back(*posted);
    }
    while (!open.empty()) {
      const auto done = t.wait_any(open, far_off());
      if (!done) return done.error().what;
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(*done));
    }
    for (std::uint64_t i = 0; i < 2 * count; ++i)
      if (values[i] != (i / 2) * (i / 2)) return "message " + std::to_string(i) + " is wrong";
    return "";
  }));
}

/// What all are told when rank `from` sends rank `to` another tag than it expects, and the others wait for rank 0.
std::vector<failure> told_of_a_wrong_tag(const std::vector<std::uint32_t>& hosts, std::uint32_t from,
                                         std::uint32_t to) {
  return groups::on_all(groups::mix_inproc(hosts), [&](mixed& t) -> failure {
    const std::uint32_t me = t.rank().value;
    std::uint32_t word = 0, never = 0;
    const outgoing wrong{{to}, 0, 8, raw(word)};
    const incoming expected{{me == to ? from : me == 0 ? 1U : 0U}, 0, 7, raw(never), {}};
    return failure_of(t, t.post({&wrong, me == from ? 1U : 0U}, {&expected, 1}), deadline::in(20_s));
  });
}

TEST(mixed, tells_ranks_of_all_hosts_what_failed_on_one_side_by_the_ranks_of_the_group) {
  for (const auto& [from, to] : {std::pair{2U, 3U}, std::pair{3U, 1U}}) {  // within a host, and between two
    const auto told = told_of_a_wrong_tag(two_by_two, from, to);
    for (const failure& f : told) {
      EXPECT_EQ(f.code, errc::mismatch) << f.what;
      EXPECT_EQ(f.what.find("rank " + std::to_string(from) + " (pid "), 0U) << f.what;
      EXPECT_THAT(f.what, HasSubstr(" where rank " + std::to_string(to) + " expected 4 bytes"));
      EXPECT_EQ(f.message(), told[0].message());
    }
  }
}

TEST(mixed, names_a_rank_that_left_by_its_number_in_the_group) {
  const auto told = groups::on_all(groups::mix_inproc(in_turns), [](mixed& t) -> failure {
    if (t.rank().value == 3) return {};
    std::uint32_t word = 0;
    const incoming i{{3}, 0, 1, raw(word), {}};
    return failure_of(t, t.post({}, {&i, 1}), deadline::in(20_s));
  });
  for (const std::uint32_t r : {0U, 1U, 2U, 4U}) {
    EXPECT_EQ(told[r].code, errc::peer_lost) << told[r].what;
    EXPECT_EQ(told[r].what.find("rank 3 (pid "), 0U) << told[r].what;
    EXPECT_THAT(told[r].what, HasSubstr(" left the group while rank "));
    EXPECT_EQ(told[r].message(), told[0].message());
  }
}

TEST(mixed, gets_what_a_rank_of_its_host_sent_before_it_left) {
  // The far side hears of the goodbye as well, and must not take it for the end of the near message.
  for (int round = 0; round < 20; ++round)
    expect_no_complaints(groups::on_all(groups::mix_inproc(two_by_two), [](mixed& t) -> std::string {
      const std::uint32_t me = t.rank().value;
      std::uint32_t word = 7, got = 0;
      if (me != 2 && me != 3) return "";
      if (me == 3) {
        const deadline until = deadline::in(0.015_s);  // longer than a rank spins
        while (!until.passed()) std::this_thread::yield();
        const outgoing o{{2}, 0, 1, raw(word)};
        return wait_for(t, t.post({&o, 1}, {}));
      }
      const incoming i{{3}, 0, 1, raw(got), {}};
      if (std::string bad = wait_for(t, t.post({}, {&i, 1})); !bad.empty()) return bad;
      return got == 7 ? "" : "wrong word";
    }));
}

TEST(mixed, names_ranks_of_the_group_that_did_not_answer_in_time_whichever_way_it_waits) {
  // 0 waits for 3 of the other host, which waits for 2 of its own, which is silent.
  std::atomic<bool> over{false};
  const auto told = groups::on_all(groups::mix_inproc(two_by_two), [&](mixed& t) -> failure {
    const std::uint32_t me = t.rank().value;
    if (me == 2) {
      const deadline until = deadline::in(20_s);
      while (!over.load() && !until.passed()) std::this_thread::yield();
      return {};
    }
    std::uint32_t word = 0;
    const incoming i{{me == 3 ? 2U : 3U}, 0, 1, raw(word), {}};
    const failure f = failure_of(t, t.post({}, {&i, 1}), deadline::in(me == 0 ? 0.4_s : 20_s));
    over = true;
    return f;
  });
  for (const std::uint32_t r : {0U, 1U, 3U}) {
    EXPECT_EQ(told[r].code, errc::timed_out) << told[r].what;
    EXPECT_EQ(told[r].what.find("rank 0 waited "), 0U) << told[r].what;
    EXPECT_THAT(told[r].what, HasSubstr(" for rank 3, which waits for rank 2: rank 2 (pid "));
    EXPECT_EQ(told[r].message(), told[0].message());
  }
}

TEST(mixed, names_all_ranks_that_it_waited_for_on_both_sides) {
  std::atomic<bool> over{false};
  const auto told = groups::on_all(groups::mix_inproc({0, 1, 1, 1}), [&](mixed& t) -> std::string {
    if (t.rank().value != 2) {
      const deadline until = deadline::in(20_s);
      while (!over.load() && !until.passed()) std::this_thread::yield();
      return "";
    }
    std::uint32_t a = 0, b = 0;
    const incoming in[] = {{{3}, 0, 1, raw(a), {}}, {{0}, 0, 1, raw(b), {}}};
    std::string why = wait_for(t, t.post({}, in), deadline::in(0.1_s));
    over = true;
    return why;
  });
  EXPECT_EQ(told[2].find("rank 2 waited "), 0U) << told[2];
  EXPECT_THAT(told[2], HasSubstr("for rank 0: rank 0 (pid "));
  EXPECT_THAT(told[2], HasSubstr("; rank 3: rank 3 (pid "));
}

TEST(mixed, leaves_the_core_to_others_in_a_long_wait) {
  const auto told = groups::on_all(groups::mix_inproc(two_by_two), [&](mixed& t) -> std::string {
    std::uint32_t word = 0;
    const std::uint32_t me = t.rank().value;
    const incoming i{{(me + 1) % 4}, 0, 1, raw(word), {}};
    const auto k = t.post({}, {&i, 1});
    std::timespec before{}, after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    (void)wait_for(t, k, deadline::in(0.5_s));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const double busy =
        static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    return busy < 0.25 ? "" : "busy for " + std::to_string(busy) + " s of 0.5";
  });
  expect_no_complaints(told);
}

TEST(mixed, is_aborted_for_all_from_another_thread_while_its_own_waits) {
  const seconds start = steady_clock::now();
  const auto told = groups::on_all(groups::mix_inproc(two_by_two), [](mixed& t) -> failure {
    const std::uint32_t me = t.rank().value;
    std::uint32_t word = 0;
    const incoming never{{me == 3 ? 2U : 3U}, 0, 1, raw(word), {}};
    const auto k = t.post({}, {&never, 1});
    if (me != 2) return failure_of(t, k, deadline::in(20_s));
    std::thread other([&] {
      const deadline until = deadline::in(0.05_s);
      while (!until.passed()) std::this_thread::yield();
      t.abort("the disk is full");
    });
    const failure f = failure_of(t, k, deadline::in(20_s));
    other.join();
    return f;
  });
  EXPECT_LT((steady_clock::now() - start).value, 1.0);
  for (const failure& f : told) {
    EXPECT_EQ(f.code, errc::aborted);
    EXPECT_EQ(f.what, "rank 2 aborted the group: the disk is full");
  }
}

TEST(mixed, passes_on_that_one_side_of_a_rank_died) {
  // The near side of rank 3 goes at its second post; rank 2 then waits for a rank that has left.
  std::vector<inproc_transport> between = make_inproc_group(4).value();
  auto group = groups::mix<faulty<inproc_transport>>(std::move(between), two_by_two, [](std::uint32_t n) {
    std::vector<faulty<inproc_transport>> host;
    for (inproc_transport& t : make_inproc_group(n).value()) {
      fault_plan plan;
      if (t.rank().value == 1) plan.die_at_post = 1;
      host.emplace_back(std::move(t), std::move(plan));
    }
    return host;
  });
  const auto told = groups::on_all(std::move(group), [](auto& t) -> failure {
    const std::uint32_t me = t.rank().value, peer = me ^ 1U;
    for (int step = 0;; ++step) {
      std::uint32_t word = 1, got = 0;
      const outgoing o{{peer}, 0, 1, raw(word)};
      const incoming i{{peer}, 0, 1, raw(got), {}};
      const auto k = t.post({&o, 1}, {&i, 1});
      if (!k) return k.error();
      const ticket mine = *k;
      if (const auto done = t.wait_any({&mine, 1}, deadline::in(20_s)); !done) return done.error();
      if (step == 1000) return fail(errc::bug, "it went on");
    }
  });
  for (const failure& f : told) EXPECT_EQ(f.code, errc::peer_lost) << f.what;
  for (const failure& f : told) EXPECT_EQ(f.what, told[0].what);
}

TEST(mixed, computes_collectives_of_hosts_that_have_different_numbers_of_ranks) {
  for (const auto& hosts : {two_by_two, three_and_one, in_turns}) {
    expect_no_complaints(groups::on_all(groups::mix_inproc(hosts), [](mixed& t) -> std::string {
      auto comm = communicator<mixed>::create(std::move(t)).value();
      const std::uint32_t n = comm.size(), me = comm.rank().value;
      for (const bool adopted : {false, true}) {
        if (adopted) {
          const auto ring =
              plan::flat_schedule(collective_kind::all_reduce, n, {}, plan::algorithm::ring, {.slices = 3});
          if (!ring) return ring.error().what;
          if (const auto taken = comm.adopt(*ring); !taken) return taken.error().what;
        }
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{100'003}}) {
          std::vector<float> x(count), all(n * count);
          for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(me + i % 5);
          if (const auto ok = comm.all_gather(x, all); !ok) return ok.error().what;
          for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i] != static_cast<float>(i / count + i % count % 5))
              return "all_gather of " + std::to_string(count);
          if (const auto ok = comm.all_reduce(x); !ok) return ok.error().what;
          for (std::size_t i = 0; i < count; ++i)
            if (x[i] != static_cast<float>(n * (n - 1) / 2 + n * (i % 5)))
              return "all_reduce of " + std::to_string(count);
        }
      }
      return "";
    }));
  }
}

TEST(mixed, refuses_lists_of_ranks_that_do_not_fit) {
  const auto refused = [](std::vector<rank_id> list) {
    auto within = make_inproc_group(2).value();
    auto between = make_inproc_group(4).value();
    const auto t = mixed::make(std::move(within[1]), std::move(between[2]), std::move(list));
    return t ? "taken" : t.error().code == errc::invalid_argument ? t.error().what : "another code";
  };
  EXPECT_EQ(refused({{0}, {2}}), "taken");
  EXPECT_EQ(refused({{2}}), "rank 2 has a list of 1 ranks of its host, whose group has 2");
  EXPECT_EQ(refused({{2}, {3}}), "rank 2 is rank 3 by its host's list");
  EXPECT_EQ(refused({{2}, {2}}), "the list of ranks of a host names rank 2 twice");
  EXPECT_EQ(refused({{4}, {2}}), "the list of ranks of a host names rank 4, which there is not");
}

TEST(mixed, has_as_many_channels_as_both_sides) {
  auto within = make_inproc_group(1, {.channels = 3}).value();
  auto between = make_inproc_group(1, {.channels = 5}).value();
  EXPECT_EQ(mixed::make(std::move(within[0]), std::move(between[0]), {{0}}).value().channels(), 3U);
}

}  // namespace
