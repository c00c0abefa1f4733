// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every pair at once: one or two steps, for few ranks or few bytes.
#include <cstdint>
#include <string_view>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Every rank sends each other rank its part at once. All_reduce takes two steps ("two-shot": reduce-scatter, all-gather)
/// with the bytes of a ring, the other collectives one.
struct direct {
  std::uint32_t slices = 1;

  [[nodiscard]] std::string_view name() const { return "direct"; }

  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::direct, {.slices = slices, .pieces = 0});
  }
};
static_assert(Synthesizer<direct>);

/// All_reduce in one step: every rank sends its whole vector to every other and adds up all. n-1 times the bytes of one
/// vector per rank, so only for the smallest vectors.
struct one_shot {
  [[nodiscard]] std::string_view name() const { return "one_shot"; }

  /// @return `unsupported` for anything but all_reduce
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    return flat_schedule(q.collective, q.rank_count(), q.root, algorithm::one_shot);
  }
};
static_assert(Synthesizer<one_shot>);

}}}  // namespace topocoll::v0::plan
