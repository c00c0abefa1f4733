// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of bench/ that needs no optional library: sweeps of collectives and their comparison.
// Written by tests/lint/umbrellas.py.
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/row.hpp>
#include <topocoll/bench/sweep.hpp>
