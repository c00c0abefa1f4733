// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of integrate/ that needs no optional library: formats and plug-in structures of other libraries and schedulers.
// Written by tests/lint/umbrellas.py.
#include <topocoll/integrate/slurm_topology.hpp>
