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

/// The choice for `size` bytes (of the buffer; of one rank's shard for the sharded collectives) among `ranks` ranks.
///
/// A pure function: ranks that make the same call choose the same plan.
[[nodiscard]] constexpr flat_choice choose_flat(collective_kind collective, std::uint32_t ranks, bytes size) {
  using plan::algorithm;
  (void)ranks;
  switch (collective) {
    case collective_kind::all_reduce:
      if (size <= bytes{4096} && ranks <= 4) return {algorithm::one_shot, 1};
      if (size <= bytes{4096}) return {algorithm::doubling, 1};
      return {algorithm::direct, 1};
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter:
    case collective_kind::all_to_all: return {algorithm::direct, 1};
    case collective_kind::broadcast:
    case collective_kind::reduce: return {size <= bytes{16384} ? algorithm::tree : algorithm::ring, 1};
  }
  return {};
}

}}  // namespace topocoll::v0
