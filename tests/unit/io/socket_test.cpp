// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/io/socket.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

io::socket_address numeric(std::string_view host, std::uint16_t port = 0) {
  return io::resolve(host, port).value().front();
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct pair {
  io::tcp_listener listener;
  io::tcp_stream near;
  io::tcp_stream far;
};
pair connected(std::string_view host = "127.0.0.1") {
  pair p;
  p.listener = io::tcp_listener::open(numeric(host)).value();
  p.near = io::tcp_stream::connect(p.listener.local(), deadline::in(5_s)).value();
  p.far = p.listener.accept(deadline::in(5_s)).value();
  return p;
}
std::uint16_t free_port() { return io::tcp_listener::open(numeric("127.0.0.1")).value().local().port(); }

TEST(socket_address, is_written_as_people_write_it) {
  EXPECT_EQ(numeric("10.0.0.3", 4711).text(), "10.0.0.3:4711");
  EXPECT_EQ(numeric("::1", 80).text(), "[::1]:80");
  EXPECT_EQ(numeric("[2001:db8::7]", 80).text(), "[2001:db8::7]:80");
  EXPECT_EQ(io::socket_address{}.text(), "no address");
}
TEST(socket_address, knows_loopback_in_every_spelling) {
  for (const char* here : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.1.1"})
    EXPECT_TRUE(numeric(here).is_loopback()) << here;
  for (const char* elsewhere : {"128.0.0.1", "10.127.0.1", "::2", "::ffff:10.0.0.1", "0.0.0.0", "::"})
    EXPECT_FALSE(numeric(elsewhere).is_loopback()) << elsewhere;
}
TEST(socket_address, of_no_particular_interface_is_any) {
  EXPECT_TRUE(numeric("0.0.0.0").is_any());
  EXPECT_TRUE(numeric("::").is_any());
  EXPECT_FALSE(numeric("127.0.0.1").is_any());
}
TEST(socket_address, compares_hosts_without_ports) {
  EXPECT_TRUE(numeric("10.0.0.3", 1).same_host_as(numeric("10.0.0.3", 2)));
  EXPECT_TRUE(numeric("10.0.0.3").same_host_as(numeric("::ffff:10.0.0.3")));
  EXPECT_FALSE(numeric("10.0.0.3").same_host_as(numeric("10.0.0.4")));
  EXPECT_FALSE(numeric("::1").same_host_as(numeric("127.0.0.1")));
}

TEST(resolve, knows_localhost) {
  const auto found = io::resolve("localhost", 7).value();
  for (const io::socket_address& a : found) {
    EXPECT_TRUE(a.is_loopback()) << a.text();
    EXPECT_EQ(a.port(), 7);
  }
}
TEST(resolve, refuses_no_host_and_says_who_is_not_known) {
  EXPECT_EQ(io::resolve("", 1).error().code, errc::invalid_argument);
  EXPECT_EQ(io::resolve(std::string_view("a\0b", 3), 1).error().code, errc::invalid_argument);
  const auto unknown = io::resolve("no such host", 1);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("\"no such host\""), std::string::npos) << unknown.error().what;
}

TEST(address_of_interface, finds_the_loopback_interface) {
  const auto lo = io::address_of_interface("lo", 9).value();
  EXPECT_TRUE(lo.is_loopback());
  EXPECT_EQ(lo.port(), 9);
  EXPECT_EQ(io::interface_of(lo), "lo");
}
TEST(address_of_interface, names_those_that_there_are) {
  const auto none = io::address_of_interface("nope0", 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::not_found);
  EXPECT_NE(none.error().next.find("lo"), std::string::npos) << none.error().next;
}

TEST(tcp_stream, carries_bytes_both_ways) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    if (!io::tcp_listener::open(numeric(host))) continue;  // a host without IPv6
    pair p = connected(host);
    ASSERT_TRUE(p.near.send(bytes_of("hello"), deadline::in(5_s)));
    std::string got(5, ' ');
    ASSERT_TRUE(p.far.receive(std::as_writable_bytes(std::span(got.data(), got.size())), deadline::in(5_s)));
    EXPECT_EQ(got, "hello");
    ASSERT_TRUE(p.far.send(bytes_of("world"), deadline::in(5_s)));
    ASSERT_TRUE(p.near.receive(std::as_writable_bytes(std::span(got.data(), got.size())), deadline::in(5_s)));
    EXPECT_EQ(got, "world");
    EXPECT_EQ(p.near.local().text(), p.far.peer().text());
    EXPECT_EQ(p.far.local().text(), p.near.peer().text());
  }
}
TEST(tcp_stream, carries_more_than_the_system_buffers) {
  pair p = connected();
  const std::vector<std::byte> sent(20'000'000, std::byte{7});
  std::thread sender([&] { EXPECT_TRUE(p.near.send(sent, deadline::in(30_s))); });
  std::vector<std::byte> got(sent.size());
  EXPECT_TRUE(p.far.receive(got, deadline::in(30_s)));
  sender.join();
  EXPECT_TRUE(got == sent);
}
TEST(tcp_stream, waits_no_longer_than_told) {
  pair p = connected();
  std::byte one{};
  const deadline soon = deadline::in(50_ms);
  const auto nothing = p.far.receive(std::span(&one, 1), soon);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, errc::timed_out);
  EXPECT_NE(nothing.error().what.find(p.far.peer().text()), std::string::npos) << nothing.error().what;
  EXPECT_TRUE(soon.passed());
  const std::vector<std::byte> much(50'000'000);
  const auto stuck = p.near.send(much, deadline::in(50_ms));
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code, errc::timed_out);
}
TEST(tcp_stream, notices_that_the_peer_is_gone_without_a_signal) {
  pair p = connected();
  p.far.close();
  std::byte one{};
  const auto ended = p.near.receive(std::span(&one, 1), deadline::in(5_s));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, errc::peer_lost);
  // The first send may still be taken; SIGPIPE would end this program.
  result<void> sent;
  for (int i = 0; i < 100 && sent; ++i) sent = p.near.send(bytes_of("x"), deadline::in(5_s));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, errc::peer_lost);
}
TEST(tcp_stream, closes_when_it_is_destroyed_or_assigned_to) {
  pair p = connected();
  std::byte one{};
  { const io::tcp_stream moved = std::move(p.near); }
  EXPECT_FALSE(p.near.is_open());
  EXPECT_EQ(p.far.receive(std::span(&one, 1), deadline::in(5_s)).error().code, errc::peer_lost);
  pair q = connected();
  q.near = io::tcp_stream();
  EXPECT_EQ(q.far.receive(std::span(&one, 1), deadline::in(5_s)).error().code, errc::peer_lost);
}
TEST(tcp_stream, goes_on_waiting_after_a_signal) {
  struct sigaction quiet {};
  struct sigaction before {};
  quiet.sa_handler = [](int) {};  // without SA_RESTART: every wait ends with EINTR
  ASSERT_EQ(::sigaction(SIGUSR1, &quiet, &before), 0);
  pair p = connected();
  const pthread_t me = ::pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(me, SIGUSR1);
      (void)io::wait_until_ready({}, deadline::in(2_ms));
    }
    EXPECT_TRUE(p.near.send(bytes_of("x"), deadline::in(5_s)));
  });
  std::byte one{};
  EXPECT_TRUE(p.far.receive(std::span(&one, 1), deadline::in(10_s)));
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(tcp_stream, that_finds_nobody_names_address_and_interface) {
  const std::uint16_t port = free_port();
  const auto refused = io::tcp_stream::connect(numeric("127.0.0.1", port), deadline::in(5_s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unavailable);
  EXPECT_NE(refused.error().what.find("127.0.0.1:" + std::to_string(port)), std::string::npos) << refused.error().what;
  EXPECT_NE(refused.error().what.find("tried from 127.0.0.1 on interface lo"), std::string::npos)
      << refused.error().what;
}
TEST(tcp_stream, gives_up_on_a_listener_that_takes_nobody) {
  // A full queue of connections, with the smallest one that the system allows, is silent like a host that drops packets.
  auto listener = io::tcp_listener::open(numeric("127.0.0.1"), 0).value();
  std::vector<io::tcp_stream> queued;
  for (int i = 0; i < 8; ++i) {
    auto one = io::tcp_stream::connect(listener.local(), deadline::in(100_ms));
    if (one) {
      queued.push_back(std::move(*one));
      continue;
    }
    EXPECT_EQ(one.error().code, errc::timed_out);
    EXPECT_NE(one.error().what.find(listener.local().text() + " does not answer (tried from"), std::string::npos)
        << one.error().what;
    return;
  }
  FAIL() << "every connection was taken";
}
TEST(tcp_stream, refuses_what_is_no_address_of_a_listener) {
  EXPECT_EQ(io::tcp_stream::connect(numeric("127.0.0.1", 0), deadline::in(1_s)).error().code, errc::invalid_argument);
  EXPECT_EQ(io::tcp_stream::connect(numeric("0.0.0.0", 1), deadline::in(1_s)).error().code, errc::invalid_argument);
  EXPECT_EQ(io::tcp_stream::connect({}, deadline::in(1_s)).error().code, errc::invalid_argument);
}
TEST(tcp_stream, connects_from_the_address_that_is_named) {
  auto listener = io::tcp_listener::open(numeric("127.0.0.1")).value();
  const auto s = io::tcp_stream::connect(listener.local(), deadline::in(5_s), numeric("127.0.0.9")).value();
  EXPECT_EQ(s.local().host(), "127.0.0.9");
  const auto foreign = io::tcp_stream::connect(listener.local(), deadline::in(5_s), numeric("192.0.2.1"));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, errc::invalid_argument) << foreign.error().what;
}

TEST(tcp_listener, tells_the_port_that_it_was_given) {
  const auto l = io::tcp_listener::open(numeric("127.0.0.1")).value();
  EXPECT_NE(l.local().port(), 0);
  const auto taken = io::tcp_listener::open(l.local());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, errc::unavailable);
  EXPECT_NE(taken.error().what.find(l.local().text()), std::string::npos) << taken.error().what;
}
TEST(tcp_listener, refuses_an_address_of_another_host) {
  const auto l = io::tcp_listener::open(numeric("192.0.2.1"));  // RFC 5737: belongs to nobody
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, errc::invalid_argument);
}
TEST(tcp_listener, has_nobody_when_nobody_comes) {
  auto l = io::tcp_listener::open(numeric("127.0.0.1")).value();
  EXPECT_FALSE(l.accept_now().value());
  EXPECT_EQ(l.accept(deadline::in(20_ms)).error().code, errc::timed_out);
}

}  // namespace
