// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program that runs collectives needs: discovery, graph, plans, execution. Measuring (probe.hpp, bench.hpp), the
// files of other tools and what needs an optional library are included by name.
// Written by tests/lint/umbrellas.py.
#include <topocoll/core.hpp>
#include <topocoll/discover.hpp>
#include <topocoll/exec.hpp>
#include <topocoll/io.hpp>
#include <topocoll/plan.hpp>
#include <topocoll/topo.hpp>
#include <topocoll/version.hpp>
