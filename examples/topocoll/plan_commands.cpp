// SPDX-License-Identifier: Apache-2.0
// The commands that plan, and write plans for others.
#include <topocoll/app/export.hpp>
#include <topocoll/app/plan.hpp>
#include "commands.hpp"
#include "shared_plans.hpp"
#include "shared_topology.hpp"

int commands::plan(words args, sink out, sink err) { return topocoll::app::run_plan(args, out, err); }
int commands::export_files(words args, sink out, sink err) { return topocoll::app::run_export(args, out, err); }
