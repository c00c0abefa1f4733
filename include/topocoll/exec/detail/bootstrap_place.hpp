// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the root of a group is met, as options and files say it, and what a process says of itself.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap_options.hpp>
#include <topocoll/exec/detail/bootstrap_wire.hpp>
#include <topocoll/exec/detail/process.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/socket_address.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class = void>
[[nodiscard]] result<void> fill_at_random(std::span<std::byte> into) {
  while (!into.empty()) {
    const auto got = ::getrandom(into.data(), into.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(errc::system, "the system gives no random bytes: " + std::generic_category().message(errno));
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

[[nodiscard]] inline rank_place own_place(const bootstrap_options& o) {
  const std::string name = (o.host_name.empty() ? host_name() : o.host_name).substr(0, longest_word);
  return {name, static_cast<std::uint32_t>(::getpid())};
}

/// Where the root is to listen.
template <class = void>
[[nodiscard]] result<io::socket_address> listening_address(const bootstrap_options& o) {
  io::socket_address at;
  if (!o.interface_name.empty()) {
    auto found = io::address_of_interface(o.interface_name, o.port);
    if (!found) return std::move(found).error();
    at = *found;
  } else {
    auto found = io::resolve(o.address.empty() ? (o.token.empty() ? "127.0.0.1" : "0.0.0.0") : o.address, o.port);
    if (!found) return std::move(found).error();
    at = found->front();
  }
  if (o.spans_hosts && at.is_loopback()) return loopback_failure(at.host());
  if (o.token.empty() && !at.is_loopback()) return no_token_failure(at.host());
  return at;
}

/// Tells the others by the file where the root listens.
template <class = void>
[[nodiscard]] result<void> write_port_file(const bootstrap_options& o, const io::socket_address& at) {
  if (o.port_file.empty()) return {};
  std::string host = o.address.empty() ? at.host() : o.address;
  if (at.is_any() && o.address.empty()) {
    host = "127.0.0.1";  // of a host without a network
    if (auto all = io::interface_addresses())
      for (const io::interface_address& i : *all)
        if (i.up && i.address.family() == AF_INET && !i.address.is_loopback()) {
          host = i.address.host();
          break;
        }
  }
  return io::write_file(o.port_file,
                        "topocoll.bootstrap/1\n" + host + '\n' + std::to_string(at.port()) + '\n' + o.job + '\n');
}

/// Where the file says that the root listens: host and port.
template <class = void>
[[nodiscard]] result<std::pair<std::string, std::uint16_t>> read_port_file(const bootstrap_options& o) {
  const std::string& path = o.port_file;
  auto text = io::read_file(path, bytes{4096});
  if (!text) {
    if (text.error().code != errc::not_found) return std::move(text).error();
    return fail(errc::not_found, "there is no file '" + path + "' yet that says where it listens",
                "check that the root runs and that all ranks see this file");
  }
  std::vector<std::string_view> lines;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto port = lines.size() == 4 ? exact_number<std::uint16_t>(lines[2]) : std::nullopt;
  if (!port || lines[0] != "topocoll.bootstrap/1" || *port == 0)
    return fail(errc::malformed_input, "the file '" + path + "' does not say where a root listens",
                "name a file of its own for this job");
  if (lines[3] != o.job)
    return fail(errc::mismatch,
                "the file '" + path + "' is of job \"" + std::string(lines[3]) + "\", not of job \"" + o.job + '"',
                "name a file of its own for each job");
  return std::pair(std::string(lines[1]), *port);
}

}}}  // namespace topocoll::v0::detail
