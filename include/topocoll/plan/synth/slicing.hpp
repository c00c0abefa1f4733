// SPDX-License-Identifier: Apache-2.0
#pragma once
// Into how many slices and pieces planners cut an array, by its size.
#include <algorithm>
#include <cstdint>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Least size of a message that pipelining may make: at 50 GB/s and 2 µs to post a message, 100 kB keep the wire busy.
inline constexpr bytes least_message = {std::uint64_t{128} << 10U};

/// Slices such that one unit of one slice is not below `least_message`; at most 4, which hide all but a quarter of the
/// shorter stages.
[[nodiscard]] constexpr std::uint32_t slices_for(bytes size, std::uint32_t units) {
  const std::uint64_t fit = size.value / (least_message.value * std::max(units, 1U));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, 4));
}

/// Pieces of a chain of n ranks, per slice. A chain with p pieces takes (p + n - 2) times (step + m/p): fewer pieces cost
/// bandwidth, more cost steps, and none should be below `least_message`.
[[nodiscard]] constexpr std::uint32_t pieces_for(bytes size, std::uint32_t n) {
  const std::uint64_t fit = size.value / least_message.value;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, std::max(8U, std::min(4 * n, 256U))));
}

}}}}  // namespace topocoll::v0::plan::detail
