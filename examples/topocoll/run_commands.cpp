// SPDX-License-Identifier: Apache-2.0
// The commands that run collectives.
#include <topocoll/app/bench.hpp>
#include <topocoll/app/preflight.hpp>
#include "commands.hpp"
#include "shared_plans.hpp"
#include "shared_topology.hpp"

int commands::preflight(words args, sink out, sink err) { return topocoll::app::run_preflight(args, out, err); }
int commands::bench(words args, sink out, sink err) { return topocoll::app::run_bench(args, out, err); }
