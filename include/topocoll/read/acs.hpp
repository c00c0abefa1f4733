// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCIe access control services: the bits of a bridge's control register, and whether they send peer traffic upwards.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace read {

/// Bits of the ACS control register. Source: PCI Express Base Specification, 7.7.11.3.
inline constexpr std::uint16_t acs_source_validation = 0x01;
inline constexpr std::uint16_t acs_translation_blocking = 0x02;
inline constexpr std::uint16_t acs_request_redirect = 0x04;
inline constexpr std::uint16_t acs_completion_redirect = 0x08;
inline constexpr std::uint16_t acs_upstream_forwarding = 0x10;
inline constexpr std::uint16_t acs_egress_control = 0x20;
inline constexpr std::uint16_t acs_direct_translated = 0x40;

/// True when a bridge with this control register sends requests or completions between its devices up to the root complex,
/// so that peer traffic takes the way through the processor. Source validation or forwarding alone do not.
[[nodiscard]] constexpr bool redirects_peer_traffic(std::uint16_t control) {
  return (control & (acs_request_redirect | acs_completion_redirect)) != 0;
}

/// Reads what lspci prints: "SrcValid+ TransBlk- ReqRedir+ …", where + means set. Empty when no word is known.
[[nodiscard]] constexpr std::optional<std::uint16_t> acs_bits_of(std::string_view text) {
  constexpr std::array<std::string_view, 7> names = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                                     "UpstreamFwd", "EgressCtrl", "DirectTrans"};
  std::uint16_t bits = 0;
  bool any = false;
  for (std::size_t bit = 0; bit < names.size(); ++bit) {
    const std::size_t at = text.find(names[bit]);
    if (at == std::string_view::npos || at + names[bit].size() >= text.size()) continue;
    const char sign = text[at + names[bit].size()];
    if (sign != '+' && sign != '-') continue;
    any = true;
    if (sign == '+') bits = static_cast<std::uint16_t>(bits | 1U << bit);
  }
  return any ? std::optional(bits) : std::nullopt;
}

/// What can be known of the access control of a bridge.
struct acs_state {
  bool known = false;                    ///< someone with the right to look has looked
  std::optional<std::uint16_t> control;  ///< empty when there is no such capability, or when it is not known

  /// Whether peer traffic is redirected; empty when it is not known.
  [[nodiscard]] constexpr std::optional<bool> redirects() const {
    if (control) return redirects_peer_traffic(*control);
    return known ? std::optional(false) : std::nullopt;
  }
};

/// Looks for the ACS capability in the configuration space of a bridge. The kernel gives 4,096 bytes to root and 64 to
/// others: with 256 or fewer nothing is known.
/// Source: PCI Express Base Specification, 7.6.3 (extended capabilities begin at 0x100) and 7.7.11 (ACS is number 0x000d, its
/// control register at offset 6).
[[nodiscard]] constexpr acs_state acs_of_config(std::string_view config) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(config[at])); };
  acs_state state;
  if (config.size() <= 0x100) return state;
  state.known = true;
  std::size_t at = 0x100;
  // A capability has at least four bytes, so more than a thousand hops go round in a circle.
  for (int hops = 0; at >= 0x100 && at + 8 <= config.size() && hops < 1024; ++hops) {
    const std::uint32_t head = byte(at) | byte(at + 1) << 8U | byte(at + 2) << 16U | byte(at + 3) << 24U;
    if (head == 0 || head == 0xffffffffU) break;
    if ((head & 0xffffU) == 0x000dU) {
      state.control = static_cast<std::uint16_t>(byte(at + 6) | byte(at + 7) << 8U);
      return state;
    }
    at = head >> 20U & 0xffcU;
  }
  return state;
}

}}}  // namespace topocoll::v0::read
