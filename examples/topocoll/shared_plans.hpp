// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the commands that plan share is compiled once, in shared_plans.cpp, as in shared_topology.hpp.
#include <topocoll/app/plan_search.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/verify.hpp>

extern template topocoll::result<topocoll::plan::choice> topocoll::app::choose_plan<void>(
    topocoll::app::plan_simulator&, const topocoll::plan::problem&, const topocoll::plan::choose_options&);
extern template topocoll::result<topocoll::plan::size_map> topocoll::app::winners_by_size<void>(
    topocoll::app::plan_simulator&, const topocoll::plan::problem&, const topocoll::plan::bound&, topocoll::bytes,
    topocoll::bytes, const topocoll::plan::choose_options&);
extern template topocoll::result<topocoll::plan::pareto_list> topocoll::app::pareto_plans<void>(
    topocoll::app::plan_simulator&, const topocoll::plan::problem&, const topocoll::plan::bound&, topocoll::bytes,
    topocoll::bytes, const topocoll::plan::choose_options&);
extern template class topocoll::plan::simulator<topocoll::plan::alpha_beta>;
extern template topocoll::result<topocoll::plan::bound> topocoll::plan::lower_bound<topocoll::plan::alpha_beta>(
    const topocoll::plan::problem&, const topocoll::plan::alpha_beta&, const topocoll::plan::bound_options&);
extern template topocoll::result<topocoll::plan::choice> topocoll::plan::detail::settle<void>(
    const topocoll::plan::problem&, const topocoll::plan::choose_options&, std::vector<topocoll::plan::candidate>,
    topocoll::plan::bound);
extern template topocoll::result<topocoll::plan::levels> topocoll::plan::levels_of<void>(
    const topocoll::plan::problem&);
extern template topocoll::result<topocoll::plan::program> topocoll::plan::lower<void>(const topocoll::plan::schedule&,
                                                                                      topocoll::rank_id);
extern template topocoll::result<topocoll::plan::proof> topocoll::plan::verify<void>(const topocoll::plan::schedule&,
                                                                                     topocoll::plan::verify_options);
extern template topocoll::result<topocoll::plan::schedule> topocoll::plan::schedule_from_json<void>(std::string_view,
                                                                                                    std::string_view);
