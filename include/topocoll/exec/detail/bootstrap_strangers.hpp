// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who connected to a root and did not belong to its group.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/io/socket_address.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Connections that did not belong here, counted by host and reason. Keeps the first few kinds; strangers must not be
/// able to fill the memory.
class stranger_list {
 public:
  void add(const io::socket_address& from, std::string_view did) {
    const std::string host = from.host();
    for (stranger& s : kinds_)
      if (s.host == host && s.did == did) return void(++s.count);
    if (kinds_.size() < most)
      kinds_.push_back({host, std::string(did), 1});
    else
      ++others_;
  }
  template <class = void>
  [[nodiscard]] std::vector<finding> findings(const std::string& at) const {
    std::vector<finding> found;
    for (const stranger& s : kinds_)
      found.push_back(
          {severity::warning, at, s.host + ' ' + s.did, times(s.count),
           "if it should be a rank of this group, check its token, job and version; otherwise find out what "
           "connects there",
           1});
    if (others_ > 0)
      found.push_back({severity::warning, at, "more strangers connected, from other hosts or in other ways",
                       times(others_), "find out what connects there", 1});
    return found;
  }
  /// "; turned away: 10.0.0.9 did not prove the token (2 connections)", or nothing.
  template <class = void>
  [[nodiscard]] std::string in_words() const {
    std::string text;
    for (std::size_t i = 0; i < kinds_.size() && i < 3; ++i)
      text += (i == 0 ? "; turned away: " : ", ") + kinds_[i].host + ' ' + kinds_[i].did + " (" +
              times(kinds_[i].count) + ')';
    if (kinds_.size() > 3) text += " and others";
    return text;
  }

 private:
  struct stranger {
    std::string host;
    std::string did;
    std::uint64_t count = 0;
  };
  static constexpr std::size_t most = 32;

  [[nodiscard]] static std::string times(std::uint64_t n) {
    return n == 1 ? "1 connection" : std::to_string(n) + " connections";
  }
  std::vector<stranger> kinds_;
  std::uint64_t others_ = 0;
};

/// What somebody was who sent `bytes` instead of a greeting.
template <class = void>
[[nodiscard]] std::string_view foreign_in_words(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view method : {"GET ", "POST ", "HEAD ", "PUT ", "OPTIONS ", "CONNECT ", "PRI * "})
    if (text.substr(0, method.size()) == method) return "sent an HTTP request";
  if (text.substr(0, 4) == "SSH-") return "spoke SSH";
  if (text.size() > 1 && text[0] == '\x16' && text[1] == '\x03') return "spoke TLS";
  return "sent something else than a bootstrap message";
}

}}}  // namespace topocoll::v0::detail
