// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/topo_commands.hpp>
#include "commands.hpp"

int commands::topo(words args, sink out, sink err) { return topocoll::app::run_topo_commands(args, out, err); }
