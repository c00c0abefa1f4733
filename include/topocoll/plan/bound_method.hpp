// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the certificate of a bound can be, and what was shown about it.
#include <cstddef>
#include <cstdint>

namespace topocoll { inline namespace v0 { namespace plan {

/// What the certificate of a bound is made of, and what was shown about it.
enum class bound_method : std::uint8_t {
  nothing,          ///< one rank, or no bytes: nothing must move
  best_cut,         ///< one cut; maximum flows prove that no other cut asks for more
  best_partition,   ///< disjoint node sets; no other family asks for more
  level_cuts,       ///< the worst cut found, around ranks, NUMA domains, hosts, pods at least: another may ask for more
  shared_memory,    ///< all ranks share one device: every byte that one takes over from another passes its memory
  level_partitions  ///< the worst family found, of ranks, NUMA domains, hosts, pods at least: another may ask for more
};
[[nodiscard]] constexpr const char* to_string(bound_method m) {
  constexpr const char* words[] = {"nothing",    "best_cut",      "best_partition",
                                   "level_cuts", "shared_memory", "level_partitions"};
  return words[static_cast<std::size_t>(m)];
}

}}}  // namespace topocoll::v0::plan
