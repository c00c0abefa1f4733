// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recursive halving and doubling: logarithmically many steps, any number of ranks.
#include <cstdint>
#include <string_view>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/synth/slicing.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Halving and doubling: all_reduce is Rabenseifner's reduce-scatter and all-gather, 2 ceil(log2 n) steps and as few bytes
/// as a ring; broadcast is a scatter and an all-gather (van de Geijn), reduce is its mirror image.
///
/// The all-gather goes to near ranks first, with one part, and sends up to half of the array in its farthest step; the
/// reduce-scatter is the mirror image. Data that are neighbours stay neighbours, so nothing is copied on the way, and where
/// boxes hold a power of two of ranks, the near steps stay inside them. Where far links are narrow, see `pat`.
struct recursive {
  std::uint32_t slices = 1;

  [[nodiscard]] std::string_view name() const { return "recursive"; }

  /// @return `unsupported` for all_to_all
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::recursive, {.slices = slices, .pieces = 0});
  }
};
static_assert(Synthesizer<recursive>);

/// Recursive doubling of whole vectors: least steps for an all_reduce of few bytes; every step moves all of them.
struct recursive_doubling {
  [[nodiscard]] std::string_view name() const { return "doubling"; }

  /// @return `unsupported` for anything but all_reduce
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::doubling);
  }
};
static_assert(Synthesizer<recursive_doubling>);

}}}  // namespace topocoll::v0::plan
