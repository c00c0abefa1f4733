// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of plan/ that needs no optional library: collectives, bounds, schedules, proofs and prices; planners, models and
// studies are included by name.
// Written by tests/lint/umbrellas.py.
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/bound_method.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/explanation.hpp>
#include <topocoll/plan/host_planners.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/proof.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/binary_tree.hpp>
#include <topocoll/plan/synth/bruck.hpp>
#include <topocoll/plan/synth/direct.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/in_switch.hpp>
#include <topocoll/plan/synth/pat.hpp>
#include <topocoll/plan/synth/recursive.hpp>
#include <topocoll/plan/synth/ring.hpp>
#include <topocoll/plan/synth/slicing.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
