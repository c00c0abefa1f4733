// SPDX-License-Identifier: Apache-2.0
// The commands that show and measure against a topology.
#include <topocoll/app/calibrate.hpp>
#include <topocoll/app/order.hpp>
#include <topocoll/app/topo_commands.hpp>
#include "commands.hpp"
#include "shared_topology.hpp"

int commands::topo(words args, sink out, sink err) { return topocoll::app::run_topo_commands(args, out, err); }
int commands::order(words args, sink out, sink err) { return topocoll::app::run_order(args, out, err); }
int commands::calibrate(words args, sink out, sink err) { return topocoll::app::run_calibrate(args, out, err); }
