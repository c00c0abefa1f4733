// SPDX-License-Identifier: Apache-2.0
// The laws of the Transport concept, for every transport whose ranks can be threads.
#include <atomic>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <topocoll/exec/transport.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

template <class G>
class transport_contract : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc, groups::mixed_halves,
                               groups::mixed_turns>;
TYPED_TEST_SUITE(transport_contract, kinds);

deadline far() { return deadline::in(60_s); }

/// The byte at `i` of the `k`-th message from `from` to `to`.
std::byte byte_of(std::uint32_t from, std::uint32_t to, std::uint64_t k, std::size_t i) {
  return static_cast<std::byte>((from * 31 + to * 17 + k * 7 + i * 3 + i / 251) & 0xffU);
}
std::vector<std::byte> message(std::uint32_t from, std::uint32_t to, std::uint64_t k, std::size_t size) {
  std::vector<std::byte> m(size);
  for (std::size_t i = 0; i < size; ++i) m[i] = byte_of(from, to, k, i);
  return m;
}

template <class T>
std::string wait_for(T& t, result<ticket> k, deadline until = far()) {
  if (!k) return k.error().what;
  const ticket mine = *k;
  auto done = t.wait_any({&mine, 1}, until);
  if (!done) return done.error().what;
  return *done == 0 ? "" : "wait_any gave index " + std::to_string(*done) + " of one ticket";
}

void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r) EXPECT_EQ(answers[r], "") << "rank " << r;
}

TYPED_TEST(transport_contract, knows_rank_size_and_channels) {
  for (const std::uint32_t n : {1U, 2U, 3U, 17U}) {
    auto group = TypeParam::make(n);
    ASSERT_EQ(group.size(), n);
    for (std::uint32_t r = 0; r < n; ++r) {
      EXPECT_EQ(group[r].rank(), rank_id{r});
      EXPECT_EQ(group[r].size(), n);
      EXPECT_GE(group[r].channels(), 2U);
    }
  }
}

TYPED_TEST(transport_contract, carries_every_size_between_all_pairs) {
  const std::vector<std::size_t> sizes = {0,  1,    2,    3,    5,    7,     8,     17,     39,     40,     41,
                                          64, 1000, 4096, 8191, 8192, 32768, 32769, 100001, 300000, 1000003};
  for (const std::uint32_t n : {2U, 3U, 5U}) {
    expect_no_complaints(groups::on_all(TypeParam::make(n), [&](auto& t) -> std::string {
      const std::uint32_t me = t.rank().value;
      for (std::size_t s = 0; s < sizes.size(); ++s) {
        std::vector<std::vector<std::byte>> sent, got(n, std::vector<std::byte>(sizes[s]));
        std::vector<outgoing> out;
        std::vector<incoming> in;
        for (std::uint32_t peer = 0; peer < n; ++peer) sent.push_back(message(me, peer, s, sizes[s]));
        for (std::uint32_t peer = 0; peer < n; ++peer) {
          if (peer == me) continue;
          out.push_back({{peer}, static_cast<std::uint32_t>(s % 2), s, sent[peer]});
          in.push_back({{peer}, static_cast<std::uint32_t>(s % 2), s, got[peer], {}});
        }
        if (const std::string bad = wait_for(t, t.post(out, in)); !bad.empty()) return bad;
        for (std::uint32_t peer = 0; peer < n; ++peer)
          if (peer != me && got[peer] != message(peer, me, s, sizes[s]))
            return "wrong bytes from rank " + std::to_string(peer) + " at size " + std::to_string(sizes[s]);
      }
      return "";
    }));
  }
}

TYPED_TEST(transport_contract, keeps_the_order_of_a_channel) {
  expect_no_complaints(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    constexpr std::uint64_t count = 300;  // far more than any buffer holds
    std::vector<std::uint64_t> values(count);
    std::vector<ticket> open;
    for (std::uint64_t k = 0; k < count; ++k) {
      result<ticket> posted = ticket{};
      if (t.rank().value == 0) {
        values[k] = k * k;
        const outgoing o{{1}, 1, k, std::as_bytes(std::span(&values[k], 1))};
        posted = t.post({&o, 1}, {});
      } else {
        const incoming i{{0}, 1, k, std::as_writable_bytes(std::span(&values[k], 1)), {}};
        posted = t.post({}, {&i, 1});
      }
      if (!posted) return posted.error().what;
      open.push_back(*posted);
    }
    while (!open.empty()) {
      auto done = t.wait_any(open, far());
      if (!done) return done.error().what;
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(*done));
    }
    for (std::uint64_t k = 0; k < count; ++k)
      if (values[k] != k * k) return "message " + std::to_string(k) + " holds " + std::to_string(values[k]);
    return "";
  }));
}

TYPED_TEST(transport_contract, lets_channels_overtake_each_other) {
  expect_no_complaints(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    // Rank 0 sends a long message on channel 0, which rank 1 does not take yet, then a short one on channel 1.
    std::vector<std::byte> large(3U << 20U, std::byte{7});
    std::uint32_t word = 0;
    if (t.rank().value == 0) {
      word = 12345;
      const outgoing first{{1}, 0, 1, large};
      auto blocked = t.post({&first, 1}, {});
      if (!blocked) return blocked.error().what;
      const outgoing second{{1}, 1, 2, std::as_bytes(std::span(&word, 1))};
      const incoming answer{{1}, 1, 3, std::as_writable_bytes(std::span(&word, 1)), {}};
      if (const std::string bad = wait_for(t, t.post({&second, 1}, {&answer, 1})); !bad.empty()) return bad;
      if (word != 54321) return "wrong answer";
      return wait_for(t, blocked);
    }
    const incoming second{{0}, 1, 2, std::as_writable_bytes(std::span(&word, 1)), {}};
    if (const std::string bad = wait_for(t, t.post({}, {&second, 1})); !bad.empty()) return bad;
    if (word != 12345) return "wrong word";
    word = 54321;
    const outgoing answer{{0}, 1, 3, std::as_bytes(std::span(&word, 1))};
    if (const std::string bad = wait_for(t, t.post({&answer, 1}, {})); !bad.empty()) return bad;
    std::vector<std::byte> got(large.size());
    const incoming first{{0}, 0, 1, got, {}};
    if (const std::string bad = wait_for(t, t.post({}, {&first, 1})); !bad.empty()) return bad;
    return got == large ? "" : "wrong bytes on channel 0";
  }));
}

TYPED_TEST(transport_contract, gives_back_whichever_ticket_is_done) {
  expect_no_complaints(groups::on_all(TypeParam::make(3), [](auto& t) -> std::string {
    std::uint32_t a = 0, b = 0, token = 1;
    if (t.rank().value == 0) {
      const incoming from1{{1}, 0, 9, std::as_writable_bytes(std::span(&a, 1)), {}};
      const incoming from2{{2}, 0, 9, std::as_writable_bytes(std::span(&b, 1)), {}};
      auto ka = t.post({}, {&from1, 1});
      auto kb = t.post({}, {&from2, 1});
      if (!ka || !kb) return "not posted";
      ticket both[] = {*ka, *kb};
      auto done = t.wait_any(both, far());  // rank 1 sends only after rank 0 says so
      if (!done) return done.error().what;
      if (*done != 1 || b != 102) return "the wrong one was first";
      const outgoing go{{1}, 0, 1, std::as_bytes(std::span(&token, 1))};
      if (const std::string bad = wait_for(t, t.post({&go, 1}, {})); !bad.empty()) return bad;
      if (const std::string bad = wait_for(t, ka); !bad.empty()) return bad;
      return a == 101 ? "" : "wrong value";
    }
    if (t.rank().value == 1) {
      const incoming go{{0}, 0, 1, std::as_writable_bytes(std::span(&token, 1)), {}};
      if (const std::string bad = wait_for(t, t.post({}, {&go, 1})); !bad.empty()) return bad;
    }
    const std::uint32_t value = 100 + t.rank().value;
    const outgoing o{{0}, 0, 9, std::as_bytes(std::span(&value, 1))};
    return wait_for(t, t.post({&o, 1}, {}));
  }));
}

TYPED_TEST(transport_contract, combines_what_arrives) {
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{7}, std::size_t{10}, std::size_t{11}, std::size_t{5000}, std::size_t{50000}}) {
    expect_no_complaints(groups::on_all(TypeParam::make(2), [n](auto& t) -> std::string {
      const std::uint32_t me = t.rank().value;
      std::vector<std::int32_t> mine(n), apart(n), together;
      for (std::size_t i = 0; i < n; ++i) mine[i] = static_cast<std::int32_t>(i * (me + 1));
      together = mine;
      const outgoing o{{1 - me}, 0, 5, std::as_bytes(std::span(mine))};
      const incoming into_other{{1 - me},
                                0,
                                5,
                                std::as_writable_bytes(std::span(apart)),
                                combine{dtype::int32, reduce_op::sum, reinterpret_cast<const std::byte*>(mine.data())}};
      if (const std::string bad = wait_for(t, t.post({&o, 1}, {&into_other, 1})); !bad.empty()) return bad;
      const incoming into_self{
          {1 - me},
          0,
          5,
          std::as_writable_bytes(std::span(together)),
          combine{dtype::int32, reduce_op::max, reinterpret_cast<const std::byte*>(together.data())}};
      if (const std::string bad = wait_for(t, t.post({&o, 1}, {&into_self, 1})); !bad.empty()) return bad;
      for (std::size_t i = 0; i < n; ++i)
        if (apart[i] != static_cast<std::int32_t>(3 * i) || together[i] != static_cast<std::int32_t>(2 * i))
          return "wrong at " + std::to_string(i);
      return "";
    }));
  }
}

TYPED_TEST(transport_contract, finishes_an_empty_step_at_once) {
  auto group = TypeParam::make(2);
  EXPECT_EQ(wait_for(group[0], group[0].post({}, {})), "");
}

TYPED_TEST(transport_contract, refuses_what_makes_no_sense_and_stays_whole) {
  auto group = TypeParam::make(2);
  std::byte b{};
  const outgoing nobody{{2}, 0, 0, {&b, 1}}, self{{0}, 0, 0, {&b, 1}}, no_channel{{1}, group[0].channels(), 0, {&b, 1}};
  for (const outgoing& o : {nobody, self, no_channel}) {
    auto posted = group[0].post({&o, 1}, {});
    ASSERT_FALSE(posted);
    EXPECT_EQ(posted.error().code, errc::invalid_argument) << posted.error().what;
  }
  std::byte three[3];
  const incoming torn{{1}, 0, 0, three, combine{dtype::int32, reduce_op::sum, three}};
  EXPECT_EQ(group[0].post({}, {&torn, 1}).error().code, errc::invalid_argument);
  auto waited = group[0].wait_any({}, far());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, errc::invalid_argument);
  const ticket made_up{12345};
  EXPECT_EQ(group[0].wait_any({&made_up, 1}, far()).error().code, errc::invalid_argument);
  expect_no_complaints(groups::on_all(std::move(group), [](auto& t) -> std::string {
    const outgoing o{{1 - t.rank().value}, 0, 1, {}};
    const incoming i{{1 - t.rank().value}, 0, 1, {}, {}};
    return wait_for(t, t.post({&o, 1}, {&i, 1}));
  }));
}

TYPED_TEST(transport_contract, does_not_take_a_ticket_twice) {
  auto group = TypeParam::make(2);
  const ticket k = group[0].post({}, {}).value();
  ASSERT_TRUE(group[0].wait_any({&k, 1}, far()));
  auto again = group[0].wait_any({&k, 1}, far());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, errc::invalid_argument);
}

/// Every rank waits for rank 0, which does something else first; what each of the others is told.
template <class G, class Rank0>
std::vector<failure> others_told(std::uint32_t n, deadline until, Rank0 rank0) {
  const auto answers = groups::on_all(G::make(n), [&](auto& t) -> failure {
    if (t.rank().value == 0) return rank0(t);
    std::uint32_t word = 0;
    const incoming i{{0}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
    auto k = t.post({}, {&i, 1});
    if (!k) return k.error();
    const ticket mine = *k;
    auto done = t.wait_any({&mine, 1}, until);
    if (done) return fail(errc::bug, "it succeeded");
    // Broken is broken: every later call fails with the same cause.
    auto later = t.post({}, {});
    if (later || later.error().what != done.error().what) return fail(errc::bug, "a later call did not fail alike");
    return done.error();
  });
  return answers;
}

TYPED_TEST(transport_contract, names_the_rank_that_did_not_answer_in_time) {
  std::atomic<int> left{2};
  const seconds start = steady_clock::now();
  const auto told = others_told<TypeParam>(3, deadline::in(0.3_s), [&](auto&) {
    const deadline until = deadline::in(20_s);  // silent until the others have given up
    while (left.load() != 0 && !until.passed()) {
      if (steady_clock::now() - start > 1_s) break;
      std::this_thread::yield();
    }
    return failure{};
  });
  for (std::uint32_t r = 1; r < 3; ++r) {
    EXPECT_EQ(told[r].code, errc::timed_out) << told[r].what;
    EXPECT_NE(told[r].what.find("rank 0"), std::string::npos) << told[r].what;
    EXPECT_EQ(told[r].what, told[1].what) << "the first cause is everybody's";
  }
}

TYPED_TEST(transport_contract, says_who_left) {
  const auto told = others_told<TypeParam>(4, deadline::in(20_s), [](auto&) { return failure{}; });
  for (std::uint32_t r = 1; r < 4; ++r) {
    EXPECT_EQ(told[r].code, errc::peer_lost) << told[r].what;
    EXPECT_NE(told[r].what.find("rank 0"), std::string::npos) << told[r].what;
    EXPECT_EQ(told[r].what, told[1].what) << "the first cause is everybody's";
  }
}

TYPED_TEST(transport_contract, delivers_what_a_rank_sent_before_it_left) {
  expect_no_complaints(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    std::uint64_t word = 99;
    if (t.rank().value == 0) {
      const outgoing o{{1}, 0, 1, std::as_bytes(std::span(&word, 1))};
      return wait_for(t, t.post({&o, 1}, {}));  // short, so it counts as sent
    }
    const seconds start = steady_clock::now();
    while (steady_clock::now() - start < 0.05_s) std::this_thread::yield();
    word = 0;
    const incoming i{{0}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
    if (const std::string bad = wait_for(t, t.post({}, {&i, 1})); !bad.empty()) return bad;
    return word == 99 ? "" : "wrong word";
  }));
}

TYPED_TEST(transport_contract, tells_everybody_why_it_was_aborted) {
  const seconds start = steady_clock::now();
  const auto told = others_told<TypeParam>(4, deadline::in(20_s), [](auto& t) {
    std::thread other_thread([&] { t.abort("the disk is full"); });
    other_thread.join();
    auto own = t.post({}, {});
    return own ? fail(errc::bug, "it succeeded") : own.error();
  });
  EXPECT_LT((steady_clock::now() - start).value, 1.5);
  for (const failure& f : told) {
    EXPECT_EQ(f.code, errc::aborted) << f.what;
    EXPECT_NE(f.what.find("rank 0"), std::string::npos) << f.what;
    EXPECT_NE(f.what.find("the disk is full"), std::string::npos) << f.what;
  }
}

TYPED_TEST(transport_contract, names_the_rank_whose_tag_or_size_differs) {
  for (const bool tag_differs : {true, false}) {
    const auto told = groups::on_all(TypeParam::make(3), [&](auto& t) -> failure {
      std::vector<std::byte> data(100, std::byte{1}), into(100, std::byte{9});
      result<ticket> k = ticket{};
      if (t.rank().value == 0) {
        const outgoing o{{1}, 0, tag_differs ? 8U : 7U, std::span(data).first(tag_differs ? 100 : 96)};
        const incoming never{{2}, 0, 0, into, {}};
        k = t.post({&o, 1}, {&never, 1});
      } else {
        const incoming i{{t.rank().value - 1}, 0, 7, into, {}};
        k = t.post({}, {&i, 1});
      }
      if (!k) return k.error();
      const ticket mine = *k;
      auto done = t.wait_any({&mine, 1}, far());
      if (done) return fail(errc::bug, "it succeeded");
      if (into != std::vector<std::byte>(100, std::byte{9}))
        return fail(errc::bug, "data that were not expected were used");
      return done.error();
    });
    for (const failure& f : told) {
      EXPECT_EQ(f.code, errc::mismatch) << f.what;
      EXPECT_NE(f.what.find("rank 0"), std::string::npos) << f.what;
      EXPECT_NE(f.what.find("rank 1"), std::string::npos) << f.what;
      EXPECT_NE(f.what.find("100 bytes"), std::string::npos) << f.what;
      EXPECT_NE(f.what.find(tag_differs ? "0008" : "96 bytes"), std::string::npos) << f.what;
    }
  }
}

TYPED_TEST(transport_contract, names_the_rank_at_the_root_of_a_chain_of_waits) {
  // 2 waits for 1, 1 waits for 0, 0 is silent: whoever gives up first, rank 0 is named.
  std::atomic<bool> over{false};
  const auto told = groups::on_all(TypeParam::make(3), [&](auto& t) -> failure {
    const std::uint32_t me = t.rank().value;
    if (me == 0) {
      const deadline until = deadline::in(20_s);
      while (!over.load() && !until.passed()) std::this_thread::yield();
      return {};
    }
    std::uint32_t word = 0;
    const incoming i{{me - 1}, 0, 1, std::as_writable_bytes(std::span(&word, 1)), {}};
    auto k = t.post({}, {&i, 1});
    if (!k) return k.error();
    const ticket mine = *k;
    auto done = t.wait_any({&mine, 1}, deadline::in(me == 2 ? 0.5_s : 20_s));  // 2 is the less patient
    over = true;
    return done ? fail(errc::bug, "it succeeded") : done.error();
  });
  for (std::uint32_t r = 1; r < 3; ++r) {
    EXPECT_EQ(told[r].code, errc::timed_out) << told[r].what;
    EXPECT_NE(told[r].what.find("rank 1, which waits for rank 0: "), std::string::npos) << told[r].what;
  }
}

TYPED_TEST(transport_contract, uses_the_buffer_of_a_send_no_more_after_a_failure) {
  // The sender gives up on a large message and overwrites it; a receiver that still read it would be a race for the
  // sanitizer.
  groups::on_all(TypeParam::make(2), [](auto& t) -> int {
    std::vector<std::byte> data(4U << 20U, std::byte{1});
    if (t.rank().value == 0) {
      const outgoing o{{1}, 0, 1, data};
      auto k = t.post({&o, 1}, {});
      t.abort("changed my mind");
      (void)wait_for(t, k);
      std::memset(data.data(), 2, data.size());
    } else {
      const incoming i{{0}, 0, 1, data, {}};
      (void)wait_for(t, t.post({}, {&i, 1}));
    }
    return 0;
  });
}

TYPED_TEST(transport_contract, works_with_little_memory) {
  // 1 KiB for all: the smallest slots, many pieces per message.
  expect_no_complaints(groups::on_all(TypeParam::make(3, {.channels = 2, .memory = 1_KiB}), [](auto& t) -> std::string {
    const std::uint32_t me = t.rank().value, to = (me + 1) % 3, from = (me + 2) % 3;
    const auto sent = message(me, to, 0, 100'000);
    std::vector<std::byte> got(sent.size());
    const outgoing o{{to}, 1, 1, sent};
    const incoming i{{from}, 1, 1, got, {}};
    if (const std::string bad = wait_for(t, t.post({&o, 1}, {&i, 1})); !bad.empty()) return bad;
    return got == message(from, me, 0, got.size()) ? "" : "wrong bytes";
  }));
}

TYPED_TEST(transport_contract, can_be_moved_between_calls) {
  expect_no_complaints(groups::on_all(TypeParam::make(2), [](auto& t) -> std::string {
    auto moved = std::move(t);
    const outgoing o{{1 - moved.rank().value}, 0, 1, {}};
    const incoming i{{1 - moved.rank().value}, 0, 1, {}, {}};
    auto k = moved.post({&o, 1}, {&i, 1});
    t = std::move(moved);
    return wait_for(t, k);
  }));
}

TEST(faulty, makes_a_silent_link_a_time_out) {
  std::vector<faulty<inproc_transport>> group;
  for (inproc_transport& t : make_inproc_group(2).value())
    group.emplace_back(std::move(t), fault_plan{.seed = 1, .links = {{.from = {0}, .to = {1}, .silent_from = 2}}});
  const auto answers = groups::on_all(std::move(group), [](auto& t) -> std::string {
    for (int k = 0; k < 5; ++k) {
      const outgoing o{{1 - t.rank().value}, 0, 1, {}};
      const incoming i{{1 - t.rank().value}, 0, 1, {}, {}};
      auto posted = t.post({&o, 1}, {&i, 1});
      const ticket mine = posted ? *posted : ticket{};
      auto done = posted ? t.wait_any({&mine, 1}, deadline::in(0.3_s)) : result<std::size_t>(posted.error());
      if (!done) return std::to_string(k) + (done.error().code == errc::timed_out ? " timed out" : done.error().what);
    }
    return "never";
  });
  EXPECT_EQ(answers[1], "2 timed out");
  EXPECT_EQ(answers[0], "3 timed out") << "rank 0 got the third answer, then waited for a rank that waits";
}

TEST(faulty, dies_at_the_planned_post) {
  std::vector<faulty<inproc_transport>> group;
  for (inproc_transport& t : make_inproc_group(2).value()) {
    const std::uint64_t at = t.rank().value == 1 ? 2 : link_fault::never;
    group.emplace_back(std::move(t), fault_plan{.seed = 1, .links = {}, .die_at_post = at});
  }
  const auto answers = groups::on_all(std::move(group), [](auto& t) -> failure {
    for (int k = 0; k < 5; ++k) {
      const outgoing o{{1 - t.rank().value}, 0, 1, {}};
      const incoming i{{1 - t.rank().value}, 0, 1, {}, {}};
      auto posted = t.post({&o, 1}, {&i, 1});
      if (!posted) return posted.error();
      const ticket mine = *posted;
      if (auto done = t.wait_any({&mine, 1}, far()); !done) return done.error();
    }
    return {};
  });
  EXPECT_EQ(answers[0].code, errc::peer_lost) << answers[0].what;
  EXPECT_NE(answers[0].what.find("rank 1"), std::string::npos) << answers[0].what;
  EXPECT_NE(answers[1].what.find("as planned"), std::string::npos) << answers[1].what;
}

}  // namespace
