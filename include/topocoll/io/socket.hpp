// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP streams and listeners that never wait longer than they are told.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/socket_address.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// Waits until a descriptor of `watched` is ready for what its `events` ask, or until the deadline.
/// @return how many are ready (their `revents` say for what), 0 when the deadline passed; `system` if it cannot wait
template <class = void>
[[nodiscard]] result<std::size_t> wait_until_ready(std::span<pollfd> watched, deadline until);

/// What `tcp_stream::receive_some` found.
struct received {
  std::size_t count = 0;
  bool ended = false;  ///< the peer sends nothing more
};

/// A TCP connection. Closed on destruction; one thread at a time uses it. Sending never raises SIGPIPE; small messages
/// leave at once.
class tcp_stream {
 public:
  tcp_stream() = default;
  tcp_stream(tcp_stream&& other) noexcept : fd_(std::exchange(other.fd_, -1)), peer_(other.peer_) {}
  tcp_stream& operator=(tcp_stream&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
      peer_ = other.peer_;
    }
    return *this;
  }
  ~tcp_stream() { close(); }

  /// Connects to `to`, from the address `from` if it is one (its port 0: any).
  /// @return `unavailable` when nothing listens there or no route leads there, `timed_out`, `permission`,
  ///         `invalid_argument` when `from` is no address of this host, `system`. The sentence names both ends and the
  ///         interface that was tried.
  template <class = void>
  [[nodiscard]] static result<tcp_stream> connect(const socket_address& to, deadline until,
                                                  const socket_address& from = {});

  /// Sends what the system takes without waiting. @return how much, maybe 0; `peer_lost` when the peer is gone
  template <class = void>
  [[nodiscard]] result<std::size_t> send_some(std::span<const std::byte> data);
  /// Takes what has arrived, without waiting. @return `peer_lost` when the connection broke
  template <class = void>
  [[nodiscard]] result<received> receive_some(std::span<std::byte> into);
  /// All of `data`. @return also `timed_out`; a part may then be sent
  template <class = void>
  [[nodiscard]] result<void> send(std::span<const std::byte> data, deadline until);
  /// Exactly as much as `into` holds. @return also `timed_out`, and `peer_lost` when the peer ends before
  template <class = void>
  [[nodiscard]] result<void> receive(std::span<std::byte> into, deadline until);

  /// Gives the connection up when the peer's host has been silent for about `silence`, also while nothing is sent: a
  /// host that lost its power says no goodbye. At least 4 s.
  template <class = void>
  void watch_for_silence(seconds silence);

  [[nodiscard]] const socket_address& peer() const { return peer_; }
  /// This end's address; none when closed.
  [[nodiscard]] socket_address local() const;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() noexcept {
    if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
  }

 private:
  friend class tcp_listener;
  tcp_stream(int fd, const socket_address& peer) : fd_(fd), peer_(peer) {}

  int fd_ = -1;
  socket_address peer_;
};

/// Takes TCP connections at one address. Closed on destruction; connections that nobody took are then refused.
class tcp_listener {
 public:
  tcp_listener() = default;
  tcp_listener(tcp_listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  tcp_listener& operator=(tcp_listener&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~tcp_listener() { close(); }

  /// Listens at `at`; port 0 takes a free one, `local()` tells which. The address :: takes IPv4 too.
  /// @param backlog  connections that may wait to be accepted; the system may allow fewer (net.core.somaxconn)
  /// @return `unavailable` when the port is taken, `invalid_argument` when no interface of this host has the address,
  ///         `permission` for a port that needs root, `system`
  template <class = void>
  [[nodiscard]] static result<tcp_listener> open(const socket_address& at, int backlog = 128);

  /// A connection that waits, or nothing. @return `system` when no descriptor is left or the listener broke
  template <class = void>
  [[nodiscard]] result<std::optional<tcp_stream>> accept_now();
  /// The next connection. @return also `timed_out`
  template <class = void>
  [[nodiscard]] result<tcp_stream> accept(deadline until);

  [[nodiscard]] socket_address local() const;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() noexcept {
    if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
  }

 private:
  explicit tcp_listener(int fd) : fd_(fd) {}
  int fd_ = -1;
};

namespace detail {

[[nodiscard]] inline socket_address local_address(int fd) {
  socket_address a;
  a.length = sizeof a.raw;
  if (fd < 0 || ::getsockname(fd, reinterpret_cast<sockaddr*>(&a.raw), &a.length) != 0) a = {};
  return a;
}
inline void set_option(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);  // each of them is a wish
}
/// "tried from 10.0.0.9 on eth0", for the sentences of a connection that did not come about.
template <class = void>
[[nodiscard]] std::string tried_from(const socket_address& from) {
  if (from.length == 0 || from.is_any()) return "no interface of this host was found that leads there";
  const std::string name = interface_of(from);
  return "tried from " + from.host() + (name.empty() ? "" : " on interface " + name);
}
template <class = void>
[[nodiscard]] failure connect_failure(int reason, const socket_address& to, const socket_address& from) {
  const std::string there = to.text();
  const std::string tried = " (" + tried_from(from) + ')';
  switch (reason) {
    case ECONNREFUSED:
    case ECONNRESET:
      return fail(errc::unavailable, "nothing listens at " + there + tried,
                  "check address and port, and that the other side is running");
    case ENETUNREACH:
    case EHOSTUNREACH:
      return fail(errc::unavailable, "no route leads to " + there + tried,
                  "check the address, and the interface that is to reach it");
    case ETIMEDOUT:
      return fail(errc::timed_out, there + " does not answer" + tried,
                  "check the address, the interface that is to reach it, and firewalls between the hosts");
    case EADDRNOTAVAIL:
      return fail(errc::invalid_argument, "cannot connect to " + there + " from " + from.text() +
                                              ": this host has no such address or no free port there");
    case EACCES:
    case EPERM:
      return fail(errc::permission, "this host forbids connections to " + there + tried, "check its firewall rules");
    case EMFILE:
    case ENFILE:
      return fail(errc::system, "too many files are open: cannot connect to " + there, "raise the limit (ulimit -n)");
    default:
      return fail(errc::system, "cannot connect to " + there + ": " + std::generic_category().message(reason) + tried);
  }
}
template <class = void>
[[nodiscard]] failure listen_failure(int reason, const socket_address& at) {
  const std::string where = at.text();
  switch (reason) {
    case EADDRINUSE:
      return fail(errc::unavailable, "cannot listen at " + where + ": another program listens there",
                  "choose another port, or port 0 for a free one");
    case EADDRNOTAVAIL:
      return fail(errc::invalid_argument, "cannot listen at " + where + ": no interface of this host has that address",
                  "give an address of this host, or run this rank on the host that has it");
    case EACCES:
    case EPERM: return fail(errc::permission, "no permission to listen at " + where, "choose a port above 1023");
    case EMFILE:
    case ENFILE:
      return fail(errc::system, "too many files are open: cannot listen at " + where, "raise the limit (ulimit -n)");
    default: return fail(errc::system, "cannot listen at " + where + ": " + std::generic_category().message(reason));
  }
}
template <class = void>
[[nodiscard]] failure stream_failure(int reason, const socket_address& peer) {
  if (reason == EPIPE || reason == ECONNRESET || reason == ETIMEDOUT || reason == ENETUNREACH ||
      reason == EHOSTUNREACH || reason == ENOTCONN || reason == EBADF)
    return fail(errc::peer_lost,
                "the connection to " + peer.text() + " is lost: " + std::generic_category().message(reason));
  return fail(errc::system,
              "the connection to " + peer.text() + " does not work: " + std::generic_category().message(reason));
}
template <class = void>
[[nodiscard]] result<void> wait_for(int fd, short events, deadline until, const char* doing,
                                    const socket_address& peer) {
  pollfd one{fd, events, 0};
  auto ready = wait_until_ready(std::span(&one, 1), until);
  if (!ready) return std::move(ready).error();
  if (*ready == 0) return fail(errc::timed_out, std::string("the deadline passed while ") + doing + ' ' + peer.text());
  return {};
}
inline void prepare_stream(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

}  // namespace detail

inline socket_address tcp_stream::local() const { return detail::local_address(fd_); }
inline socket_address tcp_listener::local() const { return detail::local_address(fd_); }

template <class>
result<std::size_t> wait_until_ready(std::span<pollfd> watched, deadline until) {
  constexpr double longest = 3600;  // one call; keeps the time within what a timespec holds
  for (;;) {
    const double left = until.left().value;
    const double span = left < longest ? left : longest;
    timespec time{};
    time.tv_sec = static_cast<time_t>(span);
    time.tv_nsec = static_cast<long>((span - static_cast<double>(time.tv_sec)) * 1e9);
    const int ready = ::ppoll(watched.data(), watched.size(), &time, nullptr);
    if (ready > 0) return static_cast<std::size_t>(ready);
    if (ready < 0 && errno != EINTR)
      return fail(errc::system, "cannot wait for connections: " + std::generic_category().message(errno));
    if (ready == 0 && until.passed()) return std::size_t{0};
  }
}

template <class>
result<tcp_stream> tcp_stream::connect(const socket_address& to, deadline until, const socket_address& from) {
  if (to.length == 0 || to.is_any() || to.port() == 0)
    return fail(errc::invalid_argument, "cannot connect to " + to.text() + ": that is no address of a listener",
                "give the address and the port of the other side");
  tcp_stream s(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), to);
  if (s.fd_ < 0) return detail::connect_failure(errno, to, from);
  if (from.length != 0) {
    if (from.family() != to.family())
      return fail(errc::invalid_argument, "cannot connect from " + from.host() + " to " + to.text() +
                                              ": one is an IPv4 and the other an IPv6 address");
    if (::bind(s.fd_, from.data(), from.length) != 0) return detail::connect_failure(errno, to, from);
  }
  detail::prepare_stream(s.fd_);
  int reason = ::connect(s.fd_, to.data(), to.length) == 0 ? 0 : errno;
  const socket_address mine = s.local();
  if (reason == EINPROGRESS || reason == EINTR) {
    pollfd one{s.fd_, POLLOUT, 0};
    auto ready = wait_until_ready(std::span(&one, 1), until);
    if (!ready) return std::move(ready).error();
    socklen_t length = sizeof reason;
    if (*ready == 0)
      reason = ETIMEDOUT;
    else if (::getsockopt(s.fd_, SOL_SOCKET, SO_ERROR, &reason, &length) != 0)
      reason = errno;
  }
  if (reason != 0) return detail::connect_failure(reason, to, mine);
  // Who dials a free port of the own host in the range that ports are given out from may be given that very port, and
  // then talks to itself.
  const socket_address end = s.local();
  if (end.same_host_as(to) && end.port() == to.port()) return detail::connect_failure(ECONNREFUSED, to, end);
  return result<tcp_stream>(std::move(s));  // nvcc 13 would copy a plain name
}

template <class>
result<std::size_t> tcp_stream::send_some(std::span<const std::byte> data) {
  for (;;) {
    const auto sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return std::size_t{0};
    if (errno != EINTR) return detail::stream_failure(errno, peer_);
  }
}

template <class>
result<received> tcp_stream::receive_some(std::span<std::byte> into) {
  for (;;) {
    const auto got = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
    if (got >= 0) return received{static_cast<std::size_t>(got), got == 0 && !into.empty()};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return received{};
    if (errno != EINTR) return detail::stream_failure(errno, peer_);
  }
}

template <class>
result<void> tcp_stream::send(std::span<const std::byte> data, deadline until) {
  while (!data.empty()) {
    auto sent = send_some(data);
    if (!sent) return std::move(sent).error();
    data = data.subspan(*sent);
    if (*sent > 0) continue;
    if (auto ready = detail::wait_for(fd_, POLLOUT, until, "sending to", peer_); !ready) return ready;
  }
  return {};
}

template <class>
result<void> tcp_stream::receive(std::span<std::byte> into, deadline until) {
  while (!into.empty()) {
    auto got = receive_some(into);
    if (!got) return std::move(got).error();
    if (got->ended) return fail(errc::peer_lost, "the connection to " + peer_.text() + " was closed by the other side");
    into = into.subspan(got->count);
    if (got->count > 0) continue;
    if (auto ready = detail::wait_for(fd_, POLLIN, until, "waiting for", peer_); !ready) return ready;
  }
  return {};
}

template <class>
void tcp_stream::watch_for_silence(seconds silence) {
  constexpr int probes = 3;
  const int whole = silence.value > 4 ? (silence.value < 86400 ? static_cast<int>(silence.value) : 86400) : 4;
  detail::set_option(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
  detail::set_option(fd_, IPPROTO_TCP, TCP_KEEPIDLE, whole - probes * (whole / 4));
  detail::set_option(fd_, IPPROTO_TCP, TCP_KEEPINTVL, whole / 4);
  detail::set_option(fd_, IPPROTO_TCP, TCP_KEEPCNT, probes);
  detail::set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, whole * 1000);
}

template <class>
result<tcp_listener> tcp_listener::open(const socket_address& at, int backlog) {
  if (at.length == 0)
    return fail(errc::invalid_argument, "cannot listen at no address", "give an address of this host, or 0.0.0.0");
  tcp_listener l(::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (l.fd_ < 0) return detail::listen_failure(errno, at);
  detail::set_option(l.fd_, SOL_SOCKET, SO_REUSEADDR, 1);  // a restarted job need not wait for its old port
  if (at.family() == AF_INET6) detail::set_option(l.fd_, IPPROTO_IPV6, IPV6_V6ONLY, at.is_any() ? 0 : 1);
  if (::bind(l.fd_, at.data(), at.length) != 0 || ::listen(l.fd_, backlog) != 0)
    return detail::listen_failure(errno, at);
  return result<tcp_listener>(std::move(l));
}

template <class>
result<std::optional<tcp_stream>> tcp_listener::accept_now() {
  for (;;) {
    socket_address peer;
    peer.length = sizeof peer.raw;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer.raw), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      detail::prepare_stream(fd);
      return std::optional(tcp_stream(fd, peer));
    }
    switch (errno) {
      case EAGAIN: return std::optional<tcp_stream>();
      case EMFILE:
      case ENFILE:
        return fail(errc::system, "too many files are open: cannot accept connections at " + local().text(),
                    "raise the limit (ulimit -n)");
      // What went wrong with one connection before it was taken (accept(2)): the next may be fine.
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
      case ENETDOWN:
      case ENETUNREACH:
      case EHOSTDOWN:
      case EHOSTUNREACH:
      case ENONET:
      case ENOPROTOOPT: continue;
      default:
        return fail(errc::system,
                    "cannot accept connections at " + local().text() + ": " + std::generic_category().message(errno));
    }
  }
}

template <class>
result<tcp_stream> tcp_listener::accept(deadline until) {
  for (;;) {
    auto taken = accept_now();
    if (!taken) return std::move(taken).error();
    if (*taken) return std::move(**taken);
    pollfd one{fd_, POLLIN, 0};
    auto ready = wait_until_ready(std::span(&one, 1), until);
    if (!ready) return std::move(ready).error();
    if (*ready == 0) return fail(errc::timed_out, "nobody connected to " + local().text() + " before the deadline");
  }
}

}}}  // namespace topocoll::v0::io
