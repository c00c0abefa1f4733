// SPDX-License-Identifier: Apache-2.0
#pragma once
// The planners that are worth trying among processes of one host: the memory joins all, so no trees need to be packed.
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/synth/bruck.hpp>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/pat.hpp>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/synth/ring.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Calls `use` with them: plans that follow the machine first, so that they win ties, then those for any machine.
/// `with_default_planners` (plan/planners.hpp) has these and more.
template <class Use>
decltype(auto) with_host_planners(Use use) {
  using a = algorithm;
  return use(hierarchical{}, hierarchical{.in_box = a::direct, .on_rail = a::direct, .across = a::direct},
             hierarchical{.in_box = a::ring, .on_rail = a::recursive, .across = a::recursive},
             ring{.order = ring_order::hardware}, binary_tree{}, binomial_tree{}, recursive{}, recursive_doubling{},
             pat{}, direct{}, bruck{}, one_shot{}, ring{});
}

}}}  // namespace topocoll::v0::plan
