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
enum class collective_kind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,  ///< every rank's shard goes to the root, which holds the whole array afterwards
  scatter  ///< the root's array is cut into shards, one for each rank
};
inline constexpr std::size_t collective_count = 8;

[[nodiscard]] constexpr std::string_view to_string(collective_kind k) {
  constexpr std::string_view words[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                        "reduce",     "all_to_all", "gather",         "scatter"};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] constexpr std::optional<collective_kind> parse_collective(std::string_view word) {
  for (std::size_t k = 0; k < collective_count; ++k)
    if (to_string(static_cast<collective_kind>(k)) == word) return static_cast<collective_kind>(k);
  return std::nullopt;
}

/// True when outputs are sums (or another reduction) of inputs, not copies.
[[nodiscard]] constexpr bool reduces(collective_kind k) {
  return k == collective_kind::all_reduce || k == collective_kind::reduce_scatter || k == collective_kind::reduce;
}

/// True when one rank, the root, is special.
[[nodiscard]] constexpr bool rooted(collective_kind k) {
  return k == collective_kind::broadcast || k == collective_kind::reduce || k == collective_kind::gather ||
         k == collective_kind::scatter;
}

/// How much of the array a rank holds. Rank r's shard is the r-th of as many as there are ranks.
enum class region : std::uint8_t { nothing, own_shard, whole };

/// What a rank brings. An all_to_all rank brings one shard for every rank.
[[nodiscard]] constexpr region input_of(collective_kind k, bool is_root) {
  switch (k) {
    case collective_kind::all_gather:
    case collective_kind::gather: return region::own_shard;
    case collective_kind::broadcast:
    case collective_kind::scatter: return is_root ? region::whole : region::nothing;
    case collective_kind::all_reduce:
    case collective_kind::reduce_scatter:
    case collective_kind::reduce:
    case collective_kind::all_to_all: break;
  }
  return region::whole;
}
/// What a rank is promised.
[[nodiscard]] constexpr region output_of(collective_kind k, bool is_root) {
  switch (k) {
    case collective_kind::reduce_scatter:
    case collective_kind::scatter: return region::own_shard;
    case collective_kind::reduce:
    case collective_kind::gather: return is_root ? region::whole : region::nothing;
    case collective_kind::all_reduce:
    case collective_kind::all_gather:
    case collective_kind::broadcast:
    case collective_kind::all_to_all: break;
  }
  return region::whole;
}

/// busbw = algbw * factor, so that the figure compares with link speed whatever the number of ranks.
///
/// Source: nccl-tests, doc/PERFORMANCE.md, and for gather and scatter its src/gather.cu and src/scatter.cu: all-reduce
/// 2(n-1)/n; all-gather, reduce-scatter, all-to-all, gather and scatter (n-1)/n; broadcast and reduce 1. One rank moves nothing: 0 for the former, 1 for the latter.
[[nodiscard]] constexpr double busbw_factor(collective_kind k, std::uint32_t ranks) {
  if (ranks == 0) return 0;
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (k) {
    case collective_kind::all_reduce: return 2 * others;
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter:
    case collective_kind::all_to_all:
    case collective_kind::gather:
    case collective_kind::scatter: return others;
    case collective_kind::broadcast:
    case collective_kind::reduce: return 1;
  }
  return 0;
}

/// A collective as a type, for code that is written for one of them. Implemented by the structs below.
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
struct gather {
  static constexpr collective_kind kind = collective_kind::gather;
};
struct scatter {
  static constexpr collective_kind kind = collective_kind::scatter;
};

}}  // namespace topocoll::v0
