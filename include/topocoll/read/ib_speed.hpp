// SPDX-License-Identifier: Apache-2.0
#pragma once
// The speeds that a lane of an InfiniBand link can have, and the words for them.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace read {

/// Speed of one lane. Later ones are faster.
enum class ib_speed : std::uint8_t { unknown, sdr, ddr, qdr, fdr10, fdr, edr, hdr, ndr, xdr };

/// "HDR"; "???" for unknown, as the tools of infiniband-diags write it.
[[nodiscard]] constexpr const char* to_string(ib_speed s) {
  constexpr const char* words[] = {"???", "SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"};
  return words[static_cast<std::size_t>(s)];
}

/// The speed of that name, in capitals; unknown for any other word.
[[nodiscard]] constexpr ib_speed ib_speed_named(std::string_view word) {
  for (std::uint8_t s = 1; s <= static_cast<std::uint8_t>(ib_speed::xdr); ++s)
    if (word == to_string(static_cast<ib_speed>(s))) return static_cast<ib_speed>(s);
  return ib_speed::unknown;
}

/// Signalling rate of one lane in Gbit/s, before line coding; 0 for unknown.
/// Source: InfiniBand Architecture Specification, volume 2, chapters 5 and 6; XDR: IBTA roadmap.
[[nodiscard]] constexpr double ib_signalling_gbps(ib_speed s) {
  constexpr double rates[] = {0, 2.5, 5, 10, 10.3125, 14.0625, 25.78125, 53.125, 106.25, 212.5};
  return rates[static_cast<std::size_t>(s)];
}

/// The speed whose lane signals at `gbps`, within 1 %; unknown for others. 10 Gbit/s is QDR: tools that mean FDR10 say so.
[[nodiscard]] constexpr ib_speed ib_speed_of_lane(double gbps) {
  for (std::uint8_t s = 1; s <= static_cast<std::uint8_t>(ib_speed::xdr); ++s) {
    const double rate = ib_signalling_gbps(static_cast<ib_speed>(s));
    if (gbps > rate * 0.99 && gbps < rate * 1.01) return static_cast<ib_speed>(s);
  }
  return ib_speed::unknown;
}

}}}  // namespace topocoll::v0::read
