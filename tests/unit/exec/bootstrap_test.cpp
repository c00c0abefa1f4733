// SPDX-License-Identifier: Apache-2.0
// Ranks meet: as threads, over TCP on the loopback interface, and in spite of those who do not belong there.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/exec/bootstrap.hpp>
#include <topocoll/exec/bootstrap_options.hpp>
#include <topocoll/exec/detail/bootstrap_wire.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using testing::HasSubstr;

const std::string secret = "0123456789abcdef0123456789abcdef";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text_of(const std::vector<std::byte>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}
void pause(seconds s) { (void)io::wait_until_ready({}, deadline::in(s)); }

template <class Body>
void on_threads(std::uint32_t count, Body body) {
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < count; ++r) threads.emplace_back([&body, r] { body(r); });
  for (std::thread& t : threads) t.join();
}

bootstrap_options options_for(std::uint32_t rank, std::uint32_t size, std::uint16_t port = 0) {
  bootstrap_options o;
  o.rank = {rank};
  o.size = size;
  o.address = "127.0.0.1";
  o.port = port;
  o.job = "test";
  o.token = secret;
  return o;
}

/// What the ranks of one group got, by rank, each with its own options. Rank 0's listener is open before the others start.
using formed = std::vector<std::optional<result<tcp_bootstrap>>>;
template <class Change>
formed form_all(std::uint32_t size, deadline until, Change change) {
  bootstrap_options first = options_for(0, size);
  change(first);
  io::tcp_listener listener = open_bootstrap_listener(first).value();
  const std::uint16_t port = listener.local().port();
  formed all(size);
  on_threads(size, [&](std::uint32_t r) {
    bootstrap_options o = options_for(r, size, port);
    change(o);
    all[r] = r == 0 ? tcp_bootstrap::form(std::move(listener), o, until) : tcp_bootstrap::form(o, until);
  });
  return all;
}
formed form_all(std::uint32_t size, deadline until = deadline::in(20_s)) {
  return form_all(size, until, [](bootstrap_options&) {});
}
std::string told(const result<tcp_bootstrap>& r) { return r ? "formed" : r.error().message(); }

// ---- The laws of the concept, for both implementations.

struct as_threads {
  static std::vector<thread_bootstrap> make(std::uint32_t size) { return thread_bootstrap::make_group(size).value(); }
};
struct over_tcp {
  static std::vector<tcp_bootstrap> make(std::uint32_t size) {
    std::vector<tcp_bootstrap> group;
    for (auto& b : form_all(size)) group.push_back(std::move(*b).value());
    return group;
  }
};

/// Runs `body(bootstrap)` for every rank on a thread of its own; a rank lives as long as its thread.
template <class Kind, class Body>
auto on_ranks(std::uint32_t size, Body body) {
  auto group = Kind::make(size);
  std::vector<decltype(body(group[0]))> answers(size);
  on_threads(size, [&](std::uint32_t r) {
    auto mine = std::move(group[r]);
    answers[r] = body(mine);
  });
  return answers;
}

template <class Kind>
class a_bootstrap : public testing::Test {};
using kinds = testing::Types<as_threads, over_tcp>;
TYPED_TEST_SUITE(a_bootstrap, kinds);

TYPED_TEST(a_bootstrap, gives_all_parts_to_all_ranks_in_the_order_of_ranks) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U, 16U}) {
    const auto answers = on_ranks<TypeParam>(size, [&](auto& b) {
      EXPECT_EQ(b.size(), size);
      std::string all;
      for (int turn = 0; turn < 3; ++turn) {
        // Of every length, also none.
        const std::string mine(b.rank().value, static_cast<char>('a' + turn));
        const auto parts = b.all_gather(bytes_of(mine), deadline::in(20_s));
        if (!parts) return parts.error().message();
        EXPECT_EQ(parts->size(), size);
        for (const auto& p : *parts) all += text_of(p) + '|';
        if (auto met = b.barrier(deadline::in(20_s)); !met) return met.error().message();
      }
      return all;
    });
    std::string expected;
    for (int turn = 0; turn < 3; ++turn)
      for (std::uint32_t r = 0; r < size; ++r) expected += std::string(r, static_cast<char>('a' + turn)) + '|';
    for (const std::string& a : answers) EXPECT_EQ(a, expected) << size << " ranks";
  }
}
TYPED_TEST(a_bootstrap, holds_a_barrier_until_the_last_rank_comes) {
  std::atomic<std::uint32_t> here{0};
  const auto seen = on_ranks<TypeParam>(5, [&](auto& b) {
    if (b.rank() == rank_id{2}) pause(50_ms);
    ++here;
    EXPECT_TRUE(b.barrier(deadline::in(20_s)));
    return here.load();
  });
  for (const std::uint32_t s : seen) EXPECT_EQ(s, 5U);
}
TYPED_TEST(a_bootstrap, lists_the_ranks_that_did_not_come) {
  const auto answers = on_ranks<TypeParam>(6, [&](auto& b) {
    if (b.rank().value == 2 || b.rank().value == 5) return pause(1.6_s), fail(errc::bug, "was not there");
    return b.barrier(deadline::in(1_s)).error();
  });
  for (const std::uint32_t r : {0U, 1U, 3U, 4U}) {
    EXPECT_EQ(answers[r].code, errc::timed_out) << answers[r].message();
    EXPECT_THAT(answers[r].what, HasSubstr("ranks 2, 5 of 6 did not come to barrier")) << r;
  }
}
TYPED_TEST(a_bootstrap, tells_all_who_aborted_and_why) {
  for (const std::uint32_t who : {0U, 3U}) {
    const auto answers = on_ranks<TypeParam>(5, [&](auto& b) {
      if (b.rank().value == who) {
        pause(20_ms);
        b.abort("the disk is full");
        b.abort("a second cause");
      }
      return b.barrier(deadline::in(10_s)).error();
    });
    for (const failure& f : answers) {
      EXPECT_EQ(f.code, errc::aborted) << f.message();
      EXPECT_THAT(f.what, HasSubstr("rank " + std::to_string(who) + " aborted: the disk is full"));
    }
  }
}
TYPED_TEST(a_bootstrap, names_a_rank_that_leaves) {
  for (const std::uint32_t who : {0U, 2U}) {
    const auto answers = on_ranks<TypeParam>(4, [&](auto& b) {
      if (!b.barrier(deadline::in(10_s))) return fail(errc::bug, "the first barrier failed");
      if (b.rank().value == who) return pause(20_ms), fail(errc::bug, "has left");
      return b.barrier(deadline::in(10_s)).error();
    });
    for (std::uint32_t r = 0; r < 4; ++r) {
      if (r == who) continue;
      EXPECT_EQ(answers[r].code, errc::peer_lost) << answers[r].message();
      EXPECT_THAT(answers[r].what, HasSubstr("rank " + std::to_string(who))) << r;
    }
  }
}
TYPED_TEST(a_bootstrap, sees_that_ranks_make_different_calls) {
  const auto answers = on_ranks<TypeParam>(3, [&](auto& b) {
    if (b.rank().value == 2) return b.all_gather(bytes_of("x"), deadline::in(10_s)).error();
    return b.barrier(deadline::in(10_s)).error();
  });
  for (const failure& f : answers) {
    EXPECT_EQ(f.code, errc::mismatch) << f.message();
    EXPECT_THAT(f.what, HasSubstr("barrier"));
    EXPECT_THAT(f.what, HasSubstr("all_gather"));
  }
}
TYPED_TEST(a_bootstrap, gives_the_first_cause_again) {
  const auto answers = on_ranks<TypeParam>(2, [&](auto& b) {
    if (b.rank().value == 1) b.abort("first");
    const failure once = b.barrier(deadline::in(10_s)).error();
    b.abort("later");
    const failure twice = b.all_gather({}, deadline::in(10_s)).error();
    EXPECT_EQ(once.what, twice.what);
    return once;
  });
  for (const failure& f : answers) EXPECT_THAT(f.what, HasSubstr("rank 1 aborted: first"));
}
TEST(thread_bootstrap, refuses_a_group_of_none) {
  EXPECT_EQ(thread_bootstrap::make_group(0).error().code, errc::invalid_argument);
}

// ---- What TCP adds.

TEST(tcp_bootstrap, knows_the_hosts_of_all_ranks) {
  // Different names on loopback would be refused, so all have one.
  const auto all = form_all(3, deadline::in(20_s), [](bootstrap_options& o) { o.host_name = "one-host"; });
  for (const auto& b : all) {
    ASSERT_TRUE(*b) << told(*b);
    for (const std::uint32_t r : {0U, 1U, 2U}) EXPECT_EQ((*b)->host({r}), "one-host");
    EXPECT_TRUE((*b)->findings().empty());
  }
}
TEST(tcp_bootstrap, takes_any_rank_for_the_root) {
  const std::string file = testing::TempDir() + "topocoll-root-" + std::to_string(::getpid());
  formed all(4);
  on_threads(4, [&](std::uint32_t r) {
    bootstrap_options o = options_for(r, 4);
    o.root = {2};
    o.port_file = file;
    all[r] = tcp_bootstrap::form(o, deadline::in(20_s));
  });
  ::unlink(file.c_str());
  for (const auto& b : all) EXPECT_TRUE(*b) << told(*b);
}
TEST(tcp_bootstrap, finds_the_root_by_a_file_that_comes_late) {
  const std::string file = testing::TempDir() + "topocoll-late-" + std::to_string(::getpid());
  ASSERT_TRUE(io::write_file(file, "topocoll.bootstrap/1\n127.0.0.1\n1\nan older job\n"));
  formed all(3);
  on_threads(3, [&](std::uint32_t r) {
    if (r == 0) pause(50_ms);
    bootstrap_options o = options_for(r, 3);
    o.port_file = file;
    all[r] = tcp_bootstrap::form(o, deadline::in(20_s));
  });
  ::unlink(file.c_str());
  for (const auto& b : all) EXPECT_TRUE(*b) << told(*b);
}
TEST(tcp_bootstrap, waits_for_a_root_that_listens_late) {
  const std::uint16_t port = open_bootstrap_listener(options_for(0, 3)).value().local().port();
  formed all(3);
  on_threads(3, [&](std::uint32_t r) {
    if (r == 0) pause(100_ms);
    all[r] = tcp_bootstrap::form(options_for(r, 3, port), deadline::in(20_s));
  });
  for (const auto& b : all) EXPECT_TRUE(*b) << told(*b);
}
TEST(tcp_bootstrap, meets_by_the_interface_that_is_named) {
  const auto all = form_all(3, deadline::in(20_s), [](bootstrap_options& o) { o.interface_name = "lo"; });
  for (const auto& b : all) EXPECT_TRUE(*b) << told(*b);
}
TEST(tcp_bootstrap, meets_by_ipv6) {
  if (!io::tcp_listener::open(io::resolve("::1", 0).value().front())) GTEST_SKIP() << "this host has no IPv6";
  const auto all = form_all(3, deadline::in(20_s), [](bootstrap_options& o) { o.address = "::1"; });
  for (const auto& b : all) EXPECT_TRUE(*b) << told(*b);
}
TEST(tcp_bootstrap, carries_large_parts) {
  const auto answers = on_ranks<over_tcp>(3, [](tcp_bootstrap& b) {
    const std::vector<std::byte> mine(4'000'000, static_cast<std::byte>(b.rank().value + 1));
    const auto parts = b.all_gather(mine, deadline::in(30_s));
    if (!parts) return parts.error().message();
    for (std::uint32_t r = 0; r < 3; ++r)
      if ((*parts)[r] != std::vector<std::byte>(4'000'000, static_cast<std::byte>(r + 1)))
        return std::string("a part is wrong");
    return std::string("right");
  });
  for (const std::string& a : answers) EXPECT_EQ(a, "right");
}
TEST(tcp_bootstrap, refuses_a_part_that_is_too_large_and_goes_on) {
  auto all = form_all(2, deadline::in(20_s), [](bootstrap_options& o) { o.largest_piece = bytes{100}; });
  on_threads(2, [&](std::uint32_t r) {
    tcp_bootstrap& b = **all[r];
    EXPECT_EQ(b.all_gather(std::vector<std::byte>(101), deadline::in(5_s)).error().code, errc::invalid_argument);
    EXPECT_TRUE(b.all_gather(std::vector<std::byte>(100), deadline::in(20_s)));
  });
}

TEST(tcp_bootstrap, lists_the_ranks_that_did_not_join_at_every_rank_that_did) {
  // The root alone has much time; it answers before the first of the others gives up.
  formed all(6);
  io::tcp_listener listener = open_bootstrap_listener(options_for(0, 6)).value();
  const std::uint16_t port = listener.local().port();
  on_threads(6, [&](std::uint32_t r) {
    if (r == 0) all[r] = tcp_bootstrap::form(std::move(listener), options_for(0, 6), deadline::in(60_s));
    if (r == 1 || r == 4) all[r] = tcp_bootstrap::form(options_for(r, 6, port), deadline::in(1_s));
  });
  for (const std::uint32_t r : {0U, 1U, 4U}) {
    ASSERT_FALSE(*all[r]);
    EXPECT_EQ(all[r]->error().code, errc::timed_out) << told(*all[r]);
    EXPECT_THAT(all[r]->error().what,
                HasSubstr("ranks 2, 3, 5 of 6 did not join at 127.0.0.1:" + std::to_string(port)));
  }
}
TEST(tcp_bootstrap, that_finds_no_root_says_what_it_tried) {
  const std::uint16_t port = open_bootstrap_listener(options_for(0, 2)).value().local().port();
  const auto lonely = tcp_bootstrap::form(options_for(1, 2, port), deadline::in(0.2_s));
  ASSERT_FALSE(lonely);
  EXPECT_EQ(lonely.error().code, errc::timed_out);
  EXPECT_THAT(lonely.error().what, HasSubstr("rank 1 did not reach rank 0 within"));
  EXPECT_THAT(lonely.error().what, HasSubstr("nothing listens at 127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(lonely.error().what, HasSubstr("on interface lo"));
  EXPECT_THAT(lonely.error().next, HasSubstr("127.0.0.1 reaches no other"));
}
TEST(tcp_bootstrap, refuses_two_claims_for_one_rank_and_names_both_ends) {
  const auto all =
      form_all(4, deadline::in(20_s), [](bootstrap_options& o) { o.rank = {o.rank.value == 3 ? 2 : o.rank.value}; });
  for (const auto& b : all) {
    ASSERT_FALSE(*b);
    EXPECT_EQ(b->error().code, errc::mismatch) << told(*b);
    EXPECT_THAT(b->error().what, HasSubstr("two processes claim to be rank 2"));
    EXPECT_THAT(b->error().what, testing::ContainsRegex("127.0.0.1:[0-9]+ and rank 2 .* at 127.0.0.1:[0-9]+"));
  }
}
TEST(tcp_bootstrap, refuses_another_root_and_names_both_ends) {
  io::tcp_listener listener = open_bootstrap_listener(options_for(0, 3)).value();
  const std::uint16_t port = listener.local().port();
  formed all(2);
  on_threads(2, [&](std::uint32_t r) {
    if (r == 0) all[0] = tcp_bootstrap::form(std::move(listener), options_for(0, 3), deadline::in(5_s));
    bootstrap_options o = options_for(1, 3, port);
    o.root = {2};
    if (r == 1) all[1] = tcp_bootstrap::form(o, deadline::in(5_s));
  });
  for (const auto& b : all) {
    EXPECT_EQ(b->error().code, errc::mismatch) << told(*b);
    EXPECT_THAT(b->error().what, HasSubstr("takes rank 2 for the root, rank 0 (process"));
  }
}
TEST(tcp_bootstrap, refuses_another_size_and_names_both_ends) {
  const auto all = form_all(3, deadline::in(20_s), [](bootstrap_options& o) { o.size = o.rank.value == 2 ? 4 : 3; });
  for (const std::uint32_t r : {0U, 1U, 2U}) {
    ASSERT_FALSE(*all[r]);
    EXPECT_EQ(all[r]->error().code, errc::mismatch) << told(*all[r]);
    EXPECT_THAT(all[r]->error().what, HasSubstr("rank 2 (process"));
    EXPECT_THAT(all[r]->error().what, HasSubstr("was started for 4 ranks, rank 0 (process"));
  }
}
TEST(tcp_bootstrap, refuses_hosts_that_differ_on_a_loopback_address) {
  const auto all = form_all(2, deadline::in(20_s),
                            [](bootstrap_options& o) { o.host_name = "node" + std::to_string(o.rank.value); });
  for (const auto& b : all) {
    ASSERT_FALSE(*b);
    EXPECT_EQ(b->error().code, errc::invalid_argument) << told(*b);
    EXPECT_THAT(b->error().what, HasSubstr("on node1"));
    EXPECT_THAT(b->error().what, HasSubstr("on node0"));
    EXPECT_THAT(b->error().what, HasSubstr("127.0.0.1"));
  }
}

TEST(bootstrap_options, with_a_loopback_address_do_not_span_hosts) {
  for (const std::uint32_t rank : {0U, 1U}) {
    bootstrap_options o = options_for(rank, 2, 4711);
    o.spans_hosts = true;
    const auto refused = tcp_bootstrap::form(o, deadline::in(5_s));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_argument) << told(refused);
    EXPECT_THAT(refused.error().next, HasSubstr("the root's host"));
  }
}
TEST(bootstrap_options, without_a_token_stay_on_the_host) {
  for (const std::uint32_t rank : {0U, 1U}) {
    bootstrap_options o = options_for(rank, 2, 4711);
    o.token.clear();
    o.address = rank == 0 ? "0.0.0.0" : "192.0.2.1";
    const auto refused = tcp_bootstrap::form(o, deadline::in(5_s));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_argument) << told(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("token of at least 16 bytes"));
  }
  bootstrap_options o = options_for(0, 2);
  o.token.clear();
  o.address.clear();
  EXPECT_TRUE(open_bootstrap_listener(o).value().local().is_loopback());
  o.token = secret;
  EXPECT_TRUE(open_bootstrap_listener(o).value().local().is_any());
}
TEST(bootstrap_options, without_a_token_form_a_group_of_one_host) {
  for (const auto& b : form_all(3, deadline::in(20_s), [](bootstrap_options& o) { o.token.clear(); }))
    EXPECT_TRUE(*b) << told(*b);
}
TEST(bootstrap_options, that_contradict_themselves_are_refused) {
  const auto code = [](auto change) {
    bootstrap_options o = options_for(1, 2, 4711);
    change(o);
    const auto refused = tcp_bootstrap::form(o, deadline::in(0_s));
    return refused ? errc::bug : refused.error().code;
  };
  EXPECT_EQ(code([](auto& o) { o.size = 1; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.size = 0; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.root = {2}; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.token = "fifteen bytes.."; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.port = 0; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.address.clear(); }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.job.assign(256, 'j'); }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.handshake = {0}; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto&) {}), errc::timed_out);
}

// ---- Those who do not belong.

/// A connection to a root that forms, and what one says by hand.
class by_hand {
 public:
  explicit by_hand(const io::socket_address& root)
      : stream_(io::tcp_stream::connect(root, deadline::in(5_s)).value()) {}
  by_hand& say(std::span<const std::byte> data) {
    (void)stream_.send(data, deadline::in(5_s));
    return *this;
  }
  by_hand& say(std::string_view text) { return say(bytes_of(text)); }
  std::vector<std::byte> hear() {
    std::vector<std::byte> whole(detail::frame_head_size);
    if (!stream_.receive(whole, deadline::in(5_s))) return {};
    detail::frame_reader head{std::span(whole).subspan(12)};
    whole.resize(detail::frame_head_size + static_cast<std::size_t>(head.number(8)));
    if (!stream_.receive(std::span(whole).subspan(detail::frame_head_size), deadline::in(5_s))) return {};
    return whole;
  }
  bool was_closed() {
    std::byte one{};
    const auto got = stream_.receive(std::span(&one, 1), deadline::in(5_s));
    return !got && got.error().code == errc::peer_lost;
  }
  /// Greets and proves a token; the answer.
  std::vector<std::byte> join(const detail::hello& h, std::string_view token, std::uint16_t version = 1) {
    greeting_ = detail::encode(h, version);
    say(greeting_);
    const std::vector<std::byte> challenge = hear();
    greeting_.insert(greeting_.end(), challenge.begin(), challenge.end());
    say(detail::encode_code(detail::frame_kind::proof, detail::proof_of(token, "member", greeting_)));
    return hear();
  }
  void close() { stream_.close(); }

 private:
  io::tcp_stream stream_;
  std::vector<std::byte> greeting_;
};
detail::hello hello_of(std::uint32_t rank, std::uint32_t size) {
  detail::hello h;
  h.rank = rank;
  h.size = size;
  h.patience_ms = 20'000;
  h.job = "test";
  h.place = {detail::host_name(), 77};
  return h;
}

/// A root that forms on a thread of its own, with whatever `visit(address)` does to it meanwhile.
template <class Visit>
std::optional<result<tcp_bootstrap>> root_visited(std::uint32_t size, const bootstrap_options& o, seconds time,
                                                  Visit visit) {
  io::tcp_listener listener = open_bootstrap_listener(o).value();
  const io::socket_address at = listener.local();
  std::optional<result<tcp_bootstrap>> root;
  on_threads(2, [&](std::uint32_t which) {
    if (which == 0) root = tcp_bootstrap::form(std::move(listener), o, deadline::in(time));
    if (which == 1) visit(at);
  });
  EXPECT_EQ(o.size, size);
  return root;
}

TEST(tcp_bootstrap, forms_at_once_while_strangers_of_every_kind_are_there) {
  bootstrap_options o = options_for(0, 4);
  formed members(4);
  seconds took{};
  const auto root = root_visited(4, o, 20_s, [&](const io::socket_address& at) {
    std::vector<by_hand> strangers;
    for (int i = 0; i < 20; ++i) {
      strangers.emplace_back(at);  // says nothing and stays
      strangers.emplace_back(at).say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      strangers.emplace_back(at).say("topoc");
      strangers.emplace_back(at).close();
      strangers.emplace_back(at).say(detail::encode(hello_of(1, 4)));  // never proves anything
      EXPECT_FALSE(strangers.emplace_back(at).join(hello_of(1, 4), "another token of 32 bytes. .....").empty());
    }
    const seconds start = steady_clock::now();
    on_threads(4, [&](std::uint32_t r) {
      if (r > 0) members[r] = tcp_bootstrap::form(options_for(r, 4, at.port()), deadline::in(20_s));
    });
    took = steady_clock::now() - start;
  });
  ASSERT_TRUE(*root) << told(*root);
  for (const std::uint32_t r : {1U, 2U, 3U}) EXPECT_TRUE(*members[r]) << told(*members[r]);
  EXPECT_LT(took.value, 1.0);
}
TEST(tcp_bootstrap, tells_of_every_kind_of_stranger_by_address) {
  bootstrap_options o = options_for(0, 2);
  o.handshake = 0.15_s;
  std::optional<result<tcp_bootstrap>> member;
  const auto root = root_visited(2, o, 20_s, [&](const io::socket_address& at) {
    by_hand(at).close();
    by_hand(at).say("topoc").close();
    EXPECT_TRUE(by_hand(at).say("GET / HTTP/1.1\r\n\r\n").was_closed());
    EXPECT_TRUE(by_hand(at).say("SSH-2.0-x\r\n").was_closed());
    EXPECT_TRUE(by_hand(at).say(std::string_view("\x16\x03\x01\x02", 4)).was_closed());
    EXPECT_TRUE(by_hand(at).say(std::string(100'000, 'x')).was_closed());
    std::string too_long = "topocoll";
    too_long += std::string_view("\0\1\0\1\0\0\0\1\0\0\0\0", 12);
    EXPECT_TRUE(by_hand(at).say(too_long).was_closed());
    EXPECT_TRUE(by_hand(at).say(detail::encode_code(detail::frame_kind::hello, bytes_of("short"))).was_closed());
    by_hand(at).join(hello_of(1, 2), "another token of 32 bytes. .....");
    detail::hello other = hello_of(1, 2);
    other.job = "other";
    by_hand(at).join(other, secret);
    by_hand silent(at);
    by_hand slow(at);
    by_hand unproved(at);
    unproved.say(detail::encode(hello_of(1, 2)));
    const std::vector<std::byte> greeting = detail::encode(hello_of(1, 2));
    for (std::size_t i = 0; i < 10; ++i) {
      slow.say(std::span(greeting).subspan(i, 1));
      pause(20_ms);
    }
    EXPECT_TRUE(slow.was_closed());
    pause(50_ms);
    member = tcp_bootstrap::form(options_for(1, 2, at.port()), deadline::in(20_s));
  });
  ASSERT_TRUE(*root) << told(*root);
  EXPECT_TRUE(*member) << told(*member);
  std::map<std::string, finding> said;
  for (const finding& f : (*root)->findings()) said[f.what] = f;
  for (const char* what :
       {"connected and left without a word", "left in the middle of its greeting", "sent an HTTP request", "spoke SSH",
        "spoke TLS", "sent something else than a bootstrap message", "sent a greeting that is none",
        "did not prove the token", "belongs to job \"other\"", "connected and said nothing",
        "was too slow with its greeting", "did not prove the token in time"}) {
    EXPECT_EQ(said.count(std::string("127.0.0.1 ") + what), 1U) << what;
  }
  EXPECT_EQ(said["127.0.0.1 sent something else than a bootstrap message"].evidence, "2 connections");
}
TEST(tcp_bootstrap, with_another_token_is_told_so_and_the_root_says_who_it_was) {
  std::optional<result<tcp_bootstrap>> member;
  const auto root = root_visited(2, options_for(0, 2), 0.5_s, [&](const io::socket_address& at) {
    bootstrap_options o = options_for(1, 2, at.port());
    o.token = "another token of 32 bytes. .....";
    member = tcp_bootstrap::form(o, deadline::in(10_s));
  });
  EXPECT_EQ(member->error().code, errc::permission) << told(*member);
  EXPECT_THAT(member->error().what, HasSubstr("has another token than rank 1"));
  EXPECT_EQ(root->error().code, errc::timed_out);
  EXPECT_THAT(root->error().what, HasSubstr("rank 1 of 2 did not join"));
  EXPECT_THAT(root->error().what, HasSubstr("turned away: 127.0.0.1 did not prove the token (1 connection)"));
}
TEST(tcp_bootstrap, of_another_job_is_told_so) {
  std::optional<result<tcp_bootstrap>> member;
  const auto root = root_visited(2, options_for(0, 2), 0.5_s, [&](const io::socket_address& at) {
    bootstrap_options o = options_for(1, 2, at.port());
    o.job = "other";
    member = tcp_bootstrap::form(o, deadline::in(10_s));
  });
  EXPECT_EQ(member->error().code, errc::mismatch) << told(*member);
  EXPECT_THAT(member->error().what, HasSubstr("meets job \"test\", not job \"other\""));
  EXPECT_EQ(root->error().code, errc::timed_out);
}
TEST(tcp_bootstrap, refuses_another_version_and_names_both) {
  const auto root = root_visited(2, options_for(0, 2), 5_s,
                                 [&](const io::socket_address& at) { by_hand(at).join(hello_of(1, 2), secret, 9); });
  EXPECT_EQ(root->error().code, errc::mismatch) << told(*root);
  EXPECT_THAT(root->error().what, HasSubstr("speaks version 9 of the protocol, rank 0 (process"));
}
TEST(tcp_bootstrap, does_not_take_a_version_from_who_has_no_token) {
  const auto root = root_visited(2, options_for(0, 2), 0.3_s, [&](const io::socket_address& at) {
    by_hand(at).join(hello_of(1, 2), "another token of 32 bytes. .....", 9);
  });
  EXPECT_EQ(root->error().code, errc::timed_out) << told(*root);
}
TEST(tcp_bootstrap, gives_each_role_its_own_code) {
  // What one end proves must not serve the other end, nor turn a refusal into a welcome.
  const std::vector<std::byte> greeting = detail::encode(hello_of(1, 2));
  const auto code = [&](std::string_view role) { return detail::proof_of(secret, role, greeting); };
  EXPECT_FALSE(io::same_digest(code("member"), code("welcome")));
  EXPECT_FALSE(io::same_digest(code("welcome"), code("refusal")));
  EXPECT_TRUE(io::same_digest(code("member"), code("member")));
}
TEST(tcp_bootstrap, loses_a_member_that_leaves_before_all_are_there) {
  const auto root = root_visited(3, options_for(0, 3), 5_s, [&](const io::socket_address& at) {
    by_hand one(at);
    one.join(hello_of(1, 3), secret);
    one.close();
  });
  EXPECT_EQ(root->error().code, errc::peer_lost) << told(*root);
  EXPECT_THAT(root->error().what, HasSubstr("rank 1 (process 77 on "));
}
TEST(tcp_bootstrap, forms_after_greetings_cut_at_every_byte) {
  std::optional<result<tcp_bootstrap>> member;
  const auto root = root_visited(2, options_for(0, 2), 20_s, [&](const io::socket_address& at) {
    const std::vector<std::byte> greeting = detail::encode(hello_of(1, 2));
    for (std::size_t cut = 0; cut < greeting.size(); ++cut) by_hand(at).say(std::span(greeting).first(cut)).close();
    member = tcp_bootstrap::form(options_for(1, 2, at.port()), deadline::in(20_s));
  });
  EXPECT_TRUE(*root) << told(*root);
  EXPECT_TRUE(*member) << told(*member);
}
TEST(tcp_bootstrap, loses_a_member_whose_part_is_cut_at_any_byte) {
  const std::vector<std::byte> piece =
      detail::encode(detail::gather_piece{detail::gather_kind::all_gather, 0, 20'000, bytes_of("part")});
  for (std::size_t cut = 0; cut <= piece.size(); ++cut) {
    result<void> done;
    auto root = root_visited(2, options_for(0, 2), 5_s, [&](const io::socket_address& at) {
      by_hand one(at);
      one.join(hello_of(1, 2), secret);
      one.hear();
      one.say(std::span(piece).first(cut));
    });
    ASSERT_TRUE(*root) << told(*root);
    const auto parts = (*root)->all_gather(bytes_of("x"), deadline::in(5_s));
    if (cut < piece.size()) {
      ASSERT_FALSE(parts) << cut;
      EXPECT_EQ(parts.error().code, errc::peer_lost) << parts.error().message();
      EXPECT_THAT(parts.error().what, HasSubstr("rank 1 (process 77"));
    } else if (parts) {
      EXPECT_EQ(text_of((*parts)[1]), "part");
    }
  }
}
TEST(tcp_bootstrap, does_not_believe_a_root_that_does_not_know_the_token) {
  auto listener = io::tcp_listener::open(io::resolve("127.0.0.1", 0).value().front()).value();
  const std::uint16_t port = listener.local().port();
  std::atomic<bool> over{false};
  std::optional<result<tcp_bootstrap>> member;
  on_threads(2, [&](std::uint32_t which) {
    if (which == 1) {
      member = tcp_bootstrap::form(options_for(1, 2, port), deadline::in(0.4_s));
      over = true;
      return;
    }
    while (!over) {
      auto one = listener.accept(deadline::in(20_ms));
      if (!one) continue;
      detail::framed_stream s(std::move(*one));
      auto greeting = s.exchange(1024, deadline::in(1_s));
      if (!greeting) continue;
      s.push(detail::encode_code(detail::frame_kind::challenge, detail::nonce{}));
      if (!s.exchange(1024, deadline::in(1_s))) continue;
      detail::frame_writer w(detail::frame_kind::welcome);
      w.text("evil", 255);
      w.number(1, 4);
      s.push(detail::sealed(std::move(w), "not the token....", "welcome", greeting->whole));
      (void)s.flush();
    }
  });
  ASSERT_FALSE(*member);
  EXPECT_EQ(member->error().code, errc::timed_out);
  EXPECT_THAT(member->error().what, HasSubstr("did not prove that it knows the token"));
}
TEST(tcp_bootstrap, is_not_held_by_a_listener_that_is_no_root) {
  auto listener = io::tcp_listener::open(io::resolve("127.0.0.1", 0).value().front()).value();
  bootstrap_options o = options_for(1, 2, listener.local().port());
  const deadline until = deadline::in(0.3_s);
  const auto held = tcp_bootstrap::form(o, until);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, errc::timed_out);
  EXPECT_THAT(held.error().what, HasSubstr("did not answer before the deadline"));
  EXPECT_LT((steady_clock::now() - until.at).value, 0.5);
}

// ---- What a launcher says.

result<bootstrap_options> launched(const std::map<std::string, std::string, std::less<>>& variables) {
  const auto look = [&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  return from_launch(launch_from(look).value(), look);
}

TEST(from_launch, takes_what_torchrun_says) {
  std::map<std::string, std::string, std::less<>> v{{"RANK", "3"},
                                                    {"WORLD_SIZE", "8"},
                                                    {"LOCAL_RANK", "1"},
                                                    {"LOCAL_WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "n01"},
                                                    {"MASTER_PORT", "29500"},
                                                    {"TORCHELASTIC_RUN_ID", "j"},
                                                    {"TORCHELASTIC_RESTART_COUNT", "2"}};
  const auto o = launched(v).value();
  EXPECT_EQ(o.rank, rank_id{3});
  EXPECT_EQ(o.size, 8U);
  EXPECT_EQ(o.address, "n01");
  EXPECT_EQ(o.port, 29500);
  EXPECT_EQ(o.job, "j.2");
  EXPECT_TRUE(o.spans_hosts);
  EXPECT_TRUE(o.token.empty());
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(launched(v)->port, 29501) << "torchrun itself listens at MASTER_PORT";
}
TEST(from_launch, refuses_a_loopback_address_for_several_hosts) {
  for (const char* address : {"127.0.0.1", "localhost", "::1"}) {
    std::map<std::string, std::string, std::less<>> v{{"RANK", "0"},
                                                      {"WORLD_SIZE", "8"},
                                                      {"LOCAL_RANK", "0"},
                                                      {"LOCAL_WORLD_SIZE", "4"},
                                                      {"MASTER_ADDR", address},
                                                      {"MASTER_PORT", "29500"}};
    EXPECT_EQ(launched(v).error().code, errc::invalid_argument) << address;
    v["LOCAL_WORLD_SIZE"] = "8";
    EXPECT_TRUE(launched(v)) << address;
  }
}
TEST(from_launch, says_what_a_launcher_does_not_tell) {
  const auto o = launched({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  ASSERT_FALSE(o);
  EXPECT_EQ(o.error().code, errc::not_found);
  EXPECT_THAT(o.error().message(), HasSubstr("MASTER_ADDR"));
  EXPECT_TRUE(launched({})) << "one rank meets nobody";
}

}  // namespace
