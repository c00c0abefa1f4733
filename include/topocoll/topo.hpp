// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of topo/ that needs no optional library: the graph of nodes and links, its paths, cuts and groups; checks,
// comparison, tables and pictures are included by name.
// Written by tests/lint/umbrellas.py.
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/concepts.hpp>
#include <topocoll/topo/flow.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/paths.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/visible.hpp>
#include <topocoll/topo/words.hpp>
