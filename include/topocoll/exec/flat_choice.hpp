// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which flat algorithm a communicator takes when nobody has adopted a plan: for ranks that share one host.
#include <cstdint>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 {

/// An algorithm over all ranks, and how it cuts the data.
struct flat_choice {
  plan::algorithm how = plan::algorithm::ring;
  std::uint32_t slices = 1;

  friend constexpr bool operator==(const flat_choice&, const flat_choice&) = default;
};

/// The choice for an array of `size` bytes (the buffer, or all shards together) among `ranks` ranks.
///
/// A pure function: ranks that make the same call choose the same plan. The limits are from measurements of shared
/// memory on a server with two cores (AMD EPYC, Zen 5; g++ 12 -O2) with 2, 4 and 8 ranks, 8 bytes to 8 MiB, where every
/// algorithm ran at every size; the choice is within 15% of the best at nearly all of them. What decides is the same on
/// every host: small arrays pay per message in a row, large ones per byte moved, and one message to everybody at once
/// fills the caches of many ranks.
[[nodiscard]] constexpr flat_choice choose_flat(collective_kind collective, std::uint32_t ranks, bytes size) {
  using plan::algorithm;
  const auto up_to = [size](std::uint64_t kib) { return size.value <= (kib << 10U); };
  switch (collective) {
    case collective_kind::all_reduce:
      if (up_to(4))
        return {ranks <= 8 ? algorithm::one_shot : algorithm::doubling};  // n-1 messages at once, or log n in a row
      if (up_to(128) || ranks <= 4) return {algorithm::direct};
      return {algorithm::recursive};
    case collective_kind::reduce_scatter: return {up_to(128) || ranks <= 4 ? algorithm::direct : algorithm::ring};
    case collective_kind::all_gather:
    case collective_kind::all_to_all:
    case collective_kind::gather:
    case collective_kind::scatter: return {algorithm::direct};
    case collective_kind::broadcast: return {up_to(128) ? algorithm::tree : algorithm::ring};
    case collective_kind::reduce: return {up_to(64) ? algorithm::tree : algorithm::ring};
  }
  return {};
}

}}  // namespace topocoll::v0
