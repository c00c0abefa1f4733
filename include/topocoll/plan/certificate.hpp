// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plan claims about itself, as data that anybody can check: a bound with its cut, routes, loads, and the gap.
#include <cstdint>
#include <optional>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/rational.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// A link and the share of a message that it carries.
struct claimed_share {
  link_id link{};
  rational share{1};
};

/// How messages from one rank to another travel. Ranks on one node need no links. Where several fit a message, the first
/// with a stage counts, then the first without.
struct claimed_route {
  rank_id from{}, to{};
  std::vector<claimed_share> links;
  std::optional<std::uint32_t> stage{};   ///< only messages of this stage (`step::stage`); empty for all
  std::uint32_t first_chunk = 0;          ///< only messages whose first chunk is from this one
  std::uint32_t last_chunk = UINT32_MAX;  ///< to before this one
};

/// What a link carries in all, in chunks of the whole array.
struct claimed_load {
  link_id link{};
  rational chunks{};
};

/// Claims; empty ones are not made. Checked by `check`, which takes none of them on trust.
///
/// The bound, for an array of M bytes on n ranks, B+ and B- the capacities that leave and enter a set S:
///   all_gather      one set with s ranks, not all:  max(s / B+(S), (n-s) / B-(S)) / n
///   reduce_scatter  one set with s ranks, not all:  max(s / B-(S), (n-s) / B+(S)) / n
///   all_reduce      p >= 2 sets, every rank in one of them, other nodes in any number: 2 (p-1) / min(sum of B+, sum of B-);
///                   one set: 1 / min(B+, B-)
///   broadcast       one set that separates the root from a rank: 1 / B away from the root
///   reduce          the same towards the root
///   gather          one set with s ranks and without the root: s/n / B+(S); with it: (n-s)/n / B-(S)
///   scatter         the same the other way round
///   all_to_all      one set with s ranks, not all:  s (n-s) / n / min(B+, B-)
/// Sources: docs/models/bound.md.
struct certificate {
  std::optional<rational> seconds_per_byte{};  ///< no plan needs less time than this times the size of the array
  std::vector<std::vector<node_id>> sets{};    ///< of nodes: a cut is one, a family several
  std::vector<claimed_route> routes{};
  /// With `routes`: what all links carry; links that are not named carry nothing.
  std::vector<claimed_load> loads{};
  /// With a bound and routes: time of the busiest link over the bound, less 1.
  std::optional<rational> gap{};
};

}}}  // namespace topocoll::v0::plan
