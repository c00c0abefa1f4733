// SPDX-License-Identifier: Apache-2.0
#pragma once
// The planners that are tried when nobody asks for others.
#include <cstdint>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/synth/bruck.hpp>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/in_switch.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/synth/pat.hpp>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/synth/ring.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Calls `use` with all planners: plans that follow the machine first, so that they win ties, then those for any machine.
///
/// Add your own: `with_default_planners([&](const auto&... known) { return choose(prices, problem, {}, mine, known...); })`.
template <class Use>
decltype(auto) with_default_planners(Use use) {
  using a = algorithm;
  return use(in_switch{}, hierarchical{.in_box = a::in_switch},
             hierarchical{.in_box = a::in_switch, .on_rail = a::direct, .across = a::direct},
             hierarchical{.in_box = a::in_switch, .on_rail = a::recursive, .across = a::recursive}, hierarchical{},
             hierarchical{.in_box = a::direct, .on_rail = a::direct, .across = a::direct},
             hierarchical{.in_box = a::direct, .on_rail = a::recursive, .across = a::recursive},
             hierarchical{.in_box = a::ring, .on_rail = a::recursive, .across = a::recursive},
             hierarchical{.in_box = a::ring, .on_rail = a::ring, .across = a::ring},
             hierarchical{.in_box = a::direct, .on_rail = a::double_tree, .across = a::double_tree}, packed{},
             ring{.order = ring_order::hardware}, binary_tree{}, binomial_tree{}, recursive{}, recursive_doubling{},
             pat{}, direct{}, bruck{}, one_shot{}, ring{});
}

/// Above so many ranks every further plan costs about a second, and plans that ignore the machine have no chance.
inline constexpr std::uint32_t most_ranks_for_all_planners = 16384;

/// Calls `use` with the planners that are worth trying for so many ranks.
template <class Use>
decltype(auto) with_planners_for(std::uint32_t ranks, Use use) {
  if (ranks <= most_ranks_for_all_planners) return with_default_planners(use);
  return use(hierarchical{.in_box = {}, .on_rail = algorithm::recursive, .across = algorithm::recursive}, ring{});
}

}}}  // namespace topocoll::v0::plan
