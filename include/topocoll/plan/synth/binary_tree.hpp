// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees: few steps for rooted collectives and for all_reduce.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>
#include <topocoll/plan/detail/level_groups.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/synth/slicing.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Two complementary binary trees, slices taking them in turn: about 2 log2 n steps and, with many slices, the bandwidth of
/// a ring. With a graph the ranks stand in the order of the hardware, so that subtrees lie in boxes and pods.
struct binary_tree {
  std::uint32_t slices = 0;  ///< 0: by size, 2 to max_slices (one slice would leave the second tree idle)

  [[nodiscard]] std::string_view name() const { return "tree"; }

  /// @return `unsupported` for collectives without a tree: all_gather, reduce_scatter, all_to_all
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    std::uint32_t s = slices;
    if (s == 0)
      s = static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(q.size.value / detail::least_message.value, 2, max_slices));
    return detail::in_hardware_order(q, algorithm::double_tree, {.slices = s, .pieces = 0}, name());
  }
};
static_assert(Synthesizer<binary_tree>);

/// Binomial tree of whole vectors: ceil(log2 n) steps per direction, for the smallest messages.
struct binomial_tree {
  [[nodiscard]] std::string_view name() const { return "binomial"; }

  /// @return `unsupported` for all_gather, reduce_scatter and all_to_all
  template <class = void>
  [[nodiscard]] result<schedule> synthesize(const problem& q) const {
    return detail::in_hardware_order(q, algorithm::tree, {}, name());
  }
};
static_assert(Synthesizer<binomial_tree>);

}}}  // namespace topocoll::v0::plan
