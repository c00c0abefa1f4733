// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every layer, without what needs an optional library and what reads or writes the files of other tools.
// Written by tests/lint/umbrellas.py.
#include <topocoll/bench.hpp>
#include <topocoll/core.hpp>
#include <topocoll/discover.hpp>
#include <topocoll/exec.hpp>
#include <topocoll/io.hpp>
#include <topocoll/plan.hpp>
#include <topocoll/probe.hpp>
#include <topocoll/topo.hpp>
#include <topocoll/version.hpp>
