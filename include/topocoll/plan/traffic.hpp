// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who sends how much to whom, round by round: what prices and drawings need of a schedule.
#include <cstdint>
#include <span>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Data that one rank sends to another in one round, all slices together.
struct transfer {
  rank_id from{};
  rank_id to{};
  std::uint64_t chunks = 0;    ///< of the whole array (`traffic_unit` of them)
  std::uint32_t messages = 1;  ///< in how many pieces, per slice
  std::uint32_t way = 0;       ///< 0: as routing says; k: by `schedule::ways[k-1]`
  /// Chunks that reach `to` when a switch in between adds up or multiplies what passes it (`algorithm::in_switch`);
  /// `as_sent` elsewhere. Such moves are no messages between two ranks: all those of a round together load the links of
  /// every member as the switch does.
  std::uint64_t arrives = as_sent;
  static constexpr std::uint64_t as_sent = UINT64_MAX;

  friend bool operator==(const transfer&, const transfer&) = default;
};

/// Transfers that happen at the same time. Rounds follow one another where data depend on each other; slices overlap them.
struct traffic_round {
  std::uint32_t stage = 0;   ///< index into schedule::stages
  std::uint32_t repeat = 1;  ///< so many rounds with these very moves: a ring is one entry
  /// Rounds more in which a pipelined chain fills and drains: they take the time of a round, but move nothing in addition.
  std::uint32_t fill = 0;
  std::uint32_t switched = 0;  ///< members of the largest group for which a switch works; 0: none does
  bool sums = false;           ///< that switch adds up; else it multiplies
  std::vector<transfer> moves;
};

/// Rounds of a schedule, without lowering it for every rank. The sum of `repeat` times `chunks` is exactly what the
/// programs send, but for stages `in_switch`, whose programs stand for what a switch does.
/// @param shares  sizes of the shards where they differ, one per rank, as in `problem::shares`; empty: equal. Then every
///                chunk counts as often as the share of its owner says, and what is empty is not sent.
/// Preconditions: the schedule passes `validate`; `traffic_unit` is not 0.
/// Cost: O(ranks) per round; rings, chains and repeated rounds are folded where shards are equal.
template <class = void>
[[nodiscard]] std::vector<traffic_round> traffic(const schedule& compact, std::span<const std::uint64_t> shares = {});

/// How many of the chunks that `traffic` counts the whole array has: `schedule::chunks()` where shards are equal; 0 when the
/// number does not fit into 63 bits.
template <class = void>
[[nodiscard]] std::uint64_t traffic_unit(const schedule& plan, std::span<const std::uint64_t> shares = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/traffic_rounds.hpp>
