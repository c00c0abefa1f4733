// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of core/ that needs no optional library: numbers with units, ids, results, findings, deadlines.
// Written by tests/lint/umbrellas.py.
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
