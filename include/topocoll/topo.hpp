// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of topo/ that needs no optional library: the graph of nodes and links, its paths, cuts and groups.
// Written by tests/lint/umbrellas.py.
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/check.hpp>
#include <topocoll/topo/check_options.hpp>
#include <topocoll/topo/concepts.hpp>
#include <topocoll/topo/diff.hpp>
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/dot.hpp>
#include <topocoll/topo/flow.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/matrix.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/nccl_xml_text.hpp>
#include <topocoll/topo/paths.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/summary.hpp>
#include <topocoll/topo/svg.hpp>
#include <topocoll/topo/text.hpp>
#include <topocoll/topo/visible.hpp>
#include <topocoll/topo/words.hpp>
