// SPDX-License-Identifier: Apache-2.0
#pragma once
// The codes and masks by which InfiniBand ports tell their width, speed and state.
#include <cstdint>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/read/ib_speed.hpp>

namespace topocoll { inline namespace v0 { namespace read {

// Source of all: PortInfo in the InfiniBand Architecture Specification, volume 1, 14.2.5.6.

/// Lanes by LinkWidthActive; 0 for codes that are none.
[[nodiscard]] constexpr std::uint32_t ib_lanes_of_code(std::uint32_t code) {
  switch (code) {
    case 1: return 1;
    case 2: return 4;
    case 4: return 8;
    case 8: return 12;
    case 16: return 2;
    default: return 0;
  }
}
/// Speed by LinkSpeedActive, and by LinkSpeedExtActive, which counts when it is not 0.
[[nodiscard]] constexpr ib_speed ib_speed_of_code(std::uint32_t speed, std::uint32_t extended) {
  switch (extended) {
    case 0: break;
    case 1: return ib_speed::fdr;
    case 2: return ib_speed::edr;
    case 4: return ib_speed::hdr;
    case 8: return ib_speed::ndr;
    default: return ib_speed::unknown;
  }
  return speed == 1 ? ib_speed::sdr : speed == 2 ? ib_speed::ddr : speed == 4 ? ib_speed::qdr : ib_speed::unknown;
}
/// Most lanes in a LinkWidthSupported mask, which has a bit for each code; 0 for none.
[[nodiscard]] constexpr std::uint32_t widest_of_mask(std::uint32_t widths) {
  std::uint32_t most = 0;
  for (std::uint32_t code = 1; code <= 16; code <<= 1U)
    if ((widths & code) != 0 && ib_lanes_of_code(code) > most) most = ib_lanes_of_code(code);
  return most;
}
/// Fastest speed in the masks LinkSpeedSupported and LinkSpeedExtSupported; unknown for none.
[[nodiscard]] constexpr ib_speed fastest_of_masks(std::uint32_t speeds, std::uint32_t extendeds) {
  for (std::uint32_t code = 8; code >= 1; code >>= 1U)
    if ((extendeds & code) != 0) return ib_speed_of_code(0, code);
  for (std::uint32_t code = 4; code >= 1; code >>= 1U)
    if ((speeds & code) != 0) return ib_speed_of_code(code, 0);
  return ib_speed::unknown;
}
/// Logical state by PortState.
[[nodiscard]] constexpr ib_state ib_state_of_code(std::uint32_t code) {
  switch (code) {
    case 1: return ib_state::down;
    case 2: return ib_state::initialize;
    case 3: return ib_state::armed;
    case 4: return ib_state::active;
    default: return ib_state::unknown;
  }
}
/// Word for PortPhysicalState as infiniband-diags writes it; empty for codes that are none.
[[nodiscard]] constexpr const char* ib_physical_state_of_code(std::uint32_t code) {
  constexpr const char* words[] = {
      "", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest"};
  return code < 8 ? words[code] : "";
}

}}}  // namespace topocoll::v0::read
