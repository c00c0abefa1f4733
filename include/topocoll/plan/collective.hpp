// SPDX-License-Identifier: Apache-2.0
#pragma once
// The collectives: who holds which part before and after, and how bandwidth is counted.
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <topocoll/core/ids.hpp>

namespace topocoll { inline namespace v0 {

/// Names of the collectives as values, for tables, files and command lines.
enum class collective_kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all };

[[nodiscard]] constexpr std::string_view to_string(collective_kind k) {
  constexpr std::string_view words[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "broadcast",  "reduce",     "all_to_all"};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] constexpr std::optional<collective_kind> parse_collective(std::string_view word) {
  for (int k = 0; k <= static_cast<int>(collective_kind::all_to_all); ++k)
    if (to_string(static_cast<collective_kind>(k)) == word) return static_cast<collective_kind>(k);
  return std::nullopt;
}

/// True when outputs are sums (or another reduction) of inputs, not copies.
[[nodiscard]] constexpr bool reduces(collective_kind k) {
  return k == collective_kind::all_reduce || k == collective_kind::reduce_scatter || k == collective_kind::reduce;
}

/// busbw = algbw * factor, so that the figure compares with link speed whatever the number of ranks.
///
/// Source: nccl-tests, doc/PERFORMANCE.md: all-reduce 2(n-1)/n; all-gather, reduce-scatter and all-to-all (n-1)/n;
/// broadcast and reduce 1. One rank moves nothing: 0 for the former, 1 for the latter.
[[nodiscard]] constexpr double busbw_factor(collective_kind k, std::uint32_t ranks) {
  if (ranks == 0) return 0;
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (k) {
    case collective_kind::all_reduce: return 2 * others;
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter:
    case collective_kind::all_to_all: return others;
    case collective_kind::broadcast:
    case collective_kind::reduce: return 1;
  }
  return 0;
}

/// A collective as a type, for code that is written for one of them. Implemented by the six structs below.
template <class C>
concept Collective = requires {
  { C::kind } -> std::convertible_to<collective_kind>;
};

struct all_reduce {
  static constexpr collective_kind kind = collective_kind::all_reduce;
};
struct all_gather {
  static constexpr collective_kind kind = collective_kind::all_gather;
};
struct reduce_scatter {
  static constexpr collective_kind kind = collective_kind::reduce_scatter;
};
struct broadcast {
  static constexpr collective_kind kind = collective_kind::broadcast;
};
struct reduce {
  static constexpr collective_kind kind = collective_kind::reduce;
};
struct all_to_all {
  static constexpr collective_kind kind = collective_kind::all_to_all;
};

}}  // namespace topocoll::v0
