// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of integrate/ that needs no optional library: formats and plug-in structures of other libraries and schedulers.
// Written by tests/lint/umbrellas.py.
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/integrate/nccl_environment.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/integrate/nccl_tuner_csv.hpp>
#include <topocoll/integrate/rank_order.hpp>
#include <topocoll/integrate/slurm_topology.hpp>
