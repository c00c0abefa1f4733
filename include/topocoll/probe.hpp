// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of probe/ that needs no optional library: measuring pairs and groups, and judging them.
// Written by tests/lint/umbrellas.py.
#include <topocoll/probe/collective_probe.hpp>
#include <topocoll/probe/cores.hpp>
#include <topocoll/probe/exit_style.hpp>
#include <topocoll/probe/expectation.hpp>
#include <topocoll/probe/link_checks.hpp>
#include <topocoll/probe/memory.hpp>
#include <topocoll/probe/preflight.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/probe/report_text.hpp>
#include <topocoll/probe/sampler.hpp>
#include <topocoll/probe/stats.hpp>
#include <topocoll/probe/verdict.hpp>
