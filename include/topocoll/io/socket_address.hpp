// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP addresses: numeric, by name, and those of this host's network interfaces.
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// An IPv4 or IPv6 address with a port. Default: none.
struct socket_address {
  sockaddr_storage raw{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&raw); }
  [[nodiscard]] int family() const { return raw.ss_family; }
  [[nodiscard]] std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// Without the port: "10.0.0.3", "fe80::1%eth0".
  [[nodiscard]] std::string host() const;
  /// "10.0.0.3:4711", "[fe80::1%eth0]:4711"; "no address" for none.
  [[nodiscard]] std::string text() const;
  /// 127.0.0.0/8, ::1, or the former written as IPv6: reaches no other host.
  [[nodiscard]] bool is_loopback() const;
  /// 0.0.0.0 or ::, which mean every interface of a listener and nobody to connect to.
  [[nodiscard]] bool is_any() const;
  /// Same family and address; the port does not count.
  [[nodiscard]] bool same_host_as(const socket_address& other) const;
};

/// What an interface of this host is called and one of its addresses; port 0.
struct interface_address {
  std::string name;
  socket_address address;
  bool up = false;
};

/// The IPv4 and IPv6 addresses of this host's interfaces, in the system's order. @return `system` if it does not tell
template <class = void>
[[nodiscard]] result<std::vector<interface_address>> interface_addresses();

/// The address to bind to for the interface `name`: its first IPv4 address, else its first IPv6 address that is not
/// link-local, else its first. @return `not_found`, with the interfaces that there are
template <class = void>
[[nodiscard]] result<socket_address> address_of_interface(std::string_view name, std::uint16_t port);

/// The interface that has this address, or an empty text.
template <class = void>
[[nodiscard]] std::string interface_of(const socket_address& address);

/// Addresses of a host, given in numbers ("10.0.0.3", "::1", "fe80::1%eth0", also in brackets) or by name.
///
/// Numbers are read without asking anybody. A name is asked of the system's resolver, which takes no deadline: it waits
/// as long as /etc/resolv.conf lets it, by default 5 s for each of two tries and each server.
/// @return `invalid_argument` for an empty host, `not_found` for a name that nobody knows, `unavailable` when the
///         resolver did not answer; in the resolver's order, each once
template <class = void>
[[nodiscard]] result<std::vector<socket_address>> resolve(std::string_view host, std::uint16_t port);

namespace detail {

[[nodiscard]] inline const sockaddr_in& as_ipv4(const sockaddr_storage& raw) {
  return reinterpret_cast<const sockaddr_in&>(raw);
}
[[nodiscard]] inline const sockaddr_in6& as_ipv6(const sockaddr_storage& raw) {
  return reinterpret_cast<const sockaddr_in6&>(raw);
}
/// The IPv4 address, in the order of this machine, of an IPv4 address or of one written as ::ffff:a.b.c.d; else 0.
[[nodiscard]] inline std::uint32_t ipv4_within(const socket_address& a) {
  if (a.family() == AF_INET) return ntohl(as_ipv4(a.raw).sin_addr.s_addr);
  if (a.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&as_ipv6(a.raw).sin6_addr)) return 0;
  std::uint32_t number = 0;
  std::memcpy(&number, as_ipv6(a.raw).sin6_addr.s6_addr + 12, sizeof number);
  return ntohl(number);
}
[[nodiscard]] inline socket_address address_from(const sockaddr* raw, socklen_t length) {
  socket_address a;
  a.length = length <= sizeof a.raw ? length : 0;
  std::memcpy(&a.raw, raw, a.length);
  return a;
}

}  // namespace detail

inline std::uint16_t socket_address::port() const {
  if (family() == AF_INET) return ntohs(detail::as_ipv4(raw).sin_port);
  return family() == AF_INET6 ? ntohs(detail::as_ipv6(raw).sin6_port) : std::uint16_t{0};
}
inline void socket_address::set_port(std::uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(raw).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(raw).sin6_port = htons(port);
}
inline std::string socket_address::host() const {
  char name[NI_MAXHOST] = {};
  if (length == 0 || ::getnameinfo(data(), length, name, sizeof name, nullptr, 0, NI_NUMERICHOST) != 0)
    return "no address";
  return name;
}
inline std::string socket_address::text() const {
  if (length == 0) return "no address";
  const std::string name = host();
  return (family() == AF_INET6 ? '[' + name + ']' : name) + ':' + std::to_string(port());
}
inline bool socket_address::is_loopback() const {
  if (family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&detail::as_ipv6(raw).sin6_addr)) return true;
  return detail::ipv4_within(*this) >> 24U == 127;
}
inline bool socket_address::is_any() const {
  if (family() == AF_INET) return detail::as_ipv4(raw).sin_addr.s_addr == htonl(INADDR_ANY);
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&detail::as_ipv6(raw).sin6_addr);
}
inline bool socket_address::same_host_as(const socket_address& other) const {
  if (detail::ipv4_within(*this) != 0 || detail::ipv4_within(other) != 0)
    return detail::ipv4_within(*this) == detail::ipv4_within(other);
  if (family() != other.family()) return false;
  if (family() != AF_INET6) return true;
  const auto& mine = detail::as_ipv6(raw);
  const auto& theirs = detail::as_ipv6(other.raw);
  return IN6_ARE_ADDR_EQUAL(&mine.sin6_addr, &theirs.sin6_addr) && mine.sin6_scope_id == theirs.sin6_scope_id;
}

template <class>
result<std::vector<interface_address>> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    return fail(errc::system,
                "the addresses of this host's interfaces cannot be read: " + std::generic_category().message(errno));
  std::vector<interface_address> found;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    found.push_back({i->ifa_name, detail::address_from(i->ifa_addr, length), (i->ifa_flags & IFF_UP) != 0});
  }
  ::freeifaddrs(first);
  return found;
}

template <class>
result<socket_address> address_of_interface(std::string_view name, std::uint16_t port) {
  auto all = interface_addresses();
  if (!all) return std::move(all).error();
  const socket_address* best = nullptr;
  int best_rank = 0;
  std::string others;
  for (const interface_address& i : *all) {
    if (i.name != name) {
      if ((", " + others + ',').find(", " + i.name + ',') == std::string::npos)
        others += (others.empty() ? "" : ", ") + i.name;
      continue;
    }
    const bool link_local =
        i.address.family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&detail::as_ipv6(i.address.raw).sin6_addr);
    const int rank = i.address.family() == AF_INET ? 3 : link_local ? 1 : 2;
    if (rank > best_rank) {
      best = &i.address;
      best_rank = rank;
    }
  }
  if (best == nullptr)
    return fail(errc::not_found, "this host has no interface \"" + std::string(name) + "\" with an IP address",
                others.empty() ? "" : "name one of: " + others);
  socket_address chosen = *best;
  chosen.set_port(port);
  return chosen;
}

template <class>
std::string interface_of(const socket_address& address) {
  const auto all = interface_addresses();
  if (!all) return {};
  for (const interface_address& i : *all)
    if (i.address.same_host_as(address)) return i.name;
  return {};
}

template <class>
result<std::vector<socket_address>> resolve(std::string_view host, std::uint16_t port) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string name(host);
  if (name.empty() || name.find('\0') != std::string::npos)
    return fail(errc::invalid_argument, "no host is named", "give a host name or an address in numbers");
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST;
  addrinfo* first = nullptr;
  int reason = ::getaddrinfo(name.c_str(), nullptr, &wanted, &first);
  if (reason == EAI_NONAME) {  // not in numbers
    wanted.ai_flags = 0;
    reason = ::getaddrinfo(name.c_str(), nullptr, &wanted, &first);
  }
  if (reason == EAI_SYSTEM)
    return fail(errc::unavailable,
                "the address of host \"" + name + "\" cannot be asked for: " + std::generic_category().message(errno));
  if (reason == EAI_AGAIN)
    return fail(errc::unavailable, "the resolver did not answer for host \"" + name + '"',
                "check /etc/resolv.conf, or give the address in numbers");
  if (reason != 0)
    return fail(errc::not_found, "nobody knows a host \"" + name + "\" (" + ::gai_strerror(reason) + ')',
                "check the name, or give the address in numbers");
  std::vector<socket_address> found;
  for (const addrinfo* a = first; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    socket_address one = detail::address_from(a->ai_addr, a->ai_addrlen);
    one.set_port(port);
    bool known = false;
    for (const socket_address& f : found) known = known || f.same_host_as(one);
    if (!known) found.push_back(one);
  }
  ::freeaddrinfo(first);
  if (found.empty())
    return fail(errc::not_found, "host \"" + name + "\" has neither an IPv4 nor an IPv6 address",
                "check the name, or give the address in numbers");
  return found;
}

}}}  // namespace topocoll::v0::io
